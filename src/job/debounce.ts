/**
 * Many calls, one job: what a call says of the others with its id. It is sent in the letter `d` of the header, as its order
 * and how much longer than the wait the longest wait is. The higher order is the newer call. Redis stores the ceiling in its
 * place, the latest due time that calls may move the job to, and the order in the letter `m`: see `lua/lib/debounce.lua`.
 */
import { type DurationInput, durationMs, show } from '../kernel/duration.ts';
import { DuestreamError } from '../kernel/errors.ts';

/** How long a job waits for further calls with its id. */
export interface Debounce {
  /** The job is due so long after the last call. */
  readonly wait: DurationInput;
  /** But at most so long after the first call. Default: as late as a job may be due. */
  readonly max?: DurationInput | undefined;
}

export interface DebounceMs {
  readonly waitMs: number;
  /** Undefined: the horizon. */
  readonly maxMs: number | undefined;
}

export const DEBOUNCE_ALLOWED =
  '`{ wait, max }`: durations of 1 ms to the horizon (10 years), max at least as long as wait, or left out';

const NAMES: readonly string[] = ['wait', 'max'];

/** @throws DuestreamError `bad-input` */
export function parseDebounce(given: unknown, what: string): DebounceMs {
  const fields = typeof given === 'object' && given !== null && !Array.isArray(given) ? given : {};
  const odd = Object.keys(fields).find((name) => !NAMES.includes(name));
  const { wait, max } = fields as { readonly wait?: DurationInput; readonly max?: DurationInput };
  if (wait === undefined || odd !== undefined) {
    throw new DuestreamError(
      'bad-input',
      `${what} is ${odd === undefined ? show(given) : `an object with ${show(odd)}`}; allowed: { wait, max }, such as { wait: '1s', max: '5s' }`,
    );
  }
  const waitMs = lengthOf(wait, `wait of ${what}`);
  const maxMs = max === undefined ? undefined : lengthOf(max, `max of ${what}`);
  if (maxMs === undefined || maxMs >= waitMs) return { waitMs, maxMs };
  throw new DuestreamError(
    'bad-input',
    `max of ${what} is ${show(max)}, and wait is ${show(wait)}; allowed: a max that is at least as long as wait`,
  );
}

/** In whole milliseconds, as a part of one too soon is too soon. */
function lengthOf(given: DurationInput, what: string): number {
  const ms = durationMs(given, what);
  if (ms > 0) return Math.ceil(ms);
  throw new DuestreamError('bad-input', `${what} is ${show(given)}; allowed: 1 ms or longer`);
}

/** The letter as it is sent. @example debounceLetter(1_763_719_000_000, { waitMs: 1000, maxMs: 5000 }) // ';d=mi8zh2bs.334' */
export const debounceLetter = (order: number, { waitMs, maxMs }: { waitMs: number; maxMs: number }): string =>
  `;d=${order.toString(36)}.${(maxMs - waitMs).toString(36)}`;

/** What Redis makes of a call, for whoever plays it without Redis: as `lua/lib/debounce.lua`. */
export interface SentCall {
  readonly order: number;
  /** How much longer the longest wait is. */
  readonly restMs: number;
}

export function sentIn(record: string): SentCall {
  const [, order = '0', rest = '0'] = /^1\w+[^|]*?;d=(\w+)\.(\w+)[;|]/.exec(record) ?? [];
  return { order: Number.parseInt(order, 36), restMs: Number.parseInt(rest, 36) };
}

/** The latest due time to which calls may move a job; undefined for one that is not debounced. */
export function ceilingIn(record: string): number | undefined {
  const [, ceiling] = /^1\w+[^|]*?;d=(\w+)[;|]/.exec(record) ?? [];
  return ceiling === undefined ? undefined : Number.parseInt(ceiling, 36);
}

/** @param mark as `markOf` has it, with the order in the place of the asked due time */
export function storedRecord(
  record: string,
  { askedMs, ceilingMs, mark }: { readonly askedMs: number; readonly ceilingMs: number; readonly mark: string },
): string {
  const bar = record.indexOf('|');
  const header = record.slice(record.search(/[;|]/), bar).replace(/;[dm]=[^;]*/g, '');
  const letters = `;d=${ceilingMs.toString(36)};m=${mark.replace(' ', '.')}`;
  return `1${askedMs.toString(36)}${header}${letters}${record.slice(bar)}`;
}

/** The record of a debounced dead letter, with the mark of a tombstone that is of a later call. */
export function withLaterMark(record: string, mark: string): string {
  const [, order = ''] = /^1[^|]*?;m=(\w+)\./.exec(record) ?? [];
  const later = Number.parseInt(mark, 36);
  const isOlder = ceilingIn(record) !== undefined && later > Number.parseInt(order, 36);
  return isOlder ? record.replace(/;m=\w+\.[0-9a-f]+/, `;m=${mark.replace(' ', '.')}`) : record;
}

/** The same call with another order: the clock of whoever called before was ahead. */
export const withOrder = (record: string, order: number): string =>
  record.replace(/;d=\w+\./, `;d=${order.toString(36)}.`);
