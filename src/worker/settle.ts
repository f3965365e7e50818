/**
 * Outcome → complete, retry, defer or bury. Completions of one event-loop turn travel in one call per partition: an
 * acknowledgement per job would halve the drain. A settle is repeated until Redis answers, because nothing else may
 * run the job meanwhile and every repetition is the same call; it is given up only when the worker stops.
 */
import type { Clock } from '../core/clock.ts';
import { encodeAttempted, idOf } from '../core/codec.ts';
import type { Emitter } from '../core/events.ts';
import type { Outcome } from '../core/outcome.ts';
import type { Jobs } from '../redis/jobs.ts';
import type { PartitionRef } from '../redis/keys.ts';
import type { SettleReply } from '../redis/replies.ts';
import { withRetry } from '../redis/weather.ts';
import { claimOf, type Held, type Inflight } from './inflight.ts';

export interface SettleParts {
  readonly jobs: Jobs;
  readonly inflight: Inflight;
  readonly windowMs: number;
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

/** The outcome of a start. The entry leaves the in-flight map when Redis has answered and the handler has ended. */
export type Settle = (ended: Ended, outcome: Outcome) => void;

type Unhappy = Exclude<Outcome, { kind: 'done' }>;

/** Most completions per call: a call of 200 takes Redis about a millisecond. */
const BATCH_MAX = 200;

export function createSettle({ jobs, inflight, windowMs, clock, events, signal }: SettleParts): Settle {
  let waiting = new Map<PartitionRef, Ended[]>();
  let flushing = false;

  function complete(ended: Ended): void {
    const batch = waiting.get(ended.held.ref);
    if (batch) batch.push(ended);
    else waiting.set(ended.held.ref, [ended]);
    if (flushing) return;
    flushing = true;
    setImmediate(flush);
  }

  function flush(): void {
    const batches = waiting;
    waiting = new Map();
    flushing = false;
    for (const [ref, batch] of batches) {
      for (let from = 0; from < batch.length; from += BATCH_MAX) void send(ref, batch.slice(from, from + BATCH_MAX));
    }
  }

  async function send(ref: PartitionRef, batch: readonly Ended[]): Promise<void> {
    const claims = batch.map(({ held }) => claimOf(held));
    const replies = await persist('complete', () => jobs.complete(ref, claims, { windowMs }));
    for (const [index, ended] of batch.entries()) {
      const reply = replies?.[index];
      if (reply === 'ok') events.emit('job.completed', { ...named(ended), tookMs: ended.tookMs });
      conclude(ended, 'complete', reply);
    }
  }

  async function sendOne(ended: Ended, outcome: Unhappy): Promise<void> {
    const verb = outcome.kind === 'dead' ? 'bury' : outcome.kind;
    const reply = await persist(verb, () => call(ended.held, outcome));
    if (reply === 'ok') tell(ended, outcome);
    conclude(ended, verb, reply);
  }

  function call(held: Held, outcome: Unhappy): Promise<SettleReply> {
    const claim = claimOf(held);
    switch (outcome.kind) {
      case 'retry':
        return jobs.retry(held.ref, claim, {
          windowMs,
          delayMs: outcome.delayMs,
          error: encodeAttempted(outcome.error),
        });
      case 'defer':
        return jobs.defer(held.ref, claim, { windowMs, delayMs: outcome.delayMs });
      case 'dead':
        return jobs.bury(held.ref, claim, { windowMs, reason: outcome.reason, error: encodeAttempted(outcome.error) });
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

  function conclude(ended: Ended, verb: string, reply: SettleReply | undefined): void {
    if (reply === 'cancelled') events.emit('job.cancelled', named(ended));
    if (reply === 'fenced' || reply === 'gone') {
      const { queue, id } = named(ended);
      events.emit('job.fenced', { queue, id, verb, reply });
    }
    ended.held.settled = true;
    if (!ended.held.overtaken) inflight.remove(ended.held);
  }

  async function persist<T>(what: string, send: () => Promise<T>): Promise<T | undefined> {
    try {
      return await withRetry(what, send, { clock, budgetMs: Number.POSITIVE_INFINITY, signal });
    } catch {
      // The worker stops, or Redis refuses for good. The entry stays pending in Redis and is recovered from there.
      return undefined;
    }
  }

  return (ended, outcome) => {
    if (!ended.held.overtaken) inflight.setPhase(ended.held, 'settling');
    if (outcome.kind === 'done') complete(ended);
    else void sendOne(ended, outcome);
  };
}

function named({ held, name }: Ended): { readonly queue: string; readonly id: string; readonly name: string } {
  return { queue: held.ref.queue, id: idOf(held.delivery.member).id, name };
}
