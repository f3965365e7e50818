/**
 * The jobs there are in virtual time: scheduled, replaced, cancelled, looked at, with the very options and answers of a
 * producer. What happens when one comes due is `runner.ts`.
 */
import { type Plan, planJob } from '../client/plan.ts';
import type { Scheduled } from '../client/scheduled.ts';
import { DuestreamError } from '../core/errors.ts';
import type { ScheduleOptions } from '../core/job-options.ts';
import type { Queue } from '../core/queue.ts';
import { dataBytesMaxRange } from '../core/ranges.ts';
import type { JobState, OverState } from '../core/state.ts';
import type { Kept } from './kept.ts';
import { createRunner, type RunnerParts } from './runner.ts';

/** A job that is not over, or how it ended. */
export interface TestJob {
  readonly id: string;
  readonly queue: string;
  readonly state: JobState;
  /** Epoch ms; undefined when it is not scheduled. */
  readonly dueMs: number | undefined;
  readonly attempts: number;
  readonly failures: number;
  /** With `dead`: the reason, such as `attempts-exhausted`. */
  readonly reason: string | undefined;
}

type Wanted = Pick<Plan, 'id' | 'record' | 'dueMs' | 'mode' | 'strict'>;

export type JobBook = ReturnType<typeof createJobBook>;

const LIVE: readonly JobState[] = ['scheduled', 'ready', 'running'];
const LIMITS = { horizonMs: 3650 * 86_400_000, dataBytesMax: dataBytesMaxRange.default };

export interface JobBookParts extends RunnerParts {
  /** The definition that counts: the worker's, else the producer's. */
  readonly queueOf: (given: Queue) => Queue;
}

export function createJobBook(parts: JobBookParts) {
  const { agenda, queueOf } = parts;
  const runner = createRunner(parts, (queue, { id, record }) =>
    add(queue, { id, record, dueMs: agenda.nowMs(), mode: 'keep', strict: false }),
  );
  const kept = new Map<string, Kept>();

  const keyOf = (queue: string, id: string) => `${queue} ${id}`;
  const isLive = (queue: string, id: string) => LIVE.includes(kept.get(keyOf(queue, id))?.state ?? 'done');

  async function schedule(queue: Queue, data: unknown, options: ScheduleOptions): Promise<Scheduled> {
    return add(queue, planJob(data, options, { ...LIMITS, nowMs: agenda.nowMs() }));
  }

  /** The same answers as `schedule.lua`. */
  async function add(queue: Queue, plan: Wanted): Promise<Scheduled> {
    const { id, record, dueMs } = plan;
    const told = { id, queue: queue.name, dueMs };
    const before = kept.get(keyOf(queue.name, id));
    const known = before && replyTo(before, plan);
    if (known) return { ...told, ...known };
    const live = before !== undefined && LIVE.includes(before.state);
    before?.strike();
    const job: Kept = {
      ...{ queue: queueOf(queue), id, record, state: 'scheduled', dueMs, nextDueMs: undefined, token: '0' },
      ...{ attempts: 0, failures: 0, history: [], reason: undefined, cancelRequested: false },
      ...{ abort: undefined, strike: () => undefined },
    };
    kept.set(keyOf(queue.name, id), job);
    await runner.begin(job, dueMs);
    return { ...told, status: live ? 'replaced' : 'scheduled' };
  }

  return {
    schedule,
    add,
    isLive,
    cancel(queue: string, id: string): 'cancelled' | 'requested' | 'over' | 'unknown' {
      const job = kept.get(keyOf(queue, id));
      if (!job) return 'unknown';
      if (job.state === 'running') {
        job.cancelRequested = true;
        job.abort?.('cancelled');
        return 'requested';
      }
      if (!LIVE.includes(job.state)) return 'over';
      job.strike();
      job.state = 'cancelled';
      return 'cancelled';
    },
    all: (): readonly TestJob[] =>
      [...kept.values()].map(({ id, queue, state, dueMs, attempts, failures, reason }) => ({
        ...{ id, queue: queue.name, state, attempts, failures, reason },
        dueMs: state === 'scheduled' ? dueMs : undefined,
      })),
  };
}

/** What is told about a job of this id that is there already; undefined when the wanted one takes its place. */
function replyTo(
  before: Kept,
  { record, mode, strict }: Wanted,
): Pick<Scheduled, 'status' | 'dueMs' | 'over'> | undefined {
  const { state, dueMs, queue, id } = before;
  const over = overOf(state);
  if (before.record === record) return { status: 'already', dueMs, ...(over ? { over } : {}) };
  if (over) return undefined;
  if (strict) throw new DuestreamError('exists', `job ${id} of queue ${queue.name} exists`);
  if (mode === 'keep') return { status: 'exists', dueMs };
  return state === 'running' ? { status: 'running', dueMs } : undefined;
}

function overOf(state: JobState): OverState | undefined {
  return state === 'scheduled' || state === 'ready' || state === 'running' ? undefined : state;
}
