/**
 * A reply is lost while a service starts: whichever it is, the start goes on. What a start does is repeated within its
 * bound, so one cut of a connection ends no process that has just begun. Each service is started again and again, in a new
 * namespace, and each time a later reply is lost, until a start is over before the reply is there.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Client, createClient } from '../../../src/client/client.ts';
import { createDaemon } from '../../../src/daemon/daemon.ts';
import type { DaemonInput } from '../../../src/daemon/input.ts';
import { createBackend } from '../../../src/http/api/backend.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { DuestreamError } from '../../../src/kernel/errors.ts';
import { createSubscriber } from '../../../src/worker/broadcast/subscriber.ts';
import { defineHandlers } from '../../../src/worker/run/handlers.ts';
import { createWorker } from '../../../src/worker/worker.ts';
import { openLossyLine } from '../../support/lossy-line.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

interface Service {
  readonly start: () => Promise<unknown>;
  readonly stop: () => Promise<unknown>;
}

interface Place {
  readonly redis: string;
  readonly namespace: string;
}

let server: TestRedis;

beforeAll(async () => {
  server = await startRedis();
  await writeFile(file(), 'schedules: {}\n');
});
afterAll(() => server.stop());

const file = () => join(server.dir, 'schedules.yaml');
const news = defineQueue('news', { broadcast: true });
const orders = defineQueue('orders', { partitions: 2 });
const handlers = defineHandlers({ orders: () => undefined });

function daemonOf(place: Place, roles: DaemonInput['roles']): Service {
  const queues = { emails: { partitions: 2, maxPending: 100, history: { keep: '1h' } } };
  return createDaemon({ ...place, roles, queues, http: { port: 0 }, schedules: { file: file() } }, { handlers });
}

function workerOf(place: Place): Service {
  const queues = [orders, 'emails'].map((queue) => ({ queue, handler: () => undefined }));
  return createWorker({ ...place, queues });
}

const backendOf = (place: Place) =>
  createBackend({
    ...place,
    horizonMs: 1e9,
    dataBytesMax: 1000,
    doneWindowMs: 60_000,
    readyMax: 1000,
    queueOf: (name) => defineQueue(name),
    examined: { done: { windowMs: 60_000, tombstonesMax: 1000, floorMs: 0 }, closedMax: 1000 },
    limits: { bodyBytesMax: 1000, batchMax: 10, rateMax: 10, workRateMax: 10 },
  });

/** What connects at its first call. */
const calledOnce = (client: Client, first: (client: Client) => Promise<unknown>): Service => ({
  start: () => first(client),
  stop: client.close,
});

const SERVICES: readonly (readonly [string, (place: Place) => Service])[] = [
  ['a daemon that moves jobs', (place) => daemonOf(place, ['mover'])],
  ['a daemon that shows jobs', (place) => daemonOf(place, ['http'])],
  ['a daemon that runs handlers', (place) => daemonOf(place, ['worker'])],
  ['a worker', workerOf],
  ['a subscriber', (place) => createSubscriber(news, () => undefined, place)],
];
const CLIENTS: readonly (readonly [string, (place: Place) => Service])[] = [
  ['a client', (place) => calledOnce(createClient(place), (one) => one.ready())],
  ['a client that schedules at once', (place) => calledOnce(createClient(place), (one) => one.schedule(orders, {}))],
  ['a client of schedules', (place) => calledOnce(createClient(place), (one) => one.schedules.list())],
  [
    'a connection of the dashboard',
    (place) => {
      const backend = backendOf(place);
      return { start: backend.place, stop: backend.stop };
    },
  ],
];

test.concurrent.each([...SERVICES, ...CLIENTS])('%s starts, whichever reply is lost', async (name, serviceOf) => {
  const line = await openLossyLine(server);
  const failures: string[] = [];
  let at = 0;
  for (let isLost = true; isLost; at += 1) {
    line.lose({ after: at });
    const service = serviceOf({ redis: line.url, namespace: `${name.replaceAll(' ', '-')}-${at}` });
    await service.start().catch((error: unknown) => failures.push(`reply ${at + 1}: ${String(error)}`));
    isLost = line.hasLost();
    line.lose({ after: Number.POSITIVE_INFINITY });
    await service.stop();
  }
  await line.close();
  expect(failures).toEqual([]);
  expect(at).toBeGreaterThan(3);
});

test('a start whose reply is lost, and that then finds no Redis, says so and leaves nothing in doubt', async () => {
  const told = SERVICES.flatMap(([name, serviceOf]) =>
    [1, 2, 3, 4, 5, 6, 7].map(async (after) => {
      const line = await openLossyLine(server);
      line.lose({ after, refusals: Number.POSITIVE_INFINITY });
      const service = serviceOf({ redis: line.url, namespace: `${name.replaceAll(' ', '-')}-away-${after}` });
      const error: unknown = await service.start().then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
      await service.stop();
      await line.close();
      const code = error instanceof DuestreamError ? error.code : String(error);
      return error === undefined || code === 'unavailable' ? 'as told' : `${name}, reply ${after + 1}: ${code}`;
    }),
  );
  expect(new Set(await Promise.all(told))).toEqual(new Set(['as told']));
});
