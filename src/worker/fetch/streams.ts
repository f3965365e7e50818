/**
 * One read over all partitions of a queue: as many entries as there are free slots and no more. COUNT bounds each
 * stream, so free slots are spread over the streams.
 */
import type { Redis } from '../../redis/connection/connect.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { readNew } from '../../redis/scripts/ready.ts';

interface StreamsParts {
  readonly blocking: Redis;
  readonly refs: readonly PartitionRef[];
  readonly consumer: string;
}

/**
 * Waits for new entries, or with `waits` false only looks for them. What it brings is at most `free`, but for a wait
 * with fewer slots than streams.
 */
export type ReadStreams = (free: number, waits: boolean) => ReturnType<typeof readNew>;

export function createStreams({ blocking, refs, consumer }: StreamsParts): ReadStreams {
  let first = 0;

  /**
   * Fewer slots than streams: a look into each, some at a time and in turn, then a wait for the first entry of any. A
   * short BLOCK on a few would not do: Redis serves its end up to 100 ms late. What the wait brings too much goes back.
   */
  async function readFew(free: number, waits: boolean): ReturnType<typeof readNew> {
    for (let seen = 0; seen < refs.length; seen += free) {
      const streams = [...refs.slice(first), ...refs.slice(0, first)].slice(0, free);
      first = (first + free) % refs.length;
      const batches = await readNew(blocking, streams, { consumer, count: 1, blockMs: 0 });
      if (batches.length > 0) return batches;
    }
    return waits ? readNew(blocking, refs, { consumer, count: 1 }) : [];
  }

  return (free, waits) => {
    if (free < refs.length) return readFew(free, waits);
    const count = Math.floor(free / refs.length);
    return readNew(blocking, refs, { consumer, count, ...(waits ? {} : { blockMs: 0 }) });
  };
}
