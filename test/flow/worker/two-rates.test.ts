/** Two rates through the library: both hold over several workers, everybody who asks is told of both, and 0.2.0 starts nothing. */
import { type ChildProcess, fork } from 'node:child_process';
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createClient } from '../../../src/client/client.ts';
import { createDaemon } from '../../../src/daemon/daemon.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { close, openCommands, type Redis, whenReady } from '../../../src/redis/connection/connect.ts';
import { partitionRef } from '../../../src/redis/keys.ts';
import { createWorker } from '../../../src/worker/worker.ts';
import { publishedCopy } from '../../chaos/faults/copies.mjs';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { root } from '../../support/repository.ts';

const { keys } = partitionRef('duestream', { queue: 'accounts', partition: 0, layoutGeneration: 0 });
const patience = { timeout: 20_000, interval: 20 };
/** Ten in 100 ms, and six at once with one in a minute after that. */
const BOTH = [
  { limit: 100, per: '1s', burst: 2 },
  { limit: 1, per: '1m', burst: 6 },
] as const;
let server: TestRedis;
let redis: Redis;
let client: ReturnType<typeof createClient>;
let ends: (() => unknown)[] = [];
beforeAll(async () => {
  server = await startRedis({ port: true });
  redis = openCommands({ redis: { path: server.socketPath }, name: 'test' });
  await whenReady(redis);
});
beforeEach(async () => {
  await redis.flushall();
  client = createClient({ redis: server.url });
  ends = [() => client.close()];
});
afterEach(async () => {
  for (const end of ends.toReversed()) await end();
});
afterAll(async () => {
  close(redis);
  await server.stop();
});

async function lead(): Promise<void> {
  const daemon = createDaemon({ redis: { url: server.url }, roles: ['mover'], http: { port: 0 } });
  ends.push(() => daemon.stop());
  await daemon.start();
}

/** Two workers, and what they have started. */
async function work(queue: ReturnType<typeof defineQueue>): Promise<string[]> {
  const starts: string[] = [];
  for (const _ of [1, 2]) {
    const worker = createWorker(queue, async ({ id }) => void starts.push(id), { redis: server.url, concurrency: 5 });
    ends.push(() => worker.stop());
    await worker.start();
  }
  return starts;
}

const many = (count: number) => Array.from({ length: count }, (_, nth) => ({ id: `n${nth}`, data: {} }));

test('two rates that a definition has hold, and whoever asks is told of both', async () => {
  const queue = defineQueue('accounts', { rate: BOTH });
  await lead();
  const starts = await work(queue);
  await client.scheduleMany(queue, many(9));
  await expect.poll(() => starts.length, patience).toBe(6);
  await expect.poll(async () => (await client.queues.get('accounts')).waiting, patience).toBe(3);
  const { limits } = await client.queues.get('accounts');
  expect(limits).toMatchObject({
    text: '100/s, burst 2 and 1/m, burst 6',
    rate: { limit: 100, perMs: 1000, burst: 2 },
    secondRate: { limit: 1, perMs: 60_000, burst: 6 },
  });
  const last = await client.get(queue, 'n8');
  expect(last?.waitsFor?.obstacles).toMatchObject([{ kind: 'rate' }]);
  const [obstacle] = last?.waitsFor?.obstacles ?? [];
  const waitMs = obstacle?.kind === 'rate' ? obstacle.untilMs - (last?.nowMs ?? 0) : 0;
  expect(waitMs).toBeGreaterThan(10_000);
  const { reasons } = await client.queues.why('accounts');
  expect(reasons).toMatchObject([{ heldBy: 'rate' }]);
  expect(starts).toHaveLength(6);
  // One rate again: it comes from a command, and holds for all.
  await client.queues.set('accounts', { rate: '100/s' });
  await expect.poll(() => starts.length, patience).toBe(9);
  expect(await redis.hget(keys.meta, 'paused')).toBeNull();
});

test('a command that sets two rates is told of the setting as it was and as it is', async () => {
  await client.schedule(defineQueue('accounts', { rate: '10/s' }), {}, { delay: '1h' });
  const done = await client.queues.set('accounts', { rate: ['10/s', { limit: 500, per: '1h', burst: 50 }] });
  expect(done).toMatchObject({
    changed: ['rate'],
    before: { rate: '10/s' },
    after: { rate: ['10/s', { limit: 500, per: '1h', burst: 50 }] },
  });
  expect(await redis.hget(keys.meta, 'gates')).toBe('100000 1 0 0 r7200000,50');
  expect(await redis.hget(keys.meta, 'paused')).toBe('!0.3.0');
  const back = await client.queues.unset('accounts', 'rate');
  expect(back.settings.rate).toBe('10/s');
  expect(await redis.hget(keys.meta, 'paused')).toBeNull();
});

describe('beside a process of 0.2.0', { timeout: 120_000 }, () => {
  let copy = '';
  beforeAll(() => {
    copy = publishedCopy(root) ?? '';
    copyFileSync(join(root, 'test/fixtures/order-actor.mjs'), join(copy, 'order-actor.mjs'));
  }, 60_000);

  /** What an older process has run. */
  async function older(): Promise<string[]> {
    const child: ChildProcess = fork(join(copy, 'order-actor.mjs'), [server.url, 'accounts', 'leader']);
    const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    ends.push(() => {
      child.kill('SIGKILL');
      return gone;
    });
    const ran: string[] = [];
    await new Promise<void>((resolve, reject) => {
      child.once('exit', () => reject(new Error('the older process ended')));
      child.on('message', (told: { readonly started?: string; readonly ran?: string }) => {
        if (told.started !== undefined) resolve();
        if (told.ran !== undefined) ran.push(told.ran);
      });
    });
    return ran;
  }

  test('its leader is replaced, its worker starts nothing, and all jobs start', async () => {
    const ran = await older();
    await expect.poll(() => redis.exists(keys.leader), patience).toBe(1);
    await lead();
    // A job that it reads and hands back costs a turn of the second rate, which it does not know.
    const queue = defineQueue('accounts', { rate: [BOTH[0], { limit: 600, per: '1m', burst: 6 }] });
    const starts = await work(queue);
    await client.scheduleMany(queue, many(9));
    await expect.poll(() => starts.length, { timeout: 60_000 }).toBe(9);
    expect(ran).toEqual([]);
    await expect(client.queues.set('accounts', { rate: ['1/s', '30/m'] })).rejects.toThrow(
      'queue accounts cannot have two rates while',
    );
  });
});
