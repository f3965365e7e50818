/**
 * Times counted in whole milliseconds, by buckets of which each power of two has eight: 0, 1, 2 … 15 ms have a bucket each, then
 * a bucket is two wide, from 32 ms on four, and so on. The counts of a bucket can be added: of minutes, of workers, of
 * partitions. Inside a bucket times are taken to lie evenly, so that a percentile of many times is known to within 2 %, and of a
 * few times to within the width of their bucket, an eighth at most. `bench/history.mjs` measures both.
 */

/** Buckets of one power of two. */
const PARTS = 8;
/** The first power of two whose buckets are wider than 1 ms is the one above 2 · PARTS. */
const PARTS_LOG = 3;
/** Times from 2^32 ms on (50 days) are not told apart. */
const LAST_POWER = 31;
export const OCTAVES = PARTS * (LAST_POWER - PARTS_LOG + 2);

/** The bucket of a time. */
export function octaveOf(ms: number): number {
  const whole = Math.max(0, Math.round(ms));
  if (whole < PARTS) return whole;
  if (whole >= 2 ** (LAST_POWER + 1)) return OCTAVES - 1;
  const shift = LAST_POWER - Math.clz32(whole) - PARTS_LOG;
  return (whole >>> shift) + PARTS * shift;
}

/** The least time of a bucket. */
export const octaveFromMs = (octave: number): number =>
  octave < PARTS ? octave : ((octave % PARTS) + PARTS) * octaveWidthMs(octave);

/** How many times, in whole ms, have this bucket; of the last, as if it ended too. */
export const octaveWidthMs = (octave: number): number => (octave < PARTS ? 1 : 2 ** (Math.floor(octave / PARTS) - 1));
