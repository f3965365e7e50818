/**
 * Queues that left the registry while this daemon knew them. A process that does not know of the removal may still put
 * jobs there: a foreign producer with a plain ZADD, or a call that was on its way. So the daemon goes on looking, once per
 * pass of the registry, and declares a queue anew as soon as it has a job. A removed queue that stays empty costs one
 * command per partition and look.
 */
import type { Redis } from '../../redis/connection/connect.ts';
import { declareQueue, partitionsOf, type QueueLayout } from '../../redis/scripts/queues.ts';

/** Most queues that are remembered; the one that was removed first is forgotten first. */
const REMEMBERED_MAX = 100;

interface RemovedQueuesParts {
  readonly redis: Redis;
  readonly namespace: string;
}

export class RemovedQueues {
  readonly #parts: RemovedQueuesParts;
  readonly #removed = new Map<string, QueueLayout>();
  #declared: readonly QueueLayout[] = [];

  constructor(parts: RemovedQueuesParts) {
    this.#parts = parts;
  }

  /** `declared`: the queues in the registry now. */
  async look(declared: readonly QueueLayout[]): Promise<void> {
    const { redis, namespace } = this.#parts;
    const removed = this.#removed;
    for (const layout of this.#declared) removed.set(layout.queue, layout);
    for (const { queue } of declared) removed.delete(queue);
    this.#declared = declared;
    for (const queue of [...removed.keys()].slice(0, Math.max(0, removed.size - REMEMBERED_MAX))) removed.delete(queue);
    for (const layout of removed.values()) {
      // The next pass leads it: a call that declares a queue wakes all daemons.
      if (await this.#hasJobs(layout)) await declareQueue(redis, { namespace, ...layout });
    }
  }

  async #hasJobs(layout: QueueLayout): Promise<boolean> {
    const { redis, namespace } = this.#parts;
    const refs = partitionsOf(namespace, layout);
    const found = await Promise.all(refs.map(({ keys }) => redis.exists(keys.scheduled)));
    return found.some((count) => count > 0);
  }
}
