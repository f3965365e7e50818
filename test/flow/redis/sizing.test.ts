/** What `duestream admin plan` says of memory, beside a real Redis that is filled. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type Client, createClient } from '../../../src/client/client.ts';
import { createDaemon } from '../../../src/daemon/daemon.ts';
import { deadBytes, endBytes, pendingBytes, readyBytes, runningBytes } from '../../../src/inspect/sizing.ts';
import { Unrecoverable } from '../../../src/job/outcome.ts';
import type { Redis } from '../../../src/redis/connection/connect.ts';
import { partitionKeys } from '../../../src/redis/keys.ts';
import { createWorker } from '../../../src/worker/worker.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

const QUEUE = 'sizes';
const keys = partitionKeys({ namespace: 'duestream', queue: QUEUE, partition: 0 });
let server: TestRedis;
let redis: Redis;
beforeAll(async () => {
  server = await startRedis();
  redis = await server.client();
  // Else each command that is called for the first time takes some 25 KiB for its histogram.
  await redis.config('SET', 'latency-tracking', 'no');
});
beforeEach(() => redis.flushall());
afterAll(() => server.stop());

const idOf = (at: number, idChars: number) => String(at).padStart(idChars, 'a');
/** Without what the connections of the test hold at this moment: INFO has that of up to a second ago. */
async function usedBytes(): Promise<number> {
  const [[, info], [, clients]] = ((await redis.multi().info('memory').client('LIST').exec()) ?? []) as [
    [unknown, string],
    [unknown, string],
  ];
  const used = Number(/^used_memory:(\d+)/m.exec(info)?.[1]);
  const held = [...clients.matchAll(/ tot-mem=(\d+)/g)].map(([, bytes]) => Number(bytes));
  return held.reduce((rest, bytes) => rest - bytes, used);
}

/** The same once nothing goes on any more: tables that grow are there twice for a while, and replies wait to be sent. */
async function settledBytes(): Promise<number> {
  let least = await usedBytes();
  for (let still = 0; still < 5; still += 1) {
    await sleep(60);
    const used = await usedBytes();
    if (used < least) still = 0;
    least = Math.min(least, used);
  }
  return least;
}

/** What every job of an act takes. The scripts and the tables of an empty Redis are there before. */
async function grownBy(jobs: number, act: () => Promise<unknown>): Promise<number> {
  const before = await settledBytes();
  await act();
  return ((await settledBytes()) - before) / jobs;
}

async function withClient<T>(act: (producer: Client) => Promise<T>): Promise<T> {
  const producer = createClient({ redis: server.url });
  try {
    await producer.schedule('warm', 0, { delay: '1h' });
    return await act(producer);
  } finally {
    await producer.close();
  }
}

function expectWithin(percent: number, measured: number, planned: number): void {
  const off = Math.round((planned / measured - 1) * 1000) / 10;
  expect(Math.abs(off), `${planned} were planned, ${measured} measured: ${off} %`).toBeLessThanOrEqual(percent);
}

test.each([
  { idChars: 16, payloadBytes: 200 },
  { idChars: 22, payloadBytes: 50 },
  { idChars: 36, payloadBytes: 1000 },
  { idChars: 64, payloadBytes: 4096 },
])('a pending job of $payloadBytes bytes with an id of $idChars takes what the plan says', async (shape) => {
  const jobs = 20_000;
  const data = 'x'.repeat(shape.payloadBytes - 2);
  const list = Array.from({ length: jobs }, (_, at) => ({ data, delay: '30d', id: idOf(at, shape.idChars) }));
  const measured = await withClient((producer) => grownBy(jobs, () => producer.scheduleMany(QUEUE, list)));
  const { zset, hash } = pendingBytes(shape, jobs);
  expectWithin(10, measured, zset + hash);
});

test('jobs that are ready, that run, that are over or dead take what the plan says', async () => {
  const jobs = 10_000;
  const shape = { idChars: 16, payloadBytes: 200 };
  const list = Array.from({ length: jobs }, (_, at) => ({ data: 'x'.repeat(198), id: idOf(at, 16) }));
  const daemon = createDaemon({
    redis: { url: server.url },
    roles: ['mover'],
    log: { level: 'fatal' },
    mover: { readyMax: 100_000 },
    done: { max: 1_000_000 },
  });
  await daemon.start();
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  let started = 0;
  const worker = createWorker(
    QUEUE,
    async () => {
      started += 1;
      await opened;
      if (started > jobs) throw new Unrecoverable('the mail server said no');
    },
    { redis: server.url, concurrency: jobs },
  );
  await withClient(async (producer) => {
    const ready = await grownBy(jobs, async () => {
      await producer.scheduleMany(QUEUE, list);
      await expect.poll(() => redis.xlen(keys.ready)).toBe(jobs);
    });
    expectWithin(15, ready, readyBytes(shape, jobs));
    const running = await grownBy(jobs, async () => {
      await worker.start();
      await expect.poll(() => started).toBe(jobs);
    });
    expectWithin(15, ready + running, runningBytes(shape, jobs));
    const over = await grownBy(jobs, async () => {
      open();
      await expect.poll(() => redis.zcard(keys.done)).toBe(jobs);
    });
    expectWithin(15, ready + running + over, endBytes(shape, jobs));
    const dead = await grownBy(jobs, async () => {
      await producer.scheduleMany(
        QUEUE,
        list.map((job) => ({ ...job, id: `b${job.id.slice(1)}` })),
      );
      await expect.poll(() => redis.xlen(keys.dead)).toBe(jobs);
    });
    expectWithin(15, dead, deadBytes(shape, 1) + endBytes(shape, jobs));
  });
  await worker.stop();
  await daemon.stop();
});
