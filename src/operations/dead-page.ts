/** A page of the dead letters of a queue, newest first over all its partitions. */
import type { Redis } from '../redis/connection/connect.ts';
import type { PartitionRef } from '../redis/keys.ts';
import { everyDeadLetter } from '../redis/pages.ts';
import type { Placed } from './dead-letters.ts';

export interface DeadPage<Kept> {
  readonly kept: readonly Kept[];
  /** Partition → the last dead letter of it that is on this page or before; undefined: there are no more. */
  readonly next: Readonly<Record<string, string>> | undefined;
}

/**
 * @param after what the page before said as `next`
 * @param keep what is kept of each: never the record, which may be large
 */
export async function deadPage<Kept>(
  redis: Redis,
  refs: readonly PartitionRef[],
  {
    limit,
    after,
    keep,
  }: {
    readonly limit: number;
    readonly after: Readonly<Record<string, string>>;
    readonly keep: (placed: Placed) => Kept;
  },
): Promise<DeadPage<Kept>> {
  let newest: readonly {
    readonly place: string;
    readonly entry: string;
    readonly atMs: number;
    readonly kept: Kept;
  }[] = [];
  for (const ref of refs) {
    const place = String(ref.partition);
    const own: (typeof newest)[number][] = [];
    // One more than is shown tells whether there is another page.
    for await (const found of everyDeadLetter(redis, ref, limit + 1, after[place])) {
      const { entry, atMs } = found;
      own.push({ place, entry, atMs, kept: keep({ ref, deadLetter: found }) });
    }
    newest = [...newest, ...own].sort((a, b) => b.atMs - a.atMs).slice(0, limit + 1);
  }
  const shown = newest.slice(0, limit);
  const reached: Record<string, string> = { ...after };
  for (const { place, entry } of shown) reached[place] = entry;
  return { kept: shown.map(({ kept }) => kept), next: newest.length > limit ? reached : undefined };
}
