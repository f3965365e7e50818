/** `sweep`: stubs past the done window and letters past their retention go, and nothing else does. */
import { describe, expect, test } from 'vitest';
import { type SweepLimits, sweep } from '../../src/redis/lease.ts';
import { item, only, T0, usePartition, WINDOW_MS } from '../support/partition.ts';

const p = usePartition();
const LIMITS: SweepLimits = {
  batch: 100,
  windowMs: WINDOW_MS,
  stubsMax: 10_000,
  retentionMs: 3_600_000,
  lettersMax: 100_000,
};

async function swept({ nowMs = T0, ...limits }: Partial<SweepLimits> & { nowMs?: number }) {
  return sweep(p.redis, p.ref, { term: await p.lead(), limits: { ...LIMITS, ...limits }, nowMs });
}

async function done(...ids: string[]): Promise<void> {
  await p.scheduleAll(ids.map((id) => item(id)));
  const claims = await p.run();
  for (const [at, claim] of claims.entries()) await p.complete([claim], { nowMs: T0 + at });
}

describe('stubs', () => {
  test('stay for the whole window, and go one millisecond after it', async () => {
    await done('a');
    expect(await swept({ nowMs: T0 + WINDOW_MS })).toEqual({ stubs: 0, letters: 0 });
    expect(await swept({ nowMs: T0 + WINDOW_MS + 1 })).toEqual({ stubs: 1, letters: 0 });
    expect(await p.picture()).toEqual({});
  });

  test('above their number go, the oldest first', async () => {
    await done('a', 'b', 'c');
    expect(await swept({ stubsMax: 1 })).toEqual({ stubs: 2, letters: 0 });
    expect(await p.picture()).toEqual({ jobs: { 'j:c': 'stub done' }, done: { 'j:c': T0 + 2 } });
  });

  test('go in bounded batches', async () => {
    await done('a', 'b', 'c');
    const far = { nowMs: T0 + 10 * WINDOW_MS, batch: 2 };
    expect(await swept(far)).toEqual({ stubs: 2, letters: 0 });
    expect(await swept(far)).toEqual({ stubs: 1, letters: 0 });
    expect(await swept(far)).toEqual({ stubs: 0, letters: 0 });
  });

  test('of a new life are records again and are never deleted', async () => {
    await done('a');
    await p.schedule('a', { data: 'new life' });
    await p.redis.zadd(p.keys.done, T0, 'j:a');
    expect(await swept({ nowMs: T0 + 10 * WINDOW_MS })).toEqual({ stubs: 1, letters: 0 });
    expect(await p.picture()).toEqual({ scheduled: { 'j:a': T0 }, jobs: { 'j:a': 'record' } });
  });

  test('that wait for their ready entry stay', async () => {
    await p.schedule('a');
    await p.promote();
    await p.cancel('j:a');
    await swept({ nowMs: T0 + 10 * WINDOW_MS });
    expect(await p.picture()).toEqual({ jobs: { 'j:a': 'stub cancelled' }, ready: ['j:a'] });
  });
});

describe('letters', () => {
  const timeOf = (letter: string) => Number(letter.split('-')[0]);

  test('stay for their retention, and go after it', async () => {
    const at = timeOf(await p.dead('a'));
    expect(await swept({ nowMs: at + 3_600_000, stubsMax: 0 })).toMatchObject({ letters: 0 });
    expect(await swept({ nowMs: at + 3_600_001 })).toMatchObject({ letters: 1 });
    expect(await p.redis.xlen(p.keys.dead)).toBe(0);
    expect(await p.count('forgotten')).toBe(1);
  });

  test('above their number go, the oldest first', async () => {
    await p.dead('a');
    await p.dead('b');
    await p.dead('c');
    expect(await swept({ lettersMax: 1 })).toMatchObject({ letters: 2 });
    expect((await p.picture()).dead).toEqual(['j:c: attempts']);
  });

  test('go in bounded batches', async () => {
    const at = timeOf(await p.dead('a'));
    await p.dead('b');
    await p.dead('c');
    const far = { nowMs: at + 100_000_000, batch: 2 };
    expect(await swept(far)).toMatchObject({ letters: 2 });
    expect(await swept(far)).toMatchObject({ letters: 1 });
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
  expect(await p.withoutWrite(() => swept({ nowMs: T0 + 10 * WINDOW_MS }))).toEqual({ stubs: 0, letters: 0 });
  expect(only(await p.run()).member).toBe('j:a');
});
