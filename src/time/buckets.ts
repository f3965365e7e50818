/** Time cut into buckets that begin at full minutes or hours, and how many instants fall into each. Pure. */
import type { Steps } from '../kernel/steps.ts';
import { countFires } from './count-fires.ts';
import { nextFire, type Recurrence } from './recurrence.ts';

export interface Buckets {
  /** Where each begins, and where the last one ends: one more than there are buckets. */
  readonly edges: readonly number[];
  readonly stepMs: number;
}

/**
 * The first bucket begins after `fromMs` and the last one ends before `untilMs`, so both may be shorter. What is at an
 * edge belongs to the bucket that begins there.
 */
export function bucketsOf(range: {
  readonly fromMs: number;
  readonly untilMs: number;
  readonly stepMs: number;
}): Buckets {
  const { fromMs, untilMs, stepMs } = range;
  const edges = [fromMs];
  for (let at = (Math.floor(fromMs / stepMs) + 1) * stepMs; at < untilMs; at += stepMs) edges.push(at);
  return { edges: [...edges, untilMs], stepMs };
}

/**
 * How many instants of a rule fall into each bucket. Buckets without any are leapt over, and those within one are counted,
 * so a rule of seconds costs no more than one of minutes.
 *
 * @param most so many fire at most, the first ones
 */
export function* instantsIn(
  recurrence: Recurrence,
  { edges, stepMs }: Buckets,
  most: number,
): Steps<readonly number[]> {
  const [fromMs = 0, firstMs = 0] = edges;
  const lastMs = (edges.at(-1) ?? 0) - 1;
  const counts = edges.slice(1).map(() => 0);
  let left = most;
  for (let atMs = fromMs; left > 0; ) {
    yield;
    const nextMs = yield* nextFire(recurrence, atMs, lastMs);
    if (nextMs === undefined || nextMs > lastMs) break;
    const bucket = nextMs < firstMs ? 0 : 1 + Math.floor((nextMs - firstMs) / stepMs);
    atMs = (edges[bucket + 1] ?? 0) - 1;
    const count = Math.min(left, 1 + (yield* countFires(recurrence, nextMs, atMs)));
    counts[bucket] = count;
    left -= count;
  }
  return counts;
}
