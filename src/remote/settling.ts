/**
 * How runs of workers over HTTP end, and how they go on. A worker says what happened; what follows is decided here by
 * `job/judge.ts`, from what Redis has of the job, and not by the worker: attempts, backoff and budgets are those of the queue.
 *
 *  complete ─▶ `complete`          many of one partition in one call
 *  begin    ─▶ `complete`, held    at most once: it is over, and its entry stays as the proof of that
 *  fail     ─▶ judge ─▶ `retry` | `bury`
 *  defer    ─▶ `defer`
 *  beat     ─▶ `extend`, or the end of a run whose time is up
 */
import { decodeRun as decodeStart, encodeAttempted, encodeDeferral, encodeProgress, idOf } from '../job/codec.ts';
import type { Emitter } from '../job/events.ts';
import { endVerdict, type Rules, startVerdict, timedOut } from '../job/judge.ts';
import { type Attempted, type CloseScope, type Nack, Unrecoverable } from '../job/outcome.ts';
import { encodeNote } from '../job/past.ts';
import { endMark } from '../job/record-header.ts';
import { STACK_CHARS } from '../job/thrown.ts';
import type { Clock } from '../kernel/clock.ts';
import { oneLine } from '../kernel/errors.ts';
import type { Redis } from '../redis/connection/connect.ts';
import { type RetryPolicy, withRetry } from '../redis/connection/outage.ts';
import type { ServerOf } from '../redis/connection/server-clock.ts';
import { keepsHistory, type PartitionRef } from '../redis/keys.ts';
import { close } from '../redis/scripts/gates.ts';
import type { Jobs } from '../redis/scripts/jobs.ts';
import type { Ended, ExtendReply, SettleReply } from '../redis/scripts/replies.ts';
import { lifeOf, rulesIn } from './claimed-job.ts';
import type { RunHandle } from './run-handle.ts';

/** What a worker says of the turns of a rate that a run has used. */
interface Spending {
  /** How many it has really used, in all. */
  readonly spent?: number | undefined;
}

/** What a worker says of a run that is over, or about to begin. */
export type RunEnd =
  | ({ readonly end: 'complete'; readonly result?: unknown } & Spending)
  | { readonly end: 'begin' }
  | ({
      readonly end: 'fail';
      readonly error: string;
      /** The class of the error. */
      readonly kind?: string | undefined;
      readonly stack?: string | undefined;
      /** Trying again cannot help. */
      readonly fatal?: boolean | undefined;
      /** Instead of the backoff of the queue. */
      readonly retryInMs?: number | undefined;
    } & Spending)
  | ({
      readonly end: 'defer';
      readonly delayMs: number;
      readonly reason?: string | undefined;
      readonly close?: CloseScope | undefined;
    } & Spending);

/** What became of it. */
export type SettleWord = SettleReply;
/** `timeout`: its time was up, and it was ended as a failure. */
export type BeatWord = ExtendReply | 'timeout';

/** How far a run is. */
export interface Beat extends Spending {
  readonly progress?: number | undefined;
  readonly text?: string | undefined;
}

interface SettlingParts {
  readonly redis: Redis;
  readonly jobs: Jobs;
  readonly refs: () => readonly PartitionRef[];
  readonly rules: Rules<true>;
  readonly windowMs: number;
  readonly clock: Clock;
  readonly random: () => number;
  readonly serverOf: ServerOf;
  readonly events: Emitter;
}

/** A worker sends the same call again when Redis was away for longer. */
const BUDGET_MS = 3000;
/** So long after its time-out a run is ended: the worker has this time to say so itself. */
const GRACE_MS = 1000;

/** Whether it is still the run of its worker. */
const isKept = (word: BeatWord | undefined): boolean => word === 'ok' || word === 'cancel';

/** A run with what was said of it. */
export interface Said<What> {
  readonly run: RunHandle;
  readonly what: What;
}

export class Settling {
  readonly #parts: SettlingParts;

  constructor(parts: SettlingParts) {
    this.#parts = parts;
  }

  /** The partition of a run; undefined where the queue has another layout by now. */
  refOf({ partition, generation }: RunHandle): PartitionRef | undefined {
    const ref = this.#parts.refs()[partition];
    return ref?.layoutGeneration === generation ? ref : undefined;
  }

  /** One word for each. The same call again has the same words, or `already` for `ok`. */
  async settle(worker: string, all: readonly Said<RunEnd>[]): Promise<readonly SettleWord[]> {
    const words = new Map<Said<RunEnd>, SettleWord>();
    await this.spend(all);
    for (const end of ['complete', 'begin'] as const) {
      const some = all.filter(({ what }) => what.end === end);
      for (const [one, word] of await this.#completeAll(worker, some, end === 'begin')) words.set(one, word);
    }
    for (const one of all) {
      if (words.has(one)) continue;
      words.set(one, await this.#settleOne(worker, one));
    }
    return all.map((one) => words.get(one) ?? 'gone');
  }

  /** What a completion tells Redis, to go with another call. */
  async endedOf(ref: PartitionRef, { run, what }: Said<RunEnd>): Promise<Ended> {
    const { entry, member, token, mark } = run;
    if (!keepsHistory(ref)) return { entry, member, token, mark };
    const { record } = await this.#known(ref, member);
    const result = what.end === 'complete' ? what.result : undefined;
    const note = record === undefined ? undefined : this.#noteOf(ref, run, { record, result });
    const known = record === undefined ? '' : endMark(record, Number.POSITIVE_INFINITY);
    return { entry, member, token, mark: note === undefined ? known : `${known}\n${note}` };
  }

  /** Tells of a completion. */
  tellCompleted(ref: PartitionRef, run: RunHandle, word: SettleReply): void {
    const { events } = this.#parts;
    const { queue } = ref;
    const { id } = idOf(run.member);
    if (word === 'ok') events.emit('job.completed', { queue, id, name: run.name, tookMs: this.#tookMs(ref, run) });
    this.#told(ref, run, 'complete', word);
  }

  /** Extends the leases of runs, and ends those whose time is up. */
  async beat(worker: string, all: readonly Said<Beat>[]): Promise<readonly BeatWord[]> {
    const words = new Map<Said<Beat>, BeatWord>();
    for (const [ref, some] of this.#byPartition(all)) {
      const nowMs = this.#nowMs(ref);
      const late = some.filter(({ run }) => nowMs > run.startedMs + run.timeoutMs + GRACE_MS);
      for (const one of late) words.set(one, await this.#overtime(worker, ref, one.run));
      const rest = some.filter((one) => !late.includes(one));
      const claims = rest.map(({ run, what }) => ({ ...run, progress: this.#progressOf(ref, run, what) }));
      if (claims.length === 0) continue;
      const replies = await this.#call('extend', () => this.#parts.jobs.extend(ref, claims, worker));
      for (const [at, one] of rest.entries()) words.set(one, replies[at] ?? 'gone');
      await this.spend(rest.filter((one) => isKept(words.get(one))));
    }
    return all.map((one) => words.get(one) ?? 'gone');
  }

  /** A daemon knows no other word of a run than this one, so the time tells which is the later of two. To be said before its end. */
  async spend(all: readonly Said<Beat | RunEnd>[]): Promise<void> {
    for (const { run, what } of all) {
      const ref = this.refOf(run);
      const turns = 'spent' in what ? what.spent : undefined;
      if (turns === undefined || !ref) continue;
      const { entry, member, token } = run;
      const spending = { entry, member, token, nth: this.#nowMs(ref), turns };
      await this.#call('spent', () => this.#parts.jobs.spend(ref, spending));
    }
  }

  async #completeAll(worker: string, all: readonly Said<RunEnd>[], hold: boolean) {
    const { jobs, windowMs } = this.#parts;
    const words = new Map<Said<RunEnd>, SettleWord>();
    for (const [ref, some] of this.#byPartition(all)) {
      const ended = await Promise.all(some.map((one) => this.endedOf(ref, one)));
      const call = () => jobs.complete(ref, ended, { windowMs, consumer: worker, hold });
      const replies = await this.#call('complete', call);
      for (const [at, one] of some.entries()) {
        const word = replies[at] ?? 'gone';
        words.set(one, word);
        if (!hold) this.tellCompleted(ref, one.run, word);
      }
    }
    return words;
  }

  async #settleOne(worker: string, { run, what }: Said<RunEnd>): Promise<SettleWord> {
    const ref = this.refOf(run);
    if (!ref) return 'gone';
    if (what.end === 'defer') return this.#defer(worker, ref, run, what);
    if (what.end === 'fail') return this.#fail(worker, ref, run, { thrown: thrownOf(what), said: what });
    return 'gone';
  }

  async #defer(
    worker: string,
    ref: PartitionRef,
    run: RunHandle,
    { delayMs, reason = 'deferred', close: scope }: Extract<RunEnd, { end: 'defer' }>,
  ): Promise<SettleWord> {
    const { jobs, windowMs, events } = this.#parts;
    const told = ref.redact ? UNTOLD : oneLine(reason);
    const tookMs = this.#tookMs(ref, run);
    const why = encodeDeferral({ atMs: this.#nowMs(ref), reason: told, worker, tookMs });
    const closing = scope && { scope, forMs: delayMs, reason: oneLine(told, 200) };
    const note = await this.#noteFor(ref, run);
    const word = await this.#call('defer', () => jobs.defer(ref, run, { windowMs, delayMs, why, closing, note }));
    if (word === 'ok') {
      if (closing?.scope === 'queue') await this.#closeOthers(ref, closing);
      const { id } = idOf(run.member);
      events.emit('job.deferred', { queue: ref.queue, id, name: run.name, delayMs, tookMs, reason: told });
    }
    this.#told(ref, run, 'defer', word);
    return word;
  }

  /** The script has closed its own partition. */
  async #closeOthers(own: PartitionRef, { forMs, reason }: { readonly forMs: number; readonly reason: string }) {
    const { redis, refs } = this.#parts;
    const others = refs().filter((ref) => ref !== own);
    await Promise.allSettled(others.map((ref) => close(redis, ref, { group: '', until: { forMs }, why: reason })));
  }

  /** The judge needs to know how often the job has failed; Redis is the only one that knows. */
  async #fail(
    worker: string,
    ref: PartitionRef,
    run: RunHandle,
    { thrown, said, isLate = false }: { thrown: unknown; said?: Extract<RunEnd, { end: 'fail' }>; isLate?: boolean },
  ): Promise<SettleWord> {
    const { rules, random } = this.#parts;
    const { start, record } = await this.#known(ref, run.member);
    const isMine = start?.token === run.token && start.entry === run.entry;
    // Redis says what became of it.
    if (!isMine || record === undefined) return this.#refused(ref, run);
    const nowMs = this.#nowMs(ref);
    const life = lifeOf(run.member, { ...start, record });
    const own = rulesIn(rules, ref);
    const verdict = startVerdict(life, own, nowMs);
    const judging = { life, record: verdict.kind === 'run' ? verdict.record : UNREAD, rules: own, nowMs, random };
    const ending = { kind: 'threw', thrown, aborted: isLate ? 'timeout' : undefined } as const;
    const { outcome: dead } = verdict.kind === 'refused' ? verdict : { outcome: undefined };
    const judged = dead ? ({ kind: 'settled', outcome: dead } as const) : endVerdict(ending, judging);
    if (judged.kind === 'told' || judged.outcome.kind === 'done') return this.#letGo(ref, run, 'fail');
    return this.#nack(worker, ref, run, asSaid(judged.outcome, { said, isTold: ref.redact === undefined }));
  }

  /** A run that is over in Redis, or another's: the call changes nothing, and its reply says which. */
  async #refused(ref: PartitionRef, run: RunHandle): Promise<SettleWord> {
    const { jobs, windowMs } = this.#parts;
    const message = 'the record is missing';
    const error = encodeAttempted({ atMs: this.#nowMs(ref), attempt: run.attempt, kind: 'failure', message });
    const word = await this.#call('retry', () => jobs.retry(ref, run, { windowMs, delayMs: 0, error }));
    this.#told(ref, run, 'fail', word);
    return word;
  }

  /** At most once: the job was over before its handler, and is not tried again. Its entry goes. */
  async #letGo(ref: PartitionRef, run: RunHandle, verb: string): Promise<SettleWord> {
    const { jobs, windowMs } = this.#parts;
    const [word = 'gone'] = await this.#call('complete', () =>
      jobs.complete(ref, [{ ...run, mark: '' }], { windowMs }),
    );
    this.#told(ref, run, verb, word);
    return word;
  }

  async #nack(worker: string, ref: PartitionRef, run: RunHandle, nack: Nack): Promise<SettleWord> {
    const { jobs, windowMs, events } = this.#parts;
    if (nack.kind === 'defer') return this.#defer(worker, ref, run, { end: 'defer', delayMs: nack.delayMs });
    const tookMs = this.#tookMs(ref, run);
    const error = { ...nack.error, worker, tookMs };
    const settings = { windowMs, error: encodeAttempted(error), note: await this.#noteFor(ref, run) };
    const about = { queue: ref.queue, id: idOf(run.member).id, name: run.name, tookMs, error };
    if (nack.kind === 'retry') {
      const { delayMs } = nack;
      const word = await this.#call('retry', () => jobs.retry(ref, run, { ...settings, delayMs }));
      if (word === 'ok') events.emit('job.retried', { ...about, delayMs });
      this.#told(ref, run, 'fail', word);
      return word;
    }
    const { reason } = nack;
    const word = await this.#call('bury', () => jobs.bury(ref, run, { ...settings, reason }));
    if (word === 'ok') events.emit('job.dead', { ...about, reason });
    this.#told(ref, run, 'fail', word);
    return word;
  }

  /** Its worker goes on and on: the time-out is the daemon's, or a worker that beats would keep a job for ever. */
  async #overtime(worker: string, ref: PartitionRef, run: RunHandle): Promise<BeatWord> {
    const word = await this.#fail(worker, ref, run, { thrown: timedOut(run.timeoutMs), isLate: true });
    const { id } = idOf(run.member);
    if (word === 'ok') this.#parts.events.emit('runs.overtime', { queue: ref.queue, id, worker });
    if (word === 'ok') return 'timeout';
    return word === 'fenced' ? 'fenced' : word === 'cancelled' ? 'timeout' : 'gone';
  }

  #progressOf(ref: PartitionRef, { attempt }: RunHandle, { progress, text }: Beat): string | undefined {
    if (progress === undefined) return undefined;
    const told = ref.redact ? undefined : text;
    return encodeProgress({ fraction: progress, text: told, atMs: this.#nowMs(ref) }, attempt);
  }

  async #known(ref: PartitionRef, member: string) {
    const { redis } = this.#parts;
    const [start, record] = await this.#call('read', () =>
      Promise.all([redis.hget(ref.keys.runs, member), redis.hget(ref.keys.jobs, member)]),
    );
    return { start: start === null ? undefined : decodeStart(start), record: record ?? undefined };
  }

  async #noteFor(ref: PartitionRef, run: RunHandle): Promise<string | undefined> {
    if (!keepsHistory(ref)) return undefined;
    const { record } = await this.#known(ref, run.member);
    return record === undefined ? undefined : this.#noteOf(ref, run, { record, result: undefined });
  }

  #noteOf(
    ref: PartitionRef,
    run: RunHandle,
    { record, result }: { readonly record: string; readonly result: unknown },
  ) {
    if (!ref.history?.isOn) return undefined;
    const { name, startedMs } = run;
    return encodeNote({ name, record, startedMs, tookMs: this.#tookMs(ref, run) }, result, ref.history);
  }

  #told(ref: PartitionRef, run: RunHandle, verb: string, word: SettleWord): void {
    const { events } = this.#parts;
    const { queue } = ref;
    const { id } = idOf(run.member);
    if (word === 'cancelled') events.emit('job.cancelled', { queue, id, name: run.name });
    if (word === 'fenced' || word === 'gone') events.emit('job.fenced', { queue, id, verb, reply: word });
  }

  /** Runs of another layout are in none. */
  #byPartition<What>(all: readonly Said<What>[]): ReadonlyMap<PartitionRef, readonly Said<What>[]> {
    const found = new Map<PartitionRef, Said<What>[]>();
    for (const one of all) {
      const ref = this.refOf(one.run);
      if (ref) found.set(ref, [...(found.get(ref) ?? []), one]);
    }
    return found;
  }

  #nowMs(ref: PartitionRef): number {
    return Math.round(this.#parts.serverOf(ref).nowMs());
  }

  #tookMs(ref: PartitionRef, { startedMs }: RunHandle): number {
    return Math.max(0, this.#nowMs(ref) - startedMs);
  }

  #call<T>(what: string, call: () => Promise<T>): Promise<T> {
    const policy: RetryPolicy = { clock: this.#parts.clock, budgetMs: BUDGET_MS };
    return withRetry(what, call, policy);
  }
}

/** A queue that redacts data shows none of it in what handlers say, and nobody here knows what they quote. */
const UNTOLD = 'not quoted, because the queue redacts data';
/** Of a record that nobody can read: the judge is not asked about its end. */
const UNREAD = { askedDueMs: 0, name: 'default', data: undefined, bare: false };

/** What a worker elsewhere says that its handler has thrown. */
function thrownOf({ error, kind, fatal }: Extract<RunEnd, { end: 'fail' }>): Error {
  const message = oneLine(kind === undefined ? error : `${kind}: ${error}`);
  const thrown = fatal === true ? new Unrecoverable(oneLine(error)) : new Error(message);
  // It was thrown elsewhere.
  delete thrown.stack;
  return thrown;
}

/** The outcome, with the delay and the stack of the worker. */
function asSaid(
  outcome: Nack,
  { said, isTold }: { readonly said?: Extract<RunEnd, { end: 'fail' }> | undefined; readonly isTold: boolean },
): Nack {
  if (outcome.kind === 'defer') return outcome;
  const stack = isTold && said?.stack !== undefined ? said.stack.slice(0, STACK_CHARS) : undefined;
  const error: Attempted = stack === undefined ? outcome.error : { ...outcome.error, stack };
  if (outcome.kind === 'dead') return { ...outcome, error };
  return { ...outcome, error, delayMs: said?.retryInMs ?? outcome.delayMs };
}
