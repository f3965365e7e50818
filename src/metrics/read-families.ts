/** The metrics whose values are not counted here: they are read, from Redis or from this process, at each scrape. */
import { Counter, Gauge, type Registry } from 'prom-client';

/** In no registry yet. `collect` brings the values up to date. */
export interface Read {
  readonly registers: Registry[];
  readonly collect: () => Promise<void>;
}

/** Counters that are kept in Redis, by each partition for itself. */
export function countersOf(read: Read) {
  const kept = (of: { readonly name: string; readonly help: string }) =>
    new Counter({ ...of, labelNames: ['queue', 'partition'], ...read });
  return {
    jobsScheduled: kept({ name: 'duestream_jobs_scheduled_total', help: 'Jobs that schedule accepted.' }),
    jobsPromoted: kept({ name: 'duestream_jobs_promoted_total', help: 'Jobs moved from scheduled to ready.' }),
    jobsCompleted: kept({ name: 'duestream_jobs_completed_total', help: 'Jobs whose handler succeeded.' }),
    jobsRetried: kept({
      name: 'duestream_jobs_retried_total',
      help: 'Failures after which a job was scheduled again.',
    }),
    jobsDeferred: kept({
      name: 'duestream_jobs_deferred_total',
      help: 'Starts that a handler deferred, without using an attempt.',
    }),
    jobsDead: kept({
      name: 'duestream_jobs_dead_total',
      help: 'Dead letters written, also those of foreign members that never became a job.',
    }),
    jobsExpired: kept({
      name: 'duestream_jobs_expired_total',
      help: 'Jobs that were too late to start and were dropped.',
    }),
    jobsRescheduled: kept({ name: 'duestream_jobs_rescheduled_total', help: 'New due times given to jobs that wait.' }),
    jobsEdited: kept({ name: 'duestream_jobs_edited_total', help: 'New contents given to jobs that wait.' }),
    jobsCancelled: kept({ name: 'duestream_jobs_cancelled_total', help: 'Jobs that ended cancelled.' }),
    jobsRepaired: kept({
      name: 'duestream_jobs_mended_total',
      help: 'Parts of jobs that somebody else had removed and that were repaired.',
    }),
    deadLettersForgotten: kept({
      name: 'duestream_dead_forgotten_total',
      help: 'Dead letters removed by retention or a purge.',
    }),
    reclaimed: kept({ name: 'duestream_reclaimed_total', help: 'Entries taken over from dead workers.' }),
  };
}

/** What is read of the queues at each scrape. */
export function queueReadingsOf(read: Read) {
  return {
    ...quotaReadingsOf(read),
    scheduledJobs: new Gauge({
      name: 'duestream_scheduled_jobs',
      help: 'Jobs that wait for their due time.',
      labelNames: ['queue'],
      ...read,
    }),
    readyJobs: new Gauge({
      name: 'duestream_ready_jobs',
      help: 'Promoted jobs that no worker has read yet.',
      labelNames: ['queue'],
      ...read,
    }),
    runningJobs: new Gauge({
      name: 'duestream_running_jobs',
      help: 'Jobs that a worker holds: running or about to start.',
      labelNames: ['queue'],
      ...read,
    }),
    deadJobs: new Gauge({
      name: 'duestream_dead_jobs',
      help: 'Dead letters that are kept.',
      labelNames: ['queue'],
      ...read,
    }),
    oldestDueAge: new Gauge({
      name: 'duestream_oldest_due_age_seconds',
      help: 'How long the oldest due job has waited for its start; 0 when none waits.',
      labelNames: ['queue'],
      ...read,
    }),
    doneEvictedAge: new Gauge({
      name: 'duestream_done_evicted_age_seconds',
      help: 'Age of the youngest end that was forgotten because of done.max within the last done window; no series when there was none.',
      labelNames: ['queue'],
      ...read,
    }),
    subscribers: new Gauge({
      name: 'duestream_subscribers',
      help: 'Subscribers of a broadcast queue with a valid heartbeat.',
      labelNames: ['queue'],
      ...read,
    }),
    subscriberLag: new Gauge({
      name: 'duestream_subscriber_lag_jobs',
      help: 'Jobs sent by a broadcast queue that its slowest subscriber had not begun at its last heartbeat.',
      labelNames: ['queue'],
      ...read,
    }),
  };
}

/** Of queues with limits. */
function quotaReadingsOf(read: Read) {
  return {
    quotaJobs: new Gauge({
      name: 'duestream_quota_jobs',
      help: 'Jobs that wait or run in a queue with maxPending.',
      labelNames: ['queue'],
      ...read,
    }),
    quotaJobsLimit: new Gauge({
      name: 'duestream_quota_jobs_limit',
      help: 'How many jobs may wait or run: maxPending of the queue.',
      labelNames: ['queue'],
      ...read,
    }),
    quotaBytes: new Gauge({
      name: 'duestream_quota_bytes',
      help: 'Bytes of the records of jobs that wait or run in a queue with maxBytes, as all scripts keep their sum.',
      labelNames: ['queue'],
      ...read,
    }),
    quotaBytesLimit: new Gauge({
      name: 'duestream_quota_bytes_limit',
      help: 'How many bytes the records may take: maxBytes of the queue.',
      labelNames: ['queue'],
      ...read,
    }),
  };
}

/** What is asked of this process at each scrape. */
export function processReadingsOf(read: Read) {
  return {
    moverLeader: new Gauge({
      name: 'duestream_mover_leader',
      help: '1 while this process leads the partition, else 0.',
      labelNames: ['queue', 'partition'],
      ...read,
    }),
    moverEpoch: new Gauge({
      name: 'duestream_mover_epoch',
      help: 'Epoch: the number of the term in which this process leads the partition.',
      labelNames: ['queue', 'partition'],
      ...read,
    }),
    workersAlive: new Gauge({
      name: 'duestream_workers_alive',
      help: 'Worker processes with a valid heartbeat.',
      ...read,
    }),
    redisMemoryRatio: new Gauge({
      name: 'duestream_redis_memory_ratio',
      help: 'Memory that Redis uses by its limit maxmemory: 1 is full; no series without a limit.',
      ...read,
    }),
    redisClockOffset: new Gauge({
      name: 'duestream_redis_clock_offset_seconds',
      help: 'The clock of Redis minus the clock of this machine.',
      ...read,
    }),
    redisUp: new Gauge({
      name: 'duestream_redis_up',
      help: '1 while every part of this process reaches Redis, else 0.',
      ...read,
    }),
    ready: new Gauge({
      name: 'duestream_ready',
      help: '1 while this process is ready to do its work, else 0.',
      ...read,
    }),
  };
}
