/** A list of jobs by their ids → the partitions that have them, one after the other, and the answers in the order of the list. */
import type { PartitionRef } from '../redis/keys.ts';
import type { Moved } from '../redis/transitions/replies.ts';
import { homeOf, type Layout } from './layouts.ts';
import { isMoved } from './partition-calls.ts';

export async function eachPartition<Item extends { readonly id: string }, Answer>(
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
