/**
 * Outcome → complete, retry, defer or bury. Completions of one event-loop turn travel in one call per partition: an
 * acknowledgement per job would halve the drain. A settle is repeated until Redis answers, because nothing else may
 * run the job meanwhile and every repetition is the same call; it is given up only when the worker stops.
 */
import type { Clock } from '../core/clock.ts';
import { encodeAttempted, idOf } from '../core/codec.ts';
import { DuestreamError, messageOf, oneLine } from '../core/errors.ts';
import type { Emitter } from '../core/events.ts';
import { type Attempted, type Outcome, Unrecoverable } from '../core/outcome.ts';
import { outageOf, withRetry } from '../redis/connection/outage.ts';
import type { PartitionRef } from '../redis/keys.ts';
import type { Jobs } from '../redis/transitions/jobs.ts';
import type { CommitReply, Effect, SettleReply } from '../redis/transitions/replies.ts';
import { claimOf, type Held, type Inflight } from './inflight.ts';

export interface SettleParts {
  readonly jobs: Jobs;
  readonly inflight: Inflight;
  readonly windowMs: number;
  /** Whether Redis is at its memory limit: then errors are stored short. */
  readonly isFull: (ref: PartitionRef) => Promise<boolean>;
  readonly clock: Clock;
  readonly events: Emitter;
  /** Ends the repetitions when the worker gives up at last. */
  readonly signal: AbortSignal;
}

/** What the event needs to know about the job. */
export interface Ended {
  readonly held: Held;
  readonly name: string;
  readonly tookMs: number;
}

/** Effects that travel with a completion, and what the start gets if Redis refuses them. */
export interface Commitment {
  readonly effects: readonly Effect[];
  readonly otherwise: (thrown: unknown) => Outcome;
}

export interface Settle {
  /** The outcome of a start. The entry leaves the in-flight map when Redis has answered and the handler has ended. */
  readonly settle: (ended: Ended, outcome: Outcome, commitment?: Commitment) => void;
  /**
   * Completes a job before its handler; `run` is called if this start is the one that completed it. Until Redis has
   * answered, the entry stays pending as the proof of it, so that the same call is recognised however late it is repeated.
   */
  readonly acknowledge: (ended: Ended, run: () => void) => void;
  /** The end of a handler whose job was acknowledged before: told, and nothing else. */
  readonly tellOnce: (ended: Ended, error: Attempted | undefined) => void;
}

type Unhappy = Exclude<Outcome, { kind: 'done' }>;

/** Most completions per call: Redis serves nobody else meanwhile, and frees a record for each. */
const BATCH_MAX = 100;
/** What is kept of an error's message under memory pressure. */
const SHORT_CHARS = 80;

export function createSettle({ jobs, inflight, windowMs, isFull, clock, events, signal }: SettleParts): Settle {
  let waiting = new Map<PartitionRef, Batches>();
  let flushing = false;

  function complete(ended: Waiting): void {
    const { ref } = ended.held;
    const batches = waiting.get(ref) ?? { ends: [], acknowledgements: [] };
    if (!waiting.has(ref)) waiting.set(ref, batches);
    (ended.run ? batches.acknowledgements : batches.ends).push(ended);
    if (flushing) return;
    flushing = true;
    setImmediate(flush);
  }

  function flush(): void {
    const batches = waiting;
    waiting = new Map();
    flushing = false;
    for (const [ref, { ends, acknowledgements }] of batches) {
      sendAll(ref, ends, false);
      sendAll(ref, acknowledgements, true);
    }
  }

  function sendAll(ref: PartitionRef, all: readonly Waiting[], hold: boolean): void {
    for (let from = 0; from < all.length; from += BATCH_MAX) void send(ref, all.slice(from, from + BATCH_MAX), hold);
  }

  async function send(ref: PartitionRef, batch: readonly Waiting[], hold: boolean): Promise<void> {
    const claims = batch.map(({ held }) => claimOf(held));
    const replies = await persist('complete', () => jobs.complete(ref, claims, { windowMs, hold }));
    for (const [index, ended] of batch.entries()) {
      const reply = replies?.[index];
      if (ended.run) {
        acknowledged(ended, ended.run, reply);
        continue;
      }
      if (ended.held.acknowledged) {
        letGo(ended.held);
        continue;
      }
      if (isMine(reply)) events.emit('job.completed', { ...named(ended), tookMs: ended.tookMs });
      conclude(ended, 'complete', reply);
    }
  }

  function acknowledged(ended: Waiting, run: () => void, reply: SettleReply | undefined): void {
    if (isMine(reply)) {
      ended.held.acknowledged = ended.held.proven = true;
      complete({ held: ended.held, name: ended.name, tookMs: 0 });
      run();
    } else conclude(ended, 'complete', reply);
  }

  /** Its entry is gone from Redis, or is left there for others to drop. */
  function letGo(held: Held): void {
    held.proven = false;
    if (held.told) forget(held);
  }

  function forget(held: Held): void {
    held.settled = true;
    if (!held.overtaken) inflight.remove(held);
  }

  async function sendCommit(ended: Ended, { effects, otherwise }: Commitment): Promise<void> {
    const { ref } = ended.held;
    const claim = claimOf(ended.held);
    let refusal: unknown;
    const reply = await withRetry('commit', () => jobs.commit(ref, claim, { windowMs, effects }).catch(refused), {
      ...{ clock, budgetMs: Number.POSITIVE_INFINITY, signal },
    }).catch((error: unknown) => {
      refusal = error;
      return undefined;
    });
    if (refusal !== undefined && !signal.aborted) {
      api.settle(ended, otherwise(refusal));
      return;
    }
    if (isMine(reply)) events.emit('job.completed', { ...named(ended), tookMs: ended.tookMs });
    const outcome = reply?.startsWith('half ') && otherwise(new Unrecoverable(reply.replace('half ', 'command ')));
    if (outcome && outcome.kind === 'dead') tell(ended, { ...outcome, reason: 'half-committed' });
    conclude(ended, 'commit', reply);
  }

  async function sendOne(ended: Ended, outcome: Unhappy): Promise<void> {
    const verb = outcome.kind === 'dead' ? 'bury' : outcome.kind;
    const error = outcome.kind === 'defer' ? '' : await errorLine(ended.held.ref, outcome.error);
    const reply = await persist(verb, () => call(ended.held, outcome, error));
    if (reply === 'ok') tell(ended, outcome);
    conclude(ended, verb, reply);
  }

  /** Decided once, so that every repetition is the same call. */
  async function errorLine(ref: PartitionRef, error: Attempted): Promise<string> {
    const whole = error.message.length <= SHORT_CHARS || !(await isFull(ref));
    return encodeAttempted(whole ? error : { ...error, message: oneLine(error.message, SHORT_CHARS) });
  }

  function call(held: Held, outcome: Unhappy, error: string): Promise<SettleReply> {
    const claim = claimOf(held);
    switch (outcome.kind) {
      case 'retry':
        return jobs.retry(held.ref, claim, { windowMs, delayMs: outcome.delayMs, error });
      case 'defer':
        return jobs.defer(held.ref, claim, { windowMs, delayMs: outcome.delayMs });
      case 'dead':
        return jobs.bury(held.ref, claim, { ...outcome, windowMs, error });
    }
  }

  function tell(ended: Ended, outcome: Unhappy): void {
    const base = { ...named(ended), tookMs: ended.tookMs };
    if (outcome.kind === 'retry') {
      events.emit('job.retried', { ...base, delayMs: outcome.delayMs, error: outcome.error });
    } else if (outcome.kind === 'defer') {
      events.emit('job.deferred', { ...base, delayMs: outcome.delayMs });
    } else {
      events.emit('job.dead', { ...base, reason: outcome.reason, error: outcome.error });
    }
  }

  function conclude(ended: Ended, verb: string, reply: CommitReply | undefined): void {
    if (reply === 'cancelled') events.emit('job.cancelled', named(ended));
    if (reply === 'fenced' || reply === 'gone') {
      const { queue, id } = named(ended);
      events.emit('job.fenced', { queue, id, verb, reply });
    }
    forget(ended.held);
  }

  async function persist<T>(what: string, send: () => Promise<T>): Promise<T | undefined> {
    try {
      // The handler has run: also what Redis refuses is repeated, because the only other way is to run it once more.
      return await withRetry(what, send, { clock, budgetMs: Number.POSITIVE_INFINITY, signal, insist: true });
    } catch {
      // The worker stops. The entry stays pending in Redis and is recovered from there.
      return undefined;
    }
  }

  const api: Settle = {
    settle(ended, outcome, commitment) {
      if (!ended.held.overtaken) inflight.setPhase(ended.held, 'settling');
      if (outcome.kind !== 'done') void sendOne(ended, outcome);
      else if (commitment) void sendCommit(ended, commitment);
      else complete(ended);
    },
    acknowledge(ended, run) {
      complete({ ...ended, run });
    },
    tellOnce(ended, error) {
      const base = { ...named(ended), tookMs: ended.tookMs };
      if (error) events.emit('job.failed', { ...base, error });
      else events.emit('job.completed', base);
      const { held } = ended;
      held.told = true;
      if (!held.proven) forget(held);
      else if (!held.overtaken) inflight.setPhase(held, 'settling');
    },
  };
  return api;
}

/** What waits for the next flush. Acknowledgements hold their entries, and travel in calls of their own. */
interface Batches {
  readonly ends: Waiting[];
  readonly acknowledgements: Waiting[];
}

/** With `run` the handler is still to come. */
interface Waiting extends Ended {
  readonly run?: () => void;
}

/** `already` is this very call repeated: the script answers it for a job that this token completed, and no other. */
const isMine = (reply: CommitReply | undefined) => reply === 'ok' || reply === 'already';

/** An effect that Redis refuses is the handler's error, not an outage: repeating it would be refused again. */
function refused(error: unknown): never {
  const kind = outageOf(error);
  const answered = error instanceof Error && error.name === 'ReplyError';
  // Of what the script itself does nothing needs a group, so NOGROUP comes from an effect as well.
  if (!answered || (kind !== 'unknown' && kind !== 'fatal' && kind !== 'no-group')) throw error;
  throw new DuestreamError('refused', `commit was refused: ${oneLine(messageOf(error), 300)}`, { cause: error });
}

function named({ held, name }: Ended): { readonly queue: string; readonly id: string; readonly name: string } {
  return { queue: held.ref.queue, id: idOf(held.delivery.member).id, name };
}
