/** What a queue keeps of its jobs when they are over: for how long, how many, and whether what handlers returned. */

import { checkNames, durationIn, historyRanges, wholeNumber } from '../kernel/checks.ts';
import { type DurationInput, show } from '../kernel/duration.ts';
import { DuestreamError } from '../kernel/errors.ts';

/** What a queue keeps of jobs that are over. */
export interface HistoryOptions {
  /** How long a job is kept after its end: `1s` to `365d`. Default `7d`. */
  readonly keep?: DurationInput | undefined;
  /** How many jobs the queue keeps at most, the latest: 1 to 10,000,000. Default 100,000. Each partition has its share. */
  readonly max?: number | undefined;
  /** Whether what a handler returns is kept, as JSON. Default false. */
  readonly result?: boolean | undefined;
  /** A result of more bytes of JSON is not kept, and the record says so: 1 to 262,144. Default 16,384. */
  readonly resultBytesMax?: number | undefined;
}

/** What holds for a queue. */
export interface History {
  /** False: nothing more is kept, and what is there goes in its time. */
  readonly isOn: boolean;
  readonly keepMs: number;
  readonly max: number;
  readonly keepsResult: boolean;
  readonly resultBytesMax: number;
}

const HISTORY_OPTIONS: readonly string[] = Object.keys({
  keep: 0,
  max: 0,
  result: 0,
  resultBytesMax: 0,
} satisfies Record<keyof HistoryOptions, number>);

const OFF: History = Object.freeze({
  isOn: false,
  keepMs: historyRanges.keepMs.default,
  max: historyRanges.max.default,
  keepsResult: false,
  resultBytesMax: historyRanges.resultBytesMax.default,
});

/** @throws DuestreamError `bad-input` */
export function parseHistory(input: HistoryOptions | boolean | undefined): History | undefined {
  if (input === undefined) return undefined;
  if (input === false) return OFF;
  if (input === true) return Object.freeze({ ...OFF, isOn: true });
  checkNames(input, HISTORY_OPTIONS, 'history', 'bad-input');
  const { keep, max = OFF.max, result = false, resultBytesMax = OFF.resultBytesMax } = input;
  if (typeof result !== 'boolean') {
    throw new DuestreamError('bad-input', `history.result is ${show(result)}; allowed: true or false`);
  }
  return Object.freeze({
    isOn: true,
    keepMs: keep === undefined ? OFF.keepMs : durationIn(keep, 'history.keep', historyRanges.keepMs),
    max: wholeNumber(max, { what: 'history.max', ...historyRanges.max }),
    keepsResult: result,
    resultBytesMax: wholeNumber(resultBytesMax, { what: 'history.resultBytesMax', ...historyRanges.resultBytesMax }),
  });
}

/** As it stands in the registry of queues. */
export const encodeHistory = ({ isOn, keepMs, max, keepsResult, resultBytesMax }: History): string =>
  JSON.stringify({ on: isOn, keepMs, max, result: keepsResult, resultBytesMax });

/** What somebody else wrote there and cannot be read keeps nothing, and stops nobody. */
export function decodeHistory(text: string | null | undefined): History | undefined {
  if (text === null || text === undefined) return undefined;
  try {
    const { on, keepMs, max, result, resultBytesMax } = JSON.parse(text) as Readonly<Record<string, unknown>>;
    const isSane = [keepMs, max, resultBytesMax].every((one) => Number.isInteger(one) && Number(one) > 0);
    if (!isSane) return undefined;
    return Object.freeze({
      isOn: on === true,
      keepMs: Number(keepMs),
      max: Number(max),
      keepsResult: result === true,
      resultBytesMax: Number(resultBytesMax),
    });
  } catch {
    return undefined;
  }
}

/** The part of the bound that one of several partitions has. */
export const shareOf = (history: History, partitions: number): History =>
  partitions === 1 ? history : Object.freeze({ ...history, max: Math.ceil(history.max / partitions) });
