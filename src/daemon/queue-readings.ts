/** What a daemon reads of whole queues at each scrape: the counts of the partitions it leads, how many workers live, and how Redis does. */

import { processesOf, subscribersOf } from '../inspect/processes.ts';
import { systemClock } from '../kernel/clock.ts';
import type { PartitionReading } from '../metrics/readings.ts';
import type { LeaderPool } from '../mover/leader-pool.ts';
import type { Redis } from '../redis/connection/connect.ts';
import { readServers, type ServerReading } from '../redis/connection/server-reading.ts';
import { isBroadcast, type PartitionRef } from '../redis/keys.ts';
import { oldestDueAge, stats } from '../redis/read/inspect.ts';
import { presence } from '../redis/scripts/presence.ts';
import { declaredAmong } from '../redis/scripts/queues.ts';

interface Opened {
  readonly redis: Redis;
  readonly movers: Pick<LeaderPool, 'partitions'> | undefined;
}

export function queueReadings({
  opened,
  namespace,
}: {
  /** Undefined before the daemon was connected: then there is nothing to read. */
  readonly opened: () => Opened | undefined;
  readonly namespace: string;
}) {
  async function queueStats(): Promise<readonly PartitionReading[]> {
    const { redis, movers } = opened() ?? {};
    if (!redis) return [];
    const partitions = movers?.partitions() ?? [];
    // Who leads the first partition tells of the subscribers of the whole queue.
    const tells = (ref: PartitionRef) => ref.partition === 0 && isBroadcast(ref);
    const isTelling = partitions.some(({ ref, leadership }) => leadership !== undefined && tells(ref));
    const processes = isTelling ? await processesOf(redis, namespace) : undefined;
    const all = partitions.map(async ({ ref, leadership }) => {
      const { queue, partition } = ref;
      const lags = processes && tells(ref) ? subscribersOf(queue, processes).map(({ lag }) => lag) : undefined;
      if (!leadership) return { queue, partition, leading: false as const };
      const [counts, oldestAgeMs] = await Promise.all([stats(redis, ref), oldestDueAge(redis, ref)]);
      return { queue, partition, leading: true as const, epoch: leadership.epoch, stats: counts, oldestAgeMs, lags };
    });
    return Promise.all(all);
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
