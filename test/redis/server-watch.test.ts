/** Whether the Redis behind our address is the one we knew. Nothing is refused; it is told. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { createEmitter, type Events } from '../../src/core/events.ts';
import { controlKeys } from '../../src/redis/keys.ts';
import { createServerWatch } from '../../src/redis/server-watch.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';

let server: TestRedis;
let told: Events['redis.changed'][];

beforeAll(async () => {
  server = await startRedis({ appendonly: true });
});
afterAll(() => server.stop());
beforeEach(() => {
  told = [];
});

async function watched() {
  const redis = await server.client();
  const events = createEmitter();
  events.on('redis.changed', (event) => told.push(event));
  await redis.hset(controlKeys('t').queues, 'emails', '{"partitions":1,"generation":0}');
  const watch = createServerWatch({ redis, namespace: 't', who: 'me', events });
  await watch.look(true);
  return { redis, watch };
}

async function restarted(redis: Awaited<ReturnType<TestRedis['client']>>) {
  await server.restart();
  while ((await redis.ping().catch(() => '')) !== 'PONG');
}

test('the first server met, and a heartbeat that had merely run out, are nothing to tell', async () => {
  const { watch } = await watched();
  await watch.look(false);
  await watch.look(true);
  expect(told).toEqual([]);
});

test('a namespace that has lost its registry is told with the run id that stayed', async () => {
  const { redis, watch } = await watched();
  await redis.flushall();
  await watch.look(true);
  expect(told).toEqual([{ who: 'me', before: told[0]?.runId, runId: expect.any(String), empty: true }]);
});

test('another server is told once after the reconnect, and whether it holds the namespace', async () => {
  const { redis, watch } = await watched();
  await restarted(redis);
  await watch.look(false);
  await watch.look(false);
  expect(told).toHaveLength(1);
  expect(told[0]).toMatchObject({ who: 'me', empty: false });
  expect(told[0]?.runId).not.toBe(told[0]?.before);
  await redis.flushall();
  await restarted(redis);
  await watch.look(true);
  expect(told[1]).toMatchObject({ before: told[0]?.runId, empty: true });
});

test('without the right to ask nothing is told', async () => {
  const { redis, watch } = await watched();
  await redis.call('ACL', 'SETUSER', 'default', '-info');
  await redis.flushall();
  await watch.look(true);
  await redis.call('ACL', 'SETUSER', 'default', '+info');
  expect(told).toEqual([]);
});
