/** When jobs of a partition come due: how many in which span, one ZCOUNT each, whatever their number; and the first of all. */
import type { Redis } from '../connection/connect.ts';
import { naming } from '../connection/wrong-type.ts';
import type { PartitionRef } from '../keys.ts';
import { score } from '../scripts/scripts.ts';

/** Ends of the spans, ms from now; the last one is open. What is due by now comes before them. */
export const DUE_SPANS_MS = [60_000, 300_000, 3_600_000, 21_600_000, 86_400_000, 604_800_000] as const;

/** Counts of what is due by now, of each span, and of what comes later. */
export async function dueNext(redis: Redis, { keys }: PartitionRef, nowMs: number): Promise<readonly number[]> {
  const ends = [nowMs, ...DUE_SPANS_MS.map((ms) => nowMs + ms)];
  const bounds = ends.map((end, at) => [at === 0 ? '-inf' : `(${ends[at - 1]}`, String(end)] as const);
  const spans = [...bounds, [`(${ends.at(-1)}`, '+inf'] as const];
  return Promise.all(spans.map(([from, to]) => redis.zcount(keys.scheduled, from, to)));
}

/** The due time of the first job in scheduled, in whole ms; infinite when there is none. */
export async function headDue(redis: Redis, { keys }: PartitionRef): Promise<number> {
  const [, due = 'inf'] = await naming(redis, [keys], redis.zrange(keys.scheduled, '0', '0', 'WITHSCORES'));
  return Math.ceil(score(due));
}
