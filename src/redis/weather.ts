/**
 * What an error of Redis or of the network means, and the one retry layer. An error is either *definite* (the command
 * was not carried out) or *indeterminate* (it may have been); both are repeated with the **same** arguments, because
 * every script recognises its own call. Weather passes; a fatal error is a wrong set-up and is not repeated.
 *
 *  kind           means                                          what follows
 *  away           not connected, command was not sent            wait, repeat
 *  lost           time-out or reset, outcome unknown             wait, repeat the same call; else Indeterminate
 *  busy           LOADING, BUSY, TRYAGAIN, CLUSTERDOWN, …        wait, repeat
 *  readonly       the primary became a replica                   reconnect, repeat
 *  full           OOM: Redis is at maxmemory                     tell the producer at once
 *  no-group       the stream or its group vanished               heal, repeat
 *  fatal          WRONGTYPE, NOPERM, WRONGPASS, NOAUTH, CROSSSLOT tell, do not repeat
 *  unknown        anything else                                  wait at least 1 s, repeat
 */
import type { Clock } from '../core/clock.ts';
import { DuestreamError, Indeterminate, messageOf } from '../core/errors.ts';

export type Weather = 'away' | 'lost' | 'busy' | 'readonly' | 'full' | 'no-group' | 'fatal' | 'unknown';

const PREFIXES: readonly (readonly [RegExp, Weather])[] = [
  [/^(LOADING|BUSY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|NOREPLICAS|MISCONF|NOTBUSY)\b/, 'busy'],
  [/^(READONLY\b|UNBLOCKED .*(master|replica))/, 'readonly'],
  [/^OOM\b|command not allowed when used memory/, 'full'],
  [/NOGROUP|UNBLOCKED the stream key no longer exists|requires the key to exist/, 'no-group'],
  [
    /^(WRONGTYPE|CROSSSLOT|NOPERM|NOAUTH|WRONGPASS|DENIED|ERR (invalid|unknown|wrong|syntax|user_script|Error))/,
    'fatal',
  ],
  [
    /enableOfflineQueue options is false|Connection is closed|ECONNREFUSED|ENOENT|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|maxclients/,
    'away',
  ],
  [/Command timed out|ETIMEDOUT|ECONNRESET|EPIPE|max retries per request|Socket timeout|connection lost/i, 'lost'],
];

/** Which kind of weather an error is. A closed connection counts as lost unless the command surely was not sent. */
export function weatherOf(error: unknown): Weather {
  const message = messageOf(error);
  // A script's error is wrapped: "ERR WRONGTYPE … script: …" or "WRONGTYPE … script: …, on @user_script:3."
  const inner = message.replace(/^ERR (?=(WRONGTYPE|OOM|NOGROUP|READONLY|MISCONF)\b)/, '');
  if (/^Connection is closed/.test(inner)) return 'lost';
  return PREFIXES.find(([pattern]) => pattern.test(inner))?.[1] ?? 'unknown';
}

export interface RetryPolicy {
  readonly clock: Clock;
  /** Give up after this time. It must stay well within the done window. */
  readonly budgetMs: number;
  readonly signal?: AbortSignal;
  readonly random?: () => number;
  /** Called with each failure: for heal actions and for counting. */
  readonly onFailure?: (weather: Weather, error: unknown) => void | Promise<void>;
}

/**
 * Repeats the same call until it succeeds, the weather is fatal, or the budget is spent.
 *
 * @throws DuestreamError `out-of-memory` or `refused` at once, `unavailable` when it surely was not carried out,
 * `Indeterminate` when it may have been.
 */
export async function withRetry<T>(what: string, call: () => Promise<T>, policy: RetryPolicy): Promise<T> {
  const { clock, signal, random = Math.random } = policy;
  const startedMs = clock.monotonicMs();
  let unknownOutcome = false;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await call();
    } catch (error) {
      const weather = weatherOf(error);
      throwIfFinal(what, weather, error);
      unknownOutcome ||= weather === 'lost' || weather === 'unknown';
      await policy.onFailure?.(weather, error);
      const waitMs = pauseMs(weather, attempt, random());
      const spent = clock.monotonicMs() - startedMs + waitMs > policy.budgetMs;
      if (spent || !(await clock.sleep(waitMs, signal))) throw givingUp(what, unknownOutcome, error);
    }
  }
}

function throwIfFinal(what: string, weather: Weather, error: unknown): void {
  if (error instanceof DuestreamError) throw error;
  const why = messageOf(error);
  if (weather === 'fatal') throw new DuestreamError('refused', `${what}: Redis refused: ${why}`, { cause: error });
  if (weather !== 'full') return;
  throw new DuestreamError('out-of-memory', `${what}: Redis is at its memory limit and takes no new jobs: ${why}`, {
    cause: error,
  });
}

function givingUp(what: string, unknownOutcome: boolean, cause: unknown): DuestreamError {
  const why = messageOf(cause);
  return unknownOutcome
    ? new Indeterminate(`${what}: no reply from Redis (${why}); it may have been carried out: repeat the same call`, {
        cause,
      })
    : new DuestreamError('unavailable', `${what}: Redis is not available (${why}); nothing was sent`, { cause });
}

/** Exponential with jitter, 25 ms … 1 s; an unknown error waits a second, so that nothing loops hot. */
export function pauseMs(weather: Weather, attempt: number, random: number): number {
  if (weather === 'unknown') return 1000 + random * 500;
  return Math.min(1000, 25 * 2 ** Math.min(attempt, 6)) * (0.5 + random / 2);
}
