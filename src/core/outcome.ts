/**
 * What a handler can say about its job. Returning means done; throwing means retry after the queue's backoff; the two
 * errors here say something else. They are data for the settle station, not failures of duestream.
 */
import { type DurationInput, durationMs } from './duration.ts';

/**
 * Throw it to put the job aside without using up an attempt, for example when a lock is taken.
 *
 * @param delay how long to wait: milliseconds, `"30s"`, or an ISO 8601 duration; jitter of up to a quarter is added.
 * @example if (!(await lock.tryAcquire())) throw new Defer('5s');
 */
export class Defer extends Error {
  override readonly name = 'Defer';
  readonly delayMs: number;

  constructor(delay: DurationInput, reason = 'deferred') {
    super(reason);
    this.delayMs = durationMs(delay, 'Defer delay');
  }
}

/**
 * Throw it when trying again cannot help: the job goes to the dead letters at once, with this reason.
 *
 * @example if (customer.deleted) throw new Unrecoverable('customer is gone');
 */
export class Unrecoverable extends Error {
  override readonly name = 'Unrecoverable';
}

/** How one start of a job ended, and what is to be done about it. */
export type Outcome =
  | { readonly kind: 'done' }
  | { readonly kind: 'retry'; readonly delayMs: number; readonly error: Attempted }
  | { readonly kind: 'defer'; readonly delayMs: number }
  | {
      readonly kind: 'dead';
      readonly reason: string;
      readonly error: Attempted;
      /** A job that is scheduled in the same step, to take half-done work back. */
      readonly compensation?: { readonly member: string; readonly record: string };
    };

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
}
