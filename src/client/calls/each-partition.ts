/**
 * A list of jobs by their ids → slices of bounded size → the partitions that have them, one after the other, and the
 * answers in the order of the list. A queue that moves meanwhile costs only the slice under way another try.
 */
import type { Queue } from '../../job/queue.ts';
import type { RetryPolicy } from '../../redis/connection/outage.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import type { Moved } from '../../redis/scripts/replies.ts';
import { CHUNK_JOBS_MAX } from './chunks.ts';
import { homeOf, type Layout } from './layouts.ts';
import { asOne, type CallPartitions, isMoved } from './partition-calls.ts';

/** Jobs of one partition. */
export interface Some<Item> {
  readonly ref: PartitionRef;
  readonly some: readonly Item[];
}

export async function inSlices<Item extends { readonly id: string }, Answer>(
  callPartitions: CallPartitions,
  { queue, items }: { readonly queue: Queue; readonly items: readonly Item[] },
  ask: (of: Some<Item>, policy: RetryPolicy) => Promise<readonly Answer[] | Moved>,
): Promise<readonly Answer[]> {
  const results: Answer[] = [];
  const calls = asOne(callPartitions);
  for (let from = 0; from < items.length; from += CHUNK_JOBS_MAX) {
    const slice = items.slice(from, from + CHUNK_JOBS_MAX);
    const found = await calls(queue, (layout, policy) =>
      eachPartition(layout, slice, (ref, some) => ask({ ref, some }, policy)),
    );
    results.push(...found);
  }
  return results;
}

async function eachPartition<Item extends { readonly id: string }, Answer>(
  layout: Layout,
  items: readonly Item[],
  ask: (ref: PartitionRef, some: readonly Item[]) => Promise<readonly Answer[] | Moved>,
): Promise<readonly Answer[] | Moved> {
  const groups = new Map<PartitionRef, number[]>();
  for (const [index, { id }] of items.entries()) {
    const ref = homeOf(layout, id);
    const group = groups.get(ref);
    if (group) group.push(index);
    else groups.set(ref, [index]);
  }
  const results = new Map<number, Answer>();
  for (const [ref, indexes] of groups) {
    const answers = await ask(
      ref,
      indexes.flatMap((index) => items[index] ?? []),
    );
    if (isMoved(answers)) return answers;
    for (const [at, answer] of answers.entries()) results.set(indexes[at] ?? -1, answer);
  }
  return items.flatMap((_, index) => results.get(index) ?? []);
}
