/** `resign`: the leader gives its lease back and says so. */
import { expect, test } from 'vitest';
import { elect, resign } from '../../src/redis/scripts/lease.ts';
import { T0, usePartition } from '../support/partition.ts';

const p = usePartition();
const elected = async (processId: string) =>
  (await elect(p.redis, p.ref, { processId, leaseMs: 5000, nowMs: T0 })).term;

test('the leader gives its lease back, and those who wait are told', async () => {
  const term = await elected('m1');
  const heard = await p.nudgesOf(async () => {
    expect(await resign(p.redis, p.ref, term)).toBe('ok');
  });
  expect(heard).toEqual(['resigned']);
  expect(await p.redis.exists(p.keys.leader)).toBe(0);
  expect(await elected('m2')).toBe(`m2:${T0 + 1}:5000`);
});

test('a second identical call is too late, writes nothing and tells nobody', async () => {
  const term = await elected('m1');
  await resign(p.redis, p.ref, term);
  const heard = await p.nudgesOf(async () => {
    expect(await p.withoutWrite(() => resign(p.redis, p.ref, term))).toBe('lost');
  });
  expect(heard).toEqual([]);
});

test('nobody gives back the lease of another', async () => {
  await elected('m1');
  expect(await p.withoutWrite(() => resign(p.redis, p.ref, `m2:${T0}:5000`))).toBe('lost');
});
