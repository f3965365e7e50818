/** Estimates of starts: when nothing is told, and how right they are over simulated days. */
import { describe, expect, test } from 'vitest';
import type { Engine } from '../../src/inspect/simulate/engine.ts';
import { randomFrom } from '../../src/inspect/simulate/usual.ts';
import { estimateOf, type Pacing, type WaitFacts, type WaitingLane } from '../../src/job/estimate.ts';
import { groupShare } from '../../src/job/gate.ts';
import type { GateSettings } from '../../src/job/queue-settings.ts';
import { ratesOf } from '../../src/job/rate.ts';
import { atOnce } from '../../src/kernel/steps.ts';
import { read } from '../support/repository.ts';
import { engineOf, type PlayedJob, type PlayedQueue } from '../support/simulated.ts';

const NOW = Date.UTC(2026, 2, 1, 14);
const FREE: Pacing = { most: 0, running: 0, intervalUs: 0, nextTurnMs: 0, closedMs: 0 };
const facts = (given: Partial<WaitFacts> = {}): WaitFacts => ({
  nowMs: NOW,
  slots: 10,
  runs: 1000,
  runMs: 500,
  lane: { group: '', priority: 1 },
  ahead: 37,
  lanes: [{ group: '', priority: 1, waiting: 100, weight: 1 }],
  queue: { ...FREE, intervalUs: 100_000, nextTurnMs: NOW + 100 },
  groups: new Map(),
  arrivalsPerSecond: undefined,
  startsPerSecond: undefined,
  ...given,
});

describe('an estimate', () => {
  test('names how many come before the job, how fast they start, and what paces them', () => {
    expect(estimateOf(facts())).toEqual({
      kind: 'about',
      startMs: NOW + 3800,
      before: 37,
      perSecond: 10,
      pacedBy: 'rate',
      text: 'in about 4 s: 37 jobs before it, at 10/s by the rate',
    });
    expect(estimateOf(facts({ slots: 2 })).text).toBe(
      'in about 9 s: 37 jobs before it, at 4/s by the slots of workers',
    );
  });

  test('counts other lanes of the class in turns, and the group by its own limit', () => {
    const lanes = ['', 'a', 'b'].map((group): WaitingLane => ({ group, priority: 1, waiting: 5, weight: 1 }));
    expect(estimateOf(facts({ lanes, ahead: 2 }))).toMatchObject({ before: 2 + 3 + 3, pacedBy: 'rate' });
    const groups = new Map([['a', { ...FREE, most: 1, running: 1 }]]);
    const ofGroup = estimateOf(
      facts({ lanes, ahead: 4, lane: { group: 'a', priority: 1 }, groups, runMs: 60_000, slots: 1000 }),
    );
    expect(ofGroup).toMatchObject({ before: 4, pacedBy: 'group', perSecond: 0.017 });
    expect(ofGroup.text).toBe('in about 5 min: 4 jobs of its group before it, at 1/min by the limit of its group');
  });

  test('says until when the queue or the group is closed', () => {
    const closed = { ...FREE, closedMs: NOW + 60_000 };
    expect(estimateOf(facts({ queue: closed, slots: undefined }))).toMatchObject({
      kind: 'not-before',
      startMs: NOW + 60_000,
      text: 'not within 60 s: the queue is closed until then',
    });
    const groups = new Map([['', closed]]);
    expect(estimateOf(facts({ groups })).text).toBe('not within 60 s: its group is closed until then');
  });

  test.each([
    ['slots-unknown', { slots: undefined }],
    ['few-runs', { runs: 19 }],
    ['many-lanes', { lanes: undefined }],
    ['unsteady', { startsPerSecond: 4.9 }],
    ['unsteady', { startsPerSecond: 20.1 }],
    [
      'others-first',
      {
        lane: { group: '', priority: 2 },
        lanes: [0, 2].map((priority): WaitingLane => ({ group: '', priority, waiting: 10, weight: 1 })),
      },
    ],
  ] as const)('is not told where it would not be right: %s', (untold, given) => {
    expect(estimateOf(facts(given))).toMatchObject({ kind: 'untold', untold });
    expect(estimateOf(facts(given)).text).toMatch(/^nobody can tell: /);
  });
});

// Simulated days.

const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;

interface Kind {
  readonly settings: GateSettings;
  readonly slots: number;
  /** Arrivals in a second, at quiet times and in rushes. */
  readonly quiet: number;
  readonly rush: number;
  readonly runMs: number;
  readonly groups: number;
  readonly others: number;
}

const fair = { fair: true } as const;
const KINDS: Readonly<Record<string, Kind>> = {
  'a rate': {
    settings: { rate: { limit: 1, perMs: 1000, burst: 1 } },
    slots: 20,
    quiet: 0.5,
    rush: 3,
    runMs: 800,
    groups: 1,
    others: 0,
  },
  'slots of workers': { settings: fair, slots: 5, quiet: 0.5, rush: 2, runMs: 4000, groups: 1, others: 0 },
  'a lock for each group': {
    settings: { perGroup: 1 },
    slots: 50,
    quiet: 0.4,
    rush: 1.5,
    runMs: 9000,
    groups: 20,
    others: 0,
  },
  'concurrency, groups and priorities': {
    settings: { concurrency: 4 },
    slots: 50,
    quiet: 0.5,
    rush: 2,
    runMs: 3000,
    groups: 10,
    others: 0.2,
  },
};

interface Day extends PlayedQueue {
  /** Of groups, as they come first. */
  readonly names: readonly string[];
}

/** A day with rushes of ten minutes in some hours. */
function dayOf({ settings, slots, quiet, rush, runMs, groups, others }: Kind, seed: number): Day {
  const random = randomFrom(seed);
  const jobs: PlayedJob[] = [];
  for (let atMs = 0; ; ) {
    const isRush = Math.floor(atMs / (10 * MINUTE_MS)) % 9 === 4;
    atMs += (-Math.log(1 - random()) * 1000) / (isRush ? rush : quiet);
    if (atMs > DAY_MS) break;
    // The first groups have most of the jobs.
    const nth = Math.floor(groups * random() ** 2);
    const priority = random() < others ? (random() < 0.5 ? 0 : 2) : 1;
    const group = groups === 1 ? '' : `g${nth + 1}`;
    jobs.push({
      id: String(jobs.length),
      group,
      priority,
      dueMs: Math.floor(atMs),
      runMs: Math.round(runMs * (0.5 + random())),
    });
  }
  const names = [...new Set(jobs.map(({ group }) => group))].filter((group) => group !== '');
  return { settings, slots, partitions: 1, jobs, names };
}

/** What is known of the job of this number at this moment. @param from jobs before it started more than an hour ago */
function factsAt(
  queue: Day,
  engine: Engine,
  { job, from }: { readonly job: number; readonly from: number },
): WaitFacts {
  const { jobs, settings } = queue;
  const { nowMs, startedMs } = engine;
  const own = jobs[job];
  if (!own) throw new Error('there is no such job');
  const seen = jobs
    .slice(from, from + SEEN_MAX)
    .flatMap((one, nth) => (NOW + one.dueMs <= nowMs ? [{ ...one, at: from + nth }] : []));
  const waits = seen.filter(({ at }) => startedMs[at] === 0);
  const recent = seen.filter(({ at }) => (startedMs[at] ?? 0) > nowMs - 60 * MINUTE_MS);
  const lanes = new Map<string, WaitingLane>();
  for (const { group, priority } of waits) {
    const key = `${priority}${group}`;
    lanes.set(key, { group, priority, waiting: (lanes.get(key)?.waiting ?? 0) + 1, weight: 1 });
  }
  const isBefore = (one: { readonly group: string; readonly priority: number; readonly at: number }) =>
    one.group === own.group && one.priority === own.priority && one.at < job;
  const { concurrency = 0 } = settings;
  const [first] = ratesOf(settings.rate);
  return {
    nowMs,
    slots: queue.slots,
    runs: recent.length,
    runMs: recent.reduce((sum, { runMs }) => sum + runMs, 0) / Math.max(1, recent.length),
    lane: own,
    ahead: waits.filter(isBefore).length,
    lanes: [...lanes.values()],
    queue: {
      ...{ most: concurrency, running: engine.running, closedMs: 0, nextTurnMs: engine.turnMs(0) },
      intervalUs: first ? (first.perMs * 1000) / first.limit : 0,
    },
    groups: new Map(
      queue.names.map((name, nth) => {
        const { running, opensMs } = engine.groupNow(nth + 1);
        const { most, intervalUs } = groupShare(settings, name);
        return [name, { most, running, intervalUs, nextTurnMs: opensMs, closedMs: 0 }];
      }),
    ),
    arrivalsPerSecond: seen.filter(({ dueMs }) => NOW + dueMs > nowMs - 5 * MINUTE_MS).length / 300,
    startsPerSecond: startsIn(
      engine,
      recent.map(({ at }) => at),
      NOW + (waits[0]?.dueMs ?? 0),
    ),
  };
}

/** Of the last whole minutes in which jobs waited, five at the most. */
function startsIn({ nowMs, startedMs }: Engine, recent: readonly number[], sinceMs: number): number | undefined {
  const lastMs = Math.floor(nowMs / MINUTE_MS) * MINUTE_MS;
  const firstMs = Math.max(lastMs - 5 * MINUTE_MS, Math.ceil(sinceMs / MINUTE_MS) * MINUTE_MS);
  const isIn = (at: number) => (startedMs[at] ?? 0) >= firstMs && (startedMs[at] ?? 0) < lastMs;
  return lastMs > firstMs ? (recent.filter(isIn).length * 1000) / (lastMs - firstMs) : undefined;
}

/** More than come in an hour. */
const SEEN_MAX = 6000;
const LOOKS = 200;

/** How many were looked at, told, and about right: within a factor of two, or a second. */
function lookedAt(queue: Day, seed: number) {
  const random = randomFrom(seed + 99);
  const engine = engineOf(queue, NOW);
  const told: { readonly startMs: number; readonly nowMs: number; readonly job: number }[] = [];
  let [looks, from] = [0, 0];
  for (let look = 0; look < LOOKS; look += 1) {
    atOnce(engine.upTo(NOW + ((look + random()) * DAY_MS) / LOOKS));
    const { nowMs } = engine;
    const isOld = (ms = 0) => ms > 0 && ms < nowMs - 60 * MINUTE_MS;
    while (from < queue.jobs.length && isOld(engine.startedMs[from])) from += 1;
    const waits: number[] = [];
    for (let at = from; NOW + (queue.jobs[at]?.dueMs ?? Number.POSITIVE_INFINITY) <= nowMs; at += 1) {
      if (engine.startedMs[at] === 0) waits.push(at);
    }
    const job = waits[Math.floor(random() * waits.length)];
    if (job === undefined) continue;
    looks += 1;
    const { startMs } = estimateOf(factsAt(queue, engine, { job, from }));
    if (startMs !== undefined) told.push({ startMs, nowMs, job });
  }
  atOnce(engine.upTo(Number.MAX_SAFE_INTEGER));
  const right = told.filter(({ startMs, nowMs, job }) => {
    const [said, was] = [startMs - nowMs, (engine.startedMs[job] ?? 0) - nowMs];
    return Math.abs(said - was) <= 1000 || (said <= 2 * was && was <= 2 * said);
  });
  return { looks, told: told.length, right: right.length };
}

test('over simulated days 70 % are told, and 90 % of these are right within a factor of two or a second', () => {
  const found = Object.entries(KINDS).map(([kind, of], nth) => ({ kind, ...lookedAt(dayOf(of, nth), nth) }));
  const sum = (of: 'looks' | 'told' | 'right') => found.reduce((total, one) => total + one[of], 0);
  const all = { kind: 'all of them', looks: sum('looks'), told: sum('told'), right: sum('right') };
  const rows = [...found, all].map(
    ({ kind, looks, told, right }) =>
      `| ${kind} | ${looks} | ${Math.round((100 * told) / looks)} % | ${Math.round((100 * right) / told)} % |`,
  );
  expect(all.told / all.looks).toBeGreaterThanOrEqual(0.7);
  expect(all.right / all.told).toBeGreaterThanOrEqual(0.9);
  for (const { told, right } of found) expect(right / told).toBeGreaterThanOrEqual(0.75);
  expect(read('docs/how-to/what-if.md')).toContain(rows.join('\n'));
});

test.each([40, 50, 60])('of other days the same is told, and as right: from seed %i on', (seed) => {
  const found = Object.values(KINDS).map((of, nth) => lookedAt(dayOf(of, seed + nth), seed + nth));
  const sum = (of: 'looks' | 'told' | 'right') => found.reduce((total, one) => total + one[of], 0);
  expect(sum('told') / sum('looks')).toBeGreaterThanOrEqual(0.7);
  expect(sum('right') / sum('told')).toBeGreaterThanOrEqual(0.9);
});
