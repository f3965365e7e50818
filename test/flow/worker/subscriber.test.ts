/** Subscribers: each of them gets each job of a broadcast queue once, in order, and is told what it missed. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type Client, createClient } from '../../../src/client/client.ts';
import { createDaemon } from '../../../src/daemon/daemon.ts';
import { defineQueue, type Queue, type QueueOptions } from '../../../src/job/queue.ts';
import { close, openCommands, type Redis, whenReady } from '../../../src/redis/connection/connect.ts';
import { partitionRef } from '../../../src/redis/keys.ts';
import { declareQueue, findQueue, setQueue } from '../../../src/redis/scripts/queues.ts';
import {
  createSubscriber,
  type Missed,
  type Subscriber,
  type SubscriberOptions,
} from '../../../src/worker/broadcast/subscriber.ts';
import type { Handler } from '../../../src/worker/run/handlers.ts';
import { createWorker } from '../../../src/worker/worker.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { eventually, gate, listen } from '../../support/worker-line.ts';

let server: TestRedis;
let redis: Redis;
let producer: Client;
let daemon: ReturnType<typeof createDaemon>;
let nth = 0;
const stops: (() => unknown)[] = [];

beforeAll(async () => {
  server = await startRedis();
  redis = openCommands({ redis: { path: server.socketPath }, name: 'test' });
  await whenReady(redis);
  producer = createClient({ redis: { path: server.socketPath } });
  daemon = createDaemon({ redis: { path: server.socketPath }, roles: ['mover'] });
  await daemon.start();
});
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});
afterAll(async () => {
  await producer.close();
  await daemon.stop();
  close(redis);
  await server.stop();
});

const broadcastQueue = (options: QueueOptions = {}): Queue<{ n: number }> => {
  nth += 1;
  return defineQueue<{ n: number }>(`news${nth}`, { broadcast: true, ...options });
};
const keysOf = (queue: Queue, partition = 0) =>
  partitionRef('duestream', { queue: queue.name, partition, layoutGeneration: 0 }).keys;

interface Listening {
  readonly subscriber: Subscriber;
  readonly got: string[];
  readonly missed: Missed[];
  readonly heard: ReturnType<typeof listen>;
}
async function subscribe(
  queue: Queue<{ n: number }>,
  { handler, ...options }: Partial<SubscriberOptions> & { readonly handler?: Handler<{ n: number }> } = {},
): Promise<Listening> {
  const got: string[] = [];
  const missed: Missed[] = [];
  const subscriber = createSubscriber(
    queue,
    (job, context) => {
      got.push(job.id);
      return handler?.(job, context);
    },
    {
      redis: { path: server.socketPath },
      onMissed: (one) => missed.push(one),
      beatTtl: 300,
      shutdown: 500,
      ...options,
    },
  );
  stops.push(subscriber.stop);
  const heard = listen(subscriber.events);
  await subscriber.start();
  return { subscriber, got, missed, heard };
}
const ids = (count: number, prefix = 'n') => Array.from({ length: count }, (_, at) => `${prefix}${at}`);
const send = (queue: Queue<{ n: number }>, some: readonly string[]) =>
  producer.scheduleMany(
    queue,
    some.map((id, n) => ({ id, data: { n }, delay: 0 })),
  );

describe('every subscriber', () => {
  test('gets each job once, in order, with its data, and the job is done', async () => {
    const queue = broadcastQueue();
    const seen: unknown[] = [];
    const [one, other] = await Promise.all([
      subscribe(queue, { handler: (job, { attempt, token }) => seen.push([job.data.n, job.name, attempt, token]) }),
      subscribe(queue),
    ]);
    await send(queue, ids(3));
    for (const { got } of [one, other]) await eventually(() => [...got].sort()).toEqual(ids(3));
    expect(seen.length).toBe(3);
    expect(seen.map((row) => (row as unknown[])[3])).toEqual(['1', '2', '3']);
    expect((await producer.get(queue, 'n0'))?.state).toBe('done');
    await eventually(() => one.heard.of('job.completed').length).toBe(3);
    expect([one.missed, other.missed]).toEqual([[], []]);
    expect(one.got).toEqual(other.got);
  });

  test('gets what is sent from its start on, or what is kept if it asks for that', async () => {
    const queue = broadcastQueue();
    const early = await subscribe(queue);
    await send(queue, ids(3, 'before'));
    await eventually(() => early.got.length).toBe(3);
    const late = await subscribe(queue);
    const all = await subscribe(queue, { from: 'oldest' });
    await eventually(() => all.got.length).toBe(3);
    await send(queue, ['after']);
    await eventually(() => all.got.length).toBe(4);
    await eventually(() => late.got).toEqual(['after']);
    expect([late.missed, all.missed]).toEqual([[], []]);
  });

  test('gets the jobs of all partitions', async () => {
    const queue = broadcastQueue({ partitions: 4 });
    const { got, missed } = await subscribe(queue);
    await send(queue, ids(200));
    await eventually(() => [...got].sort()).toEqual([...ids(200)].sort());
    expect(missed).toEqual([]);
  });

  test('is told what it missed because of the bounds, and goes on with what is kept', async () => {
    const queue = broadcastQueue({ broadcast: { max: 30 } });
    const busy = gate();
    const { got, missed, heard } = await subscribe(queue, { handler: () => busy.opened });
    await send(queue, ['first']);
    await eventually(() => got).toEqual(['first']);
    await send(queue, ids(100));
    await eventually(() => redis.hget(keysOf(queue).meta, 'n.done')).toBe('101');
    busy.open();
    await eventually(() => got.length).toBe(31);
    const [{ count, reason } = { count: 0, reason: '' }] = missed;
    expect({ count, reason, of: missed.length }).toEqual({ count: 70, reason: 'bounds', of: 1 });
    expect(heard.of('jobs.missed')).toEqual([{ queue: queue.name, reason, count }]);
  });

  test.each([
    [
      'throws',
      () => {
        throw new Error('bug');
      },
    ],
    ['rejects', (): unknown => Promise.reject(new Error('bug'))],
  ])('handles the next job although its onMissed %s', async (_, onMissed) => {
    const queue = broadcastQueue({ broadcast: { max: 30 } });
    const busy = gate();
    const { got, heard } = await subscribe(queue, { handler: () => busy.opened, onMissed });
    await send(queue, ['first']);
    await eventually(() => got).toEqual(['first']);
    await send(queue, ids(100));
    await eventually(() => redis.hget(keysOf(queue).meta, 'n.done')).toBe('101');
    busy.open();
    await eventually(() => got.length).toBe(31);
    expect([heard.of('jobs.missed').length, heard.of('redis.away')]).toEqual([1, []]);
  });

  test('says how far behind it is, to its process and to others', async () => {
    const queue = broadcastQueue();
    const busy = gate();
    const { subscriber, got } = await subscribe(queue, { handler: () => busy.opened });
    expect(await subscriber.lag()).toBe(0);
    await send(queue, ids(5));
    await eventually(() => redis.hget(keysOf(queue).meta, 'n.done')).toBe('5');
    await eventually(() => got.length).toBe(1);
    await eventually(() => subscriber.lag()).toBe(4);
    const beats = async () => {
      const keys = await redis.keys('duestream:v1:{control}:beat:s-*');
      const values = await Promise.all(keys.map((key) => redis.get(key)));
      return values.flatMap((value) => (value?.includes(queue.name) ? [JSON.parse(value).lag] : []));
    };
    await eventually(beats).toEqual([4]);
    busy.open();
    await eventually(() => subscriber.lag()).toBe(0);
  });
});

describe('what goes wrong', () => {
  test('in a handler is told and not tried again', async () => {
    const queue = broadcastQueue({ timeout: 50 });
    let signal: AbortSignal | undefined;
    const { got, heard } = await subscribe(queue, {
      handler(job, context) {
        if (job.id === 'throws') throw new Error('boom');
        if (job.id !== 'hangs') return undefined;
        signal = context.signal;
        return new Promise(() => undefined);
      },
    });
    await send(queue, ['throws']);
    await eventually(() => heard.of('job.failed').length).toBe(1);
    await send(queue, ['hangs']);
    await eventually(() => heard.of('job.failed').length).toBe(2);
    await send(queue, ['good']);
    await eventually(() => heard.of('job.completed').length).toBe(1);
    expect(heard.of('job.failed').map(({ id, error }) => [id, error.kind, error.message])).toEqual([
      ['throws', 'failure', 'boom'],
      ['hangs', 'timeout', 'timeout: timed out after 50 ms'],
    ]);
    expect(signal?.aborted).toBe(true);
    expect(got).toEqual(['throws', 'hangs', 'good']);
  });

  test('with data that the queue refuses is told: no schema, no handler of that name', async () => {
    const queue = broadcastQueue();
    const heard: string[] = [];
    const subscriber = createSubscriber(
      queue.name,
      { price: (job) => void heard.push(job.id) },
      { redis: { path: server.socketPath }, shutdown: 500 },
    );
    stops.push(subscriber.stop);
    const told = listen(subscriber.events);
    await declareQueue(redis, { namespace: 'duestream', queue: queue.name, partitions: 1, broadcast: queue.broadcast });
    await subscriber.start();
    await producer.schedule(queue, { n: 1 }, { id: 'a', name: 'price' });
    await producer.schedule(queue, { n: 1 }, { id: 'b', name: 'other' });
    await eventually(() => told.of('job.failed').length).toBe(1);
    await eventually(() => heard).toEqual(['a']);
    expect(told.of('job.failed')[0]).toMatchObject({ id: 'b', error: { message: 'no handler for jobs named other' } });
  });

  test('with the connection is made good: nothing is missed and nothing comes twice', async () => {
    const queue = broadcastQueue();
    const { got, missed } = await subscribe(queue);
    await send(queue, ids(3, 'a'));
    await eventually(() => got.length).toBe(3);
    await redis.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    const named = String(await redis.call('CLIENT', 'LIST'));
    const [, id = ''] = new RegExp(`id=(\\d+)[^\\n]*name=duestream:subscriber:${queue.name}`).exec(named) ?? [];
    await redis.call('CLIENT', 'KILL', 'ID', id);
    await send(queue, ids(3, 'b'));
    await eventually(() => got.length).toBe(6);
    expect([...got].sort()).toEqual([...ids(3, 'a'), ...ids(3, 'b')].sort());
    expect(missed).toEqual([]);
  });

  test('with the data of Redis is told: a primary that lost writes took over', async () => {
    const queue = broadcastQueue();
    const { got, missed } = await subscribe(queue);
    await send(queue, ids(5));
    await eventually(() => got.length).toBe(5);
    const keys = keysOf(queue);
    // As a replica would have it that never got the last two.
    const [, , , fourth, fifth] = await redis.xrange(keys.cast, '-', '+');
    const bytes = fourth?.[1][fourth[1].indexOf('before') + 1];
    await redis
      .multi()
      .xdel(keys.cast, fourth?.[0] ?? '', fifth?.[0] ?? '')
      .hset(keys.meta, 'cast', `3 ${bytes}`)
      .exec();
    await send(queue, ids(3, 'new'));
    await eventually(() => got.length).toBe(8);
    expect(missed).toEqual([{ queue: queue.name, partition: 0, reason: 'lost-writes', count: undefined }]);
  });
});

describe('a broadcast queue', () => {
  test('is refused to workers, and a queue of workers to subscribers', async () => {
    const queue = broadcastQueue();
    await send(queue, ['a']);
    const worker = createWorker(queue.name, () => undefined, { redis: { path: server.socketPath } });
    await expect(worker.start()).rejects.toMatchObject({ code: 'bad-config', message: /createSubscriber/ });
    const plain = createSubscriber(`plain${nth}`, () => undefined, { redis: { path: server.socketPath } });
    await expect(plain.start()).rejects.toMatchObject({ code: 'bad-config', message: /broadcast: true/ });
    await expect(plain.start()).rejects.toMatchObject({ code: 'stopped' });
  });

  test('can be made of another one, and back', async () => {
    nth += 1;
    const queue = defineQueue<{ n: number }>(`turned${nth}`);
    await send(queue, ['a']);
    await eventually(() => redis.xlen(keysOf(queue).ready)).toBe(1);
    const { got } = await subscribe(defineQueue<{ n: number }>(queue.name, { broadcast: true }));
    expect((await findQueue(redis, 'duestream', queue.name))?.broadcast).toMatchObject({ isOn: true });
    // The daemon reads the registry with its next heartbeat; what it had made ready comes along.
    await redis.spublish('duestream:v1:{control}:wake', 'again');
    await send(queue, ['b']);
    await eventually(() => [...got].sort()).toEqual(['a', 'b']);
    const off = defineQueue(queue.name, { broadcast: false }).broadcast;
    await setQueue(redis, { namespace: 'duestream', queue: queue.name, broadcast: off });
    await redis.spublish('duestream:v1:{control}:wake', 'again');
    const ran: string[] = [];
    const worker = createWorker(queue.name, (job) => void ran.push(job.id), {
      redis: { path: server.socketPath },
      shutdown: 500,
    });
    stops.push(() => worker.stop());
    await worker.start();
    await send(queue, ['c']);
    await eventually(async () => [...ran, ...got].includes('c')).toBe(true);
  });

  test('stops with the handler that runs, and aborts it when its time is up', async () => {
    const queue = broadcastQueue();
    let aborted = false;
    const { subscriber, got } = await subscribe(queue, {
      shutdown: 50,
      handler: (_, { signal }) =>
        new Promise((resolve) => {
          signal.addEventListener('abort', () => {
            aborted = true;
            resolve(undefined);
          });
        }),
    });
    await send(queue, ['a', 'b']);
    await eventually(() => got.length).toBe(1);
    expect(subscriber.running()).toBe(1);
    await subscriber.stop();
    expect([aborted, got.length, subscriber.isReady()]).toEqual([true, 1, false]);
    await expect(subscriber.lag()).rejects.toMatchObject({ code: 'stopped' });
  });

  test('keeps its option when it is removed and comes back by somebody who defined it', async () => {
    const queue = broadcastQueue();
    const { subscriber, got } = await subscribe(queue);
    await redis.hdel('duestream:v1:{control}:queues', queue.name, `${queue.name}:broadcast`);
    await eventually(async () => (await findQueue(redis, 'duestream', queue.name))?.broadcast?.isOn).toBe(true);
    await send(queue, ['a']);
    await eventually(() => got).toEqual(['a']);
    expect(subscriber.isReady()).toBe(true);
  });
});

test('an option that there is not is refused with the nearest name, one out of range with what is allowed', () => {
  const make = (options: object) => () =>
    createSubscriber('q', () => undefined, { redis: 'redis://127.0.0.1', ...options } as SubscriberOptions);
  expect(make({ form: 'now' })).toThrow(/form is not an option of createSubscriber.*from/);
  expect(make({ from: 'yesterday' })).toThrow(/allowed: now, oldest/);
  expect(make({ onMissed: 1 })).toThrow(/allowed: a function/);
  expect(make({ concurrency: 5 })).toThrow(/concurrency is not an option of createSubscriber/);
  expect(() => defineQueue('q', { broadcast: { max: 0 } })).toThrow(/broadcast.max is 0; allowed/);
  expect(() => defineQueue('q', { broadcast: { maxAge: '1h' } as object })).toThrow(
    /maxAge is not an option of broadcast/,
  );
  expect(() => defineQueue('q', { broadcast: 'yes' as unknown as boolean })).toThrow(/allowed: true, false or/);
});
