/**
 * One call that is not part of a batch, on its way to the partitions of a queue: in its turn, with the layout that is
 * known, repeated in an outage, and again with the new layout when the queue has moved meanwhile.
 */

import pLimit from 'p-limit';
import { partitionOf } from '../../job/job-id.ts';
import type { Queue } from '../../job/queue.ts';
import type { Clock } from '../../kernel/clock.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import type { RetryPolicy, Whole } from '../../redis/connection/outage.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import type { Moved } from '../../redis/scripts/replies.ts';
import { type Layout, type Layouts, MOVE_PAUSE_MS, MOVES_MAX, movedAway } from './layouts.ts';

/**
 * `call` is given the layout and the policy for its own repetitions. `whole`: what it is a part of, if it is one. Only a call that
 * `declares` makes a queue that nobody has used.
 * @throws DuestreamError `moved`
 */
export type CallPartitions = <T>(
  queue: Queue,
  call: (layout: Layout, policy: RetryPolicy) => Promise<T | Moved>,
  whole?: Whole,
  use?: 'declares',
) => Promise<T>;

export function createPartitionCalls(parts: {
  readonly layouts: Pick<Layouts, 'known' | 'seen' | 'load' | 'find' | 'reload'>;
  readonly slots: Slots;
  readonly clock: Clock;
  readonly budgetMs: number;
}): CallPartitions {
  const { layouts, slots, clock, budgetMs } = parts;
  const layoutOf = (queue: Queue, use: 'declares' | undefined) =>
    use === 'declares' ? (layouts.known(queue) ?? layouts.load(queue)) : (layouts.seen(queue) ?? layouts.find(queue));
  return (queue, call, whole = { isBegun: false }, use) =>
    slots.run(async (giveBack) => {
      let layout = await layoutOf(queue, use);
      for (let moves = 0; moves <= MOVES_MAX; moves += 1) {
        const reply = await call(layout, { clock, budgetMs, whole, onFailure: giveBack });
        if (!isMoved(reply)) return reply;
        await clock.sleep(MOVE_PAUSE_MS * moves);
        const [seen] = layout;
        if (seen) layout = await layouts.reload(queue, seen, use);
      }
      throw movedAway(queue.name);
    });
}

/** Calls that are parts of one: when some of it was carried out, an outage leaves the whole in doubt. */
export function asOne(callPartitions: CallPartitions, use?: 'declares'): CallPartitions {
  const whole: Whole = { isBegun: false };
  return (queue, call) => callPartitions(queue, call, whole, use);
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

/**
 * At most so many calls at once; the rest wait their turn in order, and a crowd that does not stop is refused. A call that is
 * repeated gives its slot back: in a cluster one master may be away, and calls to the others must not wait for it.
 */
export interface Slots {
  /**
   * Runs the call when there is room. The call may give its slot back before it ends.
   *
   * @throws DuestreamError `unavailable` when too many wait already
   */
  readonly run: <T>(call: (giveBack: () => void) => Promise<T>) => Promise<T>;
}

export function createSlots({ max, waitingMax }: { readonly max: number; readonly waitingMax: number }): Slots {
  // It keeps the order, and lets any number wait.
  const limit = pLimit(max);
  let without = 0;
  return {
    async run(call) {
      if (limit.activeCount >= max && limit.pendingCount + without >= waitingMax) throw tooMany(waitingMax);
      return new Promise((resolve, reject) => {
        const inSlot = () =>
          new Promise<void>((leave) => {
            let isBack = false;
            const giveBack = () => {
              if (!isBack) without += 1;
              isBack = true;
              leave();
            };
            const over = () => {
              if (isBack) without -= 1;
              leave();
            };
            call(giveBack).then(resolve, reject).finally(over);
          });
        void limit(inSlot);
      });
    },
  };
}

/** The refusal of a crowd. Nothing was sent. */
export function tooMany(waitingMax: number): DuestreamError {
  return new DuestreamError(
    'unavailable',
    `${waitingMax} calls already wait for Redis, the most that may; nothing was sent: wait until some of them end`,
  );
}
