/** What a caller without the scope `data` does not see: data, and whatever a handler said. That a job is there it sees. */
import type { JobView } from '../../../client/producer.ts';
import type { Attempted } from '../../../core/outcome.ts';
import { redactedJob } from '../../../core/redaction.ts';
import { addressOf } from '../../../operations/dead-letters.ts';
import { type Place, refsOfQueue } from '../../../operations/refs.ts';
import type { Scope } from '../../../operations/tokens.ts';
import { deadLetter } from '../../../redis/inspect.ts';
import type { PartitionRef } from '../../../redis/keys.ts';

type Scopes = ReadonlySet<Scope>;

/** Reasons that are words of ours. Any other one a handler gave. */
const OUR_REASONS: ReadonlySet<string> = new Set([
  ...['attempts-exhausted', 'crashes-exhausted', 'no-handler', 'unreadable-record', 'record-missing'],
  ...['expired', 'half-committed', 'bad-due', 'bad-member', 'bad-record', 'too-large'],
]);

export const seenReason = (reason: string | undefined, scopes: Scopes): string | undefined =>
  reason === undefined || scopes.has('data') || OUR_REASONS.has(reason) ? reason : undefined;

export const seenHistory = (history: readonly Attempted[], scopes: Scopes) =>
  scopes.has('data') ? history : history.map(({ message: _, stack: _stack, ...attempted }) => attempted);

/** A digest lets one test a guess, so a mere reader gets none; who may write needs it to edit. */
const seenDigest = (digest: string | undefined, scopes: Scopes, isRedacted: boolean): string | undefined =>
  (scopes.has('data') && !isRedacted) || scopes.has('write') ? digest : undefined;

/** A job, and of a dead one what its dead letter says. */
export async function seenJob(place: Place, found: JobView, scopes: Scopes) {
  const mayRead = scopes.has('data');
  const refs = await refsOfQueue(place, found.queue);
  const redact = refs[found.partition]?.redact;
  const letter = await letterOf(place, found, refs);
  const history = found.history.length > 0 ? found.history : (letter?.history ?? []);
  return {
    ...found,
    data: mayRead ? redactedJob(found, redact) : undefined,
    hidden: !mayRead,
    digest: seenDigest(found.digest, scopes, redact !== undefined),
    history: seenHistory(history, scopes),
    deadLetter: letter?.address,
    reason: seenReason(letter?.reason, scopes),
  };
}

async function letterOf(place: Place, { partition, deadLetter: entry }: JobView, refs: readonly PartitionRef[]) {
  if (entry === undefined) return undefined;
  const ref = refs[partition];
  const found = ref && (await deadLetter(place.redis, ref, entry));
  return found && { ...found, address: addressOf({ ref, deadLetter: found }, refs.length) };
}
