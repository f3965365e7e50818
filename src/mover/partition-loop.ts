/** What the services of one partition have in common: the mover, its chores and the enqueuer of its schedules. */
import type { Emitter } from '../job/events.ts';
import type { Clock } from '../kernel/clock.ts';
import { createLoop, type Idle, type Loop } from '../kernel/loop.ts';
import type { Rhythm } from '../kernel/rhythm.ts';
import { memberOf } from '../redis/connection/cluster/members.ts';
import type { Redis } from '../redis/connection/connect.ts';
import { pauseAfter } from '../redis/connection/outage.ts';
import type { PartitionRef } from '../redis/keys.ts';
import type { Leadership } from './election/election.ts';

/** What a chore is given: its partition, and whether this process leads it. */
export interface Duty {
  readonly redis: Redis;
  readonly ref: PartitionRef;
  readonly leading: () => Leadership | undefined;
  readonly clock: Clock;
  readonly events: Emitter;
  /** Default: that of the profile `default`. */
  readonly rhythm?: Rhythm;
  /** How many partitions this process leads. At rest their chores take turns, so that many cost as much as one. Default: 1. */
  readonly turns?: () => number;
}

/** With more partitions none waits for longer than this many turns. */
const TURNS_MAX = 10;

/** How many times as long a chore rests where nothing happens. */
export const turnsOf = ({ turns = () => 1 }: Pick<Duty, 'turns'>): number => Math.max(1, Math.min(TURNS_MAX, turns()));

/** Work that the leader of a partition does beside the promotion. A process that does not lead waits. */
export interface Chore {
  readonly start: () => void;
  readonly stop: () => Promise<void>;
  /** One bounded step. Returns milliseconds until the next. */
  readonly pass: () => Promise<number | Idle>;
}

/** A loop that asks the node of its own partition whether Redis is back, and is named after its role and partition. */
export function partitionLoop(
  role: 'mover' | 'enqueuer' | 'janitor' | 'repairer' | 'weigher' | 'gatekeeper' | 'borrower' | 'expirer',
  { redis, ref, clock, events }: Pick<Duty, 'redis' | 'ref' | 'clock' | 'events'>,
  pass: () => Promise<number | Idle>,
): Loop {
  return createLoop({
    who: `${role} of ${ref.queue}:${ref.partition}`,
    pass,
    probe: () => memberOf(redis, ref.keys.meta).ping(),
    clock,
    events,
    pauseAfter,
  });
}
