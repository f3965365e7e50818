/** `count`: each job is counted once, at one moment, wherever it waits or runs; without a write. */
import { beforeEach, expect, test } from 'vitest';
import type { Layout } from '../../src/client/calls/layouts.ts';
import type { JobFilter } from '../../src/client/client.ts';
import { countJobs } from '../../src/client/query/count.ts';
import { parseFilter } from '../../src/client/query/filter.ts';
import { readerOf } from '../../src/client/query/reader.ts';
import type { WalkParts } from '../../src/client/query/walk.ts';
import { defineQueue, type Queue } from '../../src/job/queue.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import type { RetryPolicy } from '../../src/redis/connection/outage.ts';
import { countPage, membersOf } from '../../src/redis/read/counted.ts';
import type { Moved } from '../../src/redis/scripts/replies.ts';
import { item, only, T0, usePartition } from '../support/partition.ts';

const p = usePartition();
const DAY = 86_400_000;
const ANY = { fromMs: undefined, toMs: undefined };
let parts: WalkParts;

beforeEach(() => {
  parts = {
    reader: readerOf(p.redis),
    async callPartitions<T>(_: Queue, call: (layout: Layout, how: RetryPolicy) => Promise<T | Moved>) {
      return (await call([p.ref], { clock: systemClock, budgetMs: 5000 })) as T;
    },
  };
});

const counted = (filter: JobFilter = {}) =>
  p.withoutWrite(() => countJobs(parts, { queue: defineQueue('q'), filter: parseFilter(filter, { owner: 'a test' }) }));
const states = async () => {
  const page = await p.withoutWrite(() => countPage(p.redis, p.ref, { due: ANY }));
  return 'counts' in page ? page.counts : page;
};

async function oneOfEach(): Promise<void> {
  await p.dead('dead');
  await p.complete([await p.running('done')]);
  await p.running('running');
  await p.schedule('ready');
  await p.promote();
  await p.scheduleAll([item('later', { dueMs: T0 + DAY }), item('latest', { dueMs: T0 + 2 * DAY })]);
}

test('jobs in each state are counted, and what is over is not', async () => {
  expect(await states()).toEqual({ scheduled: 0, waiting: 0, ready: 0, running: 0 });
  await oneOfEach();
  expect(await states()).toEqual({ scheduled: 2, waiting: 0, ready: 1, running: 1 });
  expect(await counted()).toEqual({ count: 4, atLeast: false });
  expect(await counted({ state: ['ready', 'running'] })).toEqual({ count: 2, atLeast: false });
  expect(await counted({ due: { from: new Date(T0 + DAY) } })).toEqual({ count: 2, atLeast: false });
  expect(await counted({ due: { to: new Date(T0 + DAY) } })).toEqual({ count: 2, atLeast: false });
  expect(await counted({ idPrefix: 'l' })).toEqual({ count: 2, atLeast: false });
  expect(await counted({ idPrefix: 'r', state: 'running' })).toEqual({ count: 1, atLeast: false });
  expect(await counted({ name: 'other' })).toEqual({ count: 0, atLeast: false });
  expect(await counted({ failed: true })).toEqual({ count: 0, atLeast: false });
  expect(await counted({ failed: false })).toEqual({ count: 4, atLeast: false });
});

test('an entry that its job left behind, or whose job is over, counts nothing', async () => {
  for (const id of ['moved', 'again', 'cancelled']) await p.schedule(id);
  await p.promote();
  await p.cancel('j:cancelled');
  await p.reschedule('j:moved', T0 + DAY);
  await p.reschedule('j:again', T0 + 5);
  expect(await states()).toEqual({ scheduled: 2, waiting: 0, ready: 0, running: 0 });
  await p.promote({ nowMs: T0 + 10 });
  expect(await states()).toEqual({ scheduled: 1, waiting: 0, ready: 1, running: 0 });
  expect((await counted({ idPrefix: 'again' })).count).toBe(1);
});

test('a job that is in two places after a script was cut off is counted once', async () => {
  await p.running('b');
  await p.put('j:b', T0 + 1);
  expect(await states()).toEqual({ scheduled: 0, waiting: 0, ready: 0, running: 1 });
  await p.schedule('a');
  await p.promote({ nowMs: T0 });
  await p.put('j:a', T0);
  expect(await states()).toEqual({ scheduled: 1, waiting: 0, ready: 0, running: 1 });
  expect((await counted()).count).toBe(2);
});

test('many entries are counted page by page, exactly while nothing moves', async () => {
  await p.scheduleAll(Array.from({ length: 1234 }, (_, nth) => item(`j${nth}`)));
  for (let nth = 0; nth < 20; nth += 1) await p.promote();
  expect(await membersOf(p.redis, p.ref, ANY)).toBeUndefined();
  expect(await counted()).toEqual({ count: 1234, atLeast: false });
  expect(await counted({ idPrefix: 'j12' })).toEqual({ count: 45, atLeast: false });
});

test.each<[string, JobFilter]>([
  ['all', {}],
  ['by name', { name: 'default' }],
  ['by id', { idPrefix: 'd' }],
  ['in any state', { state: ['scheduled', 'ready', 'running'] }],
])('%s: jobs that are put off again and again are all counted, at each moment', async (_, filter) => {
  const ids = Array.from({ length: 20 }, (_none, nth) => `d${nth}`);
  await p.scheduleAll(ids.map((id) => item(id)));
  const ask = { queue: defineQueue('q'), filter: parseFilter(filter, { owner: 'a test' }) };
  const counts: number[] = [];
  let isOver = false;
  const counting = (async () => {
    while (!isOver) counts.push((await countJobs(parts, ask)).count);
  })();
  for (let round = 0; round < 15; round += 1) {
    await p.promote();
    for (const claim of await p.claim(await p.read('w1', 20))) await p.defer(claim, { delayMs: 0 });
  }
  isOver = true;
  await counting;
  expect(new Set(counts)).toEqual(new Set([20]));
  expect(counts.length).toBeGreaterThan(0);
});

test.each<[string, JobFilter]>([
  ['by name', { name: 'default', idPrefix: 'x' }],
  ['by id', { idPrefix: 'x' }],
])('%s: of a large partition 0 is said of no job that is somewhere else at each look', async (_, filter) => {
  await p.scheduleAll(Array.from({ length: 501 }, (_none, nth) => item(`j${nth}`, { dueMs: T0 + DAY })));
  let claim = await p.running('x');
  const { places } = parts.reader;
  /** It runs while scheduled jobs are looked through, and is scheduled while those are that wait or run. */
  const evading: WalkParts['reader']['places'] = async (ref, ask) => {
    const isScheduled = (await p.redis.zscore(p.keys.scheduled, 'j:x')) !== null;
    if (ask.source.kind === 'scheduled' && isScheduled) claim = only(await p.run());
    if (ask.source.kind !== 'scheduled' && !isScheduled) await p.defer(claim, { delayMs: 0 });
    return places(ref, ask);
  };
  const ask = { queue: defineQueue('q'), filter: parseFilter(filter, { owner: 'a test' }) };
  const evaded = { ...parts, reader: { ...parts.reader, places: evading } };
  expect(await countJobs(evaded, ask)).toEqual({ count: 1, atLeast: true });
  await p.cancel('j:x');
  expect(await countJobs(parts, ask)).toEqual({ count: 0, atLeast: false });
});

test('a record that stays is met, also while records come and their jobs move', async () => {
  const stay = Array.from({ length: 600 }, (_none, nth) => `j${nth}`);
  await p.scheduleAll(stay.map((id) => item(id)));
  const met = new Set<string>();
  let after: string | undefined;
  let slices = 0;
  do {
    const slice = await parts.reader.recorded(p.ref, { after, limit: 30 });
    if ('kind' in slice) throw new Error('moved');
    for (const { member } of slice.places) met.add(member);
    after = slice.next;
    slices += 1;
    if (slices <= 20) await p.scheduleAll(Array.from({ length: 40 }, (_none, nth) => item(`more${slices}-${nth}`)));
    if (slices <= 20) await p.promote();
  } while (after !== undefined);
  expect(stay.filter((id) => !met.has(`j:${id}`))).toEqual([]);
  expect(slices).toBeGreaterThan(1);
  await p.redis.hset(p.keys.meta, 'generation', 3);
  expect(await parts.reader.recorded(p.ref, { after: undefined, limit: 20 })).toEqual({
    kind: 'moved',
    layoutGeneration: 3,
  });
});

test('another generation is said', async () => {
  await p.redis.hset(p.keys.meta, 'generation', 3);
  expect(await countPage(p.redis, p.ref, { due: ANY })).toEqual({ kind: 'moved', layoutGeneration: 3 });
  expect(await membersOf(p.redis, p.ref, ANY)).toEqual({ kind: 'moved', layoutGeneration: 3 });
});
