/**
 * Keeps a led partition small: tombstones that left the done window, dead letters past their retention, old history and what
 * a broadcast queue sent long ago go, a bounded batch at a time, so that no command of Redis waits behind a big deletion. Nothing else is ever deleted.
 */

import type { Emitter } from '../../job/events.ts';
import type { Clock } from '../../kernel/clock.ts';
import { createLoop, type Idle, idle } from '../../kernel/loop.ts';
import { memberOf } from '../../redis/connection/cluster/members.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import { pauseAfter } from '../../redis/connection/outage.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { createJobs } from '../../redis/scripts/jobs.ts';
import { type SweepLimits, sweep } from '../../redis/scripts/lease.ts';
import type { Leadership } from '../election/election.ts';

export interface JanitorParts {
  readonly redis: Redis;
  readonly ref: PartitionRef;
  readonly limits: SweepLimits;
  /** The partition with the settings of its queue as they are now. */
  readonly current?: () => PartitionRef;
  readonly leading: () => Leadership | undefined;
  /** How many jobs this process has promoted in the partition. */
  readonly promoted: () => number;
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
/** While nothing is promoted and nothing was old, it is looked this often: what ends late, and what only time makes old. */
const QUIET_REST_MS = 30_000;
const REST_MS = 1000;
const BUSY_REST_MS = 5;

export function createJanitor({
  redis,
  ref,
  limits,
  current = () => ref,
  leading,
  promoted,
  clock,
  events,
}: JanitorParts): Janitor {
  const jobs = createJobs(redis);
  /** What had been promoted before a sweep that found nothing, and when that was. */
  let quiet: { readonly promoted: number; readonly sinceMs: number } | undefined;

  async function pass(): Promise<number | Idle> {
    const leadership = leading();
    if (!leadership) quiet = undefined;
    const nowMs = clock.monotonicMs();
    const before = promoted();
    const isQuiet = quiet?.promoted === before && nowMs - quiet.sinceMs < QUIET_REST_MS;
    if (!leadership || isQuiet) return idle(IDLE_REST_MS);
    const { history } = current();
    const swept = await sweep(redis, ref, { term: leadership.term, limits, history });
    if (swept === 'fenced') return IDLE_REST_MS;
    if (swept.more || (await hasMoreSent(leadership.term))) return BUSY_REST_MS;
    const isNothing = swept.tombstones + swept.deadLetters + swept.past === 0;
    quiet = isNothing ? { promoted: before, sinceMs: nowMs } : undefined;
    return isNothing ? IDLE_REST_MS : REST_MS;
  }

  /** What was sent goes in its time, also when nothing more is, and when the queue is no broadcast any more. */
  async function hasMoreSent(term: string): Promise<boolean> {
    const { broadcast } = current();
    if (!broadcast) return false;
    const bounds = { term, leaseMs: undefined, limit: 0, windowMs: limits.windowMs, broadcast };
    const kept = await jobs.cast(ref, bounds);
    return kept.kind !== 'fenced' && kept.backlog > 0;
  }

  const who = `janitor of ${ref.queue}:${ref.partition}`;
  const loop = createLoop({ who, pass, probe: () => memberOf(redis, ref.keys.meta).ping(), clock, events, pauseAfter });
  return { start: loop.start, stop: loop.stop, pass };
}
