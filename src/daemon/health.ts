/** What probes and scrapers are told of a daemon: whether it lives, whether it works, and what its queues hold. */

import { longestGroups } from '../client/groups/walk.ts';
import { processesOf, subscribersOf } from '../client/queues/processes.ts';
import { readInTime } from '../client/queues/stats.ts';
import { nextStartMs, partitionSeen } from '../client/queues/why.ts';
import type { Config } from '../config/options.ts';
import { promiseReading } from '../inspect/slo.ts';
import type { Emitter } from '../job/events.ts';
import { type Clock, systemClock } from '../kernel/clock.ts';
import { RHYTHMS } from '../kernel/rhythm.ts';
import { version } from '../kernel/version.ts';
import type { PartitionReading } from '../metrics/readings.ts';
import type { LeaderPool } from '../mover/leader-pool.ts';
import { memberOf, membersOf } from '../redis/connection/cluster/members.ts';
import type { Redis } from '../redis/connection/connect.ts';
import { readServers, type ServerReading } from '../redis/connection/server-reading.ts';
import { controlKeys, isBroadcast, type PartitionRef } from '../redis/keys.ts';
import { type GroupsAsk, groupsOf } from '../redis/read/groups.ts';
import { oldestDueAge } from '../redis/read/inspect.ts';
import { presence } from '../redis/scripts/presence.ts';
import { declaredAmong } from '../redis/scripts/queues.ts';
import type { WatchedWorker } from '../worker/worker.ts';

// The answers of `/livez` (the loops of the daemon turn) and `/readyz` (they succeed), and the lag of its event loop.

interface HealthParts {
  readonly config: Pick<Config, 'mover' | 'namespace' | 'profile'>;
  readonly clock: Clock;
  readonly state: () => 'new' | 'running' | 'stopping' | 'stopped';
  /** Undefined before they are made. */
  readonly movers: () => Pick<LeaderPool, 'lastTurnMs' | 'lastProgressMs' | 'partitions'> | undefined;
  readonly worker: () => Pick<WatchedWorker, 'notLive' | 'notReady'> | undefined;
  /** Undefined without its role. */
  readonly dispatcher?: Pick<WatchedWorker, 'notLive' | 'notReady'> | undefined;
  readonly redis: () => Redis | undefined;
}

interface Health {
  readonly ok: boolean;
  readonly detail: Record<string, unknown>;
}

/** A loop that has not turned for this long is stuck, or for two of its longest rests: every command has a time-out far below. */
const STUCK_AFTER_MS = 30_000;

export function healthOf({ config, clock, state, movers, worker, dispatcher, redis }: HealthParts) {
  const restMs = Math.max(RHYTHMS[config.profile].safetyTickMs, config.mover.leaseMs);
  const since = (momentMs: number | undefined) => (momentMs === undefined ? 0 : clock.monotonicMs() - momentMs);

  return {
    live(): Health {
      const turned = since(movers()?.lastTurnMs());
      const stuckWorkers = [worker(), dispatcher].flatMap((one) => one?.notLive() ?? []);
      const ok = state() !== 'running' || (turned < Math.max(STUCK_AFTER_MS, 2 * restMs) && stuckWorkers.length === 0);
      return { ok, detail: { state: state(), version, moversTurnedMsAgo: Math.round(turned), stuckWorkers } };
    },
    /** In a cluster a node that has neither the registry nor a partition that is led here may be down: other daemons cannot help it. */
    async ready(): Promise<Health> {
      const isUp = await answering(redis());
      const registry = controlKeys(config.namespace).queues;
      const led =
        movers()
          ?.partitions()
          .filter(({ leadership }) => leadership) ?? [];
      const redisAnswers = [registry, ...led.map(({ ref }) => ref.keys.meta)].every(isUp);
      const progressed = since(movers()?.lastProgressMs(({ keys }) => isUp(keys.meta)));
      const late = progressed > 3 * restMs;
      const notReady = [worker(), dispatcher].flatMap((one) => one?.notReady() ?? []);
      const ok = state() === 'running' && redisAnswers && !late && notReady.length === 0;
      return { ok, detail: { state: state(), redisAnswers, moversProgressedMsAgo: Math.round(progressed), notReady } };
    },
  };
}

/** Which keys have a server that answers now. */
async function answering(redis: Redis | undefined): Promise<(key: string) => boolean> {
  if (!redis) return () => false;
  const servers = membersOf(redis);
  const pings = await Promise.allSettled(servers.map((server) => server.ping()));
  const up = new Set(servers.filter((_, at) => pings[at]?.status === 'fulfilled'));
  return (key) => up.has(memberOf(redis, key));
}

/** The timer of the lag watch: it fires often enough to notice each long delay, and costs far less than a job. */
const LAG_EVERY_MS = 500;

/**
 * Measures how long the event loop of this process stands still: its timer fires late by as much. A handler that computes,
 * a large JSON or a frozen process holds the event loop. Meanwhile the process sends no heartbeat, extends no lease and
 * acknowledges no job.
 */
export function createLagWatch({ clock, events }: { readonly clock: Clock; readonly events: Emitter }) {
  let disarm: (() => void) | undefined;

  function arm(): void {
    const dueMs = clock.monotonicMs() + LAG_EVERY_MS;
    disarm = clock.timer(LAG_EVERY_MS, () => {
      events.emit('process.ticked', { lagMs: Math.max(0, clock.monotonicMs() - dueMs) });
      arm();
    });
  }

  return {
    start(): void {
      disarm?.();
      arm();
    },
    stop(): void {
      disarm?.();
      disarm = undefined;
    },
  };
}

// What a daemon reads of whole queues at each scrape: the counts of the partitions it leads, how many workers live, and
// how Redis does.

interface Opened {
  readonly redis: Redis;
  readonly movers: Pick<LeaderPool, 'partitions'> | undefined;
}

export function queueReadings({
  opened,
  namespace,
  groupsMax = 0,
}: {
  /** Undefined before the daemon was connected: then there is nothing to read. */
  readonly opened: () => Opened | undefined;
  readonly namespace: string;
  /** Groups of each partition: those with most jobs in line. */
  readonly groupsMax?: number;
}) {
  async function queueStats(): Promise<readonly PartitionReading[]> {
    const { redis, movers } = opened() ?? {};
    if (!redis) return [];
    const partitions = movers?.partitions() ?? [];
    // Who leads the first partition tells of the subscribers of the whole queue.
    const tells = (ref: PartitionRef) => ref.partition === 0 && isBroadcast(ref);
    const isTelling = partitions.some(({ ref, leadership }) => leadership !== undefined && tells(ref));
    const processes = isTelling ? await processesOf(redis, namespace) : undefined;
    const all = partitions.map(async ({ ref, leadership }): Promise<PartitionReading> => {
      const { queue, partition } = ref;
      const lags = processes && tells(ref) ? subscribersOf(queue, processes).map(({ lag }) => lag) : undefined;
      if (!leadership) return { queue, partition, leading: false as const };
      const reading = Promise.all([partitionSeen(redis, ref), oldestDueAge(redis, ref)]);
      const [counts, oldestAgeMs] = await readInTime(reading);
      const groups = counts.gate && groupsMax > 0 ? await readInTime(longestIn(redis, ref, groupsMax)) : [];
      const led = { leading: true as const, nextStartMs: nextStartMs(counts) };
      const promise = await promiseOf(redis, ref, partitions);
      return { queue, partition, ...led, stats: counts, oldestAgeMs, lags, groups, promise };
    });
    const read = await Promise.allSettled(all);
    const failed = read.find((one) => one.status === 'rejected');
    const isNone = read.every((one) => one.status === 'rejected' || !one.value.leading);
    if (failed && isNone) throw failed.reason;
    // A partition whose node is down, or whose keys are damaged, hides no other.
    return read.map((one, at) => (one.status === 'fulfilled' ? one.value : unreadOf(partitions[at]?.ref)));
  }

  async function alive(): Promise<number | undefined> {
    const { redis } = opened() ?? {};
    if (!redis) return undefined;
    const present = await presence(redis, namespace);
    return present.filter(({ identity }) => identity?.role === 'worker').length;
  }

  async function declared(queues: readonly string[]): Promise<ReadonlySet<string> | undefined> {
    const { redis } = opened() ?? {};
    return redis && declaredAmong(redis, namespace, queues);
  }

  async function servers(): Promise<ServerReading | undefined> {
    const { redis } = opened() ?? {};
    return redis && readServers(redis, systemClock);
  }

  return { queueStats, alive, servers, declared };
}

/** Who leads the first partition tells of the promise of the whole queue. */
async function promiseOf(
  redis: Redis,
  { queue, partition, lateness }: PartitionRef,
  all: readonly { readonly ref: PartitionRef }[],
) {
  if (partition !== 0 || !lateness) return undefined;
  const refs = all.flatMap(({ ref }) => (ref.queue === queue ? [ref] : []));
  return readInTime(
    promiseReading(
      redis,
      refs.toSorted((one, other) => one.partition - other.partition),
    ),
  );
}

/** The longest groups of a partition; none where it has moved. */
async function longestIn(redis: Redis, ref: PartitionRef, limit: number): Promise<PartitionGroups> {
  const reader = { groups: (one: PartitionRef, ask: GroupsAsk) => groupsOf(redis, one, ask) };
  const policy = { clock: systemClock, budgetMs: 0 };
  const found = await longestGroups({ reader, layout: [ref], policy }, { after: '', limit });
  return 'kind' in found ? [] : found.groups;
}

type PartitionGroups = readonly { readonly group: string; readonly waiting: number }[];

const unreadOf = (ref: PartitionRef | undefined): PartitionReading => ({
  queue: ref?.queue ?? '',
  partition: ref?.partition ?? 0,
  leading: 'unread',
});
