/** `fire`: an instant becomes one job, whoever fires it, however often, and wherever a call is cut off. */
import { describe, expect, test } from 'vitest';
import { encodeBody, encodeRecord } from '../../src/core/codec.ts';
import { fireMember, type OverlapPolicy } from '../../src/core/recurring/schedule.ts';
import {
  arm,
  disarm,
  type FireCall,
  fire,
  firedOf,
  lookedAt,
  postpone,
} from '../../src/redis/transitions/schedules.ts';
import { cutOff, luaOf, savePoint, writesOf } from '../support/model-cut.ts';
import { only, T0, usePartition } from '../support/partition.ts';

const p = usePartition();
const NAME = 'nightly';
const HOUR_MS = 3_600_000;
const member = (hour: number) => fireMember(NAME, T0 + hour * HOUR_MS);

function itemOf(hour: number) {
  const dueMs = T0 + hour * HOUR_MS;
  return { member: member(hour), record: encodeRecord(dueMs, encodeBody({ name: 'default', data: hour })), dueMs };
}

const stateOf = async () => (await firedOf(p.redis, p.ref, [NAME]))[0]?.text ?? '';

/** Fires the instants of these hours, at the last of them. */
async function fireHours(hours: readonly number[], more: Partial<FireCall> & { overlap?: OverlapPolicy } = {}) {
  const reachedMs = T0 + Math.max(0, ...hours) * HOUR_MS;
  return fire(p.redis, p.ref, {
    ...{ term: await p.lead(), name: NAME, state: await stateOf(), reachedMs, lookMs: reachedMs + HOUR_MS },
    ...{ overlap: 'allow', items: hours.map(itemOf), nowMs: reachedMs },
    ...more,
  });
}

const armed = () => arm(p.redis, p.ref, NAME);
const outcomes = async (reply: ReturnType<typeof fireHours>) => {
  const answer = await reply;
  return answer.kind === 'fired' ? answer.outcomes : answer.kind;
};
const scheduled = () => p.redis.zrange(p.keys.scheduled, '0', '-1');

describe('arming', () => {
  test('puts a schedule among those that are looked at, at once, and twice is the same', async () => {
    expect(await armed()).toBe('armed');
    expect(await armed()).toBe('again');
    expect(await lookedAt(p.redis, p.ref, { limit: 10, nowMs: T0 })).toMatchObject({
      names: [NAME],
      nextMs: undefined,
    });
  });

  test('keeps how far it was fired', async () => {
    await armed();
    await fireHours([1]);
    const { text: _, ...before } = only(await firedOf(p.redis, p.ref, [NAME])) ?? {};
    await armed();
    expect(only(await firedOf(p.redis, p.ref, [NAME]))).toMatchObject(before);
  });

  test('makes void what a leader found out before: it neither ends nor forgets what was put since', async () => {
    await armed();
    const state = await stateOf();
    await armed();
    expect(await outcomes(fireHours([], { state, lookMs: undefined }))).toBe('passed');
    expect(await disarm(p.redis, p.ref, NAME, state)).toBe('changed');
    expect((await lookedAt(p.redis, p.ref, { limit: 10, nowMs: T0 })).names).toEqual([NAME]);
  });

  test('ends the state with its time, later than that of the one before', async () => {
    await armed();
    const [seconds] = await p.redis.time();
    const atMs = Number((await stateOf()).split(' ').at(-1));
    expect(Math.abs(atMs - Number(seconds) * 1000)).toBeLessThan(60_000);
    const aheadMs = atMs + 24 * HOUR_MS;
    await p.redis.hset(p.keys.fired, NAME, `0 0 0 - - ${aheadMs}`);
    await armed();
    expect(await stateOf()).toBe(`0 0 0 - - ${aheadMs + 1}`);
  });

  test('says that the queue was resized', async () => {
    await p.redis.hset(p.keys.meta, 'generation', '1');
    expect(await armed()).toBe('moved');
    expect(await p.redis.exists(p.keys.fires)).toBe(0);
  });

  test('disarming forgets it, unless it fired since it was read', async () => {
    await armed();
    const before = await stateOf();
    await fireHours([1]);
    expect(await disarm(p.redis, p.ref, NAME, before)).toBe('changed');
    expect(await disarm(p.redis, p.ref, NAME)).toBe('ok');
    expect(await disarm(p.redis, p.ref, NAME)).toBe('unknown');
    expect(await scheduled()).toEqual([member(1)]);
  });
});

describe('an instant', () => {
  test('becomes one job, and the call that is sent again makes none', async () => {
    await armed();
    const state = await stateOf();
    expect(await outcomes(fireHours([1, 2], { state }))).toEqual(['ok', 'ok']);
    expect(await outcomes(p.withoutWrite(() => fireHours([1, 2], { state })))).toBe('passed');
    expect(await scheduled()).toEqual([member(1), member(2)]);
    expect(only(await firedOf(p.redis, p.ref, [NAME]))).toMatchObject({ runs: 2, reachedMs: T0 + 2 * HOUR_MS });
  });

  test('that is known already, live or over, is not scheduled again', async () => {
    await armed();
    await fireHours([1]);
    expect(await outcomes(fireHours([1, 2]))).toEqual(['already', 'ok']);
    await p.redis.hset(p.keys.jobs, member(2), `.d${(T0 + 2 * HOUR_MS).toString(36)} ${'0'.repeat(16)} 1 1 -`);
    await p.redis.zrem(p.keys.scheduled, member(2));
    await p.redis.zadd(p.keys.done, T0, member(2));
    expect(await outcomes(fireHours([2, 3]))).toEqual(['already', 'ok']);
    await p.redis.hincrby(p.keys.meta, 'n.done', 1);
  });

  test('that is still to come by the clock of Redis is refused, whatever the daemon believes', async () => {
    await armed();
    await p.lead();
    expect(await outcomes(p.withoutWrite(() => fireHours([5], { nowMs: T0 })))).toBe('early');
  });

  test('is not in the way when the clock of Redis went back: nothing fires, and the next look is set', async () => {
    await armed();
    await fireHours([5]);
    await armed();
    const back = { reachedMs: T0 + 5 * HOUR_MS, lookMs: T0 + 6 * HOUR_MS, nowMs: T0 };
    expect(await outcomes(fireHours([], back))).toEqual([]);
    expect(await lookedAt(p.redis, p.ref, { limit: 10, nowMs: T0 })).toMatchObject({ nextMs: T0 + 6 * HOUR_MS });
  });

  test('of a schedule that is not armed, or under a term that is over, is refused', async () => {
    expect(await outcomes(fireHours([1]))).toBe('passed');
    await armed();
    expect(await outcomes(p.withoutWrite(() => fireHours([1], { term: 'other:1:60000' })))).toBe('fenced');
  });

  test('nudges the mover like any other job', async () => {
    await armed();
    await p.promote();
    await fireHours([1]);
    expect(await p.redis.hget(p.keys.meta, 'wake')).toBe(String(T0 + HOUR_MS));
  });
});

describe('the next look', () => {
  test('is set with the jobs', async () => {
    await armed();
    await fireHours([1]);
    expect(await lookedAt(p.redis, p.ref, { limit: 10, nowMs: T0 + HOUR_MS })).toMatchObject({
      ...{ names: [], nextMs: T0 + 2 * HOUR_MS },
    });
  });

  test('alone is set, unless it was fired or armed since, and leaves the state as it is', async () => {
    await armed();
    const call = { term: await p.lead(), name: NAME, state: await stateOf(), lookMs: T0 + HOUR_MS, nowMs: T0 };
    expect(await postpone(p.redis, p.ref, call)).toBe('postponed');
    expect(await postpone(p.redis, p.ref, call)).toBe('postponed');
    expect(await stateOf()).toBe(call.state);
    expect((await lookedAt(p.redis, p.ref, { limit: 1, nowMs: T0 })).nextMs).toBe(T0 + HOUR_MS);
    await armed();
    expect(await p.withoutWrite(() => postpone(p.redis, p.ref, call))).toBe('passed');
    expect(await p.withoutWrite(() => postpone(p.redis, p.ref, { ...call, term: 'other:1:60000' }))).toBe('fenced');
  });

  test('alone is set for a state that nobody can read, whatever the caller read; a fire of one changes nothing', async () => {
    await armed();
    await p.redis.hset(p.keys.fired, NAME, 'nonsense');
    const call = { term: await p.lead(), name: NAME, state: 'other nonsense', lookMs: T0 + HOUR_MS, nowMs: T0 };
    expect(await postpone(p.redis, p.ref, call)).toBe('postponed');
    expect(await p.redis.zscore(p.keys.fires, NAME)).toBe(String(T0 + HOUR_MS));
    expect(await outcomes(p.withoutWrite(() => fireHours([1], { state: 'nonsense' })))).toBe('passed');
    await p.redis.hdel(p.keys.fired, NAME);
    expect(await p.withoutWrite(() => postpone(p.redis, p.ref, call))).toBe('passed');
  });

  test('never comes after the last instant, nor after the last of the runs that it may have', async () => {
    await armed();
    await fireHours([1], { lookMs: undefined });
    expect(await p.redis.zcard(p.keys.fires)).toBe(0);
    await armed();
    expect(await outcomes(fireHours([2, 3], { maxRuns: 2 }))).toEqual(['ok', 'ended']);
    expect(await p.redis.zcard(p.keys.fires)).toBe(0);
  });
});

describe('while the job before is not over', () => {
  const finish = async (hour: number) => {
    await p.redis.zrem(p.keys.scheduled, member(hour));
    await p.redis.hdel(p.keys.jobs, member(hour));
    await p.redis.hincrby(p.keys.meta, 'n.done', 1);
  };

  test('skip leaves the new one out and counts it', async () => {
    await armed();
    expect(await outcomes(fireHours([1, 2], { overlap: 'skip' }))).toEqual(['ok', 'skipped']);
    await finish(1);
    expect(await outcomes(fireHours([3], { overlap: 'skip' }))).toEqual(['ok']);
    expect(only(await firedOf(p.redis, p.ref, [NAME]))).toMatchObject({ runs: 2, skipped: 1 });
  });

  test('queue lets one wait, and looks for it every half second', async () => {
    await armed();
    expect(await outcomes(fireHours([1, 2, 3], { overlap: 'queue' }))).toEqual(['ok', 'waiting', 'skipped']);
    expect(only(await firedOf(p.redis, p.ref, [NAME]))?.waiting).toBe(member(2));
    const nowMs = T0 + 3 * HOUR_MS;
    expect((await lookedAt(p.redis, p.ref, { limit: 1, nowMs })).nextMs).toBe(nowMs + 500);
    expect(await outcomes(fireHours([2], { overlap: 'queue', reachedMs: nowMs, nowMs }))).toEqual(['waiting']);
    await finish(1);
    expect(await outcomes(fireHours([2], { overlap: 'queue', reachedMs: nowMs, nowMs }))).toEqual(['ok']);
    expect(only(await firedOf(p.redis, p.ref, [NAME]))).toMatchObject({ waiting: undefined, runs: 2, skipped: 1 });
  });

  test('a schedule that is paused while one waits is looked at no more, and goes on when it is armed', async () => {
    await armed();
    await fireHours([1, 2], { overlap: 'queue' });
    await fireHours([], { overlap: 'queue', lookMs: undefined, reachedMs: 0, nowMs: T0 + 2 * HOUR_MS });
    expect(await p.redis.zcard(p.keys.fires)).toBe(0);
    await armed();
    await finish(1);
    expect(await outcomes(fireHours([2], { overlap: 'queue' }))).toEqual(['ok']);
  });

  test('replace lets the newest wait', async () => {
    await armed();
    expect(await outcomes(fireHours([1, 2, 3], { overlap: 'replace' }))).toEqual(['ok', 'waiting', 'waiting']);
    expect(only(await firedOf(p.redis, p.ref, [NAME]))).toMatchObject({ waiting: member(3), skipped: 1 });
  });
});

test('a call that is cut off before any of its writes, and made again, makes one job per instant', async () => {
  const sites = new Set<string>();
  await armed();
  await p.promote();
  const restore = await savePoint(p.redis);
  const state = await stateOf();
  for (let allowed = 0; ; allowed += 1) {
    const call = () => fireHours([1, 2], { state, overlap: 'queue', nowMs: T0 + 2 * HOUR_MS });
    const site = await cutOff(p.redis, { verb: 'fire', lua: luaOf('fire'), allowed, call });
    if (site === undefined) break;
    sites.add(site);
    await call();
    expect(await scheduled()).toEqual([member(1)]);
    expect(only(await firedOf(p.redis, p.ref, [NAME]))).toMatchObject({ reachedMs: T0 + 2 * HOUR_MS });
    await restore();
  }
  // The first ZADD is that of a call which only sets the look, and nothing else.
  const writes = writesOf('fire').filter((site) => !site.endsWith('ZREM'));
  const look = writes.find((site) => site.endsWith('ZADD'));
  expect([...sites].sort()).toEqual(expect.arrayContaining(writes.filter((site) => site !== look)));
});
