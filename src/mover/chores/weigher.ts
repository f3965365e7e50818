/**
 * Keeps the limits of a queue true in a led partition: its share stands beside its jobs, and the bytes of its records are
 * counted anew, again and again. A queue without limits costs one call for each term of a leader.
 *
 *  elected ──▶ share written where it differs ──▶ slice ──▶ slice ──▶ … ──▶ noted ──▶ rest ──▶ slice ──▶ …
 *
 * Each script that writes or takes away a record keeps the sum, exactly. Older processes and foreign clients do not: what
 * they leave wrong, a count mends. `docs/decisions/0016-*.md` has numbers.
 */

import type { Emitter } from '../../job/events.ts';
import { NO_QUOTA } from '../../job/quota.ts';
import type { Clock } from '../../kernel/clock.ts';
import { createLoop, type Idle, idle } from '../../kernel/loop.ts';
import { memberOf } from '../../redis/connection/cluster/members.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import { pauseAfter } from '../../redis/connection/outage.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { allot, UNWEIGHED, WEIGH_MAX, type Weighing, weigh } from '../../redis/scripts/quotas.ts';
import type { Leadership } from '../election/election.ts';

export interface WeigherParts {
  readonly redis: Redis;
  readonly ref: PartitionRef;
  /** The partition with the settings of its queue as they are now. */
  readonly current: () => PartitionRef;
  readonly leading: () => Leadership | undefined;
  readonly clock: Clock;
  readonly events: Emitter;
}

export interface Weigher {
  readonly start: () => void;
  readonly stop: () => Promise<void>;
  /** Writes the share, or counts one slice. Returns milliseconds until the next. */
  readonly pass: () => Promise<number | Idle>;
}

/** How often somebody who does not lead, or has nothing to count, looks whether that has changed. */
const IDLE_MS = 5000;
/** Between two slices: 10,000 jobs a second at most. */
const SLICE_REST_MS = 50;
/** Between two counts: for so long what others left wrong may stay so. */
const REST_MS = 1000;
/** After a count that found what the one before had found. */
const QUIET_REST_MS = 10_000;

export function createWeigher({ redis, ref, current, leading, clock, events }: WeigherParts): Weigher {
  /** The term and the limits for which the partition has its share. */
  let allotted: string | undefined;
  let spot: Weighing = UNWEIGHED;
  /** What the last whole count found. */
  let counted = '';

  async function pass(): Promise<number | Idle> {
    const leadership = leading();
    if (!leadership) {
      allotted = undefined;
      spot = UNWEIGHED;
      return idle(IDLE_MS);
    }
    const { term } = leadership;
    const { quota = NO_QUOTA } = current();
    const wanted = `${term} ${quota.pending} ${quota.bytes}`;
    if (allotted !== wanted) {
      if ((await allot(redis, ref, { term, quota })) === 'fenced') return IDLE_MS;
      allotted = wanted;
      spot = UNWEIGHED;
    }
    return quota.bytes === 0 ? idle(IDLE_MS) : slice();
  }

  async function slice(): Promise<number> {
    const reply = await weigh(redis, ref, spot, { limit: WEIGH_MAX, mode: 'mend' });
    spot = reply.kind === 'more' ? reply : UNWEIGHED;
    // Somebody has removed the share with all that was there.
    if (reply.kind === 'unlimited') allotted = undefined;
    if (reply.kind === 'more') return SLICE_REST_MS;
    const found = reply.kind === 'weighed' ? `${reply.bytes} ${reply.count}` : '';
    const isQuiet = found === counted;
    counted = found;
    return isQuiet ? QUIET_REST_MS : REST_MS;
  }

  const who = `weigher of ${ref.queue}:${ref.partition}`;
  const loop = createLoop({ who, pass, probe: () => memberOf(redis, ref.keys.meta).ping(), clock, events, pauseAfter });
  return { start: loop.start, stop: loop.stop, pass };
}
