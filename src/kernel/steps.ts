/**
 * Long work in steps. A walk over instants has no natural bound: a rule of seconds names 31 million a year. So it is
 * a generator that yields after each small piece, and who drives it decides what happens between two pieces: nothing,
 * a turn of the event loop, or an end.
 *
 *   atOnce    drives it to its end: for what is known to be short, and where time stands still (the test kit)
 *   inTurns   leaves the event loop to others after each slice of time: for all that a daemon does, because a leader
 *             that does not renew its lease in time loses its partitions
 *   within    gives it up after so many steps
 */
import { setImmediate, systemClock } from './clock.ts';

/** Work that yields after each small piece, and returns what it found. */
export type Steps<T> = Generator<undefined, T, undefined>;

/** Where work is left and taken up again. */
export interface Turns {
  /** Whether the slice of time of this turn of the event loop is used up. All work of the process shares it. */
  readonly isOver: () => boolean;
  /** Resolves in a later turn; of several that wait, one in each turn. */
  readonly next: () => Promise<void>;
}

/** An answer of 50 ms is one that nobody waits for; two slices and what is around them stay below. */
const SLICE_MS = 20;

/** @param parts for tests: the clock, and what calls back in the next turn of the event loop */
export function createTurns(
  { nowMs, soon }: { readonly nowMs: () => number; readonly soon: (callback: () => void) => void } = {
    nowMs: systemClock.monotonicMs,
    soon: setImmediate,
  },
): Turns {
  const waiting: (() => void)[] = [];
  let sliceEndsMs: number | undefined;

  function callNext(): void {
    waiting.shift()?.();
    if (waiting.length > 0) soon(callNext);
  }

  return {
    isOver() {
      const atMs = nowMs();
      if (sliceEndsMs !== undefined) return atMs >= sliceEndsMs;
      sliceEndsMs = atMs + SLICE_MS;
      soon(() => {
        sliceEndsMs = undefined;
      });
      return false;
    },
    next() {
      return new Promise((resolve) => {
        waiting.push(resolve);
        if (waiting.length === 1) soon(callNext);
      });
    },
  };
}

const OF_PROCESS = createTurns();

export function atOnce<T>(work: Steps<T>): T {
  let step = work.next();
  while (!step.done) step = work.next();
  return step.value;
}

/** @param turns default those that the whole process shares */
export async function inTurns<T>(work: Steps<T>, turns: Turns = OF_PROCESS): Promise<T> {
  let step = work.next();
  while (!step.done) {
    if (turns.isOver()) await turns.next();
    step = work.next();
  }
  return step.value;
}

/** How many steps may still be taken; it shrinks. */
export interface Budget {
  left: number;
}

/** @returns undefined when the budget did not suffice */
export function* within<T>(work: Steps<T>, budget: Budget): Steps<T | undefined> {
  for (let step = work.next(); ; step = work.next()) {
    if (step.done) return step.value;
    if (budget.left <= 0) return undefined;
    budget.left -= 1;
    yield;
  }
}

/** One step, where many of the same kind follow each other. */
export function* oneStep<T>(work: () => T): Steps<T> {
  yield;
  return work();
}
