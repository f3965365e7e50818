/**
 * How long the mover rests while a partition is capped. As long as workers take entries it looks every few milliseconds,
 * as the room they make is to be filled at once. While the backlog stands still it rests a quarter longer each time, so
 * whoever stands still for a while waits a quarter of that while longer, and a partition that nobody serves costs about
 * as much as an idle one.
 *
 * The longest rest is what a drain from a full backlog surely takes: 20,000 jobs/s are more than the workers of one
 * partition get through. So when workers come back, room is made in time, however long nobody was there.
 */

const FIRST_MS = 5;
const GROWTH = 1.25;
const JOBS_PER_MS = 20;
/** A small cap must not cost hundreds of looks per second. */
const LONGEST_MIN_MS = 100;

export interface Standstill {
  /** The partition is capped with so many undelivered entries: how long to rest. */
  readonly restMs: (backlog: number) => number;
  /** Something moved. */
  readonly over: () => void;
}

export function createStandstill({ readyMax }: { readonly readyMax: number }): Standstill {
  const longestMs = Math.max(LONGEST_MIN_MS, readyMax / JOBS_PER_MS);
  let least = Number.POSITIVE_INFINITY;
  let nextMs = FIRST_MS;

  function over(): void {
    least = Number.POSITIVE_INFINITY;
    nextMs = FIRST_MS;
  }

  return {
    restMs(backlog) {
      if (backlog < least) over();
      least = backlog;
      const restMs = nextMs;
      nextMs = Math.min(longestMs, restMs * GROWTH);
      return restMs;
    },
    over,
  };
}
