/**
 * How long the mover rests between two passes: at once when little is going on, so that a job is on time to the
 * millisecond; coarser as the rate grows, so that one pass carries several jobs, and with it one read, one start and one
 * settle of the worker. The first one and a half milliseconds come early, because a call for one job costs Redis nearly
 * as much as one for three. The rest comes with rates at which so many passes would keep this process busy. A timer fires
 * at whole milliseconds, so passes are 1 to 2 ms apart then, and a job waits for half of that in the median.
 */

/** From this rate on passes are so far apart at least; below it less, in proportion. */
const NEAR_GAP_MS = 1.5;
const NEAR_PER_SECOND = 400;
/** Above this rate the gap grows further, to its maximum near 14,000/s. */
const FAR_PER_SECOND = 5000;
const JOBS_PER_MS_OF_GAP = 2500;
const GAP_MAX_MS = 5;
/** How fast the estimate follows: about the last 200 ms count. */
const MEMORY_MS = 200;

export interface Pace {
  /** Tells how many jobs a pass promoted at a monotonic time. */
  readonly promoted: (count: number, atMs: number) => void;
  /** The least wait before the next pass. */
  readonly gapMs: () => number;
}

export function createPace(): Pace {
  let perSecond = 0;
  let lastMs = Number.NEGATIVE_INFINITY;
  return {
    promoted(count, atMs) {
      const elapsedMs = Math.max(0.1, Math.min(atMs - lastMs, 60_000));
      const weight = 1 - Math.exp(-elapsedMs / MEMORY_MS);
      perSecond += weight * ((count / elapsedMs) * 1000 - perSecond);
      lastMs = atMs;
    },
    gapMs() {
      const nearMs = Math.min(1, perSecond / NEAR_PER_SECOND) * NEAR_GAP_MS;
      const farMs = Math.max(0, perSecond - FAR_PER_SECOND) / JOBS_PER_MS_OF_GAP;
      return Math.min(GAP_MAX_MS, nearMs + farMs);
    },
  };
}
