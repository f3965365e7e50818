/** `cancel`: a job that waits is over at once; one that runs is asked to stop. */
import { describe, expect, test } from 'vitest';
import { decodeRun, decodeTombstone } from '../../src/job/codec.ts';
import { Desk } from '../support/gates-desk.ts';
import { cutOff, luaOf } from '../support/model-cut.ts';
import { item, T0, usePartition, WINDOW_MS } from '../support/partition.ts';

const p = usePartition();
const runOf = async (member: string) => decodeRun((await p.redis.hget(p.keys.runs, member)) ?? '');
const tombstoneOf = async (member: string) => decodeTombstone((await p.redis.hget(p.keys.jobs, member)) ?? '');

describe('a job that waits', () => {
  test('in scheduled is over at once', async () => {
    await p.schedule('a', { dueMs: T0 + 9 });
    expect(await p.cancel('j:a', { nowMs: T0 + 1 })).toEqual({ kind: 'cancelled' });
    expect(await p.picture()).toEqual({ jobs: { 'j:a': 'tombstone cancelled' }, done: { 'j:a': T0 + 1 } });
    expect(await tombstoneOf('j:a')).toMatchObject({ outcome: 'cancelled', askedDueMs: T0 + 9, attempts: 0 });
    expect(await p.count('cancelled')).toBe(1);
  });

  test('in scheduled leaves nothing when there is no done window', async () => {
    await p.schedule('a');
    expect(await p.cancel('j:a', { windowMs: 0 })).toEqual({ kind: 'cancelled' });
    expect(await p.picture()).toEqual({});
  });

  test('for its next attempt is over, and its tombstone tells how often it was tried', async () => {
    const claim = await p.running('a');
    await p.retry(claim);
    expect(await p.cancel('j:a')).toEqual({ kind: 'cancelled' });
    expect(await p.picture()).toEqual({ jobs: { 'j:a': 'tombstone cancelled' }, done: { 'j:a': T0 } });
    expect(await tombstoneOf('j:a')).toMatchObject({ token: claim.token, attempts: 1 });
  });

  test('in ready is over; its tombstone waits for the entry, which start drops', async () => {
    await p.schedule('a');
    await p.promote();
    expect(await p.cancel('j:a')).toEqual({ kind: 'cancelled' });
    expect(await p.picture()).toEqual({ jobs: { 'j:a': 'tombstone cancelled' }, ready: ['j:a'] });
    expect(await p.start(await p.read())).toEqual([{ kind: 'dropped' }]);
    expect(await p.picture()).toEqual({ jobs: { 'j:a': 'tombstone cancelled' }, done: { 'j:a': T0 } });
  });

  test('in the hands of a worker that has not started it is over too', async () => {
    await p.schedule('a');
    const deliveries = await p.deliver();
    expect(await p.cancel('j:a')).toEqual({ kind: 'cancelled' });
    expect(await p.start(deliveries)).toEqual([{ kind: 'dropped' }]);
  });

  test('for another worker after its own was lost is over too', async () => {
    await p.running('a');
    const { deliveries } = await p.reclaim('w1');
    expect(await p.cancel('j:a')).toEqual({ kind: 'cancelled' });
    expect(await p.start(deliveries, { consumer: 'w2' })).toEqual([{ kind: 'dropped' }]);
    expect(await p.picture()).toEqual({ jobs: { 'j:a': 'tombstone cancelled' }, done: { 'j:a': T0 } });
  });

  test('again after it was ready leaves an entry, and no dead letter about it', async () => {
    await p.put('a', T0);
    await p.promote();
    await p.put('a', T0 + 50);
    expect(await p.cancel('a', { windowMs: 0 })).toEqual({ kind: 'cancelled' });
    expect(await p.start(await p.read(), { windowMs: 0 })).toEqual([{ kind: 'dropped' }]);
    expect([await p.picture(), await p.count('refused')]).toEqual([{}, 0]);
  });

  test('was put by a foreign producer and not adopted yet: it just goes', async () => {
    await p.put('order-1', T0 + 9);
    expect(await p.cancel('order-1')).toEqual({ kind: 'cancelled' });
    expect(await p.picture()).toEqual({});
    expect(await p.count('cancelled')).toBe(0);
  });
});

describe('a job that runs', () => {
  test('is asked to stop, and nothing else changes', async () => {
    const claim = await p.running('a');
    expect(await p.cancel('j:a')).toEqual({ kind: 'requested' });
    expect(await runOf('j:a')).toMatchObject({
      token: claim.token,
      entry: claim.entry,
      owner: 'w1',
      cancelRequested: true,
    });
    expect(await p.picture()).toEqual({
      jobs: { 'j:a': 'record' },
      runs: { 'j:a': 'running' },
      ready: ['j:a'],
      pending: { w1: ['j:a'] },
    });
    expect(await p.count('cancelled')).toBe(0);
  });

  test('keeps its history', async () => {
    await p.retry(await p.running('a'), { delayMs: 0 });
    await p.run();
    await p.cancel('j:a');
    expect((await runOf('j:a'))?.history).toHaveLength(1);
  });

  test('is asked again by a second identical call, which changes nothing', async () => {
    await p.running('a');
    await p.cancel('j:a');
    const before = await p.redis.hgetall(p.keys.runs);
    expect(await p.cancel('j:a')).toEqual({ kind: 'requested' });
    expect(await p.redis.hgetall(p.keys.runs)).toEqual(before);
  });

  test('and was put again by its producer runs no second time', async () => {
    await p.put('a', T0);
    const claims = await p.run();
    await p.put('a', T0 + 9);
    expect(await p.cancel('a')).toEqual({ kind: 'requested' });
    expect(await p.complete(claims)).toEqual(['cancelled']);
    expect(await p.picture()).toEqual({ jobs: { a: 'tombstone cancelled' }, done: { a: T0 } });
  });
});

describe('is refused without a write', () => {
  test('when the job is over, and says how it ended', async () => {
    await p.complete([await p.running('done')]);
    await p.schedule('cancelled');
    await p.cancel('j:cancelled');
    await p.dead('dead');
    for (const over of ['done', 'cancelled', 'dead'] as const) {
      expect(await p.withoutWrite(() => p.cancel(`j:${over}`))).toEqual({ kind: 'over', over });
    }
  });

  test('when nothing is known of the job', async () => {
    expect(await p.withoutWrite(() => p.cancel('j:nobody'))).toEqual({ kind: 'unknown' });
  });

  test('when the partition has another generation', async () => {
    await p.schedule('a');
    const elsewhere = { ...p.ref, layoutGeneration: 1 };
    const reply = await p.withoutWrite(() => p.jobs.cancel(elsewhere, ['j:a'], { windowMs: WINDOW_MS, nowMs: T0 }));
    expect(reply).toEqual({ kind: 'moved', layoutGeneration: 0 });
  });
});

test('a cancelled job does not come back by the call that scheduled it', async () => {
  await p.schedule('a', { data: 1 });
  await p.cancel('j:a');
  expect(await p.withoutWrite(() => p.schedule('a', { data: 1 }))).toEqual({ kind: 'already', over: 'cancelled' });
});

test('many jobs are cancelled in one call, and each is answered in its place', async () => {
  await p.running('runs');
  await p.scheduleAll([item('a', { dueMs: T0 + 9 }), item('b', { dueMs: T0 + 9 })]);
  const members = ['j:a', 'j:nobody', 'j:runs', 'j:b', 'j:a'];
  expect(await p.jobs.cancel(p.ref, members, { windowMs: WINDOW_MS, nowMs: T0 })).toEqual([
    { kind: 'cancelled' },
    { kind: 'unknown' },
    { kind: 'requested' },
    { kind: 'cancelled' },
    { kind: 'over', over: 'cancelled' },
  ]);
  expect(await p.count('cancelled')).toBe(2);
});

/** `{a}2` waits, where: it has a due time to come, is in line in each way, or was let through and is in ready. */
const PLACES: Readonly<Record<string, (desk: Desk) => Promise<unknown>>> = {
  scheduled: (desk) => desk.put(['{a}2'], { inMs: 5000 }),
  'in line, with others of its lane behind it': (desk) => desk.line('{a}2', '{a}3', 'x'),
  'in line, as the last of its lane': (desk) => desk.line('x', '{a}2'),
  'in line, with a priority': (desk) => desk.line('high {a}2', '{a}3', 'x'),
  'in line, while its lane is open': async (desk) => {
    await desk.line('{b}1', '{a}2');
    await desk.serve(0, { over: ['{a}1'] });
  },
  'in line, of a closed group': async (desk) => {
    await desk.line('{a}2', 'x');
    await desk.close('a', 1000);
  },
  'in ready': async (desk) => {
    await desk.line('{a}2');
    await desk.settle('complete', '{a}1');
  },
};

describe.each(Object.entries(PLACES))('a job of a queue with limits, %s', (_, reach) => {
  const begun = async () => {
    await p.redis.flushall();
    const desk = await new Desk(p.redis, p.ref).begin('0 1 2 1');
    await desk.line('{a}1');
    await desk.serve(1);
    await reach(desk);
    return desk;
  };
  const cutOffs = async (each: (desk: Desk, site: string) => Promise<void>) => {
    for (let allowed = 0; ; allowed += 1) {
      const desk = await begun();
      const cut = { verb: 'cancel', lua: luaOf('cancel'), allowed, call: () => desk.cancel('{a}2') };
      const site = await cutOff(p.redis, cut);
      if (site === undefined) return allowed;
      await each(desk, site);
    }
  };
  /** Who is started while everybody has their turn. */
  const startedIn = async (desk: Desk) => {
    const started: string[] = [];
    for (let turn = 0; turn < 10; turn += 1) {
      desk.nowMs += 1000;
      await desk.promote();
      started.push(...(await desk.serve(3, { given: await desk.read(), over: [...desk.claims.keys()] })));
      await desk.mend(await desk.flaws());
    }
    return started;
  };

  test('leaves nothing when its cancel is cut off before any write and made again', async () => {
    const left = async (desk: Desk) => {
      await desk.cancel('{a}2');
      const { line, lanes, scheduled } = await desk.picture();
      return { line, lanes, scheduled, holds: await desk.holds(), ready: await desk.ready() };
    };
    const whole = await left(await begun());
    const cuts = await cutOffs(async (desk, site) => {
      expect(await left(desk), site).toEqual(whole);
      expect(await desk.flaws(), site).toEqual([]);
      expect(await startedIn(desk), site).not.toContain('{a}2');
      expect((await desk.picture()).holds, site).toEqual([]);
    });
    expect(cuts).toBeGreaterThan(4);
  });

  test('is not started when its cancel was cut off after its first write, and nobody makes it again', async () => {
    await cutOffs(async (desk, site) => {
      const isCancelled = (await p.redis.hget(p.keys.jobs, 'j:{a}2'))?.startsWith('.c') ?? false;
      const started = await startedIn(desk);
      expect(started.includes('{a}2'), site).toBe(!isCancelled);
      const { line, holds, scheduled, ready: entries } = await desk.picture();
      expect([line, holds, scheduled, entries], site).toEqual([[], [], [], []]);
    });
  });
});
