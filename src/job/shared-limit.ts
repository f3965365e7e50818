/**
 * A limit with a name, which several queues share: a rate or a concurrency of all of them together. It stands in the registry,
 * and its ledger (`lua/lib/ledger.lua`) lends turns or places to the partitions of the queues that name it.
 */
import { checkNames, type Range, wholeNumber } from '../kernel/checks.ts';
import { show } from '../kernel/duration.ts';
import { DuestreamError } from '../kernel/errors.ts';
import { parseName } from './job.ts';
import { decodeRate, encodeRate, parseRate, type Rate, type RateInput, rateInput, rateText } from './rate.ts';

/** Exactly one of the two. */
export interface SharedLimitOptions {
  /** How many jobs of all queues together may start in a time: `'10/s'`, or `{ limit, per, burst }`. */
  readonly rate?: RateInput | undefined;
  /** How many jobs of all queues together may run at a time: 1 to 1,000,000. */
  readonly concurrency?: number | undefined;
}

/** What of it is limited. */
export type Shared =
  | { readonly rate: Rate; readonly concurrency?: never }
  | { readonly concurrency: number; readonly rate?: never };

/** As a ledger has to know it. */
export type SharedLimit = Shared & {
  readonly name: string;
  /** Grows with each change of any limit: a ledger knows by it which of two is the later one. */
  readonly revision: number;
};

/** As it is stored. */
export type DefinedLimit = SharedLimit & {
  /** Who said it, where and when; for people. */
  readonly by: string;
  readonly atMs: number;
};

/** What a ledger lends: turns of a rate, or places of a concurrency. */
export type LentKind = 'rate' | 'concurrency';

/** What a partition has of a limit at a moment. */
export interface LentHere {
  readonly name: string;
  /** Undefined: nothing was lent yet. */
  readonly kind: LentKind | undefined;
  /** Turns of a rate that have not ended. */
  readonly turns: number;
  /** Places of a concurrency, those that are used included. */
  readonly share: number;
}

/** The field `lent` of `K:meta`, as `lua/lib/lent.lua` reads it. What is no word of it lends nothing. */
export function lentIn(text: string, { names, nowMs }: LentAsk): readonly LentHere[] {
  const words = text.split(' ').flatMap((word) => {
    const [, name, letter, rest = ''] = /^([^=]+)=([a-z]),\d+:\d+,\d+,(.*)$/.exec(word) ?? [];
    return name === undefined ? [] : [[name, { letter, rest }] as const];
  });
  const said = new Map(words);
  return names.map((name): LentHere => {
    const { letter, rest = '' } = said.get(name) ?? {};
    const turns = [...rest.matchAll(/(\d+)@(\d+)/g)].filter(([, , ends]) => Number(ends) > nowMs);
    return {
      name,
      kind: letter === 'r' ? 'rate' : letter === 'c' ? 'concurrency' : undefined,
      turns: turns.reduce((sum, [, count]) => sum + Number(count), 0),
      share: letter === 'c' ? Number(rest) : 0,
    };
  });
}

interface LentAsk {
  /** Of all limits of the queue. */
  readonly names: readonly string[];
  readonly nowMs: number;
}

/** How many names there may be. */
export const SHARED_MAX = 100;
export const concurrencyRange = { min: 1, max: 1_000_000 } as const satisfies Range;
export const SHARED_ALLOWED = `a rate such as 10/s, or a concurrency of ${concurrencyRange.min} to ${concurrencyRange.max}`;

/** @throws DuestreamError `bad-input` */
export const parseLimitName = (name: string): string => parseName(name, 'limit');

/** @throws DuestreamError `bad-input` */
export function parseShared(name: string, given: unknown): Shared {
  const refused = (what: string) =>
    new DuestreamError('bad-input', `limit ${name} is ${what}; allowed: { rate: '10/s' } or { concurrency: 5 }`);
  if (typeof given !== 'object' || given === null) throw refused(show(given));
  checkNames(given, ['rate', 'concurrency'], `limit ${name}`, 'bad-input');
  const { rate, concurrency }: { readonly rate?: unknown; readonly concurrency?: unknown } = given;
  if (rate !== undefined && concurrency !== undefined) throw refused('a rate and a concurrency');
  if (concurrency !== undefined) {
    return { concurrency: wholeNumber(concurrency, { what: `concurrency of limit ${name}`, ...concurrencyRange }) };
  }
  const parsed = rate === undefined ? 0 : parseRate(rate, `rate of limit ${name}`);
  if (parsed === 0) throw refused(rate === undefined ? 'nothing' : 'no rate');
  return { rate: parsed };
}

export const kindOf = (limit: Shared): LentKind => (limit.rate === undefined ? 'concurrency' : 'rate');

/** Microseconds from one turn to the next. 0: it is no rate. */
export const paceUs = ({ rate }: Shared): number =>
  rate === undefined ? 0 : Number(((rate.perMs * 1000) / rate.limit).toFixed(3));

/** Turns at once after a while without any; of a concurrency, how many run. */
export const mostOf = (limit: Shared): number => (limit.rate === undefined ? limit.concurrency : limit.rate.burst);

/** For people: `10/s`, `3 at once`. */
export const sharedText = (limit: Shared): string =>
  limit.rate === undefined ? `${limit.concurrency} at once` : rateText(limit.rate);

/** So that it can be said again. */
export const sharedInput = (limit: Shared): SharedLimitOptions =>
  limit.rate === undefined ? { concurrency: limit.concurrency } : { rate: rateInput(limit.rate) };

// All limits are one text of the registry, so who writes one compares them all.

/** The limits of a namespace, and the revision of the last change, which a limit that is removed leaves behind. */
export interface SharedLimits {
  readonly revision: number;
  readonly all: readonly DefinedLimit[];
}

interface StoredLimit {
  readonly v: number;
  readonly r?: string;
  readonly c?: number;
  readonly by: string;
  readonly at: number;
}

export function encodeLimits({ revision, all }: SharedLimits): string {
  const limits = all.map((limit): readonly [string, StoredLimit] => {
    const what = limit.rate === undefined ? { c: limit.concurrency } : { r: encodeRate(limit.rate) };
    return [limit.name, { v: limit.revision, ...what, by: limit.by, at: limit.atMs }];
  });
  return JSON.stringify({ revision, limits: Object.fromEntries(limits) });
}

/** What nobody can read was written by somebody else, and limits nothing. */
export function decodeLimits(text: string | null | undefined): SharedLimits {
  try {
    const { revision = 0, limits = {} } = JSON.parse(text ?? '{}') as {
      readonly revision?: number;
      readonly limits?: Readonly<Record<string, StoredLimit>>;
    };
    const all = Object.entries(limits).flatMap(([name, { v, r, c, by, at }]): DefinedLimit[] => {
      const about = { name, revision: v, by, atMs: at };
      const rate = r === undefined ? undefined : decodeRate(r);
      if (rate) return [{ ...about, rate }];
      return c === undefined ? [] : [{ ...about, concurrency: c }];
    });
    return { revision, all: all.sort((a, b) => (a.name < b.name ? -1 : 1)) };
  } catch {
    return { revision: 0, all: [] };
  }
}

export const isSame = (one: Shared, other: Shared): boolean =>
  kindOf(one) === kindOf(other) && paceUs(one) === paceUs(other) && mostOf(one) === mostOf(other);
