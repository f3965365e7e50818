/** Definitions that are put, moved and removed while others do the same, on a real Redis. */

import { describe, expect, test } from 'vitest';
import { createClient } from '../../../src/client/client.ts';
import { backfill, type ListOptions, type Schedules, trigger } from '../../../src/client/schedules/schedules.ts';
import { controlKeys, type PartitionRef, partitionRef } from '../../../src/redis/keys.ts';
import { firedOf } from '../../../src/redis/scripts/schedules.ts';
import { parseSchedule } from '../../../src/schedule/input.ts';
import { usePartition } from '../../support/partition.ts';

const p = usePartition();
const NAMESPACE = 't';
const refOf = (queue: string): PartitionRef => partitionRef(NAMESPACE, { queue, partition: 0, layoutGeneration: 0 });
const isLookedAt = async (queue: string, name: string) =>
  (await p.redis.zscore(refOf(queue).keys.fires, name)) !== null;

async function withSchedules(work: (schedules: Schedules) => Promise<void>): Promise<void> {
  const client = createClient({ redis: p.server.url, namespace: NAMESPACE });
  const schedules = client.schedules;
  try {
    await work(schedules);
  } finally {
    await client.close();
  }
}

describe('a schedule', () => {
  test('that goes to another queue goes on where it was, and is looked at there only', () =>
    withSchedules(async (schedules) => {
      await schedules.put('nightly', { queue: 'one', every: '1h' });
      const reachedMs = Date.now() + 5000;
      await p.redis.hset(refOf('one').keys.fired, 'nightly', `${reachedMs} 7 0 - - 1`);
      await schedules.put('nightly', { queue: 'two', every: '1h' });
      expect((await schedules.get('nightly'))?.schedule.sinceMs).toBe(reachedMs);
      expect(await isLookedAt('one', 'nightly')).toBe(false);
      expect(await isLookedAt('two', 'nightly')).toBe(true);
    }));

  test('that is put while it is removed is looked at, whoever comes last', () =>
    withSchedules(async (schedules) => {
      for (let round = 0; round < 30; round += 1) {
        await schedules.put('nightly', { queue: 'one', every: '1h' });
        await Promise.all([schedules.remove('nightly'), schedules.put('nightly', { queue: 'one', every: '2h' })]);
        if ((await p.redis.hexists(controlKeys(NAMESPACE).schedules, 'nightly')) === 1)
          expect(await isLookedAt('one', 'nightly')).toBe(true);
      }
    }));

  test('that is paused while it is changed ends changed and paused', () =>
    withSchedules(async (schedules) => {
      for (let round = 0; round < 20; round += 1) {
        await schedules.put('nightly', { queue: 'one', every: '1h' });
        const changed = { queue: 'one', every: '2h', paused: 'lunch' };
        await Promise.all([schedules.pause('nightly', 'lunch'), schedules.put('nightly', changed)]);
        expect((await schedules.get('nightly'))?.input).toMatchObject(changed);
      }
    }));

  test('that had all its runs and gets more counts from then', () =>
    withSchedules(async (schedules) => {
      await schedules.put('thrice', { queue: 'one', every: '1h', maxRuns: 3 });
      const before = (await schedules.get('thrice'))?.schedule.sinceMs ?? 0;
      await p.redis.hset(refOf('one').keys.fired, 'thrice', `${before} 3 0 - - 1`);
      await expect.poll(() => Date.now()).toBeGreaterThan(before);
      expect((await schedules.put('thrice', { queue: 'one', every: '1h', maxRuns: 3 })).status).toBe('unchanged');
      await schedules.put('thrice', { queue: 'one', every: '1h', maxRuns: 5 });
      expect((await schedules.get('thrice'))?.schedule.sinceMs).toBeGreaterThan(before);
    }));

  test('of a queue that is not declared is looked at without declaring it, and makes no job that nobody would run', () =>
    withSchedules(async (schedules) => {
      const { schedules: definitions, queues } = controlKeys(NAMESPACE);
      await p.redis.hset(definitions, 'lost', '{"since":0,"schedule":{"queue":"gone","every":"1h"}}');
      expect(await schedules.get('lost')).toMatchObject({ name: 'lost', runs: 0 });
      expect(await schedules.preview('lost', { next: 1 })).toHaveLength(1);
      await expect(schedules.trigger('lost')).rejects.toMatchObject({ code: 'not-found' });
      const range = { from: '2026-01-01T00:00Z', to: '2026-01-02T00:00Z' };
      await expect(schedules.backfill('lost', range)).rejects.toThrow(/its queue gone is not declared/);
      expect(await p.redis.hexists(queues, 'gone')).toBe(0);
    }));

  test('that is removed is forgotten', () =>
    withSchedules(async (schedules) => {
      await schedules.put('nightly', { queue: 'one', every: '1h' });
      expect(await schedules.remove('nightly')).toBe(true);
      expect(await isLookedAt('one', 'nightly')).toBe(false);
      expect(await firedOf(p.redis, refOf('one'), ['nightly'])).toEqual([undefined]);
    }));

  test('with any name makes a job of its own partition when it is triggered', () =>
    withSchedules(async (schedules) => {
      await schedules.put('now:here', { queue: 'one', every: '1h' });
      expect(await schedules.trigger('now:here', { id: 'a' })).toMatchObject({
        id: '{schedule:now:here}now:a',
        status: 'scheduled',
      });
    }));

  test.each([1, 16, 64])(
    'of a name of %i characters takes an id up to 128 in all, and says how long it may be',
    (length) =>
      withSchedules(async (schedules) => {
        const name = 's'.repeat(length);
        const most = 128 - `{schedule:${name}}now:`.length;
        await schedules.put(name, { queue: 'one', every: '1h' });
        const { id, status } = await schedules.trigger(name, { id: 'i'.repeat(most) });
        expect([id.length, status]).toEqual([128, 'scheduled']);
        for (const beyond of [most + 1, 128]) {
          await expect(schedules.trigger(name, { id: 'i'.repeat(beyond) })).rejects.toMatchObject({
            code: 'bad-input',
            message: expect.stringContaining(`allowed: at most ${most} for schedule ${name},`),
          });
        }
        expect(await p.redis.zrange(refOf('one').keys.scheduled, '0', '-1')).toEqual([`j:${id}`]);
      }),
  );

  test.each([
    { kind: 'bad-member' },
    { kind: 'bad-record' },
    { kind: 'too-large' },
    { kind: 'bad-due', nowMs: 0 },
  ] as const)('never says that a job exists where Redis replied $kind', async (reply) => {
    const schedule = parseSchedule('nightly', { queue: 'one', every: '1h' }, { sinceMs: 0 });
    const jobs = { schedule: async () => [reply] };
    const asked = { schedule, nowMs: 0, id: '{schedule:nightly}now:a' };
    await expect(trigger(jobs, refOf('one'), asked)).rejects.toMatchObject({ code: 'bad-input' });
    await expect(backfill(jobs, refOf('one'), { schedule, instants: [0] })).rejects.toMatchObject({
      code: 'bad-input',
    });
  });
});

test('a list is by name, of one queue or tag, names what nobody can read, and computes no more than its limit', () =>
  withSchedules(async (schedules) => {
    for (const name of ['c', 'a', 'b']) await schedules.put(name, { queue: 'one', every: '1h', tags: [`is-${name}`] });
    await schedules.put('d', { queue: 'two', every: '1h' });
    const { schedules: definitions } = controlKeys(NAMESPACE);
    await p.redis.hset(definitions, 'odd', '{"schedule":{"queue":"one","every":"never"}}', 'none', '7');
    const page = (options: ListOptions) => schedules.list(options);
    const names = async (options: ListOptions) => (await page(options)).schedules.map(({ name }) => name);
    expect(await names({})).toEqual(['a', 'b', 'c', 'd']);
    expect(await names({ queue: 'two' })).toEqual(['d']);
    expect(await names({ tag: 'is-b' })).toEqual(['b']);
    expect(await names({ queue: 'one' })).toEqual(['a', 'b', 'c']);
    const unreadable = [
      { name: 'none', why: expect.stringContaining('none') },
      { name: 'odd', why: expect.stringContaining('every') },
    ];
    expect(await page({ queue: 'one' })).toMatchObject({ unreadable, more: 0 });
    expect(await names({ queue: 'one', limit: 2 })).toEqual(['a', 'b']);
    expect(await page({ queue: 'one', limit: 2 })).toMatchObject({ unreadable: [], more: 3 });
    expect(await page({ tag: 'is-a', limit: 2 })).toMatchObject({ schedules: [{ name: 'a' }], more: 0 });
  }));

test('a schedule that was fired by a clock that went back since promises nothing until then', () =>
  withSchedules(async (schedules) => {
    await schedules.put('minutely', { queue: 'one', every: '1m' });
    const reachedMs = Date.now() + 86_400_000;
    await p.redis.hset(refOf('one').keys.fired, 'minutely', `${reachedMs} 1 0 - - 1`);
    expect((await schedules.get('minutely'))?.nextMs).toBeGreaterThan(reachedMs);
    expect((await schedules.list()).schedules[0]?.nextMs).toBeGreaterThan(reachedMs);
    const [first] = await schedules.preview('minutely', { next: 1 });
    expect(first?.atMs).toBeGreaterThan(reachedMs);
  }));

describe('a preview', () => {
  test('shows what is fired: the runs that are left, and nothing of one that is paused', () =>
    withSchedules(async (schedules) => {
      await schedules.put('thrice', { queue: 'one', every: '1h', maxRuns: 3 });
      const nowMs = Date.now();
      await p.redis.hset(refOf('one').keys.fired, 'thrice', `${nowMs + 60_000} 1 0 - - 1`);
      expect(await schedules.preview('thrice')).toHaveLength(2);
      await schedules.pause('thrice', 'lunch');
      expect((await schedules.preview('thrice')).map(({ id, dropped }) => [id, dropped])).toEqual([
        [undefined, 'paused'],
        [undefined, 'paused'],
      ]);
    }));

  test('of a definition has the ids, H and jitter of the name that is given with it', () =>
    withSchedules(async (schedules) => {
      const input = { queue: 'one', cron: 'H H * * *', jitter: '1h', maxRuns: 2 } as const;
      await schedules.put('nightly', input);
      const named = await schedules.preview(input, { name: 'nightly' });
      expect(named).toEqual(await schedules.preview('nightly'));
      expect(named).toHaveLength(2);
      expect((await schedules.preview(input))[0]?.id).toMatch(/^\{schedule:preview\}/);
    }));
});
