/**
 * Keeps the limits of a queue true in a led partition: its share stands beside its jobs, and the bytes of its records are
 * counted anew, again and again. A queue without limits costs three calls for each term of a leader: its share, and the
 * registry before and after it. One with limits compares its share once a minute.
 *
 *  elected ──▶ share written where it differs ──▶ slice ──▶ slice ──▶ … ──▶ noted ──▶ rest ──▶ slice ──▶ …
 *
 * Each script that writes or takes away a record keeps the sum, exactly. Foreign clients and calls that are cut off do not:
 * a count mends the sum that they leave wrong. `docs/decisions/0016-*.md` has numbers.
 */

import { NO_QUOTA } from '../../job/quota.ts';
import { type Idle, idle } from '../../kernel/loop.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { giveShare } from '../../redis/scripts/queues.ts';
import { allot, UNWEIGHED, WEIGH_MAX, type Weighing, weigh } from '../../redis/scripts/quotas.ts';
import { type Chore, type Duty, partitionLoop } from '../partition-loop.ts';

export interface WeigherParts extends Duty {
  readonly namespace: string;
  /** The partition with the settings of its queue as they are now. */
  readonly current: () => PartitionRef;
}

/** How often a process that does not lead, or a queue without a limit of bytes, is looked at again. */
const IDLE_MS = 5000;
/** Between two slices: 10,000 jobs a second at most. */
const SLICE_REST_MS = 50;
/** Between two counts: for so long a wrong sum may stay wrong. */
const REST_MS = 1000;
/** After a count that found the same as the count before. */
const QUIET_REST_MS = 10_000;

/** What another program, or somebody who was cut off, wrote in the place of the share is mended after this time. */
const ALLOT_EVERY_MS = 60_000;

export function createWeigher(parts: WeigherParts): Chore {
  const { redis, ref, namespace, current, leading, clock } = parts;
  /** The term and the limits for which the partition has its share. */
  let allotted: string | undefined;
  let allottedMs = clock.monotonicMs();
  let spot: Weighing = UNWEIGHED;
  /** Bytes and records by the last whole count. */
  let counted = '';

  /** Writes the share, or counts one slice. Returns milliseconds until the next. */
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
    const isOther = allotted !== wanted;
    if (isOther || (quota !== NO_QUOTA && clock.monotonicMs() - allottedMs >= ALLOT_EVERY_MS)) {
      const reply = await giveShare(redis, { namespace, ref: current() }, (now) =>
        allot(redis, ref, { term, quota: now.quota ?? NO_QUOTA }),
      );
      if (reply === 'fenced') return IDLE_MS;
      allotted = wanted;
      allottedMs = clock.monotonicMs();
      if (isOther || reply === 'ok') spot = UNWEIGHED;
    }
    return quota.bytes === 0 ? idle(IDLE_MS) : slice();
  }

  async function slice(): Promise<number> {
    const reply = await weigh(redis, ref, spot, { limit: WEIGH_MAX, mode: 'mend' });
    spot = reply.kind === 'more' ? reply : UNWEIGHED;
    // Somebody has removed the share with everything else of the partition.
    if (reply.kind === 'unlimited') allotted = undefined;
    if (reply.kind === 'more') return SLICE_REST_MS;
    const found = reply.kind === 'weighed' ? `${reply.bytes} ${reply.count}` : '';
    const isQuiet = found === counted;
    counted = found;
    return isQuiet ? QUIET_REST_MS : REST_MS;
  }

  const loop = partitionLoop('weigher', parts, pass);
  return { start: loop.start, stop: loop.stop, pass };
}
