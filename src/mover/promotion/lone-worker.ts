/**
 * The worker that lives in this process, and the queues of which it is the only worker. There, a pass of the leader is
 * part of a turn of that worker: what becomes due is started in the call that promotes it.
 *
 * Where other workers live, nothing is relayed. Redis answers their blocked reads in turns, and so each has its share; a
 * worker that were given what it has slots for would leave them idle. It is a matter of shares and of nothing else, so
 * a worker that came within the last seconds may be missed for so long.
 */

import type { Relay } from '../../redis/scripts/passes.ts';
import type { Identity } from '../../redis/scripts/presence.ts';

/** A worker in the process of a leader. */
export interface NearWorker {
  readonly consumer: string;
  readonly relay: Relay;
}

export interface LoneWorker {
  /** The processes whose heartbeats are there. */
  readonly see: (living: readonly Identity[]) => void;
  readonly relay: Relay;
}

export function createLoneWorker(near: () => NearWorker | undefined): LoneWorker {
  /** Consumer by queue, of queues with one worker. */
  const lone = new Map<string, string>();
  return {
    see(living) {
      const workers = living.filter(({ role }) => role === 'worker');
      const many = new Set<string>();
      lone.clear();
      for (const { id, queues } of workers) {
        for (const queue of queues) {
          if (lone.has(queue)) many.add(queue);
          else lone.set(queue, id);
        }
      }
      for (const queue of many) lone.delete(queue);
    },
    relay(ref, pass) {
      const worker = near();
      return worker && lone.get(ref.queue) === worker.consumer ? worker.relay(ref, pass) : undefined;
    },
  };
}
