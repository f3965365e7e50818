/**
 * What a gated partition does, to the job and to the microsecond: each story is told to the scripts as they are by
 * `test/redis/gates.test.ts`, and to scripts that are broken on purpose by `test/proof/gates-mutants.test.ts`.
 */
import { expect } from 'vitest';
import { digestOf } from '../../src/job/record-header.ts';
import { lapsed } from '../../src/redis/read/inspect.ts';
import { repair } from '../../src/redis/repair/repair.ts';
import { seenText } from '../../src/redis/scripts/edits.ts';
import type { Delivery } from '../../src/redis/scripts/replies.ts';
import { costStories } from './gates-costs-stories.ts';
import { type Desk, NOW, type Story, WAITS, WINDOW_MS } from './gates-desk.ts';
import { orderStories } from './gates-order-stories.ts';
import { ownStories } from './gates-own-stories.ts';
import { rateStories } from './gates-rates-stories.ts';
import { cutOff, luaOf } from './model-cut.ts';

const ids = (prefix: string, count: number): string[] =>
  Array.from({ length: count }, (_, nth) => `${prefix}${String(nth).padStart(4, '0')}`);
/** 10 per second. */
const TEN = '100000 1 0 0';
/** One of each group at a time. */
const LOCKS = '0 1 0 1';

/** It is let through at this very moment by the clock of the desk, and its turn ends so much later: its entry has the time of that clock. */
async function letThroughNow(desk: Desk, id: string, aheadUs: number): Promise<void> {
  const { ready, scheduled, meta } = desk.ref.keys;
  await desk.put([id], { inMs: 0 });
  await desk.redis.xgroup('CREATE', ready, 'workers', '0', 'MKSTREAM');
  await desk.redis.xadd(ready, `${desk.nowMs}-1`, 'member', `j:${id}`, 'due', String(desk.nowMs));
  await desk.redis.zrem(scheduled, `j:${id}`);
  await desk.redis.hset(meta, 'gate', `${(desk.nowMs * 1000 + aheadUs).toFixed(2)} 0 0 0 0 0`);
}

const rates: readonly Story[] = [
  {
    title: 'a rate gives a turn when its time has come, 50 ms early at the most',
    async tell(desk) {
      await desk.begin(TEN);
      await desk.put(['a', 'b', 'c', 'd']);
      const pass = await desk.promote();
      expect(pass).toMatchObject({ count: 4, nextMs: 50, gated: { through: 1, waiting: 3 } });
      expect(await desk.serve(5)).toEqual(['a']);
      expect(desk.last.waiting).toBe(3);
      desk.nowMs += 49;
      expect(await desk.serve(5)).toEqual([]);
      expect((await desk.promote()).nextMs).toBe(1);
      desk.nowMs += 1;
      expect(await desk.serve(5)).toEqual(['b']);
      expect(await desk.ahead()).toBe(150_000);
      desk.nowMs += 100;
      expect(await desk.serve(5)).toEqual(['c']);
    },
  },
  {
    title: 'a burst is for once, after a while without any',
    async tell(desk) {
      await desk.begin('100000 3 0 0');
      await desk.line('a', 'b', 'c', 'd', 'e', 'f', 'g');
      expect(await desk.serve(7)).toEqual(['a', 'b', 'c']);
      desk.nowMs += 50;
      expect(await desk.serve(7)).toEqual(['d']);
      desk.nowMs += 10_000;
      expect(await desk.serve(7)).toEqual(['e', 'f', 'g']);
    },
  },
  {
    title: 'of a rate that rises or falls as many turns are used as before, and none for its change',
    async tell(desk) {
      await desk.begin('3600000000 1 0 0');
      await desk.line('a', 'b', 'c');
      expect(await desk.serve(5)).toEqual(['a']);
      for (const us of [1_800_000_000, 900_000_000, 450_000_000]) {
        desk.nowMs += 1000;
        await desk.limit(`${us} 1 0 0`);
        expect(await desk.serve(5)).toEqual([]);
      }
      // One turn was used at 1 per hour, and a second of each rate has passed.
      expect(await desk.ahead()).toBe(450_000_000 - 125_000 - 250_000 - 500_000);
      await desk.limit('3600000000 1 0 0');
      expect(await desk.ahead()).toBe(3_600_000_000 - 1_000_000 - 2_000_000 - 4_000_000);
      await desk.limit('0 1 0 0');
      await desk.limit('1000000 1 0 0');
      expect(await desk.ahead()).toBe(1_050_000);
      expect(await desk.serve(5)).toEqual([]);
      desk.nowMs += 1000;
      expect(await desk.serve(5)).toEqual(['b']);
    },
  },
  {
    title: 'a rate that comes after none has the turns used that are still ahead, and no more',
    async tell(desk) {
      await desk.begin('1000000 1 0 0');
      await desk.line('a', 'b');
      expect(await desk.serve(5)).toEqual(['a']);
      await desk.limit('0 1 0 0');
      desk.nowMs += 600;
      await desk.limit('1000000 1 0 0');
      expect(await desk.ahead()).toBe(400_000);
      expect(await desk.serve(5)).toEqual([]);
    },
  },
  {
    title: 'a lower rate waits for one of its turns after a burst, not for all that were used',
    async tell(desk) {
      await desk.begin('100000 3 0 0');
      await desk.line('a', 'b', 'c', 'd', 'e');
      expect(await desk.serve(5)).toEqual(['a', 'b', 'c']);
      await desk.limit('60000000 1 0 0');
      expect(await desk.ahead()).toBe(60_050_000);
      desk.nowMs += 60_000;
      expect(await desk.serve(5)).toEqual(['d']);
    },
  },
  {
    title: 'a limit that is cut off while it changes a rate, and is set again, counts what was used once',
    async tell(desk) {
      await desk.begin('1000000 1 0 1');
      await desk.line('{a}1', '{b}1', '{c}1');
      expect(await desk.serve(5)).toEqual(['{a}1']);
      expect(await desk.limitOnce('500000 1 0 0', 1)).toBe('more');
      expect(await desk.ahead()).toBe(500_000);
      expect(await desk.limitOnce('500000 1 0 0', 1)).toBe('more');
      expect(await desk.limit('500000 1 0 0')).toBe('ok');
      expect(await desk.limit('500000 1 0 0')).toBe('same');
      expect(await desk.ahead()).toBe(500_000);
    },
  },
  {
    title: 'one of more partitions than a burst starts a job at each of its places, and none that it has missed',
    async tell(desk) {
      // One in 100 ms of the whole queue: partition 1 of 4 has the places 100, 500, 900 ms and so on.
      await desk.begin('400000 1 0 0 s1/4/1');
      await desk.put(['a', 'b', 'c', 'd']);
      expect(await desk.promote()).toMatchObject({ nextMs: 400, gated: { through: 1, waiting: 3 } });
      expect(await desk.serve(9)).toEqual(['a']);
      expect((await desk.promote()).nextMs).toBe(400);
      desk.nowMs += 399;
      expect(await desk.serve(9)).toEqual([]);
      desk.nowMs += 1;
      expect(await desk.serve(9)).toEqual(['b']);
      desk.nowMs += 501;
      expect(await desk.serve(9)).toEqual([]);
      expect((await desk.promote()).nextMs).toBe(299);
      desk.nowMs += 299;
      expect(await desk.serve(9)).toEqual(['c']);
    },
  },
  {
    title: 'a leader looks when the next turn comes, also where one is free and the queue is full',
    async tell(desk) {
      await desk.begin('100000 2 1 0');
      await desk.put(['a', 'b', 'c']);
      expect((await desk.promote()).nextMs).toBe(100);
      await desk.put(['later'], { inMs: 30 });
      expect((await desk.promote()).nextMs).toBe(30);
    },
  },
  {
    title: 'a clock that steps back costs no more than one turn',
    async tell(desk) {
      await desk.begin(TEN);
      await desk.line('a', 'b', 'c', 'd');
      expect(await desk.serve(5)).toEqual(['a']);
      desk.nowMs -= 3_600_000;
      expect((await desk.promote()).nextMs).toBe(100);
      expect(await desk.serve(5)).toEqual(['b']);
      desk.nowMs += 99;
      expect(await desk.serve(5)).toEqual([]);
      desk.nowMs += 1;
      expect(await desk.serve(5)).toEqual(['c']);
    },
  },
  {
    title: 'where an entry waits to be read, a step back is seen as well',
    async tell(desk) {
      await desk.begin(TEN);
      await desk.line('a', 'b', 'c');
      desk.nowMs -= 3_600_000;
      expect((await desk.promote()).nextMs).toBe(100);
    },
  },
  {
    title: 'as far ahead as a turn goes, nothing is cut',
    async tell(desk) {
      await desk.begin('142857.143 1 0 0');
      await desk.line('a', 'b', 'c');
      expect(await desk.serve(5)).toEqual(['a']);
      desk.nowMs += 93;
      expect(await desk.serve(5)).toEqual(['b']);
      expect(await desk.serve(5)).toEqual([]);
      expect(await desk.ahead()).toBe(192_714.5);
    },
  },
  {
    title: 'who was let through and is handed back gives its turn back',
    async tell(desk) {
      await desk.begin(TEN);
      await desk.line('a', 'b');
      const given = await desk.read();
      expect(given.map(({ member }) => member)).toEqual(['j:a']);
      await desk.jobs.release(desk.ref, given, { consumer: 'w1', nowMs: desk.nowMs });
      expect(await desk.ready()).toEqual(['b']);
      expect(await desk.ahead()).toBe(100_000);
    },
  },
  {
    title:
      'who is handed back when its turn is nearly through gives back what is left of it, so that no two start at once',
    async tell(desk) {
      await desk.begin('1000000 1 0 0');
      await letThroughNow(desk, 'a', 1_000_000);
      const given = await desk.read();
      await desk.line('b', 'c');
      desk.nowMs += 950;
      expect(await desk.serve(1, { worker: 'w2' })).toEqual(['b']);
      await desk.jobs.release(desk.ref, given, { consumer: 'w1', nowMs: desk.nowMs });
      expect(await desk.serve(1, { worker: 'w2' })).toEqual([]);
      expect(await desk.ahead()).toBe(1_000_000);
    },
  },
  {
    title:
      'who was let through before the limits were set gives nothing back, as nobody knows what is left of its turn',
    async tell(desk) {
      await desk.begin('100000 1 0 0');
      await letThroughNow(desk, 'a', 100_000);
      const given = await desk.read();
      desk.nowMs += 60;
      await desk.limit('1000000 1 0 0');
      expect(await desk.ahead()).toBe(400_000);
      await desk.jobs.release(desk.ref, given, { consumer: 'w1', nowMs: desk.nowMs });
      expect(await desk.ahead()).toBe(400_000);
    },
  },
  {
    title: 'at a place of a partition a turn is not through before the place comes, and is given back whole until then',
    async tell(desk) {
      for (const [waitMs, through] of [
        [99, 1],
        [101, 0],
      ] as const) {
        await desk.redis.flushall();
        desk.nowMs = NOW;
        await desk.begin('400000 1 0 0 s1/4/1');
        await letThroughNow(desk, 'a', 500_000);
        const given = await desk.read();
        desk.nowMs += waitMs;
        await desk.jobs.release(desk.ref, given, { consumer: 'w1', nowMs: desk.nowMs });
        expect((await desk.promote()).gated?.through).toBe(through);
      }
    },
  },
  {
    title: 'who has run and lost its worker gives no turn back',
    async tell(desk) {
      for (const how of ['serve', 'release'] as const) {
        await desk.redis.flushall();
        desk.claims.clear();
        await desk.begin(TEN);
        await desk.line('a');
        expect(await desk.serve(1)).toEqual(['a']);
        const given = await desk.takeOver();
        await desk.pause();
        if (how === 'serve') await desk.serve(0, { given, worker: 'w2' });
        else await desk.jobs.release(desk.ref, given, { consumer: 'w2', nowMs: desk.nowMs });
        expect([await desk.ready(), await desk.ahead()]).toEqual([[], 100_000]);
      }
    },
  },
  {
    title: 'who was cancelled in ready gives its turn back when its entry is dropped',
    async tell(desk) {
      await desk.begin(TEN);
      await desk.line('a', 'b');
      const given = await desk.read();
      await desk.cancel('a');
      expect(await desk.serve(1, { given })).toEqual(['b']);
      expect(await desk.ahead()).toBe(100_000);
    },
  },
  {
    title: 'who expires in ready gives its turn back',
    async tell(desk) {
      await desk.begin(TEN);
      await desk.put(['a'], { inMs: -9, header: `;e=${(NOW + 5).toString(36)}` });
      await desk.line('b', 'c');
      const given = await desk.read();
      desk.nowMs += 10;
      await desk.serve(0, { given });
      expect(desk.last.taken.map(({ kind }) => kind)).toEqual(['late']);
      const late = await desk.jobs.expire(desk.ref, given, desk.settings('w1'));
      expect(late).toEqual(['expired']);
      expect(await desk.ready()).toEqual(['b']);
      expect(await desk.ahead()).toBe(100_000);
    },
  },
  {
    title: 'nobody gets back more than was used',
    async tell(desk) {
      await desk.begin(TEN);
      await desk.line('a', 'b');
      const given = await desk.read();
      await desk.redis.hset(desk.ref.keys.meta, 'gate', '50000.00 0 0 0');
      await desk.jobs.release(desk.ref, given, { consumer: 'w1', nowMs: desk.nowMs });
      expect(await desk.ahead()).toBe(100_000);
    },
  },
  {
    title: 'a retry uses a turn again',
    async tell(desk) {
      await desk.begin(TEN);
      await desk.line('a', 'b');
      expect(await desk.serve(1)).toEqual(['a']);
      expect(await desk.calls(() => desk.settle('retry', 'a'))).toBe(0);
      expect(await desk.ready()).toEqual([]);
      expect(await desk.ahead()).toBe(100_000);
    },
  },
];

const limits: readonly Story[] = [
  {
    title: 'a leader has nothing to look for where nobody waits for a time',
    async tell(desk) {
      await desk.begin(TEN);
      await desk.put(['a']);
      expect((await desk.promote()).nextMs).toBeUndefined();
      await desk.limit('0 1 1 0');
      await desk.put(['b', 'c']);
      expect(await desk.promote()).toMatchObject({ nextMs: undefined, gated: { through: 1, waiting: 2 } });
    },
  },
  {
    title:
      'what stands in braces at the beginning is a group, but for what schedules and jobs make, and 64 letters are enough',
    async tell(desk) {
      await desk.begin(LOCKS);
      const [long, longer] = ['a'.repeat(64), 'a'.repeat(65)];
      const none = [`{${longer}}1`, '{schedule:s}1', '{a}abandoned:3', '{a}then:1.2', '{acme}', '{a,b}1', 'x{a}1'];
      await desk.put([...none, '{b}1', `{${long}}1`, '{c}then:1']);
      expect(await desk.relay(20)).toHaveLength(10);
      expect((await desk.holds()).sort()).toEqual([long, 'b', 'c']);
    },
  },
  {
    title: 'a queue runs as many as it may',
    async tell(desk) {
      await desk.begin('0 1 2 0');
      await desk.line('a', 'b', 'c', 'd', 'e');
      expect(await desk.serve(5)).toEqual(['a', 'b']);
      expect(await desk.serve(5)).toEqual([]);
      expect(await desk.serve(5, { over: ['a'] })).toEqual(['c']);
      expect(await desk.serve(5, { over: ['b', 'c'] })).toEqual(['d', 'e']);
    },
  },
  {
    title: 'a group runs as many as it may, the first of its lane first, and jobs without a group as many as there are',
    async tell(desk) {
      await desk.begin('0 1 0 2');
      await desk.line('{a}1', '{a}2', '{a}3', '{b}1', 'x', 'y');
      expect((await desk.serve(9)).sort()).toEqual(['x', 'y', '{a}1', '{a}2', '{b}1']);
      expect(await desk.holds()).toEqual(['a', 'a', 'b']);
      expect(await desk.lanes()).toEqual([]);
      expect(await desk.serve(9, { over: ['{a}2'] })).toEqual(['{a}3']);
      expect(await desk.holds()).toEqual(['a', 'a', 'b']);
    },
  },
  {
    title: 'two lanes of a group do not fill the same place',
    async tell(desk) {
      await desk.begin(LOCKS);
      await desk.pause();
      await desk.put(['high {a}1', '{a}2', 'low {a}3', 'high {b}1', '{b}2']);
      await desk.resume();
      await desk.promote({ limit: 5 });
      expect((await desk.serve(9)).sort()).toEqual(['{a}1', '{b}1']);
      expect((await desk.serve(9, { over: ['{a}1'] })).sort()).toEqual(['{a}2']);
    },
  },
  {
    title: 'groups have turns, one job each, and a group that is alone has all of them',
    async tell(desk) {
      await desk.begin();
      await desk.line('{a}1', '{a}2', '{a}3', '{b}1', '{b}2', '{c}1');
      const order: string[] = [];
      for (let turn = 0; turn < 6; turn += 1) order.push(...(await desk.serve(1)));
      expect(order).toEqual(['{a}1', '{b}1', '{c}1', '{a}2', '{b}2', '{a}3']);
    },
  },
  {
    title: 'priorities have turns of 16 : 4 : 1',
    async tell(desk) {
      await desk.begin();
      const all = ['high h', 'n', 'low l'].flatMap((prefix) => ids(prefix, 30));
      await desk.line(...all);
      const started = await desk.serve(21);
      const count = (letter: string) => started.filter((id) => id.startsWith(letter)).length;
      expect([count('h'), count('n'), count('l')]).toEqual([16, 4, 1]);
      expect(started.filter((id) => id.startsWith('h'))).toEqual(ids('h', 16));
    },
  },
  {
    title: 'priorities have their turns also where one has more lanes than a call lets through',
    async tell(desk) {
      await desk.begin();
      const groups = ['{a}', '{b}', '{c}', '{d}'];
      await desk.line(...groups.flatMap((group) => ids(`high ${group}`, 9)), ...ids('n', 9), ...ids('low l', 9));
      const order: string[] = [];
      for (let turn = 0; turn < 21; turn += 1) order.push(...(await desk.serve(1)));
      const count = (letter: string) => order.filter((id) => id.startsWith(letter)).length;
      expect([count('{'), count('n'), count('l')]).toEqual([16, 4, 1]);
    },
  },
  {
    title: 'who had nobody for a while gets no turns for that',
    async tell(desk) {
      await desk.begin();
      await desk.line(...ids('n', 40));
      await desk.serve(20);
      await desk.line(...ids('high h', 30));
      const started = await desk.serve(10);
      expect(started.filter((id) => id.startsWith('n')).length).toBeGreaterThanOrEqual(2);
      expect(started.filter((id) => id.startsWith('h')).length).toBeGreaterThanOrEqual(6);
    },
  },
  {
    title: 'many at a time are let through in their order',
    async tell(desk) {
      await desk.begin();
      await desk.line(...ids('a', 150));
      expect(await desk.serve(140)).toEqual(ids('a', 140));
      expect(await desk.waiting()).toEqual(ids('a', 150).slice(141));
    },
  },
];

const shortWay: readonly Story[] = [
  {
    title: 'where nobody waits, a job that is due goes straight into ready',
    async tell(desk) {
      await desk.begin(LOCKS);
      await desk.put(['{a}1']);
      expect(await desk.promote()).toMatchObject({ count: 1, backlog: 1, gated: { through: 1, waiting: 0 } });
      expect([await desk.ready(), await desk.holds(), await desk.lanes()]).toEqual([['{a}1'], ['a'], []]);
    },
  },
  {
    title: 'one of a full group waits, and no lane is open for it',
    async tell(desk) {
      await desk.begin(LOCKS);
      await desk.line('{a}1');
      expect(await desk.serve(3)).toEqual(['{a}1']);
      await desk.put(['{a}2']);
      expect(await desk.promote()).toMatchObject({ backlog: 0, gated: { through: 0, waiting: 1 }, nextMs: undefined });
      expect([await desk.waiting(), await desk.lanes()]).toEqual([['{a}2'], []]);
      expect(await desk.places()).toEqual(['a 1 -1 {a}2']);
    },
  },
  {
    title: 'nobody goes past those who wait',
    async tell(desk) {
      await desk.begin('0 1 1 0');
      await desk.line('a', 'b');
      expect(await desk.serve(2)).toEqual(['a']);
      await desk.line('c');
      expect(await desk.serve(2, { over: ['a'] })).toEqual(['b']);
    },
  },
  {
    title: 'a pass of the worker itself lets as many past as it takes',
    async tell(desk) {
      await desk.begin('0 1 3 0');
      await desk.put(['a', 'b']);
      expect(await desk.relay(2)).toEqual(['a', 'b']);
      await desk.put(['c', 'd']);
      expect(await desk.relay(2)).toEqual(['c']);
      expect(await desk.waiting()).toEqual(['d']);
      await desk.put(['e']);
      expect(await desk.relay(2, { over: ['a', 'b', 'c'] })).toEqual(['d', 'e']);
    },
  },
  {
    title: 'the short way uses turns of the rate, and not for who has to wait for its group',
    async tell(desk) {
      await desk.begin('100000 1 0 1');
      await desk.line('{a}1');
      expect(await desk.ahead()).toBe(100_000);
      expect(await desk.serve(1)).toEqual(['{a}1']);
      desk.nowMs += 200;
      await desk.line('{a}2');
      expect(await desk.ahead()).toBeLessThanOrEqual(0);
      await desk.line('{b}1');
      expect(await desk.ready()).toEqual(['{a}1', '{b}1']);
      await desk.line('{b}2', 'c');
      expect((await desk.waiting()).sort()).toEqual(['c', '{a}2', '{b}2']);
    },
  },
  {
    title: 'a line takes as many as it may hold, and the others stay scheduled',
    async tell(desk) {
      await desk.begin('0 1 1 0');
      await desk.put(['a', 'b', 'c', 'd']);
      expect((await desk.promote({ lineMax: 2 })).kind).toBe('promoted');
      expect([await desk.ready(), await desk.waiting()]).toEqual([['a'], ['b']]);
      await desk.promote({ lineMax: 2 });
      expect(await desk.waiting()).toEqual(['b', 'c']);
      expect((await desk.promote({ lineMax: 2 })).kind).toBe('capped');
      expect(await desk.waiting()).toEqual(['b', 'c']);
    },
  },
  {
    title: 'in a line of more than 100,000 a pass takes 80 jobs',
    async tell(desk) {
      await desk.begin(LOCKS);
      const places = Array.from({ length: 100_001 }, (_, nth) => ['0', `z\u00001${nth}`]);
      for (let from = 0; from < places.length; from += 20_000) {
        await desk.redis.zadd(desk.ref.keys.line, ...places.slice(from, from + 20_000).flat());
      }
      await desk.put(ids('{a}', 200));
      expect((await desk.promote()).count).toBe(80);
      await desk.redis.zremrangebyrank(desk.ref.keys.line, -81, -1);
      expect((await desk.promote()).count).toBe(120);
    },
  },
  {
    title: 'while a queue is paused nothing is lined up, let through or rung for',
    async tell(desk) {
      await desk.begin('0 1 2 0');
      await desk.line('a', 'b', 'c');
      expect(await desk.serve(1)).toEqual(['a']);
      await desk.pause();
      await desk.put(['d']);
      expect((await desk.promote()).kind).toBe('paused');
      expect(await desk.serve(5, { over: ['a'] })).toEqual([]);
      expect(await desk.waiting()).toEqual(['c']);
      await desk.resume();
      expect(await desk.serve(5)).toEqual(['b', 'c']);
    },
  },
];

const bells: readonly Story[] = [
  {
    title: 'a worker that takes less than there is calls another one',
    async tell(desk) {
      await desk.begin();
      await desk.line('a', 'b', 'c', 'd', 'e');
      expect(await desk.calls(async () => expect(await desk.serve(2)).toEqual(['a', 'b']))).toBe(1);
      expect([await desk.unread(), await desk.waiting()]).toEqual([1, ['d', 'e']]);
      expect(await desk.calls(() => desk.serve(1))).toBe(1);
      expect(await desk.calls(() => desk.serve(2))).toBe(0);
      expect(await desk.ready()).toEqual(['a', 'b', 'c', 'd', 'e']);
      expect(desk.last.waiting).toBe(0);
    },
  },
  {
    title: 'a call that asks for nothing rings as well, once',
    async tell(desk) {
      await desk.begin('0 1 1 0');
      await desk.line('a', 'b', 'c');
      await desk.serve(1);
      expect(await desk.calls(() => desk.serve(0, { over: ['a'] }))).toBe(1);
      expect(await desk.calls(() => desk.serve(0))).toBe(0);
      expect([await desk.unread(), await desk.waiting()]).toEqual([1, ['c']]);
    },
  },
  ...(['retry', 'defer', 'bury', 'commit', 'complete'] as const).map(
    (how): Story => ({
      title: `${how} lets the next one through and calls a worker, unless the queue is paused`,
      async tell(desk) {
        await desk.begin('0 1 1 1');
        await desk.line('{a}1');
        expect(await desk.serve(1)).toEqual(['{a}1']);
        await desk.line('{a}2', 'high {a}3', 'low {a}4');
        expect([await desk.lanes(), await desk.holds()]).toEqual([[], ['a']]);
        expect(await desk.calls(() => desk.settle(how, '{a}1'))).toBe(1);
        expect([await desk.unread(), await desk.ready(), await desk.holds()]).toEqual([1, ['{a}3'], ['a']]);
        expect(await desk.serve(1)).toEqual(['{a}3']);
        await desk.pause();
        expect(await desk.calls(() => desk.settle(how, '{a}3'))).toBe(0);
        expect([await desk.ready(), await desk.holds()]).toEqual([[], []]);
        expect((await desk.lanes()).sort()).toEqual(['1a', '2a']);
      },
    }),
  ),
  {
    title: 'one job that waits is not called twice',
    async tell(desk) {
      await desk.begin('0 1 2 0');
      await desk.line('a', 'b', 'c', 'd');
      await desk.serve(1);
      expect(await desk.unread()).toBe(1);
      expect(await desk.calls(() => desk.settle('complete', 'a'))).toBe(0);
      expect(await desk.ready()).toEqual(['b']);
    },
  },
  {
    title:
      'who expires in line, or in ready and read by nobody, gives its place up, and a turn of the rate only where it had one',
    async tell(desk) {
      await desk.begin('100000 1 0 1');
      const late = `;e=${(NOW + 5).toString(36)}`;
      await desk.put(['{a}1', '{a}2', '{a}3'], { inMs: -9, header: late });
      await desk.put(['{b}1'], { inMs: -5, header: `${late};p=x` });
      await desk.line('{a}4');
      expect([await desk.ready(), await desk.holds()]).toEqual([['{a}1'], ['a']]);
      desk.nowMs += 6;
      const found = await lapsed(desk.redis, desk.ref, { nowMs: desk.nowMs });
      expect(found.jobs.map(({ member }) => member)).toEqual(['j:{a}2', 'j:{a}3', 'j:{b}1']);
      const left = await lapsed(desk.redis, desk.ref, { nowMs: desk.nowMs, cursor: found.cursor ?? '' });
      expect(left).toMatchObject({ cursor: undefined, jobs: [{ member: 'j:{a}1' }] });
      const end = (jobs: readonly Delivery[], windowMs = WINDOW_MS) =>
        desk.jobs.expire(desk.ref, jobs, { ...desk.settings(''), windowMs });
      expect(await end(found.jobs.slice(0, 1))).toEqual(['expired']);
      expect(await end(found.jobs.slice(1, 2), 0)).toEqual(['expired']);
      expect(await end(found.jobs.slice(2))).toEqual(['dead']);
      expect([await desk.waiting(), (await desk.places()).length]).toEqual([['{a}4'], 1]);
      expect(await end(left.jobs)).toEqual(['expired']);
      // Its turn and its hold are those of the next.
      expect(await desk.ready()).toEqual(['{a}4']);
      expect(await desk.ahead()).toBe(100_000);
      expect(await desk.flaws()).toEqual([]);
    },
  },
  {
    title: 'what is handed back or expires while the queue is paused rings nobody',
    async tell(desk) {
      await desk.begin('0 1 1 0');
      await desk.put(['a'], { inMs: -9, header: `;e=${(NOW + 5).toString(36)}` });
      await desk.line('b', 'c');
      const given = await desk.read();
      await desk.pause();
      desk.nowMs += 10;
      expect(await desk.jobs.expire(desk.ref, given, desk.settings('w1'))).toEqual(['expired']);
      expect(await desk.ready()).toEqual([]);
      await desk.resume();
      await desk.promote();
      const more = await desk.read();
      await desk.pause();
      await desk.jobs.release(desk.ref, more, { consumer: 'w1', nowMs: desk.nowMs });
      expect(await desk.ready()).toEqual([]);
      expect(await desk.promote()).toMatchObject({ kind: 'paused', gated: { through: 0 } });
      expect(await desk.ready()).toEqual([]);
    },
  },
  {
    title:
      'a pass of the worker itself: who is over has no hold, who starts has one, and nothing while the queue is paused',
    async tell(desk) {
      await desk.begin('0 1 2 1');
      await desk.line('{a}1', '{a}2', '{b}1', '{c}1');
      expect(await desk.relay(2)).toEqual(['{a}1', '{b}1']);
      expect(await desk.relay(1, { over: ['{a}1'] })).toEqual(['{c}1']);
      expect(await desk.holds()).toEqual(['b', 'c']);
      await desk.pause();
      expect(await desk.relay(2, { over: ['{b}1', '{c}1'] })).toEqual([]);
      expect([await desk.holds(), await desk.ready(), await desk.waiting()]).toEqual([[], [], ['{a}2']]);
      await desk.resume();
      await desk.promote();
      await desk.redis.del(desk.ref.keys.holds);
      expect(await desk.relay(1)).toEqual(['{a}2']);
      expect(await desk.holds()).toEqual(['a']);
    },
  },
  {
    title: 'a worker takes over what its own pass has not lined up, up to its slots',
    async tell(desk) {
      await desk.begin();
      await desk.line('a', 'b', 'c', 'd');
      expect(await desk.relay(3)).toEqual(['a', 'b', 'c']);
      expect(await desk.unread()).toBe(1);
    },
  },
  {
    title: 'what is handed back rings, and its group has room',
    async tell(desk) {
      await desk.begin('0 1 1 1');
      await desk.line('{a}1', '{a}2', '{b}1');
      const given = await desk.read();
      const act = () => desk.jobs.release(desk.ref, given, { consumer: 'w1', nowMs: desk.nowMs });
      expect(await desk.calls(act)).toBe(1);
      expect([await desk.unread(), await desk.ready()]).toEqual([1, ['{b}1']]);
      expect(await desk.lanes()).toEqual(['1a']);
    },
  },
  {
    title: 'a leader rings where nobody was told, and not where an entry waits to be read',
    async tell(desk) {
      await desk.begin('0 1 1 0');
      await desk.line('a', 'b', 'c');
      expect(await desk.serve(1)).toEqual(['a']);
      await desk.pause();
      await desk.settle('complete', 'a');
      await desk.resume();
      expect(await desk.calls(async () => expect(await desk.promote()).toMatchObject({ gated: { through: 1 } }))).toBe(
        1,
      );
      expect(await desk.calls(async () => expect(await desk.promote()).toMatchObject({ gated: { through: 0 } }))).toBe(
        0,
      );
      expect(await desk.ready()).toEqual(['b']);
    },
  },
  {
    title: 'a start has its hold, whatever became of it before',
    async tell(desk) {
      await desk.begin(LOCKS);
      await desk.line('{a}1');
      const given = await desk.read();
      await desk.redis.del(desk.ref.keys.holds);
      expect(await desk.serve(0, { given })).toEqual(['{a}1']);
      expect(await desk.holds()).toEqual(['a']);
      await desk.settle('retry', '{a}1');
      desk.nowMs += 2000;
      await desk.promote();
      const again = await desk.read();
      await desk.redis.del(desk.ref.keys.holds);
      expect(await desk.serve(0, { given: again })).toEqual(['{a}1']);
      expect(await desk.holds()).toEqual(['a']);
      await desk.line('{b}1');
      const other = await desk.read();
      await desk.redis.del(desk.ref.keys.holds);
      const [started] = await desk.jobs.start(desk.ref, other, desk.settings('w1'));
      expect([started?.kind, await desk.holds()]).toEqual(['run', ['b']]);
    },
  },
];

const heads: readonly Story[] = [
  {
    title: 'a place in which nobody waits takes no turn, and goes',
    async tell(desk) {
      await desk.begin('100000 1 1 0');
      await desk.line('a', 'b', 'c', 'd');
      await desk.serve(1);
      await desk.redis.zadd(desk.ref.keys.scheduled, desk.nowMs + 5000, 'j:b');
      desk.nowMs += 1000;
      expect(await desk.serve(1, { over: ['a'] })).toEqual(['c']);
      expect(await desk.places()).toEqual([' 1 -1 d']);
      expect(await desk.ahead()).toBe(100_000);
    },
  },
  {
    title: 'a place of another due time than its member has is none',
    async tell(desk) {
      await desk.begin('0 1 1 0');
      await desk.line('a', 'b', 'c');
      await desk.serve(1);
      await desk.redis.zadd(desk.ref.keys.scheduled, String(WAITS + NOW - 100), 'j:b');
      expect(await desk.serve(1, { over: ['a'] })).toEqual(['c']);
    },
  },
  {
    title: 'a lane of which another lane of the group took the place stays open until it is taken',
    async tell(desk) {
      await desk.begin(LOCKS);
      await desk.line('{a}0');
      await desk.serve(1);
      await desk.line('high {a}1', '{a}2');
      await desk.redis.zadd(desk.ref.keys.scheduled, desk.nowMs + 5000, 'j:{a}1');
      expect(await desk.serve(3, { over: ['{a}0'] })).toEqual(['{a}2']);
    },
  },
  {
    title: 'a lane with places in which nobody waits keeps its turn',
    async tell(desk) {
      await desk.begin('0 1 1 0');
      await desk.line('r');
      await desk.serve(1);
      await desk.line('{a}1', '{a}2', '{a}3', '{b}1');
      const { scheduled } = desk.ref.keys;
      await desk.redis.zadd(scheduled, desk.nowMs + 5000, 'j:{a}1', desk.nowMs + 5000, 'j:{a}2');
      expect(await desk.serve(1, { over: ['r'] })).toEqual(['{a}3']);
    },
  },
  {
    title: 'hundreds of such places are passed in one call',
    async tell(desk) {
      await desk.begin('0 1 1 0');
      await desk.line('a');
      await desk.serve(1);
      await desk.put([...ids('s', 400), 'z']);
      await desk.promote();
      const pairs = ids('s', 300).flatMap((id) => [desk.nowMs + 60_000, `j:${id}`]);
      await desk.redis.zadd(desk.ref.keys.scheduled, ...pairs);
      expect(await desk.serve(1, { over: ['a'] })).toEqual(['s0300']);
      expect(await desk.places()).toHaveLength(100);
    },
  },
  {
    title: 'a call ends after a thousand places, and says that there is more',
    async tell(desk) {
      await desk.begin('0 1 1 0');
      await desk.line('a');
      await desk.serve(1);
      await desk.put([...ids('s', 1300), 'z']);
      await desk.promote({ limit: 5000 });
      await desk.pause();
      await desk.settle('complete', 'a');
      await desk.resume();
      const pairs = ids('s', 1300).flatMap((id) => [desk.nowMs + 60_000, `j:${id}`]);
      await desk.redis.zadd(desk.ref.keys.scheduled, ...pairs);
      expect(await desk.promote()).toMatchObject({ nextMs: 0, gated: { through: 0 } });
      expect(await desk.serve(1)).toEqual(['z']);
    },
  },
  {
    title: 'a call visits 200 lanes, shuts those of full groups, and the next one goes on',
    async tell(desk) {
      await desk.begin('0 1 0 1');
      const groups = ids('g', 300).map((name) => `{${name}}`);
      const { lanes, meta } = desk.ref.keys;
      await desk.put(groups.map((group) => `${group}1`));
      expect((await desk.relay(300)).length).toBe(300);
      await desk.line(...groups.map((group) => `${group}2`));
      expect(await desk.lanes()).toEqual([]);
      const open = ids('g', 300).flatMap((name, nth) => [String(2 ** 50 + 1000 + nth), `1${name}`]);
      await desk.redis.zadd(lanes, ...open);
      await desk.redis.hset(meta, 'turn', '9000');
      await desk.put(['z']);
      expect(await desk.promote()).toMatchObject({ nextMs: 0, gated: { through: 0 } });
      expect((await desk.lanes()).length).toBe(301 - 200);
      expect(await desk.serve(1)).toEqual(['z']);
      expect(await desk.lanes()).toEqual([]);
    },
  },
];

const setting: readonly Story[] = [
  {
    title: 'limit answers ok, same and fenced, and the same again',
    async tell(desk) {
      await desk.begin('0 1 2 1');
      const before = await desk.picture();
      expect(await desk.limit('0 1 2 1')).toBe('same');
      expect(await desk.limit('0 1 5 1', { term: 'x:1:1' })).toBe('fenced');
      expect(await desk.picture()).toEqual(before);
      expect(await desk.limit('0 1 5 1', { term: desk.term })).toBe('ok');
      expect(await desk.limit('0 1 5 1', { term: desk.term })).toBe('same');
      expect(await desk.meta('gates')).toBe('0 1 5 1');
    },
  },
  {
    title: 'a queue that becomes gated takes back what nobody has read, and what was read gets its hold',
    async tell(desk) {
      await desk.begin();
      await desk.redis.hdel(desk.ref.keys.meta, 'gates', 'gate');
      await desk.line('{a}1', '{a}2', '{b}1', 'x', '{c}1', '{c}2');
      expect(await desk.ready()).toHaveLength(6);
      await desk.read('w1', 4);
      await desk.promote();
      expect(await desk.limitOnce('0 1 0 1', 1)).toBe('more');
      expect(await desk.meta('gates')).toBe('- 0-0');
      expect(await desk.ready()).toHaveLength(5);
      // Nothing is let through until the share is there.
      expect(await desk.serve(5)).toEqual(['{c}2']);
      let calls = 1;
      while ((await desk.limitOnce('0 1 0 1', 2)) === 'more') calls += 1;
      expect(calls).toBe(3);
      expect(await desk.meta('gates')).toBe('0 1 0 1');
      expect((await desk.holds()).sort()).toEqual(['a', 'a', 'b', 'c']);
      expect(await desk.flaws()).toEqual([]);
      expect(await desk.redis.zscore(desk.ref.keys.scheduled, 'j:{c}1')).toBe(String(NOW - 2));
      expect(Number(await desk.meta('wake'))).toBeLessThanOrEqual(NOW);
    },
  },
  {
    title: 'new limits take back what nobody has read, with its turn of the rate',
    async tell(desk) {
      await desk.begin('100000 5 0 0');
      await desk.line('a', 'b', 'c', '{g}1');
      await desk.serve(1);
      expect([await desk.ready(), await desk.ahead()]).toEqual([['a', '{g}1'], 200_000]);
      expect(await desk.limit('100000 5 1 1')).toBe('ok');
      expect([await desk.ready(), await desk.ahead()]).toEqual([['a'], 100_000]);
      expect(await desk.meta('wake')).toBe(String(NOW));
      expect(await desk.redis.zscore(desk.ref.keys.scheduled, 'j:{g}1')).toBe(String(NOW - 1));
      expect(await desk.serve(5)).toEqual([]);
      await desk.promote();
      expect(await desk.serve(5, { over: ['a'] })).toEqual(['b']);
    },
  },
  {
    title: 'what was taken back leaves no hold, and its group has room',
    async tell(desk) {
      await desk.begin(LOCKS);
      await desk.line('{a}1', '{a}2');
      expect(await desk.holds()).toEqual(['a']);
      expect(await desk.limitOnce('0 1 9 1', 1)).toBe('ok');
      expect([await desk.holds(), await desk.lanes()]).toEqual([[], ['1a']]);
    },
  },
  ...[
    { title: 'rises', from: '0 1 0 1', to: '0 1 0 2', opened: ['1a', '1b', '1c'] },
    { title: 'ends', from: '0 1 0 1', to: '0 1 0 0', opened: ['1a', '1b', '1c'] },
    { title: 'falls', from: '0 1 0 2', to: '0 1 0 1', opened: [] },
    { title: 'begins', from: '0 1 0 0', to: '0 1 0 1', opened: [] },
  ].map(
    ({ title, from, to, opened }): Story => ({
      title: `where the limit per group ${title}, lanes of groups that have room ${opened.length > 0 ? 'open, a slice at a time' : 'stay as they are'}`,
      async tell(desk) {
        await desk.begin(from);
        const most = Number(from.at(-1)) || 1;
        const groups = ['a', 'b', 'c'];
        for (let nth = 1; nth <= most; nth += 1) await desk.line(...groups.map((group) => `{${group}}${nth}`));
        await desk.serve(9);
        if (from.endsWith('0')) await desk.pause();
        await desk.line(...groups.map((group) => `{${group}}9`));
        const before = await desk.lanes();
        const replies: string[] = [];
        const walked: (string | null)[] = [];
        while (!replies.includes('ok')) {
          replies.push(await desk.limitOnce(to, 1));
          walked.push(await desk.meta('gates'));
        }
        expect((await desk.lanes()).sort()).toEqual([...before, ...opened].sort());
        expect(replies.length).toBe(opened.length > 0 ? 4 : 1);
        if (opened.length > 0) expect(walked).toEqual([`${to} > =a`, `${to} > =b`, `${to} > =c`, to]);
        expect(await desk.flaws(1)).toEqual([]);
      },
    }),
  ),
  {
    title: 'where the limit per group rises, a group that is still full stays shut',
    async tell(desk) {
      await desk.begin('0 1 0 0');
      await desk.line('{a}1', '{a}2', '{a}3', '{b}1');
      await desk.serve(9);
      await desk.limit('0 1 0 1');
      await desk.line('{a}4', '{b}2');
      expect(await desk.lanes()).toEqual([]);
      await desk.limit('0 1 0 3');
      expect(await desk.lanes()).toEqual(['1b']);
    },
  },
];

/** Kinds of flaws, planted one by one. */
const FLAWS = ['unheld', 'loose', 'unlined', 'stale', 'shut'] as const;

const mending: readonly Story[] = [
  ...FLAWS.map(
    (kind): Story => ({
      title: `check-gates finds what is ${kind}, and mend-gates mends it once`,
      async tell(desk) {
        await desk.begin('0 1 2 1');
        await desk.line('{a}1', '{a}2', '{b}1', '{c}1', 'x', 'high {d}1');
        expect(await desk.serve(1)).toEqual(['{d}1']);
        await desk.promote();
        expect(await desk.flaws()).toEqual([]);
        const { holds, line, lanes, ready } = desk.ref.keys;
        const [entry] = (await desk.redis.xrange(ready, '-', '+'))[0] ?? [];
        const place = (await desk.redis.zrange(line, '0', '0'))[0] ?? '';
        const loose = `b\0${Date.now()}-77`;
        const nobody = `b\x001${NOW.toString(36).padStart(9, '0')}j:nobody`;
        const plant = {
          unheld: () => desk.redis.zrem(holds, `d\0${entry}`),
          loose: () => desk.redis.zadd(holds, 0, loose),
          unlined: () => desk.redis.zrem(line, place),
          stale: () => desk.redis.zadd(line, 0, nobody),
          shut: () => desk.redis.zrem(lanes, '1b'),
        };
        expect(await plant[kind]()).toBe(1);
        const names = {
          unheld: entry,
          loose,
          unlined: place.slice(place.indexOf('\0') + 11),
          stale: nobody,
          shut: '1b',
        };
        for (const slice of [1, 2, 200]) expect(await desk.flaws(slice)).toEqual([{ kind, name: names[kind] }]);
        const all = await desk.flaws();
        if (kind === 'loose') await desk.redis.zrem(lanes, '1b');
        expect(await desk.mend(all)).toEqual(['repaired']);
        expect(await desk.mend(all)).toEqual(['sound']);
        expect(Number(await desk.meta('wake'))).toBeLessThanOrEqual(NOW);
        if (kind === 'unlined') expect((await desk.promote()).count).toBe(1);
        expect(await desk.flaws()).toEqual([]);
      },
    }),
  ),
  {
    title: 'mend-gates judges again: what is sound by then stays',
    async tell(desk) {
      await desk.begin('0 1 2 1');
      await desk.line('{a}1', '{a}2', '{b}1', 'x', 'high {d}1');
      await desk.serve(1);
      const before = await desk.picture();
      const { line, holds, ready } = desk.ref.keys;
      const [entry = ''] = (await desk.redis.xrange(ready, '-', '+'))[0] ?? [];
      const [place = '', hold = ''] = [
        (await desk.redis.zrange(line, '0', '0'))[0],
        (await desk.redis.zrange(holds, '0', '0'))[0],
      ];
      const sound = [
        { kind: 'unheld', name: entry },
        { kind: 'unheld', name: '1-1' },
        { kind: 'loose', name: hold },
        { kind: 'loose', name: 'nonsense' },
        { kind: 'loose', name: 'a\x001-1' },
        { kind: 'unlined', name: place.slice(place.indexOf('\0') + 11) },
        { kind: 'unlined', name: 'j:nobody' },
        { kind: 'stale', name: place },
        { kind: 'stale', name: 'a\x001nobody' },
        { kind: 'shut', name: '1b' },
        { kind: 'shut', name: '0b' },
        { kind: 'shut', name: '1d' },
      ] as const;
      expect(new Set(await desk.mend(sound))).toEqual(new Set(['sound']));
      expect(await desk.picture()).toEqual(before);
    },
  },
  {
    title: 'a queue that is not gated has nothing to look at or to mend',
    async tell(desk) {
      await desk.begin();
      await desk.redis.hdel(desk.ref.keys.meta, 'gates', 'gate');
      await desk.redis.zadd(desk.ref.keys.holds, 0, 'a\x001-1');
      expect(await desk.flaws()).toEqual([]);
      expect(await desk.mend([{ kind: 'loose', name: 'a\x001-1' }])).toEqual(['sound']);
      expect(await desk.holds()).toEqual(['a']);
    },
  },
  {
    title: 'one walk mends everything, also where who is mended leaves the place at which it looks',
    async tell(desk) {
      await desk.begin('0 1 1 1');
      await desk.line(...ids('{a}', 20), ...ids('{b}', 20), ...ids('x', 20));
      const { line, lanes, holds } = desk.ref.keys;
      await desk.redis.del(line, lanes, holds);
      expect(await desk.walk(7)).toBe(60);
      expect([await desk.flaws(), await desk.waiting()]).toEqual([[], []]);
      await desk.promote();
      expect(await desk.waiting()).toHaveLength(59);
      expect(await desk.walk(7)).toBe(0);
    },
  },
  {
    title: 'foreign nonsense above the scores of those who wait is no flaw',
    async tell(desk) {
      await desk.begin('0 1 1 0');
      await desk.line('a', 'b');
      await desk.redis.zadd(desk.ref.keys.scheduled, String(1.764e18), 'nanoseconds');
      expect(await desk.flaws()).toEqual([]);
    },
  },
];

const changing: readonly Story[] = [
  ...(['cancel', 'cancel without a window', 'reschedule', 'replace'] as const).map(
    (how): Story => ({
      title: `${how} of a job that waits: it leaves its place in line`,
      async tell(desk) {
        await desk.begin('0 1 1 1');
        await desk.line('{b}1', '{a}1', 'high {a}2', 'low {a}3');
        for (const id of ['{a}1', '{a}2', '{a}3']) {
          const calls = {
            cancel: () => desk.cancel(id),
            'cancel without a window': () => desk.cancel(id, 0),
            reschedule: () => desk.reschedule(id, 5000),
            replace: () => desk.replace(id),
          };
          const replies = {
            cancel: [{ kind: 'cancelled' }],
            'cancel without a window': [{ kind: 'cancelled' }],
            reschedule: [expect.objectContaining({ kind: 'ok', wasMs: expect.any(Number), dueMs: desk.nowMs + 5000 })],
            replace: [{ kind: 'replaced' }],
          };
          if (id === '{a}2') expect(await desk.ready()).toEqual(['{a}2']);
          else expect(await calls[how]()).toEqual(replies[how]);
        }
        expect(await desk.waiting()).toEqual(['{b}1']);
        expect(await desk.places()).toEqual(['b 1 -4 {b}1']);
        expect(await desk.flaws()).toEqual([]);
      },
    }),
  ),
  {
    title: 'await of a job that waits: it keeps its place in line',
    async tell(desk) {
      await desk.begin('0 1 1 0');
      await desk.line('a', 'b');
      const places = await desk.places();
      expect(await desk.jobs.await(desk.ref, ['j:b'])).toEqual([{ kind: 'waits' }]);
      expect(await desk.places()).toEqual(places);
      expect(await desk.flaws()).toEqual([]);
    },
  },
  {
    title: 'reschedule of a job that waits: it is due already, and can only be put off',
    async tell(desk) {
      await desk.begin('0 1 1 0');
      await desk.line('a', 'b');
      const before = await desk.picture();
      expect(await desk.reschedule('b', -500)).toEqual([{ kind: 'ready' }]);
      expect(await desk.reschedule('b', 0)).toEqual([{ kind: 'ready' }]);
      expect(await desk.reschedule('b', 500, 'earlier')).toEqual([{ kind: 'ready' }]);
      expect(await desk.reschedule('b', -1)).toEqual([{ kind: 'already', dueMs: NOW - 1 }]);
      expect(await desk.picture()).toEqual(before);
      expect(await desk.reschedule('b', 500, 'later')).toEqual([{ kind: 'ok', wasMs: NOW - 1, dueMs: NOW + 500 }]);
      expect(await desk.reschedule('b', 500, 'later')).toEqual([{ kind: 'already', dueMs: NOW + 500 }]);
    },
  },
  {
    title: 'cancel of what was seen: a job in line is seen at its due time',
    async tell(desk) {
      await desk.begin('0 1 1 0');
      await desk.line('a', 'b');
      const record = (await desk.redis.hget(desk.ref.keys.jobs, 'j:b')) ?? '';
      const seen = (place: number) => seenText({ digest: digestOf(record), token: '0', place: String(place) });
      const cancel = (place: number) =>
        desk.jobs.cancel(desk.ref, [`j:b\0${seen(place)}`], { windowMs: 600_000, nowMs: desk.nowMs });
      expect(await cancel(NOW - 2)).toEqual([{ kind: 'changed' }]);
      expect(await cancel(NOW - 1)).toEqual([{ kind: 'cancelled' }]);
    },
  },
  {
    title: 'edit of a priority: the job is lined up anew, and the leader knows it',
    async tell(desk) {
      await desk.begin('0 1 1 0');
      await desk.line('a', 'b', 'c');
      await desk.promote();
      expect(await desk.edit('b', { data: 'x' })).toEqual([{ kind: 'ok' }]);
      expect(await desk.places()).toEqual([' 1 -2 b', ' 1 -1 c']);
      const idle = await desk.meta('wake');
      expect(await desk.edit('c', { priority: 'high' })).toEqual([{ kind: 'ok' }]);
      expect(await desk.places()).toEqual([' 1 -2 b']);
      expect(await desk.redis.zscore(desk.ref.keys.scheduled, 'j:c')).toBe(String(NOW - 1));
      expect(Number(await desk.meta('wake'))).toBeLessThan(Number(idle));
      await desk.promote();
      expect(await desk.places()).toEqual([' 0 -1 c', ' 1 -2 b']);
      expect(await desk.serve(9)).toEqual(['a']);
      expect(await desk.serve(9, { over: ['a'] })).toEqual(['c']);
    },
  },
  {
    title: 'edit of the priority of a job that waits for its time leaves it there',
    async tell(desk) {
      await desk.begin('0 1 1 0');
      await desk.put(['a'], { inMs: 5000 });
      expect(await desk.edit('a', { priority: 'low' })).toEqual([{ kind: 'ok' }]);
      expect(await desk.redis.zscore(desk.ref.keys.scheduled, 'j:a')).toBe(String(NOW + 5000));
      expect(await desk.waiting()).toEqual([]);
    },
  },
  {
    title: 'a replay that was cut off finds its job in line, and says when it was due',
    async tell(desk) {
      await desk.begin('0 1 1 0');
      await desk.line('a', 'b');
      await desk.serve(1);
      await desk.settle('bury', 'a');
      const [letter = ''] = (await desk.redis.xrange(desk.ref.keys.dead, '-', '+'))[0] ?? [];
      const replay = () => desk.jobs.replay(desk.ref, letter, { nowMs: desk.nowMs });
      // The job lives, and its dead letter is there still.
      expect(await cutAt(desk, 'replay', 3, replay)).toMatch(/HINCRBY$/);
      await desk.promote();
      expect(await desk.waiting()).toEqual(['a']);
      desk.nowMs += 10;
      expect(await replay()).toEqual({ kind: 'ok', dueMs: NOW, member: 'j:a' });
      expect(await desk.waiting()).toEqual(['a']);
    },
  },
  {
    title: 'repair of an entry that nobody holds moves its hold with it',
    async tell(desk) {
      await desk.begin(LOCKS);
      await desk.line('{a}1', '{a}2');
      const [given] = await desk.read('lost');
      await desk.redis.xgroup('DELCONSUMER', desk.ref.keys.ready, 'workers', 'lost');
      const damage = { kind: 'stuck', name: given?.entry ?? '', detail: '' } as const;
      await repair(desk.redis, desk.ref, [damage], { nowMs: desk.nowMs });
      expect(await desk.holds()).toEqual(['a']);
      expect(await desk.flaws()).toEqual([]);
      expect(await desk.serve(9)).toEqual(['{a}1']);
    },
  },
  {
    title: 'a partition that is removed leaves nothing of its line, lanes and holds',
    async tell(desk) {
      await desk.begin('0 1 1 1');
      await desk.line('{a}1', '{a}2', '{b}1');
      const { scheduled, line, lanes, holds } = desk.ref.keys;
      expect(await desk.redis.exists(line, lanes, holds)).toBe(3);
      await desk.remove();
      expect(await desk.redis.exists(scheduled, line, lanes, holds)).toBe(0);
    },
  },
  {
    title: 'newer data of a job that waits: it keeps its place in line, and with another priority comes in line anew',
    async tell(desk) {
      await desk.begin('0 1 1 0');
      await desk.line('a');
      await desk.debounce('b');
      desk.nowMs += 20;
      await desk.promote();
      expect(await desk.waiting()).toEqual(['b']);
      const places = await desk.places();
      desk.nowMs += 1;
      expect(await desk.debounce('b')).toEqual([{ kind: 'kept', dueMs: NOW + 10 }]);
      expect(await desk.places()).toEqual(places);
      desk.nowMs += 1;
      expect(await desk.debounce('high b')).toEqual([{ kind: 'kept', dueMs: NOW + 10 }]);
      expect([await desk.waiting(), await desk.places()]).toEqual([[], []]);
      await desk.promote();
      expect(await desk.waiting()).toEqual(['b']);
      expect(await desk.flaws()).toEqual([]);
    },
  },
  {
    title: 'a job that was cancelled when it was ready is over for good when other limits come',
    async tell(desk) {
      await desk.begin('0 1 3 0');
      await desk.line('a', 'b');
      expect(await desk.ready()).toEqual(['a']);
      await desk.cancel('a');
      const { scheduled, done, stale } = desk.ref.keys;
      expect([await desk.redis.zscore(done, 'j:a'), await desk.redis.zcard(stale)]).toEqual([null, 1]);
      await desk.limit('0 1 2 0');
      expect(await desk.redis.zscore(scheduled, 'j:a')).toBeNull();
      expect([await desk.redis.zscore(done, 'j:a'), await desk.redis.zcard(stale)]).toEqual([String(desk.nowMs), 0]);
      await desk.promote();
      expect(await desk.serve(9)).toEqual(['b']);
      expect(await desk.flaws()).toEqual([]);
    },
  },
];

/** Cut off before its write number `allowed`, or undefined where it has fewer. */
const cutAt = (desk: Desk, verb: string, allowed: number, call: () => Promise<unknown>) =>
  cutOff(desk.redis, { verb, lua: luaOf(verb), allowed, call });

/** Everything, by what it is about. */
export const stories: readonly Story[] = [
  ...[...rates, ...limits, ...shortWay, ...bells],
  ...[...heads, ...setting, ...mending, ...changing, ...ownStories, ...orderStories, ...rateStories, ...costStories],
];
