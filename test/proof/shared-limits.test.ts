/**
 * Limits that several queues share hold whatever happens: random lives on the real scripts, with clocks that are 500 ms apart, calls that
 * come 3 s late and leaders that die or do not know that they were replaced. An observer counts.
 *
 *     LENDING_WALKS=2000 LENDING_SEED=21 npx vitest run test/proof/shared-limits.test.ts
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { close, openCommands, type Redis, whenReady } from '../../src/redis/connection/connect.ts';
import type { Gift } from '../../src/redis/scripts/lending.ts';
import { LendingWorld, type Seen } from '../support/lending-world.ts';
import { planted, slipped } from '../support/planted.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';

const WALKS = Number(process.env.LENDING_WALKS ?? 30);
const SEED = Number(process.env.LENDING_SEED ?? 21);
const BUG_WALKS = 60;
const KNOWN_SEED = 21;
const LIFE_MS = 10_000;

let server: TestRedis;
let redis: Redis;
beforeAll(async () => {
  server = await startRedis();
  redis = openCommands({ redis: { path: server.socketPath }, name: 'lending' });
  await whenReady(redis);
});
afterAll(async () => {
  close(redis);
  await server.stop();
});

test(`${WALKS} lives keep a rate and a concurrency that several queues share`, { timeout: 3_600_000 }, async () => {
  const seen: Seen[] = [];
  const wrong: string[] = [];
  for (let nth = 0; nth < WALKS && wrong.length < 3; nth += 1) {
    const one = await new LendingWorld(redis, { seed: SEED * 100_000 + nth, lifeMs: LIFE_MS }).walk();
    seen.push(one);
    if (one.wrong !== undefined) wrong.push(`walk ${nth}: ${one.wrong}`);
  }
  if (process.env.LENDING_SHOW) console.log(summary(seen));
  expect(wrong).toEqual([]);
  expect(seen.reduce((sum, { starts }) => sum + starts, 0)).toBeGreaterThan(WALKS * 20);
});

/**
 * `[what is wrong, the walk that notices it, script or part, words of it, words in their place]`. Of 60 walks about three notice each.
 * What walks meet too seldom has stories, and bugs of its own in `test/redis/lend-bugs.test.ts`.
 */
const BUGS: readonly (readonly [wrong: string, nth: number, of: string, words: string, instead: string])[] = [
  [
    'a share goes back by time',
    18,
    'ledger',
    'book.rows[name] = row',
    'row.share = now - row.beat > 1500 and 0 or row.share\n      book.rows[name] = row',
  ],
  [
    'a partition takes gifts of any leader',
    20,
    'borrow',
    "if redis.call('GET', leader) ~= term then return { 'fenced' } end",
    '',
  ],
];

/** The walk that is known to notice a bug; where the world has changed, the first of these that does. */
async function isNoticed(nth: number, bend?: (gift: Gift) => Gift): Promise<boolean> {
  for (const one of [nth, ...Array.from({ length: BUG_WALKS }, (_, at) => at)]) {
    const seed = KNOWN_SEED * 100_000 + one;
    const { wrong } = await new LendingWorld(redis, { seed, lifeMs: LIFE_MS, ...(bend && { bend }) }).walk();
    if (process.env.LENDING_SHOW) console.log(`walk ${one}: ${wrong}`);
    if (wrong !== undefined) return true;
  }
  return false;
}

test.each(BUGS)('walks notice that %s', { timeout: 600_000 }, async (_, nth, of, words, instead) => {
  const heal = planted(redis, { of, lua: slipped({ of, words, instead }) });
  const noticed = await isNoticed(nth);
  heal();
  expect(noticed).toBe(true);
});

test('walks notice turns that end two seconds too late', { timeout: 600_000 }, async () => {
  expect(await isNoticed(22, (gift) => ({ ...gift, endsMs: gift.endsMs + 2000 }))).toBe(true);
});

function summary(seen: readonly Seen[]) {
  const calm = seen.filter(({ isCalm }) => isCalm);
  return {
    walks: seen.length,
    starts: seen.reduce((sum, { starts }) => sum + starts, 0),
    nearest: Math.max(...seen.map(({ nearest }) => nearest)),
    alone: calm
      .filter(({ isAlone }) => isAlone)
      .map(({ starts, perSecond }) => starts / ((LIFE_MS / 1000) * perSecond)),
    each: calm.filter(({ isAlone }) => !isAlone).map(({ each }) => each.join(' ')),
  };
}
