/** The partitions that somebody means who names a queue, or none. Looking never declares a queue. */

import { parseName } from '../../job/job.ts';
import { hintOf } from '../../kernel/checks.ts';
import type { Clock } from '../../kernel/clock.ts';
import { show } from '../../kernel/duration.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { type Listed, partitionsIn } from '../../redis/read/each-queue.ts';
import { findQueue, listQueues, partitionsOf, type QueueLayout } from '../../redis/scripts/queues.ts';
import type { Repeating } from '../calls/retry.ts';

/** A connection, and the namespace that is looked at over it. */
export interface Namespaced {
  readonly redis: Redis;
  readonly namespace: string;
}

/** The same for the steps of one call. */
export interface At extends Namespaced {
  readonly steps: Repeating;
  readonly clock: Clock;
}

/** The partitions of a queue that exists. @throws DuestreamError `not-found`, with the name that is most like it */
export const refsOfQueue = async (place: Namespaced, name: string): Promise<readonly PartitionRef[]> =>
  partitionsOf(place.namespace, await layoutOfQueue(place, name));

/** The same with its settings. @throws DuestreamError `not-found` */
export async function layoutOfQueue({ redis, namespace }: Namespaced, name: string): Promise<QueueLayout> {
  const layout = await findQueue(redis, namespace, parseName(name, 'queue'));
  if (layout !== undefined) return layout;
  const hint = hintOf(name, await queueNames({ redis, namespace })) || ';';
  throw new DuestreamError(
    'not-found',
    `queue ${show(name)} was never used in namespace ${show(namespace)}${hint} "duestream queues ls" lists those that were`,
  );
}

/** The same, or the partitions of all queues. */
export async function refsOf(place: Namespaced, name: string | undefined): Promise<Listed<PartitionRef>> {
  if (name === undefined) return partitionsIn(place.redis, place.namespace);
  return { all: await refsOfQueue(place, name), unread: [] };
}

/** Every queue that was ever used. */
export async function queueNames({ redis, namespace }: Namespaced): Promise<readonly string[]> {
  return (await listQueues(redis, namespace)).map(({ queue }) => queue);
}
