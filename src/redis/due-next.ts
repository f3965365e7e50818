/** How many jobs of a partition come due when: one ZCOUNT per span, whatever the number of jobs. */
import type { Redis } from './connection/connect.ts';
import type { PartitionRef } from './keys.ts';

/** Ends of the spans, ms from now; the last one is open. What is due by now comes before them. */
export const DUE_SPANS_MS = [60_000, 300_000, 3_600_000, 21_600_000, 86_400_000, 604_800_000] as const;

/** Counts of what is due by now, of each span, and of what comes later. */
export async function dueNext(redis: Redis, { keys }: PartitionRef, nowMs: number): Promise<readonly number[]> {
  const ends = [nowMs, ...DUE_SPANS_MS.map((ms) => nowMs + ms)];
  const bounds = ends.map((end, at) => [at === 0 ? '-inf' : `(${ends[at - 1]}`, String(end)] as const);
  const spans = [...bounds, [`(${ends.at(-1)}`, '+inf'] as const];
  return Promise.all(spans.map(([from, to]) => redis.zcount(keys.scheduled, from, to)));
}
