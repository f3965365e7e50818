/**
 * The enqueuer on a real Redis, pass by pass: definitions that are missing, unreadable, paused or moved, jobs that overlap,
 * a full Redis, and replies that get lost. Its clock only moves when told to; the time of Redis is given.
 */
import { describe, expect, test, vi } from 'vitest';
import { encodeRecord, idOf } from '../../../src/job/codec.ts';
import { createEmitter, type Events } from '../../../src/job/events.ts';
import { Enqueuer } from '../../../src/mover/schedules/enqueuer.ts';
import { close, openCommands, type Redis, whenReady } from '../../../src/redis/connection/connect.ts';
import { controlKeys } from '../../../src/redis/keys.ts';
import { arm, disarm, fire, firedOf, lookedAt } from '../../../src/redis/scripts/schedules.ts';
import type { ScheduleInput } from '../../../src/schedule/input.ts';
import { successor } from '../../../src/schedule/progress.ts';
import { firedBy, fireMember } from '../../../src/schedule/schedule.ts';
import { defineSchedule, encodeDefinition } from '../../../src/schedule/text.ts';
import { openLossyLine } from '../../support/lossy-line.ts';
import { handClock } from '../../support/mover-line.ts';
import { only, T0, usePartition } from '../../support/partition.ts';

const p = usePartition();
const NAME = 'hourly';
const NAMESPACE = 't';
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** A full hour, which every schedule here has just handled. */
const START = Math.floor(T0 / HOUR_MS) * HOUR_MS;
const member = (hour: number) => fireMember(NAME, START + hour * HOUR_MS);

const textOf = (input: Partial<ScheduleInput> = {}) =>
  encodeDefinition(defineSchedule(NAME, { queue: 'q', every: '1h', ...input }, { sinceMs: START, source: 'call' }));

async function put(input: Partial<ScheduleInput> = {}): Promise<void> {
  await p.redis.hset(controlKeys(NAMESPACE).schedules, NAME, textOf(input));
  await arm(p.redis, p.ref, NAME);
}

/** A enqueuer that leads, and what it said. */
async function open(redis: Redis = p.redis, asked: () => void = () => undefined, clock = handClock()) {
  const term = await p.lead();
  const events = createEmitter();
  const fired: Events['schedule.fired'][] = [];
  const missed: Events['schedule.missed'][] = [];
  const unreadable: Events['schedule.unreadable'][] = [];
  events.on('schedule.fired', (event) => fired.push(event));
  events.on('schedule.missed', (event) => missed.push(event));
  events.on('schedule.unreadable', (event) => unreadable.push(event));
  let nowMs = START;
  const enqueuer = new Enqueuer({
    redis,
    ref: p.ref,
    namespace: NAMESPACE,
    clock,
    events,
    leading: () => ({ term, epoch: 1 }),
    nowMs: () => {
      asked();
      return nowMs;
    },
  });
  return {
    fired,
    missed,
    unreadable,
    now: () => nowMs,
    outcomes: () => fired.splice(0).map(({ outcome }) => outcome),
    /** Lets time pass, and fires all that is due then. */
    async at(hour: number, more = 0): Promise<number> {
      const atMs = START + hour * HOUR_MS + more;
      clock.advance(Math.max(0, atMs - nowMs));
      nowMs = atMs;
      for (;;) {
        const waitMs = await enqueuer.pass();
        if (typeof waitMs !== 'number') throw new Error('this enqueuer leads');
        if (waitMs > 0) return waitMs;
      }
    },
  };
}

const scheduled = () => p.redis.zrange(p.keys.scheduled, '0', '-1');
const stateOf = async () => (await firedOf(p.redis, p.ref, [NAME]))[0];
const isLookedAt = async () => (await p.redis.zscore(p.keys.fires, NAME)) !== null;
/** Everything that is ready or scheduled runs and ends. */
async function finish(nowMs: number): Promise<void> {
  await p.complete(await p.run({ nowMs }), { nowMs });
}

describe('a definition that is not there', () => {
  test('is waited for a minute, and then forgotten', async () => {
    const enqueuer = await open();
    await arm(p.redis, p.ref, NAME);
    expect(await enqueuer.at(0)).toBe(5000);
    await enqueuer.at(0, 59_000);
    expect(await isLookedAt()).toBe(true);
    await enqueuer.at(0, 64_000);
    expect(await isLookedAt()).toBe(false);
    expect(await stateOf()).toBeUndefined();
  });

  test('and comes within the minute costs nothing', async () => {
    const enqueuer = await open();
    await arm(p.redis, p.ref, NAME);
    await enqueuer.at(0);
    await put();
    await enqueuer.at(0, 70_000);
    expect(await isLookedAt()).toBe(true);
    await enqueuer.at(1);
    expect(await scheduled()).toEqual([member(1)]);
  });
});

/** What a call leaves that dies after it has deleted the definition of a schedule that had ended. */
const leave = (name: string) => p.redis.hset(p.keys.fired, name, `${START} 1 0 - - 0`);

test('however often a call dies before it disarms a schedule that is gone, what it fired is forgotten while others fire', async () => {
  const enqueuer = await open();
  let most = 0;
  for (let round = 0; round < 60; round += 1) {
    await leave(`gone${round}`);
    await put();
    await enqueuer.at(0, round * 10_000);
    most = Math.max(most, await p.redis.hlen(p.keys.fired));
  }
  // Found within a minute, six rounds, waited for another, and then forgotten.
  expect(most).toBeLessThanOrEqual(15);
  expect(await isLookedAt()).toBe(true);
});

test('what a thousand calls left that died so goes too, and nothing of what has ended, is paused or cannot be read', async () => {
  const enqueuer = await open();
  const kept = { ended: textOf({ maxRuns: 1 }), paused: textOf({ paused: true }), odd: 'nonsense' };
  await p.redis.hset(controlKeys(NAMESPACE).schedules, { ...kept, moved: textOf({ queue: 'elsewhere' }) });
  for (const name of [...Object.keys(kept), 'moved']) await leave(name);
  for (let at = 0; at < 1000; at += 1) await leave(`gone${at}`);
  for (let round = 0; round < 30; round += 1) await enqueuer.at(0, round * 10_000);
  expect((await p.redis.hkeys(p.keys.fired)).toSorted()).toEqual(Object.keys(kept).toSorted());
  expect([enqueuer.fired, enqueuer.missed, enqueuer.unreadable, await p.redis.zcard(p.keys.fires)]).toEqual([
    [],
    [],
    [],
    0,
  ]);
});

test('a definition that nobody can read is told, looked at again a minute later, and fires once it is repaired', async () => {
  const enqueuer = await open();
  await arm(p.redis, p.ref, NAME);
  await p.redis.hset(controlKeys(NAMESPACE).schedules, NAME, '{"schedule":{"queue":"q","cron":"nonsense"}}');
  await enqueuer.at(0);
  expect(only(enqueuer.unreadable)).toMatchObject({
    schedule: NAME,
    why: expect.stringContaining('cron is "nonsense"'),
  });
  expect((await lookedAt(p.redis, p.ref, { limit: 1, nowMs: START })).nextMs).toBe(START + MINUTE_MS);
  await put();
  await enqueuer.at(1);
  expect(await scheduled()).toEqual([member(1)]);
});

test('a definition that nobody can read is told once, however often it is looked at', async () => {
  const enqueuer = await open();
  await arm(p.redis, p.ref, NAME);
  await p.redis.hset(controlKeys(NAMESPACE).schedules, NAME, 'nonsense');
  for (let minute = 0; minute < 5; minute += 1) await enqueuer.at(0, minute * MINUTE_MS);
  expect(enqueuer.unreadable).toHaveLength(1);
  await p.redis.hset(controlKeys(NAMESPACE).schedules, NAME, 'other nonsense');
  await enqueuer.at(0, 6 * MINUTE_MS);
  expect(enqueuer.unreadable).toHaveLength(2);
});

describe('what is wrong with one schedule does not stop the others', () => {
  const OTHER = 'other';
  const putOther = async () => {
    await p.redis.hset(controlKeys(NAMESPACE).schedules, OTHER, textOf());
    await arm(p.redis, p.ref, OTHER);
  };

  test.each([
    ['of nonsense', 'nonsense'],
    ['of a later version', '2 1000 7 0 - - 1'],
    ['without an end', '1000 7 0 - -'],
    ['with a number that is none', '-1 nan 0 - - 1'],
    ['that was reached after the last of all days', '99999999999999999999 0 0 - - 1'],
    ['that was reached after the year 9999', '253402300800000 0 0 - - 1'],
    ['that waits for no instant', `${START} 0 0 j:some - 1`],
    ['of bytes that are no text', Buffer.from([0xff, 0xfe, 0x20, 0x31])],
    ['that is empty', ''],
    ['of a megabyte', 'x'.repeat(1_000_000)],
  ])('a state %s is told once, kept, and looked at again a minute later', async (_, state) => {
    const enqueuer = await open();
    await put({ catchUp: 'all' });
    await putOther();
    await p.redis.hset(p.keys.fired, NAME, state);
    await enqueuer.at(1);
    await enqueuer.at(2, 1);
    expect(await scheduled()).toEqual([1, 2].map((hour) => fireMember(OTHER, START + hour * HOUR_MS)));
    expect(only(enqueuer.unreadable)).toMatchObject({ schedule: NAME, why: expect.stringContaining('its state is') });
    expect((await p.redis.hgetBuffer(p.keys.fired, NAME))?.equals(Buffer.from(state))).toBe(true);
    expect(Number(await p.redis.zscore(p.keys.fires, NAME))).toBe(enqueuer.now() + MINUTE_MS);
  });

  test('what nobody foresaw, in the work for one of them', async () => {
    const [hand, odd] = [handClock(), [] as string[]];
    const monotonicMs = () => {
      // Asked by the look for schedules that are gone, and then by the look at one without a definition.
      for (const what of odd.splice(0, 1)) if (what !== '') throw new TypeError(what);
      return hand.monotonicMs();
    };
    const enqueuer = await open(p.redis, () => undefined, { ...hand, monotonicMs });
    await arm(p.redis, p.ref, NAME);
    await putOther();
    odd.push('', 'odd');
    await enqueuer.at(1);
    expect(await scheduled()).toEqual([fireMember(OTHER, START + HOUR_MS)]);
    expect(only(enqueuer.unreadable)).toMatchObject({ schedule: NAME, why: 'odd' });
    await p.redis.hset(controlKeys(NAMESPACE).schedules, NAME, textOf());
    await enqueuer.at(1, MINUTE_MS);
    expect(await scheduled()).toEqual([member(1), fireMember(OTHER, START + HOUR_MS)]);
  });

  test('a state that nobody can read stays as it is when its schedule is put again', async () => {
    await put();
    await p.redis.hset(p.keys.fired, NAME, 'nonsense');
    expect(await arm(p.redis, p.ref, NAME)).toBe('unreadable');
    expect(await p.redis.hget(p.keys.fired, NAME)).toBe('nonsense');
  });

  test.each([
    '{"since":0,"schedule":{"queue":"q","every":"1h","tags":{}}}',
    '{"since":0,"schedule":{"queue":"q","every":"1h","calendar":7}}',
    '{"since":0,"schedule":{"queue":"q","every":"1h","catchUp":null,"dst":null,"backoff":3}}',
    '{"since":0,"schedule":{"queue":{},"cron":[],"zone":null,"start":{},"end":[]}}',
    '{"since":{},"schedule":[]}',
    'null',
  ])('a definition of wrong types, %s', async (content) => {
    const enqueuer = await open();
    await arm(p.redis, p.ref, NAME);
    await p.redis.hset(controlKeys(NAMESPACE).schedules, NAME, content);
    await putOther();
    await enqueuer.at(1);
    expect(await scheduled()).toEqual([fireMember(OTHER, START + HOUR_MS)]);
    expect(only(enqueuer.unreadable)).toMatchObject({ schedule: NAME });
  });

  test('bytes among the names that are no text', async () => {
    const enqueuer = await open();
    await putOther();
    await p.redis.zadd(p.keys.fires, 0, Buffer.from([0xff, 0x00]));
    await enqueuer.at(1);
    expect(await scheduled()).toEqual([fireMember(OTHER, START + HOUR_MS)]);
    expect(await p.redis.zcard(p.keys.fires)).toBe(1);
  });
});

test('a paused schedule fires nothing and is not looked at; when it is resumed it counts from then', async () => {
  const enqueuer = await open();
  await put({ paused: 'for the holidays', catchUp: 'all' });
  await enqueuer.at(3);
  expect(await isLookedAt()).toBe(false);
  const resumed = defineSchedule(
    NAME,
    { queue: 'q', every: '1h', catchUp: 'all' },
    { sinceMs: START + 3 * HOUR_MS + 1, source: 'call' },
  );
  await p.redis.hset(controlKeys(NAMESPACE).schedules, NAME, encodeDefinition(resumed));
  await arm(p.redis, p.ref, NAME);
  await enqueuer.at(5);
  expect(await scheduled()).toEqual([member(4), member(5)]);
});

test('a schedule that a clock had fired far ahead starts afresh when it is resumed, and no sooner', async () => {
  const enqueuer = await open();
  const input = { queue: 'q', every: '1h', catchUp: 'all' } as const;
  const before = defineSchedule(NAME, input, { sinceMs: START, source: 'call' });
  await put({ catchUp: 'all' });
  const aheadMs = START + 1000 * HOUR_MS;
  await p.redis.hset(p.keys.fired, NAME, `${aheadMs} 7 2 - - 1`);
  await enqueuer.at(2);
  expect(await scheduled()).toEqual([]);
  const nowMs = START + 3 * HOUR_MS + 1;
  const paused = successor(
    before,
    { name: NAME, input: { ...input, paused: true }, source: 'call', nowMs },
    await stateOf(),
  );
  const resumed = successor(paused, { name: NAME, input, source: 'call', nowMs }, await stateOf());
  await p.redis.hset(controlKeys(NAMESPACE).schedules, NAME, encodeDefinition(resumed));
  await arm(p.redis, p.ref, NAME);
  await enqueuer.at(5);
  expect(await scheduled()).toEqual([member(4), member(5)]);
  expect(await stateOf()).toMatchObject({ reachedMs: START + 5 * HOUR_MS, runs: 9, skipped: 2 });
  await enqueuer.at(6);
  expect(await scheduled()).toEqual([member(4), member(5), member(6)]);
});

test('a schedule whose jobs go to another queue now is forgotten here after a minute', async () => {
  const enqueuer = await open();
  await put({ queue: 'other' });
  await enqueuer.at(1);
  expect(await isLookedAt()).toBe(true);
  await enqueuer.at(1, 65_000);
  expect(await isLookedAt()).toBe(false);
  expect(await stateOf()).toBeUndefined();
  expect(await scheduled()).toEqual([]);
});

describe('after it was armed', () => {
  const write = (input: Partial<ScheduleInput>) => p.redis.hset(controlKeys(NAMESPACE).schedules, NAME, textOf(input));
  /** As a call does before it writes a definition; the time of Redis is the one that is played. */
  async function armAt(atMs: number): Promise<void> {
    await arm(p.redis, p.ref, NAME);
    const { text = '' } = (await stateOf()) ?? {};
    await p.redis.hset(p.keys.fired, NAME, text.replace(/\d+$/, String(atMs)));
  }
  const lookMs = async () => Number((await p.redis.zscore(p.keys.fires, NAME)) ?? Number.NaN);

  const CHANGES: readonly (readonly [what: string, before: Partial<ScheduleInput>, after: Partial<ScheduleInput>])[] = [
    ['is resumed', { paused: 'for the holidays' }, {}],
    ['had ended', { end: '2020-01-01' }, {}],
    ['had all its runs and gets more', { maxRuns: 1 }, { maxRuns: 5 }],
    ['ran once a year and now every minute', { every: undefined, cron: '0 0 1 1 *' }, { every: '1m' }],
    ['comes from another queue', { queue: 'other' }, {}],
  ];

  test.each(CHANGES)(
    'a schedule that %s fires, even if the call died before it armed again',
    async (_, before, after) => {
      const enqueuer = await open();
      await write(before);
      await armAt(START);
      await enqueuer.at(1);
      await armAt(enqueuer.now());
      await enqueuer.at(1, 5);
      await write(after);
      await enqueuer.at(1, MINUTE_MS);
      expect(await lookMs()).toBeLessThanOrEqual(START + 2 * HOUR_MS);
      await enqueuer.at(2);
      expect(await scheduled()).toContain(member(2));
    },
  );

  test('both steps of replace leave the look a minute later', async () => {
    const enqueuer = await open();
    await put({ overlap: 'replace', jitter: '1d' });
    await enqueuer.at(1);
    await armAt(START + 2 * HOUR_MS);
    await enqueuer.at(2);
    expect(enqueuer.outcomes()).toEqual(['ok', 'waiting', 'ok']);
    expect(await lookMs()).toBe(START + 2 * HOUR_MS + MINUTE_MS);
  });

  test('it is looked at once more, a minute later, and then not before its next instant', async () => {
    const enqueuer = await open();
    await write({});
    await armAt(START);
    await enqueuer.at(0);
    expect(await lookMs()).toBe(START + MINUTE_MS);
    await enqueuer.at(0, MINUTE_MS);
    expect(await lookMs()).toBe(START + HOUR_MS);
    await enqueuer.at(1);
    expect(await lookMs()).toBe(START + 2 * HOUR_MS);
  });

  test('one that never fires is looked at once more, a minute later, and then no more', async () => {
    const enqueuer = await open();
    await write({ paused: true });
    await armAt(START);
    await enqueuer.at(0);
    expect(await lookMs()).toBe(START + MINUTE_MS);
    await enqueuer.at(0, MINUTE_MS);
    expect(await isLookedAt()).toBe(false);
  });

  test('by a clock of Redis that was corrected since, it is looked at no more often', async () => {
    const enqueuer = await open();
    await write({});
    await armAt(START + 24 * HOUR_MS);
    await enqueuer.at(0);
    expect(await lookMs()).toBe(START + HOUR_MS);
  });

  test("again, one that was taken for another queue's long ago has its minute anew", async () => {
    const enqueuer = await open();
    await write({ queue: 'other' });
    await armAt(START);
    await enqueuer.at(0);
    await disarm(p.redis, p.ref, NAME);
    await enqueuer.at(20);
    await armAt(enqueuer.now());
    await enqueuer.at(20);
    expect(await isLookedAt()).toBe(true);
    await write({});
    await enqueuer.at(21);
    expect(await scheduled()).toEqual([member(21)]);
  });
});

test('missed instants are told and counted, with how many were fired', async () => {
  const enqueuer = await open();
  await put({ catchUp: { policy: 'all', limit: 2 } });
  await enqueuer.at(5);
  expect(await scheduled()).toEqual([member(4), member(5)]);
  expect(only(enqueuer.missed)).toMatchObject({ schedule: NAME, fired: 2, missed: 3, sinceMs: START + HOUR_MS });
  expect(await stateOf()).toMatchObject({ runs: 2, skipped: 3 });
  await enqueuer.at(6);
  expect(await stateOf()).toMatchObject({ runs: 3, skipped: 3 });
});

describe('while the job before runs', () => {
  test('skip makes none', async () => {
    const enqueuer = await open();
    await put({ overlap: 'skip' });
    await enqueuer.at(1);
    const running = await p.run({ nowMs: enqueuer.now() });
    await enqueuer.at(2);
    expect(enqueuer.outcomes()).toEqual(['ok', 'skipped']);
    await p.complete(running, { nowMs: enqueuer.now() });
    await enqueuer.at(3);
    expect(enqueuer.outcomes()).toEqual(['ok']);
    expect(await stateOf()).toMatchObject({ runs: 2, skipped: 1 });
  });

  test('queue lets one wait, and starts it within half a second of the end of the other', async () => {
    const enqueuer = await open();
    await put({ overlap: 'queue' });
    await enqueuer.at(1);
    const running = await p.run({ nowMs: enqueuer.now() });
    expect(await enqueuer.at(2)).toBe(500);
    await enqueuer.at(3);
    expect(await scheduled()).toEqual([]);
    await p.complete(running, { nowMs: enqueuer.now() });
    await enqueuer.at(3, 500);
    expect(await scheduled()).toEqual([member(2)]);
    // Due when it stopped waiting, not an hour ago: it was not late.
    expect(Number(await p.redis.zscore(p.keys.scheduled, member(2)))).toBe(enqueuer.now());
    expect(await stateOf()).toMatchObject({ runs: 2, skipped: 1, waiting: undefined });
  });

  test('replace asks it to stop, and the newest follows when it is over', async () => {
    const enqueuer = await open();
    await put({ overlap: 'replace' });
    await enqueuer.at(1);
    const [claim] = await p.run({ nowMs: enqueuer.now() });
    await enqueuer.at(2);
    expect(await p.extend(claim ? [claim] : [])).toEqual(['cancel']);
    await enqueuer.at(3);
    await p.complete(claim ? [claim] : [], { nowMs: enqueuer.now() });
    await enqueuer.at(3, 500);
    expect(await scheduled()).toEqual([member(3)]);
  });

  test('replace takes the place of one that has not started', async () => {
    const enqueuer = await open();
    await put({ overlap: 'replace', jitter: '1d' });
    await enqueuer.at(1);
    await enqueuer.at(2);
    expect(await scheduled()).toEqual([member(2)]);
    expect(enqueuer.outcomes()).toEqual(['ok', 'waiting', 'ok']);
  });

  test('replace lets of several that are caught up only the newest live', async () => {
    const enqueuer = await open();
    await put({ overlap: 'replace', catchUp: 'all' });
    await enqueuer.at(0);
    await enqueuer.at(3);
    expect(await scheduled()).toEqual([member(3)]);
    expect(await stateOf()).toMatchObject({ last: member(3), waiting: undefined, runs: 2, skipped: 1 });
  });

  test('replace stops none while a full Redis has no room for the next', async () => {
    const enqueuer = await open();
    await put({ overlap: 'replace', jitter: '1d' });
    await enqueuer.at(1);
    await p.redis.config('SET', 'maxmemory', '1');
    await expect(enqueuer.at(2)).rejects.toThrow(/OOM/);
    expect(await scheduled()).toEqual([member(1)]);
    await p.redis.config('SET', 'maxmemory', '0');
    await enqueuer.at(2);
    expect(await scheduled()).toEqual([member(2)]);
  });

  test('replace goes on where a leader ended between noting the new one and stopping the other', async () => {
    const enqueuer = await open();
    await put({ overlap: 'replace' });
    await enqueuer.at(1);
    const [state] = await firedOf(p.redis, p.ref, [NAME]);
    const term = await p.lead();
    const reachedMs = START + 2 * HOUR_MS;
    const item = { member: member(2), record: encodeRecord(reachedMs, '{}'), dueMs: reachedMs };
    const call = { name: NAME, state: state?.text ?? '', reachedMs, lookMs: START + 3 * HOUR_MS };
    const schedules = [{ ...call, overlap: 'replace' as const, items: [item] }];
    await fire(p.redis, p.ref, { term, schedules, nowMs: reachedMs });
    expect(await scheduled()).toEqual([member(1)]);
    await enqueuer.at(2, 500);
    expect(await scheduled()).toEqual([member(2)]);
  });

  test('allow makes the next', async () => {
    const enqueuer = await open();
    await put();
    await enqueuer.at(1);
    await p.run({ nowMs: enqueuer.now() });
    await enqueuer.at(2);
    expect(await scheduled()).toEqual([member(2)]);
  });
});

test('after the last of its runs a schedule is not looked at any more', async () => {
  const enqueuer = await open();
  await put({ maxRuns: 2 });
  for (const hour of [1, 2, 3, 4]) await enqueuer.at(hour);
  expect(await scheduled()).toEqual([member(1), member(2)]);
  expect(await isLookedAt()).toBe(false);
  await finish(enqueuer.now());
});

test('a schedule that had all its runs is put again, and its last job is not replaced by nothing', async () => {
  const enqueuer = await open();
  await put({ maxRuns: 1, overlap: 'replace' });
  await enqueuer.at(1);
  await put({ maxRuns: 1, overlap: 'replace' });
  await enqueuer.at(3);
  expect(await scheduled()).toEqual([member(1)]);
  await finish(enqueuer.now());
});

test('a schedule that is resumed between a look and its fire is looked at again, and fires', async () => {
  let asked = 0;
  const resumed: Promise<unknown>[] = [];
  await put({ paused: true });
  const enqueuer = await open(p.redis, () => {
    asked += 1;
    // The first time is asked for the look, the second time for the fire: these commands arrive before it.
    if (asked === 2)
      resumed.push(p.redis.hset(controlKeys(NAMESPACE).schedules, NAME, textOf()), arm(p.redis, p.ref, NAME));
  });
  await enqueuer.at(0);
  await Promise.all(resumed);
  await enqueuer.at(1);
  expect(asked).toBeGreaterThan(2);
  expect(await scheduled()).toEqual([member(1)]);
});

test('many missed instants with much data are fired in parts, each once', async () => {
  const enqueuer = await open();
  await put({ catchUp: { policy: 'all', window: '2d' }, data: 'x'.repeat(250_000) });
  await enqueuer.at(0);
  await enqueuer.at(20);
  expect(enqueuer.outcomes()).toEqual(Array(20).fill('ok'));
  expect(enqueuer.missed).toEqual([]);
  expect(await scheduled()).toHaveLength(20);
});

test('very many missed instants are fired 100 per call, each once', async () => {
  const enqueuer = await open();
  await put({ catchUp: { policy: 'all', window: '30d', limit: 1000 } });
  await enqueuer.at(0);
  await p.redis.config('RESETSTAT');
  await enqueuer.at(250);
  const calls = [...(await p.redis.info('commandstats')).matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g)];
  expect(calls.reduce((sum, [, count]) => sum + Number(count), 0)).toBe(3);
  expect(enqueuer.outcomes()).toEqual(Array(250).fill('ok'));
  expect(await scheduled()).toHaveLength(250);
});

test('a full Redis refuses to fire, and what was missed is fired when there is room', async () => {
  const enqueuer = await open();
  await put({ catchUp: 'all' });
  await enqueuer.at(0);
  await p.redis.config('SET', 'maxmemory', '1');
  await expect(enqueuer.at(1)).rejects.toThrow(/OOM/);
  await expect(enqueuer.at(2)).rejects.toThrow(/OOM/);
  expect(await scheduled()).toEqual([]);
  await p.redis.config('SET', 'maxmemory', '0');
  await enqueuer.at(2);
  expect(await scheduled()).toEqual([member(1), member(2)]);
});

test('a reply that is lost makes no second job, and none is missed', async () => {
  const line = await openLossyLine(p.server);
  const redis = openCommands({ redis: line.url, name: 'lossy' });
  await whenReady(redis);
  try {
    const enqueuer = await open(redis);
    await put({ catchUp: 'all' });
    await enqueuer.at(0);
    line.loseReplyTo('fire');
    await expect(enqueuer.at(1)).rejects.toThrow();
    expect(line.lost()).toBe(1);
    await whenReady(redis);
    await enqueuer.at(2);
    const made = (await p.redis.hkeys(p.keys.jobs)).map((one) => firedBy(idOf(one).id)?.atMs ?? 0);
    expect(made.sort((a, b) => a - b)).toEqual([START + HOUR_MS, START + 2 * HOUR_MS]);
    expect(await stateOf()).toMatchObject({ runs: 2 });
  } finally {
    close(redis);
    await line.close();
  }
});

describe('many schedules of one instant', () => {
  /** Calls of `fire` while it acts, each with its bytes. */
  async function firesDuring(act: () => Promise<unknown>): Promise<readonly number[]> {
    const sizes: number[] = [];
    const whole: unknown = Reflect.get(p.redis, 'duestream_fire');
    if (typeof whole !== 'function') throw new Error('fire is no command of this connection');
    Reflect.set(p.redis, 'duestream_fire', (...parts: (string | number)[]) => {
      sizes.push(parts.reduce<number>((sum, part) => sum + String(part).length, 0));
      return whole.apply(p.redis, parts);
    });
    try {
      await act();
    } finally {
      Reflect.set(p.redis, 'duestream_fire', whole);
    }
    return sizes;
  }

  async function putMany(count: number, input: Partial<ScheduleInput> = {}): Promise<readonly string[]> {
    const names = Array.from({ length: count }, (_, at) => `many-${String(at).padStart(4, '0')}`);
    await p.redis.hset(controlKeys(NAMESPACE).schedules, ...names.flatMap((name) => [name, textOf(input)]));
    await p.redis.hset(p.keys.fired, ...names.flatMap((name) => [name, `${START} 0 0 - - 0`]));
    await p.redis.zadd(p.keys.fires, ...names.flatMap((name) => [START + HOUR_MS, name]));
    return names;
  }

  test('become one job each, by the hundred in a call', async () => {
    const enqueuer = await open();
    const names = await putMany(1000);
    const calls = await firesDuring(() => enqueuer.at(1));
    expect(await scheduled()).toEqual(names.map((name) => fireMember(name, START + HOUR_MS)));
    expect(enqueuer.outcomes()).toEqual(names.map(() => 'ok'));
    expect(calls.length).toBeLessThanOrEqual(12);
    expect(await p.redis.zcount(p.keys.fires, START + 2 * HOUR_MS, START + 2 * HOUR_MS)).toBe(1000);
  });

  test('with much data are fired in calls of 256 KiB at most', async () => {
    const enqueuer = await open();
    const names = await putMany(40, { data: 'x'.repeat(200_000) });
    const calls = await firesDuring(() => enqueuer.at(1));
    expect(await scheduled()).toEqual(names.map((name) => fireMember(name, START + HOUR_MS)));
    expect(Math.max(...calls)).toBeLessThanOrEqual(256 * 1024);
    expect(calls.length).toBe(40);
  });

  test('that catch up many instants have their turns: no call has more than 100 jobs', async () => {
    const enqueuer = await open();
    await putMany(3, { every: '1m', catchUp: { policy: 'all', limit: 400 } });
    const calls = await firesDuring(() => enqueuer.at(7));
    expect(enqueuer.outcomes()).toEqual(Array(1200).fill('ok'));
    expect(calls.length).toBeGreaterThanOrEqual(8);
    expect(new Set(await scheduled()).size).toBe(1200);
  });

  const CHANGES: readonly (readonly [what: string, change: (name: string) => Promise<unknown>[]])[] = [
    [
      'paused',
      (name) => [
        p.redis.hset(controlKeys(NAMESPACE).schedules, name, textOf({ paused: true })),
        arm(p.redis, p.ref, name),
      ],
    ],
    ['removed', (name) => [p.redis.hdel(controlKeys(NAMESPACE).schedules, name), disarm(p.redis, p.ref, name)]],
    [
      'given another rule',
      (name) => [
        p.redis.hset(controlKeys(NAMESPACE).schedules, name, textOf({ every: '7h' })),
        arm(p.redis, p.ref, name),
      ],
    ],
  ];

  test.each(CHANGES)(
    'of which one is %s between the look and the fire: it is not fired, the others are',
    async (_, change) => {
      let asked = 0;
      const changed: Promise<unknown>[] = [];
      const names = await putMany(20);
      const enqueuer = await open(p.redis, () => {
        asked += 1;
        // The first time is asked for the look, the second time for the fire: these commands arrive before it.
        if (asked === 2) changed.push(...change('many-0007'));
      });
      await enqueuer.at(1);
      await Promise.all(changed);
      const others = names.filter((name) => name !== 'many-0007');
      expect(await scheduled()).toEqual(others.map((name) => fireMember(name, START + HOUR_MS)));
    },
  );

  /** Reads of definitions while it acts. */
  async function readsDuring(act: () => Promise<unknown>): Promise<number> {
    const reads = vi.spyOn(p.redis, 'hmget');
    try {
      await act();
      return reads.mock.calls.length;
    } finally {
      reads.mockRestore();
    }
  }

  test('are read and decided ahead, and fired at their instant without being read again', async () => {
    const enqueuer = await open();
    const names = await putMany(1000);
    expect(await enqueuer.at(0, HOUR_MS - 10_000)).toBe(5000);
    expect(await enqueuer.at(0, HOUR_MS - 5000)).toBe(3000);
    expect(await readsDuring(() => enqueuer.at(0, HOUR_MS - 2000))).toBeGreaterThan(0);
    expect(await enqueuer.at(0, HOUR_MS - 1)).toBe(1);
    expect(await scheduled()).toEqual([]);
    expect(enqueuer.outcomes()).toEqual([]);
    expect(await readsDuring(() => enqueuer.at(1))).toBe(0);
    expect(await scheduled()).toEqual(names.map((name) => fireMember(name, START + HOUR_MS)));
    expect(enqueuer.outcomes()).toEqual(names.map(() => 'ok'));
    expect(enqueuer.missed).toEqual([]);
  });

  test('are decided the sooner the more there are, and fired in parts', async () => {
    const enqueuer = await open();
    const names = await putMany(12_000);
    expect(await enqueuer.at(0, HOUR_MS - 5000)).toBe(5000 - 2400);
    expect(await readsDuring(() => enqueuer.at(0, HOUR_MS - 2400))).toBeGreaterThan(0);
    const calls = await firesDuring(async () => {
      expect(await readsDuring(() => enqueuer.at(1))).toBe(0);
    });
    expect(calls).toHaveLength(120);
    expect(await p.redis.zcard(p.keys.scheduled)).toBe(names.length);
    expect(enqueuer.outcomes()).toEqual(names.map(() => 'ok'));
  });

  test.each(CHANGES)(
    'that are decided ahead, of which one is %s before the instant: it is not fired',
    async (_, change) => {
      const names = await putMany(300);
      const enqueuer = await open();
      await enqueuer.at(0, HOUR_MS - 1000);
      await Promise.all(change('many-0007'));
      await enqueuer.at(1);
      const others = names.filter((name) => name !== 'many-0007');
      expect(await scheduled()).toEqual(others.map((name) => fireMember(name, START + HOUR_MS)));
      expect(enqueuer.outcomes()).toEqual(others.map(() => 'ok'));
    },
  );

  test('that are decided ahead: whether the job before is over is asked at the instant', async () => {
    const names = await putMany(300, { overlap: 'skip' });
    const enqueuer = await open();
    await enqueuer.at(1);
    await enqueuer.at(1, HOUR_MS - 1000);
    const over = fireMember('many-0007', START + HOUR_MS);
    await p.redis.zrem(p.keys.scheduled, over);
    await p.redis.hdel(p.keys.jobs, over);
    await p.redis.hincrby(p.keys.meta, 'n.done', 1);
    enqueuer.outcomes();
    await enqueuer.at(2);
    expect(enqueuer.outcomes().filter((outcome) => outcome === 'ok')).toHaveLength(1);
    expect(await p.redis.zscore(p.keys.scheduled, fireMember('many-0007', START + 2 * HOUR_MS))).not.toBeNull();
    expect(await p.redis.zcard(p.keys.scheduled)).toBe(names.length);
  });

  test('that are decided ahead by one leader and fired by the next become one job each', async () => {
    const names = await putMany(300);
    const [one, other] = [await open(), await open()];
    await one.at(0, HOUR_MS - 1000);
    await other.at(1);
    await one.at(1);
    expect(await scheduled()).toEqual(names.map((name) => fireMember(name, START + HOUR_MS)));
    expect(one.outcomes()).toEqual([]);
  });

  test('that another leader fires at the same time become one job each', async () => {
    const names = await putMany(1000);
    const [one, other] = [await open(), await open()];
    await Promise.all([one.at(1), other.at(1)]);
    expect(await scheduled()).toEqual(names.map((name) => fireMember(name, START + HOUR_MS)));
    expect([...one.outcomes(), ...other.outcomes()]).toEqual(names.map(() => 'ok'));
  });
});
