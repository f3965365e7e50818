/** What the compiler knows of the jobs of a batch. */
import { expect, expectTypeOf, test } from 'vitest';
import { createWorker } from '../../src/daemon/embedded-worker.ts';
import { defineHandlers, defineQueue, inBatches } from '../../src/index.ts';
import { createTestKit } from '../../src/testing/index.ts';

const people = defineQueue<{ name: string }>('people');
const redis = 'redis://127.0.0.1:1';

test('the data of a queue are those of its batches', () => {
  createWorker(
    people,
    inBatches({ size: 10 }, (batch) => {
      expectTypeOf(batch.jobs[0]?.data).toEqualTypeOf<{ name: string } | undefined>();
    }),
    { redis },
  );
  createWorker({
    redis,
    queues: [
      {
        queue: people,
        handler: inBatches<{ name: string }>({}, (batch) => {
          expectTypeOf(batch.jobs[0]?.data.name).toEqualTypeOf<string | undefined>();
        }),
        concurrency: 2,
      },
    ],
  });
  const handlers = defineHandlers({ people: inBatches({ size: 10 }, () => undefined) }, { queues: [people] });
  expect(handlers.map.people).toMatchObject({ kind: 'duestream.batch', size: 10, waitMs: 100 });
});

test('in the test kit a batch is played once, for all that came together', async () => {
  const batches: (readonly string[])[] = [];
  const kit = createTestKit({
    handlers: {
      people: inBatches<{ name: string }>({ size: 3, wait: '200ms' }, (batch) => {
        batches.push(batch.jobs.map(({ data }) => data.name));
        const ann = batch.jobs.find(({ data }) => data.name === 'ann');
        if (ann) batch.fail(ann, new Error('no'));
      }),
    },
    queues: [people],
  });
  for (const name of ['ann', 'bob', 'cid', 'dan']) await kit.schedule(people, { name }, { id: name, delay: '1h' });
  await kit.advance('1h');
  expect(batches).toEqual([['ann', 'bob', 'cid']]);
  await kit.advance('200ms');
  expect(batches).toEqual([['ann', 'bob', 'cid'], ['dan']]);
  expect(kit.runs.map(({ id, outcome }) => `${id} ${outcome}`).toSorted()).toEqual([
    'ann retry',
    'bob done',
    'cid done',
    'dan done',
  ]);
});

test('in the test kit a batch lasts as long as the longest of its jobs', async () => {
  const ends: number[] = [];
  const kit = createTestKit({
    handlers: { people: inBatches({ size: 2 }, () => undefined) },
    queues: [people],
    lasts: (job) => (job.id === 'long' ? '1m' : '1s'),
  });
  const startMs = kit.nowMs;
  await kit.schedule(people, { name: 'x' }, { id: 'short' });
  await kit.schedule(people, { name: 'x' }, { id: 'long' });
  await kit.advance('59s');
  ends.push(kit.runs.length);
  await kit.advance('2s');
  ends.push(kit.runs.length);
  expect(ends).toEqual([0, 2]);
  expect(kit.nowMs - startMs).toBe(61_000);
});

test('in the test kit with inline no batch waits for more', async () => {
  const batches: number[] = [];
  const kit = createTestKit({
    handlers: { people: inBatches({ size: 3, wait: '1m' }, ({ jobs }) => batches.push(jobs.length)) },
    queues: [people],
    inline: true,
  });
  await kit.client.schedule(people, { name: 'x' }, { delay: '1d' });
  expect(batches).toEqual([1]);
});
