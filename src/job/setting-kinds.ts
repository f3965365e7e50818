/**
 * The kinds of values that a setting of a queue can have: a limit, a count, a duration, a rate or two, paths of fields, a target, a yes,
 * something that is off or has bounds, and limits of groups. A kind knows how a value is read that somebody says, in code, in a file, on the
 * command line or over HTTP; how it is said again; and which text of the registry stands for it. What cannot be read in the
 * registry was written by somebody else, and says nothing.
 */
import { checkNames, durationIn, type Range, wholeNumber } from '../kernel/checks.ts';
import { type DurationInput, durationText, show } from '../kernel/duration.ts';
import { DuestreamError } from '../kernel/errors.ts';
import {
  decodeRate,
  decodeRates,
  encodeRate,
  encodeRates,
  parseRate,
  parseRates,
  RATE_ALLOWED,
  RATES_ALLOWED,
  type Rate,
  type RateInput,
  type Rates,
  type RatesInput,
  rateInput,
  ratesInput,
  ratesText,
  rateText,
} from './rate.ts';
import { decodeRedact, encodeRedact, parseRedact, REDACT_ALLOWED, type Redaction } from './redaction.ts';
import { decodeTarget, parseTarget, type QueueTarget, TARGET_ALLOWED, type TargetInput, targetSaid } from './target.ts';

export interface SettingKind<Given = unknown, Stored = unknown, Kind extends string = string> {
  readonly kind: Kind;
  /** What is allowed, for the reference. */
  readonly allowed: string;
  /**
   * As somebody says it → as it is kept in memory.
   *
   * @param what the name of the setting, for the refusal
   * @throws DuestreamError `bad-input` that says what was given and what is allowed
   */
  parse(given: unknown, what: string): Stored;
  /** So that it can be said again. */
  said(stored: Stored): unknown;
  /** As it stands in the registry of queues. */
  encode(stored: Stored): string;
  decode(text: string): Stored | undefined;
  /** In a few letters, where it limits something; undefined: it limits nothing. */
  inShort?(stored: Stored): string | undefined;
  /** What is stored of a limit where an override went and no definition says anything: the queue keeps its line, without the limit. */
  readonly atRest?: string;
  /** What stands for a value behind its flag; '' where the flag says all. */
  readonly metavar: string;
  /** What `false` is called; undefined: it is no value of this kind. */
  readonly off?: string;
  /** What its flag says, as code says it. Default: the same. */
  fromFlag?(given: unknown): unknown;
  /** Values as they are said again, with which tests try each setting of the kind. */
  readonly samples: readonly unknown[];
  /** Never present: it lets the compiler carry what callers may give. */
  readonly given?: Given;
}

/** What callers may give. */
export type GivenOf<Row> = Row extends { readonly given?: infer It } ? It : never;
/** What is kept of it. */
export type StoredOf<Row> = Row extends { parse(...args: never[]): infer It } ? It : never;

interface Ranged {
  readonly range: Range;
}

export type LimitKind = SettingKind<number | false, number, 'limit'> & Ranged;
export type CountKind = SettingKind<number, number, 'count'> & Ranged;
export type DurationKind = SettingKind<DurationInput, number, 'duration'> & Ranged;
export type RateKind = SettingKind<RateInput | false, Rate | 0, 'rate'>;
export type RatesKind = SettingKind<RatesInput | false, Rates | 0, 'rates'>;
export type PathsKind = SettingKind<readonly string[], Redaction, 'paths'>;
export type NamesKind = SettingKind<readonly string[], readonly string[], 'names'>;
export type TargetKind = SettingKind<TargetInput | false, QueueTarget | 0, 'target'>;
export type YesKind = SettingKind<true, true, 'yes'>;
export type WordKind<Word extends string = string> = SettingKind<Word | false, Word | 0, 'word'> & {
  readonly words: readonly Word[];
};

export const NO_LIMIT = 'no limit';

/** A whole number, or `false` for no limit, which is stored as 0. */
export function limit(range: Range): LimitKind {
  const { min, max } = range;
  return {
    kind: 'limit',
    range,
    allowed: `${min} to ${max}, or false for no limit`,
    parse(given, what) {
      if (given === false) return 0;
      if (typeof given === 'number') return wholeNumber(given, { what, min, max });
      throw new DuestreamError(
        'bad-input',
        `${what} is ${show(given)}; allowed: a whole number from ${min} to ${max}, or false for no limit`,
      );
    },
    said: (stored) => (stored === 0 ? false : stored),
    encode: String,
    decode: numberIn,
    inShort: (stored) => (stored === 0 ? undefined : String(stored)),
    atRest: '0',
    metavar: '<n>',
    off: NO_LIMIT,
    fromFlag: (given) => (given === 'none' ? false : given),
    samples: [false, min],
  };
}

/** One of a few words, or `false` for none of them, which is stored as 0. */
export function word<const Word extends string>(words: readonly Word[]): WordKind<Word> {
  const wordIn = (given: unknown) => words.find((one) => one === given);
  const allowed = `${words.join(', ')}, or false`;
  return {
    kind: 'word',
    words,
    allowed,
    parse(given, what) {
      const found = given === false ? 0 : wordIn(given);
      if (found !== undefined) return found;
      throw new DuestreamError('bad-input', `${what} is ${show(given)}; allowed: ${allowed}`);
    },
    said: (stored) => (stored === 0 ? false : stored),
    encode: String,
    decode: (text) => (text === '0' ? 0 : wordIn(text)),
    inShort: (stored) => (stored === 0 ? undefined : stored),
    atRest: '0',
    metavar: `<${words.join('|')}>`,
    off: 'none',
    fromFlag: (given) => (given === 'none' ? false : given),
    samples: [false, ...words],
  };
}

/** A whole number. */
export function count(range: Range): CountKind {
  const { min, max } = range;
  return {
    kind: 'count',
    range,
    allowed: `${min} to ${max}`,
    parse: (given, what) => wholeNumber(given, { what, min, max }),
    said: (stored) => stored,
    encode: String,
    decode: numberIn,
    metavar: '<n>',
    samples: [min, max],
  };
}

/** A length of time, stored as milliseconds under the name of the setting with `Ms` behind it. */
export function duration(range: Range): DurationKind {
  return {
    kind: 'duration',
    range,
    allowed: `${durationText(range.min)} to ${durationText(range.max)}`,
    parse: (given, what) => durationIn(given === '0' ? 0 : (given as DurationInput), what, range),
    said: (stored) => stored && durationText(stored),
    encode: String,
    decode(text) {
      const ms = numberIn(text);
      return ms !== undefined && ms <= range.max ? ms : undefined;
    },
    metavar: '<duration>',
    samples: [range.min && durationText(range.min), durationText(range.max)],
  };
}

/** How many in a time, or `false` for no rate, which is stored as 0. */
export function rate(): RateKind {
  return {
    kind: 'rate',
    allowed: RATE_ALLOWED,
    parse: parseRate,
    said: (stored) => (stored === 0 ? false : rateInput(stored)),
    encode: encodeRate,
    decode: decodeRate,
    inShort: (stored) => (stored === 0 ? undefined : rateText(stored)),
    atRest: '0',
    metavar: '<rate>',
    off: NO_LIMIT,
    samples: [false, '10/s', { limit: 7, per: '90s', burst: 3 }],
  };
}

/** The same, or two rates at once. */
export function rates(): RatesKind {
  return {
    kind: 'rates',
    allowed: RATES_ALLOWED,
    parse: parseRates,
    said: (stored) => (stored === 0 ? false : ratesInput(stored)),
    encode: encodeRates,
    decode: decodeRates,
    inShort: (stored) => (stored === 0 ? undefined : ratesText(stored)),
    atRest: '0',
    metavar: '<rate>',
    off: NO_LIMIT,
    samples: [false, '10/s', { limit: 7, per: '90s', burst: 3 }, ['10/s', { limit: 500, per: '1h', burst: 50 }]],
  };
}

/** Paths of fields; none takes back what was said. */
export function paths(): PathsKind {
  return {
    kind: 'paths',
    allowed: REDACT_ALLOWED,
    parse: parseRedact,
    said: (stored) => stored,
    encode: encodeRedact,
    decode: decodeRedact,
    metavar: '<paths>',
    fromFlag(given) {
      if (typeof given !== 'string') return given;
      return given === 'none' ? [] : given.split(',').map((path) => path.trim());
    },
    samples: [['card.number', 'to']],
  };
}

/** What stands for no name, as an empty text says nothing. */
const NO_NAME = '-';
const NAMES = /^[a-z0-9][a-z0-9._-]{0,63}$/;

/** Names of things that are defined elsewhere; `[]`: none. */
export function names(most: number): NamesKind {
  const allowed = `at most ${most} names of limits: small letters, digits, ".", "_" and "-", at most 64, the first a letter or a digit`;
  const isRight = (given: unknown): given is readonly string[] =>
    Array.isArray(given) &&
    given.length <= most &&
    new Set(given).size === given.length &&
    given.every((name) => typeof name === 'string' && NAMES.test(name));
  return {
    kind: 'names',
    allowed,
    parse(given, what) {
      if (isRight(given)) return Object.freeze([...given]);
      const shown = Array.isArray(given) ? given.slice(0, 9).map(show).join(', ') : show(given);
      throw new DuestreamError('bad-input', `${what} is ${shown}; allowed: ${allowed}`);
    },
    said: (stored) => stored,
    encode: (stored) => (stored.length === 0 ? NO_NAME : stored.join(',')),
    decode(text) {
      const found = text === NO_NAME ? [] : text.split(',');
      return isRight(found) ? found : undefined;
    },
    inShort: (stored) => (stored.length === 0 ? undefined : stored.join(' and ')),
    atRest: NO_NAME,
    metavar: '<names>',
    fromFlag(given) {
      if (typeof given !== 'string') return given;
      return given === 'none' ? [] : given.split(',').map((name) => name.trim());
    },
    samples: [['provider'], ['provider', 'places'], []],
  };
}

/** A URL that jobs call, alone or with more of it; or `false` for none, which is stored as 0. */
export function target(): TargetKind {
  return {
    kind: 'target',
    allowed: TARGET_ALLOWED,
    parse: (given, what) => (given === false ? 0 : parseTarget(given, what)),
    said: (stored) => (stored === 0 ? false : targetSaid(stored)),
    encode: (stored) => (stored === 0 ? '0' : JSON.stringify(stored)),
    decode: (text) => (text === '0' ? 0 : decodeTarget(text)),
    metavar: '<url>',
    off: 'none',
    fromFlag(given) {
      if (given === 'none') return false;
      return typeof given === 'string' && given.startsWith('{') ? parsedOr(given) : given;
    },
    samples: [
      false,
      'https://api.example.com/due',
      {
        url: 'https://api.example.com/due',
        hosts: ['api.example.com', '*.example.org'],
        method: 'PUT',
        secret: 'main',
        headers: { Authorization: '$crm', 'X-Tenant': '4' },
        contentType: 'text/plain; charset=utf-8',
        format: 'cloudevents',
        timeout: '10s',
        maxAge: '2h',
        retryOn: [404],
        deadOn: [500, 501],
        keepAnswer: false,
        certificate: 'crm',
      },
    ],
  };
}

/** What is no JSON stays a text, and is refused as one. */
function parsedOr(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** `true`, and nothing takes it back, for which there is a reason. */
export function yes(reason: string): YesKind {
  return {
    kind: 'yes',
    allowed: 'true',
    parse(given, what) {
      if (given === true) return true;
      throw new DuestreamError('bad-input', `${what} is ${show(given)}; allowed: true. ${reason}`);
    },
    said: (stored) => stored,
    encode: () => '1',
    decode: (text) => (text === '' ? undefined : true),
    inShort: () => '',
    atRest: '1',
    metavar: '',
    samples: [true],
  };
}

const numberIn = (text: string): number | undefined => (/^\d{1,16}$/.test(text) ? Number(text) : undefined);

// What is off, or on with bounds: `true`, `false`, or an object of parts.

/** A part that is true or false. */
export const flag = (): SettingKind<boolean, boolean, 'flag'> => ({
  kind: 'flag',
  allowed: 'true or false',
  parse(given, what) {
    if (typeof given === 'boolean') return given;
    throw new DuestreamError('bad-input', `${what} is ${show(given)}; allowed: true or false`);
  },
  said: (stored) => stored,
  encode: String,
  decode: (text) => text === 'true',
  metavar: '',
  samples: [false, true],
});

/** A share of all, such as 0.99 for 99 of 100. */
export const share = (range: Range): SettingKind<number, number, 'share'> & Ranged => ({
  kind: 'share',
  range,
  allowed: `${range.min} to ${range.max}`,
  parse(given, what) {
    if (typeof given === 'number' && given >= range.min && given <= range.max) return given;
    throw new DuestreamError(
      'bad-input',
      `${what} is ${show(given)}; allowed: a number from ${range.min} to ${range.max}, such as 0.99`,
    );
  },
  said: (stored) => stored,
  encode: String,
  decode: (text) => (/^0\.\d{1,9}$/.test(text) ? Number(text) : undefined),
  metavar: '<share>',
  fromFlag: (given) => (typeof given === 'string' && /^0?\.\d{1,9}$/.test(given) ? Number(given) : given),
  samples: [range.min, range.max],
});

export type PartKind = CountKind | DurationKind | ReturnType<typeof flag> | ReturnType<typeof share>;
/** One bound. */
export type Part = PartKind & {
  /** As it is stored: milliseconds of a duration. */
  readonly otherwise: number | boolean;
  /** How it is called in memory where it is not by its name. */
  readonly stored?: string;
  /** Its flag behind that of the setting, where it is not its name. */
  readonly flag?: string;
  /** Each partition has its part of it, rounded up. */
  readonly shared?: true;
  /** What is said of its flag. */
  readonly help: string;
};
export type Parts = Readonly<Record<string, Part>>;

/** What is kept in memory of parts: durations have `Ms` behind their names. */
export type StoredParts<All> = { readonly isOn: boolean } & {
  readonly [Name in keyof All & string as All[Name] extends { readonly kind: 'duration' }
    ? `${Name}Ms`
    : All[Name] extends { readonly stored: infer Stored extends string }
      ? Stored
      : Name]: StoredOf<All[Name]>;
};

export type BoundsKind<Given = object, Stored = unknown> = SettingKind<Given | boolean, Stored, 'bounds'> & {
  readonly parts: Parts;
  /** The part that its own flag says, beside `off`; undefined: the flag says `on` or `off`. */
  readonly by?: string;
  /** What one of several partitions has of it. */
  share(stored: Stored, partitions: number): Stored;
};

export const storedName = (name: string, { kind }: { readonly kind: string }): string =>
  kind === 'duration' ? `${name}Ms` : name;

/** A part by its name, its key in the registry, and its name in memory. */
interface Bound {
  readonly name: string;
  readonly key: string;
  readonly stored: string;
  readonly part: Part;
}

const boundsIn = (parts: Parts): readonly Bound[] =>
  Object.entries(parts).map(([name, part]) => {
    const key = storedName(name, part);
    return { name, key, stored: part.stored ?? key, part };
  });

/** Whether what the registry has can be these parts. */
const isSane = (all: readonly Bound[], read: Readonly<Record<string, unknown>>): boolean =>
  all.every(({ key, part }) => {
    if (part.kind === 'flag') return true;
    const value = Number(read[key]);
    return part.kind === 'share' ? value > 0 && value < 1 : Number.isInteger(read[key]) && value > 0;
  });

/** @param by the part that stands for being on where one flag says it */
export function bounds<Given extends object, Stored extends object>(
  parts: Parts,
  by?: string,
): BoundsKind<Given, Stored> {
  const all = boundsIn(parts);
  const names = all.map(({ name }) => name);
  const made = (isOn: boolean, partOf: (of: Bound) => unknown): Stored =>
    Object.freeze({ isOn, ...Object.fromEntries(all.map((of) => [of.stored, partOf(of)])) }) as unknown as Stored;
  const each = (stored: object, pairOf: (of: Bound, value: never) => readonly [string, unknown]) =>
    Object.fromEntries(all.map((of) => pairOf(of, (stored as Readonly<Record<string, never>>)[of.stored] as never)));
  return {
    kind: 'bounds',
    parts,
    ...(by !== undefined && { by }),
    metavar: by === undefined ? '<on|off>' : '<duration>',
    off: 'off',
    samples: [false, Object.fromEntries(all.map(({ name, part }) => [name, part.samples.at(-1)]))],
    allowed: `true, false, or ${listed(all.map(({ name, part }) => `${name} (${part.allowed})`))}`,
    parse(given, what) {
      if (typeof given === 'boolean') return made(given, ({ part }) => part.otherwise);
      if (typeof given !== 'object' || given === null) {
        throw new DuestreamError(
          'bad-input',
          `${what} is ${show(given)}; allowed: true, false or { ${names.join(', ')} }`,
        );
      }
      checkNames(given, names, what, 'bad-input');
      const said: Readonly<Record<string, unknown>> = { ...given };
      return made(true, ({ name, part }) =>
        said[name] === undefined ? part.otherwise : part.parse(said[name], `${what}.${name}`),
      );
    },
    said: (stored) =>
      (stored as { readonly isOn?: boolean }).isOn === true &&
      each(stored, ({ name, part }, value) => [name, part.said(value)]),
    encode: (stored) =>
      JSON.stringify({
        on: (stored as { readonly isOn?: boolean }).isOn,
        ...each(stored, ({ key }, value) => [key, value]),
      }),
    share(stored, partitions) {
      if (partitions === 1) return stored;
      const share = (value: number) => Math.ceil(value / partitions);
      return Object.freeze({
        ...stored,
        ...each(stored, (of, value) => [of.stored, of.part.shared ? share(value) : value]),
      });
    },
    decode(text) {
      try {
        const { on, ...read } = JSON.parse(text) as Readonly<Record<string, unknown>>;
        if (!isSane(all, read)) return undefined;
        return made(on === true, ({ key, part }) => (part.kind === 'flag' ? read[key] === true : Number(read[key])));
      } catch {
        return undefined;
      }
    },
  };
}

/** `a, b and c`. */
export function listed(words: readonly string[], last = 'and'): string {
  const head = words.slice(0, -1).join(', ');
  return head === '' ? words.join('') : `${head} ${last} ${words.at(-1)}`;
}
