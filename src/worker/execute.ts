/**
 * One start of one job: judged, then its handler, then judged again, and on to the settle station. What is decided
 * stands in `core/judge.ts`; here it is carried out.
 */

import type { Clock } from '../core/clock.ts';
import { idOf } from '../core/codec.ts';
import type { Abandoned } from '../core/compensation.ts';
import type { Emitter } from '../core/events.ts';
import type { Job } from '../core/job.ts';
import {
  type Ending,
  judgeEnd,
  judgeRefused,
  judgeStart,
  type Life,
  type Rules,
  type StartVerdict,
  timedOut,
} from '../core/judge.ts';
import type { Log } from '../core/log.ts';
import type { Queue } from '../core/queue.ts';
import type { ServerOf } from '../redis/connection/server-clock.ts';
import type { Effect, Started } from '../redis/transitions/replies.ts';
import { createContext, createLazyAbort, type LazyAbort } from './context.ts';
import { type Handler, type HandlerContext, handlerFor, type QueueHandlers } from './handlers.ts';
import type { Held, Inflight } from './inflight.ts';
import type { Slots } from './overdue-slots.ts';
import type { Settle } from './settle.ts';

/** What running a job needs beside its handlers. */
interface Stations {
  readonly inflight: Inflight;
  readonly settle: Settle;
  readonly slots: Slots;
  readonly clock: Clock;
  readonly serverOf: ServerOf;
  readonly random: () => number;
  readonly events: Emitter;
  readonly log: Log;
}

export interface ExecuteParts<Data> extends Stations {
  readonly queue: Queue;
  readonly handlers: QueueHandlers<Data>;
  readonly onAbandoned: Handler<Abandoned> | undefined;
}

/** Runs a started entry to its outcome. Returns at once; the settle station hears of the end. */
export type Execute = (held: Held, started: Started) => void;

interface Executing extends Stations {
  readonly queue: string;
  readonly rules: Rules<Handler<never>>;
}

/** One start that is let through. */
interface Start {
  readonly held: Held;
  readonly started: Started;
  readonly life: Life;
  readonly verdict: Extract<StartVerdict<Handler<never>>, { kind: 'run' }>;
  readonly effects: Effect[];
}

/** A start whose handler was called. */
interface Run extends Pick<Start, 'held'> {
  readonly start: Start;
  readonly job: Job<never>;
  readonly startedMs: number;
  readonly lazyAbort: LazyAbort;
}

export function createExecute<Data>(parts: ExecuteParts<Data>): Execute {
  const { queue, handlers, onAbandoned, ...stations } = parts;
  const rules: Rules<Handler<never>> = {
    queue,
    handlerOf: (name) => handlerFor({ handlers, onAbandoned }, name),
    compensations: onAbandoned !== undefined,
  };
  const executing: Executing = { ...stations, queue: queue.name, rules };
  return (held, started) => execute(executing, held, started);
}

function execute(executing: Executing, held: Held, started: Started): void {
  const { settle, inflight, rules } = executing;
  const life = { member: held.delivery.member, started };
  const verdict = judgeStart(life, rules, nowMs(executing, held));
  if (verdict.kind === 'refused') {
    inflight.refused(held);
    settle.settle({ held, name: verdict.name, tookMs: 0 }, verdict.outcome);
    return;
  }
  const start = { held, started, life, verdict, effects: [] };
  const run = () => runHandler(executing, start);
  if (verdict.isOver) settle.acknowledge({ held, name: verdict.record.name, tookMs: 0 }, run);
  else run();
}

function runHandler(executing: Executing, start: Start): void {
  const { inflight, clock, serverOf, events, queue } = executing;
  const { held, verdict } = start;
  const run = { held, start, job: jobOf(queue, start), startedMs: clock.monotonicMs(), lazyAbort: createLazyAbort() };
  const { job, lazyAbort } = run;
  const context = contextOf(executing, run);
  let disarm = clock.timer(verdict.timeoutMs, () => {
    disarm = timeIsUp(executing, run);
    end(executing, run, { kind: 'threw', thrown: timedOut(verdict.timeoutMs), aborted: lazyAbort.reason() });
  });
  inflight.handlerBegan(held, (why) => {
    // After this the worker is gone: a time-out would only keep its process alive.
    if (why === 'shutdown') disarm();
    lazyAbort.abort(why);
  });
  const lateMs = Math.max(0, serverOf(held.ref).nowMs() - held.delivery.dueMs);
  events.emit('job.started', { queue, id: job.id, name: job.name, attempt: job.attempt, lateMs });
  call(verdict.handler, { job, context }, (thrown, done) => {
    disarm();
    handlerEnded(executing, run, done ? { kind: 'returned' } : { kind: 'threw', thrown, aborted: lazyAbort.reason() });
  });
}

/**
 * The outcome is settled now. The handler keeps its slot until it ends, so that one which ignores its signal is seen as
 * a slot that is missing rather than as unbounded concurrency. Returns what calls off the watch over its slot.
 */
function timeIsUp({ inflight, slots, log }: Executing, { held, start, job, lazyAbort }: Run): () => void {
  lazyAbort.abort('timeout');
  inflight.overtaken(held);
  const callOff = slots.watch(held, job.id);
  log.warn({ job: job.id, timeoutMs: start.verdict.timeoutMs }, 'job timed out; its abort signal fired');
  return callOff;
}

function handlerEnded(executing: Executing, run: Run, ending: Ending): void {
  const { inflight, slots } = executing;
  const { state } = run.held;
  inflight.handlerEnded(run.held);
  if (state.phase !== 'overtaken') end(executing, run, ending);
  else if (state.slotLost) slots.freed(run.job.id);
}

/** The start has its outcome. */
function end(executing: Executing, { held, start, startedMs }: Run, ending: Ending): void {
  const { settle, clock, rules, random } = executing;
  const { life, effects, verdict } = start;
  const { record } = verdict;
  Object.freeze(effects);
  const ended = { held, name: record.name, tookMs: clock.monotonicMs() - startedMs };
  const rulings = () => ({ life, record, rules, nowMs: nowMs(executing, held), random });
  const judged = judgeEnd(ending, rulings());
  if (judged.kind === 'told') settle.tellOnce(ended, judged.error);
  else if (judged.outcome.kind !== 'done' || effects.length === 0) settle.settle(ended, judged.outcome);
  else settle.commit(ended, { effects, otherwise: (thrown) => judgeRefused(thrown, rulings()) });
}

const nowMs = ({ serverOf }: Executing, { ref }: Held) => Math.round(serverOf(ref).nowMs());

function contextOf({ clock, log }: Executing, { job, held, start, startedMs, lazyAbort }: Run): HandlerContext {
  const { verdict, started, effects } = start;
  const deadlineMs = startedMs + verdict.timeoutMs;
  const collected = verdict.isOver ? undefined : effects;
  return createContext({
    ...{ job, ref: held.ref, lazyAbort, token: started.token, deadlineMs, clock, log },
    effects: collected,
  });
}

function jobOf(queue: string, { held, started, verdict: { record } }: Start): Job<never> {
  const { attempts, failures, crashes, history } = started;
  return {
    ...idOf(held.delivery.member),
    queue,
    name: record.name,
    // The producer and the worker share the queue's definition; what is in the record is what JSON carried.
    data: record.data as never,
    dueMs: held.delivery.dueMs,
    askedDueMs: record.askedDueMs,
    attempt: attempts,
    failures,
    crashes,
    history,
  };
}

/** Calls a handler and tells once how it ended, whether it throws, returns or resolves. */
function call(
  handler: Handler<never>,
  { job, context }: { readonly job: Job<never>; readonly context: HandlerContext },
  ended: (thrown: unknown, done: boolean) => void,
): void {
  let pending: Promise<unknown> | undefined;
  try {
    const result = handler(job, context);
    pending = isThenable(result) ? Promise.resolve(result) : undefined;
  } catch (thrown) {
    ended(thrown, false);
    return;
  }
  if (!pending) {
    ended(undefined, true);
    return;
  }
  pending.then(
    () => ended(undefined, true),
    (thrown: unknown) => ended(thrown, false),
  );
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}
