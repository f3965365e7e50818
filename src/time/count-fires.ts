/**
 * How many instants fire in a stretch of time, without walking through them: in a year of seconds there are 31 million.
 * Where the clock does not change and the calendar is open, all that the rule names fires, and is counted by arithmetic.
 * Around clock changes, and where a working time begins, instants are found one by one. So the work follows from the
 * days and the working times of the stretch of time. Pure.
 */
import type { Steps } from '../kernel/steps.ts';
import { namedIn, nextFire, type Recurrence } from './recurrence.ts';

/**
 * @returns how many fire after a moment and up to another
 * @example atOnce(countFires(recurrence, midnightMs, nowMs))
 */
export function* countFires(recurrence: Recurrence, afterMs: number, upToMs: number): Steps<number> {
  const { startMs = Number.NEGATIVE_INFINITY, endMs = Number.POSITIVE_INFINITY } = recurrence;
  const lastMs = Math.min(upToMs, endMs - 1);
  let atMs = Math.max(afterMs, startMs - 1);
  let count = 0;
  while (atMs < lastMs) {
    yield;
    const plainMs = Math.min(plainUpTo(recurrence, atMs), lastMs);
    if (plainMs > atMs) {
      count += namedIn(recurrence, { afterMs: atMs, upToMs: plainMs });
      atMs = plainMs;
      continue;
    }
    const nextMs = yield* nextFire(recurrence, atMs, lastMs);
    if (nextMs === undefined || nextMs > lastMs) break;
    count += 1;
    atMs = nextMs;
  }
  return count;
}

/** Up to here all that is named after a moment fires, each at an instant of its own; the moment itself when none does. */
function plainUpTo({ rule, zone, calendar }: Recurrence, atMs: number): number {
  const { fromMs, toMs, offsetMs, beforeMs, afterMs } = zone.stretchAt(atMs + 1);
  // An interval and a rule of every hour fire whenever the clock shows their times.
  const changes = 'cron' in rule && !rule.cron.interval;
  if (changes && atMs + 1 - fromMs < Math.abs(offsetMs - beforeMs)) return atMs;
  const shownMs = changes ? toMs - Math.max(0, offsetMs - afterMs) : toMs;
  if (!calendar) return shownMs - 1;
  // At the first moment of a working time there may be what was moved there.
  if (calendar.closed(atMs + zone.offsetMs(atMs)) || calendar.closed(atMs + 1 + offsetMs)) return atMs;
  return Math.min(shownMs, calendar.closes(atMs + 1 + offsetMs) - offsetMs) - 1;
}
