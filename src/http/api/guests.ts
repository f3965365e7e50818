/**
 * Callers whom somebody else has let in: the login of the application around (`authorize` of `createDashboard`), or a proxy
 * that says in a header who asks (`http.userHeader`). We know no more of them than that.
 *
 * What must always hold: an answer of the application that is not exactly what is allowed lets nobody in, and so does one
 * that never comes; a header counts only from a peer of `http.trustProxy`, and only with one plain name in it. What lets a
 * guest in is sent by the browser on its own, so every change needs the CSRF token, as with a cookie of ours.
 */
import type { Context } from 'hono';
import { SCOPES, type Scope, scopesOf } from '../../access/tokens.ts';
import { parseName } from '../../job/job.ts';
import { checkNames } from '../../kernel/checks.ts';
import { show } from '../../kernel/duration.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import { type Log, silentLog } from '../../kernel/log.ts';
import { reasonOf } from '../../kernel/reason.ts';
import { type ArrivalOptions, peerOf } from '../arrival.ts';
import type { ApiEnv, Caller } from './caller.ts';
import { Problem } from './problem.ts';

/** Says who asks; undefined: nobody whom it knows. What comes back is checked. */
type Authorize = (request: Request, env: unknown) => unknown;

export interface GuestOptions extends Pick<ArrivalOptions, 'mountedAt'> {
  /** In an application: its login alone says who asks. */
  readonly authorize?: Authorize | undefined;
  /** The header in which a trusted proxy names who asks, and what those users may. */
  readonly users?: { readonly header: string; readonly scopes: readonly Scope[] } | undefined;
}

/**
 * Undefined: nobody else says who it is. With `authorize` there is a guest, or a problem.
 *
 * @throws Problem `unauthorized`, `failed`
 */
export async function guestOf(
  { authorize, users, mountedAt = '' }: GuestOptions,
  c: Context<ApiEnv>,
  log: Log,
): Promise<Caller | undefined> {
  if (!authorize) return users && ofProxy(users, c, log);
  try {
    const given = await authorize(outerRequest(c, mountedAt), (c.env as { readonly given?: unknown }).given);
    if (given !== undefined && given !== null && given !== false) return readGuest(given);
  } catch (error) {
    log.error({ error: reasonOf(error) }, 'authorize of createDashboard has failed, and nobody was let in');
    const where = log === silentLog ? 'give createDashboard a log, and it says why' : 'the log says why';
    throw new Problem('failed', { detail: `the login of the application has failed; ${where}` });
  }
  throw stranger('the login of the application did not let this request in', { login: 'application' });
}

/** As it came to the application: without a body, which only one can read, and below its prefix. */
function outerRequest({ req }: Context, mountedAt: string): Request {
  const url = new URL(req.url);
  url.pathname = `${mountedAt}${url.pathname}`;
  return new Request(url, { method: req.method, headers: req.raw.headers });
}

/** No character that controls, formats or is none. */
const NAME = /^[^\p{C}]{1,128}$/u;
const QUEUES_MAX = 100;

/** @throws DuestreamError `bad-input` that says what is wrong */
function readGuest(given: unknown): Caller {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    const allowed = '{ name, scopes, queues }, or undefined for nobody';
    throw new DuestreamError('bad-input', `authorize returned ${show(given)}; allowed: ${allowed}`);
  }
  // A name that is misspelt must not open more: without `queues` all are meant.
  checkNames(given, ['name', 'scopes', 'queues'], 'what authorize returns', 'bad-input');
  const { name, scopes, queues } = given as Partial<Record<'name' | 'scopes' | 'queues', unknown>>;
  if (typeof name !== 'string' || name.trim() === '' || !NAME.test(name)) {
    throw bad('name', name, '1 to 128 characters without control characters');
  }
  const allowed = `one or more of ${SCOPES.join(', ')}`;
  if (!Array.isArray(scopes) || scopes.length === 0) throw bad('scopes', scopes, allowed);
  const known = SCOPES.filter((scope) => scopes.includes(scope));
  for (const scope of new Set<unknown>(scopes)) {
    if (!known.some((one) => one === scope)) throw bad('scopes', scope, allowed);
  }
  return guest({ name, scopes: known, queues: queues === undefined ? undefined : readQueues(queues) }, 'application');
}

function readQueues(queues: unknown): readonly string[] {
  if (!Array.isArray(queues) || queues.length === 0 || queues.length > QUEUES_MAX) {
    throw bad('queues', queues, `1 to ${QUEUES_MAX} names of queues, or nothing for all queues`);
  }
  return queues.map((queue: unknown) => parseName(queue, 'queue'));
}

const bad = (what: string, given: unknown, allowed: string) =>
  new DuestreamError('bad-input', `authorize returned ${what} ${show(given)}; allowed: ${allowed}`);

/** Printable ASCII without the comma, with which Node joins the values of a header that came twice. */
const HEADER_NAME = /^(?! )[\x20-\x2b\x2d-\x7e]{1,128}(?<! )$/;

type Users = NonNullable<GuestOptions['users']>;

function ofProxy(users: Users, c: Context<ApiEnv>, log: Log): Caller | undefined {
  const { header, scopes } = users;
  const { isProxied } = c.get('arrival');
  const name = c.req.header(header);
  if (!isProxied || name === undefined) {
    if (isProxied || name !== undefined) tellUnnamed(users, { peer: peerOf(c.env), isProxied }, log);
    return undefined;
  }
  if (!HEADER_NAME.test(name)) {
    throw stranger(
      `the header ${header} of the proxy is ${show(name)}; allowed: one name of 1 to 128 printable characters of ASCII, without a comma`,
    );
  }
  return guest({ name, scopes, queues: undefined }, 'proxy');
}

/** What has been told, of each API: who has set it up wrongly sees it at the first page, and strangers cannot fill the log. */
const told = new WeakMap<Users, Set<boolean>>();

/** The answer says nothing of it: a stranger need not learn which header counts. */
function tellUnnamed(
  users: Users,
  { peer, isProxied }: { readonly peer: string | undefined; readonly isProxied: boolean },
  log: Log,
): void {
  const before = told.get(users) ?? new Set();
  if (before.has(isProxied)) return;
  told.set(users, before.add(isProxied));
  const { header } = users;
  log.warn(
    { peer, header },
    isProxied
      ? 'a request from an address of http.trustProxy has no header http.userHeader; its user needs a token'
      : 'a request with the header http.userHeader comes from no address of http.trustProxy; the header does not count',
  );
}

function guest(
  { name, scopes, queues }: { name: string; scopes: readonly Scope[]; queues: readonly string[] | undefined },
  login: 'application' | 'proxy',
): Caller {
  return { name, key: `${login} ${name}`, scopes: scopesOf(scopes), queues, way: 'page', login };
}

/** Whom nobody knows. @param also members of the problem */
export function stranger(detail: string, also: Readonly<Record<string, unknown>> = {}): Problem {
  return new Problem('unauthorized', { detail, also, headers: { 'WWW-Authenticate': 'Bearer realm="duestream"' } });
}
