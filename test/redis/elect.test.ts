/** `elect`: one process leads a partition, and its epoch is higher than any before. */
import { describe, expect, test } from 'vitest';
import { elect, epochOf } from '../../src/redis/scripts/lease.ts';
import { T0, usePartition } from '../support/partition.ts';

const p = usePartition();
const asks = (processId: string, { leaseMs = 5000, nowMs = T0 } = {}) =>
  elect(p.redis, p.ref, { processId, leaseMs, nowMs });

describe('a partition without a leader', () => {
  test('is led by the process that asks, for the length of its lease', async () => {
    expect(await asks('m1')).toEqual({ kind: 'elected', term: `m1:${T0}:5000`, epoch: T0 });
    expect(await p.redis.get(p.keys.leader)).toBe(`m1:${T0}:5000`);
    const ttl = await p.redis.pttl(p.keys.leader);
    expect(ttl > 0 && ttl <= 5000).toBe(true);
  });

  test('says from then on which schema it has', async () => {
    expect(await p.meta('schema')).toBeNull();
    await asks('m1');
    expect(await p.meta('schema')).toBe('1');
  });

  test('has no advertised wake-up any more: the new leader looks at once', async () => {
    await p.redis.hset(p.keys.meta, 'wake', T0 + 5000);
    await asks('m1');
    expect(await p.meta('wake')).toBeNull();
  });
});

describe('a partition with a leader', () => {
  test('is refused to another process, without a write, and the rest of the lease is told', async () => {
    await asks('m1');
    const reply = await p.withoutWrite(() => asks('m2'));
    expect(reply).toMatchObject({ kind: 'held', term: `m1:${T0}:5000` });
    expect(reply.kind === 'held' && reply.ttlMs > 0 && reply.ttlMs <= 5000).toBe(true);
  });

  test('is refused in the very millisecond of its election as well', async () => {
    const pairs = await Promise.all(
      Array.from({ length: 50 }, async () => {
        void p.redis.del(p.keys.leader);
        return Promise.all([asks('m1'), asks('m2')]);
      }),
    );
    expect(new Set(pairs.map(([, second]) => second.kind))).toEqual(new Set(['held']));
    expect(pairs.filter(([, second]) => second.kind === 'held' && second.ttlMs === 5000).length).toBeGreaterThan(0);
  });

  test('is confirmed to its leader with the same epoch, without a write', async () => {
    const first = await asks('m1');
    expect(await p.withoutWrite(() => asks('m1', { nowMs: T0 + 99 }))).toEqual(first);
  });

  test('keeps its advertised wake-up', async () => {
    await asks('m1');
    await p.redis.hset(p.keys.meta, 'wake', T0 + 5000);
    await asks('m1');
    await asks('m2');
    expect(await p.meta('wake')).toBe(String(T0 + 5000));
  });
});

describe('a lease is void', () => {
  test('when it lives longer than it was taken for: the clock went back', async () => {
    await asks('m1');
    await p.redis.pexpire(p.keys.leader, 3_600_000);
    expect(await asks('m2')).toEqual({ kind: 'elected', term: `m2:${T0 + 1}:5000`, epoch: T0 + 1 });
  });

  test('when it never ends', async () => {
    await asks('m1');
    await p.redis.persist(p.keys.leader);
    expect(await asks('m2')).toMatchObject({ kind: 'elected', epoch: T0 + 1 });
    expect(await p.redis.pttl(p.keys.leader)).toBeGreaterThan(0);
  });

  test('when it is no term at all', async () => {
    await p.redis.set(p.keys.leader, 'nonsense', 'PX', 1000);
    expect(await asks('m2')).toMatchObject({ kind: 'elected' });
  });

  test('for its own process too, which gets a new epoch', async () => {
    await asks('m1');
    await p.redis.persist(p.keys.leader);
    expect(await asks('m1')).toMatchObject({ kind: 'elected', epoch: T0 + 1 });
  });
});

describe('the epoch', () => {
  test('grows with each term, also when the clock goes back', async () => {
    await asks('m1');
    await p.redis.del(p.keys.leader);
    expect(await asks('m2', { nowMs: T0 - 60_000 })).toMatchObject({ epoch: T0 + 1 });
    await p.redis.del(p.keys.leader);
    expect(await asks('m3', { nowMs: T0 + 60_000 })).toMatchObject({ epoch: T0 + 60_000 });
  });

  test('grows after everything was flushed', async () => {
    const before = await asks('m1');
    await p.redis.flushall();
    const after = await asks('m2', { nowMs: T0 + 1 });
    expect(epochOf(after.term)).toBeGreaterThan(epochOf(before.term));
  });
});
