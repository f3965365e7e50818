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
import type { Effect, Started } from '../redis/transitions/replies.ts';
import { createContext, createCord } from './context.ts';
import { type Handler, type HandlerContext, handlerFor, type QueueHandlers } from './handlers.ts';
import type { Held, Inflight } from './inflight.ts';
import type { Slots } from './overdue-slots.ts';
import type { Settle } from './settle.ts';

export interface ExecuteParts<Data> {
  readonly queue: Queue;
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

interface Start extends Extract<StartVerdict<Handler<never>>, { kind: 'run' }> {
  readonly held: Held;
  readonly started: Started;
  readonly life: Life;
  readonly effects: Effect[];
}

export function createExecute<Data>(parts: ExecuteParts<Data>): Execute {
  const { queue, handlers, onAbandoned, inflight, settle, slots, clock, serverNowMs, random, events, log } = parts;
  const rules: Rules<Handler<never>> = {
    queue,
    handlerOf: (name) => handlerFor({ handlers, onAbandoned }, name),
    compensations: onAbandoned !== undefined,
  };
  const nowMs = () => Math.round(serverNowMs());

  function execute(held: Held, started: Started): void {
    held.token = started.token;
    const life = { member: held.delivery.member, started };
    const verdict = judgeStart(life, rules, nowMs());
    if (verdict.kind === 'refused') {
      settle.settle({ held, name: verdict.name, tookMs: 0 }, verdict.outcome);
      return;
    }
    const start = { ...verdict, held, started, life, effects: [] };
    if (verdict.isOver) settle.acknowledge({ held, name: verdict.record.name, tookMs: 0 }, () => runHandler(start));
    else runHandler(start);
  }

  function runHandler(start: Start): void {
    const { held, started, effects, handler, timeoutMs } = start;
    const startedMs = clock.monotonicMs();
    const cord = createCord();
    const job = jobOf(start);
    const context = createContext({
      ...{ job, ref: held.ref, cord, token: started.token, deadlineMs: startedMs + timeoutMs, clock, log },
      effects: start.isOver ? undefined : effects,
    });
    let disarm = clock.timer(timeoutMs, () => {
      // The time is up: the outcome is settled now. The handler keeps its slot until it ends, so that one which
      // ignores its signal is seen as a slot that is missing rather than as unbounded concurrency.
      cord.pull('timeout');
      held.overtaken = true;
      disarm = slots.watch(held, job.id);
      log.warn({ job: job.id, timeoutMs }, 'job timed out; its handler was told to stop');
      end(start, { kind: 'threw', thrown: timedOut(timeoutMs), aborted: cord.pulled() }, startedMs);
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
        end(start, done ? { kind: 'returned' } : { kind: 'threw', thrown, aborted: cord.pulled() }, startedMs);
        return;
      }
      held.overtaken = false;
      slots.free(held, job.id);
      if (held.settled) inflight.remove(held);
      else inflight.setPhase(held, 'settling');
    });
  }

  function end(start: Start, ending: Ending, startedMs: number): void {
    const { held, record, effects } = start;
    Object.freeze(effects);
    const ended = { held, name: record.name, tookMs: clock.monotonicMs() - startedMs };
    const verdict = judgeEnd(ending, partsOf(start));
    if (verdict.kind === 'told') settle.tellOnce(ended, verdict.error);
    else if (verdict.outcome.kind !== 'done' || effects.length === 0) settle.settle(ended, verdict.outcome);
    else
      settle.settle(ended, verdict.outcome, {
        effects,
        otherwise: (thrown) => judgeRefused(thrown, partsOf(start)),
      });
  }

  const partsOf = ({ life, record }: Start) => ({ life, record, rules, nowMs: nowMs(), random });

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
