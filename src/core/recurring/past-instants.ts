/**
 * The instants of a schedule before a moment, the latest first. A rule can only be asked for what comes next, so a stretch
 * of time is walked from its beginning; one with too many instants is halved, and the later half is walked first. So the
 * work is bounded by what is asked for, whatever the rule is: each second of one month in a year, or once in four years.
 */
import { type PreviewRow, previewRow } from './preview.ts';
import { type Occurrence, planned, type Recurrence } from './recurrence.ts';
import { recurrenceOf, type Schedule } from './schedule.ts';
import { parseZone } from './zone.ts';

const FIRST_LOOK_MS = 60_000;
/** A stretch with more than so many times the count is halved. */
const WALKED_EACH = 4;

/**
 * What fired or should have, and what a clock change took away; of times without work nothing, and none before `sinceMs` of
 * the schedule.
 *
 * @param beforeMs excluded
 * @example instantsBefore(schedule, { beforeMs: Date.now(), count: 20 })
 */
export function instantsBefore(
  schedule: Schedule,
  { beforeMs, count }: { readonly beforeMs: number; readonly count: number },
): readonly PreviewRow[] {
  const recurrence = recurrenceOf(schedule);
  const zone = parseZone(schedule.zone);
  const sinceMs = Math.max(schedule.sinceMs, (schedule.startMs ?? 0) - 1);
  let found: readonly Occurrence[] = [];
  for (let reachMs = FIRST_LOOK_MS; found.length < count; reachMs *= 4) {
    const afterMs = Math.max(sinceMs, beforeMs - reachMs);
    found = lastPlanned(recurrence, { afterMs, beforeMs, count });
    if (afterMs === sinceMs) break;
  }
  return found.map((one) => previewRow(schedule, { ...one, dropped: one.dropped }, zone.offsetMs(one.atMs))).reverse();
}

interface Stretch {
  readonly afterMs: number;
  readonly beforeMs: number;
  readonly count: number;
}

/** The last of a stretch, oldest first. */
function lastPlanned(recurrence: Recurrence, { afterMs, beforeMs, count }: Stretch): readonly Occurrence[] {
  const first: Occurrence[] = [];
  for (const one of planned(recurrence, afterMs)) {
    if (one.atMs >= beforeMs) return first.slice(-count);
    first.push(one);
    if (first.length > WALKED_EACH * count) break;
  }
  const walkedMs = first.at(-1)?.atMs;
  if (walkedMs === undefined || first.length <= WALKED_EACH * count) return first.slice(-count);
  const middleMs = walkedMs + Math.floor((beforeMs - walkedMs) / 2);
  const later = lastPlanned(recurrence, { afterMs: middleMs, beforeMs, count });
  if (later.length >= count) return later;
  const between = { afterMs: walkedMs, beforeMs: middleMs + 1, count: count - later.length };
  return [...first, ...lastPlanned(recurrence, between), ...later].slice(-count);
}
