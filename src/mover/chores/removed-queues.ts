/**
 * Queues that left the registry while this daemon knew them. Whoever does not know of it may still put jobs there: a
 * foreign producer with a plain ZADD, or a call that was on its way. So the daemon goes on looking, once per pass of the
 * registry, and declares a queue anew as soon as something is scheduled in it. A removed queue that stays empty costs
 * one command per partition and look.
 */
import type { Redis } from '../../redis/connection/connect.ts';
import { declareQueue, partitionsOf, type QueueLayout } from '../../redis/scripts/queues.ts';

/** Most queues that are remembered; the one that was removed first is forgotten first. */
const REMEMBERED_MAX = 100;

export interface Removed {
  /** `declared`: what is in the registry now. */
  readonly look: (declared: readonly QueueLayout[]) => Promise<void>;
}

export function createRemoved(parts: { readonly redis: Redis; readonly namespace: string }): Removed {
  const { redis, namespace } = parts;
  const gone = new Map<string, QueueLayout>();
  let before: readonly QueueLayout[] = [];

  async function holdsJobs(layout: QueueLayout): Promise<boolean> {
    const refs = partitionsOf(namespace, layout);
    const found = await Promise.all(refs.map(({ keys }) => redis.exists(keys.scheduled)));
    return found.some((there) => there > 0);
  }

  return {
    async look(declared) {
      for (const layout of before) gone.set(layout.queue, layout);
      for (const { queue } of declared) gone.delete(queue);
      before = declared;
      for (const queue of [...gone.keys()].slice(0, Math.max(0, gone.size - REMEMBERED_MAX))) gone.delete(queue);
      for (const layout of gone.values()) {
        // The next pass leads it: who declares a queue wakes all daemons.
        if (await holdsJobs(layout)) await declareQueue(redis, { namespace, ...layout });
      }
    },
  };
}
