/**
 * How much one command may read. Redis serves nobody else meanwhile, and a record may be of 256 KiB, so work is bounded
 * by bytes and not by counts alone. Measured on Redis 7.0: what a start costs grows by 3 µs per KiB of the record, most of
 * it for its SHA-1; each job costs 9 to 12 µs besides, whatever its size.
 */

/** Bytes of records that one bulk call reads and hashes: two of 256 KiB, in 2 ms. What is over is answered `later`. */
export const READ_BYTES_MAX = 640 * 1024;
/** Jobs per bulk call: a start of 80 takes 1 ms with records of 200 bytes, 2 ms with 4 KiB. */
export const READ_JOBS_MAX = 80;

/** How many values a plain command asks for next. */
export interface Step {
  readonly next: () => number;
  /** How large the values were that came. */
  readonly saw: (sizes: readonly number[]) => void;
}

const PAGE_BYTES_MAX = 1024 * 1024;

/**
 * One value first, then up to twice as many each time, and never more than the largest so far lets expect to fit. A plain
 * command cannot stop in its middle: where large values begin after small ones, one page is larger than that.
 */
export function createStep(countMax: number): Step {
  let count = 1;
  let largest = 1;
  return {
    next: () => count,
    saw(sizes) {
      for (const size of sizes) largest = Math.max(largest, size);
      count = Math.max(1, Math.min(count * 2, countMax, Math.floor(PAGE_BYTES_MAX / largest)));
    },
  };
}
