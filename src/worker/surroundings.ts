/**
 * What a worker needs and cannot give itself: a daemon that leads each partition of its queues, or no delayed job of
 * them becomes ready, a clock of this host that agrees with that of Redis, and processes of its own version beside it. Each look
 * of the heartbeat compares them, and each change is told once. A look costs one command, which asks for the leases of all
 * partitions together.
 *
 * Between two leaders a lease is missing for a moment. So a queue is told to have no leader only when a second look, a
 * heartbeat's life after the first, finds none either.
 */
import type { Emitter, Events } from '../job/events.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Redis } from '../redis/connection/connect.ts';
import { OFFSET_MAX_MS, offsetOf, type ServerClock } from '../redis/connection/server-clock.ts';
import { withoutLeader } from '../redis/scripts/lease.ts';
import { createVersionWatch } from '../redis/versions.ts';
import type { ServedQueue } from './served-queue.ts';

interface Missing {
  /** Monotonic ms of the first look that found no leader. */
  readonly sinceMs: number;
  readonly isTold: boolean;
}

export interface SurroundingsParts {
  readonly redis: Redis;
  /** Its queues: the partitions that it reads now, and which versions of duestream live, as the registry says it beside their layouts. */
  readonly served: () => readonly Pick<ServedQueue, 'refs' | 'versions'>[];
  readonly server: ServerClock;
  readonly beatTtlMs: number;
  readonly clock: Clock;
  readonly events: Emitter;
}

/** Returns the look. @throws whatever EXISTS failed with */
export function createSurroundings(parts: SurroundingsParts): () => Promise<void> {
  const { redis, served, server, beatTtlMs, clock, events } = parts;
  const watchVersions = createVersionWatch(events);
  const missing = new Map<string, Missing>();
  let isClockOff = false;

  async function lookForLeaders(): Promise<void> {
    const unled = await withoutLeader(
      redis,
      served().flatMap(({ refs }) => refs),
    );
    const nowMs = clock.monotonicMs();
    const queues = new Set(unled.map(({ queue }) => queue));
    for (const queue of queues) {
      const partitions = unled.filter((one) => one.queue === queue).map(({ partition }) => partition);
      away({ queue, partitions }, nowMs);
    }
    for (const queue of missing.keys()) if (!queues.has(queue)) back(queue, nowMs);
  }

  function away(found: Events['leader.away'], nowMs: number): void {
    const { sinceMs, isTold } = missing.get(found.queue) ?? { sinceMs: nowMs, isTold: false };
    const isDue = nowMs - sinceMs >= beatTtlMs;
    missing.set(found.queue, { sinceMs, isTold: isTold || isDue });
    if (isDue && !isTold) events.emit('leader.away', found);
  }

  function back(queue: string, nowMs: number): void {
    const known = missing.get(queue);
    missing.delete(queue);
    if (known?.isTold) events.emit('leader.back', { queue, awayMs: Math.round(nowMs - known.sinceMs) });
  }

  function compareClocks(): void {
    const { offsetMs, errorMs } = offsetOf(server, clock);
    const isOff = Math.abs(offsetMs) - errorMs > OFFSET_MAX_MS;
    if (isOff === isClockOff) return;
    isClockOff = isOff;
    const payload = { aheadMs: Math.round(offsetMs) };
    if (isOff) events.emit('clock.off', payload);
    else events.emit('clock.right', payload);
  }

  return async () => {
    compareClocks();
    watchVersions(served().find(({ versions }) => versions !== undefined)?.versions);
    await lookForLeaders();
  };
}
