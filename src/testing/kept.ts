/** A job as the kit keeps it, and what is seen of it: by a handler, by the judge, and by whoever looks at its starts. */

import { idOf, type JobRecord, memberOf } from '../job/codec.ts';
import { readRecord } from '../job/compensation.ts';
import { DEFAULT_NAME, type Job } from '../job/job.ts';
import { partitionOf } from '../job/job-id.ts';
import type { Life } from '../job/judge.ts';
import { NO_HEADERS, type Priority } from '../job/labels.ts';
import type { AbortReason, Attempted, Deferred, JobProgress } from '../job/outcome.ts';
import type { KeptResult, PastJob } from '../job/past.ts';
import type { Queue } from '../job/queue.ts';
import { decodeHeader, lifeMarkOf, setOfRecord, tagsOfRecord } from '../job/record-header.ts';
import type { JobState, OverState } from '../job/state.ts';
import { isLiveState } from '../job/state.ts';
import type { DeadLetter } from '../redis/read/inspect.ts';
import type { Effect } from '../redis/scripts/replies.ts';
import type { Effects } from '../worker/run/context.ts';

/** Who runs the jobs of the kit. */
export const OWNER = 'kit';

export interface Kept {
  readonly queue: Queue;
  readonly id: string;
  /** An edit puts another one in its place. */
  record: string;
  state: JobState;
  dueMs: number;
  /** The due of a retry or a defer. */
  nextDueMs: number | undefined;
  token: string;
  attempts: number;
  failures: number;
  history: readonly Attempted[];
  deferred: Deferred | undefined;
  /** How far the handler of its newest start said that it is. */
  progress: JobProgress | undefined;
  reason: string | undefined;
  /** Grows when the job is replaced or replayed; undefined until a start or a change, of what is not counted yet. */
  generation: number | undefined;
  /** When its last handler began; undefined while it waits for another start. */
  startedMs: number | undefined;
  /** When it ended. */
  overMs: number | undefined;
  /** How earlier lives of its id ended, the latest first; undefined: that record was erased. */
  past: readonly (PastJob | undefined)[];
  /** The record of its own end was erased. */
  isErased: boolean;
  /** What its handler returned, where its queue keeps that. */
  result: KeptResult;
  /** The address of its dead letter. */
  deadLetter: string | undefined;
  cancelRequested: boolean;
  /** Newer data came since its start: its record has them, and its next life begins when the run ends. */
  hasNews: boolean;
  /** Grows with every job that comes due: their order in ready, and among those that run. */
  turn: number;
  /** Tells the handler to stop. Set while it runs. */
  abort: ((why: AbortReason) => void) | undefined;
  strike: () => void;
  /** It has ended: who waits for that is told. */
  tell: () => void;
}

/** One start of one job. */
export interface Run {
  readonly id: string;
  readonly queue: string;
  readonly name: string;
  readonly data: unknown;
  /** Epoch ms of the start. */
  readonly atMs: number;
  readonly attempt: number;
  /** How the start ended. `failed`: delivered at most once, so the job is done all the same and not tried again. */
  readonly outcome: 'done' | 'failed' | 'retry' | 'defer' | 'dead' | 'cancelled';
  /** With `retry`, `failed` and `dead`: the message of what was thrown. */
  readonly error: string | undefined;
  /** What the handler asked to be committed. */
  readonly commits: readonly Effect[];
}

/** A dead letter of the kit. */
export interface KeptLetter extends DeadLetter, Pick<Kept, 'queue'> {
  readonly member: string;
  readonly partition: number;
  readonly token: string;
  /** It was replayed or removed. It keeps its place, so that no other one gets its address. */
  isGone: boolean;
}

/** A job as it comes into being. */
export function freshJob(
  queue: Queue,
  { id, record, dueMs, past = [] }: Pick<Kept, 'id' | 'record' | 'dueMs'> & Partial<Pick<Kept, 'past'>>,
): Kept {
  return {
    queue,
    id,
    record,
    state: 'scheduled',
    dueMs,
    nextDueMs: undefined,
    token: '0',
    generation: undefined,
    attempts: 0,
    failures: 0,
    history: [],
    deferred: undefined,
    progress: undefined,
    reason: undefined,
    cancelRequested: false,
    hasNews: false,
    turn: 0,
    startedMs: undefined,
    overMs: undefined,
    past,
    isErased: false,
    result: { kind: 'none' },
    deadLetter: undefined,
    abort: undefined,
    strike: () => undefined,
    tell: () => undefined,
  };
}

/** When it is due, of a job that is not ready yet. */
export const dueOf = ({ state, dueMs }: Kept): number | undefined =>
  state === 'scheduled' || state === 'waiting' ? dueMs : undefined;

export const priorityIn = (record: string): Priority => decodeHeader(record)?.priority ?? 'normal';

/** How it ended, if it has. */
export function overOf(state: JobState): OverState | undefined {
  return isLiveState(state) ? undefined : state;
}

/** The name in its record, as far as that can be read. */
const nameOf = (job: Kept): string => contentOf(job).name;

/** The job is over. */
export function endJob(job: Kept, state: OverState, nowMs: number): void {
  job.state = state;
  job.overMs = nowMs;
  job.tell();
}

export const lifeOf = ({ id, token, attempts, failures, history, ...job }: Kept, record = job.record): Life => ({
  member: memberOf(id),
  started: { token, attempts, failures, crashes: 0, history, record },
});

export function viewOf(
  { id, queue, dueMs, attempts, failures, history, record: kept }: Kept,
  record: JobRecord,
): Job<never> {
  return {
    ...idOf(memberOf(id)),
    queue: queue.name,
    name: record.name,
    data: record.data as never,
    headers: record.headers ?? NO_HEADERS,
    set: record.setEnds,
    dueMs,
    askedDueMs: record.askedDueMs,
    attempt: attempts,
    failures,
    crashes: 0,
    history,
    mark: lifeMarkOf(kept),
  };
}

export function runOf(
  {
    job,
    record,
    atMs,
    effects,
  }: { readonly job: Kept; readonly record: string; readonly atMs: number; readonly effects: Effects },
  outcome: Run['outcome'],
  error: Attempted | undefined,
): Run {
  const { id, queue, attempts } = job;
  const told = {
    id,
    queue: queue.name,
    ...contentOf({ record }),
    atMs,
    attempt: attempts,
    outcome,
    error: error?.message,
  };
  return { ...told, commits: outcome === 'done' ? effects.close() : [] };
}

/** Of a record that nobody can read the start is told all the same. */
function contentOf({ record }: Pick<Kept, 'record'>): Pick<JobRecord, 'name' | 'data'> {
  try {
    const { name, data } = readRecord(record);
    return { name, data };
  } catch {
    return { name: DEFAULT_NAME, data: undefined };
  }
}

export const refOf = ({ queue, id }: Pick<Kept, 'queue' | 'id'>) => ({
  queue: queue.name,
  partition: partitionOf(id, queue.partitions),
});

/** The latest first, undefined for those that were erased; none where the queue keeps no history. */
export function endsOf(job: Kept): Kept['past'] {
  if (!job.queue.history?.isOn) return [];
  const outcome = overOf(job.state);
  return outcome ? [job.isErased ? undefined : endOf(job, outcome), ...job.past] : job.past;
}

function endOf(job: Kept, outcome: PastJob['outcome']): PastJob {
  const {
    id,
    record,
    token,
    attempts,
    failures,
    generation,
    startedMs,
    overMs = 0,
    history,
    deferred,
    result,
    deadLetter,
  } = job;
  const isStarted = token !== '0';
  return {
    id,
    bare: false,
    outcome,
    name: nameOf(job),
    tags: tagsOfRecord(record),
    set: setOfRecord(record),
    attempts,
    failures,
    crashes: 0,
    askedDueMs: decodeHeader(record)?.askedDueMs ?? 0,
    generation: generation ?? 0,
    overMs,
    history,
    deferred,
    result,
    token: isStarted ? token : undefined,
    owner: isStarted ? OWNER : undefined,
    startedMs,
    deadLetter,
    tookMs: startedMs === undefined ? undefined : overMs - startedMs,
  };
}
