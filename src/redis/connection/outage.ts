/**
 * What an error of Redis or of the network means, and the one retry layer. An error is either *definite* (the command
 * was not carried out) or *indeterminate* (it may have been); both are repeated with the **same** arguments, because
 * every script recognises its own call. Outage passes; a fatal error is a wrong set-up, which only a person can repair.
 *
 *  kind           means                                          a caller                     a service
 *  away           not connected, command was not sent            repeats, then `unavailable`  dials, goes on
 *  lost           time-out or reset, outcome unknown             repeats, then Indeterminate  dials, repeats the same call
 *  busy           LOADING, BUSY, MISCONF, CLUSTERDOWN, …         repeats, then `unavailable`  waits, repeats
 *  readonly       the primary became a replica                   repeats, then `unavailable`  dials, repeats
 *  full           OOM: Redis is at maxmemory                     is told at once              goes on: what ends a job may run
 *  no-group       the stream or its group vanished               repeats                      makes it again at 0
 *  fatal          WRONGTYPE, NOPERM, WRONGPASS, CROSSSLOT, …     is told at once              looks again every few seconds
 *  unknown        anything else                                  waits at least 1 s, repeats  waits at least 1 s, repeats
 */
import type { Clock } from '../../kernel/clock.ts';
import { DuestreamError, Indeterminate, messageOf } from '../../kernel/errors.ts';
import { reasonOf } from '../../kernel/reason.ts';
import { ConnectionError, isReply } from './connection-error.ts';

export type Outage = 'away' | 'lost' | 'busy' | 'readonly' | 'full' | 'no-group' | 'fatal' | 'unknown';

/**
 * The taxonomy: the first row whose pattern is found in the message decides. `sign` is what people know the error by;
 * `docs/reference/redis-errors.md` has a line for each, and a test for each uses the words of a real server.
 */
export const SIGNS: readonly { readonly sign: string; readonly pattern: RegExp; readonly outage: Outage }[] = [
  // Of Redis. A script's error is wrapped in some versions: "ERR WRONGTYPE … script: …, on @user_script:3."
  { sign: 'NOSCRIPT', pattern: /^NOSCRIPT\b/, outage: 'busy' },
  // Ours (`call-end.ts`): the call did nothing, and is sent again with an end of its own.
  { sign: 'LATE', pattern: /^(ERR )?LATE\b/, outage: 'busy' },
  { sign: 'LOADING', pattern: /^LOADING\b/, outage: 'busy' },
  { sign: 'BUSY', pattern: /^(BUSY\b|ERR Script killed by user)/, outage: 'busy' },
  { sign: 'MASTERDOWN', pattern: /^MASTERDOWN\b/, outage: 'busy' },
  { sign: 'NOREPLICAS', pattern: /^NOREPLICAS\b/, outage: 'busy' },
  { sign: 'MISCONF', pattern: /^(ERR )?MISCONF\b/, outage: 'busy' },
  { sign: 'CLUSTERDOWN', pattern: /^CLUSTERDOWN\b/, outage: 'busy' },
  { sign: 'TRYAGAIN', pattern: /^TRYAGAIN\b/, outage: 'busy' },
  { sign: 'ASK', pattern: /^ASK\b/, outage: 'busy' },
  { sign: 'READONLY', pattern: /^(ERR )?READONLY\b/, outage: 'readonly' },
  { sign: 'UNBLOCKED (became a replica)', pattern: /^UNBLOCKED .*(master|replica)/, outage: 'readonly' },
  { sign: 'OOM', pattern: /^(ERR )?OOM\b|command not allowed when used memory/, outage: 'full' },
  { sign: 'NOGROUP', pattern: /^(ERR )?NOGROUP\b/, outage: 'no-group' },
  { sign: 'UNBLOCKED (stream gone)', pattern: /^UNBLOCKED the stream key no longer exists/, outage: 'no-group' },
  { sign: 'XGROUP without its stream', pattern: /requires the key to exist/, outage: 'no-group' },
  { sign: 'WRONGTYPE', pattern: /^(ERR )?WRONGTYPE\b/, outage: 'fatal' },
  { sign: 'CROSSSLOT', pattern: /^CROSSSLOT\b/, outage: 'fatal' },
  { sign: 'MOVED', pattern: /^MOVED\b/, outage: 'fatal' },
  { sign: 'NOPERM', pattern: /^NOPERM\b|^ERR (The user executing the script|ACL failure)/, outage: 'fatal' },
  { sign: 'NOAUTH', pattern: /^NOAUTH\b/, outage: 'fatal' },
  { sign: 'WRONGPASS', pattern: /^WRONGPASS\b|^ERR invalid (username-)?password/, outage: 'fatal' },
  { sign: 'DENIED', pattern: /^DENIED\b/, outage: 'fatal' },
  { sign: 'too many clients', pattern: /max number of clients/, outage: 'away' },
  {
    sign: 'ERR (command or script)',
    pattern: /^ERR (invalid|unknown|wrong|syntax|user_script|Error)/i,
    outage: 'fatal',
  },
  // Of the network, in our words (`connection-error.ts`); then in those of the system and of a bare ioredis.
  { sign: 'not connected', pattern: /^not connected to Redis|enableOfflineQueue options is false/, outage: 'away' },
  { sign: 'no reply in time', pattern: /^no reply from Redis|^Command timed out|Socket timeout/, outage: 'lost' },
  {
    sign: 'connection lost',
    pattern:
      /^the connection to Redis at \S+ (was lost|is closed)|^Connection is closed|ETIMEDOUT|ECONNRESET|EPIPE|max retries per request|connection (lost|close)/i,
    outage: 'lost',
  },
  {
    sign: 'cannot connect',
    pattern: /ECONNREFUSED|ENOENT|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH/,
    outage: 'away',
  },
];

/** Which kind of outage an error is. A closed connection counts as lost unless the command surely was not sent. */
export function outageOf(error: unknown): Outage {
  // Ours carry what Redis said as their cause.
  const message = messageOf(error instanceof DuestreamError ? (error.cause ?? error) : error);
  return SIGNS.find(({ pattern }) => pattern.test(message))?.outage ?? 'unknown';
}

/** Whether neither Redis nor the network has said it: our own code threw, and will throw again. */
export function isOurs(error: unknown): boolean {
  if (error instanceof ConnectionError || error instanceof DuestreamError || isReply(error)) return false;
  return outageOf(error) === 'unknown';
}

/** Most tries of a call at which our own code throws. */
const FAULTS_MAX = 3;

export interface RetryPolicy {
  readonly clock: Clock;
  /** Give up after this time. It must stay well within the done window. */
  readonly budgetMs: number;
  readonly signal?: AbortSignal;
  readonly random?: () => number;
  /** Called with each failure: for repair actions and for counting. */
  readonly onFailure?: (outage: Outage, error: unknown) => void | Promise<void>;
  /** For what has happened already and only has to be written down: also a refusal is waited out. */
  readonly insist?: boolean;
  /** Nothing is in doubt when its reply is lost, and the error says so in these words: `nothing was changed`. */
  readonly harmless?: string;
  /** What this call is a part of. */
  readonly whole?: Whole | undefined;
}

/** Calls that are made for one. When a part was carried out, a later one cannot say that nothing was. */
export interface Whole {
  isBegun: boolean;
}

/**
 * Repeats the same call until it succeeds, the outage is fatal, or the budget is spent; what our own code throws, three
 * times at most. Each try is told whether an earlier
 * one may have been carried out, because its reply was lost. What Redis refused, or what was never sent, was not: then the
 * reply is one to a first call.
 *
 * @throws DuestreamError `out-of-memory` or `refused` at once, `unavailable` when it surely was not carried out,
 * `Indeterminate` when it may have been.
 */
export async function withRetry<T>(
  what: string,
  call: (mayHaveRun: boolean) => Promise<T>,
  policy: RetryPolicy,
): Promise<T> {
  const { clock, signal, random = Math.random } = policy;
  const startedMs = clock.monotonicMs();
  let mayHaveRun = false;
  let faults = 0;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return begun(policy, await call(mayHaveRun));
    } catch (error) {
      const outage = outageOf(error);
      if (error instanceof DuestreamError) throw error;
      mayHaveRun ||= leavesDoubt(outage, policy);
      faults += Number(isOurs(error));
      if (isRefused(outage, policy)) throw refusalOf(what, { outage, mayHaveRun }, error);
      await policy.onFailure?.(outage, error);
      const waitMs = pauseMs(outage, attempt, random());
      if (isSpent(policy, { startedMs, faults, waitMs }) || !(await clock.sleep(waitMs, signal)))
        throw givingUp(what, { ...policy, mayHaveRun }, error);
    }
  }
}

function begun<T>({ whole, harmless }: RetryPolicy, reply: T): T {
  if (whole && harmless === undefined) whole.isBegun = true;
  return reply;
}

/** Whether the next try would come too late, or be one too many. */
const isSpent = (
  { clock, budgetMs }: RetryPolicy,
  { startedMs, faults, waitMs }: { readonly startedMs: number; readonly faults: number; readonly waitMs: number },
): boolean => faults >= FAULTS_MAX || clock.monotonicMs() - startedMs + waitMs > budgetMs;

const leavesDoubt = (outage: Outage, { harmless }: RetryPolicy): boolean =>
  harmless === undefined && (outage === 'lost' || outage === 'unknown');
const isRefused = (outage: Outage, { insist = false }: RetryPolicy): boolean =>
  !insist && (outage === 'fatal' || outage === 'full');

function refusalOf(
  what: string,
  { outage, mayHaveRun }: { readonly outage: Outage; readonly mayHaveRun: boolean },
  cause: unknown,
): DuestreamError {
  const why = reasonOf(cause);
  if (mayHaveRun) return inDoubt(what, `was lost, and the same call again was refused (${why})`, cause);
  if (outage === 'fatal') return new DuestreamError('refused', `${what}: Redis refused: ${why}`, { cause });
  const full = 'Redis is at its memory limit and takes no jobs and no changes';
  return new DuestreamError('out-of-memory', `${what}: ${full}: ${why}`, { cause });
}

function givingUp(
  what: string,
  {
    mayHaveRun,
    whole,
    harmless = 'nothing was sent',
  }: Pick<RetryPolicy, 'harmless' | 'whole'> & { readonly mayHaveRun: boolean },
  cause: unknown,
): DuestreamError {
  const why = reasonOf(cause);
  if (mayHaveRun) return inDoubt(what, `was lost (${why})`, cause);
  if (whole?.isBegun) return partly(what, why, cause);
  return new DuestreamError('unavailable', `${what}: Redis is not available (${why}); ${harmless}`, { cause });
}

const partly = (what: string, why: string, cause: unknown): Indeterminate =>
  new Indeterminate(`${what}: a part was carried out, then Redis was not available (${why}): repeat the same call`, {
    cause,
  });

const inDoubt = (what: string, became: string, cause: unknown): Indeterminate =>
  new Indeterminate(`${what}: the reply of Redis ${became}, so Redis may have carried it out: repeat the same call`, {
    cause,
  });

/**
 * Exponential with jitter, 25 ms … 1 s. An unknown error waits a second at least, so that nothing loops hot; what only
 * a person can repair is looked at again every few seconds.
 */
export function pauseMs(outage: Outage, attempt: number, random: number): number {
  if (outage === 'unknown') return 1000 + random * 500;
  if (outage === 'fatal') return FATAL_PAUSE_MS * (0.5 + random / 2);
  return Math.min(1000, 25 * 2 ** Math.min(attempt, 6)) * (0.5 + random / 2);
}

const FATAL_PAUSE_MS = 4000;

/** The same for a loop: how long it waits after so many failed passes in a row. */
export function pauseAfter(error: unknown, failures: number, random: number): number {
  return pauseMs(outageOf(error), failures, random);
}
