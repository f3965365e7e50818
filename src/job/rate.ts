/** How many jobs may start in a time: as people say it, as it is stored, and as it is shown. */
import { checkNames, durationIn, type Range, wholeNumber } from '../kernel/checks.ts';
import { type DurationInput, durationText, show } from '../kernel/duration.ts';
import { DuestreamError } from '../kernel/errors.ts';

/** How many jobs may start in a time: `10/s`, `600/m`, `100/h`, `50/d`; or with a time of your own and a burst. */
export type RateInput =
  | `${number}/${'s' | 'm' | 'h' | 'd'}`
  | {
      /** How many. */
      readonly limit: number;
      /** In which time. */
      readonly per: DurationInput;
      /** How many may start at once after a while without any. 1 to 1,000,000, default 1. */
      readonly burst?: number | undefined;
    };

/** One rate, or a list of two that both hold. */
export type RatesInput = RateInput | readonly RateInput[];

/** A rate as it is stored. */
export interface Rate {
  readonly limit: number;
  readonly perMs: number;
  readonly burst: number;
}

/** The rates of a queue as they are stored: a job starts where both of two allow it. */
export type Rates = Rate | readonly [Rate, Rate];

const DAY_MS = 86_400_000;

export const rateRanges = {
  limit: { min: 1, max: 1_000_000_000 },
  perMs: { min: 1, max: 365 * DAY_MS },
  burst: { min: 1, max: 1_000_000 },
} as const satisfies Readonly<Record<string, Range>>;

const UNITS_MS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
/** How a rate is written: in code, in the file, by a flag, over HTTP. */
export const RATE_ALLOWED =
  'a text such as 10/s, 600/m, 100/h or 50/d, or { limit, per, burst }; from 1/d to 100000/s; or false for no rate';
/** The same of the rate of a queue, which may be two. */
export const RATES_ALLOWED = `${RATE_ALLOWED}; or two of them in a list, such as ['10/s', { limit: 500, per: '1h', burst: 50 }], which both hold`;
export const RATE_TEXT = /^(\d{1,9})\/([smhd])$/;

/** @returns 0 for `false`, which takes the rate back. @throws DuestreamError `bad-input` */
export function parseRate(given: unknown, what: string): Rate | 0 {
  if (given === false) return 0;
  if (Array.isArray(given)) {
    throw new DuestreamError('bad-input', `${what} is a list; allowed: one rate, ${RATE_ALLOWED}`);
  }
  const rate = typeof given === 'string' ? rateOfText(given) : rateOfObject(given);
  const perSecond = rate && perSecondOf(rate);
  if (rate && perSecond !== undefined && perSecond >= 1 / 86_400 && perSecond <= 100_000) return Object.freeze(rate);
  throw new DuestreamError('bad-input', `${what} is ${show(given)}; allowed: ${RATE_ALLOWED}`);
}

function rateOfText(text: string): Rate | undefined {
  const [, limit, unit] = RATE_TEXT.exec(text) ?? [];
  if (limit === undefined || unit === undefined) return undefined;
  return { limit: Number(limit), perMs: UNITS_MS[unit as keyof typeof UNITS_MS], burst: 1 };
}

function rateOfObject(given: unknown): Rate | undefined {
  if (typeof given !== 'object' || given === null) return undefined;
  checkNames(given, ['limit', 'per', 'burst'], 'rate', 'bad-input');
  const { limit, per, burst = 1 } = given as { limit: unknown; per: DurationInput; burst?: unknown };
  return {
    limit: wholeNumber(limit, { what: 'limit of rate', ...rateRanges.limit }),
    perMs: durationIn(per, 'per of rate', rateRanges.perMs),
    burst: wholeNumber(burst, { what: 'burst of rate', ...rateRanges.burst }),
  };
}

/** As it stands in the registry of queues. */
export const encodeRate = (rate: Rate | 0): string => (rate === 0 ? '0' : `${rate.limit} ${rate.perMs} ${rate.burst}`);

/** What cannot be read was written by somebody else, and limits nothing. */
export function decodeRate(text: string): Rate | 0 | undefined {
  if (text === '0') return 0;
  const [, limit, perMs, burst] = /^([1-9]\d{0,8}) ([1-9]\d{0,8}) ([1-9]\d{0,6})$/.exec(text) ?? [];
  return limit === undefined ? undefined : { limit: Number(limit), perMs: Number(perMs), burst: Number(burst) };
}

// Two at once.

/** @throws DuestreamError `bad-input` */
export function parseRates(given: unknown, what: string): Rates | 0 {
  if (!Array.isArray(given)) return parseRate(given, what);
  const [first, second] = given.map((one, nth) => parseRate(one, `rate ${nth + 1} of ${what}`));
  if (first && second && given.length === 2) return Object.freeze([first, second] as const);
  throw new DuestreamError('bad-input', `${what} is a list of ${given.length}; allowed: ${RATES_ALLOWED}`);
}

/** One after the other; none: no rate. */
export function ratesOf(stored: Rates | 0 = 0): readonly Rate[] {
  if (stored === 0) return [];
  return 'limit' in stored ? [stored] : stored;
}

/** Two stand in one field, so a process that knows of one alone reads no half of them. */
export const encodeRates = (rates: Rates | 0): string => ratesOf(rates).map(encodeRate).join(' ') || '0';

/** What cannot be read was written by somebody else, and limits nothing. */
export function decodeRates(text: string): Rates | 0 | undefined {
  const words = text.split(' ');
  if (words.length !== 6) return decodeRate(text);
  const [first, second] = [decodeRate(words.slice(0, 3).join(' ')), decodeRate(words.slice(3).join(' '))];
  return first && second ? [first, second] : undefined;
}

/** @example ratesText([{ limit: 10, perMs: 1000, burst: 1 }, { limit: 500, perMs: 3_600_000, burst: 50 }]) // '10/s and 500/h, burst 50' */
export const ratesText = (rates: Rates): string => ratesOf(rates).map(rateText).join(' and ');

/** As they are said, so that they can be said again. */
export function ratesInput(rates: Rates): RatesInput {
  return 'limit' in rates ? rateInput(rates) : [rateInput(rates[0]), rateInput(rates[1])];
}

/**
 * Of two rates the faster one, where it never counts: the slower one lets as few start at once, and fewer after that.
 *
 * @example idleRate([{ limit: 10, perMs: 1000, burst: 1 }, { limit: 500, perMs: 3_600_000, burst: 1 }]) // 10/s
 */
export function idleRate(rates: Rates | 0 | undefined): { readonly idle: Rate; readonly slower: Rate } | undefined {
  const [faster, slower] = fasterFirst(ratesOf(rates));
  return faster && slower && slower.burst <= faster.burst ? { idle: faster, slower } : undefined;
}

export const fasterFirst = (rates: readonly Rate[]): readonly Rate[] =>
  rates.toSorted((one, other) => perSecondOf(other) - perSecondOf(one));

const perSecondOf = ({ limit, perMs }: Rate): number => (limit * 1000) / perMs;

/** A rate for people: `10/s`, `7 per 1m, burst 3`. */
export function rateText({ limit, perMs, burst }: Rate): string {
  const unit = Object.entries(UNITS_MS).find(([, ms]) => ms === perMs)?.[0];
  const text = unit === undefined ? `${limit} per ${durationText(perMs)}` : `${limit}/${unit}`;
  return burst === 1 ? text : `${text}, burst ${burst}`;
}

/** A rate as it is said, so that it can be said again. @example rateInput({ limit: 10, perMs: 1000, burst: 1 }) // '10/s' */
export function rateInput({ limit, perMs, burst }: Rate): RateInput {
  const text = rateText({ limit, perMs, burst });
  return burst === 1 && text.includes('/') ? (text as RateInput) : { limit, per: durationText(perMs), burst };
}
