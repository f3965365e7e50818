/**
 * The metrics that this process counts; those that are read at each scrape are in `read-families.ts`. Names are written
 * whole, so that a search finds one that was seen on a dashboard. Each set belongs
 * to the registry it was made for, never to the library's global one: two daemons in one process meet only in a registry
 * that their application gave to both.
 *
 * Labels are `queue` and `outcome`; `partition` where a sum over partitions would say nothing, and on the counters
 * that are kept in Redis: summed up here, they would fall when one partition gets another leader, which monitoring takes
 * for a restart. Never a job id: each value of a label is a time series that the monitoring system keeps for weeks.
 */
import { Counter, Gauge, Histogram } from 'prom-client';
import { JobHistogram } from './histogram.ts';
import { countersOf, processReadingsOf, queueReadingsOf, type Read } from './read-families.ts';

export type Families = ReturnType<typeof createFamilies>;

/** Redis gives due times in whole milliseconds, so the first bounds are as fine as lateness can be told. */
const LATENESS = [0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];
/** A pass is meant to take 5 ms at most; a second means that Redis or this process was stuck. */
const PASS = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1];
/** From a busy loop to one that was held for longer than a job lease. */
const LAG = [0.005, 0.02, 0.1, 0.25, 0.5, 1, 2.5, 5, 15];
/** Up to the default time-out of 15 minutes, and an hour for those who raised it. */
const RUN = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3600];

/** In no registry yet. `collect` brings what is read at each scrape up to date; the families with queues wait for it. */
export function createFamilies(collect: () => Promise<void>) {
  const read: Read = { registers: [], collect };
  return {
    ...countersOf(read),
    ...queueReadingsOf(read),
    ...processReadingsOf(read),
    ...moverFamiliesOf(read),
    ...workerFamiliesOf(read),
    ...processFamiliesOf(),
  };
}

/** In no registry yet. */
const own = () => ({ registers: [] });

/** What the movers of this process do. */
function moverFamiliesOf(read: Read) {
  return {
    moverPassDuration: new JobHistogram({
      name: 'duestream_mover_pass_duration_seconds',
      help: 'How long one promotion call took, including the way to Redis and back.',
      labelNames: ['queue'],
      buckets: PASS,
      ...read,
    }),
    promotionLateness: new JobHistogram({
      name: 'duestream_promotion_lateness_seconds',
      help: 'Time from the due time to the promotion, by the clock of Redis.',
      labelNames: ['queue'],
      buckets: LATENESS,
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
    scheduleLateness: new Histogram({
      name: 'duestream_schedule_lateness_seconds',
      help: 'Time from an instant of a schedule until its job was made, by the clock of Redis.',
      labelNames: ['queue'],
      buckets: LATENESS,
      ...read,
    }),
  };
}

/** What the workers of this process do. */
function workerFamiliesOf(read: Read) {
  return {
    startLateness: new JobHistogram({
      name: 'duestream_start_lateness_seconds',
      help: 'Time from the due time to the start of the handler.',
      labelNames: ['queue'],
      buckets: LATENESS,
      ...read,
    }),
    runDuration: new JobHistogram({
      name: 'duestream_run_duration_seconds',
      help: 'How long handlers ran, by how the run ended.',
      labelNames: ['queue', 'outcome'],
      buckets: RUN,
      ...read,
    }),
    fenced: new Counter({
      name: 'duestream_fenced_total',
      help: 'Ends of jobs that Redis refused because the job had been started again elsewhere.',
      labelNames: ['queue'],
      ...read,
    }),
    adopted: new Counter({
      name: 'duestream_adopted_total',
      help: 'Entries that this worker adopted: Redis had delivered them in a reply that was lost.',
      labelNames: ['queue'],
      ...read,
    }),
    parked: new Counter({
      name: 'duestream_jobs_parked_total',
      help: 'Starts that were put off because only a later version can read the record.',
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
