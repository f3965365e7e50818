/**
 * The partitions this worker reads. It declares its queue at start and looks with each heartbeat whether it is still
 * declared: a queue that is removed under a worker that serves it comes back, or its jobs would wait where no daemon
 * looks. Somebody else may have declared it before, over another number of partitions; then those are read from now on.
 *
 * `refs` is one list that changes in place: the parts of the worker look into it in each of their passes. What was taken
 * from a partition that is gone keeps its own reference, and is acknowledged there.
 */

import type { Queue } from '../../job/queue.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import type { Log } from '../../kernel/log.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import { isBroadcast, type PartitionRef } from '../../redis/keys.ts';
import { declareQueue, partitionsOf, type QueueSettings, settingsOf } from '../../redis/scripts/queues.ts';
import { join } from '../../redis/scripts/ready.ts';

export interface ServedPartitions {
  readonly refs: readonly PartitionRef[];
  /** Declares the queue unless it is, and follows its layout. May be repeated. */
  readonly declare: () => Promise<void>;
}

export function createServedPartitions(parts: {
  readonly redis: Redis;
  readonly namespace: string;
  readonly queue: Pick<Queue, 'name' | 'partitions' | keyof QueueSettings>;
  readonly consumer: string;
  readonly log: Log;
}): ServedPartitions {
  const { redis, namespace, queue, consumer, log } = parts;
  const refs: PartitionRef[] = [];

  async function declare(): Promise<void> {
    const { name, partitions } = queue;
    // Said once: what somebody sets later, for all processes, must not be undone by the next look.
    const settings = { ...settingsOf(queue), isRepeated: refs.length > 0 };
    const layout = await declareQueue(redis, { namespace, queue: name, partitions, ...settings });
    const next = partitionsOf(namespace, layout);
    if (refs.length === 0 && next.some(isBroadcast)) throw ofSubscribers(name);
    const isSame = layout.partitions === refs.length && layout.layoutGeneration === refs[0]?.layoutGeneration;
    if (isSame && isSameSaid(next[0], refs[0])) return;
    if (isSame) {
      refs.splice(0, refs.length, ...next);
      return;
    }
    // Before the first read: the others must know of this worker when they share what a dead one left.
    for (const { keys } of next) await join(redis, keys, consumer);
    if (refs.length > 0)
      log.warn(
        { before: refs.length, partitions: next.length },
        'the queue was resized: it has another number of partitions',
      );
    refs.splice(0, refs.length, ...next);
  }

  return { refs, declare };
}

const ofSubscribers = (queue: string): DuestreamError =>
  new DuestreamError(
    'bad-config',
    `queue ${queue} is a broadcast: its jobs go to every subscriber; use createSubscriber, or set broadcast: false in defineQueue`,
  );

const isSameSaid = (one: PartitionRef | undefined, other: PartitionRef | undefined): boolean =>
  JSON.stringify([one?.history, one?.redact]) === JSON.stringify([other?.history, other?.redact]);
