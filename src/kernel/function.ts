/** A function that a caller gives and we call: for its result, and more than once. */
import { show } from './duration.ts';
import { DuestreamError } from './errors.ts';

/**
 * Nothing would run the body of a generator, and a class cannot be called.
 *
 * @param what how the message names it
 * @throws DuestreamError `bad-input`
 */
export function checkFunction(given: unknown, what: string): void {
  const shown = typeof given === 'function' ? oddKind(given) : show(given);
  if (shown === undefined) return;
  throw new DuestreamError('bad-input', `${what} is ${shown}; allowed: a function, also an async one`);
}

function oddKind(given: object): string | undefined {
  if (GENERATOR.test(Object.prototype.toString.call(given))) return 'a generator, whose body nobody would run';
  return /^class\b/.test(Function.prototype.toString.call(given)) ? 'a class, which cannot be called' : undefined;
}

const GENERATOR = /^\[object (Async)?GeneratorFunction\]$/;

export function isPromise(value: unknown): value is Promise<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}
