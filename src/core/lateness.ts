/**
 * When a job is too late to start: an instant, a most lateness, or both, and what happens then. Part of the record's
 * header, so that Redis can judge it without reading the job.
 */
import type { Lateness, OnLate } from './codec.ts';
import { type DurationInput, durationMs, type InstantInput, instantMs, show } from './duration.ts';
import { DuestreamError } from './errors.ts';

export interface LatenessOptions {
  /** The instant after which no handler starts any more. */
  readonly expiresAt?: InstantInput | undefined;
  /** How long after the due time (after a retry: the due time of the retry) a start is still allowed. */
  readonly maxLateness?: DurationInput | undefined;
  /**
   * What happens to a job that is too late: `drop` (default) ends it as `expired`, `dead` makes a dead letter with the
   * reason `expired`, `run` starts it all the same. A replayed dead letter does not expire.
   */
  readonly onLate?: OnLate | undefined;
}

const POLICIES: readonly OnLate[] = ['drop', 'dead', 'run'];

/** @throws DuestreamError `bad-input` for an expiry before the due time, or an `onLate` without an expiry. */
export function latenessOf({ expiresAt, maxLateness, onLate }: LatenessOptions, dueMs: number): Lateness {
  if (expiresAt === undefined && maxLateness === undefined) {
    if (onLate === undefined) return {};
    throw new DuestreamError(
      'bad-input',
      `onLate is ${show(onLate)} without expiresAt or maxLateness; allowed: together with one of them`,
    );
  }
  if (onLate !== undefined && !POLICIES.includes(onLate)) {
    throw new DuestreamError('bad-input', `onLate is ${show(onLate)}; allowed: ${POLICIES.join(', ')}`);
  }
  return {
    ...(expiresAt === undefined ? {} : { expiresAtMs: expiryOf(expiresAt, dueMs) }),
    ...(maxLateness === undefined ? {} : { maxLatenessMs: Math.ceil(durationMs(maxLateness, 'maxLateness')) }),
    ...(onLate === undefined ? {} : { onLate }),
  };
}

/**
 * Whether a job is too late to start. `start.lua` judges by the same rule; this is for whoever plays it without Redis.
 *
 * @param sinceMs the due time of a retry or a defer, else the asked due time
 */
export function isTooLate(
  { expiresAtMs = Number.POSITIVE_INFINITY, maxLatenessMs = Number.POSITIVE_INFINITY, onLate }: Lateness,
  { nowMs, sinceMs }: { readonly nowMs: number; readonly sinceMs: number },
): boolean {
  return onLate !== 'run' && (nowMs > expiresAtMs || nowMs - sinceMs > maxLatenessMs);
}

function expiryOf(input: InstantInput, dueMs: number): number {
  const expiresAtMs = Math.floor(instantMs(input, 'expiresAt'));
  if (expiresAtMs >= dueMs) return expiresAtMs;
  throw new DuestreamError(
    'bad-input',
    `expiresAt is ${show(new Date(expiresAtMs))}; allowed: not before the job is due, ${show(new Date(dueMs))}`,
  );
}
