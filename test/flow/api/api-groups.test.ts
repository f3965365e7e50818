/** Groups over HTTP: listed, the longest, one with its holders; and what a job in line waits for. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { setQueue } from '../../../src/redis/scripts/queues.ts';
import { createWorker } from '../../../src/worker/worker.ts';
import { type ServedApi, serveApi } from '../../support/api.ts';

const PATIENCE = { timeout: 60_000 };
let api: ServedApi;
let letGo = () => {};
let stop = async () => {};

beforeAll(async () => {
  api = await serveApi({ roles: ['http', 'mover'] });
  await api.ask('POST /v1/queues/imports/jobs', { body: { id: 'later', delay: '1h' } });
  await setQueue(api.place.redis, { namespace: 'duestream', queue: 'imports', perGroup: 1 });
  const held = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  const worker = createWorker('imports', () => held, { redis: api.redis.url });
  await worker.start();
  stop = () => worker.stop();
  const jobs = [1, 2, 3].flatMap((nth) => ['acme', 'a/b', 'umbrella'].map((group) => ({ id: `j${nth}`, group })));
  await api.ask('POST /v1/queues/imports/batch/schedule', { body: { jobs: [...jobs, { id: 'j4', group: 'acme' }] } });
  await vi.waitUntil(async () => (await list('?state=waiting')).length === 7, PATIENCE);
  await vi.waitUntil(async () => (await list('?state=running')).length === 3, PATIENCE);
});
afterAll(async () => {
  letGo();
  await stop();
  await api.stop();
});

const list = async (query: string): Promise<readonly unknown[]> =>
  (await api.ask(`GET /v1/queues/imports/jobs${query}`)).body.jobs;
const groups = (query = '') => api.ask(`GET /v1/queues/imports/groups${query}`);

test('they are listed by name, page by page', async () => {
  const { status, body } = await groups('?limit=2');
  expect(status).toBe(200);
  expect(body).toMatchObject({ queue: 'imports', ungrouped: 0, scanned: 2, cursor: expect.any(String) });
  expect(body.groups).toMatchObject([
    { group: 'a/b', running: 1, waiting: 2, perGroup: 1, isFull: true },
    { group: 'acme', running: 1, waiting: 3, priorities: { high: 0, normal: 3, low: 0 } },
  ]);
  const { body: rest } = await groups(`?cursor=${body.cursor}`);
  expect(rest.groups).toMatchObject([{ group: 'umbrella' }]);
  expect(rest.cursor).toBeUndefined();
});

test('the longest come first', async () => {
  const { body } = await groups('?top=true&limit=1');
  expect(body.groups).toMatchObject([{ group: 'acme', waiting: 3 }]);
  expect(body.scanned).toBe(3);
});

test('one says who holds its limit', async () => {
  const { status, body } = await api.ask('GET /v1/queues/imports/groups/a%2Fb');
  expect(status).toBe(200);
  expect(body).toMatchObject({ group: 'a/b', running: 1, holders: [{ id: '{a/b}j1', owner: expect.any(String) }] });
});

test('a job in line says what it waits for', async () => {
  const { body } = await api.ask(`GET /v1/queues/imports/jobs/${encodeURIComponent('{acme}j4')}`);
  expect(body).toMatchObject({
    state: 'waiting',
    waitsFor: {
      group: 'acme',
      priority: 'normal',
      ahead: 2,
      text: '2 jobs of group acme, normal priority, come before it',
      obstacles: [{ kind: 'group-full', text: 'its group acme is full: 1 of 1 run', holders: [{ id: '{acme}j1' }] }],
    },
  });
});

test('a queue that is not gated, one that is unknown, and a name that is none are refused', async () => {
  await api.ask('POST /v1/queues/open/jobs', { body: { id: 'later', delay: '1h' } });
  const open = await api.ask('GET /v1/queues/open/groups');
  expect(open).toMatchObject({ status: 400, body: { code: 'bad-input', detail: expect.stringContaining('--fair') } });
  expect((await api.ask('GET /v1/queues/nobody/groups')).status).toBe(404);
  expect((await api.ask('GET /v1/queues/imports/groups/a%20b')).status).toBe(400);
});
