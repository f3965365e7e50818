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
import { type Backend, nowOf } from './backend.ts';
import type { Caller } from './caller.ts';
import { checkMay } from './carry-out.ts';
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
// its Origin.

export interface HostOptions {
  /** What the server listens on. */
  readonly host: string;
  readonly allowedHosts: readonly string[];
  readonly allowedOrigins: readonly string[];
}

interface Asked {
  readonly host: string | undefined;
  readonly origin: string | undefined;
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
 * @throws Problem `misdirected`, `forbidden`
 */
export function checkHosts({ host, allowedHosts, allowedOrigins }: HostOptions, asked: Asked): void {
  const name = nameOf(asked.host);
  const known = name !== undefined && (allowedHosts.includes(name) || name === host.toLowerCase() || isLoopback(name));
  // Beyond loopback a token is needed, which no stranger's page has; so any name does, unless some are named.
  const isOpen = !isLoopback(host) && allowedHosts.length === 0 && name !== undefined;
  if (!known && !isOpen) {
    throw new Problem('misdirected', {
      detail: 'the Host header names no host of this daemon; allowed: http.allowedHosts',
    });
  }
  checkOrigin({ allowedOrigins }, asked);
}

function checkOrigin({ allowedOrigins }: Pick<HostOptions, 'allowedOrigins'>, { host, origin, site }: Asked): void {
  if (origin === undefined) {
    if (site !== 'cross-site') return;
    throw new Problem('forbidden', { detail: 'a page of another site asks; allowed: http.allowedOrigins' });
  }
  if (isOwn(origin, host) || allowedOrigins.includes(origin.toLowerCase())) return;
  throw new Problem('forbidden', { detail: 'the Origin header names another page; allowed: http.allowedOrigins' });
}

/** A page of the same host and port. Its scheme may differ: a proxy in front may speak TLS. */
function isOwn(origin: string, host: string | undefined): boolean {
  try {
    return host !== undefined && new URL(origin).host === new URL(`${new URL(origin).protocol}//${host}`).host;
  } catch {
    return false;
  }
}

// Whose request it is: of a token in `Authorization`, of the session in a cookie, or of somebody on this machine. Where
// the daemon listens beyond loopback a created token is needed; `http.token` is for scrapers and opens nothing here.

export const COOKIE = 'duestream_session';
const CSRF_HEADER = 'X-CSRF-Token';

export interface CallerOptions {
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
}

/** Undefined: nobody who is known. @throws Problem `unauthorized`, `forbidden`, `too-many` */
async function callerOf(parts: CallerParts, c: Context): Promise<Caller | undefined> {
  const header = c.req.header('Authorization');
  if (header !== undefined) return ofToken(parts, c, header);
  const secret = getCookie(c, COOKIE);
  if (secret !== undefined) {
    const caller = await ofSession(parts, c, secret);
    if (caller) return caller;
  }
  return isHere(parts.options, c) ? anonymous : undefined;
}

export function remoteOf(c: Context): string {
  const { incoming } = (c.env ?? {}) as {
    readonly incoming?: { readonly socket?: { readonly remoteAddress?: string } };
  };
  return incoming?.socket?.remoteAddress ?? 'unknown';
}

async function ofToken({ backend, failures }: CallerParts, c: Context, header: string): Promise<Caller> {
  const text = /^Bearer +(\S{1,256})$/i.exec(header)?.[1] ?? '';
  const place = await backend.place();
  const token = await verifyToken(place, text, nowOf(place));
  if (token) return callerWith(token, 'api');
  failures.take(remoteOf(c));
  throw unauthorized('this token opens nothing: it was never created, was revoked, or has expired');
}

async function ofSession({ backend }: CallerParts, c: Context, secret: string): Promise<Caller | undefined> {
  const place = await backend.place();
  const session = await findSession(place, secret, nowOf(place));
  if (!session) return undefined;
  const isLook = c.req.method === 'GET' || c.req.method === 'HEAD';
  if (!isLook && !isCsrf(secret, c.req.header(CSRF_HEADER))) {
    throw new Problem('forbidden', { detail: `${CSRF_HEADER} is missing or wrong; allowed: the csrf of the session` });
  }
  return callerWith(session.token, 'page');
}

function callerWith({ id, name, scopes, queues }: Token, way: Caller['way']): Caller {
  return { name, key: id, scopes: scopesOf(scopes), queues, way };
}

const anonymous: Caller = {
  name: 'anonymous',
  key: 'anonymous',
  scopes: new Set(SCOPES),
  queues: undefined,
  way: 'api',
};

/** What a proxy adds. One on this machine may hand over requests of the whole world. */
const PROXIED = ['Forwarded', 'X-Forwarded-For', 'X-Forwarded-Host', 'X-Real-IP', 'Via'];

function isHere({ host, tokens }: CallerOptions, c: Context): boolean {
  if (tokens === 'always' || !isLoopback(host)) return false;
  const name = nameOf(c.req.header('Host'));
  return name !== undefined && isLoopback(name) && PROXIED.every((header) => c.req.header(header) === undefined);
}

export function unauthorized(detail: string): Problem {
  return new Problem('unauthorized', { detail, headers: { 'WWW-Authenticate': 'Bearer realm="duestream"' } });
}

// Who asks, and whether they may: before a verb begins, and again while one goes on.

interface Identity {
  /** Counts the request of whoever asks. @throws Problem `unauthorized`, `forbidden`, `too-many` */
  readonly identified: (verb: AnyVerb, c: Context) => Promise<Caller>;
  /** Whether the same caller may still ask it; yes while Redis does not say. */
  readonly stillMay: (verb: AnyVerb, caller: Caller, c: Context) => Promise<boolean>;
}

const nobody: Caller = { name: 'nobody', key: 'nobody', scopes: new Set(), queues: undefined, way: 'api' };

export function createIdentity(parts: CallerParts, rates: Rates): Identity {
  return {
    async identified(verb, c) {
      if (verb.scope === 'none') {
        rates.take(remoteOf(c));
        return nobody;
      }
      const caller = await callerOf(parts, c);
      if (!caller)
        throw unauthorized('send a token as Authorization: Bearer <token>; "duestream tokens create" makes one');
      rates.take(caller.key);
      return caller;
    },
    async stillMay(verb, { key }, c) {
      try {
        const caller = await callerOf(parts, c);
        if (caller?.key !== key) return false;
        checkMay(verb, caller, c);
        return true;
      } catch (error) {
        return !(error instanceof Problem);
      }
    },
  };
}

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

/** Numbers that the parser would round. The framework keeps the text, and parses it again for the verb. */
export const numberGate: MiddlewareHandler = async (c, next) => {
  refuseInexact(await c.req.text(), 'body');
  await next();
};

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
