/**
 * The producer: the one thing an application needs to put jobs into queues. It checks what it is given, turns delays
 * into absolute due times, and hands over to the parts beside this file. It owns one connection and nothing else of the
 * process: no signal handlers, no timers, no output. Every promise it gives settles, and none waits for ever.
 */
import { DuestreamError } from '../core/errors.ts';
import type { ScheduleOptions } from '../core/job-options.ts';
import { close, openCommands, type Redis, whenReady } from '../redis/connection/connect.ts';
import { createServers } from '../redis/connection/server-clock.ts';
import { createJobs, type Jobs } from '../redis/transitions/jobs.ts';
import { createBatch } from './batch.ts';
import { checkList, planAll, scheduleAll } from './bulk.ts';
import { type Cancelled, createCancel } from './cancel.ts';
import { createGet, type JobView } from './job-view.ts';
import { createLayouts } from './layouts.ts';
import { createPartitionCalls } from './partition-calls.ts';
import { dueOf, planJob } from './plan.ts';
import { withReadRetry } from './read-retry.ts';
import { createRefusal } from './refusal.ts';
import { createReplay, parseDeadLetterId, type Replayed } from './replay.ts';
import type { Scheduled } from './scheduled.ts';
import {
  type ProducerOptions,
  type ProducerSettings,
  parseAnyId,
  type QueueInput,
  queueOf,
  settingsOf,
} from './settings.ts';
import { createSlots } from './slots.ts';

export type { Cancelled, JobView, ProducerOptions, QueueInput, Replayed, Scheduled, ScheduleOptions };

/** One job of `scheduleMany`. */
export type BulkJob<Data> = ScheduleOptions & { readonly data: Data };

/**
 * Puts jobs into queues. All methods reject with a `DuestreamError`: `bad-input` before anything is sent · `unavailable`
 * when Redis could not be reached within the retry budget and nothing was carried out · `indeterminate` when the reply
 * was lost and it may have been · `out-of-memory` and `refused` when Redis says no · `moved` when the queue is resized
 * again and again · `stopped` after `stop`.
 */
export interface Producer {
  /**
   * Schedules one job. Resolves when Redis has it. Calls of one turn of the event loop share script calls, so a
   * thousand of them at once cost a few round trips; each has its own result.
   *
   * @throws DuestreamError `exists` with `ifExists: 'error'`; after an outage `cause` is `Unconfirmed` and says the
   * id and the due time with which you can repeat the same call.
   * @example
   * await producer.schedule(emails, { to, template }, { delay: '2m', id: `welcome:${user}`, name: 'welcome' });
   */
  schedule<Data>(queue: QueueInput<Data>, data: Data, options?: ScheduleOptions): Promise<Scheduled>;
  /**
   * Schedules up to a million jobs, results in their order. All are checked first: if one is wrong, the error names its
   * place and nothing is sent. The list is not one transaction: after an outage some may be scheduled.
   *
   * @throws DuestreamError whose `cause` is `Unconfirmed`: `confirmed` results and the `unconfirmed` jobs.
   * @example
   * await producer.scheduleMany(emails, users.map((user) => ({ data: { to: user.mail }, delay: '1d', id: `day1:${user.id}` })));
   */
  scheduleMany<Data>(queue: QueueInput<Data>, jobs: readonly BulkJob<Data>[]): Promise<readonly Scheduled[]>;
  /**
   * Cancels one job. `bare`: the job is a bare member, which a foreign producer put with ZADD.
   *
   * @example if ((await producer.cancel(reminders, id)).status === 'requested') console.log('it runs right now');
   */
  cancel(queue: QueueInput<unknown>, id: string, options?: { readonly bare?: boolean }): Promise<Cancelled>;
  /** Cancels up to a million jobs, results in their order. @example await producer.cancelMany(reminders, ids); */
  cancelMany(queue: QueueInput<unknown>, ids: readonly string[]): Promise<readonly Cancelled[]>;
  /**
   * One job as it is stored, or undefined when nothing is known about it. For a record that cannot be read it
   * resolves with `readable: false`, and never throws.
   *
   * @example const due = (await producer.get(emails, id))?.dueMs;
   */
  get<Data>(
    queue: QueueInput<Data>,
    id: string,
    options?: { readonly bare?: boolean },
  ): Promise<JobView<Data> | undefined>;
  /**
   * Makes one dead letter a scheduled job again, with fresh budgets; due now unless `delay` or `at` says otherwise.
   * `partition` is needed only where two partitions have a dead letter of the same number.
   *
   * @example await producer.replay(emails, (await producer.get(emails, id))?.deadLetter ?? '', { delay: '5m' });
   */
  replay(
    queue: QueueInput<unknown>,
    deadLetterId: string,
    options?: Pick<ScheduleOptions, 'delay' | 'at'> & { readonly partition?: number | undefined },
  ): Promise<Replayed>;
  /** Refuses new calls, waits until running calls have settled, and closes the connection. You may call it twice. */
  stop(): Promise<void>;
}

/** Header, name and options around the data. */
const RECORD_OVERHEAD_BYTES = 4096;
/** The script's own check is for clocks that are wrong; this one's is sharp. */
const HORIZON_SLACK_MS = 60_000;
/** Calls that are not batched: cancel, get, replay. */
const CALLS_MAX = 100;
const CALLS_WAITING_MAX = 100_000;

/**
 * Connects a producer. Resolves when Redis can take jobs.
 *
 * @throws DuestreamError `bad-input` for an option outside its range, `unavailable` or `refused` without Redis.
 * @example
 * const producer = await createProducer({ redis: 'redis://127.0.0.1:6379' });
 * await producer.schedule('emails', { to: 'a@example.org' }, { delay: '2m' });
 * await producer.stop();
 */
export async function createProducer(options: ProducerOptions): Promise<Producer> {
  const settings = settingsOf(options);
  const { clock, budgetMs, horizonMs, dataBytesMax } = settings;
  const redis = openCommands(settings);
  const ending = new AbortController();
  const { server, layouts, refusal, batch, cancel, get, replay } = wire(settings, redis, ending.signal);
  const underWay = new Set<Promise<unknown>>();
  let stopping: Promise<void> | undefined;

  try {
    await whenReady(redis);
    await withReadRetry('read the clock', server.measure, { clock, budgetMs });
    await refusal.look();
  } catch (error) {
    close(redis);
    throw error;
  }
  const onReady = () => {
    server.doubt();
    layouts.doubt();
    void refusal.look();
  };
  redis.on('ready', onReady);

  /** A call that `stop` waits for. */
  function call<T>(work: () => Promise<T>): Promise<T> {
    if (stopping) return Promise.reject(stopped());
    const working = work();
    underWay.add(working);
    const done = () => underWay.delete(working);
    working.then(done, done);
    return working;
  }

  const limits = (calledMs: number) => ({ horizonMs, dataBytesMax, nowMs: server.latestMs(calledMs) });

  async function end(): Promise<void> {
    await Promise.allSettled(underWay);
    await batch.quiet();
    redis.off('ready', onReady);
    ending.abort();
    close(redis);
  }

  return {
    schedule(queue, data, options = {}) {
      if (stopping) return Promise.reject(stopped());
      try {
        const to = queueOf(queue);
        const calledMs = clock.monotonicMs();
        const measured = options?.at === undefined ? server.settle() : undefined;
        if (!measured) return batch.add(to, planJob(data, options, limits(calledMs)));
        return call(async () => {
          await measured;
          return batch.add(to, planJob(data, options, limits(calledMs)));
        });
      } catch (error) {
        return Promise.reject(error);
      }
    },
    scheduleMany: (queue, list) =>
      call(async () => {
        const to = queueOf(queue);
        checkList(list, 'jobs');
        const calledMs = clock.monotonicMs();
        await server.settle();
        const plans = await planAll(list, ({ data, ...options }) => planJob(data, options, limits(calledMs)));
        return scheduleAll(plans, (plan) => batch.add(to, plan));
      }),
    cancel: (queue, id, { bare = false } = {}) =>
      call(async () => cancel.one(queueOf(queue), parseAnyId(id, bare), { bare })),
    cancelMany: (queue, ids) =>
      call(async () => {
        checkList(ids, 'ids');
        return cancel.many(
          queueOf(queue),
          ids.map((id) => parseAnyId(id, false)),
        );
      }),
    get: (queue, id, { bare = false } = {}) => call(async () => get(queueOf(queue), parseAnyId(id, bare), { bare })),
    replay: (queue, deadLetterId, options = {}) =>
      call(async () => {
        const to = queueOf(queue);
        const calledMs = clock.monotonicMs();
        const parsed = parseDeadLetterId(deadLetterId);
        await server.settle();
        return replay(to, {
          deadLetterId: parsed,
          dueMs: dueOf(options, limits(calledMs)),
          partition: options.partition,
        });
      }),
    stop: () => (stopping ??= end()),
  };
}

/** The parts beside this file, on one connection. */
function wire(settings: ProducerSettings, redis: Redis, signal: AbortSignal) {
  const { clock, budgetMs, namespace, windowMs } = settings;
  const jobs = createJobs(redis);
  const refusal = createRefusal(redis, clock);
  const keeping: Pick<Jobs, 'schedule'> = {
    async schedule(...call) {
      await refusal.check();
      return jobs.schedule(...call);
    },
  };
  const layouts = createLayouts({ redis, namespace, clock, budgetMs, signal });
  const slots = createSlots({ max: CALLS_MAX, waitingMax: CALLS_WAITING_MAX });
  const callPartitions = createPartitionCalls({ layouts, slots, clock, budgetMs });
  const recordBytesMax = settings.dataBytesMax + RECORD_OVERHEAD_BYTES;
  const horizonMs = settings.horizonMs + HORIZON_SLACK_MS;
  return {
    layouts,
    refusal,
    server: createServers(redis, clock)(),
    batch: createBatch({ jobs: keeping, layouts, clock, budgetMs, horizonMs, recordBytesMax }),
    cancel: createCancel({ jobs, callPartitions, windowMs }),
    get: createGet({ redis, callPartitions }),
    replay: createReplay({ redis, jobs, callPartitions }),
  };
}

const stopped = () => new DuestreamError('stopped', 'the producer was stopped; nothing was sent');
