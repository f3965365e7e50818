/**
 * Ends jobs past their expiry that nobody can start, so that they give their places back: the queue is paused, closed or full, its
 * rate is used up, or no worker runs. They end in the very way in which a start would have ended them.
 *
 *  elected ──▶ slice of what is due ──▶ the late ones end ──▶ slice ──▶ … ──▶ rest ──▶ from the beginning
 *
 * A round looks at 4,000 jobs a second at most, so one of 100,000 and its rest are over within a minute. Where nothing is due and
 * left lying, a round is one call. A job that had a start is left to the next one: whether a handler takes half-done work
 * back, only a worker knows.
 */

import { idOf } from '../../job/codec.ts';
import { type Idle, idle } from '../../kernel/loop.ts';
import { RHYTHMS } from '../../kernel/rhythm.ts';
import { type PartitionRef, partitionKeys } from '../../redis/keys.ts';
import { lapsed } from '../../redis/read/inspect.ts';
import { addKept } from '../../redis/read/minutes.ts';
import { EXPIRE_JOBS_MAX } from '../../redis/scripts/bytes.ts';
import { createJobs } from '../../redis/scripts/jobs.ts';
import type { Delivery } from '../../redis/scripts/replies.ts';
import { type Chore, type Duty, partitionLoop } from '../partition-loop.ts';

interface ExpirerParts extends Duty {
  readonly namespace: string;
  /** Of tombstones. */
  readonly windowMs: number;
  /** The partition with the settings of its queue as they are now. */
  readonly current: () => PartitionRef;
}

/** How often a process that does not lead is asked again. */
const IDLE_MS = 5000;
const SLICE_REST_MS = 50;
/** Who ends jobs that no worker has. */
const LEADER = '';

export function createExpirer(parts: ExpirerParts): Chore {
  const { redis, namespace, current, leading, windowMs, events, rhythm = RHYTHMS.default } = parts;
  const jobs = createJobs(redis);
  let cursor: string | undefined;

  /** One slice. Returns milliseconds until the next. */
  async function pass(): Promise<number | Idle> {
    const ref = current();
    // Of a broadcast queue the leader itself looks whether a job is late.
    if (!leading() || ref.broadcast) {
      cursor = undefined;
      return idle(IDLE_MS);
    }
    const slice = await lapsed(redis, ref, { ...(cursor !== undefined && { cursor }) });
    for (let at = 0; at < slice.jobs.length; at += EXPIRE_JOBS_MAX) {
      await endAll(ref, slice.jobs.slice(at, at + EXPIRE_JOBS_MAX));
    }
    cursor = slice.cursor;
    return cursor === undefined ? rhythm.firesMs : SLICE_REST_MS;
  }

  /** Those that are answered `later` are found in the next round. */
  async function endAll(ref: PartitionRef, late: readonly Delivery[]): Promise<void> {
    const replies = await jobs.expire(ref, late, { consumer: LEADER, windowMs });
    for (const [nth, { member }] of late.entries()) {
      const reply = replies[nth];
      if (reply !== 'expired' && reply !== 'dead') continue;
      events.emit('job.expired', { queue: ref.queue, id: idOf(member).id, dead: reply === 'dead' });
    }
    await countDead(ref, replies.filter((reply) => reply === 'dead').length);
  }

  /** Of a queue that promises lateness, those that no worker will count: Redis counts the others as expired. */
  async function countDead({ queue, lateness }: PartitionRef, late: number): Promise<void> {
    if (!lateness || late === 0) return;
    const first = partitionKeys({ namespace, queue, partition: 0 });
    await addKept(redis, first, { withinMs: lateness.withinMs, kept: 0, late });
  }

  const loop = partitionLoop('expirer', parts, pass);
  return { start: loop.start, stop: loop.stop, pass };
}
