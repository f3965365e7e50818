/** What a schedule will do, told so that a person can check it: local time, UTC, offset and every decision. Pure. */

import { DuestreamError } from '../errors.ts';
import { firesDue } from './catch-up.ts';
import { type Occurrence, occurrences } from './recurrence.ts';
import { dueOfFire, fireId, recurrenceOf, type Schedule } from './schedule.ts';
import type { Fired } from './schedule-progress.ts';
import { parseZone } from './zone.ts';

type Held = 'paused' | 'unreadable';

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
}

export interface PreviewRange {
  readonly fromMs: number;
  /** Most rows that fire. */
  readonly next?: number | undefined;
  readonly untilMs?: number | undefined;
  /** Of a schedule with `maxRuns`: so many more fire, counted after this time. */
  readonly left?: RunsLeft | undefined;
  /** Why none fires, besides what the definition says. */
  readonly held?: Held | undefined;
  readonly handled?: Handled | undefined;
}

/** Instants that will not come: they were fired already, by a clock that went back since. */
export interface Handled {
  readonly afterMs: number;
  readonly upToMs: number;
}

export interface RunsLeft {
  readonly afterMs: number;
  readonly runs: number;
}

/** Rows that are dropped and rows that fire, at most; a calendar may drop very many. */
const ROWS_MAX = 100_000;
/** Of a schedule that ends after its runs, those before the first row are counted one by one. */
const COUNTED_MAX = 100_000;
/** Instants before the first row, dropped ones included, that are walked through to count them. */
const WALKED_MAX = 200_000;

/**
 * The instants after `fromMs` in their order, dropped ones included. Of one that is held all are dropped, those that would
 * fire up to `next` of them.
 *
 * @throws DuestreamError `bad-input` when too many runs or instants would have to be counted up to `fromMs`
 * @example previewOf(schedule, { fromMs: Date.now(), next: 20 })
 */
export function* previewOf(
  schedule: Schedule,
  { fromMs, next = ROWS_MAX, untilMs = Number.POSITIVE_INFINITY, left, held, handled }: PreviewRange,
): Generator<PreviewRow, void, undefined> {
  const zone = parseZone(schedule.zone);
  const why = held ?? (schedule.paused === undefined ? undefined : 'paused');
  const afterMs = Math.max(Math.min(fromMs, left?.afterMs ?? fromMs), schedule.sinceMs);
  let [fired, rows] = [0, 0];
  for (const occurrence of withinRuns(unhandled(schedule, afterMs, handled), { left, fromMs })) {
    const { atMs, dropped } = occurrence;
    if (atMs > untilMs || fired >= next || rows >= ROWS_MAX) return;
    if (atMs <= fromMs) continue;
    rows += 1;
    if (!dropped) fired += 1;
    yield previewRow(schedule, { ...occurrence, dropped: dropped ?? why }, zone.offsetMs(atMs));
  }
}

function* unhandled(schedule: Schedule, afterMs: number, handled: Handled | undefined): Generator<Occurrence> {
  const recurrence = recurrenceOf(schedule);
  for (const occurrence of occurrences(recurrence, afterMs)) {
    if (handled && occurrence.atMs > handled.afterMs) break;
    yield occurrence;
  }
  if (handled) yield* occurrences(recurrence, Math.max(afterMs, handled.upToMs));
}

/** Up to the last run that is left. */
function* withinRuns(
  all: Iterable<Occurrence>,
  { left, fromMs }: Pick<PreviewRange, 'left' | 'fromMs'>,
): Generator<Occurrence> {
  let [counted, walked] = [0, 0];
  for (const occurrence of all) {
    if (left && !occurrence.dropped && occurrence.atMs > left.afterMs) counted += 1;
    if (left && counted > left.runs) return;
    if (occurrence.atMs <= fromMs) {
      walked += 1;
      if (counted > COUNTED_MAX || walked > WALKED_MAX) throw tooFar();
    }
    yield occurrence;
  }
}

/** @param fired how far it was fired, by a clock that may have gone back since */
export function handledAhead(fired: Pick<Fired, 'reachedMs'> | undefined, nowMs: number): Handled | undefined {
  return fired && fired.reachedMs > nowMs ? { afterMs: nowMs, upToMs: fired.reachedMs } : undefined;
}

/** How many runs a schedule with `maxRuns` has left after now; what it catches up at once is counted out. */
export function runsLeft(
  schedule: Schedule,
  {
    fired,
    nowMs,
  }: { readonly fired: Pick<Fired, 'reachedMs' | 'runs' | 'waiting'> | undefined; readonly nowMs: number },
): RunsLeft | undefined {
  const { maxRuns, sinceMs, catchUp, paused } = schedule;
  if (maxRuns === undefined) return undefined;
  const afterMs = Math.max(fired?.reachedMs ?? 0, sinceMs);
  const due = paused === undefined ? firesDue(recurrenceOf(schedule), { afterMs, nowMs, catchUp }).instants.length : 0;
  const waiting = fired?.waiting === undefined ? 0 : 1;
  return {
    afterMs: Math.max(nowMs, fired?.reachedMs ?? 0),
    runs: Math.max(0, maxRuns - (fired?.runs ?? 0) - waiting - due),
  };
}

function tooFar(): DuestreamError {
  return new DuestreamError(
    'bad-input',
    `more than ${COUNTED_MAX} runs, or ${WALKED_MAX} instants, up to from would have to be counted for maxRuns; ` +
      'allowed: an earlier from',
  );
}

interface Previewed extends Omit<Occurrence, 'dropped'> {
  readonly dropped: PreviewRow['dropped'];
}

/** @param offsetMs of the zone of the schedule at that instant */
export function previewRow(
  schedule: Schedule,
  { atMs, wallMs, dst, calendar, dropped }: Previewed,
  offsetMs: number,
): PreviewRow {
  const local = wallText(atMs + offsetMs);
  const named = wallText(wallMs);
  return {
    ...{ id: dropped ? undefined : fireId(schedule.name, atMs), atMs, local, offset: offsetText(offsetMs) },
    ...{ named: named === local ? undefined : named, dst, calendar, dropped },
    dueMs: dropped ? undefined : dueOfFire(schedule, atMs),
  };
}

const wallText = (wallMs: number) => new Date(wallMs).toISOString().replace(/(\.000)?Z$/, '');

function offsetText(offsetMs: number): string {
  const minutes = Math.round(Math.abs(offsetMs) / 60_000);
  const two = (value: number) => String(value).padStart(2, '0');
  return `${offsetMs < 0 ? '-' : '+'}${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`;
}
