/** The test kit plays jobs that are handed out before they are due: each starts at its time, and can be taken back until then. */
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

test('each job starts when it is due, also where many were handed out together', async () => {
  const q = defineQueue('q', { ahead: 50 });
  const { kit, starts } = kitOf(q);
  const delays = Object.fromEntries(Array.from({ length: 40 }, (_, nth) => [`n${nth}`, 100 + 7 * nth]));
  await kit.client.scheduleMany(q, at(delays));
  await kit.advance('1s');
  expect(starts()).toEqual(Object.entries(delays));
});

test('until it is due a job can be cancelled, and is given another due time', async () => {
  const q = defineQueue('q', { ahead: 100 });
  const { kit, starts } = kitOf(q);
  await kit.client.scheduleMany(q, at({ a: 100, b: 150, c: 160, d: 170 }));
  await kit.advance(120);
  expect(await kit.client.cancel(q, 'b')).toMatchObject({ status: 'cancelled' });
  expect(await kit.client.reschedule(q, 'c', { delay: 500 })).toMatchObject({ status: 'rescheduled' });
  await kit.advance('1s');
  expect(starts()).toEqual([
    ['a', 100],
    ['d', 170],
    ['c', 620],
  ]);
});
