/**
 * One call for many items, repeated in an outage, and with each reply the one fact that decides what the reply means: whether
 * an earlier call may have been carried out for this item, because its reply was lost. The fact stays with the item when the
 * call has to be made anew, for example in another partition. A call that Redis refused, or that was never sent, leaves no
 * doubt.
 */
import { type RetryPolicy, withRetry } from '../../redis/connection/outage.ts';
import type { Moved } from '../../redis/scripts/replies.ts';
import { isMoved } from './partition-calls.ts';

export interface Answer<Reply> {
  readonly reply: Reply;
  /** An earlier call may have been carried out. */
  readonly isRepeated: boolean;
}

/** Items of calls, each made for its call alone. */
const doubtful = new WeakSet<object>();

export const isDoubtful = (item: object | undefined): boolean => item !== undefined && doubtful.has(item);

/** A reply for each item. The script has looked at the first item at least; it may answer `later` for the others. */
export async function sendRepeated<Reply extends { readonly kind: string }>(
  what: string,
  {
    items,
    send,
  }: {
    /** Undefined: the call changes nothing of this item, so a lost reply leaves nothing in doubt. */
    readonly items: readonly (object | undefined)[];
    readonly send: () => Promise<readonly Reply[] | Moved>;
  },
  policy: RetryPolicy,
): Promise<readonly Answer<Reply>[] | Moved> {
  const call = (mayHaveRun: boolean) => {
    if (mayHaveRun) for (const item of items) if (item) doubtful.add(item);
    return send();
  };
  const replies = await withRetry(what, call, policy);
  if (isMoved(replies)) return replies;
  if (replies.length < items.length || replies[0]?.kind === 'later') {
    throw tooFewReplies();
  }
  return replies.map((reply, at) => ({ reply, isRepeated: isDoubtful(items[at]) }));
}

/** A script that breaks its contract: each of its calls answers for every job, with `later` at least. */
export const tooFewReplies = () => new Error('the script replied to fewer jobs than it was sent');
