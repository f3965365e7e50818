/**
 * The memory of Redis: whether it is full now, and whether Redis may then delete keys of its own accord. Our keys hold
 * whole partitions, so one eviction can take every job of a partition. The setting can change at any time, by hand or by a
 * failover to a server with another configuration, so processes look at it again and again, and not only when they start.
 */
import type { PartitionKeys } from '../keys.ts';
import { askAll } from './cluster/members.ts';
import type { Redis } from './connect.ts';
import { outageOf } from './outage.ts';

export interface Eviction {
  /** `maxmemory-policy`. */
  readonly policy: string;
  readonly limitBytes: number;
  /** Any key may go, and with it jobs. Otherwise only keys with a TTL: leases and heartbeats. */
  readonly jobs: boolean;
}

/** Short enough to see the setting long before anybody misses a job; the cost is nothing beside the other commands. */
export const EVICTION_LOOK_MS = 5000;

/** What Redis may evict; of a cluster, what any master may. Undefined when Redis evicts nothing, or INFO does not say. */
export async function evictionOf(redis: Redis): Promise<Eviction | undefined> {
  const found = await askAll(redis, evictionAt);
  return found.find((one) => one?.jobs) ?? found.find((one) => one !== undefined);
}

async function evictionAt(redis: Redis): Promise<Eviction | undefined> {
  const info = await redis.info('memory');
  const policy = /^maxmemory_policy:(\S+)/m.exec(info)?.[1];
  const limitBytes = Number(/^maxmemory:(\d+)/m.exec(info)?.[1] ?? 0);
  if (policy === undefined || policy === 'noeviction' || limitBytes === 0) return undefined;
  return { policy, limitBytes, jobs: policy.startsWith('allkeys-') };
}

/**
 * Whether Redis is at its memory limit now. A full Redis still lets calls through that free memory, and so a retry and a
 * burial, which write the error of the handler as well: many failing jobs could fill Redis further with long texts. A ZADD
 * XX GT -inf changes nothing, and Redis refuses it exactly when memory is at the limit.
 *
 * False also when Redis gives another answer or none: then the next call shows what is wrong.
 */
export function isFull(redis: Redis, keys: PartitionKeys): Promise<boolean> {
  return redis.call('ZADD', keys.done, 'XX', 'GT', '-inf', '-').then(
    () => false,
    (error: unknown) => outageOf(error) === 'full',
  );
}
