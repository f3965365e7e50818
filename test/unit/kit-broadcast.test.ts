/** Broadcast queues in the test kit: each subscriber gets each job when it is due, and the job is done. */
import { expect, test } from 'vitest';
import { defineQueue } from '../../src/job/queue.ts';
import { createTestKit } from '../../src/testing/index.ts';

const prices = defineQueue<{ cents: number }>('prices', { broadcast: true });

test('each subscriber gets each job at its due time, and the job is done', async () => {
  const kit = createTestKit({ handlers: {} });
  const one: number[] = [];
  const other: string[] = [];
  kit.subscribe(prices, (job) => one.push(job.data.cents));
  const end = kit.subscribe(prices, { default: (job) => other.push(job.id) });
  await kit.client.schedule(prices, { cents: 5 }, { id: 'a', delay: '1m' });
  expect([one, other]).toEqual([[], []]);
  await kit.advance('1m');
  expect([one, other]).toEqual([[5], ['a']]);
  expect((await kit.client.get(prices, 'a'))?.state).toBe('done');
  end();
  await kit.schedule(prices, { cents: 7 }, { id: 'b' });
  await kit.advance('1s');
  expect([one, other]).toEqual([[5, 7], ['a']]);
  expect(kit.runs.map(({ id, outcome }) => [id, outcome])).toEqual([
    ['a', 'done'],
    ['a', 'done'],
    ['b', 'done'],
  ]);
});

test('a job that is sent while nobody subscribes is done, and gone', async () => {
  const kit = createTestKit({ handlers: {} });
  await kit.schedule(prices, { cents: 1 }, { id: 'a' });
  await kit.advance('1s');
  const got: string[] = [];
  kit.subscribe(prices, (job) => got.push(job.id));
  await kit.advance('1h');
  expect([kit.jobs({ queue: 'prices' })[0]?.state, got]).toEqual(['done', []]);
});

test('what a handler throws is told and not tried again', async () => {
  const kit = createTestKit({ handlers: {} });
  let calls = 0;
  kit.subscribe(prices, () => {
    calls += 1;
    throw new Error('boom');
  });
  kit.subscribe(prices, { other: () => undefined });
  await kit.schedule(prices, { cents: 1 }, { id: 'a' });
  await kit.advance('1d');
  expect(calls).toBe(1);
  expect(new Set(kit.runs.map(({ outcome, error }) => `${outcome}: ${error}`))).toEqual(
    new Set(['failed: boom', 'failed: no handler for jobs named default']),
  );
  expect(kit.jobs()[0]).toMatchObject({ state: 'done' });
});

test('a job that is too late is dropped, and a queue of workers has no subscribers', async () => {
  const kit = createTestKit({ handlers: {} });
  const got: string[] = [];
  kit.subscribe(prices, (job) => got.push(job.id));
  await kit.schedule(prices, { cents: 1 }, { id: 'a', delay: '1m', maxLateness: '1s' });
  kit.outage('1h');
  await kit.advance('1s');
  expect([kit.jobs()[0]?.state, got]).toEqual(['expired', []]);
  expect(() => kit.subscribe(defineQueue('mail'), () => undefined)).toThrow(/mail is no broadcast/);
});
