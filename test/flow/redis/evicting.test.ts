/** A Redis that may delete keys of its own accord: daemons say so, and producers give it no job. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { createClient } from '../../../src/client/client.ts';
import { createGuard } from '../../../src/daemon/daemon.ts';
import { createEmitter } from '../../../src/job/events.ts';
import { systemClock } from '../../../src/kernel/clock.ts';
import { createMetrics } from '../../../src/metrics/metrics.ts';
import type { Redis } from '../../../src/redis/connection/connect.ts';
import { EVICTION_LOOK_MS, evictionOf } from '../../../src/redis/connection/memory.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { samples } from '../../support/samples.ts';

let server: TestRedis;
let redis: Redis;

beforeAll(async () => {
  server = await startRedis();
  redis = await server.client();
});
afterAll(() => server.stop());
beforeEach(() => setUp('noeviction', '0'));
afterEach(() => redis.flushall());

const setUp = (policy: string, limit: string) => redis.config('SET', 'maxmemory-policy', policy, 'maxmemory', limit);

test.each([
  ['noeviction', '1gb', undefined],
  ['allkeys-lru', '0', undefined],
  ['allkeys-lru', '1gb', true],
  ['allkeys-random', '1gb', true],
  ['volatile-ttl', '1gb', false],
])('with %s and a limit of %s jobs may be evicted: %s', async (policy, limit, jobs) => {
  await setUp(policy, limit);
  expect((await evictionOf(redis))?.jobs).toBe(jobs);
});

test('a daemon says so once when the setting changes, and once when it is put right', async () => {
  const events = createEmitter();
  const told: string[] = [];
  events.on('redis.evicts', ({ policy, jobs }) => told.push(`${policy} ${jobs}`));
  events.on('redis.keeps', ({ after }) => told.push(`keeps after ${after}`));
  const metrics = createMetrics({ version: '1.2.3' });
  metrics.observe(events);
  const evicts = async () => (await samples(metrics)).get('duestream_redis_evicts');
  const guard = createGuard({ redis, clock: systemClock, events });
  expect(await guard.pass()).toBe(9000);
  await setUp('allkeys-lru', '1gb');
  for (let time = 0; time < 3; time += 1) await guard.pass();
  expect(await evicts()).toBe(1);
  await setUp('noeviction', '1gb');
  for (let time = 0; time < 2; time += 1) await guard.pass();
  expect(told).toEqual(['allkeys-lru true', 'keeps after allkeys-lru']);
  expect(await evicts()).toBe(0);
});

test('a guard that may not look, or reaches nobody, says nothing and looks again', async () => {
  const events = createEmitter();
  events.on('redis.away', () => {
    throw new Error('it must not speak of the outage');
  });
  const away: Redis = Object.assign(Object.create(redis), { info: () => Promise.reject(new Error('NOPERM')) });
  expect(await createGuard({ redis: away, clock: systemClock, events }).pass()).toBe(9000);
});

test('a producer refuses new jobs from the next look on, and takes them again after it was put right', async () => {
  let nowMs = 0;
  const clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + nowMs };
  const producer = createClient({ redis: server.url, clock });
  const put = () =>
    producer.schedule('emails', {}).then(
      () => 'taken',
      (error: { code: string }) => error.code,
    );
  expect(await put()).toBe('taken');
  await setUp('allkeys-lru', '1gb');
  nowMs += EVICTION_LOOK_MS;
  await put();
  await expect.poll(put).toBe('refused');
  await setUp('volatile-lru', '1gb');
  nowMs += EVICTION_LOOK_MS;
  expect(await put()).toBe('taken');
  await producer.close();
});

test('a producer that connects to an evicting Redis refuses its first job', async () => {
  await setUp('allkeys-lfu', '64mb');
  const producer = createClient({ redis: server.url });
  await expect(producer.schedule('emails', {})).rejects.toThrow(
    'this Redis may evict jobs (maxmemory-policy allkeys-lfu, limit 64 MiB), so it gets no new ones: run CONFIG SET maxmemory-policy noeviction',
  );
  expect(await redis.exists('duestream:v1:{emails:0}:jobs')).toBe(0);
  await producer.close();
});
