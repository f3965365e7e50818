/** The picture of a job: its starts and waits add up to its life, and each wait has the cause that its account tells. */
import { describe, expect, test } from 'vitest';
import type { Schemas } from '../../src/dashboard/api-types.ts';
import { type Change, type Life, lifeOf, mostOf, ofThisLife, sumsOfLife } from '../../src/dashboard/pages/job/life.ts';

const DUE = Date.UTC(2026, 10, 26, 1, 30);

function jobOf(given: Partial<Schemas['Job']>): Schemas['Job'] {
  return {
    ...{
      id: 'a',
      queue: 'q',
      nowMs: DUE,
      bare: false,
      partition: 0,
      state: 'done',
      attempts: 1,
      past: [],
      timeline: [],
    },
    ...{ options: {}, failures: 0, crashes: 0, generation: 0, cancelRequested: false, history: [], readable: true },
    ...{ hidden: false, askedDueMs: DUE },
    ...given,
  };
}

const accountOf = (dueMs: number, parts: Schemas['StartAccount']['parts']): Schemas['StartAccount'] => {
  const lateMs = parts.reduce((sum, { ms }) => sum + ms, 0);
  return { dueMs, startedMs: dueMs + lateMs, lateMs, parts };
};

/** `promotion 3, run 400` for each start. */
const told = (life: Life | undefined) =>
  life?.attempts.map(({ pieces }) => pieces.map(({ why, fromMs, toMs }) => `${why} ${toMs - fromMs}`).join(', '));

const gaps = (life: Life | undefined): number => {
  const pieces = life?.attempts.flatMap((one) => one.pieces) ?? [];
  return pieces.reduce((sum, { fromMs, toMs }) => sum + toMs - fromMs, 0) - ((life?.toMs ?? 0) - (life?.fromMs ?? 0));
};

test('a job that failed and was tried again is drawn start by start, and its parts add up to its life', () => {
  const first = accountOf(DUE, [
    { cause: 'promotion', ms: 3 },
    { cause: 'unasked', ms: 38, about: true },
  ]);
  const again = accountOf(DUE + 31_000, [
    { cause: 'no-worker', ms: 636_000 },
    { cause: 'rate', ms: 163_000, about: true },
  ]);
  const failed = { attempt: 1, kind: 'failure', message: 'boom' } as const;
  const job = jobOf({
    attempts: 2,
    failures: 1,
    overMs: again.startedMs + 620,
    account: again,
    history: [{ ...failed, atMs: DUE + 451, tookMs: 410, account: first }],
    timeline: [
      { atMs: DUE, kind: 'asked-due' },
      { atMs: first.startedMs, kind: 'started', attempt: 1, account: first },
      { ...failed, atMs: DUE + 451, tookMs: 410 },
      { atMs: again.startedMs, kind: 'started', attempt: 2, account: again },
      { atMs: again.startedMs + 620, kind: 'done', attempt: 2 },
    ],
  });
  const life = lifeOf(job);
  expect(told(life)).toEqual([
    'promotion 3, unasked 38, run 410',
    'retry 30549, no-worker 636000, rate 163000, run 620',
  ]);
  expect(life?.attempts.map(({ state }) => state)).toEqual(['failed', 'done']);
  expect(gaps(life)).toBe(0);
  expect(life && mostOf(life)).toBe('no-worker');
  expect(life && sumsOfLife(life)[1]).toEqual({ why: 'rate', ms: 163_000, isAbout: true });
});

test('a crash takes its place from what Redis knows of the dead worker, and the next start begins where it was taken over', () => {
  const account = accountOf(DUE, [
    { cause: 'promotion', ms: 5 },
    { cause: 'ran', ms: 4000 },
    { cause: 'unproven', ms: 30_000 },
    { cause: 'worker', ms: 95 },
  ]);
  const crash = { atMs: DUE + 34_005, attempt: 1, kind: 'crash', message: 'the worker died' } as const;
  const job = jobOf({
    attempts: 2,
    crashes: 1,
    overMs: DUE + 34_300,
    history: [{ ...crash, beganMs: DUE + 5, signMs: DUE + 4005 }],
    timeline: [
      { atMs: DUE, kind: 'asked-due' },
      crash,
      { atMs: DUE + 34_100, kind: 'started', attempt: 2, account },
      { atMs: DUE + 34_300, kind: 'done', attempt: 2 },
    ],
  });
  expect(told(lifeOf(job))).toEqual(['promotion 5, run 4000, unproven 30000', 'worker 95, run 200']);
  expect(gaps(lifeOf(job))).toBe(0);
});

test('without accounts a wait has no cause, and nothing is guessed', () => {
  const job = jobOf({
    overMs: DUE + 900,
    timeline: [
      { atMs: DUE, kind: 'asked-due' },
      { atMs: DUE + 500, kind: 'started', attempt: 1 },
      { atMs: DUE + 900, kind: 'done', attempt: 1 },
    ],
  });
  expect(told(lifeOf(job))).toEqual(['wait 500, run 400']);
});

test('a job that waits is drawn up to now, or up to its next due time', () => {
  const failed = { atMs: DUE + 400, attempt: 1, kind: 'failure', message: 'boom', tookMs: 400 } as const;
  const timeline: Schemas['Job']['timeline'] = [{ atMs: DUE, kind: 'started', attempt: 1 }, failed];
  const retries = jobOf({ state: 'scheduled', nowMs: DUE + 1000, dueMs: DUE + 5400, timeline, failures: 1 });
  expect(told(lifeOf(retries))).toEqual(['run 400', 'retry 5000']);
  expect(lifeOf(retries)?.attempts.at(-1)?.state).toBe('retry');
  const waits = jobOf({ state: 'waiting', attempts: 0, dueMs: DUE, nowMs: DUE + 29_000 });
  expect(told(lifeOf(waits))).toEqual(['line 29000']);
  expect(lifeOf(jobOf({ state: 'scheduled', attempts: 0, dueMs: DUE + 1, nowMs: DUE }))).toBeUndefined();
  expect(lifeOf(jobOf({ state: 'cancelled', attempts: 0, nowMs: DUE + 9 }))).toBeUndefined();
});

test('a job that a worker holds until it is due begins its run there, and one that runs has no end', () => {
  const account = { ...accountOf(DUE, []), startedMs: DUE - 40 };
  const timeline: Schemas['Job']['timeline'] = [{ atMs: DUE - 40, kind: 'started', attempt: 1, account }];
  const life = lifeOf(jobOf({ state: 'running', nowMs: DUE + 7000, timeline, account }));
  expect(told(life)).toEqual(['wait 40, run 7000']);
  expect(life?.attempts.map(({ state, end }) => [state, end])).toEqual([['running', undefined]]);
});

describe('of an id that was used before', () => {
  const ended = { atMs: DUE, kind: 'earlier-end', outcome: 'cancelled' } as const;
  const changeOf = (verb: string, atMs: number, who: string): Change => ({
    ...{ entry: `${atMs}-0`, atMs, who, way: 'page', verb, count: 1 },
  });

  test('the changes of this life are told, and not who ended an earlier one', () => {
    const ada = changeOf('jobs.cancel', DUE + 5, 'ada');
    const bob = changeOf('jobs.cancel', DUE + 90_000, 'bob');
    const job = jobOf({ timeline: [ended, { atMs: DUE + 90_000, kind: 'cancelled' }] });
    const before = changeOf('jobs.edit', DUE - 60_000, 'eve');
    expect(ofThisLife(job, [bob, ada, before])).toEqual([bob]);
    expect(ofThisLife(job, [ada, before])).toEqual([]);
  });

  test('a replay belongs to the life that it began', () => {
    const replay = changeOf('dead.replay', DUE + 5, 'ada');
    expect(ofThisLife(jobOf({ timeline: [{ ...ended, outcome: 'dead' }] }), [replay])).toEqual([replay]);
  });

  test('all changes are told where there was no other life', () => {
    const moved = changeOf('jobs.reschedule', DUE, 'ada');
    expect(ofThisLife(jobOf({}), [moved])).toEqual([moved]);
  });
});
