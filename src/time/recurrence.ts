/**
 * A recurrence → the instants at which it fires: strictly increasing, none twice. They follow from the definition alone,
 * never from the last run, so that any process at any time finds the same ones.
 *
 * Cron names wall-clock times. Between two clock changes they map to instants one to one; at a change:
 *
 *                        the clock goes forward (gap)           the clock goes back (overlap)
 *  some hours are named  `shift`: later by the gap, or `skip`   `first`, `second` or `both`
 *  every hour, or n-th   only times that the clock shows        each time that the clock shows them
 *
 * `every` counts elapsed time and knows no clock changes. The calendar is asked last.
 */
import type { Steps } from '../kernel/steps.ts';
import { type Calendar, SEARCH_DAYS } from './calendar.ts';
import type { Cron } from './cron.ts';
import type { DstPolicy, Stretch, Zone } from './zone.ts';

export interface Recurrence {
  readonly rule: { readonly cron: Cron } | { readonly everyMs: number; readonly anchorMs: number };
  readonly zone: Zone;
  readonly dst: DstPolicy;
  readonly calendar?: Calendar | undefined;
  /** No instant before it. */
  readonly startMs?: number | undefined;
  /** No instant at it or after it. */
  readonly endMs?: number | undefined;
}

/** What was decided about one time that the rule names. */
export interface Occurrence {
  /** The instant at which it fires, or would have. */
  readonly atMs: number;
  /** The wall-clock time that the rule names, as ms of a clock without a zone. */
  readonly wallMs: number;
  readonly dst?: 'shifted' | 'first' | 'second' | 'gap' | undefined;
  readonly calendar?: 'moved' | 'skip-date' | 'outside-hours' | undefined;
  /** Why it does not fire; undefined when it does. */
  readonly dropped?: 'gap' | 'overlap' | 'skip-date' | 'outside-hours' | 'coincides' | undefined;
  /** So many that follow lie in the same time without work, and the walk leaps over them. */
  readonly leftOut?: number | undefined;
}

const DAY_MS = 86_400_000;
/** Nothing is looked for further ahead: a leap day falls on each weekday within 28 years, but for 1900, 2100, … */
export const SEARCH_YEARS = 30;
const SEARCH_MS = SEARCH_YEARS * 366 * DAY_MS;
/** More clock changes than lie within any closed time. */
const STRETCHES_MAX = 20;
/** A rule that misses so many working times in a row misses all: they come again each week. */
const CLOSED_MAX = 20_000;

/** How a walk goes. */
interface Walk {
  /** Nothing that is named later; it may be moved to a later moment. */
  readonly untilMs?: number | undefined;
  /** Of a time without work, so many are told one by one, and the others are leapt over. */
  readonly closedRows?: number | undefined;
}

/**
 * The instants after one, with what was decided; those that do not fire are marked as dropped. A rule of seconds names
 * millions in a holiday: the walk leaps over times without work, and the last instant before a leap tells how many
 * the leap leaves out. So each step is short, whatever the rule is.
 */
export function* occurrences(
  recurrence: Recurrence,
  afterMs: number,
  { untilMs = Number.POSITIVE_INFINITY, closedRows = 1 }: Walk = {},
): Generator<Occurrence, void, undefined> {
  const { startMs = Number.NEGATIVE_INFINITY, endMs = Number.POSITIVE_INFINITY } = recurrence;
  const fromMs = Math.max(afterMs, startMs - 1);
  const lastMs = Math.min(untilMs, endMs - 1, fromMs + SEARCH_MS);
  let firedMs = fromMs;
  for (const decided of decisions(recurrence, fromMs, { lastMs, closedRows })) {
    if (decided.atMs >= endMs || decided.atMs <= fromMs) continue;
    if (decided.dropped === undefined && decided.atMs <= firedMs) yield { ...decided, dropped: 'coincides' };
    else yield decided;
    if (decided.dropped === undefined) firedMs = decided.atMs;
  }
}

interface Decide {
  /** The last moment that may be named. */
  readonly lastMs: number;
  readonly closedRows: number;
}

function* decisions(recurrence: Recurrence, fromMs: number, { lastMs, closedRows }: Decide): Generator<Occurrence> {
  let closed = 0;
  let lookMs: number | undefined = lookFrom(recurrence, fromMs);
  while (lookMs !== undefined && closed <= CLOSED_MAX) {
    const leap: Leap | undefined = yield* untilClosed(recurrence, lookMs, { lastMs, closedRows });
    closed = leap?.fired ? 0 : closed + 1;
    lookMs = leap?.toMs;
  }
}

interface Leap {
  readonly toMs: number;
  /** Whether any fired before it. */
  readonly fired: boolean;
}

/** @returns over what to leap, undefined at the end */
function* untilClosed(
  recurrence: Recurrence,
  lookMs: number,
  { lastMs, closedRows }: Decide,
): Generator<Occurrence, Leap | undefined, undefined> {
  let fired = false;
  let rows = 0;
  for (const named of namedAfter(recurrence, lookMs)) {
    if (named.atMs > lastMs) return undefined;
    const decided = workingTime(recurrence, named);
    fired ||= decided.dropped === undefined;
    rows = decided.calendar === undefined ? 0 : rows + 1;
    if (rows < closedRows) {
      yield decided;
      continue;
    }
    const toMs = closedUntil(recurrence, named.atMs);
    yield closedRows === 1 ? decided : { ...decided, leftOut: leftOut(recurrence, named, Math.min(toMs, lastMs)) };
    return { toMs, fired };
  }
  return undefined;
}

function leftOut(recurrence: Recurrence, { atMs, dst }: Occurrence, upToMs: number): number {
  // At the instant of a time that the clock shows there may be one that it left out.
  return namedIn(recurrence, { afterMs: atMs, upToMs, hiddenAfterMs: dst === undefined ? atMs - 1 : atMs });
}

/** All from this time without work to the returned moment has none either. A clock change may open what was over. */
function closedUntil({ calendar, zone }: Recurrence, atMs: number): number {
  const { offsetMs, toMs } = zone.stretchAt(atMs);
  const opensMs = calendar?.opens(atMs + offsetMs) ?? atMs + offsetMs + (SEARCH_DAYS - 1) * DAY_MS;
  return Math.min(opensMs - offsetMs, toMs) - 1;
}

/**
 * The first instant that fires after one.
 *
 * @param untilMs nothing that is named later is looked at
 * @returns undefined when none ever will
 */
export function* nextFire(recurrence: Recurrence, afterMs: number, untilMs?: number): Steps<number | undefined> {
  for (const { atMs, dropped } of occurrences(recurrence, afterMs, { untilMs })) {
    if (dropped === undefined) return atMs;
    yield;
  }
  return undefined;
}

interface Named {
  readonly afterMs: number;
  /** Of the same stretch. */
  readonly upToMs: number;
  /** Of times that the clock left out; default `afterMs`. */
  readonly hiddenAfterMs?: number;
}

/** What the rule names after a moment and up to another, whatever becomes of it. */
function namedIn({ rule, zone }: Recurrence, { afterMs, upToMs, hiddenAfterMs = afterMs }: Named): number {
  if (upToMs <= afterMs) return 0;
  if ('everyMs' in rule) {
    const upTo = (ms: number) => Math.max(-1, Math.floor((ms - rule.anchorMs) / rule.everyMs));
    return upTo(upToMs) - upTo(afterMs);
  }
  const { cron } = rule;
  const { fromMs, offsetMs, beforeMs } = zone.stretchAt(upToMs);
  const shown = cron.count(afterMs + offsetMs, upToMs + offsetMs);
  const hiddenUpToMs = Math.min(upToMs, fromMs + offsetMs - beforeMs - 1);
  const fromHiddenMs = Math.max(hiddenAfterMs, fromMs - 1);
  if (cron.interval || hiddenUpToMs <= fromHiddenMs) return shown;
  return shown + cron.count(fromHiddenMs + beforeMs, hiddenUpToMs + beforeMs);
}

/** A time that was moved to now may have been named long ago: it is found by looking from the last working moment. */
function lookFrom({ calendar, zone }: Recurrence, afterMs: number): number {
  if (calendar?.outside !== 'next') return afterMs;
  let atMs = afterMs;
  for (let stretches = 0; stretches < STRETCHES_MAX; stretches += 1) {
    const { fromMs, offsetMs } = zone.stretchAt(atMs);
    const sinceMs = calendar.closedSince(atMs + offsetMs) - offsetMs;
    if (sinceMs >= fromMs) return sinceMs - 1;
    atMs = fromMs - 1;
  }
  return atMs;
}

function workingTime({ calendar, zone }: Recurrence, named: Occurrence): Occurrence {
  if (!calendar || named.dropped) return named;
  const closed = calendar.closed(named.atMs + zone.offsetMs(named.atMs));
  if (!closed) return named;
  const atMs = calendar.outside === 'next' ? opensAt(calendar, zone, named.atMs) : undefined;
  if (atMs === undefined) return { ...named, calendar: closed, dropped: closed };
  return { ...named, atMs, calendar: 'moved' };
}

/** The next working moment. One offset after the other, because a clock change can leave an opening out, or bring one. */
function opensAt(calendar: Calendar, zone: Zone, closedMs: number): number | undefined {
  let atMs = closedMs;
  for (let stretches = 0; stretches < STRETCHES_MAX; stretches += 1) {
    const { offsetMs, toMs } = zone.stretchAt(atMs);
    const opensMs = calendar.opens(atMs + offsetMs);
    if (opensMs === undefined) return undefined;
    if (opensMs - offsetMs < toMs) return opensMs - offsetMs;
    atMs = toMs;
  }
  return undefined;
}

function namedAfter(recurrence: Recurrence, afterMs: number): Iterable<Occurrence> {
  const { rule, zone } = recurrence;
  return 'cron' in rule ? cronTimes(rule.cron, recurrence, afterMs) : everyTimes({ ...rule, zone, afterMs });
}

interface Every {
  readonly everyMs: number;
  readonly anchorMs: number;
  readonly zone: Zone;
  readonly afterMs: number;
}

function* everyTimes({ everyMs, anchorMs, zone, afterMs }: Every): Generator<Occurrence> {
  let count = Math.max(0, Math.floor((afterMs - anchorMs) / everyMs) + 1);
  for (; ; count += 1) {
    const atMs = anchorMs + count * everyMs;
    yield { atMs, wallMs: atMs + zone.offsetMs(atMs) };
  }
}

function* cronTimes(cron: Cron, { zone, dst }: Recurrence, afterMs: number): Generator<Occurrence> {
  const endMs = afterMs + SEARCH_MS;
  let fromMs = afterMs + 1;
  while (fromMs < endMs) {
    const stretch = zone.stretchAt(fromMs);
    const shown = shownTimes(cron, stretch, { dst, fromMs });
    if (cron.interval) yield* shown;
    else yield* merged(shown, hiddenTimes(cron, stretch, { dst, fromMs }));
    fromMs = stretch.toMs;
  }
}

interface Part {
  readonly dst: DstPolicy;
  readonly fromMs: number;
}

/** Times that a clock shows within a stretch. */
function* shownTimes(cron: Cron, stretch: Stretch, { dst, fromMs }: Part): Generator<Occurrence> {
  const { offsetMs, toMs } = stretch;
  let wallMs = cron.next(fromMs + offsetMs - 1);
  while (wallMs !== undefined && wallMs - offsetMs < toMs) {
    const atMs = wallMs - offsetMs;
    const coming = comingOf(stretch, atMs);
    const unwanted = coming !== undefined && !cron.interval && dst.overlap !== 'both' && dst.overlap !== coming;
    yield { atMs, wallMs, dst: coming, dropped: unwanted ? 'overlap' : undefined };
    wallMs = cron.next(wallMs);
  }
}

/** Whether the clock shows a time twice, and which of the two this is. */
function comingOf(
  { fromMs, toMs, offsetMs, beforeMs, afterMs }: Stretch,
  atMs: number,
): 'first' | 'second' | undefined {
  if (atMs - fromMs < beforeMs - offsetMs) return 'second';
  return toMs - atMs <= offsetMs - afterMs ? 'first' : undefined;
}

/** Times that the clock left out at the beginning of a stretch, which count from where it left them. */
function* hiddenTimes(cron: Cron, stretch: Stretch, { dst, fromMs }: Part): Generator<Occurrence> {
  const { beforeMs, offsetMs } = stretch;
  const shifts = dst.gap === 'shift';
  let wallMs = offsetMs > beforeMs ? cron.next(Math.max(fromMs, stretch.fromMs) + beforeMs - 1) : undefined;
  while (wallMs !== undefined && wallMs < stretch.fromMs + offsetMs) {
    yield { atMs: wallMs - beforeMs, wallMs, dst: shifts ? 'shifted' : 'gap', dropped: shifts ? undefined : 'gap' };
    wallMs = cron.next(wallMs);
  }
}

/** Both in the order of time; where two meet, the one that the clock shows comes first. A gap of a day hides 86,400. */
function* merged(shown: Generator<Occurrence>, hidden: Generator<Occurrence>): Generator<Occurrence> {
  let [one, other] = [shown.next(), hidden.next()];
  while (!one.done || !other.done) {
    if (other.done || (!one.done && one.value.atMs <= other.value.atMs)) {
      if (!one.done) yield one.value;
      one = shown.next();
    } else {
      yield other.value;
      other = hidden.next();
    }
  }
}

// The next instant of a recurrence, remembered. Thousands of schedules share a rule, and all of them ask for the same
// instants in the same minute. What is remembered is a stretch of time and the instant that ends it: whoever asks from
// within gets that answer. Two of them are enough: the instant that is fired, and the one after it.

/** From each moment at or after `fromMs`, and before `toMs`, the next instant is `toMs`. */
interface KnownStretch {
  fromMs: number;
  readonly toMs: number;
}

const remembered = new WeakMap<Recurrence, KnownStretch[]>();
const KNOWN_MAX = 2;

/** As `nextFire`. Only for a recurrence that does not change. */
export function* nextFireOf(recurrence: Recurrence, afterMs: number): Steps<number | undefined> {
  for (const { fromMs, toMs } of remembered.get(recurrence) ?? []) {
    if (afterMs >= fromMs && afterMs < toMs) return toMs;
  }
  const toMs = yield* nextFire(recurrence, afterMs);
  // That there is none is true from here only: the search ends after some years.
  if (toMs === undefined) return undefined;
  const stretches = remembered.get(recurrence) ?? [];
  const same = stretches.find((stretch) => stretch.toMs === toMs);
  if (same) same.fromMs = Math.min(same.fromMs, afterMs);
  else remembered.set(recurrence, [...stretches, { fromMs: afterMs, toMs }].slice(-KNOWN_MAX));
  return toMs;
}

// How many instants fire in a stretch of time, without walking through them: in a year of seconds there are 31 million.
// Where the clock does not change and the calendar is open, all that the rule names fires, and is counted by
// arithmetic. Around clock changes, and where a working time begins, instants are found one by one. So the work follows
// from the days and the working times of the stretch of time. Pure.

/**
 * @returns how many fire after a moment and up to another
 * @example atOnce(countFires(recurrence, midnightMs, nowMs))
 */
export function* countFires(recurrence: Recurrence, afterMs: number, upToMs: number): Steps<number> {
  const { startMs = Number.NEGATIVE_INFINITY, endMs = Number.POSITIVE_INFINITY } = recurrence;
  const lastMs = Math.min(upToMs, endMs - 1);
  let atMs = Math.max(afterMs, startMs - 1);
  let count = 0;
  while (atMs < lastMs) {
    yield;
    const plainMs = Math.min(plainUpTo(recurrence, atMs), lastMs);
    if (plainMs > atMs) {
      count += namedIn(recurrence, { afterMs: atMs, upToMs: plainMs });
      atMs = plainMs;
      continue;
    }
    const nextMs = yield* nextFire(recurrence, atMs, lastMs);
    if (nextMs === undefined || nextMs > lastMs) break;
    count += 1;
    atMs = nextMs;
  }
  return count;
}

/** Up to here all that is named after a moment fires, each at an instant of its own; the moment itself when none does. */
function plainUpTo({ rule, zone, calendar }: Recurrence, atMs: number): number {
  const { fromMs, toMs, offsetMs, beforeMs, afterMs } = zone.stretchAt(atMs + 1);
  // An interval and a rule of every hour fire whenever the clock shows their times.
  const changes = 'cron' in rule && !rule.cron.interval;
  if (changes && atMs + 1 - fromMs < Math.abs(offsetMs - beforeMs)) return atMs;
  const shownMs = changes ? toMs - Math.max(0, offsetMs - afterMs) : toMs;
  if (!calendar) return shownMs - 1;
  // At the first moment of a working time there may be what was moved there.
  if (calendar.closed(atMs + zone.offsetMs(atMs)) || calendar.closed(atMs + 1 + offsetMs)) return atMs;
  return Math.min(shownMs, calendar.closes(atMs + 1 + offsetMs) - offsetMs) - 1;
}
