/** `expire`: an entry whose job is past its expiry is over without a start. */
import { describe, expect, test } from 'vitest';
import { decodeTombstone } from '../../src/job/codec.ts';
import type { EntryId } from '../../src/job/job.ts';
import { deadLetters, lapsed } from '../../src/redis/read/inspect.ts';
import type { Claim, Delivery } from '../../src/redis/scripts/replies.ts';
import { cutOff, luaOf } from '../support/model-cut.ts';
import { failure, item, only, T0, usePartition, WINDOW_MS } from '../support/partition.ts';

const p = usePartition();
const LATE = T0 + 1001;
const drop = { maxLatenessMs: 1000, onLate: 'drop' } as const;
const dead = { maxLatenessMs: 1000, onLate: 'dead' } as const;

/** A job that start called late; its entry. */
async function late(id: string, policy: Parameters<typeof p.schedule>[1] = { late: drop }) {
  await p.schedule(id, policy);
  const deliveries = await p.deliver();
  expect(await p.start(deliveries, { nowMs: LATE })).toEqual([{ kind: 'late' }]);
  return deliveries;
}

describe('start', () => {
  test('calls a job late one millisecond after its greatest lateness, without a write', async () => {
    await p.schedule('a', { late: drop });
    const deliveries = await p.deliver();
    expect(await p.withoutWrite(() => p.start(deliveries, { nowMs: LATE }))).toEqual([{ kind: 'late' }]);
    expect(only(await p.start(deliveries, { nowMs: LATE - 1 }))).toMatchObject({ kind: 'run', attempts: 1 });
  });

  test('calls a job late one millisecond after its expiry', async () => {
    await p.schedule('a', { late: { expiresAtMs: T0 + 5, onLate: 'drop' } });
    const deliveries = await p.deliver();
    expect(await p.start(deliveries, { nowMs: T0 + 6 })).toEqual([{ kind: 'late' }]);
    expect(only(await p.start(deliveries, { nowMs: T0 + 5 }))).toMatchObject({ kind: 'run' });
  });

  test('runs a late job all the same when its producer said so', async () => {
    await p.schedule('a', { late: { maxLatenessMs: 1000, onLate: 'run' } });
    expect(only(await p.start(await p.deliver(), { nowMs: LATE }))).toMatchObject({ kind: 'run' });
  });

  test('answers a repeated call for a job that started in time', async () => {
    await p.schedule('a', { late: drop });
    const deliveries = await p.deliver();
    await p.start(deliveries);
    expect(only(await p.start(deliveries, { nowMs: LATE }))).toMatchObject({ kind: 'again' });
  });
});

describe('a late job', () => {
  test('is over as expired, with no attempt used', async () => {
    expect(await p.expire(await late('a'), { nowMs: LATE })).toEqual(['expired']);
    expect(await p.picture()).toEqual({ jobs: { 'j:a': 'tombstone expired' }, done: { 'j:a': LATE } });
    expect(decodeTombstone((await p.redis.hget(p.keys.jobs, 'j:a')) ?? '')).toMatchObject({ attempts: 0 });
    expect(await p.count('expired')).toBe(1);
  });

  test('leaves nothing when there is no done window', async () => {
    expect(await p.expire(await late('a'), { nowMs: LATE, windowMs: 0 })).toEqual(['expired']);
    expect(await p.picture()).toEqual({});
  });

  test('becomes a dead letter when its producer said so, with what happened before', async () => {
    await p.schedule('a', { late: dead });
    await p.retry(only(await p.run()), { delayMs: 0, error: failure('boom') });
    expect(await p.expire(await p.deliver(), { nowMs: LATE })).toEqual(['dead']);
    const deadLetter = only(await deadLetters(p.redis, p.ref, { limit: 10 }));
    expect(deadLetter).toMatchObject({ id: 'a', reason: 'expired', attempts: 1, history: [{ message: 'boom' }] });
    expect(await p.picture()).toEqual({
      jobs: { 'j:a': 'tombstone dead' },
      dead: ['j:a: expired'],
      done: { 'j:a': LATE },
    });
  });

  test('can be replayed from its dead letter, and does not expire again', async () => {
    await p.expire(await late('a', { late: dead }), { nowMs: LATE });
    const { entry: deadLetter } = only(await deadLetters(p.redis, p.ref, { limit: 10 }));
    expect(await p.replay(deadLetter, { nowMs: LATE })).toMatchObject({ kind: 'ok' });
    const deliveries = await p.deliver({ nowMs: LATE });
    expect(only(await p.start(deliveries, { nowMs: LATE + 999_999 }))).toMatchObject({ kind: 'run' });
  });

  test.each([
    ['expired', drop],
    ['dead', dead],
  ])('is over once: a second identical call says that it is %s, without a write', async (kind, how) => {
    const deliveries = await late('a', { late: how });
    expect(await p.expire(deliveries, { nowMs: LATE })).toEqual([kind]);
    const again = () => p.withoutWrite(() => p.expire(deliveries, { nowMs: LATE }));
    expect(await again()).toEqual([`over ${kind}`]);
    await p.redis.del(p.keys.dead);
    expect(await again()).toEqual([kind === 'dead' ? 'lost' : 'over expired']);
  });

  test('is lost to a second call where it ended otherwise, or nothing is known of it', async () => {
    const buried = await p.running('a');
    await p.bury(buried);
    const deliveries = await late('b');
    await p.expire(deliveries, { nowMs: LATE, windowMs: 0 });
    const both = [...deliveries, { ...deliveries[0], ...buried, dueMs: T0 }] as readonly Delivery[];
    expect(await p.withoutWrite(() => p.expire(both, { nowMs: LATE }))).toEqual(['lost', 'lost']);
  });

  test('says expired to the call that scheduled it', async () => {
    await p.expire(await late('a'), { nowMs: LATE });
    expect(await p.schedule('a', { late: drop })).toEqual({ kind: 'already', over: 'expired' });
  });
});

/** How a job comes back that was not done when it left: what is late at its next start is its expiry, which stays. */
const COMES_BACK: readonly (readonly [way: string, leave: (claim: Claim) => Promise<unknown>])[] = [
  ['fails and is retried', (claim) => p.retry(claim)],
  ['is deferred', (claim) => p.defer(claim, { why: '{"t":1,"k":"defer"}' })],
  ['is given back by its worker', (claim) => p.defer(claim, { delayMs: 0 })],
  ['is taken over from a dead worker', async () => undefined],
];
const WAYS_AND_POLICIES = COMES_BACK.flatMap(([way, leave]) =>
  (['drop', 'dead'] as const).map((onLate) => [way, onLate, leave] as const),
);

describe('a job whose next start comes after its expiry', () => {
  test.each(WAYS_AND_POLICIES)(
    'and that %s waits for that start and ends then, by onLate: %s',
    async (_, onLate, leave) => {
      const expiresAtMs = T0 + 500;
      const nowMs = T0 + 1000;
      await p.schedule('a', { late: { expiresAtMs, onLate } });
      await leave(only(await p.run()));
      expect(await p.await('j:a')).toMatchObject([{ kind: 'waits' }]);
      const taken = await p.reclaim('w1');
      const deliveries = taken.deliveries.length > 0 ? taken.deliveries : await p.deliver({ consumer: 'w2', nowMs });
      expect(await p.withoutWrite(() => p.start(deliveries, { consumer: 'w2', nowMs }))).toEqual([{ kind: 'late' }]);
      const ends = onLate === 'dead' ? 'dead' : 'expired';
      expect(await p.expire(deliveries, { consumer: 'w2', nowMs })).toEqual([ends]);
      expect(await p.await('j:a')).toMatchObject([{ kind: 'over', over: ends }]);
      const letters = await deadLetters(p.redis, p.ref, { limit: 10 });
      expect(letters.map(({ id, reason }) => [id, reason])).toEqual(onLate === 'dead' ? [['a', 'expired']] : []);
      expect(await p.picture()).toMatchObject({ jobs: { 'j:a': `tombstone ${ends}` }, done: { 'j:a': nowMs } });
    },
  );

  test('is given back unread, and ends by onLate as well', async () => {
    await p.schedule('a', { late: { expiresAtMs: T0 + 500, onLate: 'dead' } });
    await p.release(await p.deliver());
    const deliveries = await p.deliver();
    expect(await p.start(deliveries, { nowMs: T0 + 501 })).toEqual([{ kind: 'late' }]);
    expect(await p.expire(deliveries, { nowMs: T0 + 501 })).toEqual(['dead']);
  });
});

describe('a compensation job of a late job that was started before', () => {
  const compensation = { member: 'j:undo', record: item('undo').record };
  const withCompensation = (deliveries: readonly Delivery[]) => deliveries.map((one) => ({ ...one, compensation }));

  test('is scheduled at once, in the same step', async () => {
    expect(await p.expire(withCompensation(await late('a')), { nowMs: LATE })).toEqual(['expired']);
    expect(await p.picture()).toEqual({
      scheduled: { 'j:undo': LATE },
      jobs: { 'j:a': 'tombstone expired', 'j:undo': 'record' },
      done: { 'j:a': LATE },
    });
    expect([await p.count('scheduled'), await p.count('expired')]).toEqual([2, 1]);
  });

  test('is there once, and one that is there already stays as it is', async () => {
    await p.schedule('undo', { dueMs: T0 + 99_000 });
    const deliveries = withCompensation(await late('a'));
    await p.expire(deliveries, { nowMs: LATE });
    expect(await p.withoutWrite(() => p.expire(deliveries, { nowMs: LATE }))).toEqual(['over expired']);
    expect((await p.picture()).scheduled).toEqual({ 'j:undo': T0 + 99_000 });
  });

  test('does not come when the job is kept', async () => {
    await p.schedule('a', { late: drop });
    const deliveries = withCompensation(await p.deliver());
    expect(await p.withoutWrite(() => p.expire(deliveries, { nowMs: LATE - 1 }))).toEqual(['kept']);
  });
});

describe('is kept without a write', () => {
  test('when the job is not late', async () => {
    await p.schedule('a', { late: drop });
    const deliveries = await p.deliver();
    expect(await p.withoutWrite(() => p.expire(deliveries, { nowMs: LATE - 1 }))).toEqual(['kept']);
  });

  test('when the job has no expiry, or runs all the same', async () => {
    await p.scheduleAll([item('a'), item('b', { late: { maxLatenessMs: 1, onLate: 'run' } })]);
    const deliveries = await p.deliver();
    expect(await p.withoutWrite(() => p.expire(deliveries, { nowMs: LATE }))).toEqual(['kept', 'kept']);
  });

  test('when the job was started', async () => {
    await p.schedule('a', { late: drop });
    const deliveries = await p.deliver();
    await p.start(deliveries);
    expect(await p.withoutWrite(() => p.expire(deliveries, { nowMs: LATE }))).toEqual(['kept']);
  });

  test('when the job was cancelled meanwhile', async () => {
    const deliveries = await late('a');
    await p.cancel('j:a');
    expect(await p.withoutWrite(() => p.expire(deliveries, { nowMs: LATE }))).toEqual(['kept']);
  });

  test('when the job was replaced meanwhile: its new life is in scheduled', async () => {
    const deliveries = await late('a');
    await p.schedule('a', { mode: 'replace', dueMs: T0 + 60_000, late: drop, data: 'new' });
    expect(await p.withoutWrite(() => p.expire(deliveries, { nowMs: LATE }))).toEqual(['kept']);
    expect(await p.start(deliveries, { nowMs: LATE })).toEqual([{ kind: 'dropped' }]);
    expect(await p.run({ nowMs: T0 + 60_000 })).toHaveLength(1);
  });

  test('when another consumer holds the entry', async () => {
    const deliveries = await late('a');
    expect(await p.withoutWrite(() => p.expire(deliveries, { nowMs: LATE, consumer: 'w2' }))).toEqual(['lost']);
  });
});

describe('jobs that no worker has', () => {
  const asLeader = { consumer: '', nowMs: LATE };
  const waiting = (id: string): Delivery => ({ entry: '' as EntryId, member: `j:${id}`, dueMs: T0 });
  const found = async (nowMs = LATE, limit = 200) => {
    const jobs: Delivery[] = [];
    let looked = 0;
    for (let cursor: string | undefined = ''; cursor !== undefined; ) {
      const slice: Awaited<ReturnType<typeof lapsed>> = await p.withoutWrite(() =>
        lapsed(p.redis, p.ref, { cursor: cursor ?? '', nowMs, limit }),
      );
      jobs.push(...slice.jobs);
      looked += slice.looked;
      cursor = slice.cursor;
    }
    return { jobs, looked };
  };

  test('are found a slice at a time where they are late: due and scheduled, and ready and read by nobody', async () => {
    for (const id of ['a', 'r1', 'r2', 'r3']) await p.schedule(id, { late: drop });
    await p.promote();
    await p.read('w1', 1);
    for (const id of ['s1', 's2', 's3']) await p.schedule(id, { late: drop });
    await p.schedule('plain');
    await p.schedule('runs', { late: { maxLatenessMs: 1000, onLate: 'run' } });
    await p.schedule('later', { dueMs: T0 + 99_000, late: drop });
    for (const limit of [1, 2, 3, 200]) {
      const { jobs, looked } = await found(LATE, limit);
      expect(jobs.map(({ member }) => member)).toEqual(['j:s1', 'j:s2', 'j:s3', 'j:r1', 'j:r2', 'j:r3']);
      expect(jobs.map(({ entry }) => entry !== '')).toEqual([false, false, false, true, true, true]);
      expect(looked).toBe(8);
    }
    expect((await found(LATE - 1)).jobs).toEqual([]);
  });

  test('end as a start would have ended them, once, wherever they are', async () => {
    await p.schedule('r', { late: dead });
    await p.promote();
    await p.schedule('s', { late: drop });
    const { jobs } = await found();
    expect(await p.expire(jobs, asLeader)).toEqual(['expired', 'dead']);
    expect(await p.picture()).toEqual({
      jobs: { 'j:r': 'tombstone dead', 'j:s': 'tombstone expired' },
      dead: ['j:r: expired'],
      done: { 'j:r': LATE, 'j:s': LATE },
    });
    expect([await p.count('expired'), await p.count('dead')]).toEqual([1, 1]);
    expect(await p.withoutWrite(() => p.expire(jobs, asLeader))).toEqual(['over expired', 'over dead']);
    expect((await found()).jobs).toEqual([]);
    for (const [id, late, windowMs] of [['d', dead, WINDOW_MS] as const, ['e', drop, 0] as const]) {
      await p.schedule(id, { late });
      expect(await p.expire([waiting(id)], { ...asLeader, windowMs })).toEqual([id === 'd' ? 'dead' : 'expired']);
    }
    expect((await p.picture()).scheduled).toBeUndefined();
  });

  test('are kept where they are not late, are due later, have had a start, or a worker has them', async () => {
    await p.schedule('a', { late: drop });
    expect(await p.withoutWrite(() => p.expire([waiting('a')], { ...asLeader, nowMs: LATE - 1 }))).toEqual(['kept']);
    const deliveries = await p.deliver();
    expect(await p.withoutWrite(() => p.expire(deliveries, asLeader))).toEqual(['lost']);
    expect(await p.withoutWrite(() => p.expire([waiting('a')], asLeader))).toEqual(['lost']);
    await p.schedule('b', { dueMs: LATE + 1, late: { expiresAtMs: T0 + 5, onLate: 'drop' } });
    expect(await p.withoutWrite(() => p.expire([waiting('b')], asLeader))).toEqual(['lost']);
    await p.retry(only(await p.claim(deliveries)), { delayMs: 0, error: failure('boom') });
    expect((await found(LATE + 9000)).jobs.map(({ member }) => member)).not.toContain('j:a');
    expect(await p.withoutWrite(() => p.expire([waiting('a')], { ...asLeader, nowMs: LATE + 9000 }))).toEqual(['kept']);
  });

  test('end once also where the call is cut off before each of its writes, and made again', async () => {
    for (const [nth, late] of [drop, dead].entries()) {
      for (let allowed = 0, site: string | undefined = ''; site !== undefined; allowed += 1) {
        const id = `c${nth}-${allowed}`;
        await p.schedule(id, { late });
        const call = () => p.expire([waiting(id)], asLeader);
        site = await cutOff(p.redis, { verb: 'expire', lua: luaOf('expire'), allowed, call });
        expect(only(await call())).toMatch(late === drop ? /expired$/ : /dead$/);
        expect(await p.redis.zscore(p.keys.scheduled, `j:${id}`)).toBeNull();
        expect((await p.picture()).jobs).toMatchObject({
          [`j:${id}`]: `tombstone ${late === drop ? 'expired' : 'dead'}`,
        });
      }
    }
    const letters = (await p.picture()).dead ?? [];
    expect(new Set(letters).size).toBe(letters.length);
    // A count that was cut off is short by one.
    await p.redis.flushall();
  });

  test('that a call has ended and not taken out of scheduled leave it with the same call again', async () => {
    await p.schedule('a', { late: drop });
    expect(await p.expire([waiting('a')], asLeader)).toEqual(['expired']);
    await p.redis.zadd(p.keys.scheduled, T0, 'j:a');
    expect(await p.expire([waiting('a')], asLeader)).toEqual(['over expired']);
    expect((await p.picture()).scheduled).toBeUndefined();
  });
});
