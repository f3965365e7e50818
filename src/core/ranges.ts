/**
 * The ranges of options that can be said in two places: in the configuration, and in code. Both read them here, so that
 * what the configuration lets through is never refused by the worker that gets it.
 */
import { type DurationInput, durationMs, show } from './duration.ts';
import { DuestreamError } from './errors.ts';

export interface Range {
  readonly min: number;
  readonly max: number;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** Of a worker. `extendEveryMs` is besides at most half of `jobLeaseMs`. */
export const workerRanges = {
  concurrency: { min: 1, max: 10_000 },
  jobLeaseMs: { min: 100, max: DAY_MS },
  extendEveryMs: { min: 10, max: DAY_MS / 2 },
  beatTtlMs: { min: 100, max: HOUR_MS },
  graceMs: { min: 50, max: HOUR_MS },
  shutdownMs: { min: 0, max: DAY_MS },
  abortGraceMs: { min: 0, max: HOUR_MS },
  recycleAtPercent: { min: 0, max: 100 },
  doneWindowMs: { min: 0, max: 30 * DAY_MS },
} as const satisfies Readonly<Record<string, Range>>;

/** Of a queue; attempts and timeout also of one job. */
export const queueRanges = {
  partitions: { min: 1, max: 1024 },
  attempts: { min: 1, max: 1000 },
  crashes: { min: 1, max: 100 },
  timeoutMs: { min: 1, max: 365 * DAY_MS },
} as const satisfies Readonly<Record<string, Range>>;

/** Milliseconds of a duration within a range. @throws DuestreamError `bad-input` */
export function durationIn(input: DurationInput, what: string, { min, max }: Range): number {
  const ms = durationMs(input, what);
  if (ms >= min && ms <= max) return ms;
  throw new DuestreamError('bad-input', `${what} is ${show(input)}; allowed: ${min} to ${max} ms`);
}
