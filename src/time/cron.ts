/**
 * A cron expression → the wall-clock times it names, without a zone. The grammar and the calendar are cron-parser's,
 * read without a zone, so that no clock change can touch them; what clock changes mean is decided in `recurrence.ts`. What
 * cron-parser takes silently and people do not mean is refused here: a field too few, a step over the end of its field,
 * a date that never comes.
 *
 *   second (optional)  0-59          minute  0-59           hour  0-23
 *   day of month       1-31, L       month   1-12, JAN-DEC  day of week  0-7, SUN-SAT, FRI#2 (second), 5L (last)
 *
 * Lists, ranges, steps, `?` for any, `H` for a number that follows from the seed, and @hourly … @yearly are allowed. When
 * both days are restricted, either is enough, as in every cron since 1975.
 */
import { type CronExpression, CronExpressionParser } from 'cron-parser';
import { show } from '../kernel/duration.ts';
import { DuestreamError } from '../kernel/errors.ts';
import { createWallTimes, type WallTimes } from './wall-times.ts';

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
  const expression = parse(text, plain, seed);
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
