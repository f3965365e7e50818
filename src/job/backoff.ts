/**
 * Failures so far → how long to wait. Pure: randomness is passed in. A backoff is data, so that it can travel inside
 * a job's record; a function is allowed on a queue definition only, because it cannot be stored.
 */

import { checkNames, isPromise } from '../kernel/checks.ts';
import { type DurationInput, durationMs, show } from '../kernel/duration.ts';
import { DuestreamError } from '../kernel/errors.ts';
import { isJitter, type Jitter, jitteredMs, jitterOf } from '../kernel/spread.ts';

/** A checked backoff, as `queue.backoff` holds it. Write one with `fixed`, `linear`, `exponential` or `ladder`; delays are in ms. */
export type Backoff =
  | { readonly kind: 'fixed'; readonly delayMs: number; readonly jitter: Jitter }
  | { readonly kind: 'linear'; readonly delayMs: number; readonly maxMs: number; readonly jitter: Jitter }
  | {
      readonly kind: 'exponential';
      readonly delayMs: number;
      readonly factor: number;
      readonly maxMs: number;
      readonly jitter: Jitter;
    }
  | { readonly kind: 'ladder'; readonly stepsMs: readonly number[]; readonly jitter: Jitter };

/** A backoff where there are no functions, as in JSON and YAML. What is left out is as in the function of that name. */
export type WrittenBackoff =
  | (SpreadOptions & { readonly kind: 'fixed'; readonly delay: DurationInput })
  | (SpreadOptions & {
      readonly kind: 'linear';
      readonly delay: DurationInput;
      readonly max?: DurationInput | undefined;
    })
  | (SpreadOptions & {
      readonly kind: 'exponential';
      readonly delay: DurationInput;
      readonly factor?: number | undefined;
      readonly max?: DurationInput | undefined;
    })
  | (SpreadOptions & { readonly kind: 'ladder'; readonly steps: readonly DurationInput[] });

/** What is taken for a backoff, wherever one is given: what a function made, or the same in words. */
export type BackoffInput = Backoff | WrittenBackoff;

/** The forms of a backoff in words, for refusals and references. */
export const BACKOFF_FORMS =
  'kind: fixed (delay), linear (delay, max), exponential (delay, factor, max) or ladder (steps), each with jitter: none, full or equal';

/** A queue's backoff: data, or a function of the number of failures so far (1 after the first) returning a duration. */
export type BackoffPolicy = Backoff | ((failures: number) => DurationInput);

/** What `fixed` and `ladder` take beside their delays. */
interface SpreadOptions {
  readonly jitter?: Jitter | undefined;
}

/** The same delay after every failure. @throws DuestreamError `bad-input` @example fixed('30s') */
export function fixed(delay: DurationInput, options: SpreadOptions = {}): Backoff {
  checkNames(options, ['jitter'], 'fixed', 'bad-input');
  return { kind: 'fixed', delayMs: durationMs(delay, 'fixed delay'), jitter: jitterOf(options.jitter, 'none') };
}

/** delay × failures, at most `max` (default 1 h). @throws DuestreamError `bad-input` @example linear('10s', { max: '5m' }) */
export function linear(
  delay: DurationInput,
  options: SpreadOptions & { readonly max?: DurationInput | undefined } = {},
): Backoff {
  checkNames(options, ['max', 'jitter'], 'linear', 'bad-input');
  return {
    kind: 'linear',
    delayMs: durationMs(delay, 'linear delay'),
    maxMs: durationMs(options.max ?? '1h', 'linear max'),
    jitter: jitterOf(options.jitter, 'none'),
  };
}

/**
 * base × factor^(failures − 1), at most `max` (default 1 h), full jitter by default. The factor is 1 to 100, default 2.
 *
 * @throws DuestreamError `bad-input`
 * @example exponential('10s', { max: '1h' })
 */
export function exponential(
  base: DurationInput,
  options: SpreadOptions & { readonly factor?: number | undefined; readonly max?: DurationInput | undefined } = {},
): Backoff {
  checkNames(options, ['factor', 'max', 'jitter'], 'exponential', 'bad-input');
  const factor: unknown = options.factor ?? 2;
  if (!(typeof factor === 'number' && factor >= 1 && factor <= 100)) {
    throw new DuestreamError('bad-input', `exponential factor is ${show(factor)}; allowed: a number from 1 to 100`);
  }
  return {
    kind: 'exponential',
    delayMs: durationMs(base, 'exponential base'),
    factor,
    maxMs: durationMs(options.max ?? '1h', 'exponential max'),
    jitter: jitterOf(options.jitter, 'full'),
  };
}

/** The listed delays in order; the last one repeats. @throws DuestreamError `bad-input` @example ladder(['1m', '10m', '1h']) */
export function ladder(steps: readonly DurationInput[], options: SpreadOptions = {}): Backoff {
  checkNames(options, ['jitter'], 'ladder', 'bad-input');
  if (!Array.isArray(steps))
    throw new DuestreamError('bad-input', `ladder is ${show(steps)}; allowed: a list of delays`);
  if (steps.length === 0 || steps.length > 100) {
    throw new DuestreamError('bad-input', `ladder has ${steps.length} steps; allowed: 1 to 100`);
  }
  return {
    kind: 'ladder',
    stepsMs: steps.map((step, index) => durationMs(step, `ladder step ${index + 1}`)),
    jitter: jitterOf(options.jitter, 'none'),
  };
}

/** 10 s, 20 s, 40 s … 1 h, with full jitter. */
export const defaultBackoff: Backoff = exponential('10s', { max: '1h' });

/** Whether a value that came from outside is a backoff in its data form. */
export function isBackoff(value: unknown): value is Backoff {
  if (typeof value !== 'object' || value === null) return false;
  const { kind, jitter, delayMs, maxMs, factor, stepsMs } = value as Readonly<Record<string, unknown>>;
  const ms = (one: unknown) => typeof one === 'number' && one >= 0 && Number.isFinite(one);
  if (!isJitter(jitter)) return false;
  if (kind === 'ladder') return Array.isArray(stepsMs) && stepsMs.length > 0 && stepsMs.every(ms);
  if (kind === 'fixed') return ms(delayMs);
  return ms(delayMs) && ms(maxMs) && (kind === 'linear' || (kind === 'exponential' && ms(factor)));
}

/**
 * A backoff in either form, made by its own function, which checks it: it may come from a place without types.
 *
 * @throws DuestreamError `bad-input`
 * @example storable({ kind: 'fixed', delay: '5s' }) // { kind: 'fixed', delayMs: 5000, jitter: 'none' }
 */
export function storable(backoff: BackoffInput): Backoff {
  switch (backoff?.kind) {
    case 'fixed': {
      const { delay, ...options } = worded(backoff, ['delay', 'jitter']);
      return fixed(delay as DurationInput, options);
    }
    case 'linear': {
      const { delay, ...options } = worded(backoff, ['delay', 'max', 'jitter']);
      return linear(delay as DurationInput, options);
    }
    case 'exponential': {
      const { delay, ...options } = worded(backoff, ['delay', 'factor', 'max', 'jitter']);
      return exponential(delay as DurationInput, options);
    }
    case 'ladder': {
      const { steps, ...options } = worded(backoff, ['steps', 'jitter']);
      return ladder(steps as readonly DurationInput[], options);
    }
    default:
      throw unknownBackoff(backoff);
  }
}

/** Without its kind, and with the names of the functions: `delayMs` is `delay`. */
function worded({ kind, ...given }: BackoffInput, words: readonly string[]): Readonly<Record<string, unknown>> {
  const entries = Object.entries(given).map(([name, value]): readonly [string, unknown] => {
    const word = name.replace(/Ms$/, '');
    if (word !== name && Object.hasOwn(given, word)) {
      throw new DuestreamError('bad-input', `${word} and ${name} of a backoff are both given; allowed: one of them`);
    }
    return [words.includes(word) ? word : name, value];
  });
  const said = Object.fromEntries(entries);
  checkNames(said, words, kind, 'bad-input');
  return said;
}

function unknownBackoff(backoff: unknown): DuestreamError {
  const { type, delay } = (typeof backoff === 'object' && backoff !== null ? backoff : {}) as Record<string, unknown>;
  // As BullMQ has it.
  const isOther = (type === 'fixed' || type === 'exponential') && typeof delay === 'number';
  const words = isOther
    ? `is { type: '${type}', delay: ${delay} }; did you mean ${type}(${delay})?`
    : `is ${show(backoff)}; allowed: fixed(…), linear(…), exponential(…), ladder(…), or an object with ${BACKOFF_FORMS}`;
  return new DuestreamError('bad-input', `backoff ${words}; a function only for a queue, because it cannot be stored`);
}

/** Milliseconds to wait after the given number of failures (1 after the first). `random` is in [0, 1). */
export function backoffMs(policy: BackoffPolicy, failures: number, random: number): number {
  if (typeof policy === 'function') return askedMs(policy(failures));
  return jitteredMs(plainMs(policy, failures), policy.jitter, random);
}

/** A promise is no delay, and nobody waits for it: one that rejects must not end the process. */
function askedMs(delay: DurationInput): number {
  if (isPromise(delay)) Promise.resolve(delay).catch(() => undefined);
  return durationMs(delay, 'backoff');
}

function plainMs(backoff: Backoff, failures: number): number {
  const nth = Math.max(1, failures);
  switch (backoff.kind) {
    case 'fixed':
      return backoff.delayMs;
    case 'linear':
      return Math.min(backoff.maxMs, backoff.delayMs * nth);
    case 'exponential':
      return Math.min(backoff.maxMs, backoff.delayMs * backoff.factor ** Math.min(nth - 1, 1000));
    case 'ladder':
      return backoff.stepsMs[Math.min(nth, backoff.stepsMs.length) - 1] ?? 0;
  }
}
