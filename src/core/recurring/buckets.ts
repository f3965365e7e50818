/** Time cut into buckets that begin at full minutes or hours, and how many instants fall into each. Pure. */
import { fires, type Recurrence } from './recurrence.ts';

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
 * How many instants of a rule fall into each bucket. Intervals are counted without walking through them.
 *
 * @returns undefined when there are more than `most` to walk through
 */
export function instantsIn(
  recurrence: Recurrence,
  { edges, stepMs }: Buckets,
  { most, walk }: { readonly most: number; readonly walk: number },
): { readonly counts: readonly number[]; readonly walked: number } | undefined {
  const [fromMs = 0, firstMs = 0] = edges;
  const untilMs = edges.at(-1) ?? 0;
  const counts = edges.slice(1).map(() => 0);
  const { rule } = recurrence;
  if ('everyMs' in rule && recurrence.calendar === undefined && most === Number.POSITIVE_INFINITY) {
    return {
      counts: counts.map((_, at) =>
        everyIn(recurrence, rule, [at === 0 ? fromMs + 1 : (edges[at] ?? 0), edges[at + 1] ?? 0]),
      ),
      walked: 0,
    };
  }
  let walked = 0;
  for (const atMs of fires(recurrence, fromMs)) {
    if (atMs >= untilMs || walked >= most) break;
    walked += 1;
    if (walked > walk) return undefined;
    const bucket = atMs < firstMs ? 0 : 1 + Math.floor((atMs - firstMs) / stepMs);
    counts[bucket] = (counts[bucket] ?? 0) + 1;
  }
  return { counts, walked };
}

/** Instants from one edge to before the other. */
function everyIn(
  { startMs = Number.NEGATIVE_INFINITY, endMs = Number.POSITIVE_INFINITY }: Recurrence,
  { everyMs, anchorMs }: { readonly everyMs: number; readonly anchorMs: number },
  [fromMs, toMs]: readonly [number, number],
): number {
  const upTo = (ms: number) => Math.max(-1, Math.floor((ms - anchorMs) / everyMs));
  return Math.max(0, upTo(Math.min(toMs, endMs) - 1) - upTo(Math.max(fromMs, startMs) - 1));
}
