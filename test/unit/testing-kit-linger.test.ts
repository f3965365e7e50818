/** The test kit plays passes that are apart: due jobs wait for company, counted from the last pass of their partition. */
import { expect, test } from 'vitest';
import { defineQueue } from '../../src/index.ts';
import { createTestKit } from '../../src/testing/index.ts';

const START_MS = Date.UTC(2026, 0);

function kitOf(queue: ReturnType<typeof defineQueue>) {
  const kit = createTestKit({ queues: [queue], handlers: { [queue.name]: () => undefined } });
  return { kit, starts: () => kit.runs.map(({ id, atMs }) => [id, atMs - START_MS] as const) };
}

const at = (delays: Readonly<Record<string, number>>) =>
  Object.entries(delays).map(([id, delay]) => ({ data: 1, id, delay }));

test('a lone job is on time, and those that come soon after it wait for each other', async () => {
  const q = defineQueue('q', { linger: 20 });
  const { kit, starts } = kitOf(q);
  await kit.client.scheduleMany(q, at({ a: 100, b: 101, c: 115, d: 120, e: 139, f: 500 }));
  await kit.advance('1s');
  expect(starts()).toEqual([
    ['a', 100],
    ['b', 120],
    ['c', 120],
    ['d', 120],
    ['e', 140],
    ['f', 500],
  ]);
});

test('without a linger each job starts when it is due', async () => {
  const q = defineQueue('q');
  const { kit, starts } = kitOf(q);
  await kit.client.scheduleMany(q, at({ a: 100, b: 101 }));
  await kit.advance('1s');
  expect(starts()).toEqual([
    ['a', 100],
    ['b', 101],
  ]);
});

test('a job that lingers can still be cancelled, and one whose lateness is limited may be too late', async () => {
  const q = defineQueue('q', { linger: '1s' });
  const { kit, starts } = kitOf(q);
  await kit.client.scheduleMany(q, [
    { data: 1, id: 'a' },
    { data: 1, id: 'b', delay: 10 },
    { data: 1, id: 'c', delay: 10, maxLateness: 500, onLate: 'drop' },
  ]);
  await kit.advance(20);
  expect(kit.jobs({ state: 'scheduled' }).map(({ id }) => id)).toEqual(['b', 'c']);
  await kit.client.cancel(q, 'b');
  await kit.advance('2s');
  expect(starts()).toEqual([['a', 0]]);
  expect(kit.jobs({ queue: 'q' }).map(({ id, state }) => [id, state])).toContainEqual(['c', 'expired']);
});
