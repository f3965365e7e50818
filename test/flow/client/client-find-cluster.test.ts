/** Finding jobs in a cluster, and erasing by tag, each partition on a node of its own. Real nodes. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createClient } from '../../../src/client/client.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { type ClusterOfTests, startCluster } from '../../support/topology-lite.ts';

const queue = defineQueue('invoices', { partitions: 6 });
let cluster: ClusterOfTests;

beforeAll(async () => {
  cluster = await startCluster();
});
afterAll(() => cluster?.stop());

test('jobs are listed, counted and changed over all nodes', async () => {
  const producer = createClient({ redis: cluster.url, retryBudget: '60s' });
  const ids = Array.from({ length: 90 }, (_, nth) => `j${nth}`);
  const list = ids.map((id, nth) => ({ id, data: nth, delay: '1h', tags: [nth % 3 === 0 ? 'third' : 'other'] }));
  await producer.scheduleMany(queue, list);
  const masters = await Promise.all(cluster.masters.map(({ client }) => client.keys('duestream:v1:{invoices:*:tags')));
  expect(masters.filter((keys) => keys.length > 0).length).toBeGreaterThan(1);

  const met: string[] = [];
  for await (const { id } of producer.list(queue, { tag: 'third' })) met.push(id);
  expect(met.toSorted()).toEqual(ids.filter((_, nth) => nth % 3 === 0).toSorted());
  expect((await producer.count(queue)).count).toBe(90);
  const scheduled: string[] = [];
  for await (const { id } of producer.list(queue, { state: 'scheduled' })) scheduled.push(id);
  expect(scheduled.toSorted()).toEqual(ids.toSorted());

  expect(await producer.edit(queue, { tag: 'third' }, { attempts: 2 })).toMatchObject({
    matched: 30,
    changed: 30,
  });
  const due = { at: new Date(Date.now() + 7_200_000) };
  expect(await producer.reschedule(queue, { tag: 'third' }, due)).toMatchObject({ matched: 30, changed: 30 });
  expect(await producer.cancel(queue, { tag: 'third' })).toMatchObject({ matched: 30, changed: 30, skipped: {} });
  expect((await producer.count(queue, { tag: 'third' })).count).toBe(0);
  expect((await producer.count(queue)).count).toBe(60);
  await producer.close();
});

test('jobs are waited for over all nodes', async () => {
  const waited = defineQueue('waited', { partitions: 6 });
  const producer = createClient({ redis: cluster.url, retryBudget: '60s' });
  const ids = Array.from({ length: 60 }, (_, nth) => `w${nth}`);
  await producer.scheduleMany(
    waited,
    ids.map((id) => ({ id, data: 1, delay: '1h' })),
  );
  const waiting = producer.wait(waited, ids, { timeout: '60s' });
  const marks = async () => {
    const runs = await Promise.all(cluster.masters.map(({ client }) => client.keys('duestream:v1:{waited:*:runs')));
    return runs.flat().length;
  };
  await expect.poll(marks).toBe(6);
  await producer.cancel(waited, { state: 'scheduled' });
  expect((await waiting).every(({ status }) => status === 'cancelled')).toBe(true);
  await producer.close();
});

test('a person is erased from all nodes, in steps', async () => {
  const letters = defineQueue('letters', { partitions: 6, history: { keep: '1d' }, redact: ['to'] });
  const producer = createClient({ redis: cluster.url, retryBudget: '60s' });
  const ids = Array.from({ length: 60 }, (_, nth) => `l${nth}`);
  const list = ids.map((id, nth) => ({
    id,
    data: { to: id },
    delay: '1h',
    tags: [nth % 2 === 0 ? 'user:42' : 'other'],
  }));
  await producer.scheduleMany(letters, list);
  // Their ends are in the history of every partition.
  await producer.cancel(letters, ids.slice(0, 20));
  const masters = await Promise.all(cluster.masters.map(({ client }) => client.keys('duestream:v1:{letters:*:past')));
  expect(masters.filter((keys) => keys.length > 0).length).toBeGreaterThan(1);

  const sum = { jobs: 0, history: 0 };
  let cursor: string | undefined;
  do {
    const slice = await producer.erase({ tag: 'user:42' }, { queues: [letters.name], cursor, scanMax: 9 });
    const [one] = slice.queues;
    sum.jobs += one?.jobs ?? 0;
    sum.history += one?.history ?? 0;
    cursor = slice.cursor;
  } while (cursor !== undefined);
  expect(sum).toEqual({ jobs: 20, history: 30 });
  expect(await producer.erase({ tag: 'user:42' }, { dryRun: true })).toMatchObject({ left: 0 });
  expect((await producer.count(letters)).count).toBe(20);
  expect((await producer.get(letters, 'l1'))?.past).toHaveLength(1);
  await expect(producer.edit(letters, 'l21', { data: { to: '[redacted]' } })).rejects.toMatchObject({
    code: 'bad-input',
  });
  await producer.close();
});

test('limits hold in each partition, whichever node it is on', async () => {
  const limited = defineQueue('limited', { partitions: 6, maxPending: 12, maxBytes: 1_000_000 });
  const producer = createClient({ redis: cluster.url, retryBudget: '60s' });
  const jobs = Array.from({ length: 200 }, (_, nth) => ({ id: `q${nth}`, data: nth, delay: '1h' }));
  const refused: unknown = await producer.scheduleMany(limited, jobs).catch((error: unknown) => error);
  expect(refused).toMatchObject({ code: 'queue-full' });
  expect((await producer.count(limited)).count).toBe(12);
  const found = await Promise.all(
    cluster.masters.map(async ({ client }) => {
      const keys = await client.keys('duestream:v1:{limited:*:meta');
      return Promise.all(keys.map((key) => client.hget(key, 'quota')));
    }),
  );
  expect(found.filter((some) => some.length > 0).length).toBeGreaterThan(1);
  expect(found.flat()).toEqual(Array.from({ length: 6 }, () => '2 166667'));
  await producer.close();
});
