/** How jobs ended, as `get` of the test kit tells it in a queue that keeps a history. */
import { expect, test } from 'vitest';
import { fixed } from '../../src/job/backoff.ts';
import { Unrecoverable } from '../../src/job/outcome.ts';
import { defineQueue } from '../../src/job/queue.ts';
import { createTestKit } from '../../src/testing/index.ts';

const options = { attempts: 3, backoff: fixed('1m') };
const reports = defineQueue<{ fails: number }>('reports', { ...options, history: { result: true } });
const plain = defineQueue<{ fails: number }>('plain', options);

function work({ attempt, data, name }: { attempt: number; data: { fails: number }; name: string }) {
  if (name === 'die') throw new Unrecoverable('no');
  if (attempt <= data.fails) throw new Error(`no luck ${attempt}`);
  return { attempt };
}
const kitOf = () =>
  createTestKit({ handlers: { reports: work, plain: work }, queues: [reports, plain], lasts: () => 5 });

test('a job that failed and then succeeded tells its errors, its times and its result', async () => {
  const kit = kitOf();
  const startMs = kit.nowMs;
  await kit.client.schedule(reports, { fails: 2 }, { id: 'a', name: 'monthly', tags: ['user:42'] });
  await kit.advance('1h');
  const seen = await kit.client.get(reports, 'a');
  expect(seen).toMatchObject({ state: 'done', name: 'monthly', attempts: 3, failures: 2, owner: 'kit' });
  expect(seen?.past).toMatchObject([
    {
      id: 'a',
      bare: false,
      outcome: 'done',
      name: 'monthly',
      tags: ['user:42'],
      attempts: 3,
      failures: 2,
      crashes: 0,
      owner: 'kit',
      startedMs: startMs + 120_010,
      tookMs: 5,
      overMs: startMs + 120_015,
      history: [{ message: 'no luck 1' }, { message: 'no luck 2' }],
      result: { kind: 'kept', value: { attempt: 3 } },
    },
  ]);
});

test('the account of each start is kept with it, and adds up to its lateness', async () => {
  const kit = kitOf();
  await kit.client.schedule(reports, { fails: 1 }, { id: 'a', delay: '1s' });
  kit.outage('41s');
  await kit.advance('1h');
  const seen = await kit.client.get(reports, 'a');
  expect(seen?.account).toMatchObject({ lateMs: 0, parts: [], toHandlerMs: 0 });
  expect(seen?.history).toMatchObject([{ account: { lateMs: 40_000, parts: [{ cause: 'promotion', ms: 40_000 }] } }]);
  await kit.client.schedule(plain, { fails: 0 }, { id: 'a' });
  await kit.advance('1h');
  expect((await kit.client.get(plain, 'a'))?.account).toBeUndefined();
});

test('a job that is put after its due time says so, and the same call is recognised whenever it is made again', async () => {
  const kit = kitOf();
  const put = () => kit.client.schedule(reports, { fails: 0 }, { id: 'a', at: '2025-12-31T23:00:00Z' });
  expect(await put()).toMatchObject({ status: 'scheduled' });
  kit.outage('5s');
  expect(await put()).toMatchObject({ status: 'already' });
  await kit.advance('1h');
  const parts = [
    { cause: 'made-late', ms: 3_600_000 },
    { cause: 'promotion', ms: 5000 },
  ];
  expect((await kit.client.get(reports, 'a'))?.account).toMatchObject({ lateMs: 3_605_000, parts });
  expect(await put()).toMatchObject({ status: 'already' });
});

test('dead letters of one millisecond are numbered in each partition, so the id alone may mean two', async () => {
  const wide = defineQueue<{ fails: number }>('wide', { partitions: 2 });
  const kit = createTestKit({ handlers: { wide: work }, queues: [wide] });
  const { deadLetters, schedule } = kit.client;
  for (const id of ['a', 'b', 'c', 'd']) await schedule(wide, { fails: 0 }, { id, name: 'die', delay: '1m' });
  await kit.advance('1m');
  const rows = (await deadLetters.list(wide)).deadLetters;
  const ids = rows.map(({ deadLetter, partition }) => `${partition}/${deadLetter.replace(String(kit.nowMs), 'ms')}`);
  expect(ids.toSorted()).toEqual(['0/ms-0', '0/ms-1', '1/ms-0', '1/ms-1']);
  await expect(deadLetters.replay(wide, `${kit.nowMs}-0`)).rejects.toThrow(/is in the partitions 0, 1; name one with/);
  expect(await deadLetters.remove(wide, rows)).toMatchObject(rows.map(() => ({ status: 'removed' })));
});

test('earlier lives of an id follow, also behind a replay, and while it lives again', async () => {
  const kit = kitOf();
  const put = (name: string) => kit.client.schedule(reports, { fails: 0 }, { id: 'a', name, delay: '1s' });
  await put('die');
  await kit.advance('1m');
  await kit.client.deadLetters.replay(reports, { job: 'a' });
  expect((await kit.client.get(reports, 'a'))?.past.map(({ outcome }) => outcome)).toEqual(['dead']);
  await kit.client.cancel(reports, 'a');
  await put('monthly');
  const outcomes = async () => (await kit.client.get(reports, 'a'))?.past.map(({ outcome }) => outcome);
  expect(await outcomes()).toEqual(['cancelled', 'dead']);
  await kit.advance('1m');
  expect(await outcomes()).toEqual(['done', 'cancelled', 'dead']);
});

test('a job that is cancelled before its start has neither worker nor token', async () => {
  const kit = kitOf();
  await kit.client.schedule(reports, { fails: 0 }, { id: 'a', delay: '1h' });
  await kit.client.cancel(reports, 'a');
  expect((await kit.client.get(reports, 'a'))?.past).toMatchObject([
    { outcome: 'cancelled', token: undefined, owner: undefined, startedMs: undefined, tookMs: undefined, attempts: 0 },
  ]);
});

test('a queue that keeps no history tells no past', async () => {
  const kit = kitOf();
  await kit.client.schedule(plain, { fails: 1 }, { id: 'a' });
  await kit.advance('1h');
  expect(await kit.client.get(plain, 'a')).toMatchObject({ state: 'done', past: [] });
});
