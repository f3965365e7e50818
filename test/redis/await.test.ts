/** `await`: somebody waits for the end of jobs, and whoever ends one says so on `K:over`. */
import { describe, expect, test } from 'vitest';
import { decodeRun } from '../../src/job/codec.ts';
import { parseSettings } from '../../src/job/queue-settings.ts';
import { endTold } from '../../src/redis/scripts/replies.ts';
import { item, LEASE_MS, only, T0, usePartition, WINDOW_MS } from '../support/partition.ts';

const p = usePartition();
const textOf = (member: string) => p.redis.hget(p.keys.runs, member);
const bitsOf = async (member: string) => (await textOf(member))?.split('\n')[0]?.split(' ').at(-1);
/** What is said on the channel while this is called. */
const told = (call: () => Promise<unknown>) => p.nudgesOf(call, p.keys.over);

describe('a job that waits or runs', () => {
  test('and was never started gets a run for the mark, and waits on as before', async () => {
    await p.schedule('a', { dueMs: T0 + 9 });
    expect(await p.await('j:a')).toEqual([{ kind: 'waits' }]);
    expect(await textOf('j:a')).toBe('0 0 0 0 0 - - - 4');
    expect(await p.picture()).toMatchObject({ scheduled: { 'j:a': T0 + 9 }, jobs: { 'j:a': 'record' } });
    const claims = await p.run({ nowMs: T0 + 9 });
    expect(claims).toHaveLength(1);
    expect(await p.complete(claims)).toEqual(['ok']);
  });

  test('keeps all else of its run', async () => {
    const claim = await p.running('a');
    const before = await textOf('j:a');
    expect(await p.await('j:a')).toEqual([{ kind: 'waits' }]);
    expect(await textOf('j:a')).toBe(before?.replace(/0$/, '4'));
    expect(decodeRun((await textOf('j:a')) ?? '')).toMatchObject({ token: claim.token, cancelRequested: false });
  });

  test('is marked once: the same call again writes nothing', async () => {
    await p.schedule('a');
    await p.await('j:a');
    expect(await p.withoutWrite(() => p.await('j:a'))).toEqual([{ kind: 'waits' }]);
  });

  test('is marked among others, each with its own reply', async () => {
    await p.complete([await p.running('done')]);
    await p.schedule('a');
    const end = { kind: 'over', over: 'done', token: expect.stringMatching(/^\d+$/) };
    expect(await p.await('j:done', 'j:no', 'j:a', 'j:a')).toEqual([
      end,
      { kind: 'unknown' },
      { kind: 'waits' },
      { kind: 'waits' },
    ]);
  });

  test('and is bare has a mark once it has a record', async () => {
    await p.put('order', T0 + 9);
    expect(await p.withoutWrite(() => p.await('order'))).toEqual([{ kind: 'waits' }]);
    await p.promote({ nowMs: T0 + 9 });
    expect(await p.await('order')).toEqual([{ kind: 'waits' }]);
    const claims = await p.claim(await p.read());
    expect(await told(() => p.complete(claims))).toEqual([`d ${only(claims).token} order`]);
    await p.put('order', T0 + 50);
    expect(await p.await('order')).toEqual([{ kind: 'waits' }]);
  });
});

describe('without a write', () => {
  test('a job that is over is told with its outcome and its token', async () => {
    const claim = await p.running('dead');
    await p.bury(claim);
    await p.schedule('cancelled', { dueMs: T0 + 9 });
    await p.cancel('j:cancelled');
    expect(await p.withoutWrite(() => p.await('j:dead', 'j:cancelled'))).toEqual([
      { kind: 'over', over: 'dead', token: claim.token },
      { kind: 'over', over: 'cancelled', token: '0' },
    ]);
  });

  test('nothing is known of a job that never was, or ended without a done window', async () => {
    await p.complete([await p.running('a')], { windowMs: 0 });
    expect(await p.withoutWrite(() => p.await('j:a', 'j:never', 'bare'))).toEqual(Array(3).fill({ kind: 'unknown' }));
  });

  test('a caller with another layout is told which one there is', async () => {
    await p.schedule('a');
    const reply = await p.withoutWrite(() => p.jobs.await({ ...p.ref, layoutGeneration: 3 }, ['j:a']));
    expect(reply).toEqual({ kind: 'moved', layoutGeneration: 0 });
  });

  test('a job whose run nobody can read waits, and is asked for again', async () => {
    await p.schedule('a');
    await p.redis.hset(p.keys.runs, 'j:a', 'no run');
    expect(await p.withoutWrite(() => p.await('j:a'))).toEqual([{ kind: 'waits' }]);
    await p.redis.hdel(p.keys.runs, 'j:a');
  });
});

test('a full Redis marks jobs too: memory for it was there when they were scheduled, or is for a moment', async () => {
  await p.schedule('a');
  await p.redis.config('SET', 'maxmemory', '1');
  try {
    expect(await p.await('j:a')).toEqual([{ kind: 'waits' }]);
  } finally {
    await p.redis.config('SET', 'maxmemory', '0');
  }
});

describe('the mark stays', () => {
  test('through a retry, a defer, a lost worker and a release, until the job is over', async () => {
    const claim = await p.running('a');
    await p.await('j:a');
    await p.retry(claim, { delayMs: 0 });
    expect(await bitsOf('j:a')).toBe('4');
    await p.defer(only(await p.run()), { delayMs: 0 });
    expect(await bitsOf('j:a')).toBe('4');
    await p.run();
    const { deliveries } = await p.reclaim('w1');
    await p.release(deliveries, { consumer: 'w2' });
    expect(await bitsOf('j:a')).toBe('4');
    const last = only(await p.run());
    expect(await told(() => p.complete([last]))).toEqual([`d ${last.token} j:a`]);
  });

  test('beside a cancel, which the next start takes away alone', async () => {
    await p.running('a');
    await p.await('j:a');
    await p.cancel('j:a');
    expect(await bitsOf('j:a')).toBe('5');
    expect(await p.cancel('j:a')).toEqual({ kind: 'requested' });
    expect(await p.await('j:a')).toEqual([{ kind: 'waits' }]);
    expect(await bitsOf('j:a')).toBe('5');
    await p.put('j:a', T0 + 5);
    const { deliveries } = await p.reclaim('w1');
    await p.start(deliveries, { consumer: 'w2' });
    expect(await bitsOf('j:a')).toBe('4');
    const last = only(await p.run({ nowMs: T0 + 5 }));
    expect(await bitsOf('j:a')).toBe('4');
    await p.complete([last]);
  });

  test('through an edit and another due time, and not into another life', async () => {
    await p.schedule('a', { dueMs: T0 + 9 });
    await p.await('j:a');
    await p.edit('j:a', { data: 2, hasData: true });
    await p.reschedule('j:a', T0 + 20);
    expect(await bitsOf('j:a')).toBe('4');
    await p.schedule('a', { dueMs: T0 + 30, data: 3, mode: 'replace' });
    expect(await bitsOf('j:a')).toBe('0');
    await p.await('j:a');
    expect(await bitsOf('j:a')).toBe('4');
  });
});

describe('the end of a job that is waited for is told, once, by', () => {
  const running = async () => {
    const claim = await p.running('a');
    await p.await('j:a');
    return claim;
  };
  const cases: Readonly<Record<string, () => Promise<readonly [letter: string, token: string, end: () => unknown]>>> = {
    async complete() {
      const claim = await running();
      return ['d', claim.token, () => p.complete([claim])];
    },
    async 'complete, acknowledged before its handler begins'() {
      const claim = await running();
      return ['d', claim.token, () => p.complete([claim], { hold: true })];
    },
    async 'complete, without a done window'() {
      const claim = await running();
      return ['d', claim.token, () => p.complete([claim], { windowMs: 0 })];
    },
    async 'complete of a job that was asked to stop'() {
      const claim = await running();
      await p.cancel('j:a');
      return ['c', claim.token, () => p.complete([claim])];
    },
    async commit() {
      const claim = await running();
      return ['d', claim.token, () => p.commit(claim, [])];
    },
    async bury() {
      const claim = await running();
      return ['x', claim.token, () => p.bury(claim)];
    },
    async 'retry and defer of a job that was asked to stop'() {
      const claim = await running();
      await p.cancel('j:a');
      return ['c', claim.token, async () => [await p.retry(claim), await p.defer(claim)]];
    },
    async 'the start of a job that was asked to stop'() {
      const claim = await running();
      await p.cancel('j:a');
      const { deliveries } = await p.reclaim('w1');
      return ['c', claim.token, () => p.start(deliveries, { consumer: 'w2' })];
    },
    async 'cancel of a scheduled job'() {
      await p.schedule('a', { dueMs: T0 + 9 });
      await p.await('j:a');
      return ['c', '0', () => p.cancel('j:a')];
    },
    async 'cancel of a ready job'() {
      await p.schedule('a');
      await p.await('j:a');
      await p.promote();
      return ['c', '0', () => p.cancel('j:a')];
    },
    async expire() {
      await p.schedule('a', { late: { expiresAtMs: T0 + 5 } });
      await p.await('j:a');
      const deliveries = await p.deliver();
      return ['e', '0', () => p.expire(deliveries, { nowMs: T0 + 9 })];
    },
    async 'expire, which makes a dead letter'() {
      await p.schedule('a', { late: { expiresAtMs: T0 + 5, onLate: 'dead' } });
      await p.await('j:a');
      const deliveries = await p.deliver();
      return ['x', '0', () => p.expire(deliveries, { nowMs: T0 + 9 })];
    },
    async 'a pass that finds nonsense about it'() {
      await p.schedule('a', { dueMs: T0 + 9 });
      await p.await('j:a');
      await p.lead();
      await p.put('j:a', 5);
      return ['x', '0', () => p.promote()];
    },
    async serve() {
      const claim = await running();
      const call = { consumer: 'w1', bytesMax: 1e6, windowMs: WINDOW_MS, nowMs: T0 };
      const ended = [{ ...claim, mark: '1 0123456789abcdef' }];
      return ['d', claim.token, () => p.jobs.serve(p.ref, { ended, given: [], take: 0 }, call)];
    },
    async relay() {
      const claim = await running();
      const call = { consumer: 'w1', bytesMax: 1e6, windowMs: WINDOW_MS, nowMs: T0 };
      const pass = { term: await p.lead(), leaseMs: LEASE_MS, limit: 10, cap: 10 };
      const ended = [{ ...claim, mark: '1 0123456789abcdef' }];
      return ['d', claim.token, () => p.jobs.relay(p.ref, { ended, take: 1, pass }, call)];
    },
  };

  test.each(Object.entries(cases))('%s', async (_, story) => {
    const [letter, token, end] = await story();
    const heard = await told(async () => {
      await end();
      await end();
    });
    expect(heard).toEqual([`${letter} ${token} j:a`]);
    expect(endTold(heard[0] ?? '')).toMatchObject({ member: 'j:a', token });
  });

  test('cast', async () => {
    await p.scheduleAll([item('a'), item('b')]);
    await p.await('j:a');
    const broadcast = parseSettings({ broadcast: { age: '7d' } }).broadcast;
    if (!broadcast) throw new Error('no broadcast');
    const pass = { term: await p.lead(), leaseMs: LEASE_MS, limit: 10, windowMs: WINDOW_MS, broadcast, nowMs: T0 };
    const heard = await told(() => p.jobs.cast(p.ref, pass));
    const [end] = await p.await('j:a');
    expect(heard).toEqual([`d ${end && 'token' in end ? end.token : ''} j:a`]);
  });

  test('nobody, where nobody waits: an end says nothing', async () => {
    const stories = [
      async () => p.complete([await p.running('done')]),
      async () => p.commit(await p.running('committed'), []),
      async () => p.bury(await p.running('dead')),
      async () => p.retry(await p.running('again')),
      async () => p.cancel('j:again'),
    ];
    expect(
      await told(async () => {
        for (const story of stories) await story();
      }),
    ).toEqual([]);
  });
});

test('a bare job that was put again while it ran is not over, and its new life is marked by the next call', async () => {
  await p.put('order', T0);
  const claims = await p.run();
  await p.await('order');
  await p.put('order', T0 + 9);
  expect(await told(() => p.complete(claims))).toEqual([]);
  expect(await textOf('order')).toBeNull();
  expect(await p.await('order')).toEqual([{ kind: 'waits' }]);
  expect(await bitsOf('order')).toBe('4');
});

test('a text that is no end is told as none', () => {
  expect(['', 'end', 'q 5 j:a', 'd 5', 'd x j:a'].map(endTold)).toEqual(Array(5).fill(undefined));
});
