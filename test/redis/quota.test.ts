/** Limits of a queue in one partition: `allot` sets them, `schedule` keeps them, `weigh` counts anew what they are compared with. */
import { beforeEach, describe, expect, test } from 'vitest';
import { stats } from '../../src/redis/read/inspect.ts';
import { createJobs } from '../../src/redis/scripts/jobs.ts';
import { allot, UNWEIGHED, weigh, weighAll } from '../../src/redis/scripts/quotas.ts';
import { item, only, T0, usePartition } from '../support/partition.ts';

const p = usePartition();
const limits = (pending: number, bytes = 0) => allot(p.redis, p.ref, { quota: { pending, bytes } });
const DUE = T0 + 5000;
const sizeOf = (id: string, data?: unknown) => item(id, { dueMs: DUE, data }).record.length;
const kinds = async (...ids: readonly string[]) =>
  (await p.scheduleAll(ids.map((id) => item(id, { dueMs: DUE })))).map(({ kind }) => kind);
const held = async () => (await p.meta('held'))?.split(' ').map(Number);
const commandsOf = async () => {
  const stats = await p.redis.info('commandstats');
  const calls = [...stats.matchAll(/cmdstat_([\w|-]+):calls=(\d+)/g)].map(([, name, count]) => [name, Number(count)]);
  return Object.fromEntries(calls) as Readonly<Record<string, number>>;
};

describe('without limits', () => {
  test('complete asks for none of it: one field more for each call, however many jobs end', async () => {
    await p.scheduleAll(Array.from({ length: 10 }, (_, nth) => item(`${nth}`)));
    const claims = (await p.run()).map((claim) => ({ ...claim, mark: '0 0123456789abcdef|' }));
    await p.redis.config('RESETSTAT');
    await createJobs(p.redis).complete(p.ref, claims, { windowMs: 60_000, nowMs: T0 });
    const { hget, hstrlen } = await commandsOf();
    expect({ hget, hstrlen }).toEqual({});
  });

  test('schedule asks for none of it: one field more of a read that it makes anyway', async () => {
    await kinds('before');
    await p.redis.config('RESETSTAT');
    await kinds('a');
    const { zcard, xlen, hmget } = await commandsOf();
    expect({ zcard, xlen, hmget }).toEqual({ hmget: 1 });
  });

  test('nobody counts', async () => {
    await kinds('a');
    expect(await weigh(p.redis, p.ref, UNWEIGHED, { limit: 10, mode: 'note' })).toEqual({ kind: 'unlimited' });
    expect(await p.meta('held')).toBeNull();
    expect((await stats(p.redis, p.ref)).quota).toBeUndefined();
  });
});

describe('allot', () => {
  test('writes what differs, and takes back what is no limit any more', async () => {
    expect([await limits(5, 4096), await limits(5, 4096)]).toEqual(['ok', 'same']);
    expect(await p.meta('quota')).toBe('5 4096');
    await kinds('a');
    expect(await limits(5)).toBe('ok');
    expect([await p.meta('quota'), await p.meta('held')]).toEqual(['5 0', null]);
    expect([await limits(0), await limits(0)]).toEqual(['ok', 'same']);
    expect(await p.meta('quota')).toBeNull();
  });

  test('of a leader writes only while it leads: a deposed one brings no removed queue back', async () => {
    const term = await p.lead();
    const quota = { pending: 1, bytes: 0 };
    expect(await allot(p.redis, p.ref, { quota, term: 'm0:1:1000' })).toBe('fenced');
    expect(await p.meta('quota')).toBeNull();
    expect(await allot(p.redis, p.ref, { quota, term })).toBe('ok');
  });
});

describe('maxPending', () => {
  beforeEach(() => limits(2));

  test('refuses the new job for which there is no room, and takes it when one has ended', async () => {
    expect(await p.scheduleAll([item('a'), item('b'), item('c')])).toEqual([
      { kind: 'ok' },
      { kind: 'ok' },
      { kind: 'full', what: 'pending', limit: 2, there: 2 },
    ]);
    expect(await p.picture()).toMatchObject({ scheduled: { 'j:a': T0, 'j:b': T0 } });
    expect(await p.count('scheduled')).toBe(2);
    const [first] = await p.run();
    expect(await kinds('c')).toEqual(['full']);
    if (first) await p.complete([first]);
    expect(await kinds('c', 'd')).toEqual(['ok', 'full']);
  });

  test('counts what is ready, what runs, what waits for a retry, and what others have put', async () => {
    const claim = await p.running('a');
    await p.put('bare', DUE);
    expect(await kinds('b')).toEqual(['full']);
    await p.retry(claim);
    expect(await kinds('b')).toEqual(['full']);
    await p.cancel('bare');
    expect(await kinds('b')).toEqual(['ok']);
  });

  test('the same call again, an id that lives and one that is replaced need no room', async () => {
    await kinds('a', 'b');
    expect(await kinds('a')).toEqual(['already']);
    expect(await p.schedule('a', { dueMs: DUE + 1 })).toEqual({ kind: 'exists', dueMs: DUE });
    expect(await p.schedule('a', { dueMs: DUE + 1, mode: 'replace' })).toEqual({ kind: 'replaced' });
    expect(await p.edit('j:b', { data: 'more' })).toMatchObject({ kind: 'ok' });
    expect(await p.reschedule('j:b', DUE + 7)).toMatchObject({ kind: 'ok' });
  });

  test('an id that is over gets no new life, and stays what it was', async () => {
    await p.complete([await p.running('a')]);
    await kinds('b', 'c');
    expect(await kinds('a')).toEqual(['full']);
    expect(await p.picture()).toMatchObject({ jobs: { 'j:a': 'tombstone done' } });
  });

  test('what a script was cut off after its first write is let through when it is called again', async () => {
    await kinds('a');
    await p.put('j:b', DUE);
    expect(await kinds('b')).toEqual(['ok']);
  });

  test('a retry, a replay and a compensation job are never refused', async () => {
    const deadLetter = await p.dead('a');
    await kinds('b', 'c');
    expect(await p.replay(deadLetter)).toMatchObject({ kind: 'ok' });
    const claim = only((await p.run()).filter(({ member }) => member === 'j:a'));
    const compensation = { member: 'j:undo', record: item('undo').record };
    expect(await p.bury(claim, { compensation })).toBe('ok');
    expect(await p.picture()).toMatchObject({ scheduled: { 'j:undo': T0 } });
  });
});

describe('maxPending counts jobs, and no entry that stands for none', () => {
  const ids = (name: string, count: number) => Array.from({ length: count }, (_, n) => `${name}${n}`);
  const readyJobs = async (name: string, count: number) => {
    await p.scheduleAll(ids(name, count).map((id) => item(id)));
    await p.promote();
  };
  const pending = async () => (await stats(p.redis, p.ref)).quota?.pending;
  beforeEach(() => limits(3));

  test('what was cancelled in ready makes room at once', async () => {
    await readyJobs('a', 3);
    expect(await kinds('b')).toEqual(['full']);
    for (const id of ids('a', 3)) await p.cancel(`j:${id}`);
    expect([await pending(), await kinds('b', 'c', 'd', 'e')]).toEqual([0, ['ok', 'ok', 'ok', 'full']]);
  });

  test('a ready job that is put off, again and again, or replaced, is one job', async () => {
    await readyJobs('a', 2);
    for (let times = 1; times < 4; times += 1) {
      await p.reschedule('j:a0', T0 + times);
      expect(await pending()).toBe(2);
      await p.promote({ nowMs: T0 + times });
      expect(await pending()).toBe(2);
    }
    await p.schedule('a1', { dueMs: DUE, data: 'new', mode: 'replace' });
    expect([await pending(), await kinds('b', 'c')]).toEqual([2, ['ok', 'full']]);
  });

  test('what a worker holds as a proof has ended, and what is dropped is counted once', async () => {
    const claims = [await p.running('a'), await p.running('b')];
    await p.complete(claims, { hold: true });
    expect(await pending()).toBe(0);
    await p.complete(claims, {});
    await readyJobs('c', 3);
    await p.cancel('j:c0');
    await p.reschedule('j:c1', DUE);
    await p.start(await p.read());
    expect(await pending()).toBe(2);
  });
});

describe('maxBytes', () => {
  test('takes as many bytes as there may be, and not one more', async () => {
    const size = sizeOf('a');
    await limits(0, 2 * size);
    expect(await kinds('a', 'b')).toEqual(['ok', 'ok']);
    expect(await p.schedule('c', { dueMs: DUE })).toEqual({
      kind: 'full',
      what: 'bytes',
      limit: 2 * size,
      there: 2 * size,
    });
    expect(await held()).toEqual([2 * size, 2]);
    await limits(0, 3 * size - 1);
    expect(await kinds('c')).toEqual(['full']);
  });

  test('a job that is replaced is judged by the difference', async () => {
    await limits(0, sizeOf('a', 'x'.repeat(50)));
    await p.schedule('a', { dueMs: DUE, data: 'x'.repeat(49) });
    const again = (data: string) => p.schedule('a', { dueMs: DUE, data, mode: 'replace' });
    expect(await again('y'.repeat(50))).toEqual({ kind: 'replaced' });
    expect(await again('y'.repeat(51))).toMatchObject({ kind: 'full', what: 'bytes' });
    expect(await again('z')).toEqual({ kind: 'replaced' });
    expect(await held()).toEqual([sizeOf('a', 'z'), 1]);
  });

  test('who ends a job takes its bytes away; an empty partition has room whatever was noted', async () => {
    await limits(0, 10_000);
    await p.schedule('large', { data: 'x'.repeat(3000) });
    await p.schedule('small', { dueMs: DUE, data: 'x'.repeat(1000) });
    await p.complete(await p.run());
    expect((await stats(p.redis, p.ref)).quota?.bytes).toBe(sizeOf('small', 'x'.repeat(1000)));
    await p.cancel('j:small');
    expect(await held()).toEqual([0, 0]);
    await p.redis.hset(p.keys.meta, 'held', '999999 1');
    expect(await kinds('a')).toEqual(['ok']);
    expect(await held()).toEqual([sizeOf('a'), 1]);
  });

  test('a job that ended without being counted is taken for a job of the mean size', async () => {
    await limits(0, 3000);
    await p.scheduleAll([item('a', { data: 'x'.repeat(1000) }), item('b', { dueMs: DUE, data: 'x'.repeat(1000) })]);
    const noted = (await p.meta('held')) ?? '';
    await p.complete(await p.run());
    await p.redis.hset(p.keys.meta, 'held', noted);
    expect((await stats(p.redis, p.ref)).quota?.bytes).toBe(sizeOf('b', 'x'.repeat(1000)));
    await p.schedule('c', { dueMs: DUE, data: 'x'.repeat(100) });
    expect(await held()).toEqual([sizeOf('b', 'x'.repeat(1000)) + sizeOf('c', 'x'.repeat(100)), 2]);
  });

  test('a limit on a queue with jobs that nobody has counted begins with what comes', async () => {
    await kinds('a', 'b');
    await limits(0, 4096);
    await kinds('c');
    expect(await held()).toEqual([sizeOf('c'), 1]);
    expect((await stats(p.redis, p.ref)).quota).toEqual({
      pending: 3,
      pendingMax: 0,
      bytesMax: 4096,
      bytes: sizeOf('c'),
    });
  });
});

describe('weigh', () => {
  test('counts every record once, in slices, wherever its job is', async () => {
    await limits(0, 1_000_000);
    const all = Array.from({ length: 300 }, (_, n) => item(`job-${n}`, { dueMs: DUE, data: 'x'.repeat(n) }));
    await p.scheduleAll(all);
    const due = Array.from({ length: 30 }, (_, n) => item(`due-${n}`, { data: 'y'.repeat(n) }));
    await p.scheduleAll(due);
    await p.run();
    const bytes = [...all, ...due].reduce((sum, { record }) => sum + record.length, 0);
    await p.redis.hset(p.keys.meta, 'held', '1 1');
    expect(await p.withoutWrite(() => weighAll(p.redis, p.ref, 'look'))).toMatchObject({ bytes, count: 330 });
    let slices = 0;
    for (let spot = UNWEIGHED, more = true; more; slices += 1) {
      const reply = await weigh(p.redis, p.ref, spot, { limit: 20, mode: 'note' });
      more = reply.kind === 'more';
      if (reply.kind === 'more') spot = reply;
    }
    expect(slices).toBeGreaterThan(3);
    expect(await held()).toEqual([bytes, 330]);
  });

  test('reads no record: a large one costs as much as a small one', async () => {
    await limits(0, 100_000_000);
    await p.scheduleAll(Array.from({ length: 50 }, (_, n) => item(`${n}`, { dueMs: DUE, data: 'x'.repeat(10_000) })));
    await p.redis.config('RESETSTAT');
    await weighAll(p.redis, p.ref, 'note');
    const { hstrlen, hscan, hgetall } = await commandsOf();
    expect({ hstrlen, hscan, hgetall }).toEqual({ hstrlen: 50 });
  });
});
