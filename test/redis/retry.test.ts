/** `retry`: a running job failed and goes back to scheduled after its backoff. */
import { describe, expect, test } from 'vitest';
import { decodeRun } from '../../src/job/codec.ts';
import type { Claim } from '../../src/redis/scripts/replies.ts';
import { failure, only, T0, usePartition } from '../support/partition.ts';

const p = usePartition();
const runOf = async (member: string) => decodeRun((await p.redis.hget(p.keys.runs, member)) ?? '');

describe('a running job', () => {
  test('goes back to scheduled, with one failure more and its error', async () => {
    const claim = await p.running('a');
    expect(await p.retry(claim, { delayMs: 2500, error: failure('boom') })).toBe('ok');
    expect(await p.picture()).toEqual({
      scheduled: { 'j:a': T0 + 2500 },
      jobs: { 'j:a': 'record' },
      runs: { 'j:a': 'waiting' },
    });
    expect(await runOf('j:a')).toMatchObject({
      token: claim.token,
      attempts: 1,
      failures: 1,
      crashes: 0,
      nextDueMs: T0 + 2500,
      cancelRequested: false,
      history: [{ atMs: T0, attempt: 1, kind: 'failure', message: 'boom' }],
    });
    expect(await p.count('retried')).toBe(1);
  });

  test('may be tried again at once', async () => {
    await p.retry(await p.running('a'), { delayMs: 0 });
    expect((await p.run()).map(({ member }) => member)).toEqual(['j:a']);
  });

  test('keeps its last five errors, oldest first', async () => {
    let claim: Claim = await p.running('a');
    for (let attempt = 1; attempt <= 7; attempt += 1) {
      await p.retry(claim, { delayMs: 0, error: failure(`error ${attempt}`, attempt) });
      claim = only(await p.run());
    }
    const run = await runOf('j:a');
    expect(run).toMatchObject({ attempts: 8, failures: 7 });
    expect(run?.history.map(({ message }) => message)).toEqual([3, 4, 5, 6, 7].map((nth) => `error ${nth}`));
  });

  test('keeps the stack of its last failure alone', async () => {
    let claim: Claim = await p.running('a');
    const stacks = async () => (await runOf('j:a'))?.history.map(({ stack }) => stack);
    for (const nth of [1, 2]) {
      await p.retry(claim, { delayMs: 0, error: failure('","s":"x"}', nth, `Error: ${nth}\n    at "f" (/a.js:1:1)`) });
      claim = only(await p.run());
    }
    expect(await stacks()).toEqual([undefined, 'Error: 2\n    at "f" (/a.js:1:1)']);
    expect((await runOf('j:a'))?.history.map(({ message }) => message)).toEqual(Array(2).fill('","s":"x"}'));
    // What was thrown has none: the one before stays.
    await p.retry(claim, { delayMs: 0, error: failure('text', 3) });
    expect(await stacks()).toEqual([undefined, expect.stringMatching(/^Error: 2/), undefined]);
  });

  test('nudges a leader that sleeps past its next attempt', async () => {
    const claim = await p.running('a');
    expect(await p.nudgesOf(() => p.retry(claim, { delayMs: 10 }))).toEqual([String(T0 + 10)]);
    expect(await p.meta('wake')).toBe(String(T0 + 10));
  });

  test('that was asked to stop ends cancelled, and is not tried again', async () => {
    const claim = await p.running('a');
    await p.cancel('j:a');
    expect(await p.retry(claim)).toBe('cancelled');
    expect(await p.picture()).toEqual({ jobs: { 'j:a': 'tombstone cancelled' }, done: { 'j:a': T0 } });
    expect([await p.count('retried'), await p.count('cancelled')]).toEqual([0, 1]);
  });

  test('that was asked to stop leaves nothing when there is no done window', async () => {
    const claim = await p.running('a');
    await p.cancel('j:a');
    expect(await p.retry(claim, { windowMs: 0 })).toBe('cancelled');
    expect(await p.picture()).toEqual({});
  });

  test('of a lost worker is still tried again by its late end, before the next start', async () => {
    const late = await p.running('a');
    await p.reclaim('w1');
    expect(await p.retry(late)).toBe('ok');
    expect(await p.picture()).toMatchObject({ scheduled: { 'j:a': T0 + 1000 }, runs: { 'j:a': 'waiting' } });
    expect(await runOf('j:a')).toMatchObject({ failures: 0, crashes: 1 });
  });
});

describe('is refused without a write', () => {
  test('when the same call was carried out before', async () => {
    const claim = await p.running('a');
    await p.retry(claim);
    expect(await p.withoutWrite(() => p.retry(claim))).toBe('already');
  });

  test('when the same call has ended it as cancelled', async () => {
    const claim = await p.running('a');
    await p.cancel('j:a');
    await p.retry(claim);
    expect(await p.withoutWrite(() => p.retry(claim))).toBe('cancelled');
  });

  test('when the job was settled otherwise by this start', async () => {
    const claim = await p.running('a');
    await p.complete([claim]);
    expect(await p.withoutWrite(() => p.retry(claim))).toBe('already');
  });

  test('when a newer start runs', async () => {
    const old = await p.running('a');
    const { deliveries } = await p.reclaim('w1');
    await p.start(deliveries, { consumer: 'w2' });
    expect(await p.withoutWrite(() => p.retry(old))).toBe('fenced');
  });

  test('when a newer start has settled it', async () => {
    const old = await p.running('a');
    const { deliveries } = await p.reclaim('w1');
    await p.complete(await p.claim(deliveries, 'w2'));
    expect(await p.withoutWrite(() => p.retry(old))).toBe('gone');
  });

  test('when the job was never there', async () => {
    const claim = await p.running('a');
    expect(await p.withoutWrite(() => p.retry({ ...claim, member: 'j:nobody' }))).toBe('gone');
  });
});

test('a bare member that was put again while it ran keeps the due of its producer', async () => {
  await p.put('a', T0);
  const claim = only(await p.run());
  await p.put('a', T0 + 7);
  expect(await p.retry(claim, { delayMs: 9000 })).toBe('ok');
  expect(await p.picture()).toEqual({ scheduled: { a: T0 + 7 }, jobs: { a: 'record' }, runs: { a: 'waiting' } });
});
