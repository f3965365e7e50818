/** Calls on a gated partition in strict order, each in states in which it writes something of that: see `gates-cuts.ts`. */
import type { GateCut } from './gates-cuts.ts';
import type { Desk } from './gates-desk.ts';

const ORDER = '0 1 0 1 s';
/** And dead letters hold their groups. */
const HELD = '0 1 0 1 sh';

/** {a}1 waits for a retry, and {a}2 waits for it. */
async function failed(desk: Desk): Promise<void> {
  await desk.begin(ORDER);
  await desk.line('{a}1', '{a}2', '{b}1');
  await desk.serve(1);
  await desk.settle('retry', '{a}1');
}

/** {a}1 is dead, and holds its group. */
async function died(desk: Desk): Promise<void> {
  await desk.begin(HELD);
  await desk.line('{a}1', '{a}2');
  await desk.serve(1);
  await desk.settle('bury', '{a}1');
  desk.letter = await desk.deadLetter();
}

/** {a}1 was read, not started, and cancelled by a client that does not know of order. */
async function cancelled(desk: Desk): Promise<void> {
  await desk.begin(ORDER);
  await desk.line('{a}1');
  desk.given = await desk.read();
  await desk.line('{a}2');
  await desk.cancel('{a}1');
  await desk.redis.hset(desk.ref.keys.order, 'a', 'j:{a}1');
}

const relayed = (desk: Desk) => {
  const pass = { term: desk.term, leaseMs: undefined, limit: 500, cap: 1000 };
  return desk.jobs.relay(desk.ref, { ended: [], take: 3, pass }, desk.settings('w1'));
};

const of = (title: string, verb: string, more: Pick<GateCut, 'reach' | 'call'> & Partial<GateCut>): GateCut => ({
  title: `${title}, in strict order`,
  verb,
  most: [0, 1],
  ...more,
});

const ends: readonly GateCut[] = [
  of('cancel of who has its group', 'cancel', { reach: failed, call: (desk) => desk.cancel('{a}1') }),
  of('schedule that replaces who has its group', 'schedule', {
    mends: ['unlined'],
    reach: failed,
    call: (desk) => desk.replace('{a}1', 500),
  }),
  ...(['retry', 'defer'] as const).map((verb) =>
    of(`${verb} of who was cancelled`, verb, {
      async reach(desk) {
        await desk.begin(ORDER);
        await desk.line('{a}1', '{a}2');
        await desk.serve(1);
        await desk.cancel('{a}1');
      },
      call: (desk) => {
        const when = { windowMs: 600_000, nowMs: desk.nowMs, delayMs: 10 };
        const error = '{"m":"x"}';
        return verb === 'retry'
          ? desk.jobs.retry(desk.ref, desk.claim('{a}1'), { ...when, error })
          : desk.jobs.defer(desk.ref, desk.claim('{a}1'), { ...when, why: error });
      },
    }),
  ),
  of('start of who was cancelled', 'start', {
    reach: cancelled,
    call: (desk) => desk.jobs.start(desk.ref, desk.given, desk.settings('w1')),
  }),
  of('release of who was cancelled', 'release', {
    reach: cancelled,
    call: (desk) => desk.jobs.release(desk.ref, desk.given, { consumer: 'w1', nowMs: desk.nowMs }),
  }),
];

const comings: readonly GateCut[] = [
  ...(['promote', 'relay'] as const).flatMap((verb) => {
    const call = (desk: Desk) => (verb === 'promote' ? desk.promote() : relayed(desk));
    return [
      of(`${verb} of who has its group, sooner than its lanes expect it`, verb, {
        mends: ['shut'],
        async reach(desk) {
          await failed(desk);
          await desk.serve(9);
          await desk.reschedule('{a}1', 0);
        },
        call,
      }),
      of(`${verb} of the short way`, verb, {
        async reach(desk) {
          await desk.begin(ORDER);
          await desk.put(['{a}1']);
        },
        call,
      }),
    ];
  }),
  of('schedule of jobs without a time', 'schedule', {
    reach: async (desk) => void (await desk.begin(ORDER)),
    call: (desk) => desk.putNow(['{a}1', '{a}2', '{b}1']),
  }),
];

const dead: readonly GateCut[] = [
  of('bury of who holds its group', 'bury', {
    async reach(desk) {
      await desk.begin(HELD);
      await desk.line('{a}1', '{a}2');
      await desk.serve(1);
    },
    call: (desk) =>
      desk.jobs.bury(desk.ref, desk.claim('{a}1'), {
        windowMs: 600_000,
        nowMs: desk.nowMs,
        reason: 'because',
        error: '{"m":"x"}',
      }),
  }),
  of('commit of half', 'commit', {
    async reach(desk) {
      await desk.begin(HELD);
      await desk.line('{a}1', '{a}2');
      await desk.serve(1);
    },
    call(desk) {
      const key = `${desk.ref.keys.meta.slice(0, -5)}:own`;
      const effects = [
        { command: 'SET', key, args: ['1'] },
        { command: 'HSET', key, args: ['field', '1'] },
      ];
      return desk.jobs.commit(desk.ref, desk.claim('{a}1'), { windowMs: 600_000, nowMs: desk.nowMs, effects });
    },
  }),
  of('expire as a dead letter', 'expire', {
    async reach(desk) {
      await desk.begin(HELD);
      await desk.put(['{a}1'], { header: `;e=${(desk.nowMs + 5).toString(36)};p=x` });
      await desk.promote();
      desk.given = await desk.read();
      await desk.line('{a}2');
      desk.nowMs += 10;
    },
    call: (desk) => desk.jobs.expire(desk.ref, desk.given, desk.settings('w1')),
  }),
  of('close that opens a group that a dead letter holds', 'close', { reach: died, call: (desk) => desk.open('a') }),
  of('replay of who holds its group', 'replay', { reach: died, call: (desk) => desk.replay(desk.letter) }),
  of('mend-gates of groups that nobody has', 'mend-gates', {
    async reach(desk) {
      await died(desk);
      await desk.redis.xdel(desk.ref.keys.dead, desk.letter);
      await desk.redis.hset(desk.ref.keys.order, ' a', '1');
      desk.found = await desk.flaws(200, ['order']);
    },
    call: (desk) => desk.mend(desk.found),
  }),
  of('mend-gates of a job that an older process has replayed', 'mend-gates', {
    async reach(desk) {
      await died(desk);
      const held = (await desk.redis.hget(desk.ref.keys.order, 'a')) ?? '';
      await desk.replay(desk.letter);
      await desk.redis.hset(desk.ref.keys.order, 'a', held);
      desk.found = await desk.flaws(200, ['order']);
    },
    call: (desk) => desk.mend(desk.found),
  }),
];

const marks: readonly GateCut[] = [
  of('limit that begins it', 'limit', {
    async reach(desk) {
      await desk.begin('0 1 0 1');
      await desk.line('{a}1', '{a}2', '{b}1');
      await desk.serve(1);
    },
    call: (desk) => desk.limit(ORDER, { slice: 1 }),
  }),
  of('limit that ends it', 'limit', {
    reach: failed,
    call: (desk) => desk.limit('0 1 0 1', { slice: 1 }),
  }),
  of('resume', 'resume', {
    async reach(desk) {
      await desk.begin(ORDER);
      await desk.pauseWell();
      await desk.line('{a}1', '{a}2');
    },
    call: (desk) => desk.resumeWell(),
  }),
];

export const orderCuts: readonly GateCut[] = [...ends, ...comings, ...dead, ...marks];
