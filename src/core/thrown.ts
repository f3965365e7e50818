/** What can be told of what a handler threw, which may be anything. */
import { Defer, Unrecoverable } from './outcome.ts';

const STACK_CHARS = 2000;

/** Where it was thrown. Anything can be thrown, also an object that throws when it is looked at. */
export function stackOf(thrown: unknown): string | undefined {
  try {
    return thrown instanceof Error && typeof thrown.stack === 'string' ? thrown.stack.slice(0, STACK_CHARS) : undefined;
  } catch {
    return undefined;
  }
}

/** What the handler asked for. Anything can be thrown, also an object that throws when it is looked at. */
export function wishOf(thrown: unknown): Defer | Unrecoverable | undefined {
  try {
    return thrown instanceof Defer || thrown instanceof Unrecoverable ? thrown : undefined;
  } catch {
    return undefined;
  }
}
