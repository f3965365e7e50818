/**
 * The role `dispatcher`: one worker for each queue that has a target, whose handler calls it. Which queues have one, and what they say
 * of it, stands in the registry, and is looked at every few seconds.
 *
 *  look ──▶ new target: a worker          another target: its next job is sent so
 *      └──▶ no target, or none that can be called here: the worker stops, and jobs wait for a dispatcher that can
 *
 * Without the role nothing of this file is made: no command, no socket.
 */
import { createHostSlots, type HostSlots } from '../dispatch/host-slots.ts';
import type { QueueTarget } from '../job/target.ts';
import { DuestreamError, messageOf } from '../kernel/errors.ts';
import { createLoop, type Loop } from '../kernel/loop.ts';
import type { Redis } from '../redis/connection/connect.ts';
import { pauseAfter } from '../redis/connection/outage.ts';
import { listQueues, type QueueLayout } from '../redis/scripts/queues.ts';
import type { WatchedWorker } from '../worker/worker.ts';
import { TargetQueue, type TargetQueueParts } from './target-queue.ts';

export interface Dispatcher {
  readonly start: (redis: Redis) => void;
  /** Requests that are under way may end, for as long as a worker waits for its handlers. */
  readonly stop: () => Promise<void>;
  /** Queues whose worker does not do its work. */
  readonly notReady: () => readonly string[];
  readonly notLive: () => readonly string[];
}

type DispatcherParts = Omit<TargetQueueParts, 'connection' | 'slots'>;

/** How often the registry is looked at. */
const LOOK_MS = { default: 5000, quiet: 60_000 } as const;

export function createDispatcher(parts: DispatcherParts): Dispatcher {
  const { config, events, clock } = parts;
  const queues = new TargetQueues(parts);
  let loop: Loop | undefined;

  async function pass(redis: Redis): Promise<number> {
    const layouts = await listQueues(redis, config.namespace);
    const targets = layouts.flatMap((layout) => (layout.target ? [{ layout, target: layout.target }] : []));
    await queues.keep(new Set(targets.map(({ layout }) => layout.queue)));
    await Promise.all(targets.map(({ layout, target }) => queues.follow(layout, target, redis)));
    return LOOK_MS[config.profile];
  }

  return {
    start(redis) {
      loop = createLoop({ who: 'dispatcher', pass: () => pass(redis), clock, events, pauseAfter });
      loop.start();
    },
    async stop() {
      await loop?.stop();
      await queues.keep(new Set());
    },
    notReady: () => queues.some((worker) => worker.notReady()),
    notLive: () => queues.some((worker) => worker.notLive()),
  };
}

/** Those that this daemon serves, and those whose target it cannot call. */
class TargetQueues {
  readonly #parts: DispatcherParts;
  readonly #slots: HostSlots;
  readonly #served = new Map<string, TargetQueue>();
  /** Queue → why its target cannot be called, as it was told. */
  readonly #told = new Map<string, string>();

  constructor(parts: DispatcherParts) {
    this.#parts = parts;
    this.#slots = createHostSlots(parts.config.targets.perHost);
  }

  some(of: (worker: WatchedWorker) => readonly string[]): readonly string[] {
    return [...this.#served.values()].flatMap(({ worker }) => of(worker));
  }

  /** Serves no others any more. */
  async keep(wanted: ReadonlySet<string>): Promise<void> {
    const others = [...this.#served.keys()].filter((queue) => !wanted.has(queue));
    await Promise.all(others.map((queue) => this.#drop(queue)));
    for (const queue of this.#told.keys()) if (!wanted.has(queue)) this.#told.delete(queue);
  }

  /** @throws what Redis fails with */
  async follow(layout: QueueLayout, target: QueueTarget, connection: Redis): Promise<void> {
    const { queue } = layout;
    let known = this.#served.get(queue);
    try {
      if (known && !known.suits(target)) {
        await this.#drop(queue);
        known = undefined;
      }
      if (known) known.follow(layout, target);
      else
        await this.#serve(new TargetQueue({ ...this.#parts, connection, slots: this.#slots }, layout, target), queue);
      this.#told.delete(queue);
    } catch (error) {
      // In an outage the next look begins anew.
      if (!known || isRefusal(error)) await this.#drop(queue);
      if (!isRefusal(error)) throw error;
      this.#tell(queue, messageOf(error));
    }
  }

  async #serve(one: TargetQueue, queue: string): Promise<void> {
    this.#served.set(queue, one);
    await one.start();
  }

  /** Once for each reason. */
  #tell(queue: string, why: string): void {
    if (this.#told.get(queue) === why) return;
    this.#told.set(queue, why);
    this.#parts.log.error({ queue, why }, 'the target of a queue cannot be called');
  }

  async #drop(queue: string): Promise<void> {
    const one = this.#served.get(queue);
    this.#served.delete(queue);
    await one?.stop();
  }
}

const isRefusal = (error: unknown): boolean =>
  error instanceof DuestreamError && (error.code === 'bad-config' || error.code === 'bad-input');
