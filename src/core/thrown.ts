/** What can be told of what a handler threw, which may be anything. */
import { Defer, Unrecoverable } from './outcome.ts';

const STACK_CHARS = 2000;

/**
 * Where it was thrown. Anything can be thrown, also an object that throws when it is looked at.
 *
 * @param told what may be told of it; the stack begins with the message
 */
export function stackOf(thrown: unknown, told: (text: string) => string): string | undefined {
  try {
    const isStack = thrown instanceof Error && typeof thrown.stack === 'string';
    return isStack ? told(thrown.stack ?? '').slice(0, STACK_CHARS) : undefined;
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
