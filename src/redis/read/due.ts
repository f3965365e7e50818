/**
 * When jobs of a partition come due: how many in each span, and the due time of the first job. Each span costs one ZCOUNT,
 * whatever the number of jobs.
 */
import type { Redis } from '../connection/connect.ts';
import { naming } from '../connection/wrong-type.ts';
import type { PartitionRef } from '../keys.ts';
import { score, WAITS } from '../scripts/scripts.ts';

/** Ends of the spans, ms from now; the last span is open. The jobs that are due by now come before them. */
export const DUE_SPANS_MS = [60_000, 300_000, 3_600_000, 21_600_000, 86_400_000, 604_800_000] as const;

/** How many jobs are due by now, how many in each span, and how many later. */
export async function dueNext(redis: Redis, { keys }: PartitionRef, nowMs: number): Promise<readonly number[]> {
  const ends = [nowMs, ...DUE_SPANS_MS.map((ms) => nowMs + ms)];
  const bounds = ends.map((end, at) => [at === 0 ? '-inf' : `(${ends[at - 1]}`, String(end)] as const);
  const spans = [...bounds, [`(${ends.at(-1)}`, `(${WAITS}`] as const];
  return Promise.all(spans.map(([from, to]) => redis.zcount(keys.scheduled, from, to)));
}

/** The due time of the first job in scheduled, in whole ms; infinite when there is none. */
export async function headDue(redis: Redis, { keys }: PartitionRef): Promise<number> {
  const [, due = 'inf'] = await naming(redis, [keys], redis.zrange(keys.scheduled, '0', '0', 'WITHSCORES'));
  // Jobs in line come behind all others: they are due, and wait for their turns.
  const dueMs = Math.ceil(score(due));
  return dueMs >= WAITS ? Number.POSITIVE_INFINITY : dueMs;
}

const AT_ONCE = 500;

/** How many jobs are due by the first edge, then how many each bucket holds: from its edge to before the next. */
export async function dueCounts(
  redis: Redis,
  { keys }: PartitionRef,
  edges: readonly number[],
): Promise<readonly number[]> {
  const bounds = edges.map((edge, at) => {
    if (at === 0) return ['-inf', String(edge)] as const;
    return [`${at === 1 ? '(' : ''}${edges[at - 1]}`, `(${edge}`] as const;
  });
  if ((await redis.zcard(keys.scheduled)) === 0) return bounds.map(() => 0);
  const counts: number[] = [];
  for (let from = 0; from < bounds.length; from += AT_ONCE) {
    const slice = bounds.slice(from, from + AT_ONCE);
    counts.push(...(await Promise.all(slice.map(([low, high]) => redis.zcount(keys.scheduled, low, high)))));
  }
  return counts;
}
