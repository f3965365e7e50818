/**
 * The metrics: those that this process counts, and those that it reads at each scrape. Each name is written whole, so
 * that a search finds a metric that somebody saw on a dashboard. The metrics belong to the registry they were made for,
 * never to the global registry of the library: two daemons in one process share a registry only if the application gave
 * the same one to both.
 *
 * Labels are `queue` and `outcome`; `partition` where a sum over partitions would say nothing, and on the counters
 * that are kept in Redis: summed up here, they would fall when one partition gets another leader, which monitoring takes
 * for a restart. `group` only where `http.metricGroups` asks for it. Never a job id: each value of a label is a time series that the monitoring system keeps for weeks.
 */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import { systemClock } from '../kernel/clock.ts';
import { JobHistogram, largestOf } from './histogram.ts';

export type Families = ReturnType<typeof createFamilies>;

/** Redis gives due times in whole milliseconds, so the first bounds are as fine as lateness can be told. */
const LATENESS = [
  ...[
    0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 45, 60, 90, 120, 180,
    300,
  ],
  ...[600, 900, 1800, 3600, 7200, 14_400],
];
/** A pass is meant to take 5 ms at most; a second means that Redis or this process was stuck. */
const PASS = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1];
/** From a busy loop to one that was held for longer than a job lease. */
const LAG = [0.005, 0.02, 0.1, 0.25, 0.5, 1, 2.5, 5, 15];
/** Up to the default time-out of 15 minutes, and hours for those who raised it. */
const RUN = [
  ...[0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 45, 60, 120, 300, 600, 900],
  ...[1800, 3600, 7200, 14_400],
];

/** In no registry yet. `collect` brings what is read at each scrape up to date; the families with queues wait for it. */
export function createFamilies(collect: () => Promise<void>) {
  const read: Read = { registers: [], collect };
  return {
    ...countersOf(read),
    ...queueReadingsOf(read),
    ...processReadingsOf(read),
    ...moverFamiliesOf(read),
    ...workerTimesOf(read),
    ...workerFamiliesOf(read),
    ...remoteFamiliesOf(read),
    ...targetFamiliesOf(read),
    ...processFamiliesOf(),
  };
}

/** In no registry yet. */
const own = () => ({ registers: [] });

const largest = (of: JobHistogram, words: { readonly name: string; readonly help: string }) =>
  largestOf(of, words, systemClock.monotonicMs);

/** What the movers of this process do. */
function moverFamiliesOf(read: Read) {
  const promotionLateness = new JobHistogram({
    name: 'duestream_promotion_lateness_seconds',
    help: 'Time from the due time to the promotion, by the clock of Redis.',
    labelNames: ['queue'],
    buckets: LATENESS,
    ...read,
  });
  return {
    promotionLateness,
    promotionLatenessMax: largest(promotionLateness, {
      name: 'duestream_promotion_lateness_max_seconds',
      help: 'The longest time from a due time to its promotion, of the last one or two minutes.',
    }),
    moverPassDuration: new JobHistogram({
      name: 'duestream_mover_pass_duration_seconds',
      help: 'How long one promotion call took, including the way to Redis and back.',
      labelNames: ['queue'],
      buckets: PASS,
      ...read,
    }),
    scheduleFires: new Counter({
      name: 'duestream_schedule_fires_total',
      help: 'Instants of schedules that this process handled, by outcome.',
      labelNames: ['queue', 'outcome'],
      ...read,
    }),
    scheduleMissed: new Counter({
      name: 'duestream_schedule_missed_total',
      help: 'How often instants of a schedule had passed while no daemon ran.',
      labelNames: ['queue'],
      ...read,
    }),
    scheduleLateness: new JobHistogram({
      name: 'duestream_schedule_lateness_seconds',
      help: 'Time from an instant of a schedule until its job was made, by the clock of Redis.',
      labelNames: ['queue'],
      buckets: LATENESS,
      ...read,
    }),
  };
}

/** When handlers of this process start, and how long they run. */
function workerTimesOf(read: Read) {
  const startLateness = new JobHistogram({
    name: 'duestream_start_lateness_seconds',
    help: 'Time from the due time to the start of the handler.',
    labelNames: ['queue'],
    buckets: LATENESS,
    ...read,
  });
  const runDuration = new JobHistogram({
    name: 'duestream_run_duration_seconds',
    help: 'How long handlers ran, by how the run ended.',
    labelNames: ['queue', 'outcome'],
    buckets: RUN,
    ...read,
  });
  return {
    startLateness,
    startLatenessMax: largest(startLateness, {
      name: 'duestream_start_lateness_max_seconds',
      help: 'The longest time from a due time to the start of its handler, of the last one or two minutes.',
    }),
    runDuration,
    runDurationMax: largest(runDuration, {
      name: 'duestream_run_duration_max_seconds',
      help: 'The longest run of a handler that ended in the last one or two minutes.',
    }),
  };
}

/** What the workers of this process do. */
function workerFamiliesOf(read: Read) {
  return {
    overran: new Counter({
      name: 'duestream_overran_total',
      help: 'Handlers that went on for abortGrace after their time-out, so that their place was given away while they ran.',
      labelNames: ['queue'],
      ...read,
    }),
    fenced: new Counter({
      name: 'duestream_fenced_total',
      help: 'Ends of jobs that Redis refused because the job had been started again elsewhere.',
      labelNames: ['queue'],
      ...read,
    }),
    logRefused: new Counter({
      name: 'duestream_log_lines_refused_total',
      help: 'Lines that handlers said of their jobs, and that Redis did not keep because it was full.',
      labelNames: ['queue'],
      ...read,
    }),
    adopted: new Counter({
      name: 'duestream_adopted_total',
      help: 'Entries that this worker adopted: Redis had delivered them in a reply that was lost.',
      labelNames: ['queue'],
      ...read,
    }),
    parkedJobs: new Gauge({
      name: 'duestream_parked_jobs',
      help: 'Jobs that wait now because only a later version can read their record.',
      labelNames: ['queue'],
      ...read,
    }),
    waitingSuspects: new Gauge({
      name: 'duestream_waiting_suspects',
      help: 'Suspects: jobs that wait in this process to be started alone, because workers died under them.',
      labelNames: ['queue'],
      ...read,
    }),
    lostSlots: new Gauge({
      name: 'duestream_lost_slots',
      help: 'Slots of this process that handlers keep although their signal has aborted.',
      labelNames: ['queue'],
      ...read,
    }),
  };
}

/** A claim waits for a minute at most. */
const POLL = [0.001, 0.005, 0.02, 0.1, 0.5, 1, 2.5, 5, 10, 20, 30, 60];

/** What workers over HTTP do by this daemon. */
function remoteFamiliesOf(read: Read) {
  return {
    remotePolls: new Gauge({
      name: 'duestream_remote_polls',
      help: 'Claims of workers over HTTP that wait for a job in this daemon now.',
      labelNames: ['queue'],
      ...read,
    }),
    remoteClaims: new Counter({
      name: 'duestream_remote_claims_total',
      help: 'Claims of workers over HTTP that this daemon has answered, by outcome.',
      labelNames: ['queue', 'outcome'],
      ...read,
    }),
    remoteHanded: new Counter({
      name: 'duestream_remote_handed_total',
      help: 'Jobs that this daemon has handed to workers over HTTP.',
      labelNames: ['queue'],
      ...read,
    }),
    remotePollWait: new Histogram({
      name: 'duestream_remote_poll_wait_seconds',
      help: 'How long claims of workers over HTTP waited for their answer.',
      labelNames: ['queue'],
      buckets: POLL,
      ...read,
    }),
    ...remoteRunsOf(read),
  };
}

/** A request may take 15 minutes. */
const REQUEST = [0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900];

/** What this daemon sends to the targets of queues. */
function targetFamiliesOf(read: Read) {
  return {
    targetRequests: new Counter({
      name: 'duestream_target_requests_total',
      help: 'Requests to the targets of queues, by the class of the answer; none: no answer, refused: by the guard.',
      labelNames: ['queue', 'class'],
      ...read,
    }),
    targetSeconds: new Histogram({
      name: 'duestream_target_seconds',
      help: 'How long requests to the targets of queues took, those without an answer too.',
      labelNames: ['queue'],
      buckets: REQUEST,
      ...read,
    }),
    targetClosings: new Counter({
      name: 'duestream_target_closings_total',
      help: 'How often groups were closed because a host could not be reached.',
      labelNames: ['queue'],
      ...read,
    }),
  };
}

/** What becomes of what was handed out. */
function remoteRunsOf(read: Read) {
  return {
    remoteSettled: new Counter({
      name: 'duestream_remote_settled_total',
      help: 'Runs of which workers over HTTP said how they ended, by what they said and what Redis replied.',
      labelNames: ['queue', 'end', 'word'],
      ...read,
    }),
    remoteTakenBack: new Counter({
      name: 'duestream_remote_taken_back_total',
      help: 'Runs that workers over HTTP had lost, by the cause: the worker is dead, or it lives and its lease ran out.',
      labelNames: ['queue', 'cause'],
      ...read,
    }),
    remoteTimeouts: new Counter({
      name: 'duestream_remote_timeouts_total',
      help: 'Runs whose workers over HTTP went on after the time-out, and that failed.',
      labelNames: ['queue'],
      ...read,
    }),
  };
}

/** What this process is, and how it does. */
function processFamiliesOf() {
  return {
    rejections: new Counter({
      name: 'duestream_unhandled_rejections_total',
      help: 'Unhandled rejections of promises in this process.',
      ...own(),
    }),
    eventLoopLag: new Histogram({
      name: 'duestream_event_loop_lag_seconds',
      help: 'How late a timer of this process fired, measured twice a second.',
      buckets: LAG,
      ...own(),
    }),
    redisEvicts: new Gauge({
      name: 'duestream_redis_evicts',
      help: '1 while Redis may evict keys, so that jobs can be lost, else 0.',
      ...own(),
    }),
    buildInfo: new Gauge({
      name: 'duestream_build_info',
      help: 'Always 1; the labels say what is running.',
      labelNames: ['version', 'node', 'wire'],
      ...own(),
    }),
  };
}

/** For a metric that is read from Redis or from this process at each scrape: `collect` reads its value. */
interface Read {
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

/** Of queues with limits of what runs. */
function waitingReadingsOf(read: Read) {
  return {
    waitingJobs: new Gauge({
      name: 'duestream_waiting_jobs',
      help: 'Jobs that are due and in line, in a queue with limits of what runs.',
      labelNames: ['queue'],
      ...read,
    }),
    waitingGroupJobs: new Gauge({
      name: 'duestream_waiting_group_jobs',
      help: 'Jobs in line of the longest groups of a queue with limits, as many groups as http.metricGroups says.',
      labelNames: ['queue', 'group'],
      ...read,
    }),
    waitSeconds: new Gauge({
      name: 'duestream_wait_seconds',
      help: 'For how long the first job in line has waited.',
      labelNames: ['queue'],
      ...read,
    }),
    nextStart: new Gauge({
      name: 'duestream_next_start_seconds',
      help: 'In how many seconds a rate or a closing allows the next job in line to start; 0: now.',
      labelNames: ['queue'],
      ...read,
    }),
  };
}

/** Of broadcast queues. */
function subscriberReadingsOf(read: Read) {
  return {
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

/** Of queues that promise lateness. */
function promiseReadingsOf(read: Read) {
  return {
    sloLate: new Counter({
      name: 'duestream_slo_late_jobs_total',
      help: 'Jobs that started later than the queue promises, or expired without a start.',
      labelNames: ['queue'],
      ...read,
    }),
    sloStanding: new Gauge({
      name: 'duestream_slo_standing_jobs',
      help: 'Jobs that are due for longer than the queue promises and that nobody has started.',
      labelNames: ['queue'],
      ...read,
    }),
    sloBudget: new Gauge({
      name: 'duestream_slo_budget_jobs',
      help: 'How many jobs may be late in the time over which the queue promises lateness; at least 10.',
      labelNames: ['queue'],
      ...read,
    }),
    sloSpent: new Gauge({
      name: 'duestream_slo_spent_jobs',
      help: 'How many jobs of that time were late, expired or stand; above the budget the promise is broken.',
      labelNames: ['queue'],
      ...read,
    }),
    sloOver: new Gauge({
      name: 'duestream_slo_over_seconds',
      help: 'The time over which the queue promises lateness.',
      labelNames: ['queue'],
      ...read,
    }),
  };
}

/** What is read of the queues at each scrape. */
export function queueReadingsOf(read: Read) {
  return {
    ...quotaReadingsOf(read),
    ...promiseReadingsOf(read),
    ...subscriberReadingsOf(read),
    ...waitingReadingsOf(read),
    sets: new Gauge({
      name: 'duestream_sets',
      help: 'Sets whose callbacks were not made yet.',
      labelNames: ['queue'],
      ...read,
    }),
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
      help: 'How long the oldest due job has waited for its start, in line or elsewhere; 0 when none waits.',
      labelNames: ['queue'],
      ...read,
    }),
    doneEvictedAge: new Gauge({
      name: 'duestream_done_evicted_age_seconds',
      help: 'Age of the youngest end that was forgotten because of done.max within the last done window; no series when there was none.',
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
function processReadingsOf(read: Read) {
  return {
    moverLeader: new Gauge({
      name: 'duestream_mover_leader',
      help: '1 while this process leads the partition, else 0.',
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
