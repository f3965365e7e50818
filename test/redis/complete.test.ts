/** `complete`: running jobs are over, once each, and only for the newest start. */
import { describe, expect, test } from 'vitest';
import { decodeTombstone } from '../../src/job/codec.ts';
import { sweep } from '../../src/redis/scripts/lease.ts';
import { item, only, T0, usePartition, WINDOW_MS } from '../support/partition.ts';

const p = usePartition();

describe('a running job', () => {
  test('is over: its entry and its run go, and a tombstone stays for the done window', async () => {
    const claim = await p.running('a');
    expect(await p.complete([claim], { nowMs: T0 + 3 })).toEqual(['ok']);
    expect(await p.picture()).toEqual({ jobs: { 'j:a': 'tombstone done' }, done: { 'j:a': T0 + 3 } });
    const tombstone = decodeTombstone((await p.redis.hget(p.keys.jobs, 'j:a')) ?? '');
    expect(tombstone).toMatchObject({
      outcome: 'done',
      askedDueMs: T0,
      token: claim.token,
      attempts: 1,
      deadLetter: undefined,
    });
    expect(await p.count('done')).toBe(1);
  });

  test('leaves nothing at all when there is no done window', async () => {
    const claim = await p.running('a');
    expect(await p.complete([claim], { windowMs: 0 })).toEqual(['ok']);
    expect(await p.picture()).toEqual({});
  });

  test('is over once: a second identical call changes nothing', async () => {
    const claim = await p.running('a');
    await p.complete([claim]);
    expect(await p.withoutWrite(() => p.complete([claim]))).toEqual(['already']);
  });

  test('is over once, also when it is named twice in one call', async () => {
    const claim = await p.running('a');
    expect(await p.complete([claim, claim])).toEqual(['ok', 'already']);
    expect(await p.count('done')).toBe(1);
  });

  test('without a done window is gone for a second call', async () => {
    const claim = await p.running('a');
    await p.complete([claim], { windowMs: 0 });
    expect(await p.withoutWrite(() => p.complete([claim]))).toEqual(['gone']);
  });

  test('is one of many in a call, and each is answered in its place', async () => {
    await p.scheduleAll([item('a'), item('b'), item('c')]);
    const [a, b, c] = await p.run();
    if (!a || !b || !c) throw new Error('expected three');
    await p.retry(b);
    await p.cancel('j:c');
    const ghost = { ...a, member: 'j:nobody' };
    expect(await p.complete([a, b, ghost, c])).toEqual(['ok', 'fenced', 'gone', 'cancelled']);
    expect(await p.picture()).toEqual({
      scheduled: { 'j:b': T0 + 1000 },
      jobs: { 'j:a': 'tombstone done', 'j:b': 'record', 'j:c': 'tombstone cancelled' },
      runs: { 'j:b': 'waiting' },
      done: { 'j:a': T0, 'j:c': T0 },
    });
  });

  test('that was asked to stop ends cancelled', async () => {
    const claim = await p.running('a');
    await p.cancel('j:a');
    expect(await p.complete([claim])).toEqual(['cancelled']);
    expect(await p.picture()).toEqual({ jobs: { 'j:a': 'tombstone cancelled' }, done: { 'j:a': T0 } });
    expect([await p.count('done'), await p.count('cancelled')]).toEqual([0, 1]);
  });

  test('a thousand of them end in one call', async () => {
    await p.scheduleAll(Array.from({ length: 1000 }, (_, at) => item(`job-${at}`)));
    await p.promote({ limit: 1000 });
    const claims = await p.claim(await p.read());
    expect(new Set(await p.complete(claims))).toEqual(new Set(['ok']));
    expect(await p.redis.xlen(p.keys.ready)).toBe(0);
  });
});

describe('a start that is not the newest', () => {
  test('is fenced by the token of the next', async () => {
    const old = await p.running('a');
    const { deliveries } = await p.reclaim('w1');
    const next = only(await p.claim(deliveries, 'w2'));
    expect(await p.withoutWrite(() => p.complete([old]))).toEqual(['fenced']);
    expect(await p.complete([next])).toEqual(['ok']);
    expect(await p.withoutWrite(() => p.complete([old]))).toEqual(['gone']);
  });

  test('still wins when its job was reclaimed and not started again', async () => {
    const late = await p.running('a');
    const { deliveries } = await p.reclaim('w1');
    expect(await p.complete([late])).toEqual(['ok']);
    expect(await p.picture()).toEqual({ jobs: { 'j:a': 'tombstone done' }, done: { 'j:a': T0 } });
    expect(await p.start(deliveries, { consumer: 'w2' })).toEqual([{ kind: 'lost' }]);
  });

  test('is fenced by another entry with the same token', async () => {
    const claim = await p.running('a');
    const other = await p.running('b');
    expect(await p.withoutWrite(() => p.complete([{ ...claim, entry: other.entry }]))).toEqual(['fenced']);
  });

  test('is fenced by a new life of its id', async () => {
    const old = await p.running('a');
    await p.complete([old], { windowMs: 0 });
    await p.schedule('a', { data: 'new life' });
    await p.run();
    expect(await p.withoutWrite(() => p.complete([old]))).toEqual(['fenced']);
  });

  test('is already settled when its job waits for the next attempt', async () => {
    const claim = await p.running('a');
    await p.retry(claim);
    expect(await p.withoutWrite(() => p.complete([claim]))).toEqual(['fenced']);
  });

  test('of a job that was cancelled in the hands of nobody is already settled', async () => {
    const late = await p.running('a');
    await p.reclaim('w1');
    await p.cancel('j:a');
    expect(await p.withoutWrite(() => p.complete([late]))).toEqual(['cancelled']);
  });
});

describe('an acknowledgement that holds its entry', () => {
  const HOLD = { hold: true };
  const HELD = { jobs: { 'j:a': 'tombstone done' }, ready: ['j:a'], pending: { w1: ['j:a'] } };

  test.each([WINDOW_MS, 0])('is proven by it for as long as it is held, with a done window of %d', async (windowMs) => {
    const claim = await p.running('a');
    expect(await p.complete([claim], { ...HOLD, windowMs })).toEqual(['ok']);
    expect(await p.picture()).toEqual(HELD);
    const limits = { batch: 100, windowMs: 0, tombstonesMax: 0, floorMs: 0, retentionMs: 0, deadLettersMax: 0 };
    await sweep(p.redis, p.ref, { term: await p.lead(), limits, nowMs: T0 + 100 * WINDOW_MS });
    expect(await p.withoutWrite(() => p.complete([claim], { ...HOLD, windowMs }))).toEqual(['already']);
    expect([await p.picture(), await p.count('done')]).toEqual([HELD, 1]);
  });

  test('lets it go by the same call without hold, and enters the done window then; twice is fine', async () => {
    const claim = await p.running('a');
    await p.complete([claim], HOLD);
    expect(await p.complete([claim], { nowMs: T0 + 5 })).toEqual(['already']);
    expect(await p.picture()).toEqual({ jobs: { 'j:a': 'tombstone done' }, done: { 'j:a': T0 + 5 } });
    expect(await p.withoutWrite(() => p.complete([claim], { nowMs: T0 + 9 }))).toEqual(['already']);
    expect(await p.withoutWrite(() => p.complete([claim], HOLD))).toEqual(['already']);
  });

  test('leaves nothing without a done window once it has let go', async () => {
    const claim = await p.running('a');
    await p.complete([claim], { ...HOLD, windowMs: 0 });
    expect(await p.complete([claim], { windowMs: 0 })).toEqual(['already']);
    expect(await p.picture()).toEqual({});
    expect(await p.withoutWrite(() => p.complete([claim], { ...HOLD, windowMs: 0 }))).toEqual(['gone']);
  });

  test.each([WINDOW_MS, 0])(
    'of a worker that died is dropped by the next, and never runs: window %d',
    async (windowMs) => {
      const claim = await p.running('a');
      await p.complete([claim], { ...HOLD, windowMs });
      const { deliveries } = await p.reclaim('w1');
      expect(await p.start(deliveries, { consumer: 'w2', windowMs })).toEqual([{ kind: 'dropped' }]);
      expect(await p.picture()).toEqual(
        windowMs === 0 ? {} : { jobs: { 'j:a': 'tombstone done' }, done: { 'j:a': T0 } },
      );
      expect(await p.count('crashed')).toBe(0);
    },
  );

  test('neither lets go of the entry of another job nor of one that runs', async () => {
    const [a, b] = [await p.running('a'), await p.running('b')];
    await p.complete([a], HOLD);
    expect(await p.withoutWrite(() => p.complete([{ ...a, entry: b.entry }]))).toEqual(['already']);
    expect(await p.complete([b])).toEqual(['ok']);
  });

  test('is recognised as the same call by its producer, and a cancel finds it over', async () => {
    const claim = await p.running('a');
    await p.complete([claim], HOLD);
    expect(await p.schedule('a')).toEqual({ kind: 'already', over: 'done' });
    expect(await p.cancel('j:a')).toEqual({ kind: 'over', over: 'done' });
    expect(await p.picture()).toEqual(HELD);
  });

  test('of a job whose id is given away meanwhile lets the new life run once, without a dead letter', async () => {
    const claim = await p.running('a');
    await p.complete([claim], HOLD);
    await p.schedule('a', { data: 'new life' });
    await p.promote();
    // The worker hears that its job is not there any more, and what it holds is found by adoption.
    expect(await p.complete([claim], HOLD)).toEqual(['gone']);
    const all = [{ entry: claim.entry, member: 'j:a', dueMs: T0 }, ...(await p.read())];
    const claims = await p.claim(all);
    expect(await p.complete(claims, { windowMs: 0 })).toEqual(['ok']);
    expect([claims.length, await p.picture()]).toEqual([1, {}]);
  });

  test('is not held when its job ends cancelled, or stays live because it was put again', async () => {
    const claim = await p.running('a');
    await p.cancel('j:a');
    expect(await p.complete([claim], HOLD)).toEqual(['cancelled']);
    await p.put('bare', T0);
    const bare = await p.run();
    await p.put('bare', T0 + 50);
    expect(await p.complete(bare, HOLD)).toEqual(['ok']);
    expect(await p.redis.xlen(p.keys.ready)).toBe(0);
  });

  test('is one of many in a call', async () => {
    await p.scheduleAll([item('a'), item('b')]);
    const claims = await p.run();
    expect(await p.complete([...claims, ...claims], HOLD)).toEqual(['ok', 'ok', 'already', 'already']);
    expect(await p.complete(claims)).toEqual(['already', 'already']);
    expect((await p.picture()).ready).toBeUndefined();
  });
});

describe('a bare member that was put again while it ran', () => {
  test('stays live with a fresh state', async () => {
    await p.put('a', T0);
    const claims = await p.run();
    await p.put('a', T0 + 50);
    expect(await p.complete(claims)).toEqual(['ok']);
    expect(await p.picture()).toEqual({ scheduled: { a: T0 + 50 }, jobs: { a: 'record' } });
    expect([await p.count('done'), await p.count('adopted')]).toEqual([1, 2]);
  });

  test('after its cancel was asked for stays live too: the last ZADD wins', async () => {
    await p.put('a', T0);
    const claims = await p.run();
    await p.cancel('a');
    await p.put('a', T0 + 50);
    expect(await p.complete(claims)).toEqual(['cancelled']);
    expect(await p.picture()).toEqual({ scheduled: { a: T0 + 50 }, jobs: { a: 'record' } });
  });
});
