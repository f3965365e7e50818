/**
 * The gates that each request of the API passes: which names and pages it comes by, whose it is, how often, how large,
 * and whether it is allowed.
 */

import { createHash, timingSafeEqual } from 'node:crypto';
import { BlockList, isIP } from 'node:net';
import type { Context, MiddlewareHandler } from 'hono';
import { getCookie } from 'hono/cookie';
import { findSession, isCsrf, SCOPES, scopesOf, type Token, verifyToken } from '../../access/tokens.ts';
import { refuseInexact } from '../../job/json-text.ts';
import type { Clock } from '../../kernel/clock.ts';
import { show } from '../../kernel/duration.ts';
import type { Log } from '../../kernel/log.ts';
import { type Arrival, peerOf } from '../arrival.ts';
import { type Backend, nowOf } from './backend.ts';
import type { ApiEnv, Caller } from './caller.ts';
import { checkMay } from './carry-out.ts';
import { type GuestOptions, guestOf, stranger } from './guests.ts';
import { Problem } from './problem.ts';
import type { AnyVerb } from './verb.ts';

// How many requests a caller may send: so many per second, as many at once, and no more. Of bounded size.

interface Rates {
  /** Counts one request. @throws Problem `too-many` with `Retry-After` */
  readonly take: (key: string) => void;
}

interface Bucket {
  left: number;
  atMs: number;
}

const CALLERS_MAX = 10_000;

export function createRates(perSecond: number, clock: Clock): Rates {
  const buckets = new Map<string, Bucket>();

  function bucketOf(key: string, nowMs: number): Bucket {
    const known = buckets.get(key);
    if (known) {
      known.left = Math.min(perSecond, known.left + ((nowMs - known.atMs) / 1000) * perSecond);
      known.atMs = nowMs;
      return known;
    }
    // The one that came first goes: whoever still asks has a full bucket again soon.
    const [first] = buckets.size >= CALLERS_MAX ? buckets.keys() : [];
    if (first !== undefined) buckets.delete(first);
    const made = { left: perSecond, atMs: nowMs };
    buckets.set(key, made);
    return made;
  }

  return {
    take(key) {
      const bucket = bucketOf(key, clock.monotonicMs());
      if (bucket.left >= 1) {
        bucket.left -= 1;
        return;
      }
      const seconds = Math.max(1, Math.ceil((1 - bucket.left) / perSecond));
      throw new Problem('too-many', {
        detail: `allowed: ${perSecond} requests per second; wait ${seconds} s`,
        headers: { 'Retry-After': String(seconds) },
      });
    },
  };
}

// Which names and which pages a request may come by. A page of a stranger can make a browser ask this machine, under a
// name of his own that leads here (DNS rebinding), or from his page: the first is refused by its Host, the second by
// what the browser says of the page. Why that is enough, also behind a proxy: docs/decisions/0028.

export interface HostOptions {
  /** What the server listens on. */
  readonly host: string;
  readonly allowedHosts: readonly string[];
  readonly allowedOrigins: readonly string[];
}

/** What the browser says of the page that asks. */
interface Asking {
  readonly origin: string | undefined;
  /** `Sec-Fetch-Site`: no script can set it, and browsers send it over TLS and to this machine. */
  readonly site: string | undefined;
}

/** The name in a Host header, without its port and brackets. */
function nameOf(host: string | undefined): string | undefined {
  if (host === undefined) return undefined;
  try {
    return new URL(`http://${host}`).hostname.replace(/^\[|\]$/g, '').toLowerCase();
  } catch {
    return undefined;
  }
}

/**
 * Both names must be allowed: the one by which the request came here, and the one that the browser asked a trusted proxy
 * for. A page whose name leads here cannot change the first one, whatever it says of the second.
 *
 * @throws Problem `misdirected`, `forbidden`
 */
export function checkHosts(options: HostOptions, { host, publicHost }: Arrival, asking: Asking): void {
  checkHost(options, host);
  checkHost(options, publicHost);
  checkOrigin(options, publicHost, asking);
}

function checkHost({ host, allowedHosts }: HostOptions, asked: string | undefined): void {
  const name = nameOf(asked);
  const known = name !== undefined && (allowedHosts.includes(name) || name === host.toLowerCase() || isLoopback(name));
  // Beyond loopback a token is needed, which no stranger's page has; so any name does, unless some are named.
  const isOpen = !isLoopback(host) && allowedHosts.length === 0 && name !== undefined;
  if (known || isOpen) return;
  throw new Problem('misdirected', {
    detail: `the request is for the host ${show(asked)}, which is no name of this daemon; allowed: http.host, loopback, and the names in http.allowedHosts, without the port`,
  });
}

/** The browser knows whose page it is. Where it does not say, the Origin must be of the host that was asked. */
function checkOrigin(
  { allowedOrigins }: Pick<HostOptions, 'allowedOrigins'>,
  host: string | undefined,
  { origin, site }: Asking,
): void {
  if (site === 'same-origin') return;
  if (origin === undefined) {
    if (site !== 'cross-site') return;
    throw new Problem('forbidden', { detail: 'a page of another site asks; allowed: http.allowedOrigins' });
  }
  if (allowedOrigins.includes(origin.toLowerCase())) return;
  if (site === undefined && isOwn(origin, host)) return;
  throw new Problem('forbidden', {
    detail: `the page is of ${show(origin)}, and ${show(host)} was asked; allowed: http.allowedOrigins, and behind a proxy that changes the Host header http.trustProxy`,
  });
}

/** A page of the same host and port. Its scheme may differ: a proxy in front may speak TLS. */
function isOwn(origin: string, host: string | undefined): boolean {
  try {
    return host !== undefined && new URL(origin).host === new URL(`${new URL(origin).protocol}//${host}`).host;
  } catch {
    return false;
  }
}

// Whose request it is: of a token in `Authorization`, of somebody whom an application or a proxy has let in, of the session
// in a cookie, or of somebody on this machine. Where the daemon listens beyond loopback one of the first three is needed;
// `http.token` is for scrapers and opens nothing here. A header `Authorization` that opens nothing is passed over where there
// is another way in: it may be that of a proxy, which every request carries.

/**
 * The cookie of a session has the port of the address in its name: browsers keep cookies by host and path, and two installations
 * on two ports of one host would log each other out.
 */
export function cookieNameOf({ publicHost = '', isTls }: Arrival): string {
  const port = /:(\d{1,5})$/.exec(publicHost)?.[1] ?? (isTls ? '443' : '80');
  return `duestream_session_${port}`;
}
const CSRF_HEADER = 'X-CSRF-Token';
export const OPENS_NOTHING = 'this token opens nothing: it was never created, was revoked, or has expired';

export interface CallerOptions extends GuestOptions {
  /** What the server listens on. */
  readonly host: string;
  /** Whether also somebody on this machine needs a token. */
  readonly tokens: 'beyond-loopback' | 'always';
}

interface CallerParts {
  readonly options: CallerOptions;
  readonly backend: Backend;
  /** Of requests with a token that opens nothing. */
  readonly failures: Rates;
  readonly log: Log;
}

/** Undefined: nobody who is known. @throws Problem `unauthorized`, `forbidden`, `too-many`, `failed` */
async function callerOf(parts: CallerParts, c: Context<ApiEnv>): Promise<Caller | undefined> {
  const { options, failures, log } = parts;
  const header = options.authorize ? undefined : c.req.header('Authorization');
  const token = header === undefined ? undefined : await ofToken(parts, header);
  if (token) return token;
  const caller = (await guestOf(options, c, log)) ?? (await ofSession(parts, c));
  if (caller) {
    checkCsrf(c);
    return caller;
  }
  if (header !== undefined) {
    failures.take(remoteOf(c));
    throw stranger(whyNot(header));
  }
  return isHere(options, c) ? anonymous : undefined;
}

export const remoteOf = (c: Context): string => peerOf(c.env) ?? 'unknown';

async function ofToken({ backend }: CallerParts, header: string): Promise<Caller | undefined> {
  const [, text] = /^Bearer +(\S{1,256})$/i.exec(header) ?? [];
  if (text === undefined) return undefined;
  const place = await backend.place();
  const token = await verifyToken(place, text, nowOf(place));
  return token && callerWith(token, 'api');
}

function whyNot(header: string): string {
  const [scheme] = /^(Basic|Digest|Negotiate)\b/i.exec(header) ?? [];
  if (scheme === undefined) return OPENS_NOTHING;
  return `the header Authorization is of the scheme ${scheme}, which opens nothing here; allowed: Bearer <token>, or the cookie of a login`;
}

async function ofSession({ backend }: CallerParts, c: Context<ApiEnv>): Promise<Caller | undefined> {
  const secret = getCookie(c, cookieNameOf(c.get('arrival')));
  if (secret === undefined) return undefined;
  const place = await backend.place();
  const session = await findSession(place, secret, nowOf(place));
  return session && callerWith(session.token, 'page');
}

/** A browser sends on its own what these callers are known by, also for a page of somebody else. */
function checkCsrf(c: Context<ApiEnv>): void {
  if (c.req.method === 'GET' || c.req.method === 'HEAD') return;
  if (isCsrf(getCookie(c, cookieNameOf(c.get('arrival'))) ?? '', c.req.header(CSRF_HEADER))) return;
  throw new Problem('forbidden', {
    detail: `${CSRF_HEADER} is missing or wrong; allowed: the csrf of GET /v1/session, with its cookie`,
  });
}

function callerWith({ id, name, scopes, queues }: Token, way: Caller['way']): Caller {
  return { name, key: id, scopes: scopesOf(scopes), queues, way, login: 'token' };
}

const anonymous: Caller = {
  name: 'anonymous',
  key: 'anonymous',
  scopes: new Set(SCOPES),
  queues: undefined,
  way: 'api',
  login: 'none',
};

/** What a proxy adds. One on this machine may hand over requests of the whole world. */
const PROXIED = [
  ...['Forwarded', 'X-Forwarded-For', 'X-Forwarded-Host', 'X-Forwarded-Proto', 'X-Forwarded-Prefix'],
  ...['X-Forwarded-Uri', 'X-Real-IP', 'Via'],
];

function isHere({ host, tokens }: CallerOptions, c: Context<ApiEnv>): boolean {
  // Who says that a proxy asks from an address says that not everybody who asks from there is on this machine.
  if (tokens === 'always' || !isLoopback(host) || c.get('arrival').isProxied) return false;
  const name = nameOf(c.req.header('Host'));
  return name !== undefined && isLoopback(name) && PROXIED.every((header) => c.req.header(header) === undefined);
}

// Who asks, and whether they may: before a verb begins, and again while one goes on.

interface Identity {
  /** Counts the request of whoever asks. @throws Problem `unauthorized`, `forbidden`, `too-many`, `failed` */
  readonly identified: (verb: AnyVerb, c: Context<ApiEnv>) => Promise<Caller>;
  /** Whether the same caller may still ask it, and see as much; yes while Redis does not say. */
  readonly stillMay: (verb: AnyVerb, caller: Caller, c: Context<ApiEnv>) => Promise<boolean>;
}

const nobody: Caller = { ...anonymous, name: 'nobody', key: 'nobody', scopes: new Set() };

/** @param workRates of workers over HTTP, which send many small requests */
export function createIdentity(
  parts: CallerParts,
  { rates, workRates }: { readonly rates: Rates; readonly workRates: Rates },
): Identity {
  return {
    async identified(verb, c) {
      if (verb.scope === 'none') {
        rates.take(remoteOf(c));
        return (await guestOf(parts.options, c, parts.log)) ?? nobody;
      }
      const caller = await callerOf(parts, c);
      if (!caller) throw stranger('send a token as Authorization: Bearer <token>; "duestream tokens create" makes one');
      (verb.scope === 'work' ? workRates : rates).take(caller.key);
      return caller;
    },
    async stillMay(verb, before, c) {
      try {
        const caller = await callerOf(parts, c);
        if (!caller || rightsOf(caller) !== rightsOf(before)) return false;
        checkMay(verb, caller, c);
        return true;
      } catch (error) {
        return !(error instanceof Problem);
      }
    },
  };
}

/** What goes on was begun with these. An application may say other ones of the same person. */
const rightsOf = ({ key, scopes, queues }: Caller): string => JSON.stringify([key, [...scopes], queues]);

// How large a body may be, and which numbers it may hold. One that says its length is refused before it is read; one
// that comes in chunks is read up to the limit. The framework's own gate is not used: it cannot take apart a request of
// the adapter.

export function bodyGate(max: number): MiddlewareHandler {
  return async (c, next) => {
    if (c.req.header('Transfer-Encoding') === undefined) {
      if (Number(c.req.header('Content-Length') ?? 0) > max) throw tooLarge(max);
      return next();
    }
    const body = await readUpTo(c.req.raw.body, max);
    const headers = Object.fromEntries(Object.entries(c.req.header()).filter(([name]) => name !== 'transfer-encoding'));
    c.req.raw = new Request(c.req.url, { method: c.req.method, headers, body: isBodiless(c.req.method) ? null : body });
    return next();
  };
}

/**
 * Numbers that the parser would round, and a body that a parser of the application around has read before us. The framework
 * keeps the text, and parses it again for the verb.
 */
export const numberGate: MiddlewareHandler = async (c, next) => {
  const text = await c.req.text();
  if (text === '' && Number(c.req.header('Content-Length') ?? 0) > 0)
    throw new Problem('failed', { detail: READ_BEFORE });
  refuseInexact(text, 'body');
  await next();
};

const READ_BEFORE =
  'the body was read before duestream got the request; mount the dashboard before every parser, such as express.json()';

const isBodiless = (method: string): boolean => method === 'GET' || method === 'HEAD';

async function readUpTo(body: ReadableStream<Uint8Array> | null, max: number): Promise<Buffer<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > max) throw tooLarge(max);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

const tooLarge = (max: number) => new Problem('too-large', { detail: `allowed: ${max} bytes (http.bodyBytesMax)` });

// Who may ask: a loopback address needs no token, every other address must have one, and a token is compared without
// telling by the time it takes how much of it was right.

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

/** Whether only this machine can reach the address. Of names only `localhost` is trusted to stay here. */
export function isLoopback(host: string): boolean {
  const version = isIP(host);
  if (version === 0) return host.toLowerCase() === 'localhost';
  return loopback.check(host, version === 6 ? 'ipv6' : 'ipv4');
}

/**
 * Whether an `Authorization` header carries the token. Both sides are hashed first, because the comparison needs equal
 * lengths. The framework's own check is not used: it refuses tokens with characters that ours may have.
 */
export function carriesToken(header: string | undefined, token: string): boolean {
  const given = /^Bearer +(\S+)$/i.exec(header ?? '')?.[1];
  return given !== undefined && timingSafeEqual(digest(given), digest(token));
}

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
