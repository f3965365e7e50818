/**
 * What happens to a job in virtual time when it comes due: started, and settled by what its handler did, by the very
 * rules for budgets, backoff and lateness that hold in Redis. What is not played: several workers, crashes and lost
 * replies; there is one worker, and it has a slot for every job.
 */
import type { Clock } from '../core/clock.ts';
import { idOf, type JobRecord } from '../core/codec.ts';
import type { Job } from '../core/job.ts';
import { silentLog } from '../core/log.ts';
import type { Attempted, Outcome } from '../core/outcome.ts';
import type { Queue } from '../core/queue.ts';
import type { JobState } from '../core/state.ts';
import { partitionRef } from '../redis/keys.ts';
import type { Effect } from '../redis/replies.ts';
import { createContext, createCord } from '../worker/context.ts';
import { pickHandler, type QueueHandlers } from '../worker/handlers.ts';
import { verdict } from '../worker/verdict.ts';
import type { Agenda } from './agenda.ts';

/** One start of one job. */
export interface Run {
  readonly id: string;
  readonly queue: string;
  readonly name: string;
  readonly data: unknown;
  /** The moment of the start. */
  readonly at: Date;
  readonly attempt: number;
  /** How the start ended. */
  readonly outcome: 'done' | 'retry' | 'defer' | 'dead' | 'cancelled';
  /** With `retry` and `dead`: the message of what was thrown. */
  readonly error: string | undefined;
  /** What the handler asked to be committed. */
  readonly commits: readonly Effect[];
}

interface Ended {
  readonly outcome: Outcome;
  readonly at: Date;
  readonly effects: readonly Effect[];
}

/** A job as the kit keeps it. */
export interface Kept {
  readonly queue: Queue;
  readonly id: string;
  record: string;
  content: JobRecord;
  state: JobState;
  dueMs: number;
  attempts: number;
  failures: number;
  history: readonly Attempted[];
  reason: string | undefined;
  cancelRequested: boolean;
  strike: () => void;
}

export interface RunnerParts {
  readonly agenda: Agenda;
  readonly clock: Clock;
  readonly queueOf: (name: string) => Queue;
  readonly handlersOf: (queue: string) => QueueHandlers<never> | undefined;
  /** How long the run of a job lasts in virtual time. */
  readonly lastsMs: (job: Job<unknown>) => number;
  readonly random: () => number;
  readonly runs: Run[];
  readonly inline: boolean;
}

export function createRunner(parts: RunnerParts) {
  const { agenda, clock, handlersOf, lastsMs, random, runs, inline } = parts;
  let tokens = 0;

  function note(job: Kept, dueMs: number): void {
    job.dueMs = dueMs;
    job.state = 'scheduled';
    job.strike = agenda.at(dueMs, () => start(job));
  }

  async function start(job: Kept): Promise<void> {
    const { content, queue } = job;
    if (!inline && isTooLate(job)) return expire(job);
    const handlers = handlersOf(queue.name);
    const handler = handlers && pickHandler<never>(handlers, content.name);
    job.state = 'running';
    job.attempts += 1;
    tokens += 1;
    const view = viewOf(job);
    const endMs = agenda.nowMs() + (inline ? 0 : lastsMs(view));
    const started = { at: new Date(agenda.nowMs()), effects: [] as Effect[] };
    const outcome = handler
      ? await outcomeOf(job, () => handler(view, contextOf(view, started.effects)))
      : refusal(job, `no handler for the name ${content.name}`, 'no-handler');
    if (endMs <= agenda.nowMs()) await settle(job, { outcome, ...started });
    else agenda.at(endMs, () => settle(job, { outcome, ...started }));
  }

  async function outcomeOf(job: Kept, run: () => unknown): Promise<Outcome> {
    try {
      await run();
      return { kind: 'done' };
    } catch (thrown) {
      const { attempts, failures, content, queue } = job;
      const at = { attempt: attempts, failures, nowMs: agenda.nowMs(), random: random() };
      const budget = { attempts: content.attempts ?? queue.attempts, backoff: content.backoff ?? queue.backoff };
      return verdict(thrown, { aborted: undefined, budget, at });
    }
  }

  async function settle(job: Kept, end: Ended): Promise<void> {
    const { outcome } = end;
    const ended = job.cancelRequested && 'delayMs' in outcome ? 'cancelled' : outcome.kind;
    runs.push(runOf(job, end, ended));
    if ('error' in outcome) job.history = [...job.history, outcome.error].slice(-5);
    if (outcome.kind === 'dead') bury(job, outcome.reason);
    else if (ended === 'cancelled' || outcome.kind === 'done') job.state = ended === 'cancelled' ? ended : 'done';
    else await again(job, outcome.kind === 'retry', outcome.delayMs);
  }

  async function again(job: Kept, failed: boolean, afterMs: number): Promise<void> {
    if (failed) job.failures += 1;
    if (inline && job.attempts >= INLINE_STARTS_MAX) bury(job, 'deferred without end');
    else await begin(job, agenda.nowMs() + afterMs);
  }

  function bury(job: Kept, reason: string): void {
    job.state = 'dead';
    job.reason = reason;
  }

  /** The rule of `start.lua`. */
  function isTooLate({ content, dueMs }: Kept): boolean {
    const { expiresAtMs = Number.POSITIVE_INFINITY, maxLatenessMs = Number.POSITIVE_INFINITY, onLate } = content;
    return onLate !== 'run' && (agenda.nowMs() > expiresAtMs || agenda.nowMs() - dueMs > maxLatenessMs);
  }

  function expire(job: Kept): void {
    if (job.content.onLate === 'dead') bury(job, 'expired');
    else job.state = 'expired';
  }

  function contextOf(job: Job<never>, effects: Effect[]) {
    const timeoutMs = parts.queueOf(job.queue).timeoutMs;
    const ref = partitionRef('test', { queue: job.queue, partition: 0, generation: 0 });
    const deadlineMs = clock.monotonicMs() + timeoutMs;
    return createContext({
      job,
      ref,
      cord: createCord(),
      token: String(tokens),
      deadlineMs,
      clock,
      log: silentLog,
      effects,
    });
  }

  function viewOf({ id, queue, content, dueMs, attempts, failures, history }: Kept): Job<never> {
    return {
      ...{ ...idOf(`j:${id}`), queue: queue.name, name: content.name, data: content.data as never },
      ...{ dueMs, askedDueMs: content.askedDueMs, attempt: attempts, failures, crashes: 0, history },
    };
  }

  function refusal({ attempts }: Kept, message: string, reason: string): Outcome {
    return { kind: 'dead', reason, error: { atMs: agenda.nowMs(), attempt: attempts, kind: 'refused', message } };
  }

  /** At its due; inline at once. */
  async function begin(job: Kept, dueMs: number): Promise<void> {
    if (!inline) return note(job, dueMs);
    job.dueMs = dueMs;
    await start(job);
  }

  return { begin };
}

/** Inline a lock is never given back while somebody waits for it. */
const INLINE_STARTS_MAX = 1000;

function runOf({ content, id, queue, attempts }: Kept, { outcome, at, effects }: Ended, ended: Run['outcome']): Run {
  const told = { id, queue: queue.name, name: content.name, data: content.data, at, attempt: attempts };
  const error = 'error' in outcome ? outcome.error.message : undefined;
  return { ...told, outcome: ended, error, commits: ended === 'done' ? effects : [] };
}
