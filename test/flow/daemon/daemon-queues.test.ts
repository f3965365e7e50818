/** The queues that a configuration or a handler module names: with which partitions and settings a daemon declares them. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createDaemon, type DaemonInput } from '../../../src/daemon/daemon.ts';
import { defineQueue, type QueueOptions } from '../../../src/job/queue.ts';
import { close, openCommands, type Redis, whenReady } from '../../../src/redis/connection/connect.ts';
import { declarationOf, declareQueue, listQueues } from '../../../src/redis/scripts/queues.ts';
import { defineHandlers } from '../../../src/worker/run/handlers.ts';
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

describe('a daemon that works', () => {
  const LIMITS = {
    rate: '100/s',
    concurrency: 8,
    perGroup: { concurrency: 2, rate: '5/s', maxPending: 9 },
    groups: { acme: { concurrency: 1 } },
    maxPending: 500,
    maxBytes: 1_000_000,
    linger: '20ms',
    history: { keep: '1h' },
    redact: ['card'],
    partitions: 4,
  } as const;
  const definition = defineQueue('emails', { ...LIMITS, attempts: 7, timeout: '3m' });

  async function declaredBy(settings: DaemonInput['queues']) {
    const handlers = defineHandlers({ emails: () => undefined }, { queues: [definition] });
    const daemon = createDaemon(
      { redis: { url: server.url }, roles: ['mover', 'worker'], queues: settings ?? {} },
      { handlers },
    );
    await daemon.start();
    await daemon.stop();
    return (await listQueues(redis, namespace))[0];
  }

  /** As a worker of the application itself declares it. */
  async function declaredByCode(options: QueueOptions = {}) {
    const layout = await declareQueue(
      redis,
      declarationOf(namespace, defineQueue('emails', { ...LIMITS, ...options })),
    );
    await redis.flushall();
    return layout;
  }

  test('declares all that the definition of a queue in its handler module says', async () => {
    const byCode = await declaredByCode();
    expect(byCode).toMatchObject({ partitions: 4, concurrency: 8, perGroup: 2, maxPending: 500, lingerMs: 20 });
    expect(await declaredBy({})).toEqual(byCode);
  });

  test('takes what its configuration says of the queue, and the rest from the module', async () => {
    const said = { rate: '7/s', perGroup: { concurrency: 3 }, attempts: 2, history: false } as const;
    const perGroup = { concurrency: 3, rate: '5/s', maxPending: 9 } as const;
    const byCode = await declaredByCode({ rate: '7/s', perGroup, history: false });
    expect(await declaredBy({ emails: said })).toEqual(byCode);
  });

  test('refuses a definition and a configuration that do not go together', async () => {
    await expect(declaredBy({ emails: { concurrency: 3 } })).rejects.toThrow(
      'cannot be divided among its 4 partitions',
    );
    await expect(declaredBy({ emails: { broadcast: true } })).rejects.toThrow('is a broadcast queue');
  });
});
