/** Jobs that are due and that nobody runs: whoever looks must see it, wherever they look. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createClient } from '../../../src/client/client.ts';
import { createDaemon, type Daemon } from '../../../src/daemon/daemon.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { close, openCommands, whenReady } from '../../../src/redis/connection/connect.ts';
import { beat } from '../../../src/redis/scripts/presence.ts';
import { createSubscriber } from '../../../src/worker/broadcast/subscriber.ts';
import { createWorker } from '../../../src/worker/worker.ts';
import { runHere } from '../../support/console.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { samples } from '../../support/samples.ts';

const namespace = 't';
const emails = defineQueue<object>('emails');
let server: TestRedis;
let daemon: Daemon;

beforeAll(async () => {
  server = await startRedis({ port: true, appendonly: true });
  daemon = createDaemon({
    redis: { url: server.url },
    namespace,
    roles: ['mover', 'http'],
    http: { port: 0 },
  });
  await daemon.start();
});
afterAll(async () => {
  await daemon.stop();
  await server.stop();
});

const asked = (...args: readonly string[]) => runHere([...args, '--redis', server.url, '--namespace', namespace]);
const answered = async (...args: readonly string[]) => JSON.parse((await asked(...args, '--json')).out);
const checked = async () =>
  (await answered('doctor')).checks.find(({ check }: { readonly check: string }) => check === 'workers');

async function metric(name: string): Promise<number | undefined> {
  const { host, port } = daemon.http() ?? {};
  const scrape = async () => (await fetch(`http://${host}:${port}/metrics`)).text();
  return (await samples({ scrape })).get(name);
}
const age = () => metric('duestream_oldest_due_age_seconds{queue="emails"}');
const ready = () => metric('duestream_ready_jobs{queue="emails"}');

test('two jobs that are ready for five minutes without a worker show in the metric, in doctor and in queues ls', async () => {
  const producer = createClient({ redis: server.url, namespace });
  const at = new Date(Date.now() - 300_000);
  await producer.schedule(emails, {}, { at });
  await producer.schedule(emails, {}, { at });
  await producer.close();
  await expect.poll(ready).toBe(2);

  expect(await age()).toBeGreaterThanOrEqual(300);
  expect(await checked()).toMatchObject({
    status: 'warn',
    saw: expect.stringMatching(/^"emails" has 2 jobs ready but no worker, the oldest due for \d+ min$/),
    advice: 'start a worker with "duestream worker <module>"',
  });
  expect(await answered('queues', 'ls')).toMatchObject({ queues: [{ queue: 'emails', ready: 2, workers: 0 }] });
  expect((await answered('queues', 'ls')).queues[0].oldestDueAgeMs).toBeGreaterThanOrEqual(300_000);
  expect((await asked('queues', 'ls')).out).toMatch(
    /^queue +partitions +scheduled +ready +running +dead +waits +workers +leader\nemails +1 +0 +2 +0 +0 +\d+ min +0 +/,
  );
});

test('with a worker nothing waits any more, and nobody is warned', async () => {
  let release: () => void = () => undefined;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const worker = createWorker(emails, () => held, { redis: server.url, namespace });
  await worker.start();
  await expect.poll(worker.running).toBe(2);
  // What a scrape reads may be what it read a moment ago.
  await expect.poll(age).toBe(0);
  expect(await checked()).toEqual({
    check: 'workers',
    status: 'ok',
    saw: '1 queue; all due jobs have a worker and a daemon',
  });
  expect((await answered('queues', 'ls')).queues).toMatchObject([{ running: 2, oldestDueAgeMs: 0, workers: 1 }]);
  release();
  await worker.stop();
});

test('a broadcast queue needs no worker, and what older processes do to it is told', async () => {
  const prices = defineQueue<object>('prices', { broadcast: true });
  const producer = createClient({ redis: server.url, namespace });
  await producer.schedule(prices, {}, { at: new Date(Date.now() - 300_000) });
  await expect.poll(() => metric('duestream_jobs_completed_total{queue="prices",partition="0"}')).toBe(1);
  expect(await checked()).toMatchObject({ status: 'ok' });
  const subscriber = createSubscriber(prices, () => undefined, { redis: server.url, namespace });
  await subscriber.start();
  await expect.poll(() => metric('duestream_subscribers{queue="prices"}')).toBe(1);
  expect(await metric('duestream_subscriber_lag_jobs{queue="prices"}')).toBe(0);
  expect((await answered('queues', 'show', 'prices')).broadcast.subscribers).toMatchObject([{ lag: 0 }]);
  await subscriber.stop();

  const redis = openCommands({ redis: server.url, name: 'old' });
  await whenReady(redis);
  const identity = { id: 'w-old', role: 'worker' as const, host: 'mill', pid: 7, startedMs: 1, queues: ['prices'] };
  await beat(redis, { namespace, identity, ttlMs: 60_000 });
  expect(await checked()).toMatchObject({
    status: 'warn',
    saw: '"prices" is a broadcast and has 1 worker',
    advice: 'update all daemons, and stop the workers of a queue that is a broadcast',
  });
  close(redis);
  await producer.close();
});
