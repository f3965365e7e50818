/** What the page Now concludes from numbers. */
import { describe, expect, test, vi } from 'vitest';
import type { LiveQueue } from '../../src/dashboard/live.ts';

// What the pages know of where they are, they ask when they are loaded.
vi.hoisted(() => Object.assign(globalThis, { document: { baseURI: 'http://here/' } }));

import {
  herdsIn,
  levelOf,
  namedIn,
  restOf,
  spellsIn,
  stepsOf,
  worstHour,
} from '../../src/dashboard/pages/now/saying.ts';

const HOUR = 3_600_000;
const queue = (name: string, given: Partial<LiveQueue> = {}): LiveQueue => ({
  ...{ queue: name, partitions: 1, leaders: ['host:1'], workers: 1, paused: false },
  ...{ scheduled: 0, waiting: 0, waitMs: 0, ready: 0, running: 0, dead: 0, oldestDueAgeMs: 0, oldestInLine: false },
  perSecond: { scheduled: 0, promoted: 0, started: 0, ended: 0 },
  ...given,
});

describe('the sentence', () => {
  test('names the latest queue first, then those that somebody wants so; dead letters make none late', () => {
    const { named, more } = namedIn([
      queue('dead', { dead: 3 }),
      queue('paused', { paused: true, oldestDueAgeMs: 9 * HOUR }),
      queue('late', { oldestDueAgeMs: 5000 }),
      queue('later', { oldestDueAgeMs: 60_000 }),
      queue('well', { oldestDueAgeMs: 900 }),
    ]);
    expect(named.map((one) => [one.queue, one.what, one.isCalm])).toEqual([
      ['later', 'late', false],
      ['late', 'late', false],
      ['paused', 'paused', true],
    ]);
    expect(more).toBe(0);
  });

  test('tells a queue without a leader from one without a worker, and how many more there are', () => {
    const all = ['a', 'b', 'c', 'd'].map((name) => queue(name, { workers: 0, scheduled: 1 }));
    const { named, more } = namedIn([queue('unled', { leaders: [null], scheduled: 1 }), ...all]);
    expect(named.map(({ what }) => what)).toEqual(['leaderless', 'unserved', 'unserved']);
    expect(more).toBe(2);
  });
});

describe('of the queues that are not named the sentence says', () => {
  const nothing = { named: 0, more: 0, failures: 0, unread: 0 };

  test('that all is well where nothing is wrong, and that the rest is where something is', () => {
    expect(restOf(nothing)).toBe('all-well');
    expect(restOf({ ...nothing, named: 2 })).toBe('rest-well');
    expect(restOf({ ...nothing, named: 3, more: 1 })).toBeUndefined();
    expect(restOf({ ...nothing, failures: 1 })).toBeUndefined();
  });

  test('that some could not be read, and never that they are well', () => {
    expect(restOf({ ...nothing, unread: 1 })).toBe('unread');
    expect(restOf({ ...nothing, named: 1, unread: 1 })).toBeUndefined();
  });
});

describe('what comes due', () => {
  const bucket = (at: number, jobs: number) => ({ fromMs: at * (HOUR / 2), jobs, scheduled: jobs, coming: 0 });

  test('has as its worst hour both halves of an hour of the clock', () => {
    const steps = [bucket(1, 50), bucket(2, 30), bucket(3, 30), bucket(4, 0)];
    expect(worstHour(steps)).toEqual({ fromMs: HOUR, jobs: 60 });
    expect(worstHour([bucket(1, 0)])).toBeUndefined();
  });

  test('names as herds the half hours that stick out, each with the queue that has most of it', () => {
    const jobs = Array.from({ length: 48 }, (_, at) => (at === 10 ? 900 : at === 11 ? 800 : at === 30 ? 40 : 5));
    const other = jobs.map((_, at) => (at === 30 ? 35 : 0));
    const queues = [
      { queue: 'mails', jobs: jobs.map((count, at) => count - (other[at] ?? 0)) },
      { queue: 'bills', jobs: other },
    ];
    const herds = herdsIn(stepsOf({ buckets: jobs.map((count, at) => bucket(at, count)), queues }));
    expect(herds.map((one) => [one.at, one.jobs, one.queue])).toEqual([
      [10, 900, 'mails'],
      [30, 40, 'bills'],
    ]);
  });

  test('has a level for each multiple up to the fullest cell', () => {
    expect([0, 1, 20, 999, 1000].map((jobs) => levelOf(jobs, 1000))).toEqual([0, 1, 3, 5, 5]);
    expect(levelOf(1, 1)).toBe(5);
  });
});

test('hours in a row that were late, or in which jobs died, are one spell; one of now goes on', () => {
  const day = {
    ...{ on: true, nowMs: 4 * HOUR, startMs: 0, stepMs: HOUR, events: [], unread: [] },
    queues: [
      {
        ...{ queue: 'q', starts: [1, 1, 1, 1], inTime: 0, hourP99Ms: 1 },
        ...{ p99Ms: [2000, 3000, 4, 1500], maxMs: [null, 9000, 5, 1500], dead: [0, 2, 3, 0] },
      },
    ],
  };
  expect(spellsIn(day)).toEqual([
    { queue: 'q', what: 'late', size: 9000, fromMs: 0, toMs: 2 * HOUR },
    { queue: 'q', what: 'late', size: 1500, fromMs: 3 * HOUR, toMs: undefined },
    { queue: 'q', what: 'died', size: 5, fromMs: HOUR, toMs: 3 * HOUR },
  ]);
});
