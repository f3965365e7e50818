/**
 * Sessions of pages. A page logs in with a token once; from then on a cookie speaks for it, for half a day at most. Redis has
 * the hash of what the cookie holds and the id of the token, so a copy of Redis opens nothing, and a token that is revoked
 * ends its sessions. The CSRF token follows from the cookie: who cannot read the cookie cannot make it.
 */
import { createHmac, hash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Namespaced } from '../inspect/refs.ts';
import { controlKeys, SESSION_MS } from '../redis/keys.ts';
import { type Token, tokenOfId } from './tokens.ts';

export interface Session {
  readonly token: Token;
  readonly expiresMs: number;
}

const SECRET = /^[A-Za-z0-9_-]{43}$/;

/** @returns what the cookie is to hold */
export async function openSession(
  place: Namespaced,
  token: Token,
  nowMs: number,
): Promise<Session & { readonly secret: string }> {
  const secret = randomBytes(32).toString('base64url');
  const leftMs = Math.min(SESSION_MS, (token.expiresMs ?? Number.POSITIVE_INFINITY) - nowMs);
  const expiresMs = nowMs + leftMs;
  await place.redis.set(keyOf(place, secret), `${token.id} ${expiresMs}`, 'PX', Math.max(1, Math.floor(leftMs)));
  return { token, expiresMs, secret };
}

/** Undefined where it is over, or its token opens nothing any more. */
export async function findSession(place: Namespaced, secret: string, nowMs: number): Promise<Session | undefined> {
  if (!SECRET.test(secret)) return undefined;
  const [id, expires] = ((await place.redis.get(keyOf(place, secret))) ?? '').split(' ');
  if (id === undefined || id === '' || !(Number(expires) > nowMs)) return undefined;
  const token = await tokenOfId(place, id, nowMs);
  return token && { token, expiresMs: Number(expires) };
}

export async function endSession(place: Namespaced, secret: string): Promise<void> {
  if (SECRET.test(secret)) await place.redis.del(keyOf(place, secret));
}

/** What a page sends with each change, in a header. */
export const csrfOf = (secret: string): string => createHmac('sha256', secret).update('csrf').digest('base64url');

export function isCsrf(secret: string, given: string | undefined): boolean {
  const [a, b] = [Buffer.from(csrfOf(secret)), Buffer.from(given ?? '')];
  return a.length === b.length && timingSafeEqual(a, b);
}

const keyOf = ({ namespace }: Namespaced, secret: string): string =>
  controlKeys(namespace).session(hash('sha256', secret));
