/**
 * What the HTTP API is asked and answers, by the names of docs/reference/openapi.json, which has the words too.
 * Made by `npm run generate`; edit the schemas in src/http/api.
 */
export interface Schemas {
  readonly QueueCounts: {
    readonly queue: string;
    readonly partitions: number;
    readonly scheduled: number;
    readonly waiting: number;
    readonly waitMs: number;
    readonly ready: number;
    readonly running: number;
    readonly dead: number;
    readonly oldestDueAgeMs: number;
    readonly oldestInLine: boolean;
    readonly quota?: {
      readonly pending: number;
      readonly pendingMax: number;
      readonly bytes: number;
      readonly bytesMax: number;
    };
    readonly limits?: Schemas['QueueLimits'];
    readonly paused: boolean;
    readonly workers: number;
    readonly leaders: readonly (string | null)[];
  };
  readonly QueueLimits: {
    readonly text: string;
    readonly rate?: {
      readonly limit: number;
      readonly perMs: number;
      readonly burst: number;
    };
    readonly concurrency?: number;
    readonly perGroup?: number;
    readonly fair?: true;
  };
  readonly UnreadQueue: {
    readonly queue: string;
    readonly why: string;
  };
  readonly Problem: {
    readonly type: string;
    readonly title: string;
    readonly status: number;
    readonly code: string;
    readonly detail?: string;
    readonly errors?: readonly {
      readonly field: string;
      readonly given: string;
      readonly allowed: string;
    }[];
    readonly login?: 'application';
  };
  readonly QueueStats: {
    readonly queue: string;
    readonly scheduled: number;
    readonly waiting: number;
    readonly waitMs: number;
    readonly ready: number;
    readonly running: number;
    readonly dead: number;
    readonly oldestDueAgeMs: number;
    readonly oldestInLine: boolean;
    readonly over: number;
    readonly counters: {
      readonly [key: string]: number;
    };
    readonly quota?: {
      readonly pending: number;
      readonly pendingMax: number;
      readonly bytes: number;
      readonly bytesMax: number;
    };
    readonly limits?: Schemas['QueueLimits'];
    readonly overrides: readonly Schemas['SettingOverride'][];
    readonly lingerMs: number;
    readonly workers: number;
    readonly broadcast?: {
      readonly kept: number;
      readonly max: number;
      readonly bytes: number;
      readonly ageMs: number;
      readonly subscribers: readonly {
        readonly id: string;
        readonly host: string;
        readonly pid: number;
        readonly lag: number;
      }[];
    };
    readonly paused: boolean;
    readonly pause?: Schemas['Pause'];
    readonly dueNext: readonly {
      readonly fromMs?: number;
      readonly toMs?: number;
      readonly count: number;
    }[];
    readonly partitions: readonly {
      readonly partition: number;
      readonly scheduled: number;
      readonly waiting: number;
      readonly waitMs: number;
      readonly ready: number;
      readonly running: number;
      readonly dead: number;
      readonly oldestDueAgeMs: number;
      readonly oldestInLine: boolean;
      readonly over: number;
      readonly counters: {
        readonly [key: string]: number;
      };
      readonly quota?: {
        readonly pending: number;
        readonly pendingMax: number;
        readonly bytes: number;
        readonly bytesMax: number;
      };
      readonly concurrency?: number;
      readonly paused: boolean;
      readonly leader?: Schemas['Leader'];
    }[];
    readonly nowMs: number;
  };
  readonly SettingOverride: {
    readonly setting: string;
    readonly group?: string;
    readonly value?: unknown;
    readonly code?: unknown;
    readonly by: string;
    readonly reason: string;
    readonly atMs: number;
  };
  readonly Pause: {
    readonly sinceMs?: number;
    readonly reason: string;
  };
  readonly Leader: {
    readonly process: string;
    readonly host?: string;
    readonly pid?: number;
    readonly version?: string;
    readonly epoch: number;
    readonly sinceMs: number;
    readonly leaseLeftMs: number;
    readonly lastPassAgoMs?: number;
  };
  readonly QueuePaused: {
    readonly queue: string;
    readonly paused: boolean;
    readonly changed: boolean;
    readonly pause?: Schemas['Pause'];
    readonly running?: number;
  };
  readonly PauseRequest: {
    readonly reason?: string;
  };
  readonly QueueClosed: {
    readonly queue: string;
    readonly closed: boolean;
    readonly changed: boolean;
  };
  readonly CloseRequest: {
    readonly for: number | string;
    readonly reason?: string;
  };
  readonly QueueSettings: {
    readonly history?: boolean | {
      readonly keep?: number | string;
      readonly max?: number;
      readonly result?: boolean;
      readonly resultBytesMax?: number;
    };
    readonly redact?: readonly string[];
    readonly broadcast?: boolean | {
      readonly max?: number;
      readonly bytes?: number;
      readonly age?: number | string;
    };
    readonly maxPending?: number | false;
    readonly maxBytes?: number | false;
    readonly linger?: number | string;
    readonly rate?: string | {
      readonly limit: number;
      readonly per: number | string;
      readonly burst?: number;
    } | false;
    readonly concurrency?: number | false;
    readonly perGroup?: number | false | {
      readonly concurrency?: number | false;
      readonly rate?: string | {
        readonly limit: number;
        readonly per: number | string;
        readonly burst?: number;
      } | false;
      readonly maxPending?: number | false;
    };
    readonly groups?: {
      readonly [key: string]: Schemas['GroupLimits'];
    };
    readonly fair?: true;
  };
  readonly GroupLimits: {
    readonly concurrency?: number | false;
    readonly rate?: string | {
      readonly limit: number;
      readonly per: number | string;
      readonly burst?: number;
    } | false;
    readonly maxPending?: number | false;
    readonly weight?: number;
  };
  readonly QueueSettingsRequest: {
    readonly history?: boolean | {
      readonly keep?: number | string;
      readonly max?: number;
      readonly result?: boolean;
      readonly resultBytesMax?: number;
    };
    readonly redact?: readonly string[];
    readonly broadcast?: boolean | {
      readonly max?: number;
      readonly bytes?: number;
      readonly age?: number | string;
    };
    readonly maxPending?: number | false;
    readonly maxBytes?: number | false;
    readonly linger?: number | string;
    readonly rate?: string | {
      readonly limit: number;
      readonly per: number | string;
      readonly burst?: number;
    } | false;
    readonly concurrency?: number | false;
    readonly perGroup?: number | false | {
      readonly concurrency?: number | false;
      readonly rate?: string | {
        readonly limit: number;
        readonly per: number | string;
        readonly burst?: number;
      } | false;
      readonly maxPending?: number | false;
    };
    readonly groups?: {
      readonly [key: string]: Schemas['GroupLimits'];
    };
    readonly fair?: true;
    readonly reason?: string;
  };
  readonly GroupPage: {
    readonly queue: string;
    readonly groups: readonly Schemas['Group'][];
    readonly ungrouped: number;
    readonly scanned: number;
    readonly nowMs: number;
    readonly cursor?: string;
  };
  readonly Group: {
    readonly group: string;
    readonly running: number;
    readonly waiting: number;
    readonly priorities: {
      readonly high: number;
      readonly normal: number;
      readonly low: number;
    };
    readonly waitMs: number;
    readonly perGroup?: number;
    readonly intervalMs?: number;
    readonly nextTurnMs?: number;
    readonly weight: number;
    readonly maxPending?: number;
    readonly pending?: number;
    readonly closed?: {
      readonly untilMs: number;
      readonly reason?: string;
    };
    readonly isFull: boolean;
  };
  readonly GroupReport: {
    readonly queue: string;
    readonly group: string;
    readonly running: number;
    readonly waiting: number;
    readonly priorities: {
      readonly high: number;
      readonly normal: number;
      readonly low: number;
    };
    readonly waitMs: number;
    readonly perGroup?: number;
    readonly intervalMs?: number;
    readonly nextTurnMs?: number;
    readonly weight: number;
    readonly maxPending?: number;
    readonly pending?: number;
    readonly closed?: {
      readonly untilMs: number;
      readonly reason?: string;
    };
    readonly isFull: boolean;
    readonly holders: readonly Schemas['Holder'][];
    readonly nowMs: number;
  };
  readonly Holder: {
    readonly id: string;
    readonly bare: boolean;
    readonly sinceMs: number;
    readonly owner?: string;
    readonly attempt?: number;
    readonly startedMs?: number;
  };
  readonly GroupChange: {
    readonly queue: string;
    readonly group: string;
    readonly changed: boolean;
  };
  readonly GroupLimitsRequest: {
    readonly concurrency?: number | false;
    readonly rate?: string | {
      readonly limit: number;
      readonly per: number | string;
      readonly burst?: number;
    } | false;
    readonly maxPending?: number | false;
    readonly weight?: number;
    readonly reason?: string;
  };
  readonly ClosedTagsPage: {
    readonly queue: string;
    readonly tags: readonly Schemas['ClosedTag'][];
    readonly count: number;
    readonly cursor?: string;
  };
  readonly ClosedTag: {
    readonly tag: string;
    readonly untilMs: number;
    readonly atMs?: number;
    readonly by: string;
    readonly reason: string;
  };
  readonly TagClosed: {
    readonly queue: string;
    readonly tag: string;
    readonly cancelled: number;
    readonly running: readonly string[];
    readonly untilMs: number;
    readonly full?: readonly string[];
  };
  readonly TagOpened: {
    readonly queue: string;
    readonly tag: string;
    readonly changed: boolean;
  };
  readonly SetsPage: {
    readonly queue: string;
    readonly sets: readonly Schemas['Set'][];
    readonly cursor?: string;
  };
  readonly Set: {
    readonly name: string;
    readonly sealed: boolean;
    readonly madeMs: number;
    readonly open: number;
    readonly done: number;
    readonly dead: number;
    readonly cancelled: number;
    readonly expired: number;
    readonly group?: string;
    readonly callback: {
      readonly id: string;
      readonly name?: string;
      readonly delayMs: number;
    };
  };
  readonly SetMade: {
    readonly queue: string;
    readonly set: string;
    readonly status: 'made' | 'already' | 'over';
    readonly callback: string;
  };
  readonly NewSet: {
    readonly then: Schemas['SetCallback'];
    readonly group?: string;
  };
  readonly SetCallback: {
    readonly data?: unknown;
    readonly delay?: number | string;
    readonly name?: string;
    readonly attempts?: number;
    readonly timeout?: number | string;
    readonly backoff?: Schemas['Backoff'];
    readonly priority?: 'high' | 'normal' | 'low';
    readonly tags?: readonly string[];
    readonly maxLateness?: number | string;
    readonly onLate?: 'drop' | 'dead' | 'run';
    readonly headers?: {
      readonly [key: string]: string;
    };
  };
  readonly Backoff: {
    readonly kind: 'fixed' | 'linear' | 'exponential' | 'ladder';
    readonly delay?: number | string;
    readonly delayMs?: number;
    readonly factor?: number;
    readonly max?: number | string;
    readonly maxMs?: number;
    readonly steps?: readonly (number | string)[];
    readonly stepsMs?: readonly number[];
    readonly jitter?: 'none' | 'full' | 'equal';
  };
  readonly SetSealed: {
    readonly queue: string;
    readonly set: string;
    readonly status: 'sealed' | 'already' | 'over';
    readonly callback: string;
  };
  readonly SetRemoved: {
    readonly queue: string;
    readonly set: string;
    readonly cancelled: number;
    readonly running: readonly string[];
  };
  readonly QueueMinutes: {
    readonly queue: string;
    readonly on: boolean;
    readonly nowMs: number;
    readonly startMs: number;
    readonly stepMs: number;
    readonly counts: {
      readonly scheduled: readonly number[];
      readonly promoted: readonly number[];
      readonly done: readonly number[];
      readonly retried: readonly number[];
      readonly deferred: readonly number[];
      readonly dead: readonly number[];
      readonly cancelled: readonly number[];
      readonly expired: readonly number[];
    };
    readonly known: readonly boolean[];
    readonly promotion: Schemas['SpreadSteps'];
    readonly start: Schemas['SpreadSteps'];
    readonly run: Schemas['SpreadSteps'];
    readonly total: {
      readonly promotion: Schemas['SpreadTotal'];
      readonly start: Schemas['SpreadTotal'];
      readonly run: Schemas['SpreadTotal'];
    };
  };
  readonly SpreadSteps: {
    readonly count: readonly number[];
    readonly p50Ms: readonly (number | null)[];
    readonly p99Ms: readonly (number | null)[];
    readonly maxMs: readonly (number | null)[];
  };
  readonly SpreadTotal: {
    readonly boundsMs: readonly number[];
    readonly counts: readonly number[];
    readonly count: number;
    readonly p50Ms: number | null;
    readonly p99Ms: number | null;
    readonly maxMs: number | null;
  };
  readonly LastHour: {
    readonly on: boolean;
    readonly nowMs: number;
    readonly promotion: Schemas['SpreadTotal'];
    readonly start: Schemas['SpreadTotal'];
    readonly run: Schemas['SpreadTotal'];
    readonly queues: readonly {
      readonly queue: string;
      readonly promotion: Schemas['SpreadTotal'];
      readonly start: Schemas['SpreadTotal'];
      readonly run: Schemas['SpreadTotal'];
    }[];
    readonly unread: readonly Schemas['UnreadQueue'][];
  };
  readonly WhyNothingMoves: {
    readonly queue: string;
    readonly moves: boolean;
    readonly reasons: readonly {
      readonly code: 'redis-full' | 'no-leader' | 'paused' | 'no-worker' | 'ready-capped' | 'busy' | 'waiting' | 'lingering' | 'not-due' | 'empty';
      readonly text: string;
      readonly advice: string;
      readonly partitions?: readonly number[];
      readonly heldBy?: 'queue-closed' | 'queue-full' | 'rate' | 'group-full';
      readonly nextMs?: number;
    }[];
    readonly nowMs: number;
  };
  readonly JobsPage: {
    readonly queue: string;
    readonly states: readonly ('scheduled' | 'waiting' | 'ready' | 'running' | 'done' | 'cancelled' | 'expired' | 'dead')[];
    readonly jobs: readonly Schemas['ListedJob'][];
    readonly scanned: number;
    readonly cursor?: string;
  };
  readonly ListedJob: {
    readonly id: string;
    readonly bare: boolean;
    readonly partition: number;
    readonly state: 'scheduled' | 'waiting' | 'ready' | 'running' | 'done' | 'cancelled' | 'expired' | 'dead';
    readonly name?: string;
    readonly dueMs?: number;
    readonly tags?: readonly string[];
    readonly attempts?: number;
    readonly owner?: string;
    readonly startedMs?: number;
    readonly tookMs?: number;
    readonly overMs?: number;
  };
  readonly JobCount: {
    readonly queue: string;
    readonly count: number;
    readonly atLeast: boolean;
    readonly scanned: number;
    readonly cursor?: string;
  };
  readonly JobEnd: {
    readonly id: string;
    readonly status: 'done' | 'dead' | 'cancelled' | 'expired' | 'unknown' | 'timeout';
    readonly overMs?: number;
    readonly token?: string;
    readonly reason?: string;
  };
  readonly Scheduled: {
    readonly id: string;
    readonly queue: string;
    readonly status: 'scheduled' | 'updated' | 'replaced' | 'exists' | 'running' | 'already' | 'closed' | 'merged' | 'kept' | 'behind' | 'overtaken';
    readonly dueMs: number;
    readonly over?: 'done' | 'cancelled' | 'expired' | 'dead';
    readonly closed?: {
      readonly tag: string;
      readonly untilMs: number;
    };
  };
  readonly NewJob: {
    readonly data?: unknown;
    readonly delay?: number | string;
    readonly at?: string;
    readonly zone?: string;
    readonly within?: number | string;
    readonly id?: string;
    readonly group?: string;
    readonly name?: string;
    readonly ifExists?: 'keep' | 'update' | 'replace' | 'error';
    readonly debounce?: {
      readonly wait: number | string;
      readonly max?: number | string;
    };
    readonly attempts?: number;
    readonly timeout?: number | string;
    readonly backoff?: Schemas['Backoff'];
    readonly priority?: 'high' | 'normal' | 'low';
    readonly tags?: readonly string[];
    readonly set?: string;
    readonly expiresAt?: string;
    readonly maxLateness?: number | string;
    readonly onLate?: 'drop' | 'dead' | 'run';
    readonly headers?: {
      readonly [key: string]: string;
    };
  };
  readonly Job: {
    readonly id: string;
    readonly queue: string;
    readonly partition: number;
    readonly bare: boolean;
    readonly state: 'scheduled' | 'waiting' | 'ready' | 'running' | 'done' | 'cancelled' | 'expired' | 'dead';
    readonly name?: string;
    readonly data?: unknown;
    readonly headers?: {
      readonly [key: string]: string;
    };
    readonly hidden: boolean;
    readonly options: {
      readonly [key: string]: unknown;
    };
    readonly digest?: string;
    readonly etag?: string;
    readonly dueMs?: number;
    readonly askedDueMs?: number;
    readonly attempts: number;
    readonly failures: number;
    readonly crashes: number;
    readonly generation: number;
    readonly cancelRequested: boolean;
    readonly nextLifeMs?: number;
    readonly owner?: string;
    readonly token?: string;
    readonly tags?: readonly string[];
    readonly codec?: string;
    readonly startedMs?: number;
    readonly tookMs?: number;
    readonly history: readonly Schemas['Attempted'][];
    readonly deferred?: Schemas['Deferred'];
    readonly progress?: Schemas['JobProgress'];
    readonly timeline: readonly Schemas['Moment'][];
    readonly result?: Schemas['KeptResult'];
    readonly past: readonly Schemas['PastJob'][];
    readonly nowMs: number;
    readonly overMs?: number;
    readonly deadLetter?: string;
    readonly reason?: string;
    readonly readable: boolean;
    readonly unreadable?: string;
    readonly entry?: string;
    readonly waitsFor?: Schemas['JobWait'];
  };
  readonly Attempted: {
    readonly atMs: number;
    readonly attempt: number;
    readonly kind: 'failure' | 'timeout' | 'crash' | 'refused';
    readonly message?: string;
    readonly stack?: string;
    readonly worker?: string;
    readonly tookMs?: number;
  };
  readonly Deferred: {
    readonly times: number;
    readonly lastMs: number;
    readonly reason?: string;
  };
  readonly JobProgress: {
    readonly fraction: number;
    readonly text?: string;
    readonly atMs: number;
  };
  readonly Moment: {
    readonly atMs: number;
    readonly kind: 'asked-due' | 'due' | 'started' | 'failure' | 'timeout' | 'crash' | 'refused' | 'done' | 'cancelled' | 'expired' | 'dead' | 'earlier-end';
    readonly attempt?: number;
    readonly owner?: string;
    readonly tookMs?: number;
    readonly outcome?: 'done' | 'cancelled' | 'expired' | 'dead';
    readonly message?: string;
    readonly stack?: string;
  };
  readonly KeptResult: {
    readonly kind: 'kept' | 'none' | 'too-large' | 'no-json';
    readonly value?: unknown;
    readonly bytes?: number;
    readonly why?: string;
  };
  readonly PastJob: {
    readonly id: string;
    readonly bare: boolean;
    readonly outcome: 'done' | 'cancelled' | 'expired' | 'dead';
    readonly name?: string;
    readonly tags: readonly string[];
    readonly set?: string;
    readonly token?: string;
    readonly askedDueMs: number;
    readonly attempts: number;
    readonly failures: number;
    readonly crashes: number;
    readonly generation: number;
    readonly owner?: string;
    readonly startedMs?: number;
    readonly tookMs?: number;
    readonly overMs: number;
    readonly history: readonly Schemas['Attempted'][];
    readonly deferred?: Schemas['Deferred'];
    readonly result: Schemas['KeptResult'];
    readonly deadLetter?: string;
  };
  readonly JobWait: {
    readonly group?: string;
    readonly priority: 'high' | 'normal' | 'low';
    readonly ahead: number;
    readonly text: string;
    readonly obstacles: readonly {
      readonly kind: 'paused' | 'no-worker' | 'queue-full' | 'queue-closed' | 'rate' | 'group-full' | 'group-closed' | 'group-rate';
      readonly text: string;
      readonly sinceMs?: number;
      readonly reason?: string;
      readonly limit?: number;
      readonly running?: number;
      readonly holders?: readonly Schemas['Holder'][];
      readonly untilMs?: number;
    }[];
  };
  readonly Edited: {
    readonly id: string;
    readonly status: 'edited' | 'already' | 'changed' | 'running' | 'over' | 'unknown' | 'unreadable' | 'indeterminate';
    readonly digest?: string;
    readonly etag?: string;
    readonly dueMs?: number;
    readonly over?: 'done' | 'cancelled' | 'expired' | 'dead';
  };
  readonly JobChange: {
    readonly data?: unknown;
    readonly name?: string;
    readonly delay?: number | string;
    readonly at?: string;
    readonly zone?: string;
    readonly attempts?: number | null;
    readonly timeout?: number | string | null;
    readonly backoff?: Schemas['Backoff'] & (Record<string, never> | null);
    readonly priority?: 'high' | 'normal' | 'low' | null;
    readonly tags?: readonly string[] | null;
    readonly expiresAt?: string | null;
    readonly maxLateness?: number | string | null;
    readonly onLate?: 'drop' | 'dead' | 'run' | null;
    readonly headers?: {
      readonly [key: string]: string;
    } | null;
  };
  readonly Cancelled: {
    readonly id: string;
    readonly status: 'cancelled' | 'requested' | 'over' | 'unknown' | 'indeterminate';
    readonly over?: 'done' | 'cancelled' | 'expired' | 'dead';
  };
  readonly Rescheduled: {
    readonly id: string;
    readonly status: 'rescheduled' | 'already' | 'kept' | 'ready' | 'running' | 'over' | 'unknown' | 'indeterminate';
    readonly dueMs?: number;
    readonly wasMs?: number;
    readonly etag?: string;
    readonly over?: 'done' | 'cancelled' | 'expired' | 'dead';
  };
  readonly NewDue: {
    readonly delay?: number | string;
    readonly at?: string;
    readonly zone?: string;
    readonly shift?: number | string;
    readonly only?: 'earlier' | 'later';
  };
  readonly RanNow: {
    readonly id: string;
    readonly status: 'due' | 'already-due' | 'running' | 'over' | 'unknown' | 'indeterminate';
    readonly over?: 'done' | 'cancelled' | 'expired' | 'dead';
  };
  readonly NewJobs: {
    readonly jobs: readonly Schemas['NewJob'][];
  };
  readonly ChangedJobs: {
    readonly queue: string;
    readonly dryRun: boolean;
    readonly matched: number;
    readonly changed: number;
    readonly requested?: number;
    readonly skipped: {
      readonly [key: string]: number;
    };
    readonly scanned: number;
    readonly ids: readonly string[];
    readonly cursor?: string;
  };
  readonly BatchRequest: {
    readonly ids?: readonly string[];
    readonly filter?: Schemas['JobFilter'];
    readonly dryRun?: boolean;
    readonly limit?: number;
    readonly cursor?: string;
  };
  readonly JobFilter: {
    readonly state?: ('scheduled' | 'waiting' | 'ready' | 'running') | readonly ('scheduled' | 'waiting' | 'ready' | 'running')[];
    readonly tag?: string;
    readonly set?: string;
    readonly name?: string;
    readonly idPrefix?: string;
    readonly dueFrom?: string;
    readonly dueTo?: string;
  };
  readonly RescheduleBatchRequest: {
    readonly ids?: readonly string[];
    readonly filter?: Schemas['JobFilter'];
    readonly dryRun?: boolean;
    readonly limit?: number;
    readonly cursor?: string;
    readonly jobs?: readonly Schemas['NewDueOf'][];
    readonly due?: Schemas['NewDue'];
  };
  readonly NewDueOf: {
    readonly id: string;
    readonly delay?: number | string;
    readonly at?: string;
    readonly zone?: string;
    readonly shift?: number | string;
    readonly only?: 'earlier' | 'later';
  };
  readonly EditBatchRequest: {
    readonly ids?: readonly string[];
    readonly filter?: Schemas['JobFilter'];
    readonly dryRun?: boolean;
    readonly limit?: number;
    readonly cursor?: string;
    readonly jobs?: readonly Schemas['JobChangeOf'][];
    readonly change?: Schemas['JobChange'];
  };
  readonly JobChangeOf: {
    readonly id: string;
    readonly data?: unknown;
    readonly name?: string;
    readonly delay?: number | string;
    readonly at?: string;
    readonly zone?: string;
    readonly attempts?: number | null;
    readonly timeout?: number | string | null;
    readonly backoff?: Schemas['Backoff'] & (Record<string, never> | null);
    readonly priority?: 'high' | 'normal' | 'low' | null;
    readonly tags?: readonly string[] | null;
    readonly expiresAt?: string | null;
    readonly maxLateness?: number | string | null;
    readonly onLate?: 'drop' | 'dead' | 'run' | null;
    readonly headers?: {
      readonly [key: string]: string;
    } | null;
  };
  readonly DeadLettersPage: {
    readonly queue: string;
    readonly deadLetters?: readonly Schemas['ListedDeadLetter'][];
    readonly groups?: readonly Schemas['DeadLetterGroup'][];
    readonly others?: number;
    readonly scanned: number;
    readonly cursor?: string;
  };
  readonly ListedDeadLetter: {
    readonly deadLetter: string;
    readonly partition: number;
    readonly id: string;
    readonly bare: boolean;
    readonly name?: string;
    readonly tags: readonly string[];
    readonly reason?: string;
    readonly error?: string;
    readonly attempts: number;
    readonly failures: number;
    readonly crashes: number;
    readonly generation: number;
    readonly etag: string;
    readonly atMs: number;
    readonly history: readonly Schemas['Attempted'][];
    readonly deferred?: Schemas['Deferred'];
  };
  readonly DeadLetterGroup: {
    readonly reason?: string;
    readonly error?: string;
    readonly name?: string;
    readonly count: number;
    readonly firstMs: number;
    readonly lastMs: number;
  };
  readonly DeadLetter: {
    readonly queue: string;
    readonly deadLetter: string;
    readonly partition: number;
    readonly id: string;
    readonly bare: boolean;
    readonly name?: string;
    readonly tags: readonly string[];
    readonly reason?: string;
    readonly error?: string;
    readonly attempts: number;
    readonly failures: number;
    readonly crashes: number;
    readonly generation: number;
    readonly etag: string;
    readonly atMs: number;
    readonly history: readonly Schemas['Attempted'][];
    readonly deferred?: Schemas['Deferred'];
    readonly hidden: boolean;
    readonly readable: boolean;
    readonly data?: unknown;
    readonly headers?: {
      readonly [key: string]: string;
    };
    readonly codec?: string;
    readonly options: {
      readonly [key: string]: unknown;
    };
    readonly askedDueMs?: number;
  };
  readonly Replayed: {
    readonly deadLetter?: string;
    readonly id?: string;
    readonly status: 'scheduled' | 'live' | 'closed' | 'empty' | 'gone' | 'indeterminate';
    readonly dueMs?: number;
  };
  readonly ReplayDue: {
    readonly delay?: number | string;
    readonly at?: string;
    readonly zone?: string;
  };
  readonly ReplayedMany: {
    readonly queue: string;
    readonly dryRun: boolean;
    readonly matched: number;
    readonly replayed: number;
    readonly live: number;
    readonly closed: number;
    readonly empty: number;
    readonly gone: number;
    readonly deadLetters: readonly Schemas['Replayed'][];
    readonly scanned: number;
    readonly cursor?: string;
  };
  readonly ReplayRequest: {
    readonly deadLetters?: readonly string[];
    readonly all?: true;
    readonly reason?: string;
    readonly name?: string;
    readonly tag?: string;
    readonly set?: string;
    readonly id?: string;
    readonly error?: string;
    readonly olderThan?: number | string;
    readonly newerThan?: number | string;
    readonly limit?: number;
    readonly delay?: number | string;
    readonly spread?: number | string;
    readonly dryRun?: boolean;
    readonly cursor?: string;
  };
  readonly Purged: {
    readonly queue: string;
    readonly dryRun: boolean;
    readonly matched: number;
    readonly removed: number;
    readonly scanned: number;
    readonly cursor?: string;
  };
  readonly PurgeRequest: {
    readonly dryRun: boolean;
    readonly all?: true;
    readonly reason?: string;
    readonly name?: string;
    readonly tag?: string;
    readonly set?: string;
    readonly id?: string;
    readonly error?: string;
    readonly olderThan?: number | string;
    readonly newerThan?: number | string;
    readonly limit?: number;
    readonly cursor?: string;
  };
  readonly Erased: {
    readonly dryRun: boolean;
    readonly queues: readonly Schemas['ErasedQueue'][];
    readonly left: number;
    readonly failed: readonly Schemas['UnreadQueue'][];
    readonly cursor?: string;
  };
  readonly ErasedQueue: {
    readonly queue: string;
    readonly jobs: number;
    readonly running: number;
    readonly deadLetters: number;
    readonly history: number;
    readonly left: number;
    readonly scanned: number;
  };
  readonly EraseRequest: {
    readonly tag: string;
    readonly queue?: string;
    readonly dryRun?: boolean;
    readonly cursor?: string;
  };
  readonly SchedulesPage: {
    readonly namespace: string;
    readonly schedules: readonly Schemas['Schedule'][];
    readonly more: number;
    readonly unreadable: readonly {
      readonly name: string;
      readonly why: string;
    }[];
  };
  readonly Schedule: {
    readonly name: string;
    readonly queue: string;
    readonly source: string;
    readonly input: {
      readonly [key: string]: unknown;
    };
    readonly hidden: boolean;
    readonly etag?: string;
    readonly paused?: string;
    readonly pausedBy?: 'hand' | 'definition';
    readonly hand?: {
      readonly by: string;
      readonly atMs: number;
    };
    readonly nextMs?: number;
    readonly reachedMs?: number;
    readonly lastMs?: number;
    readonly runs: number;
    readonly skipped: number;
    readonly unreadable?: string;
  };
  readonly ScheduleChanged: {
    readonly name: string;
    readonly status: 'created' | 'changed' | 'unchanged';
    readonly queue?: string;
    readonly nextMs?: number;
    readonly paused?: string;
  };
  readonly ScheduleDefinition: {
    readonly queue: string;
    readonly data?: unknown;
    readonly codec?: string;
    readonly cron?: string;
    readonly every?: number | string;
    readonly align?: 'epoch' | 'start';
    readonly zone?: string;
    readonly dst?: {
      readonly gap?: 'shift' | 'skip';
      readonly overlap?: 'first' | 'second' | 'both';
    };
    readonly start?: string;
    readonly end?: string;
    readonly maxRuns?: number;
    readonly jitter?: number | string;
    readonly calendar?: Schemas['Calendar'];
    readonly overlap?: 'allow' | 'skip' | 'queue' | 'replace';
    readonly catchUp?: ('skip' | 'once' | 'all') | {
      readonly policy?: 'skip' | 'once' | 'all';
      readonly window?: number | string;
      readonly limit?: number;
    };
    readonly tags?: readonly string[];
    readonly paused?: boolean | string;
    readonly job?: string;
    readonly attempts?: number;
    readonly timeout?: number | string;
    readonly backoff?: Schemas['Backoff'];
    readonly priority?: 'high' | 'normal' | 'low';
    readonly jobTags?: readonly string[];
    readonly maxLateness?: number | string;
    readonly onLate?: 'drop' | 'dead' | 'run';
    readonly headers?: {
      readonly [key: string]: string;
    };
  };
  readonly Calendar: {
    readonly skip?: readonly string[];
    readonly hours?: {
      readonly [key: string]: string | readonly string[];
    };
    readonly outside?: 'skip' | 'next';
  };
  readonly SchedulePauseRequest: {
    readonly reason?: string;
  };
  readonly Preview: {
    readonly name: string;
    readonly rows: readonly Schemas['PreviewRow'][];
    readonly leftOut?: Schemas['PreviewLeftOut'];
  };
  readonly PreviewRow: {
    readonly id?: string;
    readonly atMs: number;
    readonly local: string;
    readonly offset: string;
    readonly named?: string;
    readonly dst?: string;
    readonly calendar?: string;
    readonly dropped?: string;
    readonly dueMs?: number;
    readonly leftOut?: number;
  };
  readonly PreviewLeftOut: {
    readonly dropped: number;
    readonly later: number;
    readonly atLeast: boolean;
    readonly upToMs: number;
  };
  readonly PreviewRequest: {
    readonly name?: string;
    readonly schedule: Schemas['ScheduleDefinition'];
    readonly next?: number;
    readonly until?: string;
    readonly from?: string;
  };
  readonly PastRuns: {
    readonly name: string;
    readonly queue: string;
    readonly runs: readonly Schemas['PastRun'][];
    readonly cursor?: string;
  };
  readonly PastRun: Schemas['PreviewRow'] & {
    readonly fate: 'made' | 'waits' | 'due' | 'dropped' | 'missed' | 'unknown';
    readonly job?: {
      readonly state: 'scheduled' | 'waiting' | 'ready' | 'running' | 'done' | 'cancelled' | 'expired' | 'dead';
      readonly attempts: number;
      readonly startedMs?: number;
      readonly latenessMs?: number;
      readonly overMs?: number;
    };
  };
  readonly FiredJob: {
    readonly id: string;
    readonly atMs?: number;
    readonly status: 'would' | 'scheduled' | 'exists' | 'over' | 'closed';
  };
  readonly TriggerRequest: {
    readonly id?: string;
  };
  readonly Backfilled: {
    readonly name: string;
    readonly dryRun: boolean;
    readonly jobs: readonly Schemas['FiredJob'][];
    readonly leftOut?: number;
  };
  readonly BackfillRequest: {
    readonly from: string;
    readonly to: string;
    readonly dryRun?: boolean;
    readonly limit?: number;
  };
  readonly Forecast: {
    readonly atMs: number;
    readonly untilMs: number;
    readonly by: 'minute' | 'hour';
    readonly queue?: string;
    readonly buckets: readonly Schemas['ForecastBucket'][];
    readonly busiest?: Schemas['ForecastBucket'];
    readonly overdue: number;
    readonly ready: number;
    readonly paused: readonly string[];
    readonly backlogs: readonly Schemas['Backlog'][];
    readonly unread: readonly Schemas['UnreadQueue'][];
    readonly schedules: {
      readonly counted: number;
      readonly paused: number;
      readonly unreadable: number;
      readonly uncounted: number;
      readonly estimated: number;
    };
  };
  readonly ForecastBucket: {
    readonly fromMs: number;
    readonly jobs: number;
    readonly scheduled: number;
    readonly coming: number;
  };
  readonly Backlog: {
    readonly queue: string;
    readonly rate: string;
    readonly perSecond: number;
    readonly waiting: number;
    readonly waitingThroughMs: number;
    readonly throughMs?: number;
    readonly left: number;
  };
  readonly Leaders: {
    readonly namespace: string;
    readonly partitions: readonly Schemas['Led'][];
    readonly unread: readonly Schemas['UnreadQueue'][];
  };
  readonly Led: {
    readonly queue: string;
    readonly partition: number;
    readonly leader?: Schemas['Leader'];
    readonly lagMs?: number;
    readonly backlog: number;
    readonly paused: boolean;
    readonly nowMs: number;
  };
  readonly Workers: {
    readonly namespace: string;
    readonly workers: readonly Schemas['Worker'][];
    readonly versions: readonly Schemas['VersionCount'][];
    readonly unread: readonly Schemas['UnreadQueue'][];
  };
  readonly Worker: {
    readonly id: string;
    readonly state: 'alive' | 'missing';
    readonly host?: string;
    readonly pid?: number;
    readonly version?: string;
    readonly startedMs?: number;
    readonly beatAgoMs?: number;
    readonly queues: readonly string[];
    readonly pending: number;
    readonly jobs: readonly {
      readonly queue: string;
      readonly partition: number;
      readonly id: string;
      readonly bare: boolean;
      readonly attempt?: number;
      readonly startedMs?: number;
    }[];
  };
  readonly VersionCount: {
    readonly version?: string;
    readonly processes: number;
  };
  readonly Findings: {
    readonly ok: boolean;
    readonly checks: readonly Schemas['Finding'][];
  };
  readonly Finding: {
    readonly check: string;
    readonly status: 'ok' | 'warn' | 'fail';
    readonly saw: string;
    readonly advice?: string;
  };
  readonly About: {
    readonly title: string;
    readonly color: 'none' | 'red' | 'orange' | 'green' | 'blue' | 'purple';
    readonly redis: string;
    readonly namespace: string;
    readonly name: string;
    readonly scopes: readonly ('read' | 'data' | 'write' | 'admin')[];
    readonly queues?: readonly string[];
  };
  readonly LiveNow: {
    readonly nowMs: number;
    readonly everyMs: number;
    readonly unread: readonly Schemas['UnreadQueue'][];
    readonly queues: readonly {
      readonly queue: string;
      readonly partitions: number;
      readonly scheduled: number;
      readonly waiting: number;
      readonly ready: number;
      readonly running: number;
      readonly dead: number;
      readonly oldestDueAgeMs: number;
      readonly waitMs: number;
      readonly oldestInLine: boolean;
      readonly limits?: Schemas['QueueLimits'];
      readonly paused: boolean;
      readonly workers: number;
      readonly leaders: readonly (string | null)[];
      readonly perSecond: Schemas['Rates'];
    }[];
    readonly total: {
      readonly scheduled: number;
      readonly waiting: number;
      readonly ready: number;
      readonly running: number;
      readonly dead: number;
      readonly oldestDueAgeMs: number;
      readonly perSecond: Schemas['Rates'];
    };
    readonly processes: {
      readonly daemons: number;
      readonly workers: number;
      readonly leaders: number;
      readonly partitions: number;
      readonly led: number;
      readonly versions: readonly Schemas['VersionCount'][];
    };
    readonly redis?: {
      readonly usedBytes: number;
      readonly maxBytes: number;
      readonly policy: string;
      readonly durability: 'always' | 'everysec' | 'unknown' | 'no' | 'snapshots' | 'none';
    };
    readonly forecast?: {
      readonly atMs: number;
      readonly nextHour: number;
      readonly scheduled: number;
      readonly coming: number;
      readonly busiest?: Schemas['ForecastBucket'];
      readonly buckets: readonly Schemas['ForecastBucket'][];
      readonly backlogs: readonly Schemas['Backlog'][];
    };
    readonly doctor?: {
      readonly atMs: number;
      readonly ok: boolean;
      readonly findings: readonly Schemas['Finding'][];
    };
  };
  readonly Rates: {
    readonly scheduled: number;
    readonly promoted: number;
    readonly started: number;
    readonly ended: number;
  };
  readonly AuditPage: {
    readonly entries: readonly Schemas['AuditEntry'][];
    readonly cursor?: string;
  };
  readonly AuditEntry: {
    readonly entry: string;
    readonly atMs: number;
    readonly who: string;
    readonly way: 'api' | 'page' | 'cli' | 'program';
    readonly verb: string;
    readonly queue?: string;
    readonly target?: string;
    readonly count: number;
    readonly reason?: string;
  };
  readonly Session: {
    readonly name: string;
    readonly login: 'token' | 'application' | 'proxy';
    readonly scopes: readonly string[];
    readonly queues?: readonly string[];
    readonly expiresMs?: number;
    readonly csrf: string;
  };
  readonly Login: {
    readonly token: string;
  };
}
