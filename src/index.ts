/**
 * The public API of duestream. Everything that is exported here is documented where it is defined and kept stable.
 */

export {
  createDeadLetters,
  type DeadLetterBounds,
  type DeadLetterFilter,
  type DeadLetterGroup,
  type DeadLetterGroups,
  type DeadLetterPage,
  type DeadLetterRow,
  type DeadLetters,
  type DeadLettersOptions,
  type DeadLetterView,
  type DeadLetterWork,
  type ManyPurged,
  type ManyReplayed,
  type RefusedReplay,
  type ReplayMany,
} from './client/dead/dead-letters.ts';
export {
  type BulkJob,
  type Cancelled,
  type Changes,
  createProducer,
  type Durability,
  type DurabilityOption,
  type Edited,
  type JobChange,
  type JobResult,
  type JobView,
  type NewDue,
  type Producer,
  type ProducerOptions,
  type QueueInput,
  type Replayed,
  type ReplayTarget,
  type Rescheduled,
  type RunNow,
  type Scheduled,
  type ScheduleOptions,
} from './client/producer.ts';
export { Unconfirmed, type UnconfirmedJob } from './client/scheduled.ts';
export {
  type BackfillOptions,
  createSchedules,
  type FiredJob,
  type Forecast,
  type ForecastOptions,
  type ListOptions,
  type PreviewOptions,
  type PreviewRow,
  type ScheduleChange,
  type ScheduleInput,
  type Schedules,
  type SchedulesOptions,
  type ScheduleView,
} from './client/schedules/schedules.ts';
export type { ConfigInput } from './config/options.ts';
export { type Backoff, type BackoffPolicy, exponential, fixed, type Jitter, ladder, linear } from './core/backoff.ts';
export type { Abandoned } from './core/compensation.ts';
export type { DurationInput, InstantInput } from './core/duration.ts';
export { DuestreamError, type ErrorCode, Indeterminate } from './core/errors.ts';
export type { EventName, EventSource, Events } from './core/events.ts';
export type { HistoryOptions } from './core/history.ts';
export type { Job } from './core/job.ts';
export type { IfExists } from './core/job-options.ts';
export type { Log } from './core/log.ts';
export { type Attempted, Defer, Unrecoverable } from './core/outcome.ts';
export type { KeptResult, PastJob } from './core/past.ts';
export { type DeliveryMode, defineQueue, type Queue, type QueueOptions } from './core/queue.ts';
export type { JobState } from './core/state.ts';
export { createDaemon, type Daemon, type DaemonInput, type DaemonParts } from './daemon/daemon.ts';
export { createWorker, type Worker, type WorkerOptions, type WorkerQueuesOptions } from './daemon/embedded-worker.ts';
export type { RedisAddress, RedisInput } from './redis/connection/connect.ts';
export {
  defineHandlers,
  type Handler,
  type HandlerContext,
  type HandlerMap,
  type Handlers,
  type QueueHandlers,
} from './worker/handlers.ts';
export type { QueueWork } from './worker/options.ts';
