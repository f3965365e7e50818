/** Schedules as people look at them: as they are stored, how far they were fired, and what they will do. Pure. */

import { wholeNumber } from '../../kernel/checks.ts';
import { durationMs, type InstantInput } from '../../kernel/duration.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import { reasonOf } from '../../kernel/reason.ts';
import { inTurns, oneStep, type Steps } from '../../kernel/steps.ts';
import type { ScheduleInput } from '../../schedule/input.ts';
import { handledAhead, type LeftOut, type Preview, previewOf, runsLeft } from '../../schedule/preview.ts';
import { firedSince, instantOf } from '../../schedule/progress.ts';
import { recurrenceOf, type Schedule } from '../../schedule/schedule.ts';
import { type Definition, decodeDefinition, type PausedBy, type Source } from '../../schedule/text.ts';
import { nextFire } from '../../time/recurrence.ts';
import { DEFAULT_DST, momentOf, zoneNamed } from '../../time/zone.ts';
import type { Definitions, StoredSchedule } from './schedule-places.ts';
import type { ScheduleStore } from './schedule-store.ts';

/** A schedule as it is stored, and how far it was fired. */
export interface ScheduleView {
  readonly name: string;
  readonly queue: string;
  /** `file`: of the configuration; `call`: by somebody. */
  readonly source: Source;
  /** As it was written, instants in UTC. A pause by hand is no part of it. */
  readonly input: ScheduleInput;
  /** As it is computed with. What each of its jobs gets in Redis is `body` and `header`: for programs, `input` is what people read. */
  readonly schedule: Schedule;
  /** Tells its definition from any other, for `ifMatch`. How far it was fired is no part of it. */
  readonly etag: string;
  /** Why it is paused; undefined while it fires. */
  readonly paused: string | undefined;
  /** Who paused it: its `definition`, or somebody by `hand`, which holds until it is resumed; undefined while it fires. */
  readonly pausedBy: 'hand' | 'definition' | undefined;
  /** Who paused it by hand, and when; undefined where nobody did, or where an older version wrote it. */
  readonly hand: PausedBy | undefined;
  /** Epoch ms of its next instant; undefined when it is paused, over or unreadable. */
  readonly nextMs: number | undefined;
  /** The instants up to this epoch ms were handled. */
  readonly reachedMs: number | undefined;
  /** Epoch ms of the instant of the job that it made last. */
  readonly lastMs: number | undefined;
  /** Jobs that it made. */
  readonly runs: number;
  /** Instants that made none, because an earlier job was not over, or because nobody was there in time. */
  readonly skipped: number;
  /** Why nobody can read how far it was fired. It does not fire; removed and put again, it counts from then. */
  readonly unreadable: string | undefined;
}

/** Which instants `schedules.preview` shows. */
export interface PreviewOptions {
  /** How many instants that fire. Default 10 without `until`. */
  readonly next?: number | undefined;
  /** Up to here. A text without offset is a local time of the schedule's zone; a date means the end of that day. */
  readonly until?: InstantInput | undefined;
  /** After this; a date means the beginning of that day, included. Default now. */
  readonly from?: InstantInput | undefined;
  /** Of a definition that is not stored: the name that ids, `H` and jitter follow from. Default `preview`. */
  readonly name?: string | undefined;
  /** Told what the rows leave out: instants outside of working time, and what is beyond a megabyte of JSON. */
  readonly onLeftOut?: ((leftOut: LeftOut) => void) | undefined;
}

/** Stands for the name of a definition that has none yet. */
export const UNNAMED = 'preview';

/** The instants of which `schedules.backfill` makes jobs. */
export interface BackfillOptions {
  /** The first instant, included. A date means the beginning of that day in the schedule's zone. */
  readonly from: InstantInput;
  /** The last instant, included. A date means the end of that day in the schedule's zone. */
  readonly to: InstantInput;
  /** Only tells what would be scheduled. */
  readonly dryRun?: boolean | undefined;
  /** Most jobs. Default 1000, at most 100,000. */
  readonly limit?: number | undefined;
}

export function* viewOf(stored: Pick<StoredSchedule, 'definition' | 'fired'>, nowMs: number): Steps<ScheduleView> {
  const { schedule, source, input, hand, etag = '' } = stored.definition;
  const fired = stored.fired && firedSince(schedule, stored.fired, nowMs);
  const { name, queue, paused, maxRuns, sinceMs } = schedule;
  const runs = fired?.runs ?? 0;
  const unreadable = fired?.unreadable;
  const isOver = unreadable !== undefined || paused !== undefined || (maxRuns !== undefined && runs >= maxRuns);
  yield;
  const fromMs = Math.max(nowMs, sinceMs, fired?.reachedMs ?? 0);
  const nextMs = isOver ? undefined : yield* nextFire(recurrenceOf(schedule), fromMs);
  return {
    name,
    queue,
    source,
    input,
    schedule,
    etag,
    paused,
    pausedBy: paused === undefined ? undefined : hand === undefined ? 'definition' : 'hand',
    hand: hand?.who,
    runs,
    skipped: fired?.skipped ?? 0,
    unreadable,
    nextMs,
    lastMs: fired?.last === undefined ? undefined : instantOf(fired.last),
    reachedMs: fired && fired.reachedMs > 0 ? fired.reachedMs : undefined,
  };
}

/** Of one that is not stored, as if it were put at the beginning of the range. */
export function* previewRows(
  schedule: Schedule,
  { next, until, from }: PreviewOptions,
  { nowMs, stored }: { readonly nowMs: number; readonly stored?: Pick<StoredSchedule, 'fired'> },
): Steps<Preview> {
  const place = { zone: zoneNamed(schedule.zone), dst: DEFAULT_DST };
  const fromMs = momentOf(from, { what: 'from', ...place, date: 'before' }) ?? nowMs;
  const untilMs = momentOf(until, { what: 'until', ...place, date: 'last' });
  const most = next === undefined ? undefined : wholeNumber(next, { what: 'next', min: 1, max: 100_000 });
  const fired = stored?.fired && firedSince(schedule, stored.fired, nowMs);
  const { maxRuns } = schedule;
  const unstored = maxRuns === undefined ? undefined : { afterMs: fromMs, runs: maxRuns };
  const left = stored ? yield* runsLeft(schedule, { fired, nowMs }) : unstored;
  const held = fired?.unreadable === undefined ? undefined : ('unreadable' as const);
  const handled = handledAhead(fired, nowMs);
  const range = { fromMs, next: most ?? (untilMs === undefined ? 10 : undefined), untilMs };
  return yield* previewOf(schedule, { ...range, left, held, handled });
}

export function rangeOf(schedule: Schedule, { from, to, limit = 1000 }: BackfillOptions) {
  const place = { zone: zoneNamed(schedule.zone), dst: DEFAULT_DST };
  const fromMs = momentOf(from, { what: 'from', ...place }) ?? 0;
  const toMs = momentOf(to, { what: 'to', ...place, date: 'last' }) ?? 0;
  if (toMs < fromMs) throw new DuestreamError('bad-input', 'to is before from; allowed: an instant after it');
  if (durationMs(toMs - fromMs, 'range') > 3660 * 86_400_000) {
    throw new DuestreamError('bad-input', 'the range is longer than ten years; allowed: ten years');
  }
  return { fromMs, toMs, limit: wholeNumber(limit, { what: 'limit', min: 1, max: 100_000 }) };
}

// Many schedules as people look at them, by name. Pages are read one after the other, and of each schedule only what is
// asked for is computed: the text is enough to leave one out, and what is beyond the limit is counted, never parsed.

/** Which schedules `schedules.list` returns. */
export interface ListOptions {
  readonly queue?: string | undefined;
  readonly tag?: string | undefined;
  /** Only the first so many, by name. Default all. */
  readonly limit?: number | undefined;
}

/** Schedules by name. */
export interface SchedulesPage {
  readonly schedules: readonly ScheduleView[];
  /** Definitions that nobody can read, by name; with `limit`, those among the first. They fire nothing: put them again, or remove them. */
  readonly unreadable: readonly UnreadableSchedule[];
  /** How many more there are, which `limit` leaves out. */
  readonly more: number;
}

/** A schedule whose definition nobody can read. */
export interface UnreadableSchedule {
  readonly name: string;
  readonly why: string;
}

export interface ListParts {
  readonly definitions: Definitions;
  readonly store: Pick<ScheduleStore, 'nowMs' | 'findAll'>;
}

export async function listSchedules(
  { definitions, store }: ListParts,
  { limit = Number.POSITIVE_INFINITY, ...filter }: ListOptions,
): Promise<SchedulesPage> {
  const contents = new Map<string, string>();
  for await (const page of definitions()) {
    for (const [name, content] of page) if (isWanted(content, filter)) contents.set(name, content);
  }
  const shown: Definition[] = [];
  const unreadable: UnreadableSchedule[] = [];
  for (const name of [...contents.keys()].sort()) {
    if (shown.length >= limit) break;
    const found = await inTurns(oneStep(() => read(name, contents.get(name) ?? '')));
    if (found instanceof DuestreamError) unreadable.push({ name, why: found.message });
    else shown.push(found);
  }
  const more = contents.size - unreadable.length - shown.length;
  contents.clear();
  const nowMs = await store.nowMs();
  const views: ScheduleView[] = [];
  for (const stored of await store.findAll(shown)) views.push(await inTurns(viewOf(stored, nowMs)));
  return { schedules: views.sort((a, b) => (a.name < b.name ? -1 : 1)), unreadable, more };
}

function read(name: string, content: string): Definition | DuestreamError {
  try {
    return decodeDefinition(name, content);
  } catch (error) {
    return error instanceof DuestreamError ? error : new DuestreamError('failed', reasonOf(error), { cause: error });
  }
}

/** By what is written. One that says neither queue nor tags in a way that can be read is told to be unreadable. */
function isWanted(content: string, { queue, tag }: Pick<ListOptions, 'queue' | 'tag'>): boolean {
  if (queue === undefined && tag === undefined) return true;
  try {
    const { schedule }: { schedule?: { queue?: unknown; tags?: unknown } } = JSON.parse(content);
    if (typeof schedule?.queue !== 'string') return true;
    const { tags } = schedule;
    return (
      (queue === undefined || schedule.queue === queue) &&
      (tag === undefined || (Array.isArray(tags) && tags.map(String).includes(tag)))
    );
  } catch {
    return true;
  }
}
