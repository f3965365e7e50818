/**
 * The kinds of values that an option of a job can have: a duration, an instant, a count, one of some words, a text, a
 * list of words, texts by names, a backoff. A kind knows how a value is checked that a caller gives, and how it stands in a record. What is read from a
 * record is checked as well, because anybody may have written it.
 */

import { durationIn, type Range, wholeNumber } from '../kernel/checks.ts';
import { type DurationInput, durationMs, type InstantInput, instantMs, show } from '../kernel/duration.ts';
import { DuestreamError } from '../kernel/errors.ts';
import { BACKOFF_FORMS, type Backoff, type BackoffInput, isBackoff, storable } from './backoff.ts';
import { DEBOUNCE_ALLOWED, type Debounce, type DebounceMs, parseDebounce } from './debounce.ts';
import {
  headersIn,
  headersText,
  type JobHeaders,
  PRIORITIES,
  type Priority,
  priorityOfHeader,
  setOfHeader,
  tagsOfHeader,
  tagsText,
} from './labels.ts';
import {
  isJobTarget,
  JOB_TARGET_ALLOWED,
  type JobTargetInput,
  type JobTargetOptions,
  parseJobTarget,
} from './target.ts';

export interface OptionKind<Given = unknown, Stored = unknown, Kind extends string = string> {
  /** A duration and an instant are stored as milliseconds, under the option's name with `Ms` behind it. */
  readonly kind: Kind;
  /** What stands behind the flag on the command line. */
  readonly metavar: string;
  /** What is allowed, for the reference. */
  readonly allowed: string;
  /**
   * Given by a caller → as it is stored.
   *
   * @param what the option's name, for the refusal
   * @param dueMs when the job is due; left out where nobody knows yet
   * @throws DuestreamError `bad-input` that says what was given and what is allowed
   */
  readonly check: (given: unknown, what: string, dueMs?: number) => Stored;
  /** Whether a value of the record's JSON is one. It may be outside the range: who wrote it may be of another version. */
  readonly isStored: (value: unknown) => boolean;
  /** As a value in the header. */
  readonly toHeader: (stored: unknown) => string;
  /** Undefined for a text that is none: it is ignored. */
  readonly ofHeader: (text: string) => Stored | undefined;
  /** Of a count. */
  readonly range?: Range;
  /** All there are, where they can be listed. */
  readonly choices?: readonly string[];
  /** Never present: it lets the compiler carry what callers may give. */
  readonly given?: Given;
}

/** One row of the table of `options.ts`. */
export interface JobOption extends OptionKind {
  /** One line for people: the help of its flag, and the reference. */
  readonly doc: string;
  /** What counts when it is left out, for people. */
  readonly otherwise: string;
  /** A value as it is written in a line of `schedule --bulk`, or in a file of schedules. */
  readonly example: unknown;
  /** What the example says besides, where it means nothing alone. */
  readonly beside?: Readonly<Record<string, unknown>>;
  /** Whether a schedule can say it for its jobs; a text where its field is called otherwise. */
  readonly schedule?: true | 'job' | 'jobTags';
  /**
   * Where it stands in the record. `json`: its key in the object `o` of the JSON, where a value that cannot be is refused
   * when it is read. `header`: its letter, which Redis can read too; what cannot be read there is ignored, and the
   * `fallback` is left out, and meant where one of `needs` is there. What is `apart` does not count when two calls are
   * compared: a call that says it differently is the same call.
   */
  readonly record?:
    | { readonly json: string }
    | { readonly header: string; readonly fallback?: string; readonly apart?: true };
  /** It means nothing unless one of these is given too. */
  readonly needs?: readonly string[];
  /** The option that takes a duration instead of this instant. */
  readonly instead?: string;
  /** The option that names the zone in which this instant may be a local time. */
  readonly zoned?: string;
}

/** An option by the name under which somebody says it: to a producer, or in a schedule. */
export interface Named<Name extends string = string> {
  readonly name: Name;
  readonly option: JobOption;
}

/** What callers may give for an option. */
export type GivenOf<Row> = Row extends { readonly given?: infer It } ? It : never;

/** What is stored of it. */
export type StoredOf<Row> = Row extends { readonly check: (...args: never[]) => infer It } ? It : never;

const DURATION = 'such as `500ms`, `90s`, `5m`, `3d`, `PT1H30M`, or milliseconds';
const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['s', 1000],
] as const;

/** A length of time, within a range where there is one. */
export function duration(range?: Range): OptionKind<DurationInput, number, 'duration'> {
  const within = range === undefined ? 'a duration ' : `${inUnits(range.min)} to ${inUnits(range.max)}, `;
  return {
    kind: 'duration',
    metavar: '<duration>',
    allowed: `${within}${DURATION}`,
    ...numbersFrom(range?.min ?? 0),
    check: unchecked((given: DurationInput, what) =>
      range === undefined ? durationMs(given, what) : durationIn(given, what, range),
    ),
  };
}

/** A moment. */
export function instant(): OptionKind<InstantInput, number, 'instant'> {
  return {
    kind: 'instant',
    metavar: '<instant>',
    ...numbersFrom(0),
    allowed: 'a `Date`, a luxon `DateTime`, or ISO 8601 with `Z` or an offset',
    check: unchecked((given: InstantInput, what) => instantMs(given, what)),
  };
}

/** A whole number. */
export function count(range: Range): OptionKind<number, number, 'count'> {
  return {
    kind: 'count',
    metavar: '<n>',
    allowed: `${range.min} to ${range.max}`,
    range,
    ...numbersFrom(range.min),
    check: (given, what) => wholeNumber(given, { what, ...range }),
  };
}

/** One of some words. In a header each is one letter, if `letters` has one for each. */
export function choice<const Word extends string>(
  words: readonly Word[],
  letters?: string,
): OptionKind<Word, Word, 'choice'> {
  const placeOf = (value: unknown) => (words as readonly unknown[]).indexOf(value);
  const short: readonly string[] = letters === undefined ? words : [...letters];
  const inHeader = new Map<unknown, string>(words.map((word, at) => [word, short[at] ?? word]));
  return {
    kind: 'choice',
    metavar: '<what>',
    allowed: words.map((word) => `\`${word}\``).join(', '),
    choices: words,
    check(given, what) {
      const word = words[placeOf(given)];
      if (word !== undefined) return word;
      throw new DuestreamError('bad-input', `${what} is ${show(given)}; allowed: ${words.join(', ')}`);
    },
    isStored: (value) => placeOf(value) >= 0,
    toHeader: (stored) => inHeader.get(stored) ?? '',
    ofHeader: (text) => words[short.indexOf(text)],
  };
}

/** A text with a grammar of its own. */
export function text(
  parse: (given: unknown) => string,
  { metavar, allowed }: { readonly metavar: string; readonly allowed: string },
): OptionKind<string, string, 'text'> {
  const isText = (value: unknown) => typeof value === 'string';
  return { kind: 'text', metavar, allowed, check: parse, isStored: isText, toHeader: String, ofHeader: (it) => it };
}

/** Who comes first. In the header it is the tag `=high` or `=low`, in front of the others, so that the index of tags has it. */
export function priority(): OptionKind<Priority, Priority, 'choice'> {
  return {
    ...choice(PRIORITIES),
    toHeader: (stored) => (stored === 'normal' ? '' : ` ${stored}`),
    ofHeader: priorityOfHeader,
  };
}

/** A set of jobs. In the header it is the tag `=set:<name>`, behind the others. */
export function setName(
  parse: (given: unknown, what: string) => string,
  allowed: string,
): OptionKind<string, string, 'text'> {
  return {
    ...text((given) => parse(given, 'set'), { metavar: '<set>', allowed }),
    toHeader: (stored) => ` set:${String(stored)}`,
    ofHeader: setOfHeader,
  };
}

/** Some words, as a set: they are stored in order and once each. In a header `=` is written as a space, see `labels.ts`. */
export function words(
  parse: (given: unknown, what: string) => readonly string[],
  { metavar, allowed }: { readonly metavar: string; readonly allowed: string },
): OptionKind<readonly string[], readonly string[], 'list'> {
  return {
    kind: 'list',
    metavar,
    allowed,
    check: parse,
    isStored: Array.isArray,
    toHeader: (stored) => tagsText(stored as readonly string[]),
    ofHeader: tagsOfHeader,
  };
}

/** Texts by names, each of which is said on its own on the command line: `name=value`. */
export function pairs(
  parse: (given: unknown, what: string) => JobHeaders | undefined,
  allowed: string,
): OptionKind<JobHeaders, JobHeaders | undefined, 'pairs'> {
  return {
    kind: 'pairs',
    metavar: '<name=value>',
    allowed,
    check: parse,
    isStored: (value) => typeof value === 'object' && value !== null,
    toHeader: (stored) => headersText(stored as JobHeaders),
    ofHeader: headersIn,
  };
}

/** How long to wait for further calls. It belongs to the call, and its record has a letter that no option is. */
export function debounce(): OptionKind<Debounce, DebounceMs, 'debounce'> {
  return {
    kind: 'debounce',
    metavar: '<wait,max>',
    allowed: DEBOUNCE_ALLOWED,
    check: parseDebounce,
    isStored: () => false,
    toHeader: () => '',
    ofHeader: () => undefined,
  };
}

/** How long to wait after a failure, as data. */
export function backoff(): OptionKind<BackoffInput, Backoff, 'backoff'> {
  return {
    kind: 'backoff',
    metavar: '<json>',
    isStored: isBackoff,
    allowed: `\`fixed(…)\`, \`linear(…)\`, \`exponential(…)\`, \`ladder(…)\`, or an object with ${BACKOFF_FORMS}; no function, it cannot be stored`,
    check: unchecked(storable),
    // A header has no room for one.
    toHeader: () => '',
    ofHeader: () => undefined,
  };
}

/** Where the request of the job goes, and how, within what its queue says. */
export function jobTarget(): OptionKind<JobTargetInput, JobTargetOptions, 'target'> {
  return {
    kind: 'target',
    metavar: '<url>',
    isStored: isJobTarget,
    allowed: JOB_TARGET_ALLOWED,
    check: parseJobTarget,
    toHeader: () => '',
    ofHeader: () => undefined,
  };
}

/** As JSON numbers, and in base 36 in a header. */
function numbersFrom(min: number) {
  return {
    isStored: (value: unknown) => typeof value === 'number' && value >= min,
    toHeader: (stored: unknown) => (stored as number).toString(36),
    ofHeader: (text: string) => (/^[0-9a-z]+$/.test(text) ? Number.parseInt(text, 36) : undefined),
  };
}

/** A check is there for callers without types; it looks at whatever it gets. */
function unchecked<Given, Stored>(check: (given: Given, what: string) => Stored) {
  return check as (given: unknown, what: string) => Stored;
}

function inUnits(ms: number): string {
  const [unit, size] = UNITS.find(([, size]) => ms > 0 && ms % size === 0) ?? ['ms', 1];
  return `${ms / size} ${unit}`;
}
