/** Processes that ended without leaving: who has had no heartbeat for long is no longer listed. */
import type { Clock } from '../../kernel/clock.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import { forget } from '../../redis/scripts/presence.ts';

/** Long enough for people to see in `workers` that somebody is missing. */
const FORGET_AFTER_MS = 600_000;

interface Lost {
  readonly redis: Redis;
  readonly namespace: string;
  readonly clock: Clock;
  /** Process → monotonic ms since when it has no heartbeat. */
  readonly missingSince: Map<string, number>;
}

/** Ids of killed processes would stay in the alive set for ever. */
export async function forgetLost(
  { clock, missingSince, redis, namespace }: Lost,
  missing: readonly string[],
): Promise<void> {
  const nowMs = clock.monotonicMs();
  for (const id of missingSince.keys()) if (!missing.includes(id)) missingSince.delete(id);
  for (const id of missing) {
    const sinceMs = missingSince.get(id) ?? nowMs;
    missingSince.set(id, sinceMs);
    if (nowMs - sinceMs > FORGET_AFTER_MS) await forget(redis, namespace, id);
  }
}
