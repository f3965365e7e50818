/**
 * KEDA without KEDA: a Prometheus scrapes a daemon as the ServiceMonitor says, an autoscaler asks it the queries of the ScaledObject,
 * and starts and stops workers as the Deployment says. Jobs that are due wake a worker; with nothing to do none is left.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Client, createClient } from '../../../src/client/client.ts';
import { createDaemon, type Daemon } from '../../../src/daemon/daemon.ts';
import { askPrometheus, createAutoscaler } from '../../support/autoscaler.ts';
import { containerOf, environmentOf, objectsWith, type Parsed, SECRETS } from '../../support/kubernetes.ts';
import { type Running, useProcesses } from '../../support/processes.ts';
import { type Prometheus, prometheusUrl, startPrometheus } from '../../support/prometheus.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

const HANDLERS = fileURLToPath(new URL('../../fixtures/held-handlers.mjs', import.meta.url));
const HOUR_MS = 3_600_000;

const processes = useProcesses();
let server: TestRedis;
let daemon: Daemon;
let client: Client;
let prometheus: Prometheus;
let folder: string;
let address: string;

/** The chart with one queue, workers of one slot, and one more worker for each second that a job waits. */
const objectsOf = (queue: string) =>
  objectsWith({
    secret: SECRETS,
    worker: { enabled: true, image: 'shop:1', module: HANDLERS, queues: [queue], concurrency: 1 },
    monitoring: { enabled: true },
    keda: { enabled: true, prometheus: address, maxReplicas: 2, secondsPerWorker: 1 },
  });

beforeAll(async () => {
  server = await startRedis({ port: true });
  const http = { port: 0, host: '127.0.0.1', token: SECRETS.token };
  const queues = { limited: { rate: '1/d' } } as const;
  daemon = createDaemon({ redis: { url: server.url }, roles: ['mover', 'http'], http, queues });
  await daemon.start();
  client = createClient({ redis: server.url });
  folder = mkdtempSync(join(tmpdir(), 'due-autoscaling-'));
  address = await prometheusUrl();
  prometheus = await startPrometheus(scraping(objectsOf('unused').get('ServiceMonitor duestream')), address);
}, 600_000);

afterAll(async () => {
  await prometheus.stop();
  await client.close();
  await daemon.stop();
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** What the operator of Prometheus makes of a ServiceMonitor, but for the interval; the labels are those that it adds. */
function scraping({ spec }: Parsed) {
  const [{ path }] = spec.endpoints;
  const labels = { namespace: 'jobs', service: 'duestream' };
  const targets = [`${daemon.http()?.host}:${daemon.http()?.port}`];
  return [
    {
      job_name: 'duestream',
      metrics_path: path,
      authorization: { credentials: SECRETS.token },
      static_configs: [{ targets, labels }],
    },
  ];
}

/** An autoscaler of the workers of a queue, and a clock that the test moves. */
function stage(queue: string) {
  const objects = objectsOf(queue);
  const scaled = objects.get('ScaledObject duestream-worker');
  const container = containerOf(objects.get('Deployment duestream-worker'));
  const env = {
    ...environmentOf(container, { folder, objects, redisUrl: server.url }),
    DUESTREAM_HTTP__HOST: '127.0.0.1',
  };
  const args: readonly string[] = container.args.map((one: string) => one.replace('--http-port=7420', '--http-port=0'));
  const workers: Running[] = [];
  let laterMs = 0;
  const autoscaler = createAutoscaler(scaled, () => performance.now() + laterMs);
  return {
    workers,
    pass(ms: number) {
      laterMs += ms;
    },
    /** One look of the autoscaler: how many workers run after it. */
    async look(): Promise<number> {
      const wanted = await autoscaler.poll();
      while (workers.length < wanted) {
        workers.push(await processes.started({ name: `worker ${workers.length + 1}`, args, env }));
      }
      for (const one of workers.splice(wanted)) expect(await one.end('SIGTERM')).toMatchObject({ code: 0 });
      return workers.length;
    },
    /** What a trigger says now. */
    value: (name: string) => {
      const { metadata } = scaled.spec.triggers.find((one: Parsed) => one.name === name);
      return askPrometheus(metadata.serverAddress, metadata.query);
    },
    /** The age alone, as any query would have it. */
    age: () => askPrometheus(address, `max(duestream_oldest_due_age_seconds{queue="${queue}"})`),
    wake: (id: string) => client.runNow(queue, id),
    schedule: (id: string, until: string, delay = '0s') =>
      client.schedule(queue, { until: join(folder, until) }, { id, delay }),
    release: (until: string) => writeFileSync(join(folder, until), ''),
    async ends(ids: readonly string[]) {
      const all = await Promise.all(ids.map((id) => client.get(queue, id)));
      return all.map((one) => `${one?.state} ${one?.attempts}`);
    },
  };
}

test('a job that becomes due wakes a worker; while one runs the worker stays, and then none is left, and so again', async () => {
  const { look, pass, value, ends, wake, schedule, release, workers } = stage('asleep');
  await schedule('first', 'first-may-end', '1h');
  await expect.poll(() => value('due')).toBe(0);
  expect(await look()).toBe(0);

  await wake('first');
  await expect.poll(look).toBe(1);
  await expect.poll(() => value('running')).toBe(1);
  await expect.poll(() => value('due')).toBe(0);
  pass(HOUR_MS);
  expect(await look()).toBe(1);

  release('first-may-end');
  await expect.poll(() => value('running')).toBe(0);
  expect(await ends(['first'])).toEqual(['done 1']);
  // It may come back within the cooldown.
  expect(await look()).toBe(1);
  pass(HOUR_MS);
  const [worker] = workers;
  expect(await look()).toBe(0);
  expect(worker?.lines().map(({ msg }) => msg)).toContain('stopped');

  await schedule('second', 'first-may-end');
  await expect.poll(look).toBe(1);
  await expect.poll(() => ends(['second'])).toEqual(['done 1']);
});

test('the longer the oldest job waits, the more workers there are, up to the most that are allowed', async () => {
  const { look, ends, schedule, release, workers } = stage('behind');
  const ids = ['a', 'b', 'c', 'd'];
  for (const id of ids) await schedule(id, 'all-may-end');
  await expect.poll(look).toBe(1);
  await expect.poll(look).toBe(2);
  await expect.poll(async () => (await ends(ids)).filter((one) => one.startsWith('running')).length).toBe(2);
  expect(await look()).toBe(2);
  release('all-may-end');
  await expect.poll(() => ends(ids)).toEqual(ids.map(() => 'done 1'));
  expect(workers).toHaveLength(2);
});

test('a job that a limit holds in line needs no worker, however long it waits', async () => {
  const { look, pass, value, age, ends, schedule, release } = stage('limited');
  release('limited-may-end');
  for (const id of ['now', 'tomorrow']) await schedule(id, 'limited-may-end');
  await expect.poll(look).toBe(1);
  await expect.poll(() => ends(['now', 'tomorrow'])).toEqual(['done 1', 'waiting 0']);
  await expect
    .poll(async () => ((await age()) ?? 0) > 0 && (await value('due')) === 0 && (await value('running')) === 0)
    .toBe(true);
  pass(HOUR_MS);
  expect(await look()).toBe(0);
});

test('while Prometheus has no answer the fallback counts, after three looks', async () => {
  // No queue of this name was ever used, so it has no series.
  const scaled = objectsOf('unused').get('ScaledObject duestream-worker');
  const autoscaler = createAutoscaler(scaled, () => performance.now());
  const looks = [await autoscaler.poll(), await autoscaler.poll(), await autoscaler.poll()];
  expect(looks).toEqual([0, 0, scaled.spec.fallback.replicas]);
});
