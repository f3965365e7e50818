/**
 * Cancelling by id, one or many. A job that waits is over at once; one that runs is asked to stop; one that is over or
 * unknown is told. The second identical call changes nothing, so a lost reply is simply asked for again.
 */
import { memberOf } from '../core/codec.ts';
import type { Queue } from '../core/queue.ts';
import type { OverState } from '../core/state.ts';
import { type RetryPolicy, withRetry } from '../redis/connection/outage.ts';
import type { PartitionRef } from '../redis/keys.ts';
import { CANCEL_JOBS_MAX } from '../redis/transitions/bytes.ts';
import type { Jobs } from '../redis/transitions/jobs.ts';
import type { CancelReply, Moved } from '../redis/transitions/replies.ts';
import { inSlices, type Some } from './each-partition.ts';
import { type CallPartitions, placesOf } from './partition-calls.ts';

/** What became of a request to cancel. */
export interface Cancelled {
  readonly id: string;
  /**
   * `cancelled`: it will not run · `requested`: it runs, and its signal aborts soon · `over`: it had ended before, as
   * `over` says · `unknown`: there is no such job, or it ended longer ago than the done window.
   */
  readonly status: 'cancelled' | 'requested' | 'over' | 'unknown';
  readonly over?: OverState;
}

export interface CancelParts {
  readonly jobs: Pick<Jobs, 'cancel'>;
  readonly callPartitions: CallPartitions;
  readonly windowMs: number;
}

export interface Cancel {
  readonly one: (queue: Queue, id: string, how: { readonly bare: boolean }) => Promise<Cancelled>;
  readonly many: (queue: Queue, ids: readonly string[]) => Promise<readonly Cancelled[]>;
}

export function createCancel(parts: CancelParts): Cancel {
  return {
    one: (queue, id, { bare }) =>
      parts.callPartitions(queue, (layout, policy) =>
        cancelOne(parts, { id, bare, places: placesOf(layout, id, bare) }, policy),
      ),
    many: (queue, ids) =>
      inSlices(parts.callPartitions, { queue, items: ids.map((id) => ({ id })) }, (some, policy) =>
        cancelSome(parts, some, policy),
      ),
  };
}

async function cancelOne(
  parts: CancelParts,
  { id, bare, places }: { readonly id: string; readonly bare: boolean; readonly places: readonly PartitionRef[] },
  policy: RetryPolicy,
): Promise<Cancelled | Moved> {
  const answers: Cancelled[] = [];
  for (const ref of places) {
    const reply = await ask(parts, { ref, members: [memberOf(id, { bare })] }, policy);
    if ('kind' in reply) return reply;
    answers.push(cancelledOf(id, reply[0]));
  }
  return strongest(answers) ?? { id, status: 'unknown' };
}

async function cancelSome(
  parts: CancelParts,
  { ref, some }: Some<{ readonly id: string }>,
  policy: RetryPolicy,
): Promise<readonly Cancelled[] | Moved> {
  const reply = await ask(parts, { ref, members: some.map(({ id }) => memberOf(id)) }, policy);
  return 'kind' in reply ? reply : some.map(({ id }, at) => cancelledOf(id, reply[at]));
}

/** As many calls as it takes: each looks at no more than Redis may read at once. */
async function ask(
  { jobs, windowMs }: CancelParts,
  { ref, members }: { readonly ref: PartitionRef; readonly members: readonly string[] },
  policy: RetryPolicy,
): Promise<readonly Final[] | Moved> {
  const replies: Final[] = [];
  while (replies.length < members.length) {
    let tries = 0;
    const rest = members.slice(replies.length, replies.length + CANCEL_JOBS_MAX);
    const call = () => {
      tries += 1;
      return jobs.cancel(ref, rest, { windowMs });
    };
    const reply = await withRetry('cancel', call, policy);
    if ('kind' in reply) return reply;
    // A call that was repeated may have met its own work.
    const own = (one: Final): Final =>
      tries > 1 && one.kind === 'over' && one.over === 'cancelled' ? { kind: 'cancelled' } : one;
    const answered = reply.slice(0, rest.length).filter(isFinal);
    if (answered.length === 0) throw tooFew();
    replies.push(...answered.map(own));
  }
  return replies;
}

/** A reply that is not `later`, after which all of a call are; and nothing was said of what was seen. */
type Final = Exclude<CancelReply, { kind: 'later' | 'changed' }>;
const isFinal = (reply: CancelReply): reply is Final => reply.kind !== 'later' && reply.kind !== 'changed';
const tooFew = () => new Error('the script replied to fewer jobs than it was sent');

export function cancelledOf(id: string, reply: Final | undefined): Cancelled {
  if (!reply) throw tooFew();
  if (reply.kind !== 'over') return { id, status: reply.kind };
  return { id, status: 'over', ...(reply.over ? { over: reply.over } : {}) };
}

/** A bare id may stand in several partitions: what was done counts most. */
function strongest(answers: readonly Cancelled[]): Cancelled | undefined {
  const order: readonly Cancelled['status'][] = ['cancelled', 'requested', 'over', 'unknown'];
  return order.flatMap((status) => answers.find((answer) => answer.status === status) ?? [])[0];
}
