/**
 * A handler that takes a batch: many jobs of a queue in one call, such as the rows of one INSERT. Each of them is a job of its own
 * all the same, with its start, its token, its lease and its end; what one call has in common is the handler alone. `gathering.ts`
 * makes batches of what is started.
 */

import { isGated } from '../../job/gate.ts';
import type { Job } from '../../job/job.ts';
import type { DeferOptions } from '../../job/outcome.ts';
import type { Queue, Untyped } from '../../job/queue.ts';
import type { AnyJobOf, NamedData } from '../../job/types.ts';
import { asConfig, checkFunction, checkNames, durationIn, wholeNumber } from '../../kernel/checks.ts';
import { type DurationInput, show } from '../../kernel/duration.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import type { Log } from '../../kernel/log.ts';
import type { HandlerCalls, HandlerContext } from './handler-context.ts';

/** How batches are made. */
export interface BatchOptions {
  /** Most jobs of a batch: 1 to 1,000, default 100. */
  readonly size?: number | undefined;
  /**
   * How long the first job of a batch waits for others: 0 to `1m`, default `100ms`. 0: a batch is what one call to Redis brought. In a
   * queue with limits at most `1s`, as a job that waits has its place of the limit.
   */
  readonly wait?: DurationInput | undefined;
  /** `group`: the jobs of a batch have one group, or none. Default: any jobs of one partition. */
  readonly by?: 'group' | undefined;
}

/** One job of a batch. */
export interface BatchJobParts {
  /** The fencing number of this start, as `context.token`. */
  readonly token: string;
  /** Aborts when this job is lost to the batch: its lease was lost, it was cancelled, its time is up, or the worker shuts down. */
  readonly signal: AbortSignal;
  /** Keeps a line with this job, as `context.log` does. */
  readonly log: HandlerContext['log'];
  /** Says how many turns of the rate this job has really used, as `context.spent` does. */
  readonly spent: HandlerContext['spent'];
}

/** A job of a queue with this data, whichever name it has. */
type JobOf<Data> = 0 extends 1 & Data
  ? Job<Data>
  : [Data] extends [never]
    ? Job<Data>
    : [Data] extends [NamedData<infer Jobs>]
      ? AnyJobOf<Jobs>
      : Job<Data>;

/** One job of a batch, with its data. */
export type BatchJob<Data = unknown> = JobOf<Data> & BatchJobParts;

/** A job of a batch: the job, or its id. */
export type BatchTarget = string | Pick<Job, 'id' | 'bare'>;

/** The jobs that a batch handler is called with, and what it says of single ones. */
export type Batch<Data = unknown> = BatchOf<JobOf<Data>>;

/** A batch by its jobs, so that the compiler compares these. */
export interface BatchOf<One> extends HandlerCalls {
  /** All of one partition, in the order in which they were started; with `by: 'group'` of one group. */
  readonly jobs: readonly (One & BatchJobParts)[];
  /** The group of its jobs, with `by: 'group'`; undefined where they have none. */
  readonly group: string | undefined;
  /** `{queue:partition}`, as `context.tag`. */
  readonly tag: string;
  /** Aborts when the last of its jobs is lost. Those that are lost before are in `lost`. */
  readonly signal: AbortSignal;
  /** Jobs that are lost to the batch by now: what becomes of them in it does not count. */
  readonly lost: readonly (One & BatchJobParts)[];
  /** Epoch ms, by this machine's clock, at which the first of its jobs is lost because its time is up. */
  readonly deadlineMs: number;
  /** The log of the worker. */
  readonly log: Log;
  /**
   * This job failed, and the others did not: it is tried again, or is dead, as if a handler of its own had thrown this error. What is
   * said last of a job counts.
   *
   * @throws DuestreamError `bad-input` for a job that is not of this batch, and after the handler has ended
   * @example batch.fail(job, new Error('no such account'));
   */
  readonly fail: (job: BatchTarget, error: unknown) => void;
  /**
   * This job is put aside, as if a handler of its own had thrown `Defer`.
   *
   * @throws DuestreamError `bad-input`
   * @example batch.defer(job, '30s', { reason: 'account is locked' });
   */
  readonly defer: (job: BatchTarget, delay: DurationInput, options?: string | DeferOptions) => void;
}

/** Made by `inBatches`, in the place of a handler. */
export type BatchHandler<Data = unknown> = BatchHandlerOf<JobOf<Data>>;

/** A handler of batches, by the jobs that it takes. */
export interface BatchHandlerOf<One> {
  readonly kind: 'duestream.batch';
  readonly size: number;
  readonly waitMs: number;
  readonly by: 'group' | undefined;
  readonly handler: (batch: BatchOf<One>) => unknown;
}

const OPTIONS: readonly string[] = Object.keys({ size: 0, wait: 0, by: 0 } satisfies Record<
  keyof BatchOptions,
  number
>);
const SIZE = { what: 'size', min: 1, max: 1000 };
const SIZE_DEFAULT = 100;
const WAIT_MS = { min: 0, max: 60_000 };
const WAIT_MS_DEFAULT = 100;
/** In a queue with limits. */
export const GATED_WAIT_MS_MAX = 1000;

/**
 * A handler that takes many jobs in one call: for `createWorker`, `defineHandlers` and the test kit, in the place of a handler.
 *
 * Each job ends by itself. When the handler returns, those that it said nothing of are done; `batch.fail` and `batch.defer` say something
 * else of single ones. When it throws, all others have failed. `concurrency` of the worker counts batches.
 *
 * @throws DuestreamError `bad-config` for an option that there is not, or one outside its range
 * @example
 * const worker = createWorker(
 *   rows,
 *   inBatches({ size: 100, wait: '200ms' }, async (batch) => insert(batch.jobs.map((job) => job.data))),
 *   { redis: 'redis://127.0.0.1:6379', concurrency: 2 },
 * );
 */
export function inBatches<Data = Untyped>(
  options: BatchOptions,
  handler: (batch: Batch<Data>) => unknown,
): BatchHandler<Data> {
  return asConfig(() => {
    checkNames(options, OPTIONS, 'inBatches', 'bad-input');
    checkFunction(handler, 'the handler of inBatches');
    const { size = SIZE_DEFAULT, wait = WAIT_MS_DEFAULT, by } = options;
    if (by !== undefined && by !== 'group') {
      throw new DuestreamError('bad-input', `by of inBatches is ${show(by)}; allowed: group, or nothing`);
    }
    return Object.freeze({
      kind: 'duestream.batch' as const,
      size: wholeNumber(size, SIZE),
      waitMs: durationIn(wait, 'wait', WAIT_MS),
      by,
      handler,
    });
  });
}

/** Whether it is what `inBatches` returned, of whichever copy of this package. */
export const isBatchHandler = <Given>(value: Given): value is Extract<Given, BatchHandler<never>> =>
  typeof value === 'object' && value !== null && 'kind' in value && value.kind === 'duestream.batch';

/** What batches need of their queue. @throws DuestreamError `bad-input` */
export function checkBatch({ waitMs, by, size }: Pick<BatchHandler, 'waitMs' | 'by' | 'size'>, queue: Queue): void {
  if (queue.delivery === 'at-most-once') {
    throw refusal(
      queue,
      'delivers at most once: its jobs are over before a batch could say anything of them',
      'a handler for single jobs, or another delivery',
    );
  }
  if (queue.crashes === 1 && size > 1) {
    throw refusal(
      queue,
      'has crashes: 1, and one crash would end all jobs of a batch',
      'crashes of 2 or more: after a crash each job of its batch runs alone',
    );
  }
  if (isGated(queue) && waitMs > GATED_WAIT_MS_MAX) {
    throw refusal(
      queue,
      `has limits, and jobs of a batch that waits for ${waitMs} ms have their places of them`,
      `a wait of at most ${GATED_WAIT_MS_MAX} ms`,
    );
  }
  if (by === 'group' && queue.perGroup === 1) {
    throw refusal(
      queue,
      'has perGroup: 1, so by: group makes batches of one job',
      'a greater perGroup, or batches without by',
    );
  }
}

const refusal = ({ name }: Queue, why: string, allowed: string): DuestreamError =>
  new DuestreamError('bad-input', `inBatches for queue ${name}, which ${why}; allowed: ${allowed}`);
