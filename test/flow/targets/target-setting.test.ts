/** A queue gets a target while nobody runs its jobs, and no worker starts on one that has it. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Client, createClient } from '../../../src/client/client.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { close, openCommands, type Redis, whenReady } from '../../../src/redis/connection/connect.ts';
import { controlKeys } from '../../../src/redis/keys.ts';
import { beat } from '../../../src/redis/scripts/presence.ts';
import { declareQueue } from '../../../src/redis/scripts/queues.ts';
import { createWorker } from '../../../src/worker/worker.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

const url = 'https://api.example.com/due';
let server: TestRedis;
let redis: Redis;
let client: Client;

beforeEach(async () => {
  server = await startRedis();
  redis = openCommands({ redis: server.url, name: 'test' });
  await whenReady(redis);
  client = createClient({ redis: server.url });
  await client.schedule('hooks', {}, { id: 'a', delay: '1h' });
});
afterEach(async () => {
  await client.close();
  close(redis);
  await server.stop();
});

const living = (queues: readonly string[], more: object = {}) =>
  beat(redis, {
    namespace: 'duestream',
    identity: { id: 'w-1', role: 'worker', host: 'mill', pid: 7, startedMs: 0, queues, ...more },
    ttlMs: 60_000,
  });

test('a target is refused while a worker of the queue lives, and set when it is gone', async () => {
  await living(['other', 'hooks']);
  await expect(client.queues.set('hooks', { target: url })).rejects.toThrow(/while worker w-1 on mill lives/);
  expect((await client.queues.get('hooks')).settings.target).toBeUndefined();
  await redis.del(controlKeys('duestream').beat('w-1'));
  await client.queues.set('hooks', { target: url });
  expect((await client.queues.get('hooks')).settings.target).toBe(url);
});

test('what a definition says of a target is refused the same way, and the registry stays as it was', async () => {
  await living(['hooks']);
  const before = await redis.hgetall(controlKeys('duestream').queues);
  const hooks = defineQueue('hooks', { target: url });
  await expect(
    declareQueue(redis, { namespace: 'duestream', queue: 'hooks', partitions: 1, target: hooks.target }),
  ).rejects.toThrow(/while worker w-1/);
  expect(await redis.hgetall(controlKeys('duestream').queues)).toEqual(before);
});

test('workers of other queues, daemons and dispatchers are in nobody’s way', async () => {
  await living(['other']);
  await client.queues.set('hooks', { target: url });
  await living(['hooks'], { id: 'w-2', dispatches: true });
  await client.queues.set('hooks', { target: { url, method: 'PUT' } });
  expect((await client.queues.get('hooks')).settings.target).toEqual({ url, method: 'PUT' });
});

test('a worker that starts on such a queue is refused with the next step, and runs nothing', async () => {
  await client.queues.set('hooks', { target: url });
  const runs: string[] = [];
  const worker = createWorker('hooks', ({ id }) => void runs.push(id), { redis: server.url });
  await expect(worker.start()).rejects.toThrow(/role dispatcher.*--target none/);
  expect(runs).toEqual([]);
  await client.queues.set('hooks', { target: false });
  const other = createWorker('hooks', ({ id }) => void runs.push(id), { redis: server.url });
  await other.start();
  await other.stop();
});

test('a broadcast queue cannot have a target', async () => {
  await client.queues.set('hooks', { broadcast: true });
  await expect(client.queues.set('hooks', { target: url })).rejects.toThrow(/a broadcast, whose jobs/);
});
