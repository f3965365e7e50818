/**
 * Counts and lateness by the minute: what leaders write, whatever happens to them, and what is read from it. The time of the recorder is
 * given, so that a minute passes when the test says so.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { lastHour, queueMinutes } from '../../../src/inspect/minutes.ts';
import { createEmitter } from '../../../src/job/events.ts';
import { MINUTE_MS } from '../../../src/job/minutes.ts';
import { systemClock } from '../../../src/kernel/clock.ts';
import { createRecorder } from '../../../src/mover/chores/recorder.ts';
import { close, openCommands, type Redis, whenReady } from '../../../src/redis/connection/connect.ts';
import { type PartitionRef, partitionRef } from '../../../src/redis/keys.ts';
import { declareQueue } from '../../../src/redis/scripts/queues.ts';
import { createTimekeeper } from '../../../src/worker/run/timekeeper.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

const M0 = 29_395_316;
const namespace = 'duestream';
const ref = partitionRef(namespace, { queue: 'emails', partition: 0, layoutGeneration: 0 });
let server: TestRedis;
let redis: Redis;

beforeAll(async () => {
  server = await startRedis();
  redis = openCommands({ redis: server.url, name: 'test' });
  await whenReady(redis, 10_000);
});
afterAll(async () => {
  close(redis);
  await server.stop();
});
beforeEach(async () => {
  await redis.flushall();
  await declareQueue(redis, { namespace, queue: 'emails', partitions: 1 });
});

/** A leader whose minute is given. */
function leader(minute: number, isLeading = true, of: PartitionRef = ref) {
  const events = createEmitter();
  const now = { minute, isLeading };
  const recorder = createRecorder({
    redis,
    ref: of,
    events,
    clock: systemClock,
    serverMs: () => now.minute * MINUTE_MS + 30,
    leading: () => (now.isLeading ? { term: 'm:1:5000', epoch: 1 } : undefined),
  });
  return {
    now,
    recorder,
    promotes(...lateness: readonly (readonly [number, number])[]) {
      events.emit('jobs.promoted', {
        queue: of.queue,
        partition: 0,
        count: 1,
        deadLetters: 0,
        tookMs: 1,
        lateness,
      });
    },
    async at(next: number) {
      now.minute = next;
      await recorder.pass();
    },
  };
}

const does = (name: string, count: number) => redis.hincrby(ref.keys.meta, `n.${name}`, count);
const seen = (minute: number, hours: 1 | 24 = 1) =>
  queueMinutes({ redis, namespace }, 'emails', { hours, nowMs: minute * MINUTE_MS + 1000 });
/** To within 5 %. */
const near = (ms: number | null | undefined, exact: number) => Math.abs((ms ?? 0) - exact) <= exact * 0.05;
const total = (list: readonly number[]) => list.reduce((sum, one) => sum + one, 0);

describe('a leader', () => {
  test('writes nothing before a minute begins, and then what happened in it', async () => {
    const one = leader(M0);
    await one.at(M0);
    expect(await redis.exists(ref.keys.minutes)).toBe(0);
    await does('done', 7);
    await one.at(M0 + 1);
    await does('done', 3);
    await does('scheduled', 2);
    await one.at(M0 + 2);
    const { counts, known, on, startMs, stepMs } = await seen(M0 + 2);
    expect([on, stepMs]).toEqual([true, MINUTE_MS]);
    expect(startMs).toBe((M0 + 2 - 60) * MINUTE_MS);
    expect(counts.done.slice(-3)).toEqual([0, 7, 3]);
    expect(counts.scheduled.slice(-3)).toEqual([0, 0, 2]);
    expect(known.slice(-3)).toEqual([false, true, true]);
  });

  test('writes a state that did not change once, and loses nothing after a long rest', async () => {
    const one = leader(M0);
    await does('done', 7);
    for (let minute = M0; minute <= M0 + 100; minute += 1) await one.at(minute);
    expect(await redis.hkeys(ref.keys.minutes)).toEqual(['at']);
    await does('done', 1);
    await one.at(M0 + 101);
    expect(await redis.hlen(ref.keys.minutes)).toBe(3);
    const { counts, known } = await seen(M0 + 101);
    expect(counts.done.at(-1)).toBe(1);
    expect(total(counts.done)).toBe(1);
    expect(known.every((one) => one)).toBe(true);
  });

  test('that does not lead writes nothing', async () => {
    const one = leader(M0, false);
    await does('done', 7);
    for (const minute of [M0, M0 + 1, M0 + 2]) await one.at(minute);
    expect(await redis.exists(ref.keys.minutes)).toBe(0);
    expect(await seen(M0 + 2)).toMatchObject({ on: false });
  });

  test('never keeps more than a day, however long it goes on', async () => {
    const one = leader(M0);
    for (let minute = M0; minute < M0 + 1600; minute += 1) {
      await does('done', 1);
      await one.at(minute);
    }
    expect(await redis.hlen(ref.keys.minutes)).toBe(1441);
    const { counts } = await seen(M0 + 1599, 24);
    expect(counts.done).toHaveLength(144);
    expect(counts.done.slice(1).every((one) => one === 10)).toBe(true);
  });

  test('adds the lateness of its promotions', async () => {
    const one = leader(M0);
    await one.at(M0);
    one.recorder.start();
    one.promotes([0, 5], [3, 2], [1e9, 1]);
    await one.at(M0 + 1);
    await one.recorder.stop();
    const { promotion, total: all } = await seen(M0 + 1);
    expect(promotion.count.at(-1)).toBe(8);
    expect([promotion.p50Ms.at(-1), promotion.p99Ms.at(-1), promotion.p50Ms.at(-2)]).toEqual([0.5, 1e9, null]);
    expect([promotion.maxMs.at(-1), promotion.maxMs.at(-2)]).toEqual([1e9, null]);
    expect(all.promotion).toMatchObject({ count: 8, p50Ms: 0.5, maxMs: 1e9 });
  });
});

describe('nothing is counted twice', () => {
  test('by two leaders at once, nor when one takes over within a minute', async () => {
    const [one, two] = [leader(M0), leader(M0)];
    await Promise.all([one.at(M0), two.at(M0)]);
    for (let minute = M0 + 1; minute < M0 + 5; minute += 1) {
      await does('done', 10);
      await Promise.all([one.at(minute), two.at(minute)]);
    }
    await does('done', 5);
    const three = leader(M0 + 4);
    await three.at(M0 + 4);
    await does('done', 5);
    await three.at(M0 + 5);
    const { counts } = await seen(M0 + 5);
    expect(counts.done.slice(-5)).toEqual([10, 10, 10, 10, 10]);
  });

  test('after a time without a leader: what happened meanwhile is told at its end', async () => {
    const one = leader(M0);
    await one.at(M0);
    await does('done', 1);
    await one.at(M0 + 1);
    await does('done', 20);
    const two = leader(M0 + 9);
    await two.at(M0 + 9);
    await does('done', 2);
    await two.at(M0 + 10);
    const { counts, known } = await seen(M0 + 10);
    expect(total(counts.done)).toBe(23);
    expect(counts.done.slice(-2)).toEqual([20, 2]);
    expect(known.slice(-10)).toEqual([true, false, false, false, false, false, false, false, false, true]);
  });

  test('when the clock of Redis jumps ahead and back', async () => {
    const one = leader(M0);
    await one.at(M0);
    for (const minute of [M0 + 1, M0 + 30, M0 + 31, M0 + 2, M0 + 3]) {
      await does('done', 10);
      await one.at(minute);
    }
    expect(total((await seen(M0 + 3)).counts.done)).toBeLessThanOrEqual(50);
    for (let minute = M0 + 4; minute < M0 + 40; minute += 1) {
      await does('done', 1);
      await one.at(minute);
    }
    const { counts } = await seen(M0 + 39);
    expect(total(counts.done)).toBeLessThanOrEqual(86);
    expect(counts.done.slice(-5)).toEqual([1, 1, 1, 1, 1]);
  });

  test('by a Redis that is full: the minute is told with the next, lateness too', async () => {
    const one = leader(M0);
    one.recorder.start();
    await one.at(M0);
    await does('done', 4);
    one.promotes([2, 6]);
    await redis.config('SET', 'maxmemory', '1');
    await one.at(M0 + 1);
    await redis.config('SET', 'maxmemory', '0');
    await does('done', 1);
    one.promotes([2, 1]);
    await one.at(M0 + 2);
    await one.recorder.stop();
    const { counts, promotion } = await seen(M0 + 2);
    expect([total(counts.done), total(promotion.count)]).toEqual([5, 7]);
  });

  test('where a counter was lost', async () => {
    const one = leader(M0);
    await does('done', 1000);
    await one.at(M0);
    await redis.del(ref.keys.meta);
    await does('done', 1);
    await one.at(M0 + 1);
    await does('done', 2);
    await one.at(M0 + 2);
    expect((await seen(M0 + 2)).counts.done.slice(-2)).toEqual([0, 2]);
  });
});

describe('the last hour of all queues', () => {
  const other = partitionRef(namespace, { queue: 'sms', partition: 0, layoutGeneration: 0 });
  const hour = (may: (queue: string) => boolean = () => true) =>
    lastHour({ redis, namespace }, { may, nowMs: (M0 + 1) * MINUTE_MS + 1000 });

  test('adds the buckets of each, and tells each by itself', async () => {
    await declareQueue(redis, { namespace, queue: 'sms', partitions: 1 });
    await declareQueue(redis, { namespace, queue: 'unused', partitions: 1 });
    const [one, two] = [leader(M0), leader(M0, true, other)];
    for (const each of [one, two]) {
      await each.at(M0);
      each.recorder.start();
    }
    one.promotes([0, 98]);
    two.promotes([900, 2]);
    for (const each of [one, two]) {
      await each.at(M0 + 1);
      await each.recorder.stop();
    }
    const { on, promotion, queues } = await hour();
    expect([on, promotion.count, promotion.p50Ms]).toEqual([true, 100, 0.5]);
    expect(near(promotion.p99Ms, 900)).toBe(true);
    expect(promotion.maxMs).toBe(900);
    expect(queues.map(({ queue, promotion: of }) => [queue, of.count, of.maxMs])).toEqual([
      ['emails', 98, 0],
      ['sms', 2, 900],
      ['unused', 0, null],
    ]);
    const own = await hour((queue) => queue === 'sms');
    expect([own.promotion.count, own.queues.length]).toEqual([2, 1]);
  });

  test('is nothing where nobody keeps minutes', async () => {
    expect(await hour()).toMatchObject({ on: false, start: { count: 0, p50Ms: null }, queues: [{ queue: 'emails' }] });
  });
});

describe('workers', () => {
  /** A worker whose time is given, in seconds of a minute. */
  function worker() {
    const events = createEmitter();
    const now = { ms: M0 * MINUTE_MS };
    const keeper = createTimekeeper({ redis, namespace, events, serverMs: () => now.ms });
    return {
      keeper,
      starts: (lateMs: number) => {
        events.emit('job.started', { queue: 'emails', id: 'a', name: 'x', attempt: 1, lateMs });
        events.emit('job.completed', { queue: 'emails', id: 'a', name: 'x', tookMs: 7 });
      },
      async endsMinute() {
        now.ms += MINUTE_MS;
        await keeper.pass();
      },
    };
  }

  test('add up how late they start and how long they run, where a leader keeps minutes', async () => {
    const [lead, one, two] = [leader(M0), worker(), worker()];
    await lead.at(M0);
    await lead.at(M0 + 1);
    for (const each of [one, two]) {
      each.starts(0);
      each.starts(40);
      await each.endsMinute();
    }
    await lead.at(M0 + 2);
    const { start, run } = await seen(M0 + 2);
    expect([start.count.at(-1), start.p50Ms.at(-1), start.maxMs.at(-1)]).toEqual([4, 0.5, 40]);
    expect([near(start.p99Ms.at(-1), 40), run.count.at(-1), near(run.p99Ms.at(-1), 7)]).toEqual([true, 4, true]);
    expect(run.maxMs.at(-1)).toBe(7);
  });

  test('add nothing where none does, and nothing twice', async () => {
    const one = worker();
    one.starts(5);
    await one.endsMinute();
    expect(await redis.exists(ref.keys.minutes)).toBe(0);
    const lead = leader(M0 + 1);
    await lead.at(M0 + 1);
    await lead.at(M0 + 2);
    one.starts(5);
    await one.endsMinute();
    await one.endsMinute();
    await lead.at(M0 + 3);
    expect(total((await seen(M0 + 3)).start.count)).toBe(1);
  });
});
