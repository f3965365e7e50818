/** What a client is made of once its connection is ready: the parts beside this file. */
import { Channels } from '../redis/channels.ts';
import { close, openSubscriber, type Redis } from '../redis/connection/connect.ts';
import { createServers } from '../redis/connection/server-clock.ts';
import type { DurableJobs } from '../redis/durable/durable-jobs.ts';
import { queuesIn } from '../redis/read/each-queue.ts';
import { checkSchema } from '../redis/schema.ts';
import { createJobs } from '../redis/scripts/jobs.ts';
import { erase, eraseLines, lastEnd } from '../redis/scripts/upkeep.ts';
import type { ScheduleSender } from './calls/batch.ts';
import type { CallClock } from './calls/calls.ts';
import { type Confirming, confirming } from './calls/durability.ts';
import { Layouts } from './calls/layouts.ts';
import { Orders } from './calls/orders.ts';
import { type CallPartitions, createPartitionCalls, createSlots } from './calls/partition-calls.ts';
import { createRefusal } from './calls/refusal.ts';
import { type Repeating, registryAnswers, withReadRetry } from './calls/retry.ts';
import type { ClientSettings } from './calls/settings.ts';
import { createSteadyNow } from './calls/steady-now.ts';
import type { Turns } from './calls/turns.ts';
import { createLetters } from './dead/letters.ts';
import { lettersIn } from './dead/walk.ts';
import type { ErasingParts } from './erase/erase.ts';
import { rulesIn } from './groups/rules.ts';
import type { ActParts } from './jobs/act.ts';
import type { EndSource } from './jobs/end-watch.ts';
import { CheckedBatch } from './jobs/shown.ts';
import { updating } from './jobs/update.ts';
import { createPast } from './query/past.ts';
import { readerOf } from './query/reader.ts';
import { createGet } from './query/report.ts';
import { schedulePartsOn } from './schedules/schedule-parts.ts';

/** Header, name and options around the data. */
const RECORD_OVERHEAD_BYTES = 16_384;
/** The script's own check is for clocks that are wrong; this one's is sharp. */
const HORIZON_SLACK_MS = 60_000;
/** Calls that are not batched: cancel, get, replay, and changes. */
const CALLS_MAX = 100;
const CALLS_WAITING_MAX = 100_000;

/** Parts over a connection. */
export type ConnectedParts = Awaited<ReturnType<typeof furnish>>;

/** @param latestMs the clock of Redis at a monotonic moment */
function callLimits(
  { horizonMs, dataBytesMax }: ClientSettings,
  latestMs: (calledMs: number) => number,
): CallClock['limits'] {
  const steadyNow = createSteadyNow(latestMs);
  const orderOf = new Orders().next;
  // Made for every job: one object, which nobody copies on the way.
  return (calledMs, newId, queue) => ({
    horizonMs,
    dataBytesMax,
    nowMs: steadyNow(calledMs),
    orderOf,
    newId,
    delivery: queue?.delivery,
    jobs: queue?.jobs,
  });
}

/** What stands on a connection knows of the client: when it ends, and the order of its calls. */
export interface Ending {
  /** The client stops: a call that waits for jobs ends. */
  readonly stopping: AbortSignal;
  /** All calls have settled: what goes on beside them ends. */
  readonly ended: AbortSignal;
  readonly turns: Turns;
}

/** The parts beside this file, on a connection that is ready, with the clock measured and Redis looked at. */
export async function furnish(settings: ClientSettings, redis: Redis, ending: Ending) {
  const { clock, budgetMs, namespace, windowMs } = settings;
  const jobs = createJobs(redis);
  const refusal = createRefusal(redis, clock);
  const layouts = new Layouts({ redis, namespace, clock, budgetMs, signal: ending.ended });
  const server = createServers(redis, clock)();
  const recordBytesMax = settings.dataBytesMax + RECORD_OVERHEAD_BYTES;
  const horizonMs = settings.horizonMs + HORIZON_SLACK_MS;
  const sending = { layouts, clock, budgetMs, horizonMs, recordBytesMax, turns: ending.turns };
  const partitionCalls = () => {
    const slots = createSlots({ max: CALLS_MAX, waitingMax: CALLS_WAITING_MAX });
    return createPartitionCalls({ layouts, slots, clock, budgetMs });
  };
  /** What writes, over the connection of these transitions. */
  const writing = (made: DurableJobs, callPartitions: CallPartitions, { confirm }: Confirming = {}) => {
    const unlessEvicting: ScheduleSender = {
      async schedule(...call) {
        await refusal.check();
        return made.schedule(...call);
      },
    };
    const seen = { reader: readerOf(redis, namespace), jobs: made, callPartitions, confirm };
    const finding: ActParts = { ...seen, windowMs, horizonMs, recordBytesMax };
    return {
      batch: new CheckedBatch({ ...sending, redis, jobs: unlessEvicting, update: updating(finding) }),
      letters: createLetters({ store: lettersIn(redis, made), callPartitions, confirm }),
      finding,
    };
  };
  await withReadRetry('read the clock', server.measure, { clock, budgetMs });
  await refusal.look();
  doubtWhenReady(redis, { server, layouts, refusal });
  const callPartitions = partitionCalls();
  const written = writing(jobs, callPartitions);
  return {
    server,
    ...placesIn(settings, redis),
    /** The same over a connection of their own, whose calls wait until what they wrote or found is durable. */
    durably(made: DurableJobs) {
      const calls = partitionCalls();
      return writing(made, calls, confirming(made, calls));
    },
    limits: callLimits(settings, server.latestMs),
    async fit() {
      await registryAnswers(redis, namespace, { clock, budgetMs });
      await refusal.look();
      await refusal.check();
    },
    ...written,
    get: createGet({ redis, callPartitions }),
    past: createPast({ redis, callPartitions }),
    rules: rulesIn({ redis, namespace }, callPartitions),
    erasing: erasingIn({ redis, namespace }, { finding: written.finding, store: lettersIn(redis, jobs) }),
    ends: endsIn(settings, { callPartitions, ask: jobs.await, ending }),
  };
}

/** What needs a namespace that this version can read: that is looked at once. */
function placesIn({ namespace, clock, budgetMs }: ClientSettings, redis: Redis) {
  const readable = onceDone(() =>
    withReadRetry('read the schema', () => checkSchema(redis, namespace), { clock, budgetMs }),
  );
  return {
    async place() {
      await readable();
      return { redis, namespace };
    },
    async schedules(steps: Repeating) {
      await readable();
      return schedulePartsOn(redis, namespace, steps);
    },
  };
}

/** What a message that was lost costs, at most. */
const AGAIN_MS = 5000;

function endsIn(
  settings: ClientSettings,
  { ending: { stopping, ended }, ...parts }: Pick<EndSource, 'callPartitions' | 'ask'> & { readonly ending: Ending },
): EndSource {
  return { ...parts, clock: settings.clock, againMs: AGAIN_MS, stopping, ...hearing(settings, ended) };
}

/** The channels of ends, over a connection of their own, which is made when somebody waits for the first time. */
function hearing(settings: ClientSettings, ended: AbortSignal): Pick<EndSource, 'listen' | 'mend'> {
  let channels: Channels | undefined;
  const opened = () => {
    if (channels) return channels;
    const subscriber = openSubscriber({ ...settings, name: `${settings.name}:ends` });
    ended.addEventListener('abort', () => close(subscriber), { once: true });
    if (ended.aborted) close(subscriber);
    channels = new Channels(subscriber);
    return channels;
  };
  return {
    listen({ keys }, listener) {
      const stop = opened().listen(keys.over, listener);
      return { stop, isDeaf: () => channels?.isDeaf(keys.over) ?? false };
    },
    mend: () => opened().mend(),
  };
}

/** A look that is made until it has succeeded once. */
function onceDone(look: () => Promise<unknown>): () => Promise<void> {
  let isDone = false;
  return async () => {
    if (!isDone) await look();
    isDone = true;
  };
}

function erasingIn(
  place: { readonly redis: Redis; readonly namespace: string },
  parts: Pick<ErasingParts, 'finding' | 'store'>,
): ErasingParts {
  const { redis, namespace } = place;
  return {
    ...parts,
    async queues() {
      const { all, unread } = await queuesIn(redis, namespace);
      return [...unread, ...all.map(({ queue }) => ({ queue }))];
    },
    erase: (ref, ask) => erase(redis, ref, ask),
    lastEnd: (ref) => lastEnd(redis, ref),
    eraseLines: (ref, ask) => eraseLines(redis, ref, ask),
  };
}

/** Another server may answer from now on. */
function doubtWhenReady(
  redis: Redis,
  known: {
    readonly server: { readonly doubt: () => void };
    readonly layouts: { readonly doubt: () => void };
    readonly refusal: { readonly look: () => Promise<unknown> };
  },
): void {
  redis.on('ready', () => {
    known.server.doubt();
    known.layouts.doubt();
    void known.refusal.look();
  });
}
