/** One worker of several queues: what they share, and what each has of its own. */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { type Client, createClient } from '../../../src/client/client.ts';
import { createDaemon } from '../../../src/daemon/daemon.ts';
import { createWorker } from '../../../src/daemon/embedded-worker.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { GROUP } from '../../../src/redis/keys.ts';
import { presence } from '../../../src/redis/scripts/presence.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { gate } from '../../support/worker-line.ts';

let server: TestRedis;
let producer: Client;
let daemon: ReturnType<typeof createDaemon>;
const stops: (() => Promise<unknown>)[] = [];
const mails = defineQueue<{ to: string }>('mails');
const bills = defineQueue<{ cents: number }>('bills', { partitions: 3 });

beforeAll(async () => {
  server = await startRedis();
  producer = createClient({ redis: server.url });
  daemon = createDaemon({ redis: server.url, roles: ['mover'] });
  await daemon.start();
});
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});
afterAll(async () => {
  await Promise.all([producer.close(), daemon.stop()]);
  await server.stop();
});

const names = async () =>
  [...String(await (await server.client()).client('LIST')).matchAll(/name=duestream:((?:worker|reader)\S*)/g)]
    .map(([, name]) => name)
    .sort();

test('serves all of them over one connection for commands and one reader each, with one heartbeat', async () => {
  const seen: unknown[] = [];
  const worker = createWorker({
    redis: server.url,
    queues: [
      { queue: mails, handler: ({ data }) => void seen.push(data.to) },
      { queue: bills, handler: { monthly: ({ data }) => void seen.push(data.cents) } },
    ],
  });
  stops.push(worker.stop);
  await worker.start();
  expect(worker.queues).toEqual(['mails', 'bills']);
  expect(await names()).toEqual(['reader:bills', 'reader:mails', 'worker:mails,bills']);
  await producer.schedule(mails, { to: 'a' });
  await producer.scheduleMany(
    bills,
    [1, 2, 3].map((cents) => ({ data: { cents }, name: 'monthly' })),
  );
  await expect.poll(() => [...seen].map(String).sort()).toEqual(['1', '2', '3', 'a']);
  const workers = (await presence(await server.client(), 'duestream')).filter(
    ({ identity }) => identity?.role === 'worker',
  );
  expect(workers.map(({ id, identity }) => [id, identity?.queues])).toEqual([[worker.consumer, ['mails', 'bills']]]);
  expect(worker.isReady() && worker.isLive()).toBe(true);
  // A job is over when its end has its reply, some time after its handler.
  await expect.poll(worker.metrics).toMatch(/run_duration_seconds_count\{[^}]*queue="bills"[^}]*\} 3/);
});

test('a queue without a free slot keeps none of another waiting', async () => {
  const held = gate();
  const ran: string[] = [];
  const worker = createWorker({
    redis: server.url,
    concurrency: 10,
    queues: [
      { queue: 'slow', concurrency: 1, handler: () => held.opened },
      { queue: 'fast', handler: ({ id }) => void ran.push(id) },
    ],
  });
  stops.push(worker.stop);
  await worker.start();
  await producer.scheduleMany(
    'slow',
    [1, 2, 3].map((data) => ({ data })),
  );
  await expect.poll(() => worker.running()).toBe(1);
  for (const id of ['a', 'b', 'c']) await producer.schedule('fast', 1, { id });
  await expect.poll(() => ran).toEqual(['a', 'b', 'c']);
  expect(worker.running()).toBe(1);
  held.open();
  await expect.poll(() => worker.running()).toBe(0);
});

test('extends the leases of all its queues, and hands all of them over when it stops', async () => {
  const held = gate();
  const handler = (): Promise<void> => held.opened;
  const worker = createWorker({
    redis: server.url,
    jobLease: '2s',
    shutdown: 0,
    queues: [
      { queue: 'one', handler },
      { queue: 'two', handler },
    ],
  });
  stops.push(async () => held.open());
  await worker.start();
  await producer.schedule('one', 1, { id: 'x' });
  await producer.schedule('two', 1, { id: 'x' });
  await expect.poll(() => worker.running()).toBe(2);
  const redis = await server.client();
  const idles = async () => {
    const all = ['one', 'two'].map((queue) => redis.xpending(`duestream:v1:{${queue}:0}:ready`, GROUP, '-', '+', 10));
    return (await Promise.all(all)).map((entries) => Number((entries as unknown[][])[0]?.[2]));
  };
  // An entry that is extended becomes young again.
  const oldest = [0, 0];
  const young = async () =>
    (await idles()).map((idleMs, at) => {
      oldest[at] = Math.max(oldest[at] ?? 0, idleMs);
      return idleMs < (oldest[at] ?? 0);
    });
  const extended = new Set<number>();
  await expect
    .poll(async () => {
      for (const [at, isYoung] of (await young()).entries()) if (isYoung) extended.add(at);
      return extended.size;
    })
    .toBe(2);
  await worker.stop();
  for (const queue of ['one', 'two']) {
    expect(await producer.get(queue, 'x')).toMatchObject({ owner: undefined, failures: 0, crashes: 0 });
  }
  expect(await names()).toEqual([]);
});

test.each<[object, RegExp]>([
  [{ queues: [] }, /no queues; allowed: one or more \{ queue, handler \}/],
  [{ queues: undefined }, /no queues/],
  [{ queues: [{ queue: 'q', handler: 5 }] }, /handlers of queue q are 5/],
  [{ queues: [{ queue: 'q', handlers: () => 1 }] }, /handlers is not an option .*did you mean handler\?/],
  [{ queues: [{ queue: 'q', handler: () => 1, concurrency: 0 }] }, /concurrency is 0/],
  [{ queues: [1, 2].map(() => ({ queue: 'q', handler: () => 1 })) }, /queue q is given twice/],
  [{ queues: [{ queue: 'q', handler: () => 1 }], extendEvery: '1s' }, /extendEvery is not an option of createWorker/],
])('%o is refused', (options, message) => {
  const said = { code: 'bad-config', message: expect.stringMatching(message) };
  const make = () => createWorker({ redis: server.url, ...options } as never);
  expect(make).toThrow(expect.objectContaining(said));
});
