/** Who runs the jobs of a queue: its handlers, and whoever takes half-done work back, as a worker of the module has them. */

import type { Rules } from '../job/judge.ts';
import { type Queue, queueOf } from '../job/queue.ts';
import { DuestreamError } from '../kernel/errors.ts';
import { checkHandlers, type Handler, type Handlers, handlerFor, type QueueHandlers } from '../worker/run/handlers.ts';
import type { HandleChain } from '../worker/run/middleware.ts';

export type Served = Omit<Rules<Handler<never>>, 'queue'>;

/** Undefined where no worker serves the queue: its jobs wait. */
export function servedBy(
  { map, onAbandoned }: Handlers,
  around: HandleChain['around'] = (handler) => handler,
): (queue: string) => Served | undefined {
  return (queue) => {
    const handlers = Object.hasOwn(map, queue) ? map[queue] : undefined;
    if (!handlers) return undefined;
    const compensation = Object.hasOwn(onAbandoned, queue) ? onAbandoned[queue] : undefined;
    return {
      handlerOf: (name) => handlerFor({ handlers, onAbandoned: compensation, around }, name),
      compensations: compensation !== undefined,
    };
  };
}

/** Who subscribes to broadcast queues. */
export function createSubscriptions(around: HandleChain['around']) {
  const all: { readonly queue: string; readonly served: Served }[] = [];

  function subscribe<Data>(queue: Queue<Data>, handlers: QueueHandlers<NoInfer<Data>>): () => void;
  function subscribe(queue: Queue, handlers: QueueHandlers<never>): () => void {
    const { name, jobs, broadcast } = queueOf(queue);
    if (!broadcast?.isOn) {
      throw new DuestreamError('bad-config', `queue ${name} is no broadcast: define it with broadcast: true`);
    }
    checkHandlers(name, handlers, jobs);
    const handlerOf = (job: string) => handlerFor({ handlers, onAbandoned: undefined, around }, job);
    const one = { queue: name, served: { handlerOf, compensations: false } };
    all.push(one);
    return () => {
      const at = all.indexOf(one);
      if (at >= 0) all.splice(at, 1);
    };
  }

  return {
    of: (queue: string): readonly Served[] => all.flatMap((one) => (one.queue === queue ? [one.served] : [])),
    subscribe,
  };
}
