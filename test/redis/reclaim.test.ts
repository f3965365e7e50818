/** `reclaim`: entries of a dead consumer become the caller's, and a crash is counted once. */
import { describe, expect, test } from 'vitest';
import { decodeRun } from '../../src/job/codec.ts';
import { item, only, T0, usePartition } from '../support/partition.ts';

const p = usePartition();
const runOf = async (member: string) => decodeRun((await p.redis.hget(p.keys.runs, member)) ?? '');

describe('a job that ran', () => {
  test('becomes the caller’s, with one crash more and no owner', async () => {
    const claim = await p.running('a');
    expect(await p.reclaim('w1')).toEqual({
      deliveries: [{ entry: claim.entry, member: 'j:a', dueMs: T0 }],
    });
    expect(await p.picture()).toEqual({
      jobs: { 'j:a': 'record' },
      runs: { 'j:a': 'orphaned' },
      ready: ['j:a'],
      pending: { w2: ['j:a'] },
    });
    expect(await runOf('j:a')).toMatchObject({
      token: claim.token,
      entry: claim.entry,
      owner: undefined,
      attempts: 1,
      failures: 0,
      crashes: 1,
      history: [
        {
          atMs: T0,
          attempt: 1,
          kind: 'crash',
          message: 'worker w1 was lost',
          beganMs: Math.floor(Number(claim.token) / 1000),
          signMs: expect.any(Number),
        },
      ],
    });
    expect([await p.count('reclaimed'), await p.count('crashed')]).toEqual([1, 1]);
  });

  test('counts its crash exactly once, whoever reclaims it again', async () => {
    await p.running('a');
    await p.reclaim('w1', { consumer: 'w2' });
    await p.reclaim('w2', { consumer: 'w3' });
    await p.reclaim('w3', { consumer: 'w2' });
    expect(await runOf('j:a')).toMatchObject({ crashes: 1 });
    expect(await p.count('crashed')).toBe(1);
  });

  test('counts a second crash when the next worker is lost too', async () => {
    await p.running('a');
    const { deliveries } = await p.reclaim('w1');
    await p.start(deliveries, { consumer: 'w2' });
    await p.reclaim('w2', { consumer: 'w3' });
    expect(await runOf('j:a')).toMatchObject({ attempts: 2, crashes: 2 });
  });

  test('keeps its last five errors', async () => {
    await p.running('a');
    for (let nth = 1; nth <= 6; nth += 1) {
      const { deliveries } = await p.reclaim('w1', { consumer: 'w1' });
      await p.start(deliveries);
    }
    expect((await runOf('j:a'))?.history.map(({ attempt }) => attempt)).toEqual([2, 3, 4, 5, 6]);
  });

  test('keeps the request to cancel it', async () => {
    await p.running('a');
    await p.cancel('j:a');
    await p.reclaim('w1');
    expect(await runOf('j:a')).toMatchObject({ cancelRequested: true });
  });

  test('is still completed by its late end, before the next start', async () => {
    const late = await p.running('a');
    const { deliveries } = await p.reclaim('w1');
    expect(await p.complete([late])).toEqual(['ok']);
    expect(await p.start(deliveries, { consumer: 'w2' })).toEqual([{ kind: 'lost' }]);
  });
});

describe('an entry that was not started', () => {
  test('becomes the caller’s without a crash', async () => {
    await p.schedule('a');
    await p.deliver();
    expect((await p.reclaim('w1')).deliveries).toMatchObject([{ member: 'j:a' }]);
    expect(await p.picture()).toEqual({ jobs: { 'j:a': 'record' }, ready: ['j:a'], pending: { w2: ['j:a'] } });
    expect(await p.count('crashed')).toBe(0);
  });
});

describe('is refused without a write', () => {
  test('when the entries are not idle for long enough: the worker lives', async () => {
    await p.running('a');
    const reply = await p.withoutWrite(() => p.reclaim('w1', { idleMs: 60_000 }));
    expect(reply).toEqual({ deliveries: [] });
  });

  test('when the named owner holds nothing', async () => {
    await p.running('a');
    expect(await p.withoutWrite(() => p.reclaim('w9'))).toEqual({ deliveries: [] });
  });

  test('when the same call was carried out before', async () => {
    await p.running('a');
    await p.reclaim('w1');
    expect(await p.withoutWrite(() => p.reclaim('w1'))).toEqual({ deliveries: [] });
  });
});

test('an extended entry is not idle any more', async () => {
  const claim = await p.running('a');
  await p.redis.call('XCLAIM', p.keys.ready, 'workers', 'w1', 0, claim.entry, 'IDLE', 60_000, 'JUSTID');
  await p.extend([claim]);
  expect((await p.reclaim('w1', { idleMs: 30_000 })).deliveries).toEqual([]);
});

test('the entries that are named are taken, and no other', async () => {
  await p.scheduleAll(['a', 'b'].map((id) => item(id)));
  const claims = await p.run();
  const entries = claims.slice(1).map(({ entry }) => entry);
  expect((await p.reclaim('w1', { entries })).deliveries.map(({ member }) => member)).toEqual(['j:b']);
  expect((await p.picture()).pending).toEqual({ w1: ['j:a'], w2: ['j:b'] });
});

test('many entries are taken in bounded calls', async () => {
  await p.scheduleAll(['a', 'b', 'c'].map((id) => item(id)));
  await p.run();
  expect((await p.reclaim('w1', { limit: 2 })).deliveries.map(({ member }) => member)).toEqual(['j:a', 'j:b']);
  expect(only((await p.reclaim('w1', { limit: 2 })).deliveries).member).toBe('j:c');
});

test('an entry that vanished from the stream is let go, and stops nothing', async () => {
  const lost = await p.running('a');
  await p.running('b');
  await p.redis.xdel(p.keys.ready, lost.entry);
  expect((await p.reclaim('w1')).deliveries.map(({ member }) => member)).toEqual(['j:b']);
  expect(await p.picture()).toMatchObject({ ready: ['j:b'], pending: { w2: ['j:b'] } });
  // What was lost behind our back is not a job any more, so the invariants need not hold for it.
  await p.redis.flushall();
});
