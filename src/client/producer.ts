/**
 * The producer: the one thing an application needs to put jobs into queues. It checks what it is given, turns delays
 * into absolute due times, and hands over to the parts beside this file. It owns one connection, made at the first call, and
 * nothing else of the process: no signal handlers, no timers, no output. Every promise it gives settles, none waits for ever.
 */

import type { ScheduleOptions } from '../job/options.ts';
import { type QueueInput, queueOf } from '../job/queue.ts';
import { createLevels, type Durability, type DurabilityOption } from './calls/durability.ts';
import { type IfMatchOption, parseIfMatch } from './calls/etag.ts';
import { dueOf } from './calls/plan.ts';
import type { Scheduled } from './calls/scheduled.ts';
import { type Calls, createCalls } from './calls/session.ts';
import { type ProducerOptions, type ProducerSettings, parseAnyId, producerSettings } from './calls/settings.ts';
import { checkList } from './jobs/bulk.ts';
import type { Cancelled } from './jobs/cancel.ts';
import { type Changes, changesOf, type JobChange, type NewDue, type RunNow } from './jobs/changes.ts';
import type { Edited } from './jobs/edit.ts';
import {
  createScheduleChain,
  type ProducerMiddleware,
  type ScheduleCall,
  type ScheduleChain,
  type ScheduleMiddleware,
} from './jobs/middleware.ts';
import { parseReplayed, type Replayed, type ReplayOptions, type ReplayTarget } from './jobs/replay.ts';
import type { Rescheduled } from './jobs/reschedule.ts';
import { schedulingOf } from './jobs/schedule-calls.ts';
import type { BulkJob, NamedJob, NamedOptions, Scheduling } from './jobs/scheduling.ts';
import type { JobCount } from './query/count.ts';
import type { JobFilter } from './query/filter.ts';
import { type Finding, findingOf } from './query/finding.ts';
import type { JobView } from './query/job-view.ts';
import type { JobListOptions, JobPage } from './query/list.ts';
import { type Looks, looksOf, one } from './query/looks.ts';
import type { JobResult } from './query/past.ts';
import type { CancelledWhere, ChangedWhere, WhereOptions, WhereProgress } from './query/where.ts';

export type {
  BulkJob,
  Cancelled,
  CancelledWhere,
  ChangedWhere,
  Changes,
  Durability,
  DurabilityOption,
  Edited,
  Finding,
  IfMatchOption,
  JobChange,
  JobCount,
  JobFilter,
  JobListOptions,
  JobPage,
  JobResult,
  JobView,
  NamedJob,
  NamedOptions,
  NewDue,
  ProducerMiddleware,
  ProducerOptions,
  QueueInput,
  Replayed,
  ReplayOptions,
  ReplayTarget,
  Rescheduled,
  RunNow,
  ScheduleCall,
  Scheduled,
  ScheduleMiddleware,
  ScheduleOptions,
  Scheduling,
  WhereOptions,
  WhereProgress,
};

/**
 * Puts jobs into queues. It connects at the first call. All methods reject with a `DuestreamError`: `bad-input` before anything is sent · `unavailable`
 * when Redis could not be reached within the retry budget and nothing was carried out · `indeterminate` when the reply
 * was lost and it may have been · `queue-full` where its queue has no room for a new job · `out-of-memory` and `refused` when Redis says no · `wrong-schema` for a namespace of another layout · `moved` when the
 * queue is resized again and again · `stopped` after `stop`. What writes takes a `durability`: with more than `memory` also
 * `indeterminate` when replicas or disks have not confirmed it in time, and `refused` where Redis cannot promise it.
 */
export interface Producer extends Scheduling, Changes, Finding, Looks {
  /**
   * Cancels one job. `bare`: one that a foreign producer put as a plain zset member. With `ifMatch` it is cancelled only if
   * it is what you have seen, else the status is `changed`.
   *
   * @example
   * const job = await producer.get(reminders, id);
   * const { status } = await producer.cancel(reminders, id, { ifMatch: job?.etag });
   * if (status === 'requested') console.log('it runs right now');
   */
  cancel(
    queue: QueueInput<unknown>,
    id: string,
    options?: DurabilityOption & IfMatchOption & { readonly bare?: boolean },
  ): Promise<Cancelled>;
  /** Cancels up to a million jobs, results in their order. @example await producer.cancelMany(reminders, ids); */
  cancelMany(
    queue: QueueInput<unknown>,
    ids: readonly string[],
    options?: DurabilityOption,
  ): Promise<readonly Cancelled[]>;
  /**
   * Makes one dead letter a scheduled job again, with fresh budgets; due now unless `delay` or `at` says otherwise. It is
   * named by its own id, or by the id of its job: then the newest dead letter of that job is taken, if it is among the
   * 100,000 newest of its partition. Without one the status is `gone`; with `ifMatch`, where it is another one than you have
   * seen, `changed`. `partition` is needed only where two partitions
   * have a dead letter of the same id.
   *
   * @example await producer.replay(emails, { id: `welcome:${user}` }, { delay: '5m' });
   */
  replay(queue: QueueInput<unknown>, deadLetter: ReplayTarget, options?: ReplayOptions): Promise<Replayed>;
  /**
   * Puts a middleware around every later call of `schedule` and `scheduleMany`, for logging, tenancy or tracing. The first
   * one is the outermost. Of an object that a worker uses too, only `schedule` counts here.
   *
   * @throws DuestreamError `bad-input` for what is no middleware
   * @example
   * producer.use({
   *   async schedule(call, next) {
   *     const results = await next(call);
   *     console.log(call.queue.name, results.map(({ id, status }) => `${id} ${status}`));
   *     return results;
   *   },
   * });
   */
  use(middleware: ProducerMiddleware): void;
  /**
   * Connects unless that has happened, and resolves when Redis answers and takes jobs. Optional: the first call does the
   * same. In an outage it waits as long as a call does, and may be called again.
   *
   * @throws DuestreamError `unavailable` · `refused` for a user without rights or a Redis that may evict jobs · `stopped`
   */
  ready(): Promise<void>;
  /** Refuses new calls, waits until running calls have settled, and closes the connection. You may call it twice. */
  stop(): Promise<void>;
  /** `stop`, for `await using producer = createProducer(…)`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * A producer. It connects when it is first used.
 *
 * @throws DuestreamError `bad-config` for an option that there is not, or one outside its range.
 * @example
 * const producer = createProducer({ redis: 'redis://127.0.0.1:6379' });
 * await producer.schedule('emails', { to: 'a@example.org' }, { delay: '2m' });
 * await producer.stop();
 */
export function createProducer(options: ProducerOptions): Producer {
  const settings = producerSettings(options);
  return producerOver(settings, createCalls(settings));
}

/** The methods, over whatever carries their calls: a connection, or the virtual time of the test kit. */
export function producerOver(
  settings: ProducerSettings,
  calls: Calls,
  chain: ScheduleChain = createScheduleChain(),
): Producer {
  return {
    ...schedulingOf(settings, calls, chain),
    use: chain.use,
    ...methodsOf(settings, calls),
    ...looksOf(calls),
    ...changesOf(settings, calls),
    ...findingOf(settings, calls),
    async ready() {
      await (await calls.connected(settings.level)).fit();
    },
    stop: calls.stop,
    [Symbol.asyncDispose]: calls.stop,
  };
}

type Methods = Pick<Producer, 'cancel' | 'cancelMany' | 'replay'>;

function methodsOf(settings: ProducerSettings, { runChecked }: Calls): Methods {
  const { clock } = settings;
  const levelIn = createLevels(settings);
  return {
    cancel: (queue, id, options = {}) =>
      runChecked(
        () => ({ ...one(queue, id, options.bare), ifMatch: parseIfMatch(options.ifMatch) }),
        ({ cancel }, given) => cancel.one(given.to, given.id, given),
        () => levelIn(options, ['bare', 'ifMatch']),
      ),
    cancelMany: (queue, ids, options = {}) =>
      runChecked(
        () => {
          checkList(ids, 'ids');
          return { to: queueOf(queue), ids: ids.map((id) => parseAnyId(id, false)) };
        },
        ({ cancel }, given) => cancel.many(given.to, given.ids),
        () => levelIn(options, []),
      ),
    replay: (queue, deadLetter, options = {}) =>
      runChecked(
        () => ({
          to: queueOf(queue),
          target: parseReplayed(deadLetter),
          calledMs: clock.monotonicMs(),
          ifMatch: parseIfMatch(options.ifMatch),
        }),
        async ({ server, limits, replay }, { to, target, calledMs, ifMatch }) => {
          await server.settle();
          const dueMs = dueOf(options, limits(calledMs));
          return replay(to, { target, dueMs, partition: options.partition, ifMatch });
        },
        () => levelIn(options, ['delay', 'at', 'zone', 'partition', 'ifMatch']),
      ),
  };
}
