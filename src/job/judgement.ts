/**
 * The net around `judge.ts`: whatever throws while a start or an end is judged, that one job has an outcome, and nobody
 * else's job hears of it. A start that cannot be judged is a dead letter with the reason `unjudged`; an end is a failure
 * with its next attempt, or done where the handler returned and asked for nothing. What it says looks at nothing that the
 * record or the handler brought, because that may be what threw.
 */

import { oneLine } from '../kernel/errors.ts';
import { reasonOf } from '../kernel/reason.ts';
import type { JobRecord } from './codec.ts';
import { compensationOf } from './compensation.ts';
import { DEFAULT_NAME } from './job.ts';
import type { StartVerdict } from './judge.ts';
import { type Ending, type EndParts, type EndVerdict, judgeEnd, judgeStart, type Life, type Rules } from './judge.ts';
import type { Attempted, Outcome } from './outcome.ts';

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
    message: oneLine(`duestream cannot judge this ${what}: ${whyOf(thrown, rules)}`),
  };
}

/** What our own code threw, as far as it may be told: it may quote data. */
export const whyOf = (thrown: unknown, { redact }: { readonly redact?: unknown }): string =>
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
