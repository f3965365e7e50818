/**
 * Finds what a led partition knows of schedules that are gone and that it looks at no more: one that had ended, or was paused,
 * and whose definition was deleted by a call that died before it disarmed the schedule. The leader looks at such a schedule once
 * more, misses its definition for a minute, and forgets it.
 *
 *  page of K:fired ─▶ no definition, no place in K:fires ─▶ arm ─▶ the enqueuer looks ─▶ … a minute … ─▶ disarm
 *
 * A page at a time, also while the leader has much to fire, so what is left stays as little as a few minutes leave.
 */
import type { Clock } from '../../kernel/clock.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { arm, goneSchedules } from '../../redis/scripts/schedules.ts';

export interface GoneSchedulesParts {
  readonly redis: Redis;
  readonly ref: PartitionRef;
  readonly namespace: string;
  readonly clock: Clock;
}

const PAGE = 200;
const PAGE_REST_MS = 5000;
const WALK_REST_MS = 60_000;

/** @returns looks at the next page, if it is time */
export function createGoneLook({ redis, ref, namespace, clock }: GoneSchedulesParts): () => Promise<void> {
  let cursor: string | undefined;
  let nextMs = Number.NEGATIVE_INFINITY;
  return async () => {
    const nowMs = clock.monotonicMs();
    if (nowMs < nextMs) return;
    nextMs = nowMs + WALK_REST_MS;
    const page = { namespace, among: 'not looked at', cursor: cursor ?? '0', limit: PAGE } as const;
    const { next, gone } = await goneSchedules(redis, ref, page);
    cursor = next;
    if (next !== undefined) nextMs = nowMs + PAGE_REST_MS;
    await Promise.all(gone.map(({ name }) => arm(redis, ref, name)));
  };
}
