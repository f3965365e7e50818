/** What the methods of dead letters are given, checked: a filter, and the bounds of the call. */

import { wholeNumber } from '../../job/queue.ts';
import { show } from '../../kernel/duration.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import { checkNames } from '../../kernel/option-names.ts';
import { parseReplayed } from '../jobs/replay.ts';
import { type DeadLetterFilter, FILTER_OPTIONS, parseFilter } from './filter.ts';
import type { SearchAsk } from './scan.ts';

/** Bounds of one call, and where it begins. */
export interface DeadLetterBounds {
  /** Dead letters that may match: 1 to 1,000 of `list` (default 100), to 100,000 of the others (default 1,000). */
  readonly limit?: number | undefined;
  /** Dead letters that may be looked at: 1 to 1,000,000. Default 10,000 of `list`, else 100,000. */
  readonly scanMax?: number | undefined;
  /** Where the call before ended, with the same filter and options. Its ages and its `delay` still count from when it began. */
  readonly cursor?: string | undefined;
}

/** What one method takes. */
interface Takes {
  readonly method: string;
  readonly options: readonly string[];
  /** The defaults, and the most that may be asked for. */
  readonly limit: number;
  readonly limitMax: number;
  readonly scanMax: number;
  /** It changes what it finds. */
  readonly isWork: boolean;
}

const BOUNDS = ['limit', 'scanMax', 'cursor'];
const WORK = [...BOUNDS, 'all', 'dryRun', 'onProgress'];
const EVERY = Number.MAX_SAFE_INTEGER;
const MANY = { limit: 1000, limitMax: 100_000, scanMax: 100_000, isWork: true };
export const PAGE: Takes = {
  method: 'list',
  options: BOUNDS,
  limit: 100,
  limitMax: 1000,
  scanMax: 10_000,
  isWork: false,
};
export const GROUPS: Takes = {
  method: 'groups',
  options: ['scanMax', 'cursor'],
  limit: EVERY,
  limitMax: EVERY,
  scanMax: 100_000,
  isWork: false,
};
export const REPLAY: Takes = { ...MANY, method: 'replayMany', options: [...WORK, 'delay', 'at', 'over', 'durability'] };
export const PURGE: Takes = { ...MANY, method: 'purge', options: WORK };
const SCAN_MAX = 1_000_000;
export const OVER_MS_MAX = 30 * 86_400_000;

/** @throws DuestreamError `bad-input` */
export function searchOf(
  input: DeadLetterFilter,
  bounds: DeadLetterBounds & { readonly all?: boolean | undefined },
  { method, options, limit, limitMax, scanMax, isWork }: Takes,
): SearchAsk {
  const filter = parseFilter(input, `the filter of ${method}`);
  checkNames(bounds, options, method, 'bad-input');
  if (isWork && filter.isAll && bounds.all !== true) {
    throw new DuestreamError(
      'bad-input',
      `the filter of ${method} names nothing; allowed: at least one of ${FILTER_OPTIONS.join(', ')}, or all: true`,
    );
  }
  return {
    filter,
    cursor: bounds.cursor,
    limit: wholeNumber(bounds.limit ?? limit, { what: 'limit', min: 1, max: limitMax }),
    scanMax: wholeNumber(bounds.scanMax ?? scanMax, { what: 'scanMax', min: 1, max: SCAN_MAX }),
  };
}

/** @throws DuestreamError `bad-input` */
export function parseDeadLetterId(input: unknown): string {
  const target = parseReplayed(input);
  if (target.deadLetterId !== undefined) return target.deadLetterId;
  throw new DuestreamError('bad-input', `dead letter is ${show(input)}; allowed: its id, such as 1763719000000-0`);
}
