/** Whether the Redis behind our address is the one we knew. Nothing is refused; it is told. */
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { createEmitter, type Events } from '../../src/job/events.ts';
import { close, openCommands, type Redis, whenReady } from '../../src/redis/connection/connect.ts';
import { createServerWatch } from '../../src/redis/connection/server-watch.ts';
import { controlKeys } from '../../src/redis/keys.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';

let server: TestRedis;
let told: Events['redis.changed'][];
const opened: Redis[] = [];

beforeAll(async () => {
  server = await startRedis({ appendonly: true });
});
afterAll(() => server.stop());
afterEach(() => {
  for (const redis of opened.splice(0)) close(redis);
});
beforeEach(async () => {
  told = [];
  await (await server.client()).flushall();
});

async function watched() {
  const redis = openCommands({ redis: { path: server.socketPath }, name: 'test' });
  opened.push(redis);
  await whenReady(redis);
  const events = createEmitter();
  events.on('redis.changed', (event) => told.push(event));
  await redis.hset(controlKeys('t').queues, 'emails', '{"partitions":1,"generation":0}');
  const watch = createServerWatch({ redis, namespace: 't', who: 'me', events });
  await watch.look(true);
  return { redis, watch };
}

async function runId(redis: Redis): Promise<string | undefined> {
  const info = await redis.info('server').catch(() => '');
  return /^run_id:(\w+)/m.exec(info)?.[1];
}

async function restarted(redis: Redis) {
  await server.restart();
  await expect.poll(() => redis.ping().catch(() => '')).toBe('PONG');
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

test('a namespace that another process has declared again meanwhile was lost all the same', async () => {
  const { redis, watch } = await watched();
  await redis.flushall();
  await redis.hset(controlKeys('t').queues, 'emails', '{"partitions":1,"generation":0}');
  await watch.look(true);
  expect(told).toEqual([{ who: 'me', before: told[0]?.runId, runId: expect.any(String), empty: false }]);
});

test('a restart that kept the data is nothing to tell', async () => {
  const { redis, watch } = await watched();
  await restarted(redis);
  await watch.look(false);
  await restarted(redis);
  await watch.look(true);
  expect(told).toEqual([]);
});

test('a replica that took over has the same data, which is nothing to tell', async () => {
  const primary = await startRedis({ port: true });
  const replica = await startRedis({ port: true });
  const line = createServer((socket) => {
    const to = connect({ host: '127.0.0.1', port: leads().port ?? 0 });
    for (const [one, other] of [
      [socket, to],
      [to, socket],
    ] as const) {
      one.pipe(other);
      one.on('error', () => other.destroy()).on('close', () => other.destroy());
    }
  });
  let leads = () => primary;
  line.listen(0, '127.0.0.1');
  await once(line, 'listening');
  const address = line.address();
  const port = typeof address === 'object' ? (address?.port ?? 0) : 0;
  const redis = openCommands({ redis: { host: '127.0.0.1', port }, name: 'test' });
  opened.push(redis);
  await whenReady(redis);
  const events = createEmitter();
  events.on('redis.changed', (event) => told.push(event));
  const watch = createServerWatch({ redis, namespace: 't', who: 'me', events });
  await watch.look(true);
  const compensation = await replica.client();
  await compensation.replicaof('127.0.0.1', primary.port ?? 0);
  await expect.poll(() => compensation.exists(controlKeys('t').id)).toBe(1);
  await compensation.replicaof('NO', 'ONE');
  leads = () => replica;
  await primary.kill('SIGKILL');
  await expect.poll(() => runId(redis)).toBe(await runId(compensation));
  await watch.look(false);
  expect(told).toEqual([]);
  line.close();
  await primary.stop();
  await replica.stop();
});

test('another server is told once after the reconnect, and whether it holds the namespace', async () => {
  const { redis, watch } = await watched();
  await redis.flushall();
  await restarted(redis);
  await watch.look(false);
  await watch.look(false);
  expect(told).toHaveLength(1);
  expect(told[0]).toMatchObject({ who: 'me', empty: true });
  expect(told[0]?.runId).not.toBe(told[0]?.before);
  await redis.set(controlKeys('t').id, 'of-another-redis');
  await redis.hset(controlKeys('t').queues, 'emails', '{"partitions":1,"generation":0}');
  await restarted(redis);
  await watch.look(true);
  expect(told[1]).toMatchObject({ before: told[0]?.runId, empty: false });
  expect(told[1]?.runId).not.toBe(told[1]?.before);
});

test('a key of ours that somebody gave another type stops nobody', async () => {
  const { redis, watch } = await watched();
  await redis.del(controlKeys('t').id);
  await redis.rpush(controlKeys('t').id, 'odd');
  await watch.look(true);
  expect(told).toEqual([]);
  await redis.flushall();
  await watch.look(false);
  expect(told).toHaveLength(1);
});

test('without the right to ask nothing is told', async () => {
  const { redis, watch } = await watched();
  await redis.call('ACL', 'SETUSER', 'default', '-info');
  await redis.flushall();
  await watch.look(true);
  await redis.call('ACL', 'SETUSER', 'default', '+info');
  expect(told).toEqual([]);
});
