/**
 * What a leader knows of the workers of its queues: which queues have a worker that polls, so that it is told of new jobs; the
 * worker of this process, and the queues of which it is the only worker. There, a leader's pass is a part of that
 * worker's round trip: the worker starts a due job in the call that promotes it.
 *
 * Where other workers live, no pass is relayed. Redis answers the blocked reads of the workers in turn, so each worker has
 * its share; a worker that took as many jobs as it has slots would leave the other workers idle. Only the shares depend on
 * it, so it does no harm that a worker is seen some seconds after it came.
 */

import type { PartitionRef } from '../../redis/keys.ts';
import type { LeadersPass, Passed, Relay } from '../../redis/scripts/passes.ts';
import type { Identity } from '../../redis/scripts/presence.ts';

/** A worker in the process of a leader. */
export interface NearWorker {
  readonly consumer: string;
  readonly relay: Relay;
}

export class LoneWorker {
  readonly #near: () => NearWorker | undefined;
  /** Consumer by queue, of queues with one worker. */
  readonly #lone = new Map<string, string>();
  /** Queues with a worker that waits in no read. */
  readonly #polled = new Set<string>();
  /** Queues with a worker that holds no job until it is due. */
  readonly #hasty = new Set<string>();

  constructor(near: () => NearWorker | undefined) {
    this.#near = near;
  }

  /** The processes with a heartbeat. */
  see(living: readonly Identity[]): void {
    const many = new Set<string>();
    this.#lone.clear();
    this.#polled.clear();
    this.#hasty.clear();
    for (const { id, queues, polls, holds } of living.filter(({ role }) => role === 'worker')) {
      for (const queue of queues) {
        if (polls) this.#polled.add(queue);
        if (!holds) this.#hasty.add(queue);
        if (this.#lone.has(queue)) many.add(queue);
        else this.#lone.set(queue, id);
      }
    }
    for (const queue of many) this.#lone.delete(queue);
  }

  /** Every worker of the queue holds jobs until they are due. One that does not drops what it is offered: no harm, and no use. */
  canHold(queue: string): boolean {
    return !this.#hasty.has(queue);
  }

  isPolled(queue: string): boolean {
    return this.#polled.has(queue);
  }

  /** Undefined: the worker takes no job of this partition now, and no call was sent. */
  relay(ref: PartitionRef, pass: LeadersPass): Promise<Passed> | undefined {
    const worker = this.#near();
    return worker && this.#lone.get(ref.queue) === worker.consumer ? worker.relay(ref, pass) : undefined;
  }
}
