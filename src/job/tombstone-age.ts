/**
 * How old a tombstone must be before its number may cost it its place. A call whose reply was lost is recognised by the
 * tombstone of its job; without one it would be carried out once more, and the job would run twice.
 *
 *  first try carried out ── retry budget ──▶ last try sent ── command time-out ──▶ carried out, or given up
 *
 * The tombstone is at most as old as that when the last try meets it, because a job ends after it was scheduled. Twice
 * that time is kept: a clock that runs differently and a busy Redis must not use it up. And never less than a minute, for
 * the caller who is told that the outcome is unknown and makes the same call again.
 *
 * Acknowledgements of jobs that are delivered at most once are repeated for as long as their worker lives. They need no
 * share of this: until the worker has its answer, the entry stays in ready and its tombstone out of the sweep's reach.
 */
const FLOOR_MIN_MS = 60_000;

export function doneFloorMs(of: { readonly retryBudgetMs: number; readonly commandTimeoutMs: number }): number {
  return Math.max(FLOOR_MIN_MS, 2 * (of.retryBudgetMs + of.commandTimeoutMs));
}
