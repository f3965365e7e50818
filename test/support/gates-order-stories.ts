/**
 * Strict order in a gated partition: who was let through has its group until it is over, whatever becomes of it. Told with the other
 * stories, see `gates-stories.ts`.
 */
import { expect } from 'vitest';
import { encodeRecord } from '../../src/job/codec.ts';
import { lapsed } from '../../src/redis/read/inspect.ts';
import { elect } from '../../src/redis/scripts/lease.ts';
import type { Delivery } from '../../src/redis/scripts/replies.ts';
import { type Desk, NOW, type Story, WINDOW_MS } from './gates-desk.ts';

const STRICT = '0 1 0 1 s';
/** And dead letters hold their groups. */
const HOLD = '0 1 0 1 sh';
const MARK = '!0.3.0';
/** A group of its own makes limits that are walked group by group. */
const OTHER = '0 1 0 1 0 1 - other';

/** {a}1 has failed and waits for a second; {a}2 and whatever is named besides are in line. */
async function failed(desk: Desk, limits = STRICT, ...more: readonly string[]): Promise<void> {
  await desk.begin(limits);
  await desk.line('{a}1', '{a}2', ...more);
  expect((await desk.serve(1))[0]).toBe('{a}1');
  await desk.settle('retry', '{a}1');
}

/** {a}1 is dead, and {a}2 is in line. */
async function died(desk: Desk, limits = HOLD): Promise<string> {
  await desk.begin(limits);
  await desk.line('{a}1', '{a}2');
  expect(await desk.serve(1)).toEqual(['{a}1']);
  await desk.settle('bury', '{a}1');
  return desk.deadLetter();
}

/** What starts when some time has passed. */
async function startedIn(desk: Desk, ms: number): Promise<string[]> {
  desk.nowMs += ms;
  await desk.promote();
  return desk.serve(9);
}

/** Each is over before the next. */
async function oneByOne(desk: Desk): Promise<string[]> {
  const order: string[] = [];
  for (let turn = 0; turn < 9; turn += 1) order.push(...(await desk.serve(1, { over: [...desk.claims.keys()] })));
  return order;
}
const isOfA = (id: string): boolean => id.startsWith('{a}');

const retries: readonly Story[] = [
  {
    title: 'who fails has its group over its retry, and other groups go on',
    async tell(desk) {
      await desk.begin(STRICT);
      await desk.line('{a}1', '{a}2', '{b}1', 'x');
      expect(await desk.serve(9)).toEqual(['{a}1', '{b}1', 'x']);
      expect(await desk.keepers()).toEqual({ a: '{a}1', b: '{b}1' });
      await desk.settle('retry', '{a}1');
      expect(await desk.serve(9, { over: ['{b}1', 'x'] })).toEqual([]);
      expect(await desk.keepers()).toEqual({ a: '{a}1' });
      expect((await desk.promote()).nextMs).toBe(1000);
      expect(await startedIn(desk, 999)).toEqual([]);
      expect(await startedIn(desk, 1)).toEqual(['{a}1']);
      expect(await desk.serve(9, { over: ['{a}1'] })).toEqual(['{a}2']);
      expect(await desk.serve(9, { over: ['{a}2'] })).toEqual([]);
      expect(await desk.keepers()).toEqual({});
      expect(await desk.flaws(200, ['order'])).toEqual([]);
    },
  },
  {
    title: 'who puts itself aside has its group all the same',
    async tell(desk) {
      await desk.begin(STRICT);
      await desk.line('{a}1', '{a}2');
      expect(await desk.serve(9)).toEqual(['{a}1']);
      await desk.settle('defer', '{a}1');
      expect(await desk.serve(9)).toEqual([]);
      expect(await startedIn(desk, 1000)).toEqual(['{a}1']);
    },
  },
  {
    title: 'who comes back at once has the room that it leaves, also after another worker has taken its entry over',
    async tell(desk) {
      for (const how of ['retry', 'defer'] as const) {
        for (const isTaken of [false, true]) {
          await desk.redis.flushall();
          await desk.begin(STRICT);
          await desk.line('{a}1', '{a}2');
          expect(await desk.serve(9)).toEqual(['{a}1']);
          if (isTaken) await desk.takeOver();
          await desk.settle(how, '{a}1', { delayMs: 0 });
          expect(await desk.ready()).toEqual(['{a}1']);
          expect(await desk.serve(9)).toEqual(['{a}1']);
          expect(await desk.serve(9, { over: ['{a}1'] })).toEqual(['{a}2']);
          desk.claims.clear();
        }
      }
    },
  },
  {
    title: 'where nobody of the group is in line, nobody goes past it either, and who has the group does',
    async tell(desk) {
      await desk.begin(STRICT);
      await desk.line('{a}1');
      expect(await desk.serve(9)).toEqual(['{a}1']);
      await desk.settle('retry', '{a}1');
      expect([await desk.lanes(), await desk.serve(9)]).toEqual([[], []]);
      await desk.put(['{b}1']);
      expect(await desk.promote()).toMatchObject({ gated: { through: 1, waiting: 0 } });
      expect(await desk.serve(9)).toEqual(['{b}1']);
      expect(await desk.keepers()).toEqual({ a: '{a}1', b: '{b}1' });
      await desk.put(['{a}2']);
      expect(await desk.promote()).toMatchObject({ gated: { through: 0, waiting: 1 } });
      await desk.cancel('{a}2');
      desk.nowMs += 1000;
      expect(await desk.promote()).toMatchObject({ gated: { through: 1, waiting: 0 } });
      expect(await desk.serve(9, { over: ['{b}1'] })).toEqual(['{a}1']);
    },
  },
  {
    title: 'who has the group and is put forward starts at once',
    async tell(desk) {
      await failed(desk);
      expect(await desk.serve(9)).toEqual([]);
      await desk.reschedule('{a}1', 0);
      expect(await startedIn(desk, 0)).toEqual(['{a}1']);
    },
  },
  {
    title: 'who has the group and is put off holds it until then',
    async tell(desk) {
      await failed(desk);
      await desk.reschedule('{a}1', 86_400_000);
      expect(await startedIn(desk, 86_399_999)).toEqual([]);
      expect(await startedIn(desk, 1)).toEqual(['{a}1']);
    },
  },
  {
    title: 'a line that is full of jobs of a group takes in nobody, and who has the group starts all the same',
    async tell(desk) {
      await desk.begin(STRICT);
      await desk.line('{a}0');
      expect(await desk.serve(9)).toEqual(['{a}0']);
      await desk.settle('retry', '{a}0');
      await desk.put(Array.from({ length: 5 }, (_, nth) => `{a}b${nth}`));
      await desk.promote({ lineMax: 5 });
      expect(await desk.serve(9)).toEqual([]);
      desk.nowMs += 999;
      await desk.promote({ lineMax: 5 });
      expect(await desk.serve(9)).toEqual([]);
      desk.nowMs += 1;
      await desk.promote({ lineMax: 5 });
      expect(await desk.serve(9)).toEqual(['{a}0']);
      expect(await desk.serve(9, { over: ['{a}0'] })).toEqual(['{a}b0']);
    },
  },
  {
    title: 'who has its group and was put again with an odd due time waits for the leader, who judges it',
    async tell(desk) {
      await desk.begin(STRICT);
      await desk.redis.zadd(desk.ref.keys.scheduled, desk.nowMs, '{a}bare');
      await desk.promote();
      expect(await desk.serve(9)).toEqual(['{a}bare']);
      await desk.line('{a}2');
      await desk.settle('retry', '{a}bare');
      await desk.redis.zadd(desk.ref.keys.scheduled, 5, '{a}bare');
      desk.nowMs += 1000;
      expect([await desk.serve(9), await desk.meta('n.dead')]).toEqual([[], null]);
      expect([await startedIn(desk, 0), await desk.meta('n.dead')]).toEqual([[], '1']);
      expect(await startedIn(desk, 1000)).toEqual(['{a}2']);
    },
  },
  {
    title: 'the rate of a group counts for who has it, and a closing does',
    async tell(desk) {
      await desk.begin('0 1 0 1 2000000 1 - rated s');
      await desk.line('{a}1', '{a}2');
      expect(await desk.serve(9)).toEqual(['{a}1']);
      await desk.settle('retry', '{a}1');
      expect(await startedIn(desk, 1000)).toEqual([]);
      expect((await desk.promote()).nextMs).toBe(950);
      expect(await startedIn(desk, 950)).toEqual(['{a}1']);
      await desk.settle('retry', '{a}1');
      await desk.close('a', 5000);
      expect(await startedIn(desk, 4999)).toEqual([]);
      expect(await startedIn(desk, 1)).toEqual(['{a}1']);
    },
  },
  {
    title: 'in strict order a job of a group has no priority, and one without a group has',
    async tell(desk) {
      await desk.begin(STRICT);
      await desk.line('{a}1', '{a}2', 'high {a}3', 'x', 'high y');
      const placed = (await desk.places()).map((place) => place.split(' '));
      expect(placed.map(([, priority, , id]) => `${priority}${id}`)).toEqual(['1x', '1{a}1', '1{a}2', '1{a}3']);
      expect(await desk.ready()).toEqual(['y']);
      expect((await oneByOne(desk)).filter(isOfA)).toEqual(['{a}1', '{a}2', '{a}3']);
    },
  },
];

/** A completion has a story of its own. */
const ENDS_BUT_ONE = [
  ['bury', false],
  ['bury', true],
  ['commit', false],
  ['commit', true],
  ['retry', true],
  ['defer', true],
] as const;

const ends: readonly Story[] = [
  {
    title: 'who has the group and is cancelled while it waits lets the next one start at once, and nobody else does',
    async tell(desk) {
      await failed(desk, STRICT, '{a}3');
      await desk.cancel('{a}3');
      expect([await desk.keepers(), await desk.serve(9)]).toEqual([{ a: '{a}1' }, []]);
      await desk.cancel('{a}1');
      expect(await desk.meta('wake')).toBe(String(desk.nowMs));
      expect([await desk.keepers(), await desk.serve(9)]).toEqual([{}, ['{a}2']]);
    },
  },
  {
    title: 'who is cancelled in ready has its group until its entry is dropped',
    async tell(desk) {
      await desk.begin(STRICT);
      await desk.line('{a}1', '{a}2');
      expect(await desk.ready()).toEqual(['{a}1']);
      await desk.cancel('{a}1');
      expect(await desk.serve(9)).toEqual([]);
      expect([await desk.keepers(), await desk.serve(9)]).toEqual([{}, ['{a}2']]);
    },
  },
  {
    title: 'who runs and is cancelled has no retry, and its group goes on',
    async tell(desk) {
      for (const how of ['retry', 'defer'] as const) {
        await desk.redis.flushall();
        await desk.begin(STRICT);
        await desk.line('{a}1', '{a}2');
        expect(await desk.serve(1)).toEqual(['{a}1']);
        await desk.cancel('{a}1');
        await desk.settle(how, '{a}1');
        expect([await desk.keepers(), await desk.ready()]).toEqual([{ a: '{a}2' }, ['{a}2']]);
        desk.claims.clear();
      }
    },
  },
  {
    title: 'who is replaced gives its group up, in scheduled and in ready',
    async tell(desk) {
      await failed(desk);
      await desk.replace('{a}1', 60_000);
      expect(await desk.serve(9)).toEqual(['{a}2']);
      await desk.line('{b}1', '{b}2');
      expect(await desk.ready()).toContain('{b}1');
      await desk.replace('{b}1', 60_000);
      expect(await desk.serve(9)).toEqual([]);
      expect(await desk.serve(9)).toEqual(['{b}2']);
    },
  },
  {
    title: 'a run with newer data is over, and its next life is another job',
    async tell(desk) {
      await desk.begin(STRICT);
      await desk.debounce('{a}1', { waitMs: 0 });
      await desk.promote();
      expect(await desk.serve(9)).toEqual(['{a}1']);
      await desk.line('{a}2');
      desk.nowMs += 1;
      await desk.debounce('{a}1', { waitMs: 500 });
      expect(await desk.serve(9, { over: ['{a}1'] })).toEqual(['{a}2']);
      expect(await desk.keepers()).toEqual({ a: '{a}2' });
    },
  },
  {
    title: 'a run with newer data is over however it ends, and leaves no dead letter that holds its group',
    async tell(desk) {
      for (const [how, isCancelled] of ENDS_BUT_ONE) {
        await desk.redis.flushall();
        await desk.begin(HOLD);
        await desk.debounce('{a}1', { waitMs: 0 });
        await desk.promote();
        expect(await desk.serve(9)).toEqual(['{a}1']);
        await desk.line('{a}2');
        if (isCancelled) await desk.cancel('{a}1');
        desk.nowMs += 1;
        await desk.debounce('{a}1', { waitMs: 500 });
        await desk.settle(how, '{a}1');
        expect(await desk.redis.zscore(desk.ref.keys.scheduled, 'j:{a}1')).toBe(String(desk.nowMs + 500));
        expect([await desk.keepers(), await desk.serve(9)]).toEqual([{ a: '{a}2' }, ['{a}2']]);
        desk.claims.clear();
      }
    },
  },
  {
    title: 'who was let through and is handed back comes first, also before who was due before it',
    async tell(desk) {
      await desk.begin(STRICT);
      await desk.line('{a}2');
      const given = await desk.read();
      expect(given.map(({ member }) => member)).toEqual(['j:{a}2']);
      await desk.put(['{a}1'], { inMs: -100 });
      await desk.promote();
      await desk.jobs.release(desk.ref, given, { consumer: 'w1', nowMs: desk.nowMs });
      expect(await desk.keepers()).toEqual({ a: '{a}2' });
      expect(await startedIn(desk, 0)).toEqual(['{a}2']);
    },
  },
  {
    title: 'who was let through before a pause comes first after it',
    async tell(desk) {
      await desk.begin(STRICT);
      await desk.line('{a}2', '{a}3');
      const given = await desk.read();
      await desk.put(['{a}1'], { inMs: -100 });
      await desk.promote();
      await desk.pauseWell();
      expect(await desk.serve(9, { given })).toEqual([]);
      expect(desk.last.taken.map(({ kind }) => kind)).toEqual(['released']);
      expect(await desk.keepers()).toEqual({ a: '{a}2' });
      await desk.resumeWell();
      expect(await startedIn(desk, 0)).toEqual(['{a}2']);
    },
  },
  {
    title: 'who has a group counts as long as it lives: without its record it does not, and the leader takes it away',
    async tell(desk) {
      await failed(desk);
      await desk.redis.hdel(desk.ref.keys.jobs, 'j:{a}1');
      await desk.redis.zrem(desk.ref.keys.scheduled, 'j:{a}1');
      const flaws = await desk.flaws(200, ['order']);
      expect(flaws).toEqual([{ kind: 'vacant', name: 'a' }]);
      expect([await desk.mend(flaws), await desk.mend(flaws)]).toEqual([['repaired'], ['sound']]);
      expect([await desk.keepers(), await desk.serve(9)]).toEqual([{}, ['{a}2']]);
    },
  },
  {
    title: 'who is nowhere is looked for each second',
    async tell(desk) {
      await failed(desk);
      await desk.redis.zrem(desk.ref.keys.scheduled, 'j:{a}1');
      expect(await startedIn(desk, 1000)).toEqual([]);
      expect((await desk.promote()).nextMs).toBe(1000);
      await desk.redis.zadd(desk.ref.keys.scheduled, desk.nowMs + 1000, 'j:{a}1');
      expect(await startedIn(desk, 1000)).toEqual(['{a}1']);
    },
  },
];

const dead: readonly Story[] = [
  {
    title: 'who died while dead letters held nobody holds nobody later either',
    async tell(desk) {
      await desk.begin(STRICT);
      await desk.line('{a}1');
      expect(await desk.serve(1)).toEqual(['{a}1']);
      await desk.settle('bury', '{a}1');
      await desk.limit(HOLD);
      await desk.line('{a}2');
      expect(await desk.serve(9)).toEqual(['{a}2']);
    },
  },
  {
    title: 'a group goes on after a dead letter, and who is replayed is a new job',
    async tell(desk) {
      const letter = await died(desk, STRICT);
      expect(await desk.keepers()).toEqual({ a: '{a}2' });
      expect(await desk.serve(9)).toEqual(['{a}2']);
      expect(await desk.replay(letter)).toMatchObject({ kind: 'ok', place: 'last' });
      expect(await startedIn(desk, 0)).toEqual([]);
      expect(await desk.serve(9, { over: ['{a}2'] })).toEqual(['{a}1']);
    },
  },
  {
    title: 'a dead letter that holds its group holds it until somebody opens the group',
    async tell(desk) {
      await died(desk);
      expect(await desk.keepers()).toEqual({ a: '!' });
      expect(await startedIn(desk, 60_000)).toEqual([]);
      expect((await desk.promote()).nextMs).toBe(60_000);
      expect(await startedIn(desk, 60_000)).toEqual([]);
      expect(await desk.open('b')).toBe('same');
      expect([await desk.open('a'), await desk.open('a')]).toEqual(['ok', 'same']);
      expect([await desk.keepers(), await desk.serve(9)]).toEqual([{}, ['{a}2']]);
      expect(await desk.open('a')).toBe('same');
      expect(await desk.keepers()).toEqual({ a: '{a}2' });
    },
  },
  {
    title: 'who is replayed has the group that its dead letter held, and comes first',
    async tell(desk) {
      const letter = await died(desk);
      expect(await desk.replay(letter)).toMatchObject({ kind: 'ok', place: 'first' });
      expect(await desk.keepers()).toEqual({ a: '{a}1' });
      expect(await startedIn(desk, 0)).toEqual(['{a}1']);
      expect(await desk.serve(9, { over: ['{a}1'] })).toEqual(['{a}2']);
    },
  },
  {
    title: 'a job without a group is replayed into no place',
    async tell(desk) {
      await desk.begin(HOLD);
      await desk.line('x');
      expect(await desk.serve(1)).toEqual(['x']);
      await desk.settle('bury', 'x');
      const reply = await desk.replay(await desk.deadLetter());
      expect(reply).toMatchObject({ kind: 'ok' });
      expect(reply).not.toHaveProperty('place');
      expect(await desk.keepers()).toEqual({});
    },
  },
  {
    title: 'a dead letter that is removed holds nobody, and the leader sees it',
    async tell(desk) {
      const letter = await died(desk);
      expect(await desk.flaws(200, ['order'])).toEqual([]);
      await desk.redis.xdel(desk.ref.keys.dead, letter);
      expect(await desk.serve(9)).toEqual([]);
      const flaws = await desk.flaws(1, ['order']);
      expect(flaws).toEqual([{ kind: 'vacant', name: 'a' }]);
      expect(await desk.mend(flaws)).toEqual(['repaired']);
      expect([await desk.keepers(), await desk.serve(9)]).toEqual([{}, ['{a}2']]);
    },
  },
  {
    title: 'a job that an older process has replayed has the group that its dead letter held',
    async tell(desk) {
      const letter = await died(desk);
      const [held] = await desk.redis.hvals(desk.ref.keys.order);
      await desk.replay(letter);
      await desk.redis.hset(desk.ref.keys.order, 'a', held ?? '');
      await desk.mend(await desk.flaws(200, ['order']));
      expect(await desk.keepers()).toEqual({ a: '{a}1' });
      expect(await startedIn(desk, 0)).toEqual(['{a}1']);
    },
  },
  {
    title: 'a dead letter that held its group holds nobody once the limits say so',
    async tell(desk) {
      await died(desk);
      await desk.limit(STRICT);
      expect(await desk.flaws(200, ['order'])).toEqual([{ kind: 'vacant', name: 'a' }]);
      expect(await desk.serve(9)).toEqual(['{a}2']);
      expect(await desk.keepers()).toEqual({ a: '{a}2' });
    },
  },
  {
    title: 'who expires as a dead letter holds its group if it was let through, and not if it waited in line',
    async tell(desk) {
      await desk.begin(HOLD);
      await desk.put(['{a}1', '{b}1'], { header: `;e=${(NOW + 5).toString(36)};p=x` });
      await desk.promote();
      const given = await desk.read();
      expect(given).toHaveLength(1);
      desk.nowMs += 10;
      const group = groupIn(given);
      const { jobs } = await lapsed(desk.redis, desk.ref, { nowMs: desk.nowMs });
      expect(await desk.jobs.expire(desk.ref, jobs, desk.settings(''))).toEqual(['dead']);
      expect(Object.keys(await desk.keepers())).toContain(group);
      expect(Object.values(await desk.keepers())).not.toContain('!');
      expect(await desk.jobs.expire(desk.ref, given, desk.settings('w1'))).toEqual(['dead']);
      expect(await desk.keepers()).toMatchObject({ [group]: '!' });
      await desk.line('{a}2', '{b}2');
      expect(await startedIn(desk, 0)).toEqual([group === 'a' ? '{b}2' : '{a}2']);
    },
  },
  {
    title: 'half a commit holds its group as a dead letter',
    async tell(desk) {
      await desk.begin(HOLD);
      await desk.line('{a}1', '{a}2');
      expect(await desk.serve(1)).toEqual(['{a}1']);
      const key = `${desk.ref.keys.meta.slice(0, -5)}:own`;
      const effects = [
        { command: 'SET', key, args: ['1'] },
        { command: 'HSET', key, args: ['field', '1'] },
      ];
      const claim = desk.claim('{a}1');
      const when = { windowMs: WINDOW_MS, nowMs: desk.nowMs, effects };
      expect(await desk.jobs.commit(desk.ref, claim, when)).toMatch(/^half 2/);
      expect([await desk.keepers(), await desk.serve(9)]).toEqual([{ a: '!' }, []]);
    },
  },
  {
    title: 'who ran before order began is no keeper, and its dead letter holds nobody',
    async tell(desk) {
      await desk.begin('0 1 0 2');
      await desk.line('{a}1', '{a}2', '{a}3');
      expect(await desk.serve(9)).toEqual(['{a}1', '{a}2']);
      await desk.limit(HOLD);
      expect(await desk.keepers()).toEqual({});
      await desk.settle('bury', '{a}1');
      expect([await desk.keepers(), await desk.serve(9)]).toEqual([{}, []]);
      await desk.settle('retry', '{a}2');
      expect([await desk.serve(9), await desk.keepers()]).toEqual([['{a}3'], { a: '{a}3' }]);
    },
  },
];

const groupIn = (given: readonly Delivery[]): string => /\{(.+)\}/.exec(given[0]?.member ?? '')?.[1] ?? '';

const times: readonly Story[] = [
  {
    title: 'jobs of a group without a time come in the order of their calls, whatever the clock does',
    async tell(desk) {
      await desk.begin(STRICT);
      expect(await desk.putNow(['{a}1', '{a}10', 'x', '{a}2', '{b}1'])).toEqual([0, 1, undefined, 2, 0]);
      desk.nowMs -= 5000;
      expect(await desk.putNow(['{a}0'])).toEqual([5003]);
      desk.nowMs += 5001;
      expect(await desk.putNow(['{a}3'])).toEqual([3]);
      desk.nowMs += 10;
      await desk.promote();
      expect((await oneByOne(desk)).filter(isOfA)).toEqual(['{a}1', '{a}10', '{a}2', '{a}0', '{a}3']);
    },
  },
  {
    title: 'a time that somebody says stays, and one that is given in another queue is none',
    async tell(desk) {
      await desk.begin(STRICT);
      await desk.put(['{a}1'], { inMs: -50 });
      expect(await desk.redis.zscore(desk.ref.keys.scheduled, 'j:{a}1')).toBe(String(desk.nowMs - 50));
      expect(await desk.redis.exists(desk.ref.keys.order)).toBe(0);
      await desk.limit('0 1 0 1');
      expect(await desk.putNow(['{a}2'])).toEqual([undefined]);
      expect(await desk.redis.zscore(desk.ref.keys.scheduled, 'j:{a}2')).toBe('0');
    },
  },
  {
    title: 'a time that was given goes ten minutes later, and not before',
    async tell(desk) {
      await desk.begin(STRICT);
      await desk.putNow(['{a}1']);
      desk.nowMs += 600_000;
      const { order } = desk.ref.keys;
      await desk.redis.hset(order, ' b', '5');
      const flaws = await desk.flaws(200, ['order']);
      // The look reads the clock of the server.
      expect(flaws).toContainEqual({ kind: 'spent', name: ' b' });
      expect(await desk.mend([{ kind: 'spent', name: ' a' }])).toEqual(['sound']);
      desk.nowMs += 1;
      expect(
        await desk.mend([
          { kind: 'spent', name: ' a' },
          { kind: 'spent', name: ' b' },
        ]),
      ).toEqual(['repaired', 'repaired']);
      expect(await desk.mend([{ kind: 'spent', name: ' a' }])).toEqual(['sound']);
      expect(await desk.redis.exists(order)).toBe(0);
    },
  },
  {
    title: 'who takes the place of another without a time comes last',
    async tell(desk) {
      await desk.begin(STRICT);
      await desk.putNow(['{a}1', '{a}2']);
      const record = encodeRecord(desk.nowMs, '{"d":"new"}', {});
      const settings = { mode: 'replace', horizonMs: 1e12, bytesMax: 10_000, nowMs: desk.nowMs } as const;
      const replies = await desk.jobs.schedule(desk.ref, [{ member: 'j:{a}1', record, dueMs: 0 }], settings);
      expect(replies).toEqual([{ kind: 'replaced', dueMs: desk.nowMs + 2 }]);
    },
  },
];

const marks: readonly Story[] = [
  {
    title: 'strict order begins with a mark that older processes take for a pause, and ends with it',
    async tell(desk) {
      await desk.begin('0 1 0 1');
      expect(await desk.limit(STRICT)).toBe('ok');
      expect(await desk.limit(STRICT)).toBe('same');
      expect(await desk.meta('paused')).toBe(MARK);
      await desk.line('{a}1');
      expect(await desk.serve(9)).toEqual(['{a}1']);
      expect(await desk.limit('0 1 0 1')).toBe('ok');
      expect([await desk.meta('paused'), await desk.keepers()]).toEqual([null, {}]);
      expect(await desk.limit('0 1 0 1')).toBe('same');
    },
  },
  {
    title: 'a pause and its end leave the mark, and the mark leaves a pause',
    async tell(desk) {
      await desk.begin(STRICT);
      expect(await desk.resumeWell()).toMatchObject({ kind: 'already', pause: undefined });
      expect(await desk.pauseWell()).toMatchObject({ kind: 'ok', pause: { reason: 'x' } });
      expect(await desk.pauseWell()).toMatchObject({ kind: 'already', pause: { reason: 'x' } });
      expect(await desk.meta('paused')).toBe(`${MARK} ${desk.nowMs} x`);
      await desk.line('{a}1');
      expect((await desk.promote()).kind).toBe('paused');
      await desk.limit('0 1 0 1');
      expect(await desk.meta('paused')).toBe(`${desk.nowMs} x`);
      await desk.limit(HOLD);
      expect(await desk.meta('paused')).toBe(`${MARK} ${desk.nowMs} x`);
      expect(await desk.resumeWell()).toMatchObject({ kind: 'ok', pause: { reason: 'x' } });
      expect(await desk.meta('paused')).toBe(MARK);
      expect(await startedIn(desk, 0)).toEqual(['{a}1']);
    },
  },
  {
    title: 'nobody is let through while an older process has written the order away, by any script',
    async tell(desk) {
      await desk.begin(STRICT);
      await desk.line('{a}1', '{a}2', '{b}1', '{b}2', 'x');
      const given = await desk.read();
      expect(given).toHaveLength(1);
      await desk.redis.hset(desk.ref.keys.meta, 'gates', '0 1 0 1');
      expect((await desk.promote()).kind).toBe('paused');
      expect(await desk.serve(9, { given })).toEqual([]);
      expect(await desk.relay(9)).toEqual([]);
      expect(await desk.ready()).toEqual([]);
      expect(await desk.limit(STRICT)).toBe('ok');
      expect((await startedIn(desk, 0)).length).toBe(3);
      await desk.redis.hset(desk.ref.keys.meta, 'gates', '0 1 0 1');
      const [first = ''] = [...desk.claims.keys()];
      await desk.settle('complete', first);
      expect(await desk.unread()).toBe(0);
    },
  },
  {
    title: 'a mark that an older process has taken away comes back with the limits',
    async tell(desk) {
      await desk.begin(STRICT);
      await desk.redis.hdel(desk.ref.keys.meta, 'paused');
      expect(await desk.limit(STRICT)).toBe('ok');
      expect(await desk.meta('paused')).toBe(MARK);
    },
  },
  {
    title: 'a lane from before the order opens when its group is free',
    async tell(desk) {
      await desk.begin('0 1 0 1');
      await desk.line('{a}1', 'low {a}2', '{a}3');
      expect(await desk.serve(1)).toEqual(['{a}1']);
      await desk.limit(STRICT);
      expect(await desk.serve(1, { over: ['{a}1'] })).toEqual(['{a}2']);
      expect([await desk.serve(1), await desk.lanes()]).toEqual([[], []]);
      expect(await desk.serve(1, { over: ['{a}2'] })).toEqual(['{a}3']);
    },
  },
  {
    title: 'a mark is no pause for a lone worker, for what is over and for what was given before',
    async tell(desk) {
      await desk.begin(STRICT);
      await desk.put(['{a}1', '{a}2']);
      expect(await desk.relay(1)).toEqual(['{a}1']);
      await desk.settle('complete', '{a}1');
      expect(await desk.ready()).toEqual(['{a}2']);
      expect(await desk.serve(1)).toEqual(['{a}2']);
      await desk.line('{b}1');
      const given = await desk.read();
      const taken = await desk.jobs.start(desk.ref, given, desk.settings('w1'));
      expect(taken.map(({ kind }) => kind)).toEqual(['run']);
    },
  },
  {
    title: 'order holds while limits are walked group by group, and other groups go on',
    async tell(desk) {
      await failed(desk, STRICT, '{b}1', '{b}2');
      expect(await desk.serve(9)).toEqual(['{b}1']);
      expect(await desk.limitOnce(`${OTHER} s`, 1)).toBe('more');
      await desk.line('{c}1');
      expect(await desk.serve(9)).toEqual(['{c}1']);
      expect(await desk.limit(`${OTHER} s`)).toBe('ok');
      expect([await desk.keepers(), await desk.serve(9)]).toEqual([{ a: '{a}1', b: '{b}1', c: '{c}1' }, []]);
      expect(await startedIn(desk, 1000)).toEqual(['{a}1']);
    },
  },
  {
    title: 'a process takes the lead over from an older one where the partition has a mark, and nowhere else',
    async tell(desk) {
      await desk.begin('0 1 0 1');
      const of = { processId: 'p2', leaseMs: 1000, nowMs: desk.nowMs };
      expect(await elect(desk.redis, desk.ref, { ...of, over: desk.term })).toMatchObject({ kind: 'held' });
      await desk.limit(STRICT);
      expect(await elect(desk.redis, desk.ref, { ...of, over: 'p0:1:1' })).toMatchObject({ kind: 'held' });
      expect(await elect(desk.redis, desk.ref, { ...of, over: desk.term })).toMatchObject({ kind: 'elected' });
    },
  },
  {
    title: 'a partition that is removed leaves nobody who has a group',
    async tell(desk) {
      await failed(desk);
      expect(await desk.redis.exists(desk.ref.keys.order)).toBe(1);
      await desk.remove();
      expect(await desk.redis.exists(desk.ref.keys.order)).toBe(0);
    },
  },
];

export const orderStories: readonly Story[] = [...retries, ...ends, ...dead, ...times, ...marks];
