/**
 * What becomes of a job when it is started, and when its handler has ended: the whole failure policy, top down. Pure; the
 * caller passes the clock's reading and the randomness. The worker and the test kit ask it, and nobody else decides.
 *
 *  started ──judgeStart──▶ refused: dead without its handler, whose work could not succeed
 *                └───────▶ run ──handler──▶ judgeEnd ──▶ settled: done, retry, defer or dead
 *                                               └─────▶ told: delivered at most once, it was over before its handler
 */

import { isPromise } from '../kernel/checks.ts';
import { DuestreamError, messageOf, oneLine } from '../kernel/errors.ts';
import { reasonOf, type Told } from '../kernel/reason.ts';
import { jitteredMs } from '../kernel/spread.ts';
import { type BackoffPolicy, backoffMs } from './backoff.ts';
import type { JobRecord } from './codec.ts';
import { compensationOf, type Departed, readRecord } from './compensation.ts';
import { BadData, type Content, hasContent, open } from './content.ts';
import { DEFAULT_NAME } from './job.ts';
import { type AbortReason, type Attempted, type Closing, Defer, type Nack, type Outcome, Retry } from './outcome.ts';
import type { Queue } from './queue.ts';
import { type Redaction, redactor } from './redaction.ts';
import { whyOf, wishOf } from './thrown.ts';

/** One start of one job, as Redis counts it. */
export interface Life {
  readonly member: string;
  readonly started: Departed & { readonly attempts: number; readonly failures: number };
}

/** What holds for all jobs of a queue. */
export interface Rules<Handler> {
  readonly queue: Pick<Queue, 'attempts' | 'crashes' | 'backoff' | 'timeoutMs' | 'delivery'> & Content;
  /** The handler for a name, if there is one. */
  readonly handlerOf: (name: string) => Handler | undefined;
  /** Whether anybody takes half-done work back. */
  readonly compensations: boolean;
  /** Fields whose values no message of an error may hold. */
  readonly redact?: Redaction | undefined;
  /** The worker gets the data as they are stored, and opens them itself: it runs elsewhere, in another language. */
  readonly areSealed?: boolean;
}

type Dead = Extract<Outcome, { kind: 'dead' }>;

export type StartVerdict<Handler> =
  /** Its handler is not called. */
  | { readonly kind: 'refused'; readonly name: string; readonly outcome: Dead }
  | {
      readonly kind: 'run';
      readonly record: JobRecord;
      /**
       * Where the schema or the codec of the queue takes its time: the record for the handler. It rejects with `BadData` or
       * `Defer`, which count as thrown by the handler. Of a job that is over before its handler, it must come before that.
       */
      readonly opening: Promise<JobRecord> | undefined;
      readonly handler: Handler;
      readonly timeoutMs: number;
      /**
       * Delivered at most once: it is completed first, and the handler runs only if this very start completed it. So
       * nothing is tried again, and nothing can be committed.
       */
      readonly completesFirst: boolean;
    };

/** How a handler ended. `aborted`: why it had been told to stop, if it had. */
export type Ending =
  | { readonly kind: 'returned'; readonly value?: unknown }
  | { readonly kind: 'threw'; readonly thrown: unknown; readonly aborted: AbortReason | undefined };

export type EndVerdict =
  | { readonly kind: 'settled'; readonly outcome: Outcome }
  | { readonly kind: 'told'; readonly error: Attempted | undefined };

/**
 * Budgets, then the record, then its handler. The order is the point: a record that kills whoever reads it has been
 * counted before it is parsed here.
 */
export function judgeStart<Handler>(life: Life, rules: Rules<Handler>, nowMs: number): StartVerdict<Handler> {
  const { crashes, failures, record: text } = life.started;
  const { queue, handlerOf } = rules;
  const whole = { life, rules, nowMs };
  if (crashes >= queue.crashes) {
    return refused(whole, 'crashes-exhausted', `the worker died ${timesOf(crashes)} under this job`);
  }
  const record = readable(text);
  if (typeof record === 'string') return refused(whole, 'unreadable-record', rules.redact ? UNQUOTED : record);
  const { name } = record;
  if (failures >= (record.attempts ?? queue.attempts)) {
    return refused(whole, 'attempts-exhausted', `failed ${timesOf(failures)}`, name);
  }
  const handler = handlerOf(name);
  if (!handler) return refused(whole, 'no-handler', `no handler for jobs named ${name}`, name);
  const timeoutMs = record.timeoutMs ?? queue.timeoutMs;
  const run = {
    kind: 'run' as const,
    record,
    opening: undefined,
    handler,
    timeoutMs,
    completesFirst: completesFirstIn(rules),
  };
  if (rules.areSealed || (!hasContent(queue) && record.codec === undefined)) return run;
  const opened = openedRecord(queue, record);
  if (opened instanceof BadData) {
    return refused(whole, BAD_DATA, redactorOf({ record, life, rules })(opened.message), name);
  }
  return opened instanceof Promise ? { ...run, opening: opened } : { ...run, record: opened };
}

const completesFirstIn = ({ queue }: { readonly queue: Pick<Queue, 'delivery'> }) => queue.delivery === 'at-most-once';

function refused<Handler>(
  whole: { readonly life: Life; readonly rules: Rules<Handler>; readonly nowMs: number },
  reason: string,
  message: string,
  name = DEFAULT_NAME,
): StartVerdict<Handler> {
  const error = { atMs: whole.nowMs, attempt: whole.life.started.attempts, kind: 'refused' as const, message };
  return { kind: 'refused', name, outcome: withCompensation({ kind: 'dead', reason, error }, whole) };
}

/** The parser quotes what it cannot read. */
const UNQUOTED = 'the record cannot be read, and is not quoted because its queue redacts data';

/** The record, or why it cannot be read. */
function readable(text: string): JobRecord | string {
  try {
    return readRecord(text);
  } catch (error) {
    return oneLine(messageOf(error));
  }
}

export interface EndParts<Handler> {
  readonly life: Life;
  readonly record: JobRecord;
  readonly rules: Rules<Handler>;
  readonly nowMs: number;
  /** 0 up to 1; asked only for what is jittered. */
  readonly random: () => number;
  /** Of all jobs that its handler was called with. Left out: with this one. */
  readonly together?: Together | undefined;
}

const SUCCEEDED: EndVerdict = { kind: 'settled', outcome: { kind: 'done' } };

/** The handler ended, or its time was up. */
export function judgeEnd<Handler>(ending: Ending, parts: EndParts<Handler>): EndVerdict {
  if (completesFirstIn(parts.rules)) return { kind: 'told', error: failureOf(ending, parts) };
  if (ending.kind === 'returned') return SUCCEEDED;
  return { kind: 'settled', outcome: judgeThrown(ending, parts) };
}

/** The handler threw, or its time was up. */
export function judgeThrown<Handler>(
  { thrown, aborted }: { readonly thrown: unknown; readonly aborted?: AbortReason | undefined },
  parts: EndParts<Handler>,
): Nack {
  const outcome = outcomeOf(thrown, aborted, parts);
  return outcome.kind === 'dead' ? withCompensation(outcome, parts) : outcome;
}

/**
 * Redis refused what the handler asked to be committed. When it had no memory, nothing has happened and the handler did
 * nothing wrong: the job is put aside and no failure is counted, else a Redis that is full for a while would make a
 * dead letter of every such job.
 */
export function judgeRefused<Handler>(thrown: unknown, parts: EndParts<Handler>): Nack {
  if (thrown instanceof DuestreamError && thrown.code === 'out-of-memory') {
    const deferral = {
      atMs: parts.nowMs,
      reason: 'Redis is at its memory limit and took nothing that was to be committed',
    };
    return { kind: 'defer', delayMs: Math.round(FULL_DELAY_MS * (1 + parts.random() / 4)), deferral };
  }
  return judgeThrown({ thrown }, parts);
}

/** What a handler whose time is up is taken to have thrown. */
export const timedOut = (timeoutMs: number): Error => new Error(`timed out after ${timeoutMs} ms`);

/** Jobs past their expiry are over without a start. One that was started before may have left half of its work outside. */
export function compensationOfExpired(
  { member, started }: { readonly member: string; readonly started: Departed & { readonly attempts: number } },
  nowMs: number,
): Dead['compensation'] {
  const error = { atMs: nowMs, attempt: started.attempts, kind: 'refused' as const, message: 'past its expiry' };
  return compensationOf({ member, started, reason: 'expired', error }, nowMs);
}

function outcomeOf<Handler>(
  thrown: unknown,
  aborted: AbortReason | undefined,
  { life, record, rules, nowMs, random, together }: EndParts<Handler>,
): Nack {
  // Back at once without using an attempt. If somebody else has started the job meanwhile, this is fenced, as it
  // should.
  if (aborted === 'lease lost' || aborted === 'shutdown') return { kind: 'defer', delayMs: 0 };
  const isBad = isBadData(thrown);
  const kind = isBad ? 'refused' : aborted === 'timeout' ? 'timeout' : 'failure';
  const told = redactorOf({ record, life, rules, together });
  const wish = isBad ? undefined : wishOf(thrown);
  if (wish instanceof Defer) {
    const askedMs = bounded(() => wish.delayMs);
    const reason = reasonOf(wish, told);
    const delayMs = jitteredMs(askedMs, wish.jitter, random());
    const closing = closingOf(wish, askedMs, reason);
    return { kind: 'defer', delayMs, deferral: { atMs: nowMs, reason }, ...(closing && { closing }) };
  }
  const error = { atMs: nowMs, attempt: life.started.attempts, kind, ...whyOf(thrown, told) } as const;
  if (isBad) return { kind: 'dead', reason: BAD_DATA, error };
  const isRetry = wish instanceof Retry;
  if (wish && !isRetry) return { kind: 'dead', reason: oneLine(told(messageOf(wish)), 200), error };
  const failures = life.started.failures + 1;
  const { attempts = rules.queue.attempts, backoff = rules.queue.backoff } = record;
  if (failures >= attempts) return { kind: 'dead', reason: 'attempts-exhausted', error };
  const pauseMs = delayOf(backoff, failures, random());
  return { kind: 'retry', delayMs: isRetry ? Math.max(pauseMs, askedOf(wish)) : pauseMs, error };
}

/** Of a job that is over already: what went wrong, for those who listen. */
function failureOf<Handler>(ending: Ending, parts: EndParts<Handler>): Attempted | undefined {
  if (ending.kind === 'returned') return undefined;
  const { life, nowMs } = parts;
  const { thrown, aborted } = ending;
  const kind = aborted === 'timeout' ? 'timeout' : 'failure';
  const why = whyOf(thrown, redactorOf(parts));
  const message = oneLine(aborted === undefined ? why.message : `${aborted}: ${why.message}`);
  return { atMs: nowMs, attempt: life.started.attempts, kind, ...why, message };
}

function withCompensation<Handler>(
  outcome: Dead,
  { life, rules, nowMs }: { readonly life: Life; readonly rules: Rules<Handler>; readonly nowMs: number },
): Dead {
  const { reason, error } = outcome;
  if (!rules.compensations || reason === 'unreadable-record') return outcome;
  const compensation = compensationOf({ ...life, reason, error }, nowMs);
  return compensation ? { ...outcome, compensation } : outcome;
}

/** What its queue refuses is not tried again: it would be refused again. */
const BAD_DATA = 'bad-data';

/** Longest wait a backoff function may ask for: a typing error must not park a job for a century. */
const DELAY_MAX_MS = 10 * 365 * 86_400_000;
const DELAY_OTHERWISE_MS = 10_000;
/** How long a commit waits that found Redis full, and up to a quarter more. */
const FULL_DELAY_MS = 10_000;

/** A backoff function of the user that throws or returns nonsense must not lose the job: ten seconds count then. */
const delayOf = (backoff: BackoffPolicy, failures: number, random: number): number =>
  bounded(() => backoffMs(backoff, failures, random));

/** Nothing where the field throws when it is read, or holds no time: the backoff says it then. */
function askedOf(wish: Retry): number {
  try {
    const { afterMs } = wish;
    return afterMs >= 0 ? Math.min(DELAY_MAX_MS, afterMs) : 0;
  } catch {
    return 0;
  }
}

/** Anything can stand in the field of a `Defer`, too, also a getter that throws. */
function bounded(asked: () => number): number {
  try {
    const delayMs = asked();
    return delayMs >= 0 ? Math.min(DELAY_MAX_MS, delayMs) : DELAY_OTHERWISE_MS;
  } catch {
    return DELAY_OTHERWISE_MS;
  }
}

/** What the job closes: for the whole delay, whatever its own is spread to. Nothing where the field throws when it is read. */
function closingOf(wish: Defer, forMs: number, reason: string): Closing | undefined {
  try {
    const scope: unknown = wish.close;
    return scope === 'group' || scope === 'queue' ? { scope, forMs, reason: oneLine(reason, 200) } : undefined;
  } catch {
    return undefined;
  }
}

const timesOf = (count: number) => (count === 1 ? 'once' : `${count} times`);

/** The record with its data as the handler gets it, or why the data is bad. A codec may need time, or defer the job. */
function openedRecord(queue: Content, record: JobRecord): JobRecord | Promise<JobRecord> | BadData {
  try {
    const data = open(queue, record);
    return isPromise(data) ? data.then((known) => ({ ...record, data: known })) : { ...record, data };
  } catch (thrown) {
    return thrown instanceof BadData ? thrown : Promise.reject(thrown);
  }
}

/** A handler can throw anything, also an object whose getters throw. */
function isBadData(thrown: unknown): boolean {
  try {
    return thrown instanceof BadData;
  } catch {
    return false;
  }
}

/**
 * Takes the values of redacted fields out of a text, as they were stored and as the handler got them. The message and the
 * stack of an error go into the history of its job, into dead letters and into the log; a queue that redacts data shows
 * none of it there.
 */
export function redactorOf<Handler>({
  record,
  life,
  rules: { redact },
  together = togetherOf([{ record, life }]),
}: Pick<EndParts<Handler>, 'record' | 'life' | 'rules' | 'together'>): Told {
  return (text) => together(text, redact);
}

/** A job as its handler got it. */
export type HandledJob = Pick<EndParts<unknown>, 'record' | 'life'>;

/** Takes out of a text what jobs hide that one call of a handler took: what is said of one may name another. */
export type Together = (text: string, redact: Redaction | undefined) => string;

/** The values are collected once for all of them, at the first text. */
export function togetherOf(jobs: readonly HandledJob[]): Together {
  let made: { readonly redact: Redaction; readonly told: Told } | undefined;
  return (text, redact) => {
    if (!redact) return text;
    if (made?.redact !== redact) {
      const known = jobs.flatMap(({ record, life }) => [record, ...storedIn(life.started.record)]);
      made = { redact, told: redactor(known, redact) };
    }
    return made.told(text);
  };
}

function storedIn(text: string): readonly JobRecord[] {
  try {
    return [readRecord(text)];
  } catch {
    return [];
  }
}

// The net around `judge.ts`: whatever throws while a start or an end is judged, that one job has an outcome, and nobody
// else's job hears of it. A start that cannot be judged is a dead letter with the reason `unjudged`; an end is a
// failure with its next attempt, or done where the handler returned and asked for nothing. What it says looks at
// nothing that the record or the handler brought, because that may be what threw.

/** Why a job is dead at which our own code threw. */
export const UNJUDGED = 'unjudged';

/** @returns what `judgeStart` says, or that the start is refused */
export function startVerdict<Handler>(life: Life, rules: Rules<Handler>, nowMs: number): StartVerdict<Handler> {
  try {
    return judgeStart(life, rules, nowMs);
  } catch (thrown) {
    return { kind: 'refused', name: DEFAULT_NAME, outcome: unjudgedStart(life, { rules, nowMs, thrown }) };
  }
}

/** @returns what `judgeEnd` says, or the outcome of an end that it could not judge */
export function endVerdict<Handler>(ending: Ending, parts: EndParts<Handler>): EndVerdict {
  try {
    return judgeEnd(ending, parts);
  } catch (thrown) {
    return unjudgedEnd(ending, { ...parts, thrown });
  }
}

interface Unjudged {
  readonly rules: Rules<unknown>;
  readonly nowMs: number;
  /** By our own code. */
  readonly thrown: unknown;
}

/** How long a job waits whose backoff was not asked. */
const DELAY_MS = 10_000;

function unjudgedStart(life: Life, { rules, nowMs, thrown }: Unjudged): Extract<Outcome, { kind: 'dead' }> {
  const error = errorOf('start', life, { kind: 'refused', rules, nowMs, thrown });
  return deadOf(UNJUDGED, life, { rules, error });
}

function unjudgedEnd(
  ending: Ending,
  { life, record, rules, nowMs, thrown }: Unjudged & { readonly life: Life; readonly record: JobRecord },
): EndVerdict {
  const aborted = ending.kind === 'threw' ? ending.aborted : undefined;
  const kind = aborted === 'timeout' ? 'timeout' : 'failure';
  const error = errorOf('end', life, { kind, rules, nowMs, thrown });
  if (rules.queue.delivery === 'at-most-once') return { kind: 'told', error };
  if (aborted === 'lease lost' || aborted === 'shutdown') return settled({ kind: 'defer', delayMs: 0 });
  const attempts = record.attempts ?? rules.queue.attempts;
  if (life.started.failures + 1 < attempts) return settled({ kind: 'retry', delayMs: DELAY_MS, error });
  return settled(deadOf('attempts-exhausted', life, { rules, error }));
}

const settled = (outcome: Outcome): EndVerdict => ({ kind: 'settled', outcome });

function errorOf(
  what: 'start' | 'end',
  { started }: Life,
  { kind, rules, nowMs, thrown }: Unjudged & { readonly kind: Attempted['kind'] },
): Attempted {
  return {
    atMs: nowMs,
    attempt: started.attempts,
    kind,
    message: oneLine(`duestream cannot judge this ${what}: ${ownReasonOf(thrown, rules)}`),
  };
}

/** What our own code threw, as far as it may be told: it may quote data. */
export const ownReasonOf = (thrown: unknown, { redact }: { readonly redact?: unknown }): string =>
  redact ? 'why is not quoted because its queue redacts data' : reasonOf(thrown);

function deadOf(
  reason: string,
  life: Life,
  { rules, error }: { readonly rules: Rules<unknown>; readonly error: Attempted },
): Extract<Outcome, { kind: 'dead' }> {
  try {
    const compensation = rules.compensations ? compensationOf({ ...life, reason, error }, error.atMs) : undefined;
    return { kind: 'dead', reason, error, ...(compensation && { compensation }) };
  } catch {
    return { kind: 'dead', reason, error };
  }
}
