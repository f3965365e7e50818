/** A queue in virtual time: the engine of `duestream simulate`, alone, and beside the product in the virtual time of the test kit. */
import { describe, expect, test } from 'vitest';
import { defineQueue } from '../../src/index.ts';
import { parseAsk } from '../../src/inspect/simulate/ask.ts';
import { GroupTable, JobColumns, Spread } from '../../src/inspect/simulate/columns.ts';
import { addUsual, randomFrom, runTimesOf, usualOf } from '../../src/inspect/simulate/usual.ts';
import { groupShare } from '../../src/job/gate.ts';
import { addTime, noTally } from '../../src/job/minutes.ts';
import { saidOf } from '../../src/job/queue-settings.ts';
import { type Rate, ratesOf } from '../../src/job/rate.ts';
import { createTestKit } from '../../src/testing/index.ts';
import { type PlayedQueue, partitionOfGroup, playedByEngine, randomQueue, sharesOf } from '../support/simulated.ts';

const BEGIN_MS = Date.UTC(2026, 2, 1, 9);
const SEEDS = Array.from({ length: 40 }, (_, seed) => seed);

/** The most that run at one time, of those that are meant. */
function mostAtOnce({ jobs }: PlayedQueue, starts: readonly number[], isMeant: (at: number) => boolean): number {
  const steps = jobs.flatMap(({ runMs }, at) =>
    isMeant(at) ? [[starts[at] ?? 0, 1] as const, [(starts[at] ?? 0) + runMs, -1] as const] : [],
  );
  let [running, most] = [0, 0];
  for (const [, step] of steps.sort((one, other) => one[0] - other[0] || one[1] - other[1])) {
    running += step;
    most = Math.max(most, running);
  }
  return most;
}

/** In some time there were more starts than a rate, its burst and 50 ms allow; one more had its turn before, and waited for a slot. */
function isFaster(starts: readonly number[], { limit, perMs, burst }: Rate): boolean {
  const sorted = [...starts].sort((one, other) => one - other);
  const mostIn = (ms: number) => ((ms + 51) * limit) / perMs + burst + 1 + 1e-6;
  return sorted.some((fromMs, first) => sorted.slice(first).some((toMs, nth) => nth + 1 > mostIn(toMs - fromMs)));
}

/** What is wrong with the starts of the jobs of a group. */
function wrongInGroup(queue: PlayedQueue, starts: readonly number[], group: string): readonly string[] {
  const { jobs, settings } = queue;
  const { most, intervalUs, burst } = groupShare(settings, group);
  const isMeant = (at: number) => jobs[at]?.group === group;
  const ofGroup = starts.filter((_, at) => isMeant(at));
  const lanes = [0, 1, 2].map((priority) => starts.filter((_, at) => isMeant(at) && jobs[at]?.priority === priority));
  const isTurned = lanes.some((lane) => lane.some((ms, at) => ms < (lane[at - 1] ?? 0)));
  const rate = { limit: 1, perMs: intervalUs / 1000, burst };
  return [
    ...(most > 0 && mostAtOnce(queue, starts, isMeant) > most ? [`more than ${most} of ${group} run`] : []),
    ...(intervalUs > 0 && isFaster(ofGroup, rate) ? [`${group} is faster than its rate`] : []),
    ...(isTurned ? [`jobs of ${group} overtake each other`] : []),
  ];
}

describe('the engine', () => {
  test.each(SEEDS)('starts each job once, none early, and no more than the limits allow: queue %i', (seed) => {
    const queue = randomQueue(seed, { partitions: 1 + (seed % 3) });
    const { settings, jobs, slots, partitions } = queue;
    const starts = playedByEngine(queue, BEGIN_MS);
    expect(jobs.filter(({ dueMs }, at) => !((starts[at] ?? -1) >= dueMs))).toEqual([]);
    expect(mostAtOnce(queue, starts, () => true)).toBeLessThanOrEqual(slots);
    const placeOf = (at: number) => partitionOfGroup(jobs[at]?.group ?? '', partitions);
    for (const [partition, share] of sharesOf(settings, partitions).entries()) {
      const most = mostAtOnce(queue, starts, (at) => placeOf(at) === partition);
      if (share.concurrency > 0) expect(most).toBeLessThanOrEqual(share.concurrency);
    }
    const rates = partitions === 1 ? ratesOf(settings.rate) : [];
    expect(rates.filter((rate) => isFaster(starts, rate))).toEqual([]);
    const groups = [...new Set(jobs.map(({ group }) => group))];
    expect(groups.flatMap((group) => wrongInGroup(queue, starts, group))).toEqual([]);
  });

  test('plays the same queue the same way', () => {
    expect(playedByEngine(randomQueue(7), BEGIN_MS)).toEqual(playedByEngine(randomQueue(7), BEGIN_MS));
  });

  test.each([1, 4, 5])('starts jobs when the product does in virtual time: queue %i', async (seed) => {
    const count = 150;
    const played = randomQueue(seed + 100, { slots: 1_000_000, count });
    const queue = defineQueue('q', saidOf(played.settings));
    const runMs = new Map(played.jobs.map((job) => [job.id, job.runMs]));
    const kit = createTestKit({
      start: new Date(BEGIN_MS),
      queues: [queue],
      handlers: { q: () => undefined },
      lasts: ({ id }) => runMs.get(id) ?? 0,
    });
    const priorities = ['high', 'normal', 'low'] as const;
    const asked = played.jobs.map(({ id, group, priority, dueMs }) => ({
      ...{ data: 1, id, delay: dueMs, priority: priorities[priority] },
      ...(group !== '' && { group }),
    }));
    await kit.client.scheduleMany(queue, asked);
    await kit.advance('10d');
    const starts = new Map(kit.runs.map(({ id, atMs }) => [id, atMs - BEGIN_MS]));
    expect(starts.size).toBe(count);
    const engine = playedByEngine(played, BEGIN_MS);
    const differences = played.jobs.map(({ id }, at) => Math.abs((starts.get(id) ?? 0) - (engine[at] ?? 0)));
    // A leader may look a moment later for the next turn of a rate.
    expect(differences.filter((ms) => ms > 1).length).toBeLessThanOrEqual(2);
    expect(Math.max(...differences)).toBeLessThan(50);
  });
});

describe('what is usual', () => {
  const HOUR_MS = 3_600_000;
  const day = (jobs: number, isKnown = true) => ({
    counts: { promoted: Array.from({ length: 144 }, () => jobs / 6) } as never,
    known: Array.from({ length: 144 }, () => isKnown),
    startMs: BEGIN_MS - 24 * HOUR_MS,
    stepMs: 600_000,
  });
  const span = { nowMs: BEGIN_MS, untilMs: BEGIN_MS + 6 * HOUR_MS, most: 1_000_000 };

  test('comes as often as at the same hour of the last day, less what is known', () => {
    const [jobs, groups] = [new JobColumns(), new GroupTable(2)];
    for (let nth = 0; nth < 1200; nth += 1) jobs.add(BEGIN_MS + 1 + nth * 1000, 0, 1);
    const made = addUsual({ jobs, groups }, usualOf([day(1000)]), { ...span, random: randomFrom(1) }) ?? 0;
    expect(Math.abs(made - (6000 - 1000))).toBeLessThan(300);
    expect(jobs.count).toBe(1200 + made);
    const inFirst = Array.from(jobs.dueMs.subarray(0, jobs.count)).filter((ms) => ms < BEGIN_MS + HOUR_MS).length;
    expect(inFirst).toBe(1200);
  });

  test('is the same for the same seed, and another one for another', () => {
    const times = (seed: number) => {
      const [jobs, groups] = [new JobColumns(), new GroupTable(1)];
      addUsual({ jobs, groups }, usualOf([day(20)]), { ...span, random: randomFrom(seed) });
      return Array.from(jobs.dueMs.subarray(0, jobs.count));
    };
    expect(times(1)).toEqual(times(1));
    expect(times(1)).not.toEqual(times(2));
    expect(times(1).length).toBeGreaterThan(80);
  });

  test('is that of the same hours of a week, where two weeks are known', () => {
    const hours = 28 * 24;
    const startMs = BEGIN_MS - hours * HOUR_MS;
    const isSunday = (hour: number) => new Date(startMs + hour * HOUR_MS).getUTCDay() === 0;
    const promoted = Array.from({ length: hours }, (_, hour) => (isSunday(hour) ? 5 : 100));
    const weeks = (knownDays: number) => ({
      counts: { promoted } as never,
      known: promoted.map((_, hour) => hour >= hours - knownDays * 24),
      ...{ startMs, stepMs: HOUR_MS },
    });
    expect(new Date(BEGIN_MS).getUTCDay()).toBe(0);
    expect(usualOf([weeks(28), day(7)])(BEGIN_MS)).toBe(5);
    expect(usualOf([weeks(3), day(7)])(BEGIN_MS)).toBe(100);
    expect(usualOf([weeks(0), day(7)])(BEGIN_MS)).toBeCloseTo(7);
  });

  test('is not known where nobody has counted', () => {
    const [jobs, groups] = [new JobColumns(), new GroupTable(1)];
    expect(addUsual({ jobs, groups }, usualOf([day(20, false)]), { ...span, random: randomFrom(1) })).toBeUndefined();
    expect(runTimesOf({ ...noTally(), fine: { counts: new Map(), maxMs: 0 } })).toBeUndefined();
  });

  test('run times follow from what was counted', () => {
    const tally = noTally();
    for (let ms = 1; ms <= 1000; ms += 1) addTime(tally, ms);
    const found = runTimesOf({ buckets: tally.buckets, fine: { counts: tally.fine, maxMs: tally.maxMs } });
    expect(found?.runs).toBe(1000);
    for (const share of [0.1, 0.5, 0.99]) {
      expect(Math.abs((found?.within(share) ?? 0) - 1000 * share) / (1000 * share)).toBeLessThan(0.06);
    }
  });
});

test('a spread knows the time within which a share of the times are, to 2 %', () => {
  const random = randomFrom(3);
  for (const power of [1, 4, 8]) {
    const [spread, times] = [new Spread(), Array.from({ length: 1000 }, () => Math.floor(10 ** (power * random())))];
    for (const ms of times) spread.add(ms);
    times.sort((one, other) => one - other);
    for (const share of [0.01, 0.5, 0.99, 1]) {
      const exact = times[Math.ceil(share * 1000) - 1] ?? 0;
      expect(Math.abs((spread.within(share) ?? 0) - exact)).toBeLessThanOrEqual(0.02 * exact);
    }
  }
  expect(new Spread().within(0.5)).toBeUndefined();
});

test('an ask names what is wrong', () => {
  expect(() => parseAsk({ settings: { maxPending: 4 } })).toThrow('maxPending is not an option of simulate');
  expect(() => parseAsk({ until: '40d' }).untilMs(BEGIN_MS)).toThrow('until is "40d"; allowed: 1m to 31d');
  expect(() => parseAsk({ workers: 0 })).toThrow('workers is 0');
  expect(parseAsk({ until: '6h' }).untilMs(5)).toBe(5 + 21_600_000);
  expect(parseAsk({ until: '2026-03-01T15:00:00Z' }).untilMs(BEGIN_MS)).toBe(BEGIN_MS + 21_600_000);
});
