/** Who asks, and what they may: their scopes, and the queues that these are for. */
import type { Scope } from '../../access/tokens.ts';
import type { JobReport } from '../../client/query/report.ts';
import type { JobWait } from '../../client/query/waits.ts';
import type { SeenWait } from '../../client/queues/why.ts';
import type { Attempted, Deferred, JobProgress } from '../../job/outcome.ts';
import type { KeptResult, PastJob } from '../../job/past.ts';
import type { Arrival } from '../arrival.ts';
import { Problem } from './problem.ts';

export interface Caller {
  /** Of the token, or of whom an application or a proxy has let in; `anonymous` on this machine. */
  readonly name: string;
  /** Tells callers apart for the limit of requests. */
  readonly key: string;
  readonly scopes: ReadonlySet<Scope>;
  /** Undefined: all queues. */
  readonly queues: readonly string[] | undefined;
  /** `page`: by what a browser sends on its own, such as the cookie of a session. */
  readonly way: 'api' | 'page';
  /** Who says who it is. `none`: nobody does. */
  readonly login: Login | 'none';
}

/** Where somebody has logged in: with a token, in the application around, or at a proxy in front. */
export const LOGINS = ['token', 'application', 'proxy'] as const;
type Login = (typeof LOGINS)[number];

/** What a request carries from gate to gate. */
export interface ApiEnv {
  readonly Variables: {
    readonly arrival: Arrival;
    readonly caller: Caller;
    readonly ifMatch: string | undefined;
  };
}

/** @throws Problem `forbidden` */
export function checkScope(caller: Caller, scope: Scope): void {
  const { scopes } = caller;
  if (scopes.has(scope)) return;
  throw new Problem('forbidden', {
    detail: `${named(caller)} has the scopes ${[...scopes].join(', ') || 'none'}; allowed: one with ${scope}`,
  });
}

export const mayUse = ({ queues }: Pick<Caller, 'queues'>, queue: string): boolean =>
  queues === undefined || queues.includes(queue);

/** @throws Problem `forbidden` */
export function checkQueue(caller: Caller, queue: string): void {
  if (mayUse(caller, queue)) return;
  throw new Problem('forbidden', {
    detail: `${named(caller)} is not for this queue; allowed: ${caller.queues?.join(', ')}`,
  });
}

/** @throws Problem `forbidden` for a token of some queues */
export function checkEverywhere(caller: Caller): void {
  if (caller.queues === undefined) return;
  throw new Problem('forbidden', {
    detail: `${named(caller)} is for the queues ${caller.queues.join(', ')}; allowed: one of them, or a caller of all queues`,
  });
}

const named = ({ name, login }: Caller): string => (login === 'token' ? `token ${name}` : `the caller ${name}`);

// What a caller without the scope `data` does not see: data, results, and whatever a handler said. That a job is there
// it sees. `test/flow/api/api-unseen.test.ts` has every place where such a text can stand, and asks all that can be asked.

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
  const { reason: _, starts, ...counted } = deferred;
  return { ...counted, starts: starts.map(({ reason: _why, ...start }) => start) };
}

export function seenProgress(progress: JobProgress | undefined, scopes: Scopes) {
  if (!progress || scopes.has('data')) return progress;
  const { text: _, ...reached } = progress;
  return reached;
}

/** A handler closes its group, or its queue, and says why; so does a person, and nobody can tell the two apart later. */
export function seenClosed<Closed extends { readonly reason: string }>(closed: Closed | undefined, scopes: Scopes) {
  if (!closed || scopes.has('data')) return closed;
  const { reason: _, ...until } = closed;
  return until;
}

function seenWait(wait: JobWait | undefined, scopes: Scopes): SeenWait | undefined {
  if (!wait || scopes.has('data')) return wait;
  const obstacles = wait.obstacles.map((one) =>
    one.kind === 'queue-closed' || one.kind === 'group-closed' ? { kind: one.kind, untilMs: one.untilMs } : one,
  );
  return { ...wait, obstacles };
}

/** A digest lets one test a guess, so a mere reader gets none; who may write needs it to edit. */
export const seenDigest = (digest: string | undefined, scopes: Scopes, isRedacted: boolean): string | undefined =>
  (scopes.has('data') && !isRedacted) || scopes.has('write') ? digest : undefined;

/** That there is a result, and how large it is, says nothing of what is in it. */
function seenResult(result: KeptResult, scopes: Scopes) {
  if (scopes.has('data')) return result;
  return result.kind === 'too-large' ? result : { kind: result.kind };
}

/** The report of a job as a caller with these scopes may see it. @param isRedacted whether its queue hides fields of the data */
export function seenReport(report: JobReport, scopes: Scopes, isRedacted: boolean) {
  const digests = {
    digest: seenDigest(report.digest, scopes, isRedacted),
    etag: seenDigest(report.etag, scopes, isRedacted),
  };
  if (scopes.has('data')) return { ...report, ...digests, hidden: false };
  const { data: _data, headers: _headers, unreadable: _unreadable, log: _log, ...told } = report;
  return {
    ...told,
    ...digests,
    hidden: true,
    history: seenHistory(report.history, scopes),
    deferred: seenDeferred(report.deferred, scopes),
    progress: seenProgress(report.progress, scopes),
    waitsFor: seenWait(report.waitsFor, scopes),
    reason: seenReason(report.reason, scopes),
    result: report.result && seenResult(report.result, scopes),
    past: report.past.map((end) => seenEnd(end, scopes)),
    timeline: report.timeline.map(({ message: _, stack: _stack, ...moment }) => moment),
  };
}

/** An end as the history of the queue knows it. */
function seenEnd({ history, deferred, result, ...end }: PastJob, scopes: Scopes) {
  const told = { history: seenHistory(history, scopes), deferred: seenDeferred(deferred, scopes) };
  return { ...end, ...told, result: seenResult(result, scopes) };
}
