/** Which dead letters are meant: by reason, name, tag, set, job, error and age. All that are named have to hold. */
import { decodeRecord } from '../../job/codec.ts';
import { parseTag } from '../../job/labels.ts';
import { setOfRecord, tagsOfRecord } from '../../job/record-header.ts';
import { checkNames } from '../../kernel/checks.ts';
import { type DurationInput, durationMs, show } from '../../kernel/duration.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import type { DeadLetter } from '../../redis/read/inspect.ts';

/** Which dead letters are meant. Without any field: all of them. */
export interface DeadLetterFilter {
  /** Exactly this reason, such as `attempts-exhausted` or `no-handler`. */
  readonly reason?: string | undefined;
  /** Jobs of this name. */
  readonly name?: string | undefined;
  /** Jobs that have this tag. */
  readonly tag?: string | undefined;
  /** Members of this set. */
  readonly set?: string | undefined;
  /** The job of this id. */
  readonly id?: string | undefined;
  /** The last error, as `groups` tells it: numbers, ids and quoted texts in it count as alike. */
  readonly error?: string | undefined;
  /** Dead for at least this long. */
  readonly olderThan?: DurationInput | undefined;
  /** Dead for at most this long. */
  readonly newerThan?: DurationInput | undefined;
}

/** A filter that was checked. */
export interface Filter {
  readonly reason: string | undefined;
  readonly name: string | undefined;
  readonly tag: string | undefined;
  readonly set: string | undefined;
  readonly id: string | undefined;
  readonly error: string | undefined;
  /** Undefined: of any age, also of the future of this clock. */
  readonly olderMs: number | undefined;
  readonly newerMs: number | undefined;
  /** Nothing has to be read for it but reason and age. */
  readonly isPlain: boolean;
  /** It names nothing: all are meant. */
  readonly isAll: boolean;
}

const TEXTS = ['reason', 'name', 'set', 'id', 'error'] as const;

export const FILTER_OPTIONS: readonly string[] = Object.keys({
  reason: 0,
  name: 0,
  tag: 0,
  set: 0,
  id: 0,
  error: 0,
  olderThan: 0,
  newerThan: 0,
} satisfies Record<keyof DeadLetterFilter, number>);

/** @throws DuestreamError `bad-input` */
export function parseFilter(filter: DeadLetterFilter, owner: string): Filter {
  checkNames(filter, FILTER_OPTIONS, owner, 'bad-input');
  for (const name of TEXTS) checkText(filter[name], name);
  if (filter.tag !== undefined) parseTag(filter.tag);
  const { reason, name, tag, set, id, error, olderThan, newerThan } = filter;
  // A reason as groups tell it is found by us: Redis compares texts.
  const isTold = reason !== undefined && /[#…]/.test(reason);
  const isPlain = !isTold && [name, tag, set, id, error, newerThan].every((one) => one === undefined);
  return {
    reason,
    name,
    tag,
    set,
    id,
    error,
    isPlain,
    olderMs: olderThan === undefined ? undefined : durationMs(olderThan, 'olderThan'),
    newerMs: newerThan === undefined ? undefined : durationMs(newerThan, 'newerThan'),
    isAll: isPlain && reason === undefined && olderThan === undefined,
  };
}

function checkText(value: unknown, what: string): void {
  if (value === undefined || (typeof value === 'string' && value !== '' && value.length <= TEXT_MAX)) return;
  throw new DuestreamError('bad-input', `${what} is ${show(value)}; allowed: a text of 1 to ${TEXT_MAX} characters`);
}

const TEXT_MAX = 1024;

/** Whether a dead letter is meant. */
export function matches(letter: DeadLetter, filter: Filter, nowMs: number): boolean {
  const ageMs = nowMs - Number(letter.entry.split('-')[0]);
  if (filter.olderMs !== undefined && ageMs < filter.olderMs) return false;
  if (filter.newerMs !== undefined && ageMs > filter.newerMs) return false;
  if (filter.reason !== undefined && ![letter.reason, alike(letter.reason)].includes(filter.reason)) return false;
  if (filter.id !== undefined && letter.id !== filter.id) return false;
  if (filter.tag !== undefined && !tagsOfRecord(letter.record).includes(filter.tag)) return false;
  if (filter.set !== undefined && setOfRecord(letter.record) !== filter.set) return false;
  if (filter.error !== undefined && errorOf(letter) !== filter.error) return false;
  return filter.name === undefined || nameOf(letter.record) === filter.name;
}

/** The name of the job, or undefined where its record cannot be read. */
export function nameOf(record: string): string | undefined {
  try {
    return decodeRecord(record).name;
  } catch {
    return undefined;
  }
}

const ERROR_CHARS = 200;

/**
 * The last error without what differs from job to job: numbers, long ids and what stands in quotes.
 *
 * @example errorOf({ history: [{ message: 'no user 4711 in "eu"' }] }) // 'no user # in "…"'
 */
export const errorOf = ({ history }: Pick<DeadLetter, 'history'>): string => alike(history.at(-1)?.message ?? '');

/**
 * A text of an error, or the reason that a handler gave, without what differs from job to job. The code of an answer stays: 503
 * and 410 are two kinds of trouble.
 *
 * @example alike('HTTP 503 for order 4711') // 'HTTP 503 for order #'
 */
export function alike(text: string): string {
  return text
    .slice(0, 2 * ERROR_CHARS)
    .replace(/"[^"]*"/g, '"…"')
    .replace(/'[^']*'/g, "'…'")
    .replace(/\b[0-9a-f]{8}-[0-9a-f-]{27}\b/gi, '#')
    .replace(/\b(?=\w*\d)[\w-]{16,}\b/g, '#')
    .replace(/\d+/g, (digits, at: number, whole: string) => (isCode(digits, at, whole) ? digits : '#'))
    .slice(0, ERROR_CHARS);
}

/**
 * Whether a number is the code of an answer, as HTTP and SMTP have them: three digits that begin the text, follow a word that
 * announces a code, or stand before a capital.
 */
function isCode(digits: string, at: number, whole: string): boolean {
  if (!/^[1-5]\d\d$/.test(digits)) return false;
  const [before, after] = [whole.slice(Math.max(0, at - 24), at), whole.slice(at + 3, at + 7)];
  if (/[\w.:#-]$/.test(before) || /^[\w#]|^[.:-]\S/.test(after)) return false;
  return before === '' || ANNOUNCES.test(before) || /^ [A-Z][a-z]/.test(after);
}

const ANNOUNCES = /\b(?:http|status|code|error|smtp|response|returned|got|answered|answer)\b[^\w]{0,3}$/i;
