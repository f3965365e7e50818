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

/** The handler threw, or its time was up. */
export function verdict(
  thrown: unknown,
  { aborted, budget, at }: { readonly aborted: AbortReason | undefined; readonly budget: Budget; readonly at: Attempt },
): Outcome {
  if (aborted === 'lease lost') return { kind: 'abandon' };
  if (aborted === 'shutdown') return { kind: 'defer', delayMs: 0 };
  const error: Attempted = {
    atMs: at.nowMs,
    attempt: at.attempt,
    kind: aborted === 'timeout' ? 'timeout' : 'failure',
    message: oneLine(messageOf(thrown)),
  };
  if (thrown instanceof Defer) return { kind: 'defer', delayMs: jittered(thrown.delayMs, at.random) };
  if (thrown instanceof Unrecoverable) return { kind: 'dead', reason: oneLine(thrown.message, 200), error };
  const failures = at.failures + 1;
  if (failures >= budget.attempts) return { kind: 'dead', reason: 'attempts-exhausted', error };
  return { kind: 'retry', delayMs: delayOf(budget.backoff, failures, at.random), error };
}

/** Several jobs that wait for one lock come back spread over a quarter of the delay, not all at once. */
function jittered(delayMs: number, random: number): number {
  return Math.round(delayMs * (1 + random / 4));
}

/** A backoff function of the user that throws or returns nonsense must not lose the job: ten seconds count then. */
function delayOf(backoff: BackoffPolicy, failures: number, random: number): number {
  try {
    return Math.min(DELAY_MAX_MS, backoffMs(backoff, failures, random));
  } catch {
    return 10_000;
  }
}
