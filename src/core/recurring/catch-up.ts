/**
 * Which instants of a schedule are to be fired now. Pure: the last instant that was handled, the time and the policy →
 * instants, oldest first, and when to look again. Work is bounded however long nobody looked.
 */

import type { Steps } from '../steps.ts';
import { nextFireOf } from './next-fires.ts';
import { lastOf } from './past-instants.ts';
import type { Recurrence } from './recurrence.ts';
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

/** @param afterMs the last instant that was handled */
export function* firesDue(
  recurrence: Recurrence,
  { afterMs, nowMs, catchUp }: { readonly afterMs: number; readonly nowMs: number; readonly catchUp: CatchUp },
): Steps<Fires> {
  const { policy, windowMs, limit } = catchUp;
  const reachMs = policy === 'skip' ? ON_TIME_MS : Math.max(windowMs, ON_TIME_MS);
  const fromMs = Math.max(afterMs, nowMs - reachMs);
  const oldestMs = yield* nextFireOf(recurrence, afterMs);
  const nextMs = yield* nextFireOf(recurrence, Math.max(nowMs, afterMs));
  const isDue = oldestMs !== undefined && oldestMs <= nowMs;
  // Nearly always one is due and no other one was missed.
  const isOne = isDue && oldestMs > fromMs && (yield* nextFireOf(recurrence, oldestMs)) === nextMs;
  if (isOne) return { instants: [oldestMs], missed: false, nextMs };
  const stretch = { afterMs: fromMs, beforeMs: nowMs + 1, count: policy === 'all' ? limit : 1 };
  const isWanted = ({ dropped }: { readonly dropped?: unknown }) => dropped === undefined;
  const last = isDue ? yield* lastOf(recurrence, { ...stretch, isWanted }) : [];
  const instants = last.map(({ atMs }) => atMs);
  return { instants, missed: isDue && oldestMs !== instants[0], nextMs };
}
