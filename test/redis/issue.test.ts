/** `issue`: a token of the HTTP API is added in the step that counts them, and those that have expired go with it. */
import { expect, test } from 'vitest';
import { createToken, listTokens, type Token, verifyToken } from '../../src/access/tokens.ts';
import { controlKeys } from '../../src/redis/keys.ts';
import { issueToken } from '../../src/redis/scripts/tokens.ts';
import { T0, usePartition } from '../support/partition.ts';

const p = usePartition();
const keys = controlKeys('t');
const place = () => ({ redis: p.redis, namespace: 't' });
const create = (name: string, expiresMs?: number) =>
  createToken(place(), { name, scopes: ['read'], expiresMs }, expiresMs === undefined ? Date.now() : expiresMs - 1);
const names = async () => (await listTokens(place())).map(({ name }) => name);
const stored = (name: string, expiresMs?: number) =>
  JSON.stringify({ name, hash: '0'.repeat(64), scopes: ['read'], createdMs: T0, expiresMs });
const issue = (id: string, known: readonly (readonly [id: string, expiresMs: number | undefined])[], most = 3) =>
  issueToken(p.redis, 't', {
    id,
    token: stored(id),
    most,
    known: known.map(([id, expiresMs]) => ({ id, expiresMs })),
    nowMs: T0,
  });

test('is added to the tokens that were read, and the same call again is no conflict', async () => {
  expect(await issue('a', [])).toBe('ok');
  expect(await p.withoutWrite(() => issue('a', []))).toBe('ok');
  expect(await issue('b', [['a', undefined]])).toBe('ok');
  expect(await p.redis.hgetall(keys.tokens)).toEqual({ a: stored('a'), b: stored('b') });
});

test('is not added when another one came or went since they were read', async () => {
  await issue('a', []);
  expect(await p.withoutWrite(() => issue('b', []))).toBe('changed');
  expect(await p.withoutWrite(() => issue('b', [['gone', undefined]]))).toBe('changed');
});

test('takes those away that have expired, at their very moment, and is refused when there are too many others', async () => {
  await issue('a', []);
  await issue('b', [['a', undefined]]);
  const known = [
    ['a', undefined],
    ['b', T0 + 1],
  ] as const;
  expect(await p.withoutWrite(() => issue('c', known, 2))).toBe('full');
  expect(
    await issue(
      'c',
      [
        ['a', undefined],
        ['b', T0],
      ],
      2,
    ),
  ).toBe('ok');
  expect((await p.redis.hkeys(keys.tokens)).toSorted()).toEqual(['a', 'c']);
});

test('of many that are created at the same time each is added, and of two with one name one', async () => {
  await Promise.all(['a', 'b', 'c', 'd', 'e'].map((name) => create(name)));
  expect(await names()).toEqual(['a', 'b', 'c', 'd', 'e']);
  const twins = await Promise.allSettled([create('twin'), create('twin')]);
  expect(twins.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
});

test('the last place is given once', async () => {
  const many = Array.from({ length: 999 }, (_, at) => [`id${at}`, stored(`token${at}`)]);
  await p.redis.hset(keys.tokens, ...many.flat());
  const last = await Promise.allSettled([create('a'), create('b'), create('c')]);
  expect(last.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  expect(await p.redis.hlen(keys.tokens)).toBe(1000);
  await expect(create('d')).rejects.toMatchObject({ code: 'bad-input', message: expect.stringContaining('1000') });
});

test('tokens that expire never fill the room of others, however many are made, and free their names', async () => {
  const expired = Array.from({ length: 999 }, (_, at) => [`id${at}`, stored(`token${at}`, T0)]);
  await p.redis.hset(keys.tokens, ...expired.flat());
  let lives: (Token & { readonly token: string }) | undefined;
  for (let round = 0; round < 20; round += 1) {
    lives = await create('lives');
    await create('short', T0 + round + 1);
    expect(await p.redis.hlen(keys.tokens)).toBe(2);
    await p.redis.hdel(keys.tokens, lives.id);
  }
  lives = await create('short');
  expect(await names()).toEqual(['short']);
  expect(await verifyToken(place(), lives.token, Date.now())).toMatchObject({ name: 'short' });
});
