/** One instant of a schedule as people look at it: local time, UTC, offset and every decision. Pure. */

import type { Occurrence } from '../time/recurrence.ts';
import { dueOfFire, fireId, type Schedule } from './schedule.ts';

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
