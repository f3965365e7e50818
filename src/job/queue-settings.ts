/**
 * The settings of a queue that are stored with it in Redis and hold for every process, one row per setting. The options of
 * `defineQueue` with their comments, the checks, the texts in the registry, `queues.*` of the configuration, the flags of `queues
 * set` and `groups set`, the shapes of the HTTP API, and `docs/reference/queue-settings.md` all follow from here, so that a setting
 * is written once. What a setting does is somewhere else: limits in `gate.ts` and `quota.ts`, the others where they are asked for.
 *
 * The comment above a row is what users see in their editor. A mapped type keeps it if `keyof typeof queueSettings` stands in
 * the mapping itself: by way of `QueueSettingName` the comments are lost.
 */
import { checkNames, queueRanges } from '../kernel/checks.ts';
import { show } from '../kernel/duration.ts';
import { DuestreamError } from '../kernel/errors.ts';
import { parseGroup } from './labels.ts';
import {
  type BoundsKind,
  bounds,
  type CountKind,
  count,
  type DurationKind,
  duration,
  flag,
  type GivenOf,
  type LimitKind,
  limit,
  listed,
  type NamesKind,
  NO_LIMIT,
  names,
  type Parts,
  type PathsKind,
  paths,
  type RateKind,
  type RatesKind,
  rate,
  rates,
  type SettingKind,
  type StoredOf,
  type StoredParts,
  share,
  storedName,
  type TargetKind,
  target,
  type WordKind,
  word,
  type YesKind,
  yes,
} from './setting-kinds.ts';

const DAY_MS = 86_400_000;

/** `ahead` of a queue of which nobody says it. */
export const AHEAD_DEFAULT_MS = 25;

/** What people read of a setting. */
interface Described {
  /** One sentence, without its full stop: for the configuration, the HTTP API and the reference. */
  readonly doc: string;
  /** The help of its flag on the command line. */
  readonly help: string;
  /** As it is said on the command line, without its flag; '' where the flag says all. */
  readonly example: string;
}

/** In short what it limits, with `#` for the value, and what is missing without it. */
type Short = readonly [some: string, none: string];

/** One limit of each group. */
export type GroupSetting = (LimitKind | RateKind | CountKind) &
  Described & {
    /** Its key in the JSON of single groups. */
    readonly key: string;
    /** As a limit of all groups, a part of `perGroup`; undefined: only single groups have it. */
    readonly each?: Each;
  };

/** Something of all groups, a part of `perGroup`. */
interface Each {
  /** Its field in the registry. */
  readonly field: string;
  /** Of `queues set`. */
  readonly flag: string;
  readonly help: string;
  readonly short: Short;
}

/** What all groups have alike, and no single group of its own. */
export type EachSetting = WordKind & Described & { readonly each: Each };

/** What each group may have, and a single group of its own. The order is that of the JSON in the registry. */
const groupSettings = {
  /** How many of its jobs may run at a time: 1 to 1000. */
  concurrency: {
    ...limit({ min: 1, max: 1000 }),
    doc: 'How many jobs of the group may run at a time',
    help: 'run at most this many of its jobs at a time',
    example: '10',
    key: 'c',
    each: {
      field: 'perGroup',
      flag: 'per-group',
      help: 'run at most this many of each group at a time',
      short: ['# per group', 'limit per group'],
    },
  },
  /** How many of its jobs may start in a time. */
  rate: {
    ...rate(),
    doc: 'How many of its jobs may start in a time',
    help: 'start at most this many of its jobs in a time: 10/s, 600/m',
    example: '20/s',
    key: 'r',
    each: {
      field: 'groupRate',
      flag: 'group-rate',
      help: 'start at most this many jobs of each group in a time: 1/s, 60/m',
      short: ['# per group', 'rate per group'],
    },
  },
  /** How many turns it has where another group has one: 1 to 100, default 1. */
  weight: {
    ...count({ min: 1, max: 100 }),
    doc: 'How many turns it has where another group has one',
    help: 'so many turns where another group has one',
    example: '3',
    key: 'w',
  },
  /**
   * How many of its jobs may wait or run: 1 to 1,000,000,000. A new job for which its group has no room is refused with
   * `group-full`. Jobs that were made before there was such a limit do not count.
   */
  maxPending: {
    ...limit({ min: 1, max: 1_000_000_000 }),
    doc: 'New jobs of the group are refused while this many wait or run',
    help: 'refuse new jobs of it while this many wait or run',
    example: '1000',
    key: 'p',
    each: {
      field: 'groupPending',
      flag: 'per-group-max-pending',
      help: 'refuse new jobs of a group while this many of it wait or run',
      short: ['# pending per group', 'limit of pending per group'],
    },
  },
} as const satisfies Readonly<Record<string, GroupSetting>>;

/** What holds of all groups alike. */
const eachSettings = {
  /**
   * `strict`: jobs of a group start one after the other, in the order of their due times and whatever becomes of them. Who was let
   * through has its group until it is over, also while it waits for a retry. Only with `concurrency: 1`. Default: no order.
   */
  order: {
    ...word(['strict']),
    doc: 'Whether who was let through has its group until it is over, also over retries',
    help: 'let who was let through have its group until it is over, also over retries',
    example: 'strict',
    each: {
      field: 'groupOrder',
      flag: 'group-order',
      help: 'let jobs of a group start one after the other, over retries too; needs one per group',
      short: ['# order', 'strict order'],
    },
  },
  /**
   * In strict order, what becomes of the group of a job that is dead: `continue`, the next one starts; `hold`, none does until the
   * dead letter is replayed or removed, or somebody opens the group. Default `continue`.
   */
  onDead: {
    ...word(['continue', 'hold']),
    doc: 'In strict order, whether the group of a dead letter goes on, or is held until that is replayed or removed, or somebody opens the group',
    help: 'what a dead letter does to its group',
    example: 'hold',
    each: {
      field: 'groupOnDead',
      flag: 'group-on-dead',
      help: 'in strict order: hold the group of a dead letter until somebody decides, or continue',
      short: ['dead letters: #', 'rule for dead letters'],
    },
  },
} as const satisfies Readonly<Record<string, EachSetting>>;

type GroupTable = typeof groupSettings;
type GroupSettingName = keyof GroupTable;
type EachTable = typeof eachSettings;

/** What each group may have. */
type PerGroup = {
  readonly [Name in keyof typeof groupSettings as (typeof groupSettings)[Name] extends { readonly each: object }
    ? Name
    : never]?: GivenOf<(typeof groupSettings)[Name]> | undefined;
} & { readonly [Name in keyof typeof eachSettings]?: GivenOf<(typeof eachSettings)[Name]> | undefined };

/** What a group of its own may have. What is not said is as all groups have it; `false`: this group has no such limit. */
export type GroupLimits = {
  readonly [Name in keyof typeof groupSettings]?: GivenOf<(typeof groupSettings)[Name]> | undefined;
};

/** Limits of a group as they are stored; 0: no such limit. */
export type GroupSettings = {
  readonly [Name in GroupSettingName]?: StoredOf<GroupTable[Name]> | undefined;
};

interface GroupRow {
  readonly name: GroupSettingName;
  readonly row: GroupSetting;
}

const groupRows: readonly GroupRow[] = (Object.keys(groupSettings) as GroupSettingName[]).map((name) => ({
  name,
  row: groupSettings[name],
}));
const isOfEach = ({ row }: GroupRow): boolean => row.each !== undefined;
/** For people: what all groups can have comes first. */
export const groupLimitRows: readonly GroupRow[] = [
  ...groupRows.filter(isOfEach),
  ...groupRows.filter((one) => !isOfEach(one)),
];
interface EachRow {
  readonly name: string;
  readonly row: GroupSetting | EachSetting;
}

/** The parts of `perGroup`: what single groups may have of their own too, and then what all have alike. */
export const perGroupRows: readonly EachRow[] = [
  ...groupLimitRows.filter(isOfEach),
  ...Object.entries<EachSetting>(eachSettings).map(([name, row]) => ({ name, row })),
];
const namesOf = (rows: readonly { readonly name: string }[]): readonly string[] => rows.map(({ name }) => name);

/** How many names of groups may have limits of their own. */
export const GROUPS_MAX = 1000;

/** A number that stands for the first of them, an object of them, or `false`: each has a field of its own in the registry. */
interface PerGroupKind extends Pick<SettingKind, 'off' | 'samples'> {
  readonly kind: 'perGroup';
  readonly allowed: string;
  readonly given?: number | false | PerGroup;
}

type GroupsKind = SettingKind<Readonly<Record<string, GroupLimits>>, Readonly<Record<string, GroupSettings>>, 'groups'>;

const withAllowed = (rows: readonly EachRow[], last: string): string =>
  listed(
    rows.map(({ name, row }) => {
      if (row.kind === 'rate') return name;
      return row.kind === 'word'
        ? `${name} (${row.words.join(', ')})`
        : `${name} (${row.range.min} to ${row.range.max})`;
    }),
    last,
  );

const perGroup = (): PerGroupKind => ({
  kind: 'perGroup',
  allowed: `1 to 1000, or ${withAllowed(perGroupRows, 'and')}; false for no limit`,
  off: NO_LIMIT,
  samples: [
    false,
    3,
    { concurrency: false, rate: '1/s', maxPending: 9 },
    { concurrency: 1, order: 'strict', onDead: 'hold' },
  ],
});

const groups = (): GroupsKind => ({
  kind: 'groups',
  allowed: `at most ${GROUPS_MAX} names, each with ${withAllowed(groupLimitRows, 'or')}`,
  parse: parseGroups,
  said: (stored) => Object.fromEntries(Object.entries(stored).map(([name, limits]) => [name, groupSaid(limits)])),
  encode(stored) {
    const entries = Object.entries(stored).sort(([a], [b]) => (a < b ? -1 : 1));
    return JSON.stringify(Object.fromEntries(entries.map(([name, limits]) => [name, storedGroup(limits)])));
  },
  decode: decodeGroups,
  inShort(stored) {
    const own = Object.keys(stored).length;
    return own === 0 ? undefined : String(own);
  },
  atRest: '{}',
  metavar: '',
  samples: [{}, { acme: { concurrency: 5, rate: false, maxPending: 7, weight: 2 }, 'free-*': { rate: '1/m' } }],
});

/** One row of the table. */
export type QueueSetting = Described &
  (
    | LimitKind
    | RatesKind
    | DurationKind
    | PathsKind
    | NamesKind
    | TargetKind
    | YesKind
    | BoundsKind
    | PerGroupKind
    | GroupsKind
  ) & {
    /**
     * What it limits, and holds at once for: `room`, how many jobs there may be; `line`, how much runs at once: due jobs wait in line
     * from the first such setting on. All processes follow another setting within half a minute.
     */
    readonly limits?: 'room' | 'line';
    readonly short?: Short;
    /** The scope that a token needs to change it, where it is not `write`. */
    readonly scope?: 'admin';
  };

const historyParts = {
  /** How long a job is kept after its end: `1s` to `365d`. Default `7d`. */
  keep: { ...duration({ min: 1000, max: 365 * DAY_MS }), otherwise: 7 * DAY_MS, help: 'keep them for this long' },
  /** How many jobs the queue keeps at most, the latest: 1 to 10,000,000. Default 100,000. Each partition has its share. */
  max: {
    ...count({ min: 1, max: 10_000_000 }),
    otherwise: 100_000,
    shared: true,
    help: 'keep at most this many, the latest',
  },
  /** Whether what a handler returns is kept, as JSON. Default false. */
  result: { ...flag(), stored: 'keepsResult', otherwise: false, help: 'keep what handlers return' },
  /** A result of more bytes of JSON is not kept, and the record says so: 1 to 262,144. Default 16,384. */
  resultBytesMax: {
    ...count({ min: 1, max: 262_144 }),
    flag: 'result-bytes',
    otherwise: 16_384,
    help: 'results of more bytes of JSON are not kept',
  },
} as const satisfies Parts;

type HistoryGiven = {
  readonly [Name in keyof typeof historyParts]?: GivenOf<(typeof historyParts)[Name]> | undefined;
};
/** What a queue keeps of jobs that are over. */
export interface HistoryOptions extends HistoryGiven {}

/** What a queue keeps of jobs that are over, as it holds. Where it is not on, nothing more is kept, and what is there goes in its time. */
export type History = StoredParts<typeof historyParts>;

const broadcastParts = {
  /** At most so many jobs: 1 to 1,000,000. Default 10,000. Each partition has its share. */
  max: {
    ...count({ min: 1, max: 1_000_000 }),
    otherwise: 10_000,
    shared: true,
    help: 'keep at most this many for subscribers that are behind',
  },
  /** At most so many bytes: 1024 to 1 GiB. Default 16 MiB. Each partition has its share. The latest job is kept in any case. */
  bytes: {
    ...count({ min: 1024, max: 1024 ** 3 }),
    otherwise: 16 * 1024 * 1024,
    shared: true,
    help: 'keep at most this many bytes of them',
  },
  /** None for longer: `1s` to `7d`. Default `1h`. */
  age: { ...duration({ min: 1000, max: 7 * DAY_MS }), otherwise: 3_600_000, help: 'keep none of them for longer' },
} as const satisfies Parts;

type BroadcastGiven = {
  readonly [Name in keyof typeof broadcastParts]?: GivenOf<(typeof broadcastParts)[Name]> | undefined;
};
/** How much of what was sent is kept for subscribers that are behind; whichever bound is reached first counts. */
export interface BroadcastOptions extends BroadcastGiven {}

/** The same as it holds. Where it is not on, the jobs of the queue go to workers, each to one. */
export type Broadcast = StoredParts<typeof broadcastParts>;

const latenessParts = {
  /** A start later than this after its due time is late: `1ms` to `1d`. Default `1s`. */
  within: { ...duration({ min: 1, max: DAY_MS }), otherwise: 1000, help: 'a start that is later than this is late' },
  /** Which share of the jobs starts in time: 0.5 to 0.99999. Default 0.99. */
  of: { ...share({ min: 0.5, max: 0.99999 }), otherwise: 0.99, help: 'which share of the jobs starts in time' },
  /** Over which time the jobs are counted: `1d` to `90d`. Default `30d`. */
  over: {
    ...duration({ min: DAY_MS, max: 90 * DAY_MS }),
    otherwise: 30 * DAY_MS,
    help: 'the time over which jobs are counted',
  },
} as const satisfies Parts;

type LatenessGiven = {
  readonly [Name in keyof typeof latenessParts]?: GivenOf<(typeof latenessParts)[Name]> | undefined;
};
/** How late jobs may start: which share of them within which time, over which time they are counted. */
export interface LatenessOptions extends LatenessGiven {}

/** The same as it holds. Where it is not on, nothing is promised. */
export type LatenessPromise = StoredParts<typeof latenessParts>;

export const queueSettings = {
  /**
   * Keeps jobs that are over, with their errors, times, worker and, if asked for, results: `true`, or for how long and how
   * many. It is stored in Redis and holds for every process: whoever says something sets it, `false` switches it off; what
   * somebody sets by command stands above it.
   * Default: as it is stored, which at first is off.
   */
  history: {
    ...bounds<HistoryOptions, History>(historyParts, 'keep'),
    doc: 'What is kept of jobs that are over',
    help: 'keep them for this long, or off: keep no more',
    example: '7d',
  },
  /**
   * Fields of the data that people do not see: paths such as `card.number` or `items.*.email`. The command line, the HTTP
   * API, the messages of errors and the log have `[redacted]` in their place; handlers and programs get the whole data. It
   * is stored in Redis and holds for every process: whoever says something sets it, `[]` takes it back. Default: as it is
   * stored, which at first is nothing.
   */
  redact: {
    ...paths(),
    doc: 'Fields of the data that views, messages of errors and the log do not show',
    help: 'show [redacted] in the place of these fields of data, with commas between; or none',
    example: 'email',
    scope: 'admin',
  },
  /**
   * Every process that subscribes gets each job, and no worker does: `true`, or how much of what was sent is kept for those
   * who are behind. A job is done when it was sent: no attempts, no retries. It is stored in Redis and holds for every
   * process: whoever says something sets it, `false` makes it a queue of workers again. Default: as it is stored, which at
   * first is off.
   */
  broadcast: {
    ...bounds<BroadcastOptions, Broadcast>(broadcastParts),
    doc: 'Whether every subscriber gets each job, and how much of what was sent is kept for them',
    help: 'on: every subscriber gets each job; off: each goes to one worker',
    example: 'on',
  },
  /**
   * Each job calls this URL when it is due, and no worker gets it: daemons with the role `dispatcher` send the requests. A text,
   * or an object with `url` and how it is called. Secrets stand in the configuration of those daemons, and are named here. It is
   * stored in Redis and holds for every process; it is refused while a worker of the queue lives. `false` makes it a queue of
   * workers again. Default: as it is stored, which at first is none.
   *
   * @example { target: { url: 'https://api.example.com/due', secret: 'main', headers: { Authorization: '$crm' } } }
   */
  target: {
    ...target(),
    doc: 'The URL that each job calls when it is due, in the place of a worker; daemons with the role dispatcher send the requests',
    help: 'let each job call this URL, or as JSON: {"url": …, "secret": "main"}',
    example: 'https://api.example.com/due',
    scope: 'admin',
  },
  /**
   * How many jobs may wait or run at a time: 1 to 1,000,000,000. Each partition has its share, rounded up. A new job for
   * which there is no room is refused with `queue-full`. It is stored in Redis and holds for every process: whoever says
   * something sets it, `false` takes it back. Default: as it is stored, which at first is no limit.
   */
  maxPending: {
    ...limit({ min: 1, max: 1_000_000_000 }),
    doc: 'New jobs are refused while this many wait or run',
    help: 'refuse new jobs while this many wait or run',
    example: '1000',
    limits: 'room',
  },
  /**
   * How many bytes their records may take: 1024 to 2^50. A record is the data as JSON and the options of its job; Redis
   * needs about 200 bytes more for each. Each partition has its share, rounded up. It is stored as `maxPending` is.
   */
  maxBytes: {
    ...limit({ min: 1024, max: 1024 ** 5 }),
    doc: 'New jobs are refused while their records take this many bytes',
    help: 'refuse new jobs while records take this many bytes',
    example: '1000000',
    limits: 'room',
  },
  /**
   * How long due jobs may wait for company: passes of a leader are so far apart at least, counted from the last pass, so
   * that a lone job is on time. Completions wait for 5 ms more, and travel with the next start. 0 to 1 s; `0` is on time to
   * the millisecond. It is stored in Redis and holds for every process: whoever says something sets it. Default: as it is
   * stored, which at first is what daemons say (`mover.linger`).
   */
  linger: {
    ...duration(queueRanges.lingerMs),
    doc: 'How long due jobs may wait for company, so that one pass carries several; where nobody says it, mover.linger counts',
    help: 'let due jobs wait for company, up to 1s; 0: each is on time',
    example: '20ms',
  },
  /**
   * How long before they are due jobs may be handed to workers, which hold each until its time: so one pass carries several, and
   * none is late or early for it. A job that is held can be cancelled and changed as one that waits. 0 to 100 ms; it needs no
   * `linger`, and a queue with limits has none. It is stored in Redis and holds for every process: whoever says something sets
   * it. Default: as it is stored, which at first is 25 ms; `0`: each job is handed out when it is due.
   */
  ahead: {
    ...duration(queueRanges.aheadMs),
    doc: 'How long before they are due jobs may be handed to workers, which hold each until its time',
    help: 'hand jobs to workers up to so long before they are due, at most 100ms; 0: when they are due',
    example: '10ms',
  },
  /**
   * A promise of how late jobs start: `true`, or which share of them starts within which time. Late are starts after that
   * time, jobs that expired without a start, and jobs that are due for longer and did not start. Nothing else depends on it:
   * `duestream slo`, metrics and alerts tell whether it is kept. Another promise begins anew. It is stored in Redis and holds for every
   * process: whoever says something sets it, `false` takes it back. Default: as it is stored, which at first is no promise.
   *
   * @example { lateness: { within: '1s', of: 0.99, over: '30d' } }
   */
  lateness: {
    ...bounds<LatenessOptions, LatenessPromise>(latenessParts, 'within'),
    doc: 'Which share of the jobs starts within which time after the due time, as a promise that is watched',
    help: 'promise that jobs start within this time, or off: promise nothing',
    example: '1s',
  },
  /**
   * How many jobs may start in a time: `'10/s'`, or `{ limit, per, burst }`; 1 per day to 100,000 per second. Or two of them,
   * which both hold. A job that has no turn yet waits in line; none is dropped. A retry counts again. `false` takes the limit back.
   *
   * @example { rate: ['10/s', { limit: 500, per: '1h', burst: 50 }] }
   */
  rate: {
    ...rates(),
    doc: 'How many jobs may start in a time; the others wait in line',
    help: 'start at most this many jobs in a time: 10/s, 600/m, 100/h, 7/90s; or two that both hold: 10/s,500/h',
    example: '10/s',
    limits: 'line',
    short: ['#', 'rate'],
  },
  /** How many jobs may run at a time, whatever the number of workers: 1 to 1,000,000. `false` takes the limit back. */
  concurrency: {
    ...limit({ min: 1, max: 1_000_000 }),
    doc: 'How many jobs may run at a time, in all workers together; the others wait in line',
    help: 'run at most this many jobs at a time',
    example: '5',
    limits: 'line',
    short: ['# at once', 'limit at once'],
  },
  /**
   * How many jobs of each group may run at a time: 1 to 1000. With 1, a group is a lock. Or more of it: how many, how many may
   * start in a time, how many may be pending, and whether they keep their order over retries. `false` takes a limit back.
   *
   * @example { perGroup: { concurrency: 2, rate: '1/s', maxPending: 1000 } }
   * @example { perGroup: { concurrency: 1, order: 'strict', onDead: 'hold' } }
   */
  perGroup: {
    ...perGroup(),
    doc: 'How many jobs of each group may run at a time, or also how many may start in a time; the others wait in line. With maxPending new jobs of a group are refused while this many wait or run; with order they start one after the other, over retries too',
    help: '',
    example: '1',
    limits: 'line',
  },
  /**
   * Limits of single groups that differ from `perGroup`: by name, or by the beginning of names and an asterisk. The name counts
   * first, then the longest beginning. At most 1,000. They replace those that stand there; `{}` takes all of them back.
   *
   * @example { groups: { acme: { concurrency: 10, rate: '20/s', weight: 3 }, 'free-*': { rate: '1/m' } } }
   */
  groups: {
    ...groups(),
    doc: 'Limits of single groups that differ from those of all: by name, or by the beginning of names and an asterisk. They replace all of them',
    help: '',
    example: '',
    limits: 'line',
    short: ['# of their own', 'groups of their own'],
  },
  /**
   * Names of limits that other queues may name as well, two at most: each is a rate or a concurrency of all of them together, and
   * `client.limits` sets it. A job waits in line until all limits have room. `[]` takes them back.
   *
   * @example { limits: ['provider'] }
   */
  limits: {
    ...names(2),
    doc: 'Limits that several queues share, by their names; jobs wait in line until all have room',
    help: 'share these limits with other queues that name them, with commas between, two at most; or none',
    example: 'provider',
    limits: 'line',
    short: ['shared: #', 'shared limit'],
  },
  /** Groups and priorities come in turns, also without a limit. */
  fair: {
    ...yes('A gated queue stays gated'),
    doc: 'Groups and priorities start in turns, also without a limit',
    help: 'let groups and priorities start in turns, also without a limit',
    example: '',
    limits: 'line',
    short: ['fair', 'fair'],
  },
  /**
   * A job may say what it `cost`s: so many turns of the rate of the queue and of its group. Without it each job costs one turn, and
   * a job that costs more is refused.
   */
  costs: {
    ...yes('A queue that has jobs with costs goes on to count them'),
    doc: 'A job may cost more than one turn of a rate: so many as its option cost says',
    help: 'let a job say how many turns of a rate it costs',
    example: '',
    limits: 'line',
    short: ['with costs', 'costs'],
  },
} as const satisfies Readonly<Record<string, QueueSetting>>;

type Table = typeof queueSettings;
export type QueueSettingName = keyof Table;

/** As they are said. */
export type QueueSettingOptions = {
  readonly [Word in keyof typeof queueSettings]?: GivenOf<(typeof queueSettings)[Word]> | undefined;
};

type Stored<Word extends QueueSettingName> = Table[Word] extends { readonly kind: 'perGroup' }
  ? never
  : Table[Word] extends { readonly kind: 'duration' }
    ? `${Word}Ms`
    : Word;
type FieldOfEach<Name extends GroupSettingName> = GroupTable[Name] extends {
  readonly each: { readonly field: infer Field extends string };
}
  ? Field
  : never;
type FieldOfAll<Name extends keyof EachTable> = EachTable[Name]['each']['field'];

/** As they are stored, each in its own field of the registry. 0: no such limit; undefined: nobody ever said anything. */
export type QueueSettings = Readonly<
  { [Word in QueueSettingName as Stored<Word>]?: StoredOf<Table[Word]> | undefined } & {
    [Name in GroupSettingName as FieldOfEach<Name>]?: StoredOf<GroupTable[Name]> | undefined;
  } & { [Name in keyof EachTable as FieldOfAll<Name>]?: StoredOf<EachTable[Name]> | undefined }
>;

/** The name of a field in the registry. */
export type SettingName = keyof QueueSettings;

/** Of the settings that decide how much runs at once. */
export type GateName = Exclude<
  SettingName,
  {
    readonly [Word in QueueSettingName]: Table[Word] extends { readonly limits: 'line' } ? never : Stored<Word>;
  }[QueueSettingName]
>;
/** As they stand in the registry; 0: no such limit, undefined: nobody ever said anything. */
export type GateSettings = Pick<QueueSettings, GateName>;

/** The settings as people say them, in their order. */
export const settingWords = Object.keys(queueSettings) as readonly QueueSettingName[];
export const settingOf = (word: QueueSettingName): QueueSetting => queueSettings[word];

/** One field of the registry. */
interface SettingField {
  readonly name: SettingName;
  /** As people say it; several fields are said as `perGroup`. */
  readonly word: QueueSettingName;
  /** How its value is read and written. */
  readonly kind: SettingKind;
  readonly limits: QueueSetting['limits'];
  readonly short: Short | undefined;
}

/** Every field, in the order of the table. */
export const settingFields: readonly SettingField[] = settingWords.flatMap((word): readonly SettingField[] => {
  const setting = settingOf(word);
  const { limits, short } = setting;
  if (setting.kind !== 'perGroup') {
    return [{ name: storedName(word, setting) as SettingName, word, kind: setting, limits, short }];
  }
  return perGroupRows.flatMap(({ row }) =>
    row.each ? [{ name: row.each.field as SettingName, word, kind: row, limits, short: row.each.short }] : [],
  );
});

export const settingNames: readonly SettingName[] = settingFields.map(({ name }) => name);
export const gateNames: readonly GateName[] = settingFields.flatMap(({ name, limits }) =>
  limits === 'line' ? [name as GateName] : [],
);

/** A setting in one line, as it is said. */
export function valueText(word: string, value: unknown): string {
  const { off = 'none' }: { readonly off?: string } =
    (queueSettings as { readonly [word: string]: QueueSetting })[word] ?? {};
  if (value === false) return off;
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

/** A field as people are told of it: without its unit. */
export const fieldSaid = (name: SettingName): string => name.replace(/Ms$/, '');

/** The fields in which a setting is stored. */
export const fieldsOfWord = (word: QueueSettingName): readonly SettingName[] =>
  settingFields.flatMap((field) => (field.word === word ? [field.name] : []));

/** Those of a definition or of a layout, and nothing else of it: only what is said. */
export const settingsOf = (of: QueueSettings): QueueSettings =>
  Object.fromEntries(settingNames.flatMap((name) => (of[name] === undefined ? [] : [[name, of[name]]])));

/** Only what is said. @throws DuestreamError `bad-input` */
export function parseSettings(said: QueueSettingOptions): QueueSettings {
  const parsed: Record<string, unknown> = {};
  for (const word of settingWords) {
    if (said[word] !== undefined) Object.assign(parsed, parseSetting(word, said[word]));
  }
  return parsed;
}

function parseSetting(word: QueueSettingName, given: unknown): QueueSettings {
  const setting = settingOf(word);
  return setting.kind === 'perGroup'
    ? parsePerGroup(word, given)
    : { [storedName(word, setting)]: setting.parse(given, word) };
}

function parsePerGroup(word: string, given: unknown): QueueSettings {
  const isObject = typeof given === 'object' && given !== null;
  if (isObject) checkNames(given, namesOf(perGroupRows), word, 'bad-input');
  const said: Readonly<Record<string, unknown>> = isObject ? { ...given } : {};
  const parsed = perGroupRows.flatMap(({ name, row }, at) => {
    const value = isObject ? said[name] : given === false || at === 0 ? given : undefined;
    const what = isObject ? `${name} of ${word}` : word;
    return value === undefined ? [] : [[row.each?.field, row.parse(value, what)]];
  });
  return Object.fromEntries(parsed);
}

/** As they are said; what nobody ever said is left out. */
export function saidOf(settings: QueueSettings): QueueSettingOptions {
  const said = settingWords.flatMap((word) => {
    const setting = settingOf(word);
    if (setting.kind === 'perGroup') return [[word, perGroupSaid(settings)]];
    const stored = settings[storedName(word, setting) as SettingName];
    return stored === undefined ? [] : [[word, setting.said(stored as never)]];
  });
  return Object.fromEntries(said.filter(([, value]) => value !== undefined));
}

/** Settings that are others now, as they were said and as they are. */
export interface SettingsChange {
  readonly before: QueueSettingOptions;
  readonly after: QueueSettingOptions;
}

/** Of limits of single groups those that differ, and not more than so many. */
const CHANGED_GROUPS_MAX = 20;

/** Undefined: all are the same. */
export function changeOf(before: QueueSettings, after: QueueSettings): SettingsChange | undefined {
  const [was, is] = [recordOf(saidOf(before)), recordOf(saidOf(after))];
  const words = differing(was, is);
  if (words.length === 0) return undefined;
  const names = differing(recordOf(was.groups), recordOf(is.groups)).slice(0, CHANGED_GROUPS_MAX);
  const changed = (of: Named) =>
    picked({ ...of, ...(of.groups !== undefined && { groups: picked(recordOf(of.groups), names) }) }, words);
  return { before: changed(was), after: changed(is) };
}

type Named = Readonly<Record<string, unknown>>;
const recordOf = (value: unknown): Named => Object(value);

/** The names whose values are not the same. */
const differing = (one: Named, other: Named): readonly string[] =>
  [...new Set([...Object.keys(one), ...Object.keys(other)])].filter(
    (name) => JSON.stringify(one[name]) !== JSON.stringify(other[name]),
  );

const picked = (of: Named, names: readonly string[]): Named =>
  Object.fromEntries(names.flatMap((name) => (of[name] === undefined ? [] : [[name, of[name]]])));

/** A number where nothing else is limited. */
function perGroupSaid(settings: QueueSettings): unknown {
  const all = perGroupRows.map(({ name, row }) => ({ name, row, stored: settings[row.each?.field as SettingName] }));
  const said = all.flatMap(({ name, row, stored }) =>
    stored === undefined ? [] : [[name, row.said(stored as never)] as const],
  );
  const [first] = said;
  return all.slice(1).some(({ stored }) => stored) ? Object.fromEntries(said) : first?.[1];
}

const groupSaid = (limits: GroupSettings): object =>
  Object.fromEntries(
    groupLimitRows.flatMap(({ name, row }) =>
      limits[name] === undefined ? [] : [[name, row.said(limits[name] as never)]],
    ),
  );

/** The texts of the registry, by field. */
type SettingTexts = { readonly [Name in SettingName]?: string | null | undefined };

export function encodeSettings(settings: QueueSettings): { [Name in SettingName]?: string } {
  const texts = settingFields.flatMap(({ name, kind }) =>
    settings[name] === undefined ? [] : [[name, kind.encode(settings[name])]],
  );
  return Object.fromEntries(texts);
}

/** What cannot be read was written by somebody else, and says nothing. */
export function decodeSettings(texts: SettingTexts): QueueSettings {
  const settings = settingFields.flatMap(({ name, kind }) => {
    const text = texts[name];
    const value = text === null || text === undefined ? undefined : kind.decode(text);
    return value === undefined ? [] : [[name, value]];
  });
  return Object.fromEntries(settings);
}

/** What is stored where an override went and no definition says anything: a gated queue stays gated, without a limit. */
export const atRest: { readonly [Name in SettingName]?: string } = Object.fromEntries(
  settingFields.flatMap(({ name, kind, limits }) => (limits === undefined ? [] : [[name, kind.atRest]])),
);

// Limits of single groups.

/** Limits of single groups. @throws DuestreamError `bad-input` */
function parseGroups(given: unknown): Readonly<Record<string, GroupSettings>> {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) throw wrongGroups(show(given));
  const parsed = Object.entries(given).map(
    ([name, limits]) => [parseGroupName(name), parseGroupLimits(name, limits)] as const,
  );
  return checkGroups(Object.freeze(Object.fromEntries(parsed)));
}

/** @throws DuestreamError `bad-input` for too many */
export function checkGroups<Groups extends object>(given: Groups): Groups {
  const many = Object.keys(given).length;
  if (many > GROUPS_MAX) throw wrongGroups(`an object with ${many} names`);
  return given;
}

const wrongGroups = (what: string) =>
  new DuestreamError(
    'bad-input',
    `groups is ${what}; allowed: an object with at most ${GROUPS_MAX} names of groups, each with ${listed(namesOf(groupLimitRows), 'or')}`,
  );

/** The name of a group, or the beginning of names and an asterisk. @throws DuestreamError `bad-input` */
export function parseGroupName(name: string): string {
  if (name === '*') {
    throw new DuestreamError('bad-input', 'group is "*"; allowed: a name, or the beginning of names and an asterisk');
  }
  return name.length > 1 && name.endsWith('*') ? `${parseGroup(name.slice(0, -1))}*` : parseGroup(name);
}

/** @throws DuestreamError `bad-input` */
export function parseGroupLimits(name: string, given: unknown): GroupSettings {
  const names = namesOf(groupLimitRows);
  if (typeof given !== 'object' || given === null) {
    throw new DuestreamError('bad-input', `group ${name} is ${show(given)}; allowed: { ${names.join(', ')} }`);
  }
  checkNames(given, names, `group ${name}`, 'bad-input');
  const said: Readonly<Record<string, unknown>> = { ...given };
  const parsed = groupRows.flatMap(({ name: limitName, row }) => {
    const value = said[limitName];
    return value === undefined ? [] : [[limitName, row.parse(value, `${limitName} of group ${name}`)]];
  });
  return Object.freeze(Object.fromEntries(parsed));
}

/** One of them, as it stands in the JSON of all. */
export const encodeGroup = (limits: GroupSettings): string => JSON.stringify(storedGroup(limits));

function storedGroup(limits: GroupSettings): object {
  const stored = groupRows.flatMap(({ name, row }) => {
    const value = limits[name];
    if (value === undefined) return [];
    return [[row.key, row.kind === 'rate' ? row.encode(value as never) : value]];
  });
  return Object.fromEntries(stored);
}

function decodeGroups(text: string): Readonly<Record<string, GroupSettings>> | undefined {
  try {
    const stored = JSON.parse(text) as Readonly<Record<string, Readonly<Record<string, unknown>>>>;
    const settingsIn = (one: Readonly<Record<string, unknown>>): GroupSettings =>
      Object.fromEntries(
        groupRows
          .map(({ name, row }) => [name, row.decode(String(one[row.key]))] as const)
          .filter(([, value]) => value !== undefined),
      );
    return Object.fromEntries(Object.entries(stored).map(([name, one]) => [name, settingsIn(one)]));
  } catch {
    return undefined;
  }
}

/** What each limit of a gated queue is in short, by field; undefined: it limits nothing. */
export function shortOf(settings: GateSettings): readonly {
  readonly name: GateName;
  readonly some: string | undefined;
  readonly none: string;
}[] {
  return settingFields.flatMap(({ name, kind, short: [some, none] = ['#', name] }) => {
    if (!isGateName(name)) return [];
    const value = settings[name] === undefined ? undefined : kind.inShort?.(settings[name]);
    return [{ name, some: value === undefined ? undefined : some.replace('#', value), none }];
  });
}

const isGateName = (name: SettingName): name is GateName => gateNames.some((one) => one === name);
