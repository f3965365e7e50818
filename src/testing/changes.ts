/** How callers change a job that waits in virtual time, by the rules of the scripts, and what a look at one shows. */

import { etagOfJob, seenOfEtag } from '../client/calls/etag.ts';
import { type Edited, type EditRequest, plannedIn } from '../client/jobs/edit.ts';
import type { Request } from '../client/jobs/reschedule.ts';
import { memberOf } from '../job/codec.ts';
import type { Token } from '../job/job.ts';
import type { Queue } from '../job/queue.ts';
import { decodeHeader, digestOf, markOf } from '../job/record-header.ts';
import { partitionOf } from '../job/routing.ts';
import type { Peek } from '../redis/read/inspect.ts';
import { type EditReply, type RescheduleReply, seenText } from '../redis/scripts/edits.ts';
import type { CancelReply } from '../redis/scripts/replies.ts';
import type { JobBook } from './jobs.ts';
import { type Kept, OWNER, overOf } from './kept.ts';

/** Undefined: it may be changed, as far as its state goes. */
function notWaiting(job: Kept | undefined) {
  if (!job) return { kind: 'unknown' } as const;
  const over = overOf(job.state);
  if (over) return { kind: 'over', over } as const;
  return job.state === 'running' ? ({ kind: 'running' } as const) : undefined;
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

/** The rules of `reschedule.lua`. `seen`: as `seenText` says; left out: any. */
export async function reschedule(
  book: JobBook,
  queue: string,
  { id, mode, dueMs: askedMs, ifMatch, seen = seenOfEtag(ifMatch) }: Request & { readonly seen?: string | undefined },
): Promise<RescheduleReply> {
  const job = book.find(queue, id);
  const refusal = notWaiting(job);
  if (!job || refusal) return refusal ?? { kind: 'unknown' };
  const nowMs = book.nowMs();
  const dueMs = askedMs === 0 ? nowMs : askedMs;
  const wasMs = job.state === 'scheduled' ? job.dueMs : undefined;
  if (wasMs === dueMs) return { kind: 'already', dueMs };
  const isDue = wasMs === undefined || wasMs <= nowMs;
  if (isDue && (dueMs <= nowMs || mode === 'earlier')) return { kind: 'ready' };
  if (seen !== undefined && seenOf(job) !== seen) return { kind: 'changed' };
  if (wasMs !== undefined && forbids(mode, dueMs - wasMs)) return { kind: 'kept', dueMs: wasMs };
  job.strike();
  job.generation ??= 0;
  job.nextDueMs = dueMs;
  job.dueMs = dueMs;
  await book.begin(job);
  return { kind: 'ok', wasMs, dueMs };
}

/** @param byMs how much later it would be due */
const forbids = (mode: Request['mode'], byMs: number): boolean =>
  (mode === 'earlier' && byMs > 0) || (mode === 'later' && byMs < 0);

export async function edit(book: JobBook, queue: Queue, request: EditRequest): Promise<Edited> {
  const job = book.find(queue.name, request.id);
  const plan = await plannedIn(queue, request, job && peekOf(job, book.nowMs()));
  if ('result' in plan) return plan.result;
  if (!job) return { id: request.id, status: 'unknown' };
  const { record } = plan.item;
  const status = record === job.record ? 'already' : 'edited';
  if (status === 'edited') write(job, record);
  return { id: request.id, status, digest: digestOf(record), etag: etagOfJob(seenOf(job)) };
}

/** The rules of `edit.lua`. `seen`: as `seenText` says. */
export function rewrite(
  book: JobBook,
  queue: string,
  {
    id,
    seen,
    record,
    bytesMax,
  }: { readonly id: string; readonly seen: string; readonly record: string; readonly bytesMax: number },
): EditReply {
  const job = book.find(queue, id);
  if (job && !overOf(job.state) && job.record === record) return { kind: 'already' };
  if (Buffer.byteLength(record) > bytesMax) return { kind: 'too-large' };
  const refusal = notWaiting(job);
  if (!job || refusal) return refusal ?? { kind: 'unknown' };
  if (seenOf(job) !== seen) return { kind: 'changed' };
  write(job, record);
  return { kind: 'ok' };
}

function write(job: Kept, record: string): void {
  job.generation ??= 0;
  job.record = record;
}

/** All that is seen of a job that is not over. */
export const seenOf = ({ record, token, state, dueMs }: Kept): string =>
  seenText({ digest: digestOf(record), token, place: state === 'scheduled' ? String(dueMs) : state });

export const refOf = ({ queue, id }: Pick<Kept, 'queue' | 'id'>) => ({
  queue: queue.name,
  partition: partitionOf(id, queue.partitions),
});

/** What the dead letter of a dead job says, as far as the job does not. */
export function letterOf({ state, record, reason = '', history, deferred, failures, generation = 0 }: Kept) {
  return state === 'dead' ? { record, reason, history, deferred, failures, crashes: 0, generation } : undefined;
}

/** A job of the kit as a look at Redis would show it. */
export function peekOf(job: Kept, nowMs: number): Peek {
  const { state, id, record, token, attempts, failures, nextDueMs, cancelRequested, history, deferred } = job;
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
    dueMs: state === 'scheduled' ? job.dueMs : undefined,
    record: outcome ? undefined : record,
    tombstone: outcome && { ...told, outcome, deadLetter: job.deadLetter },
    seen: outcome ? undefined : seenOf(job),
    run: outcome ? undefined : { ...run, owner, nextDueMs, cancelRequested, history, deferred },
  };
}
