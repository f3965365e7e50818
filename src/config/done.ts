/** How long and how many ends of jobs Redis keeps, by the configuration; `sweep` and `doctor` use the numbers. */
import type { Config } from './options.ts';

export interface DoneLimits {
  /** 0 = nothing is remembered. */
  readonly windowMs: number;
  readonly tombstonesMax: number;
  /** No tombstone younger than this goes because of the count. */
  readonly floorMs: number;
}

export function doneLimits({ done, redis }: Pick<Config, 'done' | 'redis'>): DoneLimits {
  const { windowMs, max, retryBudgetMs } = done;
  const isOff = windowMs === 0 || max === 0;
  const floorMs = isOff ? 0 : tombstoneAgeMinMs({ retryBudgetMs, commandTimeoutMs: redis.commandTimeoutMs });
  return { windowMs: isOff ? 0 : windowMs, tombstonesMax: max, floorMs };
}

const AGE_MIN_MS = 60_000;

/**
 * The age below which no tombstone goes, however many there are. Redis recognises a repeated call, whose reply was lost,
 * by the tombstone of its job; without a tombstone Redis would carry the call out once more, and the job would run twice.
 *
 *  first try carried out ── retry budget ──▶ last try sent ── command time-out ──▶ carried out, or given up
 *
 * The tombstone is at most as old as this when the last try meets it, because a job ends after it was scheduled. The age
 * is twice that time, so that a clock of another speed and a busy Redis do not use it up. It is never less than a minute,
 * for the caller who hears that the outcome is unknown and makes the same call again.
 *
 * A worker repeats the acknowledgement of a job that is delivered at most once for as long as the worker lives. Such jobs
 * need no share of this age: until the worker has its answer, the entry stays in ready, and the sweep leaves its tombstone.
 */
function tombstoneAgeMinMs(of: { readonly retryBudgetMs: number; readonly commandTimeoutMs: number }): number {
  return Math.max(AGE_MIN_MS, 2 * (of.retryBudgetMs + of.commandTimeoutMs));
}
