/** `debounce` in the test kit: the table of docs/how-to/dedupe.md in virtual time, as Redis plays it. */
import { expect, test } from 'vitest';
import { fixed } from '../../src/job/backoff.ts';
import { Defer } from '../../src/job/outcome.ts';
import { defineQueue } from '../../src/job/queue.ts';
import { createTestKit } from '../../src/testing/index.ts';

const debounce = { wait: '1s', max: '5s' };
const index = defineQueue<number>('index', { backoff: fixed('10s'), attempts: 3 });
type Kit = ReturnType<typeof createTestKit>;

/** A kit whose runs last ten seconds, and the data of each start with its attempt and second. */
function kitOf(handle: (data: number, kit: Kit) => unknown = () => undefined, lasts: string | number = 0) {
  const starts: (readonly [data: number, attempt: number, second: number])[] = [];
  const kit: Kit = createTestKit({
    queues: [index],
    lasts: () => lasts,
    handlers: {
      index: async (job: { readonly data: number; readonly attempt: number }) => {
        starts.push([job.data, job.attempt, (kit.nowMs - beginMs) / 1000]);
        await handle(job.data, kit);
      },
    },
  });
  const beginMs = kit.nowMs;
  const send = async (data: number, more = {}) =>
    (await kit.schedule(index, data, { id: 'x', debounce, ...more })).status;
  return { kit, starts, send };
}

test('calls move the job that waits, to its ceiling at most, and it has the data of the last', async () => {
  const { kit, starts, send } = kitOf();
  const told: string[] = [];
  for (const data of [0, 1, 2, 3, 4, 5]) {
    told.push(await send(data));
    await kit.advance(900);
  }
  expect(told).toEqual(['scheduled', ...Array.from({ length: 5 }, () => 'merged')]);
  await kit.advance('1h');
  expect(starts).toEqual([[5, 1, 5]]);
});

test('calls of one moment are in their order, and a throttle keeps the first due time', async () => {
  const { kit, starts, send } = kitOf();
  const throttle = { debounce: { wait: '1m', max: '1m' } };
  for (const data of [1, 2, 3]) await send(data, throttle);
  await kit.advance('30s');
  expect(await send(4, throttle)).toBe('merged');
  await kit.advance('1h');
  expect(starts).toEqual([[4, 1, 60]]);
  expect(await send(5, throttle)).toBe('scheduled');
});

test('newer data of a job that runs make its next life when the run ends', async () => {
  const { kit, starts, send } = kitOf(undefined, '10s');
  await send(1);
  await kit.advance('2s');
  expect([await send(2), await send(3)]).toEqual(['behind', 'behind']);
  expect(kit.jobs().map(({ state }) => state)).toEqual(['running']);
  expect(await kit.client.get(index, 'x')).toMatchObject({ data: 3, nextLifeMs: Date.parse('2026-01-01T00:00:03Z') });
  await kit.advance('20s');
  expect(starts).toEqual([
    [1, 1, 1],
    [3, 1, 11],
  ]);
  expect(kit.runs.map(({ data, outcome }) => [data, outcome])).toEqual([
    [1, 'done'],
    [3, 'done'],
  ]);
  await kit.advance('1h');
  expect(starts).toHaveLength(2);
});

test('a failed job keeps its backoff and has the newest data; a dead one lives on with newer data', async () => {
  let isFailing = true;
  const { kit, starts, send } = kitOf(() => {
    if (isFailing) throw new Error('no');
  }, '2s');
  await send(1);
  await kit.advance('4s');
  expect(await send(2)).toBe('kept');
  await kit.advance('9500ms');
  expect(await send(3)).toBe('behind');
  await kit.advance('12s');
  expect(starts.map(([data, attempt]) => [data, attempt])).toEqual([
    [1, 1],
    [2, 2],
    [3, 3],
  ]);
  expect(await send(4)).toBe('behind');
  isFailing = false;
  await kit.advance('1h');
  expect(starts.at(-1)?.slice(0, 2)).toEqual([4, 1]);
  expect(kit.jobs({ state: 'dead' })).toEqual([]);
  expect(kit.runs.map(({ outcome }) => outcome)).toEqual(['retry', 'retry', 'dead', 'done']);
});

test('a job that was put aside keeps its due time', async () => {
  let isTaken = true;
  const { kit, starts, send } = kitOf(() => {
    if (isTaken) throw new Defer('20s');
  });
  await send(1);
  await kit.advance('2s');
  isTaken = false;
  expect(await send(2)).toBe('kept');
  await kit.advance('1h');
  expect(starts).toEqual([
    [1, 1, 1],
    [2, 2, 21],
  ]);
});

test('a cancel ends newer data that came before it, and none that come after it', async () => {
  const { kit, starts, send } = kitOf(undefined, '10s');
  await send(1);
  await kit.advance('2s');
  await send(2);
  expect((await kit.client.cancel(index, 'x')).status).toBe('requested');
  await kit.advance('1h');
  expect([starts.length, kit.jobs()[0]?.state]).toEqual([1, 'cancelled']);
  await send(3);
  await kit.advance('2s');
  await kit.client.cancel(index, 'x');
  expect(await send(4)).toBe('behind');
  await kit.advance('1h');
  expect(starts.map(([data]) => data)).toEqual([1, 3, 4]);
  expect(kit.runs.map(({ outcome }) => outcome)).toEqual(['cancelled', 'cancelled', 'done']);
});

test('a job made otherwise stays, a closed tag refuses, and limits count', async () => {
  const { kit, send } = kitOf();
  await kit.schedule(index, 1, { id: 'x', delay: '1h' });
  expect(await send(2)).toBe('exists');
  await kit.client.tags.close(index, 'paid', { for: '1d' });
  expect(await send(3, { id: 'y', tags: ['paid'] })).toBe('closed');
  const small = defineQueue<number>('small', { maxPending: 1 });
  await kit.schedule(small, 1, { id: 'x', debounce });
  expect((await kit.schedule(small, 2, { id: 'x', debounce })).status).toBe('merged');
  await expect(kit.schedule(small, 2, { id: 'y', debounce })).rejects.toThrow(/full/);
});

test('a replayed job is known by the later call', async () => {
  let isFailing = true;
  const { kit, send, starts } = kitOf(() => {
    if (isFailing) throw new Error('no');
  });
  await send(1, { attempts: 1 });
  await kit.advance('2s');
  isFailing = false;
  expect(await send(2)).toBe('scheduled');
  await kit.advance('2s');
  await kit.client.deadLetters.replay(index, { job: 'x' });
  expect(await send(3)).toBe('kept');
  await kit.advance('2s');
  expect(starts.map(([data]) => data)).toEqual([1, 2, 3]);
});
