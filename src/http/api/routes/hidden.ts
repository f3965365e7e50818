/** What a caller without the scope `data` does not see: data, results, and whatever a handler said. That a job is there it sees. */

import type { Scope } from '../../../access/tokens.ts';
import { redactedPast } from '../../../inspect/redacted.ts';
import type { Attempted, Deferred } from '../../../job/outcome.ts';
import type { KeptResult, PastJob } from '../../../job/past.ts';
import type { Redaction } from '../../../job/redaction.ts';

type Scopes = ReadonlySet<Scope>;

/** Reasons that are words of ours. Any other one a handler gave. */
const OUR_REASONS: ReadonlySet<string> = new Set([
  ...[
    'attempts-exhausted',
    'crashes-exhausted',
    'no-handler',
    'unreadable-record',
    'record-missing',
    'bad-data',
    'unjudged',
  ],
  ...['expired', 'half-committed', 'bad-due', 'bad-member', 'bad-record', 'too-large'],
]);

export const isOurs = (reason: string): boolean => OUR_REASONS.has(reason);

export const seenReason = (reason: string | undefined, scopes: Scopes): string | undefined =>
  reason === undefined || scopes.has('data') || isOurs(reason) ? reason : undefined;

export const seenHistory = (history: readonly Attempted[], scopes: Scopes) =>
  scopes.has('data') ? history : history.map(({ message: _, stack: _stack, ...attempted }) => attempted);

export function seenDeferred(deferred: Deferred | undefined, scopes: Scopes) {
  if (!deferred || scopes.has('data')) return deferred;
  const { reason: _, ...counted } = deferred;
  return counted;
}

/** A digest lets one test a guess, so a mere reader gets none; who may write needs it to edit. */
export const seenDigest = (digest: string | undefined, scopes: Scopes, isRedacted: boolean): string | undefined =>
  (scopes.has('data') && !isRedacted) || scopes.has('write') ? digest : undefined;

/** That there is a result, and how large it is, says nothing of what is in it. */
export function seenResult(result: KeptResult, scopes: Scopes) {
  if (scopes.has('data')) return result;
  return result.kind === 'too-large' ? result : { kind: result.kind };
}

/** An end as the history of the queue knows it. */
export function seenEnd(past: PastJob, scopes: Scopes, redact: Redaction | undefined) {
  const { history, deferred, result, ...end } = redactedPast(past, redact);
  const told = { history: seenHistory(history, scopes), deferred: seenDeferred(deferred, scopes) };
  return { ...end, ...told, result: seenResult(result, scopes) };
}
