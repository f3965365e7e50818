/**
 * Calls on many dead letters that go on from a cursor: what a call means is fixed when it begins, it ends while letters
 * come, and its cursor is of no other call.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Client, createClient } from '../../../src/client/client.ts';
import type { DeadLetters } from '../../../src/client/dead/dead-letters.ts';
import { defineQueue, type Queue } from '../../../src/job/queue.ts';
import { spreadMs } from '../../../src/kernel/spread.ts';
import { close, openCommands, type Redis, whenReady } from '../../../src/redis/connection/connect.ts';
import { partitionRef } from '../../../src/redis/keys.ts';
import { declareQueue } from '../../../src/redis/scripts/queues.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

const HOUR_MS = 3_600_000;
const mails = defineQueue<{ to: string }>('mails', { partitions: 2 });
const refs = [0, 1].map((partition) => partitionRef('duestream', { queue: 'mails', partition, layoutGeneration: 0 }));
const [first, second] = refs;
if (!first || !second) throw new Error('two partitions');
let server: TestRedis;
let redis: Redis;
let dead: DeadLetters;
let client: Client;

beforeAll(async () => {
  server = await startRedis();
  redis = openCommands({ redis: server.url, name: 'test' });
  await whenReady(redis);
});
beforeEach(async () => {
  await redis.flushall();
  await declareQueue(redis, { namespace: 'duestream', queue: 'mails', partitions: 2 });
  for (const { keys } of refs) await redis.hset(keys.meta, 'generation', '0');
  client = createClient({ redis: server.url });
  dead = client.deadLetters;
});
afterEach(async () => {
  await client.close();
});
afterAll(async () => {
  close(redis);
  await server.stop();
});

const serverMs = async () => {
  const [seconds, micros] = (await redis.time()).map(Number);
  return (seconds ?? 0) * 1000 + Math.floor((micros ?? 0) / 1000);
};

/** A dead letter of a job that is not there any more. */
async function died(id: string, { ref = first, ageMs = 0, tags = 'user:42' } = {}): Promise<string> {
  const atMs = (await serverMs()) - ageMs;
  const record = `1${atMs.toString(36)};t=${tags}|${JSON.stringify({ n: 'welcome', d: { to: id } })}`;
  const history = JSON.stringify({ t: atMs, a: 5, k: 'failure', m: 'boom' });
  const fields = { member: `j:${id}`, record, reason: 'boom', history, token: 7, attempts: 5, generation: 0, at: atMs };
  return String(await redis.xadd(ref?.keys.dead ?? '', `${atMs}-*`, ...Object.entries(fields).flat()));
}
const ids = async (some: readonly string[], how: Parameters<typeof died>[1] = {}) => {
  for (const id of some) await died(id, how);
};
const left = async () => {
  const found = await Promise.all(refs.map(({ keys }) => redis.xrange(keys.dead, '-', '+')));
  return found.flat().map(([, fields]) => fields[1]?.slice(2));
};
/** One place a call, and after each that removed something another one comes. @returns how many went, when it has ended */
async function erasedWhile(queue: Queue, come: (id: string) => Promise<unknown>): Promise<number> {
  let gone = 0;
  let cursor: string | undefined;
  for (let calls = 0; calls < 30; calls += 1) {
    const slice = await client.erase({ tag: 'user:42' }, { queues: [queue.name], scanMax: 1, cursor });
    const { deadLetters = 0, history = 0 } = slice.queues[0] ?? {};
    gone += deadLetters + history;
    cursor = slice.cursor;
    if (cursor === undefined) return gone;
    if (deadLetters + history > 0) await come(`late${calls}`);
  }
  throw new Error(`${gone} went, and there is no end`);
}
/** The same cursor, of a call that began at another time. */
function begunAt(cursor: string | undefined, nowMs: number): string {
  const parts: unknown[] = JSON.parse(Buffer.from(cursor ?? '', 'base64url').toString());
  expect(Math.abs(Number(parts.at(-1)) - Date.now())).toBeLessThan(HOUR_MS);
  return Buffer.from(JSON.stringify([...parts.slice(0, -1), nowMs])).toString('base64url');
}

describe('what a call means is fixed when it begins', () => {
  test('the due time of a replay, also where it is spread over a time', async () => {
    const entryA = await died('a');
    await died('b');
    const entryC = await died('c');
    await died('d');
    const overMs = 600_000;
    const options = { all: true, delay: '1h', limit: 1 } as const;
    const begun = await dead.replay(mails, {}, options);
    const spread = await dead.replay(mails, {}, { ...options, over: overMs });
    // Another millisecond than that of the call which began.
    for (const beganMs = await serverMs(); (await serverMs()) <= beganMs; );
    await dead.replay(mails, {}, { ...options, cursor: begun.cursor });
    await dead.replay(mails, {}, { ...options, over: overMs, cursor: spread.cursor });
    const due = async (id: string) => Number(await redis.zscore(first.keys.scheduled, `j:${id}`));
    expect(await due('b')).toBe(await due('d'));
    expect((await due('a')) - spreadMs(entryA, overMs)).toBe((await due('c')) - spreadMs(entryC, overMs));
    expect(await left()).toEqual([]);
  });

  test('the moment from which ages are counted', async () => {
    await ids(['old', 'older'], { ageMs: 3 * HOUR_MS });
    await ids(['young', 'younger'], { ageMs: HOUR_MS });
    const nowMs = await serverMs();
    const page = await dead.list(mails, { newerThan: '2h' }, { limit: 1 });
    expect(page.deadLetters.map(({ id }) => id)).toEqual(['younger']);
    const later = { cursor: begunAt(page.cursor, nowMs + 5 * HOUR_MS) };
    expect((await dead.list(mails, { newerThan: '2h' }, later)).deadLetters).toEqual([]);
    const earlier = { cursor: begunAt(page.cursor, nowMs - 2 * HOUR_MS) };
    expect((await dead.list(mails, { newerThan: '2h' }, earlier)).deadLetters).toHaveLength(3);
    // Inside Redis, and by what is read.
    for (const filter of [{ olderThan: '2h' }, { olderThan: '2h', name: 'welcome' }]) {
      const { cursor } = await dead.remove(mails, filter, { limit: 1, dryRun: true });
      const begun = { cursor: begunAt(cursor, nowMs - 2 * HOUR_MS), dryRun: true };
      expect(await dead.remove(mails, filter, begun)).toMatchObject({ matched: 0 });
      expect(await dead.remove(mails, filter, { cursor, dryRun: true })).toMatchObject({ matched: 1 });
    }
  });
});

describe('a walk ends while others put dead letters behind its end', () => {
  test.each([{}, { name: 'welcome' }])('a purge of %o', async (filter) => {
    await ids(['a', 'b', 'c']);
    await ids(['d'], { ref: second });
    const options = { all: true, limit: 1 } as const;
    let removed = 0;
    let cursor: string | undefined;
    for (let calls = 0; calls < 20; calls += 1) {
      const slice = await dead.remove(mails, filter, { ...options, cursor });
      removed += slice.changed;
      cursor = slice.cursor;
      if (cursor === undefined) break;
      await died(`late${calls}`);
    }
    expect({ cursor, removed }).toEqual({ cursor: undefined, removed: 4 });
    expect((await left()).every((id) => id?.startsWith('late'))).toBe(true);
  });

  test('an erase, in its dead letters and in its history', async () => {
    const kept = defineQueue<{ to: string }>('kept', { history: { keep: '1d' } });
    const producer = createClient({ redis: server.url });
    const cancelled = async (id: string) => {
      await producer.schedule(kept, { to: id }, { id, delay: '1h', tags: ['user:42'] });
      await producer.cancel(kept, id);
    };
    await ids(['a', 'b', 'c']);
    await cancelled('x');
    await cancelled('y');
    expect(await erasedWhile(mails, died)).toBeGreaterThanOrEqual(3);
    expect(await erasedWhile(kept, cancelled)).toBeGreaterThanOrEqual(2);
    await producer.close();
  });
});

describe('a cursor holds for its own call', () => {
  test('with the same filter, due time and verb', async () => {
    await ids(['a', 'b', 'c']);
    const bounds = { limit: 1, dryRun: true, all: true };
    const { cursor } = await dead.replay(mails, { name: 'welcome' }, { ...bounds, over: '1h', delay: 1000 });
    const same = dead.replay(mails, { name: 'welcome' }, { ...bounds, over: '60m', delay: '1s', cursor });
    expect(await same).toMatchObject({ matched: 1 });
    const purged = await dead.remove(mails, { name: 'welcome' }, bounds);
    const listed = await dead.list(mails, { name: 'welcome' }, { limit: 1 });
    const refused = [
      () => dead.replay(mails, { name: 'other' }, { ...bounds, over: '1h', delay: '1s', cursor }),
      () => dead.replay(mails, { name: 'welcome' }, { ...bounds, over: '2h', delay: '1s', cursor }),
      () => dead.replay(mails, { name: 'welcome' }, { ...bounds, over: '1h', cursor }),
      () => dead.remove(mails, { name: 'welcome' }, { ...bounds, cursor }),
      () => dead.remove(mails, {}, { ...bounds, cursor: purged.cursor }),
      () => dead.replay(mails, { name: 'welcome' }, { ...bounds, cursor: purged.cursor }),
      () => dead.list(mails, {}, { cursor: listed.cursor }),
      () => dead.groups(mails, { name: 'welcome' }, { cursor: listed.cursor }),
    ];
    for (const call of refused) {
      await expect(call()).rejects.toThrow('the cursor is of another filter or another change');
    }
    expect(await left()).toHaveLength(3);
  });

  test('and the same layout', async () => {
    await ids(['a', 'b', 'c']);
    const begun = [
      await dead.list(mails, {}, { limit: 1 }).then(
        ({ cursor }) =>
          () =>
            dead.list(mails, {}, { cursor }),
      ),
      await dead.groups(mails, {}, { scanMax: 1 }).then(
        ({ cursor }) =>
          () =>
            dead.groups(mails, {}, { cursor }),
      ),
      await dead.remove(mails, { reason: 'boom' }, { limit: 1 }).then(
        ({ cursor }) =>
          () =>
            dead.remove(mails, { reason: 'boom' }, { cursor }),
      ),
      await dead.replay(mails, {}, { all: true, limit: 1 }).then(
        ({ cursor }) =>
          () =>
            dead.replay(mails, {}, { all: true, cursor }),
      ),
    ];
    await redis.hset('duestream:v1:{control}:queues', 'mails', '{"partitions":2,"generation":1}');
    for (const { keys } of refs) await redis.hset(keys.meta, 'generation', '1');
    await client.close();
    client = createClient({ redis: server.url });
    dead = client.deadLetters;
    for (const goOn of begun) await expect(goOn()).rejects.toMatchObject({ code: 'moved' });
  });

  test('and the same queues of an erase', async () => {
    await ids(['a', 'b', 'c']);
    const { cursor } = await client.erase({ tag: 'user:42' }, { queues: ['mails'], scanMax: 1 });
    await expect(client.erase({ tag: 'user:42' }, { cursor })).rejects.toThrow(/cursor is of another/);
    expect(await client.erase({ tag: 'user:42' }, { queues: ['mails'], cursor })).toMatchObject({ left: 0 });
    expect(await left()).toEqual([]);
  });
});

test('a dead letter that a primary with a clock ahead has written is met like any other', async () => {
  await ids(['a', 'b'], { ageMs: -HOUR_MS });
  expect((await dead.list(mails)).deadLetters).toHaveLength(2);
  expect((await dead.groups(mails)).groups).toMatchObject([{ count: 2 }]);
  expect(await dead.replay(mails, {}, { all: true, limit: 1 })).toMatchObject({ changed: 1 });
  expect(await dead.remove(mails, {}, { all: true })).toMatchObject({ changed: 1 });
  expect(await left()).toEqual([]);
});
