/** Metrics of an application that embeds duestream: its own text, its own registry, and nothing in anybody else's. */
import { Counter, Registry, register } from 'prom-client';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { createDaemon } from '../../../src/daemon/daemon.ts';
import { createClient, createWorker, type Worker, type WorkerOptions } from '../../../src/index.ts';
import { runHere } from '../../support/console.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { samples } from '../../support/samples.ts';

const namespace = 't';
let server: TestRedis;
const stops: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  server = await startRedis({ port: true });
});
afterEach(async () => {
  for (let stop = stops.pop(); stop; stop = stops.pop()) await stop();
});
afterAll(() => server.stop());

const read = (scrape: () => Promise<string>) => samples({ scrape });

async function mover() {
  const daemon = createDaemon({ redis: { url: server.url }, namespace, roles: ['mover'] });
  stops.push(daemon.stop);
  await daemon.start();
  return daemon;
}

/** A worker whose handler does nothing. */
async function serving(queue: string, options: Partial<WorkerOptions> = {}): Promise<Worker> {
  const worker = createWorker(queue, () => undefined, { redis: server.url, namespace, ...options });
  stops.push(worker.stop);
  await worker.start();
  return worker;
}

async function scheduled(queue: string, count: number): Promise<void> {
  const producer = createClient({ redis: server.url, namespace });
  for (let n = 0; n < count; n += 1) await producer.schedule(queue, {}, { delay: 0 });
  await producer.close();
}

const started = async (metrics: () => Promise<string>, queue: string) =>
  (await read(metrics)).get(`duestream_start_lateness_seconds_count{queue="${queue}"}`);
const ended = async (metrics: () => Promise<string>, queue: string) =>
  (await read(metrics)).get(`duestream_run_duration_seconds_count{queue="${queue}",outcome="completed"}`);

describe('an embedded worker', () => {
  test('tells how late it starts jobs and how long they run, as text', async () => {
    await mover();
    const worker = await serving('alone');
    await scheduled('alone', 3);
    await expect.poll(() => ended(worker.metrics, 'alone')).toBe(3);
    const found = await read(worker.metrics);
    expect(found.get('duestream_start_lateness_seconds_count{queue="alone"}')).toBe(3);
    expect(found.get('duestream_redis_up')).toBe(1);
    expect(found.get('duestream_ready')).toBe(1);
  });

  test('shows nothing that it does not measure', async () => {
    const worker = await serving('alone');
    const text = await worker.metrics();
    for (const name of ['scheduled_jobs', 'workers_alive', 'unhandled_rejections', 'event_loop_lag', 'redis_evicts'])
      expect(text).not.toContain(`duestream_${name}`);
  });

  test('forgets a queue that was removed, within a look, and counts anew when it is there again', async () => {
    const daemon = await mover();
    const worker = await serving('removed');
    await scheduled('removed', 2);
    const metrics = [worker.metrics, daemon.metrics];
    await expect.poll(() => ended(worker.metrics, 'removed')).toBe(2);
    for (const scrape of metrics) await expect.poll(scrape).toContain('queue="removed"');
    const { code } = await runHere([
      'queues',
      'rm',
      'removed',
      '--force',
      '--redis',
      server.url,
      '--namespace',
      namespace,
    ]);
    expect(code).toBe(0);
    for (const scrape of metrics) await expect.poll(scrape).not.toContain('queue="removed"');
    await scheduled('removed', 1);
    await expect.poll(() => ended(worker.metrics, 'removed')).toBe(1);
  });

  test('answers what it counted after its stop, and no more than that', async () => {
    await mover();
    const worker = await serving('ended');
    await scheduled('ended', 1);
    await expect.poll(() => ended(worker.metrics, 'ended')).toBe(1);
    await worker.stop();
    const found = await read(worker.metrics);
    expect(found.get('duestream_run_duration_seconds_count{queue="ended",outcome="completed"}')).toBe(1);
    expect([found.has('duestream_redis_up'), found.has('duestream_ready')]).toEqual([false, false]);
  });
});

describe('several parts in one process', () => {
  test('have metrics of their own unless they are told to share', async () => {
    await mover();
    const one = await serving('one');
    const two = await serving('two');
    await scheduled('one', 2);
    await expect.poll(() => ended(one.metrics, 'one')).toBe(2);
    expect(await started(two.metrics, 'one')).toBeUndefined();
  });

  test('share the registry of the daemon, each family once', async () => {
    const daemon = await mover();
    const { registry } = daemon;
    const one = await serving('shared', { registry });
    await serving('shared', { registry });
    await serving('other', { registry });
    await scheduled('shared', 20);
    await scheduled('other', 1);
    // Both queues are at rest before two texts are compared: a run that ends in between would be counted in one only.
    await expect.poll(() => ended(daemon.metrics, 'shared')).toBe(20);
    await expect.poll(() => ended(daemon.metrics, 'other')).toBe(1);
    const text = await one.metrics();
    // Between two scrapes the lag of the event loop may be measured once more, and clocks always are.
    const withoutLag = (whole: string) =>
      whole.replace(/^duestream_(event_loop_lag|redis_clock_offset_seconds ).*\n/gm, '');
    expect(withoutLag(text)).toBe(withoutLag(await daemon.metrics()));
    expect(text.match(/^# TYPE duestream_start_lateness_seconds /gm)).toHaveLength(1);
    expect((await samples({ scrape: daemon.metrics })).get('duestream_workers_alive')).toBe(3);
    expect((await samples({ scrape: daemon.metrics })).get('duestream_oldest_due_age_seconds{queue="shared"}')).toBe(0);
  });

  test('are merged with what the application counts itself', async () => {
    const daemon = await mover();
    await serving('merged', { registry: daemon.registry });
    const own = new Registry();
    new Counter({ name: 'orders_total', help: 'Orders.', registers: [own] }).inc(7);
    await scheduled('merged', 2);
    const all = Registry.merge([own, daemon.registry]);
    await expect.poll(() => ended(() => all.metrics(), 'merged')).toBe(2);
    const found = await read(() => all.metrics());
    expect(found.get('orders_total')).toBe(7);
    expect(found.get('duestream_jobs_completed_total{queue="merged",partition="0"}')).toBe(2);
    expect(found.get('duestream_redis_up')).toBe(1);
  });

  test('are put into a registry that the application has', async () => {
    const registry = new Registry();
    new Counter({ name: 'orders_total', help: 'Orders.', registers: [registry] }).inc(7);
    const daemon = createDaemon({ redis: { url: server.url }, namespace, roles: ['mover'] }, { registry });
    stops.push(daemon.stop);
    await daemon.start();
    await serving('given', { registry });
    await scheduled('given', 1);
    await expect.poll(() => ended(() => registry.metrics(), 'given')).toBe(1);
    expect((await read(() => registry.metrics())).get('orders_total')).toBe(7);
    expect(daemon.registry).toBe(registry);
  });

  test('leave the registry of everybody alone', async () => {
    await mover();
    await serving('global');
    expect(register.getMetricsAsArray()).toEqual([]);
  });
});

test('a worker that cannot start leaves nothing behind in a registry it shares', async () => {
  const registry = new Registry();
  const good = await serving('good', { registry });
  const bad = createWorker('bad', () => undefined, { redis: 'redis://127.0.0.1:1', namespace, registry });
  await expect(bad.start()).rejects.toMatchObject({ code: 'unavailable' });
  const found = await read(good.metrics);
  expect([found.get('duestream_redis_up'), found.get('duestream_ready')]).toEqual([1, 1]);
});
