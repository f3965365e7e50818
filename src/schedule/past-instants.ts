/**
 * The instants of a schedule before a moment, the latest first. A rule can only be asked for what comes next, so a stretch
 * of time is walked from its beginning; one with too many instants is halved, and the later half is walked first. So the
 * work is bounded by what is asked for, whatever the rule is: each second of one month in a year, or once in four years.
 */

import type { Steps } from '../kernel/steps.ts';
import { type Occurrence, occurrences, type Recurrence } from '../time/recurrence.ts';
import { parseZone } from '../time/zone.ts';
import { type PreviewRow, previewRow } from './preview-row.ts';
import { recurrenceOf, type Schedule } from './schedule.ts';

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
  const zone = parseZone(schedule.zone);
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
export function* lastOf(recurrence: Recurrence, stretch: Stretch): Steps<readonly Occurrence[]> {
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
