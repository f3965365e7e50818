/**
 * One execution of a job, from the record that Redis gave to its acknowledgement, from top to bottom:
 *
 *  started entry ─▶ verdict ─▶ run ─────────────────────────────────▶ begin ─▶ handler ─▶ end ─▶ acknowledgement
 *                     │  └──▶ run, delivered at most once ─▶ completed in Redis ─┘                     ▲
 *                     └─────▶ refused: no handler is called ───────────────────────────────────────────┘
 *
 * `job/judge.ts` decides: whether the job may run, and what its end means. Here the decision is carried out. A done job goes to
 * Redis with the next call of its partition (`fetch/round-trips.ts`), any other end by a call of its own (`acknowledgement.ts`).
 */
import { briefAccount, type StartAccount, tokenMs } from '../../job/account.ts';
import { encodeProgress, idOf, type JobRecord } from '../../job/codec.ts';
import type { Abandoned } from '../../job/compensation.ts';
import type { Emitter } from '../../job/events.ts';
import { ABANDONED, type Job } from '../../job/job.ts';
import {
  type Ending,
  type EndParts,
  endVerdict,
  type HandledJob,
  judgeRefused,
  judgeThrown,
  type Life,
  type Rules,
  redactorOf,
  type StartVerdict,
  startVerdict,
  type Together,
  timedOut,
} from '../../job/judge.ts';
import { encodeLogLine, type LogFields } from '../../job/log-lines.ts';
import type { AbortReason, JobProgress, Nack } from '../../job/outcome.ts';
import { encodeNote, type Note, tagsInNote } from '../../job/past.ts';
import type { Queue } from '../../job/queue.ts';
import { isPromise } from '../../kernel/checks.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Log } from '../../kernel/log.ts';
import type { ServerOf } from '../../redis/connection/server-clock.ts';
import { keepsHistory, type PartitionRef } from '../../redis/keys.ts';
import type { Jobs } from '../../redis/scripts/jobs.ts';
import { startAccount } from '../../redis/scripts/ready.ts';
import type { Started } from '../../redis/scripts/replies.ts';
import { beginStart, inside, type StartSpan, toldIn } from '../../telemetry/spans.ts';
import type { Acknowledger, EndedAttempt } from './acknowledgement.ts';
import type { CauseBook } from './cause-book.ts';
import { effectsOf } from './commit-jobs.ts';
import { Effects, JobContext, LazyAbort, type Reporter, startedJob } from './context.ts';
import type { Gathering, Member } from './gathering.ts';
import { type Handler, type HandlerCalls, handlerFor, type PlainHandlers } from './handlers.ts';
import { HOLD_MS_MAX, type Holds } from './holds.ts';
import {
  claimOf,
  type InFlight,
  type InFlightEntry,
  isLeased,
  type LostSlots,
  type RunningHandler,
} from './in-flight.ts';
import { LogBook } from './log-book.ts';
import type { HandleChain } from './middleware.ts';
import { counts } from './spending.ts';

/** The services that an execution needs. */
interface Services {
  readonly jobs: Pick<Jobs, 'spend'>;
  readonly inFlight: InFlight;
  readonly acknowledger: Acknowledger;
  readonly slots: LostSlots;
  readonly holds: Pick<Holds, 'hold' | 'hasSlot'>;
  readonly clock: Clock;
  readonly serverOf: ServerOf;
  /** Whether Redis is at its memory limit: then no results are kept. */
  readonly isFull: (ref: PartitionRef) => Promise<boolean>;
  readonly random: () => number;
  readonly events: Emitter;
  readonly log: Log;
  /** What handlers ask of Redis. */
  readonly calls: () => HandlerCalls;
  /** A handler has said how far it is. */
  readonly reported: () => void;
  /** Why jobs were late, by the minute. */
  readonly causes: CauseBook;
}

interface ExecutorParts extends Services {
  readonly queue: Queue;
  readonly handlers: PlainHandlers<never>;
  readonly onAbandoned: Handler<Abandoned> | undefined;
  /** What stands around handlers. */
  readonly chain: Pick<HandleChain, 'around' | 'aroundMember'>;
  /** Where its handler takes batches. */
  readonly gathering: Gathering | undefined;
}

type RunVerdict = Extract<StartVerdict<Handler<never>>, { kind: 'run' }>;

/** Executes the jobs of one queue. */
export class Executor {
  readonly services: Services;
  readonly queue: Queue;
  readonly #chain: ExecutorParts['chain'];
  readonly #gathering: Gathering | undefined;
  readonly #rules: Rules<Handler<never>>;
  readonly #pressure: PressureWatch;

  constructor(parts: ExecutorParts) {
    const { queue, handlers, onAbandoned, chain } = parts;
    const { around } = chain;
    this.services = parts;
    this.queue = queue;
    this.#chain = chain;
    this.#gathering = parts.gathering;
    this.#rules = {
      queue,
      handlerOf: (name) => handlerFor({ handlers, onAbandoned, around }, name),
      compensations: onAbandoned !== undefined,
    };
    this.#pressure = new PressureWatch(parts.isFull, parts.clock);
  }

  /**
   * Executes an entry that Redis has started, when it is due. Returns at once. What our own code throws at a job ends at this job, here and where
   * its execution goes on later (`Execution.#guarded`): the data of a job may be what makes it throw, and must not end every
   * worker that starts it.
   */
  execute(entry: InFlightEntry, started: Started): void {
    const { holds } = this.services;
    const { holdMs = 0 } = started;
    // @until-due
    if (holdMs > 0 && holdMs <= HOLD_MS_MAX) holds.hold(entry, holdMs, () => this.#execute(entry, started));
    else if (holds.hasSlot(entry)) this.#execute(entry, started);
  }

  #execute(entry: InFlightEntry, started: Started): void {
    try {
      this.#start(entry, started);
    } catch (thrown) {
      this.services.acknowledger.failed(entry, thrown, { attempt: started.attempts });
    }
  }

  #start(entry: InFlightEntry, started: Started): void {
    const life = { member: entry.delivery.member, started };
    const nowMs = this.nowMs(entry);
    this.#toldStart(entry, started, nowMs);
    const verdict = startVerdict(life, this.rulesFor(entry), nowMs);
    if (verdict.kind === 'refused') {
      this.nackUnstarted(entry, { name: verdict.name, record: started.record }, verdict.outcome);
      return;
    }
    const execution = new Execution(this, { entry, nowMs }, life, verdict);
    if (!verdict.completesFirst) execution.begin();
    else if (verdict.opening) execution.openFirst(verdict.opening);
    else execution.completeEarly();
  }

  #toldStart(entry: InFlightEntry, started: Started, nowMs: number): void {
    const { causes } = this.services;
    const { ref, delivery } = entry;
    causes.started(entry, started, { isClockSet: isClockSet(started, nowMs) });
    if (ref.gates !== undefined && nowMs - delivery.dueMs >= LATE_MS) void causes.lines.read(ref, nowMs);
  }

  /** The outcome of a job whose handler is not called. */
  nackUnstarted(
    entry: InFlightEntry,
    { name, record }: { readonly name: string; readonly record: string },
    outcome: Nack,
  ): void {
    const { inFlight, acknowledger } = this.services;
    inFlight.refused(entry);
    const note = noteOf(entry, { name, record, startedMs: undefined, tookMs: undefined });
    acknowledger.nack({ entry, name, record, tookMs: 0, note }, outcome);
  }

  /** The rules of a start: also which fields views of the queue hide, which somebody may set while the worker runs. */
  rulesFor({ ref: { redact } }: InFlightEntry): Rules<Handler<never>> {
    return redact ? { ...this.#rules, redact } : this.#rules;
  }

  /** Where a job waits for others, which one call of the handler takes. A job that takes half-done work back has a handler of its own. */
  gatheringFor(name: string): Gathering | undefined {
    return name === ABANDONED ? undefined : this.#gathering;
  }

  /** Inside of all middleware. */
  joining(member: Member, gathering: Gathering): Handler<never> {
    return this.#chain.aroundMember((job, context) => gathering.join(member, { job, context }));
  }

  nowMs({ ref }: InFlightEntry): number {
    return Math.round(this.services.serverOf(ref).nowMs());
  }

  keepsResult({ ref }: InFlightEntry): boolean {
    return ref.history?.keepsResult === true && !this.#pressure.isFull(ref);
  }
}

/**
 * It is entered by `begin`, by the promise of its handler and by its timer. A class, because one is made for each job: methods cost nothing, and closures would cost more than
 * everything else that is done here.
 */
class Execution implements RunningHandler, Reporter, Member {
  readonly #executor: Executor;
  readonly entry: InFlightEntry;
  readonly #life: Life;
  /** Another one once its record is open. */
  verdict: RunVerdict;
  readonly #lazyAbort = new LazyAbort();
  readonly #effects = new Effects();
  #startedMs = 0;
  /** When the reply to its start was seen, by the clock of Redis. */
  readonly #seenMs: number;
  unsent: string | undefined = undefined;
  book: LogBook | undefined = undefined;
  /** How often it has said how many turns it used. */
  #spendings = 0;
  /** Takes out of a text what the queue hides. Made for the first text. */
  #told: ((text: string) => string) | undefined = undefined;
  /** What the attempt has ended in, while its handler goes on after its time: it is told when the handler has ended. */
  #late: Ending | undefined = undefined;
  /** It waits for others, which one call of the handler takes. */
  #isGathered = false;
  /** The jobs of its batch, once that is called. */
  #together: Together | undefined = undefined;
  /** Calls off the timer of its time-out, or the watch over a slot that its handler keeps. */
  #disarm: (() => void) | undefined = undefined;
  /** Where the application traces its starts. It ends when Redis has answered. */
  #span: StartSpan | undefined = undefined;

  constructor(
    executor: Executor,
    { entry, nowMs }: { readonly entry: InFlightEntry; readonly nowMs: number },
    life: Life,
    verdict: RunVerdict,
  ) {
    this.#executor = executor;
    this.entry = entry;
    this.#life = life;
    this.#seenMs = nowMs;
    this.verdict = verdict;
  }

  /** Why it started when it did. */
  account(): StartAccount | undefined {
    const { ref, delivery } = this.entry;
    const { started } = this.#life;
    const { record } = started;
    const looks = this.#executor.services.causes.lines.looksOf(ref);
    const known = { ref, delivery, run: started, record, looks, isClockSet: isClockSet(started, this.#seenMs) };
    const account = startAccount(known);
    return account && briefAccount(account);
  }

  /** As Redis gave it. */
  get record(): string {
    return this.#life.started.record;
  }

  /** Delivered at most once: the job is completed first, and its handler begins if this start is the one that completed it. */
  completeEarly(): void {
    this.#executor.services.acknowledger.completeEarly(this.#attempt(), () => this.#guarded(() => this.begin()));
  }

  /**
   * Of a job that is completed before its handler, the data must be known to be good before that. Nothing extends its lease
   * meanwhile: if another worker starts it, this start is not the one that completes it, and its handler is not called.
   */
  openFirst(opening: Promise<JobRecord>): void {
    const { clock } = this.#executor.services;
    const { timeoutMs, record } = this.verdict;
    const opened = (known: JobRecord) => {
      this.verdict = { ...this.verdict, record: known, opening: undefined };
      this.completeEarly();
    };
    const refused = (thrown: unknown) => {
      const attempted = { name: record.name, record: this.record };
      this.#executor.nackUnstarted(this.entry, attempted, judgeThrown({ thrown }, this.#rulings()));
    };
    within(opening, { clock, timeoutMs }).then(
      (known) => this.#guarded(() => opened(known)),
      (thrown: unknown) => this.#guarded(() => refused(thrown)),
    );
  }

  /** A step of the execution that comes in a turn of its own. */
  #guarded(step: () => void): void {
    try {
      step();
    } catch (thrown) {
      this.#span?.end();
      const { record, completesFirst } = this.verdict;
      const known = { name: record.name, attempt: this.#life.started.attempts, completedEarly: completesFirst };
      this.#executor.services.acknowledger.failed(this.entry, thrown, known);
    }
  }

  /** Calls the handler, and tells once how it ended, whether it throws, returns or resolves. */
  begin(): void {
    const { inFlight, clock } = this.#executor.services;
    const { opening, record } = this.verdict;
    const job = this.#jobOf(record);
    this.#startedMs = clock.monotonicMs();
    inFlight.handlerBegan(this.entry, this);
    const gathering = this.#executor.gatheringFor(record.name);
    const handler = gathering ? this.#executor.joining(this, gathering) : this.verdict.handler;
    if (!gathering) this.#tellBegun(job);
    const context = this.#contextOf(job);
    let pending: PromiseLike<unknown> | undefined;
    let result: unknown;
    try {
      result = opening
        ? opening.then((opened) => {
            this.verdict = { ...this.verdict, record: opened };
            return this.#call(handler, this.#jobOf(opened), context);
          })
        : this.#call(handler, job, context);
      pending = isPromise(result) ? Promise.resolve(result) : undefined;
    } catch (thrown) {
      this.#handlerThrew(thrown);
      return;
    }
    if (pending) this.#wait(pending);
    else this.#handlerEnded(this.#returned(result));
  }

  #call(handler: Handler<never>, job: Job<never>, context: JobContext): unknown {
    return this.#span ? this.#span.inside(() => handler(job, context)) : handler(job, context);
  }

  #jobOf(record: JobRecord): Job<never> {
    const { dueMs } = this.entry.delivery;
    return startedJob(this.#executor.queue.name, { life: this.#life, record, dueMs });
  }

  /** The call of the handler begins, or that of its batch. */
  #tellBegun(job: Job<never>): void {
    const { serverOf, events } = this.#executor.services;
    const { name: queue } = this.#executor.queue;
    const { ref, delivery } = this.entry;
    const lateMs = Math.max(0, serverOf(ref).nowMs(this.#startedMs) - delivery.dueMs);
    this.#span = beginStart(job, lateMs);
    const { id, name, attempt } = job;
    toldIn(this.#span, events).emit('job.started', { queue, id, name, attempt, lateMs });
  }

  joined(): AbortReason | undefined {
    const { reason } = this.#lazyAbort;
    if (reason !== undefined) return reason;
    this.#isGathered = true;
    this.#disarm?.();
    this.#disarm = undefined;
    return undefined;
  }

  get handled(): HandledJob {
    return { record: this.verdict.record, life: this.#life };
  }

  called(together: Together): number {
    const { clock } = this.#executor.services;
    this.#together = together;
    this.#told = undefined;
    this.#isGathered = false;
    this.#startedMs = clock.monotonicMs();
    this.#tellBegun(this.#jobOf(this.verdict.record));
    this.#armTimer();
    return clock.wallMs() + this.verdict.timeoutMs;
  }

  #contextOf(job: Job<never>): JobContext {
    const { clock, log, calls, serverOf } = this.#executor.services;
    const { timeoutMs, completesFirst } = this.verdict;
    return new JobContext({
      job,
      ref: this.entry.ref,
      set: this.verdict.record.set,
      lazyAbort: this.#lazyAbort,
      token: this.#life.started.token,
      deadlineMs: this.#startedMs + timeoutMs,
      clock,
      log,
      calls,
      serverOf,
      queue: this.#executor.queue,
      effects: completesFirst ? undefined : this.#effects,
      reporter: completesFirst ? undefined : this,
    });
  }

  /** What is still to come can take too long; what has returned cannot. */
  #wait(pending: PromiseLike<unknown>): void {
    pending.then(
      (value: unknown) => this.#handlerEnded(this.#returned(value)),
      (thrown: unknown) => this.#handlerThrew(thrown),
    );
    // The time of a job in a batch begins with the call of the batch, which may have come already.
    if (!this.#isGathered && this.#disarm === undefined) this.#armTimer();
  }

  #armTimer(): void {
    this.#disarm = this.#executor.services.clock.timer(this.verdict.timeoutMs, () => this.#timeIsUp());
  }

  /**
   * The outcome of the attempt is decided now, and nothing that the handler still says counts. Redis is told of it when the
   * handler has ended: until then the job keeps its place in a limit, its schedule waits for it, and it is not tried again. A
   * handler that ignores its signal has `abortGrace` for that. It keeps its slot until it ends, so that it shows as a missing
   * slot rather than as unbounded concurrency.
   */
  #timeIsUp(): void {
    const { inFlight, slots, log } = this.#executor.services;
    const { timeoutMs, completesFirst } = this.verdict;
    const { id } = idOf(this.#life.member);
    this.#lazyAbort.abort('timeout');
    inFlight.overtaken(this.entry);
    this.#effects.close();
    const ending: Ending = { kind: 'threw', thrown: timedOut(timeoutMs), aborted: this.#lazyAbort.reason };
    // @waits-for-its-handler
    this.#late = completesFirst ? undefined : ending;
    this.#disarm = slots.watch(this.entry, id, () => this.#giveUpWaiting());
    inside(this.#span, () => log.warn({ job: id, timeoutMs }, 'job timed out; its abort signal fired'));
    if (!this.#late) this.#end(ending);
  }

  /** The outcome waits no longer for a handler that goes on: the place of the job is free, and it may start once more. */
  #giveUpWaiting(): void {
    const { clock, events } = this.#executor.services;
    const late = this.#late;
    if (!late) return;
    this.#late = undefined;
    const { name } = this.verdict.record;
    const { id } = idOf(this.#life.member);
    const tookMs = clock.monotonicMs() - this.#startedMs;
    toldIn(this.#span, events).emit('job.overran', { queue: this.#executor.queue.name, id, name, tookMs });
    this.#end(late);
  }

  /** Told from outside: cancelled, lease lost, shutdown. */
  abort(why: AbortReason): void {
    const { inFlight } = this.#executor.services;
    this.#lazyAbort.abort(why);
    if (this.#isGathered) this.#executor.gatheringFor(this.verdict.record.name)?.leave(this, why);
    if (why !== 'shutdown') return;
    // After this the worker is gone: a time-out would only keep its process alive, and nothing can wait for a handler.
    this.#disarm?.();
    if (!this.#late) return;
    inFlight.slotLost(this.entry);
    this.#giveUpWaiting();
  }

  /** How far the handler is. What has no lease any more is nobody's word, nor what is said after the outcome is decided. */
  report({ fraction, text, atMs }: JobProgress): void {
    const { reason } = this.#lazyAbort;
    if (!isLeased(this.entry) || reason === 'lease lost' || reason === 'timeout') return;
    this.#told ??= redactorOf(this.#rulings());
    const told = text === undefined ? undefined : this.#told(text);
    this.unsent = encodeProgress({ fraction, text: told, atMs }, this.#life.started.attempts);
    this.#executor.services.reported();
  }

  /** A line of its log. Its lease counts, not its time: a handler that was told to stop says where it stopped. */
  say(text: string, fields: LogFields | undefined): void {
    if (!isLeased(this.entry) || this.#lazyAbort.reason === 'lease lost') return;
    this.#told ??= redactorOf(this.#rulings());
    const { redact } = this.#executor.rulesFor(this.entry);
    const line = { atMs: this.#executor.nowMs(this.entry), attempt: this.#life.started.attempts, text, fields };
    this.book ??= new LogBook(tagsInNote(this.record));
    this.book.add(encodeLogLine(line, { told: this.#told, redact }));
  }

  /** How many turns of a rate it has used. Redis is told at once, as others wait for them. */
  async spend(turns: number): Promise<boolean> {
    if (!isLeased(this.entry) || this.#lazyAbort.reason === 'lease lost') return false;
    const { jobs, clock } = this.#executor.services;
    this.#spendings += 1;
    const spending = { ...claimOf(this.entry), nth: this.#spendings, turns };
    return counts({ jobs, clock }, this.entry.ref, spending);
  }

  sent(line: string): void {
    if (this.unsent === line) this.unsent = undefined;
  }

  /** What the handler returned is held only where it is kept. */
  #returned(value: unknown): Ending {
    const isKept = value !== undefined && this.#executor.keepsResult(this.entry);
    return isKept ? { kind: 'returned', value } : RETURNED;
  }

  #handlerThrew(thrown: unknown): void {
    this.#handlerEnded({ kind: 'threw', thrown, aborted: this.#lazyAbort.reason });
  }

  #handlerEnded(ending: Ending): void {
    const { inFlight, slots } = this.#executor.services;
    const { state } = this.entry;
    this.#disarm?.();
    inFlight.handlerEnded(this.entry);
    const late = this.#late;
    this.#late = undefined;
    if (state.phase !== 'overtaken') this.#end(ending);
    else if (late) this.#end(late);
    else if (state.slotLost) slots.tell(idOf(this.#life.member).id);
  }

  /** The attempt has its outcome. */
  #end(ending: Ending): void {
    this.#guarded(() => this.#acknowledge(ending));
  }

  #acknowledge(ending: Ending): void {
    const { acknowledger, clock } = this.#executor.services;
    const returned = ending.kind === 'returned' ? ending.value : undefined;
    const attempt = this.#attempt(clock.monotonicMs() - this.#startedMs, returned);
    const effects = this.#closedEffects();
    const judged = endVerdict(ending, this.#rulings());
    if (judged.kind === 'told') acknowledger.tellEarlyEnd(attempt, judged.error);
    else if (judged.outcome.kind !== 'done') acknowledger.nack(attempt, judged.outcome);
    else if (effects.length === 0) acknowledger.complete(attempt);
    else acknowledger.commit(attempt, { effects, otherwise: (thrown) => judgeRefused(thrown, this.#rulings()) });
  }

  #closedEffects(): ReturnType<Effects['close']> {
    const asked = this.#effects.close();
    const { jobs } = this.#effects;
    return jobs ? [...asked, ...effectsOf(this.entry.ref.keys, jobs)] : asked;
  }

  /** The attempt, once it is over or completed early. */
  #attempt(tookMs?: number, returned?: unknown): EndedAttempt {
    const { entry, verdict, record } = this;
    const { name } = verdict.record;
    const span = this.#span;
    if (!keepsHistory(entry.ref)) return { entry, name, record, tookMs: tookMs ?? 0, run: this, span };
    const { serverOf } = this.#executor.services;
    const startedMs = Math.round(serverOf(entry.ref).nowMs(tookMs === undefined ? undefined : this.#startedMs));
    const note = noteOf(entry, { name, record, startedMs, tookMs, account: this.account() }, returned);
    return { entry, name, record, tookMs: tookMs ?? 0, run: this, span, note };
  }

  #rulings(): EndParts<Handler<never>> {
    const { random } = this.#executor.services;
    const { record } = this.verdict;
    const rules = this.#executor.rulesFor(this.entry);
    const nowMs = this.#executor.nowMs(this.entry);
    return { life: this.#life, record, rules, nowMs, random, together: this.#together };
  }
}

const RETURNED: Ending = { kind: 'returned' };

/** For a job that was late in line by so much it is asked what held it. */
const LATE_MS = 1000;

/** A worker knows the clock of Redis better than to so many ms. */
const CLOCK_SET_MS = 1000;

/** Tokens only grow: one that is ahead of the clock of Redis was made after that clock was set back. */
const isClockSet = ({ token }: { readonly token: string }, nowMs: number): boolean =>
  tokenMs(token) - nowMs > CLOCK_SET_MS;

function noteOf({ ref: { history } }: InFlightEntry, note: Note, returned?: unknown): string | undefined {
  return history?.isOn ? encodeNote(note, returned, history) : undefined;
}

/** What the promise settles to, or the error of a time-out when its time is up. */
async function within<T>(
  promise: Promise<T>,
  { clock, timeoutMs }: { readonly clock: Clock; readonly timeoutMs: number },
): Promise<T> {
  let callOff: (() => void) | undefined;
  const tooLate = new Promise<never>((_, reject) => {
    callOff = clock.timer(timeoutMs, () => reject(timedOut(timeoutMs)));
  });
  return Promise.race([promise, tooLate]).finally(() => callOff?.());
}

const FRESH_MS = 1000;

/**
 * Whether Redis was at its memory limit a moment ago. Every job asks: nobody waits for the answer, and one question to Redis a
 * second is enough.
 */
class PressureWatch {
  readonly #ask: (ref: PartitionRef) => Promise<boolean>;
  readonly #clock: Clock;
  #isFull = false;
  #askedMs = Number.NEGATIVE_INFINITY;

  constructor(ask: (ref: PartitionRef) => Promise<boolean>, clock: Clock) {
    this.#ask = ask;
    this.#clock = clock;
  }

  isFull(ref: PartitionRef): boolean {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#askedMs >= FRESH_MS) {
      this.#askedMs = nowMs;
      void this.#ask(ref).then((answer) => {
        this.#isFull = answer;
      });
    }
    return this.#isFull;
  }
}
