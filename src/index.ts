/**
 * The public API of duestream: what produces jobs and runs them. A daemon inside your process and the dashboard are in
 * `duestream/daemon`, an outbox in `duestream/sql`, a kit for tests in `duestream/testing`. Everything that is exported here is documented where it is defined and kept stable.
 *
 * @module duestream
 */

export { Unconfirmed, type UnconfirmedJob } from './client/calls/scheduled.ts';
export {
  type BulkJob,
  type Cancelled,
  type CancelledJobs,
  type ChangedJobs,
  type Changes,
  type Client,
  type ClientMiddleware,
  type ClientOptions,
  type ClosedTag,
  type ClosedTagsOptions,
  type ClosedTagsPage,
  type CloseTagsOptions,
  createClient,
  type Durability,
  type DurabilityOption,
  type Edited,
  type FilterOptions,
  type FoundJobs,
  type IfDigestOption,
  type IfMatchOption,
  type JobChange,
  type JobCount,
  type JobDue,
  type JobEdit,
  type JobEnd,
  type JobFilter,
  type JobFinding,
  type JobFindOptions,
  type JobListFilter,
  type JobListing,
  type JobListOptions,
  type JobMove,
  type JobPage,
  type JobPreview,
  type JobRef,
  type JobReport,
  type JobSearchFilter,
  type JobTarget,
  type JobView,
  type MovedJobs,
  type NamedJob,
  type NamedOptions,
  type NewDue,
  type PageOptions,
  type PreviewRefusal,
  type Previews,
  type Progress,
  type Queries,
  type QueueInput,
  type Rescheduled,
  type RunNow,
  type ScheduleCall,
  type Scheduled,
  type ScheduleMiddleware,
  type ScheduleOptions,
  type Scheduling,
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
  type Tags,
  type TagsClosed,
  type TagsOpened,
} from './client/client.ts';
export type {
  DeadLetterBounds,
  DeadLetterFilter,
  DeadLetterGroup,
  DeadLetterGroups,
  DeadLetterKind,
  DeadLetterOverview,
  DeadLetterOverviewOptions,
  DeadLetterPage,
  DeadLetterRow,
  DeadLetterShare,
  DeadLetterShares,
  DeadLetters,
  DeadLetterTarget,
  DeadLetterView,
  DeadLetterWork,
  OneLetterOptions,
  RefusedReplay,
  Removed,
  RemovedLetters,
  ReplayDue,
  Replayed,
  ReplayedLetters,
  ReplayFilterOptions,
  ReplayOptions,
  ReplaySkipReason,
} from './client/dead/dead-letters.ts';
export type {
  Erase,
  Erased,
  ErasedQueue,
  EraseFilter,
  EraseOptions,
} from './client/erase/erasure.ts';
export type {
  Group,
  GroupListOptions,
  GroupPage,
  GroupReport,
  Groups,
  Holder,
  Keeper,
} from './client/groups/groups.ts';
export type { LimitStray } from './client/limits/check.ts';
export type { LimitChange, Limits, LimitUse, LimitView } from './client/limits/limits.ts';
export type { JobWait, WaitObstacle } from './client/query/waits.ts';
export type {
  QueueChange,
  QueueCounts,
  QueueList,
  QueuePaused,
  QueueRemoved,
  QueueReport,
  QueueResumed,
  QueueSettingsChange,
  Queues,
  SettingReason,
  Why,
} from './client/queues/queues.ts';
export type { WorkerChange, WorkerPause, Workers } from './client/queues/workers.ts';
export type {
  BackfillOptions,
  FiredJob,
  Forecast,
  ForecastOptions,
  LeftOut,
  ListOptions,
  NamedSchedule,
  PreviewOptions,
  PreviewRow,
  QueueSchedule,
  ScheduleChange,
  ScheduleInput,
  Schedules,
  SchedulesPage,
  ScheduleView,
  UnreadableSchedule,
} from './client/schedules/schedules.ts';
export { createWorker, type Worker, type WorkerOptions, type WorkerQueuesOptions } from './daemon/embedded-worker.ts';
export type { TargetResult } from './dispatch/answers.ts';
export { type CallUrlOptions, callUrl } from './dispatch/call-url.ts';
export type { Certificate, EgressProxy } from './dispatch/send/dial.ts';
export {
  type SignedHeaders,
  signWebhook,
  type VerifiedWebhook,
  type VerifyOptions,
  verifyWebhook,
  type WebhookBody,
  type WebhookHeaders,
  type WebhookMessage,
  type WebhookSecrets,
} from './dispatch/signature.ts';
export type { AccountPart, Cause, OtherTurns, StartAccount } from './job/account.ts';
export {
  type Backoff,
  type BackoffInput,
  type BackoffPolicy,
  exponential,
  fixed,
  ladder,
  linear,
  type WrittenBackoff,
} from './job/backoff.ts';
export type { Abandoned } from './job/compensation.ts';
export type { Codec, CodecContext, JobSchemas, SchemaIssue, SchemaResult, StandardSchema } from './job/content.ts';
export type { Debounce } from './job/debounce.ts';
export type { EventName, EventSource, Events } from './job/events.ts';
export type { Job, SetEnds } from './job/job.ts';
export type { JobLog, LogFields, LogLine } from './job/log-lines.ts';
export type { IfExists } from './job/options.ts';
export {
  type Attempted,
  Defer,
  type DeferOptions,
  type Deferred,
  type JobProgress,
  Retry,
  type RetryOptions,
  Unrecoverable,
} from './job/outcome.ts';
export type { KeptResult, PastJob } from './job/past.ts';
export { type DeliveryMode, defineQueue, type NamedQueueOptions, type Queue, type QueueOptions } from './job/queue.ts';
export type { BroadcastOptions, HistoryOptions, LatenessOptions } from './job/queue-settings.ts';
export type { JobState } from './job/state.ts';
export type { QueueTarget, TargetInput, TargetMethod, TargetOptions } from './job/target.ts';
export type { JobData, NamedData } from './job/types.ts';
export type { DurationInput, InstantInput } from './kernel/duration.ts';
export { DuestreamError, type ErrorCode, Indeterminate } from './kernel/errors.ts';
export type { Log } from './kernel/log.ts';
export type { Jitter } from './kernel/spread.ts';
export type { RedisAddress, RedisInput } from './redis/connection/connect.ts';
export type { UnreadQueue } from './redis/read/each-queue.ts';
export {
  createSubscriber,
  type Missed,
  type Subscriber,
  type SubscriberOptions,
} from './worker/broadcast/subscriber.ts';
export type { QueueWork } from './worker/options.ts';
export {
  type Batch,
  type BatchHandler,
  type BatchJob,
  type BatchOptions,
  type BatchTarget,
  inBatches,
} from './worker/run/batch.ts';
export {
  type CommitJobOptions,
  defineHandlers,
  type HandleMiddleware,
  type Handler,
  type HandlerCalls,
  type HandlerContext,
  type HandlerLog,
  type HandlerMap,
  type Handlers,
  type Middleware,
  type NamedHandlers,
  type PlainHandlers,
  type QueueHandlers,
} from './worker/run/handlers.ts';
