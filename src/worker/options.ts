/**
 * What a worker can be told, with units, ranges and defaults; read once and checked.
 */

import { type Clock, systemClock } from '../core/clock.ts';
import type { Abandoned } from '../core/compensation.ts';
import type { DurationInput } from '../core/duration.ts';
import { DuestreamError } from '../core/errors.ts';
import { parseName } from '../core/job.ts';
import { type Log, silentLog } from '../core/log.ts';
import { type DeliveryMode, wholeNumber } from '../core/queue.ts';
import { durationIn, workerRanges } from '../core/ranges.ts';
import type { RedisInput } from '../redis/connection/connect.ts';
import type { Handler } from './handlers.ts';

export interface WorkerOptions {
  /** A URL, an object with its `url` and options beside it, or options of ioredis: see `RedisInput`. */
  readonly redis: RedisInput;
  /** Default `duestream`. */
  readonly namespace?: string;
  /** How many handlers run at a time. 1 to 10,000, default 50. */
  readonly concurrency?: number;
  /** After this time without an extension others may take a job. 100 ms to 1 d, default 15 s. */
  readonly jobLease?: DurationInput;
  /** How often running jobs are extended: 10 ms to half the lease. Default a third of it. */
  readonly extendEvery?: DurationInput;
  /** How long a heartbeat lives. 100 ms to 1 h, default 10 s. */
  readonly beatTtl?: DurationInput;
  /** How long a worker must be missing before it counts as dead. 50 ms to 1 h, default 5 s. */
  readonly grace?: DurationInput;
  /** How long `stop` waits for running handlers. At most 1 d, default 25 s. */
  readonly shutdown?: DurationInput;
  /** How long a handler whose time is up may take to end before its slot counts as lost. At most 1 h, default 5 s. */
  readonly abortGrace?: DurationInput;
  /**
   * The share of slots, in percent, that may be lost to handlers that ignore their signal. From then on the worker is
   * not live and emits `worker.exhausted`: end its process, nothing else frees the slots. 0 = never. Default 50.
   */
  readonly recycleAtPercent?: number;
  /** How long the end of a job is remembered; 0 = not at all. At most 30 d, default 10 min. */
  readonly doneWindow?: DurationInput;
  /**
   * Called when a job of this queue has died and a crash or a timeout is in its history, so that its work may be half
   * done outside. It is a job of its own: at least once, with attempts and a dead letter.
   */
  readonly onAbandoned?: Handler<Abandoned> | undefined;
  readonly log?: Log;
  readonly clock?: Clock;
}

/** @throws DuestreamError `bad-input` for a value outside its range. */
export function readWorkerOptions(options: WorkerOptions) {
  const ranges = workerRanges;
  const jobLeaseMs = durationIn(options.jobLease ?? '15s', 'jobLease', ranges.jobLeaseMs);
  const halfLease = { min: ranges.extendEveryMs.min, max: Math.floor(jobLeaseMs / 2) };
  return {
    namespace: parseName(options.namespace ?? 'duestream', 'namespace'),
    concurrency: wholeNumber(options.concurrency ?? 50, { what: 'concurrency', ...ranges.concurrency }),
    jobLeaseMs,
    extendEveryMs: durationIn(options.extendEvery ?? jobLeaseMs / 3, 'extendEvery', halfLease),
    beatTtlMs: durationIn(options.beatTtl ?? '10s', 'beatTtl', ranges.beatTtlMs),
    graceMs: durationIn(options.grace ?? '5s', 'grace', ranges.graceMs),
    shutdownMs: durationIn(options.shutdown ?? '25s', 'shutdown', ranges.shutdownMs),
    abortGraceMs: durationIn(options.abortGrace ?? '5s', 'abortGrace', ranges.abortGraceMs),
    recycleAtPercent: wholeNumber(options.recycleAtPercent ?? 50, {
      what: 'recycleAtPercent',
      ...ranges.recycleAtPercent,
    }),
    windowMs: durationIn(options.doneWindow ?? '10m', 'doneWindow', ranges.doneWindowMs),
    onAbandoned: options.onAbandoned,
    log: options.log ?? silentLog,
    clock: options.clock ?? systemClock,
  };
}

/** What a queue's way of delivery needs of its workers. @throws DuestreamError `bad-input` */
export function checkDelivery(
  delivery: DeliveryMode,
  { windowMs, onAbandoned }: Pick<ReturnType<typeof readWorkerOptions>, 'windowMs' | 'onAbandoned'>,
): void {
  if (delivery === 'effectively-once' && windowMs === 0) {
    throw new DuestreamError(
      'bad-input',
      'doneWindow is 0 in a queue that delivers effectively once; allowed: more than 0',
    );
  }
  // Over before its handler begins, such a job cannot die half-way, and its compensation job would itself run at most once.
  if (delivery === 'at-most-once' && onAbandoned) {
    throw new DuestreamError(
      'bad-input',
      'onAbandoned is set in a queue that delivers at most once; allowed: in queues that deliver at least or effectively once',
    );
  }
}
