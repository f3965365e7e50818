/** The story of one job: what it is, what happened to it in the order of time, how it ended, and what comes next. */

import type { Scope } from '../../../access/tokens.ts';
import type { JobView } from '../../../client/client.ts';
import { writtenAs } from '../../../inspect/dead-letters.ts';
import { endOf, startedMsOf } from '../../../inspect/last-end.ts';
import { redactedPast } from '../../../inspect/redacted.ts';
import { refsOfQueue } from '../../../inspect/refs.ts';
import type { Attempted } from '../../../job/outcome.ts';
import type { PastJob } from '../../../job/past.ts';
import { redactedJob } from '../../../job/redaction.ts';
import { nowOf, type TimedPlace } from '../backend.ts';
import { seenDeferred, seenDigest, seenEnd, seenHistory, seenReason, seenResult } from './hidden.ts';

type Scopes = ReadonlySet<Scope>;

/** A job as a caller with these scopes may see it. */
export async function storyOf(place: TimedPlace, found: JobView, scopes: Scopes) {
  const refs = await refsOfQueue(place, found.queue);
  const redact = refs[found.partition]?.redact;
  const last = endOf(found);
  const end = last && redactedPast(last, redact);
  const history = seenHistory(found.history, scopes);
  const mayRead = scopes.has('data');
  const startedMs = startedMsOf(found);
  const written = (entry: string | undefined) =>
    entry === undefined ? undefined : writtenAs({ deadLetter: entry, partition: found.partition }, refs.length);
  return {
    ...found,
    data: mayRead ? redactedJob(found, redact) : undefined,
    headers: mayRead ? found.headers : undefined,
    hidden: !mayRead,
    tags: end?.tags ?? found.options.tags,
    digest: seenDigest(found.digest, scopes, redact !== undefined),
    etag: seenDigest(found.etag, scopes, redact !== undefined),
    history,
    deferred: seenDeferred(found.deferred, scopes),
    // It may have been replayed or removed.
    deadLetter: found.reason === undefined ? undefined : written(found.deadLetter),
    reason: seenReason(found.reason, scopes),
    startedMs,
    tookMs: end?.tookMs,
    result: end && seenResult(end.result, scopes),
    past: found.past.map((one) => ({ ...seenEnd(one, scopes, redact), deadLetter: written(one.deadLetter) })),
    timeline: timelineOf(found, { end, startedMs, history }),
    nowMs: nowOf(place),
  };
}

interface Moment {
  readonly atMs: number;
  readonly kind: string;
  readonly attempt?: number | undefined;
  readonly owner?: string | undefined;
  readonly tookMs?: number | undefined;
  readonly message?: string | undefined;
  readonly stack?: string | undefined;
}

interface Known {
  readonly end: PastJob | undefined;
  readonly startedMs: number | undefined;
  readonly history: readonly (Partial<Attempted> & Pick<Attempted, 'atMs' | 'attempt' | 'kind'>)[];
}

function timelineOf(job: JobView, { end, startedMs, history }: Known): readonly Moment[] {
  const { state, askedDueMs, dueMs, attempts, owner, overMs } = job;
  const earlier = job.past.slice(end ? 1 : 0);
  const moments: readonly (Omit<Moment, 'atMs'> & { readonly atMs: number | undefined })[] = [
    ...earlier.map((one) => ({ atMs: one.overMs, kind: 'earlier-end', attempt: one.attempts })),
    { atMs: askedDueMs, kind: 'asked-due' },
    ...(history.some(({ attempt, tookMs }) => attempt === attempts && tookMs !== undefined)
      ? []
      : [{ atMs: startedMs, kind: 'started', attempt: attempts, owner, tookMs: end?.tookMs }]),
    ...history.flatMap(({ atMs, kind, attempt, message, stack, worker, tookMs }) => [
      ...(tookMs === undefined ? [] : [{ atMs: atMs - tookMs, kind: 'started', attempt, owner: worker }]),
      { atMs, kind, attempt, tookMs, message, stack },
    ]),
    ...(state === 'scheduled' ? [{ atMs: dueMs, kind: 'due', attempt: attempts + 1 }] : []),
    ...(overMs === undefined ? [] : [{ atMs: overMs, kind: state, attempt: attempts }]),
  ];
  const known = moments.flatMap(({ atMs, ...moment }) => (atMs === undefined ? [] : [{ atMs, ...moment }]));
  return known.toSorted((a, b) => a.atMs - b.atMs);
}
