/** How callers change a job that waits in virtual time, by the rules of the scripts, and what a look at one shows. */

import { memberOf } from '../job/codec.ts';
import type { Token } from '../job/job.ts';
import { decodeHeader, digestOf, expiryIn, markOf } from '../job/record-header.ts';
import type { Peek } from '../redis/read/inspect.ts';
import {
  type EditItem,
  type EditReply,
  type RescheduleItem,
  type RescheduleReply,
  seenText,
} from '../redis/scripts/edits.ts';
import type { CancelReply } from '../redis/scripts/replies.ts';
import type { JobBook } from './jobs.ts';
import { dueOf, type Kept, OWNER, overOf, priorityIn } from './kept.ts';

/**
 * Undefined: the job may be changed, as far as its state goes.
 *
 * @param token of its last start, as the caller saw it; undefined: any
 */
function notWaiting(job: Kept | undefined, token = job?.token) {
  if (!job) return { kind: 'unknown' } as const;
  const over = overOf(job.state);
  if (over) return { kind: 'over', over } as const;
  if (job.state === 'running') return { kind: 'running' } as const;
  return job.token === token ? undefined : ({ kind: 'started' } as const);
}

/** The rules of `cancel.lua`. `seen`: as `seenText` says; undefined: any. */
export function cancel(
  book: JobBook,
  queue: string,
  { id, seen }: { readonly id: string; readonly seen: string | undefined },
): CancelReply {
  const job = book.find(queue, id);
  const isOther = job && !overOf(job.state) && (seen ?? seenOf(job)) !== seenOf(job);
  return isOther ? { kind: 'changed' } : book.cancel(queue, id);
}

/** The rules of `reschedule.lua`. */
export async function reschedule(
  book: JobBook,
  queue: string,
  { id, mode, dueMs: askedMs, seen }: Omit<RescheduleItem, 'member'> & { readonly id: string },
): Promise<RescheduleReply> {
  const job = book.find(queue, id);
  const isAll = seen?.includes(' ') === true;
  const refusal = notWaiting(job, isAll ? undefined : seen);
  if (!job || refusal) return refusal ?? { kind: 'unknown' };
  const nowMs = book.nowMs();
  const dueMs = askedMs === 0 ? nowMs : askedMs;
  const wasMs = dueOf(job);
  if (wasMs === dueMs) return { kind: 'already', dueMs };
  const isDue = wasMs === undefined || wasMs <= nowMs;
  if (isDue && (dueMs <= nowMs || mode === 'earlier')) return { kind: 'ready' };
  if (isAll && seenOf(job) !== seen) return { kind: 'changed' };
  if (wasMs !== undefined && forbids(mode, dueMs - wasMs)) return { kind: 'kept', dueMs: wasMs };
  const expiresAtMs = tooLateAt(job, dueMs, nowMs);
  if (expiresAtMs !== undefined) return { kind: 'expires', expiresAtMs };
  job.generation ??= 0;
  await lineUpAnew(book, job, dueMs);
  return { kind: 'ok', wasMs, dueMs };
}

/** The expiry of a job that could not start any more at a time to come. */
function tooLateAt({ record }: Kept, dueMs: number, nowMs: number): number | undefined {
  const expiresAtMs = expiryIn(record) ?? dueMs;
  return dueMs > Math.max(nowMs, expiresAtMs) ? expiresAtMs : undefined;
}

/** @param byMs how much later it would be due */
const forbids = (mode: RescheduleItem['mode'], byMs: number): boolean =>
  (mode === 'earlier' && byMs > 0) || (mode === 'later' && byMs < 0);

/** The rules of `edit.lua`. `before`: the digest of the record, or all that was seen of the job as `seenText` says. */
export async function rewrite(
  book: JobBook,
  queue: string,
  {
    id,
    before,
    record,
    dueMs,
    bytesMax,
  }: Omit<EditItem, 'member'> & { readonly id: string; readonly bytesMax: number },
): Promise<EditReply> {
  const job = book.find(queue, id);
  if (job && !overOf(job.state) && job.record === record && dueMs === undefined) return { kind: 'already' };
  if (Buffer.byteLength(record) > bytesMax) return { kind: 'too-large' };
  const refusal = notWaiting(job);
  if (!job || refusal) return refusal ?? { kind: 'unknown' };
  const isMoved = dueMs !== undefined && dueMs !== dueOf(job);
  if (!isMoved && job.record === record) return { kind: 'already' };
  if (!isAsSeen(job, before)) return { kind: 'changed' };
  job.generation ??= 0;
  const isAnew = job.state === 'waiting' && priorityIn(job.record) !== priorityIn(record);
  job.record = record;
  if (isMoved || isAnew) await lineUpAnew(book, job, isMoved ? dueMs : undefined);
  return { kind: 'ok' };
}

const isAsSeen = (job: Kept, before: string): boolean =>
  (before.includes(' ') ? seenOf(job) : digestOf(job.record)) === before;

async function lineUpAnew(book: JobBook, job: Kept, dueMs?: number): Promise<void> {
  job.strike();
  if (dueMs !== undefined) Object.assign(job, { nextDueMs: dueMs, dueMs });
  await book.begin(job);
}

/** All that is seen of a job that is not over. */
export const seenOf = (job: Kept): string =>
  seenText({ digest: digestOf(job.record), token: job.token, place: String(dueOf(job) ?? job.state) });

/** A job of the kit as a look at Redis would show it. */
export function peekOf(job: Kept, nowMs: number): Peek {
  const {
    state,
    id,
    record,
    token,
    attempts,
    failures,
    nextDueMs,
    cancelRequested,
    hasNews,
    history,
    deferred,
    progress,
  } = job;
  const outcome = overOf(state);
  const [, digest = ''] = markOf(record).split(' ');
  const told = { askedDueMs: decodeHeader(record)?.askedDueMs ?? 0, digest, token: token as Token, attempts };
  const run = {
    token: token as Token,
    generation: job.generation ?? 0,
    attempts,
    failures,
    crashes: 0,
    entry: undefined,
  };
  const owner = state === 'running' ? OWNER : undefined;
  return {
    nowMs,
    state,
    member: memberOf(id),
    overMs: job.overMs,
    dueMs: dueOf(job),
    record: outcome ? undefined : record,
    tombstone: outcome && { ...told, outcome, deadLetter: job.deadLetter },
    seen: outcome ? undefined : seenOf(job),
    run: outcome ? undefined : { ...run, owner, nextDueMs, cancelRequested, hasNews, history, deferred, progress },
  };
}
