/**
 * A cron expression → the wall-clock times that it names, without a zone. cron-parser reads the expression without a zone,
 * so that no clock change can touch its times; `recurrence.ts` decides what clock changes mean. This file refuses what
 * cron-parser takes silently and people do not mean: a field too few, a step over the end of its field, a date that never
 * comes. This file also steps through the times, because a step of cron-parser takes a tenth of a millisecond, and a
 * midnight with 100,000 schedules takes three steps for each. The tests compare both.
 *
 *   second (optional)  0-59          minute  0-59           hour  0-23
 *   day of month       1-31, L       month   1-12, JAN-DEC  day of week  0-7, SUN-SAT, FRI#2 (second), 5L (last)
 *
 * A range may pass the end of its field: MON-SUN, 22-2, NOV-FEB. Lists, ranges, steps, `?` for any, `H` for a number that follows from the seed, and @hourly … @yearly are allowed. When
 * both days are restricted, either is enough, as in every cron since 1975.
 */
import { type CronExpression, CronExpressionParser, type CronFieldCollection } from 'cron-parser';
import { show } from '../kernel/duration.ts';
import { DuestreamError } from '../kernel/errors.ts';

/** Its wall-clock times, and what it says. */
export interface Cron extends WallTimes {
  readonly text: string;
  /** It runs whenever the clock shows its minutes: its hours are all, or every n-th. */
  readonly interval: boolean;
}

/** Longest expression in characters. */
export const CRON_LENGTH_MAX = 256;

const FIELDS = ['second', 'minute', 'hour', 'day of month', 'month', 'day of week'] as const;
const SIZES = [60, 60, 24, 31, 12, 7];
const ALIASES: Readonly<Record<string, string>> = {
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
  '@monthly': '0 0 1 * *',
  '@weekly': '0 0 * * 0',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@hourly': '0 * * * *',
};

/**
 * @param seed what `H` follows from: the name of the schedule
 * @throws DuestreamError `bad-input` that names the field and what is allowed
 * @example parseCron('30 2 * * MON-FRI', 'nightly').next(Date.UTC(2026, 0, 1))
 */
export function parseCron(input: unknown, seed: string): Cron {
  // Many schedules have the same expression, and each is read more than once.
  const key = typeof input === 'string' ? `${input.includes('H') ? seed : ''} ${input}` : '';
  const known = parsed.get(key);
  if (known) return known;
  const cron = read(input, seed);
  if (parsed.size >= PARSED_MAX) parsed.clear();
  parsed.set(key, cron);
  return cron;
}

const parsed = new Map<string, Cron>();
const PARSED_MAX = 10_000;

function read(input: unknown, seed: string): Cron {
  if (typeof input !== 'string') throw bad(input, 'a text of 5 fields: minute hour day-of-month month day-of-week');
  const text = input.trim().replace(/\s+/g, ' ');
  if (text.length > CRON_LENGTH_MAX) throw bad(input, `at most ${CRON_LENGTH_MAX} characters, not ${text.length}`);
  const plain = text.startsWith('@') ? aliased(text) : text;
  const fields = checkFields(plain);
  const expression = parse(text, fields.map(unwrapped).join(' '), seed);
  const hours = expression.fields.hour.values.length;
  const cron = {
    text,
    // A step that leaves one hour (`*/24`) names it.
    interval: hours > 1 && (hours === 24 || /^([*?]|H\/)/.test(fields[2] ?? '')),
    ...createWallTimes(expression.fields),
  };
  if (cron.next(Date.UTC(2096, 1, 29)) === undefined) throw bad(text, 'a date that exists; this one never comes');
  return cron;
}

function aliased(text: string): string {
  const plain = ALIASES[text.toLowerCase()];
  if (plain !== undefined) return plain;
  const hint = /^@every\b/.test(text) ? '; for a fixed interval use every instead of cron' : '';
  throw bad(text, `${Object.keys(ALIASES).join(', ')}${hint}`);
}

/** Six fields, the seconds first. @throws DuestreamError `bad-input` */
function checkFields(plain: string): readonly string[] {
  const given = plain.split(' ');
  if (given.length === 7)
    throw bad(plain, '5 or 6 fields; a year is not one of them: give the schedule a start and an end');
  if (given.length !== 5 && given.length !== 6) {
    throw bad(
      plain,
      `5 fields (minute hour day-of-month month day-of-week), or 6 with the second first, not ${given.length}`,
    );
  }
  const fields = given.length === 5 ? ['0', ...given] : given;
  for (const [at, field] of fields.entries()) checkField(plain, at, field);
  return fields;
}

const FIRSTS = [0, 0, 0, 1, 1, 0];
const NAMES: Readonly<Record<number, string>> = {
  4: 'jan feb mar apr may jun jul aug sep oct nov dec',
  5: 'sun mon tue wed thu fri sat',
};

/** Ranges that pass the end of their field as the list of their values: cron-parser knows none of these. */
function unwrapped(field: string, at: number): string {
  const [first = 0, size = 60] = [FIRSTS[at], SIZES[at]];
  const numberOf = (text: string) => {
    const name = (NAMES[at] ?? '').split(' ').indexOf(text.toLowerCase());
    if (name >= 0 && text !== '') return name + first;
    return /^\d+$/.test(text) ? Number(text) : Number.NaN;
  };
  const parts = field.split(',').map((part) => {
    const [, from = '', to = '', step = '1'] = /^(\w+)-(\w+)(?:\/(\d+))?$/.exec(part) ?? [];
    const [low, high] = [numberOf(from), numberOf(to)];
    const isWithin = [low, high].every((value) => value >= first && value < first + size + (at === 5 ? 1 : 0));
    if (!isWithin || low <= high) return part;
    const count = Math.floor((high + size - low) / Number(step)) + 1;
    return Array.from({ length: count }, (_, nth) => ((low - first + nth * Number(step)) % size) + first).join(',');
  });
  return parts.join(',');
}

function checkField(plain: string, at: number, field: string): void {
  const name = FIELDS[at] ?? 'field';
  if (at === 3 && /W/i.test(field)) {
    throw bad(
      plain,
      'a day of month without W; for "the nearest working day" give the schedule a calendar of working hours and `outside: next`',
    );
  }
  if (!/^[\dA-Za-z*?/,#()-]+$/.test(field)) throw bad(plain, `only letters, digits and * ? / , - # ( ) in the ${name}`);
  for (const [, step = ''] of field.matchAll(/\/(\d+)/g)) {
    const size = SIZES[at] ?? 60;
    if (Number(step) < 1 || Number(step) >= size + 1) throw bad(plain, `a step of 1 to ${size} in the ${name}`);
  }
}

function parse(text: string, plain: string, seed: string): CronExpression {
  try {
    return CronExpressionParser.parse(plain, { tz: 'UTC', hashSeed: seed });
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    if (/explicit day of month/.test(why)) throw bad(text, 'a date that exists; this one never comes');
    throw bad(
      text,
      `what each field takes (${why.replace(/^(Constraint|Validation) error,? */, '').replace(/[.:]$/, '')})`,
    );
  }
}

function bad(given: unknown, allowed: string): DuestreamError {
  return new DuestreamError('bad-input', `cron is ${show(given)}; allowed: ${allowed}`);
}

const DAY_MS = 86_400_000;
/** No date is further away: from 2072 to 2112 no leap day is a fifth Monday of February. */
const HORIZON_DAYS = 41 * 366;

/** All of it as ms of a clock without a zone. */
export interface WallTimes {
  /** The first time after this one; undefined: none ever. */
  readonly next: (wallMs: number) => number | undefined;
  /** How many times there are after one moment and up to another. It looks at each day between them, at no time. */
  readonly count: (afterMs: number, upToMs: number) => number;
}

/** @example createWallTimes(CronExpressionParser.parse('30 2 * * *').fields).next(Date.UTC(2026, 0, 1)) */
export function createWallTimes(fields: CronFieldCollection): WallTimes {
  const times = {
    hours: numbers(fields.hour.values),
    minutes: numbers(fields.minute.values),
    seconds: numbers(fields.second.values),
  };
  const isDay = dayTest(fields);
  const months = new Set(numbers(fields.month.values));

  function next(wallMs: number): number | undefined {
    const fromMs = (Math.floor(wallMs / 1000) + 1) * 1000;
    let dayMs = Math.floor(fromMs / DAY_MS) * DAY_MS;
    const endMs = dayMs + HORIZON_DAYS * DAY_MS;
    for (let leastMs = fromMs - dayMs; dayMs <= endMs; leastMs = 0) {
      const day = new Date(dayMs);
      if (!months.has(day.getUTCMonth() + 1)) {
        dayMs = Date.UTC(day.getUTCFullYear(), day.getUTCMonth() + 1);
        continue;
      }
      const timeMs = isDay(day) ? timeFrom(times, leastMs) : undefined;
      if (timeMs !== undefined) return dayMs + timeMs;
      dayMs += DAY_MS;
    }
    return undefined;
  }

  function count(afterMs: number, upToMs: number): number {
    let sum = 0;
    for (let dayMs = Math.floor(afterMs / DAY_MS) * DAY_MS; dayMs <= upToMs; dayMs += DAY_MS) {
      const day = new Date(dayMs);
      if (!months.has(day.getUTCMonth() + 1) || !isDay(day)) continue;
      sum += timesUpTo(times, upToMs - dayMs) - timesUpTo(times, afterMs - dayMs);
    }
    return sum;
  }

  return { next, count };
}

interface Times {
  readonly hours: readonly number[];
  readonly minutes: readonly number[];
  readonly seconds: readonly number[];
}

/** The first time of a day at or after `leastMs`. */
function timeFrom({ hours, minutes, seconds }: Times, leastMs: number): number | undefined {
  const least = Math.ceil(leastMs / 1000);
  const [hour, minute, second] = [Math.floor(least / 3600), Math.floor(least / 60) % 60, least % 60];
  const found = laterIn(hours, hour, () => laterIn(minutes, minute, () => laterIn(seconds, second, () => [])));
  if (!found) return undefined;
  const [h = 0, m = minutes[0] ?? 0, s = seconds[0] ?? 0] = found;
  return (h * 3600 + m * 60 + s) * 1000;
}

/** How many times a day has up to one of its moments, which may lie before it or after it. */
function timesUpTo({ hours, minutes, seconds }: Times, upToMs: number): number {
  const all = hours.length * minutes.length * seconds.length;
  if (upToMs < 0 || upToMs >= DAY_MS) return upToMs < 0 ? 0 : all;
  const second = Math.floor(upToMs / 1000);
  const [ofHour, ofMinute] = [Math.floor(second / 3600), Math.floor(second / 60) % 60];
  const before = (values: readonly number[], value: number) => values.filter((one) => one < value).length;
  const ofSeconds = minutes.includes(ofMinute) ? before(seconds, (second % 60) + 1) : 0;
  const ofMinutes = hours.includes(ofHour) ? before(minutes, ofMinute) * seconds.length + ofSeconds : 0;
  return before(hours, ofHour) * minutes.length * seconds.length + ofMinutes;
}

type Later = () => readonly number[] | undefined;

/** `least` itself with what follows it, or else the first value above it, alone; undefined when there is none. */
function laterIn(values: readonly number[], least: number, within: Later): readonly number[] | undefined {
  const rest = values.includes(least) ? within() : undefined;
  if (rest) return [least, ...rest];
  const above = values.find((value) => value > least);
  return above === undefined ? undefined : [above];
}

/** When both days are restricted, either is enough. */
function dayTest({ dayOfMonth, dayOfWeek }: CronFieldCollection): (day: Date) => boolean {
  const dates = new Set(numbers(dayOfMonth.values));
  const lastDate = texts(dayOfMonth.values).includes('L');
  const weekdays = new Set(numbers(dayOfWeek.values).map((day) => day % 7));
  const lastWeekdays = new Set(texts(dayOfWeek.values).map((text) => Number.parseInt(text, 10) % 7));
  const nth = dayOfWeek.nthDay;
  const anyDate = dayOfMonth.isWildcard;
  const anyWeekday = dayOfWeek.isWildcard;

  const isDate = (date: number, lastOfMonth: number) => dates.has(date) || (lastDate && date === lastOfMonth);
  const isWeekday = (weekday: number, date: number, lastOfMonth: number) =>
    (weekdays.has(weekday) && (nth === 0 || Math.ceil(date / 7) === nth)) ||
    (lastWeekdays.has(weekday) && date + 7 > lastOfMonth);

  return (day) => {
    const date = day.getUTCDate();
    const lastOfMonth = new Date(Date.UTC(day.getUTCFullYear(), day.getUTCMonth() + 1, 0)).getUTCDate();
    if (anyWeekday) return anyDate || isDate(date, lastOfMonth);
    if (anyDate) return isWeekday(day.getUTCDay(), date, lastOfMonth);
    return isDate(date, lastOfMonth) || isWeekday(day.getUTCDay(), date, lastOfMonth);
  };
}

const numbers = (values: readonly unknown[]) => values.filter((value) => typeof value === 'number');
const texts = (values: readonly unknown[]) => values.filter((value) => typeof value === 'string');
