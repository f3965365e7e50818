/**
 * What a handler can say about its job. Returning means done; throwing means retry after the queue's backoff; the three
 * errors here say something else. They are data for the acknowledgement, not failures of duestream.
 */

import { checkNames } from '../kernel/checks.ts';
import { type DurationInput, durationMs, show } from '../kernel/duration.ts';
import { DuestreamError, knownByMark } from '../kernel/errors.ts';
import { type Jitter, jitterOf } from '../kernel/spread.ts';
import type { StartAccount } from './account.ts';
import { UNFIT } from './labels.ts';

/** What a job can close when it is put aside. */
export type CloseScope = 'group' | 'queue';
const SCOPES: readonly unknown[] = ['group', 'queue', undefined];

/** How a job is put aside. */
export interface DeferOptions {
  /** Why, for people who look at the job: the last reason is kept, within 800 characters. */
  readonly reason?: string | undefined;
  /** Spreads jobs that wait for the same thing: `full` over 0…delay, `equal` over half…delay. Default `none`. */
  readonly jitter?: Jitter | undefined;
  /**
   * For so long nobody of the job's group, or of its queue, is let through: the other side said 429. Jobs that were let through
   * before start all the same. A queue that is not gated closes nothing, nor does a job without a group close its group.
   */
  readonly close?: CloseScope | undefined;
  /** Told behind the reason, as the causes of all errors are. */
  readonly cause?: unknown;
}

const DEFER_OPTIONS: readonly string[] = Object.keys({
  reason: 0,
  jitter: 0,
  close: 0,
  cause: 0,
} satisfies Record<keyof DeferOptions, number>);

/**
 * Throw it to put the job aside without using up an attempt, for example when a lock is taken. How often that happened and the
 * last reason are kept with the job.
 *
 * @param delay how long to wait: milliseconds, `"30s"`, or an ISO 8601 duration.
 * @param options the reason as a text, or an object of options.
 * @throws DuestreamError `bad-input`
 * @example throw new Defer('30s', { reason: 'the provider says 429', close: 'queue' });
 * @example if (!(await lock.tryAcquire())) throw new Defer('5s', { reason: 'account is locked', jitter: 'equal' });
 */
export class Defer extends Error {
  static {
    knownByMark(Defer, 'Defer');
  }

  override readonly name = 'Defer';
  readonly delayMs: number;
  readonly jitter: Jitter;
  readonly close: CloseScope | undefined;

  constructor(delay: DurationInput, options: string | DeferOptions = {}) {
    if (typeof options !== 'string') checkNames(options, DEFER_OPTIONS, 'Defer', 'bad-input');
    const { reason, jitter, close, cause } = typeof options === 'string' ? { reason: options } : options;
    if (!SCOPES.includes(close)) {
      throw new DuestreamError('bad-input', `close of Defer is ${show(close)}; allowed: group or queue`);
    }
    super(reason ?? 'deferred', cause === undefined ? {} : { cause });
    this.delayMs = durationMs(delay, 'Defer delay');
    this.jitter = jitterOf(jitter, 'none');
    this.close = close;
  }
}

/** Of a failure that says how long the next attempt has to wait. */
export interface RetryOptions {
  /** What went wrong, for people who look at the job: kept in its history, within 800 characters. */
  readonly reason?: string | undefined;
  /** Told behind the reason, as the causes of all errors are. */
  readonly cause?: unknown;
}

const RETRY_OPTIONS: readonly string[] = Object.keys({ reason: 0, cause: 0 } satisfies Record<
  keyof RetryOptions,
  number
>);

/**
 * Throw it when an attempt failed and the other side said when to come back, as with `Retry-After`. It is a failure as any other,
 * and uses an attempt; the next one waits that long, or for the backoff of the queue where that is longer. A `Defer` uses no
 * attempt, and so may go on for ever.
 *
 * @param after how long to wait at least: milliseconds, `"30s"`, or an ISO 8601 duration
 * @param options the reason as a text, or an object of options
 * @throws DuestreamError `bad-input`
 * @example if (answer.status === 503) throw new Retry('2m', 'the provider is being mended');
 */
export class Retry extends Error {
  static {
    knownByMark(Retry, 'Retry');
  }

  override readonly name = 'Retry';
  readonly afterMs: number;

  constructor(after: DurationInput, options: string | RetryOptions = {}) {
    if (typeof options !== 'string') checkNames(options, RETRY_OPTIONS, 'Retry', 'bad-input');
    const { reason, cause } = typeof options === 'string' ? { reason: options } : options;
    super(reason ?? 'failed', cause === undefined ? {} : { cause });
    this.afterMs = durationMs(after, 'Retry after');
  }
}

/**
 * Throw it when trying again cannot help: the job goes to the dead letters at once, with this reason.
 *
 * @example if (customer.deleted) throw new Unrecoverable('customer is gone');
 */
export class Unrecoverable extends Error {
  static {
    knownByMark(Unrecoverable, 'Unrecoverable');
  }

  override readonly name = 'Unrecoverable';
}

/** How one start of a job ended, and what is to be done about it. */
export type Outcome =
  | { readonly kind: 'done' }
  | { readonly kind: 'retry'; readonly delayMs: number; readonly error: Attempted }
  /** Without a deferral its worker gives it back, which the handler did not ask for. */
  | {
      readonly kind: 'defer';
      readonly delayMs: number;
      readonly deferral?: Deferral | undefined;
      readonly closing?: Closing | undefined;
    }
  | {
      readonly kind: 'dead';
      readonly reason: string;
      readonly error: Attempted;
      /** A job that is scheduled in the same step, to take half-done work back. */
      readonly compensation?: { readonly member: string; readonly record: string };
    };

/** A negative acknowledgement: the start did not complete its job. */
export type Nack = Exclude<Outcome, { kind: 'done' }>;

/** The job's group, or its queue, is closed for a time. */
export interface Closing {
  readonly scope: CloseScope;
  readonly forMs: number;
  readonly reason: string;
}

/** A handler put its job aside. */
export interface Deferral {
  readonly atMs: number;
  readonly reason: string;
  /** Which worker ran the attempt, and for how long. */
  readonly worker?: string | undefined;
  readonly tookMs?: number | undefined;
}

/** A start that used no attempt of its budget: its handler put it aside, or its worker stopped and handed it back. */
export interface PutAside extends Deferral {
  readonly kind: 'deferred' | 'handed-back';
  /** Undefined where a version before this one has written it. */
  readonly attempt?: number | undefined;
}

/** How often the handler of a job put it aside, and why it did the last time. */
export interface Deferred {
  /** 0: only workers handed it back. */
  readonly times: number;
  readonly lastMs: number;
  readonly reason: string;
  /** The last starts that were put aside or handed back, the oldest first, at most 5. */
  readonly starts: readonly PutAside[];
}

/** How far the handler of a job said that it is. */
export interface JobProgress {
  /** From 0 to 1. */
  readonly fraction: number;
  readonly text: string | undefined;
  /** When it said so, in epoch ms by the clock of Redis. */
  readonly atMs: number;
}

const PROGRESS_BYTES_MAX = 200;

/** @throws DuestreamError `bad-input` */
export function parseProgress(fraction: unknown, text: unknown): Pick<JobProgress, 'fraction' | 'text'> {
  if (typeof fraction !== 'number' || !(fraction >= 0 && fraction <= 1)) {
    throw new DuestreamError('bad-input', `progress is ${show(fraction)}; allowed: a number from 0 to 1`);
  }
  if (text === undefined) return { fraction, text };
  const allowed = `at most ${PROGRESS_BYTES_MAX} bytes without control characters`;
  if (typeof text !== 'string' || UNFIT.test(text)) {
    throw new DuestreamError('bad-input', `the text of progress is ${show(text)}; allowed: ${allowed}`);
  }
  const bytes = Buffer.byteLength(text);
  if (bytes <= PROGRESS_BYTES_MAX) return { fraction, text };
  throw new DuestreamError('bad-input', `the text of progress has ${bytes} bytes; allowed: ${allowed}`);
}

/** Why the signal of a handler aborted. */
export type AbortReason = 'timeout' | 'cancelled' | 'lease lost' | 'shutdown';

/** One line of a job's history: when, at which attempt, what kind of end, and its message. */
export interface Attempted {
  readonly atMs: number;
  readonly attempt: number;
  readonly kind: 'failure' | 'timeout' | 'crash' | 'refused';
  readonly message: string;
  /**
   * Where it was thrown, and where its causes were: frames without those of Node and of duestream, at most 2,000 characters.
   * Of the last failure, in queues that keep a history of each; not while Redis is at its memory limit.
   */
  readonly stack?: string | undefined;
  /** Which worker ran this attempt, and for how long. Not for a crash, whose worker could not say, nor for what never ran. */
  readonly worker?: string | undefined;
  readonly tookMs?: number | undefined;
  /** Why it started when it did. Not for a crash. */
  readonly account?: StartAccount | undefined;
  /** Of a crash: when its worker began, and when Redis last heard of that worker, in epoch ms by the clock of Redis. */
  readonly beganMs?: number;
  readonly signMs?: number;
}
