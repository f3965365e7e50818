/**
 * Leadership changes hands between real daemons. Nobody reads the ready stream here, so each promotion stays in it, and
 * the id of its entry is the moment by Redis's clock. The epoch of a term is the moment of its election, so what was
 * promoted after it was promoted by the new leader.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createProducer } from '../../src/client/producer.ts';
import type { Redis } from '../../src/redis/connect.ts';
import { partitionKeys } from '../../src/redis/keys.ts';
import { streamOf } from '../support/keyspace.ts';
import { type Running, useProcesses } from '../support/processes.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { leaderAmong } from '../support/siege.ts';

const LEASE_MS = 1500;
const QUEUE = 'effects';

const processes = useProcesses();
const keys = partitionKeys({ namespace: 'duestream', queue: QUEUE, partition: 0 });
let server: TestRedis;
let redis: Redis;

beforeAll(async () => {
  server = await startRedis();
  redis = await server.client();
});
beforeEach(() => redis.flushall());
afterAll(() => server.stop());

/** Two daemons, and a job due every 10 ms for `lastMs` from now on. */
async function scene(lastMs: number) {
  const producer = await createProducer({ redis: server.url });
  const nowMs = Date.now();
  const at = Array.from({ length: lastMs / 10 }, (_, index) => new Date(nowMs + 1000 + index * 10));
  const scheduled = await producer.scheduleMany(
    QUEUE,
    at.map((instant) => ({ data: undefined, at: instant })),
  );
  await producer.stop();
  const env = { DUESTREAM_REDIS_URL: server.url, DUESTREAM_MOVER__LEASE_MS: String(LEASE_MS) };
  const start = (name: string) => processes.started({ name, args: ['start', '--roles', 'mover'], env });
  const daemons = await Promise.all([start('daemon 1'), start('daemon 2')]);
  const leader = await leaderAmong({ redis, keys }, daemons);
  const other = daemons.find((daemon) => daemon !== leader);
  if (other === undefined) throw new Error('there is no other daemon');
  await expect.poll(promotedMs, { timeout: 5000 }).not.toEqual([]);
  return { members: scheduled.map(({ id }) => `j:${id}`), leader, other };
}

/** When each entry was added, by Redis's clock. */
async function promotedMs(): Promise<readonly number[]> {
  return (await streamOf(redis, keys.ready)).map(({ entry }) => Number(entry.split('-')[0]));
}

async function serverMs(): Promise<number> {
  const [seconds, micros] = await redis.time();
  return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
}

/** Waits until the other daemon leads and has promoted; returns how long after `sinceMs` its first promotion was. */
async function takenOverAfter(sinceMs: number, other: Running): Promise<number> {
  await leaderAmong({ redis, keys }, [other]);
  const electedMs = Number((await redis.get(keys.leader))?.split(':')[1]);
  const firstMs = async () => (await promotedMs()).find((ms) => ms >= electedMs) ?? Number.POSITIVE_INFINITY;
  await expect.poll(firstMs, { timeout: 5000 }).toBeLessThan(Number.POSITIVE_INFINITY);
  expect(electedMs).toBeGreaterThanOrEqual(sinceMs);
  return (await firstMs()) - sinceMs;
}

/** Every job was promoted, and none twice. */
async function expectEachOnce(members: readonly string[]): Promise<void> {
  await expect.poll(() => redis.zcard(keys.scheduled), { timeout: 10_000 }).toBe(0);
  const entries = (await streamOf(redis, keys.ready)).map(({ fields }) => fields.member);
  expect([...entries].sort()).toEqual([...members].sort());
}

describe('another daemon promotes', { timeout: 30_000 }, () => {
  test('within the lease and a second when the leader was killed', async () => {
    const { members, leader, other } = await scene(6000);
    const killedMs = await serverMs();
    await leader.end('SIGKILL');
    expect(await takenOverAfter(killedMs, other)).toBeLessThanOrEqual(LEASE_MS + 1000);
    await expectEachOnce(members);
  });

  test('within half a second when the leader was told to stop', async () => {
    const { members, leader, other } = await scene(4000);
    const toldMs = await serverMs();
    const exit = leader.end('SIGTERM');
    expect(await takenOverAfter(toldMs, other)).toBeLessThanOrEqual(500);
    expect((await exit).code).toBe(0);
    await expectEachOnce(members);
  });

  test('when the leader is frozen, which steps down when it wakes and does no harm', async () => {
    const { members, leader, other } = await scene(3 * LEASE_MS + 2000);
    leader.signal('SIGSTOP');
    const frozenMs = await serverMs();
    expect(await takenOverAfter(frozenMs, other)).toBeLessThanOrEqual(LEASE_MS + 1000);
    await expect.poll(async () => (await serverMs()) - frozenMs, { timeout: 10_000 }).toBeGreaterThan(3 * LEASE_MS);
    const lost = leader.logged('leader lost');
    leader.signal('SIGCONT');
    expect(await lost).toMatchObject({ queue: QUEUE, why: expect.stringMatching(/trust|fenced|reply/) });
    await expectEachOnce(members);
    expect((await leaderAmong({ redis, keys }, [leader, other])).pid).toBe(other.pid);
    expect(leader.lines().filter(({ msg }) => msg === 'leader elected')).toHaveLength(1);
  });
});
