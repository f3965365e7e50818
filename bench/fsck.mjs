/**
 * How long `fsck` keeps Redis from serving anybody else: `npm run bench:fsck`. Full partitions of several sizes, one
 * job in three scheduled, ready and over, are read as `fsck` reads them; what counts is the longest single script by
 * the clock of Redis. Writes `bench/results/fsck.json`.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { build, redis as findRedis, root } from '../scripts/steps.mjs';
import { startServer } from '../test/chaos/server.mjs';

const SIZES = [1000, 2000, 5000, 10_000, 20_000, 50_000];
const TIMES = 9;
const DUE_MS = 4_000_000_000_000;

const { env } = await findRedis(process.env);
const binary = env.DUESTREAM_REDIS_SERVER_BIN;
if (!binary) throw new Error('the bench needs a Redis of its own: leave DUESTREAM_REDIS_URL out');
await build();
const { examine } = await import(`${root}dist/redis/fsck.js`);
const { openCommands } = await import(`${root}dist/redis/connect.js`);
const { partitionRef } = await import(`${root}dist/redis/keys.js`);

const folder = mkdtempSync(join(tmpdir(), 'due-bench-'));
const server = await startServer({ binary, folder, mode: 'none' });
const plain = new Redis({ path: server.socketPath });
const commands = openCommands({ redis: { path: server.socketPath }, name: 'bench' });
try {
  const version = /(?:redis|valkey)_version:(\S+)/.exec(await plain.info('server'))?.[1];
  await plain.config('SET', 'slowlog-log-slower-than', '0', 'slowlog-max-len', '100000');
  const rows = [];
  for (const things of SIZES) rows.push(await measure(things));
  const host = `${cpus().length} × ${cpus()[0]?.model}`;
  const result = {
    what: 'the longest script of fsck, by the clock of Redis',
    host,
    node: process.version,
    redis: version,
    rows,
  };
  mkdirSync(join(root, 'bench', 'results'), { recursive: true });
  writeFileSync(join(root, 'bench', 'results', 'fsck.json'), `${JSON.stringify(result, null, 2)}\n`);
  console.table(rows);
} finally {
  plain.disconnect();
  commands.disconnect();
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
}

/** @param {number} things members, records, runs and entries together, about */
async function measure(things) {
  await plain.flushall();
  const ref = partitionRef('bench', { queue: 'q', partition: 0, generation: 0 });
  // A scheduled or ready job is two things, and so is one that is over.
  await fill(ref.keys, Math.round(things / 2));
  /** @type {number[]} */
  const longest = [];
  let [looked, atomic] = [0, false];
  for (let time = 0; time < TIMES; time += 1) {
    await plain.slowlog('RESET');
    const seen = await examine(commands, ref, { clock: { sleep: async () => true } });
    if (seen.flaws.length > 0) throw new Error(`the bench's own partition is broken: ${JSON.stringify(seen.flaws[0])}`);
    [looked, atomic] = [seen.looked, seen.atomic];
    longest.push(Math.max(...(await scriptTimes())) / 1000);
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

/** Microseconds of each script since the log was reset. */
async function scriptTimes() {
  const lines = await plain.slowlog('GET', 10_000);
  const entries = Array.isArray(lines) ? lines : [];
  return entries.filter((entry) => /^eval/i.test(entry[3][0])).map((entry) => Number(entry[2]));
}

/**
 * @param {Readonly<Record<string, string>>} keys
 * @param {number} jobs
 */
async function fill(keys, jobs) {
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
