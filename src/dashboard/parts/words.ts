/** Numbers and times in words. */

const NUMBER = new Intl.NumberFormat('en');

/** `12,345` */
export const numberText = (value: number): string => NUMBER.format(value);

/** `1 job`, `312 jobs` */
export const countText = (count: number, one: string, many = `${one}s`): string =>
  `${numberText(count)} ${count === 1 ? one : many}`;

const STEPS = [
  { unit: 'd', ms: 86_400_000 },
  { unit: 'h', ms: 3_600_000 },
  { unit: 'min', ms: 60_000 },
  { unit: 's', ms: 1000 },
] as const;

/** `3 d 4 h`, `12 s`, `850 ms`: the two largest units. */
export function durationText(ms: number): string {
  const size = Math.abs(Math.round(ms));
  const first = STEPS.findIndex((step) => size >= step.ms);
  const step = STEPS[first];
  if (!step) return `${size} ms`;
  const below = STEPS[first + 1];
  const rest = below ? Math.floor((size % step.ms) / below.ms) : 0;
  const whole = `${Math.floor(size / step.ms)} ${step.unit}`;
  return below && rest > 0 ? `${whole} ${rest} ${below.unit}` : whole;
}

/** `in 5 min`, `3 h 2 min ago` */
export const relativeText = (atMs: number, nowMs: number): string => {
  const away = atMs - nowMs;
  if (Math.abs(away) < 1000) return 'now';
  return away > 0 ? `in ${durationText(away)}` : `${durationText(away)} ago`;
};

const LOCAL = new Intl.DateTimeFormat('en-CA', {
  year: 'numeric',
  month: '2-digit',
  day: '2-digit',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
  timeZoneName: 'short',
});

/** `2026-11-22 23:14:05 GMT+1`: in the zone of whoever looks. */
export const localText = (atMs: number): string =>
  isInstant(atMs) ? LOCAL.format(atMs).replace(', ', ' ') : String(atMs);

/** `2026-11-22T22:14:05.000Z` */
export const utcText = (atMs: number): string => (isInstant(atMs) ? new Date(atMs).toISOString() : String(atMs));

/** `22:14:05 UTC`, with its date where that is another; empty where the local time is the same. @param local as `localText` */
export function utcBeside(atMs: number, local: string): string {
  const [day = '', time = ''] = utcText(atMs)
    .replace(/\.\d+Z$/, '')
    .split('T');
  if (time === '' || local.startsWith(`${day} ${time}`)) return '';
  return local.startsWith(day) ? `${time} UTC` : `${day} ${time} UTC`;
}

/** What a calendar has: a due time may be any number. */
const isInstant = (atMs: number): boolean => Math.abs(atMs) <= 8.64e15;
