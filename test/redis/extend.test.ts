/** `extend`: a running job stays its worker's for another lease. */
import { describe, expect, test } from 'vitest';
import { ownPending } from '../../src/redis/scripts/ready.ts';
import { item, only, T0, usePartition } from '../support/partition.ts';

const p = usePartition();

describe('a running job of the caller', () => {
  test('is extended: its entry is not idle any more, and no delivery is counted', async () => {
    const claim = await p.running('a');
    await p.redis.call('XCLAIM', p.keys.ready, 'workers', 'w1', 0, claim.entry, 'IDLE', 60_000, 'JUSTID');
    const idle = () => ownPending(p.redis, p.keys, { consumer: 'w1', idleMs: 30_000, limit: 10 });
    expect(await idle()).toEqual([claim.entry]);
    expect(await p.extend([claim])).toEqual(['ok']);
    expect(await idle()).toEqual([]);
    expect(await p.redis.xpending(p.keys.ready, 'workers', '-', '+', 10)).toMatchObject([
      [claim.entry, 'w1', expect.anything(), 1],
    ]);
  });

  test('is extended again by a second identical call', async () => {
    const claim = await p.running('a');
    await p.extend([claim]);
    expect(await p.extend([claim])).toEqual(['ok']);
  });

  test('is extended all the same when it is to be cancelled, and the reply says so', async () => {
    const claim = await p.running('a');
    await p.cancel('j:a');
    expect(await p.extend([claim])).toEqual(['cancel']);
    expect(await p.extend([claim])).toEqual(['cancel']);
  });
});

describe('is refused without a write', () => {
  test('with an older token', async () => {
    const old = await p.running('a');
    const { deliveries } = await p.reclaim('w1', { consumer: 'w1' });
    const current = only(await p.claim(deliveries));
    expect(await p.withoutWrite(() => p.extend([old]))).toEqual(['fenced']);
    expect(await p.extend([current])).toEqual(['ok']);
  });

  test('when the entry was reclaimed and not started again: the owner is empty', async () => {
    const claim = await p.running('a');
    await p.reclaim('w1');
    expect(await p.withoutWrite(() => p.extend([claim]))).toEqual(['fenced']);
    expect(await p.withoutWrite(() => p.extend([claim], 'w2'))).toEqual(['fenced']);
  });

  test('when another consumer asks', async () => {
    const claim = await p.running('a');
    expect(await p.withoutWrite(() => p.extend([claim], 'w2'))).toEqual(['fenced']);
  });

  test('when the job waits for its next attempt', async () => {
    const claim = await p.running('a');
    await p.retry(claim);
    expect(await p.withoutWrite(() => p.extend([claim]))).toEqual(['fenced']);
  });

  test('when the job is over, or was never there', async () => {
    const claim = await p.running('a');
    await p.complete([claim]);
    expect(await p.withoutWrite(() => p.extend([claim]))).toEqual(['gone']);
    expect(await p.withoutWrite(() => p.extend([{ ...claim, member: 'j:nobody' }]))).toEqual(['gone']);
  });

  test('when its entry was acknowledged behind our back', async () => {
    const claim = await p.running('a');
    await p.redis.xack(p.keys.ready, 'workers', claim.entry);
    expect(await p.extend([claim])).toEqual(['gone']);
  });
});

test('many jobs are extended in one call, and each is answered in its place', async () => {
  await p.scheduleAll([item('a'), item('b', { dueMs: T0 - 1 })]);
  const claims = await p.run();
  const [first] = claims;
  if (!first) throw new Error('nothing runs');
  await p.complete([first]);
  expect(await p.extend(claims)).toEqual(['gone', 'ok']);
  expect(only(await p.redis.xrange(p.keys.ready, '-', '+'))).toBeDefined();
});
