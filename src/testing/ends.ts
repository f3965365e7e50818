/**
 * What follows from a verdict, carried out in virtual time as the scripts carry it out in Redis: over, tried again, dead,
 * and with a dead job perhaps a job that takes its half-done work back.
 */
import { idOf, lengthened, memberOf } from '../job/codec.ts';
import { isTooLate } from '../job/fields.ts';
import { compensationOfExpired, type EndVerdict } from '../job/judge.ts';
import type { Attempted, Closing, Deferral, Outcome } from '../job/outcome.ts';
import type { Queue } from '../job/queue.ts';
import { decodeHeader } from '../job/record-header.ts';
import type { OverState } from '../job/state.ts';
import type { Effects } from '../worker/run/context.ts';
import type { Agenda } from './agenda.ts';
import { endJob, endsOf, type Kept, type KeptLetter, lifeOf, OWNER, type Run, refOf, runOf } from './kept.ts';

/** One start, from its beginning to its end. */
export interface Begun {
  readonly job: Kept;
  /** With which it started: newer data may come while it runs. */
  readonly record: string;
  readonly atMs: number;
  readonly effects: Effects;
}

/** A job that comes into being because another one died, or is done. */
export type Put = (
  queue: Queue,
  job: { readonly id: string; readonly record: string; readonly dueMs?: number },
) => Promise<unknown>;

interface EndsParts {
  readonly agenda: Agenda;
  readonly runs: Run[];
  readonly deadLetters: KeptLetter[];
  readonly inline: boolean;
  readonly put: Put;
  readonly begin: (job: Kept, dueMs: number) => Promise<void>;
  /** A start has ended, or there was none: see `Gates`. */
  readonly leave: (job: Kept, isUnused?: boolean) => void;
  /** The handler has closed its group or its queue. */
  readonly close: (job: Kept, closing: Closing) => void;
}

/** Inline a lock is never given back while somebody waits for it. */
const INLINE_STARTS_MAX = 1000;

type Dead = Extract<Outcome, { kind: 'dead' }>;

export interface Ends {
  readonly settle: (begun: Begun, verdict: EndVerdict) => Promise<void>;
  readonly isLate: (job: Kept) => boolean;
  /** From then on it is; undefined: never. */
  readonly lateFromMs: (job: Kept) => number | undefined;
  /** It is over without a start. */
  readonly expire: (job: Kept, compensations: boolean) => Promise<void>;
  /** A tag of it is closed: it is over without a start. */
  readonly cancel: (job: Kept) => void;
}

export function createEnds(parts: EndsParts): Ends {
  const { agenda } = parts;
  return {
    async settle(begun, verdict) {
      const closing = closingIn(verdict);
      if (closing) parts.close(begun.job, closing);
      await settle(parts, begun, verdict);
      parts.leave(begun.job);
    },
    isLate({ record, nextDueMs, dueMs }) {
      const header = decodeHeader(record);
      const sinceMs = nextDueMs ?? (header?.askedDueMs || dueMs);
      return header !== undefined && isTooLate(header, { nowMs: agenda.nowMs(), sinceMs });
    },
    lateFromMs({ record, nextDueMs, dueMs }) {
      const { expiresAtMs, maxLatenessMs, onLate, askedDueMs } = decodeHeader(record) ?? {};
      const latestMs = maxLatenessMs === undefined ? undefined : (nextDueMs ?? (askedDueMs || dueMs)) + maxLatenessMs;
      const lastMs = Math.min(expiresAtMs ?? Number.POSITIVE_INFINITY, latestMs ?? Number.POSITIVE_INFINITY);
      return onLate === 'run' || lastMs === Number.POSITIVE_INFINITY ? undefined : lastMs + 1;
    },
    async expire(job, compensations) {
      await expire(parts, job, compensations ? compensationOfExpired(lifeOf(job), agenda.nowMs()) : undefined);
      parts.leave(job, true);
    },
    cancel(job) {
      endJob(job, 'cancelled', agenda.nowMs());
      parts.leave(job, true);
    },
  };
}

const closingIn = (verdict: EndVerdict): Closing | undefined =>
  verdict.kind === 'settled' && verdict.outcome.kind === 'defer' ? verdict.outcome.closing : undefined;

async function expire(parts: EndsParts, job: Kept, compensation: Dead['compensation']): Promise<void> {
  if (decodeHeader(job.record)?.onLate === 'dead') return bury(parts, job, 'expired', compensation);
  endJob(job, 'expired', parts.agenda.nowMs());
  await compensate(parts, job, compensation);
}

async function settle(parts: EndsParts, begun: Begun, verdict: EndVerdict): Promise<void> {
  const { runs } = parts;
  const { job } = begun;
  job.abort = undefined;
  if (verdict.kind === 'told') {
    runs.push(runOf(begun, verdict.error ? 'failed' : 'done', verdict.error));
    return;
  }
  // A job that was asked to cancel ends cancelled, however its handler ended.
  if (job.cancelRequested) {
    runs.push(runOf(begun, 'cancelled', undefined));
    if (job.hasNews) return liveAgain(parts, job, 'cancelled');
    endJob(job, 'cancelled', parts.agenda.nowMs());
    return;
  }
  const { outcome } = verdict;
  const error = 'error' in outcome ? outcome.error : undefined;
  runs.push(runOf(begun, outcome.kind, error));
  if (error) {
    const told = ofStart(error, job, parts.agenda.nowMs());
    job.history = lengthened(job.history, told, { stacks: job.queue.history?.isOn === true });
  }
  // What it leads to is there before it is over: in a set, that keeps the set open.
  const jobs = outcome.kind === 'done' ? begun.effects.jobs : undefined;
  for (const { id, record, dueMs } of jobs ?? []) await parts.put(job.queue, { id, record, dueMs });
  await carryOut(parts, job, outcome);
}

/** Whose failure it was and how long it took, as a worker says of a handler that ran. */
function ofStart(error: Attempted, { startedMs }: Kept, nowMs: number): Attempted {
  if (error.kind !== 'failure' && error.kind !== 'timeout') return error;
  return { ...error, worker: OWNER, tookMs: nowMs - (startedMs ?? nowMs) };
}

async function carryOut(parts: EndsParts, job: Kept, outcome: Outcome): Promise<void> {
  switch (outcome.kind) {
    case 'done':
      return job.hasNews ? liveAgain(parts, job, 'done') : endJob(job, 'done', parts.agenda.nowMs());
    case 'dead':
      if (outcome.error.kind !== 'refused') job.failures += 1;
      if (job.hasNews) {
        await compensate(parts, job, outcome.compensation);
        return liveAgain(parts, job, 'dead');
      }
      return bury(parts, job, outcome.reason, outcome.compensation);
    case 'retry':
      job.failures += 1;
      return again(parts, job, outcome.delayMs);
    case 'defer':
      job.deferred = nextDeferred(job, outcome.deferral);
      return again(parts, job, outcome.delayMs);
  }
}

function nextDeferred({ deferred }: Kept, deferral: Deferral | undefined): Kept['deferred'] {
  if (!deferral) return deferred;
  return { times: (deferred?.times ?? 0) + 1, lastMs: deferral.atMs, reason: deferral.reason };
}

/** Newer data came while it ran: its next life begins with them, and it leaves no dead letter. */
async function liveAgain(parts: EndsParts, job: Kept, outcome: OverState): Promise<void> {
  const { agenda, inline, begin } = parts;
  const nowMs = agenda.nowMs();
  const dueMs = decodeHeader(job.record)?.askedDueMs ?? nowMs;
  job.past = endsOf({ ...job, state: outcome, overMs: nowMs });
  Object.assign(job, { attempts: 0, failures: 0, history: [], deferred: undefined, startedMs: undefined });
  Object.assign(job, {
    generation: (job.generation ?? 0) + 1,
    nextDueMs: dueMs,
    hasNews: false,
    cancelRequested: false,
  });
  // A handler that makes the next life of its own job would go on without end.
  if (inline && (job.generation ?? 0) >= INLINE_STARTS_MAX) endJob(job, outcome, nowMs);
  else await begin(job, dueMs);
}

async function again(parts: EndsParts, job: Kept, delayMs: number): Promise<void> {
  const { agenda, inline, begin } = parts;
  job.hasNews = false;
  job.nextDueMs = agenda.nowMs() + delayMs;
  job.startedMs = undefined;
  if (inline && job.attempts >= INLINE_STARTS_MAX)
    await bury(parts, job, 'the handler deferred the job without end', undefined);
  else await begin(job, job.nextDueMs);
}

async function bury(parts: EndsParts, job: Kept, reason: string, compensation: Dead['compensation']): Promise<void> {
  const { agenda, deadLetters } = parts;
  const { queue, id, record, token, attempts, failures, history, deferred, generation = 0 } = job;
  const atMs = agenda.nowMs();
  endJob(job, 'dead', atMs);
  job.reason = reason;
  job.deadLetter = entryOf(deadLetters, job, atMs);
  deadLetters.push({
    entry: job.deadLetter,
    queue,
    partition: refOf(job).partition,
    id,
    bare: false,
    member: memberOf(id),
    record,
    reason,
    history,
    deferred,
    token,
    attempts,
    failures,
    crashes: 0,
    generation,
    atMs,
    isGone: false,
  });
  await compensate(parts, job, compensation);
}

/** As Redis numbers the entries of a stream: in each partition, those of one millisecond. */
function entryOf(
  letters: readonly KeptLetter[],
  { queue, id }: { readonly queue: Queue; readonly id: string },
  nowMs: number,
): string {
  const { partition } = refOf({ queue, id });
  const last = letters.findLast((one) => one.queue.name === queue.name && one.partition === partition);
  return `${nowMs}-${last?.atMs === nowMs ? Number(last.entry.split('-')[1]) + 1 : 0}`;
}

async function compensate(parts: EndsParts, job: Kept, compensation: Dead['compensation']): Promise<void> {
  const { put } = parts;
  if (compensation) await put(job.queue, { id: idOf(compensation.member).id, record: compensation.record });
}
