/** Which handler a job gets, by its name. */
import type { Abandoned } from '../../job/compensation.ts';
import { ABANDONED } from '../../job/job.ts';
import type { Handler, PlainHandlers } from './handlers.ts';

/** The handler for a job name. A single function takes every name. */
function pickHandler(handlers: PlainHandlers<never>, name: string): Handler<never> | undefined {
  if (typeof handlers === 'function') return handlers;
  return Object.hasOwn(handlers, name) ? handlers[name] : undefined;
}

/**
 * The handler for a job, inside of all middleware. A compensation job's data has its own shape: a handler that takes every
 * name must not take it for an order of its own.
 */
export function handlerFor(
  {
    handlers,
    onAbandoned,
    around,
  }: {
    readonly handlers: PlainHandlers<never>;
    readonly onAbandoned: Handler<Abandoned> | undefined;
    readonly around: (handler: Handler<never>) => Handler<never>;
  },
  name: string,
): Handler<never> | undefined {
  const handler = name === ABANDONED ? onAbandoned : pickHandler(handlers, name);
  return handler && around(handler);
}
