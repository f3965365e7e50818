/**
 * What an answer of a target means for its job, top down:
 *
 *     2xx ──▶ done                          429, 503 with Retry-After ──▶ put aside, and its group is closed: no attempt is used
 *     408, 425, 5xx, no answer ──▶ a failure, tried again             all others ──▶ dead at once
 *
 * A job that is put aside again and again is over by its age, because no attempt is counted for it.
 */

import { type CloseScope, Defer, Retry, Unrecoverable } from '../job/outcome.ts';
import { oneLine } from '../kernel/errors.ts';
import type { CallEnd } from './send/sender.ts';

export interface AnswerRules {
  /** Statuses that mean another try, beside those above. */
  readonly retryOn: readonly number[];
  /** Statuses that mean none. */
  readonly deadOn: readonly number[];
  /** So long after its due time a job that is put aside is over. */
  readonly maxAgeMs: number;
  /** Whether what a target answers is kept: in results, and in the reasons of failures. */
  readonly keepAnswer: boolean;
  /** What a job that is put aside closes. Default: its group. */
  readonly closes?: CloseScope | undefined;
  /** What may stand in no result and no reason, even if a target sends back what it was sent. Default: nothing. */
  readonly hides?: readonly string[] | undefined;
}

/** What a job that is done leaves, where its queue keeps results. */
export interface TargetResult {
  readonly status: number;
  readonly tookMs: number;
  /** The beginning of the answer, as text. */
  readonly answer?: string;
}

export interface AnsweredAt {
  readonly nowMs: number;
  /** The due time that its producer asked for. */
  readonly askedDueMs: number;
  /** 0 up to 1. */
  readonly random: number;
}

export const ANSWER_CHARS = 2048;
const REASON_CHARS = 200;
const RETRY_AFTER_MAX_MS = 3_600_000;
/** Where the other side does not say when to come back. */
const DEFER_MS = 10_000;

/** @returns what the handler returns @throws what it throws */
export function settle(end: CallEnd, rules: AnswerRules, at: AnsweredAt): TargetResult {
  if (end.kind === 'refused') throw new Unrecoverable(`target-refused: ${end.why}`);
  if (end.kind === 'no-answer') throw new Error(`no answer: ${end.why}`);
  const { status, tookMs, headers } = end;
  const text = rules.keepAnswer && !end.isAllowed ? hidden(end.body.toString(), rules).slice(0, ANSWER_CHARS) : '';
  if (status >= 200 && status < 300 && !rules.deadOn.includes(status) && !rules.retryOn.includes(status)) {
    return { status, tookMs, ...(text !== '' && { answer: text }) };
  }
  const reason = oneLine(`answer ${status}${text === '' ? '' : `: ${text}`}`, REASON_CHARS);
  const afterMs = retryAfterMs(headers['retry-after'], at);
  if (rules.deadOn.includes(status)) throw new Unrecoverable(reason);
  if (rules.retryOn.includes(status)) throw new Retry(afterMs, reason);
  if (status === 429 || (status === 503 && afterMs > 0)) throw putAside(reason, afterMs, { rules, at });
  if (status === 408 || status === 425 || status >= 500) throw new Retry(afterMs, reason);
  throw new Unrecoverable(reason);
}

/** Before the text is cut, so that no part of one is left at its end. */
const hidden = (text: string, { hides = [] }: AnswerRules): string =>
  hides.reduce((rest, one) => (one === '' ? rest : rest.replaceAll(one, '***')), text);

function putAside(
  reason: string,
  afterMs: number,
  { rules, at }: { readonly rules: AnswerRules; readonly at: AnsweredAt },
): Error {
  const isOld = at.nowMs - at.askedDueMs > rules.maxAgeMs;
  return isOld
    ? new Unrecoverable(`expired: ${reason}`)
    : new Defer(afterMs || DEFER_MS, { reason, close: rules.closes ?? 'group' });
}

const HTTP_DATE = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;

/**
 * Seconds or a date, at most an hour, and up to a tenth longer: all who were told the same must not come at once. 0 for none, for what
 * is past, and for what cannot be read.
 */
export function retryAfterMs(
  value: string | undefined,
  { nowMs, random }: Pick<AnsweredAt, 'nowMs' | 'random'>,
): number {
  const text = value?.trim() ?? '';
  const ms = /^\d{1,10}$/.test(text) ? Number(text) * 1000 : HTTP_DATE.test(text) ? Date.parse(text) - nowMs : 0;
  if (!(ms > 0)) return 0;
  return Math.round(Math.min(RETRY_AFTER_MAX_MS, ms) * (1 + random / 10));
}
