/**
 * What a job is: an id, a name, JSON data and a due time in a queue. Names and ids have one grammar each, checked here
 * and nowhere else, so that a key, a log line or a shell argument can carry them without escaping.
 */
import { show } from '../kernel/duration.ts';
import { DuestreamError } from '../kernel/errors.ts';
import { groupOf, type JobHeaders, setInId } from './labels.ts';
import type { Attempted } from './outcome.ts';
import type { JobTargetOptions } from './target.ts';

declare const brand: unique symbol;
type Branded<T, Name extends string> = T & { readonly [brand]: Name };

/** An id that has passed `parseJobId`. */
export type JobId = Branded<string, 'JobId'>;
/** The number of one start of one job: it only grows, so a store can refuse the effects of an older start. */
export type Token = Branded<string, 'Token'>;
/** The id of an entry in the ready stream, such as `1763719000000-0`. */
export type EntryId = Branded<string, 'EntryId'>;

/** Longest id in bytes. */
export const ID_BYTES_MAX = 128;
/** The name of every compensation job. */
export const ABANDONED = 'duestream.abandoned';
/** Name of a job that was not given one; its handler is `default`. */
export const DEFAULT_NAME = 'default';

const NAME = /^[a-z0-9][a-z0-9._-]{0,63}$/;
const JOB_NAME = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$/;
const USER_ID = /^[!-z|~]{1,128}$/;
/** What follows a group in braces: `{acme}order-7`. */
const IN_GROUP = /^\{[^{}]+\}(?=[!-z|~]+$)/;
/** Ids that duestream makes may have a user's whole id inside. */
const ANY_ID = /^[!-~]{1,192}$/;

/** How many members of a set ended in each way. After a crash of Redis a count may be one too high. */
export interface SetEnds {
  readonly name: string;
  readonly done: number;
  readonly dead: number;
  readonly cancelled: number;
  readonly expired: number;
}

/** A job as a handler sees it. */
export interface Job<Data = unknown> {
  readonly id: string;
  readonly queue: string;
  readonly name: string;
  readonly data: Data;
  /** Texts beside the data, by names in lower case, such as a `traceparent`; empty where nobody gave any. */
  readonly headers: JobHeaders;
  /** Of a queue with a target: what this job says of its request. */
  readonly target?: JobTargetOptions | undefined;
  /** The due time of this start: epoch ms by the clock of the Redis primary. */
  readonly dueMs: number;
  /** The due time that the producer asked for. It differs from `dueMs` after a retry or a defer. */
  readonly askedDueMs: number;
  /** How often handlers of this job were started, this start included. */
  readonly attempt: number;
  readonly failures: number;
  readonly crashes: number;
  /**
   * What starts of this life of the job have in common: the same for retries, edits and replays, another one for a new job of this
   * id. `inbox.once` of `duestream/sql` knows a job by it.
   */
  readonly mark: string;
  /** Whether a foreign producer put it with a plain ZADD: then it has an id and no data. */
  readonly bare: boolean;
  /** Of the callback of a set: how its members ended. Undefined for every other job. */
  readonly set?: SetEnds | undefined;
  /** The last failures, oldest first, at most 5. */
  readonly history: readonly Attempted[];
}

/** The id of ours or of the user, checked. @throws DuestreamError `bad-input` */
export function parseJobId(input: unknown, { internal = false } = {}): JobId {
  // As a part of a URL these two mean another place, however they are written.
  const isDots = input === '.' || input === '..';
  if (typeof input === 'string' && !isDots && (internal ? ANY_ID : USER_ID).test(input)) return input as JobId;
  if (typeof input === 'string' && isInGroup(input)) return input as JobId;
  throw new DuestreamError(
    'bad-input',
    `job id is ${show(input)}; allowed: 1 to ${ID_BYTES_MAX} printable ASCII characters without space, { and }, other than . and .., behind a group in braces or not`,
  );
}

/** Or among the members of a set, which a call that is made again says so. */
const isInGroup = (id: string): boolean =>
  id.length <= ID_BYTES_MAX && IN_GROUP.test(id) && (groupOf(id) ?? setInId(id)) !== undefined;

/** A queue or namespace name, checked. @throws DuestreamError `bad-input` */
export function parseName(input: unknown, what: 'queue' | 'namespace' | 'limit'): string {
  if (typeof input === 'string' && NAME.test(input)) return input;
  throw new DuestreamError(
    'bad-input',
    `${what} name is ${show(input)}; allowed: 1 to 64 of a-z 0-9 . _ - beginning with a letter or digit`,
  );
}

/** The name of a job, which picks its handler, checked. @throws DuestreamError `bad-input` */
export function parseJobName(input: unknown): string {
  if (input === undefined) return DEFAULT_NAME;
  if (typeof input === 'string' && JOB_NAME.test(input)) return input;
  throw new DuestreamError(
    'bad-input',
    `job name is ${show(input)}; allowed: 1 to 64 of A-Z a-z 0-9 . _ : - beginning with a letter or digit`,
  );
}
