/**
 * What a worker can be told, with units, ranges and defaults; read once and checked.
 */
import { type Clock, systemClock } from '../core/clock.ts';
import { type DurationInput, durationMs } from '../core/duration.ts';
import { DuestreamError } from '../core/errors.ts';
import { parseName } from '../core/job.ts';
import { type Log, silentLog } from '../core/log.ts';
import { type Delivery, whole } from '../core/queue.ts';
import type { RedisInput } from '../redis/connect.ts';
import type { Abandoned } from './abandoned.ts';
import type { Handler } from './handlers.ts';

export interface WorkerOptions {
  /** A URL, an object with its `url` and options beside it, or options of ioredis: see `RedisInput`. */
  readonly redis: RedisInput;
  /** Default `duestream`. */
  readonly namespace?: string;
  /** How many handlers run at a time. 1 to 10,000, default 50. */
  readonly concurrency?: number;
  /** After this time without an extension others may take a job. Default 15 s. */
  readonly jobLease?: DurationInput;
  /** How often running jobs are extended; at most half the lease. Default a third of it. */
  readonly extendEvery?: DurationInput;
  /** How long a heartbeat lives. Default 10 s. */
  readonly beatTtl?: DurationInput;
  /** How long a worker must be missing before it counts as dead. Default 5 s. */
  readonly grace?: DurationInput;
  /** How long `stop` waits for running handlers. Default 25 s. */
  readonly shutdown?: DurationInput;
  /** How long a handler whose time is up may take to end before its slot counts as lost. Default 5 s. */
  readonly abortGrace?: DurationInput;
  /**
   * The share of slots, in percent, that may be lost to handlers that ignore their signal. From then on the worker is
   * not live and emits `worker.exhausted`: end its process, nothing else frees the slots. 0 = never. Default 50.
   */
  readonly recycleAtPercent?: number;
  /** How long the end of a job is remembered; 0 = not at all. Default 10 min. */
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
  const jobLeaseMs = durationMs(options.jobLease ?? '15s', 'jobLease');
  const extendEveryMs = durationMs(options.extendEvery ?? jobLeaseMs / 3, 'extendEvery');
  return {
    namespace: parseName(options.namespace ?? 'duestream', 'namespace'),
    concurrency: whole(options.concurrency ?? 50, { what: 'concurrency', min: 1, max: 10_000 }),
    jobLeaseMs: whole(jobLeaseMs, { what: 'jobLease in ms', min: 100, max: 86_400_000 }),
    extendEveryMs: whole(extendEveryMs, { what: 'extendEvery in ms', min: 10, max: jobLeaseMs / 2 }),
    beatTtlMs: whole(durationMs(options.beatTtl ?? '10s', 'beatTtl'), {
      what: 'beatTtl in ms',
      min: 100,
      max: 3_600_000,
    }),
    graceMs: whole(durationMs(options.grace ?? '5s', 'grace'), { what: 'grace in ms', min: 50, max: 3_600_000 }),
    shutdownMs: durationMs(options.shutdown ?? '25s', 'shutdown'),
    abortGraceMs: durationMs(options.abortGrace ?? '5s', 'abortGrace'),
    recycleAtPercent: whole(options.recycleAtPercent ?? 50, { what: 'recycleAtPercent', min: 0, max: 100 }),
    windowMs: durationMs(options.doneWindow ?? '10m', 'doneWindow'),
    onAbandoned: options.onAbandoned,
    log: options.log ?? silentLog,
    clock: options.clock ?? systemClock,
  };
}

/** What a queue's way of delivery needs of its workers. @throws DuestreamError `bad-input` */
export function checkDelivery(
  delivery: Delivery,
  { windowMs, onAbandoned }: Pick<ReturnType<typeof readWorkerOptions>, 'windowMs' | 'onAbandoned'>,
): void {
  if (delivery === 'effectively-once' && windowMs === 0) {
    throw new DuestreamError(
      'bad-input',
      'doneWindow is 0 in a queue that delivers effectively once; allowed: more than 0',
    );
  }
  // Over before its handler begins, such a job cannot die half-way, and its heir would itself run at most once.
  if (delivery === 'at-most-once' && onAbandoned) {
    throw new DuestreamError(
      'bad-input',
      'onAbandoned is set in a queue that delivers at most once; allowed: in queues that deliver at least or effectively once',
    );
  }
}
