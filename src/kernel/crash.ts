/**
 * The end of a process in which our own code has failed: an exception that nobody catches, with its stack. Nothing that such code
 * has left behind can be trusted. Jobs of a worker that ends so are taken over by others, as after every crash.
 */
import { setImmediate } from './clock.ts';

/** For a promise of ours that never rejects: `work.catch(crash)`. A rejection by itself would only be logged by some processes. */
export function crash(bug: unknown): void {
  setImmediate(() => {
    throw bug;
  });
}
