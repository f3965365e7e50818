/** What a producer is made of once its connection is ready: the parts beside this file, and how a job goes through them. */
import type { ScheduleOptions } from '../core/job-options.ts';
import type { Queue } from '../core/queue.ts';
import type { Redis } from '../redis/connection/connect.ts';
import { createServers } from '../redis/connection/server-clock.ts';
import type { DurableJobs } from '../redis/durable/durable-jobs.ts';
import { createJobs, type Jobs } from '../redis/transitions/jobs.ts';
import { createBatch } from './batch.ts';
import { planAll, scheduleAll } from './bulk.ts';
import { createCancel } from './cancel.ts';
import { createLetters } from './dead/letters.ts';
import { createEdit } from './edit.ts';
import { createGet } from './job-view.ts';
import { createLayouts } from './layouts.ts';
import { createPartitionCalls } from './partition-calls.ts';
import { createPast } from './past.ts';
import { type PlanLimits, planJob, planListed } from './plan.ts';
import { withReadRetry } from './read-retry.ts';
import { createRefusal } from './refusal.ts';
import { createReplay } from './replay.ts';
import { createReschedule } from './reschedule.ts';
import type { Scheduled } from './scheduled.ts';
import type { ProducerSettings } from './settings.ts';
import { createSlots } from './slots.ts';

/** One job of `scheduleMany`. */
export type BulkJob<Data> = ScheduleOptions & { readonly data: Data };

/** Header, name and options around the data. */
const RECORD_OVERHEAD_BYTES = 4096;
/** The script's own check is for clocks that are wrong; this one's is sharp. */
const HORIZON_SLACK_MS = 60_000;
/** Calls that are not batched: cancel, get, replay, and changes. */
const CALLS_MAX = 100;
const CALLS_WAITING_MAX = 100_000;

export type Parts = Awaited<ReturnType<typeof furnish>>;
type Call = <T>(work: (parts: Parts) => Promise<T>) => Promise<T>;

interface OneJob {
  readonly to: Queue<unknown>;
  readonly data: unknown;
  readonly options: ScheduleOptions;
  readonly calledMs: number;
}

export function scheduleOne({ server, limits, batch }: Parts, job: OneJob, call: Call): Promise<Scheduled> {
  const { to, data, options, calledMs } = job;
  const measured = options?.at === undefined ? server.settle() : undefined;
  if (!measured) return batch.add(to, planJob(data, options, limits(calledMs)));
  return call(async () => {
    await measured;
    return batch.add(to, planJob(data, options, limits(calledMs)));
  });
}

export async function scheduleList(
  { server, limits, batch }: Parts,
  {
    to,
    list,
    calledMs,
  }: { readonly to: Queue<unknown>; readonly list: readonly BulkJob<unknown>[]; readonly calledMs: number },
): Promise<readonly Scheduled[]> {
  await server.settle();
  const within = limits(calledMs);
  const plans = await planAll(list, (job) => planListed(job, within));
  return scheduleAll(plans, (slice) => batch.addMany(to, slice));
}

export const limitsOf = ({ horizonMs, dataBytesMax }: ProducerSettings): Omit<PlanLimits, 'nowMs'> => ({
  horizonMs,
  dataBytesMax,
});

/** The parts beside this file, on a connection that is ready, with the clock measured and Redis looked at. */
export async function furnish(settings: ProducerSettings, redis: Redis, signal: AbortSignal) {
  const { clock, budgetMs, namespace, windowMs } = settings;
  const jobs = createJobs(redis);
  const refusal = createRefusal(redis, clock);
  const layouts = createLayouts({ redis, namespace, clock, budgetMs, signal });
  const server = createServers(redis, clock)();
  const recordBytesMax = settings.dataBytesMax + RECORD_OVERHEAD_BYTES;
  const horizonMs = settings.horizonMs + HORIZON_SLACK_MS;
  const partitionCalls = () => {
    const slots = createSlots({ max: CALLS_MAX, waitingMax: CALLS_WAITING_MAX });
    return createPartitionCalls({ layouts, slots, clock, budgetMs });
  };
  /** What writes, over the connection of these transitions. */
  const writing = (made: DurableJobs, callPartitions = partitionCalls()) => {
    const keeping: Pick<Jobs, 'schedule'> = {
      async schedule(...call) {
        await refusal.check();
        return made.schedule(...call);
      },
    };
    return {
      batch: createBatch({ jobs: keeping, layouts, clock, budgetMs, horizonMs, recordBytesMax }),
      cancel: createCancel({ jobs: made, callPartitions, windowMs }),
      replay: createReplay({ redis, jobs: made, callPartitions }),
      letters: createLetters({ redis, jobs: made, callPartitions }),
    };
  };
  await withReadRetry('read the clock', server.measure, { clock, budgetMs });
  await refusal.look();
  redis.on('ready', () => {
    server.doubt();
    layouts.doubt();
    void refusal.look();
  });
  const callPartitions = partitionCalls();
  return {
    server,
    writing,
    limits: (calledMs: number): PlanLimits => ({
      horizonMs: settings.horizonMs,
      dataBytesMax: settings.dataBytesMax,
      nowMs: server.latestMs(calledMs),
    }),
    /** @throws DuestreamError `unavailable`, or `refused` where Redis may evict jobs */
    async fit() {
      await withReadRetry('ready', () => redis.ping(), { clock, budgetMs });
      await refusal.look();
      await refusal.check();
    },
    ...writing(jobs, callPartitions),
    get: createGet({ redis, callPartitions }),
    past: createPast({ redis, callPartitions }),
    reschedule: createReschedule({ redis, jobs, callPartitions, horizonMs }),
    edit: createEdit({ redis, jobs, callPartitions, recordBytesMax }),
  };
}
