/** `debounce` of the library, on a real Redis: what callers are told, and which data run. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { type Client, createClient } from '../../../src/client/client.ts';
import { createDaemon } from '../../../src/daemon/daemon.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { createWorker } from '../../../src/worker/worker.ts';
import { openLossyLine } from '../../support/lossy-line.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

const index = defineQueue<number>('index');
const debounce = { wait: '1m', max: '5m' };
const ends: (() => unknown)[] = [];
let server: TestRedis;
let client: Client;
beforeAll(async () => {
  server = await startRedis();
});
beforeEach(async () => {
  await (await server.client()).flushall();
  client = createClient({ redis: server.url });
});
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
  await client.close();
});
afterAll(() => server.stop());

const dataOf = async (id: string) => (await client.get(index, id))?.data;

test('the first call makes the job, and the next ones move it, also in one list', async () => {
  const first = await client.schedule(index, 1, { id: 'x', debounce });
  expect(first.status).toBe('scheduled');
  const second = await client.schedule(index, 2, { id: 'x', debounce });
  expect(second).toMatchObject({ id: 'x', queue: 'index', status: 'merged' });
  expect(second.dueMs).toBeGreaterThanOrEqual(first.dueMs);
  const many = await client.scheduleMany(index, [
    { data: 3, id: 'x', debounce },
    { data: 4, id: 'y', debounce },
    { data: 5, id: 'x', debounce },
    { data: 6, delay: '1h' },
  ]);
  expect(many.map(({ status }) => status)).toEqual(['merged', 'scheduled', 'merged', 'scheduled']);
  expect([await dataOf('x'), await dataOf('y')]).toEqual([5, 4]);
});

test('calls of one turn are judged in the order of the calls', async () => {
  const calls = Array.from({ length: 100 }, (_, nth) => client.schedule(index, nth, { id: 'x', debounce }));
  const statuses = (await Promise.all(calls)).map(({ status }) => status);
  expect(statuses).toEqual(['scheduled', ...Array.from({ length: 99 }, () => 'merged')]);
  expect(await dataOf('x')).toBe(99);
});

test('a job whose longest wait is its wait keeps the due time of its first call, and has the data of the last', async () => {
  const first = await client.schedule(index, 1, { id: 'x', debounce: { wait: '1m', max: '1m' } });
  const second = await client.schedule(index, 2, { id: 'x', debounce: { wait: '1m', max: '1m' } });
  expect(second).toEqual({ id: 'x', queue: 'index', status: 'merged', dueMs: first.dueMs });
  expect(await dataOf('x')).toBe(2);
});

test('a job that was scheduled otherwise is kept', async () => {
  const { dueMs } = await client.schedule(index, 1, { id: 'x', delay: '1h' });
  expect(await client.schedule(index, 2, { id: 'x', debounce })).toMatchObject({ status: 'exists', dueMs });
});

test('a call that is newer than its clock says is sent again, once, and those of one moment stay in their order', async () => {
  const redis = await server.client();
  const jobs = 'duestream:v1:{index:0}:jobs';
  await client.schedule(index, 0, { id: 'x', debounce });
  const ahead = (Date.now() + 10_000).toString(36);
  const record = (await redis.hget(jobs, 'j:x')) ?? '';
  await redis.hset(jobs, 'j:x', record.replace(/;m=\w+/, `;m=${ahead}`));
  const calls = [1, 2, 3].map((data) => client.schedule(index, data, { id: 'x', debounce }));
  expect((await Promise.all(calls)).map(({ status }) => status)).toEqual(['merged', 'merged', 'merged']);
  expect(await dataOf('x')).toBe(3);
});

test('a call whose reply was lost is done when a newer one has come', async () => {
  const line = await openLossyLine(server);
  ends.push(line.close);
  const other = createClient({ redis: line.url, retryBudget: '5s' });
  ends.push(() => other.close());
  await other.schedule(index, 0, { id: 'warm', debounce });
  line.lose({ refusals: 3 });
  const lost = other.schedule(index, 1, { id: 'x', debounce });
  await expect.poll(() => line.hasLost()).toBe(true);
  await expect.poll(() => dataOf('x')).toBe(1);
  expect(await client.schedule(index, 2, { id: 'x', debounce })).toMatchObject({ status: 'merged' });
  expect(await lost).toMatchObject({ status: 'overtaken' });
  expect(await dataOf('x')).toBe(2);
});

test('newer data of a job that runs make its next life', async () => {
  const daemon = createDaemon({ redis: server.url, roles: ['mover'] });
  await daemon.start();
  ends.push(() => daemon.stop());
  const seen: (readonly [number, number])[] = [];
  let release: (() => void) | undefined;
  const worker = createWorker(
    index,
    async (job) => {
      seen.push([job.data, job.attempt]);
      if (seen.length === 1) await new Promise<void>((resolve) => (release = resolve));
    },
    { redis: server.url },
  );
  await worker.start();
  ends.push(() => worker.stop());
  const quick = { wait: '20ms', max: '100ms' };
  await client.schedule(index, 1, { id: 'x', debounce: quick });
  await expect.poll(() => seen).toHaveLength(1);
  const statuses: string[] = [];
  for (const data of [2, 3]) statuses.push((await client.schedule(index, data, { id: 'x', debounce: quick })).status);
  expect(statuses).toEqual(['behind', 'behind']);
  const report = await client.get(index, 'x');
  expect(report).toMatchObject({ state: 'running', data: 3, nextLifeMs: report?.askedDueMs });
  expect(report?.timeline.filter(({ kind }) => kind === 'due')).toEqual([
    { atMs: report?.nextLifeMs, kind: 'due', attempt: 1 },
  ]);
  expect(report?.timeline.some(({ kind }) => kind === 'asked-due')).toBe(false);
  release?.();
  await expect
    .poll(() => seen)
    .toEqual([
      [1, 1],
      [3, 1],
    ]);
  const [end] = await client.wait(index, ['x'], { timeout: '5s' });
  expect(end).toMatchObject({ status: 'done' });
  expect((await client.get(index, 'x'))?.nextLifeMs).toBeUndefined();
});
