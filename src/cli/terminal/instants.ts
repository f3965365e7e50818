/**
 * Instants on the command line. Of a range: `now`, `+30d` and `-2h` from now. Everywhere: what the library takes, judged
 * here by its form first, so that the refusal names the flag and the forms that a shell can write.
 */
import { durationMs, type InstantInput, show } from '../../kernel/duration.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import { span } from '../../kernel/humanize.ts';

const LOCAL = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?)?$/;
const ABSOLUTE = /^\d{4}-?\d\d-?\d\dT.*(Z|[+-]\d\d(:?\d\d)?)$/i;
const ISO = 'ISO 8601 such as 2026-03-01T10:00:00+01:00';

/**
 * A relative instant → a date; one that names its own time stays a text, for whoever knows the zone to read it.
 *
 * @throws DuestreamError `bad-input` with the nearest form
 * @example instantOf('+30d', '--until', Date.now())
 */
export function instantOf(text: string, flag: string, nowMs: number): InstantInput {
  if (text === 'now') return new Date(nowMs);
  const [, sign, duration = ''] = /^([+-])(.+)$/.exec(text) ?? [];
  const ms = durationOr(sign === undefined ? text : duration);
  if (sign !== undefined && ms !== undefined) return new Date(sign === '+' ? nowMs + ms : nowMs - ms);
  if (LOCAL.test(text) || ABSOLUTE.test(text)) return text;
  const hint = ms === undefined ? '' : ` did you mean +${text} (from now) or -${text} (ago)?`;
  throw refusal(flag, text, `;${hint} allowed: now, +3d, -2h, a date such as 2026-03-08, or ${ISO}`);
}

/**
 * An instant that does not depend on when the command runs, so that the same command twice is the same call.
 *
 * @param how `local`: a local time of a zone is allowed too · `instead`: the flag that takes durations
 * @throws DuestreamError `bad-input` with the nearest form
 */
export function absoluteOf(
  text: string | undefined,
  flag: string,
  how: { readonly local?: 'zone given' | 'name a zone' | undefined; readonly instead?: string },
): string | undefined {
  if (text === undefined || ABSOLUTE.test(text)) return text;
  if (LOCAL.test(text)) {
    if (how.local === 'zone given') return text;
    const advice = how.local === 'name a zone' ? 'name its --zone, or add' : 'add';
    throw refusal(flag, text, `, a local time; ${advice} Z or an offset such as +01:00`);
  }
  const duration = text.replace(/^\+/, '');
  const isDuration = how.instead !== undefined && durationOr(duration) !== undefined;
  const hint = isDuration ? ` did you mean ${how.instead} ${duration}?` : '';
  throw refusal(
    flag,
    text,
    `;${hint} allowed: ${ISO}${how.local === undefined ? '' : ', or a local time of the zone'}`,
  );
}

function durationOr(text: string): number | undefined {
  try {
    return durationMs(text, '');
  } catch {
    return undefined;
  }
}

const refusal = (flag: string, text: string, rest: string) =>
  new DuestreamError('bad-input', `${flag} is ${show(text)}${rest}`);

// Moments as people read them: `2026-03-01T10:00:00.000Z (in 3 s)`.

/** A moment seen from another: `in 3 s`, `2 min ago`, `now`. */
export function relative(ms: number, nowMs: number): string {
  const away = Math.round(ms - nowMs);
  if (away === 0) return 'now';
  return away > 0 ? `in ${span(away)}` : `${span(away)} ago`;
}

/** ISO 8601 in UTC. A number that no date can hold is shown as it is: a foreign producer may have put it there. */
export function iso(ms: number): string {
  return Math.abs(ms) <= 8.64e15 ? new Date(ms).toISOString() : String(ms);
}

/** To the second, for tables: `2026-03-01T10:00:00Z (in 3 s)` */
export function second(ms: number, nowMs: number): string {
  return `${iso(ms).replace(/\.\d{3}Z$/, 'Z')} (${relative(ms, nowMs)})`;
}

/** `2026-03-01T10:00:00.000Z (in 3 s)` */
export function moment(ms: number, nowMs: number): string {
  return `${iso(ms)} (${relative(ms, nowMs)})`;
}
