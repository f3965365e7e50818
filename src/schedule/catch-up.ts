/**
 * Which instants of a schedule are to be fired now. Pure: the last instant that was handled, the time and the policy →
 * instants, oldest first, and when to look again. Work is bounded however long nobody looked.
 */

import { type Steps, within } from '../kernel/steps.ts';
import { countFires } from '../time/count-fires.ts';
import { nextFireOf } from '../time/next-fires.ts';
import type { Recurrence } from '../time/recurrence.ts';
import { lastOf } from './past-instants.ts';
import type { CatchUp } from './schedule.ts';

export interface Fires {
  readonly instants: readonly number[];
  /** So many instants passed that are not in `instants`; at least so many, where working times are very many. */
  readonly missed: number;
  /** The first instant that is still to come. */
  readonly nextMs: number | undefined;
}

/** An instant that is fired within this time is on time under every policy: a change of leaders takes seconds. */
export const ON_TIME_MS = 60_000;
/** Centuries, where a day has one working time. */
const COUNT_STEPS_MAX = 200_000;

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
  if (!isDue) return { instants: [], missed: 0, nextMs };
  if (isOne) return { instants: [oldestMs], missed: 0, nextMs };
  const stretch = { afterMs: fromMs, beforeMs: nowMs + 1, count: policy === 'all' ? limit : 1 };
  const isWanted = ({ dropped }: { readonly dropped?: unknown }) => dropped === undefined;
  const last = yield* lastOf(recurrence, { ...stretch, isWanted });
  const instants = last.map(({ atMs }) => atMs);
  if (oldestMs === instants[0]) return { instants, missed: 0, nextMs };
  const passed = yield* within(countFires(recurrence, afterMs, nowMs), { left: COUNT_STEPS_MAX });
  return { instants, missed: passed === undefined ? 1 : passed - instants.length, nextMs };
}
