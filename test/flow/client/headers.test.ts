/** Headers of a job: texts beside its data, which go with it wherever it goes, and are seen by whoever may see its data. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Client, createClient } from '../../../src/client/client.ts';
import { createDaemon } from '../../../src/daemon/daemon.ts';
import type { Job } from '../../../src/job/job.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { createTestKit } from '../../../src/testing/index.ts';
import { createSubscriber } from '../../../src/worker/broadcast/subscriber.ts';
import type { Handler } from '../../../src/worker/run/handlers.ts';
import { createWorker } from '../../../src/worker/worker.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

const HEADERS = { traceparent: '00-0af7651916cd43dd-b7ad6b71-01', tenant: 'a|b;c=ü' };
const GIVEN = { TraceParent: HEADERS.traceparent, tenant: HEADERS.tenant };

let server: TestRedis;
let producer: Client;
let daemon: ReturnType<typeof createDaemon>;

beforeAll(async () => {
  server = await startRedis();
  producer = createClient({ redis: server.url });
  daemon = createDaemon({ redis: server.url, roles: ['mover'] });
  await daemon.start();
});
afterAll(async () => {
  await producer.close();
  await daemon.stop();
  await server.stop();
});

/** A worker that remembers the headers of each start, and then does what it is told. */
async function work(name: string, handler: Handler, delivery?: 'effectively-once') {
  const got: [string, Job['headers']][] = [];
  const worker = createWorker(
    defineQueue(name, delivery ? { delivery } : {}),
    (job, context) => {
      got.push([job.id, job.headers]);
      return handler(job, context);
    },
    { redis: server.url },
  );
  await worker.start();
  return { got, worker };
}

test('a handler and middleware get them at each start; without any there is an empty object', async () => {
  const { got, worker } = await work('retried', (job) => {
    if (job.id === 'a' && job.attempt < 3) throw new Error('again');
  });
  const seen: unknown[] = [];
  worker.use({
    handle: (job, _context, next) => {
      seen.push(job.headers);
      return next();
    },
  });
  await producer.schedule('retried', 1, {
    id: 'a',
    headers: GIVEN,
    backoff: { kind: 'fixed', delayMs: 1, jitter: 'none' },
  });
  await expect.poll(() => got.length).toBe(3);
  await producer.schedule('retried', 1, { id: 'b' });
  await expect.poll(() => got.length).toBe(4);
  await worker.stop();
  expect(got).toEqual([...[1, 2, 3].map(() => ['a', HEADERS]), ['b', {}]]);
  expect(seen).toEqual(got.map(([, headers]) => headers));
});

test('they stay in a dead letter and come back with its replay', async () => {
  const { got, worker } = await work('died', () => {
    throw new Error('no');
  });
  await producer.schedule('died', 1, { id: 'a', headers: GIVEN, attempts: 1 });
  const dead = producer.deadLetters;
  const letters = async () => (await dead.list('died')).deadLetters.map(({ deadLetter }) => deadLetter);
  await expect.poll(letters).toHaveLength(1);
  const [letter = ''] = await letters();
  expect(await dead.get('died', letter)).toMatchObject({ data: 1, headers: HEADERS, options: { attempts: 1 } });
  expect((await dead.get('died', letter))?.options).not.toHaveProperty('headers');
  await producer.deadLetters.replay('died', letter);
  await expect.poll(() => got.length).toBe(2);
  await worker.stop();
  expect(got).toEqual([
    ['a', HEADERS],
    ['a', HEADERS],
  ]);
});

test('the jobs of a schedule have those that it says, when they fire and when they are triggered', async () => {
  const { got, worker } = await work('fired', () => undefined);
  const { schedules } = producer;
  await schedules.put('tick', { queue: 'fired', every: '1s', headers: GIVEN, maxRuns: 1 });
  await schedules.trigger('tick', { id: 'by-hand' });
  await expect.poll(() => got.length).toBe(2);
  expect((await schedules.put('tick', { queue: 'fired', every: '1s', headers: { a: '1' }, maxRuns: 1 })).status).toBe(
    'changed',
  );
  await worker.stop();
  expect(got.map(([, headers]) => headers)).toEqual([HEADERS, HEADERS]);
});

test('what a handler schedules has its own, and inherits none', async () => {
  const { got, worker } = await work(
    'next',
    async (job, { schedule, commitJob }) => {
      if (job.id !== 'a') return;
      await schedule('next', 1, { id: 'none' });
      await schedule('next', 1, { id: 'own', headers: { step: '2' } });
      await commitJob(1, { headers: { step: '3' } });
    },
    'effectively-once',
  );
  await producer.schedule('next', 1, { id: 'a', headers: GIVEN });
  await expect.poll(() => got.length).toBe(4);
  await worker.stop();
  const by = Object.fromEntries(got.map(([id, headers]) => [id.startsWith('{') ? 'committed' : id, headers]));
  expect(by).toEqual({ a: HEADERS, none: {}, own: { step: '2' }, committed: { step: '3' } });
});

test('each subscriber gets them', async () => {
  const news = defineQueue('news', { broadcast: true });
  const got: unknown[] = [];
  const subscriber = createSubscriber(news, (job) => void got.push(job.headers), { redis: server.url });
  await subscriber.start();
  await producer.schedule(news, 1, { headers: GIVEN });
  await expect.poll(() => got).toEqual([HEADERS]);
  await subscriber.stop();
});

test('the same call with other headers is the same call, also when the job is over, unless it replaces', async () => {
  const { got, worker } = await work('same', () => undefined);
  const at = new Date(Date.now() + 3_600_000);
  const call = async (options: object, data: unknown = { text: 'x'.repeat(1000) }) =>
    (await producer.schedule('same', data, { id: 'a', at, ...options })).status;
  expect(await call({ headers: { a: '1' } })).toBe('scheduled');
  expect(await call({ headers: { a: '2' } })).toBe('already');
  expect(await call({})).toBe('already');
  expect(await call({ headers: { a: '3' }, ifExists: 'replace' })).toBe('replaced');
  expect(await call({ headers: { a: '1' } }, 2)).toBe('exists');
  expect((await producer.edit('same', 'a', { attempts: 2 })).status).toBe('edited');
  expect(await call({ headers: { b: '4' } })).toBe('already');
  await producer.runNow('same', 'a');
  await expect.poll(() => producer.get('same', 'a').then((found) => found?.state)).toBe('done');
  await worker.stop();
  expect(await call({ headers: { c: '5' } })).toBe('already');
  expect(got).toEqual([['a', { a: '3' }]]);
});

describe('what waits', () => {
  test('shows them beside its data, and an edit keeps, changes and takes them away', async () => {
    await producer.schedule('waits', 1, { id: 'a', delay: '1h', headers: GIVEN, tags: ['t'] });
    const seen = async () => (await producer.get('waits', 'a'))?.headers;
    expect(await producer.get('waits', 'a')).toMatchObject({ headers: HEADERS, options: { tags: ['t'] } });
    await producer.edit('waits', 'a', { data: 2 });
    await producer.reschedule('waits', 'a', { delay: '2h' });
    expect(await seen()).toEqual(HEADERS);
    await producer.edit('waits', 'a', { headers: { X: 'y' } });
    expect(await seen()).toEqual({ x: 'y' });
    await producer.edit('waits', 'a', { headers: null });
    expect(await seen()).toBeUndefined();
  });
});

test('the test kit does the same', async () => {
  const got: unknown[] = [];
  const kit = createTestKit({ handlers: { q: async ({ headers }: Job) => void got.push(headers) } });
  const at = new Date(kit.nowMs + 60_000);
  const call = async (headers: Job['headers']) => (await kit.client.schedule('q', 1, { id: 'a', at, headers })).status;
  expect([await call({ A: '1' }), await call({ a: '2' }), await call({})]).toEqual(['scheduled', 'already', 'already']);
  expect((await kit.client.get('q', 'a'))?.headers).toEqual({ a: '1' });
  await kit.schedule('q', 1, { id: 'b', at });
  await kit.advance('1h');
  expect(got).toEqual([{ a: '1' }, {}]);
  expect(await call({ a: '3' })).toBe('already');
});
