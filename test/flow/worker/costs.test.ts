/** Costs through the library: what a job owes keeps others waiting, its handler corrects it, and who may not have a cost is told so. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { createClient } from '../../../src/client/client.ts';
import { createDaemon } from '../../../src/daemon/daemon.ts';
import { startEstimateOf } from '../../../src/inspect/estimate.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { close, openCommands, type Redis, whenReady } from '../../../src/redis/connection/connect.ts';
import { partitionRef } from '../../../src/redis/keys.ts';
import type { Handler, HandlerContext } from '../../../src/worker/run/handlers.ts';
import { createWorker } from '../../../src/worker/worker.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

const { keys } = partitionRef('duestream', { queue: 'calls', partition: 0, layoutGeneration: 0 });
const patience = { timeout: 20_000, interval: 20 };
const priced = defineQueue('calls', { rate: '1/s', costs: true });
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

async function work(handler: Handler): Promise<void> {
  const daemon = createDaemon({ redis: { url: server.url }, roles: ['mover'], http: { port: 0 } });
  ends.push(() => daemon.stop());
  await daemon.start();
  const worker = createWorker(priced, handler, { redis: server.url, concurrency: 5 });
  ends.push(() => worker.stop());
  await worker.start();
}

test('what a job costs above its turn keeps others waiting, until its handler says that it has not used it', async () => {
  const starts: string[] = [];
  let context: HandlerContext | undefined;
  let end: (() => void) | undefined;
  await work(async ({ id }, given) => {
    starts.push(id);
    if (id !== 'a') return;
    context = given;
    await new Promise<void>((resolve) => {
      end = resolve;
    });
  });
  await client.schedule(priced, {}, { id: 'a', cost: 600 });
  await expect.poll(() => starts, patience).toEqual(['a']);
  await client.schedule(priced, {}, { id: 'b' });
  await expect.poll(async () => (await client.get(priced, 'b'))?.state, patience).toBe('waiting');
  const report = await client.get(priced, 'b');
  const [obstacle] = report?.waitsFor?.obstacles ?? [];
  const waitMs = obstacle?.kind === 'rate' ? obstacle.untilMs - (report?.nowMs ?? 0) : 0;
  expect(waitMs).toBeGreaterThan(300_000);
  if (!report) throw new Error('the job is there');
  expect(await startEstimateOf({ redis, namespace: 'duestream' }, report)).toMatchObject({ untold: 'costs' });
  expect(await context?.spent(0)).toBe(true);
  await expect.poll(() => starts, patience).toEqual(['a', 'b']);
  end?.();
  await expect.poll(async () => (await client.get(priced, 'a'))?.state, patience).toBe('done');
  expect(await context?.spent(9)).toBe(false);
  await expect(context?.spent(1001)).rejects.toThrow('spent is 1001; allowed: a whole number from 0 to 1000');
});

test('a cost stands in the record, is shown, and can be changed', async () => {
  await client.schedule(priced, {}, { id: 'a', cost: 20, delay: '1h' });
  expect(await redis.hget(keys.jobs, 'j:a')).toContain(';c=k|');
  expect((await client.get(priced, 'a'))?.options).toMatchObject({ cost: 20 });
  await client.edit(priced, 'a', { cost: 3 });
  expect((await client.get(priced, 'a'))?.options).toMatchObject({ cost: 3 });
  const { limits, settings } = await client.queues.get('calls');
  expect([limits?.text, limits?.costs, settings.costs]).toEqual(['1/s · with costs', true, true]);
});

test('a cost is refused where each job costs one turn, whichever way it comes, and taken where there is no rate now', async () => {
  const plain = defineQueue('calls', { rate: '1/s' });
  const words = 'each job of queue calls costs one turn';
  await expect(client.schedule(plain, {}, { cost: 2 })).rejects.toThrow(words);
  await client.schedule(plain, {}, { id: 'a', cost: 1, delay: '1h' });
  await expect(client.edit(plain, 'a', { cost: 2 })).rejects.toThrow(words);
  await expect(client.sets.begin(plain, 's', { then: { data: {}, cost: 2 } })).rejects.toThrow(words);
  await expect(client.schedules.put('daily', { queue: plain, every: '1d', cost: 2 })).rejects.toThrow(words);
  await client.queues.set('calls', { costs: true, rate: false });
  await client.schedule(defineQueue('calls'), {}, { id: 'b', cost: 2 });
  expect(await redis.hget(keys.meta, 'gates')).toBe('0 1 0 0');
  await client.queues.set('calls', { rate: '1/s' });
  expect(await redis.hget(keys.meta, 'gates')).toBe('1000000 1 0 0 c');
  expect(await redis.hget(keys.meta, 'paused')).toBe('!0.3.0');
});
