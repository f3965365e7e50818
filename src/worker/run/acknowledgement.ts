/**
 * The acknowledgement: an attempt at a job has ended, and Redis is told its outcome.
 *
 *  done                                      ─▶ with the next call of its partition (`fetch/round-trips.ts`) ─┐
 *  done, with effects                        ─▶ `commit` ─────────────────────────────────────────────────────┤
 *  retry, defer, dead                        ─▶ `nack`   ─────────────────────────────────────────────────────┤
 *  before its handler, as it is delivered at most once ─▶ `completeEarly` ─▶ the handler begins               │
 *  our own code throws at the job            ─▶ `failed` ─▶ it is a dead letter                               │
 *                                                                                                             ▼
 *                                       Redis gives its final reply: an event tells it, and the entry is not in flight any more
 *
 * Each call is repeated until Redis answers, because nothing else may run the job meanwhile and every repetition is the same
 * call. It is given up only when the worker stops.
 *
 * A job that is delivered at most once is completed before its handler. That call leaves its entry pending, as the proof that
 * this start completed it, so that the same call is recognised however late it is repeated. Once Redis has answered, the entry
 * needs one completion more, which removes it; that one travels while the handler runs. The early completions of one turn of
 * the event loop travel in one call per partition.
 *
 * What our own code throws at one job (`Executor.execute`) ends at that job: its slot comes back, and no other job hears of it.
 * Its burial says nothing that the job or its handler brought, because that may be what threw. What our own code throws anywhere
 * else ends the process (`kernel/crash.ts`).
 */
import type { StartAccount } from '../../job/account.ts';
import { encodeAttempted, encodeDeferral, idOf } from '../../job/codec.ts';
import type { Emitter } from '../../job/events.ts';
import { DEFAULT_NAME } from '../../job/job.ts';
import { ownReasonOf, UNJUDGED } from '../../job/judge.ts';
import { type Attempted, type Closing, type Nack, Unrecoverable } from '../../job/outcome.ts';
import { endMark } from '../../job/record-header.ts';
import { type Clock, setImmediate } from '../../kernel/clock.ts';
import { crash } from '../../kernel/crash.ts';
import { DuestreamError, oneLine } from '../../kernel/errors.ts';
import type { Log } from '../../kernel/log.ts';
import { reasonOf } from '../../kernel/reason.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import { outageOf, withRetry } from '../../redis/connection/outage.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { close } from '../../redis/scripts/gates.ts';
import type { Jobs } from '../../redis/scripts/jobs.ts';
import type { CommitReply, Effect, Ended, SettleReply, StartReply } from '../../redis/scripts/replies.ts';
import { type StartSpan, toldIn } from '../../telemetry/spans.ts';
import { claimOf, type InFlight, type InFlightEntry, isCompletedEarly, isOwed } from './in-flight.ts';
import { type LogBook, sendLines } from './log-book.ts';

/** An attempt at a job that has ended. */
export interface EndedAttempt {
  readonly entry: InFlightEntry;
  readonly name: string;
  /** As Redis gave it. */
  readonly record: string;
  readonly tookMs: number;
  /** What ran; undefined where nothing did. */
  readonly run?: { readonly account: () => StartAccount | undefined; readonly book: LogBook | undefined } | undefined;
  /** Where the application traces its starts; undefined too where no handler began. */
  readonly span?: StartSpan | undefined;
  /** For the history, if the queue keeps one. */
  readonly note?: string | undefined;
}

/** A job that is done, and what Redis is told of it. */
export interface Completion {
  readonly attempt: EndedAttempt;
  readonly ended: Ended;
}

/**
 * What a run asks of the round trips that brought it, which are above it: `RoundTrips` has both. Nothing else here knows what
 * stands above.
 */
export interface NextTrip {
  /** The completion travels with the next call of its partition. */
  readonly complete: (completion: Completion) => void;
  /** Starts entries of one partition, which are in flight. Undefined: there was no reply. */
  readonly start: (ref: PartitionRef, entries: readonly InFlightEntry[]) => Promise<readonly StartReply[] | undefined>;
}

/** Effects that travel with a completion, and the outcome of the attempt if Redis refuses them. */
interface Commitment {
  readonly effects: readonly Effect[];
  readonly otherwise: (thrown: unknown) => Nack;
}

/** What is known of an attempt at which our own code threw. */
interface Known {
  readonly name?: string | undefined;
  readonly attempt?: number | undefined;
  /** The job is completed before its handler: once its entry has gone, only this says so. */
  readonly completedEarly?: boolean | undefined;
}

type Fault = Known & { readonly thrown: unknown };

interface EarlyCompletion extends Completion {
  readonly begin: () => void;
}

interface AcknowledgerParts {
  readonly inFlight: InFlight;
  readonly nextTrip: NextTrip;
  readonly jobs: Jobs;
  /** The connection of `jobs`, and all partitions of the queue. */
  readonly commands: Redis;
  readonly refs: readonly PartitionRef[];
  readonly consumer: string;
  readonly windowMs: number;
  /** Whether Redis is at its memory limit: then errors are stored short. */
  readonly isFull: (ref: PartitionRef) => Promise<boolean>;
  readonly clock: Clock;
  readonly events: Emitter;
  readonly log: Log;
  /** Ends the repetitions when the worker gives up at last. */
  readonly signal: AbortSignal;
}

/** Of an error's message, so much is kept while Redis is at its memory limit. */
const SHORT_CHARS = 80;
/** Most completions per call: Redis serves nobody else meanwhile, and frees a record for each. */
export const COMPLETIONS_MAX = 100;

export class Acknowledger {
  readonly #parts: AcknowledgerParts;
  /** Early completions that wait, by partition. With the first of them a flush is under way. */
  #early = new Map<PartitionRef, EarlyCompletion[]>();

  constructor(parts: AcknowledgerParts) {
    this.#parts = parts;
  }

  /** A job is done. */
  complete(attempt: EndedAttempt): void {
    this.#parts.nextTrip.complete(this.#completionOf(attempt));
  }

  /** What a completion addresses, and what its tombstone keeps, if there is to be one. */
  #completionOf(attempt: EndedAttempt): Completion {
    const { entry: inFlight, record, note } = attempt;
    const { entry, member, token } = claimOf(inFlight);
    // A history keeps the mark, too, where no tombstone does.
    const mark = endMark(record, note === undefined ? this.#parts.windowMs : Number.POSITIVE_INFINITY);
    return { attempt, ended: { entry, member, token, mark: note === undefined ? mark : `${mark}\n${note}` } };
  }

  /** Redis has answered for a completion; undefined when the worker gives up. */
  completed(attempt: EndedAttempt, reply: SettleReply | undefined): void {
    const { entry } = attempt;
    // Our own code failed at the entry while its completion was on its way, so nobody waits for this reply.
    if (!isOwed(entry)) return;
    // The entry is gone from Redis, or is left there for others to drop. The event comes when the handler ends.
    if (isCompletedEarly(entry)) this.#parts.inFlight.answered(entry);
    else {
      if (isMine(reply)) this.#tellCompleted(attempt);
      this.#answered(attempt, 'complete', reply);
    }
  }

  /** Completions without a reply: they are sent until there is one. */
  repeat(ref: PartitionRef, completions: readonly Completion[]): void {
    if (completions.length === 0) return;
    const answered = ({ attempt }: Completion, reply: SettleReply | undefined) => this.completed(attempt, reply);
    this.#complete(ref, completions, { hold: false, answered }).catch(crash);
  }

  /** The attempt is to be retried, put aside, or was the last one. */
  nack(attempt: EndedAttempt, nack: Nack): void {
    this.#nack(attempt, nack).catch((thrown: unknown) => this.failed(attempt.entry, thrown, attempt));
  }

  async #nack(attempt: EndedAttempt, nack: Nack): Promise<void> {
    const { kind } = nack;
    const verb = kind === 'dead' ? 'bury' : kind;
    const line = await this.#lineOf(attempt, nack);
    let isOwn = false;
    const reply = await this.#untilAnswered(verb, async (mayHaveRun) => {
      this.#sendLinesOf(attempt);
      const answer = await this.#callNack(attempt, nack, line);
      // To a first call `already` says that somebody else has put the job back or ended it.
      isOwn = answer === 'ok' || (answer === 'already' && mayHaveRun);
      return answer;
    });
    if (isOwn) this.#tellNack(attempt, nack);
    if (isOwn && nack.kind === 'defer') this.#closeOthers(attempt, nack.closing);
    this.#answered(attempt, verb, reply);
  }

  /** The script has closed its own partition. If a call fails, a job of that partition hears the same from the other side. */
  #closeOthers({ entry }: EndedAttempt, closing: Closing | undefined): void {
    const { commands, refs, log } = this.#parts;
    if (closing?.scope !== 'queue') return;
    const { forMs, reason } = closing;
    for (const ref of refs) {
      if (ref.keys.meta === entry.ref.keys.meta) continue;
      close(commands, ref, { group: '', until: { forMs }, why: reason }).catch((error: unknown) => {
        log.warn({ err: error, partition: ref.partition }, 'a partition could not be closed');
      });
    }
  }

  #callNack({ entry, note }: EndedAttempt, nack: Nack, line: string): Promise<SettleReply> {
    const { jobs, windowMs } = this.#parts;
    const claim = claimOf(entry);
    switch (nack.kind) {
      case 'retry':
        return jobs.retry(entry.ref, claim, { windowMs, delayMs: nack.delayMs, error: line, note });
      case 'defer':
        return jobs.defer(entry.ref, claim, {
          windowMs,
          delayMs: nack.delayMs,
          why: line,
          note,
          closing: nack.closing,
        });
      case 'dead':
        return jobs.bury(entry.ref, claim, { ...nack, windowMs, error: line, note });
    }
  }

  /** What is kept of the end. It is decided once, so that every repetition is the same call. */
  async #lineOf(attempt: EndedAttempt, nack: Nack): Promise<string> {
    if (nack.kind !== 'defer') return this.#errorLine(attempt, nack.error);
    const { deferral } = nack;
    if (!deferral) return '';
    const isWhole = deferral.reason.length <= SHORT_CHARS || !(await this.#parts.isFull(attempt.entry.ref));
    const reason = isWhole ? deferral.reason : oneLine(deferral.reason, SHORT_CHARS);
    const { consumer } = this.#parts;
    return encodeDeferral({ ...deferral, reason, worker: consumer, tookMs: Math.round(attempt.tookMs) });
  }

  async #errorLine({ entry, tookMs, run }: EndedAttempt, error: Attempted): Promise<string> {
    const { isFull, consumer } = this.#parts;
    const isShort = error.message.length <= SHORT_CHARS && error.stack === undefined;
    const isWhole = isShort || !(await isFull(entry.ref));
    const kept = isWhole ? error : { ...error, message: oneLine(error.message, SHORT_CHARS), stack: undefined };
    const ran = error.kind === 'failure' || error.kind === 'timeout';
    if (!ran) return encodeAttempted(kept);
    return encodeAttempted({ ...kept, worker: consumer, tookMs: Math.round(tookMs), account: run?.account() });
  }

  /** Completes a job together with its effects. */
  commit(attempt: EndedAttempt, commitment: Commitment): void {
    this.#commit(attempt, commitment).catch((thrown: unknown) => this.failed(attempt.entry, thrown, attempt));
  }

  async #commit(attempt: EndedAttempt, { effects, otherwise }: Commitment): Promise<void> {
    const { jobs, windowMs, clock, signal } = this.#parts;
    const { entry, note } = attempt;
    const claim = claimOf(entry);
    let refusal: unknown;
    const reply = await withRetry(
      'commit',
      () => {
        this.#sendLinesOf(attempt);
        return jobs.commit(entry.ref, claim, { windowMs, effects, note }).catch(refused);
      },
      { clock, budgetMs: Number.POSITIVE_INFINITY, signal },
    ).catch((error: unknown) => {
      refusal = error;
      return undefined;
    });
    if (refusal !== undefined && !signal.aborted) {
      this.nack(attempt, otherwise(refusal));
      return;
    }
    if (isMine(reply)) this.#tellCompleted(attempt);
    const outcome = reply?.startsWith('half ') && otherwise(new Unrecoverable(reply.replace('half ', 'command ')));
    if (outcome && outcome.kind === 'dead') this.#tellNack(attempt, { ...outcome, reason: 'half-committed' });
    this.#answered(attempt, 'commit', reply);
  }

  /** Completes a job before its handler; `begin` is called if this start is the one that completed it. */
  completeEarly(attempt: EndedAttempt, begin: () => void): void {
    const { ref } = attempt.entry;
    const { ended } = this.#completionOf(attempt);
    if (this.#early.size === 0) setImmediate(() => this.#flushEarly());
    const batch = this.#early.get(ref) ?? [];
    batch.push({ attempt, ended, begin });
    this.#early.set(ref, batch);
  }

  #flushEarly(): void {
    const early = this.#early;
    this.#early = new Map();
    for (const [ref, all] of early) {
      for (let from = 0; from < all.length; from += COMPLETIONS_MAX) {
        const batch = all.slice(from, from + COMPLETIONS_MAX);
        const answered = (one: EarlyCompletion, reply: SettleReply | undefined) => this.#completedEarly(one, reply);
        this.#complete(ref, batch, { hold: true, answered }).catch(crash);
      }
    }
  }

  #completedEarly({ attempt, begin }: EarlyCompletion, reply: SettleReply | undefined): void {
    if (!isMine(reply)) {
      this.#answered(attempt, 'complete', reply);
      return;
    }
    this.#parts.inFlight.completedEarly(attempt.entry);
    this.complete(attempt);
    begin();
  }

  /** The handler of a job that was completed early has ended: an event tells it, and Redis hears nothing. */
  tellEarlyEnd(attempt: EndedAttempt, error: Attempted | undefined): void {
    const { span, tookMs } = attempt;
    if (error) toldIn(span, this.#parts.events).emit('job.failed', { ...named(attempt), tookMs, error });
    else this.#tellCompleted(attempt);
    span?.end();
  }

  /** Sends completions until Redis answers. */
  async #complete<C extends Completion>(
    ref: PartitionRef,
    batch: readonly C[],
    call: { readonly hold: boolean; readonly answered: (one: C, reply: SettleReply | undefined) => void },
  ): Promise<void> {
    const { jobs, windowMs, consumer } = this.#parts;
    const { hold, answered } = call;
    const ended = batch.map((one) => one.ended);
    const send = () => {
      sendLines(
        this.#parts,
        ref,
        batch.map(({ attempt, ended: claim }) => ({ claim, book: attempt.run?.book })),
      );
      return jobs.complete(ref, ended, { windowMs, consumer, hold });
    };
    const replies = await this.#untilAnswered('complete', send);
    for (const [index, one] of batch.entries()) answered(one, replies?.[index]);
  }

  /** What the handler said and Redis does not know yet, before it hears that it has ended. */
  #sendLinesOf({ entry, run }: EndedAttempt): void {
    if (run?.book) sendLines(this.#parts, entry.ref, [{ claim: claimOf(entry), book: run.book }]);
  }

  /** Undefined: the worker gives up. @throws what our own code throws at the call again and again */
  async #untilAnswered<T>(what: string, send: (mayHaveRun: boolean) => Promise<T>): Promise<T | undefined> {
    const { clock, signal } = this.#parts;
    try {
      // The handler has run: a call that Redis refuses is repeated as well, because the only other way is to run it
      // once more.
      return await withRetry(what, send, { clock, budgetMs: Number.POSITIVE_INFINITY, signal, insist: true });
    } catch (thrown) {
      // The worker stops. The entry stays pending in Redis and is recovered from there.
      if (signal.aborted) return undefined;
      throw thrown;
    }
  }

  /** The last reply for an entry: without one the worker gave up. */
  #answered(attempt: EndedAttempt, verb: string, reply: CommitReply | undefined): void {
    const { inFlight } = this.#parts;
    const { span } = attempt;
    const events = toldIn(span, this.#parts.events);
    if (reply === 'cancelled') events.emit('job.cancelled', named(attempt));
    if (reply === 'fenced' || reply === 'gone') {
      const { queue, id } = named(attempt);
      events.emit('job.fenced', { queue, id, verb, reply });
    }
    span?.end();
    inFlight.answered(attempt.entry);
  }

  #tellCompleted({ entry, name, tookMs, span }: EndedAttempt): void {
    // No spread, as for each object that is made for each job.
    const { ref, delivery } = entry;
    const told = { queue: ref.queue, id: idOf(delivery.member).id, name, tookMs };
    toldIn(span, this.#parts.events).emit('job.completed', told);
  }

  #tellNack(attempt: EndedAttempt, nack: Nack): void {
    const events = toldIn(attempt.span, this.#parts.events);
    const base = { ...named(attempt), tookMs: attempt.tookMs };
    switch (nack.kind) {
      case 'retry':
        events.emit('job.retried', { ...base, delayMs: nack.delayMs, error: nack.error });
        break;
      case 'defer':
        events.emit('job.deferred', { ...base, delayMs: nack.delayMs, reason: nack.deferral?.reason });
        break;
      case 'dead':
        events.emit('job.dead', { ...base, reason: nack.reason, error: nack.error });
        break;
    }
  }

  /** Our own code threw at this job, whose handler has not begun or has ended, and whose start Redis has answered. */
  failed(entry: InFlightEntry, thrown: unknown, known: Known = {}): void {
    const fault = { name: known.name, attempt: known.attempt, thrown };
    const isGone = entry.state.phase === 'gone';
    if (isCompletedEarly(entry) || (isGone && known.completedEarly)) this.#tellFailed(entry, fault);
    else if (!isGone) this.#bury(entry, fault).catch(crash);
  }

  async #bury(entry: InFlightEntry, fault: Fault): Promise<void> {
    const { jobs, inFlight, windowMs, log } = this.#parts;
    const { phase } = entry.state;
    if (phase === 'started') inFlight.refused(entry);
    if (phase === 'running') inFlight.handlerEnded(entry);
    const error = this.#errorOf(entry, fault);
    const attempt = attemptOf(entry, fault);
    log.error(
      { job: named(attempt).id, error: error.message },
      'duestream failed at a job, which becomes a dead letter',
    );
    const burial = { reason: UNJUDGED, windowMs, error: encodeAttempted(error) };
    const reply = await this.#untilAnswered('bury', () => jobs.bury(entry.ref, claimOf(entry), burial));
    if (reply === 'ok') this.#tellNack(attempt, { kind: 'dead', reason: UNJUDGED, error });
    this.#answered(attempt, 'bury', reply);
  }

  /** The job was over before its handler began: only the failure is told. */
  #tellFailed(entry: InFlightEntry, fault: Fault): void {
    const { inFlight, events, log } = this.#parts;
    const error = this.#errorOf(entry, fault);
    inFlight.abandoned(entry);
    const job = named(attemptOf(entry, fault));
    log.error({ job: job.id, error: error.message }, 'duestream failed at a job that is delivered at most once');
    events.emit('job.failed', { ...job, tookMs: 0, error });
  }

  #errorOf(entry: InFlightEntry, { attempt = 0, thrown }: Fault): Attempted {
    const message = `duestream failed at this job: ${ownReasonOf(thrown, entry.ref)}`;
    return { atMs: this.#parts.clock.wallMs(), attempt, kind: 'refused', message };
  }
}

/** `already` is this very call repeated: the script answers it for a job that this token completed, and no other. */
const isMine = (reply: CommitReply | undefined): boolean => reply === 'ok' || reply === 'already';

const named = ({
  entry,
  name,
}: EndedAttempt): { readonly queue: string; readonly id: string; readonly name: string } => ({
  queue: entry.ref.queue,
  id: idOf(entry.delivery.member).id,
  name,
});

/** An effect that Redis refuses is the handler's error, not an outage: a repetition would be refused again. */
function refused(error: unknown): never {
  const kind = outageOf(error);
  const isAnswer = error instanceof Error && error.name === 'ReplyError';
  // Of what the script itself does nothing needs a group, so NOGROUP comes from an effect as well.
  if (!isAnswer || (kind !== 'unknown' && kind !== 'fatal' && kind !== 'no-group')) throw error;
  throw new DuestreamError('refused', `commit was refused: ${reasonOf(error, undefined, 300)}`, { cause: error });
}

const attemptOf = (entry: InFlightEntry, { name = DEFAULT_NAME }: Fault): EndedAttempt => ({
  entry,
  name,
  record: '',
  tookMs: 0,
});
