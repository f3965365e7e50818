/** What a schedule will do, told so that a person can check it: local time, UTC, offset and every decision. Pure. */
import { type Occurrence, occurrences } from './recurrence.ts';
import { dueOfFire, fireId, recurrenceOf, type Schedule } from './schedule.ts';
import { parseZone } from './zone.ts';

export interface PreviewRow {
  /** The id of its job; undefined when it makes none. */
  readonly id: string | undefined;
  /** The instant, UTC. */
  readonly at: string;
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
  /** Why it does not fire: `gap`, `overlap`, `skip-date`, `outside-hours`, or `coincides` with another. */
  readonly dropped: Occurrence['dropped'];
  /** When its job is due, UTC: the instant and the jitter. */
  readonly due: string | undefined;
}

export interface PreviewRange {
  readonly fromMs: number;
  /** Most rows that fire. */
  readonly next?: number | undefined;
  readonly untilMs?: number | undefined;
}

/** Rows that are dropped and rows that fire, at most; a calendar may drop very many. */
const ROWS_MAX = 100_000;

/**
 * The instants after `fromMs` in their order, dropped ones included.
 *
 * @example previewOf(schedule, { fromMs: Date.now(), next: 20 })
 */
export function* previewOf(
  schedule: Schedule,
  { fromMs, next = ROWS_MAX, untilMs = Number.POSITIVE_INFINITY }: PreviewRange,
): Generator<PreviewRow, void, undefined> {
  const zone = parseZone(schedule.zone);
  let [fired, rows] = [0, 0];
  for (const occurrence of occurrences(recurrenceOf(schedule), Math.max(fromMs, schedule.sinceMs))) {
    if (occurrence.atMs > untilMs || fired >= next || rows >= ROWS_MAX) return;
    rows += 1;
    if (!occurrence.dropped) fired += 1;
    yield rowOf(schedule, occurrence, zone.offsetMs(occurrence.atMs));
  }
}

function rowOf(schedule: Schedule, { atMs, wallMs, dst, calendar, dropped }: Occurrence, offsetMs: number): PreviewRow {
  const local = wallText(atMs + offsetMs);
  const named = wallText(wallMs);
  return {
    ...{ id: dropped ? undefined : fireId(schedule.name, atMs), at: utc(atMs), local, offset: offsetText(offsetMs) },
    ...{ named: named === local ? undefined : named, dst, calendar, dropped },
    due: dropped ? undefined : utc(dueOfFire(schedule, atMs)),
  };
}

const utc = (atMs: number) => new Date(atMs).toISOString().replace('.000Z', 'Z');
const wallText = (wallMs: number) => new Date(wallMs).toISOString().replace(/(\.000)?Z$/, '');

function offsetText(offsetMs: number): string {
  const minutes = Math.round(Math.abs(offsetMs) / 60_000);
  const two = (value: number) => String(value).padStart(2, '0');
  return `${offsetMs < 0 ? '-' : '+'}${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`;
}
