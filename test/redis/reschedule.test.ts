/** `reschedule`: a job that waits gets another due time, and keeps everything else. */
import { describe, expect, test } from 'vitest';
import { decodeRun } from '../../src/job/codec.ts';
import { item, only, T0, usePartition, WINDOW_MS } from '../support/partition.ts';

const p = usePartition();
const runOf = async (member: string) => decodeRun((await p.redis.hget(p.keys.runs, member)) ?? '');
const LATER = T0 + 5000;

describe('a job in scheduled', () => {
  test('is due at the new time, and its record stays as it is', async () => {
    await p.schedule('a', { dueMs: T0 + 9, data: 1 });
    expect(await p.reschedule('j:a', LATER)).toEqual({ kind: 'ok', wasMs: T0 + 9, dueMs: LATER });
    expect(await p.picture()).toEqual({
      scheduled: { 'j:a': LATER },
      jobs: { 'j:a': 'record' },
      runs: { 'j:a': 'waiting' },
    });
    expect(await p.redis.hget(p.keys.jobs, 'j:a')).toBe(item('a', { dueMs: T0 + 9, data: 1 }).record);
    expect(await p.count('rescheduled')).toBe(1);
  });

  test('runs at the new time and not before, as its first attempt', async () => {
    await p.schedule('a', { dueMs: T0 });
    await p.reschedule('j:a', LATER);
    expect(await p.run({ nowMs: LATER - 1 })).toEqual([]);
    const [reply] = await p.start(await p.deliver({ nowMs: LATER }));
    expect(reply).toMatchObject({ kind: 'run', attempts: 1, failures: 0, generation: 0 });
  });

  test('can be due now', async () => {
    await p.schedule('a', { dueMs: T0 + 9 });
    expect(await p.reschedule('j:a', 0, { nowMs: T0 + 1 })).toEqual({ kind: 'ok', wasMs: T0 + 9, dueMs: T0 + 1 });
    expect(await p.run({ nowMs: T0 + 1 })).toHaveLength(1);
  });

  test('waits for a retry: attempts, failures and history stay', async () => {
    await p.retry(await p.running('a'));
    const { token, attempts, failures, history } = (await runOf('j:a')) ?? {};
    expect(await p.reschedule('j:a', LATER)).toMatchObject({ kind: 'ok', wasMs: T0 + 1000 });
    expect(await runOf('j:a')).toMatchObject({ token, attempts, failures, history, nextDueMs: LATER });
    const [reply] = await p.start(await p.deliver({ nowMs: LATER }));
    expect(reply).toMatchObject({ kind: 'run', attempts: 2, failures: 1 });
  });

  test('that a foreign producer put has no record yet, and gets none', async () => {
    await p.put('order-1', T0 + 9);
    expect(await p.reschedule('order-1', LATER)).toEqual({ kind: 'ok', wasMs: T0 + 9, dueMs: LATER });
    expect(await p.picture()).toEqual({ scheduled: { 'order-1': LATER } });
    expect(await p.run({ nowMs: LATER })).toHaveLength(1);
  });

  test('is known by the call that made it', async () => {
    await p.schedule('a', { dueMs: T0 + 9, data: 1 });
    await p.reschedule('j:a', LATER);
    const again = await p.withoutWrite(() => p.schedule('a', { dueMs: T0 + 9, data: 1 }));
    expect(again).toEqual({ kind: 'already', over: undefined });
    expect(await p.schedule('a', { dueMs: T0 + 9, data: 2 })).toEqual({ kind: 'exists', dueMs: LATER });
  });

  test('is late by its new due time', async () => {
    await p.schedule('a', { dueMs: T0, late: { maxLatenessMs: 100 } });
    await p.reschedule('j:a', LATER);
    const [reply] = await p.start(await p.deliver({ nowMs: LATER }), { nowMs: LATER + 100 });
    expect(reply).toMatchObject({ kind: 'run' });
  });

  test('is not put behind its expiry, where it could never start; now and before are fine', async () => {
    const expiresAtMs = T0 + 100;
    await p.schedule('a', { dueMs: T0 + 9, late: { expiresAtMs } });
    const refused = await p.withoutWrite(() => p.reschedule('j:a', expiresAtMs + 1));
    expect(refused).toEqual({ kind: 'expires', expiresAtMs });
    expect(await p.reschedule('j:a', expiresAtMs)).toMatchObject({ kind: 'ok', dueMs: expiresAtMs });
    expect(await p.reschedule('j:a', 0, { nowMs: expiresAtMs - 1 })).toMatchObject({ kind: 'ok' });
    await p.schedule('b', { dueMs: T0 + 9, late: { expiresAtMs, onLate: 'run' } });
    expect(await p.reschedule('j:b', LATER)).toMatchObject({ kind: 'ok' });
  });

  test('tells the leader when it is due sooner than the next look', async () => {
    await p.schedule('a', { dueMs: LATER });
    await p.promote();
    expect(await p.nudgesOf(() => p.reschedule('j:a', T0 + 7))).toEqual([String(T0 + 7)]);
    expect(await p.nudgesOf(() => p.reschedule('j:a', LATER))).toEqual([]);
  });
});

describe('a job in ready', () => {
  test('waits for its time again, and its entry is dropped', async () => {
    await p.schedule('a');
    await p.promote();
    expect(await p.reschedule('j:a', LATER)).toEqual({ kind: 'ok', wasMs: undefined, dueMs: LATER });
    expect(await p.picture()).toMatchObject({ scheduled: { 'j:a': LATER }, ready: ['j:a'] });
    expect(await p.redis.zscore(p.keys.stale, 'j:a')).toBe(String(T0));
    expect(await p.start(await p.read())).toMatchObject([{ kind: 'dropped' }]);
    expect(await p.run({ nowMs: LATER })).toHaveLength(1);
  });

  test('in the hands of a worker that has not started it does not start', async () => {
    await p.schedule('a');
    const deliveries = await p.deliver();
    await p.reschedule('j:a', LATER);
    expect(await p.start(deliveries)).toMatchObject([{ kind: 'dropped' }]);
  });

  test('leaves no false dead letter where its end is not remembered', async () => {
    await p.schedule('a');
    await p.promote();
    await p.reschedule('j:a', LATER);
    await p.promote({ nowMs: LATER });
    const [first, second] = await p.read();
    if (!first || !second) throw new Error('two entries were expected');
    const claims = await p.claim([second]);
    expect(await p.complete(claims, { windowMs: 0 })).toEqual(['ok']);
    expect(await p.start([first], { windowMs: 0 })).toMatchObject([{ kind: 'dropped' }]);
    expect(await p.count('refused')).toBe(0);
  });

  test('whose worker was lost leaves that start: its late end has no effect', async () => {
    const claim = await p.running('a');
    await p.reclaim('w1');
    expect(await p.reschedule('j:a', LATER)).toMatchObject({ kind: 'ok' });
    expect(await p.complete([claim])).toEqual(['fenced']);
    expect(await p.run({ nowMs: LATER, consumer: 'w2' })).toHaveLength(1);
  });

  test('stays where it is when it would be due again', async () => {
    await p.schedule('a');
    await p.promote();
    expect(await p.withoutWrite(() => p.reschedule('j:a', 0))).toEqual({ kind: 'ready' });
    expect(await p.withoutWrite(() => p.reschedule('j:a', T0 - 9))).toEqual({ kind: 'ready' });
    expect(await p.withoutWrite(() => p.reschedule('j:a', LATER, { mode: 'earlier' }))).toEqual({ kind: 'ready' });
  });

  test('again after a foreign producer put it meanwhile leaves a note of its entry', async () => {
    await p.put('a', T0);
    await p.promote();
    await p.put('a', T0 + 50);
    expect(await p.reschedule('a', LATER)).toMatchObject({ kind: 'ok', wasMs: T0 + 50 });
    expect(await p.redis.zscore(p.keys.stale, 'a')).toBe(String(T0));
  });
});

describe('is refused without a write', () => {
  test('while the job runs, and when it is over or unknown', async () => {
    const claim = await p.running('runs');
    await p.complete([await p.running('done')]);
    expect(await p.withoutWrite(() => p.reschedule('j:runs', LATER))).toEqual({ kind: 'running' });
    expect(await p.withoutWrite(() => p.reschedule('j:done', LATER))).toEqual({ kind: 'over', over: 'done' });
    expect(await p.withoutWrite(() => p.reschedule('j:nobody', LATER))).toEqual({ kind: 'unknown' });
    expect(await p.withoutWrite(() => p.reschedule('nobody', LATER))).toEqual({ kind: 'unknown' });
    await p.complete([claim]);
  });

  test('when it has been started since the caller looked', async () => {
    const claim = await p.running('a');
    await p.retry(claim);
    expect(await p.withoutWrite(() => p.reschedule('j:a', LATER, { seen: '0' }))).toEqual({ kind: 'started' });
    expect(await p.reschedule('j:a', LATER, { seen: claim.token })).toMatchObject({ kind: 'ok' });
  });

  test('when only says so', async () => {
    await p.schedule('a', { dueMs: T0 + 9 });
    const kept = { kind: 'kept', dueMs: T0 + 9 };
    expect(await p.withoutWrite(() => p.reschedule('j:a', T0 + 10, { mode: 'earlier' }))).toEqual(kept);
    expect(await p.withoutWrite(() => p.reschedule('j:a', T0 + 8, { mode: 'later' }))).toEqual(kept);
    expect(await p.reschedule('j:a', T0 + 8, { mode: 'earlier' })).toMatchObject({ kind: 'ok' });
    expect(await p.reschedule('j:a', T0 + 10, { mode: 'later' })).toMatchObject({ kind: 'ok' });
  });

  test('when its due time is that one, however often it is asked', async () => {
    await p.schedule('a', { dueMs: T0 + 9 });
    await p.reschedule('j:a', LATER);
    expect(await p.withoutWrite(() => p.reschedule('j:a', LATER))).toEqual({ kind: 'already', dueMs: LATER });
  });

  test.each([
    ['in seconds', 1_763_719_000],
    ['beyond the horizon', T0 + 101],
    ['no number', Number.NaN],
  ])('when the due time is %s', async (_, dueMs) => {
    await p.schedule('a', { dueMs: T0 + 9 });
    const reply = await p.withoutWrite(() => p.reschedule('j:a', dueMs, { horizonMs: 100 }));
    expect(reply).toEqual({ kind: 'bad-due', nowMs: T0 });
  });

  test('when the partition has another generation', async () => {
    await p.schedule('a');
    const elsewhere = { ...p.ref, layoutGeneration: 1 };
    const asked = { member: 'j:a', dueMs: LATER, mode: 'any' } as const;
    const reply = await p.withoutWrite(() => p.jobs.reschedule(elsewhere, [asked], { horizonMs: 1e9, nowMs: T0 }));
    expect(reply).toEqual({ kind: 'moved', layoutGeneration: 0 });
  });
});

test('many jobs are rescheduled in one call, and each is answered in its place', async () => {
  await p.scheduleAll([item('a', { dueMs: T0 + 9 }), item('b', { dueMs: T0 + 9 })]);
  const asked = ['j:a', 'j:nobody', 'j:b'].map((member, at) => ({ member, dueMs: LATER + at, mode: 'any' as const }));
  expect(await p.jobs.reschedule(p.ref, asked, { horizonMs: 1e9, nowMs: T0 })).toEqual([
    { kind: 'ok', wasMs: T0 + 9, dueMs: LATER },
    { kind: 'unknown' },
    { kind: 'ok', wasMs: T0 + 9, dueMs: LATER + 2 },
  ]);
  expect(await p.count('rescheduled')).toBe(2);
});

test('a cancelled job is over, and a rescheduled one can be cancelled', async () => {
  await p.schedule('a', { dueMs: T0 + 9 });
  await p.reschedule('j:a', LATER);
  expect(await p.cancel('j:a', { windowMs: WINDOW_MS })).toEqual({ kind: 'cancelled' });
  expect(only(Object.values((await p.picture()).jobs ?? {}))).toBe('tombstone cancelled');
  expect(await p.reschedule('j:a', LATER)).toEqual({ kind: 'over', over: 'cancelled' });
});
