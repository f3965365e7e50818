/** `extend`: a running job stays its worker's for another lease. */
import { describe, expect, test } from 'vitest';
import { decodeRun, encodeDeferral, encodeProgress } from '../../src/job/codec.ts';
import { peek } from '../../src/redis/read/inspect.ts';
import { ownPending } from '../../src/redis/scripts/ready.ts';
import { failure, item, only, T0, usePartition } from '../support/partition.ts';

const p = usePartition();

describe('a running job of the caller', () => {
  test('is extended: its entry is not idle any more, and no delivery is counted', async () => {
    const claim = await p.running('a');
    await p.redis.call('XCLAIM', p.keys.ready, 'workers', 'w1', 0, claim.entry, 'IDLE', 60_000, 'JUSTID');
    const idle = () => ownPending(p.redis, p.keys, { consumer: 'w1', idleMs: 30_000, limit: 10 });
    expect(await idle()).toEqual([claim.entry]);
    expect(await p.extend([claim])).toEqual(['ok']);
    expect(await idle()).toEqual([]);
    expect(await p.redis.xpending(p.keys.ready, 'workers', '-', '+', 10)).toMatchObject([
      [claim.entry, 'w1', expect.anything(), 1],
    ]);
  });

  test('is extended again by a second identical call', async () => {
    const claim = await p.running('a');
    await p.extend([claim]);
    expect(await p.extend([claim])).toEqual(['ok']);
  });

  test('is extended all the same when it is to be cancelled, and the reply says so', async () => {
    const claim = await p.running('a');
    await p.cancel('j:a');
    expect(await p.extend([claim])).toEqual(['cancel']);
    expect(await p.extend([claim])).toEqual(['cancel']);
  });
});

describe('is refused without a write', () => {
  test('with an older token', async () => {
    const old = await p.running('a');
    const { deliveries } = await p.reclaim('w1', { consumer: 'w1' });
    const current = only(await p.claim(deliveries));
    expect(await p.withoutWrite(() => p.extend([old]))).toEqual(['fenced']);
    expect(await p.extend([current])).toEqual(['ok']);
  });

  test('when the entry was reclaimed and not started again: the owner is empty', async () => {
    const claim = await p.running('a');
    await p.reclaim('w1');
    expect(await p.withoutWrite(() => p.extend([claim]))).toEqual(['fenced']);
    expect(await p.withoutWrite(() => p.extend([claim], 'w2'))).toEqual(['fenced']);
  });

  test('when another consumer asks', async () => {
    const claim = await p.running('a');
    expect(await p.withoutWrite(() => p.extend([claim], 'w2'))).toEqual(['fenced']);
  });

  test('when the job waits for its next attempt', async () => {
    const claim = await p.running('a');
    await p.retry(claim);
    expect(await p.withoutWrite(() => p.extend([claim]))).toEqual(['fenced']);
  });

  test('when the job is over, or was never there', async () => {
    const claim = await p.running('a');
    await p.complete([claim]);
    expect(await p.withoutWrite(() => p.extend([claim]))).toEqual(['gone']);
    expect(await p.withoutWrite(() => p.extend([{ ...claim, member: 'j:nobody' }]))).toEqual(['gone']);
  });

  test('when its entry was acknowledged behind our back', async () => {
    const claim = await p.running('a');
    await p.redis.xack(p.keys.ready, 'workers', claim.entry);
    expect(await p.extend([claim])).toEqual(['gone']);
  });
});

test('many jobs are extended in one call, and each is answered in its place', async () => {
  await p.scheduleAll([item('a'), item('b', { dueMs: T0 - 1 })]);
  const claims = await p.run();
  const [first] = claims;
  if (!first) throw new Error('nothing runs');
  await p.complete([first]);
  expect(await p.extend(claims)).toEqual(['gone', 'ok']);
  expect(only(await p.redis.xrange(p.keys.ready, '-', '+'))).toBeDefined();
});

describe('how far a handler is', () => {
  const said = (fraction: number, attempt = 1) =>
    encodeProgress({ fraction, text: `row "${fraction}"`, atMs: T0 }, attempt);
  const stored = async () => (await p.redis.hget(p.keys.runs, 'j:a'))?.split('\n').slice(1);
  const failed = (attempt: number) => failure('no, "k":"progress"', attempt);

  test('is the last line of its run, the newest in the place of the one before', async () => {
    const claim = await p.running('a');
    expect(await p.extend([{ ...claim, progress: said(0.1) }])).toEqual(['ok']);
    expect(await p.extend([{ ...claim, progress: said(0.4) }])).toEqual(['ok']);
    expect(await stored()).toEqual([said(0.4)]);
    expect(await p.extend([{ ...claim, progress: said(0.4) }])).toEqual(['ok']);
    expect(await stored()).toEqual([said(0.4)]);
    expect(await peek(p.redis, p.ref, 'j:a')).toMatchObject({
      state: 'running',
      run: { token: claim.token, history: [], progress: { fraction: 0.4, text: 'row "0.4"', atMs: T0 } },
    });
  });

  test('stays where there is nothing new, and the run is not written', async () => {
    const claim = await p.running('a');
    await p.extend([{ ...claim, progress: said(0.4) }]);
    const calls = async () => /cmdstat_hset:calls=(\d+)/.exec(await p.redis.info('commandstats'))?.[1];
    const before = await calls();
    expect(await p.extend([claim])).toEqual(['ok']);
    expect(await calls()).toBe(before);
    expect(await stored()).toEqual([said(0.4)]);
  });

  test('is kept of a job that is to be cancelled', async () => {
    const claim = await p.running('a');
    await p.cancel('j:a');
    expect(await p.extend([{ ...claim, progress: said(0.4) }])).toEqual(['cancel']);
    expect(await stored()).toEqual([said(0.4)]);
  });

  test('is written by nobody but the start that runs', async () => {
    const old = await p.running('a');
    const progress = said(0.4);
    expect(await p.withoutWrite(() => p.extend([{ ...old, progress }], 'w2'))).toEqual(['fenced']);
    const { deliveries } = await p.reclaim('w1', { consumer: 'w1' });
    expect(await p.withoutWrite(() => p.extend([{ ...old, progress }]))).toEqual(['fenced']);
    const current = only(await p.claim(deliveries));
    expect(await p.withoutWrite(() => p.extend([{ ...old, progress }]))).toEqual(['fenced']);
    await p.redis.xack(p.keys.ready, 'workers', current.entry);
    expect(await p.extend([{ ...current, progress }])).toEqual(['gone']);
    expect(await stored()).toEqual([expect.stringContaining('"k":"crash"')]);
  });

  test('goes with the next error, and never counts among the five', async () => {
    for (let attempt = 1; attempt <= 6; attempt += 1) {
      const claim = attempt === 1 ? await p.running('a') : only(await p.run({ nowMs: T0 + attempt * 1000 }));
      await p.extend([{ ...claim, progress: said(0.4, attempt) }]);
      expect((await stored())?.filter((line) => line === said(0.4, attempt))).toHaveLength(1);
      await p.retry(claim, { error: failed(attempt) });
      expect(await stored()).toEqual(
        [1, 2, 3, 4, 5, 6]
          .filter((n) => n <= attempt)
          .slice(-5)
          .map(failed),
      );
    }
  });

  test('goes with a crash', async () => {
    const claim = await p.running('a');
    await p.extend([{ ...claim, progress: said(0.4) }]);
    await p.reclaim('w1');
    expect(await stored()).toEqual([expect.stringContaining('"k":"crash"')]);
  });

  test('stays behind a deferral, where it is neither an error nor the progress of the next start', async () => {
    const claim = await p.running('a');
    await p.extend([{ ...claim, progress: said(0.4) }]);
    await p.defer(claim, { why: encodeDeferral({ atMs: T0, reason: 'locked' }) });
    expect((await stored())?.at(-1)).toBe(said(0.4));
    const again = only(await p.run({ nowMs: T0 + 1000 }));
    const look = async () => decodeRun((await p.redis.hget(p.keys.runs, 'j:a')) ?? '');
    expect(await look()).toMatchObject({ attempts: 2, history: [], deferred: { times: 1 }, progress: undefined });
    await p.extend([{ ...again, progress: said(0.1, 2) }]);
    expect(await look()).toMatchObject({ deferred: { times: 1 }, progress: { fraction: 0.1 } });
    expect(await stored()).toHaveLength(2);
  });

  test('is no error of its dead letter', async () => {
    const claim = await p.running('a');
    await p.extend([{ ...claim, progress: said(0.4) }]);
    await p.bury(claim, { error: failed(1) });
    const [[, fields] = ['', []]] = await p.redis.xrange(p.keys.dead, '-', '+');
    expect(fields[fields.indexOf('history') + 1]).toBe(failed(1));
  });
});
