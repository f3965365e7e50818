/** A queue that is full, over HTTP. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { partitionRef } from '../../../src/redis/keys.ts';
import { declareQueue } from '../../../src/redis/scripts/queues.ts';
import { type ServedApi, serveApi } from '../../support/api.ts';

let api: ServedApi;
beforeAll(async () => {
  api = await serveApi({ roles: ['http', 'mover'] });
  await declareQueue(api.place.redis, { namespace: 'duestream', queue: 'mail', partitions: 1, maxPending: 2 });
});
afterAll(() => api.stop());

test('a new job is answered 429 with queue-full, when to come again, and nothing changed', async () => {
  const put = (id: string) => api.ask('POST /v1/queues/mail/jobs', { body: { id, delay: '1h' } });
  expect((await put('a')).status).toBe(201);
  const { status, body, headers } = await api.ask('POST /v1/queues/mail/batch/schedule', {
    body: { jobs: ['a', 'b', 'c'].map((id) => ({ id, delay: '1h' })) },
  });
  expect({ status, code: body.code }).toEqual({ status: 429, code: 'queue-full' });
  expect(headers.get('retry-after')).toBe('10');
  expect(body.confirmed.map((one: { id: string }) => one.id)).toEqual(['a', 'b']);
  expect(body.unconfirmed).toMatchObject([{ index: 2, id: 'c' }]);
  const refused = await put('d');
  expect(refused.body).toMatchObject({ status: 429, code: 'queue-full', title: 'the queue is full' });
  expect(refused.body.detail).toContain('2 jobs wait or run; allowed by maxPending: 2');
  expect((await api.ask('GET /v1/queues/mail/jobs/d')).status).toBe(404);
});

test('the queue tells its limits and what is used of them', async () => {
  const quota = { pending: 2, pendingMax: 2, bytes: 0, bytesMax: 0 };
  expect((await api.ask('GET /v1/queues/mail')).body).toMatchObject({ quota, partitions: [{ quota }] });
  expect((await api.ask('GET /v1/queues')).body.queues).toMatchObject([{ queue: 'mail', quota }]);
});

test('a new job of a group that is full is answered 429 with group-full, and the group says how full it is', async () => {
  await api.ask('POST /v1/queues/imports/jobs', { body: { id: 'first', delay: '1h' } });
  const body = { perGroup: { concurrency: 3, maxPending: 1 } };
  const set = await api.ask('PATCH /v1/queues/imports/settings', { body });
  expect(set.body).toMatchObject({ settings: body, changed: ['perGroup', 'groupPending'] });
  await api.ask('PUT /v1/queues/imports/groups/big/limits', { body: { maxPending: 2 } });
  const jobs = ['acme', 'acme', 'big', 'big', 'big'].map((group, nth) => ({ id: `${nth}`, group, delay: '1h' }));
  const { status, body: told } = await api.ask('POST /v1/queues/imports/batch/schedule', { body: { jobs } });
  expect({ status, code: told.code }).toEqual({ status: 429, code: 'group-full' });
  expect(told.confirmed.map((one: { id: string }) => one.id)).toEqual(['{acme}0', '{big}2', '{big}3']);
  const refused = await api.ask('POST /v1/queues/imports/jobs', { body: { group: 'acme' } });
  expect(refused.body).toMatchObject({ code: 'group-full', title: 'the group is full' });
  expect(refused.headers.get('retry-after')).toBe('10');
  const group = await api.ask('GET /v1/queues/imports/groups/big');
  expect(group.body).toMatchObject({ pending: 2, maxPending: 2, perGroup: 3 });
});

test('the settings of a queue are told although a key of it is damaged', async () => {
  const { keys } = partitionRef('duestream', { queue: 'mail', partition: 0, layoutGeneration: 0 });
  await api.place.redis.set(keys.scheduled, 'damaged');
  const { status, body } = await api.ask('GET /v1/queues/mail/settings');
  expect([status, body]).toEqual([200, { queue: 'mail', settings: { maxPending: 2 }, overrides: [] }]);
});
