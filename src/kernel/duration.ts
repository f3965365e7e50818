/**
 * Durations and instants as people write them. A delay is milliseconds, `"5m"`, or an ISO 8601 duration without
 * calendar units (a month has no fixed length, so `P1M` as a delay is refused rather than guessed).
 */
import { Duration, DateTime as Luxon } from 'luxon';
import ms from 'ms';
import { DuestreamError } from './errors.ts';

/** Milliseconds, a short text such as `"90s"`, `"5m"`, `"1.5h"`, `"3d"`, `"2w"`, or ISO 8601 such as `"PT1H30M"`. */
export type DurationInput = number | string;

/** An instant: a `Date`, an ISO 8601 text **with an offset or Z**, or a luxon `DateTime`. */
export type InstantInput = Date | string | DateTime;

/** What is asked of a luxon `DateTime`. A type of our own, so that nobody who has no luxon needs its types. */
export interface DateTime {
  readonly isValid: boolean;
  readonly zoneName: string | null;
  toMillis(): number;
}

/** What is left when seconds become milliseconds: 1763719000.001 s are 1763719000001.0001 ms for a double. */
const NOISE_MS = 0.0005;

const OFFSET = /(?:Z|([+-])(\d\d)(?::?(\d\d))?)$/i;
/** From Baker Island, at -12:00, to the Line Islands, at +14:00. */
const [WEST_MINUTES_MAX, EAST_MINUTES_MAX] = [12 * 60, 14 * 60];

const SHORT = /^\d+(\.\d+)?\s*(ms|s|m|h|d|w)$/;

/**
 * Milliseconds of a duration.
 *
 * @throws DuestreamError `bad-input` naming `what`, the value given and the forms allowed.
 * @example durationMs('2m', 'delay') // 120000
 */
export function durationMs(input: DurationInput, what: string): number {
  const value = typeof input === 'number' ? input : typeof input === 'string' ? parse(input.trim()) : Number.NaN;
  if (Number.isFinite(value) && value >= 0) return Math.round(value);
  throw new DuestreamError(
    'bad-input',
    `${what} is ${show(input)}${unitHint(input)} allowed: a number of milliseconds >= 0, "500ms", "90s", "5m", "1h", "3d", "2w", or an ISO 8601 duration without years and months such as "PT1H30M"`,
  );
}

/**
 * Milliseconds by which something moves: a duration, and one with a minus is to earlier.
 *
 * @throws DuestreamError `bad-input`, also for none
 * @example shiftMs('-1h', 'shift') // -3600000
 */
export function shiftMs(input: DurationInput, what: string): number {
  const isEarlier = typeof input === 'number' ? input < 0 : /^\s*-/.test(String(input));
  const byMs = durationMs(isEarlier ? (typeof input === 'number' ? -input : input.replace(/^\s*-/, '')) : input, what);
  if (byMs !== 0) return isEarlier ? -byMs : byMs;
  throw new DuestreamError(
    'bad-input',
    `${what} is ${show(input)}; allowed: a duration such as "1d", or "-1h" for earlier`,
  );
}

/**
 * Epoch milliseconds of an instant, rounded up: a part of a millisecond too soon is too soon.
 *
 * @throws DuestreamError `bad-input` for an invalid date or a text without zone ("2026-03-01T10:00" means nothing here).
 * @example instantMs('2026-03-01T10:00:00+01:00', 'at')
 */
export function instantMs(input: InstantInput, what: string): number {
  const value = toMs(input);
  // The addition makes 0 of the -0 that rounding up may give.
  if (Number.isFinite(value)) return Math.ceil(value - NOISE_MS) + 0;
  throw new DuestreamError(
    'bad-input',
    `${what} is ${show(input)}${instantHint(input)} allowed: a valid Date, a luxon DateTime, or an ISO 8601 text with Z or an offset such as "2026-03-01T10:00:00+01:00"`,
  );
}

function instantHint(given: unknown): string {
  if (typeof given === 'number' && given >= 1e9) return `; did you mean new Date(${dateOf(given)})?`;
  const offset = typeof given === 'string' && OFFSET.exec(given);
  if (offset && !isOffset(offset)) return `; no clock has the offset ${offset[0]}, clocks have -12:00 to +14:00;`;
  return ';';
}

/** What makes a date of a number: milliseconds, or seconds where they would be of the year 1973 or before. */
const dateOf = (epoch: number): string => (epoch < 1e11 ? `${epoch} * 1000` : String(epoch));

/** A duration as people write it, in the largest unit that fits: 15000 → `15s`, 90000 → `90s`. @example durationText(60_000) // '1m' */
export function durationText(ms: number): string {
  const [size, unit] = UNITS.find(([size]) => ms % size === 0) ?? [1, 'ms'];
  return ms === 0 ? '0' : `${ms / size}${unit}`;
}

const UNITS = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'm'],
  [1000, 's'],
] as const;

/** 1 for a time with a part of a millisecond: Date and luxon read three digits and drop the rest, which is too soon. */
export function beyondMs(iso: string): 0 | 1 {
  return /[.,]\d{3}\d*[1-9]/.test(iso) ? 1 : 0;
}

/** A number in a text has no unit: seconds are what people mean who leave it out. */
const unitHint = (input: DurationInput) =>
  typeof input === 'string' && /^\d+(\.\d+)?$/.test(input.trim())
    ? `, without a unit; did you mean ${input.trim()}s?`
    : ';';

/** A value for an error message: short, quoted, one line. */
export function show(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.length > 80 ? `${value.slice(0, 79)}…` : value);
  if (typeof value === 'number' || value === null || value === undefined) return String(value);
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'an invalid Date' : value.toISOString();
  return Array.isArray(value) ? 'an array' : `a value of type ${typeof value}`;
}

function parse(text: string): number {
  if (SHORT.test(text)) return ms(text as ms.StringValue);
  if (!/^P.*\d/.test(text)) return Number.NaN;
  const duration = Duration.fromISO(text);
  if (!duration.isValid || duration.years !== 0 || duration.months !== 0 || duration.quarters !== 0) return Number.NaN;
  return duration.toMillis();
}

function toMs(input: InstantInput): number {
  if (input instanceof Date) return input.getTime();
  if (Luxon.isDateTime(input)) return input.toMillis();
  const offset = typeof input === 'string' && OFFSET.exec(input);
  if (!offset || !input.includes('T') || !isOffset(offset)) return Number.NaN;
  return Luxon.fromISO(input, { setZone: true }).toMillis() + beyondMs(input);
}

/** Luxon counts with any offset: +99:99 would make a job due four days too soon. */
function isOffset([, sign, hours = '0', minutes = '0']: RegExpExecArray): boolean {
  const apart = Number(hours) * 60 + Number(minutes);
  return Number(minutes) < 60 && apart <= (sign === '-' ? WEST_MINUTES_MAX : EAST_MINUTES_MAX);
}
