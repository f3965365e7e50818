/** Jobs that are over, in the same list as the others: with a history and without one, over partitions, page by page. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Client, createClient, type JobFindOptions, type JobListFilter } from '../../../src/client/client.ts';
import { createDaemon } from '../../../src/daemon/daemon.ts';
import { defineQueue, type Queue } from '../../../src/job/queue.ts';
import { close, openCommands, type Redis, whenReady } from '../../../src/redis/connection/connect.ts';
import { controlKeys, type PartitionRef, partitionRef } from '../../../src/redis/keys.ts';
import { createWorker } from '../../../src/worker/worker.ts';
import { openLossyLine } from '../../support/lossy-line.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

const HOUR_MS = 3_600_000;
const plain = defineQueue('plain', { partitions: 3 });
const kept = defineQueue('kept', { partitions: 3, history: { keep: '1d', result: true } });
const OVER = ['done', 'cancelled', 'expired', 'dead'] as const;
let server: TestRedis;
let redis: Redis;
let client: Client;

beforeAll(async () => {
  server = await startRedis();
  redis = openCommands({ redis: server.url, name: 'test' });
  await whenReady(redis);
});
beforeEach(async () => {
  await redis.flushall();
  client = createClient({ redis: server.url });
});
afterEach(() => client.close());
afterAll(async () => {
  close(redis);
  await server.stop();
});

const refOf = ({ name }: Queue, partition: number): PartitionRef =>
  partitionRef('duestream', { queue: name, partition, layoutGeneration: 0 });
const idsOf = async (queue: Queue, filter: JobListFilter) =>
  (await client.list(queue, filter)).jobs.map(({ id }) => id);

/** Of all pages. */
async function walked(queue: Queue, filter: JobListFilter, limit: number): Promise<readonly string[]> {
  const ids: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await client.list(queue, { ...filter, limit, cursor });
    ids.push(...page.jobs.map(({ id }) => id));
    cursor = page.cursor;
  } while (cursor !== undefined);
  return ids;
}

/** Jobs that were cancelled one after the other, with a millisecond between them. @returns when each had ended */
async function cancelled(queue: Queue, ids: readonly string[]): Promise<readonly Date[]> {
  const moments: Date[] = [];
  for (const id of ids) {
    await client.schedule(queue, { to: id }, { id, delay: '1h', name: `of-${id[0]}`, tags: [`t:${id[0]}`] });
    await client.cancel(queue, id);
    const { overMs = 0 } = (await client.get(queue, id)) ?? {};
    moments.push(new Date(overMs));
    const passed = async () =>
      Number((await redis.time())[0]) * 1000 + Number((await redis.time())[1]) / 1000 > overMs + 2;
    await expect.poll(passed).toBe(true);
  }
  return moments;
}

/** A dead letter of a job that is not there any more. */
async function died(queue: Queue, id: string, atMs: number, partition = 0): Promise<string> {
  const record = `1${atMs.toString(36)};t=vip|${JSON.stringify({ n: 'welcome', d: { to: id } })}`;
  const fields = {
    member: `j:${id}`,
    record,
    reason: 'boom',
    history: '',
    token: 7,
    attempts: 5,
    generation: 0,
    at: atMs,
  };
  return String(await redis.xadd(refOf(queue, partition).keys.dead, `${atMs}-*`, ...Object.entries(fields).flat()));
}

describe('a list of jobs that are over, in a queue without a history', () => {
  test('has them behind those that are not over, the latest end of all partitions first', async () => {
    await cancelled(plain, ['a', 'b', 'c', 'd', 'e']);
    await client.schedule(plain, null, { id: 'later', delay: '1h' });
    expect(await idsOf(plain, {})).toEqual(['later']);
    expect(await idsOf(plain, { state: 'cancelled' })).toEqual(['e', 'd', 'c', 'b', 'a']);
    expect(await idsOf(plain, { state: ['cancelled', 'scheduled'] })).toEqual(['later', 'e', 'd', 'c', 'b', 'a']);
    expect(await idsOf(plain, { state: ['done', 'expired', 'dead'] })).toEqual([]);
    const ids: string[] = [];
    for await (const { id } of client.list(plain, { state: ['scheduled', ...OVER] })) ids.push(id);
    expect(ids).toEqual(['later', 'e', 'd', 'c', 'b', 'a']);
  });

  test.each([1, 2, 3])('goes on from page to page of %i, also while jobs end', async (limit) => {
    await cancelled(plain, ['a', 'b', 'c', 'd', 'e']);
    const met: string[] = [];
    let cursor: string | undefined;
    for (let pages = 0; pages < 20 && (pages === 0 || cursor !== undefined); pages += 1) {
      const page = await client.list(plain, { state: OVER, limit, cursor });
      expect(page.jobs.length).toBeLessThanOrEqual(limit);
      met.push(...page.jobs.map(({ id }) => id));
      cursor = page.cursor;
      await cancelled(plain, [`new-${pages}`]);
    }
    expect([met, cursor]).toEqual([['e', 'd', 'c', 'b', 'a'], undefined]);
  });

  test('meets each of many that ended in one millisecond once', async () => {
    const nowMs = Date.now();
    const ids = Array.from({ length: 90 }, (_, nth) => `n${nth}`);
    await client.ready();
    (await client.count(plain)).count;
    for (const [nth, id] of ids.entries()) {
      const { keys } = refOf(plain, nth % 3);
      await redis.hset(keys.jobs, `j:${id}`, `.c${nowMs.toString(36)} 0123456789abcdef 0 0 -`);
      await redis.zadd(keys.done, nowMs, `j:${id}`);
    }
    for (const limit of [1, 7, 30, 1000]) {
      const met = await walked(plain, { state: 'cancelled' }, limit);
      expect([met.length, new Set(met).size]).toEqual([90, 90]);
    }
  });

  test('takes dead jobs from their dead letters, with all that these know, among the others by their ends', async () => {
    const [first, second] = await cancelled(plain, ['a', 'b']);
    const between = Math.floor((Number(first) + Number(second)) / 2);
    const entry = await died(plain, 'x', between, 2);
    await died(plain, 'y', Number(first) - 5);
    expect(await idsOf(plain, { state: OVER })).toEqual(['b', 'x', 'a', 'y']);
    expect(await walked(plain, { state: OVER }, 1)).toEqual(['b', 'x', 'a', 'y']);
    expect(await idsOf(plain, { state: ['dead', 'done'] })).toEqual(['x', 'y']);
    const [job] = (await client.list(plain, { state: 'dead' })).jobs;
    expect(job).toMatchObject({
      id: 'x',
      partition: 2,
      state: 'dead',
      name: 'welcome',
      data: { to: 'x' },
      tags: ['vip'],
    });
    expect(job).toMatchObject({ attempts: 5, reason: 'boom', deadLetter: entry, overMs: between, askedDueMs: between });
  });

  test('says of each what get says of it', async () => {
    await cancelled(plain, ['a']);
    const [listed] = (await client.list(plain, { state: 'cancelled' })).jobs;
    expect(await client.get(plain, 'a')).toMatchObject({ ...listed });
  });

  test.each<[JobListFilter, RegExp]>([
    [{ state: 'done', tag: 'x' }, /^tag is given, and plain keeps no history.*; allowed: state, limit and cursor$/],
    [{ state: ['scheduled', 'done'], name: 'x' }, /^name is given, and plain keeps no history/],
    [{ state: 'done', idPrefix: 'x' }, /^idPrefix is given/],
    [{ state: 'expired', ended: { to: '2030-01-01T00:00:00Z' } }, /^ended is given/],
    [{ state: 'dead', tag: 'x' }, /client\.deadLetters, duestream dead ls and \/v1\/queues\/plain\/dead find/],
  ])('refuses %j', async (filter, message) => {
    await expect(client.list(plain, filter)).rejects.toThrow(message);
  });

  test('ends a page after 20,000 places, even an empty one', async () => {
    (await client.count(plain)).count;
    const { keys } = refOf(plain, 1);
    for (let from = 0; from < 20_500; from += 500) {
      const members = Array.from({ length: 500 }, (_, nth) => `j:n${from + nth}`);
      await redis.hset(keys.jobs, ...members.flatMap((member) => [member, '.d1a 0123456789abcdef 1 1 -']));
      await redis.zadd(keys.done, ...members.flatMap((member, nth) => [1000 + from + nth, member]));
    }
    const first = await client.list(plain, { state: 'expired' });
    expect([first.jobs, first.scanned]).toEqual([[], 20_000]);
    const second = await client.list(plain, { state: 'expired', cursor: first.cursor });
    expect([second.jobs, second.scanned, second.cursor]).toEqual([[], 500, undefined]);
  });
});

describe('a list of jobs that are over, in a queue with a history', () => {
  test('is by name, tag, id and time of the end, alone and together', async () => {
    const ends = await cancelled(kept, ['a1', 'a2', 'b1', 'b2']);
    const all = { state: OVER };
    expect(await idsOf(kept, all)).toEqual(['b2', 'b1', 'a2', 'a1']);
    expect(await walked(kept, all, 1)).toEqual(['b2', 'b1', 'a2', 'a1']);
    expect(await idsOf(kept, { ...all, name: 'of-a' })).toEqual(['a2', 'a1']);
    expect(await idsOf(kept, { ...all, tag: 't:b' })).toEqual(['b2', 'b1']);
    expect(await idsOf(kept, { ...all, idPrefix: 'b2' })).toEqual(['b2']);
    expect(await idsOf(kept, { ...all, tag: 't:b', name: 'of-a' })).toEqual([]);
    expect(await idsOf(kept, { state: 'done' })).toEqual([]);
    const [, second, third] = ends;
    expect(await idsOf(kept, { ...all, ended: { from: second, to: third } })).toEqual(['b1', 'a2']);
    expect(await idsOf(kept, { ...all, ended: { from: third, to: third } })).toEqual(['b1']);
    expect(await walked(kept, { ...all, ended: { to: third }, name: 'of-a' }, 1)).toEqual(['a2', 'a1']);
    const [job] = (await client.list(kept, { ...all, idPrefix: 'a1' })).jobs;
    expect(job).toMatchObject({ id: 'a1', state: 'cancelled', name: 'of-a', tags: ['t:a'], overMs: Number(ends[0]) });
    expect(await client.get(kept, 'a1')).toMatchObject({ ...job });
  });

  test('has jobs that are not over too, by the same filter', async () => {
    await cancelled(kept, ['a1', 'b1']);
    await client.schedule(kept, null, { id: 'a2', delay: '1h', tags: ['t:a'] });
    expect(await idsOf(kept, { state: ['scheduled', 'cancelled'], tag: 't:a' })).toEqual(['a2', 'a1']);
    expect(await walked(kept, { state: ['scheduled', 'cancelled'], tag: 't:a' }, 1)).toEqual(['a2', 'a1']);
  });

  test('has every end of an id that was used again', async () => {
    await cancelled(kept, ['a', 'a', 'a']);
    expect(await walked(kept, { state: OVER }, 1)).toEqual(['a', 'a', 'a']);
  });

  test('knows a history that another process has just switched on, or off: then it finds what was kept', async () => {
    await cancelled(kept, ['a']);
    await cancelled(plain, ['b']);
    const { queues } = controlKeys('duestream');
    const setting = (await redis.hget(queues, 'kept:history')) ?? '';
    await redis.hset(queues, 'plain:history', setting);
    expect(await idsOf(plain, { state: 'cancelled', name: 'x' })).toEqual([]);
    await redis.hset(queues, 'kept:history', setting.replace('"on":true', '"on":false'));
    expect(await idsOf(kept, { state: 'cancelled', name: 'of-a' })).toEqual(['a']);
    const [job] = (await client.list(kept, { state: 'cancelled' })).jobs;
    expect(job).toMatchObject({ id: 'a', name: undefined });
  });

  test('ends a page after 5,000 places, even an empty one', async () => {
    // A look declares nothing.
    await client.schedule(kept, null, { id: 'later', delay: '1h' });
    const { keys } = refOf(kept, 1);
    for (let from = 0; from < 5500; from += 500) {
      await redis.zadd(keys.ended, ...Array.from({ length: 500 }, (_, nth) => [from + nth, `j:n${from + nth}`]).flat());
    }
    const first = await client.list(kept, { state: OVER });
    expect([first.jobs, first.scanned]).toEqual([[], 5000]);
    const second = await client.list(kept, { state: OVER, cursor: first.cursor });
    expect([second.jobs, second.scanned, second.cursor]).toEqual([[], 500, undefined]);
  });

  test('ends a page after 16 MiB of what is read', async () => {
    // A look declares nothing.
    await client.schedule(kept, null, { id: 'later', delay: '1h' });
    const { keys } = refOf(kept, 0);
    const note = JSON.stringify({ r: 'x'.repeat(250_000) });
    for (let nth = 0; nth < 80; nth += 1) {
      await redis.hset(keys.past, `j:n${nth}`, `1- d 7 1 0 0 0 1a 1700 w1 - -\n- ${note}`);
      await redis.zadd(keys.ended, nth, `j:n${nth}`);
    }
    const first = await client.list(kept, { state: 'done' });
    expect(first.jobs.length).toBeGreaterThan(60);
    expect(first.jobs.length).toBeLessThan(70);
    const second = await client.list(kept, { state: 'done', cursor: first.cursor });
    expect(first.jobs.length + second.jobs.length).toBe(80);
  });
});

describe('a list of jobs in any state', () => {
  test.each<[JobListFilter, RegExp]>([
    [{ state: 'over' as never }, /state is "over"; allowed: one or several of scheduled, .*, dead$/],
    [{ state: [] }, /state is an array; allowed/],
    [{ state: 'done', due: {} }, /due is given, and state says done; allowed .*: ended\.from and ended\.to$/],
    [
      { state: ['done', 'ready'], ended: {} },
      /ended is given, and state says ready; allowed .*: due\.from and due\.to$/,
    ],
    [{ ended: {} }, /ended is given, and state says scheduled/],
    [{ state: 'done', ended: { from: 'soon' } }, /ended\.from is "soon"/],
    [
      { state: 'done', ended: { from: '2030-01-02T00:00:00Z', to: '2030-01-01T00:00:00Z' } },
      /ended\.to is .*; allowed: ended\.from or an instant after it/,
    ],
    [{ state: 'done', ended: { until: 1 } as never }, /until is not an option of ended; allowed: from, to/],
  ])('refuses %j', async (filter, message) => {
    await expect(client.list(plain, filter)).rejects.toThrow(message);
  });

  test('is counted and changed only as far as the jobs are not over', async () => {
    const done = { state: 'done' as never };
    for (const call of [
      async () => (await client.count(plain, done)).count,
      () => client.cancel(plain, done),
      () => client.reschedule(plain, done, { delay: '1h' }),
      () => client.edit(plain, done, { attempts: 2 }),
      () => client.runNow(plain, done),
    ]) {
      await expect(call()).rejects.toThrow(/state is "done"; allowed: one or several of/);
    }
    await cancelled(kept, ['a']);
    expect(await client.cancel(kept, { tag: 't:a' })).toMatchObject({ matched: 0 });
  });

  test('has a cursor that holds for its own filter and layout', async () => {
    await cancelled(plain, ['a', 'b', 'c']);
    const { cursor } = await client.list(plain, { state: 'cancelled', limit: 1 });
    await expect(client.list(plain, { state: 'done', cursor })).rejects.toThrow(/of another filter/);
    const refs = [0, 1, 2].map((partition) => refOf(plain, partition));
    await redis.hset(controlKeys('duestream').queues, 'plain', '{"partitions":3,"generation":1}');
    for (const { keys } of refs) await redis.hset(keys.meta, 'generation', 1);
    await expect(client.list(plain, { state: 'cancelled', cursor })).rejects.toMatchObject({ code: 'moved' });
    expect(await idsOf(plain, { state: 'cancelled' })).toHaveLength(3);
  });

  test('is whole where a reply was lost', async () => {
    const line = await openLossyLine(server);
    const over = createClient({ redis: line.url, retryBudget: '5s' });
    await cancelled(plain, ['a', 'b', 'c']);
    await cancelled(kept, ['d', 'e', 'f']);
    await died(plain, 'g', Date.now() - HOUR_MS);
    for (const [queue, ids] of [
      [plain, ['c', 'b', 'a', 'g']],
      [kept, ['f', 'e', 'd']],
    ] as const) {
      (await over.count(queue)).count;
      for (const after of [0, 2, 4]) {
        line.lose({ after });
        const { jobs } = await over.list(queue, { state: OVER });
        expect([jobs.map(({ id }) => id), line.hasLost()]).toEqual([ids, true]);
      }
    }
    await over.close();
    await line.close();
  });
});

describe('jobs of all queues that are over', () => {
  const other = defineQueue('other', { history: { keep: '1d' } });
  const rowsOf = async (filter: JobFindOptions) =>
    (await client.find(filter)).jobs.map(({ queue, id }) => `${queue} ${id}`);

  test('come by their ends, over histories and what is remembered, page by page', async () => {
    await cancelled(kept, ['a', 'b']);
    await cancelled(other, ['c']);
    await cancelled(kept, ['d']);
    await client.schedule(other, null, { id: 'later', delay: '1h' });
    const inOrder = ['kept d', 'other c', 'kept b', 'kept a'];
    expect(await rowsOf({ state: 'cancelled' })).toEqual(inOrder);
    expect(await rowsOf({ state: ['scheduled', 'cancelled'] })).toEqual(['other later', ...inOrder]);
    expect(await rowsOf({ tag: 't:c', state: 'cancelled' })).toEqual(['other c']);
    const met: string[] = [];
    for await (const { queue, id } of client.find({ state: ['scheduled', 'cancelled'], limit: 1 })) {
      met.push(`${queue} ${id}`);
    }
    expect(met).toEqual(['other later', ...inOrder]);
  });

  test('by the time of their end name a queue that keeps no history', async () => {
    const [, second] = await cancelled(kept, ['a', 'b']);
    await cancelled(plain, ['x']);
    const { jobs, unread } = await client.find({ ended: { from: second } });
    expect(jobs.map(({ id }) => id)).toEqual(['b']);
    expect(unread).toEqual([{ queue: 'plain', why: expect.stringContaining('keeps no history') }]);
    const none = await client.find({ queues: ['plain'], ran: { from: second } });
    expect(none).toMatchObject({ jobs: [], unread: [{ queue: 'plain' }] });
  });

  test('and those that run are found by when they ran', async () => {
    const gates = new Map<string, () => void>();
    const worker = createWorker(other, ({ id }) => new Promise<void>((resolve) => gates.set(id, resolve)), {
      redis: server.url,
      concurrency: 5,
    });
    const daemon = createDaemon({ redis: { url: server.url }, roles: ['mover'] });
    await Promise.all([daemon.start(), worker.start()]);
    try {
      for (const id of ['short', 'long', 'runs']) {
        await client.schedule(other, null, { id });
        await expect.poll(() => gates.has(id)).toBe(true);
      }
      gates.get('short')?.();
      const overMs = async (id: string) => (await client.get(other, id))?.overMs;
      await expect.poll(() => overMs('short')).toBeDefined();
      const shortMs = (await overMs('short')) ?? 0;
      await expect.poll(() => redis.time().then(([s]) => Number(s) * 1000 > shortMs + 1)).toBe(true);
      gates.get('long')?.();
      await expect.poll(() => overMs('long')).toBeDefined();
      const startedMs = (await client.get(other, 'short'))?.startedMs ?? 0;
      const ranAt = async (from: number, to: number) =>
        (await rowsOf({ ran: { from: new Date(from), to: new Date(to) } })).toSorted();
      expect(await ranAt(startedMs, shortMs)).toEqual(['other long', 'other runs', 'other short']);
      expect(await ranAt(shortMs + 1, shortMs + 1)).toEqual(['other long', 'other runs']);
      expect(await ranAt(startedMs - 10_000, startedMs - 1)).toEqual([]);
      expect(await rowsOf({ ran: {}, state: 'running' })).toEqual(['other runs']);
    } finally {
      gates.get('runs')?.();
      await worker.stop();
      await daemon.stop();
    }
  });
});
