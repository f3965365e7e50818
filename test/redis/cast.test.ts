/** `cast`: due jobs of a broadcast queue go to the stream of all subscribers and are over, for the leader of this term only. */
import { describe, expect, test } from 'vitest';
import { type BroadcastOptions, parseSettings } from '../../src/job/queue-settings.ts';
import { castAfter, castCount, newestCast, wentBack } from '../../src/redis/read/broadcast.ts';
import { peek } from '../../src/redis/read/inspect.ts';
import { item, LEASE_MS, only, T0, usePartition, WINDOW_MS } from '../support/partition.ts';

const p = usePartition();
const ids = (count: number, data?: unknown) =>
  Array.from({ length: count }, (_, at) => item(`job-${String(at).padStart(4, '0')}`, { data }));

interface Asked extends BroadcastOptions {
  readonly nowMs?: number;
  readonly limit?: number;
  readonly windowMs?: number;
  readonly term?: string;
}
/** Ids of entries are of the server's clock, so nothing is too old where time is given. */
async function cast({ nowMs = T0, limit = 500, windowMs = WINDOW_MS, term, ...bounds }: Asked = {}) {
  const broadcast = parseSettings({ broadcast: { age: '7d', ...bounds } }).broadcast;
  if (!broadcast) throw new Error('no broadcast');
  const pass = { term: term ?? (await p.lead()), leaseMs: LEASE_MS, limit, windowMs, broadcast, nowMs };
  return p.jobs.cast(p.ref, pass);
}
const sent = async (after = '0-0') => castAfter(p.redis, p.ref, { after, limit: 10_000 });
const members = async () => (await sent()).map(({ member }) => member);
const counts = async () => (await sent()).map(({ count }) => count);

describe('due jobs', () => {
  test('are sent in order with their number, and are done', async () => {
    await p.scheduleAll([item('a', { dueMs: T0 - 20 }), item('b', { data: { x: 1 } }), item('d', { dueMs: T0 + 500 })]);
    expect(await cast()).toEqual({
      kind: 'promoted',
      nowMs: T0,
      nextMs: T0 + 500,
      backlog: 0,
      deadLetters: 0,
      count: 2,
      lateness: [
        [20, 1],
        [0, 1],
      ],
    });
    const [a, b] = await sent();
    expect([a, b]).toMatchObject([
      { count: 1, member: 'j:a', dueMs: T0 - 20, record: item('a', { dueMs: T0 - 20 }).record },
      { count: 2, member: 'j:b', dueMs: T0, record: item('b', { data: { x: 1 } }).record },
    ]);
    expect(await p.picture()).toEqual({
      scheduled: { 'j:d': T0 + 500 },
      jobs: { 'j:a': 'tombstone done', 'j:b': 'tombstone done', 'j:d': 'record' },
      done: { 'j:a': T0, 'j:b': T0 },
    });
    expect([await p.count('promoted'), await p.count('done')]).toEqual([2, 2]);
    expect(await p.meta('wake')).toBe(String(T0 + 500));
  });

  test('are never early by a millisecond, and a second call sends nothing again', async () => {
    await p.schedule('a', { dueMs: T0 + 1 });
    expect(await cast()).toMatchObject({ count: 0, nextMs: T0 + 1 });
    expect(await cast({ nowMs: T0 + 1 })).toMatchObject({ count: 1, nextMs: undefined });
    expect(await cast({ nowMs: T0 + 1 })).toMatchObject({ count: 0, nextMs: undefined });
    expect(await members()).toEqual(['j:a']);
  });

  test('leave nothing without a done window', async () => {
    await p.schedule('a');
    await cast({ windowMs: 0 });
    expect(await p.picture()).toEqual({});
    expect(await members()).toEqual(['j:a']);
  });

  test('are known by a repeated call, and by a look', async () => {
    await p.schedule('a');
    await cast();
    expect(await p.schedule('a')).toEqual({ kind: 'already', over: 'done' });
    expect(await peek(p.redis, p.ref, 'j:a')).toMatchObject({ state: 'done' });
  });

  test('are sent to whoever listens, once per pass', async () => {
    await p.scheduleAll(ids(30));
    const subscriber = await p.server.client();
    const heard: string[] = [];
    subscriber.on('smessage', (_channel: string, message: string) => heard.push(message));
    await subscriber.ssubscribe(p.keys.work);
    await cast();
    await cast();
    await p.redis.spublish(p.keys.work, 'end');
    await expect.poll(() => heard.at(-1)).toBe('end');
    subscriber.disconnect();
    expect(heard).toEqual(['30', 'end']);
  });

  test('move as many per pass as are asked for', async () => {
    await p.scheduleAll(ids(40));
    expect(await cast({ limit: 15 })).toMatchObject({ count: 15 });
    expect(await cast({ limit: 15 })).toMatchObject({ count: 15 });
    expect(await cast()).toMatchObject({ count: 10 });
    expect(await counts()).toEqual(Array.from({ length: 40 }, (_, at) => at + 1));
  });

  test('of large records end a pass at 1 MiB, and the next goes on', async () => {
    await p.scheduleAll(ids(6, 'x'.repeat(300_000)));
    expect(await cast()).toMatchObject({ count: 3 });
    expect(await cast()).toMatchObject({ count: 3 });
  });
});

test('a deposed leader sends nothing', async () => {
  await p.schedule('a');
  await p.lead();
  expect(await p.withoutWrite(() => cast({ term: 'm2:7:5000' }))).toEqual({ kind: 'fenced' });
});

test('a pass prolongs the lease', async () => {
  const term = await p.lead();
  await p.redis.pexpire(p.keys.leader, 1000);
  await cast({ term });
  expect(await p.redis.pttl(p.keys.leader)).toBeGreaterThan(1000);
});

test('a paused queue sends nothing, and looks again by itself', async () => {
  await p.schedule('a');
  await p.redis.hset(p.keys.meta, 'paused', `${T0} tests`);
  expect(await cast()).toMatchObject({ kind: 'paused', count: 0, nextMs: T0 });
  expect(await p.meta('wake')).toBe('0');
  expect(await members()).toEqual([]);
});

describe('what is no job', () => {
  test('of a foreign producer is sent without data', async () => {
    await p.put('order-1', T0);
    expect(await cast()).toMatchObject({ count: 1 });
    expect(only(await sent())).toMatchObject({ member: 'order-1', dueMs: T0 });
    expect(await p.count('adopted')).toBe(1);
    await p.put('order-1', T0 + 1);
    await cast({ nowMs: T0 + 1 });
    expect(await members()).toEqual(['order-1', 'order-1']);
  });

  test('becomes a dead letter and stops nobody', async () => {
    await p.put('seconds', 1_763_719_000);
    await p.put('j:ghost', T0);
    await p.schedule('a');
    expect(await cast()).toMatchObject({ count: 1, deadLetters: 2 });
    expect(await p.picture()).toMatchObject({ dead: ['seconds: bad-due', 'j:ghost: record-missing'] });
    expect(await p.count('refused')).toBe(2);
  });

  test('is dropped in silence where an entry of an earlier life was left', async () => {
    await p.put('j:ghost', T0);
    await p.redis.zadd(p.keys.stale, T0, 'j:ghost');
    expect(await cast()).toMatchObject({ count: 0, deadLetters: 0 });
    expect(await p.picture()).toEqual({});
  });

  test('leaves no note behind: of a debounced job, or of one that was cancelled, which was ready when the queue began to cast', async () => {
    await p.scheduleAll([item('a'), item('b'), item('c')]);
    await p.promote();
    await p.reschedule('j:a', T0 + 5000);
    await p.cancel('j:b');
    expect(await p.redis.zcard(p.keys.stale)).toBe(2);
    await cast();
    expect(await p.redis.zcard(p.keys.stale)).toBe(0);
    expect(await members()).toEqual(['j:c']);
    expect(await p.picture()).toMatchObject({ scheduled: { 'j:a': T0 + 5000 }, done: { 'j:b': T0 } });
  });

  test('because it is of a later version waits for a leader that knows it', async () => {
    await p.schedule('a');
    await p.redis.hset(p.keys.jobs, 'j:a', '2mi8or64g|{}');
    expect(await cast()).toMatchObject({ count: 0, nextMs: T0 + 4000 });
  });

  test('because it is over is over', async () => {
    await p.schedule('a');
    await cast();
    await p.redis.zrem(p.keys.done, 'j:a');
    await p.put('j:a', T0);
    await cast();
    expect(await p.picture()).toEqual({ jobs: { 'j:a': 'tombstone done' }, done: { 'j:a': T0 } });
    expect(await members()).toEqual(['j:a']);
    await p.put('j:a', T0);
    await cast({ windowMs: 0 });
    expect(await p.picture()).toEqual({});
  });
});

describe('a job that is too late', () => {
  test('is dropped, becomes a dead letter, or is sent all the same', async () => {
    const late = (onLate?: 'dead' | 'run') => ({ late: { expiresAtMs: T0 + 10, ...(onLate && { onLate }) } });
    await p.scheduleAll([item('drop', late()), item('dead', late('dead')), item('run', late('run'))]);
    expect(await cast({ nowMs: T0 + 11 })).toMatchObject({ count: 1, deadLetters: 1 });
    expect(await members()).toEqual(['j:run']);
    expect(await p.picture()).toMatchObject({
      jobs: { 'j:drop': 'tombstone expired', 'j:dead': 'tombstone dead', 'j:run': 'tombstone done' },
      dead: ['j:dead: expired'],
    });
    expect([await p.count('expired'), await p.count('dead'), await p.count('done')]).toEqual([1, 1, 1]);
  });

  test('is sent at its expiry, and a millisecond after its largest lateness no more', async () => {
    await p.scheduleAll([item('a', { late: { expiresAtMs: T0 } }), item('b', { late: { maxLatenessMs: 5 } })]);
    await cast();
    expect(await members()).toEqual(['j:a', 'j:b']);
    await p.reset();
    await p.scheduleAll([item('b', { late: { maxLatenessMs: 5 } })]);
    await cast({ nowMs: T0 + 6 });
    expect(await members()).toEqual([]);
  });
});

describe('a job that was ready before the queue became a broadcast', () => {
  test('is sent, unless a worker has it', async () => {
    await p.scheduleAll(ids(3));
    await p.promote();
    const [held] = await p.read('w1', 1);
    expect(await cast()).toMatchObject({ count: 2 });
    expect(await members()).toEqual(['j:job-0001', 'j:job-0002']);
    expect(await p.picture()).toMatchObject({ ready: ['j:job-0000'], pending: { w1: ['j:job-0000'] } });
    const [claim] = await p.claim(held ? [held] : []);
    await p.complete(claim ? [claim] : []);
    expect(await p.count('done')).toBe(3);
  });

  test('is sent when it is due, if it got another due time since', async () => {
    await p.schedule('a');
    await p.promote();
    await p.schedule('a', { dueMs: T0 + 50, mode: 'replace' });
    expect(await cast()).toMatchObject({ count: 0, nextMs: T0 + 50 });
    expect(await cast({ nowMs: T0 + 50 })).toMatchObject({ count: 1 });
  });
});

describe('the stream', () => {
  test('keeps as many entries as it may', async () => {
    await p.scheduleAll(ids(30));
    await cast({ max: 10 });
    expect(await counts()).toEqual([21, 22, 23, 24, 25, 26, 27, 28, 29, 30]);
    expect(await castCount(p.redis, p.ref)).toBe(30);
  });

  test('keeps as many bytes as it may, and the newest entry in any case', async () => {
    const record = item('job-0000', { data: 'x'.repeat(1000) });
    const size = record.record.length + record.member.length;
    await p.scheduleAll(ids(10, 'x'.repeat(1000)));
    await cast({ bytes: 3 * size });
    expect(await counts()).toEqual([8, 9, 10]);
    await p.schedule('large', { data: 'x'.repeat(9000) });
    await cast({ bytes: 3 * size });
    expect(await counts()).toEqual([11]);
  });

  test('keeps none that is older than it may be, also without a job', async () => {
    await p.scheduleAll(ids(150));
    await cast();
    const newest = Number((await newestCast(p.redis, p.ref))?.entry.split('-')[0]);
    const wake = await p.meta('wake');
    expect(await cast({ limit: 0, age: '1s', nowMs: newest + 1000 })).toMatchObject({ count: 0 });
    expect((await sent()).length).toBeGreaterThan(0);
    expect(await cast({ limit: 0, age: '1s', nowMs: newest + 1001 })).toMatchObject({ backlog: 0 });
    expect(await sent()).toEqual([]);
    expect(await p.meta('wake')).toBe(wake);
    await p.schedule('b');
    await cast();
    expect(await counts()).toEqual([151]);
  });

  test('loses at most 200 entries more per call than were added, and says that there are more', async () => {
    await p.scheduleAll(ids(500));
    await cast();
    expect(await cast({ limit: 0, max: 10 })).toMatchObject({ backlog: 1 });
    expect((await sent()).length).toBe(300);
    expect(await cast({ limit: 0, max: 10 })).toMatchObject({ backlog: 1 });
    expect(await cast({ limit: 0, max: 10 })).toMatchObject({ backlog: 0 });
    expect((await sent()).length).toBe(10);
  });

  test('is known to have gone back when it has lost what was read, and only then', async () => {
    await p.scheduleAll(ids(5));
    await cast();
    const [first, , third, , last] = await sent();
    const at = (entry: typeof first) => ({ after: entry?.entry ?? '', count: entry?.count ?? 0 });
    expect(await wentBack(p.redis, p.ref, at(last))).toBe(false);
    // Dropped by a bound, with all that were older.
    await p.redis.xdel(p.keys.cast, first?.entry ?? '');
    expect(await wentBack(p.redis, p.ref, at(first))).toBe(false);
    // Not there, although an older one is.
    await p.redis.xdel(p.keys.cast, third?.entry ?? '');
    expect(await wentBack(p.redis, p.ref, at(third))).toBe(true);
    await p.redis.hset(p.keys.meta, 'cast', '3 100');
    expect(await wentBack(p.redis, p.ref, at(last))).toBe(true);
  });
});
