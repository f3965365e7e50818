/**
 * What a leader reads between two passes: the head of what waits, and whether somebody nudged about it. A producer that
 * does not nudge is noted in `K:meta`, so that its jobs are looked for more often.
 */
import type { Redis } from '../connection/connect.ts';
import { naming } from '../connection/wrong-type.ts';
import type { PartitionRef } from '../keys.ts';
import { dueOf } from '../scripts/scripts.ts';

/** The due time of the first job in scheduled, in whole ms; infinite when there is none. */
export async function headDue(redis: Redis, { keys }: PartitionRef): Promise<number> {
  const [, due = 'inf'] = await naming(redis, [keys], redis.zrange(keys.scheduled, '0', '0', 'WITHSCORES'));
  // Jobs in line come behind all others: they are due, and wait for their turns.
  const { dueMs, isWaiting } = dueOf(due);
  return isWaiting ? Number.POSITIVE_INFINITY : Math.ceil(dueMs);
}

/** Whether the leader's next look, as `K:meta` says, is as soon as this. Who nudges writes it there in the same step. */
export async function isNudged(redis: Redis, { keys }: PartitionRef, dueMs: number): Promise<boolean> {
  const wake = await naming(redis, [keys], redis.hget(keys.meta, 'wake'));
  return wake === null || Number(wake) <= dueMs;
}

/** Epoch ms at which a producer was seen last that does not nudge; undefined: never. */
export async function foreignSince(redis: Redis, { keys }: PartitionRef): Promise<number | undefined> {
  const ms = await naming(redis, [keys], redis.hget(keys.meta, 'foreign'));
  return ms === null ? undefined : Number(ms);
}

export async function noteForeign(redis: Redis, { keys }: PartitionRef, seenMs: number): Promise<void> {
  await redis.hset(keys.meta, 'foreign', seenMs);
}
