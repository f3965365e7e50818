/**
 * What a schedule will do, told so that a person can check it. Pure.
 *
 * A look must not become work without end, whatever the rule is: at a time without work the walk shows a few instants and
 * leaps over the others, and an answer has at most a megabyte. Instants that fire come first: those that are dropped have
 * a share of the rows. The answer tells what it leaves out.
 */

import { DuestreamError } from '../kernel/errors.ts';
import { type Steps, within } from '../kernel/steps.ts';
import { countFires, type Occurrence, occurrences, type Recurrence } from '../time/recurrence.ts';
import { zoneNamed } from '../time/zone.ts';
import { firesDue, type Held, type PreviewRow, previewRow } from './instants.ts';
import type { Fired } from './progress.ts';
import { recurrenceOf, type Schedule } from './schedule.ts';

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

/** What a preview has no rows for. */
export interface LeftOut {
  /** Instants between the rows that make no job. */
  readonly dropped: number;
  /** Instants after the last row that were asked for and make a job. */
  readonly later: number;
  /** There are more of them: counting them ended before the end of the range. */
  readonly atLeast: boolean;
  /** Epoch ms up to which the rows tell all. The same preview `from` here goes on. */
  readonly upToMs: number;
}

export interface Preview {
  readonly rows: readonly PreviewRow[];
  /** Undefined: nothing. */
  readonly leftOut: LeftOut | undefined;
}

/** Of a time without work, so many instants have rows. */
const CLOSED_ROWS = 10;
/** Rows of instants that are dropped; most instants may be. */
const DROPPED_ROWS_MAX = 1000;
/** Rows as JSON; what is around them has the rest of a megabyte. */
const BYTES_MAX = 950_000;
/** A rule may fire seldom and be dropped often. */
const STEPS_MAX = 100_000;
/** Decades, where a day has two working times. */
const COUNT_STEPS_MAX = 50_000;

/**
 * The instants after `fromMs` in their order, dropped ones included. A schedule that is held, for example because it
 * is paused, drops all of them: the preview ends after the first `next` that would otherwise fire.
 *
 * @throws DuestreamError `bad-input` when too many working times would have to be counted up to `fromMs`
 * @example atOnce(previewOf(schedule, { fromMs: Date.now(), next: 20 })).rows
 */
export function* previewOf(schedule: Schedule, range: PreviewRange): Steps<Preview> {
  const { fromMs, next = Number.POSITIVE_INFINITY, left, held } = range;
  const recurrence = recurrenceOf(schedule);
  const zone = zoneNamed(schedule.zone);
  const why = held ?? (schedule.paused === undefined ? undefined : 'paused');
  let runs = yield* runsAfter(recurrence, range, schedule.sinceMs);
  const answer: Answer = { rows: [], bytes: 0, droppedRows: 0, dropped: 0, fired: 0, upToMs: fromMs };
  let steps = 0;
  for (const one of instantsIn(recurrence, range, schedule.sinceMs)) {
    yield;
    const fires = one.dropped === undefined;
    const isRun = fires && left !== undefined && one.atMs > left.afterMs;
    if (answer.fired >= next || (isRun && runs === 0)) return previewed(answer);
    steps += 1;
    const row = previewRow(schedule, { ...one, dropped: one.dropped ?? why }, zone.offsetMs(one.atMs));
    if (steps > STEPS_MAX || !takes(answer, row, fires)) {
      const most = Math.min(next - answer.fired, runs);
      return previewed(answer, yield* laterOf(recurrence, { ...range, fromMs: answer.upToMs }, most));
    }
    if (isRun) runs -= 1;
  }
  return previewed(answer);
}

interface Answer {
  readonly rows: PreviewRow[];
  bytes: number;
  droppedRows: number;
  dropped: number;
  fired: number;
  upToMs: number;
}

/** @returns false for one that fires and has no room */
function takes(answer: Answer, row: PreviewRow, fires: boolean): boolean {
  const bytes = JSON.stringify(row).length + 1;
  const hasRoom = answer.bytes + bytes <= BYTES_MAX;
  if (fires && !hasRoom) return false;
  const isShown = hasRoom && (fires || answer.droppedRows < DROPPED_ROWS_MAX);
  if (isShown) {
    answer.rows.push(row);
    answer.bytes += bytes;
  }
  if (fires) answer.fired += 1;
  else if (isShown) answer.droppedRows += 1;
  answer.dropped += (isShown ? 0 : 1) + (row.leftOut ?? 0);
  answer.upToMs = row.atMs;
  return true;
}

function previewed(
  { rows, dropped, upToMs }: Answer,
  { later, atLeast }: Pick<LeftOut, 'later' | 'atLeast'> = { later: 0, atLeast: false },
): Preview {
  const isWhole = dropped === 0 && later === 0 && !atLeast;
  return { rows, leftOut: isWhole ? undefined : { dropped, later, atLeast, upToMs } };
}

/** Before those that were handled, and after them. */
function* instantsIn(recurrence: Recurrence, range: PreviewRange, sinceMs: number): Generator<Occurrence> {
  for (const { afterMs, upToMs } of partsOf(range, sinceMs)) {
    for (const one of occurrences(recurrence, afterMs, { untilMs: upToMs, closedRows: CLOSED_ROWS })) {
      if (one.atMs > upToMs) break;
      yield one;
    }
  }
}

function partsOf(
  { fromMs, untilMs = Number.POSITIVE_INFINITY, handled }: PreviewRange,
  sinceMs: number,
): readonly Handled[] {
  const afterMs = Math.max(fromMs, sinceMs);
  if (!handled) return [{ afterMs, upToMs: untilMs }];
  return [
    { afterMs, upToMs: Math.min(untilMs, handled.afterMs) },
    { afterMs: Math.max(afterMs, handled.upToMs), upToMs: untilMs },
  ];
}

/** How many runs are left after the beginning of the range. */
function* runsAfter(recurrence: Recurrence, { fromMs, left }: PreviewRange, sinceMs: number): Steps<number> {
  if (left === undefined) return Number.POSITIVE_INFINITY;
  const before = yield* within(countFires(recurrence, Math.max(left.afterMs, sinceMs), fromMs), {
    left: COUNT_STEPS_MAX,
  });
  if (before !== undefined) return Math.max(0, left.runs - before);
  throw new DuestreamError(
    'bad-input',
    'there are too many working times up to from to count the runs of maxRuns; allowed: an earlier from',
  );
}

/** What comes after the rows, up to `most`. */
function* laterOf(
  recurrence: Recurrence,
  range: PreviewRange,
  most: number,
): Steps<Pick<LeftOut, 'later' | 'atLeast'>> {
  let later = 0;
  for (const { afterMs, upToMs } of partsOf(range, range.fromMs)) {
    const lastMs = Math.min(upToMs, recurrence.endMs ?? Number.POSITIVE_INFINITY);
    if (lastMs === Number.POSITIVE_INFINITY) return { later: most, atLeast: false };
    const count = yield* within(countFires(recurrence, afterMs, lastMs), { left: STEPS_MAX });
    if (count === undefined) return { later, atLeast: true };
    later += count;
  }
  return { later: Math.min(later, most), atLeast: false };
}

/** @param fired how far it was fired, by a clock that may have gone back since */
export function handledAhead(fired: Pick<Fired, 'reachedMs'> | undefined, nowMs: number): Handled | undefined {
  return fired && fired.reachedMs > nowMs ? { afterMs: nowMs, upToMs: fired.reachedMs } : undefined;
}

/** How many runs a schedule with `maxRuns` has left after now; what it catches up at once is counted out. */
export function* runsLeft(
  schedule: Schedule,
  {
    fired,
    nowMs,
  }: { readonly fired: Pick<Fired, 'reachedMs' | 'runs' | 'waiting'> | undefined; readonly nowMs: number },
): Steps<RunsLeft | undefined> {
  const { maxRuns, sinceMs, catchUp, paused } = schedule;
  if (maxRuns === undefined) return undefined;
  const afterMs = Math.max(fired?.reachedMs ?? 0, sinceMs);
  const due = paused === undefined ? yield* firesDue(recurrenceOf(schedule), { afterMs, nowMs, catchUp }) : undefined;
  const waiting = fired?.waiting === undefined ? 0 : 1;
  return {
    afterMs: Math.max(nowMs, fired?.reachedMs ?? 0),
    runs: Math.max(0, maxRuns - (fired?.runs ?? 0) - waiting - (due?.instants.length ?? 0)),
  };
}
