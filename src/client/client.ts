/**
 * The client: what an application needs to schedule jobs, to look at them, to change them and to wait for their ends. This file
 * composes it of the calls beside it: a call of `schedule` goes through `jobs/schedule-calls.ts`, a change of a job through
 * `jobs/changes.ts`. The client owns one connection, made at the first call, and another from the first `wait` on. It owns nothing
 * else of the process: no signal handlers, no timers between calls, no output. Every promise it gives settles.
 */

import type { ScheduleOptions } from '../job/options.ts';
import type { QueueInput } from '../job/queue.ts';
import { audit, userHere } from '../redis/audit.ts';
import type { Redis } from '../redis/connection/connect.ts';
import type { Calls } from './calls/calls.ts';
import type { Durability, DurabilityOption } from './calls/durability.ts';
import type { IfMatchOption } from './calls/etag.ts';
import { createRepeating } from './calls/retry.ts';
import type { Scheduled } from './calls/scheduled.ts';
import { type ClientOptions, type ClientSettings, clientSettings } from './calls/settings.ts';
import { type DeadLetters, deadLettersOver } from './dead/dead-letters.ts';
import { type Erase, eraseOver } from './erase/erasure.ts';
import { type Groups, groupsOver } from './groups/groups.ts';
import type { CancelledJobs, ChangedJobs, FilterOptions, JobMove, MovedJobs, Progress } from './jobs/by-filter.ts';
import type { Cancelled } from './jobs/cancel.ts';
import {
  type Changes,
  changesOf,
  type IfDigestOption,
  type JobChange,
  type JobDue,
  type JobEdit,
  type JobRef,
  type JobTarget,
  type NewDue,
  type RunNow,
} from './jobs/changes.ts';
import type { Edited } from './jobs/edit.ts';
import { type JobPreview, type PreviewRefusal, type Previews, previewsOf } from './jobs/preview.ts';
import type { Rescheduled } from './jobs/reschedule.ts';
import { schedulingOf } from './jobs/schedule-calls.ts';
import {
  type BulkJob,
  type ClientMiddleware,
  createScheduleChain,
  type NamedJob,
  type NamedOptions,
  type ScheduleCall,
  type ScheduleChain,
  type ScheduleMiddleware,
  type Scheduling,
} from './jobs/scheduling.ts';
import {
  type SetCallbackOptions,
  type SetGroupOption,
  type SetMade,
  type SetOptions,
  type SetRemoved,
  type SetSealed,
  type Sets,
  type SetsOptions,
  type SetsPage,
  type SetView,
  setsOver,
} from './jobs/sets.ts';
import {
  type ClosedTag,
  type ClosedTagsOptions,
  type ClosedTagsPage,
  type CloseTagsOptions,
  type Tags,
  type TagsClosed,
  type TagsOpened,
  tagsOver,
} from './jobs/tags.ts';
import { type JobEnd, type WaitOptions, type Waits, waitsOf } from './jobs/wait.ts';
import { type Limits, limitsOver } from './limits/limits.ts';
import { type Note, noting } from './operations.ts';
import type { ConnectedParts } from './parts.ts';
import type { JobCount } from './query/count.ts';
import type { JobFilter, JobListFilter, JobSearchFilter } from './query/filter.ts';
import type { FoundJobs } from './query/find.ts';
import type { JobListOptions, JobPage, PageOptions } from './query/list.ts';
import { type JobFinding, type JobFindOptions, type JobListing, type Queries, queriesOf } from './query/queries.ts';
import type { JobReport, JobView, Moment } from './query/report.ts';
import { type Queues, queuesOver } from './queues/queues.ts';
import { type WorkerChange, type WorkerPause, type Workers, workersOver } from './queues/workers.ts';
import { type Schedules, schedulesOver } from './schedules/schedules.ts';
import { createCalls } from './session.ts';

export type {
  BulkJob,
  Cancelled,
  CancelledJobs,
  ChangedJobs,
  Changes,
  ClientMiddleware,
  ClientOptions,
  ClosedTag,
  ClosedTagsOptions,
  ClosedTagsPage,
  CloseTagsOptions,
  Durability,
  DurabilityOption,
  Edited,
  FilterOptions,
  FoundJobs,
  IfDigestOption,
  IfMatchOption,
  JobChange,
  JobCount,
  JobDue,
  JobEdit,
  JobEnd,
  JobFilter,
  JobFinding,
  JobFindOptions,
  JobListFilter,
  JobListing,
  JobListOptions,
  JobMove,
  JobPage,
  JobPreview,
  JobRef,
  JobReport,
  JobSearchFilter,
  JobTarget,
  JobView,
  Moment,
  MovedJobs,
  NamedJob,
  NamedOptions,
  NewDue,
  PageOptions,
  PreviewRefusal,
  Previews,
  Progress,
  Queries,
  QueueInput,
  Rescheduled,
  RunNow,
  ScheduleCall,
  Scheduled,
  ScheduleMiddleware,
  ScheduleOptions,
  Scheduling,
  SetCallbackOptions,
  SetGroupOption,
  SetMade,
  SetOptions,
  SetRemoved,
  SetSealed,
  Sets,
  SetsOptions,
  SetsPage,
  SetView,
  Tags,
  TagsClosed,
  TagsOpened,
  WaitOptions,
  Waits,
  WorkerChange,
  WorkerPause,
  Workers,
};

/**
 * Schedules jobs, finds them and changes them, with their dead letters and the schedules of the namespace. It connects at the
 * first call. All methods reject with a `DuestreamError`: `bad-input` before anything is sent · `unavailable`
 * when Redis could not be reached within the retry budget and nothing was carried out · `indeterminate` when the reply
 * was lost and it may have been · `queue-full` and `group-full` where its queue or group has no room for a new job · `no-set` where the set of a job is not there · `out-of-memory` and `refused` when Redis says no · `wrong-schema` for a namespace of another layout · `moved` when the
 * queue is resized again and again · `stopped` after `close`. What writes takes a `durability`: with more than `memory` also
 * `indeterminate` when replicas or disks have not confirmed it in time, and `refused` where Redis cannot promise it.
 */
export interface Client extends Scheduling, Previews, Changes, Queries, Waits {
  /** Closed tags: no job that has one starts, for example because its invoice was paid. */
  readonly tags: Tags;
  /** Sets: jobs with one callback, which is made when the last of them is over. */
  readonly sets: Sets;
  /** Dead letters: listed, looked at, replayed, removed. */
  readonly deadLetters: DeadLetters;
  /** Groups of queues with limits: who waits, who runs, and who holds the limit of a group. */
  readonly groups: Groups;
  /** Queues: what they hold and why their jobs wait; set, paused, closed and removed. */
  readonly queues: Queues;
  /** Single workers: paused, and let go on. */
  readonly workers: Workers;
  /** Limits with a name, which several queues share: set, listed, taken away. */
  readonly limits: Limits;
  /** Recurring jobs: put, looked at, previewed, paused, run out of turn. */
  readonly schedules: Schedules;
  /**
   * Cancels the jobs that have a tag, removes their dead letters, and their records from the history, in every queue of the
   * namespace or in those that are named. A job that runs is asked to stop and counted as `running`: erase again when it has
   * ended. Stop what schedules such jobs first. What a call removed is gone, so one that was cut short may be made again, from
   * its `cursor` or from the beginning.
   *
   * @throws DuestreamError `bad-input` · `moved` when a queue was resized meanwhile: begin again without a cursor
   * @example
   * const { queues, left } = await client.erase({ tag: 'user:42' }, { dryRun: true });
   */
  readonly erase: Erase;
  /**
   * Puts a middleware around every later call of `schedule` and `scheduleMany`, for logging, tenancy or tracing. The first
   * one is the outermost. Of an object that a worker uses too, only `schedule` counts here.
   *
   * @throws DuestreamError `bad-input` for what is no middleware
   * @example
   * client.use({
   *   async schedule(call, next) {
   *     const results = await next(call);
   *     console.log(call.queue.name, results.map(({ id, status }) => `${id} ${status}`));
   *     return results;
   *   },
   * });
   */
  use(middleware: ClientMiddleware): void;
  /**
   * Connects unless that has happened, and resolves when Redis answers and takes jobs. Optional: the first call does the
   * same. In an outage it waits as long as a call does, and may be called again.
   *
   * @throws DuestreamError `unavailable` · `refused` for a user without rights or a Redis that may evict jobs · `stopped`
   */
  ready(): Promise<void>;
  /** Refuses new calls, waits until running calls have settled, and closes the connection. You may call it twice. */
  close(): Promise<void>;
  /** `close`, for `await using client = createClient(…)`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * A client of a namespace. It connects when it is first used.
 *
 * @throws DuestreamError `bad-config` for an option that there is not, or one outside its range.
 * @example
 * const client = createClient({ redis: 'redis://127.0.0.1:6379' });
 * await client.schedule('emails', { to: 'a@example.org' }, { delay: '2m' });
 * await client.close();
 */
export function createClient(options: ClientOptions): Client {
  const settings = clientSettings(options);
  const calls = createCalls(settings);
  const note: Note = async (change) => {
    const place = await calls.opened()?.place();
    if (place) await audit(place, { ...change, who: userHere(), way: 'program' });
  };
  return noting(clientOver(settings, calls), {
    rareOnly: true,
    track: calls.track,
    note: (change) => note(change).catch(() => undefined),
  });
}

/** The same for the windows of the product, which note themselves what they change. @param connection closed with the client */
export function createClientOf(options: ClientOptions, connection?: Redis): Client {
  const settings = clientSettings(options);
  return clientOver(settings, createCalls(settings, connection));
}

/** A client over whatever carries its calls: a connection, or the virtual time of the test kit. */
export function clientOver(settings: ClientSettings, calls: Calls<ConnectedParts>, chain?: ScheduleChain): Client {
  return {
    ...jobsOver(settings, calls, chain),
    deadLetters: deadLettersOver(settings, calls),
    groups: groupsOver(calls, () => createRepeating('change a group', settings), settings.clock),
    queues: queuesOver(settings, calls),
    workers: workersOver(settings, calls),
    limits: limitsOver(settings, calls),
    schedules: schedulesOver(settings, calls),
    erase: eraseOver(settings, calls),
  };
}

/** What a client offers for jobs. */
export type JobsClient = Omit<
  Client,
  'deadLetters' | 'groups' | 'queues' | 'workers' | 'limits' | 'schedules' | 'erase'
>;

/** What concerns jobs: also over the connection of a worker, for its handlers. */
export function jobsOver(
  settings: ClientSettings,
  calls: Calls<ConnectedParts>,
  chain: ScheduleChain = createScheduleChain(),
): JobsClient {
  return {
    ...schedulingOf(settings, calls, chain),
    use: chain.use,
    ...queriesOf(settings, calls),
    ...previewsOf(settings, calls),
    ...changesOf(settings, calls),
    tags: tagsOver(settings, calls),
    sets: setsOver(settings, calls),
    ...waitsOf(settings, calls),
    async ready() {
      await (await calls.connected(settings.level)).fit();
    },
    close: calls.stop,
    [Symbol.asyncDispose]: calls.stop,
  };
}
