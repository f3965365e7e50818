/** The login of a page: a token for a cookie that scripts cannot read, and a CSRF token that they send with each change. */
import { z } from '@hono/zod-openapi';
import {
  csrfOf,
  endSession,
  findSession,
  openSession,
  scopesOf,
  type Token,
  verifyToken,
} from '../../../access/tokens.ts';
import { nowOf } from '../backend.ts';
import { COOKIE, unauthorized } from '../gate.ts';
import { epochMs, strict } from '../schemas.ts';
import { type AnyVerb, type Call, verb } from '../verb.ts';

const session = z
  .object({
    name: z.string().openapi({ description: 'Of the token.' }),
    scopes: z.array(z.string()),
    queues: z.array(z.string()).optional().openapi({ description: 'Left out: all queues.' }),
    expiresMs: epochMs,
    csrf: z.string().openapi({ description: 'For the header `X-CSRF-Token` of each request that changes anything.' }),
  })
  .openapi('Session');

const login = verb({
  name: 'session.open',
  method: 'post',
  at: '/session',
  summary: 'Log in with a token',
  doc: 'Sets the cookie `duestream_session` (HttpOnly, SameSite=Strict), for twelve hours at most.',
  scope: 'none',
  queues: 'own',
  body: strict({
    token: z.string({ error: 'a token' }).min(1, { error: 'a token' }).max(256, { error: 'a token' }),
  }).openapi('Login'),
  answers: { 201: { schema: session, doc: 'Logged in.' } },
  problems: ['unauthorized'],
  async run({ body, backend, isSecure, failed }) {
    const place = await backend.place();
    const nowMs = nowOf(place);
    const token = await verifyToken(place, body.token, nowMs);
    if (!token) {
      failed();
      throw unauthorized('this token opens nothing: it was never created, was revoked, or has expired');
    }
    const { secret, expiresMs } = await openSession(place, token, nowMs);
    const cookie = cookieOf(secret, { isSecure, seconds: Math.floor((expiresMs - nowMs) / 1000) });
    return { status: 201, body: told(token, secret, expiresMs), headers: { 'Set-Cookie': cookie } };
  },
});

const look = verb({
  name: 'session.get',
  method: 'get',
  at: '/session',
  summary: 'Look at the session of the cookie',
  scope: 'none',
  queues: 'own',
  answers: { 200: { schema: session, doc: 'Whose session it is, and its CSRF token.' } },
  problems: ['unauthorized'],
  async run({ cookie, backend }) {
    const place = await backend.place();
    const secret = cookie(COOKIE) ?? '';
    const found = await findSession(place, secret, nowOf(place));
    if (!found) throw unauthorized('there is no session; log in with a token');
    return { status: 200, body: told(found.token, secret, found.expiresMs) };
  },
});

const logout = verb({
  name: 'session.end',
  method: 'delete',
  at: '/session',
  summary: 'Log out',
  scope: 'none',
  queues: 'own',
  answers: { 204: { doc: 'The session is over.' } },
  async run({ cookie, backend, isSecure }: Call<undefined, undefined, undefined>) {
    await endSession(await backend.place(), cookie(COOKIE) ?? '');
    return { status: 204, headers: { 'Set-Cookie': cookieOf('', { isSecure, seconds: 0 }) } };
  },
});

const cookieOf = (secret: string, { isSecure, seconds }: { readonly isSecure: boolean; readonly seconds: number }) =>
  `${COOKIE}=${secret}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`;

function told({ name, scopes, queues }: Token, secret: string, expiresMs: number) {
  return { name, scopes: [...scopesOf(scopes)], queues, expiresMs, csrf: csrfOf(secret) };
}

export const sessionVerbs: readonly AnyVerb[] = [login, look, logout];
