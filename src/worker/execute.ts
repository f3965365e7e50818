/**
 * One start of one job: budgets, then the record, then the handler, then its outcome. The order is the point: a record
 * that kills whoever reads it has been counted by `start` before it is parsed here.
 */
import type { Clock } from '../core/clock.ts';
import { decodeRecord, idOf, type JobRecord } from '../core/codec.ts';
import { messageOf, oneLine } from '../core/errors.ts';
import type { Emitter } from '../core/events.ts';
import { DEFAULT_NAME, type Job } from '../core/job.ts';
import type { Log } from '../core/log.ts';
import type { Queue } from '../core/queue.ts';
import type { Started } from '../redis/replies.ts';
import { type Handler, type HandlerContext, pickHandler, type QueueHandlers } from './handlers.ts';
import type { AbortReason, Held, Inflight } from './inflight.ts';
import type { Settle } from './settle.ts';
import { verdict } from './verdict.ts';

export interface ExecuteParts<Data> {
  readonly queue: Queue<Data>;
  readonly handlers: QueueHandlers<Data>;
  readonly inflight: Inflight;
  readonly settle: Settle;
  readonly clock: Clock;
  readonly serverNowMs: () => number;
  readonly random: () => number;
  readonly events: Emitter;
  readonly log: Log;
}

/** Runs a started entry to its outcome. Returns at once; the settle station hears of the end. */
export type Execute = (held: Held, started: Started) => void;

export function createExecute<Data>(parts: ExecuteParts<Data>): Execute {
  const { queue, handlers, inflight, settle, clock, serverNowMs, random, events, log } = parts;

  function execute(held: Held, started: Started): void {
    held.token = started.token;
    const refusal = started.crashes >= queue.crashes && `the worker died ${started.crashes} times under this job`;
    const record = refusal ? undefined : readable(held, started);
    if (refusal) refuse(held, started, { reason: 'crashes-exhausted', message: refusal });
    else if (record) executeRecord({ held, started, record });
  }

  function readable(held: Held, started: Started): JobRecord | undefined {
    try {
      return decodeRecord(started.record);
    } catch (error) {
      refuse(held, started, { reason: 'unreadable-record', message: oneLine(messageOf(error)) });
      return undefined;
    }
  }

  function executeRecord(start: Start): void {
    const { held, started, record } = start;
    const { name } = record;
    const handler = pickHandler(handlers, name);
    if (started.failures >= (record.attempts ?? queue.attempts)) {
      refuse(held, started, { reason: 'attempts-exhausted', message: `failed ${started.failures} times`, name });
    } else if (handler) {
      runHandler(start, handler);
    } else {
      refuse(held, started, { reason: 'no-handler', message: `no handler for the name ${name}`, name });
    }
  }

  function runHandler(start: Start, handler: Handler<Data>): void {
    const { held, started } = start;
    const startedMs = clock.monotonicMs();
    const timeoutMs = start.record.timeoutMs ?? queue.timeoutMs;
    const cord = createCord();
    const job = jobOf(start);
    const context = contextOf({ job, cord, token: started.token, deadlineMs: startedMs + timeoutMs });
    const disarm = clock.timer(timeoutMs, () => {
      // The time is up: the outcome is settled now. The handler keeps its slot until it ends, so that one which
      // ignores its signal is seen as a slot that is missing rather than as unbounded concurrency.
      cord.pull('timeout');
      held.overtaken = true;
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
      if (held.settled) inflight.remove(held);
      else inflight.setPhase(held, 'settling');
    });
  }

  /** Without `thrown` the job is done. */
  function end({ held, started, record }: Start, how: Ending): void {
    const tookMs = clock.monotonicMs() - how.startedMs;
    if (!('thrown' in how)) {
      settle({ held, name: record.name, tookMs }, { kind: 'done' });
      return;
    }
    const { attempts, failures } = started;
    const at = { attempt: attempts, failures, nowMs: Math.round(serverNowMs()), random: random() };
    const budget = { attempts: record.attempts ?? queue.attempts, backoff: record.backoff ?? queue.backoff };
    settle({ held, name: record.name, tookMs }, verdict(how.thrown, { aborted: how.aborted, budget, at }));
  }

  function contextOf(of: { job: Job<Data>; cord: Cord; token: string; deadlineMs: number }): HandlerContext {
    const { job, cord } = of;
    return {
      get signal() {
        return cord.signal();
      },
      get deadline() {
        return new Date(clock.wallMs() + of.deadlineMs - clock.monotonicMs());
      },
      get log() {
        return log.child({ job: job.id, name: job.name, attempt: job.attempt });
      },
      token: of.token,
      attempt: job.attempt,
    };
  }

  /** A job whose handler is not called: it is dead with a reason. */
  function refuse(held: Held, started: Started, why: { reason: string; message: string; name?: string }): void {
    const atMs = Math.round(serverNowMs());
    const error = { atMs, attempt: started.attempts, kind: 'refused' as const, message: why.message };
    settle({ held, name: why.name ?? DEFAULT_NAME, tookMs: 0 }, { kind: 'dead', reason: why.reason, error });
  }

  function jobOf({ held, started, record }: Start): Job<Data> {
    const { attempts, failures, crashes, history } = started;
    return {
      ...idOf(held.delivery.member),
      queue: queue.name,
      name: record.name,
      // The producer and the worker share the queue's definition; what is in the record is what JSON carried.
      data: record.data as Data,
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

interface Start {
  readonly held: Held;
  readonly started: Started;
  readonly record: JobRecord;
}

type Ending =
  | { readonly startedMs: number }
  | { readonly startedMs: number; readonly thrown: unknown; readonly aborted: AbortReason | undefined };

/** Calls a handler and tells once how it ended, whether it throws, returns or resolves. */
function call<Data>(
  handler: Handler<Data>,
  { job, context }: { readonly job: Job<Data>; readonly context: HandlerContext },
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

type Cord = ReturnType<typeof createCord>;

/** An AbortController that is only made when somebody looks at the signal: most handlers never do. */
function createCord() {
  let controller: AbortController | undefined;
  let reason: AbortReason | undefined;
  const abort = () => {
    if (reason !== undefined) controller?.abort(new Error(`job aborted: ${reason}`));
  };
  return {
    /** The first reason counts. */
    pull(why: AbortReason): void {
      reason ??= why;
      abort();
    },
    pulled: () => reason,
    signal(): AbortSignal {
      controller ??= new AbortController();
      abort();
      return controller.signal;
    },
  };
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}
