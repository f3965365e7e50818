/**
 * The login of a page: a token for a cookie that scripts cannot read, and a CSRF token that they send with each change. Whom
 * an application or a proxy has let in needs no login; the cookie then has nothing but what the CSRF token follows from.
 */
import { z } from '@hono/zod-openapi';
import {
  csrfOf,
  endSession,
  findSession,
  isSecret,
  isTokenText,
  newSecret,
  openSession,
  scopesOf,
  type Token,
  verifyToken,
} from '../../../access/tokens.ts';
import type { Arrival } from '../../arrival.ts';
import { answers } from '../answer.ts';
import type { Answers } from '../answers.ts';
import { nowOf } from '../backend.ts';
import type { Caller } from '../caller.ts';
import { cookieNameOf, isLoopback, OPENS_NOTHING } from '../gate.ts';
import { stranger } from '../guests.ts';
import { Problem } from '../problem.ts';
import { flagText, strict } from '../schemas.ts';
import { type Answer, type AnyVerb, type Call, verb } from '../verb.ts';

const login = verb({
  name: 'session.open',
  method: 'post',
  at: '/session',
  summary: 'Log in with a token',
  doc: 'Sets the cookie `duestream_session_<port>` (HttpOnly, SameSite=Strict), with the port of the address, for twelve hours at most.',
  scope: 'none',
  queues: 'own',
  body: strict({
    token: z.string({ error: 'a token' }).min(1, { error: 'a token' }).max(256, { error: 'a token' }),
  }).openapi('Login'),
  answers: { 201: { type: answers.Session, doc: 'Logged in.' } },
  problems: ['unauthorized', 'forbidden'],
  async run({ body, backend, caller, arrival, header, failed }) {
    checkLogin(caller, arrival, header('Origin'));
    const place = await backend.place();
    const nowMs = nowOf(place);
    const token = await verifyToken(place, body.token, nowMs);
    if (!token) {
      failed();
      throw stranger(isTokenText(body.token) ? OPENS_NOTHING : 'this text opens nothing: a token begins with due_');
    }
    const { secret, expiresMs } = await openSession(place, token, nowMs);
    const cookie = cookieOf(secret, arrival, Math.floor((expiresMs - nowMs) / 1000));
    return { status: 201, body: told(token, secret, expiresMs), headers: { 'Set-Cookie': cookie } };
  },
});

/** A login that would come to nothing is refused with the reason, before the form comes back without a word. */
function checkLogin({ login, name }: Caller, { isTls }: Arrival, origin: string | undefined): void {
  if (login !== 'none') {
    const where = login === 'proxy' ? 'a proxy' : 'the application';
    throw new Problem('forbidden', { detail: `${where} has let ${name} in already; there is nothing to log in to` });
  }
  const page = origin !== undefined && URL.canParse(origin) ? new URL(origin) : undefined;
  if (!isTls || page?.protocol !== 'http:' || isLoopback(page.hostname.replace(/^\[|\]$/g, ''))) return;
  throw new Problem('forbidden', {
    detail: `the page came by plain HTTP (${origin}), and the cookie would be for HTTPS only, so the browser would not keep it; allowed: the address with https, or a proxy that sends X-Forwarded-Proto: http`,
  });
}

const look = verb({
  name: 'session.get',
  method: 'get',
  at: '/session',
  summary: 'Look at who is logged in',
  doc: 'By the cookie, or as an application or a proxy says. Those get the cookie here that their CSRF token belongs to.',
  scope: 'none',
  queues: 'own',
  query: strict({
    optional: flagText
      .optional()
      .openapi({ description: 'That nobody is logged in is no problem: the answer is 204 then, and not 401.' }),
  }),
  answers: {
    200: { type: answers.Session, doc: 'Whose session it is, and its CSRF token.' },
    204: { doc: 'Nobody is logged in; only with `optional=true`.' },
  },
  problems: ['unauthorized'],
  async run({ query: { optional = false }, cookie, backend, caller, arrival }) {
    const kept = cookie(cookieNameOf(arrival));
    if (caller.login !== 'none') return lookOfGuest({ ...caller, login: caller.login }, arrival, kept);
    const place = await backend.place();
    const secret = kept ?? '';
    const found = await findSession(place, secret, nowOf(place));
    if (!found && optional) return { status: 204 };
    if (!found) throw stranger('there is no session; log in with a token');
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
  async run({ cookie, backend, arrival }: Call<undefined, undefined, undefined>) {
    await endSession(await backend.place(), cookie(cookieNameOf(arrival)) ?? '');
    return { status: 204, headers: { 'Set-Cookie': cookieOf('', arrival, 0) } };
  },
});

type Guest = Pick<Caller, 'name' | 'scopes' | 'queues'> & Pick<Answers['Session'], 'login'>;

/** A guest whose browser has a cookie of ours keeps it: a page that is open has the CSRF token that belongs to it. */
function lookOfGuest(
  { name, scopes, queues, login }: Guest,
  arrival: Arrival,
  kept: string | undefined,
): Answer<Answers['Session']> {
  const secret = isSecret(kept) ? kept : newSecret();
  return {
    status: 200,
    body: { name, login, scopes: [...scopes], queues, csrf: csrfOf(secret) },
    headers: secret === kept ? {} : { 'Set-Cookie': cookieOf(secret, arrival) },
  };
}

/** @param seconds left out: until the browser is closed */
function cookieOf(secret: string, arrival: Arrival, seconds?: number): string {
  const { prefix, isTls } = arrival;
  const age = seconds === undefined ? '' : ` Max-Age=${seconds};`;
  return `${cookieNameOf(arrival)}=${secret}; Path=${prefix || '/'};${age} HttpOnly; SameSite=Strict${isTls ? '; Secure' : ''}`;
}

function told({ name, scopes, queues }: Token, secret: string, expiresMs: number) {
  return { name, login: 'token' as const, scopes: [...scopesOf(scopes)], queues, expiresMs, csrf: csrfOf(secret) };
}

export const sessionVerbs: readonly AnyVerb[] = [login, look, logout];
