/** The table of docs/how-to/dedupe.md, on a real Redis: what becomes of the second call. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { type Client, createClient } from '../../../src/client/client.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

const index = defineQueue<{ version: number }>('index');
const at = { at: new Date(Date.now() + 3_600_000) };
let server: TestRedis;
let producer: Client;
beforeAll(async () => {
  server = await startRedis();
});
beforeEach(async () => {
  await (await server.client()).flushall();
  producer = createClient({ redis: server.url });
});
afterEach(() => producer.close());
afterAll(() => server.stop());

const view = () => producer.get(index, 'x');

test('dedupe: the first job stays, and the same call is recognised', async () => {
  await producer.schedule(index, { version: 1 }, { id: 'x', ...at });
  expect(await producer.schedule(index, { version: 1 }, { id: 'x', ...at })).toMatchObject({ status: 'already' });
  expect(await producer.schedule(index, { version: 2 }, { id: 'x', ...at })).toMatchObject({ status: 'exists' });
  expect((await view())?.data).toEqual({ version: 1 });
});

test('debounce: the job is due later, and never sooner', async () => {
  const first = await producer.schedule(index, { version: 1 }, { id: 'x', delay: '1h' });
  expect(await producer.schedule(index, { version: 1 }, { id: 'x', delay: '2h' })).toMatchObject({ status: 'exists' });
  const { dueMs = 0 } = await producer.reschedule(index, 'x', { delay: '2h', only: 'later' });
  expect(dueMs).toBeGreaterThan(first.dueMs);
  expect(await producer.reschedule(index, 'x', { delay: '1h', only: 'later' })).toMatchObject({
    status: 'kept',
    dueMs,
  });
});

test('the last one wins', async () => {
  await producer.schedule(index, { version: 1 }, { id: 'x', ...at });
  const later = { at: new Date(at.at.getTime() + 1000) };
  const second = { id: 'x', ...later, ifExists: 'replace' } as const;
  expect(await producer.schedule(index, { version: 2 }, second)).toMatchObject({ status: 'replaced' });
  expect(await view()).toMatchObject({ data: { version: 2 }, dueMs: later.at.getTime() });
});

test('the first time, the last data', async () => {
  const { dueMs } = await producer.schedule(index, { version: 1 }, { id: 'x', ...at });
  await producer.edit(index, 'x', { data: { version: 2 } });
  expect(await view()).toMatchObject({ data: { version: 2 }, dueMs });
  expect(await producer.schedule(index, { version: 1 }, { id: 'x', ...at })).toMatchObject({ status: 'already' });
});

test('a herd is spread, and the same call again is recognised', async () => {
  const herd = Array.from({ length: 200 }, (_, nth) => ({
    data: { version: nth },
    id: `j${nth}`,
    ...at,
    within: '10m',
  }));
  const found = await producer.scheduleMany(index, herd);
  const late = found.map(({ dueMs }) => dueMs - at.at.getTime());
  expect(new Set(late).size).toBeGreaterThan(150);
  expect(Math.max(...late)).toBeLessThanOrEqual(600_000);
  const again = await producer.scheduleMany(index, herd);
  expect(new Set(again.map(({ status }) => status))).toEqual(new Set(['already']));
});
