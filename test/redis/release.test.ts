/** `release`: entries that were not started go back to scheduled at their due, and no attempt is used. */
import { describe, expect, test } from 'vitest';
import { decodeRun } from '../../src/job/codec.ts';
import { item, T0, usePartition } from '../support/partition.ts';

const p = usePartition();
const runOf = async (member: string) => decodeRun((await p.redis.hget(p.keys.runs, member)) ?? '');

describe('an entry that was not started', () => {
  test('goes back to scheduled at its due', async () => {
    await p.scheduleAll([item('a', { dueMs: T0 - 2 }), item('b')]);
    expect(await p.release(await p.deliver())).toEqual(['ok', 'ok']);
    expect(await p.picture()).toEqual({
      scheduled: { 'j:a': T0 - 2, 'j:b': T0 },
      jobs: { 'j:a': 'record', 'j:b': 'record' },
    });
  });

  test('runs later with its first attempt', async () => {
    await p.schedule('a');
    await p.release(await p.deliver());
    const [reply] = await p.start(await p.deliver());
    expect(reply).toMatchObject({ kind: 'run', attempts: 1 });
  });

  test('nudges a leader that sleeps past its due, once', async () => {
    await p.scheduleAll([item('a', { dueMs: T0 - 2 }), item('b')]);
    const deliveries = await p.deliver();
    expect(await p.nudgesOf(() => p.release(deliveries))).toEqual([String(T0 - 2)]);
    expect(await p.meta('wake')).toBe(String(T0 - 2));
  });

  test('is lost for a second identical call', async () => {
    await p.schedule('a');
    const deliveries = await p.deliver();
    await p.release(deliveries);
    expect(await p.withoutWrite(() => p.release(deliveries))).toEqual(['lost']);
  });
});

describe('an entry is dropped', () => {
  test('when its job was cancelled meanwhile', async () => {
    await p.schedule('a');
    const deliveries = await p.deliver();
    await p.cancel('j:a');
    expect(await p.release(deliveries)).toEqual(['dropped']);
    expect(await p.picture()).toEqual({ jobs: { 'j:a': 'tombstone cancelled' }, done: { 'j:a': T0 } });
  });

  test('when its member is in scheduled again, whose due stays', async () => {
    await p.put('a', T0);
    const deliveries = await p.deliver();
    await p.put('a', T0 + 7);
    expect(await p.release(deliveries)).toEqual(['dropped']);
    expect(await p.picture()).toEqual({ scheduled: { a: T0 + 7 }, jobs: { a: 'record' } });
  });
});

test('an entry whose member runs under another entry is dropped, so that the job does not come back', async () => {
  await p.schedule('a');
  await p.promote();
  await p.schedule('a', { data: 'new', mode: 'replace' });
  await p.promote();
  const [first, second] = await p.read();
  if (!first || !second) throw new Error('expected two entries');
  const claims = await p.claim([first]);
  expect(await p.release([second])).toEqual(['dropped']);
  expect(await p.complete(claims)).toEqual(['ok']);
  expect(await p.picture()).toEqual({ jobs: { 'j:a': 'tombstone done' }, done: { 'j:a': T0 } });
});

describe('is refused without a write', () => {
  test('when the job was started by the caller', async () => {
    await p.schedule('a');
    const deliveries = await p.deliver();
    await p.start(deliveries);
    expect(await p.withoutWrite(() => p.release(deliveries))).toEqual(['started']);
  });

  test('when another consumer holds the entry', async () => {
    await p.schedule('a');
    const deliveries = await p.deliver({ consumer: 'w2' });
    expect(await p.withoutWrite(() => p.release(deliveries))).toEqual(['lost']);
  });

  test('when there is no record: start will make a dead letter of it', async () => {
    await p.put('j:ghost', T0);
    const deliveries = await p.deliver();
    expect(await p.withoutWrite(() => p.release(deliveries))).toEqual(['lost']);
    await p.start(deliveries);
  });
});

test('a job of a lost worker goes back with its crash counted, and its late end changes nothing', async () => {
  const late = await p.running('a');
  const { deliveries } = await p.reclaim('w1');
  expect(await p.release(deliveries, { consumer: 'w2' })).toEqual(['ok']);
  expect(await p.picture()).toEqual({
    scheduled: { 'j:a': T0 },
    jobs: { 'j:a': 'record' },
    runs: { 'j:a': 'waiting' },
  });
  expect(await p.withoutWrite(() => p.complete([late]))).toEqual(['fenced']);
  expect(await runOf('j:a')).toMatchObject({ attempts: 1, crashes: 1, nextDueMs: T0 });
});
