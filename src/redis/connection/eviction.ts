/**
 * Whether this Redis may delete keys of its own accord when its memory is full. Our keys hold whole partitions, so one
 * eviction can take every job of one with it. The setting can change at any time, by hand or by a failover to a server
 * that is set up otherwise, so it is looked at again and again, and not just when something starts.
 */
import type { Redis } from 'ioredis';
import { askAll } from './cluster/members.ts';

export interface Eviction {
  /** `maxmemory-policy`. */
  readonly policy: string;
  readonly limitBytes: number;
  /** Any key may go, and with it jobs. Otherwise only keys with a TTL: leases and heartbeats. */
  readonly jobs: boolean;
}

/** Long before anybody would notice missing jobs, and nothing beside the other commands. */
export const EVICTION_LOOK_MS = 5000;

/** What may be evicted, of a cluster by any of its masters; undefined when nothing may, or INFO does not say. */
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
