/**
 * Keeps a led partition small: it deletes tombstones that left the done window, dead letters past their retention, old
 * history and old entries of a broadcast queue, a bounded batch at a time, so that no command of Redis waits behind a big
 * deletion. It deletes nothing else. It also looks after sets whose last member has ended.
 */

import { type Idle, idle } from '../../kernel/loop.ts';
import { RHYTHMS } from '../../kernel/rhythm.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { createJobs } from '../../redis/scripts/jobs.ts';
import { type SweepLimits, sweep } from '../../redis/scripts/lease.ts';
import { hasSets, tendSets } from '../../redis/scripts/sets.ts';
import { type Chore, type Duty, partitionLoop, turnsOf } from '../partition-loop.ts';

export interface JanitorParts extends Duty {
  readonly limits: SweepLimits;
  /** The partition with the settings of its queue as they are now. */
  readonly current?: () => PartitionRef;
  /** How many jobs this process has promoted in the partition. */
  readonly promoted: () => number;
}

const IDLE_REST_MS = 5000;
const REST_MS = 1000;
const BUSY_REST_MS = 5;
/** Of one call. */
const SETS_MAX = 50;

export function createJanitor(parts: JanitorParts): Chore {
  const { redis, ref, limits, current = () => ref, leading, promoted, clock, rhythm = RHYTHMS.default } = parts;
  const jobs = createJobs(redis);
  let tendedMs = Number.NEGATIVE_INFINITY;
  /**
   * What had been promoted before a sweep that found nothing, and when that was. While no job is promoted the next one waits
   * for `sweepMs`: jobs end late, and time makes records old.
   */
  let quiet: { readonly promoted: number; readonly sinceMs: number } | undefined;

  /** One batch. Returns milliseconds until the next: soon while there is more, else seconds. */
  async function pass(): Promise<number | Idle> {
    const leadership = leading();
    if (!leadership) {
      quiet = undefined;
      return idle(IDLE_REST_MS);
    }
    const nowMs = clock.monotonicMs();
    await tendAll(leadership.term, nowMs);
    const before = promoted();
    const isQuiet = quiet?.promoted === before && nowMs - quiet.sinceMs < rhythm.sweepMs * turnsOf(parts);
    if (isQuiet) return idle(IDLE_REST_MS);
    const { history } = current();
    const swept = await sweep(redis, ref, { term: leadership.term, limits, history });
    if (swept === 'fenced') return IDLE_REST_MS;
    if (swept.more || (await hasMoreSent(leadership.term))) return BUSY_REST_MS;
    const isNothing = swept.tombstones + swept.deadLetters + swept.past === 0;
    quiet = isNothing ? { promoted: before, sinceMs: nowMs } : undefined;
    return isNothing ? IDLE_REST_MS : REST_MS;
  }

  /** Of sets whose last member is over the callbacks are made that a call which was cut off has not made. */
  async function tendAll(term: string, nowMs: number): Promise<void> {
    if (nowMs - tendedMs < rhythm.tendMs) return;
    tendedMs = nowMs;
    if (!(await hasSets(redis, ref))) return;
    let after = '';
    do {
      const tended = await tendSets(redis, ref, { term, after, limit: SETS_MAX });
      if (tended === 'fenced') return;
      after = tended.next;
    } while (after !== '');
  }

  /** Entries that were sent go in their time, also when no more are sent, and when the queue is no broadcast any more. */
  async function hasMoreSent(term: string): Promise<boolean> {
    const { broadcast } = current();
    if (!broadcast) return false;
    const bounds = { term, leaseMs: undefined, limit: 0, windowMs: limits.windowMs, broadcast };
    const kept = await jobs.cast(ref, bounds);
    return kept.kind !== 'fenced' && kept.backlog > 0;
  }

  const loop = partitionLoop('janitor', parts, pass);
  return { start: loop.start, stop: loop.stop, pass };
}
