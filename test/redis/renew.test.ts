/** `renew`: the leader keeps its lease, by its whole term. */
import { expect, test } from 'vitest';
import { elect, renew } from '../../src/redis/scripts/lease.ts';
import { T0, usePartition } from '../support/partition.ts';

const p = usePartition();

test('the leader keeps its lease, as often as it asks', async () => {
  const { term } = await elect(p.redis, p.ref, { processId: 'm1', leaseMs: 5000, nowMs: T0 });
  for (let nth = 0; nth < 2; nth += 1) {
    await p.redis.pexpire(p.keys.leader, 1000);
    expect(await renew(p.redis, p.ref, { term, leaseMs: 5000 })).toBe('ok');
    expect(await p.redis.pttl(p.keys.leader)).toBeGreaterThan(1000);
  }
});

test('who renews the lease of another is told that his own is lost', async () => {
  await elect(p.redis, p.ref, { processId: 'm1', leaseMs: 5000, nowMs: T0 });
  expect(await renew(p.redis, p.ref, { term: `m2:${T0}:5000`, leaseMs: 5000 })).toBe('lost');
});

test('a process does not renew the term it lost, even when it leads again', async () => {
  const { term: old } = await elect(p.redis, p.ref, { processId: 'm1', leaseMs: 5000, nowMs: T0 });
  await p.redis.del(p.keys.leader);
  await elect(p.redis, p.ref, { processId: 'm1', leaseMs: 5000, nowMs: T0 });
  expect(await renew(p.redis, p.ref, { term: old, leaseMs: 5000 })).toBe('lost');
});

test('a lease that ran out is lost', async () => {
  const { term } = await elect(p.redis, p.ref, { processId: 'm1', leaseMs: 5000, nowMs: T0 });
  await p.redis.del(p.keys.leader);
  expect(await p.withoutWrite(() => renew(p.redis, p.ref, { term, leaseMs: 5000 }))).toBe('lost');
});
