/**
 * Counts and lateness by the minute: what leaders write, whatever happens to them, and what is read from it. The time of the recorder is
 * given, so that a minute passes when the test says so.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { queueCauses } from '../../../src/inspect/causes.ts';
import type { Subject } from '../../../src/inspect/doctor/check.ts';
import { lateness } from '../../../src/inspect/doctor/check-lateness.ts';
import { lastHour, queueMinutes } from '../../../src/inspect/minutes.ts';
import { promiseReading, sloOf, slos } from '../../../src/inspect/slo.ts';
import { createEmitter } from '../../../src/job/events.ts';
import type { EntryId, Token } from '../../../src/job/job.ts';
import { MINUTE_MS } from '../../../src/job/minutes.ts';
import { type LatenessOptions, type LatenessPromise, parseSettings } from '../../../src/job/queue-settings.ts';
import { systemClock, turn } from '../../../src/kernel/clock.ts';
import { createRecorder } from '../../../src/mover/chores/recorder.ts';
import { close, openCommands, type Redis, whenReady } from '../../../src/redis/connection/connect.ts';
import { type PartitionRef, partitionRef } from '../../../src/redis/keys.ts';
import { makeHours, readDays, readHours } from '../../../src/redis/read/history.ts';
import { addKept, notedOf } from '../../../src/redis/read/minutes.ts';
import { declareQueue } from '../../../src/redis/scripts/queues.ts';
import type { Started } from '../../../src/redis/scripts/replies.ts';
import { CauseBook } from '../../../src/worker/run/cause-book.ts';
import { LineWatch } from '../../../src/worker/run/line-watch.ts';
import { createTimekeeper } from '../../../src/worker/run/timekeeper.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

setFlagsFromString('--expose-gc');
const collect: () => void = runInNewContext('gc');
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
function leader(minute: number, isLeading = true, of: PartitionRef = ref, always = true) {
  const events = createEmitter();
  const now: { minute: number; isLeading: boolean; lateness?: LatenessPromise | undefined } = { minute, isLeading };
  const recorder = createRecorder({
    redis,
    namespace,
    always,
    current: () => ({ ...of, lateness: now.lateness }),
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

const promised = (said: LatenessOptions = {}) => parseSettings({ lateness: said }).lateness;

/** A worker whose time is given, in seconds of a minute. */
function worker({ minute = M0, withinMs }: { minute?: number; withinMs?: number } = {}) {
  const events = createEmitter();
  const now = { ms: minute * MINUTE_MS };
  const causes = new CauseBook(new LineWatch(redis, systemClock));
  const keeper = createTimekeeper({
    redis,
    namespace,
    events,
    causes,
    serverMs: () => now.ms,
    withinMs: () => withinMs,
  });
  return {
    keeper,
    /** A job that was due, let through and started so many ms after the minute began. */
    began(member: string, [due, through, start]: readonly [number, number, number], more: Partial<Started> = {}) {
      events.emit('job.started', { queue: 'emails', id: 'a', name: 'x', attempt: 1, lateMs: start - due });
      const delivery = { entry: `${now.ms + through}-0` as EntryId, member, dueMs: now.ms + due };
      const counts = { attempts: 1, failures: 0, crashes: 0, generation: 0, history: [] };
      const token = `${now.ms + start}000` as Token;
      const started = { kind: 'run' as const, token, ...counts, record: '1abc|{}', ...more };
      const under = withinMs === undefined ? ref : { ...ref, lateness: promised({ within: `${withinMs}ms` }) };
      causes.started({ ref: under, delivery, state: { phase: 'gone' } }, started, { isClockSet: false });
    },
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

const does = (name: string, count: number) => redis.hincrby(ref.keys.meta, `n.${name}`, count);
const seen = (minute: number, hours: 1 | 24 = 1) =>
  queueMinutes({ redis, namespace }, 'emails', { hours, nowMs: minute * MINUTE_MS + 1000 });
/** To within an eighth. */
const near = (ms: number | null | undefined, exact: number) => Math.abs((ms ?? 0) - exact) <= exact / 8;
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
    expect([promotion.p50Ms.at(-1), promotion.p99Ms.at(-1), promotion.p50Ms.at(-2)]).toEqual([0, 1e9, null]);
    expect([promotion.maxMs.at(-1), promotion.maxMs.at(-2)]).toEqual([1e9, null]);
    expect(all.promotion).toMatchObject({ count: 8, p50Ms: 0, maxMs: 1e9 });
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
    expect([on, promotion.count, promotion.p50Ms]).toEqual([true, 100, 0]);
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

describe('hours and days', () => {
  const H0 = Math.ceil(M0 / 60);
  const FIRST = H0 * 60;
  const hours = (minute: number, days = 1) =>
    queueMinutes({ redis, namespace }, 'emails', { days, by: 'hour', nowMs: minute * MINUTE_MS + 1000 });
  const ofDays = (minute: number, days: number) =>
    queueMinutes({ redis, namespace }, 'emails', { days, by: 'day', nowMs: minute * MINUTE_MS + 1000 });
  /** Each minute does so much. */
  async function goes(one: ReturnType<typeof leader>, { from, to }: { from: number; to: number }, done = 1) {
    for (let minute = from; minute <= to; minute += 1) {
      await does('done', done);
      await one.at(minute);
    }
  }

  test('are made of the minutes, also those of the running hour', async () => {
    const one = leader(FIRST);
    one.recorder.start();
    await one.at(FIRST);
    one.promotes([40_000, 3]);
    await goes(one, { from: FIRST + 1, to: FIRST + 130 });
    await one.recorder.stop();
    const { counts, promotion, stepMs, startMs, known } = await hours(FIRST + 130);
    expect([stepMs, startMs, counts.done.length]).toEqual([3_600_000, (H0 - 21) * 3_600_000, 24]);
    expect(counts.done.slice(-4)).toEqual([0, 60, 60, 10]);
    expect([promotion.count.at(-3), promotion.maxMs.at(-3), near(promotion.p50Ms.at(-3), 40_000)]).toEqual([
      3,
      40_000,
      true,
    ]);
    expect(known.slice(-3, -1)).toEqual([true, true]);
    expect(total((await ofDays(FIRST + 130, 2)).counts.done)).toBe(130);
  });

  test('are the same when they are made twice, by two leaders at once, and by one who comes late', async () => {
    const [one, two] = [leader(FIRST), leader(FIRST)];
    for (let minute = FIRST; minute <= FIRST + 62; minute += 1) {
      if (minute > FIRST) await does('done', 1);
      await Promise.all([one.at(minute), two.at(minute)]);
    }
    const before = await redis.hgetallBuffer(ref.keys.hours);
    await makeHours(redis, [ref], { from: H0, to: H0 });
    expect(await redis.hgetallBuffer(ref.keys.hours)).toEqual(before);
    expect(total((await hours(FIRST + 62)).counts.done)).toBe(62);
    expect(total((await ofDays(FIRST + 62, 1)).counts.done)).toBe(62);
  });

  test('that a process began to write are made again by the next leader, whichever write was the last', async () => {
    const one = leader(FIRST);
    await one.at(FIRST);
    await goes(one, { from: FIRST + 1, to: FIRST + 60 });
    // The day was written, and the hours were not.
    const day = await readDays(redis, ref, { from: 0, to: 1e6 });
    expect(day.size).toBe(0);
    await makeHours(redis, [ref], { from: H0, to: H0 });
    await redis.del(ref.keys.hours);
    await goes(leader(FIRST + 60), { from: FIRST + 60, to: FIRST + 61 }, 0);
    expect((await hours(FIRST + 61)).counts.done.slice(-2)).toEqual([60, 0]);
    expect(total((await ofDays(FIRST + 61, 1)).counts.done)).toBe(60);
  });

  test('in which nothing happened take no room, and a leader who was away makes up for the others', async () => {
    const one = leader(FIRST);
    await one.at(FIRST);
    for (let minute = FIRST + 1; minute <= FIRST + 62; minute += 1) await one.at(minute);
    expect(await redis.exists(ref.keys.hours, ref.keys.days)).toBe(0);
    await goes(one, { from: FIRST + 63, to: FIRST + 122 });
    const two = leader(FIRST + 400);
    await two.at(FIRST + 400);
    await does('done', 7);
    await two.at(FIRST + 401);
    await two.at(FIRST + 481);
    const { counts } = await hours(FIRST + 481);
    expect(counts.done.slice(-9)).toEqual([0, 58, 2, 0, 0, 0, 7, 0, 0]);
  });

  test('of a clock that went a year ahead are no reason to wait for a year', async () => {
    const one = leader(FIRST);
    await one.at(FIRST);
    await goes(one, { from: FIRST + 1, to: FIRST + 61 });
    await goes(one, { from: FIRST + 525_600, to: FIRST + 525_662 });
    await goes(one, { from: FIRST + 62, to: FIRST + 121 });
    expect((await hours(FIRST + 121)).counts.done.at(-3)).toBe(60);
  });

  test('are of all partitions, in keys of the first one that go by themselves', async () => {
    await declareQueue(redis, { namespace, queue: 'two', partitions: 2 });
    const refs = [0, 1].map((partition) => partitionRef(namespace, { queue: 'two', partition, layoutGeneration: 0 }));
    const leaders = refs.map((of) => leader(FIRST, true, of));
    for (let minute = FIRST; minute <= FIRST + 61; minute += 1) {
      for (const [at, each] of leaders.entries()) {
        if (minute > FIRST) await redis.hincrby(refs[at]?.keys.meta ?? '', 'n.done', at + 1);
        await each.at(minute);
      }
    }
    const [first, second] = refs;
    if (!first || !second) throw new Error('two partitions');
    expect(await redis.exists(second.keys.hours, second.keys.days)).toBe(0);
    const found = await queueMinutes({ redis, namespace }, 'two', {
      days: 1,
      by: 'hour',
      nowMs: (FIRST + 61) * MINUTE_MS,
    });
    expect(found.counts.done.at(-2)).toBe(180);
    expect(await redis.pttl(first.keys.hours)).toBeGreaterThan(99 * 86_400_000);
    expect(await redis.pttl(first.keys.days)).toBeGreaterThan(399 * 86_400_000);
  });

  test('of nonsense are none', async () => {
    await redis.hset(ref.keys.hours, String(Math.floor(H0 / 24) % 90), 'nonsense', 'at', 'x');
    expect(total((await hours(FIRST)).counts.done)).toBe(0);
  });
});

describe('workers', () => {
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
    expect([start.count.at(-1), start.p50Ms.at(-1), start.maxMs.at(-1)]).toEqual([4, 0, 40]);
    expect([near(start.p99Ms.at(-1), 40), run.count.at(-1), near(run.p99Ms.at(-1), 7)]).toEqual([true, 4, true]);
    expect(run.maxMs.at(-1)).toBe(7);
  });

  test('add why jobs were late, by the minute in which they started and by their groups', async () => {
    // Redis numbers what is added by its own time.
    const minute = Math.floor(Date.now() / MINUTE_MS);
    const [lead, one, two] = [leader(minute), worker({ minute: minute }), worker({ minute: minute })];
    await lead.at(minute);
    await lead.at(minute + 1);
    one.began('j:a', [0, 10, 14]);
    one.began('j:{acme}b', [0, 2000, 2500], { record: `1abc;w=${(minute * MINUTE_MS + 500).toString(36)}|{}` });
    two.began('j:{bolt}c', [0, 4000, 61_000]);
    for (const each of [one, two]) await each.endsMinute();
    const found = await queueCauses({ redis, namespace }, 'emails', {
      fromMs: minute * MINUTE_MS + 1,
      toMs: (minute + 2) * MINUTE_MS,
    });
    expect(found).toMatchObject({
      starts: 3,
      late: 2,
      causes: [
        { cause: 'worker', ms: 57_504 },
        { cause: 'promotion', ms: 5510 },
        { cause: 'made-late', ms: 500 },
      ],
      groups: [
        { group: 'bolt', ms: 61_000 },
        { group: 'acme', ms: 2500 },
      ],
    });
    expect(found.minutes.map(({ atMs, starts }) => [atMs / MINUTE_MS - minute, starts])).toEqual([
      [0, 2],
      [1, 1],
    ]);
    expect(await redis.pttl(ref.keys.causes)).toBeGreaterThan(0);
    await two.endsMinute();
    expect(await redis.xlen(ref.keys.causes)).toBe(2);
  });

  test('keep nothing of the record of a job that was late in a line until its account is made', async () => {
    const causes = new CauseBook(new LineWatch(redis, systemClock));
    const nowMs = M0 * MINUTE_MS;
    /** A start that only this function knows. */
    const begin = (): WeakRef<object> => {
      const delivery = { entry: `${nowMs + 4000}-0` as EntryId, member: 'j:a', dueMs: nowMs };
      const token = `${nowMs + 5000}000` as Token;
      const counts = { attempts: 1, failures: 0, crashes: 0, generation: 0, history: [] };
      const started = { kind: 'run' as const, token, ...counts, record: `1abc;w=${(nowMs + 500).toString(36)}|{}` };
      const gated = { ...ref, gates: { share: '0 0 0 1', groups: [] } };
      causes.started({ ref: gated, delivery, state: { phase: 'gone' } }, started, { isClockSet: false });
      return new WeakRef(started);
    };
    const kept = begin();
    // What a WeakRef was asked for lives until the end of the turn.
    await turn();
    collect();
    expect(kept.deref()).toBeUndefined();
    const sums = (await causes.take('emails', nowMs + 60_000)).get(M0);
    expect(Object.fromEntries(sums?.ms ?? [])).toEqual({ 'made-late': 500, line: 3500, worker: 1000 });
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

describe('a promise of lateness', () => {
  const slo = (month?: string) => sloOf({ redis, namespace }, 'emails', month);
  /** The clock of Redis is that of this machine. */
  const nowMinute = () => Math.floor(Date.now() / MINUTE_MS);
  /** So many starts in time and late ones in a minute that ends so long ago, under a leader that has noted the promise. */
  async function counts(lead: ReturnType<typeof leader>, minute: number, { kept = 0, late = 0, withinMs = 1000 }) {
    await addKept(redis, ref.keys, { withinMs, kept, late });
    await does('done', kept + late);
    await lead.at(minute);
  }
  const promises = (said: LatenessOptions = {}) =>
    declareQueue(redis, { namespace, queue: 'emails', partitions: 1, ...parseSettings({ lateness: said }) });
  async function begun(ago: number, said: LatenessOptions = {}) {
    await promises(said);
    const minute = nowMinute() - ago;
    const lead = leader(minute);
    lead.now.lateness = promised(said);
    await lead.at(minute);
    await lead.at(minute + 1);
    return { lead, from: minute + 1 };
  }

  test('counts starts by workers, once, from the minute on in which a leader has seen it', async () => {
    const [lead, one] = [leader(M0, true, ref, false), worker({ withinMs: 30 })];
    lead.now.lateness = promised({ within: '30ms' });
    await lead.at(M0);
    one.starts(31);
    await one.endsMinute();
    await lead.at(M0 + 1);
    for (const lateMs of [0, 30, 31]) one.starts(lateMs);
    await one.endsMinute();
    await lead.at(M0 + 2);
    await makeHours(redis, [ref], { from: Math.floor(M0 / 60), to: Math.floor(M0 / 60) });
    const [hour] = (await readHours(redis, ref, { from: 0, to: 1e6 })).values();
    // What was late before the promise began is none of it.
    expect(hour?.promised).toMatchObject({ since: M0 + 1, kept: 2, late: 1, expired: 0, withinMs: 30, of: 0.99 });
  });

  test('is kept as long as the budget lasts, and what is late, expired or stands is of it', async () => {
    const { lead, from } = await begun(100);
    await counts(lead, from + 1, { kept: 3000 });
    await counts(lead, from + 2, { kept: 990, late: 8 });
    await does('expired', 2);
    await lead.at(from + 3);
    expect(await slo()).toMatchObject({
      jobs: 4000,
      late: 8,
      expired: 2,
      standing: 0,
      budget: 40,
      left: 30,
      kept: true,
      alert: 'ticket',
    });
    const dueMs = Date.now() - 5000;
    await redis.zadd(ref.keys.scheduled, ...Array.from({ length: 31 }, (_, nth) => [dueMs, `j:${nth}`]).flat());
    expect(await slo()).toMatchObject({ standing: 31, kept: false, left: expect.closeTo(-0.69, 2) });
    expect(await lateness({ redis, namespace } as Subject)).toMatchObject({
      status: 'fail',
      saw: expect.stringContaining('31 standing'),
    });
  });

  test('is broken by a queue in which nothing starts', async () => {
    await begun(100);
    expect(await slo()).toMatchObject({ jobs: 0, share: null, kept: true });
    const dueMs = Date.now() - 5000;
    await redis.zadd(ref.keys.scheduled, ...Array.from({ length: 6 }, (_, nth) => [dueMs, `j:${nth}`]).flat());
    await redis.zadd(
      ref.keys.scheduled,
      ...Array.from({ length: 5 }, (_, nth) => [2 ** 52 + dueMs, `j:line${nth}`]).flat(),
    );
    await redis.xgroup('CREATE', ref.keys.ready, 'workers', '0', 'MKSTREAM');
    for (let nth = 0; nth < 4; nth += 1)
      await redis.xadd(ref.keys.ready, '*', 'member', `j:r${nth}`, 'due', String(nth === 0 ? Date.now() : dueMs));
    expect(await slo()).toMatchObject({ jobs: 14, standing: 14, share: 0, kept: false, alert: 'page' });
  });

  test('that is changed begins anew, and so does the same one after another', async () => {
    const { lead, from } = await begun(200);
    await counts(lead, from + 1, { kept: 5, late: 50 });
    expect(await slo()).toMatchObject({ late: 50, kept: false, sinceMs: from * MINUTE_MS });
    await promises({ of: 0.9 });
    lead.now.lateness = promised({ of: 0.9 });
    await lead.at(from + 2);
    expect(await slo()).toMatchObject({ of: 0.9, jobs: 0, kept: true, sinceMs: (from + 2) * MINUTE_MS });
    await counts(lead, from + 3, { kept: 4, late: 1 });
    expect(await slo()).toMatchObject({ jobs: 5, late: 1, kept: true });
    await promises({});
    lead.now.lateness = promised({});
    await lead.at(from + 4);
    expect(await slo()).toMatchObject({ of: 0.99, jobs: 0 });
  });

  test('that is taken back is over, also where nothing else is kept by the minute: the same one, made later, begins then', async () => {
    await promises({});
    const first = leader(M0, true, ref, false);
    first.now.lateness = promised({});
    await first.at(M0);
    await first.at(M0 + 1);
    expect(await notedOf(redis, ref)).toMatchObject({ since: M0 + 1 });
    await declareQueue(redis, { namespace, queue: 'emails', partitions: 1, ...parseSettings({ lateness: false }) });
    // Whoever leads by then.
    const lead = leader(M0 + 2, true, ref, false);
    await lead.at(M0 + 2);
    expect(await notedOf(redis, ref)).toBeUndefined();
    await promises({});
    lead.now.lateness = promised({});
    await lead.at(M0 + 600);
    await lead.at(M0 + 601);
    expect(await notedOf(redis, ref)).toMatchObject({ since: M0 + 601 });
  });

  test('is not taken back by a leader that does not know of it yet', async () => {
    await promises({});
    const [lead, other] = [leader(M0, true, ref, false), leader(M0, true, ref, false)];
    lead.now.lateness = promised({});
    await lead.at(M0);
    await lead.at(M0 + 1);
    await other.at(M0 + 2);
    expect(await notedOf(redis, ref)).toMatchObject({ since: M0 + 1 });
  });

  test('is told over hours, days and the minutes of now, and of a month that is over', async () => {
    await promises({});
    const start = Math.floor(nowMinute() / 1440 - 40) * 1440;
    const lead = leader(start);
    lead.now.lateness = promised({});
    await lead.at(start);
    await lead.at(start + 1);
    await counts(lead, start + 2, { kept: 100, late: 7 });
    await lead.at(start + 62);
    // Ten days later, within the last 30.
    const later = start + 11 * 1440;
    await lead.at(later);
    await lead.at(later + 1);
    await counts(lead, later + 2, { kept: 50, late: 3 });
    await lead.at(later + 62);
    const now = nowMinute();
    await lead.at(now - 5);
    await lead.at(now - 4);
    await counts(lead, now - 3, { kept: 9, late: 1 });
    expect(await slo()).toMatchObject({ jobs: 63, late: 4, overMs: 30 * 86_400_000 });
    const month = new Date(start * MINUTE_MS).toISOString().slice(0, 7);
    const isOne = month === new Date(later * MINUTE_MS).toISOString().slice(0, 7);
    expect(await slo(month)).toMatchObject({ jobs: isOne ? 160 : 107, late: isOne ? 10 : 7, burn: null, alert: null });
    await expect(slo('1999-12')).rejects.toMatchObject({ code: 'not-found' });
    await expect(slo('2026-13')).rejects.toMatchObject({ code: 'bad-input' });
  });

  /** Of a worker that started four jobs in this minute: three were later than a second. */
  async function startsLate(minute: number): Promise<void> {
    const one = worker({ minute, withinMs: 1000 });
    one.began('j:a', [0, 10, 14]);
    one.began('j:b', [0, 4000, 4500]);
    one.began('j:{acme}c', [0, 10, 6000], { record: `1abc;w=${(minute * MINUTE_MS + 500).toString(36)}|{}` });
    one.began('j:d', [0, 10, 7000]);
    await one.endsMinute();
  }
  const sorted = (lateBy: ReadonlyMap<string, number> = new Map()) => [...lateBy].sort();

  test('names the worst days, and what held each late start longest', async () => {
    const { lead, from } = await begun(3);
    expect(await slo()).toMatchObject({ worst: [] });
    await startsLate(from);
    await does('expired', 1);
    await lead.at(from + 1);
    const [day, ...others] = (await slo()).worst;
    expect(others).toEqual([]);
    expect(day).toMatchObject({ jobs: 4, share: 0.4 });
    expect((day?.atMs ?? 0) % 86_400_000).toBe(0);
    expect(day?.causes).toEqual([
      { cause: 'worker', text: 'until a worker took it', jobs: 2 },
      { cause: 'promotion', text: 'promotion', jobs: 1 },
    ]);
  });

  test('keeps what held late starts by the hour and the day, also what workers tell when the hour has its line', async () => {
    const { lead, from } = await begun(3);
    const hour = Math.floor(from / 60);
    await startsLate(from);
    await lead.at(from + 1);
    await makeHours(redis, [ref], { from: hour, to: hour });
    const told = async () => {
      const hours = await readHours(redis, ref, { from: hour, to: hour });
      const days = await readDays(redis, ref, { from: Math.floor(hour / 24), to: Math.floor(hour / 24) });
      return [...hours.values(), ...days.values()].map(({ lateBy }) => sorted(lateBy));
    };
    const once = [
      ['promotion', 1],
      ['worker', 2],
    ];
    expect(await told()).toEqual([once, once]);
    await startsLate(from);
    await makeHours(redis, [ref], { from: hour + 1, to: hour + 1 });
    const twice = once.map(([cause, jobs]) => [cause, 2 * Number(jobs)]);
    expect(await told()).toEqual([twice, twice]);
  });

  test('is not told of a queue that promises nothing, and of all queues by name', async () => {
    await expect(slo()).rejects.toMatchObject({ code: 'not-found', message: expect.stringContaining('--lateness 1s') });
    expect((await slos({ redis, namespace })).queues).toEqual([]);
    await promises({});
    expect((await slos({ redis, namespace })).queues.map(({ queue }) => queue)).toEqual(['emails']);
    expect(await lateness({ redis, namespace } as Subject)).toEqual({ status: 'ok', saw: '1 promise kept' });
  });

  test('is exported with its budget and what was late since it began, expired jobs too', async () => {
    await does('expired', 100);
    const { lead, from } = await begun(50);
    await counts(lead, from + 1, { kept: 5, late: 2 });
    await does('expired', 1);
    await lead.at(from + 2);
    const reading = await promiseReading(redis, [{ ...ref, lateness: promised({}) }]);
    expect(reading).toEqual({ budget: 10, spent: 3, standing: 0, late: 3, overMs: 30 * 86_400_000 });
  });
});
