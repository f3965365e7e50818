/**
 * From the counts of partitions to the values of whole queues, at each scrape. The durable counters live in Redis, so a
 * counter here is not counted up but set anew: everything is cleared first, then filled. Scraping twice doubles nothing,
 * and what this process no longer leads disappears, because from then on another process exports it. So each partition
 * has counters of its own, which end as a whole: a sum over those that are led now would fall with each that goes.
 */
import type { PartitionStats } from '../redis/inspect.ts';
import type { Families } from './families.ts';

/** One partition at one moment, as the process that may lead it sees it. */
export interface PartitionReading {
  readonly queue: string;
  readonly partition: number;
  readonly leading: boolean;
  readonly epoch: number;
  readonly stats: PartitionStats;
}

/** A due below this is no time but a foreign producer's 0 ("now") or nonsense that the next pass buries. */
const DUE_MIN_MS = 1e11;

export function fillQueues(families: Families, readings: readonly PartitionReading[]): void {
  for (const metric of queueWide(families)) metric.reset();
  for (const { queue, partition, leading } of readings) {
    families.moverLeader.set({ queue, partition }, leading ? 1 : 0);
  }
  const led = readings.filter(({ leading }) => leading);
  for (const one of led) {
    families.moverEpoch.set({ queue: one.queue, partition: one.partition }, one.epoch);
    addPartition(families, one);
  }
  for (const [queue, ageMs] of oldest(led)) families.oldestDueAge.set({ queue }, ageMs / 1000);
  for (const [queue, ageMs] of youngestEvicted(led)) families.doneEvictedAge.set({ queue }, ageMs / 1000);
}

function addPartition(families: Families, { queue, partition, stats }: PartitionReading): void {
  const counted = (name: string) => stats.counters[name] ?? 0;
  families.jobsScheduled.inc({ queue, partition }, counted('scheduled'));
  families.jobsPromoted.inc({ queue, partition }, counted('promoted'));
  families.jobsCompleted.inc({ queue, partition }, counted('done'));
  families.jobsRetried.inc({ queue, partition }, counted('retried'));
  families.jobsDeferred.inc({ queue, partition }, counted('deferred'));
  families.jobsDead.inc({ queue, partition }, counted('dead') + counted('refused'));
  families.jobsExpired.inc({ queue, partition }, counted('expired'));
  families.jobsCancelled.inc({ queue, partition }, counted('cancelled'));
  families.jobsMended.inc({ queue, partition }, counted('mended'));
  families.lettersForgotten.inc({ queue, partition }, counted('forgotten'));
  families.reclaimed.inc({ queue, partition }, counted('reclaimed'));
  families.scheduledJobs.inc({ queue }, stats.scheduled);
  families.readyJobs.inc({ queue }, stats.ready);
  families.runningJobs.inc({ queue }, stats.running);
  families.deadJobs.inc({ queue }, stats.dead);
}

/** The age of each queue's most overdue head. Both times are of the partition's own Redis, so clocks cannot disagree. */
function oldest(led: readonly PartitionReading[]): ReadonlyMap<string, number> {
  const ages = new Map<string, number>();
  for (const { queue, stats } of led) {
    const { nowMs, headDueMs = nowMs } = stats;
    const ageMs = headDueMs < DUE_MIN_MS ? 0 : Math.max(0, nowMs - headDueMs);
    ages.set(queue, Math.max(ages.get(queue) ?? 0, ageMs));
  }
  return ages;
}

/** Of each queue in which ends were forgotten because of their number. */
function youngestEvicted(led: readonly PartitionReading[]): ReadonlyMap<string, number> {
  const ages = new Map<string, number>();
  for (const { queue, stats } of led) {
    if (stats.evicted) ages.set(queue, Math.min(ages.get(queue) ?? Number.POSITIVE_INFINITY, stats.evicted.ageMs));
  }
  return ages;
}

function queueWide(families: Families): readonly { readonly reset: () => void }[] {
  return [
    families.jobsScheduled,
    families.jobsPromoted,
    families.jobsCompleted,
    families.jobsRetried,
    families.jobsDeferred,
    families.jobsDead,
    families.jobsExpired,
    families.jobsCancelled,
    families.jobsMended,
    families.lettersForgotten,
    families.reclaimed,
    families.scheduledJobs,
    families.readyJobs,
    families.runningJobs,
    families.deadJobs,
    families.oldestDueAge,
    families.doneEvictedAge,
    families.moverLeader,
    families.moverEpoch,
  ];
}
