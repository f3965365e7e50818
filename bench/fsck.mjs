/**
 * How long `fsck` keeps Redis from serving anybody else: `npm run bench:fsck`. Full partitions of several sizes, one
 * job in three scheduled, ready and over, are read as `fsck` reads them; what counts is the longest single script by
 * the clock of Redis. Writes `bench/results/fsck.json`.
 */
import { argumentsFor } from '../scripts/arguments.mjs';
import { root } from '../scripts/steps.mjs';
import { keep, prepare, withRedis } from './parts.mjs';

/** @typedef {import('ioredis').Redis} Redis */

const SIZES = [1000, 2000, 5000, 10_000, 20_000, 50_000];
const TIMES = 9;
const DUE_MS = 4_000_000_000_000;

argumentsFor(import.meta.filename, {});
const { binary } = await prepare();
const { examine } = await import(`${root}dist/redis/repair/fsck.js`);
const { openCommands } = await import(`${root}dist/redis/connection/connect.js`);
const { partitionRef } = await import(`${root}dist/redis/keys.js`);

await withRedis(binary, async ({ redis, socketPath }) => {
  const commands = openCommands({ redis: { path: socketPath }, name: 'bench' });
  try {
    await redis.config('SET', 'slowlog-log-slower-than', '0', 'slowlog-max-len', '100000');
    const rows = [];
    for (const things of SIZES) rows.push(await measure({ plain: redis, commands }, things));
    keep('fsck', { what: 'the longest script of fsck, by the clock of Redis', rows });
  } finally {
    commands.disconnect();
  }
});

/**
 * @param {{ plain: Redis, commands: object }} redis
 * @param {number} things members, records, runs and entries together, about
 */
async function measure({ plain, commands }, things) {
  await plain.flushall();
  const ref = partitionRef('bench', { queue: 'q', partition: 0, layoutGeneration: 0 });
  // A scheduled or ready job is two things, and so is one that is over.
  await fill(plain, ref.keys, Math.round(things / 2));
  /** @type {number[]} */
  const longest = [];
  let [looked, atomic] = [0, false];
  for (let time = 0; time < TIMES; time += 1) {
    await plain.slowlog('RESET');
    const seen = await examine(commands, ref, { clock: { sleep: async () => true } });
    if (seen.flaws.length > 0) throw new Error(`the bench's own partition is broken: ${JSON.stringify(seen.flaws[0])}`);
    [looked, atomic] = [seen.looked, seen.atomic];
    longest.push(Math.max(...(await scriptTimes(plain))) / 1000);
  }
  longest.sort((a, b) => a - b);
  return {
    things,
    looked,
    atOneMoment: atomic,
    leastMs: longest[0],
    medianMs: longest[TIMES >> 1],
    maxMs: longest.at(-1),
  };
}

/** Microseconds of each script since the log was reset. @param {Redis} plain */
async function scriptTimes(plain) {
  const lines = await plain.slowlog('GET', 10_000);
  const entries = Array.isArray(lines) ? lines : [];
  return entries.filter((entry) => /^eval/i.test(entry[3][0])).map((entry) => Number(entry[2]));
}

/**
 * @param {Redis} plain
 * @param {Readonly<Record<string, string>>} keys
 * @param {number} jobs
 */
async function fill(plain, keys, jobs) {
  const { scheduled = '', records = keys.jobs ?? '', ready = '', done = '', meta = '' } = keys;
  await plain.xgroup('CREATE', ready, 'workers', '0', 'MKSTREAM');
  const record = `1${DUE_MS.toString(36)}|{"d":${JSON.stringify('x'.repeat(200))}}`;
  let live = 0;
  let pipeline = plain.pipeline();
  for (let nth = 0; nth < jobs; nth += 1) {
    const member = `j:job-${nth}`;
    if (nth % 3 < 2) live += 1;
    pipeline.hset(records, member, nth % 3 === 2 ? `.d${DUE_MS.toString(36)} 0123456789abcdef ${nth} 1 -` : record);
    if (nth % 3 === 0) pipeline.zadd(scheduled, DUE_MS, member);
    else if (nth % 3 === 1) pipeline.xadd(ready, '*', 'member', member, 'due', '1');
    else pipeline.zadd(done, Date.now(), member);
    if (nth % 1000 === 999) {
      await pipeline.exec();
      pipeline = plain.pipeline();
    }
  }
  pipeline.hset(meta, 'n.scheduled', jobs, 'n.done', jobs - live, 'token', jobs);
  await pipeline.exec();
}
