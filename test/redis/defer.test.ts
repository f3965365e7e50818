/** `defer`: a running job was put aside by its handler, and no failure is counted. */
import { describe, expect, test } from 'vitest';
import { decodeRun, encodeDeferral } from '../../src/job/codec.ts';
import { deadLetters } from '../../src/redis/read/inspect.ts';
import { failure, only, T0, usePartition } from '../support/partition.ts';

const p = usePartition();
const runOf = async (member: string) => decodeRun((await p.redis.hget(p.keys.runs, member)) ?? '');

describe('a running job', () => {
  test('goes back to scheduled; its attempt is counted, a failure is not', async () => {
    const claim = await p.running('a');
    expect(await p.defer(claim, { delayMs: 2500 })).toBe('ok');
    expect(await p.picture()).toEqual({
      scheduled: { 'j:a': T0 + 2500 },
      jobs: { 'j:a': 'record' },
      runs: { 'j:a': 'waiting' },
    });
    expect(await runOf('j:a')).toMatchObject({
      token: claim.token,
      attempts: 1,
      failures: 0,
      crashes: 0,
      nextDueMs: T0 + 2500,
      history: [],
    });
    expect(await p.count('deferred')).toBe(1);
  });

  test('tells how often it was put aside, and why it was the last time, whatever failed besides', async () => {
    const aside = async (reason: string) =>
      p.defer(only(await p.run()), { delayMs: 0, why: encodeDeferral({ atMs: T0, reason }) });
    await p.schedule('a');
    await p.promote();
    await aside('~2 "locked"\n');
    // Handed back by its worker, which the handler did not ask for.
    await p.defer(only(await p.run()), { delayMs: 0 });
    for (let nth = 1; nth <= 7; nth += 1) await p.retry(only(await p.run()), { delayMs: 0, error: failure(`${nth}`) });
    await aside('%d held by ann');
    const run = await runOf('j:a');
    expect(run).toMatchObject({ failures: 7, deferred: { times: 2, lastMs: T0, reason: '%d held by ann' } });
    expect(run?.deferred?.starts).toMatchObject([
      { kind: 'deferred', attempt: 1, atMs: T0, reason: '~2 "locked"\n' },
      { kind: 'handed-back', attempt: 2, atMs: T0, worker: 'w1' },
      { kind: 'deferred', attempt: 10, atMs: T0, reason: '%d held by ann' },
    ]);
    expect(run?.history.map(({ message }) => message)).toEqual(['3', '4', '5', '6', '7']);
    await p.bury(only(await p.run()), { error: failure('last') });
    const [letter] = await deadLetters(p.redis, p.ref, { limit: 1 });
    expect(letter).toMatchObject({ failures: 8, crashes: 0, deferred: { times: 2, reason: '%d held by ann' } });
    expect(letter?.history.map(({ message }) => message)).toEqual(['4', '5', '6', '7', 'last']);
  });

  test('keeps the last five starts that were put aside or handed back, whatever their reasons say', async () => {
    const reasons = ['1', '},{"t":2', ',"e":[{"a":3}]}', '{"k":"back"}', '%s', '6 ~7 {}', '7'];
    await p.schedule('a');
    await p.promote();
    for (const reason of reasons) {
      await p.defer(only(await p.run()), {
        delayMs: 0,
        why: encodeDeferral({ atMs: T0, reason, worker: 'w1', tookMs: 3 }),
      });
    }
    await p.defer(only(await p.run()), { delayMs: 0 });
    const { times, reason, starts } = (await runOf('j:a'))?.deferred ?? {};
    expect([times, reason]).toEqual([7, '7']);
    expect(starts?.map((one) => [one.attempt, one.reason])).toEqual([
      ...reasons.slice(3).map((one, at) => [at + 4, one]),
      [8, 'worker w1 stopped'],
    ]);
    expect(starts?.[0]).toEqual({
      kind: 'deferred',
      attempt: 4,
      atMs: T0,
      reason: reasons[3],
      worker: 'w1',
      tookMs: 3,
    });
  });

  test('of a version before this one keeps what that has written', async () => {
    const claim = await p.running('a');
    const text = (await p.redis.hget(p.keys.runs, 'j:a')) ?? '';
    await p.redis.hset(p.keys.runs, 'j:a', `${text}\n~3 ${JSON.stringify({ t: T0, m: 'old' })}`);
    await p.defer(claim, { delayMs: 0, why: encodeDeferral({ atMs: T0 + 1, reason: 'new' }) });
    expect((await runOf('j:a'))?.deferred).toEqual({
      times: 4,
      lastMs: T0 + 1,
      reason: 'new',
      starts: [
        { kind: 'deferred', atMs: T0, reason: 'old' },
        { kind: 'deferred', attempt: 1, atMs: T0 + 1, reason: 'new' },
      ],
    });
  });

  test('keeps the errors of earlier attempts', async () => {
    await p.retry(await p.running('a'), { delayMs: 0, error: failure('boom') });
    await p.defer(only(await p.run()));
    expect(await runOf('j:a')).toMatchObject({ attempts: 2, failures: 1, history: [{ message: 'boom' }] });
  });

  test('nudges a leader that sleeps past its due', async () => {
    const claim = await p.running('a');
    expect(await p.nudgesOf(() => p.defer(claim, { delayMs: 10 }))).toEqual([String(T0 + 10)]);
    expect(await p.meta('wake')).toBe(String(T0 + 10));
  });

  test('that was asked to stop ends cancelled, and is not put aside', async () => {
    const claim = await p.running('a');
    await p.cancel('j:a');
    expect(await p.defer(claim)).toBe('cancelled');
    expect(await p.picture()).toEqual({ jobs: { 'j:a': 'tombstone cancelled' }, done: { 'j:a': T0 } });
    expect([await p.count('deferred'), await p.count('cancelled')]).toEqual([0, 1]);
  });

  test('that was asked to stop leaves nothing when there is no done window', async () => {
    const claim = await p.running('a');
    await p.cancel('j:a');
    expect(await p.defer(claim, { windowMs: 0 })).toBe('cancelled');
    expect(await p.picture()).toEqual({});
  });

  test('of a lost worker is still put aside by its late end, before the next start', async () => {
    const late = await p.running('a');
    await p.reclaim('w1');
    expect(await p.defer(late)).toBe('ok');
    expect(await p.picture()).toMatchObject({ scheduled: { 'j:a': T0 + 1000 }, runs: { 'j:a': 'waiting' } });
    expect(await runOf('j:a')).toMatchObject({ failures: 0, crashes: 1 });
  });
});

describe('is refused without a write', () => {
  test('when the same call was carried out before', async () => {
    const claim = await p.running('a');
    await p.defer(claim);
    expect(await p.withoutWrite(() => p.defer(claim))).toBe('already');
  });

  test('when the same call has ended it as cancelled', async () => {
    const claim = await p.running('a');
    await p.cancel('j:a');
    await p.defer(claim);
    expect(await p.withoutWrite(() => p.defer(claim))).toBe('cancelled');
  });

  test('when the job was settled otherwise by this start', async () => {
    const claim = await p.running('a');
    await p.complete([claim]);
    expect(await p.withoutWrite(() => p.defer(claim))).toBe('already');
  });

  test('when a newer start runs', async () => {
    const old = await p.running('a');
    const { deliveries } = await p.reclaim('w1');
    await p.start(deliveries, { consumer: 'w2' });
    expect(await p.withoutWrite(() => p.defer(old))).toBe('fenced');
  });

  test('when a newer start has settled it', async () => {
    const old = await p.running('a');
    const { deliveries } = await p.reclaim('w1');
    await p.complete(await p.claim(deliveries, 'w2'));
    expect(await p.withoutWrite(() => p.defer(old))).toBe('gone');
  });

  test('when the job was never there', async () => {
    const claim = await p.running('a');
    expect(await p.withoutWrite(() => p.defer({ ...claim, member: 'j:nobody' }))).toBe('gone');
  });
});

test('a bare member that was put again while it ran keeps the due of its producer', async () => {
  await p.put('a', T0);
  const claim = only(await p.run());
  await p.put('a', T0 + 7);
  expect(await p.defer(claim, { delayMs: 9000 })).toBe('ok');
  expect(await p.picture()).toEqual({ scheduled: { a: T0 + 7 }, jobs: { a: 'record' }, runs: { a: 'waiting' } });
});
