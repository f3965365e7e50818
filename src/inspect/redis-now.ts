/** How full Redis is, and what survives its restart. Of a cluster: all masters together, and the worst of what they keep. */
import { askAll } from '../redis/connection/cluster/members.ts';
import type { Redis } from '../redis/connection/connect.ts';

/** From the best to the worst. `unknown`: AOF is on, and this user may not see how often it is synced. */
export const DURABILITIES = ['always', 'everysec', 'unknown', 'no', 'snapshots', 'none'] as const;
export type Durability = (typeof DURABILITIES)[number];

export interface RedisNow {
  readonly usedBytes: number;
  /** 0: there is no limit. */
  readonly maxBytes: number;
  readonly policy: string;
  readonly durability: Durability;
}

interface Asked {
  readonly info: () => Promise<string>;
  readonly config: (get: 'GET', name: string) => Promise<unknown>;
}

/** @throws whatever Redis failed with */
export async function redisNow(redis: Redis): Promise<RedisNow> {
  const all = await askAll(redis, (one) => nowOf(one as Asked));
  return {
    usedBytes: all.reduce((sum, { usedBytes }) => sum + usedBytes, 0),
    maxBytes: all.some(({ maxBytes }) => maxBytes === 0) ? 0 : all.reduce((sum, { maxBytes }) => sum + maxBytes, 0),
    policy: [...new Set(all.map(({ policy }) => policy))].join(', '),
    durability: DURABILITIES.findLast((one) => all.some(({ durability }) => durability === one)) ?? 'unknown',
  };
}

async function nowOf(redis: Asked): Promise<RedisNow> {
  const info = await redis.info();
  const field = (name: string) => new RegExp(`^${name}:(\\S+)`, 'm').exec(info)?.[1];
  return {
    usedBytes: Number(field('used_memory') ?? 0),
    maxBytes: Number(field('maxmemory') ?? 0),
    policy: field('maxmemory_policy') ?? 'unknown',
    durability: await durabilityOf(redis, field('aof_enabled') === '1'),
  };
}

async function durabilityOf(redis: Asked, hasLog: boolean): Promise<Durability> {
  const setting = await settingOf(redis, hasLog ? 'appendfsync' : 'save');
  if (!hasLog) return setting === '' ? 'none' : 'snapshots';
  return DURABILITIES.find((one) => one === setting) ?? 'unknown';
}

/** Undefined where CONFIG is forbidden, as it often is. */
async function settingOf(redis: Asked, name: string): Promise<string | undefined> {
  try {
    const reply = await redis.config('GET', name);
    return Array.isArray(reply) ? String(reply[1] ?? '') : undefined;
  } catch {
    return undefined;
  }
}
