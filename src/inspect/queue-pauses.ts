/**
 * A queue rests and goes on: nothing is promoted and nothing is started until it resumes. What runs goes on; what is
 * scheduled meanwhile waits. All partitions are paused, one after the other; a pause that was cut short is completed by
 * the next, because partitions that are paused already stay as they are.
 */
import { withReadRetry } from '../client/calls/read-retry.ts';
import { systemClock } from '../kernel/clock.ts';
import { DuestreamError } from '../kernel/errors.ts';
import type { Redis } from '../redis/connection/connect.ts';
import { type RetryPolicy, withRetry } from '../redis/connection/outage.ts';
import type { PartitionRef } from '../redis/keys.ts';
import { stats } from '../redis/read/inspect.ts';
import { type Pause, type PauseReply, pause, resume } from '../redis/scripts/upkeep.ts';
import { type Namespaced, refsOfQueue } from './refs.ts';

export interface Paused {
  /** Whether anything is different now. */
  readonly changed: boolean;
  /** The pause that holds, or the one that has ended. */
  readonly held: Pause | undefined;
}

export const PAUSE_REASON_CHARS_MAX = 200;
/** Partitions are parts of one call. */
const retry = (): RetryPolicy => ({ clock: systemClock, budgetMs: 10_000, whole: { isBegun: false } });

/** @throws DuestreamError `not-found`, or `usage` for a reason that is too long */
export async function pauseQueue(
  place: Namespaced,
  queue: string,
  reason: string,
): Promise<Paused & { readonly running: number }> {
  if (reason.length > PAUSE_REASON_CHARS_MAX) {
    throw new DuestreamError('usage', `the reason has ${reason.length} characters; allowed: ${PAUSE_REASON_CHARS_MAX}`);
  }
  const { redis } = place;
  const policy = retry();
  const refs = await withReadRetry('pause', () => refsOfQueue(place, queue), policy);
  const done = await each(refs, (ref) => repeated('pause', () => pause(redis, ref, { reason }), policy));
  return { ...done, running: await withReadRetry('pause', () => runningIn(redis, refs), policy) };
}

/** @throws DuestreamError `not-found` */
export async function resumeQueue(place: Namespaced, queue: string): Promise<Paused> {
  const { redis } = place;
  const policy = retry();
  const refs = await withReadRetry('resume', () => refsOfQueue(place, queue), policy);
  return each(refs, (ref) => repeated('resume', () => resume(redis, ref), policy));
}

/** What is so already after a lost reply is so by the call before. */
function repeated(what: string, act: () => Promise<PauseReply>, policy: RetryPolicy): Promise<PauseReply> {
  const call = async (mayHaveRun: boolean): Promise<PauseReply> => {
    const reply = await act();
    return mayHaveRun ? { ...reply, kind: 'ok' } : reply;
  };
  return withRetry(what, call, policy);
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
