/**
 * Keeps a led partition small: tombstones that left the done window and dead letters past their retention go, a bounded
 * batch at a time, so that no command of Redis waits behind a big deletion. Only tombstones and old dead letters are ever deleted.
 */
import type { Clock } from '../core/clock.ts';
import type { Emitter } from '../core/events.ts';
import { createLoop, type Idle, idle } from '../core/loop.ts';
import type { Redis } from '../redis/connection/connect.ts';
import { pauseAfter } from '../redis/connection/outage.ts';
import type { PartitionRef } from '../redis/keys.ts';
import { type SweepLimits, sweep } from '../redis/transitions/lease.ts';
import type { Leadership } from './election.ts';

export interface JanitorParts {
  readonly redis: Redis;
  readonly ref: PartitionRef;
  readonly limits: SweepLimits;
  readonly leading: () => Leadership | undefined;
  readonly clock: Clock;
  readonly events: Emitter;
}

export interface Janitor {
  readonly start: () => void;
  readonly stop: () => Promise<void>;
  /** One batch. Returns milliseconds until the next: soon while there is more, else seconds. */
  readonly pass: () => Promise<number | Idle>;
}

const IDLE_REST_MS = 5000;
const REST_MS = 1000;
const BUSY_REST_MS = 5;

export function createJanitor({ redis, ref, limits, leading, clock, events }: JanitorParts): Janitor {
  async function pass(): Promise<number | Idle> {
    const leadership = leading();
    if (!leadership) return idle(IDLE_REST_MS);
    const swept = await sweep(redis, ref, { term: leadership.term, limits });
    if (swept === 'fenced') return IDLE_REST_MS;
    if (swept.more) return BUSY_REST_MS;
    return swept.tombstones + swept.deadLetters === 0 ? IDLE_REST_MS : REST_MS;
  }
  const who = `janitor of ${ref.queue}:${ref.partition}`;
  const loop = createLoop({ who, pass, probe: () => redis.ping(), clock, events, pauseAfter });
  return { start: loop.start, stop: loop.stop, pass };
}
