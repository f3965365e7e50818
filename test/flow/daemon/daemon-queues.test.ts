/** The queues that a configuration names exist as soon as a mover runs, with the partitions they were given. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { createDaemon } from '../../../src/daemon/daemon.ts';
import { close, openCommands, type Redis, whenReady } from '../../../src/redis/connection/connect.ts';
import { declareQueue, listQueues } from '../../../src/redis/scripts/queues.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

const namespace = 'duestream';
const queues = { emails: { partitions: 3 }, reminders: { attempts: 2 } };
let server: TestRedis;
let redis: Redis;

beforeAll(async () => {
  server = await startRedis();
  redis = openCommands({ redis: { path: server.socketPath }, name: 'test' });
  await whenReady(redis);
});
beforeEach(() => redis.flushall());
afterAll(async () => {
  close(redis);
  await server.stop();
});

async function runOnce(roles: readonly ('mover' | 'http')[]): Promise<void> {
  const daemon = createDaemon({ redis: { url: server.url }, roles: [...roles], http: { port: 0 }, queues });
  await daemon.start();
  await daemon.stop();
}

test('a daemon that moves declares them, with one partition unless it says otherwise', async () => {
  await runOnce(['mover']);
  expect(await listQueues(redis, namespace)).toEqual([
    { queue: 'emails', partitions: 3, layoutGeneration: 0 },
    { queue: 'reminders', partitions: 1, layoutGeneration: 0 },
  ]);
});

test('a queue that is there already keeps its partitions', async () => {
  await declareQueue(redis, { namespace, queue: 'emails', partitions: 2 });
  await runOnce(['mover']);
  expect((await listQueues(redis, namespace)).map(({ partitions }) => partitions)).toEqual([2, 1]);
});

test('a daemon that only shows declares none', async () => {
  await runOnce(['http']);
  expect(await listQueues(redis, namespace)).toEqual([]);
});
