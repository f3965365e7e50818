/**
 * Every key there is, in two tables, and nobody else builds a name. `K` is `<namespace>:v1:{<queue>:<partition>}`: the
 * version is in the key so that two wire versions can live side by side; the braces are one Redis Cluster hash tag per
 * partition. `C` is `<namespace>:v1:{control}`.
 *
 * A new key is one row here. From the rows follow the types of keys that scripts and callers name, what `doctor --keys` and an
 * error about a wrong type expect in each, what may have a TTL, and `docs/reference/keys.md`. What a row cannot write
 * itself, `lua/verbs/remove.lua` and the pages that name keys, is compared with it by `test/house-keys.test.ts`.
 */

import type { PartitionGates } from '../job/gate.ts';
import { type Broadcast, type History, type LatenessPromise, settingNames } from '../job/queue-settings.ts';
import type { Quota } from '../job/quota.ts';
import type { Redaction } from '../job/redaction.ts';
import type { SharedLimit } from '../job/shared-limit.ts';
import type { QueueTarget } from '../job/target.ts';

/** The consumer group of every ready stream. */
export const GROUP = 'workers';

export interface KeyRow {
  /** As the command TYPE says it. A channel holds nothing, so nothing of it can be wrong, expire or be removed. */
  readonly type: 'zset' | 'hash' | 'stream' | 'string' | 'set' | 'channel';
  /** There is one of these for each process, session of a page, or Idempotency-Key; its id or hash follows the name. */
  readonly per?: 'process' | 'session' | 'key';
  /** It has a TTL, always: as long as its own value says, or at most so many ms. Whatever else has one is about to be lost. */
  readonly ttl?: 'as its value says' | number;
  /** What it holds, in one line. */
  readonly doc: string;
  /** Who takes away what nobody needs any more, and how much there is at most, also under constant work. Channels have none. */
  readonly bound?: string;
}

/** No heartbeat can be told to live longer. */
const BEAT_MS_MAX = 3_600_000;
/** How long a page stays logged in. */
export const SESSION_MS = 12 * 3_600_000;
/** How long a request is known by its Idempotency-Key: longer than anybody repeats one on his own. */
export const IDEMPOTENCY_MS = 24 * 3_600_000;

/** How long after its last entry a diary stays: an older process that removes the queue does not know of it. */
export const DIARY_MS = 90 * 86_400_000;

const DAY_MS = 24 * 3_600_000;
/** Ten days longer than hours are told, and a month longer than days. */
export const HOURS_TTL_MS = 100 * DAY_MS;
export const DAYS_TTL_MS = 400 * DAY_MS;

/** How long it is told why jobs were late: a day, and some time to look. */
export const CAUSES_MS = 26 * 3_600_000;

/** How long it is told what held jobs in line: half an hour, and some time to look. */
export const LOOKS_MS = 35 * 60_000;

/** Keys of one partition of one queue. */
export const partitionTable = {
  scheduled: {
    type: 'zset',
    doc: 'member → due ms. What waits, retries and deferred jobs included',
    bound: 'one per job that waits. `maxPending` limits them',
  },
  jobs: {
    type: 'hash',
    doc: 'member → *record* (a header that Lua may read, then JSON) while the job lives, *tombstone* when it is over; of a [set](../how-to/flows.md) two fields that begin with a zero byte: `set` and its name → how far it is and how its members ended, `then` and its name → what its callback will be',
    bound:
      'one per job that lives, and one per tombstone (`done`). `maxPending` and `maxBytes` limit the records; two per set, until the step that makes its callback',
  },
  runs: {
    type: 'hash',
    doc: 'member → token, generation, attempts, failures, crashes, entry, owner, … Only jobs that were started',
    bound: 'one per job that was started and lives; goes in the step that ends the job',
  },
  ready: {
    type: 'stream',
    doc: '`{member, due}`, with `cost` in a queue with costs: how many turns of a rate the entry has used, and when, in µs; consumer group `workers`. Acknowledged and deleted in one script',
    bound:
      'what is not delivered: `mover.readyMax`; what is: as much as workers run. The group has one consumer per worker; other workers take out those that are dead and hold nothing, at first sight where Redis has not heard of one for 10 min',
  },
  dead: {
    type: 'stream',
    doc: 'one dead letter per entry: member, record, reason, history, token, attempts, generation, time, failures, crashes',
    bound: '`dead.max` and `dead.retention`: the leader takes the oldest away',
  },
  done: {
    type: 'zset',
    doc: 'member → ms when it was over: the expiry index of tombstones',
    bound:
      '`done.max` and `done.window`: the leader takes the oldest away, but for those that are younger than a call may be repeated',
  },
  leader: {
    type: 'string',
    ttl: 'as its value says',
    doc: 'the lease of the leader: `<process>:<epoch>:<leaseMs>`',
    bound: 'one lease',
  },
  meta: {
    type: 'hash',
    doc: "schema, generation, last token, last epoch, pause (`paused`, in strict order, with two rates, with limits that queues share and with costs behind a mark and the least version that may let jobs through), the leader's next look, the workers that look for dead ones, how many entries and bytes were `cast`, how many jobs and bytes there may be (`quota`), how many bytes these have, and how many jobs they are of (`held`, where bytes have a limit), of a gated queue its share of the limits (`gates`), what is used of it and until when it is closed (`gate`), what is used of the second of two rates (`gate2`), when its limits were set, in µs (`gateSet`), with costs when turns were used last (`gateUsed`), what ledgers of limits have lent it (`lent`), why (`closing`) and the number of the last turn (`turn`), whether tags may be closed (`closed`), whether there may be lines of handlers (`logs`), and where the leader looks through them next, when a producer was seen that does not nudge (`foreign`), up to when jobs were handed out before they were due (`ahead`), since when no worker serves it (`unserved`), durable counters `n.*`",
    bound: 'a fixed number of fields; four workers at most look for dead ones',
  },
  wake: { type: 'channel', doc: 'nudges to the leader: "a sooner job was added", "the leader resigned"' },
  work: {
    type: 'channel',
    doc: 'how many jobs became ready, to workers of a cluster that take them; or were cast, to subscribers',
  },
  over: {
    type: 'channel',
    doc: 'that a job ended for which somebody waits: outcome letter, token, member. Scripts make its name from that of `K:meta`',
  },
  stop: {
    type: 'channel',
    doc: 'that a job that runs was asked to stop: worker, entry and token of its start; with `let-go` before it, that a worker is to let a job go that it holds until its due time, `*`: all of them. The script makes its name from that of `K:meta`',
  },
  fires: {
    type: 'zset',
    doc: 'schedule → ms when the leader looks at it next; 0 = at once',
    bound:
      'one per schedule of the queue that has an instant to come. A place without a definition goes after a minute',
  },
  fired: {
    type: 'hash',
    doc: 'schedule → how far it was fired: last instant handled, runs, skipped, waiting and last member, how often it was armed',
    bound:
      'one per schedule of the queue. `schedules rm` takes it away. The leader walks all of them, 200 every 5 s, and takes away what has no definition for a minute',
  },
  stale: {
    type: 'zset',
    doc: 'member → ms of the newest; member, zero byte, 2, 3, … → ms. One note for each entry of ready that stands for no job any more, gone with the entry: as many entries less than ready has are jobs',
    bound:
      'one per entry of `ready`: the step that takes the entry away takes its note. The sweep of the leader takes the oldest that are too many',
  },
  tags: {
    type: 'zset',
    doc: 'tag, zero byte, member; all scores 0. Live jobs by their tags, made from the headers of their records: the members of a set by `=set:<name>`. `=sets`, zero byte, name: which sets there are',
    bound: 'ten per job that lives, and one per set. The step that ends the job takes them away',
  },
  closed: {
    type: 'zset',
    doc: 'tag → ms until when it is closed: no job with it starts while it stands here. `closed` of `meta` says that there may be one',
    bound:
      '`mover.closedMax`: a tag that is one too many is refused. The leader takes away those whose end has come, up to a minute later',
  },
  why: {
    type: 'hash',
    doc: 'closed tag → when it was closed, by whom and why, as JSON',
    bound: 'as `closed`',
  },
  line: {
    type: 'zset',
    doc: 'of a gated queue: group, zero byte, class 0 to 2, due time in nine digits of base 36, member; all scores 0. Who is due and was not let through yet, as `scheduled` says it with 2^52 and the due time',
    bound: 'one per job that waits in line, at most 1,000,000. Places that nobody waits in go when their turn comes',
  },
  lanes: {
    type: 'zset',
    doc: 'class and group → class · 2^50 and a number that only grows: lanes in which somebody may have his turn; 3 · 2^50 and ms: they open then',
    bound: 'three per group that has somebody in `line`. The visit that finds nobody takes the lane away',
  },
  holds: {
    type: 'zset',
    doc: 'group, zero byte, entry of ready; all scores 0. What each group has of its limit',
    bound: 'one per entry of ready of a group. The step that takes the entry away takes its hold',
  },
  groups: {
    type: 'hash',
    doc: 'group → the arrival of its rate in µs, until when it is closed in ms, and why, then a byte 1, when it last had a turn, and the interval of the rate of then; a space and a group, or the beginning of names and `*` → limits of its own; the empty name → their names',
    bound:
      'one per group whose rate is used or that is closed: the leader takes away those of which nothing is ahead of now; and at most 1,000 with limits of their own',
  },
  order: {
    type: 'hash',
    doc: 'of a queue in [strict order](../how-to/limits.md#in-strict-order): group → the member that has it until it is over; `!`, a dead letter, a space and its member while that one holds it. A space and a group → the last due time that was given in it',
    bound:
      'two per group. The end of the job takes the one away; what is left of others, and a due time that was given ten minutes ago, goes with a look of the leader, 200 fields a second',
  },
  past: {
    type: 'hash',
    doc: 'member → how its job ended: outcome, times, worker, errors, result. Only in queues that keep a history',
    bound: '`history.max` and `history.keep` of the queue: the leader takes the oldest away',
  },
  ended: {
    type: 'zset',
    doc: 'member → ms when its job ended: the index of `past` by time',
    bound: 'as `past`',
  },
  spends: {
    type: 'hash',
    doc: 'of a queue with [costs](../how-to/limits.md#a-job-that-costs-more): entry → token of the start that said last how many turns of the rate it has used, which word of this start that was, and how many turns. `-` → where the script goes on that looks for entries that are over',
    bound: '64, and two for each entry in `ready`. The script `spend` takes those that are over away',
  },
  logs: {
    type: 'hash',
    doc: 'member → what its handlers said by `context.log`: the token of the last start that said something, the number of its last line, how many lines are not kept, and its tags; then the lines. A zero byte and a dead letter → the lines of its job',
    bound:
      '100 lines and 8 KiB for each job that said something. They go with the tombstone or the dead letter; the leader looks for those of jobs that are gone',
  },
  minutes: {
    type: 'hash',
    doc: 'minute of the day → the counters and the lateness when it began, for charts; a day. Only where `http.minutes` says so',
    bound:
      '1440 minutes and the counts of three times, each by 253 bounds: each minute takes the place of the one a day before',
  },
  hours: {
    type: 'hash',
    ttl: HOURS_TTL_MS,
    doc: 'day of 90 → what happened in its hours, packed, of all partitions of the queue; `at`: the last hour that was made. Of the first partition, where leaders keep minutes',
    bound:
      '90 days of 24 lines. Each takes the place of the one 90 days before; an hour in which nothing happened has no line',
  },
  days: {
    type: 'hash',
    ttl: DAYS_TTL_MS,
    doc: 'day of 396 → what happened in it, packed, of all partitions of the queue; days are those of UTC. Of the first partition, where leaders keep minutes',
    bound: '396 lines. Each takes the place of the one 13 months before',
  },
  diary: {
    type: 'stream',
    ttl: DIARY_MS,
    doc: 'what rarely happened, one entry each: pauses, closings, settings that changed, leaders that came and went, times without a worker; when, who and why. What concerns the whole queue and is no step of a script is in that of partition 0',
    bound: 'the newest 1,000, until 90 days after the last: the step that adds takes the oldest away',
  },
  causes: {
    type: 'stream',
    ttl: CAUSES_MS,
    doc: 'of the first partition: `{m, s, l, p, g, b}`, what a worker has summed of the accounts of the starts of a minute: how many, why they were late, and what held those that were later than promised. Only where `http.minutes` says so',
    bound: 'one entry a minute for each worker that starts jobs, of 25 hours: who adds one takes older ones away',
  },
  looks: {
    type: 'stream',
    ttl: LOOKS_MS,
    doc: 'of a gated queue: `{f, t, p, g, l, j}`, what held the jobs in line, of which groups, in each second in which somebody was there',
    bound: 'one entry for each second of half an hour, with 200 groups at most: the leader takes older ones away',
  },
  claims: {
    type: 'hash',
    doc: 'worker over HTTP, space, lane → number of its last claim there, and the entries that it was handed; 9007199254740991: it has left. Only where [workers come over HTTP](../how-to/work-over-http.md)',
    bound:
      'eight per worker over HTTP. Whoever takes the consumer of the worker out of the group takes them away; a daemon with `http.work`, those of workers without a heartbeat',
  },
  cast: {
    type: 'stream',
    doc: 'of a broadcast queue: `{count, before, member, due, record}`, no group. Bounded by entries, bytes and age',
    bound:
      '`broadcast.max`, `.bytes` and `.age` of the queue: what is over goes in the step that adds, and the leader takes the oldest away',
  },
} as const satisfies Readonly<Record<string, KeyRow>>;

/** Keys of a namespace, over all queues. */
export const controlTable = {
  queues: {
    type: 'hash',
    doc: `queue → its partitions and generation as JSON; \`<queue>:history\` and so on → its settings: ${settingNames.map((name) => `\`:${name}\``).join(', ')}; \`<queue>:overrides\` → which of them were set by command, by whom and why, and what the definition says of these, as JSON; \`:lingerMs\` without a queue → that of queues that say nothing; \`:schema\` → the number of the layout of the namespace; \`:limits\` → the limits that queues share, each with its revision, as JSON; \`:versions\` → the versions of duestream that lived when a daemon looked last, with a space between`,
    bound: 'one per queue, and what it says of each setting. They come and go with the queue in one step',
  },
  schedules: {
    type: 'hash',
    doc: 'schedule → its definition as JSON',
    bound: 'one per schedule, until `schedules rm`',
  },
  alive: {
    type: 'set',
    doc: 'ids of the processes that sent a heartbeat, did not leave and were not given up',
    bound:
      'the processes that live, and of those that were killed about a hundred: where there are more than 100, each that comes takes up to 20 of them away; a mover, those that were missing for 10 min',
  },
  beat: {
    type: 'string',
    per: 'process',
    ttl: BEAT_MS_MAX,
    doc: 'the last heartbeat of a process: who it is, as JSON; of a worker that is paused also since when, by whom and why',
    bound: 'one per process that lives',
  },
  tokens: {
    type: 'hash',
    doc: 'token of the HTTP API → its name, scopes, queues, expiry and SHA-256 as JSON',
    bound: '1,000. The step that adds one takes those away that have expired',
  },
  session: {
    type: 'string',
    per: 'session',
    ttl: SESSION_MS,
    doc: 'the token that a page has logged in with; the name is the SHA-256 of what its cookie holds',
    bound: 'as many as log in within 12 hours',
  },
  idempotency: {
    type: 'string',
    per: 'key',
    ttl: IDEMPOTENCY_MS,
    doc: 'what was first asked with an `Idempotency-Key`: the due time and a digest of the request',
    bound: 'as many as are used within a day',
  },
  audit: {
    type: 'stream',
    doc: 'who changed what, which and how many, from what to what: the newest 10,000 changes by API and command line',
    bound: '10,000, and up to a node of the stream more: the step that adds takes the oldest away',
  },
  id: {
    type: 'string',
    doc: 'random, made once: tells these data from those of another Redis',
    bound: 'one',
  },
  wake: { type: 'channel', doc: 'a queue was declared or removed, a process came or left' },
} as const satisfies Readonly<Record<string, KeyRow>>;

/** Keys of a limit that several queues share, each limit in a slot of its own. */
export const limitTable = {
  ledger: {
    type: 'hash',
    doc: '`rule`: the limit, with its revision; `gate`: the arrival of its rate in µs; `<queue>:<partition>` → the epoch and the number of the last call of its leader, how many places it has, how many it needs, when it asked, was served and had one, and what it was answered',
    bound:
      'one field per partition that has places or asked within a minute: the step that writes one takes others away',
  },
} as const satisfies Readonly<Record<string, KeyRow>>;

type Named<T extends Readonly<Record<string, KeyRow>>> = {
  readonly [name in keyof T]: T[name] extends { readonly per: string } ? (id: string) => string : string;
};

export type PartitionKeys = Named<typeof partitionTable>;
export type ControlKeys = Named<typeof controlTable>;
export type LimitKeys = Named<typeof limitTable>;

/** The keys of the one slot that calls go to: those of a partition, of a namespace, or of a limit. */
export type SlotKeys = PartitionKeys | LimitKeys | Omit<ControlKeys, 'beat' | 'session' | 'idempotency'>;

/** A key that holds something, with its row. */
export type StoredKey = KeyRow & { readonly key: string };

/** One partition of one queue. */
export interface PartitionRef {
  readonly queue: string;
  readonly partition: number;
  readonly layoutGeneration: number;
  readonly keys: PartitionKeys;
  /** What its queue keeps of jobs that are over: of the number, the share of this partition. */
  readonly history?: History | undefined;
  /** Fields of the data of its jobs that views do not show. */
  readonly redact?: Redaction | undefined;
  /** Its jobs go to every subscriber, and these are the bounds of `cast`. */
  readonly broadcast?: Broadcast | undefined;
  /** Its jobs call a URL: dispatchers run them, and no other worker. */
  readonly target?: QueueTarget | undefined;
  /** How much there may be: the share of this partition. Undefined: nobody ever set a limit. */
  readonly quota?: Quota | undefined;
  /** How much may run at once: the share of this partition. Undefined: the queue is not gated. */
  readonly gates?: PartitionGates | undefined;
  /** The limits that its queue shares with others, as the registry has them. */
  readonly shared?: readonly SharedLimit[] | undefined;
  /** How far apart passes of its leader are at least. Undefined: as close as jobs come. */
  readonly lingerMs?: number | undefined;
  /** How long before they are due jobs may be handed to workers. Undefined: they are not. */
  readonly aheadMs?: number | undefined;
  /** How late its jobs may start, of the whole queue. Undefined: nothing is promised. */
  readonly lateness?: LatenessPromise | undefined;
}

/** Whether its jobs go to every subscriber, and not to one worker each. */
export const isBroadcast = ({ broadcast }: Pick<PartitionRef, 'broadcast'>): boolean => broadcast?.isOn === true;

/** Whether what ends there is kept. */
export const keepsHistory = ({ history }: PartitionRef): boolean => history?.isOn === true;

export function partitionKeys(place: {
  readonly namespace: string;
  readonly queue: string;
  readonly partition: number;
}): PartitionKeys {
  return named(partitionTable, `${placeOfQueue(place.namespace, place.queue)}${place.partition}}`);
}

export function controlKeys(namespace: string): ControlKeys {
  return named(controlTable, `${placeOf(namespace)}{control}`);
}

/** Of a limit with this name. No queue has the name `limit` and a partition with a letter. */
export function limitKeys(namespace: string, limit: string): LimitKeys {
  return named(limitTable, `${placeOf(namespace)}{limit:${limit}}`);
}

/** A partition of a queue whose partition count and generation are known. */
export function partitionRef(namespace: string, place: Omit<PartitionRef, 'keys'>): PartitionRef {
  return Object.freeze({ ...place, keys: partitionKeys({ namespace, ...place }) });
}

/** How every key and channel of a namespace begins. */
export const placeOf = (namespace: string): string => `${namespace}:v1:`;

/** How every key and channel of a queue begins. */
export const placeOfQueue = (namespace: string, queue: string): string => `${placeOf(namespace)}{${queue}:`;

/** The keys of a slot that hold something. Those of single processes are not among them: nobody can list them all. */
export function storedKeys(keys: SlotKeys): readonly StoredKey[] {
  const rows: Readonly<Record<string, KeyRow>> =
    'alive' in keys ? controlTable : 'ledger' in keys ? limitTable : partitionTable;
  const names: Readonly<Record<string, unknown>> = keys;
  return Object.entries(rows).flatMap(([name, row]) => {
    const key = names[name];
    return row.type === 'channel' || row.per !== undefined || typeof key !== 'string' ? [] : [{ ...row, key }];
  });
}

function named<T extends Readonly<Record<string, KeyRow>>>(table: T, place: string): Named<T> {
  const keys = Object.entries(table).map(([name, { per }]) => {
    const key = `${place}:${name}`;
    return [name, per === undefined ? key : (id: string) => `${key}:${id}`];
  });
  // The compiler forgets the names of a table when they are listed.
  return Object.freeze(Object.fromEntries(keys)) as Named<T>;
}
