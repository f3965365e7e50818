/**
 * Outcome → complete, retry, defer or bury. Each is repeated until Redis answers (`conclude.ts`), and given up only when
 * the worker stops, or when our own code throws at it: then `faults.ts` ends the job.
 */
import { encodeAttempted, encodeDeferral } from '../../job/codec.ts';
import { type Attempted, type Outcome, Unrecoverable } from '../../job/outcome.ts';
import { DuestreamError, oneLine } from '../../kernel/errors.ts';
import { reasonOf } from '../../kernel/reason.ts';
import { outageOf, withRetry } from '../../redis/connection/outage.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import type { Jobs } from '../../redis/scripts/jobs.ts';
import type { Effect, SettleReply } from '../../redis/scripts/replies.ts';
import type { Turns } from '../fetch/turns.ts';
import type { Completions, CompletionsParts } from './completions.ts';
import { conclude, type Ended, isMine, named, persist, tellCompleted, tellUnhappy, type Unhappy } from './conclude.ts';
import type { Faults } from './faults.ts';
import { claimOf } from './in-flight.ts';

export interface SettleParts extends CompletionsParts {
  readonly jobs: Jobs;
  readonly faults: Faults;
  readonly completions: Pick<Completions, 'acknowledge'>;
  readonly turns: Pick<Turns, 'complete'>;
  /** Whether Redis is at its memory limit: then errors are stored short. */
  readonly isFull: (ref: PartitionRef) => Promise<boolean>;
}

/** Effects that travel with a completion, and what the start gets if Redis refuses them. */
export interface Commitment {
  readonly effects: readonly Effect[];
  readonly otherwise: (thrown: unknown) => Outcome;
}

export interface Settle {
  /** The outcome of a start. */
  readonly settle: (ended: Ended, outcome: Outcome) => void;
  /** Completes a job together with its effects, or settles what is otherwise its outcome. */
  readonly commit: (ended: Ended, commitment: Commitment) => void;
  /** Completes a job before its handler; `run` is called if this start is the one that completed it. */
  readonly acknowledge: (ended: Ended, run: () => void) => void;
  /** The end of a handler whose job was acknowledged before: told, and nothing else. */
  readonly tellOnce: (ended: Ended, error: Attempted | undefined) => void;
}

/** What is kept of an error's message under memory pressure. */
const SHORT_CHARS = 80;

export function createSettle(parts: SettleParts): Settle {
  return {
    settle: (ended, outcome) => settle(parts, ended, outcome),
    commit: (ended, commitment) => void commit(parts, ended, commitment).catch(faultAt(parts, ended)),
    acknowledge: (ended, run) => parts.completions.acknowledge(ended, run, parts.turns.complete),
    tellOnce(ended, error) {
      if (error) parts.events.emit('job.failed', { ...named(ended), tookMs: ended.tookMs, error });
      else tellCompleted(parts, ended);
    },
  };
}

function settle(parts: SettleParts, ended: Ended, outcome: Outcome): void {
  if (outcome.kind === 'done') parts.turns.complete(ended);
  else void sendOne(parts, ended, outcome).catch(faultAt(parts, ended));
}

const faultAt =
  ({ faults }: SettleParts, { held, name }: Ended) =>
  (thrown: unknown) =>
    faults.caught(held, thrown, { name });

async function sendOne(parts: SettleParts, ended: Ended, outcome: Unhappy): Promise<void> {
  const verb = outcome.kind === 'dead' ? 'bury' : outcome.kind;
  const line = await lineOf(parts, ended, outcome);
  let isOwn = false;
  const reply = await persist(parts, verb, async (mayHaveRun) => {
    const said = await call(parts, ended, { outcome, line });
    // A first call is `already` where somebody else has put the job back or ended it.
    isOwn = said === 'ok' || (said === 'already' && mayHaveRun);
    return said;
  });
  if (isOwn) tellUnhappy(parts, ended, outcome);
  conclude(parts, ended, verb, reply);
}

/** What is kept of its end. Decided once, so that every repetition is the same call. */
async function lineOf(parts: SettleParts, ended: Ended, outcome: Unhappy): Promise<string> {
  if (outcome.kind !== 'defer') return errorLine(parts, ended, outcome.error);
  const { deferral } = outcome;
  if (!deferral) return '';
  const isWhole = deferral.reason.length <= SHORT_CHARS || !(await parts.isFull(ended.held.ref));
  return encodeDeferral(isWhole ? deferral : { ...deferral, reason: oneLine(deferral.reason, SHORT_CHARS) });
}

async function errorLine(
  { isFull, consumer }: SettleParts,
  { held, tookMs }: Ended,
  error: Attempted,
): Promise<string> {
  const whole = (error.message.length <= SHORT_CHARS && error.stack === undefined) || !(await isFull(held.ref));
  const told = whole ? error : { ...error, message: oneLine(error.message, SHORT_CHARS), stack: undefined };
  const ran = error.kind === 'failure' || error.kind === 'timeout';
  return encodeAttempted(ran ? { ...told, worker: consumer, tookMs: Math.round(tookMs) } : told);
}

function call(
  { jobs, windowMs }: SettleParts,
  { held, note }: Ended,
  { outcome, line }: { readonly outcome: Unhappy; readonly line: string },
): Promise<SettleReply> {
  const claim = claimOf(held);
  switch (outcome.kind) {
    case 'retry':
      return jobs.retry(held.ref, claim, { windowMs, delayMs: outcome.delayMs, error: line, note });
    case 'defer':
      return jobs.defer(held.ref, claim, { windowMs, delayMs: outcome.delayMs, why: line, note });
    case 'dead':
      return jobs.bury(held.ref, claim, { ...outcome, windowMs, error: line, note });
  }
}

async function commit(parts: SettleParts, ended: Ended, { effects, otherwise }: Commitment): Promise<void> {
  const { jobs, windowMs, clock, signal } = parts;
  const { ref } = ended.held;
  const claim = claimOf(ended.held);
  let refusal: unknown;
  const reply = await withRetry(
    'commit',
    () => jobs.commit(ref, claim, { windowMs, effects, note: ended.note }).catch(refused),
    {
      clock,
      budgetMs: Number.POSITIVE_INFINITY,
      signal,
    },
  ).catch((error: unknown) => {
    refusal = error;
    return undefined;
  });
  if (refusal !== undefined && !signal.aborted) {
    settle(parts, ended, otherwise(refusal));
    return;
  }
  if (isMine(reply)) tellCompleted(parts, ended);
  const outcome = reply?.startsWith('half ') && otherwise(new Unrecoverable(reply.replace('half ', 'command ')));
  if (outcome && outcome.kind === 'dead') tellUnhappy(parts, ended, { ...outcome, reason: 'half-committed' });
  conclude(parts, ended, 'commit', reply);
}

/** An effect that Redis refuses is the handler's error, not an outage: repeating it would be refused again. */
function refused(error: unknown): never {
  const kind = outageOf(error);
  const answered = error instanceof Error && error.name === 'ReplyError';
  // Of what the script itself does nothing needs a group, so NOGROUP comes from an effect as well.
  if (!answered || (kind !== 'unknown' && kind !== 'fatal' && kind !== 'no-group')) throw error;
  throw new DuestreamError('refused', `commit was refused: ${reasonOf(error, undefined, 300)}`, { cause: error });
}
