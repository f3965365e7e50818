/**
 * Which instants of a schedule are to be fired now. Pure: the last instant that was handled, the time and the policy →
 * instants, oldest first, and when to look again. Work is bounded however long nobody looked.
 */
import { nextFireOf } from './next-fires.ts';
import { fires, type Recurrence } from './recurrence.ts';
import type { CatchUp } from './schedule.ts';

export interface Fires {
  readonly instants: readonly number[];
  /** Instants passed that are not in `instants`. */
  readonly missed: boolean;
  /** The first instant that is still to come. */
  readonly nextMs: number | undefined;
}

/** An instant that is fired within this time is on time under every policy: a change of leaders takes seconds. */
export const ON_TIME_MS = 60_000;
const FIRST_LOOK_MS = 60_000;

/** @param afterMs the last instant that was handled */
export function firesDue(
  recurrence: Recurrence,
  { afterMs, nowMs, catchUp }: { readonly afterMs: number; readonly nowMs: number; readonly catchUp: CatchUp },
): Fires {
  const { policy, windowMs, limit } = catchUp;
  const reachMs = policy === 'skip' ? ON_TIME_MS : Math.max(windowMs, ON_TIME_MS);
  const fromMs = Math.max(afterMs, nowMs - reachMs);
  const oldestMs = nextFireOf(recurrence, afterMs);
  const nextMs = nextFireOf(recurrence, Math.max(nowMs, afterMs));
  const isDue = oldestMs !== undefined && oldestMs <= nowMs;
  // Nearly always one is due and no other one was missed.
  const isOne = isDue && oldestMs > fromMs && nextFireOf(recurrence, oldestMs) === nextMs;
  if (isOne) return { instants: [oldestMs], missed: false, nextMs };
  const most = policy === 'all' ? limit : 1;
  const instants = isDue ? lastFires(recurrence, { fromMs, nowMs, most }) : [];
  return { instants, missed: isDue && oldestMs !== instants[0], nextMs };
}

/** The last instants of a stretch of time, found from its end. */
function lastFires(
  recurrence: Recurrence,
  { fromMs, nowMs, most }: { readonly fromMs: number; readonly nowMs: number; readonly most: number },
): readonly number[] {
  for (let reachMs = FIRST_LOOK_MS; ; reachMs *= 4) {
    const found: number[] = [];
    for (const atMs of fires(recurrence, Math.max(fromMs, nowMs - reachMs))) {
      if (atMs > nowMs) break;
      found.push(atMs);
    }
    if (found.length >= most || nowMs - reachMs <= fromMs) return found.slice(-most);
  }
}
