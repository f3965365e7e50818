/** A queue that keeps its history, end to end: set by a definition, kept by workers and producers, told by the library. */
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Client, createClient } from '../../../src/client/client.ts';
import { createDaemon, type Daemon } from '../../../src/daemon/daemon.ts';
import { createWorker, type Worker } from '../../../src/daemon/embedded-worker.ts';
import type { StartAccount } from '../../../src/job/account.ts';
import { fixed } from '../../../src/job/backoff.ts';
import { Unrecoverable } from '../../../src/job/outcome.ts';
import { defineQueue, type QueueOptions } from '../../../src/job/queue.ts';
import { close, openCommands, type Redis, whenReady } from '../../../src/redis/connection/connect.ts';
import { partitionRef } from '../../../src/redis/keys.ts';
import { findQueue } from '../../../src/redis/scripts/queues.ts';
import { publishedCopy } from '../../chaos/faults/copies.mjs';
import { startRedis, type TestRedis } from '../../support/redis.ts';

const ref = partitionRef('duestream', { queue: 'reports', partition: 0, layoutGeneration: 0 });
let server: TestRedis;
let redis: Redis;
let daemon: Daemon;
let producer: Client;
let worker: Worker | undefined;

beforeAll(async () => {
  server = await startRedis();
  redis = openCommands({ redis: server.url, name: 'test' });
  await whenReady(redis);
});
beforeEach(async () => {
  await redis.config('SET', 'maxmemory', '0');
  await redis.flushall();
  daemon = createDaemon({ redis: { url: server.url }, roles: ['mover'], http: { port: 0 } });
  await daemon.start();
  producer = createClient({ redis: server.url });
});
afterEach(async () => {
  await worker?.stop();
  worker = undefined;
  await producer.close();
  await daemon.stop();
});
afterAll(async () => {
  close(redis);
  await server.stop();
});

const reports = (history: QueueOptions['history'] = { keep: '1d', result: true }) =>
  defineQueue<{ fails?: number }>('reports', { history, attempts: 5, backoff: fixed(0) });

async function work(queue = reports(), answer: (data: { fails?: number }) => unknown = () => ({ url: 'x' })) {
  worker = createWorker(
    queue,
    (job) => {
      if (job.attempt <= (job.data.fails ?? 0)) throw new Error(`no luck ${job.attempt}`);
      return answer(job.data);
    },
    { redis: server.url, concurrency: 5 },
  );
  await worker.start();
}
const statusOf = async (id: string) => (await producer.get('reports', id))?.state;
const until = (id: string, status: string) => expect.poll(() => statusOf(id)).toBe(status);

describe('a result', () => {
  test('is what the handler returned, sync or not, and is told as long as it is kept', async () => {
    await work(reports(), async (data) => ({ url: 'https://x', data }));
    await producer.schedule(reports(), {}, { id: 'a', name: 'monthly' });
    await until('a', 'done');
    await redis.del(ref.keys.done, ref.keys.jobs);
    expect(await producer.get('reports', 'a')).toMatchObject({
      state: 'done',
      overMs: expect.any(Number),
      result: { kind: 'kept', value: { url: 'https://x', data: {} } },
      name: 'monthly',
      attempts: 1,
      owner: expect.any(String),
      past: [{ outcome: 'done', startedMs: expect.any(Number), tookMs: expect.any(Number) }],
    });
  });

  test('tells what is not known, and what is still to come', async () => {
    expect(await producer.get('reports', 'a')).toBeUndefined();
    const { dueMs } = await producer.schedule(reports(), {}, { id: 'a', delay: '1h' });
    expect(await producer.get('reports', 'a')).toMatchObject({ state: 'scheduled', dueMs, result: undefined });
    await producer.cancel('reports', 'a');
    expect(await producer.get('reports', 'a')).toMatchObject({ state: 'cancelled', overMs: expect.any(Number) });
  });

  test('of a dead job is its reason and its last error, with where it was thrown', async () => {
    await work(reports(), () => {
      throw new Unrecoverable('customer is gone');
    });
    await producer.schedule(reports(), {}, { id: 'a' });
    await until('a', 'dead');
    expect(await producer.get('reports', 'a')).toMatchObject({
      state: 'dead',
      reason: 'customer is gone',
      deadLetter: expect.stringMatching(/^\d+-\d+$/),
      history: [{ message: 'customer is gone', stack: expect.stringContaining('history.test') }],
    });
  });

  test('that is too large or no JSON is told, and the job is done', async () => {
    const answers = ['x'.repeat(50), 10n, undefined];
    await work(reports({ result: true, resultBytesMax: 20 }), () => answers.shift());
    for (const id of ['large', 'odd', 'none']) {
      await producer.schedule(reports(), {}, { id });
      await until(id, 'done');
    }
    const results = await Promise.all(['large', 'odd', 'none'].map((id) => producer.get('reports', id)));
    expect(results).toMatchObject([
      { result: { kind: 'too-large', bytes: 52 } },
      { result: { kind: 'no-json' } },
      { result: { kind: 'none' } },
    ]);
  });

  test('is not kept while Redis is full, and jobs go on to their ends', async () => {
    await producer.schedule(reports(), {}, { id: 'first' });
    for (let nth = 0; nth < 20; nth += 1) await producer.schedule(reports(), {}, { id: `a${nth}` });
    await redis.config('SET', 'maxmemory', '1');
    await work(reports(), async () => 'x'.repeat(10_000));
    for (let nth = 0; nth < 20; nth += 1) await until(`a${nth}`, 'done');
    await redis.config('SET', 'maxmemory', '0');
    await until('first', 'done');
    const kinds = new Set<string>();
    for (let nth = 0; nth < 20; nth += 1) {
      kinds.add((await producer.get('reports', `a${nth}`))?.result?.kind ?? 'unknown');
    }
    expect(kinds).toContain('none');
    expect(await redis.hlen(ref.keys.past)).toBe(21);
  });
});

test('a job that failed twice and then succeeded tells each failure', async () => {
  await work();
  await producer.schedule(reports(), { fails: 2 }, { id: 'a' });
  await until('a', 'done');
  const view = await producer.get('reports', 'a');
  expect(view).toMatchObject({ state: 'done', attempts: 3, failures: 2 });
  expect(view?.history.map(({ message }) => message)).toEqual(['no luck 1', 'no luck 2']);
  expect(view?.history[0]?.stack).toContain('history.test');
});

test('a queue that says nothing keeps nothing; one that did keeps on until somebody says no', async () => {
  const plain = defineQueue<{ fails?: number }>('reports');
  await work(plain);
  await producer.schedule(plain, {}, { id: 'before' });
  await until('before', 'done');
  expect(await redis.exists(ref.keys.past)).toBe(0);
  await worker?.stop();
  await work(reports());
  await producer.schedule(plain, {}, { id: 'on' });
  await until('on', 'done');
  expect(await redis.hexists(ref.keys.past, 'j:on')).toBe(1);
  await worker?.stop();
  await work(reports(false));
  await producer.schedule(plain, {}, { id: 'off' });
  await until('off', 'done');
  expect(await redis.hexists(ref.keys.past, 'j:off')).toBe(0);
  expect(await redis.hexists(ref.keys.past, 'j:on')).toBe(1);
  expect((await findQueue(redis, 'duestream', 'reports'))?.history).toMatchObject({ isOn: false });
});

test('what cannot be a history is refused', () => {
  expect(() => reports({ keep: '1ms' })).toThrow('history.keep is "1ms"; allowed: 1000 to');
  expect(() => reports({ max: 0 })).toThrow('history.max is 0; allowed: a whole number from 1');
  expect(() => reports({ results: true } as never)).toThrow(
    'results is not an option of history; did you mean result?',
  );
});

describe('the account of a start', () => {
  const sumOf = (account: StartAccount | undefined) => account?.parts.reduce((sum, { ms }) => sum + ms, 0);

  test('is told while the job runs, of each failed attempt, and after the end', async () => {
    let end: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      end = resolve;
    });
    await work(reports(), () => held);
    await producer.schedule(reports(), { fails: 1 }, { id: 'a', at: new Date(Date.now() - 60_000) });
    await until('a', 'running');
    await expect.poll(async () => (await producer.get('reports', 'a'))?.attempts).toBe(2);
    const running = await producer.get('reports', 'a');
    expect(sumOf(running?.account)).toBe(running?.account?.lateMs);
    const first = running?.history[0]?.account;
    expect([sumOf(first), first?.parts[0]?.cause]).toEqual([first?.lateMs, 'made-late']);
    end();
    await until('a', 'done');
    const over = await producer.get('reports', 'a');
    expect(over?.account).toEqual({ ...running?.account, toHandlerMs: expect.any(Number) });
    expect(over?.past[0]?.account).toEqual(over?.account);
  });

  test('says what the diary knows: for how long the queue was paused, and since when no worker lived', async () => {
    await work();
    const serverMs = async () => Number((await redis.time())[0]) * 1000;
    const waits = async (id: string) => {
      const fromMs = await serverMs();
      await producer.schedule(reports(), {}, { id });
      await expect.poll(async () => (await serverMs()) - fromMs).toBeGreaterThan(2000);
    };
    await producer.queues.pause('reports', { reason: 'the printer moves' });
    await waits('paused');
    await producer.queues.resume('reports');
    await until('paused', 'done');
    const { account, timeline } = (await producer.get('reports', 'paused')) ?? {};
    expect(sumOf(account)).toBe(account?.lateMs);
    expect(account?.parts.find(({ cause }) => cause === 'paused')?.ms).toBeGreaterThan(1000);
    expect(timeline?.find(({ kind }) => kind === 'started')?.account).toEqual(account);

    await worker?.stop();
    await waits('alone');
    await work();
    await until('alone', 'done');
    // The leader looks at the registry when a worker comes.
    const alone = async () => (await producer.get('reports', 'alone'))?.account?.parts.map(({ cause }) => cause);
    await expect.poll(alone).toContain('no-worker');
  });

  test('is passed over by processes of version 0.2.0, and missing where one of them has run the job', async () => {
    const copy = publishedCopy(process.cwd()) ?? '';
    const old: typeof import('../../../src/index.ts') = await import(join(copy, 'dist/index.js'));
    await work();
    await producer.schedule(reports(), { fails: 1 }, { id: 'a', at: new Date(Date.now() - 60_000) });
    await until('a', 'done');
    const reader = old.createClient({ redis: server.url });
    const seen = await reader.get('reports', 'a');
    const { id, name, attempts, failures, startedMs, tookMs, result, history } = seen ?? {};
    expect({ id, name, attempts, failures, startedMs, tookMs, result }).toMatchObject({
      id: 'a',
      attempts: 2,
      failures: 1,
    });
    expect(history).toMatchObject([{ message: 'no luck 1', kind: 'failure' }]);
    await worker?.stop();
    const its = old.createWorker(old.defineQueue('reports', { history: { keep: '1d' } }), () => ({}), {
      redis: server.url,
    });
    await its.start();
    await producer.schedule(reports(), {}, { id: 'b', at: new Date(Date.now() - 60_000) });
    await until('b', 'done');
    expect((await producer.get('reports', 'b'))?.account).toBeUndefined();
    await its.stop();
    // Its name of then.
    await Reflect.apply(Reflect.get(reader, 'stop'), reader, []);
  });
});
