/**
 * Work on a million jobs: `npm run bench -- million`. Purge, replay, cancel by tag and erase run as commands of their own, are
 * killed in the middle with SIGKILL and begun again. Redis counts (`INFO latencystats`) how long its scripts and its longest
 * other command took at p99.9. Writes `bench/results/million.json` and its section of `docs/reference/measured.md`.
 *
 *     --jobs 1000000   how many
 */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { root } from '../scripts/steps.mjs';
import { rounded, usedBytes, withRedis } from './parts.mjs';

/** @typedef {import('ioredis').Redis} Redis */

const JOBS = 1_000_000;
const TAG = 'campaign:7';
const CHUNK = 500;
const LOOK_MS = 20;
const DUE_MS = Date.UTC(2040, 0, 1);

const { openCommands, whenReady } = await import(`${root}dist/redis/connection/connect.js`);
const { createJobs } = await import(`${root}dist/redis/scripts/jobs.js`);
const { partitionRef } = await import(`${root}dist/redis/keys.js`);
const { declareQueue } = await import(`${root}dist/redis/scripts/queues.js`);
const { parseSettings } = await import(`${root}dist/job/queue-settings.js`);
const { encodeBody, encodeRecord } = await import(`${root}dist/job/codec.js`);

const history = parseSettings({ history: { keep: '7d', max: 10_000_000 } }).history;
const ref = partitionRef('duestream', { queue: 'q', partition: 0, layoutGeneration: 0 });
const { scheduled, dead, past } = ref.keys;
const record = encodeRecord(DUE_MS, encodeBody({ name: 'welcome', data: { to: 'someone@example.org' } }), {
  tags: [TAG],
});
const memberOf = (/** @type {number} */ at) => `j:job-${String(at).padStart(12, '0')}`;

/** What is measured: what there is before, the command, and how much of it is left. */
const WORK = {
  purge: {
    fill: fillDead,
    args: ['dead', 'purge', 'q', '--reason', 'attempts-exhausted', '--limit', '10000000', '--yes'],
    left: (/** @type {Redis} */ redis) => redis.xlen(dead),
  },
  replay: {
    fill: fillDead,
    args: ['dead', 'replay', 'q', '--all', '--limit', '1000000', '--delay', '100d'],
    left: (/** @type {Redis} */ redis) => redis.xlen(dead),
  },
  'cancel by tag': {
    fill: fillJobs,
    args: ['cancel', 'q', '--tag', TAG, '--yes'],
    left: (/** @type {Redis} */ redis) => redis.zcard(scheduled),
  },
  'erase, half of them jobs with a history, half dead letters': {
    fill: async (/** @type {Redis} */ redis, /** @type {any} */ jobs, /** @type {number} */ all) => {
      const half = all >> 1;
      await declareQueue(redis, { namespace: 'duestream', queue: 'q', partitions: 1, history });
      await fillJobs(redis, jobs, half);
      await fillDead(redis, jobs, half);
    },
    args: ['tags', 'erase', TAG, '--yes'],
    left: async (/** @type {Redis} */ redis) =>
      (await redis.zcard(scheduled)) + (await redis.xlen(dead)) + (await redis.hlen(past)),
  },
};

/** @param {import('./bench.mjs').Asked} asked */
export function run({ binary, number }) {
  const count = number('jobs', { otherwise: JOBS, from: 1000, to: JOBS });
  return withRedis(binary, async ({ redis, url, socketPath }) => {
    const commands = openCommands({ redis: { path: socketPath }, name: 'bench', commandTimeoutMs: 60_000 });
    await whenReady(commands);
    await redis.config('SET', 'latency-tracking-info-percentiles', '50 99.9 100');
    const rows = [];
    for (const [work, how] of Object.entries(WORK))
      rows.push({ work, ...(await measured({ redis, commands, url, count }, how)) });
    commands.disconnect();
    const what = `${count.toLocaleString('en')} each, killed in the middle and begun again; times of single commands in ms at p99.9, by Redis itself`;
    return [{ name: 'million', what, rows }];
  });
}

/** @param {{ redis: Redis, commands: any, url: string, count: number }} at @param {(typeof WORK)['purge']} how */
async function measured({ redis, commands, url, count }, { fill, args, left }) {
  await redis.flushall();
  await declareQueue(commands, { namespace: 'duestream', queue: 'q', partitions: 1 });
  await redis.hset(ref.keys.meta, 'generation', '0');
  const emptyBytes = await usedBytes(redis);
  await fill(commands, createJobs(commands), count);
  const [fullBytes, all] = [await usedBytes(redis), await left(redis)];
  await redis.config('RESETSTAT');
  const begun = performance.now();
  const first = running(url, args);
  // In the middle, however fast the machine is: it looks at how much is left, and at no clock.
  while ((await left(redis)) > all / 2 && first.child.exitCode === null) await sleep(LOOK_MS);
  first.child.kill('SIGKILL');
  await first.ended;
  const atKill = await left(redis);
  const { code, said } = await running(url, args).ended;
  const seconds = (performance.now() - begun) / 1000;
  const over = await left(redis);
  if (code !== 0 || over > 0) throw new Error(`${args.join(' ')} ended with ${code}, ${over} left: ${said}`);
  const { scripts, longest } = await latencies(redis);
  return {
    items: all,
    doneWhenKilled: all - atKill,
    seconds: rounded(seconds),
    perSecond: Math.round(all / seconds),
    scriptsMs: scripts,
    longestCommand: longest.name,
    longestMs: longest.ms,
    bytesPerItem: Math.round((fullBytes - emptyBytes) / all),
  };
}

/** @param {string} url @param {readonly string[]} args */
function running(url, args) {
  const child = spawn(process.execPath, [join(root, 'dist/main.js'), ...args, '--redis', url], {
    env: { PATH: process.env.PATH },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  child.stderr.on('data', (chunk) => {
    said = String(chunk);
  });
  child.stdout.resume();
  /** @type {Promise<{ code: number | null, said: string }>} */
  const ended = new Promise((resolve) => child.once('close', (code) => resolve({ code, said })));
  return { child, ended };
}

/** The p99.9 of all scripts, and of the command that took longest. @param {Redis} redis */
async function latencies(redis) {
  const stats = await redis.info('latencystats');
  const all = [...stats.matchAll(/latency_percentiles_usec_([^:]+):.*p99\.9=([\d.]+)/g)]
    .map(([, name = '', micros]) => ({ name, ms: rounded(Number(micros) / 1000) }))
    .filter(({ name }) => !/^(flushall|config|info|debug)/.test(name));
  const scripts = Math.max(0, ...all.filter(({ name }) => name.startsWith('eval')).map(({ ms }) => ms));
  const longest = all.toSorted((a, b) => b.ms - a.ms)[0] ?? { name: '-', ms: 0 };
  return { scripts, longest };
}

/** @param {Redis} _ @param {any} jobs @param {number} all */
async function fillJobs(_, jobs, all) {
  for (let from = 0; from < all; from += CHUNK) {
    const size = Math.min(CHUNK, all - from);
    const items = Array.from({ length: size }, (_, at) => ({ member: memberOf(from + at), record, dueMs: DUE_MS }));
    for (let rest = items; rest.length > 0; ) {
      const replies = await jobs.schedule(ref, rest, { mode: 'keep', horizonMs: 1e12, bytesMax: 1e6 });
      rest = rest.filter((_, at) => replies[at]?.kind === 'later');
    }
  }
}

/** @param {Redis} redis @param {any} _ @param {number} all */
async function fillDead(redis, _, all) {
  const history = JSON.stringify({ t: 1, a: 5, k: 'failure', m: 'connect ECONNREFUSED 127.0.0.1:25' });
  const fields = { reason: 'attempts-exhausted', history, token: 7, attempts: 5, generation: 0, at: 1 };
  const beginMs = Date.now() - 60_000;
  for (let from = 0; from < all; from += CHUNK) {
    const pipeline = redis.pipeline();
    for (let at = from; at < Math.min(all, from + CHUNK); at += 1) {
      const parts = { member: memberOf(all + at), record, ...fields };
      pipeline.xadd(dead, `${beginMs + Math.floor(at / 1000)}-${at % 1000}`, ...Object.entries(parts).flat());
    }
    await pipeline.exec();
  }
}
