/**
 * A queue rests and goes on: nothing is promoted and nothing is started until it resumes. What runs goes on; what is
 * scheduled meanwhile waits. All partitions are paused, one after the other; a pause that was cut short is completed by
 * the next, because partitions that are paused already stay as they are.
 */
import { systemClock } from '../core/clock.ts';
import { DuestreamError } from '../core/errors.ts';
import type { Redis } from '../redis/connection/connect.ts';
import { withRetry } from '../redis/connection/outage.ts';
import { stats } from '../redis/inspect.ts';
import type { PartitionRef } from '../redis/keys.ts';
import { type Pause, type PauseReply, pause, resume } from '../redis/transitions/upkeep.ts';
import { type Place, refsOfQueue } from './refs.ts';

export interface Paused {
  /** Whether anything is different now. */
  readonly changed: boolean;
  /** The pause that holds, or the one that has ended. */
  readonly held: Pause | undefined;
}

export const PAUSE_REASON_CHARS_MAX = 200;
const RETRY = { clock: systemClock, budgetMs: 10_000 };

/** @throws DuestreamError `not-found`, or `usage` for a reason that is too long */
export async function pauseQueue(
  place: Place,
  queue: string,
  reason: string,
): Promise<Paused & { readonly running: number }> {
  if (reason.length > PAUSE_REASON_CHARS_MAX) {
    throw new DuestreamError('usage', `the reason has ${reason.length} characters; allowed: ${PAUSE_REASON_CHARS_MAX}`);
  }
  const { redis } = place;
  const refs = await refsOfQueue(place, queue);
  const done = await each(refs, (ref) => withRetry('pause', () => pause(redis, ref, { reason }), RETRY));
  return { ...done, running: await runningIn(redis, refs) };
}

/** @throws DuestreamError `not-found` */
export async function resumeQueue(place: Place, queue: string): Promise<Paused> {
  const { redis } = place;
  const refs = await refsOfQueue(place, queue);
  return each(refs, (ref) => withRetry('resume', () => resume(redis, ref), RETRY));
}

async function each(refs: readonly PartitionRef[], act: (ref: PartitionRef) => Promise<PauseReply>): Promise<Paused> {
  const replies: PauseReply[] = [];
  for (const ref of refs) replies.push(await act(ref));
  return {
    changed: replies.some(({ kind }) => kind === 'ok'),
    held: replies.find(({ pause: found }) => found !== undefined)?.pause,
  };
}

async function runningIn(redis: Redis, refs: readonly PartitionRef[]): Promise<number> {
  const all = await Promise.all(refs.map((ref) => stats(redis, ref)));
  return all.reduce((total, { running }) => total + running, 0);
}
