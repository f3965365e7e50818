/** Finding jobs and changing all that a filter means, from the library: states, indexes, churn, races, partitions. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Layout } from '../../../src/client/calls/layouts.ts';
import { type Client, createClient, type JobFilter, type JobFindOptions } from '../../../src/client/client.ts';
import type { ActParts } from '../../../src/client/jobs/act.ts';
import { type ChangedJobs, onFilter } from '../../../src/client/jobs/by-filter.ts';
import { cancelling, foundToCancel } from '../../../src/client/jobs/cancel.ts';
import { editing } from '../../../src/client/jobs/edit.ts';
import { type RescheduleTarget, rescheduling } from '../../../src/client/jobs/reschedule.ts';
import { parseFilter } from '../../../src/client/query/filter.ts';
import { readerOf } from '../../../src/client/query/reader.ts';
import { defineQueue, type Queue } from '../../../src/job/queue.ts';
import { systemClock } from '../../../src/kernel/clock.ts';
import { close, openCommands, type Redis, whenReady } from '../../../src/redis/connection/connect.ts';
import type { RetryPolicy } from '../../../src/redis/connection/outage.ts';
import { type PartitionRef, partitionRef } from '../../../src/redis/keys.ts';
import type { Found } from '../../../src/redis/read/look.ts';
import { createJobs, type Jobs } from '../../../src/redis/scripts/jobs.ts';
import { elect } from '../../../src/redis/scripts/lease.ts';
import { readNew } from '../../../src/redis/scripts/ready.ts';
import type { Claim, Moved } from '../../../src/redis/scripts/replies.ts';
import { createTestKit } from '../../../src/testing/index.ts';
import { brokenInvariants } from '../../support/keyspace.ts';
import { openLossyLine } from '../../support/lossy-line.ts';
import { failure } from '../../support/partition.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

let server: TestRedis;
let redis: Redis;
let jobs: Jobs;
let producer: Client;
const stops: (() => Promise<unknown>)[] = [];
const mail = defineQueue<{ to: string }>('mail');
const wide = defineQueue('wide', { partitions: 4 });
const at = (queue: string, partition: number): PartitionRef =>
  partitionRef('duestream', { queue, partition, layoutGeneration: 0 });
const ref = at('mail', 0);
const windowMs = 600_000;
const HOUR_MS = 3_600_000;

beforeAll(async () => {
  server = await startRedis();
  redis = openCommands({ redis: server.url, name: 'test' });
  await whenReady(redis);
  jobs = createJobs(redis);
});
beforeEach(async () => {
  await redis.flushall();
  producer = createClient({ redis: server.url });
});
afterEach(async () => {
  await producer.close();
  for (const stop of stops.splice(0)) await stop();
  const places = [ref, ...[0, 1, 2, 3].map((partition) => at('wide', partition))];
  for (const { keys } of places) expect(await brokenInvariants(redis, keys)).toEqual([]);
});
afterAll(async () => {
  close(redis);
  await server.stop();
});

async function promote(place = ref): Promise<void> {
  const { term } = await elect(redis, place, { processId: 'm', leaseMs: 60_000 });
  const pass = async () => {
    const reply = await jobs.promote(place, { term, leaseMs: 60_000, limit: 500, cap: 10_000 });
    return reply.kind === 'promoted' && reply.count;
  };
  await expect.poll(pass).toBeGreaterThan(0);
}

async function begin(place = ref): Promise<Claim> {
  const [read] = await readNew(redis, [place], { consumer: 'w1', count: 1, blockMs: 0 });
  const [delivery] = read?.deliveries ?? [];
  if (!delivery) throw new Error('nothing is ready');
  const [started] = await jobs.start(place, [delivery], { consumer: 'w1', bytesMax: 1e6, windowMs });
  if (started?.kind !== 'run') throw new Error(`start replied ${started?.kind}`);
  return { entry: delivery.entry, member: delivery.member, token: started.token };
}

/** One job in each state that can be listed; `run` runs. All have the tag `user:42`. */
async function oneOfEach(): Promise<Claim> {
  const tags = ['user:42'];
  await producer.schedule(mail, { to: 'a' }, { id: 'run', tags, name: 'invoice' });
  await promote();
  const claim = await begin();
  await producer.schedule(mail, { to: 'a' }, { id: 'ready', tags });
  await promote();
  await producer.schedule(mail, { to: 'a' }, { id: 'later', tags: [...tags, 'x=y'], delay: '1h' });
  await producer.schedule(mail, { to: 'b' }, { id: 'other', tags: ['user:43'], delay: '2h' });
  await producer.schedule(mail, { to: 'c' }, { id: 'untagged', delay: '3h' });
  return claim;
}

const idsOf = async (filter: JobFilter, limit = 100) => {
  const found = await producer.list(mail, { ...filter, limit });
  return found.jobs.map(({ id }) => id);
};

describe('a list', () => {
  test('has the jobs of a state, with all that they were told', async () => {
    await oneOfEach();
    expect(await idsOf({ state: 'scheduled' })).toEqual(['later', 'other', 'untagged']);
    expect(await idsOf({ state: 'ready' })).toEqual(['ready']);
    expect(await idsOf({ state: 'running' })).toEqual(['run']);
    expect(await idsOf({})).toEqual(['later', 'other', 'untagged', 'ready', 'run']);
    const { jobs: views, scanned, cursor } = await producer.list(mail, { state: ['running', 'ready'] });
    expect(views).toMatchObject([
      { id: 'ready', state: 'ready', data: { to: 'a' }, options: { tags: ['user:42'] } },
      { id: 'run', state: 'running', name: 'invoice', owner: 'w1', attempts: 1 },
    ]);
    expect([scanned, cursor]).toEqual([3, undefined]);
    const got = await producer.get(mail, 'later');
    const [listed] = (await producer.list(mail, { tag: 'x=y' })).jobs;
    expect(got).toMatchObject({ ...listed });
  });

  test('by tag, name, id and due time, together and alone', async () => {
    await oneOfEach();
    const now = Date.now();
    expect(await idsOf({ tag: 'user:42' })).toEqual(['later', 'ready', 'run']);
    expect(await idsOf({ tag: 'user:42', state: 'scheduled' })).toEqual(['later']);
    expect(await idsOf({ tag: 'x=y' })).toEqual(['later']);
    expect(await idsOf({ tag: 'user:4' })).toEqual([]);
    expect(await idsOf({ name: 'invoice' })).toEqual(['run']);
    expect(await idsOf({ tag: 'user:42', name: 'default' })).toEqual(['later', 'ready']);
    expect(await idsOf({ idPrefix: 'r' })).toEqual(['ready', 'run']);
    const due = { from: new Date(now + HOUR_MS / 2), to: new Date(now + 2.5 * HOUR_MS) };
    expect(await idsOf({ due })).toEqual(['later', 'other']);
    expect(await idsOf({ tag: 'user:42', due })).toEqual(['later']);
    expect(await idsOf({ due: { to: new Date(now + HOUR_MS / 2) } })).toEqual(['ready', 'run']);
  });

  test('by whether a run has failed: what waits of them is tried again', async () => {
    const claim = await oneOfEach();
    expect(await idsOf({ failed: true })).toEqual([]);
    await jobs.retry(ref, claim, { windowMs, delayMs: HOUR_MS / 2, error: failure('boom') });
    expect(await idsOf({ failed: true })).toEqual(['run']);
    expect(await idsOf({ failed: true, state: 'ready' })).toEqual([]);
    expect(await idsOf({ failed: true, tag: 'user:43' })).toEqual([]);
    expect(await idsOf({ failed: false })).toEqual(['later', 'other', 'untagged', 'ready']);
    expect(await producer.count(mail, { failed: true })).toEqual({ count: 1, atLeast: false });
    expect((await producer.find({ failed: true })).jobs.map(({ id }) => id)).toEqual(['run']);
    expect((await producer.find({ failed: false })).jobs.map(({ id }) => id)).not.toContain('run');
    expect((await producer.find({ id: 'run', failed: false })).jobs).toEqual([]);
    expect(await producer.cancel(mail, { failed: true })).toMatchObject({ matched: 1, changed: 1, ids: ['run'] });
  });

  test('forgets a job at its end, however it ends', async () => {
    const claim = await oneOfEach();
    await jobs.complete(ref, [{ ...claim, mark: '' }], { windowMs });
    await producer.cancel(mail, 'later');
    await producer.cancel(mail, 'ready');
    expect(await idsOf({ tag: 'user:42' })).toEqual([]);
    expect(await redis.zrange(ref.keys.tags, '0', '-1')).toEqual(['user:43\0j:other']);
  });

  test('leaves out entries of the index that earlier releases left behind', async () => {
    await oneOfEach();
    await redis.zadd(ref.keys.tags, 0, 'user:42\0j:untagged', 0, 'user:42\0j:gone');
    expect(await idsOf({ tag: 'user:42' })).toEqual(['later', 'ready', 'run']);
    expect((await producer.count(mail, { tag: 'user:42' })).count).toBe(3);
    await redis.zrem(ref.keys.tags, 'user:42\0j:untagged', 'user:42\0j:gone');
  });

  test('has bare jobs too, and shows a job with two entries once', async () => {
    await producer.ready();
    await redis.hset('duestream:v1:{control}:queues', 'mail', '{"partitions":1,"generation":0}');
    await redis.zadd(ref.keys.scheduled, Date.now() + HOUR_MS, 'bare-1');
    expect(await producer.list(mail, { state: 'scheduled' })).toMatchObject({ jobs: [{ id: 'bare-1', bare: true }] });
    expect(await producer.cancel(mail, { idPrefix: 'bare-' })).toMatchObject({ matched: 1, changed: 1 });
    await producer.schedule(mail, { to: 'a' }, { id: 'twice' });
    await promote();
    await producer.reschedule(mail, 'twice', { at: new Date(Date.now() + 300) });
    expect(await idsOf({ state: 'ready' })).toEqual([]);
    await promote();
    expect(await redis.xlen(ref.keys.ready)).toBe(2);
    expect(await idsOf({ state: 'ready' })).toEqual(['twice']);
  });

  test.each([
    [
      { state: 'gone' as never },
      /state is "gone"; allowed: one or several of scheduled, waiting, ready, running, done/,
    ],
    [{ tag: 'a b' }, /tag is "a b"; allowed: 1 to 64/],
    [{ tags: 'a' } as never, /tags is not an option of list.*tag/],
    [{ due: { from: '2030-01-02T00:00:00Z', to: '2030-01-01T00:00:00Z' } }, /due\.to is .* after due\.from/],
    [{ idPrefix: '' }, /idPrefix is ""/],
    [{ failed: 'yes' as never }, /failed is "yes"; allowed: true, false/],
    [{ limit: 0 } as never, /limit is 0; allowed: a whole number from 1 to 1000/],
    [{ cursor: 'x' } as never, /cursor is "x"; allowed: the cursor/],
  ])('refuses %j', async (filter, message) => {
    await expect(producer.list(mail, filter)).rejects.toThrow(message);
  });

  test('refuses the cursor of another filter, and that of another layout', async () => {
    await oneOfEach();
    const { cursor } = await producer.list(mail, { state: 'scheduled', limit: 1 });
    await expect(producer.list(mail, { state: 'ready', cursor })).rejects.toThrow(/of another filter/);
    await redis.hset('duestream:v1:{control}:queues', 'mail', '{"partitions":1,"generation":1}');
    await redis.hset(ref.keys.meta, 'generation', 1);
    const again = producer.list(mail, { state: 'scheduled', limit: 1, cursor });
    await expect(again).rejects.toMatchObject({ code: 'moved' });
    expect((await producer.list(mail, { state: 'scheduled', limit: 1 })).jobs).toHaveLength(1);
  });
});

describe.each([
  ['of one state', { state: 'scheduled' as const }],
  ['of a tag', { tag: 'stays' }],
  ['of a name', { name: 'stays' }],
])('a walk %s over several partitions, while jobs come and go', (_, filter) => {
  test('meets what stays exactly once', async () => {
    const dues = [HOUR_MS, HOUR_MS, 2 * HOUR_MS];
    const now = Date.now();
    const list = Array.from({ length: 240 }, (__, nth) => {
      const stays = nth % 2 === 0;
      const name = stays ? 'stays' : 'goes';
      const place = { id: `${name}-${nth}`, at: new Date(now + (dues[nth % 3] ?? HOUR_MS)) };
      return { ...place, data: nth, name, tags: [stays ? 'stays' : 'goes', 'all'] };
    });
    await producer.scheduleMany(wide, list);
    const met: string[] = [];
    let cursor: string | undefined;
    let pages = 0;
    do {
      const page = await producer.list(wide, { ...filter, limit: 7, ...(cursor && { cursor }) });
      met.push(...page.jobs.map(({ id }) => id).filter((id) => id.startsWith('stays')));
      cursor = page.cursor;
      pages += 1;
      // What goes, goes from the front, the middle and the end; and new ones come everywhere.
      await producer.cancel(wide, [`goes-${2 * pages + 1}`, `goes-${239 - 2 * pages}`]);
      const come = { delay: pages % 2 === 0 ? '30m' : '90m', tags: ['all'], name: 'goes' } as const;
      await producer.schedule(wide, 0, { ...come, id: `new-${pages}` });
    } while (cursor !== undefined);
    const wanted = list.map(({ id }) => id).filter((id) => id.startsWith('stays'));
    expect(met.toSorted()).toEqual(wanted.toSorted());
  });
});

test('a walk goes on behind a job that was the last of its page and has gone', async () => {
  const due = new Date(Date.now() + HOUR_MS);
  await producer.scheduleMany(
    mail,
    [...'abcdef'].map((id) => ({ id, at: due, data: { to: id } })),
  );
  const { jobs: first, cursor } = await producer.list(mail, { state: 'scheduled', limit: 3 });
  expect(first.map(({ id }) => id)).toEqual(['a', 'b', 'c']);
  await producer.cancel(mail, ['b', 'c']);
  const { jobs: rest } = await producer.list(mail, { state: 'scheduled', limit: 3, ...(cursor && { cursor }) });
  expect(rest.map(({ id }) => id)).toEqual(['d', 'e', 'f']);
});

test('jobs goes through all, and count counts them, over several partitions', async () => {
  const list = Array.from({ length: 250 }, (_, nth) => ({
    id: `j${nth}`,
    data: nth,
    delay: '1h',
    name: nth % 5 === 0 ? 'five' : 'default',
    tags: [`third:${nth % 3}`],
  }));
  await producer.scheduleMany(wide, list);
  const ids: string[] = [];
  for await (const { id } of producer.list(wide, { tag: 'third:0' })) ids.push(id);
  expect(ids.toSorted()).toEqual(list.flatMap(({ id }, nth) => (nth % 3 === 0 ? [id] : [])).toSorted());
  expect((await producer.count(wide)).count).toBe(250);
  expect((await producer.count(wide, { tag: 'third:0' })).count).toBe(ids.length);
  expect((await producer.count(wide, { name: 'five' })).count).toBe(50);
  expect((await producer.count(wide, { idPrefix: 'j24' })).count).toBe(11);
  expect((await producer.count(wide, { due: { to: new Date(Date.now() + 60_000) } })).count).toBe(0);
});

test('a page of what is looked through says how much that was, and where to go on', async () => {
  const many = Array.from({ length: 12_000 }, (_, nth) => ({ id: `n${nth}`, data: { to: 'a' }, delay: '1h' }));
  await producer.scheduleMany(mail, [...many, { id: 'z', data: { to: 'a' }, delay: '2h', name: 'rare' }]);
  const first = await producer.list(mail, { name: 'rare' });
  expect(first.jobs).toEqual([]);
  expect(first.scanned).toBeGreaterThanOrEqual(10_000);
  const second = await producer.list(mail, { name: 'rare', ...(first.cursor && { cursor: first.cursor }) });
  expect(second.jobs.map(({ id }) => id)).toEqual(['z']);
  expect(first.scanned + second.scanned).toBe(12_001);
});

describe('a change of all that a filter means', () => {
  test('cancels them, and asks those that run to stop', async () => {
    await oneOfEach();
    const dry = await producer.cancel(mail, { tag: 'user:42' }, { dryRun: true });
    expect(dry).toMatchObject({ dryRun: true, matched: 3, changed: 0, ids: ['later', 'ready', 'run'] });
    expect((await producer.count(mail, { tag: 'user:42' })).count).toBe(3);
    const done = await producer.cancel(mail, { tag: 'user:42' });
    expect(done).toEqual({
      dryRun: false,
      matched: 3,
      changed: 2,
      requested: 1,
      skipped: {},
      scanned: 3,
      ids: ['later', 'ready', 'run'],
      cursor: undefined,
    });
    expect(await producer.get(mail, 'later')).toMatchObject({ state: 'cancelled' });
    expect(await producer.get(mail, 'run')).toMatchObject({ state: 'running', cancelRequested: true });
    expect(await idsOf({})).toEqual(['other', 'untagged', 'run']);
    expect(await producer.cancel(mail, { tag: 'user:42' })).toMatchObject({ matched: 1, requested: 1 });
  });

  test('reschedules those that wait, once each, also where they are met by due time', async () => {
    await oneOfEach();
    const due = new Date(Date.now() + 5 * HOUR_MS);
    const filter = { state: ['scheduled', 'ready'] as const };
    const done = await producer.reschedule(mail, filter, { at: due });
    expect(done).toMatchObject({ matched: 4, changed: 4, skipped: {} });
    expect(await producer.get(mail, 'ready')).toMatchObject({ state: 'scheduled', dueMs: due.getTime() });
    expect(await producer.reschedule(mail, filter, { at: due })).toMatchObject({ matched: 0, changed: 0 });
    const kept = await producer.reschedule(mail, { tag: 'user:42' }, { delay: '9h', only: 'earlier' });
    expect(kept).toMatchObject({ matched: 2, changed: 0, skipped: { kept: 2 } });
  });

  test('edits those that wait, and says which it cannot', async () => {
    await oneOfEach();
    const done = await producer.edit(mail, { tag: 'user:42' }, { data: { to: 'z' }, tags: ['user:44'] });
    expect(done).toMatchObject({ matched: 2, changed: 2, skipped: {}, ids: ['later', 'ready'] });
    expect(await idsOf({ tag: 'user:42' })).toEqual(['run']);
    expect(await idsOf({ tag: 'user:44' })).toEqual(['later', 'ready']);
    expect(await producer.edit(mail, { tag: 'user:44' }, { data: { to: 'z' } })).toMatchObject({
      matched: 2,
      changed: 0,
      skipped: { already: 2 },
    });
    const early = { expiresAt: new Date(Date.now() + HOUR_MS / 2) };
    const refused = await producer.edit(mail, { tag: 'user:44' }, early);
    expect(refused).toMatchObject({ matched: 2, changed: 1, skipped: { refused: 1 } });
    expect(await producer.edit(mail, { tag: 'user:44' }, { tags: null })).toMatchObject({ changed: 2 });
    expect(await redis.zcard(ref.keys.tags)).toBe(2);
  });

  test('runs those that are scheduled now', async () => {
    await oneOfEach();
    expect(await producer.runNow(mail, { tag: 'user:42' })).toMatchObject({ matched: 1, changed: 1 });
    await promote();
    expect(await idsOf({ tag: 'user:42', state: 'ready' })).toEqual(['later', 'ready']);
  });

  test('goes on from its cursor, tells its progress, and ends when it is told to', async () => {
    const ids = Array.from({ length: 230 }, (_, nth) => `j${nth}`);
    await producer.scheduleMany(
      wide,
      ids.map((id) => ({ id, data: 0, delay: '1h', tags: ['t'] })),
    );
    const told: number[] = [];
    const stop = new AbortController();
    const first = await producer.cancel(
      wide,
      { tag: 't' },
      {
        signal: stop.signal,
        onProgress({ matched, changed, cursor }) {
          expect(changed).toBe(matched);
          expect(cursor).toBeDefined();
          told.push(matched);
          stop.abort();
        },
      },
    );
    expect(told).toEqual([100]);
    expect(first).toMatchObject({ matched: 100, changed: 100 });
    const some = await producer.cancel(wide, { tag: 't' }, { cursor: first.cursor, limit: 30 });
    expect(some).toMatchObject({ matched: 30, changed: 30 });
    const rest = await producer.cancel(wide, { tag: 't' }, { cursor: some.cursor });
    expect(rest).toMatchObject({ matched: 100, changed: 100, cursor: undefined });
    expect((await producer.count(wide, { tag: 't' })).count).toBe(0);
  });

  test.each([
    ['another due time', () => producer.reschedule(mail, 'b', { delay: '4h' })],
    ['other tags', () => producer.edit(mail, 'b', { tags: ['paid'] })],
    ['other data', () => producer.edit(mail, 'b', { data: { to: 'new' } })],
    [
      'a start',
      () =>
        producer
          .runNow(mail, 'b')
          .then(() => promote())
          .then(() => begin()),
    ],
    ['its end', () => producer.cancel(mail, 'b')],
  ])('skips and counts a job that got %s after it was read', async (_, change) => {
    for (const verb of ['cancel', 'reschedule', 'edit', 'runNow'] as const) {
      await redis.flushall();
      const list = [...'abc'].map((id) => ({ id, data: { to: id }, delay: '1h', tags: ['t'] }));
      await producer.scheduleMany(mail, list);
      const done = await calls(racing(change))[verb]();
      expect(done, verb).toMatchObject({ matched: 3, changed: 2, ids: ['a', 'c'] });
      expect(Object.values(done.skipped), verb).toEqual([1]);
      const { options, cancelRequested } = (await producer.get(mail, 'b')) ?? {};
      expect([options?.attempts, cancelRequested ?? false], verb).toEqual([undefined, false]);
    }
  });

  const ASK = {
    queue: mail,
    means: 'a test',
    filter: parseFilter({ tag: 't', state: 'scheduled' }, { owner: 'a test' }),
    dryRun: false,
    limit: Number.POSITIVE_INFINITY,
    cursor: undefined,
    signal: undefined,
    onProgress: undefined,
  };
  const calls = (parts: ActParts) => {
    const to = (due: Omit<RescheduleTarget, 'id' | 'found'>) =>
      onFilter(parts, { ...ASK, act: rescheduling(parts), itemOf: (found) => ({ id: found.id, found, ...due }) });
    const change = { hasData: false, options: { attempts: 9 } };
    const itemOf = (found: Found) => ({ id: found.id, found, change });
    return {
      cancel: () => onFilter(parts, { ...ASK, act: cancelling(parts), itemOf: foundToCancel }),
      reschedule: () => to({ dueMs: Date.now() + 9 * HOUR_MS, mode: 'any' }),
      edit: () => onFilter(parts, { ...ASK, act: editing(parts, mail), itemOf }),
      runNow: () => to({ dueMs: 0, mode: 'earlier' }),
    };
  };

  /** Somebody changes a job when the page was read, before the first call that writes. */
  function racing(change: () => Promise<unknown>): ActParts {
    let calls = 0;
    const policy = { clock: systemClock, budgetMs: 5000 };
    return {
      jobs,
      windowMs,
      horizonMs: 1e12,
      recordBytesMax: 1e6,
      reader: readerOf(redis),
      async callPartitions<T>(_queue: Queue, call: (layout: Layout, how: RetryPolicy) => Promise<T | Moved>) {
        calls += 1;
        if (calls === 2) await change();
        return (await call([ref], policy)) as T;
      },
    };
  }

  test('asks again where a reply was lost, and recognises its own work', async () => {
    const line = await openLossyLine(server);
    const over = createClient({ redis: line.url, retryBudget: '5s' });
    stops.push(over.close, line.close);
    for (const verb of ['cancel', 'reschedule', 'edit'] as const) {
      await producer.scheduleMany(
        mail,
        [...'abc'].map((id) => ({ id, data: { to: id }, delay: '1h', tags: [verb] })),
      );
      (await over.count(mail, { tag: verb })).count;
      line.loseReplyTo(verb);
      const calls = {
        cancel: () => over.cancel(mail, { tag: verb }),
        reschedule: () => over.reschedule(mail, { tag: verb }, { at: new Date(Date.now() + 2 * HOUR_MS) }),
        edit: () => over.edit(mail, { tag: verb }, { attempts: 9 }),
      };
      expect(await calls[verb](), verb).toMatchObject({ matched: 3, changed: 3, skipped: {} });
      await producer.cancel(mail, { state: 'scheduled' });
      await redis.flushall();
    }
    expect(line.lost()).toBe(3);
  });

  test.each([
    [{}, /the filter of cancel says nothing/],
    [{ tag: undefined }, /the filter of cancel says nothing/],
  ])('refuses the filter %j', async (filter, message) => {
    await expect(producer.cancel(mail, filter)).rejects.toThrow(message);
  });

  test('refuses states in which nothing can be changed', async () => {
    const running = { state: 'running' } as const;
    await expect(producer.edit(mail, running, { attempts: 1 })).rejects.toThrow(/allowed: .*scheduled, ready/);
    await expect(producer.runNow(mail, running)).rejects.toThrow(/state is "running"; allowed/);
  });
});

/** What a change in slices does, from its beginning to its end, as somebody who goes on from each cursor sees it. */
async function inSlices(
  call: (cursor: string | undefined) => Promise<ChangedJobs>,
): Promise<{ readonly changed: number; readonly matched: number; readonly slices: number }> {
  const sum = { changed: 0, matched: 0, slices: 0 };
  let cursor: string | undefined;
  do {
    const { changed, matched, cursor: next } = await call(cursor);
    sum.changed += changed;
    sum.matched += matched;
    sum.slices += 1;
    cursor = next;
  } while (cursor !== undefined && sum.slices < 100);
  return sum;
}

describe('a change in slices', () => {
  const put = (queue: Queue, count: number, delay: string, prefix = 'j') =>
    producer.scheduleMany(
      queue,
      Array.from({ length: count }, (_, nth) => ({ id: `${prefix}${nth}`, data: 0, delay, tags: ['t'] })),
    );
  const duesOf = async (queue: Queue): Promise<ReadonlySet<number>> => {
    const dues = new Set<number>();
    for await (const { dueMs = 0 } of producer.list(queue)) dues.add(dueMs);
    return dues;
  };

  test.each([
    ['later than where the walk is', { state: 'scheduled' }, '3h'],
    ['earlier than where the walk is', { state: 'scheduled' }, '1m'],
    ['of a tag', { tag: 't' }, '3h'],
    ['by their ids', { idPrefix: 'j', state: ['scheduled', 'ready'] }, '90m'],
  ] as const)('that puts jobs %s ends, with one due time for all', async (_, filter, delay) => {
    await put(wide, 250, '1h');
    await put(wide, 50, '2h', 'jj');
    const calls = await inSlices((cursor) => producer.reschedule(wide, filter, { delay }, { limit: 40, cursor }));
    expect(calls).toMatchObject({ changed: 300, matched: 300 });
    expect((await duesOf(wide)).size).toBe(1);
  });

  test.each([
    ['cancel', (cursor: string | undefined) => producer.cancel(mail, { tag: 't' }, { limit: 30, cursor })],
    ['runNow', (cursor: string | undefined) => producer.runNow(mail, { tag: 't' }, { limit: 30, cursor })],
    [
      'edit',
      (cursor: string | undefined) =>
        producer.edit(mail, { state: 'scheduled' }, { attempts: 2 }, { limit: 30, cursor }),
    ],
  ])('by %s meets each job once, while others schedule more', async (_, call) => {
    await put(mail, 100, '1h');
    const calls = await inSlices(async (cursor) => {
      await producer.scheduleMany(
        mail,
        Array.from({ length: 40 }, () => ({ data: { to: '' }, delay: '2h' })),
      );
      return { ...(await call(cursor)) };
    });
    expect(calls.slices).toBeLessThan(100);
    expect(calls.changed).toBeGreaterThanOrEqual(100);
  });

  test('is refused with another due time, another change or another verb than it was begun with', async () => {
    await put(mail, 3, '1h');
    const filter = { tag: 't' };
    const { cursor } = await producer.reschedule(mail, filter, { delay: '2h' }, { limit: 1 });
    const refused = /the cursor is of another filter or another change; allowed: the call that it was given for/;
    const others = [
      () => producer.reschedule(mail, filter, { delay: '3h' }, { cursor }),
      () => producer.reschedule(mail, filter, { delay: '2h', only: 'later' }, { cursor }),
      () => producer.reschedule(mail, filter, { at: new Date(Date.now() + 2 * HOUR_MS) }, { cursor }),
      () => producer.reschedule(mail, { ...filter, idPrefix: 'j' }, { delay: '2h' }, { cursor }),
      () => producer.cancel(mail, filter, { cursor }),
      () => producer.runNow(mail, filter, { cursor }),
      () => producer.edit(mail, filter, { attempts: 3 }, { cursor }),
      () => producer.list(mail, { ...filter, cursor }),
    ];
    for (const other of others) await expect(other()).rejects.toThrow(refused);
    const edit = await producer.edit(mail, filter, { attempts: 3 }, { limit: 1 });
    await expect(producer.edit(mail, filter, { attempts: 4 }, { cursor: edit.cursor })).rejects.toThrow(refused);
    const rest = await producer.reschedule(mail, filter, { delay: '2h' }, { cursor });
    expect([rest.changed, (await duesOf(mail)).size]).toEqual([2, 1]);
  });
});

describe('a walk ends', () => {
  test('while each page of a change brings as many jobs as it took', async () => {
    await producer.scheduleMany(
      mail,
      Array.from({ length: 150 }, (_, nth) => ({ id: `j${nth}`, data: { to: '' }, delay: '1h' })),
    );
    const added: Promise<unknown>[] = [];
    const onProgress = () => {
      const more = Array.from({ length: 200 }, () => ({ data: { to: '' }, delay: '2h' }));
      if (added.length < 50) added.push(producer.scheduleMany(mail, more));
    };
    const done = await producer.edit(mail, { state: 'scheduled' }, { attempts: 2 }, { onProgress });
    await Promise.all(added);
    expect([done.cursor, added.length]).toEqual([undefined, 2]);
  });

  test('while whoever goes through jobs puts each of them off, in front of one of next year', async () => {
    await producer.scheduleMany(mail, [
      ...Array.from({ length: 5 }, (_, nth) => ({ id: `j${nth}`, data: { to: '' }, delay: '1h' })),
      { id: 'far', data: { to: '' }, delay: '365d' },
    ]);
    const met = new Set<string>();
    for await (const { id } of producer.list(mail, { state: 'scheduled' })) {
      met.add(id);
      if (id !== 'far') await producer.reschedule(mail, id, { delay: '2h' });
    }
    expect(met).toContain('j4');
  });

  test('while each job of a tag makes another', async () => {
    await producer.scheduleMany(
      mail,
      Array.from({ length: 120 }, (_, nth) => ({ id: `a${nth}`, data: { to: '' }, delay: '1h', tags: ['t'] })),
    );
    let made = 0;
    for await (const _ of producer.list(mail, { tag: 't' })) {
      made += 1;
      await producer.schedule(mail, { to: '' }, { id: `z${made}`, delay: '1h', tags: ['t'] });
    }
    expect(made).toBe(120);
  });
});

describe('jobs of all queues', () => {
  const HOUR = 3_600_000;
  const first = defineQueue('a-first');

  /** Of all pages. */
  async function walked(filter: JobFindOptions, limit: number): Promise<readonly string[]> {
    const ids: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await producer.find({ ...filter, limit, cursor });
      expect([page.jobs.length <= limit, page.unread]).toEqual([true, []]);
      ids.push(...page.jobs.map(({ queue, id }) => `${queue} ${id}`));
      cursor = page.cursor;
    } while (cursor !== undefined);
    return ids;
  }

  /** A herd at one moment in two queues and four partitions, and others around it. */
  async function herd(): Promise<readonly string[]> {
    const at = new Date(Date.now() + HOUR);
    const herdOf = Array.from({ length: 30 }, (_, n) => `h${String(n).padStart(2, '0')}`);
    const tags = ['user:42'];
    for (const queue of [wide, first]) {
      await producer.scheduleMany(
        queue,
        herdOf.map((id) => ({ id, data: null, at, tags })),
      );
    }
    await producer.schedule(mail, { to: 'a' }, { id: 'soon', delay: '10m', tags, name: 'welcome' });
    await producer.schedule(first, null, { id: 'late', delay: '2h', tags: ['user:43'] });
    const inWide = await producer.list(wide, { sort: 'due', limit: 1000 });
    return [
      'mail soon',
      ...herdOf.map((id) => `a-first ${id}`),
      ...inWide.jobs.map(({ id }) => `wide ${id}`),
      'a-first late',
    ];
  }

  test.each([6, 1000])('come by due time, each on one page of %i, also of a herd at one moment', async (limit) => {
    const all = await herd();
    expect(await walked({}, limit)).toEqual(all);
    expect(await walked({ tag: 'user:42' }, limit)).toEqual(all.slice(0, -1));
    expect(await walked({ queues: ['mail', first] }, limit)).toEqual(all.filter((one) => !one.startsWith('wide')));
    expect(await walked({ name: 'welcome' }, limit)).toEqual(['mail soon']);
    expect(await walked({ idPrefix: 'l' }, limit)).toEqual(['a-first late']);
    const due = { from: new Date(Date.now() + HOUR / 2), to: new Date(Date.now() + 1.5 * HOUR) };
    expect(await walked({ due }, limit)).toEqual(all.slice(1, -1));
  });

  test('have what runs and what is ready among them, with those of a tag', async () => {
    await oneOfEach();
    await producer.schedule(first, null, { id: 'x', delay: '90m', tags: ['user:42'] });
    const inOrder = ['mail run', 'mail ready', 'mail later', 'a-first x', 'mail other', 'mail untagged'];
    for (const limit of [1, 100]) {
      expect(await walked({}, limit)).toEqual(inOrder);
      expect(await walked({ tag: 'user:42' }, limit)).toEqual(inOrder.slice(0, 4));
      expect(await walked({ state: ['running', 'scheduled'] }, limit)).toEqual(inOrder.filter((_, at) => at !== 1));
    }
    const sorted = await producer.list(mail, { tag: 'user:42', sort: 'due' });
    expect(sorted.jobs.map(({ id }) => id)).toEqual(['run', 'ready', 'later']);
  });

  test('of a tag that many have come by due time as well', async () => {
    const many = Array.from({ length: 1200 }, (_, n) => ({
      id: `m${String(n).padStart(4, '0')}`,
      data: null,
      delay: `${2000 - n}m`,
      tags: n % 100 === 0 ? ['all', 'few'] : ['all'],
    }));
    await producer.scheduleMany(first, many);
    const ids = many.map(({ id }) => `a-first ${id}`).toReversed();
    expect(await walked({ tag: 'all' }, 500)).toEqual(ids);
    expect(await walked({ tag: 'few' }, 5)).toEqual(ids.filter((one) => one.endsWith('00')));
  });

  test('that stay are met once, while others come, go and move', async () => {
    const all = await herd();
    const met: string[] = [];
    let [cursor, pages]: [string | undefined, number] = [undefined, 0];
    do {
      const page = await producer.find({ limit: 5, cursor });
      met.push(...page.jobs.map(({ queue, id }) => `${queue} ${id}`));
      cursor = page.cursor;
      pages += 1;
      await producer.schedule('0-new', null, { id: `new-${pages}`, delay: '1m' });
      if (pages === 2) await producer.cancel(first, 'h00');
    } while (cursor !== undefined);
    expect(met.filter((one) => !one.includes('new-'))).toEqual(all);
  });

  test('are found by an id in each queue, also when they are over, and bare ones', async () => {
    await producer.schedule(mail, { to: 'a' }, { id: 'same', delay: '2h' });
    await producer.schedule(wide, null, { id: 'same', delay: '1h' });
    await producer.schedule(first, null, { id: 'same', delay: '1h' });
    await producer.cancel(first, 'same');
    const rows = async (filter: JobFindOptions) =>
      (await producer.find(filter)).jobs.map(({ queue, state, bare }) => `${queue} ${state}${bare ? ' bare' : ''}`);
    expect(await rows({ id: 'same' })).toEqual(['wide scheduled', 'mail scheduled', 'a-first cancelled']);
    expect(await rows({ id: 'same', state: 'scheduled' })).toEqual(['wide scheduled', 'mail scheduled']);
    expect(await rows({ id: 'sam' })).toEqual([]);
    await redis.zadd(ref.keys.scheduled, Date.now() + HOUR, 'foreign');
    expect(await rows({ id: 'foreign' })).toEqual(['mail scheduled bare']);
  });

  test('come by due time in the test kit too', async () => {
    const { client } = createTestKit({ handlers: {} });
    await client.schedule(mail, { to: 'a' }, { id: 'late', delay: '2h', tags: ['t'] });
    await client.schedule(wide, null, { id: 'soon', delay: '1h', tags: ['t'] });
    const { jobs: found } = await client.find({ tag: 't' });
    expect(found.map(({ queue, id }) => `${queue} ${id}`)).toEqual(['wide soon', 'mail late']);
  });

  test('name a queue that does not answer, and have the others', async () => {
    await herd();
    await redis.del(ref.keys.scheduled);
    await redis.set(ref.keys.scheduled, 'a person did this');
    const page = await producer.find({ tag: 'user:43' });
    expect(page.jobs.map(({ id }) => id)).toEqual(['late']);
    const plain = await producer.find({ limit: 3 });
    expect(plain.unread).toEqual([{ queue: 'mail', why: expect.stringContaining('WRONGTYPE') }]);
    expect(plain.jobs).toHaveLength(3);
    await expect(producer.find({ queues: ['mail'] })).rejects.toThrow('WRONGTYPE');
    await redis.flushall();
  });

  test.each([
    [{ queues: 'mail' as never }, /queues is "mail"; allowed: a list of queues/],
    [{ id: 'a', set: 's' }, /id and set are both given/],
    [{ ran: {}, ended: {} }, /ran and ended are both given/],
    [{ ran: { from: '2030-01-02T00:00:00Z', to: '2030-01-01T00:00:00Z' } }, /ran\.to is/],
    [{ queue: 'mail' } as never, /queue is not an option of find.*queues/],
    [{ cursor: 'x' } as never, /cursor is "x"/],
    [{ sort: 'id' } as never, /sort is not an option of find/],
  ])('refuse %j', async (filter, message) => {
    await expect(producer.find(filter)).rejects.toThrow(message);
  });

  test('have a cursor that goes with their filter, queues and order alone', async () => {
    await herd();
    const { cursor } = await producer.find({ limit: 1 });
    await expect(producer.find({ limit: 1, tag: 'user:42', cursor })).rejects.toThrow('of another filter or order');
    await expect(producer.find({ queues: ['mail'], cursor })).rejects.toThrow('of another filter or order');
    await expect(producer.list(mail, { cursor, sort: 'due' })).rejects.toThrow('of another filter or order');
    await expect(producer.list(mail, { sort: 'id' as never })).rejects.toThrow('sort is "id"; allowed: due');
  });
});
