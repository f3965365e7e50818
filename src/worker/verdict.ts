/**
 * The whole failure policy, top down: what a job gets for what its handler did. Pure; the caller passes the clock's
 * reading and the randomness.
 */
import { type BackoffPolicy, backoffMs } from '../core/backoff.ts';
import { messageOf, oneLine } from '../core/errors.ts';
import { type Attempted, Defer, type Outcome, Unrecoverable } from '../core/outcome.ts';
import type { AbortReason } from './inflight.ts';

export interface Budget {
  readonly attempts: number;
  readonly backoff: BackoffPolicy;
}

export interface Attempt {
  readonly attempt: number;
  /** Failures before this start. */
  readonly failures: number;
  readonly nowMs: number;
  readonly random: number;
}

/** Longest wait a backoff function may ask for: a typing error must not park a job for a century. */
const DELAY_MAX_MS = 10 * 365 * 86_400_000;
const DELAY_OTHERWISE_MS = 10_000;
const FULL_DELAY_MS = 10_000;

/** The handler threw, or its time was up. */
export function verdict(
  thrown: unknown,
  { aborted, budget, at }: { readonly aborted: AbortReason | undefined; readonly budget: Budget; readonly at: Attempt },
): Outcome {
  // Back at once without using an attempt. If somebody else has started the job meanwhile, this is fenced, as it should.
  if (aborted === 'lease lost' || aborted === 'shutdown') return { kind: 'defer', delayMs: 0 };
  const kind = aborted === 'timeout' ? 'timeout' : 'failure';
  const error: Attempted = { atMs: at.nowMs, attempt: at.attempt, kind, message: oneLine(messageOf(thrown)) };
  const wish = wishOf(thrown);
  if (wish instanceof Defer) return { kind: 'defer', delayMs: jittered(bounded(wish.delayMs), at.random) };
  if (wish) return { kind: 'dead', reason: oneLine(messageOf(wish), 200), error };
  const failures = at.failures + 1;
  if (failures >= budget.attempts) return { kind: 'dead', reason: 'attempts-exhausted', error };
  return { kind: 'retry', delayMs: delayOf(budget.backoff, failures, at.random), error };
}

/**
 * Redis had no memory for the effects of a commit. Nothing has happened and the handler did nothing wrong, so the job is
 * put aside and no failure is counted: else a Redis that is full for a while would make a dead letter of every such job.
 */
export function putAside(random: number): Outcome {
  return { kind: 'defer', delayMs: jittered(FULL_DELAY_MS, random) };
}

/** What the handler asked for. Anything can be thrown, also an object that throws when it is looked at. */
function wishOf(thrown: unknown): Defer | Unrecoverable | undefined {
  try {
    return thrown instanceof Defer || thrown instanceof Unrecoverable ? thrown : undefined;
  } catch {
    return undefined;
  }
}

/** Several jobs that wait for one lock come back spread over a quarter of the delay, not all at once. */
function jittered(delayMs: number, random: number): number {
  return Math.round(delayMs * (1 + random / 4));
}

/** A backoff function of the user that throws or returns nonsense must not lose the job: ten seconds count then. */
function delayOf(backoff: BackoffPolicy, failures: number, random: number): number {
  try {
    return bounded(backoffMs(backoff, failures, random));
  } catch {
    return DELAY_OTHERWISE_MS;
  }
}

function bounded(delayMs: number): number {
  return delayMs >= 0 ? Math.min(DELAY_MAX_MS, delayMs) : DELAY_OTHERWISE_MS;
}
