/** The groups of a queue with limits through the library, over several partitions: who waits, who runs, and why one job waits. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createClient } from '../../../src/client/client.ts';
import { whyJobWaits } from '../../../src/client/queues/why.ts';
import { createDaemon, type Daemon } from '../../../src/daemon/daemon.ts';
import { defineQueue, type QueueOptions } from '../../../src/job/queue.ts';
import { close, openCommands, type Redis, whenReady } from '../../../src/redis/connection/connect.ts';
import { createWorker } from '../../../src/worker/worker.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

const place = { namespace: 'duestream' };
let server: TestRedis;
let redis: Redis;
let client: ReturnType<typeof createClient>;
let daemon: Daemon;
let ends: (() => Promise<void>)[] = [];
beforeAll(async () => {
  server = await startRedis({ port: true });
  redis = openCommands({ redis: { path: server.socketPath }, name: 'test' });
  await whenReady(redis);
});
beforeEach(async () => {
  await redis.flushall();
  client = createClient({ redis: server.url });
  daemon = createDaemon({ redis: { url: server.url }, roles: ['mover'], http: { port: 0, metricGroups: 2 } });
  ends = [() => client.close(), () => daemon.stop()];
  await daemon.start();
});
afterEach(async () => {
  for (const end of ends.toReversed()) await end();
});
afterAll(async () => {
  close(redis);
  await server.stop();
});

/** A queue whose handlers hold their jobs until the end of the test. */
async function held(options: QueueOptions, slots = 50) {
  const queue = defineQueue<{ nth: number }>('imports', options);
  let release = () => {};
  const over = new Promise<void>((resolve) => {
    release = resolve;
  });
  const worker = createWorker(queue, () => over, { redis: server.url, concurrency: slots });
  ends.push(() => {
    release();
    return worker.stop();
  });
  await worker.start();
  return queue;
}

const group = (name: string, count: number, priority?: 'high' | 'low') =>
  Array.from({ length: count }, (_, nth) => ({ data: { nth }, id: `j${nth}${priority ?? ''}`, group: name, priority }));

describe('the groups of a queue', () => {
  test('of several partitions are listed by name, page by page, each once', async () => {
    const queue = await held({ perGroup: 1, partitions: 3 });
    const names = Array.from({ length: 23 }, (_, nth) => `tenant-${String(nth).padStart(2, '0')}`);
    await client.scheduleMany(
      queue,
      names.flatMap((name) => group(name, 3)),
    );
    await expect.poll(async () => (await client.count(queue, { state: 'running' })).count).toBe(23);
    await expect.poll(async () => (await client.count(queue, { state: 'waiting' })).count).toBe(46);
    const pages = [];
    let cursor: string | undefined;
    do {
      const page = await client.groups.list(queue, { limit: 10, cursor });
      pages.push(page.groups);
      cursor = page.cursor;
    } while (cursor !== undefined);
    expect(pages.map(({ length }) => length)).toEqual([10, 10, 3]);
    expect(pages.flat().map((one) => one.group)).toEqual(names);
    for (const one of pages.flat()) {
      expect(one).toMatchObject({ running: 1, waiting: 2, perGroup: 1, isFull: true });
      expect(one.priorities).toEqual({ high: 0, normal: 2, low: 0 });
      expect(one.waitMs).toBeGreaterThan(0);
    }
  });

  test('with most jobs in line come first, and jobs without a group are counted beside them', async () => {
    const queue = await held({ concurrency: 3, fair: true, partitions: 3 });
    // Each partition runs one of these, and none of what comes later.
    await client.scheduleMany(
      queue,
      Array.from({ length: 30 }, (_, nth) => ({ data: { nth }, id: `plain-${nth}` })),
    );
    await expect.poll(async () => (await client.count(queue, { state: 'running' })).count).toBe(3);
    const sizes = [4, 9, 1, 7];
    await client.scheduleMany(
      queue,
      sizes.flatMap((size) => group(`of-${size}`, size)),
    );
    await expect.poll(async () => (await client.count(queue, { state: 'waiting' })).count).toBe(27 + 21);
    const { groups, ungrouped, scanned, cursor } = await client.groups.list(queue, { top: true, limit: 2 });
    expect(groups.map((one) => [one.group, one.waiting])).toEqual([
      ['of-9', 9],
      ['of-7', 7],
    ]);
    expect({ ungrouped, scanned, cursor }).toEqual({ ungrouped: 27, scanned: 4, cursor: undefined });
    expect(groups[0]).toMatchObject({ running: 0, perGroup: undefined, isFull: false });
    // The leader tells of as many in each partition.
    const told = await daemon.metrics();
    expect(told).toContain('duestream_waiting_group_jobs{queue="imports",group="of-9"} 9');
    expect(told).toContain('duestream_waiting_group_jobs{queue="imports",group="of-7"} 7');
  });

  test('say who holds each', async () => {
    const queue = await held({ perGroup: 2, partitions: 2 });
    await client.scheduleMany(queue, [...group('acme', 3), ...group('acme', 2, 'high'), ...group('umbrella', 1)]);
    await expect.poll(async () => (await client.count(queue, { state: 'running' })).count).toBe(3);
    await expect.poll(async () => (await client.count(queue, { state: 'waiting' })).count).toBe(3);
    const { holders, ...acme } = await client.groups.get(queue, 'acme');
    expect(acme).toMatchObject({ group: 'acme', running: 2, waiting: 3, perGroup: 2, isFull: true });
    expect(holders).toHaveLength(2);
    for (const { id, owner, attempt, startedMs, sinceMs } of holders) {
      expect(id).toMatch(/^\{acme\}j\d/);
      expect(owner).toMatch(/./);
      expect(attempt).toBe(1);
      expect(Math.abs((startedMs ?? 0) - sinceMs)).toBeLessThan(20_000);
    }
    expect(await client.groups.get(queue, 'nobody')).toMatchObject({ running: 0, waiting: 0, waitMs: 0, holders: [] });
  });
});

describe('a job in line says what it waits for:', () => {
  const waitsFor = async (id: string) => (await client.get('imports', id))?.waitsFor;
  const told = async (id: string) => {
    const report = await client.get('imports', id);
    if (!report) throw new Error(`there is no job ${id}`);
    const shown = await whyJobWaits({ ...place, redis }, report);
    return [shown?.text, ...(shown?.obstacles ?? []).map(({ text }) => text)];
  };

  test('its group is full, and who holds it; how many come before it', async () => {
    const queue = await held({ perGroup: 1, partitions: 3 });
    await client.scheduleMany(queue, group('acme', 4));
    await expect.poll(async () => (await client.count(queue, { state: 'waiting' })).count).toBe(3);
    await expect.poll(async () => (await client.count(queue, { state: 'running' })).count).toBe(1);
    expect(await waitsFor('{acme}j3')).toEqual({
      group: 'acme',
      priority: 'normal',
      ahead: 2,
      obstacles: [
        {
          kind: 'group-full',
          limit: 1,
          running: 1,
          holders: [expect.objectContaining({ id: '{acme}j0', attempt: 1 })],
        },
      ],
    });
    expect(await waitsFor('{acme}j0')).toBeUndefined();
    expect(await told('{acme}j3')).toEqual([
      '2 jobs of group acme, normal priority, come before it',
      'its group acme is full: 1 of 1 run',
    ]);
    expect((await told('{acme}j1'))[0]).toBe('it is the first in line of group acme, normal priority');
    await client.cancel(queue, '{acme}j1');
    expect(await waitsFor('{acme}j3')).toMatchObject({ ahead: 1 });
  });

  test('the queue is full, or paused, or nobody serves it', async () => {
    const queue = await held({ concurrency: 1, fair: true });
    await client.schedule(queue, { nth: 0 }, { id: 'first' });
    await expect.poll(async () => (await client.count(queue, { state: 'running' })).count).toBe(1);
    await client.schedule(queue, { nth: 1 }, { id: 'later', priority: 'low' });
    await expect.poll(async () => (await client.count(queue, { state: 'waiting' })).count).toBe(1);
    expect(await waitsFor('later')).toMatchObject({
      group: undefined,
      priority: 'low',
      ahead: 0,
      obstacles: [{ kind: 'queue-full', limit: 1, running: 1, holders: [{ id: 'first' }] }],
    });
    await client.queues.pause('imports', { reason: 'the other side moves' });
    const [paused, full] = (await waitsFor('later'))?.obstacles ?? [];
    expect(paused).toMatchObject({ kind: 'paused', reason: 'the other side moves', sinceMs: expect.any(Number) });
    expect(full).toMatchObject({ kind: 'queue-full' });
    await ends.pop()?.();
    expect((await told('later')).slice(1)).toEqual([
      expect.stringMatching(/^the queue has been paused for .*: the other side moves$/),
      'no worker that lives serves the queue',
    ]);
  });

  test('the rate', async () => {
    const queue = await held({ rate: '1/m' });
    await client.scheduleMany(
      queue,
      [0, 1, 2].map((nth) => ({ data: { nth }, id: `j${nth}` })),
    );
    await expect.poll(async () => (await client.count(queue, { state: 'waiting' })).count).toBe(2);
    const found = await client.get(queue, 'j2');
    const [rate] = found?.waitsFor?.obstacles ?? [];
    expect(rate).toMatchObject({ kind: 'rate', untilMs: expect.any(Number) });
    const untilMs = rate?.kind === 'rate' ? rate.untilMs : 0;
    expect(untilMs - (found?.nowMs ?? 0)).toBeGreaterThan(0);
    expect(untilMs - (found?.nowMs ?? 0)).toBeLessThanOrEqual(60_000);
  });
});

describe('it is refused', () => {
  test('to look at the groups of a queue that is not gated', async () => {
    const open = defineQueue('open');
    await client.schedule(open, {}, { delay: '1h' });
    const refusal = 'queue open is not gated, so no job of it waits in line; allowed: a queue with rate';
    await expect(client.groups.list(open)).rejects.toThrow(refusal);
    await expect(client.groups.list(open, { top: true })).rejects.toThrow('"duestream queues set open --fair"');
    await expect(client.groups.get(open, 'acme')).rejects.toThrow(refusal);
  });

  test.each([
    [{ limit: 0 }, 'limit is 0; allowed: a whole number from 1 to 1000'],
    [{ top: 10 as never }, 'top is'],
    [{ cursor: 'x' }, 'cursor is "x"'],
    [{ first: 1 } as never, 'first is not an option of list; allowed: limit, cursor, top'],
  ])('to list with %j', async (options, message) => {
    await expect(client.groups.list('work', options)).rejects.toThrow(message);
  });

  test('to go on with the cursor of another list', async () => {
    const queue = await held({ perGroup: 1 });
    await client.scheduleMany(queue, [...group('a', 1), ...group('b', 1)]);
    await expect.poll(async () => (await client.count(queue, { state: 'running' })).count).toBe(2);
    const { cursor } = await client.groups.list(queue, { limit: 1 });
    await expect(client.groups.list(queue, { cursor, top: true })).rejects.toThrow('of another list');
    await expect(client.groups.list('other', { cursor })).rejects.toThrow('of another list');
  });

  test.each(['', 'a b', '{a}', 'x'.repeat(65)])('to get a group named %j', async (name) => {
    await expect(client.groups.get('work', name)).rejects.toThrow('group is');
  });
});
