/**
 * A producer in virtual time. Its methods are those of the product, with all their checks; here are the parts on which
 * they stand, over the jobs of the kit instead of a connection. What these answer is what the scripts would answer.
 */
import type { Answers } from '../client/batch.ts';
import { type Calls, stopped } from '../client/calls.ts';
import { type Cancelled, cancelledOf } from '../client/cancel.ts';
import { type Edited, type EditRequest, plannedIn } from '../client/edit.ts';
import { viewOf } from '../client/job-view.ts';
import type { ScheduleChain } from '../client/middleware.ts';
import type { JobResult } from '../client/past.ts';
import { type Producer, producerOver } from '../client/producer.ts';
import type { Parts } from '../client/producer-parts.ts';
import type { Replayed, ReplayRequest } from '../client/replay.ts';
import { type Request, rescheduledOf } from '../client/reschedule.ts';
import type { Scheduled } from '../client/scheduled.ts';
import { settingsOf } from '../client/settings.ts';
import type { Clock } from '../core/clock.ts';
import { memberOf } from '../core/codec.ts';
import type { Token } from '../core/job.ts';
import type { Queue } from '../core/queue.ts';
import { decodeHeader, digestOf, markOf } from '../core/record-header.ts';
import { partitionOf } from '../core/routing.ts';
import type { Peek } from '../redis/inspect.ts';
import type { RescheduleReply } from '../redis/transitions/edits.ts';
import { type JobBook, overOf } from './jobs.ts';
import { type DeadLetter, freshJob, type Kept } from './kept.ts';

/** Nobody dials it. */
const NOWHERE = 'redis://127.0.0.1:6379';
/** Who runs the jobs of the kit. */
const OWNER = 'kit';

/** @param chain the middleware around what it schedules */
export function createKitProducer(book: JobBook, clock: Clock, chain?: ScheduleChain): Producer {
  const settings = settingsOf({ redis: NOWHERE, clock });
  const { horizonMs, dataBytesMax } = settings;
  const parts: Parts = {
    server: { settle: () => undefined },
    limits: () => ({ horizonMs, dataBytesMax, nowMs: book.nowMs() }),
    batch: { add: book.add, addMany: (queue, plans) => addMany(book, queue, plans), quiet: async () => undefined },
    cancel: {
      one: async (queue, id, { bare }) => cancel(book, { queue, id, bare }),
      many: async (queue, ids) => ids.map((id) => cancel(book, { queue, id, bare: false })),
    },
    replay: (queue, request) => replay(book, queue, request),
    async get(queue, id, { bare }) {
      const job = bare ? undefined : book.find(queue.name, id);
      return job && viewOf(refOf(job), { id, bare, past: [] }, peekOf(job, book.nowMs()));
    },
    past: {
      async result(queue, id, { bare }) {
        const job = bare ? undefined : book.find(queue.name, id);
        return job ? resultOf(job) : { status: 'unknown' };
      },
    },
    async reschedule(queue, requests) {
      const replies: RescheduleReply[] = [];
      for (const request of requests) replies.push(await reschedule(book, queue, request));
      return replies.map((reply, at) => rescheduledOf(requests[at]?.id ?? '', reply, false));
    },
    async edit(queue, requests) {
      const results: Edited[] = [];
      for (const request of requests) results.push(await edit(book, queue, request));
      return results;
    },
    fit: async () => undefined,
  };
  return producerOver(settings, callsOver(parts), chain);
}

/** There is no connection to wait for; a call begins in the turn in which it is made. */
function callsOver(parts: Parts): Calls {
  let isStopped = false;
  const check = () => {
    if (isStopped) throw stopped();
  };
  const run: Calls['run'] = async (work) => {
    check();
    return work(parts);
  };
  return {
    ...{ check, run, opened: () => parts },
    async connected() {
      check();
      return parts;
    },
    async runChecked(read, work, levelOf) {
      levelOf?.();
      const input = read();
      return run((made) => work(made, input));
    },
    async stop() {
      isStopped = true;
    },
  };
}

async function addMany(book: JobBook, queue: Queue, plans: Parameters<Parts['batch']['addMany']>[1]): Promise<Answers> {
  const results: (Scheduled | undefined)[] = [];
  const errors = new Map<number, unknown>();
  for (const [at, plan] of plans.entries()) {
    const adding = book.add(queue, plan).catch((error: unknown) => void errors.set(at, error));
    results.push((await adding) ?? undefined);
  }
  return { results, errors };
}

function cancel(
  book: JobBook,
  { queue, id, bare }: { readonly queue: Queue; readonly id: string; readonly bare: boolean },
): Cancelled {
  return cancelledOf(id, bare ? { kind: 'unknown' } : book.cancel(queue.name, id));
}

/** The rules of `reschedule.lua`. */
async function reschedule(book: JobBook, queue: Queue, request: Request): Promise<RescheduleReply> {
  const job = book.find(queue.name, request.id);
  if (!job) return { kind: 'unknown' };
  const over = overOf(job.state);
  if (over) return { kind: 'over', over };
  if (job.state === 'running') return { kind: 'running' };
  const { mode } = request;
  const nowMs = book.nowMs();
  const dueMs = request.dueMs === 0 ? nowMs : request.dueMs;
  const wasMs = job.state === 'scheduled' ? job.dueMs : undefined;
  if (wasMs === dueMs) return { kind: 'already', dueMs };
  const isDue = wasMs === undefined || wasMs <= nowMs;
  if (isDue && (dueMs <= nowMs || mode === 'earlier')) return { kind: 'ready' };
  const stays = wasMs !== undefined && (mode === 'earlier' ? dueMs > wasMs : mode === 'later' && dueMs < wasMs);
  if (stays) return { kind: 'kept', dueMs: wasMs };
  job.strike();
  job.generation ??= 0;
  job.nextDueMs = dueMs;
  job.dueMs = dueMs;
  await book.begin(job);
  return { kind: 'ok', wasMs, dueMs };
}

async function edit(book: JobBook, queue: Queue, request: EditRequest): Promise<Edited> {
  const job = book.find(queue.name, request.id);
  const plan = await plannedIn(queue, request, job && peekOf(job, book.nowMs()));
  if ('result' in plan) return plan.result;
  if (job) {
    job.generation ??= 0;
    job.record = plan.item.record;
  }
  return { id: request.id, status: 'edited', digest: digestOf(plan.item.record) };
}

/** The rules of `replay.lua`. */
async function replay(book: JobBook, queue: Queue, { target, dueMs, partition }: ReplayRequest): Promise<Replayed> {
  const named = ({ entry, id }: DeadLetter) =>
    target.deadLetterId === undefined ? !target.bare && id === target.id : entry === target.deadLetterId;
  const isThere = (one: DeadLetter) => (partition ?? refOf(one).partition) === refOf(one).partition && !one.isGone;
  const found = book.deadLetters.findLast((one) => one.queue.name === queue.name && named(one) && isThere(one));
  if (!found) {
    const id = target.deadLetterId === undefined ? target.id : undefined;
    return { deadLetter: target.deadLetterId, status: 'gone', id, dueMs: undefined };
  }
  const { entry: deadLetter, id } = found;
  if (book.isLive(queue.name, id)) return { deadLetter, status: 'live', id, dueMs: undefined };
  found.isGone = true;
  const { token, attempts, generation } = found;
  const job = { ...freshJob(found.queue, { id, record: withoutLateness(found.record), dueMs }), token, attempts };
  await book.begin({ ...job, generation: (generation ?? 0) + 1, nextDueMs: dueMs });
  return { deadLetter, status: 'scheduled', id, dueMs };
}

/** A replayed dead letter does not expire. */
function withoutLateness(record: string): string {
  const bar = record.indexOf('|');
  return record.slice(0, bar).replace(/;[elp]=\w+/g, '') + record.slice(bar);
}

const refOf = ({ queue, id }: Pick<Kept, 'queue' | 'id'>) => ({
  queue: queue.name,
  partition: partitionOf(id, queue.partitions),
});

/** What became of a job. */
function resultOf({ state, dueMs, overMs, result, reason, history, deadLetter }: Kept): JobResult {
  switch (state) {
    case 'scheduled':
      return { status: 'pending', state, dueMs };
    case 'ready':
    case 'running':
      return { status: 'pending', state, dueMs: undefined };
    case 'done':
      return { status: state, overMs, result };
    case 'dead':
      return { status: state, overMs, reason, error: history.at(-1), deadLetter };
    case 'cancelled':
    case 'expired':
      return { status: state, overMs };
  }
}

/** A job of the kit as a look at Redis would show it. */
function peekOf(job: Kept, nowMs: number): Peek {
  const { state, id, record, token, attempts, failures, nextDueMs, cancelRequested, history } = job;
  const outcome = overOf(state);
  const [, digest = ''] = markOf(record).split(' ');
  const told = { askedDueMs: decodeHeader(record)?.askedDueMs ?? 0, digest, token: token as Token, attempts };
  const run = {
    ...{ token: token as Token, generation: job.generation ?? 0, attempts, failures, crashes: 0 },
    entry: undefined,
  };
  const owner = state === 'running' ? OWNER : undefined;
  return {
    ...{ nowMs, state, member: memberOf(id), overMs: job.overMs, dueMs: state === 'scheduled' ? job.dueMs : undefined },
    record: outcome ? undefined : record,
    tombstone: outcome && { ...told, outcome, deadLetter: job.deadLetter },
    run: outcome ? undefined : { ...run, owner, nextDueMs, cancelRequested, history },
  };
}
