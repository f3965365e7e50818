/**
 * One start of one job: budgets, then the record, then the handler, then its outcome. The order is the point: a record
 * that kills whoever reads it has been counted by `start` before it is parsed here.
 */
import type { Clock } from '../core/clock.ts';
import { decodeRecord, idOf, type JobRecord } from '../core/codec.ts';
import { DuestreamError, messageOf, oneLine } from '../core/errors.ts';
import type { Emitter } from '../core/events.ts';
import { DEFAULT_NAME, type Job } from '../core/job.ts';
import type { Log } from '../core/log.ts';
import type { Attempted, Outcome } from '../core/outcome.ts';
import type { Queue } from '../core/queue.ts';
import type { Effect, Started } from '../redis/replies.ts';
import { ABANDONED, type Abandoned, abandonedOf, heirOf } from './abandoned.ts';
import { createContext, createCord } from './context.ts';
import { type Handler, type HandlerContext, pickHandler, type QueueHandlers } from './handlers.ts';
import type { AbortReason, Held, Inflight } from './inflight.ts';
import type { Settle } from './settle.ts';
import type { Slots } from './slots.ts';
import { putAside, verdict } from './verdict.ts';

export interface ExecuteParts<Data> {
  readonly queue: Queue<Data>;
  readonly handlers: QueueHandlers<Data>;
  readonly onAbandoned: Handler<Abandoned> | undefined;
  readonly inflight: Inflight;
  readonly settle: Settle;
  readonly slots: Slots;
  readonly clock: Clock;
  readonly serverNowMs: () => number;
  readonly random: () => number;
  readonly events: Emitter;
  readonly log: Log;
}

/** Runs a started entry to its outcome. Returns at once; the settle station hears of the end. */
export type Execute = (held: Held, started: Started) => void;

interface Start {
  readonly held: Held;
  readonly started: Started;
  readonly record: JobRecord;
  readonly effects: Effect[];
}

type Ending =
  | { readonly startedMs: number }
  | { readonly startedMs: number; readonly thrown: unknown; readonly aborted: AbortReason | undefined };

export function createExecute<Data>(parts: ExecuteParts<Data>): Execute {
  const { queue, handlers, onAbandoned, inflight, settle, slots, clock, serverNowMs, random, events, log } = parts;
  const once = queue.delivery === 'at-most-once';

  function execute(held: Held, started: Started): void {
    held.token = started.token;
    const refusal = started.crashes >= queue.crashes && `the worker died ${timesOf(started.crashes)} under this job`;
    const record = refusal ? undefined : readable(held, started);
    if (refusal) refuse(held, started, { reason: 'crashes-exhausted', message: refusal });
    else if (record) executeRecord({ held, started, record, effects: [] });
  }

  function readable(held: Held, started: Started): JobRecord | undefined {
    try {
      const record = decodeRecord(started.record);
      return record.name === ABANDONED ? { ...record, data: abandonedOf(record.data) } : record;
    } catch (error) {
      refuse(held, started, { reason: 'unreadable-record', message: oneLine(messageOf(error)) });
      return undefined;
    }
  }

  function executeRecord(start: Start): void {
    const { held, started, record } = start;
    const { name } = record;
    const handler = handlerFor(name);
    if (started.failures >= (record.attempts ?? queue.attempts)) {
      refuse(held, started, { reason: 'attempts-exhausted', message: `failed ${timesOf(started.failures)}`, name });
    } else if (!handler) {
      refuse(held, started, { reason: 'no-handler', message: `no handler for the name ${name}`, name });
    } else if (once) {
      // Acknowledged first: the handler runs only if this very start was the one that ended the job.
      settle.acknowledge({ held, name, tookMs: 0 }, () => runHandler(start, handler));
    } else {
      runHandler(start, handler);
    }
  }

  /** An heir's data has its own shape: a handler that takes every name must not take it for an order of its own. */
  function handlerFor(name: string): Handler<never> | undefined {
    return name === ABANDONED ? onAbandoned : pickHandler(handlers, name);
  }

  function runHandler(start: Start, handler: Handler<never>): void {
    const { held, started, effects } = start;
    const startedMs = clock.monotonicMs();
    const timeoutMs = start.record.timeoutMs ?? queue.timeoutMs;
    const cord = createCord();
    const job = jobOf(start);
    const context = createContext({
      ...{ job, ref: held.ref, cord, token: started.token, deadlineMs: startedMs + timeoutMs, clock, log },
      effects: once ? undefined : effects,
    });
    let disarm = clock.timer(timeoutMs, () => {
      // The time is up: the outcome is settled now. The handler keeps its slot until it ends, so that one which
      // ignores its signal is seen as a slot that is missing rather than as unbounded concurrency.
      cord.pull('timeout');
      held.overtaken = true;
      disarm = slots.watch(held, job.id);
      log.warn({ job: job.id, timeoutMs }, 'job timed out; its handler was told to stop');
      end(start, { thrown: new Error(`timed out after ${timeoutMs} ms`), aborted: cord.pulled(), startedMs });
    });
    inflight.setPhase(held, 'running');
    held.abort = (why) => {
      // After this the worker is gone: a time-out would only keep its process alive.
      if (why === 'shutdown') disarm();
      cord.pull(why);
    };
    const lateMs = Math.max(0, serverNowMs() - held.delivery.dueMs);
    events.emit('job.started', { queue: queue.name, id: job.id, name: job.name, attempt: job.attempt, lateMs });

    call(handler, { job, context }, (thrown, done) => {
      disarm();
      held.abort = undefined;
      if (!held.overtaken) {
        end(start, done ? { startedMs } : { thrown, aborted: cord.pulled(), startedMs });
        return;
      }
      held.overtaken = false;
      slots.free(held, job.id);
      if (held.settled) inflight.remove(held);
      else inflight.setPhase(held, 'settling');
    });
  }

  /** Without `thrown` the job is done. */
  function end(start: Start, how: Ending): void {
    const { held, record, effects } = start;
    Object.freeze(effects);
    const ended = { held, name: record.name, tookMs: clock.monotonicMs() - how.startedMs };
    if (once) {
      settle.tellOnce(ended, 'thrown' in how ? failureOf(start, how) : undefined);
    } else if ('thrown' in how) {
      settle.settle(ended, judge(start, how));
    } else if (effects.length > 0) {
      const otherwise = (thrown: unknown) =>
        isOutOfMemory(thrown) ? putAside(random()) : judge(start, { ...how, thrown, aborted: undefined });
      settle.settle(ended, { kind: 'done' }, { effects, otherwise });
    } else {
      settle.settle(ended, { kind: 'done' });
    }
  }

  function failureOf({ started }: Start, { thrown, aborted }: Extract<Ending, { thrown: unknown }>): Attempted {
    const kind = aborted === 'timeout' ? 'timeout' : 'failure';
    const message = oneLine(aborted === undefined ? messageOf(thrown) : `${aborted}: ${messageOf(thrown)}`);
    return { atMs: Math.round(serverNowMs()), attempt: started.attempts, kind, message };
  }

  function judge({ held, started, record }: Start, how: Extract<Ending, { thrown: unknown }>): Outcome {
    const { attempts, failures } = started;
    const at = { attempt: attempts, failures, nowMs: Math.round(serverNowMs()), random: random() };
    const budget = { attempts: record.attempts ?? queue.attempts, backoff: record.backoff ?? queue.backoff };
    const outcome = verdict(how.thrown, { aborted: how.aborted, budget, at });
    return withHeir(held, started, outcome);
  }

  /** A job whose handler is not called: it is dead with a reason. */
  function refuse(held: Held, started: Started, why: { reason: string; message: string; name?: string }): void {
    const atMs = Math.round(serverNowMs());
    const error = { atMs, attempt: started.attempts, kind: 'refused' as const, message: why.message };
    const outcome = withHeir(held, started, { kind: 'dead', reason: why.reason, error });
    settle.settle({ held, name: why.name ?? DEFAULT_NAME, tookMs: 0 }, outcome);
  }

  function withHeir(held: Held, started: Started, outcome: Outcome): Outcome {
    if (outcome.kind !== 'dead' || !onAbandoned || outcome.reason === 'unreadable-record') return outcome;
    const { reason, error } = outcome;
    const heir = heirOf({ member: held.delivery.member, started, reason, error }, Math.round(serverNowMs()));
    return heir ? { ...outcome, heir } : outcome;
  }

  function jobOf({ held, started, record }: Start): Job<never> {
    const { attempts, failures, crashes, history } = started;
    return {
      ...idOf(held.delivery.member),
      queue: queue.name,
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

  return execute;
}

const isOutOfMemory = (thrown: unknown) => thrown instanceof DuestreamError && thrown.code === 'out-of-memory';
const timesOf = (count: number) => (count === 1 ? 'once' : `${count} times`);

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
