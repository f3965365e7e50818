/**
 * What a caller gives is checked here: names of options, whole numbers in a range, functions. A refusal says what was
 * given, what is allowed, and the nearest name.
 */
import { type DurationInput, durationMs, show } from './duration.ts';
import { DuestreamError, oneLine } from './errors.ts';

// Names of options in code. A name that nobody knows is refused, because an option that is silently dropped is found
// out at night. The code is `bad-config` where something is defined, and `bad-input` where something is called.

/**
 * @param options what was given
 * @param known the names that there are
 * @param owner what takes them, for the message
 * @param code of the refusal
 * @throws DuestreamError `bad-config`, or of that code
 */
export function checkNames(
  options: unknown,
  known: readonly string[],
  owner: string,
  code: 'bad-config' | 'bad-input' = 'bad-config',
): void {
  for (const name of Object.keys(checkObject(options, owner, code))) {
    if (!known.includes(name)) throw noOption(name, known, owner, code);
  }
}

/** The refusal of a name that nobody knows. */
export function noOption(
  name: string,
  known: readonly string[],
  owner: string,
  code: 'bad-config' | 'bad-input',
): DuestreamError {
  const hint = hintOf(name, known) || `; allowed: ${known.join(', ') || 'none'}`;
  return new DuestreamError(code, `${name} is not an option of ${owner}${hint}`);
}

/** @throws DuestreamError `bad-config` for what is no object */
export function checkObject(options: unknown, owner: string, code: 'bad-config' | 'bad-input' = 'bad-config'): object {
  if (typeof options === 'object' && options !== null && !Array.isArray(options)) return options;
  throw new DuestreamError(code, `the options of ${owner} are ${show(options)}; allowed: an object of options`);
}

/** Carries out a check of options: what it refuses is a wrong configuration. @throws DuestreamError `bad-config` */
export function asConfig<T>(check: () => T): T {
  try {
    return check();
  } catch (error) {
    // Any other error is a bug, and no matter of the configuration.
    if (!(error instanceof DuestreamError) || error.code === 'bad-config') throw error;
    throw new DuestreamError('bad-config', error.message, { cause: error });
  }
}

/** What marks an installation for people, on every page: a few colours, each of which can be read in the light and in the dark. */
export const COLORS = ['none', 'red', 'orange', 'green', 'blue', 'purple'] as const;
export type Color = (typeof COLORS)[number];

// The ranges of options of a queue that can be said in two places: in the configuration, and in code. Both read them
// here, so that what the configuration lets through is never refused by the queue that gets it. Those of a worker are
// in `worker-options.ts`.

export interface Range {
  readonly min: number;
  readonly max: number;
}

const DAY_MS = 86_400_000;

/** Of a queue; attempts and timeout also of one job. */
export const queueRanges = {
  partitions: { min: 1, max: 1024 },
  attempts: { min: 1, max: 1000 },
  crashes: { min: 1, max: 100 },
  timeoutMs: { min: 1, max: 365 * DAY_MS },
  lingerMs: { min: 0, max: 1000 },
  /** `lua/lib/held.lua` relies on the most. */
  aheadMs: { min: 0, max: 100 },
} as const satisfies Readonly<Record<string, Range>>;

/** Bytes of JSON that the data of one job may take. More than the default makes each script that reads records slower. */
export const dataBytesMaxRange = { default: 262_144, min: 1, max: 64 * 1024 * 1024 } as const satisfies Range & {
  readonly default: number;
};

/** How many tags of a queue may be closed at a time, about 128 bytes each in every partition. */
export const closedMaxRange = { default: 200_000, min: 1, max: 10_000_000 } as const satisfies Range & {
  readonly default: number;
};

/** A whole number within a range, or an error that says both. @throws DuestreamError `bad-input` */
export function wholeNumber(value: unknown, { what, min, max }: Range & { readonly what: string }): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) return value;
  throw new DuestreamError('bad-input', `${what} is ${show(value)}; allowed: a whole number from ${min} to ${max}`);
}

/** How long the words of a person may be: why somebody pauses, closes or limits something, and who does. */
export const WORDS_CHARS_MAX = 200;
export const WORDS_ALLOWED = `a text of at most ${WORDS_CHARS_MAX} characters`;

/**
 * Words of a person for other people, such as the reason of a pause: kept as one line without control characters, whichever
 * way they came.
 *
 * @throws DuestreamError `bad-input`
 */
export function wordsIn(given: unknown, what: string): string {
  if (typeof given === 'string' && given.length <= WORDS_CHARS_MAX) return oneLine(given);
  const said = typeof given === 'string' ? `a text of ${given.length} characters` : show(given);
  throw new DuestreamError('bad-input', `${what} is ${said}; allowed: ${WORDS_ALLOWED}`);
}

/** Milliseconds of a duration within a range. @throws DuestreamError `bad-input` */
export function durationIn(input: DurationInput, what: string, { min, max }: Range): number {
  const ms = durationMs(input, what);
  if (ms >= min && ms <= max) return ms;
  throw new DuestreamError('bad-input', `${what} is ${show(input)}; allowed: ${min} to ${max} ms`);
}

// The known name that a misspelt one most likely meant.

/**
 * A hint to append to a refusal: `; did you mean emails?`, or nothing when no name is near.
 *
 * @example hintOf('emial', ['emails', 'orders']) // '; did you mean emails?'
 */
export function hintOf(name: string, known: readonly string[]): string {
  const near = nearest(name, known);
  return near === undefined ? '' : `; did you mean ${near}?`;
}

/** The nearest of `known` within a third of its letters (at least two, one of a short name), or undefined. Case does not count. */
export function nearest(name: string, known: readonly string[]): string | undefined {
  const limit = name.length < 4 ? 1 : Math.max(2, Math.floor(name.length / 3));
  let best: { readonly name: string; readonly distance: number } | undefined;
  for (const candidate of known) {
    const distance = edits(name.toLowerCase(), candidate.toLowerCase());
    if (distance <= limit && distance < (best?.distance ?? Number.POSITIVE_INFINITY))
      best = { name: candidate, distance };
  }
  return best?.name;
}

/** How many letters must be added, removed, changed or swapped with their neighbour to turn one text into the other. */
function edits(from: string, to: string): number {
  let twoAbove: readonly number[] = [];
  let above: readonly number[] = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let row = 1; row <= from.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= to.length; column += 1) {
      const changed = (above[column - 1] ?? 0) + (from[row - 1] === to[column - 1] ? 0 : 1);
      const swapped =
        row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1]
          ? (twoAbove[column - 2] ?? 0) + 1
          : Number.POSITIVE_INFINITY;
      current.push(Math.min(changed, swapped, (above[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1));
    }
    twoAbove = above;
    above = current;
  }
  return above[to.length] ?? 0;
}

// A function that a caller gives and we call: for its result, and more than once.

/**
 * Nothing would run the body of a generator, and a class cannot be called.
 *
 * @param what how the message names it
 * @throws DuestreamError `bad-input`
 */
export function checkFunction(given: unknown, what: string): void {
  const shown = typeof given === 'function' ? oddKind(given) : show(given);
  if (shown === undefined) return;
  throw new DuestreamError('bad-input', `${what} is ${shown}; allowed: a function, also an async one`);
}

function oddKind(given: object): string | undefined {
  if (GENERATOR.test(Object.prototype.toString.call(given))) return 'a generator, whose body nobody would run';
  return /^class\b/.test(Function.prototype.toString.call(given)) ? 'a class, which cannot be called' : undefined;
}

const GENERATOR = /^\[object (Async)?GeneratorFunction\]$/;

export function isPromise(value: unknown): value is Promise<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}
