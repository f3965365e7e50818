/**
 * What is answered when a request cannot be carried out: a problem of RFC 9457 with a stable `code`. Those of the library
 * keep their code and the status of its catalogue; what only HTTP knows has a row here. A problem of the caller says what
 * was given and what is allowed; one of ours says its code alone, because messages of Redis hold addresses.
 */
import type { Context } from 'hono';
import { HTTPException } from 'hono/http-exception';
import { Unconfirmed } from '../../client/calls/scheduled.ts';
import { codeOf } from '../../inspect/failure.ts';
import { DuestreamError, type ErrorCode, errorCatalogue, messageOf, oneLine } from '../../kernel/errors.ts';
import type { Log } from '../../kernel/log.ts';
import { reasonOf } from '../../kernel/reason.ts';

/** Code → status, title and, where there is one, the next step: of problems that only HTTP has. */
const ofHttp = {
  unauthorized: { status: 401, title: 'nobody knows who asks' },
  forbidden: { status: 403, title: 'it is not allowed' },
  'method-not-allowed': { status: 405, title: 'the path has no such method' },
  running: { status: 409, title: 'the job runs' },
  over: { status: 409, title: 'the job is over' },
  live: { status: 409, title: 'a job of this id lives' },
  closed: { status: 409, title: 'a tag of the job is closed' },
  unreadable: { status: 409, title: 'the record cannot be read' },
  superseded: { status: 409, title: 'a later claim was made' },
  target: { status: 409, title: 'the jobs of the queue call a URL' },
  broadcast: { status: 409, title: 'the jobs of the queue go to every subscriber' },
  'too-large': { status: 413, title: 'the body is too large' },
  'not-json': { status: 415, title: 'the body is no JSON' },
  misdirected: { status: 421, title: 'the host is not allowed' },
  reused: { status: 422, title: 'the key was used for another request' },
  'too-many': { status: 429, title: 'too many requests' },
  late: { status: 503, title: 'no answer in time' },
} as const;

const titles: Readonly<Record<ErrorCode, string>> = {
  'bad-input': 'the request is wrong',
  'bad-config': 'the daemon is set up wrongly',
  'wrong-schema': 'the namespace has another layout',
  usage: 'the request is wrong',
  exists: 'it exists already',
  'not-found': 'there is no such thing',
  moved: 'the queue is being resized',
  changed: 'somebody has changed it',
  stopped: 'the daemon is stopping',
  failed: 'a fault in duestream',
  unavailable: 'Redis is not available',
  indeterminate: 'it may or may not have been carried out',
  'out-of-memory': 'Redis is full',
  'queue-full': 'the queue is full',
  'group-full': 'the group is full',
  'no-set': 'the set of the job is not there',
  refused: 'Redis refuses it',
};

/** What to do about a problem of ours: its message stays in the log. */
const advice: Partial<Readonly<Record<ErrorCode, string>>> = {
  'wrong-schema': 'run "duestream doctor" where the daemon runs',
  moved: 'repeat the request',
  stopped: 'repeat the request: another daemon may answer it',
  failed: 'the log says more',
  unavailable: 'nothing was changed; repeat the request when Redis is back',
  indeterminate: 'repeat the same request with the same id or Idempotency-Key; that is safe',
  'out-of-memory': 'raise maxmemory, or let jobs finish',
  refused: 'run "duestream doctor" where the daemon runs: it says what this Redis lacks',
};

export type ProblemCode = keyof typeof ofHttp | ErrorCode;
export type Status = 400 | 401 | 403 | 404 | 405 | 409 | 412 | 413 | 415 | 421 | 422 | 429 | 500 | 502 | 503 | 507;

/** One part of a request that is wrong. */
export interface Fault {
  /** Where it stands: `body.delay`, `query.limit`, `path.queue`. */
  readonly field: string;
  readonly given: string;
  readonly allowed: string;
}

interface More {
  readonly detail?: string | undefined;
  readonly errors?: readonly Fault[] | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  /** Members of its own. */
  readonly also?: Readonly<Record<string, unknown>>;
}

/** Thrown anywhere in the API; it becomes the answer. */
export class Problem extends Error {
  override readonly name = 'Problem';
  readonly code: ProblemCode;
  readonly more: More;

  constructor(code: ProblemCode, more: More = {}) {
    super(more.detail ?? code);
    this.code = code;
    this.more = more;
  }
}

export const problemStatus = (code: ProblemCode): Status =>
  isOfHttp(code) ? ofHttp[code].status : errorCatalogue[code].http;

export const problemCodes: readonly ProblemCode[] = [
  ...(Object.keys(ofHttp) as (keyof typeof ofHttp)[]),
  ...(Object.keys(titles) as ErrorCode[]),
];

const isOfHttp = (code: ProblemCode): code is keyof typeof ofHttp => code in ofHttp;

/** Anything thrown as an answer. What is not the caller's fault is logged. */
export function answerProblem(c: Context, error: unknown, log: Log): Response {
  const problem = problemOf(error);
  const status = problemStatus(problem.code);
  if (status >= 500) {
    log.error({ path: c.req.path, status, error: reasonOf(error) }, 'request failed');
  }
  const { detail, errors, headers = {}, also = {} } = problem.more;
  const title = isOfHttp(problem.code) ? ofHttp[problem.code].title : titles[problem.code];
  const body = { type: `urn:duestream:problem:${problem.code}`, title, status, code: problem.code, detail, errors };
  for (const [name, value] of Object.entries({ ...retryOf(problem.code), ...headers })) c.header(name, value);
  return c.body(JSON.stringify({ ...body, ...also }), status, { 'Content-Type': 'application/problem+json' });
}

/** A full queue or group empties as its jobs come due: more slowly than a daemon comes back. */
function retryOf(code: ProblemCode): Readonly<Record<string, string>> {
  if (code === 'queue-full' || code === 'group-full') return { 'Retry-After': '10' };
  return code === 'unavailable' || code === 'stopped' || code === 'moved' ? { 'Retry-After': '1' } : {};
}

function problemOf(error: unknown): Problem {
  if (error instanceof Problem) return error;
  if (error instanceof HTTPException) return ofFramework(error);
  // What is too deep to be walked through: JSON may be, and its depth is the caller's.
  if (error instanceof RangeError) return new Problem('bad-input', { detail: 'the body is nested too deeply' });
  const code = codeOf(error);
  const isCallers = errorCatalogue[code].http < 500;
  const also = unconfirmedOf(error);
  if (!isCallers) return new Problem(code, { detail: advice[code], also });
  return new Problem(code, { detail: reasonOf(error), errors: faultsIn(messageOf(error)), also });
}

/** The framework refuses what is no JSON before anything of ours sees it. */
function ofFramework({ status, message }: HTTPException): Problem {
  if (status === 415) return new Problem('not-json', { detail: 'allowed: Content-Type: application/json' });
  if (status === 400) return new Problem('bad-input', { detail: oneLine(message) });
  return new Problem('failed', { detail: advice.failed });
}

/** The library says what was given and what is allowed in one sentence, which nearly always has this form. */
function faultsIn(message: string): readonly Fault[] | undefined {
  const [, field, given, allowed] =
    /^(?:job \d+: |schedule \S+: )?([\w. ]{1,40}) is (.{1,200}?); allowed: (.+)$/s.exec(message) ?? [];
  return field === undefined || given === undefined || allowed === undefined ? undefined : [{ field, given, allowed }];
}

/** With what a schedule call can be repeated after a lost reply. */
function unconfirmedOf(error: unknown): Readonly<Record<string, unknown>> {
  const cause = error instanceof DuestreamError ? error.cause : undefined;
  if (!(cause instanceof Unconfirmed)) return {};
  return {
    confirmed: cause.confirmed,
    unconfirmed: cause.unconfirmed.map(({ index, id, dueMs }) => ({ index, id, dueMs })),
  };
}
