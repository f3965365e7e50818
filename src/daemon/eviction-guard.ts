/**
 * Looks every few seconds whether Redis may evict keys, and says so once per change. It only tells: what is due is
 * promoted all the same, because a job that waits in an evicting Redis is in more danger than one that runs.
 */

import type { Emitter } from '../job/events.ts';
import type { Clock } from '../kernel/clock.ts';
import { createLoop } from '../kernel/loop.ts';
import type { Redis } from '../redis/connection/connect.ts';
import { EVICTION_LOOK_MS, evictionOf } from '../redis/connection/memory.ts';
import { pauseAfter } from '../redis/connection/outage.ts';

export interface Guard {
  readonly start: () => void;
  readonly stop: () => Promise<void>;
  /** One look. Returns milliseconds until the next. */
  readonly pass: () => Promise<number>;
}

export function createGuard(parts: { readonly redis: Redis; readonly clock: Clock; readonly events: Emitter }): Guard {
  const { redis, clock, events } = parts;
  let told: string | undefined;

  async function pass(): Promise<number> {
    // Others tell of the outage, and a user without the right to INFO is told by `doctor`.
    const found = await evictionOf(redis).catch(() => 'unknown' as const);
    if (found === 'unknown') return EVICTION_LOOK_MS;
    if (found && found.policy !== told) {
      events.emit('redis.evicts', { policy: found.policy, limitBytes: found.limitBytes, jobs: found.jobs });
    }
    if (!found && told !== undefined) events.emit('redis.keeps', { after: told });
    told = found?.policy;
    return EVICTION_LOOK_MS;
  }

  const loop = createLoop({ who: 'guard', pass, clock, events, pauseAfter });
  return { start: loop.start, stop: loop.stop, pass };
}
