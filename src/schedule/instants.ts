/** The instants of a schedule: one as people look at it, those before a moment, and those that are to be fired now. */

import { type Steps, within } from '../kernel/steps.ts';
import { countFires, nextFireOf, type Occurrence, occurrences, type Recurrence } from '../time/recurrence.ts';
import { zoneNamed } from '../time/zone.ts';
import { type CatchUp, dueOfFire, fireId, recurrenceOf, type Schedule } from './schedule.ts';

// One instant of a schedule as people look at it: local time, UTC, offset and every decision. Pure.

/** Why a schedule does not fire, besides what its definition says. */
export type Held = 'paused' | 'unreadable';

/** One instant of a schedule: when it fires, or why it does not. */
export interface PreviewRow {
  /** The id of its job; undefined when it makes none. */
  readonly id: string | undefined;
  /** Epoch ms of the instant. */
  readonly atMs: number;
  /** The wall-clock time at that instant in the schedule's zone, such as `2026-03-08T03:30:00`. */
  readonly local: string;
  /** The offset of the zone at that instant, such as `-04:00`. */
  readonly offset: string;
  /** The wall-clock time that the rule names, where it is another. */
  readonly named: string | undefined;
  /** What a clock change did: `shifted` by a gap, the `first` or `second` of two, or lost in a `gap`. */
  readonly dst: Occurrence['dst'];
  /** What the calendar did: `moved` to the next working moment, or why it is no working time. */
  readonly calendar: Occurrence['calendar'];
  /**
   * Why it does not fire: `gap`, `overlap`, `skip-date`, `outside-hours`, or `coincides` with another; or because the
   * schedule is `paused`, or nobody can read how far it is (`unreadable`).
   */
  readonly dropped: Occurrence['dropped'] | Held;
  /** Epoch ms from which its job may run: the instant and the jitter. */
  readonly dueMs: number | undefined;
  /** So many instants that follow are dropped for the same reason, and have no row of their own. */
  readonly leftOut: number | undefined;
}

interface Previewed extends Omit<Occurrence, 'dropped'> {
  readonly dropped: PreviewRow['dropped'];
}

/** @param offsetMs of the zone of the schedule at that instant */
export function previewRow(
  schedule: Schedule,
  { atMs, wallMs, dst, calendar, dropped, leftOut }: Previewed,
  offsetMs: number,
): PreviewRow {
  const local = wallText(atMs + offsetMs);
  const named = wallText(wallMs);
  return {
    id: dropped ? undefined : fireId(schedule.name, atMs),
    atMs,
    local,
    offset: offsetText(offsetMs),
    named: named === local ? undefined : named,
    dst,
    calendar,
    dropped,
    dueMs: dropped ? undefined : dueOfFire(schedule, atMs),
    leftOut: leftOut === 0 ? undefined : leftOut,
  };
}

const wallText = (wallMs: number) => new Date(wallMs).toISOString().replace(/(\.000)?Z$/, '');

function offsetText(offsetMs: number): string {
  const minutes = Math.round(Math.abs(offsetMs) / 60_000);
  const two = (value: number) => String(value).padStart(2, '0');
  return `${offsetMs < 0 ? '-' : '+'}${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`;
}

// The instants of a schedule before a moment, the latest first. A rule can only be asked for what comes next, so a
// stretch of time is walked from its beginning; one with too many instants is halved, and the later half is walked
// first. So the work is bounded by what is asked for, whatever the rule is: each second of one month in a year, or once
// in four years.

const FIRST_LOOK_MS = 60_000;
/** A stretch with more than so many times the count is halved. */
const WALKED_EACH = 4;

/**
 * What fired or should have, and what a clock change took away; of times without work nothing, and none before `sinceMs` of
 * the schedule.
 *
 * @param beforeMs excluded
 * @example atOnce(instantsBefore(schedule, { beforeMs: Date.now(), count: 20 }))
 */
export function* instantsBefore(
  schedule: Schedule,
  { beforeMs, count }: { readonly beforeMs: number; readonly count: number },
): Steps<readonly PreviewRow[]> {
  const recurrence = recurrenceOf(schedule);
  const zone = zoneNamed(schedule.zone);
  const afterMs = Math.max(schedule.sinceMs, (schedule.startMs ?? 0) - 1);
  const found = yield* lastOf(recurrence, { afterMs, beforeMs, count, isWanted: isPlanned });
  return found.map((one) => previewRow(schedule, { ...one, dropped: one.dropped }, zone.offsetMs(one.atMs))).reverse();
}

const isPlanned = ({ dropped }: Occurrence): boolean =>
  dropped === undefined || dropped === 'gap' || dropped === 'overlap';

interface Stretch {
  readonly afterMs: number;
  /** Excluded. */
  readonly beforeMs: number;
  readonly count: number;
  readonly isWanted: (one: Occurrence) => boolean;
}

/** The last of a stretch, oldest first. Most rules have them near its end, so looks reach back ever further. */
function* lastOf(recurrence: Recurrence, stretch: Stretch): Steps<readonly Occurrence[]> {
  const { beforeMs, count } = stretch;
  for (let reachMs = FIRST_LOOK_MS; ; reachMs *= 4) {
    const afterMs = Math.max(stretch.afterMs, beforeMs - reachMs);
    const found = yield* lastWithin(recurrence, { ...stretch, afterMs });
    if (found.length >= count || afterMs === stretch.afterMs) return found;
  }
}

function* lastWithin(recurrence: Recurrence, stretch: Stretch): Steps<readonly Occurrence[]> {
  const { afterMs, beforeMs, count, isWanted } = stretch;
  const first: Occurrence[] = [];
  for (const one of occurrences(recurrence, afterMs, { untilMs: beforeMs - 1 })) {
    yield;
    if (one.atMs >= beforeMs) break;
    if (isWanted(one)) first.push(one);
    if (first.length > WALKED_EACH * count) break;
  }
  const walkedMs = first.at(-1)?.atMs;
  if (walkedMs === undefined || first.length <= WALKED_EACH * count) return first.slice(-count);
  const middleMs = walkedMs + Math.floor((beforeMs - walkedMs) / 2);
  const later = yield* lastWithin(recurrence, { ...stretch, afterMs: middleMs });
  if (later.length >= count) return later;
  const between = { afterMs: walkedMs, beforeMs: middleMs + 1, count: count - later.length, isWanted };
  return [...first, ...(yield* lastWithin(recurrence, between)), ...later].slice(-count);
}

// Which instants of a schedule are to be fired now. Pure: the last instant that was handled, the time and the policy →
// instants, oldest first, and when to look again. Work is bounded however long nobody looked.

interface Fires {
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
