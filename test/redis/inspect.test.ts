/** Pages of jobs by state, and dead letters: for people and tools. */
import { describe, expect, test } from 'vitest';
import type { JobState } from '../../src/job/state.ts';
import { everyDeadLetter } from '../../src/redis/read/ends.ts';
import { deadLetter, deadLetters } from '../../src/redis/read/inspect.ts';
import { page } from '../support/first-jobs.ts';
import { item, T0, usePartition } from '../support/partition.ts';

const p = usePartition();

async function ids(state: JobState, { limit = 10, offset = 0 } = {}): Promise<readonly string[]> {
  const rows = await p.withoutWrite(() => page(p.redis, p.ref, { state, limit: limit + offset }));
  expect(rows.every((row) => row.state === state)).toBe(true);
  return rows.slice(offset).map(({ id }) => id);
}

describe('a page', () => {
  test('of scheduled jobs is in the order of their due, with bare ones marked', async () => {
    await p.scheduleAll([item('b', { dueMs: T0 + 2 }), item('a', { dueMs: T0 + 3 })]);
    await p.put('order-1', T0 + 1);
    const rows = await page(p.redis, p.ref, { state: 'scheduled', limit: 10 });
    expect(rows).toMatchObject([
      { id: 'order-1', bare: true, dueMs: T0 + 1 },
      { id: 'b', bare: false, dueMs: T0 + 2 },
      { id: 'a', bare: false, dueMs: T0 + 3 },
    ]);
    expect(await ids('scheduled', { limit: 1, offset: 1 })).toEqual(['b']);
  });

  test('of ready jobs leaves out those that run', async () => {
    await p.running('runs');
    await p.scheduleAll([item('a'), item('b')]);
    await p.promote();
    expect(await ids('ready')).toEqual(['a', 'b']);
    expect(await ids('ready', { limit: 1, offset: 1 })).toEqual(['b']);
    expect(await ids('running')).toEqual(['runs']);
  });

  test('of ready jobs leaves out those whose cancelled entry waits', async () => {
    await p.scheduleAll([item('a'), item('b')]);
    await p.promote();
    await p.cancel('j:a');
    expect(await ids('ready')).toEqual(['b']);
  });

  test('of ready jobs looks past many that run', async () => {
    await p.scheduleAll(Array.from({ length: 600 }, (_, at) => item(`job-${String(at).padStart(3, '0')}`)));
    await p.promote({ limit: 600 });
    await p.claim(await p.read('w1', 550));
    expect(await ids('ready', { limit: 2, offset: 1 })).toEqual(['job-551', 'job-552']);
  });

  test('of ready jobs has those that were tried before', async () => {
    await p.retry(await p.running('a'), { delayMs: 0 });
    await p.promote();
    expect(await ids('ready')).toEqual(['a']);
  });

  test('of running jobs leaves out those that wait for their next attempt', async () => {
    await p.retry(await p.running('waits'));
    await p.running('runs');
    expect(await ids('running')).toEqual(['runs']);
    expect(await ids('scheduled')).toEqual(['waits']);
  });

  test('of jobs that are over has one outcome, the newest first', async () => {
    await p.complete([await p.running('a')], { nowMs: T0 + 1 });
    await p.complete([await p.running('b')], { nowMs: T0 + 2 });
    await p.schedule('c');
    await p.cancel('j:c');
    expect(await ids('done')).toEqual(['b', 'a']);
    expect(await ids('cancelled')).toEqual(['c']);
    expect(await ids('expired')).toEqual([]);
    expect(await ids('done', { limit: 1, offset: 1 })).toEqual(['a']);
  });

  test('of dead jobs is the dead letters, the newest first', async () => {
    await p.dead('a');
    await p.dead('b');
    expect(await ids('dead')).toEqual(['b', 'a']);
    expect(await ids('dead', { limit: 1 })).toEqual(['b']);
    expect(await ids('dead', { limit: 1, offset: 1 })).toEqual(['a']);
  });

  test('of jobs that expired has those', async () => {
    await p.redis.hset(p.keys.jobs, 'j:late', '.e1mi8or6w8 0123456789abcdef 0 0 -');
    await p.redis.zadd(p.keys.done, T0 + 5, 'j:late');
    expect(await page(p.redis, p.ref, { state: 'expired', limit: 5 })).toMatchObject([{ id: 'late', overMs: T0 + 5 }]);
  });

  test('of running jobs is bounded, and takes no notice of the many that were ever started', async () => {
    await p.scheduleAll(Array.from({ length: 250 }, (_, at) => item(`job-${String(at).padStart(3, '0')}`)));
    await p.promote({ limit: 250 });
    await p.claim(await p.read('w1', 230));
    const asked: string[] = [];
    const redis = new Proxy(p.redis, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name);
        if (typeof value !== 'function') return value;
        asked.push(String(name));
        return value.bind(target);
      },
    });
    const rows = await page(redis, p.ref, { state: 'running', limit: 101 });
    expect(rows.slice(99).map(({ id }) => id)).toEqual(['job-099', 'job-100']);
    expect(asked).not.toContain('hgetall');
    // The records and the runs of each slice.
    expect(asked.filter((name) => name === 'hmget').length).toBeLessThan(20);
    expect(await ids('running', { limit: 300 })).toHaveLength(230);
  });

  test('of jobs goes on over the steps in which it is read', async () => {
    const all = Array.from({ length: 230 }, (_, at) => `job-${String(at).padStart(3, '0')}`);
    await p.scheduleAll(all.map((id, at) => item(id, { dueMs: T0 + 1000 + at })));
    expect(await ids('scheduled', { limit: 150, offset: 60 })).toEqual(all.slice(60, 210));
    expect(await ids('scheduled', { limit: 500, offset: 200 })).toEqual(all.slice(200));
  });

  test('of any state is empty in an empty partition', async () => {
    const states = ['scheduled', 'ready', 'running', 'done', 'cancelled', 'expired', 'dead'] as const;
    for (const state of states) expect(await ids(state)).toEqual([]);
  });
});

describe('deadLetters', () => {
  test('are paged backwards by the last one seen', async () => {
    const first = await p.dead('a');
    const second = await p.dead('b');
    expect((await deadLetters(p.redis, p.ref, { limit: 1 })).map(({ entry }) => entry)).toEqual([second]);
    expect((await deadLetters(p.redis, p.ref, { limit: 5, before: second })).map(({ entry }) => entry)).toEqual([
      first,
    ]);
  });

  test('are read in steps that fit their size, each once and the newest first', async () => {
    const data = 'x'.repeat(200_000);
    const ids = Array.from({ length: 15 }, (_, at) => `job-${at}`);
    for (const id of ids) await p.bury(await p.running(id, { data }));
    const found: string[] = [];
    for await (const { id } of everyDeadLetter(p.redis, p.ref, 14)) found.push(id);
    expect(found).toEqual(ids.toReversed().slice(0, 14));
    expect((await page(p.redis, p.ref, { state: 'dead', limit: 14 })).slice(12).map(({ id }) => id)).toEqual([
      ...['job-2', 'job-1'],
    ]);
  });

  test('are found one by one, or not', async () => {
    const entry = await p.dead('a');
    expect(await deadLetter(p.redis, p.ref, entry)).toMatchObject({ entry, id: 'a', reason: 'attempts' });
    expect(await deadLetter(p.redis, p.ref, '1-1')).toBeUndefined();
  });
});
