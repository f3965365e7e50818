/**
 * A promise of lateness: which share of the jobs of a queue starts within which time after the due time. **Late** are starts after
 * that time, jobs that expired without a start, and *standing* jobs: those that are due for longer and did not start until now. So a queue in
 * which nothing starts does not keep its promise.
 *
 * What may be late is a budget: the share that may, of the jobs of the last `over`, and 10 jobs at least. An alert compares the
 * jobs that were late in a while with the part of the budget that this while may use; so one rule serves busy and quiet queues.
 * A promise whose terms are changed begins anew.
 */
import type { LatenessPromise } from './queue-settings.ts';

/** What is promised, and since which minute it is counted. It is stored in `K:minutes`, and in each hour and day. */
export interface Terms {
  readonly since: number;
  readonly withinMs: number;
  readonly of: number;
  readonly overMs: number;
}

/** Jobs of one promise, in some time. */
export interface Promised extends Terms {
  /** Starts in time. */
  readonly kept: number;
  readonly late: number;
  readonly expired: number;
}

/** The budget is never less: of a queue with few jobs a single one would be all of it. */
const BUDGET_MIN = 10;

export const isSamePromise = (one: Omit<Terms, 'since'>, other: Omit<Terms, 'since'>): boolean =>
  one.withinMs === other.withinMs && one.of === other.of && one.overMs === other.overMs;

// As numbers of a list, which has none below zero and no fractions: a share in millionths.

const MILLION = 1_000_000;

export const promisedNumbers = ({ since, kept, late, expired, withinMs, of, overMs }: Promised): readonly number[] => [
  ...[since, kept, late, expired, withinMs, Math.round(of * MILLION), overMs],
];
export const PROMISED_NUMBERS = 7;

/** Undefined for a list that has none. */
export function readPromised(numbers: readonly number[]): Promised | undefined {
  const [since = 0, kept = 0, late = 0, expired = 0, withinMs = 0, of = 0, overMs = 0] = numbers;
  return since === 0 ? undefined : { since, kept, late, expired, withinMs, of: of / MILLION, overMs };
}

/** Of several partitions or times: of the promise that began last. */
export function promisedSum(all: readonly (Promised | undefined)[]): Promised | undefined {
  const known = all.flatMap((one) => one ?? []);
  const since = Math.max(...known.map((one) => one.since));
  return known
    .filter((one) => one.since === since)
    .reduce<Promised | undefined>(
      (sum, one) =>
        sum === undefined
          ? one
          : { ...one, kept: sum.kept + one.kept, late: sum.late + one.late, expired: sum.expired + one.expired },
      undefined,
    );
}

// The field `promise` of `K:minutes`: its terms, and what had been counted when it began.

/** A promise that a leader has seen, and the totals of its counters then. */
export interface Noted extends Terms {
  readonly keptBefore: number;
  readonly lateBefore: number;
  /** In all partitions. */
  readonly expiredBefore: number;
}

export const notedText = ({ since, withinMs, of, overMs, keptBefore, lateBefore, expiredBefore }: Noted): string =>
  [since, withinMs, of, overMs, keptBefore, lateBefore, expiredBefore].join(' ');

export function readNoted(text: string | null | undefined): Noted | undefined {
  const numbers = (text ?? '').split(' ').map(Number);
  const [since = 0, withinMs = 0, of = 0, overMs = 0, keptBefore = 0, lateBefore = 0, expiredBefore = 0] = numbers;
  if (numbers.length < 7 || numbers.some((one) => !(one >= 0)) || since === 0) return undefined;
  return { since, withinMs, of, overMs, keptBefore, lateBefore, expiredBefore };
}

/** Whether a leader has to note what is promised now. */
export const isNewPromise = (noted: Noted | undefined, asked: LatenessPromise | undefined): boolean =>
  asked?.isOn ? noted === undefined || !isSamePromise(noted, asked) : noted !== undefined;

// Whether it is kept.

/** Late jobs of the last while, of which the standing ones are none. */
export interface Recent {
  readonly forMs: number;
  readonly late: number;
}

export interface Budget {
  /** All jobs that count. */
  readonly jobs: number;
  /** So many of them may be late. */
  readonly budget: number;
  /** So many were, or stand. */
  readonly spent: number;
  readonly isKept: boolean;
}

export function budgetOf(of: number, { kept, late, expired }: Omit<Promised, keyof Terms>, standing: number): Budget {
  const spent = late + expired + standing;
  const jobs = kept + spent;
  const budget = Math.max(BUDGET_MIN, Math.round(jobs * (1 - of) * 1000) / 1000);
  return { jobs, budget, spent, isKept: spent <= budget };
}

const HOUR_MS = 3_600_000;
/** As `deploy/alerts.yaml` has them: how many times too fast, over a long and over a short while. */
const PACES = [
  { alert: 'page', pace: 14.4, longMs: HOUR_MS, shortMs: HOUR_MS / 12 },
  { alert: 'page', pace: 6, longMs: 6 * HOUR_MS, shortMs: HOUR_MS / 2 },
  { alert: 'ticket', pace: 1, longMs: 72 * HOUR_MS, shortMs: 6 * HOUR_MS },
] as const;
/** Fewer late jobs than more than this wake nobody, however small the budget is. */
const LATE_MIN = 2;

export type Alert = (typeof PACES)[number]['alert'];
export const PACE_SPANS_MS: readonly number[] = [...new Set(PACES.flatMap(({ longMs, shortMs }) => [longMs, shortMs]))];

/** The first alert that rings: the budget is used too fast over a long and a short while. */
export function alertOf(
  { budget, overMs, standing }: { readonly budget: number; readonly overMs: number; readonly standing: number },
  recent: readonly Recent[],
): Alert | undefined {
  const lateIn = (forMs: number) => (recent.find((one) => one.forMs === forMs)?.late ?? 0) + standing;
  const isAbove = (forMs: number, least: number, pace: number) =>
    lateIn(forMs) > Math.max(least, (pace * forMs * budget) / overMs);
  return PACES.find(({ pace, longMs, shortMs }) => isAbove(longMs, LATE_MIN, pace) && isAbove(shortMs, 0, pace))?.alert;
}

/** How many times as fast as it may last the budget is used, in the last hour. */
export function burnOf(
  { budget, overMs, standing }: { readonly budget: number; readonly overMs: number; readonly standing: number },
  lateInHour: number,
): number {
  const burn = ((lateInHour + standing) * overMs) / (budget * HOUR_MS);
  return Number(burn.toPrecision(2));
}
