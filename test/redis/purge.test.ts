/** `purge`: dead letters of an age and a reason go, a bounded batch per call, and nothing else does. */
import { expect, test } from 'vitest';
import { forget, purge } from '../../src/redis/scripts/upkeep.ts';
import { T0, usePartition } from '../support/partition.ts';

const p = usePartition();
const DAY_MS = 86_400_000;
const timeOf = (deadLetter: string) => Number(deadLetter.split('-')[0]);

async function deadLetters(reasons: Readonly<Record<string, string>>): Promise<readonly string[]> {
  for (const [id, reason] of Object.entries(reasons)) await p.bury(await p.running(id), { reason });
  return (await p.redis.xrange(p.keys.dead, '-', '+')).map(([deadLetter]) => deadLetter);
}
const call = (which: Partial<Parameters<typeof purge>[2]> = {}) =>
  purge(p.redis, p.ref, { mode: 'remove', ageMs: 0, limit: 100, ...which });
const left = async () => (await p.picture()).dead ?? [];

test('dead letters of the reason go, and are counted as forgotten', async () => {
  await deadLetters({ a: 'attempts', b: 'no-handler', c: 'attempts' });
  expect(await call({ reason: 'attempts' })).toEqual({ matched: 2, looked: 3, next: undefined });
  expect(await left()).toEqual(['j:b: no-handler']);
  expect(await p.count('forgotten')).toBe(2);
  expect(await p.withoutWrite(() => call({ reason: 'attempts' }))).toEqual({ matched: 0, looked: 1, next: undefined });
});

test('a dead letter goes from the millisecond on in which it is old enough', async () => {
  const [deadLetter = ''] = await deadLetters({ a: 'attempts' });
  const old = { ageMs: DAY_MS };
  expect(await call({ ...old, nowMs: timeOf(deadLetter) + DAY_MS - 1 })).toEqual({
    matched: 0,
    looked: 0,
    next: undefined,
  });
  expect(await call({ ...old, nowMs: timeOf(deadLetter) + DAY_MS })).toMatchObject({ matched: 1 });
});

test('of any age goes also what a clock ahead has written, and a call ends at the dead letter that is its last', async () => {
  const [, second = '', third = ''] = await deadLetters({ a: 'attempts', b: 'attempts', c: 'attempts' });
  expect(await call({ nowMs: timeOf(third) - DAY_MS })).toEqual({ matched: 0, looked: 0, next: undefined });
  const ended = { ageMs: undefined, nowMs: timeOf(third) - DAY_MS, last: second };
  expect(await call(ended)).toEqual({ matched: 2, looked: 2, next: undefined });
  expect(await call(ended)).toEqual({ matched: 0, looked: 0, next: undefined });
  expect(await left()).toEqual(['j:c: attempts']);
});

test('a batch is bounded by the dead letters it looks at, and says where the next goes on', async () => {
  const [, second = ''] = await deadLetters({ a: 'attempts', b: 'no-handler', c: 'attempts' });
  const first = await call({ reason: 'attempts', limit: 2 });
  expect(first).toEqual({ matched: 1, looked: 2, next: second });
  expect(await call({ reason: 'attempts', limit: 2, after: first.next })).toEqual({
    matched: 1,
    looked: 1,
    next: undefined,
  });
  expect(await left()).toEqual(['j:b: no-handler']);
});

test('a call ends when it has read a quarter of a megabyte, and the next goes on', async () => {
  const data = 'x'.repeat(90_000);
  for (const id of ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']) await p.bury(await p.running(id, { data }));
  const looked: number[] = [];
  let after: string | undefined;
  do {
    const batch = await call({ after });
    looked.push(batch.looked);
    after = batch.next;
  } while (after !== undefined);
  expect(looked).toEqual([3, 3, 2]);
  expect(await left()).toEqual([]);
});

test('counting looks the same and writes nothing', async () => {
  await deadLetters({ a: 'attempts', b: 'attempts' });
  expect(await p.withoutWrite(() => call({ mode: 'count' }))).toEqual({ matched: 2, looked: 2, next: undefined });
});

test('a partition without dead letters has nothing to purge', async () => {
  await p.schedule('a', { dueMs: T0 + 1 });
  expect(await p.withoutWrite(() => call())).toEqual({ matched: 0, looked: 0, next: undefined });
});

test('dead letters that are named go, and only those that are there count as forgotten', async () => {
  const [first = '', , third = ''] = await deadLetters({ a: 'attempts', b: 'attempts', c: 'attempts' });
  expect(await forget(p.redis, p.ref, [first, third, '1-1'])).toBe(2);
  expect(await left()).toEqual(['j:b: attempts']);
  expect(await p.count('forgotten')).toBe(2);
  expect(await forget(p.redis, p.ref, [first, third, '1-1'])).toBe(0);
  expect(await p.withoutWrite(() => forget(p.redis, p.ref, []))).toBe(0);
  expect(await p.count('forgotten')).toBe(2);
});
