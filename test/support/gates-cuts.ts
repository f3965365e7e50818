/**
 * Calls on a gated partition, each in states in which it writes something of gates. Cut off before any of their writes, and
 * made again, they end as they would have: no limit is exceeded, nobody is stuck, and nothing is left. The scripts may be
 * broken ones, to see whether that is noticed.
 */

import type { Redis } from '../../src/redis/connection/connect.ts';
import type { PartitionRef } from '../../src/redis/keys.ts';
import { lapsed } from '../../src/redis/read/inspect.ts';
import { repair } from '../../src/redis/repair/repair.ts';
import { close, type GateFlaw, limit } from '../../src/redis/scripts/gates.ts';
import { Desk, NOW } from './gates-desk.ts';
import { orderCuts } from './gates-order-cuts.ts';
import { lendingCuts } from './lending-cuts.ts';
import { cutOff, luaOf } from './model-cut.ts';

export interface GateCut {
  readonly title: string;
  readonly verb: string;
  /** Limits that hold until the end. */
  readonly most: readonly [concurrency: number, perGroup: number];
  /** What it may leave, because whoever calls it again makes it good, and somebody does. */
  readonly mends?: readonly GateFlaw['kind'][];
  readonly reach: (desk: Desk) => Promise<void>;
  /** The call; made again it is given what it was given the first time. */
  readonly call: (desk: Desk) => Promise<unknown>;
}

/** One runs, and the next in turn is of a lane with more behind it, or with nobody. */
const STATES = {
  'with more behind the next': ['{a}2', 'x', 'y', 'z'],
  'with nobody behind the next': ['{a}2', '{b}1'],
  'with nobody but its group': ['{a}2', '{a}3'],
} as const;
/** 1,000 per second, one at a time, one of each group. */
const SHARE = '1000 1000 1 1';
/** The first one of a worker over HTTP. */
const CLAIM = { lane: 0, seq: 1 };

const settles = Object.entries(STATES).flatMap(([state, words]) => {
  const reach = async (desk: Desk) => {
    await desk.begin(SHARE);
    await desk.line('{a}1');
    await desk.serve(1);
    await desk.line(...words);
  };
  const verbs = ['retry', 'defer', 'bury', 'commit', 'complete'] as const;
  const most = [1, 1] as const;
  const first = (desk: Desk) => ({ ...desk.claim('{a}1'), mark: '' });
  const when = (desk: Desk) => desk.settings('w1');
  const served = (take: number) => (desk: Desk) =>
    desk.jobs.serve(desk.ref, { ended: [first(desk)], given: [], take }, when(desk));
  const handed = (desk: Desk) =>
    desk.jobs.hand(desk.ref, { ended: [first(desk)], given: [], take: 3, ...CLAIM }, when(desk));
  const relayed = (desk: Desk) => {
    const pass = { term: desk.term, leaseMs: undefined, limit: 500, cap: 1000 };
    return desk.jobs.relay(desk.ref, { ended: [first(desk)], take: 2, pass }, when(desk));
  };
  return [
    ...verbs.map(
      (verb): GateCut => ({ title: `${verb} ${state}`, verb, most, reach, call: (desk) => settled(desk, verb) }),
    ),
    { title: `serve of nothing ${state}`, verb: 'serve', most, reach, call: served(0) },
    { title: `serve ${state}`, verb: 'serve', most, reach, call: served(3) },
    { title: `hand ${state}`, verb: 'hand', most, reach, call: handed },
    {
      title: `hand of a claim that another has followed ${state}`,
      verb: 'hand',
      most,
      async reach(desk: Desk) {
        await reach(desk);
        await desk.jobs.hand(desk.ref, { ended: [], given: [], take: 0, ...CLAIM, seq: 2 }, when(desk));
      },
      call: handed,
    },
    { title: `relay ${state}`, verb: 'relay', most, reach, call: relayed },
  ];
});

/** Read and not started, while others wait. */
const given = Object.entries(STATES).flatMap(([state, words]): GateCut[] => {
  const read = async (desk: Desk, header = '') => {
    await desk.begin(SHARE);
    await desk.put(['{a}1'], { header });
    await desk.promote();
    desk.given = await desk.read();
    await desk.line(...words);
  };
  const most = [1, 1] as const;
  return [
    {
      title: `release ${state}`,
      verb: 'release',
      most,
      reach: read,
      call: (desk) => desk.jobs.release(desk.ref, desk.given, { consumer: 'w1', nowMs: desk.nowMs }),
    },
    {
      title: `expire in line ${state}`,
      verb: 'expire',
      most,
      async reach(desk) {
        await desk.begin(SHARE);
        await desk.line('{a}1');
        await desk.put(['{a}2'], { header: `;e=${(NOW + 5).toString(36)}` });
        await desk.line(...words);
        desk.nowMs += 10;
        desk.given = (await lapsed(desk.redis, desk.ref, { nowMs: desk.nowMs })).jobs;
      },
      call: (desk) => desk.jobs.expire(desk.ref, desk.given, desk.settings('')),
    },
    {
      title: `expire ${state}`,
      verb: 'expire',
      most,
      async reach(desk) {
        await read(desk, `;e=${(NOW + 5).toString(36)}`);
        desk.nowMs += 10;
        await desk.serve(0, { given: desk.given });
      },
      call: (desk) => desk.jobs.expire(desk.ref, desk.given, desk.settings('w1')),
    },
    ...(['start', 'serve', 'hand'] as const).flatMap((verb): GateCut[] => [
      {
        title: `${verb} of who was cancelled ${state}`,
        verb,
        most,
        async reach(desk) {
          await read(desk);
          await desk.cancel('{a}1');
        },
        call: (desk) => begun(desk, verb),
      },
      { title: `${verb} ${state}`, verb, most, reach: read, call: (desk) => begun(desk, verb) },
    ]),
  ];
});

const closed = { until: { forMs: 1000 }, why: 'it said 429' };
const scopes = [
  ['the queue', ''],
  ['a group', 'a'],
] as const;
const opened: readonly GateCut[] = [
  ...scopes.map(
    ([what, group]): GateCut => ({
      title: `close of ${what}`,
      verb: 'close',
      most: [1, 1],
      async reach(desk) {
        await desk.begin(SHARE);
        await desk.line('{a}1', '{a}2', 'x');
      },
      call: (desk) => close(desk.redis, desk.ref, { group, ...closed, nowMs: desk.nowMs }),
    }),
  ),
  ...(['queue', 'group'] as const).map(
    (scope): GateCut => ({
      title: `defer that closes its ${scope}`,
      verb: 'defer',
      most: [1, 1],
      async reach(desk) {
        await desk.begin(SHARE);
        await desk.line('{a}1');
        await desk.serve(1);
        await desk.line('{a}2', '{b}1', 'x');
      },
      call: (desk) =>
        desk.jobs.defer(desk.ref, desk.claim('{a}1'), {
          windowMs: 600_000,
          delayMs: 10,
          why: '{"m":"x"}',
          closing: { scope, forMs: 100, reason: 'it said 429' },
          nowMs: desk.nowMs,
        }),
    }),
  ),
  {
    title: 'close that opens the queue',
    verb: 'close',
    most: [1, 1],
    async reach(desk) {
      await desk.begin(SHARE);
      await close(desk.redis, desk.ref, { group: '', ...closed, nowMs: desk.nowMs });
      await desk.line('{a}1', 'x');
    },
    call: (desk) => close(desk.redis, desk.ref, { group: '', until: 0, nowMs: desk.nowMs }),
  },
  {
    title: 'close that opens a group in line',
    verb: 'close',
    most: [1, 1],
    async reach(desk) {
      await desk.begin(SHARE);
      await close(desk.redis, desk.ref, { group: 'a', ...closed, nowMs: desk.nowMs });
      await desk.line('{a}1', '{a}2');
    },
    call: (desk) => close(desk.redis, desk.ref, { group: 'a', until: 0, nowMs: desk.nowMs }),
  },
];

const lined: readonly GateCut[] = [
  {
    title: 'promote of who is alone',
    mends: ['shut'],
    verb: 'promote',
    most: [2, 1],
    async reach(desk) {
      await desk.begin('1000 1000 2 1');
      await desk.line('{a}1');
      await desk.serve(1, { over: await desk.serve(1) });
      await desk.put(['{a}2', '{a}3']);
    },
    call: (desk) => desk.promote(),
  },
  {
    title: 'limit of a group of its own',
    verb: 'limit',
    most: [1, 1],
    async reach(desk) {
      await desk.begin(SHARE);
      await desk.line('{a}1', '{a}2', 'x');
    },
    call: (desk) => {
      const share = { share: '0 1 1 1 0 1 0 other', groups: [['a', '1 - - 2']] as const };
      return limit(desk.redis, desk.ref, { share, nowMs: desk.nowMs });
    },
  },
  {
    title: 'promote of who lines up',
    mends: ['shut'],
    verb: 'promote',
    most: [2, 1],
    async reach(desk) {
      await desk.begin('1000 1000 2 1');
      await desk.line('{a}1');
      await desk.serve(1);
      await desk.put(['{a}2', '{b}1', 'x', 'high y']);
    },
    call: (desk) => desk.promote(),
  },
  {
    title: 'promote of the short way',
    verb: 'promote',
    most: [2, 1],
    async reach(desk) {
      await desk.begin('1000 1000 2 1');
      await desk.line('{a}1');
      await desk.serve(1);
      await desk.put(['{b}1']);
    },
    call: (desk) => desk.promote(),
  },
  {
    title: 'promote of one of a full group',
    verb: 'promote',
    most: [2, 1],
    async reach(desk) {
      await desk.begin('1000 1000 2 1');
      await desk.line('{a}1');
      await desk.serve(1);
      await desk.put(['{a}2']);
    },
    call: (desk) => desk.promote(),
  },
  {
    title: 'promote that rings',
    verb: 'promote',
    most: [1, 1],
    async reach(desk) {
      await desk.begin(SHARE);
      await desk.line('{a}1', '{b}1', 'x', 'y');
      await desk.serve(1);
      await desk.pause();
      await desk.settle('complete', '{a}1');
      await desk.resume();
    },
    call: (desk) => desk.promote(),
  },
  {
    title: 'relay of the short way',
    verb: 'relay',
    most: [3, 1],
    async reach(desk) {
      await desk.begin('1000 1000 3 1');
      await desk.line('{a}1');
      await desk.serve(1);
      await desk.put(['{a}2', '{b}1']);
    },
    call(desk) {
      const pass = { term: desk.term, leaseMs: undefined, limit: 500, cap: 1000 };
      return desk.jobs.relay(desk.ref, { ended: [], take: 3, pass }, desk.settings('w1'));
    },
  },
  {
    title: 'relay of who was let through before',
    verb: 'relay',
    most: [2, 1],
    async reach(desk) {
      await desk.begin('1000 1000 2 1');
      await desk.line('{b}1', '{c}1');
    },
    call(desk) {
      const pass = { term: desk.term, leaseMs: undefined, limit: 500, cap: 1000 };
      return desk.jobs.relay(desk.ref, { ended: [], take: 1, pass }, desk.settings('w1'));
    },
  },
  {
    title: 'relay of who lines up',
    mends: ['shut'],
    verb: 'relay',
    most: [2, 1],
    async reach(desk) {
      await desk.begin('1000 1000 2 1');
      await desk.put(['{a}1', '{a}2', '{b}1', 'x', 'y']);
    },
    call(desk) {
      const pass = { term: desk.term, leaseMs: undefined, limit: 500, cap: 1000 };
      return desk.jobs.relay(desk.ref, { ended: [], take: 1, pass }, desk.settings('w1'));
    },
  },
];

const changed: readonly GateCut[] = (['cancel', 'reschedule', 'edit', 'schedule'] as const).map(
  (verb): GateCut => ({
    title: `${verb} of who waits`,
    verb,
    mends: ['unlined'],
    most: [1, 1],
    async reach(desk) {
      await desk.begin(SHARE);
      await desk.line('{a}1', '{a}2', 'x');
      await desk.serve(1);
    },
    call(desk) {
      const calls = {
        cancel: () => desk.cancel('{a}2'),
        reschedule: () => desk.reschedule('{a}2', 500),
        edit: () => desk.edit('{a}2', { priority: 'high' }),
        schedule: () => desk.replace('{a}2', 500),
      };
      return calls[verb]();
    },
  }),
);

const setting: readonly GateCut[] = [
  {
    title: 'limit, when a queue becomes gated',
    mends: ['unheld'],
    verb: 'limit',
    most: [0, 1],
    async reach(desk) {
      await desk.begin();
      await desk.redis.hdel(desk.ref.keys.meta, 'gates', 'gate');
      await desk.line('{a}1', '{b}1', 'x', '{a}2', 'y', 'z');
      await desk.serve(2);
    },
    call: (desk) => desk.limit('1000 1000 0 1', { slice: 2 }),
  },
  {
    title: 'limit, when a queue becomes gated in one call',
    mends: ['unheld'],
    verb: 'limit',
    most: [0, 1],
    async reach(desk) {
      await desk.begin();
      await desk.redis.hdel(desk.ref.keys.meta, 'gates', 'gate');
      await desk.line('{a}1', '{b}1', 'x', 'y');
      await desk.serve(2);
    },
    call: (desk) => desk.limit('1000 1000 0 1'),
  },
  {
    title: 'limit, when it falls',
    verb: 'limit',
    most: [0, 1],
    async reach(desk) {
      await desk.begin('1000 1000 0 2');
      await desk.line('{a}1', '{a}2', '{b}1', 'x');
      await desk.serve(1);
    },
    call: (desk) => desk.limit('1000 1000 0 1'),
  },
  {
    title: 'limit, when it rises',
    verb: 'limit',
    most: [0, 2],
    async reach(desk) {
      await desk.begin('1000 1000 0 1');
      await desk.line('{a}1', '{b}1', '{a}2', '{b}2', '{a}3');
      await desk.serve(3);
    },
    call: (desk) => desk.limit('1000 1000 0 2', { slice: 1 }),
  },
  {
    title: 'limit, when a second rate comes',
    verb: 'limit',
    most: [0, 0],
    async reach(desk) {
      await desk.begin('1000 1000 0 0');
      await desk.line('x', 'y', 'z');
      await desk.serve(1);
    },
    call: (desk) => desk.limit('1000 1000 0 0 r2000,1000', { slice: 1 }),
  },
  {
    title: 'limit, when a second rate goes',
    verb: 'limit',
    most: [0, 0],
    async reach(desk) {
      await desk.begin('1000 1000 0 0 r2000,1000');
      await desk.line('x', 'y', 'z');
      await desk.serve(1);
    },
    call: (desk) => desk.limit('1000 1000 0 0', { slice: 1 }),
  },
  {
    title: 'limit, when costs come',
    verb: 'limit',
    most: [0, 0],
    async reach(desk) {
      await desk.begin('1000 1000 0 0');
      await desk.line('x', 'y', 'z');
      await desk.serve(1);
    },
    call: (desk) => desk.limit('1000 1000 0 0 c', { slice: 1 }),
  },
  {
    title: 'serve, where jobs cost more than one turn',
    verb: 'serve',
    most: [0, 2],
    async reach(desk) {
      await desk.begin('1000 1000 0 2 c');
      await desk.put(['{a}1', '{a}2', 'x'], { header: ';c=3' });
      await desk.line('y');
    },
    call: (desk) => desk.jobs.serve(desk.ref, { ended: [], given: [], take: 3 }, desk.settings('w1')),
  },
  {
    title: 'relay, where jobs cost more than one turn',
    mends: ['shut'],
    verb: 'relay',
    most: [0, 2],
    async reach(desk) {
      await desk.begin('1000 1000 0 2 c');
      await desk.put(['{a}1', '{a}2', 'x'], { header: ';c=3' });
    },
    call: (desk) => {
      const pass = { term: desk.term, leaseMs: undefined, limit: 500, cap: 1000 };
      return desk.jobs.relay(desk.ref, { ended: [], take: 5, pass }, desk.settings('w1'));
    },
  },
  ...([1, 9] as const).map(
    (turns): GateCut => ({
      title: `spend, of ${turns < 3 ? 'less' : 'more'} than a job costs`,
      verb: 'spend',
      most: [0, 2],
      async reach(desk) {
        await desk.begin('1000 1000 0 2 c');
        await desk.put(['{a}1'], { header: ';c=3' });
        await desk.promote();
        await desk.serve(1);
        await desk.line('{a}2', 'y');
      },
      call: (desk) => desk.spend('{a}1', turns),
    }),
  ),
  {
    title: 'mend-gates of everything',
    verb: 'mend-gates',
    most: [2, 0],
    async reach(desk) {
      await desk.begin('1000 1000 2 1');
      await desk.line('{a}1', '{a}2', '{b}1', '{c}1', 'x', 'high {d}1');
      await desk.serve(1);
      const { holds, line, lanes } = desk.ref.keys;
      const places = await desk.redis.zrange(line, '0', '-1');
      await desk.redis.del(holds);
      await desk.redis.zadd(holds, 0, 'a\x001-1');
      await desk.redis.del(lanes);
      await desk.redis.zrem(line, places[0] ?? '');
      await desk.redis.zadd(line, 0, `b\x001${NOW.toString(36).padStart(9, '0')}j:nobody`);
      desk.found = await desk.flaws();
    },
    call: (desk) => desk.mend(desk.found),
  },
  {
    title: 'repair of an entry that nobody holds',
    mends: ['unheld'],
    verb: 'repair',
    most: [0, 1],
    async reach(desk) {
      await desk.begin('0 1 0 1');
      await desk.line('{a}1', '{a}2');
      desk.given = await desk.read('lost');
      await desk.redis.xgroup('DELCONSUMER', desk.ref.keys.ready, 'workers', 'lost');
    },
    call: (desk) =>
      repair(desk.redis, desk.ref, [{ kind: 'stuck', name: desk.given[0]?.entry ?? '', detail: '' }], {
        nowMs: desk.nowMs,
      }),
  },
];

export const gateCuts: readonly GateCut[] = [
  ...[...settles, ...given, ...lined, ...opened, ...changed, ...setting],
  ...orderCuts,
  ...lendingCuts,
];

/** A settle of the first one, as its worker would repeat it. */
function settled(desk: Desk, verb: 'retry' | 'defer' | 'bury' | 'commit' | 'complete'): Promise<unknown> {
  const [claim, when] = [desk.claim('{a}1'), { windowMs: 600_000, nowMs: desk.nowMs }];
  const error = '{"m":"x"}';
  const calls = {
    retry: () => desk.jobs.retry(desk.ref, claim, { ...when, delayMs: 1000, error }),
    defer: () => desk.jobs.defer(desk.ref, claim, { ...when, delayMs: 1000, why: error }),
    bury: () => desk.jobs.bury(desk.ref, claim, { ...when, reason: 'because', error }),
    commit: () => desk.jobs.commit(desk.ref, claim, { ...when, effects: [] }),
    complete: () => desk.jobs.complete(desk.ref, [claim], when),
  };
  return calls[verb]();
}

function begun(desk: Desk, verb: 'start' | 'serve' | 'hand'): Promise<unknown> {
  const { jobs, ref, given } = desk;
  const when = desk.settings('w1');
  const calls = {
    start: () => jobs.start(ref, given, when),
    serve: () => jobs.serve(ref, { ended: [], given, take: 1 }, when),
    hand: () => jobs.hand(ref, { ended: [], given, take: 1, ...CLAIM }, when),
  };
  return calls[verb]();
}

/**
 * What no cut may leave, because nothing but a walk of the janitor would find it. What it may leave is a place in which nobody
 * waits, a hold without an entry, and an entry that its start drops, as its member is in scheduled still.
 */
async function lostBy(desk: Desk, mends: readonly GateFlaw['kind'][]): Promise<string[]> {
  const { ready, scheduled } = desk.ref.keys;
  const wrong: string[] = [];
  const known = new Set(desk.found.map(({ kind, name }) => `${kind} ${name}`));
  for (const { kind, name } of await desk.flaws()) {
    const [entry] = kind === 'unheld' ? await desk.redis.xrange(ready, name, name) : [];
    const isDropped = entry && (await desk.redis.zscore(scheduled, entry[1][1] ?? '')) !== null;
    const isHarmless = ['stale', 'loose', ...mends].includes(kind) || isDropped || known.has(`${kind} ${name}`);
    if (!isHarmless) wrong.push(`${kind} ${name}`);
  }
  return wrong;
}

/** What is wrong when a call is cut off before each of its writes; and before which writes it was. */
export async function cutGates(
  redis: Redis,
  ref: PartitionRef,
  { verb, most, mends = [], reach, call }: GateCut,
  { lua = luaOf, own = '' }: { readonly lua?: (verb: string) => string; readonly own?: string } = {},
): Promise<{ readonly wrong: readonly string[]; readonly sites: readonly string[] }> {
  const wrong: string[] = [];
  const sites: string[] = [];
  for (let allowed = 0; ; allowed += 1) {
    await redis.flushall();
    const desk = new Desk(redis, ref);
    desk.own = own;
    await reach(desk);
    const site = await cutOff(redis, { verb, lua: lua(verb), allowed, call: () => call(desk) });
    if (site !== undefined) sites.push(site);
    const where = site ?? 'not cut off';
    wrong.push(...(await lostBy(desk, mends)).map((sentence) => `${where}: ${sentence}`));
    // Whose claim is over is known by its worker no more, whatever it was answered.
    await call(desk);
    desk.claims.clear();
    wrong.push(...(await desk.finish(...most)).map((sentence) => `${where}: ${sentence}`));
    if (site === undefined) return { wrong, sites };
  }
}
