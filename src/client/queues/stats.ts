/** Queues as a person looks at them: what they hold, how long jobs have waited, who leads and who serves. */

import type { Broadcast } from '../../job/queue-settings.ts';
import { type QuotaUse, quotaSum } from '../../job/quota.ts';
import { createAbort } from '../../kernel/abort.ts';
import { systemClock } from '../../kernel/clock.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import { isBroadcast, type PartitionRef } from '../../redis/keys.ts';
import { askEach, queuesIn, type UnreadQueue } from '../../redis/read/each-queue.ts';
import {
  DUE_SPANS_MS,
  dueNext,
  type OldestDue,
  oldestDue,
  type PartitionStats,
  stats,
} from '../../redis/read/inspect.ts';
import { partitionsOf, type QueueLayout } from '../../redis/scripts/queues.ts';
import type { Pause } from '../../redis/scripts/upkeep.ts';
import {
  type Leader,
  leaderName,
  leaderOf,
  type ProcessesById,
  processesOf,
  type Subscribed,
  subscribersOf,
  workersOf,
} from './processes.ts';
import { layoutOfQueue, type Namespaced } from './refs.ts';
import { limitsOf, type QueueLimits, type QueueSettingsView, settingsView } from './settings.ts';

/** How many jobs a queue holds, for how long they have waited, and who serves and leads it. */
export interface QueueCounts {
  readonly queue: string;
  readonly partitions: number;
  readonly scheduled: number;
  /** Jobs that are due and in line: their queue has limits. */
  readonly waiting: number;
  /** For how long the first of them has waited; 0 when none does. */
  readonly waitMs: number;
  readonly ready: number;
  readonly running: number;
  readonly dead: number;
  readonly paused: boolean;
  /** For how long the oldest job that is due has waited for its start, wherever it waits; 0 when none waits. */
  readonly oldestDueAgeMs: number;
  /** That job is in line: its queue has limits. */
  readonly oldestInLine: boolean;
  /** How much it may hold, and does; undefined without limits. */
  readonly quota?: QuotaUse | undefined;
  /** How much may run at once; undefined: the queue is not gated. */
  readonly limits?: QueueLimits | undefined;
  /** Living workers that serve it. */
  readonly workers: number;
  /** Per partition: the process that leads it, or undefined. */
  readonly leaders: readonly (string | undefined)[];
}

/** The same with what happened so far, and what time it was at Redis. */
export interface QueueNow extends QueueCounts {
  readonly counters: Readonly<Record<string, number>>;
  readonly nowMs: number;
}

/** How many jobs come due in a span of time. */
export interface DueSpan {
  /** Ms from now; undefined: all that is due by now. */
  readonly fromMs: number | undefined;
  /** Ms from now; undefined: all that comes later. */
  readonly toMs: number | undefined;
  readonly count: number;
}

export interface PartitionCounts
  extends Pick<
    QueueCounts,
    'scheduled' | 'waiting' | 'waitMs' | 'ready' | 'running' | 'dead' | 'paused' | 'oldestDueAgeMs' | 'oldestInLine'
  > {
  readonly partition: number;
  readonly leader: Leader | undefined;
  /** Jobs whose end is remembered. */
  readonly over: number;
  /** Its share of the limits of the queue, and what is used of it. */
  readonly quota?: QuotaUse | undefined;
  /** Its share of the concurrency of a gated queue; 0: no such limit. */
  readonly concurrency?: number | undefined;
  readonly counters: Readonly<Record<string, number>>;
}

/** The sums over all partitions of a queue. */
type QueueTotals = Pick<
  PartitionCounts,
  | 'scheduled'
  | 'waiting'
  | 'waitMs'
  | 'ready'
  | 'running'
  | 'dead'
  | 'over'
  | 'oldestDueAgeMs'
  | 'oldestInLine'
  | 'quota'
  | 'counters'
>;

/** A queue as it is now: its counts, what happened so far, who leads it, what comes due when, and its settings. */
export interface QueueReport extends QueueTotals, QueueSettingsView {
  readonly queue: string;
  /** How much may run at once; undefined: the queue is not gated. */
  readonly limits?: QueueLimits | undefined;
  /** How long due jobs wait for company at most; 0: each is on time. */
  readonly lingerMs: number;
  readonly paused: boolean;
  /** Since when, and why. */
  readonly pause: Pause | undefined;
  /** Living workers that serve it. */
  readonly workers: number;
  /** Of a broadcast queue. */
  readonly broadcast: BroadcastCounts | undefined;
  readonly dueNext: readonly DueSpan[];
  readonly partitions: readonly PartitionCounts[];
  /** When this was so, in epoch ms by the clock of Redis. */
  readonly nowMs: number;
}

/** What a broadcast queue has sent, and to whom. */
export interface BroadcastCounts {
  /** Jobs that are kept for subscribers that are behind. */
  readonly kept: number;
  /** The bounds of what is kept, of all partitions together. */
  readonly max: number;
  readonly bytes: number;
  readonly ageMs: number;
  readonly subscribers: readonly Subscribed[];
}

/**
 * Every queue that was ever used, by name. Those that cannot be read hide no other.
 *
 * @param wanted which of them are looked at
 * @throws what the first one was told, where none could be read
 */
export async function queueCounts(
  place: Namespaced,
  wanted: (queue: string) => boolean = () => true,
): Promise<{ readonly queues: readonly QueueCounts[]; readonly unread: readonly UnreadQueue[] }> {
  const { queues, unread } = await queuesNow(place, wanted);
  return { queues: queues.map(({ counters: _counters, nowMs: _nowMs, ...counts }) => counts), unread };
}

/** The same with their counters, and the processes that there are. */
export async function queuesNow(
  place: Namespaced,
  wanted: (queue: string) => boolean = () => true,
): Promise<{
  readonly queues: readonly QueueNow[];
  readonly unread: readonly UnreadQueue[];
  readonly processes: ProcessesById;
}> {
  const { redis, namespace } = place;
  const processes = await processesOf(redis, namespace);
  const listed = await queuesIn(redis, namespace, wanted);
  const { found, unread } = await askEach(listed, (layout) => readInTime(countsOf(place, layout, processes)));
  return { queues: found, unread, processes };
}

/** How long one queue may take, so that a node that is down does not hold up the look at the others. */
const READ_MS = 2000;

/** @throws DuestreamError `unavailable` when it takes too long */
export async function readInTime<Read>(reading: Promise<Read>): Promise<Read> {
  const over = createAbort();
  const late = systemClock.sleep(READ_MS, over.signal).then(() => {
    throw new DuestreamError('unavailable', `Redis did not answer within ${READ_MS} ms`);
  });
  return Promise.race([reading, late]).finally(() => over.abort());
}

/** @throws DuestreamError `not-found` */
export async function queueReport(place: Namespaced, queue: string): Promise<QueueReport> {
  const { redis } = place;
  const layout = await layoutOfQueue(place, queue);
  const refs = partitionsOf(place.namespace, layout);
  const processes = await processesOf(redis, place.namespace);
  const all = await Promise.all(refs.map((ref) => stats(redis, ref)));
  const oldest = await Promise.all(refs.map((ref) => oldestDue(redis, ref)));
  const spans = await Promise.all(refs.map((ref, at) => dueNext(redis, ref, all[at]?.nowMs ?? 0)));
  const partitions = all.map((one, partition) =>
    partitionOf(one, { partition, ...ageOf(oldest.slice(partition, partition + 1)), leader: leaderOf(one, processes) }),
  );
  const held = all.find(({ paused }) => paused);
  return {
    queue,
    ...sumOf(partitions),
    workers: workersOf(queue, processes),
    broadcast: await broadcastOf(redis, refs, processes),
    limits: limitsOf(layout),
    lingerMs: refs[0]?.lingerMs ?? 0,
    ...settingsView(layout),
    paused: held !== undefined,
    pause: held?.pause,
    dueNext: spansOf(spans),
    partitions,
    nowMs: Math.max(...all.map((one) => one.nowMs)),
  };
}

async function broadcastOf(
  redis: Redis,
  refs: readonly PartitionRef[],
  processes: ProcessesById,
): Promise<BroadcastCounts | undefined> {
  const [first] = refs;
  if (first?.broadcast === undefined || !isBroadcast(first)) return undefined;
  const kept = await Promise.all(refs.map(({ keys }) => redis.xlen(keys.cast)));
  const sum = (of: (broadcast: Broadcast) => number) =>
    refs.reduce((total, { broadcast }) => total + (broadcast ? of(broadcast) : 0), 0);
  return {
    kept: kept.reduce((total, one) => total + one, 0),
    max: sum(({ max }) => max),
    bytes: sum(({ bytes }) => bytes),
    ageMs: first.broadcast.ageMs,
    subscribers: subscribersOf(first.queue, processes),
  };
}

async function countsOf(
  { redis, namespace }: Namespaced,
  layout: QueueLayout,
  processes: ProcessesById,
): Promise<QueueNow> {
  const refs = partitionsOf(namespace, layout);
  const all = await Promise.all(refs.map((ref) => stats(redis, ref)));
  const oldest = await Promise.all(refs.map((ref) => oldestDue(redis, ref)));
  const sum = (of: (one: PartitionStats) => number) => all.reduce((total, one) => total + of(one), 0);
  return {
    queue: layout.queue,
    partitions: layout.partitions,
    scheduled: sum(({ scheduled }) => scheduled),
    waiting: sum(({ waiting }) => waiting),
    waitMs: Math.max(...all.map(waitOf)),
    ready: sum(({ ready }) => ready),
    running: sum(({ running }) => running),
    dead: sum(({ dead }) => dead),
    paused: all.some(({ paused }) => paused),
    ...ageOf(oldest),
    ...quotaIn(all),
    limits: limitsOf(layout),
    workers: workersOf(layout.queue, processes),
    leaders: all.map((one) => {
      const leader = leaderOf(one, processes);
      return leader && leaderName(leader);
    }),
    counters: countersIn(all),
    nowMs: Math.max(...all.map(({ nowMs }) => nowMs)),
  };
}

/** The oldest of all partitions. */
function ageOf(all: readonly OldestDue[]): Pick<QueueCounts, 'oldestDueAgeMs' | 'oldestInLine'> {
  const none = { ageMs: 0, inLine: false };
  const { ageMs, inLine } = all.reduce((one, other) => (other.ageMs > one.ageMs ? other : one), none);
  return { oldestDueAgeMs: ageMs, oldestInLine: inLine };
}

/** For how long the first job in line has waited, ms. */
const waitOf = ({ waitingSinceMs, nowMs }: PartitionStats): number =>
  waitingSinceMs === undefined ? 0 : Math.max(0, nowMs - waitingSinceMs);

function partitionOf(
  one: PartitionStats,
  of: Pick<PartitionCounts, 'partition' | 'oldestDueAgeMs' | 'oldestInLine' | 'leader'>,
): PartitionCounts {
  const { scheduled, waiting, ready, running, dead, done, paused, quota, gate, counters } = one;
  const states = { scheduled, waiting, waitMs: waitOf(one), ready, running, dead };
  const limits = { ...(quota && { quota }), ...(gate && { concurrency: gate.concurrency }) };
  return { ...of, ...states, over: done, paused, ...limits, counters };
}

function sumOf(partitions: readonly PartitionCounts[]): QueueTotals {
  const sum = (of: (one: PartitionCounts) => number) => partitions.reduce((total, one) => total + of(one), 0);
  return {
    scheduled: sum((one) => one.scheduled),
    waiting: sum((one) => one.waiting),
    waitMs: Math.max(...partitions.map((one) => one.waitMs)),
    ready: sum((one) => one.ready),
    running: sum((one) => one.running),
    dead: sum((one) => one.dead),
    over: sum((one) => one.over),
    ...ageOf(partitions.map((one) => ({ ageMs: one.oldestDueAgeMs, inLine: one.oldestInLine }))),
    ...quotaIn(partitions),
    counters: countersIn(partitions),
  };
}

function quotaIn(all: readonly Pick<PartitionStats, 'quota'>[]): { readonly quota?: QuotaUse } {
  const quota = quotaSum(all.map((one) => one.quota));
  return quota ? { quota } : {};
}

/** Of all partitions together, by name. */
function countersIn(all: readonly Pick<PartitionStats, 'counters'>[]): Readonly<Record<string, number>> {
  const names = [...new Set(all.flatMap(({ counters }) => Object.keys(counters)))].sort();
  const total = (name: string) => all.reduce((sum, { counters }) => sum + (counters[name] ?? 0), 0);
  return Object.fromEntries(names.map((name) => [name, total(name)]));
}

/** The spans of all partitions together. */
function spansOf(all: readonly (readonly number[])[]): readonly DueSpan[] {
  const ends = [0, ...DUE_SPANS_MS, undefined];
  return ends.map((toMs, at) => ({
    fromMs: at === 0 ? undefined : ends[at - 1],
    toMs,
    count: all.reduce((total, counts) => total + (counts[at] ?? 0), 0),
  }));
}
