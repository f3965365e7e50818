/**
 * How long a leader waits between two passes: by the rate of promotions, and while the backlog is at its cap.
 */

/** From this rate on, passes are so far apart at least; below it less, in proportion. */
const NEAR_GAP_MS = 1.5;
const NEAR_PER_SECOND = 400;
/** Above this rate the gap grows further, to its maximum near 14,000/s. */
const FAR_PER_SECOND = 5000;
const JOBS_PER_MS_OF_GAP = 2500;
const GAP_MAX_MS = 5;
/** How fast the estimate follows: about the last 200 ms count. */
const MEMORY_MS = 200;

/**
 * The rate of promotions, and the gap that it calls for. While the rate is low there is none, so that a job is on time to
 * the millisecond. As the rate grows the gap grows, so that one pass carries several jobs, and with it one read, one start
 * and one acknowledgement of the worker. The first one and a half milliseconds come early, because a call for one job costs
 * Redis nearly as much as a call for three. The rest comes with rates at which so many passes would keep this process busy.
 * A timer fires at whole milliseconds, so passes are 1 to 2 ms apart then, and a job waits for half of that in the median.
 */
export class PromotionRate {
  #perSecond = 0;
  #lastMs = Number.NEGATIVE_INFINITY;

  /** A pass promoted so many jobs at a monotonic time. */
  promoted(count: number, atMs: number): void {
    const elapsedMs = Math.max(0.1, Math.min(atMs - this.#lastMs, 60_000));
    const weight = 1 - Math.exp(-elapsedMs / MEMORY_MS);
    this.#perSecond += weight * ((count / elapsedMs) * 1000 - this.#perSecond);
    this.#lastMs = atMs;
  }

  /** The least wait before the next pass. */
  gapMs(): number {
    const nearMs = Math.min(1, this.#perSecond / NEAR_PER_SECOND) * NEAR_GAP_MS;
    const farMs = Math.max(0, this.#perSecond - FAR_PER_SECOND) / JOBS_PER_MS_OF_GAP;
    return Math.min(GAP_MAX_MS, nearMs + farMs);
  }
}

const FIRST_MS = 5;
const GROWTH = 1.25;
const JOBS_PER_MS = 20;
/** A small cap must not cost hundreds of looks per second. */
const LONGEST_MIN_MS = 100;

/**
 * The wait of a leader while the backlog is at its cap. While workers take entries, the leader looks every few
 * milliseconds, because the room that they make is to be filled at once. While the backlog stands still, each wait is a
 * quarter longer than the one before. So the leader notices the end of a standstill within a quarter of its length, and a
 * partition without workers costs about as much as an idle one.
 *
 * The longest wait is the time that a drain of a full backlog surely takes: 20,000 jobs/s are more than the workers of one
 * partition get through. So when workers come back, the leader makes room in time, however long they were away.
 */
export class BacklogBackoff {
  readonly #longestMs: number;
  #least = Number.POSITIVE_INFINITY;
  #nextMs = FIRST_MS;

  constructor({ readyMax }: { readonly readyMax: number }) {
    this.#longestMs = Math.max(LONGEST_MIN_MS, readyMax / JOBS_PER_MS);
  }

  /** How long to wait while the partition is at its cap with so many undelivered entries. */
  waitMs(backlog: number): number {
    if (backlog < this.#least) this.reset();
    this.#least = backlog;
    const waitMs = this.#nextMs;
    this.#nextMs = Math.min(this.#longestMs, waitMs * GROWTH);
    return waitMs;
  }

  /** The partition is below its cap, or a worker has taken an entry. */
  reset(): void {
    this.#least = Number.POSITIVE_INFINITY;
    this.#nextMs = FIRST_MS;
  }
}
