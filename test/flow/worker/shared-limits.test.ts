/** Limits that several queues share, through the library, with daemons and workers: they hold over queues, partitions and daemons. */
import { expect, test } from 'vitest';
import { startEstimateOf } from '../../../src/inspect/estimate.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { limitKeys } from '../../../src/redis/keys.ts';
import { useLibrary } from '../../support/library.ts';

const library = useLibrary();

/** A worker of a queue that shares these limits; its handlers say when they begin, and end when they are let go. */
async function work(name: string, limits: readonly string[], seen: Seen) {
  const queue = defineQueue(name, { partitions: 2, limits });
  const handler = async () => {
    seen.starts.push(name);
    seen.running += 1;
    seen.most = Math.max(seen.most, seen.running);
    await seen.until();
    seen.running -= 1;
  };
  await library.work(queue, handler, { workers: 1, slots: 20 });
  return queue;
}

interface Seen {
  readonly starts: string[];
  running: number;
  most: number;
  until: () => Promise<unknown>;
}
const nothing = (): Seen => ({ starts: [], running: 0, most: 0, until: async () => undefined });
const many = (count: number) => Array.from({ length: count }, (_, nth) => ({ data: { nth }, id: `j${nth}` }));

test('two queues never run more than the concurrency that they share, and all of their jobs run', async () => {
  await library.client.limits.set('places', { concurrency: 3 });
  const [seen, doors] = [nothing(), [] as (() => void)[]];
  seen.until = () => new Promise<void>((resolve) => doors.push(resolve));
  const mails = await work('mails', ['places'], seen);
  const reminders = await work('reminders', ['places'], seen);
  await Promise.all([library.lead(), library.lead()]);
  await library.client.scheduleMany(mails, many(15));
  await library.client.scheduleMany(reminders, many(15));
  await expect
    .poll(() => {
      for (const open of doors.splice(0)) open();
      return seen.starts.length;
    })
    .toBe(30);
  for (const open of doors.splice(0)) open();
  expect(seen.most).toBeLessThanOrEqual(3);
  expect(new Set(seen.starts)).toEqual(new Set(['mails', 'reminders']));
  const [limit] = await library.client.limits.list();
  expect(limit).toMatchObject({ name: 'places', text: '3 at once', queues: ['mails', 'reminders'] });
  await expect.poll(async () => (await library.client.limits.list())[0]?.lent).toBe(0);
});

test('a rate that two queues share takes as long for both as for one', async () => {
  await library.client.limits.set('provider', { rate: '20/s' });
  const seen = nothing();
  const mails = await work('mails', ['provider'], seen);
  const reminders = await work('reminders', ['provider'], seen);
  await library.lead();
  const times: number[] = [];
  seen.until = async () => times.push(performance.now());
  const beganMs = performance.now();
  await library.client.scheduleMany(mails, many(20));
  await library.client.scheduleMany(reminders, many(20));
  await expect.poll(() => times.length).toBe(40);
  // 40 starts: 1 of the burst, 7 of 350 ms, and 32 others of 50 ms each.
  expect(Math.max(...times) - beganMs).toBeGreaterThan(32 * 50);
});

test('a limit that is set anew holds at once, and one that a queue names stays', async () => {
  await library.client.limits.set('places', { concurrency: 1 });
  const [seen, doors] = [nothing(), [] as (() => void)[]];
  seen.until = () => new Promise<void>((resolve) => doors.push(resolve));
  const mails = await work('mails', ['places'], seen);
  await library.lead();
  await library.client.scheduleMany(mails, many(6));
  await expect.poll(() => seen.running).toBe(1);
  await expect(library.client.limits.remove('places')).rejects.toThrow(
    /limit places is named by mails; nothing was changed/,
  );
  expect(await library.client.limits.set('places', { concurrency: 4 })).toMatchObject({ status: 'changed' });
  expect(await library.client.limits.set('places', { concurrency: 4 })).toMatchObject({ status: 'same' });
  await expect.poll(() => seen.running).toBe(4);
  expect(seen.most).toBe(4);
  expect(await library.redis.hget(limitKeys('duestream', 'places').ledger, 'rule')).toBe('2 c 0.000 4');
  seen.until = async () => undefined;
  for (const open of doors.splice(0)) open();
  await expect.poll(() => seen.starts.length).toBe(6);
});

test('a queue that names a limit which is not defined is refused, with what to do', async () => {
  const queue = defineQueue('mails', { limits: ['provider'] });
  await expect(library.client.schedule(queue, {})).rejects.toThrow(
    'queue mails names limit provider, which is not defined; no limit is. Define it first: duestream limits set provider --rate 10/s',
  );
});

test('an at-most-once queue may name a rate, and no concurrency, with the reason', async () => {
  await library.client.limits.set('provider', { rate: '10/s' });
  await library.client.limits.set('licences', { concurrency: 3 });
  const clicks = defineQueue('clicks', { delivery: 'at-most-once', limits: ['provider', 'licences'] });
  await expect(library.client.schedule(clicks, {})).rejects.toThrow(
    'queue clicks is at-most-once and names limit licences, which is a concurrency: its jobs are over before their handlers, so nobody can count what runs; allowed for it: limits that are a rate',
  );
  const views = defineQueue('views', { delivery: 'at-most-once', limits: ['provider'] });
  await expect(library.client.schedule(views, {})).resolves.toBeDefined();
});

test('a job that waits for a shared limit says so, and so does the account of its start', async () => {
  await library.client.limits.set('places', { concurrency: 1 });
  const [seen, doors] = [nothing(), [] as (() => void)[]];
  seen.until = () => new Promise<void>((resolve) => doors.push(resolve));
  const mails = await work('mails', ['places'], seen);
  const reminders = await work('reminders', ['places'], seen);
  await library.lead();
  await library.client.schedule(mails, {}, { id: 'a' });
  await expect.poll(() => seen.running).toBe(1);
  await library.client.schedule(reminders, {}, { id: 'b' });
  const obstacles = async () => (await library.client.get(reminders, 'b'))?.waitsFor?.obstacles;
  await expect.poll(obstacles).toEqual([{ kind: 'shared', limits: ['places'] }]);
  const waits = await library.client.get(reminders, 'b');
  expect(waits && (await startEstimateOf({ redis: library.redis, namespace: 'duestream' }, waits))).toMatchObject({
    untold: 'shared',
    text: expect.stringContaining('it shares a limit with other queues'),
  });
  await expect.poll(async () => (await library.redis.keys('*:looks')).length).toBeGreaterThan(0);
  for (const open of doors.splice(0)) open();
  await expect.poll(() => seen.starts.length).toBe(2);
  const account = async () => (await library.client.get(reminders, 'b'))?.account?.parts.map(({ cause }) => cause);
  await expect.poll(account).toContain('shared');
  for (const open of doors.splice(0)) open();
});

test('the file of a daemon defines limits before its queues name them, and the daemon that started last counts', async () => {
  const queues = { mails: { limits: ['places'] } };
  await library.lead({ sharedLimits: { places: { concurrency: 2 } }, queues });
  expect(await library.client.limits.list()).toMatchObject([
    { name: 'places', concurrency: 2, by: expect.stringContaining('the file of a daemon on '), queues: ['mails'] },
  ]);
  await library.lead({ sharedLimits: { places: { concurrency: 5 } }, queues });
  expect(await library.client.limits.list()).toMatchObject([{ name: 'places', concurrency: 5, queues: ['mails'] }]);
  expect(await library.redis.hget(limitKeys('duestream', 'places').ledger, 'rule')).toBe('2 c 0.000 5');
});

test('the file of a daemon whose queue names a limit that is not there is refused', async () => {
  const started = library.lead({ queues: { mails: { limits: ['nobody'] } } });
  await expect(started).rejects.toThrow('queue mails names limit nobody, which is not defined; no limit is.');
});
