/** `watch`: who of the workers of a queue looks for dead ones. */
import { expect, test } from 'vitest';
import { watch } from '../../src/redis/scripts/ready.ts';
import { T0, usePartition } from '../support/partition.ts';

const p = usePartition();
const TERM_MS = 6000;

const ask = (
  consumer: string,
  { wish = 'watch', nowMs = T0, seats = 2 }: { wish?: 'watch' | 'rest' | 'alarm'; nowMs?: number; seats?: number } = {},
) => watch(p.redis, p.ref, { consumer, wish, seats, termMs: TERM_MS, nowMs });

test('there are so many seats and no more, and whoever has one keeps it', async () => {
  expect([await ask('w1'), await ask('w2'), await ask('w3')]).toEqual(['seat', 'seat', 'rest']);
  expect([await ask('w3'), await ask('w2'), await ask('w1')]).toEqual(['rest', 'seat', 'seat']);
});

test('who has no seat writes nothing', async () => {
  await ask('w1');
  await ask('w2');
  expect(await p.withoutWrite(() => ask('w3', { nowMs: T0 + 1000 }))).toBe('rest');
});

test('the same call twice changes nothing', async () => {
  await ask('w1');
  expect(await p.withoutWrite(() => ask('w1'))).toBe('seat');
  await ask('w1', { wish: 'rest' });
  expect(await p.withoutWrite(() => ask('w1', { wish: 'rest' }))).toBe('rest');
});

test('a seat is free when its holder gives it back, or has not asked for a term', async () => {
  await ask('w1');
  await ask('w2');
  expect(await ask('w1', { wish: 'rest' })).toBe('rest');
  expect(await ask('w3')).toBe('seat');
  expect(await ask('w4', { nowMs: T0 + TERM_MS - 1 })).toBe('rest');
  expect(await ask('w4', { nowMs: T0 + TERM_MS })).toBe('seat');
});

test('an alarm calls all for a term, and holds on while it is given', async () => {
  await ask('w1');
  await ask('w2');
  expect(await ask('w1', { wish: 'alarm' })).toBe('seat');
  expect(await ask('w3')).toBe('alarm');
  expect(await ask('w3', { nowMs: T0 + 3000, wish: 'alarm' })).toBe('alarm');
  await ask('w1', { nowMs: T0 + 5000 });
  await ask('w2', { nowMs: T0 + 5000 });
  expect(await ask('w4', { nowMs: T0 + 3000 + TERM_MS - 1 })).toBe('alarm');
  expect(await ask('w4', { nowMs: T0 + 3000 + TERM_MS })).toBe('rest');
});

test('what would hold for too long is void, because the clock went back', async () => {
  const lateMs = T0 + 100_000;
  await ask('w1', { nowMs: lateMs, wish: 'alarm' });
  await ask('w2', { nowMs: lateMs });
  expect([await ask('w3'), await ask('w4'), await ask('w5')]).toEqual(['seat', 'seat', 'rest']);
});

test('nonsense in the field is replaced', async () => {
  for (const nonsense of ['', 'nonsense', '0 x y', ' 1 2 3', '99999999999999999999 a']) {
    await p.redis.hset(p.keys.meta, 'watch', nonsense);
    expect(await ask('w1')).toBe('seat');
    expect(await p.meta('watch')).toBe(`0 ${T0 + TERM_MS} w1`);
  }
});

test('the clock of the server decides when no time is given', async () => {
  await watch(p.redis, p.ref, { consumer: 'w1', wish: 'watch', seats: 1, termMs: TERM_MS });
  const [, untilMs] = ((await p.meta('watch')) ?? '').split(' ');
  const [seconds] = await p.redis.time();
  expect(Math.abs(Number(untilMs) - TERM_MS - Number(seconds) * 1000)).toBeLessThan(30_000);
});
