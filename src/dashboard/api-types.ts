/**
 * What the HTTP API is asked and answers, by the names of docs/reference/openapi.json, which has the words too.
 * Made by `npm run generate`; edit the schemas in src/http/api.
 */
export interface Schemas {
  readonly UnreadQueue: {
    readonly queue: string;
    readonly why: string;
  };
  readonly Queues: {
    readonly namespace: string;
    readonly queues: readonly Schemas['QueueCounts'][];
    readonly unread: readonly Schemas['UnreadQueue'][];
  };
  readonly QueueCounts: {
    readonly queue: string;
    readonly partitions: number;
    readonly scheduled: number;
    readonly waiting: number;
    readonly waitMs: number;
    readonly ready: number;
    readonly running: number;
    readonly dead: number;
    readonly paused: boolean;
    readonly oldestDueAgeMs: number;
    readonly oldestInLine: boolean;
    readonly quota?: {
      readonly pending: number;
      readonly pendingMax: number;
      readonly bytes: number;
      readonly bytesMax: number;
    };
    readonly limits?: Schemas['QueueLimits'];
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
    readonly secondRate?: {
      readonly limit: number;
      readonly perMs: number;
      readonly burst: number;
    };
    readonly concurrency?: number;
    readonly perGroup?: number;
    readonly fair?: true;
    readonly costs?: true;
  };
  readonly QueueStats: {
    readonly queue: string;
    readonly partitions: readonly {
      readonly partition: number;
      readonly leader?: Schemas['Leader'];
      readonly over: number;
      readonly quota?: {
        readonly pending: number;
        readonly pendingMax: number;
        readonly bytes: number;
        readonly bytesMax: number;
      };
      readonly concurrency?: number;
      readonly counters: {
        readonly [key: string]: number;
      };
      readonly scheduled: number;
      readonly waiting: number;
      readonly waitMs: number;
      readonly ready: number;
      readonly running: number;
      readonly dead: number;
      readonly paused: boolean;
      readonly oldestDueAgeMs: number;
      readonly oldestInLine: boolean;
    }[];
    readonly scheduled: number;
    readonly waiting: number;
    readonly waitMs: number;
    readonly ready: number;
    readonly running: number;
    readonly dead: number;
    readonly paused: boolean;
    readonly oldestDueAgeMs: number;
    readonly oldestInLine: boolean;
    readonly quota?: {
      readonly pending: number;
      readonly pendingMax: number;
      readonly bytes: number;
      readonly bytesMax: number;
    };
    readonly limits?: Schemas['QueueLimits'];
    readonly workers: number;
    readonly over: number;
    readonly counters: {
      readonly [key: string]: number;
    };
    readonly lingerMs: number;
    readonly pause?: Schemas['Pause'];
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
    readonly dueNext: readonly {
      readonly fromMs?: number;
      readonly toMs?: number;
      readonly count: number;
    }[];
    readonly nowMs: number;
    readonly overrides: readonly Schemas['SettingOverride'][];
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
    readonly changed: boolean;
    readonly paused: boolean;
    readonly pause?: Schemas['Pause'];
    readonly running?: number;
  };
  readonly QueueClosed: {
    readonly queue: string;
    readonly changed: boolean;
    readonly closed: boolean;
  };
  readonly GroupPage: {
    readonly queue: string;
    readonly cursor?: string;
    readonly groups: readonly Schemas['Group'][];
    readonly ungrouped: number;
    readonly scanned: number;
    readonly nowMs: number;
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
    readonly holders: readonly Schemas['Holder'][];
    readonly keeper?: {
      readonly id: string;
      readonly bare: boolean;
      readonly deadLetter?: string;
      readonly attempt: number;
      readonly owner?: string;
      readonly dueMs?: number;
    };
    readonly nowMs: number;
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
  readonly Holder: {
    readonly id: string;
    readonly bare: boolean;
    readonly sinceMs: number;
    readonly owner?: string;
    readonly attempt?: number;
    readonly startedMs?: number;
  };
  readonly LimitList: {
    readonly limits: readonly Schemas['LimitView'][];
  };
  readonly LimitView: {
    readonly name: string;
    readonly text: string;
    readonly perSecond?: number;
    readonly by: string;
    readonly atMs: number;
    readonly queues: readonly string[];
    readonly lent: number;
    readonly partitions: readonly Schemas['LimitUse'][];
    readonly rate?: string | {
      readonly limit: number;
      readonly per: string | number;
      readonly burst?: number;
    };
    readonly concurrency?: number;
  };
  readonly LimitUse: {
    readonly queue: string;
    readonly partition: number;
    readonly share: number;
    readonly need: number;
    readonly askedMs: number;
    readonly servedMs: number;
  };
  readonly LimitChange: {
    readonly changed: boolean;
    readonly limit: string;
  };
  readonly GroupChange: {
    readonly queue: string;
    readonly changed: boolean;
    readonly group: string;
  };
  readonly ClosedTagsPage: {
    readonly queue: string;
    readonly cursor?: string;
    readonly tags: readonly Schemas['ClosedTag'][];
    readonly count: number;
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
    readonly cancelled: number;
    readonly running: readonly string[];
    readonly untilMs: number;
    readonly full?: readonly string[];
    readonly tag: string;
  };
  readonly TagOpened: {
    readonly queue: string;
    readonly changed: boolean;
    readonly tag: string;
  };
  readonly SetsPage: {
    readonly queue: string;
    readonly cursor?: string;
    readonly sets: readonly Schemas['Set'][];
  };
  readonly Set: {
    readonly name: string;
    readonly sealed: boolean;
    readonly madeMs: number;
    readonly open: number;
    readonly group?: string;
    readonly callback: {
      readonly id: string;
      readonly name?: string;
      readonly delayMs: number;
    };
    readonly done: number;
    readonly dead: number;
    readonly cancelled: number;
    readonly expired: number;
  };
  readonly SetMade: {
    readonly queue: string;
    readonly set: string;
    readonly status: 'already' | 'made' | 'over';
    readonly callback: string;
  };
  readonly SetSealed: {
    readonly queue: string;
    readonly set: string;
    readonly status: 'already' | 'over' | 'sealed';
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
      readonly dead: readonly number[];
      readonly done: readonly number[];
      readonly cancelled: readonly number[];
      readonly expired: readonly number[];
      readonly deferred: readonly number[];
      readonly promoted: readonly number[];
      readonly retried: readonly number[];
    };
    readonly known: readonly boolean[];
    readonly total: {
      readonly promotion: Schemas['SpreadTotal'];
      readonly start: Schemas['SpreadTotal'];
      readonly run: Schemas['SpreadTotal'];
    };
    readonly promotion: Schemas['SpreadSteps'];
    readonly start: Schemas['SpreadSteps'];
    readonly run: Schemas['SpreadSteps'];
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
    readonly queues: readonly {
      readonly queue: string;
      readonly promotion: Schemas['SpreadTotal'];
      readonly start: Schemas['SpreadTotal'];
      readonly run: Schemas['SpreadTotal'];
    }[];
    readonly unread: readonly Schemas['UnreadQueue'][];
    readonly promotion: Schemas['SpreadTotal'];
    readonly start: Schemas['SpreadTotal'];
    readonly run: Schemas['SpreadTotal'];
  };
  readonly Day: {
    readonly nowMs: number;
    readonly on: boolean;
    readonly startMs: number;
    readonly stepMs: number;
    readonly queues: readonly Schemas['QueueDay'][];
    readonly unread: readonly Schemas['UnreadQueue'][];
    readonly events: readonly Schemas['DayEvent'][];
  };
  readonly QueueDay: {
    readonly queue: string;
    readonly starts: readonly number[];
    readonly p99Ms: readonly (number | null)[];
    readonly maxMs: readonly (number | null)[];
    readonly dead: readonly number[];
    readonly inTime: number;
    readonly hourP99Ms: number | null;
  };
  readonly DayEvent: {
    readonly queue: string;
    readonly what: 'closed' | 'elected' | 'opened' | 'paused' | 'resumed' | 'served' | 'set' | 'unserved';
    readonly fromMs?: number;
    readonly why?: string;
    readonly group?: string;
    readonly atMs: number;
    readonly by?: string;
    readonly untilMs?: number;
    readonly before?: Schemas['QueueSettings'];
    readonly after?: Schemas['QueueSettings'];
  };
  readonly Slo: {
    readonly queue: string;
    readonly withinMs: number;
    readonly of: number;
    readonly overMs: number;
    readonly sinceMs: number;
    readonly fromMs: number;
    readonly toMs: number;
    readonly kept: boolean;
    readonly jobs: number;
    readonly share: number | null;
    readonly late: number;
    readonly expired: number;
    readonly standing: number;
    readonly budget: number;
    readonly left: number;
    readonly burn: number | null;
    readonly alert: 'page' | 'ticket' | null;
    readonly worst: readonly {
      readonly atMs: number;
      readonly jobs: number;
      readonly share: number;
      readonly causes: readonly {
        readonly cause: 'behind' | 'busy' | 'clock-set' | 'closed' | 'concurrency' | 'group-full' | 'line' | 'linger' | 'made-late' | 'no-leader' | 'no-worker' | 'paused' | 'promotion' | 'ran' | 'rate' | 'shared' | 'unasked' | 'unproven' | 'worker';
        readonly text: string;
        readonly jobs: number;
      }[];
      readonly held: {
        readonly by?: string;
        readonly what: 'closed' | 'leaderless' | 'paused' | 'unserved';
        readonly ms: number;
      } | null;
    }[];
  };
  readonly Slos: {
    readonly nowMs: number;
    readonly queues: readonly Schemas['Slo'][];
    readonly unread: readonly Schemas['UnreadQueue'][];
  };
  readonly WhyNothingMoves: {
    readonly queue: string;
    readonly moves: boolean;
    readonly reasons: readonly {
      readonly code: 'busy' | 'empty' | 'lingering' | 'no-leader' | 'no-worker' | 'not-due' | 'paused' | 'ready-capped' | 'redis-full' | 'waiting';
      readonly text: string;
      readonly advice: string;
      readonly partitions?: readonly number[];
      readonly heldBy?: 'group-full' | 'queue-closed' | 'queue-full' | 'rate' | 'shared';
      readonly nextMs?: number;
    }[];
    readonly nowMs: number;
    readonly lastStart?: Schemas['StartEstimate'];
  };
  readonly JobsPage: {
    readonly queue: string;
    readonly cursor?: string;
    readonly states: readonly ('cancelled' | 'dead' | 'done' | 'expired' | 'ready' | 'running' | 'scheduled' | 'waiting')[];
    readonly jobs: readonly Schemas['ListedJob'][];
    readonly scanned: number;
  };
  readonly ListedJob: {
    readonly id: string;
    readonly name?: string;
    readonly attempts: number;
    readonly crashes: number;
    readonly overMs?: number;
    readonly bare: boolean;
    readonly partition: number;
    readonly state: 'cancelled' | 'dead' | 'done' | 'expired' | 'ready' | 'running' | 'scheduled' | 'waiting';
    readonly dueMs?: number;
    readonly tags?: readonly string[];
    readonly owner?: string;
    readonly startedMs?: number;
    readonly tookMs?: number;
    readonly failures: number;
    readonly error?: string;
    readonly preview?: string;
    readonly etag?: string;
  };
  readonly FoundJobs: {
    readonly cursor?: string;
    readonly jobs: readonly Schemas['FoundJob'][];
    readonly scanned: number;
    readonly unread: readonly Schemas['UnreadQueue'][];
  };
  readonly FoundJob: {
    readonly id: string;
    readonly queue: string;
    readonly name?: string;
    readonly attempts: number;
    readonly crashes: number;
    readonly overMs?: number;
    readonly bare: boolean;
    readonly partition: number;
    readonly state: 'cancelled' | 'dead' | 'done' | 'expired' | 'ready' | 'running' | 'scheduled' | 'waiting';
    readonly dueMs?: number;
    readonly tags?: readonly string[];
    readonly owner?: string;
    readonly startedMs?: number;
    readonly tookMs?: number;
    readonly failures: number;
    readonly error?: string;
    readonly preview?: string;
    readonly etag?: string;
  };
  readonly JobCount: {
    readonly queue: string;
    readonly count: number;
    readonly atLeast: boolean;
    readonly cursor?: string;
    readonly scanned: number;
  };
  readonly JobEnd: {
    readonly id: string;
    readonly status: 'cancelled' | 'dead' | 'done' | 'expired' | 'timeout' | 'unknown';
    readonly overMs?: number;
    readonly token?: string;
    readonly reason?: string;
  };
  readonly Job: {
    readonly id: string;
    readonly queue: string;
    readonly name?: string;
    readonly nowMs: number;
    readonly data?: unknown;
    readonly headers?: {
      readonly [key: string]: string;
    };
    readonly unreadable?: string;
    readonly log?: Schemas['JobLog'];
    readonly reason?: string;
    readonly history: readonly Schemas['Attempted'][];
    readonly result?: Schemas['KeptResult'];
    readonly attempts: number;
    readonly crashes: number;
    readonly overMs?: number;
    readonly bare: boolean;
    readonly partition: number;
    readonly state: 'cancelled' | 'dead' | 'done' | 'expired' | 'ready' | 'running' | 'scheduled' | 'waiting';
    readonly dueMs?: number;
    readonly tags?: readonly string[];
    readonly owner?: string;
    readonly startedMs?: number;
    readonly tookMs?: number;
    readonly failures: number;
    readonly token?: string;
    readonly entry?: string;
    readonly account?: Schemas['StartAccount'];
    readonly past: readonly Schemas['PastJob'][];
    readonly timeline: readonly Schemas['Moment'][];
    readonly codec?: string;
    readonly options: {
      readonly timeoutMs?: number;
      readonly target?: {
        readonly url?: string;
        readonly method?: 'DELETE' | 'GET' | 'HEAD' | 'PATCH' | 'POST' | 'PUT';
        readonly headers?: {
          readonly [key: string]: string;
        };
        readonly contentType?: string;
      };
      readonly attempts?: number;
      readonly backoff?: {
        readonly kind: 'exponential' | 'fixed' | 'ladder' | 'linear';
        readonly delayMs?: number;
        readonly jitter: 'equal' | 'full' | 'none';
        readonly maxMs?: number;
        readonly factor?: number;
        readonly stepsMs?: readonly number[];
      };
      readonly set?: string;
      readonly tags?: readonly string[];
      readonly priority?: 'high' | 'low' | 'normal';
      readonly onLate?: 'dead' | 'drop' | 'run';
      readonly cost?: number;
      readonly expiresAtMs?: number;
      readonly maxLatenessMs?: number;
    };
    readonly askedDueMs?: number;
    readonly generation: number;
    readonly cancelRequested: boolean;
    readonly nextLifeMs?: number;
    readonly deferred?: Schemas['Deferred'];
    readonly progress?: Schemas['JobProgress'];
    readonly deadLetter?: string;
    readonly readable: boolean;
    readonly hidden: boolean;
    readonly waitsFor?: Schemas['JobWait'];
    readonly starts?: Schemas['StartEstimate'];
    readonly digest?: string;
    readonly etag?: string;
  };
  readonly Attempted: {
    readonly atMs: number;
    readonly attempt: number;
    readonly kind: 'crash' | 'failure' | 'refused' | 'timeout';
    readonly message?: string;
    readonly stack?: string;
    readonly worker?: string;
    readonly tookMs?: number;
    readonly account?: Schemas['StartAccount'];
    readonly beganMs?: number;
    readonly signMs?: number;
  };
  readonly StartAccount: {
    readonly dueMs: number;
    readonly startedMs: number;
    readonly lateMs: number;
    readonly parts: readonly {
      readonly cause: 'behind' | 'busy' | 'clock-set' | 'closed' | 'concurrency' | 'group-full' | 'line' | 'linger' | 'made-late' | 'no-leader' | 'no-worker' | 'paused' | 'promotion' | 'ran' | 'rate' | 'shared' | 'unasked' | 'unproven' | 'worker';
      readonly ms: number;
      readonly about?: true;
    }[];
    readonly toHandlerMs?: number;
    readonly others?: {
      readonly count: number;
      readonly isLeast: boolean;
      readonly ofGroup: boolean;
      readonly last: string;
    };
  };
  readonly Deferred: {
    readonly times: number;
    readonly lastMs: number;
    readonly reason?: string;
    readonly starts: readonly {
      readonly kind: 'deferred' | 'handed-back';
      readonly attempt?: number;
      readonly atMs: number;
      readonly reason?: string;
      readonly worker?: string;
      readonly tookMs?: number;
    }[];
  };
  readonly JobProgress: {
    readonly fraction: number;
    readonly text?: string;
    readonly atMs: number;
  };
  readonly JobLog: {
    readonly lines: readonly Schemas['LogLine'][];
    readonly leftOut: number;
  };
  readonly LogLine: {
    readonly atMs: number;
    readonly attempt: number;
    readonly text: string;
    readonly fields?: {
      readonly [key: string]: unknown;
    };
  };
  readonly Moment: {
    readonly atMs: number;
    readonly kind: 'asked-due' | 'cancelled' | 'crash' | 'dead' | 'deferred' | 'done' | 'due' | 'earlier-end' | 'expired' | 'failure' | 'handed-back' | 'refused' | 'started' | 'timeout';
    readonly attempt?: number;
    readonly owner?: string;
    readonly tookMs?: number;
    readonly outcome?: 'cancelled' | 'dead' | 'done' | 'expired';
    readonly message?: string;
    readonly stack?: string;
    readonly account?: Schemas['StartAccount'];
  };
  readonly KeptResult: {
    readonly kind: 'kept' | 'no-json' | 'none' | 'too-large';
    readonly bytes?: number;
    readonly why?: string;
    readonly value?: unknown;
  };
  readonly PastJob: {
    readonly id: string;
    readonly name?: string;
    readonly bare: boolean;
    readonly outcome: 'cancelled' | 'dead' | 'done' | 'expired';
    readonly tags: readonly string[];
    readonly set?: string;
    readonly askedDueMs: number;
    readonly attempts: number;
    readonly failures: number;
    readonly crashes: number;
    readonly generation: number;
    readonly token?: string;
    readonly owner?: string;
    readonly startedMs?: number;
    readonly tookMs?: number;
    readonly account?: Schemas['StartAccount'];
    readonly overMs: number;
    readonly history: readonly Schemas['Attempted'][];
    readonly deferred?: Schemas['Deferred'];
    readonly result: Schemas['KeptResult'];
    readonly deadLetter?: string;
  };
  readonly JobWait: {
    readonly obstacles: readonly {
      readonly kind: 'group-closed' | 'group-full' | 'group-kept' | 'group-rate' | 'no-worker' | 'paused' | 'queue-closed' | 'queue-full' | 'rate' | 'shared';
      readonly sinceMs?: number;
      readonly reason?: string;
      readonly text: string;
      readonly limit?: number;
      readonly running?: number;
      readonly holders?: readonly Schemas['Holder'][];
      readonly keeper?: {
        readonly id: string;
        readonly bare: boolean;
        readonly deadLetter?: string;
        readonly attempt: number;
        readonly owner?: string;
        readonly dueMs?: number;
      };
      readonly untilMs?: number;
      readonly limits?: readonly string[];
    }[];
    readonly text: string;
    readonly group?: string;
    readonly ahead: number;
    readonly priority: 'high' | 'low' | 'normal';
  };
  readonly StartEstimate: {
    readonly kind: 'about' | 'not-before' | 'untold';
    readonly startMs?: number;
    readonly before?: number;
    readonly perSecond?: number;
    readonly pacedBy?: 'concurrency' | 'group' | 'group-rate' | 'rate' | 'slots';
    readonly untold?: 'costs' | 'few-runs' | 'group-kept' | 'many-lanes' | 'no-leader' | 'no-worker' | 'others-first' | 'paused' | 'shared' | 'slots-unknown' | 'unsteady';
    readonly text: string;
  };
  readonly Scheduled: {
    readonly id: string;
    readonly queue: string;
    readonly status: 'already' | 'behind' | 'closed' | 'exists' | 'kept' | 'merged' | 'overtaken' | 'replaced' | 'running' | 'scheduled' | 'updated';
    readonly dueMs: number;
    readonly over?: 'cancelled' | 'dead' | 'done' | 'expired';
    readonly closed?: {
      readonly tag: string;
      readonly untilMs: number;
    };
  };
  readonly JobPreview: {
    readonly queue: string;
    readonly name: string;
    readonly dueMs: number;
    readonly there?: {
      readonly state: 'ready' | 'running' | 'scheduled' | 'waiting';
      readonly dueMs?: number;
    };
    readonly refusal?: Schemas['PreviewRefusal'];
    readonly retries: readonly {
      readonly attempt: number;
      readonly fromMs: number;
      readonly toMs: number;
    }[];
    readonly beside: {
      readonly fromMs: number;
      readonly stepMs: number;
      readonly counts: readonly number[];
    };
  };
  readonly PreviewRefusal: {
    readonly kind: 'closed' | 'queue-full' | 'unfit';
    readonly limit?: number;
    readonly pending?: number;
    readonly tag?: string;
    readonly untilMs?: number;
    readonly why?: string;
  };
  readonly ScheduledMany: {
    readonly queue: string;
    readonly jobs: readonly Schemas['Scheduled'][];
  };
  readonly Edited: {
    readonly id: string;
    readonly status: 'already' | 'changed' | 'edited' | 'indeterminate' | 'over' | 'running' | 'unknown' | 'unreadable';
    readonly digest?: string;
    readonly dueMs?: number;
    readonly etag?: string;
    readonly over?: 'cancelled' | 'dead' | 'done' | 'expired';
  };
  readonly EditedMany: {
    readonly queue: string;
    readonly jobs: readonly Schemas['Edited'][];
  } | Schemas['ChangedJobs'];
  readonly Cancelled: {
    readonly id: string;
    readonly status: 'cancelled' | 'changed' | 'indeterminate' | 'over' | 'requested' | 'unknown';
    readonly over?: 'cancelled' | 'dead' | 'done' | 'expired';
  };
  readonly CancelledMany: Schemas['ChangedJobs'] | {
    readonly queue: string;
    readonly jobs: readonly Schemas['Cancelled'][];
  };
  readonly Rescheduled: {
    readonly id: string;
    readonly status: 'already' | 'changed' | 'indeterminate' | 'kept' | 'over' | 'ready' | 'rescheduled' | 'running' | 'unknown';
    readonly dueMs?: number;
    readonly wasMs?: number;
    readonly waitingBehind?: number;
    readonly over?: 'cancelled' | 'dead' | 'done' | 'expired';
    readonly etag?: string;
  };
  readonly RescheduledMany: Schemas['ChangedJobs'] | {
    readonly queue: string;
    readonly jobs: readonly Schemas['Rescheduled'][];
  };
  readonly RanNow: {
    readonly id: string;
    readonly status: 'already-due' | 'changed' | 'due' | 'indeterminate' | 'over' | 'running' | 'unknown';
    readonly over?: 'cancelled' | 'dead' | 'done' | 'expired';
  };
  readonly RanNowMany: Schemas['ChangedJobs'] | {
    readonly queue: string;
    readonly jobs: readonly Schemas['RanNow'][];
  };
  readonly ChangedJobs: {
    readonly queue: string;
    readonly dryRun: boolean;
    readonly ids: readonly string[];
    readonly matched: number;
    readonly changed: number;
    readonly skipped: {
      readonly running?: number;
      readonly over?: number;
      readonly unreadable?: number;
      readonly unknown?: number;
      readonly refused?: number;
      readonly kept?: number;
      readonly changed?: number;
      readonly already?: number;
      readonly 'already-due'?: number;
      readonly indeterminate?: number;
    };
    readonly scanned: number;
    readonly cursor?: string;
    readonly requested?: number;
    readonly moves?: readonly Schemas['JobMove'][];
  };
  readonly JobMove: {
    readonly id: string;
    readonly wasMs?: number;
    readonly dueMs: number;
    readonly etag: string;
  };
  readonly DeadLettersPage: {
    readonly queue: string;
    readonly cursor?: string;
    readonly deadLetters?: readonly Schemas['ListedDeadLetter'][];
    readonly groups?: readonly Schemas['DeadLetterGroup'][];
    readonly others?: number;
    readonly scanned: number;
  };
  readonly DeadLetterOverview: {
    readonly stepMs: number;
    readonly unread: readonly Schemas['UnreadQueue'][];
    readonly untilMs?: number;
    readonly others: number;
    readonly scanned: number;
    readonly kinds: readonly Schemas['DeadLetterKind'][];
  };
  readonly DeadLetterKind: {
    readonly count: number;
    readonly times: readonly {
      readonly atMs: number;
      readonly count: number;
    }[];
    readonly lastMs: number;
    readonly firstMs: number;
    readonly error?: string;
    readonly reason?: string;
    readonly shares: {
      readonly queue: readonly {
        readonly value: string;
        readonly count: number;
      }[];
      readonly name: readonly {
        readonly value: string;
        readonly count: number;
      }[];
      readonly host: readonly {
        readonly value: string;
        readonly count: number;
      }[];
      readonly version: readonly {
        readonly value: string;
        readonly count: number;
      }[];
      readonly group: readonly {
        readonly value: string;
        readonly count: number;
      }[];
      readonly tag: readonly {
        readonly value: string;
        readonly count: number;
      }[];
    };
    readonly example: {
      readonly id: string;
      readonly queue: string;
      readonly deadLetter: string;
    };
  };
  readonly ListedDeadLetter: {
    readonly id: string;
    readonly name?: string;
    readonly deadLetter: string;
    readonly etag: string;
    readonly atMs: number;
    readonly error?: string;
    readonly reason?: string;
    readonly history: readonly Schemas['Attempted'][];
    readonly attempts: number;
    readonly crashes: number;
    readonly bare: boolean;
    readonly partition: number;
    readonly tags: readonly string[];
    readonly failures: number;
    readonly generation: number;
    readonly deferred?: Schemas['Deferred'];
  };
  readonly DeadLetter: {
    readonly id: string;
    readonly queue: string;
    readonly name?: string;
    readonly deadLetter: string;
    readonly etag: string;
    readonly atMs: number;
    readonly error?: string;
    readonly reason?: string;
    readonly history: readonly Schemas['Attempted'][];
    readonly attempts: number;
    readonly crashes: number;
    readonly bare: boolean;
    readonly partition: number;
    readonly tags: readonly string[];
    readonly failures: number;
    readonly generation: number;
    readonly deferred?: Schemas['Deferred'];
    readonly hidden: boolean;
    readonly data?: unknown;
    readonly headers?: {
      readonly [key: string]: string;
    };
    readonly log?: Schemas['JobLog'];
    readonly codec?: string;
    readonly options: {
      readonly timeoutMs?: number;
      readonly target?: {
        readonly url?: string;
        readonly method?: 'DELETE' | 'GET' | 'HEAD' | 'PATCH' | 'POST' | 'PUT';
        readonly headers?: {
          readonly [key: string]: string;
        };
        readonly contentType?: string;
      };
      readonly attempts?: number;
      readonly backoff?: {
        readonly kind: 'exponential' | 'fixed' | 'ladder' | 'linear';
        readonly delayMs?: number;
        readonly jitter: 'equal' | 'full' | 'none';
        readonly maxMs?: number;
        readonly factor?: number;
        readonly stepsMs?: readonly number[];
      };
      readonly set?: string;
      readonly tags?: readonly string[];
      readonly priority?: 'high' | 'low' | 'normal';
      readonly onLate?: 'dead' | 'drop' | 'run';
      readonly cost?: number;
      readonly expiresAtMs?: number;
      readonly maxLatenessMs?: number;
    };
    readonly askedDueMs?: number;
    readonly readable: boolean;
  };
  readonly DeadLetterGroup: {
    readonly name?: string;
    readonly error?: string;
    readonly reason?: string;
    readonly count: number;
    readonly lastMs: number;
    readonly firstMs: number;
    readonly example: {
      readonly id: string;
      readonly deadLetter: string;
    };
  };
  readonly Replayed: {
    readonly id?: string;
    readonly dueMs?: number;
    readonly deadLetter?: string;
    readonly place?: 'first' | 'last';
    readonly status: 'changed' | 'closed' | 'empty' | 'gone' | 'indeterminate' | 'live' | 'scheduled';
  };
  readonly ReplayedMany: {
    readonly queue: string;
    readonly cursor?: string;
    readonly dryRun: boolean;
    readonly matched: number;
    readonly replayed: number;
    readonly live: number;
    readonly closed: number;
    readonly empty: number;
    readonly gone: number;
    readonly deadLetters: readonly Schemas['Replayed'][];
    readonly scanned: number;
  };
  readonly Purged: {
    readonly queue: string;
    readonly cursor?: string;
    readonly dryRun: boolean;
    readonly matched: number;
    readonly removed: number;
    readonly scanned: number;
  };
  readonly Erased: {
    readonly dryRun: boolean;
    readonly left: number;
    readonly failed: readonly Schemas['UnreadQueue'][];
    readonly cursor?: string;
    readonly queues: readonly Schemas['ErasedQueue'][];
  };
  readonly ErasedQueue: {
    readonly queue: string;
    readonly running: number;
    readonly history: number;
    readonly scanned: number;
    readonly left: number;
    readonly jobs: number;
    readonly deadLetters: number;
    readonly logs: number;
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
    readonly queue: string;
    readonly name: string;
    readonly paused?: string;
    readonly unreadable?: string;
    readonly lastMs?: number;
    readonly source: 'call' | 'file';
    readonly pausedBy?: 'definition' | 'hand';
    readonly hand?: {
      readonly by: string;
      readonly atMs: number;
    };
    readonly nextMs?: number;
    readonly reachedMs?: number;
    readonly runs: number;
    readonly skipped: number;
    readonly hidden: boolean;
    readonly input: {
      readonly [key: string]: unknown;
    };
    readonly etag?: string;
  };
  readonly ScheduleChanged: {
    readonly queue?: string;
    readonly name: string;
    readonly status: 'changed' | 'created' | 'unchanged';
    readonly nextMs?: number;
    readonly paused?: string;
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
    readonly dst?: 'first' | 'gap' | 'second' | 'shifted';
    readonly calendar?: 'moved' | 'outside-hours' | 'skip-date';
    readonly dropped?: 'coincides' | 'gap' | 'outside-hours' | 'overlap' | 'paused' | 'skip-date' | 'unreadable';
    readonly dueMs?: number;
    readonly leftOut?: number;
  };
  readonly PreviewLeftOut: {
    readonly dropped: number;
    readonly later: number;
    readonly atLeast: boolean;
    readonly upToMs: number;
  };
  readonly PastRuns: {
    readonly queue: string;
    readonly name: string;
    readonly cursor?: string;
    readonly runs: readonly Schemas['PastRun'][];
  };
  readonly PastRun: {
    readonly id?: string;
    readonly fate: 'dropped' | 'due' | 'made' | 'missed' | 'unknown' | 'waits';
    readonly job?: {
      readonly state: 'cancelled' | 'dead' | 'done' | 'expired' | 'ready' | 'running' | 'scheduled' | 'waiting';
      readonly attempts: number;
      readonly startedMs?: number;
      readonly latenessMs?: number;
      readonly overMs?: number;
    };
    readonly atMs: number;
    readonly local: string;
    readonly offset: string;
    readonly named?: string;
    readonly dst?: 'first' | 'gap' | 'second' | 'shifted';
    readonly calendar?: 'moved' | 'outside-hours' | 'skip-date';
    readonly dropped?: 'coincides' | 'gap' | 'outside-hours' | 'overlap' | 'paused' | 'skip-date' | 'unreadable';
    readonly dueMs?: number;
    readonly leftOut?: number;
  };
  readonly FiredJob: {
    readonly id: string;
    readonly atMs?: number;
    readonly status: 'closed' | 'exists' | 'over' | 'scheduled' | 'would';
  };
  readonly Backfilled: {
    readonly name: string;
    readonly dryRun: boolean;
    readonly jobs: readonly Schemas['FiredJob'][];
    readonly leftOut?: number;
  };
  readonly TargetTried: {
    readonly queue: string;
    readonly method: string;
    readonly url: string;
    readonly steps: readonly Schemas['TargetStep'][];
    readonly means: 'dead' | 'done' | 'put aside' | 'retry' | 'waits';
    readonly why?: string;
    readonly status?: number;
    readonly tookMs?: number;
    readonly answer?: string;
  };
  readonly TargetStep: {
    readonly step: 'address' | 'answer' | 'host' | 'names';
    readonly isWell: boolean;
    readonly text: string;
  };
  readonly Simulation: {
    readonly queue: string;
    readonly nowMs: number;
    readonly untilMs: number;
    readonly seed: number;
    readonly due: number;
    readonly scheduled: number;
    readonly coming: number;
    readonly usual?: number;
    readonly steps: {
      readonly fromMs: number;
      readonly stepMs: number;
      readonly due: readonly number[];
    };
    readonly asItIs: Schemas['SimulatedRun'];
    readonly asAsked?: Schemas['SimulatedRun'];
    readonly assumptions: readonly string[];
  };
  readonly SimulatedRun: {
    readonly limits: string;
    readonly slots: number;
    readonly runTime: string;
    readonly started: number;
    readonly left: number;
    readonly backlogThroughMs?: number;
    readonly throughMs?: number;
    readonly p50Ms?: number;
    readonly p99Ms?: number;
    readonly maxMs: number;
    readonly worstMinuteMs?: number;
    readonly maxLine: number;
    readonly maxLineAtMs: number;
    readonly latestMs: readonly (number | null)[];
    readonly groups: readonly Schemas['SimulatedGroup'][];
  };
  readonly SimulatedGroup: {
    readonly group: string;
    readonly jobs: number;
    readonly throughMs?: number;
    readonly p50Ms?: number;
    readonly p99Ms?: number;
    readonly maxMs: number;
  };
  readonly Forecast: {
    readonly queue?: string;
    readonly atMs: number;
    readonly untilMs: number;
    readonly by: 'half-hour' | 'hour' | 'minute';
    readonly buckets: readonly Schemas['ForecastBucket'][];
    readonly queues?: readonly Schemas['QueueForecast'][];
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
  readonly QueueForecast: {
    readonly queue: string;
    readonly jobs: readonly number[];
  };
  readonly QueueLate: {
    readonly queue: string;
    readonly fromMs: number;
    readonly groups: readonly {
      readonly group: string;
      readonly ms: number;
    }[];
    readonly starts: number;
    readonly toMs: number;
    readonly verdict: string;
    readonly late: number;
    readonly p50Ms: number | null;
    readonly p99Ms: number | null;
    readonly maxMs: number | null;
    readonly known: number;
    readonly worst: {
      readonly atMs: number;
      readonly starts: number;
      readonly p99Ms: number;
    } | null;
    readonly causes: readonly {
      readonly cause: 'behind' | 'busy' | 'clock-set' | 'closed' | 'concurrency' | 'group-full' | 'line' | 'linger' | 'made-late' | 'no-leader' | 'no-worker' | 'paused' | 'promotion' | 'ran' | 'rate' | 'shared' | 'unasked' | 'unproven' | 'worker';
      readonly text: string;
      readonly ms: number;
      readonly share: number;
    }[];
    readonly diary: {
      readonly partitions: number;
      readonly entries: readonly {
        readonly partitions: number;
        readonly atMs: number;
        readonly what: 'closed' | 'elected' | 'opened' | 'paused' | 'resigned' | 'resumed' | 'served' | 'set' | 'unserved';
        readonly entry: string;
        readonly why?: string;
        readonly group?: string;
        readonly by?: string;
        readonly untilMs?: number;
        readonly before?: {
          readonly limits?: readonly string[];
          readonly broadcast?: false | true | {
            readonly max?: number;
            readonly bytes?: number;
            readonly age?: string | number;
          };
          readonly perGroup?: number | false | {
            readonly maxPending?: number | false;
            readonly concurrency?: number | false;
            readonly rate?: false | string | {
              readonly limit: number;
              readonly per: string | number;
              readonly burst?: number;
            };
            readonly order?: false | 'strict';
            readonly onDead?: false | 'continue' | 'hold';
          };
          readonly maxPending?: number | false;
          readonly history?: false | true | {
            readonly keep?: string | number;
            readonly max?: number;
            readonly result?: boolean;
            readonly resultBytesMax?: number;
          };
          readonly target?: string | false | {
            readonly url: string;
            readonly headers?: {
              readonly [key: string]: string;
            };
            readonly timeout?: string | number;
            readonly maxAge?: string | number;
            readonly hosts?: readonly string[];
            readonly method?: 'DELETE' | 'GET' | 'HEAD' | 'PATCH' | 'POST' | 'PUT';
            readonly secret?: string;
            readonly contentType?: string;
            readonly format?: 'cloudevents';
            readonly retryOn?: readonly number[];
            readonly deadOn?: readonly number[];
            readonly keepAnswer?: boolean;
            readonly certificate?: string;
          };
          readonly concurrency?: number | false;
          readonly rate?: false | string | {
            readonly limit: number;
            readonly per: string | number;
            readonly burst?: number;
          } | readonly (string | {
            readonly limit: number;
            readonly per: string | number;
            readonly burst?: number;
          })[];
          readonly groups?: {
            readonly [key: string]: {
              readonly weight?: number;
              readonly maxPending?: number | false;
              readonly concurrency?: number | false;
              readonly rate?: false | string | {
                readonly limit: number;
                readonly per: string | number;
                readonly burst?: number;
              };
            };
          };
          readonly redact?: readonly string[];
          readonly maxBytes?: number | false;
          readonly linger?: string | number;
          readonly ahead?: string | number;
          readonly lateness?: false | true | {
            readonly over?: string | number;
            readonly within?: string | number;
            readonly of?: number;
          };
          readonly fair?: true;
          readonly costs?: true;
        };
        readonly after?: {
          readonly limits?: readonly string[];
          readonly broadcast?: false | true | {
            readonly max?: number;
            readonly bytes?: number;
            readonly age?: string | number;
          };
          readonly perGroup?: number | false | {
            readonly maxPending?: number | false;
            readonly concurrency?: number | false;
            readonly rate?: false | string | {
              readonly limit: number;
              readonly per: string | number;
              readonly burst?: number;
            };
            readonly order?: false | 'strict';
            readonly onDead?: false | 'continue' | 'hold';
          };
          readonly maxPending?: number | false;
          readonly history?: false | true | {
            readonly keep?: string | number;
            readonly max?: number;
            readonly result?: boolean;
            readonly resultBytesMax?: number;
          };
          readonly target?: string | false | {
            readonly url: string;
            readonly headers?: {
              readonly [key: string]: string;
            };
            readonly timeout?: string | number;
            readonly maxAge?: string | number;
            readonly hosts?: readonly string[];
            readonly method?: 'DELETE' | 'GET' | 'HEAD' | 'PATCH' | 'POST' | 'PUT';
            readonly secret?: string;
            readonly contentType?: string;
            readonly format?: 'cloudevents';
            readonly retryOn?: readonly number[];
            readonly deadOn?: readonly number[];
            readonly keepAnswer?: boolean;
            readonly certificate?: string;
          };
          readonly concurrency?: number | false;
          readonly rate?: false | string | {
            readonly limit: number;
            readonly per: string | number;
            readonly burst?: number;
          } | readonly (string | {
            readonly limit: number;
            readonly per: string | number;
            readonly burst?: number;
          })[];
          readonly groups?: {
            readonly [key: string]: {
              readonly weight?: number;
              readonly maxPending?: number | false;
              readonly concurrency?: number | false;
              readonly rate?: false | string | {
                readonly limit: number;
                readonly per: string | number;
                readonly burst?: number;
              };
            };
          };
          readonly redact?: readonly string[];
          readonly maxBytes?: number | false;
          readonly linger?: string | number;
          readonly ahead?: string | number;
          readonly lateness?: false | true | {
            readonly over?: string | number;
            readonly within?: string | number;
            readonly of?: number;
          };
          readonly fair?: true;
          readonly costs?: true;
        };
        readonly fromMs?: number;
      }[];
      readonly intervals: readonly {
        readonly partitions: number;
        readonly what: 'closed' | 'leaderless' | 'paused' | 'unserved';
        readonly why?: string;
        readonly group?: string;
        readonly by?: string;
        readonly fromMs?: number;
        readonly toMs?: number;
      }[];
    };
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
    readonly unread: readonly Schemas['UnreadQueue'][];
    readonly versions: readonly Schemas['VersionCount'][];
    readonly workers: readonly Schemas['Worker'][];
  };
  readonly Worker: {
    readonly id: string;
    readonly pause?: Schemas['WorkerPause'];
    readonly pending: number;
    readonly queues: readonly string[];
    readonly state: 'alive' | 'missing';
    readonly startedMs?: number;
    readonly jobs: readonly {
      readonly id: string;
      readonly queue: string;
      readonly partition: number;
      readonly bare: boolean;
      readonly attempt?: number;
      readonly startedMs?: number;
      readonly dueMs: number;
    }[];
    readonly host?: string;
    readonly pid?: number;
    readonly via?: 'http';
    readonly address?: string;
    readonly version?: string;
    readonly beatAgoMs?: number;
    readonly slots?: {
      readonly [key: string]: number;
    };
    readonly pauses: boolean;
  };
  readonly WorkerPause: {
    readonly sinceMs: number;
    readonly by?: string;
    readonly reason?: string;
  };
  readonly WorkerPaused: {
    readonly changed: boolean;
    readonly worker: string;
    readonly paused: boolean;
    readonly pause?: Schemas['WorkerPause'];
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
    readonly status: 'fail' | 'ok' | 'warn';
    readonly saw: string;
    readonly advice?: string;
  };
  readonly About: {
    readonly namespace: string;
    readonly name: string;
    readonly title: string;
    readonly color: 'blue' | 'green' | 'none' | 'orange' | 'purple' | 'red';
    readonly redis: string;
    readonly scopes: readonly ('admin' | 'data' | 'read' | 'work' | 'write')[];
    readonly queues?: readonly string[];
  };
  readonly LiveNow: {
    readonly nowMs: number;
    readonly unread: readonly Schemas['UnreadQueue'][];
    readonly forecast?: {
      readonly nextHour: number;
      readonly scheduled: number;
      readonly coming: number;
      readonly perQueue: readonly {
        readonly queue: string;
        readonly jobs: number;
      }[];
      readonly atMs: number;
      readonly busiest?: Schemas['ForecastBucket'];
      readonly buckets: readonly Schemas['ForecastBucket'][];
      readonly backlogs: readonly Schemas['Backlog'][];
    };
    readonly redis?: {
      readonly usedBytes: number;
      readonly maxBytes: number;
      readonly policy: string;
      readonly durability: 'always' | 'everysec' | 'no' | 'none' | 'snapshots' | 'unknown';
    };
    readonly doctor?: {
      readonly atMs: number;
      readonly ok: boolean;
      readonly findings: readonly Schemas['Finding'][];
    };
    readonly everyMs: number;
    readonly queues: readonly {
      readonly queue: string;
      readonly partitions: number;
      readonly scheduled: number;
      readonly waiting: number;
      readonly waitMs: number;
      readonly ready: number;
      readonly running: number;
      readonly dead: number;
      readonly paused: boolean;
      readonly oldestDueAgeMs: number;
      readonly oldestInLine: boolean;
      readonly quota?: {
        readonly pending: number;
        readonly pendingMax: number;
        readonly bytes: number;
        readonly bytesMax: number;
      };
      readonly limits?: Schemas['QueueLimits'];
      readonly workers: number;
      readonly slots?: number;
      readonly perSecond: Schemas['Rates'];
      readonly obstacle?: string;
      readonly leaders: readonly (string | null)[];
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
      readonly versions: readonly Schemas['VersionCount'][];
      readonly leaders: number;
      readonly partitions: number;
      readonly led: number;
    };
  };
  readonly Rates: {
    readonly scheduled: number;
    readonly promoted: number;
    readonly started: number;
    readonly ended: number;
  };
  readonly AuditPage: {
    readonly cursor?: string;
    readonly entries: readonly Schemas['AuditEntry'][];
  };
  readonly AuditEntry: {
    readonly queue?: string;
    readonly entry: string;
    readonly atMs: number;
    readonly who: string;
    readonly way: 'api' | 'cli' | 'page' | 'program';
    readonly verb: string;
    readonly target?: string;
    readonly ids?: readonly string[];
    readonly count: number;
    readonly before?: {
      readonly [key: string]: unknown;
    };
    readonly after?: {
      readonly [key: string]: unknown;
    };
    readonly reason?: string;
  };
  readonly Session: {
    readonly name: string;
    readonly login: 'application' | 'proxy' | 'token';
    readonly scopes: readonly string[];
    readonly queues?: readonly string[];
    readonly expiresMs?: number;
    readonly csrf: string;
  };
  readonly Claimed: {
    readonly ended: readonly ('already' | 'cancelled' | 'fenced' | 'gone' | 'ok')[];
    readonly leaseMs: number;
    readonly beatMs: number;
    readonly jobs: readonly Schemas['ClaimedJob'][];
  };
  readonly ClaimedJob: {
    readonly id: string;
    readonly name: string;
    readonly run: string;
    readonly data?: unknown;
    readonly codec?: string;
    readonly group?: string;
    readonly priority?: 'high' | 'low' | 'normal';
    readonly headers?: {
      readonly [key: string]: string;
    };
    readonly attempt: number;
    readonly failures: number;
    readonly crashes: number;
    readonly token: string;
    readonly dueMs: number;
    readonly timeoutMs: number;
    readonly suspect?: true;
    readonly begin?: true;
  };
  readonly SettleWords: {
    readonly results: readonly ('already' | 'cancelled' | 'fenced' | 'gone' | 'ok')[];
  };
  readonly SettleWord: {
    readonly result: 'already' | 'cancelled' | 'fenced' | 'gone' | 'ok';
  };
  readonly BeatWords: {
    readonly results: readonly ('cancel' | 'fenced' | 'gone' | 'ok' | 'timeout')[];
  };
  readonly BeatWord: {
    readonly result: 'cancel' | 'fenced' | 'gone' | 'ok' | 'timeout';
  };
  readonly WorkerLeft: {
    readonly given: number;
  };
  readonly SettingsView: {
    readonly queue: string;
    readonly settings: Schemas['QueueSettings'];
    readonly overrides: readonly Schemas['SettingOverride'][];
  };
  readonly SettingsChanged: {
    readonly queue: string;
    readonly settings: Schemas['QueueSettings'];
    readonly overrides: readonly Schemas['SettingOverride'][];
    readonly changed: readonly string[];
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
    readonly target?: string | {
      readonly url: string;
      readonly hosts?: readonly string[];
      readonly method?: 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'GET' | 'HEAD';
      readonly headers?: {
        readonly [key: string]: string;
      };
      readonly contentType?: string;
      readonly secret?: string;
      readonly format?: 'cloudevents';
      readonly timeout?: number | string;
      readonly maxAge?: number | string;
      readonly retryOn?: readonly number[];
      readonly deadOn?: readonly number[];
      readonly keepAnswer?: boolean;
      readonly certificate?: string;
    } | false;
    readonly maxPending?: number | false;
    readonly maxBytes?: number | false;
    readonly linger?: number | string;
    readonly ahead?: number | string;
    readonly lateness?: boolean | {
      readonly within?: number | string;
      readonly of?: number;
      readonly over?: number | string;
    };
    readonly rate?: string | {
      readonly limit: number;
      readonly per: number | string;
      readonly burst?: number;
    } | readonly (string | {
      readonly limit: number;
      readonly per: number | string;
      readonly burst?: number;
    })[] | false;
    readonly concurrency?: number | false;
    readonly perGroup?: number | false | {
      readonly concurrency?: number | false;
      readonly rate?: string | {
        readonly limit: number;
        readonly per: number | string;
        readonly burst?: number;
      } | false;
      readonly maxPending?: number | false;
      readonly order?: 'strict' | false;
      readonly onDead?: ('continue' | 'hold') | false;
    };
    readonly groups?: {
      readonly [key: string]: Schemas['GroupLimits'];
    };
    readonly limits?: readonly string[];
    readonly fair?: true;
    readonly costs?: true;
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
    readonly target?: string | {
      readonly url: string;
      readonly hosts?: readonly string[];
      readonly method?: 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'GET' | 'HEAD';
      readonly headers?: {
        readonly [key: string]: string;
      };
      readonly contentType?: string;
      readonly secret?: string;
      readonly format?: 'cloudevents';
      readonly timeout?: number | string;
      readonly maxAge?: number | string;
      readonly retryOn?: readonly number[];
      readonly deadOn?: readonly number[];
      readonly keepAnswer?: boolean;
      readonly certificate?: string;
    } | false;
    readonly maxPending?: number | false;
    readonly maxBytes?: number | false;
    readonly linger?: number | string;
    readonly ahead?: number | string;
    readonly lateness?: boolean | {
      readonly within?: number | string;
      readonly of?: number;
      readonly over?: number | string;
    };
    readonly rate?: string | {
      readonly limit: number;
      readonly per: number | string;
      readonly burst?: number;
    } | readonly (string | {
      readonly limit: number;
      readonly per: number | string;
      readonly burst?: number;
    })[] | false;
    readonly concurrency?: number | false;
    readonly perGroup?: number | false | {
      readonly concurrency?: number | false;
      readonly rate?: string | {
        readonly limit: number;
        readonly per: number | string;
        readonly burst?: number;
      } | false;
      readonly maxPending?: number | false;
      readonly order?: 'strict' | false;
      readonly onDead?: ('continue' | 'hold') | false;
    };
    readonly groups?: {
      readonly [key: string]: Schemas['GroupLimits'];
    };
    readonly limits?: readonly string[];
    readonly fair?: true;
    readonly costs?: true;
    readonly reason?: string;
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
  readonly LimitRequest: {
    readonly rate?: string | {
      readonly limit: number;
      readonly per: number | string;
      readonly burst?: number;
    } | false;
    readonly concurrency?: number;
    readonly reason?: string;
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
    readonly target?: string | {
      readonly url?: string;
      readonly method?: 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'GET' | 'HEAD';
      readonly headers?: {
        readonly [key: string]: string;
      };
      readonly contentType?: string;
    };
    readonly priority?: 'high' | 'normal' | 'low';
    readonly tags?: readonly string[];
    readonly maxLateness?: number | string;
    readonly onLate?: 'drop' | 'dead' | 'run';
    readonly cost?: number;
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
  readonly SimulateRequest: {
    readonly limits?: {
      readonly rate?: string | {
        readonly limit: number;
        readonly per: number | string;
        readonly burst?: number;
      } | readonly (string | {
        readonly limit: number;
        readonly per: number | string;
        readonly burst?: number;
      })[] | false;
      readonly concurrency?: number | false;
      readonly perGroup?: number | false | {
        readonly concurrency?: number | false;
        readonly rate?: string | {
          readonly limit: number;
          readonly per: number | string;
          readonly burst?: number;
        } | false;
        readonly maxPending?: number | false;
        readonly order?: 'strict' | false;
        readonly onDead?: ('continue' | 'hold') | false;
      };
      readonly groups?: {
        readonly [key: string]: Schemas['GroupLimits'];
      };
      readonly limits?: readonly string[];
      readonly fair?: true;
      readonly costs?: true;
    };
    readonly workers?: number;
    readonly slots?: number;
    readonly runTime?: number | string;
    readonly until?: string;
    readonly seed?: number;
  };
  readonly TargetTry: {
    readonly data?: unknown;
    readonly target?: string | {
      readonly url?: string;
      readonly method?: 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'GET' | 'HEAD';
      readonly headers?: {
        readonly [key: string]: string;
      };
      readonly contentType?: string;
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
    readonly target?: string | {
      readonly url?: string;
      readonly method?: 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'GET' | 'HEAD';
      readonly headers?: {
        readonly [key: string]: string;
      };
      readonly contentType?: string;
    };
    readonly priority?: 'high' | 'normal' | 'low';
    readonly tags?: readonly string[];
    readonly set?: string;
    readonly expiresAt?: string;
    readonly maxLateness?: number | string;
    readonly onLate?: 'drop' | 'dead' | 'run';
    readonly cost?: number;
    readonly headers?: {
      readonly [key: string]: string;
    };
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
    readonly target?: string | {
      readonly url?: string;
      readonly method?: 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'GET' | 'HEAD';
      readonly headers?: {
        readonly [key: string]: string;
      };
      readonly contentType?: string;
    } | null;
    readonly priority?: 'high' | 'normal' | 'low' | null;
    readonly tags?: readonly string[] | null;
    readonly expiresAt?: string | null;
    readonly maxLateness?: number | string | null;
    readonly onLate?: 'drop' | 'dead' | 'run' | null;
    readonly cost?: number | null;
    readonly headers?: {
      readonly [key: string]: string;
    } | null;
  };
  readonly NewDue: {
    readonly delay?: number | string;
    readonly at?: string;
    readonly zone?: string;
    readonly shift?: number | string;
    readonly only?: 'earlier' | 'later';
  };
  readonly NewJobs: {
    readonly jobs: readonly Schemas['NewJob'][];
  };
  readonly BatchRequest: {
    readonly ids?: readonly (string | {
      readonly id: string;
      readonly ifMatch: string;
    })[];
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
    readonly failed?: boolean;
  };
  readonly RescheduleBatchRequest: {
    readonly ids?: readonly (string | {
      readonly id: string;
      readonly ifMatch: string;
    })[];
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
    readonly ifMatch?: string;
  };
  readonly EditBatchRequest: {
    readonly ids?: readonly (string | {
      readonly id: string;
      readonly ifMatch: string;
    })[];
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
    readonly target?: string | {
      readonly url?: string;
      readonly method?: 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'GET' | 'HEAD';
      readonly headers?: {
        readonly [key: string]: string;
      };
      readonly contentType?: string;
    } | null;
    readonly priority?: 'high' | 'normal' | 'low' | null;
    readonly tags?: readonly string[] | null;
    readonly expiresAt?: string | null;
    readonly maxLateness?: number | string | null;
    readonly onLate?: 'drop' | 'dead' | 'run' | null;
    readonly cost?: number | null;
    readonly headers?: {
      readonly [key: string]: string;
    } | null;
  };
  readonly ReplayDue: {
    readonly delay?: number | string;
    readonly at?: string;
    readonly zone?: string;
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
  readonly EraseRequest: {
    readonly tag: string;
    readonly queue?: string;
    readonly dryRun?: boolean;
    readonly cursor?: string;
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
    readonly target?: string | {
      readonly url?: string;
      readonly method?: 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'GET' | 'HEAD';
      readonly headers?: {
        readonly [key: string]: string;
      };
      readonly contentType?: string;
    };
    readonly priority?: 'high' | 'normal' | 'low';
    readonly jobTags?: readonly string[];
    readonly maxLateness?: number | string;
    readonly onLate?: 'drop' | 'dead' | 'run';
    readonly cost?: number;
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
  readonly PreviewRequest: {
    readonly name?: string;
    readonly schedule: Schemas['ScheduleDefinition'];
    readonly next?: number;
    readonly until?: string;
    readonly from?: string;
  };
  readonly TriggerRequest: {
    readonly id?: string;
  };
  readonly BackfillRequest: {
    readonly from: string;
    readonly to: string;
    readonly dryRun?: boolean;
    readonly limit?: number;
  };
  readonly Login: {
    readonly token: string;
  };
  readonly Claim: {
    readonly worker: string;
    readonly lane?: number;
    readonly seq: number;
    readonly again?: boolean;
    readonly max?: number;
    readonly wait?: number | string;
    readonly running?: number;
    readonly ends: readonly Schemas['RunEnd'][];
  };
  readonly RunEnd: {
    readonly run: string;
    readonly end: 'complete';
    readonly result?: unknown;
    readonly spent?: number;
  } | {
    readonly run: string;
    readonly end: 'fail';
    readonly error: string;
    readonly kind?: string;
    readonly stack?: string;
    readonly fatal?: boolean;
    readonly retryIn?: number | string;
    readonly spent?: number;
  } | {
    readonly run: string;
    readonly end: 'defer';
    readonly delay: number | string;
    readonly reason?: string;
    readonly close?: 'group' | 'queue';
    readonly spent?: number;
  } | {
    readonly run: string;
    readonly end: 'begin';
  };
  readonly Settle: {
    readonly worker: string;
    readonly runs: readonly Schemas['RunEnd'][];
  };
  readonly Beat: {
    readonly worker: string;
    readonly runs: readonly {
      readonly run: string;
      readonly progress?: number;
      readonly text?: string;
      readonly spent?: number;
    }[];
  };
  readonly Leave: {
    readonly worker: string;
  };
  readonly CompleteRun: {
    readonly worker: string;
    readonly run: string;
    readonly result?: unknown;
    readonly spent?: number;
  };
  readonly FailRun: {
    readonly worker: string;
    readonly run: string;
    readonly error: string;
    readonly kind?: string;
    readonly stack?: string;
    readonly fatal?: boolean;
    readonly retryIn?: number | string;
    readonly spent?: number;
  };
  readonly DeferRun: {
    readonly worker: string;
    readonly run: string;
    readonly delay: number | string;
    readonly reason?: string;
    readonly close?: 'group' | 'queue';
    readonly spent?: number;
  };
  readonly BeginRun: {
    readonly worker: string;
    readonly run: string;
  };
  readonly ExtendRun: {
    readonly worker: string;
    readonly run: string;
  };
  readonly RunProgress: {
    readonly worker: string;
    readonly run: string;
    readonly progress?: number;
    readonly text?: string;
    readonly spent?: number;
  };
}
