/**
 * Cancelling. A job that waits is over at once; a job that runs is asked to stop. The second identical call changes nothing,
 * so a lost reply is simply asked for again. Where all that was seen of a job is sent, the script cancels the job only if it
 * is still so.
 */
import { memberOf } from '../../job/codec.ts';
import type { Queue } from '../../job/queue.ts';
import type { OverState } from '../../job/state.ts';
import type { Found } from '../../redis/read/look.ts';
import { CANCEL_JOBS_MAX } from '../../redis/scripts/bytes.ts';
import type { CancelReply } from '../../redis/scripts/replies.ts';
import { seenOfEtag } from '../calls/etag.ts';
import { isMoved, placesOf } from '../calls/partition-calls.ts';
import { type Act, type ActParts, type Answer, actBy, type Decision, resultOf, type Target } from './act.ts';

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

export interface CancelTarget extends Target {
  readonly member: string;
  /** All that was seen of the job; undefined: the job is cancelled whatever it is. */
  readonly seen: string | undefined;
}

/** @param bare a job that a foreign producer put as a plain zset member */
export const toCancel = (id: string, { bare = false, ifMatch }: CancelHow = {}): CancelTarget => ({
  id,
  member: memberOf(id, { bare }),
  seen: seenOfEtag(ifMatch),
});

export interface CancelHow {
  readonly bare?: boolean | undefined;
  readonly ifMatch?: string | undefined;
}

export const foundToCancel = (found: Found): CancelTarget => ({
  id: found.id,
  member: found.member,
  seen: found.seen,
  found,
});

/** @param forgets whoever schedules after it never repeats what was scheduled before it: see `lua/verbs/cancel.lua` */
export function cancelling(
  { jobs, windowMs }: Pick<ActParts, 'jobs' | 'windowMs'>,
  forgets = false,
): Act<CancelTarget, Cancelled> {
  return actBy<CancelTarget, string, CancelReply, Cancelled>({
    name: 'cancel',
    jobsMax: CANCEL_JOBS_MAX,
    prepare: async ({ items }) =>
      items.map(({ member, seen }) => ({ sent: seen === undefined ? member : `${member}\0${seen}` })),
    send: (ref, words) => jobs.cancel(ref, words, { windowMs, forgets }),
    // Where a cancel leaves no tombstone, a job that it ended is unknown to the same call again.
    decide: (answer) => decide(answer, windowMs > 0 && answer.item.member === memberOf(answer.item.id)),
  });
}

function decide(
  { item: { id }, reply, isRepeated }: Answer<CancelTarget, string, CancelReply>,
  leavesTombstone: boolean,
): Decision<Cancelled> {
  const skipped = (status: 'unknown' | 'changed' | 'indeterminate') => ({ outcome: status, result: { id, status } });
  switch (reply.kind) {
    case 'cancelled':
      return { outcome: 'done', result: { id, status: 'cancelled' } };
    case 'requested':
      return { outcome: 'requested', result: { id, status: 'requested' } };
    case 'unknown':
      return skipped(isRepeated && !leavesTombstone ? 'indeterminate' : 'unknown');
    case 'changed':
      // An id that is free again may have got another job since the call before.
      return skipped(isRepeated ? 'indeterminate' : 'changed');
    case 'over':
      // The call before may have met this job, and this one its work.
      if (isRepeated && reply.over === 'cancelled') return { outcome: 'done', result: { id, status: 'cancelled' } };
      return { outcome: 'over', result: { id, status: 'over', ...(reply.over ? { over: reply.over } : {}) } };
  }
}

/** A bare id may stand in several partitions: what was done counts most. */
export function cancelBare(
  parts: ActParts,
  { queue, target }: { readonly queue: Queue; readonly target: CancelTarget },
): Promise<Cancelled> {
  const act = cancelling(parts);
  return parts.callPartitions(queue, async (layout, policy) => {
    const results: Cancelled[] = [];
    for (const ref of placesOf(layout, target.id, true)) {
      const decided = await act({ ref, items: [target] }, policy);
      if (isMoved(decided)) return decided;
      results.push(...decided.map(resultOf));
    }
    return strongest(results) ?? { id: target.id, status: 'unknown' };
  });
}

const ORDER: readonly Cancelled['status'][] = ['cancelled', 'requested', 'indeterminate', 'changed', 'over', 'unknown'];

const strongest = (results: readonly Cancelled[]): Cancelled | undefined =>
  ORDER.flatMap((status) => results.find((result) => result.status === status) ?? [])[0];
