/**
 * One bad queue never stops the others. Whoever asks about all queues, or all partitions, asks each by itself: a queue that does
 * not answer (its node is down, one of its keys is of a wrong type, nobody can read its entry in the registry) is named beside the
 * answers of the others, with its reason. Only where none answers the whole fails, with the error of the first.
 */
import { reasonOf } from '../../kernel/reason.ts';
import type { Redis } from '../connection/connect.ts';
import type { PartitionRef } from '../keys.ts';
import { allQueues, entryUnreadable, partitionsOf, type QueueLayout } from '../scripts/queues.ts';

/** A queue that could not be read: its node does not answer, a key of it is damaged, or nobody can read its entry in the registry. */
export interface UnreadQueue {
  readonly queue: string;
  /** Its error; of a queue with several partitions also which of them it was. */
  readonly why: string;
}

/** The queues or partitions to ask, and the queues that cannot be asked, because nobody can read their entries. */
export interface Listed<Of> {
  readonly all: readonly Of[];
  readonly unread: readonly UnreadQueue[];
}

/** The answers, in the order of the list, and the queues that gave none. */
export interface Answered<Answer> {
  readonly found: readonly Answer[];
  readonly unread: readonly UnreadQueue[];
}

/** The queues of a namespace by name. @param wanted which of them */
export async function queuesIn(
  redis: Redis,
  namespace: string,
  wanted: (queue: string) => boolean = () => true,
): Promise<Listed<QueueLayout>> {
  const { queues, unreadable } = await allQueues(redis, namespace);
  const unread = unreadable.filter(({ queue }) => wanted(queue));
  return {
    all: queues.filter(({ queue }) => wanted(queue)),
    unread: unread.map(({ queue, text }) => ({ queue, why: entryUnreadable(queue, text) })),
  };
}

/** Their partitions. */
export async function partitionsIn(redis: Redis, namespace: string): Promise<Listed<PartitionRef>> {
  const { all, unread } = await queuesIn(redis, namespace);
  return { all: all.flatMap((layout) => partitionsOf(namespace, layout)), unread };
}

/** A queue, or a partition of one. */
interface Asked {
  readonly queue: string;
  readonly partition?: number;
}

/** How many are asked at the same time. */
const AT_ONCE = 16;

/** @param atOnce 1: one after the other @throws the error of the first, where none answers */
export async function askEach<Of extends Asked, Answer>(
  { all, unread }: Listed<Of>,
  ask: (one: Of) => Promise<Answer>,
  atOnce = AT_ONCE,
): Promise<Answered<Answer>> {
  const found: Answer[] = [];
  const failed: Failed[] = [];
  for (let from = 0; from < all.length; from += atOnce) {
    const some = all.slice(from, from + atOnce);
    const ended = await Promise.allSettled(some.map(ask));
    for (const [at, of] of some.entries()) {
      const one = ended[at];
      if (one?.status === 'fulfilled') found.push(one.value);
      else failed.push({ of, error: one?.reason });
    }
  }
  const [first] = failed;
  if (first && found.length === 0) throw first.error;
  return { found, unread: [...unread, ...byQueue(failed, all)] };
}

interface Failed {
  readonly of: Asked;
  readonly error: unknown;
}

/** One line for each queue: the first error, and the partitions that have one. */
function byQueue(failed: readonly Failed[], all: readonly Asked[]): readonly UnreadQueue[] {
  return [...new Set(failed.map(({ of }) => of.queue))].map((queue) => {
    const some = failed.filter(({ of }) => of.queue === queue);
    const partitions = some.flatMap(({ of: { partition } }) => partition ?? []);
    const isOne = all.filter((one) => one.queue === queue).length === 1;
    const where = isOne
      ? ''
      : `partition${some.length === 1 ? '' : 's'} ${partitions.slice(0, NAMED_MAX).join(', ')}: `;
    return { queue, why: where + reasonOf(some[0]?.error) };
  });
}

/** How many partitions of a queue are named. */
const NAMED_MAX = 10;
