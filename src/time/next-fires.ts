/**
 * The next instant of a recurrence, remembered. Thousands of schedules share a rule, and all of them ask for the same
 * instants in the same minute. What is remembered is a stretch of time and the instant that ends it: whoever asks from
 * within gets that answer. Two of them are enough: the instant that is fired, and the one after it.
 */
import type { Steps } from '../kernel/steps.ts';
import { nextFire, type Recurrence } from './recurrence.ts';

/** From each moment at or after `fromMs`, and before `toMs`, the next instant is `toMs`. */
interface Stretch {
  fromMs: number;
  readonly toMs: number;
}

const remembered = new WeakMap<Recurrence, Stretch[]>();
const STRETCHES_MAX = 2;

/** As `nextFire`. Only for a recurrence that does not change. */
export function* nextFireOf(recurrence: Recurrence, afterMs: number): Steps<number | undefined> {
  for (const { fromMs, toMs } of remembered.get(recurrence) ?? []) {
    if (afterMs >= fromMs && afterMs < toMs) return toMs;
  }
  const toMs = yield* nextFire(recurrence, afterMs);
  // That there is none is true from here only: the search ends after some years.
  if (toMs === undefined) return undefined;
  const stretches = remembered.get(recurrence) ?? [];
  const same = stretches.find((stretch) => stretch.toMs === toMs);
  if (same) same.fromMs = Math.min(same.fromMs, afterMs);
  else remembered.set(recurrence, [...stretches, { fromMs: afterMs, toMs }].slice(-STRETCHES_MAX));
  return toMs;
}
