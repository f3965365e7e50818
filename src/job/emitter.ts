/** Who listens to which event, and the telling. */
import { createCallbacks } from '../kernel/callbacks.ts';
import { hintOf } from '../kernel/did-you-mean.ts';
import { show } from '../kernel/duration.ts';
import { DuestreamError } from '../kernel/errors.ts';
import { checkFunction } from '../kernel/function.ts';
import { eventNames } from './event-list.ts';
import type { Emitter, EventName } from './events.ts';

/** A minimal typed emitter: synchronous, in order, without special names. What a listener throws ends in `callbacks.ts`. */
export function createEmitter(): Emitter {
  const listeners = new Map<EventName, Set<(payload: never) => void>>();
  const callbacks = createCallbacks('a listener of');
  return {
    on(name, listener) {
      checkListener(name, listener);
      const set = listeners.get(name) ?? new Set();
      listeners.set(name, set);
      set.add(listener);
      return () => set.delete(listener);
    },
    emit(name, payload) {
      for (const listener of listeners.get(name) ?? []) callbacks.call(name, listener, payload as never);
    },
  };
}

/** A misspelt event would never be heard. */
function checkListener(name: EventName, listener: unknown): void {
  if (!eventNames.includes(name)) {
    const hint = hintOf(String(name), eventNames) || ';';
    throw new DuestreamError('bad-input', `there is no event ${show(name)}${hint} allowed: ${eventNames.join(', ')}`);
  }
  checkFunction(listener, `the listener of ${name}`);
}
