/** How many jobs of a partition come due between edges of time: one ZCOUNT per bucket, whatever the number of jobs. */
import type { Redis } from '../connection/connect.ts';
import type { PartitionRef } from '../keys.ts';

const AT_ONCE = 500;

/** What is due by the first edge, then what each bucket holds: from its edge to before the next. */
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
