/**
 * What it costs to remember how jobs ended: `npm run bench:done`. Bytes of Redis per tombstone, by how many there are, and
 * how long the janitor's call keeps Redis from serving anybody else. Writes `bench/results/done.json`.
 */
import { argumentsFor } from '../scripts/arguments.mjs';
import { root } from '../scripts/steps.mjs';
import { keep, prepare, withRedis } from './parts.mjs';

/** @typedef {import('ioredis').Redis} Redis */

const SIZES = [10_000, 100_000, 1_000_000];
const SWEEPS = 200;
const BATCH = 500;
const STEP = 1000;
const TOMBSTONE = '.dmi8or64g f2a81d6e2f0d37bd 1763719000123456 1 -';
/** Older than the floor, younger than the window. */
const AGE_MS = 300_000;

argumentsFor(import.meta.filename, {});
const { binary } = await prepare();
const { elect, sweep } = await import(`${root}dist/redis/scripts/lease.js`);
const { openCommands } = await import(`${root}dist/redis/connection/connect.js`);
const { partitionRef } = await import(`${root}dist/redis/keys.js`);

await withRedis(binary, async ({ redis, socketPath }) => {
  const commands = openCommands({ redis: { path: socketPath }, name: 'bench', commandTimeoutMs: 60_000 });
  const ref = partitionRef('bench', { queue: 'q', partition: 0, layoutGeneration: 0 });
  try {
    const rows = [];
    for (const ends of SIZES) rows.push(await measure({ redis, commands, ref }, ends));
    keep('done', { what: 'tombstones with ids of 22 characters; sweep of 500 by their number', rows });
  } finally {
    commands.disconnect();
  }
});

/**
 * @param {{ redis: Redis, commands: object, ref: { keys: Readonly<Record<string, string>> } }} at
 * @param {number} ends
 */
async function measure({ redis, commands, ref }, ends) {
  await redis.flushall();
  const emptyBytes = await usedBytes(redis);
  await fill(redis, ref.keys, ends);
  const bytesPerEnd = Math.round((await usedBytes(redis)) - emptyBytes) / ends;
  const { term } = await elect(commands, ref, { processId: 'bench', leaseMs: 600_000 });
  const limits = {
    batch: BATCH,
    windowMs: 600_000,
    tombstonesMax: 1,
    floorMs: 60_000,
    retentionMs: 1e9,
    deadLettersMax: 1,
  };
  await redis.config('SET', 'slowlog-log-slower-than', '0', 'slowlog-max-len', '10000');
  await redis.slowlog('RESET');
  for (let time = 0; time < Math.min(SWEEPS, ends / BATCH); time += 1) await sweep(commands, ref, { term, limits });
  const lines = await redis.slowlog('GET', 10_000);
  const times = (Array.isArray(lines) ? lines : [])
    .filter((entry) => /^eval/i.test(entry[3][0]))
    .map((entry) => Number(entry[2]) / 1000)
    .sort((a, b) => a - b);
  return { ends, bytesPerEnd, sweepMedianMs: times[times.length >> 1], sweepMaxMs: times.at(-1) };
}

/** @param {Redis} redis */
async function usedBytes(redis) {
  return Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1]);
}

/**
 * @param {Redis} redis
 * @param {Readonly<Record<string, string>>} keys
 * @param {number} ends
 */
async function fill(redis, { jobs = '', done = '' }, ends) {
  const fromMs = Date.now() - AGE_MS;
  for (let from = 0; from < ends; from += STEP) {
    const members = Array.from({ length: STEP }, (_, at) => `j:${(from + at).toString(36).padStart(22, 'A')}`);
    await redis.hset(jobs, ...members.flatMap((member) => [member, TOMBSTONE]));
    await redis.zadd(done, ...members.flatMap((member, at) => [fromMs + Math.floor((from + at) / 100), member]));
  }
}
