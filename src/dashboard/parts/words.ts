/** Numbers and lengths of time in words. What the clock says is in clock.ts. */
import { language, words } from '../words/words.ts';

const NUMBER = new Intl.NumberFormat(language);

/** `12,345` */
export const numberText = (value: number): string => NUMBER.format(value);

const TENTHS = new Intl.NumberFormat(language, { minimumFractionDigits: 1, maximumFractionDigits: 1 });
const tenths = (value: number): string => TENTHS.format(value);

/** `99.94 %`: never rounded up, so all is all. */
export function shareText(share: number): string {
  const digits = share > 0.999 ? 3 : 2;
  const percent = Math.floor(share * 100 * 10 ** digits) / 10 ** digits;
  return `${new Intl.NumberFormat(language, { maximumFractionDigits: digits }).format(percent)} %`;
}

/** Ids of up to this length are shown whole in a list; uuids and what schedules make are shorter. */
const SHOWN_MAX = 48;
const HEAD = 26;
const TAIL = 18;

/** A longer one loses its middle: the ends of two ids differ more often than their middles. */
export function shortText(text: string): string {
  const chars = [...text];
  if (chars.length <= SHOWN_MAX) return text;
  return `${chars.slice(0, HEAD).join('')}…${chars.slice(-TAIL).join('')}`;
}

const STEPS = [
  { unit: words.units.d, ms: 86_400_000 },
  { unit: words.units.h, ms: 3_600_000 },
  { unit: words.units.min, ms: 60_000 },
  { unit: words.units.s, ms: 1000 },
] as const;

/** `3 d 4 h`, `12 s`, `850 ms`: the two largest units. */
export function durationText(ms: number): string {
  const size = Math.abs(Math.round(ms));
  const first = STEPS.findIndex((step) => size >= step.ms);
  const step = STEPS[first];
  if (!step) return `${size} ${words.units.ms}`;
  const below = STEPS[first + 1];
  const rest = below ? Math.floor((size % step.ms) / below.ms) : 0;
  const whole = `${Math.floor(size / step.ms)} ${step.unit}`;
  return below && rest > 0 ? `${whole} ${rest} ${below.unit}` : whole;
}

/** The same with tenths of a few seconds, for the parts of a run: `410 ms`, `3.3 s`, `17 min 22 s`. */
export const spanText = (ms: number): string =>
  ms >= 1000 && ms < 9950 ? `${tenths(ms / 1000)} ${words.units.s}` : durationText(ms);

/** `in 5 min`, `3 h 2 min ago` */
export const relativeText = (atMs: number, nowMs: number): string => {
  const away = atMs - nowMs;
  if (Math.abs(away) < 1000) return words.parts.now;
  return (away > 0 ? words.parts.ahead : words.parts.ago)(durationText(away));
};

/** `3.2 MiB` */
const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

export function bytesText(bytes: number): string {
  const power = Math.min(UNITS.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10));
  const value = bytes / 1024 ** power;
  return `${value >= 100 || power === 0 ? Math.round(value) : tenths(value)} ${UNITS[power]}`;
}

// Lateness in words.

/** What the API says of times above its last bound, which nobody has told apart. */
const LONGEST_MS = 300_000;

/** A percentile, which is estimated from bounds: `≈ 1.5 s`, `< 1 ms`, `> 5 min`. */
export function percentileText(ms: number | null): string {
  const text = latenessText(ms);
  return ms !== null && ms >= 1 && ms !== LONGEST_MS ? `≈ ${text}` : text;
}

/** `2 ms`, `1.5 s`, or a dash where nothing started. */
export function latenessText(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return '–';
  // Nothing else is exactly this: an older version has counted, and knows no more.
  if (ms === LONGEST_MS) return '> 5 min';
  if (ms > 0 && ms < 1) return '< 1 ms';
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${tenths(ms / 1000)} ${words.units.s}`;
  return ms < 7_200_000 ? `${tenths(ms / 60_000)} ${words.units.min}` : `${tenths(ms / 3_600_000)} ${words.units.h}`;
}

/**
 * The target of a job: its URL or path alone, or all that was said.
 *
 * @example targetText({ url: '/orders/7' }) // /orders/7
 */
export const targetText = ({ url, ...more }: { readonly url?: string; readonly [part: string]: unknown }): string =>
  url !== undefined && Object.keys(more).length === 0 ? url : JSON.stringify({ url, ...more });

// What is to be different about a job → the body of a request. New data go as they were typed: the browser would read
// 1234567824702058497 as 1234567824702058500, and the API refuses a number that loses digits.

/** @throws Error in words for what is no JSON */
export function changeText(change: Readonly<Record<string, unknown>>, data: string | undefined): string {
  const rest = JSON.stringify(change);
  if (data === undefined) return rest;
  checkJson(data);
  return rest === '{}' ? `{"data":${data}}` : `${rest.slice(0, -1)},"data":${data}}`;
}

/** One value and nothing behind it: so it cannot close what is around it. */
function checkJson(text: string): void {
  try {
    JSON.parse(text);
  } catch (error) {
    throw new Error(`the data are no JSON: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
}
