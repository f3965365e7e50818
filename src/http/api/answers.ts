/**
 * What the HTTP API answers, by the names of the OpenAPI file: views of the library, and what a request adds to them. The
 * schema of each is made of its type (`answer-schemas.ts`, by `npm run generate`): the OpenAPI file has it, with the words
 * of the view, and an answer is sent by it. So what is not listed in a type never leaves the API, whatever the library tells.
 *
 * Three things are different over HTTP. What is undefined in the library is left out. A list has null where a place is empty.
 * What a caller may not see is left out too: `Seen` says of which fields that is true.
 */
import type { AuditEntry } from '../../access/audit.ts';
import type { Scope } from '../../access/tokens.ts';
import type { Scheduled } from '../../client/calls/scheduled.ts';
import type {
  CancelledJobs,
  ChangedJobs,
  ClosedTag,
  Edited,
  JobCount,
  JobMove,
  JobPreview,
  JobReport,
  JobView,
  MovedJobs,
  PreviewRefusal,
  Rescheduled,
  RunNow,
  SetMade,
  SetRemoved,
  SetSealed,
  SetView,
  TagsClosed,
} from '../../client/client.ts';
import type {
  DeadLetterGroup,
  DeadLetterKind,
  DeadLetterOverview,
  DeadLetterRow,
  DeadLetterShares,
  DeadLetterView,
  Replayed,
} from '../../client/dead/dead-letters.ts';
import type { Erased, ErasedQueue } from '../../client/erase/erasure.ts';
import type { Group, GroupReport, Holder } from '../../client/groups/groups.ts';
import type { Cancelled } from '../../client/jobs/cancel.ts';
import type { JobEnd } from '../../client/jobs/wait.ts';
import type { LimitUse, LimitView } from '../../client/limits/limits.ts';
import type { Moment } from '../../client/query/report.ts';
import type { Leader, Led, SeenWorker, SeenWorkers, VersionCount } from '../../client/queues/processes.ts';
import type { QueueLimits, QueueSettingsView, SettingOverride } from '../../client/queues/settings.ts';
import type { QueueCounts, QueueReport } from '../../client/queues/stats.ts';
import type { ShownWait, Why } from '../../client/queues/why.ts';
import type { WorkerPause } from '../../client/queues/workers.ts';
import type { Backlog, Forecast, ForecastBucket, QueueForecast } from '../../client/schedules/forecast.ts';
import type { FiredJob, LeftOut, PreviewRow, ScheduleChange, ScheduleView } from '../../client/schedules/schedules.ts';
import type { Day, DayEvent, QueueDay } from '../../inspect/day.ts';
import type { Result } from '../../inspect/doctor/doctor.ts';
import type { QueueLate } from '../../inspect/late.ts';
import type { LiveQueue, Look, Rates } from '../../inspect/look.ts';
import type { Lateness, QueueMinutes, SpreadSteps, SpreadTotal } from '../../inspect/minutes.ts';
import type { PastRun } from '../../inspect/schedule-runs.ts';
import type { SimulatedGroup, SimulatedRun, Simulation } from '../../inspect/simulate/simulate.ts';
import type { QueueSlo, Slos } from '../../inspect/slo.ts';
import type { StartAccount } from '../../job/account.ts';
import type { StartEstimate } from '../../job/estimate.ts';
import type { JobLog, LogLine } from '../../job/log-lines.ts';
import type { Attempted, Deferred, JobProgress } from '../../job/outcome.ts';
import type { KeptResult, PastJob } from '../../job/past.ts';
import type { QueueSettingOptions } from '../../job/queue-settings.ts';
import type { JobState } from '../../job/state.ts';
import type { TargetStep, TargetTried } from '../../job/target-tried.ts';
import type { COLORS } from '../../kernel/checks.ts';
import type { UnreadQueue } from '../../redis/read/each-queue.ts';
import type { Pause } from '../../redis/scripts/upkeep.ts';
import type { ClaimedJob } from '../../remote/claimed-job.ts';
import type { ClaimAnswer } from '../../remote/remote-work.ts';
import type { BeatWord, SettleWord } from '../../remote/settling.ts';

/** Fields of a view that depend on who asks. The words follow those of the view. */
interface Unseen {
  /** Only with the scope `data`. */
  readonly data: unknown;
  /** Only with the scope `data`. */
  readonly headers: unknown;
  /** Only with the scope `data`. */
  readonly message: unknown;
  /** Only with the scope `data`. */
  readonly stack: unknown;
  /** Only with the scope `data`. */
  readonly value: unknown;
  /** Only with the scope `data`. */
  readonly why: unknown;
  /** Only with the scope `data`. */
  readonly error: unknown;
  /** Only with the scope `data`. */
  readonly unreadable: unknown;
  /** Only with the scope `data`. */
  readonly log: unknown;
  /** What a handler gave only with the scope `data`. */
  readonly reason: unknown;
}

/** A view as its caller may see it, all the way down. What may be undefined may be missing. */
export type Seen<View> = View extends readonly (infer Item)[]
  ? readonly Seen<Item>[]
  : View extends object
    ? { readonly [Name in Exclude<keyof View, Missing<View>>]: Seen<View[Name]> } & {
        readonly [Name in Missing<View>]?: Seen<View[Name]> | undefined;
      }
    : View;
type Missing<View> = {
  [Name in keyof View]-?: Name extends keyof Unseen ? Name : undefined extends View[Name] ? Name : never;
}[keyof View];

/** One queue of the many that an answer is about. */
interface OfQueue {
  readonly queue: string;
}
interface Paged {
  /** Of the next page; left out on the last one. */
  readonly cursor?: string | undefined;
}
interface Changed {
  readonly changed: boolean;
}
interface Hidden {
  /** Data, headers and what handlers said are left out, because the token has not the scope `data`. */
  readonly hidden: boolean;
}

type ListedJob = Pick<
  JobView,
  | ('id' | 'bare' | 'partition' | 'state' | 'name' | 'dueMs' | 'tags' | 'owner' | 'startedMs' | 'tookMs' | 'overMs')
  | ('attempts' | 'failures' | 'crashes')
> & {
  /** What its last failed run said, or why it is dead; with the scope `data`. */
  readonly error?: string | undefined;
  /** The beginning of its data as JSON, where `preview` asks for it; with the scope `data`. */
  readonly preview?: string | undefined;
  /** For `ifMatch` of another due time, as long as it is not over; with the scope `write`. */
  readonly etag?: string | undefined;
};
/** A job in a list of several queues. */
type FoundJob = OfQueue & ListedJob;
/** What is told of the end of a job: the look at it says more. */
interface Ended extends Pick<JobEnd, 'id'> {
  /** `unknown`: nothing is known of it any more. `timeout`: the time is up, and it is not over. */
  readonly status: JobEnd['status'];
  readonly overMs?: number | undefined;
  /** The number of its last start; left out for a job that was never started. */
  readonly token?: string | undefined;
  readonly reason?: string;
}
interface ListedDeadLetter extends Omit<DeadLetterRow, 'queue' | 'overMs' | 'askedDueMs' | 'readable' | 'etag'> {
  /** Its address. */
  readonly deadLetter: string;
  /** The `ETag` without its quotes. */
  readonly etag: string;
  readonly atMs: number;
}

export interface Answers {
  readonly UnreadQueue: UnreadQueue;
  readonly Queues: {
    readonly namespace: string;
    readonly queues: readonly Answers['QueueCounts'][];
    readonly unread: readonly UnreadQueue[];
  };
  readonly QueueCounts: Omit<QueueCounts, 'leaders'> & {
    /** Per partition: the process that leads it, or null. */
    readonly leaders: readonly (string | null)[];
  };
  readonly QueueLimits: QueueLimits;
  readonly QueueStats: Omit<QueueReport, 'settings'>;
  readonly SettingOverride: SettingOverride;
  readonly Pause: Pause;
  readonly Leader: Leader;
  readonly QueuePaused: OfQueue &
    Changed & {
      readonly paused: boolean;
      /** The pause that holds, or the one that has ended. */
      readonly pause: Pause | undefined;
      /** Jobs that go on to their end. */
      readonly running?: number | undefined;
    };
  readonly QueueClosed: OfQueue & Changed & { readonly closed: boolean };
  readonly GroupPage: OfQueue &
    Paged & {
      readonly groups: readonly Answers['Group'][];
      /** Jobs in line that have no group. */
      readonly ungrouped: number;
      /** Groups that were looked at. */
      readonly scanned: number;
      readonly nowMs: number;
    };
  readonly Group: Seen<Group>;
  readonly GroupReport: Seen<OfQueue & GroupReport>;
  readonly Holder: Holder;
  readonly LimitList: { readonly limits: readonly LimitView[] };
  readonly LimitView: LimitView;
  readonly LimitUse: LimitUse;
  /** `changed`: anything is different now. */
  readonly LimitChange: Changed & { readonly limit: string };
  /** `changed`: anything is different now. */
  readonly GroupChange: OfQueue & Changed & { readonly group: string };
  readonly ClosedTagsPage: OfQueue &
    Paged & {
      readonly tags: readonly ClosedTag[];
      /** How many tags of the queue are closed. */
      readonly count: number;
    };
  readonly ClosedTag: ClosedTag;
  readonly TagClosed: OfQueue & TagsClosed & { readonly tag: string };
  readonly TagOpened: OfQueue & Changed & { readonly tag: string };
  readonly SetsPage: OfQueue & Paged & { readonly sets: readonly SetView[] };
  readonly Set: SetView;
  readonly SetMade: OfQueue & SetMade;
  readonly SetSealed: OfQueue & SetSealed;
  readonly SetRemoved: OfQueue & SetRemoved;
  readonly QueueMinutes: OfQueue & QueueMinutes;
  readonly SpreadSteps: SpreadSteps;
  readonly SpreadTotal: SpreadTotal;
  readonly LastHour: Lateness;
  readonly Day: Omit<Day, 'events'> & { readonly events: readonly Answers['DayEvent'][] };
  readonly QueueDay: QueueDay;
  readonly DayEvent: Seen<DayEvent>;
  readonly Slo: QueueSlo;
  readonly Slos: Slos;
  readonly WhyNothingMoves: OfQueue &
    Why & {
      /** Of the jobs that wait. */
      readonly lastStart: StartEstimate | undefined;
    };
  readonly JobsPage: OfQueue &
    Paged & {
      readonly states: readonly JobState[];
      readonly jobs: readonly ListedJob[];
      /** How many places were looked at for them. */
      readonly scanned: number;
    };
  readonly ListedJob: ListedJob;
  readonly FoundJobs: Paged & {
    readonly jobs: readonly Answers['FoundJob'][];
    /** How many places were looked at for them. */
    readonly scanned: number;
    readonly unread: readonly UnreadQueue[];
  };
  readonly FoundJob: FoundJob;
  readonly JobCount: OfQueue & JobCount & Paged & { readonly scanned: number };
  /** What `end` says. The look at the job says more, also what its handler returned. */
  readonly JobEnd: Seen<Ended>;
  readonly Job: Seen<
    Omit<JobReport, 'waitsFor' | 'digest' | 'etag'> &
      Hidden & {
        readonly waitsFor: ShownWait | undefined;
        /** Of a job that waits for its turn: when it is going to start, or why nobody can tell. */
        readonly starts: StartEstimate | undefined;
        /** Of its content; with the scope `data` or `write`. */
        readonly digest: string | undefined;
        /** The `ETag` without its quotes, as long as it is not over; with the scope `data` or `write`. */
        readonly etag: string | undefined;
      }
  >;
  readonly Attempted: Seen<Attempted>;
  readonly StartAccount: Seen<StartAccount>;
  readonly Deferred: Seen<Deferred>;
  readonly JobProgress: Seen<JobProgress>;
  readonly JobLog: Seen<JobLog>;
  readonly LogLine: Seen<LogLine>;
  readonly Moment: Seen<Moment>;
  readonly KeptResult: Seen<KeptResult>;
  readonly PastJob: Seen<PastJob>;
  readonly JobWait: Seen<ShownWait>;
  readonly StartEstimate: StartEstimate;
  readonly Scheduled: Scheduled;
  readonly JobPreview: JobPreview;
  readonly PreviewRefusal: PreviewRefusal;
  readonly ScheduledMany: OfQueue & { readonly jobs: readonly Scheduled[] };
  readonly Edited: Edited;
  readonly EditedMany: (OfQueue & { readonly jobs: readonly Edited[] }) | Answers['ChangedJobs'];
  readonly Cancelled: Cancelled;
  readonly CancelledMany: (OfQueue & { readonly jobs: readonly Cancelled[] }) | Answers['ChangedJobs'];
  readonly Rescheduled: Rescheduled & {
    /** Of one job that was asked for, and of each in a list that was given one: of the job after it. */
    readonly etag?: string | undefined;
  };
  readonly RescheduledMany: (OfQueue & { readonly jobs: readonly Answers['Rescheduled'][] }) | Answers['ChangedJobs'];
  readonly RanNow: RunNow;
  readonly RanNowMany: (OfQueue & { readonly jobs: readonly RunNow[] }) | Answers['ChangedJobs'];
  readonly ChangedJobs: OfQueue & ChangedJobs & Partial<Pick<CancelledJobs, 'requested'> & Pick<MovedJobs, 'moves'>>;
  readonly JobMove: JobMove;
  readonly DeadLettersPage: OfQueue &
    Paged & {
      /** Without `group`. */
      readonly deadLetters?: readonly Answers['ListedDeadLetter'][];
      /** With `group`: the largest first. */
      readonly groups?: readonly Answers['DeadLetterGroup'][];
      /** With `group`: dead letters in none of the groups, which are 1000 at most. */
      readonly others?: number;
      readonly scanned: number;
    };
  readonly DeadLetterOverview: Omit<DeadLetterOverview, 'kinds'> & {
    readonly kinds: readonly Answers['DeadLetterKind'][];
  };
  readonly DeadLetterKind: Seen<Omit<DeadLetterKind, 'example' | 'shares'>> & {
    readonly shares: DeadLetterShares;
    /** The newest of them. */
    readonly example: Pick<DeadLetterKind['example'], 'queue' | 'deadLetter' | 'id'>;
  };
  readonly ListedDeadLetter: Seen<ListedDeadLetter>;
  readonly DeadLetter: Seen<
    OfQueue &
      ListedDeadLetter &
      Hidden &
      Omit<DeadLetterView, keyof DeadLetterRow> &
      Pick<DeadLetterRow, 'readable' | 'askedDueMs'>
  >;
  readonly DeadLetterGroup: Seen<
    Omit<DeadLetterGroup, 'example'> & {
      /** The newest of them. */
      readonly example: Pick<DeadLetterGroup['example'], 'deadLetter' | 'id'>;
    }
  >;
  readonly Replayed: Partial<Omit<Replayed, 'status'>> & Pick<Replayed, 'status'>;
  readonly ReplayedMany: OfQueue &
    Paged & {
      readonly dryRun: boolean;
      readonly matched: number;
      readonly replayed: number;
      /** They stay: a job of their id lives. */
      readonly live: number;
      /** They stay: a tag of their job is closed. */
      readonly closed: number;
      readonly empty: number;
      readonly gone: number;
      /** Of those that were named: each. Else the first 100 that were not replayed. */
      readonly deadLetters: readonly Answers['Replayed'][];
      readonly scanned: number;
    };
  readonly Purged: OfQueue &
    Paged & {
      readonly dryRun: boolean;
      readonly matched: number;
      readonly removed: number;
      readonly scanned: number;
    };
  readonly Erased: Omit<Erased, 'queues'> & {
    /** Those that this request has looked at. */
    readonly queues: readonly Answers['ErasedQueue'][];
  };
  readonly ErasedQueue: Omit<ErasedQueue, 'dryRun'>;
  readonly SchedulesPage: {
    readonly namespace: string;
    readonly schedules: readonly Answers['Schedule'][];
    /** How many there are besides. */
    readonly more: number;
    readonly unreadable: readonly { readonly name: string; readonly why: string }[];
  };
  readonly Schedule: Omit<ScheduleView, 'schedule' | 'input' | 'etag'> &
    Hidden & {
      /** As it was written, instants in UTC; `data` and `headers` only with the scope `data`. */
      readonly input: Readonly<Record<string, unknown>>;
      /** The `ETag` without its quotes; with the scope `data` or `write`. */
      readonly etag: string | undefined;
    };
  readonly ScheduleChanged: Pick<ScheduleChange, 'name' | 'status'> & {
    readonly queue?: string;
    readonly nextMs: number | undefined;
    readonly paused: string | undefined;
  };
  readonly Preview: {
    readonly name: string;
    readonly rows: readonly PreviewRow[];
    /** What has no row: an answer has at most a megabyte. */
    readonly leftOut: LeftOut | undefined;
  };
  readonly PreviewRow: PreviewRow;
  readonly PreviewLeftOut: LeftOut;
  readonly PastRuns: OfQueue & Paged & { readonly name: string; readonly runs: readonly PastRun[] };
  readonly PastRun: PastRun;
  readonly FiredJob: FiredJob;
  readonly Backfilled: {
    readonly name: string;
    readonly dryRun: boolean;
    readonly jobs: readonly FiredJob[];
    /** So many more, behind the first 5000. */
    readonly leftOut: number | undefined;
  };
  readonly TargetTried: TargetTried;
  readonly TargetStep: TargetStep;
  readonly Simulation: Simulation;
  readonly SimulatedRun: SimulatedRun;
  readonly SimulatedGroup: SimulatedGroup;
  readonly Forecast: Forecast;
  readonly ForecastBucket: ForecastBucket;
  readonly QueueForecast: QueueForecast;
  readonly QueueLate: Omit<QueueLate, 'diary'> & { readonly diary: Seen<QueueLate['diary']> };
  readonly Backlog: Backlog;
  readonly Leaders: {
    readonly namespace: string;
    readonly partitions: readonly Led[];
    readonly unread: readonly UnreadQueue[];
  };
  readonly Led: Led;
  readonly Workers: Omit<SeenWorkers, 'workers'> & {
    readonly namespace: string;
    readonly workers: readonly Answers['Worker'][];
  };
  readonly Worker: Omit<SeenWorker, 'connections'>;
  readonly WorkerPause: WorkerPause;
  readonly WorkerPaused: Changed & {
    readonly worker: string;
    readonly paused: boolean;
    /** The pause that holds, or the one that has ended. */
    readonly pause: WorkerPause | undefined;
  };
  readonly VersionCount: VersionCount;
  readonly Findings: { readonly ok: boolean; readonly checks: readonly Result[] };
  readonly Finding: Result;
  readonly About: {
    /** `http.title`; empty: none. */
    readonly title: string;
    /** `http.color`. */
    readonly color: (typeof COLORS)[number];
    /** Its address, without user and password. */
    readonly redis: string;
    readonly namespace: string;
    /** Of the token; `anonymous` where none is needed. */
    readonly name: string;
    readonly scopes: readonly Scope[];
    /** Left out: all queues. */
    readonly queues: readonly string[] | undefined;
  };
  readonly LiveNow: Omit<Look, 'queues' | 'processes' | 'redis' | 'forecast' | 'doctor'> &
    Partial<Pick<Look, 'forecast'>> & {
      /** This, `forecast` and `doctor`: only for tokens of all queues, and not in the first event. */
      readonly redis?: Look['redis'];
      /** What is not as it should be. */
      readonly doctor?: Look['doctor'];
      readonly everyMs: number;
      readonly queues: readonly (Omit<LiveQueue, 'leaders'> & Pick<Answers['QueueCounts'], 'leaders'>)[];
      readonly total: Pick<
        LiveQueue,
        'scheduled' | 'waiting' | 'ready' | 'running' | 'dead' | 'oldestDueAgeMs' | 'perSecond'
      >;
      readonly processes: Look['processes'] & {
        readonly leaders: number;
        readonly partitions: number;
        /** Partitions that have a leader. */
        readonly led: number;
      };
    };
  readonly Rates: Rates;
  readonly AuditPage: Paged & { readonly entries: readonly AuditEntry[] };
  readonly AuditEntry: AuditEntry;
  readonly Session: {
    /** Of the token, or as an application or a proxy says. */
    readonly name: string;
    /** Where it has logged in: with a token, or elsewhere. */
    readonly login: 'token' | 'application' | 'proxy';
    readonly scopes: readonly string[];
    /** Left out: all queues. */
    readonly queues: readonly string[] | undefined;
    /** Left out where it has logged in elsewhere. */
    readonly expiresMs?: number;
    /** For the header `X-CSRF-Token` of each request that changes anything. */
    readonly csrf: string;
  };
  readonly Claimed: Omit<ClaimAnswer, 'jobs'> & { readonly jobs: readonly ClaimedJob[] };
  readonly ClaimedJob: ClaimedJob;
  readonly SettleWords: { readonly results: readonly SettleWord[] };
  readonly SettleWord: { readonly result: SettleWord };
  readonly BeatWords: { readonly results: readonly BeatWord[] };
  readonly BeatWord: { readonly result: BeatWord };
  readonly WorkerLeft: {
    /** How many jobs went back. */
    readonly given: number;
  };
  readonly SettingsView: OfQueue & QueueSettingsView;
  readonly SettingsChanged: OfQueue &
    QueueSettingsView & {
      /** The settings that were others before. */
      readonly changed: readonly string[];
    };
}

/** What has a schema already, because it is asked as it is answered: see `setting-shapes.ts`. */
export interface Elsewhere {
  readonly QueueSettings: QueueSettingOptions;
}

/** A part of JSON schema, as the types of answers need it. */
export interface AnswerSchema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly enum?: readonly (string | boolean)[];
  readonly minimum?: number;
  readonly properties?: Readonly<Record<string, AnswerSchema>>;
  readonly required?: readonly string[];
  readonly items?: AnswerSchema;
  readonly additionalProperties?: AnswerSchema;
  readonly anyOf?: readonly AnswerSchema[];
  readonly description?: string;
  readonly example?: number;
}
