/** One start of one job that is let through, from its handler to the settle station. */

import { idOf } from '../../job/codec.ts';
import type { Emitter } from '../../job/events.ts';
import {
  type Ending,
  type EndParts,
  judgeRefused,
  judgeThrown,
  type Life,
  type Rules,
  type StartVerdict,
  timedOut,
} from '../../job/judge.ts';
import { endVerdict } from '../../job/judgement.ts';
import type { AbortReason, Outcome } from '../../job/outcome.ts';
import { encodeNote, type Note } from '../../job/past.ts';
import type { Clock } from '../../kernel/clock.ts';
import { isPromise } from '../../kernel/function.ts';
import type { Log } from '../../kernel/log.ts';
import type { ServerOf } from '../../redis/connection/server-clock.ts';
import { keepsHistory } from '../../redis/keys.ts';
import { effectsOf } from './commit-jobs.ts';
import type { Ended } from './conclude.ts';
import { Effects, JobContext, LazyAbort } from './context.ts';
import type { Faults } from './faults.ts';
import type { FullWatch } from './full-watch.ts';
import type { Handler, HandlerCalls } from './handlers.ts';
import type { InFlight, InFlightEntry, LostSlots } from './in-flight.ts';
import type { Settle } from './settle.ts';
import { startedJob } from './started-job.ts';

/** What running a job needs beside its handlers. */
export interface Stations {
  readonly inFlight: InFlight;
  readonly settle: Settle;
  readonly faults: Faults;
  readonly slots: LostSlots;
  readonly clock: Clock;
  readonly serverOf: ServerOf;
  /** While Redis is at its memory limit no results are kept. */
  readonly isFull: FullWatch;
  readonly random: () => number;
  readonly events: Emitter;
  readonly log: Log;
  /** What handlers ask of Redis. */
  readonly calls: () => HandlerCalls;
}

export interface Executing extends Stations {
  readonly queue: string;
  readonly rules: Rules<Handler<never>>;
}

type Verdict = Extract<StartVerdict<Handler<never>>, { kind: 'run' }>;

/**
 * One start that is let through. A class, unlike most of ours: one is made for each job, and methods cost nothing where
 * closures would cost more than everything else that is done here.
 *
 * It is entered by `begin`, by the promise of its handler and by its timer. Nothing leaves it there: what our own code throws
 * ends in `#failed`.
 */
export class Run {
  readonly #executing: Executing;
  readonly held: InFlightEntry;
  readonly #life: Life;
  /** Another one once its record is open. */
  verdict: Verdict;
  readonly #lazyAbort = new LazyAbort();
  readonly #effects = new Effects();
  #startedMs = 0;
  /** The handler was called and has not ended. */
  #isPending = false;
  /** Calls off the timer of its time-out, or the watch over a slot that its handler keeps. */
  #disarm: (() => void) | undefined = undefined;

  constructor(executing: Executing, held: InFlightEntry, life: Life, verdict: Verdict) {
    this.#executing = executing;
    this.held = held;
    this.#life = life;
    this.verdict = verdict;
  }

  /** As Redis gave it. */
  get record(): string {
    return this.#life.started.record;
  }

  /** Calls the handler, and tells once how it ended, whether it throws, returns or resolves. Never throws. */
  begin(): void {
    try {
      this.#call();
    } catch (thrown) {
      this.#failed(thrown);
    }
  }

  #call(): void {
    const { inFlight, clock, serverOf, events, queue, log, calls, rules } = this.#executing;
    const { handler, timeoutMs, isOver } = this.verdict;
    const { ref, delivery } = this.held;
    const { opening } = this.verdict;
    const job = startedJob(queue, { held: this.held, life: this.#life, record: this.verdict.record });
    this.#startedMs = clock.monotonicMs();
    inFlight.handlerBegan(this.held, this);
    const lateMs = Math.max(0, serverOf(ref).nowMs(this.#startedMs) - delivery.dueMs);
    events.emit('job.started', { queue, id: job.id, name: job.name, attempt: job.attempt, lateMs });
    const context = new JobContext({
      job,
      ref,
      lazyAbort: this.#lazyAbort,
      token: this.#life.started.token,
      deadlineMs: this.#startedMs + timeoutMs,
      clock,
      log,
      calls,
      serverOf,
      queue: rules.queue,
      effects: isOver ? undefined : this.#effects,
    });
    let pending: PromiseLike<unknown> | undefined;
    let result: unknown;
    try {
      result = opening
        ? opening.then((record) => {
            this.verdict = { ...this.verdict, record };
            return handler({ ...job, data: record.data as never }, context);
          })
        : handler(job, context);
      pending = isPromise(result) ? Promise.resolve(result) : undefined;
    } catch (thrown) {
      this.#handlerThrew(thrown);
      return;
    }
    if (pending) this.#wait(pending);
    else this.#handlerEnded(this.#returned(result));
  }

  /** Told from outside: cancelled, lease lost, shutdown. */
  abort(why: AbortReason): void {
    // After this the worker is gone: a time-out would only keep its process alive.
    if (why === 'shutdown') this.#disarm?.();
    this.#lazyAbort.abort(why);
  }

  /** What becomes of it when its data is no good, or not to be had. */
  judgeUnopened(thrown: unknown): Outcome {
    return judgeThrown({ thrown }, this.#rulings());
  }

  /** What it is once it is over. */
  endedAfter(tookMs?: number, returned?: unknown): Ended {
    const { held, verdict } = this;
    const { record } = this;
    const { name } = verdict.record;
    if (!keepsHistory(held.ref)) return { held, name, record, tookMs: tookMs ?? 0 };
    const { serverOf } = this.#executing;
    const startedMs = Math.round(serverOf(held.ref).nowMs(tookMs === undefined ? undefined : this.#startedMs));
    return {
      held,
      name,
      record,
      tookMs: tookMs ?? 0,
      note: noteOf(held, { name, record, startedMs, tookMs }, returned),
    };
  }

  /** What is still to come can take too long; what has returned cannot. */
  #wait(pending: PromiseLike<unknown>): void {
    const { timeoutMs } = this.verdict;
    this.#isPending = true;
    pending.then(
      (value: unknown) => this.#handlerEnded(this.#returned(value)),
      (thrown: unknown) => this.#handlerThrew(thrown),
    );
    this.#disarm = this.#executing.clock.timer(timeoutMs, () => this.#timeIsUp());
  }

  /**
   * The outcome is settled now. The handler keeps its slot until it ends, so that one which ignores its signal is seen
   * as a slot that is missing rather than as unbounded concurrency.
   */
  #timeIsUp(): void {
    try {
      this.#overtake();
    } catch (thrown) {
      this.#failed(thrown);
    }
  }

  #overtake(): void {
    const { inFlight, slots, log } = this.#executing;
    const { timeoutMs } = this.verdict;
    const { id } = idOf(this.#life.member);
    this.#lazyAbort.abort('timeout');
    inFlight.overtaken(this.held);
    this.#disarm = slots.watch(this.held, id);
    log.warn({ job: id, timeoutMs }, 'job timed out; its abort signal fired');
    this.#end({ kind: 'threw', thrown: timedOut(timeoutMs), aborted: this.#lazyAbort.reason });
  }

  #handlerThrew(thrown: unknown): void {
    this.#handlerEnded({ kind: 'threw', thrown, aborted: this.#lazyAbort.reason });
  }

  #handlerEnded(ending: Ending): void {
    const { inFlight, slots } = this.#executing;
    const { state } = this.held;
    this.#isPending = false;
    try {
      this.#disarm?.();
      inFlight.handlerEnded(this.held);
      if (state.phase !== 'overtaken') this.#end(ending);
      else if (state.slotLost) slots.tell(idOf(this.#life.member).id);
    } catch (thrown) {
      this.#failed(thrown);
    }
  }

  /** Our own code threw. A handler that runs on is told to stop, and keeps its slot until it ends. */
  #failed(thrown: unknown): void {
    const { inFlight, faults } = this.#executing;
    if (this.#isPending && this.held.state.phase === 'running') {
      this.#lazyAbort.abort('lease lost');
      inFlight.overtaken(this.held);
    }
    const { record, isOver } = this.verdict;
    faults.caught(this.held, thrown, { name: record.name, attempt: this.#life.started.attempts, isOver });
  }

  /** What the handler returned is held only where it is kept. */
  #returned(value: unknown): Ending {
    const { ref } = this.held;
    const isKept = ref.history?.keepsResult && value !== undefined && !isFullNow(this.#executing, ref);
    return isKept ? { kind: 'returned', value } : RETURNED;
  }

  /** The start has its outcome. Where that fails, a handler that returned and asked for nothing is done all the same. */
  #end(ending: Ending): void {
    const { settle } = this.#executing;
    try {
      this.#settle(ending);
    } catch (thrown) {
      if (ending.kind !== 'returned' || this.#effects.list || this.#effects.jobs) throw thrown;
      const { held, record, verdict } = this;
      const plain = { held, name: verdict.record.name, record, tookMs: 0 };
      if (verdict.isOver) settle.tellOnce(plain, undefined);
      else settle.settle(plain, { kind: 'done' });
    }
  }

  #settle(ending: Ending): void {
    const { settle, clock } = this.#executing;
    const returned = ending.kind === 'returned' ? ending.value : undefined;
    const ended = this.endedAfter(clock.monotonicMs() - this.#startedMs, returned);
    const asked = this.#effects.close();
    const { jobs } = this.#effects;
    const effects = jobs ? [...asked, ...effectsOf(this.held.ref.keys, jobs)] : asked;
    const judged = endVerdict(ending, this.#rulings());
    if (judged.kind === 'told') settle.tellOnce(ended, judged.error);
    else if (judged.outcome.kind !== 'done' || effects.length === 0) settle.settle(ended, judged.outcome);
    else settle.commit(ended, { effects, otherwise: (thrown) => judgeRefused(thrown, this.#rulings()) });
  }

  #rulings(): EndParts<Handler<never>> {
    const { random } = this.#executing;
    const rules = rulesFor(this.#executing, this.held);
    const { record } = this.verdict;
    return { life: this.#life, record, rules, nowMs: nowMs(this.#executing, this.held), random };
  }
}

/** What is over without its handler. */
export function endedUnstarted(held: InFlightEntry, name: string, record: string): Ended {
  const note = noteOf(held, { name, record, startedMs: undefined, tookMs: undefined });
  return { held, name, record, tookMs: 0, note };
}

function noteOf({ ref: { history } }: InFlightEntry, note: Note, returned?: unknown): string | undefined {
  return history?.isOn ? encodeNote(note, returned, history) : undefined;
}

/** What holds for a start: also what views of the queue do not show, which somebody may set while the worker runs. */
export const rulesFor = ({ rules }: Executing, { ref: { redact } }: InFlightEntry): Rules<Handler<never>> =>
  redact ? { ...rules, redact } : rules;

const RETURNED: Ending = { kind: 'returned' };

/** Where that cannot be told, the result is kept. */
function isFullNow({ isFull }: Executing, ref: InFlightEntry['ref']): boolean {
  try {
    return isFull(ref);
  } catch {
    return false;
  }
}

export const nowMs = ({ serverOf }: Executing, { ref }: InFlightEntry) => Math.round(serverOf(ref).nowMs());
