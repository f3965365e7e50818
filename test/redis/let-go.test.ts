/** `let-go`: entries of many jobs that end together leave ready in one go where they are its head. */
import { expect, test } from 'vitest';
import { item, T0, usePartition } from '../support/partition.ts';

const p = usePartition();
const many = (count: number) => Array.from({ length: count }, (_, nth) => item(`job-${nth}`));

async function commandsOf(call: () => Promise<unknown>): Promise<string> {
  await p.redis.config('RESETSTAT');
  await call();
  return p.redis.info('commandstats');
}

test('the head of ready is trimmed, in whatever order its jobs end', async () => {
  await p.scheduleAll(many(150));
  const claims = await p.run();
  const stats = await commandsOf(() => p.complete([...claims.slice(50, 120), ...claims.slice(0, 50)].toReversed()));
  expect(stats).toMatch(/cmdstat_xtrim:calls=1,/);
  expect(stats).not.toContain('cmdstat_xdel:');
  expect(await p.redis.xlen(p.keys.ready)).toBe(30);
  expect(await p.complete(claims.slice(120))).toEqual(Array.from({ length: 30 }, () => 'ok'));
  expect(await p.redis.xlen(p.keys.ready)).toBe(0);
  expect(await p.count('done')).toBe(150);
});

test('of a few jobs, and behind one that runs, each is deleted', async () => {
  await p.scheduleAll(many(30));
  const claims = await p.run();
  const few = await commandsOf(() => p.complete(claims.slice(0, 7)));
  expect(few).not.toContain('cmdstat_xtrim:');
  const behind = await commandsOf(() => p.complete(claims.slice(8)));
  expect(behind).not.toContain('cmdstat_xtrim:');
  expect(await p.redis.xlen(p.keys.ready)).toBe(1);
});

test('what waits for its delivery stays', async () => {
  await p.scheduleAll(many(40));
  await p.promote({ nowMs: T0 });
  const claims = await p.claim(await p.read('w1', 20));
  expect(await p.complete(claims)).toEqual(Array.from({ length: 20 }, () => 'ok'));
  expect(await p.redis.xlen(p.keys.ready)).toBe(20);
  expect(await p.read('w1')).toHaveLength(20);
});
