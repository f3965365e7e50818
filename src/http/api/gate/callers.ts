/**
 * Whose request it is: of a token in `Authorization`, of the session in a cookie, or of somebody on this machine. Where the
 * daemon listens beyond loopback a created token is needed; `http.token` is for scrapers and opens nothing here.
 */
import type { Context } from 'hono';
import { getCookie } from 'hono/cookie';
import { findSession, isCsrf } from '../../../access/sessions.ts';
import { SCOPES, scopesOf, type Token, verifyToken } from '../../../access/tokens.ts';
import { isLoopback } from '../../access.ts';
import { type Backend, nowOf } from '../backend.ts';
import type { Caller } from '../caller.ts';
import { Problem } from '../problem.ts';
import { nameOf } from './hosts.ts';
import type { Rates } from './rates.ts';

export const COOKIE = 'duestream_session';
const CSRF_HEADER = 'X-CSRF-Token';

export interface CallerOptions {
  /** What the server listens on. */
  readonly host: string;
  /** Whether also somebody on this machine needs a token. */
  readonly tokens: 'beyond-loopback' | 'always';
}

export interface CallerParts {
  readonly options: CallerOptions;
  readonly backend: Backend;
  /** Of requests with a token that opens nothing. */
  readonly failures: Rates;
}

/** Undefined: nobody who is known. @throws Problem `unauthorized`, `forbidden`, `too-many` */
export async function callerOf(parts: CallerParts, c: Context): Promise<Caller | undefined> {
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
