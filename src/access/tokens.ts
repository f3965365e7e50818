/**
 * Tokens of the HTTP API. Redis has their hashes, never the tokens: a token is 32 random bytes, which nobody can guess, so
 * one SHA-256 is enough, and a slow hash for passwords would only make each request slow. A copy of Redis opens nothing.
 *
 *     due_<id, 12 hexadecimal digits>_<32 random bytes in base64url>
 */
import { createHmac, hash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Namespaced } from '../client/queues/refs.ts';
import { parseName } from '../job/job.ts';
import { hintOf } from '../kernel/checks.ts';
import { show } from '../kernel/duration.ts';
import { DuestreamError } from '../kernel/errors.ts';
import { memberOf } from '../redis/connection/cluster/members.ts';
import { timeAt } from '../redis/connection/server-clock.ts';
import { controlKeys, SESSION_MS } from '../redis/keys.ts';
import { issueToken, TOKENS_MAX } from '../redis/scripts/tokens.ts';

/**
 * `read`: what is there, not what is in it · `data`: also data, errors and results of jobs · `write`: changes · `admin`: all,
 * and what cannot be undone, and the audit · `work`: to claim jobs as a worker over HTTP and to say how they ended, and nothing
 * else. `data` and `write` include `read`.
 */
export type Scope = (typeof SCOPES)[number];
export const SCOPES = ['read', 'data', 'write', 'admin', 'work'] as const;

export interface Token {
  readonly id: string;
  readonly name: string;
  readonly scopes: readonly Scope[];
  /** Undefined: all queues. */
  readonly queues?: readonly string[] | undefined;
  readonly createdMs: number;
  /** Undefined: it does not expire. */
  readonly expiresMs?: number | undefined;
}

interface Stored extends Omit<Token, 'id'> {
  readonly hash: string;
}

export interface NewToken {
  readonly name: string;
  readonly scopes: readonly Scope[];
  readonly queues?: readonly string[] | undefined;
  readonly expiresMs?: number | undefined;
}

const TOKEN = /^due_([0-9a-f]{12})_[A-Za-z0-9_-]{43}$/;
const NAME = /^[A-Za-z0-9][A-Za-z0-9._@:-]{0,63}$/;
const QUEUES_MAX = 100;
const CHANGES_MAX = 20;
/** Compared with where there is no such token, so that the answer takes as long. */
const NOBODY = hash('sha256', 'nobody');

/** Makes one, and takes away those that have expired. The text is told once and never again. @throws DuestreamError `bad-input`, `exists`, `moved` */
export async function createToken(
  place: Namespaced,
  { name, scopes, queues, expiresMs }: NewToken,
  nowMs: number,
): Promise<Token & { readonly token: string }> {
  checkNew({ name, scopes, queues, expiresMs }, nowMs);
  const id = randomBytes(6).toString('hex');
  const token = `due_${id}_${randomBytes(32).toString('base64url')}`;
  const stored: Stored = { name, hash: hash('sha256', token), scopes, queues, createdMs: nowMs, expiresMs };
  await issue(place, id, stored);
  return { id, name, scopes, queues, createdMs: nowMs, expiresMs, token };
}

/** Once more when somebody else has made or revoked one meanwhile: whether there is room, and the name is free, is asked in one step. */
async function issue({ redis, namespace }: Namespaced, id: string, stored: Stored): Promise<void> {
  const { name } = stored;
  for (let tries = 0; tries < CHANGES_MAX; tries += 1) {
    const all = await redis.hgetall(keyOf({ namespace }));
    // By the clock that decides which of them go.
    const serverMs = Math.floor(await timeAt(memberOf(redis, keyOf({ namespace }))));
    const known = Object.entries(all).map(([one, text]) => ({ id: one, stored: decode(text) }));
    if (known.some((one) => one.stored?.name === name && !isExpired(one.stored, serverMs))) {
      throw new DuestreamError('exists', `a token called ${name} exists; allowed: another name, or revoke it first`);
    }
    const ids = known.map((one) => ({ id: one.id, expiresMs: one.stored?.expiresMs }));
    const call = { id, token: JSON.stringify(stored), known: ids };
    const reply = await issueToken(redis, namespace, call);
    if (reply === 'ok') return;
    if (reply === 'full') {
      throw new DuestreamError('bad-input', `there are ${ids.length} tokens; allowed: ${TOKENS_MAX}; revoke some`);
    }
  }
  throw new DuestreamError(
    'moved',
    `token ${name}: other calls make and revoke tokens all the time; try again in a moment`,
  );
}

/** Whether a text can be a token at all. */
export const isTokenText = (text: string): boolean => TOKEN.test(text);

/** By name, also those that have expired and that the next one has not taken the place of yet. What cannot be read is left out: it opens nothing. */
export async function listTokens(place: Namespaced): Promise<readonly Token[]> {
  const all = await place.redis.hgetall(keyOf(place));
  return Object.entries(all)
    .flatMap(([id, text]) => {
      const stored = decode(text);
      return stored ? [tokenOf(id, stored)] : [];
    })
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** By name or id; it opens nothing from the next request on. @throws DuestreamError `not-found` */
export async function revokeToken(place: Namespaced, nameOrId: string): Promise<Token> {
  const known = await listTokens(place);
  const found = known.find(({ id, name }) => id === nameOrId || name === nameOrId);
  if (!found) {
    const hint =
      hintOf(
        nameOrId,
        known.map(({ name }) => name),
      ) || ';';
    throw new DuestreamError(
      'not-found',
      `there is no token ${show(nameOrId)}${hint} "duestream tokens ls" lists them`,
    );
  }
  await place.redis.hdel(keyOf(place), found.id);
  return found;
}

/** Whose token it is; undefined where nobody's, or it has expired. */
export async function verifyToken(place: Namespaced, text: string, nowMs: number): Promise<Token | undefined> {
  const id = TOKEN.exec(text)?.[1] ?? '';
  const value = id === '' ? null : await place.redis.hget(keyOf(place), id);
  const stored = value === null ? undefined : decode(value);
  const isRight = isSame(hash('sha256', text), stored?.hash ?? NOBODY);
  if (!isRight || !stored) return undefined;
  return isExpired(stored, nowMs) ? undefined : tokenOf(id, stored);
}

/** The token of an id, unless it was revoked or has expired. */
async function tokenOfId(place: Namespaced, id: string, nowMs: number): Promise<Token | undefined> {
  const stored = decode((await place.redis.hget(keyOf(place), id)) ?? '');
  return stored && !isExpired(stored, nowMs) ? tokenOf(id, stored) : undefined;
}

/** What the scopes of a token include. */
export function scopesOf(scopes: readonly Scope[]): ReadonlySet<Scope> {
  if (scopes.includes('admin')) return new Set(SCOPES);
  return new Set<Scope>(scopes.every((scope) => scope === 'work') ? scopes : ['read', ...scopes]);
}

const keyOf = ({ namespace }: Pick<Namespaced, 'namespace'>): string => controlKeys(namespace).tokens;
const isExpired = ({ expiresMs }: Pick<Token, 'expiresMs'>, nowMs: number) =>
  expiresMs !== undefined && expiresMs <= nowMs;

function isSame(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one, 'hex'), Buffer.from(other, 'hex')];
  return a.length === b.length && timingSafeEqual(a, b);
}

function checkNew({ name, scopes, queues = [], expiresMs }: NewToken, nowMs: number): void {
  if (!NAME.test(name))
    throw bad('token name', name, '1 to 64 of A-Z a-z 0-9 . _ @ : - beginning with a letter or digit');
  if (scopes.length === 0) throw bad('scope', '', SCOPES.join(', '));
  for (const scope of scopes) if (!SCOPES.includes(scope)) throw bad('scope', scope, SCOPES.join(', '));
  if (queues.length > QUEUES_MAX) throw bad('queues', `${queues.length} queues`, `at most ${QUEUES_MAX}`);
  for (const queue of queues) parseName(queue, 'queue');
  if (expiresMs !== undefined && !(expiresMs > nowMs)) {
    throw bad('expires', new Date(expiresMs).toISOString(), 'a moment that is to come');
  }
}

function tokenOf(id: string, { hash: _, ...rest }: Stored): Token {
  return { id, ...rest };
}

function decode(text: string): Stored | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isStored(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Anybody may have written it: a token that says less than it should opens nothing. */
function isStored(value: unknown): value is Stored {
  if (typeof value !== 'object' || value === null) return false;
  const { name, hash: hashed, scopes, queues, createdMs, expiresMs } = value as Partial<Record<keyof Stored, unknown>>;
  const isText = typeof name === 'string' && typeof hashed === 'string' && /^[0-9a-f]{64}$/.test(hashed);
  const isTexts = (list: unknown) => Array.isArray(list) && list.every((one) => typeof one === 'string');
  const isTime = typeof createdMs === 'number' && (expiresMs === undefined || typeof expiresMs === 'number');
  return isText && isTime && isTexts(scopes) && (queues === undefined || isTexts(queues));
}

const bad = (what: string, given: string, allowed: string) =>
  new DuestreamError('bad-input', `${what} is ${show(given)}; allowed: ${allowed}`);

// Sessions of pages. A page logs in with a token once; from then on a cookie speaks for it, for half a day at most.
// Redis has the hash of what the cookie holds and the id of the token, so a copy of Redis opens nothing, and a token
// that is revoked ends its sessions. The CSRF token follows from the cookie: who cannot read the cookie cannot make it.

interface Session {
  readonly token: Token;
  readonly expiresMs: number;
}

const SECRET = /^[A-Za-z0-9_-]{43}$/;

/** What the cookie of a page holds. That of a guest, whom somebody else has let in, stands for no session: only its CSRF token counts. */
export const newSecret = (): string => randomBytes(32).toString('base64url');
export const isSecret = (text: string | undefined): text is string => text !== undefined && SECRET.test(text);

/** @returns what the cookie is to hold */
export async function openSession(
  place: Namespaced,
  token: Token,
  nowMs: number,
): Promise<Session & { readonly secret: string }> {
  const secret = newSecret();
  const leftMs = Math.min(SESSION_MS, (token.expiresMs ?? Number.POSITIVE_INFINITY) - nowMs);
  const expiresMs = nowMs + leftMs;
  await place.redis.set(sessionKeyOf(place, secret), `${token.id} ${expiresMs}`, 'PX', Math.max(1, Math.floor(leftMs)));
  return { token, expiresMs, secret };
}

/** Undefined where it is over, or its token opens nothing any more. */
export async function findSession(place: Namespaced, secret: string, nowMs: number): Promise<Session | undefined> {
  if (!SECRET.test(secret)) return undefined;
  const [id, expires] = ((await place.redis.get(sessionKeyOf(place, secret))) ?? '').split(' ');
  if (id === undefined || id === '' || !(Number(expires) > nowMs)) return undefined;
  const token = await tokenOfId(place, id, nowMs);
  return token && { token, expiresMs: Number(expires) };
}

export async function endSession(place: Namespaced, secret: string): Promise<void> {
  if (SECRET.test(secret)) await place.redis.del(sessionKeyOf(place, secret));
}

/** What a page sends with each change, in a header. */
export const csrfOf = (secret: string): string => createHmac('sha256', secret).update('csrf').digest('base64url');

/** Never without a cookie of ours: anybody can work out what belongs to an empty one. */
export function isCsrf(secret: string, given: string | undefined): boolean {
  if (!isSecret(secret)) return false;
  const [a, b] = [Buffer.from(csrfOf(secret)), Buffer.from(given ?? '')];
  return a.length === b.length && timingSafeEqual(a, b);
}

const sessionKeyOf = ({ namespace }: Namespaced, secret: string): string =>
  controlKeys(namespace).session(hash('sha256', secret));
