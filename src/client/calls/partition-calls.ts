/**
 * One call that is not part of a batch, on its way to the partitions of a queue: in its turn, with the layout that is
 * known, repeated in an outage, and again with the new layout when the queue has moved meanwhile.
 */

import type { Queue } from '../../job/queue.ts';
import { partitionOf } from '../../job/routing.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { RetryPolicy, Whole } from '../../redis/connection/outage.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import type { Moved } from '../../redis/scripts/replies.ts';
import { MOVES_MAX, movedAway } from './batch.ts';
import type { Layout, Layouts } from './layouts.ts';
import type { Slots } from './slots.ts';

/**
 * `call` is given the layout and the policy for its own repetitions. `whole`: what it is a part of, if it is one.
 * @throws DuestreamError `moved`
 */
export type CallPartitions = <T>(
  queue: Queue,
  call: (layout: Layout, policy: RetryPolicy) => Promise<T | Moved>,
  whole?: Whole,
) => Promise<T>;

const MOVE_PAUSE_MS = 50;

export function createPartitionCalls(parts: {
  readonly layouts: Layouts;
  readonly slots: Slots;
  readonly clock: Clock;
  readonly budgetMs: number;
}): CallPartitions {
  const { layouts, slots, clock, budgetMs } = parts;
  return (queue, call, whole = { isBegun: false }) =>
    slots.run(async () => {
      let layout = layouts.known(queue) ?? (await layouts.load(queue));
      for (let moves = 0; moves <= MOVES_MAX; moves += 1) {
        const reply = await call(layout, { clock, budgetMs, whole });
        if (!isMoved(reply)) return reply;
        await clock.sleep(MOVE_PAUSE_MS * moves);
        const [seen] = layout;
        if (seen) layout = await layouts.reload(queue, seen);
      }
      throw movedAway(queue.name);
    });
}

/** Calls that are parts of one: when some of it was carried out, an outage leaves the whole in doubt. */
export function asOne(callPartitions: CallPartitions): CallPartitions {
  const whole: Whole = { isBegun: false };
  return (queue, call) => callPartitions(queue, call, whole);
}

/** Where a job can be: one partition for an id of ours, any for a bare one, its own first. */
export function placesOf(layout: Layout, id: string, bare: boolean): readonly PartitionRef[] {
  const home = partitionOf(id, layout.length);
  const [...refs] = layout;
  const [first] = refs.splice(home, 1);
  if (!first) throw new Error(`a layout of ${layout.length} partitions has no place for ${id}`);
  return bare ? [first, ...refs] : [first];
}

export function isMoved(reply: unknown): reply is Moved {
  return typeof reply === 'object' && reply !== null && 'kind' in reply && reply.kind === 'moved';
}
