/** `complete`: running jobs are over, once each, and only for the newest start. */
import { describe, expect, test } from 'vitest';
import { decodeStub } from '../../src/core/codec.ts';
import { item, only, T0, usePartition } from '../support/partition.ts';

const p = usePartition();

describe('a running job', () => {
  test('is over: its entry and its run go, and a stub stays for the done window', async () => {
    const claim = await p.running('a');
    expect(await p.complete([claim], { nowMs: T0 + 3 })).toEqual(['ok']);
    expect(await p.picture()).toEqual({ jobs: { 'j:a': 'stub done' }, done: { 'j:a': T0 + 3 } });
    const stub = decodeStub((await p.redis.hget(p.keys.jobs, 'j:a')) ?? '');
    expect(stub).toMatchObject({ outcome: 'done', askedDueMs: T0, token: claim.token, attempts: 1, letter: undefined });
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
      jobs: { 'j:a': 'stub done', 'j:b': 'record', 'j:c': 'stub cancelled' },
      runs: { 'j:b': 'waiting' },
      done: { 'j:a': T0, 'j:c': T0 },
    });
  });

  test('that was asked to stop ends cancelled', async () => {
    const claim = await p.running('a');
    await p.cancel('j:a');
    expect(await p.complete([claim])).toEqual(['cancelled']);
    expect(await p.picture()).toEqual({ jobs: { 'j:a': 'stub cancelled' }, done: { 'j:a': T0 } });
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
    expect(await p.picture()).toEqual({ jobs: { 'j:a': 'stub done' }, done: { 'j:a': T0 } });
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
