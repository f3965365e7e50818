/** `sweep`: tombstones past the done window and dead letters past their retention go, and nothing else does. */
import { describe, expect, test } from 'vitest';
import { type SweepLimits, sweep } from '../../src/redis/scripts/lease.ts';
import { item, only, T0, usePartition, WINDOW_MS } from '../support/partition.ts';

const p = usePartition();
const LIMITS: SweepLimits = {
  batch: 100,
  windowMs: WINDOW_MS,
  tombstonesMax: 10_000,
  floorMs: 60_000,
  retentionMs: 3_600_000,
  deadLettersMax: 100_000,
};

async function swept({ nowMs = T0, ...limits }: Partial<SweepLimits> & { nowMs?: number }) {
  return sweep(p.redis, p.ref, { term: await p.lead(), limits: { ...LIMITS, ...limits }, nowMs });
}

const NOTHING = { tombstones: 0, deadLetters: 0, more: false, past: 0 };

async function done(...ids: string[]): Promise<void> {
  await p.scheduleAll(ids.map((id) => item(id)));
  const claims = await p.run();
  for (const [at, claim] of claims.entries()) await p.complete([claim], { nowMs: T0 + at });
}

describe('tombstones', () => {
  test('stay for the whole window, and go one millisecond after it', async () => {
    await done('a');
    expect(await swept({ nowMs: T0 + WINDOW_MS })).toEqual(NOTHING);
    expect(await swept({ nowMs: T0 + WINDOW_MS + 1 })).toEqual({ tombstones: 1, deadLetters: 0, more: false, past: 0 });
    expect(await p.picture()).toEqual({});
  });

  test('above their number go, the oldest first', async () => {
    await done('a', 'b', 'c');
    expect(await swept({ nowMs: T0 + 100_000, tombstonesMax: 1 })).toEqual({
      tombstones: 2,
      deadLetters: 0,
      more: false,
      past: 0,
    });
    expect(await p.picture()).toEqual({ jobs: { 'j:c': 'tombstone done' }, done: { 'j:c': T0 + 2 } });
  });

  test('above their number stay until they are older than the floor', async () => {
    await done('a', 'b', 'c');
    const few = { tombstonesMax: 0, floorMs: 60_000 };
    expect(await swept({ ...few, nowMs: T0 + 60_000 })).toEqual(NOTHING);
    expect(await swept({ ...few, nowMs: T0 + 60_001 })).toEqual({
      tombstones: 1,
      deadLetters: 0,
      more: false,
      past: 0,
    });
    expect(await p.picture()).toEqual({
      jobs: { 'j:b': 'tombstone done', 'j:c': 'tombstone done' },
      done: { 'j:b': T0 + 1, 'j:c': T0 + 2 },
    });
    expect(await swept({ ...few, nowMs: T0 + 60_003 })).toMatchObject({ tombstones: 2 });
  });

  test('above their number and past the window go in one call, and a floor above the window keeps none longer', async () => {
    await done('a', 'b', 'c');
    const past = { nowMs: T0 + WINDOW_MS + 2, tombstonesMax: 2 };
    expect(await swept({ ...past, floorMs: 10 * WINDOW_MS })).toEqual({
      tombstones: 2,
      deadLetters: 0,
      more: false,
      past: 0,
    });
    expect(Object.keys((await p.picture()).done ?? {})).toEqual(['j:c']);
  });

  test('that were there when the clock went back go by the new clock, after those that came since', async () => {
    await p.scheduleAll([item('a'), item('b')]);
    const [a, b] = await p.run();
    if (a && b) {
      await p.complete([a], { nowMs: T0 + 3_600_000 });
      await p.complete([b], { nowMs: T0 });
    }
    expect(await swept({ nowMs: T0 + 60_001, tombstonesMax: 0 })).toMatchObject({ tombstones: 1 });
    expect(Object.keys((await p.picture()).done ?? {})).toEqual(['j:a']);
  });

  describe('that went by their number are told', () => {
    const evicted = () => p.redis.hget(p.keys.meta, 'evicted');
    const few = { tombstonesMax: 1, floorMs: 10 };

    test('with the age of the youngest, until a whole window has passed without one', async () => {
      await done('a', 'b', 'c', 'd');
      await swept({ nowMs: T0 + 1000, batch: 1, ...few });
      expect(await evicted()).toBe(`1000 ${T0 + 1000}`);
      await swept({ nowMs: T0 + 500, batch: 1, ...few });
      expect(await evicted()).toBe(`499 ${T0 + 500}`);
      await swept({ nowMs: T0 + 2000, batch: 1, ...few });
      expect(await evicted()).toBe(`499 ${T0 + 500}`);
      await swept({ nowMs: T0 + 500 + WINDOW_MS });
      expect(await evicted()).toBe(`499 ${T0 + 500}`);
      await swept({ nowMs: T0 + 501 + WINDOW_MS });
      expect(await evicted()).toBeNull();
    });

    test('anew when the last one is older than a window, also if it was younger', async () => {
      await done('a', 'b', 'c');
      await swept({ nowMs: T0 + 100, batch: 1, ...few });
      await p.redis.zadd(p.keys.done, 'XX', T0 + WINDOW_MS, 'j:b', T0 + WINDOW_MS + 1, 'j:c');
      await swept({ nowMs: T0 + WINDOW_MS + 5000, ...few });
      expect(await evicted()).toBe(`5000 ${T0 + WINDOW_MS + 5000}`);
    });

    test('not when their window was over, nor where none is kept', async () => {
      await done('a', 'b');
      await swept({ nowMs: T0 + WINDOW_MS + 1, batch: 1, ...few });
      await swept({ nowMs: T0 + 100, tombstonesMax: 0, floorMs: 0, windowMs: 0 });
      expect([await evicted(), await p.redis.zcard(p.keys.done)]).toEqual([null, 0]);
    });
  });

  test('whose field is a large record are not read', async () => {
    await p.redis.zadd(p.keys.done, T0, 'j:a');
    await p.schedule('a', { data: 'x'.repeat(100_000) });
    await p.redis.zadd(p.keys.done, T0, 'j:a');
    await swept({ nowMs: T0 + 10 * WINDOW_MS });
    expect(await p.picture()).toEqual({ scheduled: { 'j:a': T0 }, jobs: { 'j:a': 'record' } });
  });

  test('go in bounded batches', async () => {
    await done('a', 'b', 'c');
    const far = { nowMs: T0 + 10 * WINDOW_MS, batch: 2 };
    expect(await swept(far)).toEqual({ tombstones: 2, deadLetters: 0, more: true, past: 0 });
    expect(await swept(far)).toEqual({ tombstones: 1, deadLetters: 0, more: false, past: 0 });
    expect(await swept(far)).toEqual(NOTHING);
  });

  test('are read in steps, and a call of 500 takes them all', async () => {
    await p.redis.zadd(p.keys.done, ...Array.from({ length: 730 }, (_, at) => [T0 + at, `j:${at}`]).flat());
    await p.redis.hset(
      p.keys.jobs,
      Object.fromEntries(Array.from({ length: 730 }, (_, at) => [`j:${at}`, '.d0 0 0 0 -'])),
    );
    const far = { nowMs: T0 + 10 * WINDOW_MS, batch: 500 };
    expect(await swept(far)).toEqual({ tombstones: 500, deadLetters: 0, more: true, past: 0 });
    expect(await swept(far)).toEqual({ tombstones: 230, deadLetters: 0, more: false, past: 0 });
    expect(await p.redis.exists(p.keys.jobs)).toBe(0);
  });

  test('of a new life are records again and are never deleted', async () => {
    await done('a');
    await p.schedule('a', { data: 'new life' });
    await p.redis.zadd(p.keys.done, T0, 'j:a');
    expect(await swept({ nowMs: T0 + 10 * WINDOW_MS })).toEqual({
      tombstones: 1,
      deadLetters: 0,
      more: false,
      past: 0,
    });
    expect(await p.picture()).toEqual({ scheduled: { 'j:a': T0 }, jobs: { 'j:a': 'record' } });
  });

  test('that wait for their ready entry stay', async () => {
    await p.schedule('a');
    await p.promote();
    await p.cancel('j:a');
    await swept({ nowMs: T0 + 10 * WINDOW_MS });
    expect(await p.picture()).toEqual({ jobs: { 'j:a': 'tombstone cancelled' }, ready: ['j:a'] });
  });
});

describe('dead letters', () => {
  const timeOf = (deadLetter: string) => Number(deadLetter.split('-')[0]);

  test('stay for their retention, and go after it', async () => {
    const at = timeOf(await p.dead('a'));
    expect(await swept({ nowMs: at + 3_600_000, tombstonesMax: 0 })).toMatchObject({ deadLetters: 0 });
    expect(await swept({ nowMs: at + 3_600_001 })).toMatchObject({ deadLetters: 1 });
    expect(await p.redis.xlen(p.keys.dead)).toBe(0);
    expect(await p.count('forgotten')).toBe(1);
  });

  test('above their number go, the oldest first', async () => {
    await p.dead('a');
    await p.dead('b');
    await p.dead('c');
    expect(await swept({ deadLettersMax: 1 })).toMatchObject({ deadLetters: 2 });
    expect((await p.picture()).dead).toEqual(['j:c: attempts']);
  });

  test('go in bounded batches', async () => {
    const at = timeOf(await p.dead('a'));
    await p.dead('b');
    await p.dead('c');
    const far = { nowMs: at + 100_000_000, batch: 2 };
    expect(await swept(far)).toMatchObject({ deadLetters: 2, more: true, past: 0 });
    expect(await swept(far)).toMatchObject({ deadLetters: 1, more: false, past: 0 });
  });

  test('go 256 KiB at a time, their members and reasons counted, and the first whatever its size', async () => {
    const deadLetter = (member: string, reason = 'bad-member') =>
      p.redis.xadd(p.keys.dead, '*', 'member', member, 'record', '', 'reason', reason);
    for (const size of [200_000, 200_000, 1]) await deadLetter('x'.repeat(size));
    for (const size of [300_000, 1]) await deadLetter('j:a', 'x'.repeat(size));
    const far = { nowMs: Date.now() + 100_000_000 };
    for (const deadLetters of [2, 2, 1])
      expect(await swept(far)).toMatchObject({ deadLetters, more: deadLetters === 2 });
  });
});

describe('notes of stale entries', () => {
  const noted = () => p.redis.zrange(p.keys.stale, '0', '-1');

  test('are never more than ready has entries: the oldest go, in bounded batches', async () => {
    await p.schedule('waits');
    await p.promote();
    await p.redis.zadd(p.keys.stale, T0, 'j:a', T0, 'j:b', T0 + 1, 'j:c', T0 + 2, 'j:d');
    expect(await swept({ nowMs: T0, batch: 1 })).toMatchObject({ more: true });
    expect(await noted()).toEqual(['j:b', 'j:c', 'j:d']);
    expect(await swept({ nowMs: T0 })).toMatchObject({ more: false });
    expect(await noted()).toEqual(['j:d']);
    await swept({ nowMs: T0 + 40 * 86_400_000 });
    expect(await noted()).toEqual(['j:d']);
  });

  test('go as soon as ready is empty', async () => {
    await p.redis.zadd(p.keys.stale, T0, 'j:a', T0, 'j:b');
    expect(await swept({ nowMs: T0 })).toEqual(NOTHING);
    expect(await noted()).toEqual([]);
  });
});

describe('a term that does not lead', () => {
  test('is refused without a write', async () => {
    await done('a');
    const call = () => sweep(p.redis, p.ref, { term: 'm9:1:5000', limits: LIMITS, nowMs: T0 + 10 * WINDOW_MS });
    expect(await p.withoutWrite(call)).toBe('fenced');
  });
});

test('nothing to sweep writes nothing', async () => {
  await p.lead();
  await p.schedule('a');
  expect(await p.withoutWrite(() => swept({ nowMs: T0 + 10 * WINDOW_MS }))).toEqual(NOTHING);
  expect(only(await p.run()).member).toBe('j:a');
});
