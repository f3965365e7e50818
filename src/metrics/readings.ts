/**
 * From the counts of partitions to the values of whole queues, at each scrape. The durable counters live in Redis, so a
 * counter here is not counted up but set anew: everything is cleared first, then filled. Scraping twice doubles nothing,
 * and what this process no longer leads disappears, because from then on another process exports it. So each partition
 * has counters of its own, which end as a whole: a sum over those that are led now would fall with each that goes.
 */
import type { QuotaUse } from '../job/quota.ts';
import type { PartitionStats } from '../redis/read/inspect.ts';
import type { countersOf, Families, queueReadingsOf } from './families.ts';

/** One partition at one moment, as a process that may lead it sees it. Only who leads reads its counts. */
export type PartitionReading = Led | Followed | Unread;

/** A partition that this process leads, and whose counts Redis did not tell. */
interface Unread {
  readonly queue: string;
  readonly partition: number;
  readonly leading: 'unread';
}

interface Followed {
  readonly queue: string;
  readonly partition: number;
  readonly leading: false;
}

interface Led {
  readonly queue: string;
  readonly partition: number;
  readonly leading: true;
  readonly stats: PartitionStats;
  /** For how long the oldest job that is due has waited for its start. */
  readonly oldestAgeMs: number;
  /** When limits that end by themselves allow the next job in line to start, epoch ms; undefined: they hold none now. */
  readonly nextStartMs?: number | undefined;
  /** Of one partition of a broadcast queue: how many jobs each of its subscribers is behind. */
  readonly lags?: readonly number[] | undefined;
  /** The longest groups, and how many jobs of each are in line; none unless somebody wants them. */
  readonly groups?: readonly { readonly group: string; readonly waiting: number }[] | undefined;
  /** Of the first partition of a queue that promises lateness. */
  readonly promise?: PromiseReading | undefined;
}

/** Jobs of a whole queue that promises lateness. */
interface PromiseReading {
  readonly budget: number;
  readonly spent: number;
  readonly standing: number;
  /** Since the promise began. */
  readonly late: number;
  readonly overMs: number;
}

type QueueWide = keyof ReturnType<typeof countersOf> | keyof ReturnType<typeof queueReadingsOf> | 'moverLeader';

/** The families that daemons fill for whole queues. The compiler asks for every one: a scrape would not clear a missing one. */
const EACH: Readonly<Record<QueueWide, true>> = {
  jobsScheduled: true,
  jobsPromoted: true,
  jobsCompleted: true,
  jobsRetried: true,
  jobsDeferred: true,
  jobsDead: true,
  jobsExpired: true,
  jobsRescheduled: true,
  jobsEdited: true,
  jobsCancelled: true,
  jobsRepaired: true,
  deadLettersForgotten: true,
  reclaimed: true,
  scheduledJobs: true,
  waitingJobs: true,
  waitingGroupJobs: true,
  waitSeconds: true,
  nextStart: true,
  readyJobs: true,
  runningJobs: true,
  deadJobs: true,
  sets: true,
  oldestDueAge: true,
  doneEvictedAge: true,
  quotaJobs: true,
  quotaJobsLimit: true,
  quotaBytes: true,
  quotaBytesLimit: true,
  sloLate: true,
  sloStanding: true,
  sloBudget: true,
  sloSpent: true,
  sloOver: true,
  subscribers: true,
  subscriberLag: true,
  moverLeader: true,
};
export const QUEUE_WIDE = Object.keys(EACH) as readonly QueueWide[];

export function fillQueues(families: Families, readings: readonly PartitionReading[]): void {
  for (const name of QUEUE_WIDE) families[name].reset();
  for (const { queue, partition, leading } of readings) {
    families.moverLeader.set({ queue, partition }, leading ? 1 : 0);
  }
  const led = readings.filter((one) => one.leading === true);
  for (const one of led) {
    addPartition(families, one);
    const { queue, lags } = one;
    if (!lags) continue;
    families.subscribers.set({ queue }, lags.length);
    families.subscriberLag.set({ queue }, Math.max(0, ...lags));
  }
  for (const [queue, ageMs] of oldest(led)) families.oldestDueAge.set({ queue }, ageMs / 1000);
  for (const { queue, groups = [] } of led) {
    for (const { group, waiting } of groups) families.waitingGroupJobs.set({ queue, group }, waiting);
  }
  for (const [queue, ms] of longest(led, waitMsOf)) families.waitSeconds.set({ queue }, ms / 1000);
  for (const [queue, ms] of longest(led, nextInMs)) families.nextStart.set({ queue }, ms / 1000);
  for (const [queue, ageMs] of youngestEvicted(led)) families.doneEvictedAge.set({ queue }, ageMs / 1000);
}

function addPartition(families: Families, { queue, partition, stats, promise }: Led): void {
  if (promise) addPromise(families, queue, promise);
  const counted = (name: string) => stats.counters[name] ?? 0;
  families.jobsScheduled.inc({ queue, partition }, counted('scheduled'));
  families.jobsPromoted.inc({ queue, partition }, counted('promoted'));
  families.jobsCompleted.inc({ queue, partition }, counted('done'));
  families.jobsRetried.inc({ queue, partition }, counted('retried'));
  families.jobsDeferred.inc({ queue, partition }, counted('deferred'));
  families.jobsDead.inc({ queue, partition }, counted('dead') + counted('refused'));
  families.jobsExpired.inc({ queue, partition }, counted('expired'));
  families.jobsRescheduled.inc({ queue, partition }, counted('rescheduled'));
  families.jobsEdited.inc({ queue, partition }, counted('edited'));
  families.jobsCancelled.inc({ queue, partition }, counted('cancelled'));
  families.jobsRepaired.inc({ queue, partition }, counted('mended'));
  families.deadLettersForgotten.inc({ queue, partition }, counted('forgotten'));
  families.reclaimed.inc({ queue, partition }, counted('reclaimed'));
  families.scheduledJobs.inc({ queue }, stats.scheduled);
  if (stats.gate) addWaiting(families, queue, stats);
  families.readyJobs.inc({ queue }, stats.ready);
  families.runningJobs.inc({ queue }, stats.running);
  families.deadJobs.inc({ queue }, stats.dead);
  if (stats.sets !== undefined) families.sets.inc({ queue }, stats.sets);
  if (stats.quota) addQuota(families, queue, stats.quota);
}

/** A queue without limits of what runs has no line, and no series of it. */
function addWaiting(families: Families, queue: string, { waiting }: PartitionStats): void {
  families.waitingJobs.inc({ queue }, waiting);
}

function addPromise(families: Families, queue: string, promise: PromiseReading): void {
  families.sloLate.inc({ queue }, promise.late);
  families.sloStanding.set({ queue }, promise.standing);
  families.sloBudget.set({ queue }, promise.budget);
  families.sloSpent.set({ queue }, promise.spent);
  families.sloOver.set({ queue }, promise.overMs / 1000);
}

/** Without a limit there is no series: a limit of 0 would be taken for one. */
function addQuota(families: Families, queue: string, quota: QuotaUse): void {
  const { pending, pendingMax, bytes, bytesMax } = quota;
  if (pendingMax > 0) {
    families.quotaJobs.inc({ queue }, pending);
    families.quotaJobsLimit.inc({ queue }, pendingMax);
  }
  if (bytesMax > 0) {
    families.quotaBytes.inc({ queue }, bytes);
    families.quotaBytesLimit.inc({ queue }, bytesMax);
  }
}

function oldest(led: readonly Led[]): ReadonlyMap<string, number> {
  const ages = new Map<string, number>();
  for (const { queue, oldestAgeMs } of led) ages.set(queue, Math.max(ages.get(queue) ?? 0, oldestAgeMs));
  return ages;
}

/** Of each gated queue. */
function longest(led: readonly Led[], msOf: (one: Led) => number): ReadonlyMap<string, number> {
  const all = new Map<string, number>();
  for (const one of led) if (one.stats.gate) all.set(one.queue, Math.max(all.get(one.queue) ?? 0, msOf(one)));
  return all;
}

const waitMsOf = ({ stats: { nowMs, waitingSinceMs = nowMs } }: Led): number => Math.max(0, nowMs - waitingSinceMs);
const nextInMs = ({ nextStartMs = 0, stats: { nowMs } }: Led): number => Math.max(0, nextStartMs - nowMs);

/** Of each queue in which ends were forgotten because of their number. */
function youngestEvicted(led: readonly Led[]): ReadonlyMap<string, number> {
  const ages = new Map<string, number>();
  for (const { queue, stats } of led) {
    if (stats.evicted) ages.set(queue, Math.min(ages.get(queue) ?? Number.POSITIVE_INFINITY, stats.evicted.ageMs));
  }
  return ages;
}
