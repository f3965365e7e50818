/**
 * The end of a settle: Redis has answered, or the worker gives up. What came of it is told, and the entry learns of it.
 * A settle is repeated until then, because nothing else may run the job meanwhile and every repetition is the same call.
 */

import { idOf } from '../../job/codec.ts';
import type { Emitter } from '../../job/events.ts';
import type { Outcome } from '../../job/outcome.ts';
import type { Clock } from '../../kernel/clock.ts';
import { withRetry } from '../../redis/connection/outage.ts';
import type { CommitReply } from '../../redis/scripts/replies.ts';
import type { InFlight, InFlightEntry } from './in-flight.ts';

export interface ConcludeParts {
  readonly inFlight: InFlight;
  readonly clock: Clock;
  readonly events: Emitter;
  /** Ends the repetitions when the worker gives up at last. */
  readonly signal: AbortSignal;
}

/** What the event needs to know about the job. */
export interface Ended {
  readonly held: InFlightEntry;
  readonly name: string;
  /** As Redis gave it. */
  readonly record: string;
  readonly tookMs: number;
  /** For the history, if the queue keeps one. */
  readonly note?: string | undefined;
}

export type Unhappy = Exclude<Outcome, { kind: 'done' }>;

/** Undefined: the worker gives up. @throws what our own code throws at the call again and again */
export async function persist<T>(
  { clock, signal }: ConcludeParts,
  what: string,
  send: (mayHaveRun: boolean) => Promise<T>,
): Promise<T | undefined> {
  try {
    // The handler has run: also what Redis refuses is repeated, because the only other way is to run it once more.
    return await withRetry(what, send, { clock, budgetMs: Number.POSITIVE_INFINITY, signal, insist: true });
  } catch (thrown) {
    // The worker stops. The entry stays pending in Redis and is recovered from there.
    if (signal.aborted) return undefined;
    throw thrown;
  }
}

/** The last reply for an entry: without one the worker gave up. */
export function conclude({ events, inFlight }: ConcludeParts, ended: Ended, verb: string, reply?: CommitReply): void {
  if (reply === 'cancelled') events.emit('job.cancelled', named(ended));
  if (reply === 'fenced' || reply === 'gone') {
    const { queue, id } = named(ended);
    events.emit('job.fenced', { queue, id, verb, reply });
  }
  inFlight.answered(ended.held);
}

/** `already` is this very call repeated: the script answers it for a job that this token completed, and no other. */
export const isMine = (reply: CommitReply | undefined): boolean => reply === 'ok' || reply === 'already';

export function tellCompleted({ events }: ConcludeParts, ended: Ended): void {
  const { held, name, tookMs } = ended;
  // No spread, as for each object that is made for each job.
  events.emit('job.completed', { queue: held.ref.queue, id: idOf(held.delivery.member).id, name, tookMs });
}

export function tellUnhappy({ events }: ConcludeParts, ended: Ended, outcome: Unhappy): void {
  const base = { ...named(ended), tookMs: ended.tookMs };
  switch (outcome.kind) {
    case 'retry':
      events.emit('job.retried', { ...base, delayMs: outcome.delayMs, error: outcome.error });
      break;
    case 'defer':
      events.emit('job.deferred', { ...base, delayMs: outcome.delayMs, reason: outcome.deferral?.reason });
      break;
    case 'dead':
      events.emit('job.dead', { ...base, reason: outcome.reason, error: outcome.error });
      break;
  }
}

export function named({ held, name }: Ended): { readonly queue: string; readonly id: string; readonly name: string } {
  return { queue: held.ref.queue, id: idOf(held.delivery.member).id, name };
}
