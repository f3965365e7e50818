/**
 * Functions of the user for whose answer nobody waits: event listeners, `onMissed`, the methods of a log. What one of them
 * throws, and what its promise rejects with, ends here: it never reaches a job, a loop or the process. The first failure
 * under each name is told as a warning of Node, the others are not: a listener that fails may be called for each job.
 */
import { isPromise } from './checks.ts';
import { reasonOf } from './reason.ts';

export interface Callbacks {
  /** Calls it with what it is told. `name` stands in the warning. */
  readonly call: <P>(name: string, callback: (payload: P) => unknown, payload: P) => void;
}

/** @param what says before the name what it is: `a listener of` */
export function createCallbacks(what: string): Callbacks {
  const told = new Set<string>();
  function tell(name: string, thrown: unknown): void {
    if (told.has(name)) return;
    told.add(name);
    const why = reasonOf(thrown);
    process.emitWarning(`${what} ${name} failed: ${why}; duestream does not tell its further failures`);
  }
  return {
    call(name, callback, payload) {
      try {
        const answer = callback(payload);
        if (isPromise(answer)) Promise.resolve(answer).catch((thrown: unknown) => tell(name, thrown));
      } catch (thrown) {
        tell(name, thrown);
      }
    },
  };
}

/** A function of an option, such as `onProgress`, which may be left out. */
export function quietly<P extends readonly unknown[]>(
  name: string,
  callback: ((...payload: P) => unknown) | undefined,
): ((...payload: P) => void) | undefined {
  if (callback === undefined) return undefined;
  const callbacks = createCallbacks('the function');
  return (...payload) => callbacks.call(name, () => callback(...payload), undefined);
}
