/** What a worker process does about handlers that misbehave: see docs/how-to/misbehaving-handlers.md. */
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Client, createClient } from '../../../src/client/client.ts';
import type { Redis } from '../../../src/redis/connection/connect.ts';
import { useProcesses } from '../../support/processes.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

const HANDLERS = fileURLToPath(new URL('../../support/misbehaving-handlers.mjs', import.meta.url));

const processes = useProcesses();
let server: TestRedis;
let redis: Redis;
let producer: Client;

beforeAll(async () => {
  server = await startRedis();
  redis = await server.client();
  producer = createClient({ redis: server.url });
});
beforeEach(() => redis.flushall());
afterAll(async () => {
  await producer.close();
  await server.stop();
});

const stateOf = async (id: string) => (await producer.get('odd', id))?.state;

describe('a worker process', () => {
  async function scene(more: Readonly<Record<string, string>> = {}) {
    const env = { DUESTREAM_REDIS_URL: server.url, DUESTREAM_WORKER__CONCURRENCY: '4', ...more };
    await processes.started({ name: 'daemon', args: ['start', '--roles', 'mover'], env });
    return processes.started({ name: 'worker', args: ['worker', HANDLERS, '--http-port', '0'], env });
  }
  const schedule = (name: string, id: string) => producer.schedule('odd', undefined, { name, id });

  test('that has lost half of its slots hands over and ends with 1, and its successor has all of them', async () => {
    const env = { DUESTREAM_WORKER__ABORT_GRACE: '100' };
    const worker = await scene(env);
    for (const id of ['a', 'b']) await schedule('stubborn', id);
    expect(await worker.exited).toMatchObject({ code: 1 });
    const said = worker.lines().map(({ msg }) => msg);
    expect(said).toEqual(
      expect.arrayContaining(['too many slots are lost; restart the process to free them', 'stopped']),
    );
    expect(await Promise.all(['a', 'b'].map(stateOf))).toEqual(['dead', 'dead']);
    expect(await redis.xinfo('CONSUMERS', 'duestream:v1:{odd:0}:ready', 'workers')).toEqual([]);
  });

  test('logs and counts a promise that nobody listens to, and no job pays for it', async () => {
    const worker = await scene();
    const { http } = (await worker.logged('started')) as unknown as { http: { port: number } };
    for (const id of ['a', 'b']) await schedule('float', id);
    await schedule('default', 'c');
    await expect.poll(() => Promise.all(['a', 'b', 'c'].map(stateOf))).toEqual(['done', 'done', 'done']);
    await expect(
      worker.logged('unhandled rejection: a promise of a handler was rejected and nothing caught it'),
    ).resolves.toMatchObject({
      level: 'error',
      error: 'nobody listens',
    });
    const metrics = await (await fetch(`http://127.0.0.1:${http.port}/metrics`)).text();
    expect(metrics).toMatch(/^duestream_unhandled_rejections_total 2$/m);
    expect(await worker.end('SIGTERM')).toMatchObject({ code: 0 });
  });

  test('says that its event loop stood still', async () => {
    const worker = await scene();
    await schedule('block', 'a');
    const told = await worker.logged('the event loop was blocked: by a handler, or because the process was frozen');
    expect(told.lagMs).toBeGreaterThan(1000);
  });
});
