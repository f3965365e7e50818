/** A Redis at its memory limit: no new jobs, and everything that frees or keeps alive still works. */
import { describe, expect, test } from 'vitest';
import { isFull } from '../../src/redis/connection/memory.ts';
import { outageOf } from '../../src/redis/connection/outage.ts';
import { elect, renew, resign } from '../../src/redis/scripts/lease.ts';
import { beat, presence } from '../../src/redis/scripts/presence.ts';
import { declareQueue } from '../../src/redis/scripts/queues.ts';
import { consumers, ensureGroup, join } from '../../src/redis/scripts/ready.ts';
import { arm, define } from '../../src/redis/scripts/schedules.ts';
import { failure, item, only, T0, usePartition } from '../support/partition.ts';

const p = usePartition();

/** Every write without allow-oom is refused from now on, until the database is emptied. */
async function fill(): Promise<void> {
  await p.redis.config('SET', 'maxmemory', '1');
  await expect(p.redis.set('more', 'x')).rejects.toThrow(/^OOM/);
}
const relax = () => p.redis.config('SET', 'maxmemory', '0');

/** Runs with a full Redis, and gives it room again whatever happens. */
async function whileFull<T>(call: () => Promise<T>): Promise<T> {
  await fill();
  try {
    return await call();
  } finally {
    await relax();
  }
}

describe('a producer', () => {
  test('is refused up front, and nothing is written', async () => {
    await p.schedule('before');
    const error = await whileFull(() =>
      p.withoutWrite(() => p.scheduleAll([item('a'), item('b')]).catch((thrown: unknown) => thrown)),
    );
    expect(outageOf(error)).toBe('full');
  });

  test('is refused a replay as well, and the dead letter stays', async () => {
    const deadLetter = await p.dead('a');
    const error = await whileFull(() => p.withoutWrite(() => p.replay(deadLetter).catch((thrown: unknown) => thrown)));
    expect(outageOf(error)).toBe('full');
  });

  test.each([
    ['a new due time', () => p.reschedule('j:a', T0 + 1)],
    ['a change of its data', () => p.edit('j:a', { data: { more: 1 } })],
    ['the text of a schedule', () => define(p.redis, 't', { name: 'nightly', before: '', after: '{}' })],
    ['a schedule to fire', () => arm(p.redis, p.ref, 'nightly')],
  ])('is refused %s', async (_, call) => {
    await p.schedule('a');
    const error = await whileFull(() => p.withoutWrite(() => call().catch((thrown: unknown) => thrown)));
    expect(outageOf(error)).toBe('full');
  });

  test('can still cancel, which frees', async () => {
    await p.schedule('a');
    expect(await whileFull(() => p.cancel('j:a'))).toEqual({ kind: 'cancelled' });
  });
});

describe('what is there is still worked off', () => {
  test('from promote to complete', async () => {
    await p.lead();
    await p.scheduleAll([item('a'), item('b')]);
    await p.put('order-1', T0);
    await whileFull(async () => {
      expect(await p.promote()).toMatchObject({ kind: 'promoted', count: 3 });
      const claims = await p.claim(await p.read());
      expect(await p.extend(claims)).toEqual(['ok', 'ok', 'ok']);
      expect(await p.complete(claims)).toEqual(['ok', 'ok', 'ok']);
    });
    expect(await p.picture()).toMatchObject({
      jobs: { 'j:a': 'tombstone done', 'j:b': 'tombstone done', 'order-1': 'tombstone done' },
    });
  });

  test('also when it fails, is put aside, dies, is handed back or loses its worker', async () => {
    await p.lead();
    await p.scheduleAll(['dies', 'fails', 'hands', 'lost', 'waits'].map((id) => item(id)));
    await whileFull(async () => {
      const deliveries = await p.deliver();
      const back = deliveries.filter(({ member }) => member === 'j:hands');
      expect(await p.release(back)).toEqual(['ok']);
      const [dies, fails, lost, waits] = await p.claim(deliveries.filter((one) => !back.includes(one)));
      if (!dies || !fails || !lost || !waits) throw new Error('expected four');
      expect(await p.bury(dies, { error: failure('x') })).toBe('ok');
      expect(await p.retry(fails)).toBe('ok');
      expect(await p.defer(waits)).toBe('ok');
      expect(only((await p.reclaim('w1')).deliveries).member).toBe('j:lost');
    });
  });
});

test('a worker and a daemon that start are let in: heartbeat, registry, stream and group', async () => {
  await whileFull(async () => {
    const identity = { id: 'w9', role: 'worker' as const, host: 'h', pid: 1, startedMs: T0, queues: ['q'] };
    expect(await beat(p.redis, { namespace: 't', identity, ttlMs: 5000 })).toBe('anew');
    expect(await beat(p.redis, { namespace: 't', identity, ttlMs: 5000 })).toBe('kept');
    expect((await presence(p.redis, 't')).map(({ id }) => id)).toEqual(['w9']);
    const layout = { queue: 'fresh', partitions: 2, layoutGeneration: 0 };
    expect(await declareQueue(p.redis, { namespace: 't', queue: 'fresh', partitions: 2 })).toEqual(layout);
    await ensureGroup(p.redis, p.keys);
    await join(p.redis, p.keys, 'w9');
    expect((await consumers(p.redis, p.keys)).map(({ name }) => name)).toEqual(['w9']);
  });
});

test('leaders are elected, stay and resign', async () => {
  await whileFull(async () => {
    const { term } = await elect(p.redis, p.ref, { processId: 'm1', leaseMs: 5000, nowMs: T0 });
    expect(await renew(p.redis, p.ref, { term, leaseMs: 5000 })).toBe('ok');
    expect(await resign(p.redis, p.ref, term)).toBe('ok');
  });
});

test('whether it is full can be asked, and nothing is written for it', async () => {
  expect(await isFull(p.redis, p.ref.keys)).toBe(false);
  expect(await p.redis.exists(p.ref.keys.done)).toBe(0);
  expect(await whileFull(() => isFull(p.redis, p.ref.keys))).toBe(true);
});
