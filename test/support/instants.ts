/** The instants of a recurrence as plain lists, for tests that compare. */

import { atOnce } from '../../src/kernel/steps.ts';
import { nextFire as nextFireIn, type Occurrence, occurrences, type Recurrence } from '../../src/time/recurrence.ts';

/** What fires after an instant. */
export function* fires(recurrence: Recurrence, afterMs: number): Generator<number, void, undefined> {
  for (const { atMs, dropped } of occurrences(recurrence, afterMs)) if (dropped === undefined) yield atMs;
}

/** What fires, and what a clock change took away. */
export function* planned(recurrence: Recurrence, afterMs: number): Generator<Occurrence, void, undefined> {
  for (const one of occurrences(recurrence, afterMs)) {
    if (one.dropped === undefined || one.dropped === 'gap' || one.dropped === 'overlap') yield one;
  }
}

export const nextFire = (recurrence: Recurrence, afterMs: number) => atOnce(nextFireIn(recurrence, afterMs));
