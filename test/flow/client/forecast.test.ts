/** How many jobs come due when: what waits in Redis and what schedules are going to make, together. */

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Client, createClient } from '../../../src/client/client.ts';
import type { Schedules } from '../../../src/client/schedules/schedules.ts';
import { controlKeys } from '../../../src/redis/keys.ts';
import { declareQueue, setQueue } from '../../../src/redis/scripts/queues.ts';
import { runHere } from '../../support/console.ts';
import { item, usePartition } from '../../support/partition.ts';

const the = usePartition();
const namespace = 't';
const HOUR = 3_600_000;
const say = (args: readonly string[]) =>
  runHere(['schedules', 'forecast', ...args, '--redis', the.server.url, '--namespace', namespace]);
const ahead = (ms: number) => new Date(Date.now() + ms);
/** Each another date, far away. */
const dateOf = (at: number) => new Date(Date.UTC(2001, 0, 1 + at)).toISOString().slice(0, 10);
let schedules: Schedules;
let client: Client;

beforeEach(async () => {
  await declareQueue(the.redis, { namespace, queue: 'q', partitions: 1 });
  client = createClient({ redis: the.server.url, namespace });
  schedules = client.schedules;
});
afterEach(() => client.close());

describe('a forecast', () => {
  test('counts jobs in the hour they are due, with overdue and ready ones apart', async () => {
    const hour = Math.ceil((Date.now() + 2 * HOUR) / HOUR) * HOUR;
    await the.scheduleAll([item('late'), item('a', { dueMs: hour }), item('b', { dueMs: hour + 1 })]);
    await the.scheduleAll([item('c', { dueMs: hour + 30 * HOUR })], { nowMs: Date.now() });
    const { buckets, overdue, busiest, by } = await schedules.forecast();
    expect({ overdue, by }).toEqual({ overdue: 1, by: 'hour' });
    expect(buckets.filter(({ jobs }) => jobs > 0)).toEqual([{ fromMs: hour, jobs: 2, scheduled: 2, coming: 0 }]);
    expect(busiest?.fromMs).toBe(hour);
    await the.promote({ nowMs: Date.now() });
    expect(await schedules.forecast()).toMatchObject({ overdue: 0, ready: 1 });
  });

  test('counts the instants of schedules, equal ones once each', async () => {
    for (const name of ['a', 'b', 'c']) await schedules.put(name, { queue: 'q', cron: '0 * * * *', data: name });
    await schedules.put('d', { queue: 'other', every: '30m' });
    await schedules.put('rest', { queue: 'q', every: '1s', paused: true });
    await schedules.put('few', { queue: 'q', every: '1h', maxRuns: 2 });
    await the.redis.hset(controlKeys(namespace).schedules, 'odd', 'no JSON', 'bad', '{"schedule":{"cron":"x"}}');
    const found = await schedules.forecast({ until: ahead(24 * HOUR) });
    expect(found.buckets.reduce((sum, { coming }) => sum + coming, 0)).toBe(3 * 24 + 48 + 2);
    expect(found.buckets[5]).toMatchObject({ coming: 5, scheduled: 0 });
    expect(found.schedules).toEqual({ counted: 5, paused: 1, unreadable: 2, uncounted: 0, estimated: 0 });
    expect((await schedules.forecast({ queue: 'other' })).buckets[5]).toMatchObject({ coming: 2 });
  });

  test('counts five hundred schedules of each second, and others have their turn meanwhile', async () => {
    const calendar = { hours: { 'mon-sun': '00:00-23:59' } };
    const of = (at: number) =>
      JSON.stringify({
        since: 0,
        schedule: { queue: 'q', cron: '* * * * * *', calendar: { ...calendar, skip: [dateOf(at)] } },
      });
    const texts = Array.from({ length: 500 }, (_, at) => [`s${at}`, of(at)]).flat();
    await the.redis.hset(controlKeys(namespace).schedules, ...texts);
    const { schedules: told, busiest } = await schedules.forecast({ until: ahead(48 * HOUR), by: 'hour' });
    expect(told).toMatchObject({ counted: 500, uncounted: 0 });
    expect(busiest?.coming).toBe(500 * 3600);
  });

  test('takes minutes for a near bound and hours for a far one, unless it is told', async () => {
    expect((await schedules.forecast({ until: ahead(HOUR) })).by).toBe('minute');
    expect((await schedules.forecast({ until: ahead(HOUR), by: 'hour' })).buckets.length).toBeLessThanOrEqual(2);
    expect((await schedules.forecast({ until: ahead(24 * HOUR), by: 'minute' })).buckets.length).toBeGreaterThanOrEqual(
      1440,
    );
  });

  test('counts by half an hour and splits that by queue, the fullest first, where somebody asks for it', async () => {
    const half = Math.ceil((Date.now() + 2 * HOUR) / (HOUR / 2)) * (HOUR / 2);
    await the.scheduleAll([item('late'), item('a', { dueMs: half }), item('b', { dueMs: half + HOUR / 2 })]);
    for (const name of ['c', 'd']) await schedules.put(name, { queue: 'other', every: '30m' });
    const found = await schedules.forecast({ by: 'half-hour', perQueue: true });
    expect(found.by).toBe('half-hour');
    expect(
      found.buckets
        .slice(2)
        .every(({ fromMs }, at, all) => at === 0 || fromMs - (all[at - 1]?.fromMs ?? 0) === HOUR / 2),
    ).toBe(true);
    expect(found.queues?.map(({ queue, jobs }) => [queue, jobs.reduce((sum, one) => sum + one, 0)])).toEqual([
      ['other', 96],
      ['q', 2],
    ]);
    const at = found.buckets.findIndex(({ fromMs }) => fromMs === half);
    expect(found.queues?.map(({ jobs }) => jobs[at])).toEqual([2, 1]);
    expect((await schedules.forecast()).queues).toBeUndefined();
  });

  test('refuses what it cannot answer', async () => {
    const code = (options: Parameters<Schedules['forecast']>[0]) =>
      schedules.forecast(options).catch((error: { readonly code: string }) => error.code);
    expect(await code({ until: ahead(-1000) })).toBe('bad-input');
    expect(await code({ until: ahead(26 * HOUR), by: 'minute' })).toBe('bad-input');
    expect(await code({ until: ahead(1501 * HOUR) })).toBe('bad-input');
    expect(await code({ queue: 'nobody' })).toBe('not-found');
  });

  test('of very many schedules with one rule walks through it once', async () => {
    const text = (at: number) => JSON.stringify({ since: 1, schedule: { queue: 'q', cron: '* * * * *', data: at } });
    const all = Array.from({ length: 20_000 }, (_, at) => [`s${at}`, text(at)]).flat();
    await the.redis.hset(controlKeys(namespace).schedules, ...all);
    const { busiest, schedules: told } = await schedules.forecast({ until: ahead(24 * HOUR) });
    expect(busiest?.coming).toBe(60 * 20_000);
    expect(told.counted).toBe(20_000);
  });
});

describe('a backlog of a queue with a rate', () => {
  const lineUp = async () => {
    await setQueue(the.redis, { namespace, queue: 'q', rate: { limit: 10, perMs: 1000, burst: 1 } });
    await the.scheduleAll(Array.from({ length: 601 }, (_, at) => item(`late${at}`)));
    await the.promote({ nowMs: Date.now(), limit: 1000 });
  };

  test('is through when the rate has started what waits; later with what becomes due until then', async () => {
    await lineUp();
    const [alone] = (await schedules.forecast({ until: ahead(HOUR) })).backlogs;
    expect(alone).toMatchObject({ queue: 'q', rate: '10/s', perSecond: 10, waiting: 600, left: 0 });
    const soon = Array.from({ length: 300 }, (_, at) => item(`soon${at}`, { dueMs: Date.now() + 20_000 }));
    await the.scheduleAll(soon, { nowMs: Date.now() });
    const { atMs, backlogs } = await schedules.forecast({ until: ahead(HOUR) });
    const [{ waitingThroughMs, throughMs = 0 } = { waitingThroughMs: 0 }] = backlogs;
    expect([waitingThroughMs - atMs, throughMs - atMs]).toEqual([60_000, expect.closeTo(90_000, -3)]);
    expect((await say(['--until', '+1h'])).out).toMatch(
      /^q: 600 jobs wait in line, and the rate 10\/s takes 60 s for them at the least; with what becomes due all are through at \d{4}-.* UTC$/m,
    );
  });

  test('is never through where more becomes due than may start; schedules count, those of other queues do not', async () => {
    await lineUp();
    await schedules.put('other', { queue: 'other', every: '1s' });
    const before = (await schedules.forecast({ until: ahead(HOUR) })).backlogs;
    expect(before).toMatchObject([{ waiting: 600, throughMs: expect.any(Number), left: 0 }]);
    for (let at = 0; at < 11; at += 1) await schedules.put(`s${at}`, { queue: 'q', every: '1s' });
    const { backlogs } = await schedules.forecast({ until: ahead(HOUR) });
    expect(backlogs).toMatchObject([{ queue: 'q', throughMs: undefined }]);
    expect(backlogs[0]?.left).toBeCloseTo(600 + 3600, -2);
    expect((await say(['--until', '+1h'])).out).toMatch(/; with what becomes due 4\d\d\d still wait at .* UTC$/m);
  });

  test('of two rates takes as long as the slower one, once that has let its burst start', async () => {
    const rate = [
      { limit: 10, perMs: 1000, burst: 1 },
      { limit: 1, perMs: 100_000, burst: 101 },
    ] as const;
    await setQueue(the.redis, { namespace, queue: 'q', rate });
    await the.scheduleAll(Array.from({ length: 601 }, (_, at) => item(`late${at}`)));
    await the.promote({ nowMs: Date.now(), limit: 1000 });
    const { atMs, backlogs } = await schedules.forecast({ until: ahead(24 * HOUR) });
    const [{ waitingThroughMs, throughMs = 0 } = { waitingThroughMs: 0 }] = backlogs;
    expect(backlogs).toMatchObject([{ rate: '10/s and 1 per 100s, burst 101', perSecond: 0.01, waiting: 600 }]);
    expect([waitingThroughMs - atMs, throughMs - atMs]).toEqual([500 * 100_000, 500 * 100_000]);
  });

  test('is none where the queue is paused, or nobody waits in line', async () => {
    await setQueue(the.redis, { namespace, queue: 'q', rate: { limit: 10, perMs: 1000, burst: 1 } });
    await the.scheduleAll([item('noon', { dueMs: Date.now() + HOUR })], { nowMs: Date.now() });
    expect((await schedules.forecast()).backlogs).toEqual([]);
    await lineUp();
    await client.queues.pause('q');
    expect(await schedules.forecast()).toMatchObject({ paused: ['q'], backlogs: [] });
  });
});

test('of very many schedules that differ by H only, some stand for all', async () => {
  const content = JSON.stringify({ since: 1, schedule: { queue: 'q', cron: 'H * * * *' } });
  const all = Array.from({ length: 5000 }, (_, at) => [`s${at}`, content]).flat();
  await the.redis.hset(controlKeys(namespace).schedules, ...all);
  const { buckets, schedules: told } = await schedules.forecast({ until: ahead(2 * HOUR), by: 'hour' });
  expect(buckets[1]?.coming).toBe(5000);
  expect(told).toMatchObject({ counted: 5000, estimated: 3000 });
});

describe('duestream schedules forecast', () => {
  test('draws bars that fit 80 columns, with scale, busiest bucket and long rests as one line', async () => {
    const hour = Math.ceil((Date.now() + 9 * HOUR) / HOUR) * HOUR;
    await the.scheduleAll([item('late')]);
    const many = Array.from({ length: 120 }, (_, at) => item(`j${at}`, { dueMs: hour }));
    await the.scheduleAll(many, { nowMs: Date.now() });
    await schedules.put('s', { queue: 'q', every: '1h', start: new Date(hour), end: new Date(hour + HOUR) });
    const { code, out } = await say([]);
    expect(code).toBe(0);
    const at = new Date(hour).toISOString().slice(0, 16).replace('T', ' ');
    expect(out).toMatch(/^comes due +121 jobs: 120 wait now, 1 from schedules\noverdue +1\nready +0\n/);
    expect(out).toContain(`busiest    ${at} UTC, 121 jobs in this hour\n`);
    expect(out).toContain('█ waits now  ░ from schedules; one character is 5 jobs\n');
    expect(out).toMatch(new RegExp(`^${at} +121 {2}█{24}░$`, 'm'));
    expect(out).toMatch(/^ +0 {2}\d+ hours without a job$/m);
    expect(out).toMatch(/\n1 schedule counted at their instants, without jitter\n$/);
    expect(Math.max(...out.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80);
  });

  test('says the same as JSON, and that nothing comes due', async () => {
    expect((await say([])).out).toContain('\nno job becomes due\n');
    const value = JSON.parse((await say(['--until', '+10m', '--json'])).out);
    expect(value).toMatchObject({ by: 'minute', overdue: 0, ready: 0, schedules: { counted: 0 } });
    expect(value.buckets[0]).toEqual({ fromMs: value.atMs, jobs: 0, scheduled: 0, coming: 0 });
  });

  test('of a bound that is past, or a queue that was never used, tells what is allowed', async () => {
    expect(await say(['--until', '-1h'])).toMatchObject({ code: 64, err: expect.stringContaining('in the future') });
    expect((await say(['--queue', 'nobody'])).code).toBe(1);
  });
});
