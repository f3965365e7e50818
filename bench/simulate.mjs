/**
 * What a simulation of a million jobs takes: `npm run bench -- simulate`. The command `duestream simulate` reads them from a Redis
 * and plays them twice, as the queue is and as it is asked. Writes `bench/results/simulate.json` and its section of
 * `docs/reference/measured.md`.
 *
 *     --jobs 1000000   how many
 */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../scripts/steps.mjs';
import { rounded, withRedis } from './parts.mjs';

/** @typedef {import('ioredis').Redis} Redis */

const JOBS = 1_000_000;
const CHUNK = 5000;
const SPAN_MS = 6 * 3_600_000;
const LOOK_MS = 20;

const { openCommands, whenReady } = await import(`${root}dist/redis/connection/connect.js`);
const { partitionRef } = await import(`${root}dist/redis/keys.js`);
const { declareQueue } = await import(`${root}dist/redis/scripts/queues.js`);

const ref = partitionRef('duestream', { queue: 'q', partition: 0, layoutGeneration: 0 });
const ASKED = ['--rate', '100/s', '--workers', '4', '--slots', '50', '--run-time', '200ms'];

/** What is measured: how many groups there are, and what is asked. */
const CASES = {
  'without groups, a rate': { groups: 0, args: ASKED },
  '1,000 groups, each a lock': { groups: 1000, args: [...ASKED, '--per-group', '1'] },
  '100,000 groups, each a lock': { groups: 100_000, args: [...ASKED, '--per-group', '1'] },
};

/** @param {import('./bench.mjs').Asked} asked */
export function run({ binary, number }) {
  const count = number('jobs', { otherwise: JOBS, from: 1000, to: JOBS });
  return withRedis(binary, async ({ redis, url, socketPath }) => {
    const commands = openCommands({ redis: { path: socketPath }, name: 'bench', commandTimeoutMs: 60_000 });
    await whenReady(commands);
    const rows = [];
    for (const [kind, how] of Object.entries(CASES)) {
      await redis.flushall();
      await declareQueue(commands, { namespace: 'duestream', queue: 'q', partitions: 1 });
      await fill(redis, { count, groups: how.groups });
      rows.push({ kind, jobs: count, ...(await measured(url, how.args)) });
    }
    commands.disconnect();
    const what = `${count.toLocaleString('en')} jobs that become due within six hours, read from Redis and played as the queue is and as asked: ${ASKED.join(' ')}`;
    return [{ name: 'simulate', what, rows }];
  });
}

/** @param {Redis} redis @param {{ count: number, groups: number }} of */
async function fill(redis, { count, groups }) {
  const fromMs = Date.now();
  for (let first = 0; first < count; first += CHUNK) {
    const pairs = [];
    for (let nth = first; nth < Math.min(count, first + CHUNK); nth += 1) {
      const group = groups === 0 ? '' : `{g${(nth * 7919) % groups}}`;
      pairs.push(fromMs + Math.floor((nth * SPAN_MS) / count), `j:${group}job-${String(nth).padStart(10, '0')}`);
    }
    await redis.zadd(ref.keys.scheduled, ...pairs);
  }
}

/** @param {string} url @param {readonly string[]} args */
async function measured(url, args) {
  const begun = performance.now();
  const child = spawn(
    process.execPath,
    [join(root, 'dist/main.js'), 'simulate', 'q', ...args, '--json', '--redis', url],
    {
      env: { PATH: process.env.PATH },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  let peakKiB = 0;
  const watch = setInterval(() => {
    peakKiB = Math.max(peakKiB, peakOf(child.pid));
  }, LOOK_MS);
  let out = '';
  child.stdout.on('data', (chunk) => {
    out += chunk;
  });
  const code = await new Promise((resolve) => child.once('close', resolve));
  clearInterval(watch);
  const seconds = (performance.now() - begun) / 1000;
  const { asAsked } = JSON.parse(out);
  if (code !== 0 || asAsked.left > 0) throw new Error(`it ended with ${code}: ${out.slice(0, 300)}`);
  return { seconds: rounded(seconds), peakMiB: Math.round(peakKiB / 1024), started: asAsked.started };
}

/** The most memory that a process had; 0 where nobody says it. @param {number | undefined} pid */
function peakOf(pid) {
  try {
    return Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0);
  } catch {
    return 0;
  }
}
