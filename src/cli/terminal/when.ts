/** Moments as people read them: `2026-03-01T10:00:00.000Z (in 3 s)`. */
import { span } from '../../kernel/humanize.ts';

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
