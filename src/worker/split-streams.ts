/**
 * The reads of a queue in a cluster, where one read cannot span partitions: each waits on a connection of its own. What
 * the first brings is handed on at once. The others wait on, and with what they may bring they count as slots that are
 * used, so that together they never bring more than is free.
 *
 * With fewer free slots than partitions each still asks for one entry. What is too much then goes back.
 */

import { outageOf } from '../redis/connection/outage.ts';
import type { PartitionRef } from '../redis/keys.ts';
import { readNew } from '../redis/transitions/ready.ts';
import type { ReadStreams, Streams, StreamsParts } from './streams.ts';

type Batch = Awaited<ReturnType<ReadStreams>>;

interface Wait {
  readonly count: number;
  readonly brought: Promise<void>;
}

/** A partition whose node is away is asked again after this time; the others are read as if nothing had happened. */
const REST_MS = 250;

export function createSplitStreams({ blocking, refs, consumer, clock }: StreamsParts): Streams {
  const waits = new Map<PartitionRef, Wait>();
  /** Monotonic ms until when a partition that failed is left alone. */
  const resting = new Map<PartitionRef, number>();
  /** What came and was not handed on yet. */
  let batches: Batch = [];
  let failure: { readonly error: unknown } | undefined;

  function wait(ref: PartitionRef, count: number, blockMs: number | undefined): void {
    const block = blockMs === undefined ? {} : { blockMs };
    const brought = readNew(blocking, [ref], { consumer, count, ...block })
      .then(
        (found) => {
          batches = [...batches, ...found];
        },
        (error: unknown) => {
          failure = { error };
          resting.set(ref, clock.monotonicMs() + REST_MS);
        },
      )
      .finally(() => waits.delete(ref));
    waits.set(ref, { count, brought });
  }

  function send(free: number, blockMs: number | undefined): void {
    const nowMs = clock.monotonicMs();
    const idle = refs.filter((ref) => !waits.has(ref) && (resting.get(ref) ?? 0) <= nowMs);
    for (const ref of idle) resting.delete(ref);
    const asked = [...waits.values()].reduce((sum, { count }) => sum + count, 0);
    const count = Math.max(1, Math.floor((free - asked) / Math.max(1, idle.length)));
    for (const ref of idle) wait(ref, count, blockMs);
  }

  /** What has come by now. A failure is told when nothing is read any more, or when its group must be made again. */
  function taken(): Batch {
    const found = batches.filter(({ deliveries }) => deliveries.length > 0);
    batches = [];
    const failed = failure;
    failure = undefined;
    if (!failed || found.length > 0) return found;
    if (waits.size > 0 && outageOf(failed.error) !== 'no-group') return found;
    throw failed.error;
  }

  async function read(free: number, isWait: boolean): Promise<Batch> {
    send(free, isWait ? undefined : 0);
    const under = [...waits.values()].map(({ brought }) => brought);
    const rested = new AbortController();
    const rest = resting.size > 0 ? [clock.sleep(REST_MS, rested.signal)] : [];
    await (isWait ? Promise.race([...under, ...rest]) : Promise.all(under));
    rested.abort();
    return taken();
  }

  async function last(): Promise<Batch> {
    await Promise.all([...waits.values()].map(({ brought }) => brought));
    const found = batches;
    batches = [];
    return found;
  }

  return { read, last };
}
