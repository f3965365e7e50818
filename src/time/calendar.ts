/**
 * Working time: on which dates and at which hours a schedule may fire. All of it is wall-clock time of the schedule's
 * zone, as ms of a clock without a zone; nothing here knows of offsets. Hours begin with their first minute and end
 * before their last: 17:00 is not within 09:00-17:00.
 */
import { show } from '../kernel/duration.ts';
import { DuestreamError } from '../kernel/errors.ts';

export interface CalendarInput {
  /** Dates without work: `2026-12-25`, `12-25` for every year, or a range `2026-12-24/2027-01-01`, ends included. */
  readonly skip?: readonly string[];
  /** Day or days (`mon`, `mon-fri`, `sat,sun`) → hours (`09:00-17:00`, or several). Other days have none. */
  readonly hours?: Readonly<Record<string, string | readonly string[]>>;
  /** What becomes of a time outside: it is dropped (`skip`, default), or moved to the `next` working moment. */
  readonly outside?: 'skip' | 'next';
}

export interface Calendar {
  readonly outside: 'skip' | 'next';
  /** Why this is no working time; undefined when it is. */
  readonly closed: (wallMs: number) => 'skip-date' | 'outside-hours' | undefined;
  /** The first working moment at or after it; undefined when none comes within `SEARCH_DAYS`. */
  readonly opens: (wallMs: number) => number | undefined;
  /** When the working time of an open moment ends. */
  readonly closes: (wallMs: number) => number;
  /** When the last working time before it ended; the moment itself while it is open. */
  readonly closedSince: (wallMs: number) => number;
}

type Span = readonly [from: number, to: number];

const DAY_MS = 86_400_000;
const DAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];
/** Longer than any closed time that a calendar of yearly dates can have. */
export const SEARCH_DAYS = 800;
const DATES_MAX = 1000;
/** Dates that are kept as looked up: more than one search needs. */
const KNOWN_MAX = 1000;

/** @throws DuestreamError `bad-input` that names the entry and what is allowed */
export function parseCalendar(input: CalendarInput): Calendar {
  const outside = input.outside ?? 'skip';
  if (outside !== 'skip' && outside !== 'next') throw bad('outside', outside, 'skip, next');
  const skips = skipsOf(input.skip ?? []);
  const week = weekOf(input.hours);
  const known = new Map<number, boolean>();
  const isSkipped = (dayMs: number) => known.get(dayMs) ?? learn(dayMs);
  const spansOf = (dayMs: number) => (isSkipped(dayMs) ? [] : (week[new Date(dayMs).getUTCDay()] ?? []));

  function learn(dayMs: number): boolean {
    const date = dateOf(dayMs);
    const skipped = skips.some((skip) => skip(date));
    if (known.size >= KNOWN_MAX) known.clear();
    known.set(dayMs, skipped);
    return skipped;
  }

  function closed(wallMs: number) {
    const dayMs = dayOf(wallMs);
    if (isSkipped(dayMs)) return 'skip-date' as const;
    const open = spansOf(dayMs).some(([from, to]) => wallMs - dayMs >= from && wallMs - dayMs < to);
    return open ? undefined : ('outside-hours' as const);
  }

  function opens(wallMs: number): number | undefined {
    if (!closed(wallMs)) return wallMs;
    for (let day = 0; day < SEARCH_DAYS; day += 1) {
      const dayMs = dayOf(wallMs) + day * DAY_MS;
      const span = spansOf(dayMs).find(([from]) => dayMs + from >= wallMs);
      if (span) return dayMs + span[0];
    }
    return undefined;
  }

  function closes(wallMs: number): number {
    const dayMs = dayOf(wallMs);
    const [, to] = spansOf(dayMs).findLast(([from]) => dayMs + from <= wallMs) ?? [0, 0];
    return Math.max(wallMs, dayMs + to);
  }

  function closedSince(wallMs: number): number {
    if (!closed(wallMs)) return wallMs;
    for (let day = 0; day < SEARCH_DAYS; day += 1) {
      const dayMs = dayOf(wallMs) - day * DAY_MS;
      const span = spansOf(dayMs).findLast(([, to]) => dayMs + to <= wallMs);
      if (span) return dayMs + span[1];
    }
    return wallMs - SEARCH_DAYS * DAY_MS;
  }

  if (opens(Date.UTC(2026, 0)) === undefined) throw bad('calendar', input, 'one that leaves some working time');
  return Object.freeze({ outside, closed, opens, closes, closedSince });
}

/** @returns a test per entry: is this date (`2026-12-25`) one of its own? */
function skipsOf(entries: readonly string[]): readonly ((date: string) => boolean)[] {
  if (!Array.isArray(entries)) throw bad('skip', entries, 'a list of dates');
  if (entries.length > DATES_MAX) throw bad('skip', entries, `at most ${DATES_MAX} entries`);
  return entries.map((entry) => {
    const [from = '', to = from, more] = String(entry).split('/');
    const yearly = /^\d\d-\d\d$/.test(from) && to === from;
    const dates = [from, to].every((date) => isDate(yearly ? `2024-${date}` : date));
    if (!dates || more !== undefined || to < from) {
      throw bad('skip', entry, '"2026-12-25", "12-25" for every year, or "2026-12-24/2027-01-01"');
    }
    return (date) => (yearly ? date.slice(5) === from : date >= from && date <= to);
  });
}

function weekOf(hours: CalendarInput['hours']): readonly (readonly Span[])[] {
  if (hours === undefined) return DAYS.map(() => [[0, DAY_MS]]);
  if (typeof hours !== 'object' || hours === null) throw bad('hours', hours, 'days with their hours');
  const week: Span[][] = DAYS.map(() => []);
  for (const [days, given] of Object.entries(hours)) {
    const spans = [given].flat().map(spanOf);
    for (const day of daysOf(days)) week[day]?.push(...spans);
  }
  for (const [day, spans] of week.entries()) {
    spans.sort((a, b) => a[0] - b[0]);
    const at = spans.findIndex(([from], place) => from < (spans[place - 1]?.[1] ?? 0));
    const [one, other] = [spans[at - 1], spans[at]];
    if (one && other) {
      throw bad('hours', `${DAYS[day]} ${spanText(one)} and ${spanText(other)}`, 'hours of a day that do not overlap');
    }
  }
  return week;
}

/** `mon-fri` → [1, 2, 3, 4, 5]; a range may pass the end of the week. */
function daysOf(text: string): readonly number[] {
  return text
    .toLowerCase()
    .split(',')
    .flatMap((part) => {
      const [first = '', last = first, more] = part.trim().split('-');
      const [from, to] = [DAYS.indexOf(first), DAYS.indexOf(last)];
      if (from < 0 || to < 0 || more !== undefined) throw bad('hours', text, '"mon", "mon-fri" or "sat,sun"');
      return Array.from({ length: ((to - from + 7) % 7) + 1 }, (_, at) => (from + at) % 7);
    });
}

function spanOf(text: unknown): Span {
  const [, ...parts] = /^(\d\d):(\d\d)-(\d\d):(\d\d)$/.exec(String(text)) ?? [];
  const [h1 = 99, m1 = 0, h2 = 0, m2 = 0] = parts.map(Number);
  const [from, to] = [h1 * 60 + m1, h2 * 60 + m2];
  if (from < to && to <= 1440 && m1 < 60 && m2 < 60) return [from * 60_000, to * 60_000];
  throw bad('hours', text, '"09:00-17:00", up to "24:00"');
}

const spanText = (span: Span): string =>
  span
    .map((ms) =>
      [ms / 3_600_000, (ms / 60_000) % 60].map((part) => String(Math.floor(part)).padStart(2, '0')).join(':'),
    )
    .join('-');

const dayOf = (wallMs: number) => Math.floor(wallMs / DAY_MS) * DAY_MS;
const dateOf = (dayMs: number) => new Date(dayMs).toISOString().slice(0, 10);

function isDate(text: string): boolean {
  const atMs = Date.parse(`${text}T00:00:00Z`);
  return /^\d{4}-\d\d-\d\d$/.test(text) && Number.isFinite(atMs) && dateOf(atMs) === text;
}

function bad(what: string, given: unknown, allowed: string): DuestreamError {
  return new DuestreamError('bad-input', `${what} is ${show(given)}; allowed: ${allowed}`);
}
