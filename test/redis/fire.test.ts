/** `fire`: an instant becomes one job, whoever fires it, however often, and wherever a call is cut off. */
import { describe, expect, test } from 'vitest';
import { encodeBody, encodeRecord } from '../../src/job/codec.ts';
import {
  arm,
  disarm,
  type FireCall,
  fire,
  firedOf,
  lookedAt,
  type ScheduleFire,
  type ScheduleFired,
} from '../../src/redis/scripts/schedules.ts';
import { fireMember } from '../../src/schedule/schedule.ts';
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
async function fireHours(
  hours: readonly number[],
  { term, nowMs, ...more }: Partial<ScheduleFire> & Partial<Pick<FireCall, 'term' | 'nowMs'>> = {},
) {
  const reachedMs = T0 + Math.max(0, ...hours) * HOUR_MS;
  const schedule: ScheduleFire = {
    name: NAME,
    state: await stateOf(),
    reachedMs,
    lookMs: reachedMs + HOUR_MS,
    overlap: 'allow',
    items: hours.map(itemOf),
    ...more,
  };
  return fire(p.redis, p.ref, { term: term ?? (await p.lead()), schedules: [schedule], nowMs: nowMs ?? reachedMs });
}

const armed = () => arm(p.redis, p.ref, NAME);
const outcomesOf = (one: ScheduleFired | undefined) => (one?.kind === 'fired' ? one.outcomes : one?.kind);
/** Of a call for one schedule. */
const outcomes = async (reply: ReturnType<typeof fireHours>) => {
  const answer = await reply;
  return answer.kind === 'fenced' ? answer.kind : outcomesOf(only(answer.schedules));
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
  const postponed = async (state: string, term?: string) =>
    outcomes(
      fireHours([], { state, reachedMs: undefined, lookMs: T0 + HOUR_MS, nowMs: T0, term: term ?? (await p.lead()) }),
    );

  test('is set with the jobs', async () => {
    await armed();
    await fireHours([1]);
    expect(await lookedAt(p.redis, p.ref, { limit: 10, nowMs: T0 + HOUR_MS })).toMatchObject({
      names: [],
      nextMs: T0 + 2 * HOUR_MS,
    });
  });

  test('alone is set, unless it was fired or armed since, and leaves the state as it is', async () => {
    await armed();
    const state = await stateOf();
    expect(await postponed(state)).toBe('postponed');
    expect(await postponed(state)).toBe('postponed');
    expect(await stateOf()).toBe(state);
    expect((await lookedAt(p.redis, p.ref, { limit: 1, nowMs: T0 })).nextMs).toBe(T0 + HOUR_MS);
    await armed();
    expect(await p.withoutWrite(() => postponed(state))).toBe('passed');
    expect(await p.withoutWrite(() => postponed(state, 'other:1:60000'))).toBe('fenced');
  });

  test('alone is set for a state that nobody can read, whatever the caller read; a fire of one changes nothing', async () => {
    await armed();
    await p.redis.hset(p.keys.fired, NAME, 'nonsense');
    expect(await postponed('other nonsense')).toBe('postponed');
    expect(await p.redis.zscore(p.keys.fires, NAME)).toBe(String(T0 + HOUR_MS));
    expect(await outcomes(p.withoutWrite(() => fireHours([1], { state: 'nonsense' })))).toBe('passed');
    await p.redis.hdel(p.keys.fired, NAME);
    expect(await p.withoutWrite(() => postponed('other nonsense'))).toBe('passed');
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

const tagged = (one: ReturnType<typeof itemOf>) => ({ ...one, record: one.record.replace('|', ';t=x|') });

test('instants that make no job are counted as skipped, once', async () => {
  await arm(p.redis, p.ref, NAME);
  const state = await stateOf();
  expect(await fireHours([1], { state, missed: 15 })).toMatchObject({
    schedules: [{ kind: 'fired', outcomes: ['ok'] }],
  });
  expect(await fireHours([1], { state, missed: 15 })).toMatchObject({ schedules: [{ kind: 'passed' }] });
  await fireHours([2]);
  expect((await firedOf(p.redis, p.ref, [NAME]))[0]).toMatchObject({ runs: 2, skipped: 15 });
});

test('a call that is cut off before any of its writes, and made again, makes one job per instant', async () => {
  const sites = new Set<string>();
  await armed();
  await p.promote();
  // In a queue whose bytes are counted.
  await p.redis.hset(p.keys.meta, { quota: '0 1000000', held: '0 0' });
  const restore = await savePoint(p.redis);
  const state = await stateOf();
  for (let allowed = 0; ; allowed += 1) {
    const items = [1, 2].map((hour) => tagged(itemOf(hour)));
    const call = () => fireHours([1, 2], { state, overlap: 'queue', nowMs: T0 + 2 * HOUR_MS, items });
    const site = await cutOff(p.redis, { verb: 'fire', lua: luaOf('fire'), allowed, call });
    if (site === undefined) break;
    sites.add(site);
    await call();
    expect(await scheduled()).toEqual([member(1)]);
    expect(only(await firedOf(p.redis, p.ref, [NAME]))).toMatchObject({ reachedMs: T0 + 2 * HOUR_MS });
    await restore();
  }
  const writes = writesOf('fire').filter((site) => !site.endsWith('ZREM'));
  expect([...sites].sort()).toEqual(expect.arrayContaining(writes));
});

describe('a call for several schedules', () => {
  const NAMES = ['a', 'b', 'c'];
  const memberOf = (name: string, hour: number) => fireMember(name, T0 + hour * HOUR_MS);
  const statesOf = async () => (await firedOf(p.redis, p.ref, NAMES)).map((fired) => fired?.text ?? '');

  const armAll = async () => {
    for (const name of NAMES) await arm(p.redis, p.ref, name);
    return statesOf();
  };

  /** The instants of these hours for each of them, at the last of them. */
  async function fireAll(states: readonly string[], hours: readonly number[], more: Partial<ScheduleFire> = {}) {
    const reachedMs = T0 + Math.max(...hours) * HOUR_MS;
    const schedules = NAMES.map((name, at) => ({
      name,
      state: states[at] ?? '',
      reachedMs,
      lookMs: reachedMs + HOUR_MS,
      overlap: 'allow' as const,
      items: hours.map((hour) => ({ ...itemOf(hour), member: memberOf(name, hour) })),
      ...more,
    }));
    const reply = await fire(p.redis, p.ref, { term: await p.lead(), schedules, nowMs: reachedMs });
    return reply.kind === 'fenced' ? reply.kind : reply.schedules.map((one) => outcomesOf(one));
  }

  test('fires each, counts all of their jobs, and sets the look of each', async () => {
    expect(await fireAll(await armAll(), [1, 2])).toEqual(NAMES.map(() => ['ok', 'ok']));
    expect(await scheduled()).toEqual([1, 2].flatMap((hour) => NAMES.map((name) => memberOf(name, hour))));
    expect(await p.redis.hget(p.keys.meta, 'n.scheduled')).toBe('6');
    expect(await firedOf(p.redis, p.ref, NAMES)).toMatchObject(
      NAMES.map((name) => ({ runs: 2, last: memberOf(name, 2) })),
    );
    expect(await p.redis.zrange(p.keys.fires, '0', '-1', 'WITHSCORES')).toEqual(
      NAMES.flatMap((name) => [name, String(T0 + 3 * HOUR_MS)]),
    );
  });

  test('that is sent again changes nothing', async () => {
    const states = await armAll();
    await fireAll(states, [1]);
    expect(await p.withoutWrite(() => fireAll(states, [1]))).toEqual(['passed', 'passed', 'passed']);
  });

  test('that names a schedule twice, or a job, fires it once', async () => {
    await armAll();
    const [state = ''] = await statesOf();
    const one = { name: 'a', state, reachedMs: T0, lookMs: T0 + HOUR_MS, overlap: 'allow' as const };
    const items = [itemOf(0), itemOf(0)];
    const schedules = [
      { ...one, items },
      { ...one, items: [itemOf(-1)] },
    ];
    const reply = await fire(p.redis, p.ref, { term: await p.lead(), schedules, nowMs: T0 });
    expect(reply).toMatchObject({ schedules: [{ outcomes: ['ok', 'already'] }, { kind: 'passed' }] });
    expect(await scheduled()).toEqual([member(0)]);
    expect(await p.redis.hget(p.keys.meta, 'n.scheduled')).toBe('1');
  });

  test('leaves alone the one that was put, paused or resumed since, and the one that was removed', async () => {
    const states = await armAll();
    await arm(p.redis, p.ref, 'a');
    await disarm(p.redis, p.ref, 'c');
    expect(await fireAll(states, [1])).toEqual(['passed', ['ok'], 'passed']);
    expect(await scheduled()).toEqual([memberOf('b', 1)]);
    expect(await p.redis.zscore(p.keys.fires, 'a')).toBe('0');
    expect(await p.redis.zscore(p.keys.fires, 'c')).toBeNull();
    expect(await p.redis.hexists(p.keys.fired, 'c')).toBe(0);
  });

  test('judges each by its own policy and its own job before', async () => {
    await fireAll(await armAll(), [1]);
    await p.redis.zrem(p.keys.scheduled, memberOf('b', 1));
    await p.redis.hdel(p.keys.jobs, memberOf('b', 1));
    await p.redis.hincrby(p.keys.meta, 'n.done', 1);
    expect(await fireAll(await statesOf(), [2], { overlap: 'skip' })).toEqual([['skipped'], ['ok'], ['skipped']]);
    expect((await firedOf(p.redis, p.ref, NAMES)).map((fired) => fired?.skipped)).toEqual([1, 0, 1]);
  });

  test('under a term that is over fires none', async () => {
    const states = await armAll();
    await p.lead();
    const schedule = { name: 'a', state: states[0] ?? '', reachedMs: T0, lookMs: T0, overlap: 'allow' as const };
    const call = { term: 'other:1:60000', schedules: [{ ...schedule, items: [itemOf(0)] }], nowMs: T0 };
    expect((await p.withoutWrite(() => fire(p.redis, p.ref, call))).kind).toBe('fenced');
  });

  test('that is cut off before any of its writes, and made again, makes one job per instant', async () => {
    const cuts = new Set<string>();
    const states = await armAll();
    await p.promote();
    const restore = await savePoint(p.redis);
    let writes = 0;
    for (; ; writes += 1) {
      const call = () => fireAll(states, [1, 2]);
      const site = await cutOff(p.redis, { verb: 'fire', lua: luaOf('fire'), allowed: writes, call });
      if (site === undefined) break;
      cuts.add(site);
      await call();
      expect(await scheduled()).toEqual([1, 2].flatMap((hour) => NAMES.map((name) => memberOf(name, hour))));
      expect(await p.redis.hlen(p.keys.jobs)).toBe(6);
      // Whose look was not set is due still, and is looked at again.
      expect((await p.redis.zrange(p.keys.fires, '0', '-1')).toSorted()).toEqual(NAMES);
      expect((await firedOf(p.redis, p.ref, NAMES)).map((fired) => fired?.reachedMs)).toEqual(
        NAMES.map(() => T0 + 2 * HOUR_MS),
      );
      await restore();
    }
    // Jobs in two writes and their count, states, looks, and the nudge in two, however many schedules there are.
    expect(writes).toBe(7);
    expect(cuts.size).toBe(7);
  });
});
