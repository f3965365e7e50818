/** Who runs the jobs of a queue: its handlers, and whoever takes half-done work back, as a worker of the module has them. */
import type { Rules } from '../core/judge.ts';
import { type Handler, type Handlers, handlerFor } from '../worker/handlers.ts';
import type { HandleChain } from '../worker/middleware.ts';

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
