/** What an answered call leaves to the garbage collector: nothing that outlives a minor collection. */
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { createJobs } from '../../src/redis/scripts/jobs.ts';
import { item, T0, usePartition } from '../support/partition.ts';

setFlagsFromString('--expose-gc');
const collect: (what: { type: 'minor' }) => void = runInNewContext('gc');
const p = usePartition();

/** What came into the old space meanwhile, with two minor collections after each eighth call: the last one may still be in use. */
async function keptOf(calls: number, call: (nth: number) => Promise<unknown>): Promise<number> {
  const before = oldBytes();
  for (let nth = 0; nth < calls; nth += 1) {
    await call(nth);
    if (nth % 8 !== 7) continue;
    collect({ type: 'minor' });
    collect({ type: 'minor' });
  }
  return oldBytes() - before;
}

function oldBytes(): number {
  const old = getHeapSpaceStatistics().filter(({ space_name }) => space_name === 'old_space');
  return old.reduce((sum, { space_used_size }) => sum + space_used_size, 0);
}

const CALLS = 40;
const BYTES = 40_000;
/** Of what the calls carry. Calls have other things to keep, such as code that was compiled. */
const SOME = (CALLS * BYTES) / 3;

test('the arguments of a call', async () => {
  const words = () => Array.from({ length: 100 }, (_, nth) => `${nth}${'x'.repeat(BYTES / 100)}`);
  const push = () => p.redis.rpush('somewhere', ...words());
  await keptOf(16, push);
  expect(await keptOf(CALLS, push)).toBeLessThan(SOME);
});

test('the records that a turn of a worker brings', async () => {
  const take = 8;
  const warm = 16;
  const items = (nth: number) =>
    Array.from({ length: take }, (_, at) => item(`${nth}-${at}`, { data: 'x'.repeat(BYTES / take) }));
  for (let nth = 0; nth < 2 * CALLS + warm; nth += 1) await p.scheduleAll(items(nth));
  while ((await p.redis.xlen(p.keys.ready)) < (2 * CALLS + warm) * take) await p.promote();
  const jobs = createJobs(p.redis);
  const settings = { consumer: 'w1', bytesMax: 1_000_000, windowMs: 60_000, nowMs: T0 };
  const turn = async () => {
    const { taken } = await jobs.serve(p.ref, { ended: [], given: [], take }, settings);
    // `expect` would keep what it looks at.
    if (taken.length !== take) throw new Error(`${taken.length} came`);
  };
  await keptOf(warm, turn);
  // What is kept is kept each time; code that the compiler made meanwhile is there once.
  expect(Math.min(await keptOf(CALLS, turn), await keptOf(CALLS, turn))).toBeLessThan(SOME);
});
