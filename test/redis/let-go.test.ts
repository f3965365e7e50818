/** `let-go`: entries of many jobs that end together leave ready in one go where they are its head. */
import { expect, test } from 'vitest';
import { z } from 'zod';
import { item, T0, usePartition } from '../support/partition.ts';
import { hollowNodes, liveEntries } from '../support/streams.mjs';

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
  expect(stats).toMatch(/cmdstat_xdel:calls=1,/);
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

/** Redis puts at most a hundred entries into a node. */
const NODE = 100;

test.each([
  ['of one node', 10, [9]],
  ['of the first of two nodes', NODE + 50, [NODE - 2, NODE - 1]],
  ['of the last of three nodes', 2 * NODE + 20, [2 * NODE + 18, 2 * NODE + 19]],
  ['in the middle of a node', 30, [12, 13, 14]],
])('no node is left without an entry where the last entries %s had left before', async (_, count, early) => {
  await p.scheduleAll(many(count));
  const claims = await p.run();
  await p.complete(claims.filter((__, nth) => early.includes(nth)));
  const rest = claims.filter((__, nth) => !early.includes(nth));
  const last = early.at(-1) ?? 0;
  await p.complete(rest.filter((__, nth) => nth < last));
  expect(await hollowNodes(p.redis, p.keys.ready)).toBe(0);
  await p.complete(rest.slice(last));
  expect(await p.redis.xlen(p.keys.ready)).toBe(0);
  expect(await hollowNodes(p.redis, p.keys.ready)).toBe(0);
});

test('a dump shows which nodes are hollow, packed ones too', async () => {
  const key = p.keys.dead;
  const text = 'x'.repeat(20);
  for (let nth = 1; nth <= 250; nth += 1) await p.redis.xadd(key, `${nth}-0`, 'text', text);
  const nodes = async () => liveEntries(z.instanceof(Buffer).parse(await p.redis.callBuffer('DUMP', key)));
  expect(await nodes()).toEqual([100, 100, 50]);
  await p.redis.xdel(key, '199-0', '200-0', '250-0');
  await p.redis.call('XTRIM', key, 'MINID', '199-0');
  expect([await nodes(), await hollowNodes(p.redis, key)]).toEqual([[0, 49], 1]);
  await p.redis.config('SET', 'rdbcompression', 'no');
  expect(await nodes()).toEqual([0, 49]);
  await p.redis.config('SET', 'rdbcompression', 'yes');
  expect(await hollowNodes(p.redis, 'nothing')).toBe(0);
  await p.reset();
});
