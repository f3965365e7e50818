/**
 * Cancelling by id, one or many. A job that waits is over at once; one that runs is asked to stop; one that is over or
 * unknown is told. The second identical call changes nothing, so a lost reply is simply asked for again. With `ifMatch` the
 * script compares the job with what was seen of it, and cancels it only if it is still so.
 */
import { memberOf } from '../../job/codec.ts';
import type { Queue } from '../../job/queue.ts';
import type { OverState } from '../../job/state.ts';
import type { RetryPolicy } from '../../redis/connection/outage.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { CANCEL_JOBS_MAX } from '../../redis/scripts/bytes.ts';
import type { Jobs } from '../../redis/scripts/jobs.ts';
import type { CancelReply, Moved } from '../../redis/scripts/replies.ts';
import { inSlices, type Some } from '../calls/each-partition.ts';
import { type IfMatchOption, seenOfEtag } from '../calls/etag.ts';
import { type CallPartitions, isMoved, placesOf } from '../calls/partition-calls.ts';
import { sendRepeated } from '../calls/repeats.ts';

/** What became of a request to cancel. */
export interface Cancelled {
  readonly id: string;
  /**
   * `cancelled`: it will not run · `requested`: it runs, and its signal aborts soon · `over`: it had ended before, as
   * `over` says · `unknown`: there is no such job, or it ended longer ago than the done window · `changed`: it is not what
   * `ifMatch` says, nothing was changed · `indeterminate`: the reply was lost, and nothing is known of the job now or it is
   * another one since, so nobody knows whether it was cancelled or never there.
   */
  readonly status: 'cancelled' | 'requested' | 'over' | 'unknown' | 'changed' | 'indeterminate';
  readonly over?: OverState;
}

export interface CancelParts {
  readonly jobs: Pick<Jobs, 'cancel'>;
  readonly callPartitions: CallPartitions;
  readonly windowMs: number;
}

export interface Cancel {
  readonly one: (queue: Queue, id: string, how: CancelHow) => Promise<Cancelled>;
  readonly many: (queue: Queue, ids: readonly string[]) => Promise<readonly Cancelled[]>;
}

export interface CancelHow extends IfMatchOption {
  readonly bare: boolean;
}

/** A job by its id. */
interface Item {
  readonly id: string;
  readonly member: string;
  /** All that was seen of it; undefined: whatever it is. */
  readonly seen?: string | undefined;
}

export function createCancel(parts: CancelParts): Cancel {
  return {
    one(queue, id, { bare, ifMatch }) {
      const item = { id, member: memberOf(id, { bare }), seen: seenOfEtag(ifMatch) };
      return parts.callPartitions(queue, (layout, policy) =>
        cancelOne(parts, { item, places: placesOf(layout, id, bare) }, policy),
      );
    },
    many: (queue, ids) =>
      inSlices(
        parts.callPartitions,
        { queue, items: ids.map((id) => ({ id, member: memberOf(id) })) },
        (some, policy) => cancelSome(parts, some, policy),
      ),
  };
}

async function cancelOne(
  parts: CancelParts,
  { item, places }: { readonly item: Item; readonly places: readonly PartitionRef[] },
  policy: RetryPolicy,
): Promise<Cancelled | Moved> {
  const answers: Cancelled[] = [];
  for (const ref of places) {
    const found = await cancelSome(parts, { ref, some: [item] }, policy);
    if (isMoved(found)) return found;
    answers.push(...found);
  }
  return strongest(answers) ?? { id: item.id, status: 'unknown' };
}

/** As many calls as it takes: each looks at no more than Redis may read at once. */
async function cancelSome(
  { jobs, windowMs }: CancelParts,
  { ref, some }: Some<Item>,
  policy: RetryPolicy,
): Promise<readonly Cancelled[] | Moved> {
  const results: Cancelled[] = [];
  while (results.length < some.length) {
    const items = some.slice(results.length, results.length + CANCEL_JOBS_MAX);
    const members = items.map(({ member, seen }) => (seen === undefined ? member : `${member}\0${seen}`));
    const send = () => jobs.cancel(ref, members, { windowMs });
    const answers = await sendRepeated('cancel', { items, send }, policy);
    if (isMoved(answers)) return answers;
    const told = items.flatMap(({ id }, at) => {
      const { reply, isRepeated = false } = answers[at] ?? {};
      // Where a cancel leaves no tombstone, a job that it ended is unknown to the same call again.
      const leaves = windowMs > 0 && memberOf(id) === items[at]?.member;
      return reply && reply.kind !== 'later' ? [cancelledOf(id, reply, { isRepeated, leaves })] : [];
    });
    if (told.length === 0) throw new Error('the script replied to fewer jobs than it was sent');
    results.push(...told);
  }
  return results;
}

/** A reply that is not `later`, after which all of a call are. */
type Final = Exclude<CancelReply, { kind: 'later' }>;

export function cancelledOf(id: string, reply: Final, { isRepeated = false, leaves = true } = {}): Cancelled {
  if (reply.kind === 'unknown' && isRepeated && !leaves) return { id, status: 'indeterminate' };
  // An id that is free again may have got another job since the call before.
  if (isRepeated && reply.kind === 'changed') return { id, status: 'indeterminate' };
  if (reply.kind !== 'over') return { id, status: reply.kind };
  // The call before may have met this job, and this one its work.
  if (isRepeated && reply.over === 'cancelled') return { id, status: 'cancelled' };
  return { id, status: 'over', ...(reply.over ? { over: reply.over } : {}) };
}

/** A bare id may stand in several partitions: what was done counts most. */
function strongest(answers: readonly Cancelled[]): Cancelled | undefined {
  const order: readonly Cancelled['status'][] = [
    ...(['cancelled', 'requested', 'indeterminate', 'changed', 'over', 'unknown'] as const),
  ];
  return order.flatMap((status) => answers.find((answer) => answer.status === status) ?? [])[0];
}
