/** Moments and spans as people read them: `2026-03-01T10:00:00.000Z (in 3 s)`. */

const STEPS = [
  { unit: 'd', ms: 86_400_000, from: 36 * 3_600_000 },
  { unit: 'h', ms: 3_600_000, from: 90 * 60_000 },
  { unit: 'min', ms: 60_000, from: 90_000 },
  { unit: 's', ms: 1000, from: 995 },
] as const;

/** A span in one unit, never more exact than a person needs. @example span(5_400_000) // '2 h' */
export function span(ms: number): string {
  const length = Math.abs(ms);
  const step = STEPS.find(({ from }) => length >= from);
  return step === undefined ? `${Math.round(length)} ms` : `${Math.round(length / step.ms)} ${step.unit}`;
}

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

/** `2026-03-01T10:00:00.000Z (in 3 s)` */
export function moment(ms: number, nowMs: number): string {
  return `${iso(ms)} (${relative(ms, nowMs)})`;
}
