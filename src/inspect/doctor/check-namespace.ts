/** The checks of `doctor` that look at one namespace: its layout, its jobs, its schedules, its workers, its ends of jobs. */

import { type ProcessesById, processesOf, versionsOf, versionsText, workersOf } from '../../client/queues/processes.ts';
import type { StoredSchedule } from '../../client/schedules/schedule-places.ts';
import { createScheduleStore } from '../../client/schedules/schedule-store.ts';
import { viewOf } from '../../client/schedules/schedule-view.ts';
import type { DoneLimits } from '../../config/options.ts';
import { idOf } from '../../job/codec.ts';
import { show } from '../../kernel/duration.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import { counted, span } from '../../kernel/humanize.ts';
import { inTurns, type Steps } from '../../kernel/steps.ts';
import { lineOf, version } from '../../kernel/version.ts';
import { askAll } from '../../redis/connection/cluster/members.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import { timeAt } from '../../redis/connection/server-clock.ts';
import { naming } from '../../redis/connection/wrong-type.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { type Answered, askEach, type UnreadQueue } from '../../redis/read/each-queue.ts';
import { oldestDueAge, type PartitionStats, stats } from '../../redis/read/inspect.ts';
import { setsOf } from '../../redis/read/sets.ts';
import { exhaustedStreams, hollowStreams } from '../../redis/repair/streams.ts';
import { readSchema, remedyFor, SCHEMA } from '../../redis/schema.ts';
import { createStep } from '../../redis/scripts/bytes.ts';
import { allQueues, listQueues, partitionsOf, type QueueLayout } from '../../redis/scripts/queues.ts';
import { allDefinitions } from '../../redis/scripts/schedules.ts';
import { beyond } from '../../redis/scripts/scripts.ts';
import { purge } from '../../redis/scripts/upkeep.ts';
import { firedSince } from '../../schedule/progress.ts';
import { type Definition, decodeDefinition } from '../../schedule/text.ts';

// What a check of `doctor` is handed, and what it says.

export interface Finding {
  readonly status: 'ok' | 'warn' | 'fail';
  readonly saw: string;
  /** What to do; undefined when all is well. */
  readonly advice?: string;
}

/** INFO as names and values. */
export type Info = ReadonlyMap<string, string>;

export interface Subject {
  readonly redis: Redis;
  /** Empty when INFO is forbidden. */
  readonly info: Info;
  readonly namespace: string;
  readonly horizonMs: number;
  /** How long ends are to be remembered. */
  readonly done: DoneLimits;
  /** How many tags of a queue may be closed. */
  readonly closedMax: number;
}

export interface Check {
  readonly name: string;
  /** Says nothing without INFO. */
  readonly needsInfo?: boolean;
  /** Looks at one server: in a cluster, at each master. */
  readonly perServer?: boolean;
  readonly look: (subject: Subject) => Promise<Finding> | Finding;
}

// One bad queue hides what is found of no other: a check answers for the others, and fails with its name and its reason.

/** What a check asks each partition. @param atOnce as of `askEach` */
const askPartitions = <Answer>(
  redis: Redis,
  refs: readonly PartitionRef[],
  ask: (ref: PartitionRef) => Promise<Answer>,
  atOnce?: number,
): Promise<Answered<Answer>> =>
  askEach({ all: refs, unread: [] }, (ref) => naming(redis, [ref.keys], ask(ref)), atOnce);

export function leavingOut(finding: Finding, unread: readonly UnreadQueue[]): Finding {
  if (unread.length === 0) return finding;
  const names = unread.slice(0, EXAMPLES_MAX).map(({ queue, why }) => `${show(queue)} cannot be read: ${why}`);
  const more = unread.length > EXAMPLES_MAX ? [`and ${unread.length - EXAMPLES_MAX} more`] : [];
  const advice = 'mend what cannot be read, then run this again';
  return {
    status: 'fail',
    saw: [...names, ...more, `of the others: ${finding.saw}`].join('; '),
    advice: finding.advice === undefined ? advice : `${advice}; ${finding.advice}`,
  };
}

const PARTITIONS_MAX = 256;
const DEAD_LETTERS_MAX = 500;
const MEMBERS_MAX = 10_000;
const STEP = 100;
const CHARS_MAX = 16 * 1024 * 1024;

/** Scores of 1973 and before were meant in seconds; 0 means now. */
const SECONDS = [
  ['-inf', '(0'],
  ['(0', '(100000000000'],
] as const;

/**
 * Finds due times that a foreign producer gave in seconds or beyond the horizon. The mover makes a dead letter of such a
 * member as soon as it is due, so this check counts those dead letters too. All counts are exact.
 */
export async function dueTimes({ redis, info, namespace, horizonMs }: Subject): Promise<Finding> {
  const refs = await refsOf(redis, namespace);
  const nowMs = await latestMs(redis);
  const early = { count: 0, example: '' };
  const far = { count: 0, example: '' };
  const look = async (ref: PartitionRef) => {
    for (const [from, to] of SECONDS) await addRange(redis, ref, { from, to, into: early });
    for (const [from, to] of beyond(nowMs + horizonMs)) await addRange(redis, ref, { from, to, into: far });
    return info.get('role') === 'slave' ? 0 : deadLettersOf(redis, ref, 'bad-due');
  };
  const { found, unread } = await askPartitions(redis, refs, look, 1);
  const deadLetters = sum(found);
  const saw = [
    ...(early.count > 0
      ? [`${counted(early.count, 'due time')} that look like seconds, such as ${early.example}`]
      : []),
    ...(far.count > 0 ? [`${counted(far.count, 'due time')} past the horizon, such as ${far.example}`] : []),
    ...(deadLetters > 0 ? [`${counted(deadLetters, 'dead letter')} for the reason bad-due`] : []),
  ];
  if (saw.length === 0) {
    const well = `every due time makes sense, in ${counted(found.length, 'partition')}`;
    return leavingOut({ status: 'ok', saw: well }, unread);
  }
  const advice = [
    ...(early.count + deadLetters > 0 ? ['change the producer: the score is milliseconds since 1970'] : []),
    ...(far.count > 0
      ? ['if nobody means these times, remove the members past the horizon with ZREM: they start then, or never']
      : []),
  ];
  return leavingOut({ status: 'warn', saw: saw.join('; '), advice: advice.join('; ') }, unread);
}

/** Finds ids that nobody can read. The check looks at the members that are due soonest, as many as the bounds above allow. */
export async function members({ redis, info, namespace }: Subject): Promise<Finding> {
  const refs = await refsOf(redis, namespace);
  const seen = { looked: 0, chars: 0, unreadable: 0, example: '' };
  const look = async (ref: PartitionRef) => {
    await lookAtMembers(redis, ref, seen);
    return info.get('role') === 'slave' ? 0 : deadLettersOf(redis, ref, 'bad-member');
  };
  // One after the other: what is looked at is bounded in all.
  const { found, unread } = await askPartitions(redis, refs, look, 1);
  const deadLetters = sum(found);
  if (seen.unreadable + deadLetters === 0) {
    return leavingOut({ status: 'ok', saw: `${seen.looked} ids checked, all can be read` }, unread);
  }
  const saw = [
    ...(seen.unreadable > 0
      ? [`${seen.unreadable} of ${seen.looked} ids cannot be read, such as ${seen.example}`]
      : []),
    ...(deadLetters > 0 ? [`${counted(deadLetters, 'dead letter')} for the reason bad-member`] : []),
  ];
  const advice = 'change the producer: an id has at most 128 printable ASCII characters and no space';
  return leavingOut({ status: 'warn', saw: saw.join('; '), advice }, unread);
}

const sum = (counts: readonly number[]): number => counts.reduce((total, one) => total + one, 0);

/** The same rule as `promote` has. */
export function isReadable(member: string): boolean {
  return member.length <= (idOf(member).bare ? 130 : 200) && /^[!-~]+$/.test(member);
}

/** By the clock of the server that is ahead. */
const latestMs = async (redis: Redis): Promise<number> => Math.floor(Math.max(...(await askAll(redis, timeAt))));

async function refsOf(redis: Redis, namespace: string): Promise<readonly PartitionRef[]> {
  const queues = await listQueues(redis, namespace);
  return queues.flatMap((layout) => partitionsOf(namespace, layout)).slice(0, PARTITIONS_MAX);
}

async function addRange(
  redis: Redis,
  { queue, keys }: PartitionRef,
  { from, to, into }: { from: string; to: string; into: { count: number; example: string } },
): Promise<void> {
  const count = await redis.zcount(keys.scheduled, from, to);
  if (count === 0) return;
  const [member = '', due = ''] = await redis.zrangebyscore(keys.scheduled, from, to, 'WITHSCORES', 'LIMIT', 0, 1);
  into.count += count;
  if (into.example === '') into.example = `${show(idOf(member).id.slice(0, 40))} at ${due} in ${queue}`;
}

async function lookAtMembers(
  redis: Redis,
  { queue, keys }: PartitionRef,
  seen: { looked: number; chars: number; unreadable: number; example: string },
): Promise<void> {
  // A member may be as large as a megabyte, so few are read at once.
  const step = createStep(STEP);
  for (let from = 0; seen.looked < MEMBERS_MAX && seen.chars < CHARS_MAX; ) {
    const asked = step.next();
    const found = await redis.zrange(keys.scheduled, String(from), String(from + asked - 1));
    step.saw(found.map(({ length }) => length));
    from += found.length;
    const bad = found.filter((member) => !isReadable(member));
    seen.looked += found.length;
    seen.chars += found.reduce((sum, member) => sum + member.length, 0);
    seen.unreadable += bad.length;
    if (bad[0] !== undefined && seen.example === '') seen.example = `${show(bad[0].slice(0, 40))} in ${queue}`;
    if (found.length < asked) return;
  }
}

/** How many of the oldest dead letters have this reason. */
async function deadLettersOf(redis: Redis, ref: PartitionRef, reason: string): Promise<number> {
  let count = 0;
  let after: string | undefined;
  let left = DEAD_LETTERS_MAX;
  do {
    const { matched, looked, next } = await purge(redis, ref, { mode: 'count', ageMs: 0, limit: left, reason, after });
    count += matched;
    left -= looked;
    after = next;
  } while (after !== undefined && left > 0);
  return count;
}

/* Whether every schedule can fire. Nobody notices a schedule that stopped silently, unless this check finds it. */

const LOOKED_MAX = 10_000;
/** A leader that was away for a moment is no finding. */
const LATE_MS = 60_000;
/** Nor are clocks of two servers that differ a little. */
const AHEAD_MS = 60_000;

const ILLS = {
  unreadable: ['cannot be read', 'put it again, or remove it with "duestream schedules rm"'],
  homeless: ['has a queue that is not declared', 'put it again: that declares its queue'],
  unarmed: [
    'is unknown to the leader of its queue, so it does not fire',
    'put it again: the same definition is enough',
  ],
  lost: ['has a state that cannot be read', 'remove it with "duestream schedules rm" and put it again'],
  ahead: [
    'has fired up to an instant in the future, because a clock went back, and fires nothing until then',
    'compare the clocks of the servers; to let it fire sooner, remove it with "duestream schedules rm" and put it again',
  ],
  late: ['is overdue and nobody fires it', 'start a daemon that leads its queue, or look at its log'],
} as const;

type Ill = keyof typeof ILLS;

export async function schedules({ redis, namespace }: Subject): Promise<Finding> {
  const ill = new Map<Ill, string[]>();
  const found = (what: Ill, name: string) => {
    const names = ill.get(what);
    if (names) names.push(name);
    else ill.set(what, [name]);
  };
  const readable = await read(redis, namespace, (name) => found('unreadable', name));
  const declared = new Set((await listQueues(redis, namespace)).map(({ queue }) => queue));
  const housed = readable.filter(({ schedule }) => declared.has(schedule.queue));
  for (const { schedule } of readable) if (!declared.has(schedule.queue)) found('homeless', schedule.name);
  const store = createScheduleStore({ redis, namespace });
  const [stored, nowMs] = [await store.findAll(housed), await store.nowMs()];
  const byQueue = new Map<string, StoredSchedule[]>();
  for (const one of stored) {
    const some = byQueue.get(one.ref.queue) ?? [];
    byQueue.set(one.ref.queue, some);
    some.push(one);
  }
  const asked = [...byQueue].map(([queue, some]) => ({ queue, some }));
  const look = { all: asked, unread: [] };
  const { found: unwell, unread } = await askEach(look, ({ some }) => unfired(redis, some, nowMs));
  for (const [name, what] of unwell.flat()) found(what, name);
  const all = readable.length + (ill.get('unreadable')?.length ?? 0);
  if (ill.size === 0) {
    const well = all === 0 ? 'none' : `${counted(all, 'schedule')}, each known to its leader`;
    return leavingOut({ status: 'ok', saw: well }, unread);
  }
  const some = [...ill].map(([what, names]) => `${names.length} of ${all} ${ILLS[what][0]}, such as ${show(names[0])}`);
  const advice = [...ill.keys()].map((what) => ILLS[what][1]).join('; ');
  return leavingOut({ status: 'warn', saw: some.join('; '), advice }, unread);
}

async function read(
  redis: Redis,
  namespace: string,
  unreadable: (name: string) => void,
): Promise<readonly Definition[]> {
  const readable = new Map<string, Definition>();
  for await (const page of allDefinitions(redis, namespace)) {
    for (const [name, content] of page) {
      try {
        readable.set(name, decodeDefinition(name, content));
      } catch (error) {
        if (!(error instanceof DuestreamError)) throw error;
        unreadable(name);
      }
    }
    if (readable.size >= LOOKED_MAX) break;
  }
  return [...readable.values()];
}

/** Those that have an instant to come and no look, or one that is long past. */
async function unfired(
  redis: Redis,
  stored: readonly StoredSchedule[],
  nowMs: number,
): Promise<readonly (readonly [name: string, what: Ill])[]> {
  const looks = await Promise.all(
    stored.map(({ ref: { keys }, definition }) =>
      naming(redis, [keys], redis.zscore(keys.fires, definition.schedule.name)),
    ),
  );
  const found: (readonly [name: string, what: Ill])[] = [];
  for (const [at, one] of stored.entries()) {
    const ill = await inTurns(illOf(one, looks[at] ?? undefined, nowMs));
    if (ill !== undefined) found.push([one.definition.schedule.name, ill]);
  }
  return found;
}

function* illOf(one: StoredSchedule, look: string | undefined, nowMs: number): Steps<Ill | undefined> {
  if (one.fired === undefined) return 'unarmed';
  if (one.fired.unreadable !== undefined) return 'lost';
  if ((yield* viewOf(one, nowMs)).nextMs === undefined) return undefined;
  if (look === undefined) return 'unarmed';
  if (firedSince(one.definition.schedule, one.fired, nowMs).reachedMs - nowMs > AHEAD_MS) return 'ahead';
  // 0 means at once: then it counts since when the definition holds.
  return nowMs - Math.max(Number(look), one.definition.schedule.sinceMs) > LATE_MS ? 'late' : undefined;
}

/*
 * Whether each queue with due jobs has a daemon that promotes them and a worker that runs them. Jobs of a queue without
 * them never fail; they wait, and nothing but this check says so.
 */

const QUEUES_MAX = 256;
/** A leader that was away for a moment is no finding. */
const UNLED_MS = 5000;
const EXAMPLES_MAX = 5;

interface Idle {
  readonly text: string;
  readonly advice: string;
}

export async function workers({ redis, namespace }: Subject): Promise<Finding> {
  const layouts = (await listQueues(redis, namespace)).slice(0, QUEUES_MAX);
  const processes = await processesOf(redis, namespace);
  const answered = await askEach({ all: layouts, unread: [] }, (layout) =>
    idleIn(redis, { namespace, layout, processes }),
  );
  const [found, unread] = [answered.found.flat(), answered.unread];
  if (found.length === 0) {
    const well = `${counted(answered.found.length, 'queue')}; all due jobs have a worker and a daemon`;
    return leavingOut({ status: 'ok', saw: well }, unread);
  }
  const texts = found.slice(0, EXAMPLES_MAX).map(({ text }) => text);
  const more = found.length > EXAMPLES_MAX ? [`and ${found.length - EXAMPLES_MAX} more`] : [];
  const advice = [...new Set(found.map((one) => one.advice))].join('; ');
  return leavingOut({ status: 'warn', saw: [...texts, ...more].join('; '), advice }, unread);
}

/** Whether all processes that live have the minor version of the process that asks. */
export async function processes({ redis, namespace }: Subject): Promise<Finding> {
  const there = versionsOf(await processesOf(redis, namespace));
  const known = there.flatMap((one) => one.version ?? []);
  const seen = there.length === 0 ? 'no process lives' : versionsText(there);
  const saw = known.length === 1 && known[0] === version ? seen : `${seen}; asked by ${version}`;
  if (new Set([version, ...known].map(lineOf)).size === 1) return { status: 'ok', saw };
  const advice =
    'bring all processes, clients and this command to one version: two of them work side by side, and what is new in one the other does not know';
  return { status: 'warn', saw, advice };
}

async function idleIn(
  redis: Redis,
  of: { readonly namespace: string; readonly layout: QueueLayout; readonly processes: ProcessesById },
): Promise<readonly Idle[]> {
  const { queue } = of.layout;
  const refs = partitionsOf(of.namespace, of.layout);
  const all = await Promise.all(refs.map((ref) => stats(redis, ref)));
  const ageMs = Math.max(...(await Promise.all(refs.map((ref) => oldestDueAge(redis, ref)))));
  const entries = all.reduce((sum, { ready, running }) => sum + ready + running, 0);
  const unled = all.some(
    ({ term, paused, headDueMs = Number.POSITIVE_INFINITY, nowMs }) =>
      term === undefined && !paused && headDueMs < nowMs - UNLED_MS,
  );
  const since = ageMs > 0 ? `, the oldest due for ${span(ageMs)}` : '';
  const found: Idle[] = [];
  if (of.layout.broadcast?.isOn) found.push(...leftForWorkers(queue, entries, workersOf(queue, of.processes)));
  else if (workersOf(queue, of.processes) === 0 && (entries > 0 || ageMs > 0)) {
    const what = entries > 0 ? `${counted(entries, 'job')} ready` : 'jobs that are due';
    found.push({
      text: `${show(queue)} has ${what} but no worker${since}`,
      advice: 'start a worker with "duestream worker <module>"',
    });
  }
  if (unled) {
    found.push({
      text: `${show(queue)} has jobs that are due but no daemon that promotes them${since}`,
      advice: 'start a daemon with "duestream start"',
    });
  }
  return found;
}

/** Of a broadcast queue: jobs and workers that it had before it was one. */
function leftForWorkers(queue: string, entries: number, serving: number): readonly Idle[] {
  if (entries === 0 && serving === 0) return [];
  const what = [
    ...(entries > 0 ? [`${counted(entries, 'job')} ready for workers`] : []),
    ...(serving > 0 ? [counted(serving, 'worker')] : []),
  ];
  return [
    {
      text: `${show(queue)} is a broadcast and has ${what.join(' and ')}`,
      advice: 'update all daemons, and stop the workers of a queue that is a broadcast',
    },
  ];
}

/* Whether the namespace and its partitions have the layout that this version reads. An unused namespace has no layout yet. */

const SCHEMA_PARTITIONS_MAX = 1024;

export async function schema({ redis, namespace }: Subject): Promise<Finding> {
  const found = await readSchema(redis, namespace);
  // Not even the registry can be read then, so this is all that can be said.
  if (found !== undefined && found !== SCHEMA) {
    return {
      status: 'fail',
      saw: `namespace ${namespace} has schema ${show(found)}; this version knows ${SCHEMA}, and no part of it works here`,
      advice: remedyFor(found),
    };
  }
  const { queues, unreadable: entries } = await allQueues(redis, namespace);
  const [unreadable, ...more] = entries;
  if (unreadable !== undefined) {
    const others = more.length > 0 ? ` and of ${counted(more.length, 'other queue')}` : '';
    return {
      status: 'fail',
      saw: `the registry's entry of queue ${show(unreadable.queue)}${others} cannot be read: ${show(unreadable.text)}`,
      advice: `nobody serves it; "duestream queues rm ${unreadable.queue} --force" removes it with its jobs`,
    };
  }
  const refs = queues.flatMap((layout) => partitionsOf(namespace, layout)).slice(0, SCHEMA_PARTITIONS_MAX);
  const look = async (ref: PartitionRef) => ({ ref, value: await redis.hget(ref.keys.meta, 'schema') });
  const { found: values, unread } = await askPartitions(redis, refs, look);
  return leavingOut(schemaFinding({ queues, values, isMarked: found !== undefined }), unread);
}

function schemaFinding({
  queues,
  values,
  isMarked,
}: {
  readonly queues: readonly QueueLayout[];
  readonly values: readonly { readonly ref: PartitionRef; readonly value: string | null }[];
  readonly isMarked: boolean;
}): Finding {
  const foreign = values.flatMap(({ ref, value }) => (value === null || value === SCHEMA ? [] : [{ ref, value }]));
  const [example] = foreign;
  if (example !== undefined) {
    const { ref, value } = example;
    return {
      status: 'fail',
      saw: `${counted(foreign.length, 'partition')} with another schema than ${SCHEMA}: ${ref.queue} partition ${ref.partition} has ${show(value)}`,
      advice: `no daemon of this version leads them: ${remedyFor(value)}`,
    };
  }
  const odd = queues.find(({ asked }) => asked !== undefined);
  if (odd !== undefined) {
    return {
      status: 'warn',
      saw: `queue ${show(odd.queue)} has ${counted(odd.partitions, 'partition')}, and a definition says ${odd.asked}`,
      advice: `a queue keeps the number of its first use: say partitions: ${odd.partitions} in the code, or take a new queue for new jobs`,
    };
  }
  const unmarked = isMarked ? '' : '; the namespace does not say, and the first use marks it so';
  return { status: 'ok', saw: `schema ${SCHEMA}, in ${counted(values.length, 'partition')}${unmarked}` };
}

/*
 * Whether Redis keeps the end of every job for the done window. If more jobs end than `done.max` has room for, the daemons
 * remove the oldest tombstones early, but none that is younger than the floor. The window and the limit come from the
 * configuration of `doctor`; the daemons report what they removed.
 */

/** Of fewer ends than this part of the limit nobody can say how fast they come. */
const SAMPLE = 1 / 10;
/** So near to the floor the number of tombstones grows with the rate. */
const NEAR = 1.5;

interface Shortage {
  readonly ref: PartitionRef;
  /** For how long ends are remembered there, as far as can be seen. */
  readonly rememberedMs: number;
  readonly perSecond: number;
}

/** A tag more than may be closed is refused, so jobs that should end with it would start. */
export async function closedTags({ redis, namespace, closedMax }: Subject): Promise<Finding> {
  // Each partition has them all.
  const firsts = (await listQueues(redis, namespace)).flatMap((one) => partitionsOf(namespace, one).slice(0, 1));
  const look = async ({ queue, keys }: PartitionRef) => ({ queue, count: await redis.zcard(keys.closed) });
  const { found, unread } = await askPartitions(redis, firsts, look);
  const all = sum(found.map(({ count }) => count));
  const most = found.reduce((one, other) => (other.count > one.count ? other : one), { queue: '', count: 0 });
  const isNear = most.count >= NEARLY_ALL * closedMax;
  return leavingOut(
    isNear ? nearlyAll(most, closedMax) : { status: 'ok', saw: `${counted(all, 'tag')} closed` },
    unread,
  );
}

function nearlyAll(most: { readonly queue: string; readonly count: number }, closedMax: number): Finding {
  return {
    status: 'warn',
    saw: `${counted(most.count, 'tag')} of ${most.queue} are closed, and mover.closedMax is ${closedMax}: one more than that is refused`,
    advice: `open some: duestream closed ${most.queue}, duestream open ${most.queue} <tag>; close them for a shorter time; or set mover.closedMax to ${2 * closedMax}, at 128 bytes of memory for each tag in each partition`,
  };
}

/** A Redis with a hollow stream may not start again; to an exhausted one nothing can be added. */
export async function streams({ redis, namespace }: Subject): Promise<Finding> {
  const refs = await refsOf(redis, namespace);
  const { found, unread } = await askPartitions(redis, refs, async ({ keys }) => ({
    hollow: await hollowStreams(redis, keys),
    exhausted: await exhaustedStreams(redis, keys),
  }));
  const hollow = found.flatMap((one) => one.hollow);
  const [first] = hollow;
  const exhausted = found.flatMap((one) => one.exhausted);
  if (exhausted[0] !== undefined) {
    const saw = `${counted(exhausted.length, 'stream')} with an entry of the last id of all, such as ${exhausted[0]}: nothing can be added, so no job of its partition runs`;
    return leavingOut({ status: 'fail', saw, advice: 'give it an id of now: duestream fsck --repair --yes' }, unread);
  }
  if (first === undefined) {
    return leavingOut(
      { status: 'ok', saw: `the streams of ${counted(found.length, 'partition')} can be loaded` },
      unread,
    );
  }
  const bad: Finding = {
    status: 'fail',
    saw: `${counted(hollow.length, 'stream')} with more nodes than entries, such as ${first}: newer versions of Redis refuse to load a dump of it, so they would not start again`,
    advice: 'take the empty nodes off: duestream fsck --repair --yes',
  };
  return leavingOut(bad, unread);
}

/** A set that nobody seals has no callback, however long its members are over. */
export async function unsealedSets({ redis, namespace }: Subject): Promise<Finding> {
  const nowMs = await latestMs(redis);
  const refs = (await listQueues(redis, namespace)).flatMap((layout) => partitionsOf(namespace, layout));
  const { found, unread } = await askPartitions(redis, refs, async (ref) => {
    const { sets } = await setsOf(redis, ref, { after: undefined, limit: SETS_SEEN });
    return sets.map((one) => ({ queue: ref.queue, ...one }));
  });
  const all = found.flat();
  const old = all.filter((one) => !one.isSealed && one.madeMs < nowMs - DAY_MS).sort((a, b) => a.madeMs - b.madeMs);
  const [oldest] = old;
  if (!oldest) {
    return leavingOut({ status: 'ok', saw: `${counted(all.length, 'set')} whose callbacks were not made yet` }, unread);
  }
  const { queue, name, madeMs } = oldest;
  const unsealed: Finding = {
    status: 'warn',
    saw: `${counted(old.length, 'set')} not sealed for more than a day, first ${name} of ${queue}, begun ${new Date(madeMs).toISOString()}: the callback is not made before`,
    advice: `seal it when all its members are there: duestream sets seal ${queue} ${name}; or remove it: duestream sets rm ${queue} ${name}`,
  };
  return leavingOut(unsealed, unread);
}

/** Of each partition so many sets are looked at, by their names. */
const SETS_SEEN = 1000;
const DAY_MS = 86_400_000;

/** Of the tags that may be closed. */
const NEARLY_ALL = 0.8;

export async function done({ redis, namespace, done: limits }: Subject): Promise<Finding> {
  const { windowMs, tombstonesMax } = limits;
  if (windowMs === 0) return { status: 'ok', saw: 'this configuration remembers no end of a job' };
  const queues = await listQueues(redis, namespace);
  const refs = queues.flatMap((layout) => partitionsOf(namespace, layout)).slice(0, PARTITIONS_MAX);
  const { found, unread } = await askPartitions(redis, refs, async (ref): Promise<readonly Shortage[]> => {
    const now = await stats(redis, ref);
    if (now.done < tombstonesMax * SAMPLE && now.evicted === undefined) return [];
    const [, oldest] = await redis.zrange(ref.keys.done, '0', '0', 'WITHSCORES');
    const short = shortage(now, { oldestMs: Number(oldest ?? now.nowMs), ...limits });
    return short === undefined ? [] : [{ ref, ...short }];
  });
  const [worst] = found.flat().sort((one, other) => one.rememberedMs - other.rememberedMs);
  const well: Finding = { status: 'ok', saw: `every end of a job is remembered for ${span(windowMs)}` };
  return leavingOut(worst === undefined ? well : forgotten(worst, limits), unread);
}

function forgotten(worst: Shortage, { windowMs, tombstonesMax, floorMs }: DoneLimits): Finding {
  const { queue, partition } = worst.ref;
  const wanted = Math.ceil((worst.perSecond * windowMs) / 1000);
  const saw =
    `ends in ${queue}:${partition} are remembered for ${span(worst.rememberedMs)}, not for ${span(windowMs)}: ` +
    `about ${Math.round(worst.perSecond)} jobs end there per second, and done.max is ${tombstonesMax}`;
  const advice =
    worst.rememberedMs > NEAR * floorMs
      ? `set done.max to ${wanted} or more, about ${mib(wanted)} of memory; or set done.window to the time that you need`
      : `no end is forgotten before ${span(floorMs)}, so memory now grows with the rate: add partitions, or set done.max to ${wanted}, about ${mib(wanted)} of memory`;
  return { status: 'warn', saw, advice };
}

/** How much less than the window is remembered, if it is less. */
function shortage(
  { nowMs, done: count, evicted }: Pick<PartitionStats, 'nowMs' | 'done' | 'evicted'>,
  of: DoneLimits & { readonly oldestMs: number },
): Omit<Shortage, 'ref'> | undefined {
  const spanMs = Math.max(1, nowMs - of.oldestMs);
  const perSecond = (1000 * count) / spanMs;
  // At this rate the limit is reached after so long; no end goes below the floor.
  const filledMs =
    count < of.tombstonesMax * SAMPLE ? of.windowMs : Math.max(of.floorMs, (1000 * of.tombstonesMax) / perSecond);
  const rememberedMs = Math.min(filledMs, evicted?.ageMs ?? of.windowMs);
  return rememberedMs < of.windowMs ? { rememberedMs, perSecond } : undefined;
}

/** `npm run bench -- ends` measures it, with ids of 22 characters. */
const BYTES_PER_END = 270;
const mib = (count: number): string => `${Math.max(1, Math.round((count * BYTES_PER_END) / 2 ** 20))} MiB`;
