/**
 * bunqueue: a server of its own instead of Redis, in memory or with a SQLite file. Its server and its client need Bun, so
 * its producers and workers are processes of Bun; they run the same code as those of the others.
 */
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { spawnGuarded } from '../../src/embedded/guard.mjs';
import { cpuMs } from '../parts.mjs';
import { dataOf, versionOf } from './system.mjs';

const ARCHITECTURES = new Map([
  ['x64', 'x64'],
  ['arm64', 'aarch64'],
]);
const START_WITHIN_MS = 30_000;

const { resolve } = createRequire(import.meta.url);
const [bunqueueVersion, bunVersion] = [
  await versionOf('bunqueue', import.meta, 'bunqueue/package.json'),
  await versionOf('bun', import.meta, 'bun/package.json'),
];

/** The package `bun` brings the binary of each platform as a package of its own. */
const bun = join(
  dirname(dirname(resolve('bun/package.json'))),
  `@oven/bun-${process.platform}-${ARCHITECTURES.get(process.arch) ?? process.arch}/bin/bun`,
);
/** Why bunqueue is not among the systems; undefined: it is. */
export const noBun = existsSync(bun)
  ? undefined
  : `bunqueue needs Bun, and the package \`bun\` has none for ${process.platform}, ${process.arch}`;

/** @param {string} url */
function connection(url) {
  const { hostname, port } = new URL(url);
  return { host: hostname, port: Number(port) };
}

/** @param {import('./system.mjs').Planned} job */
const optionsOf = ({ id, dueMs }) => ({
  ...(id === undefined ? {} : { jobId: id }),
  delay: dueMs === 0 ? 0 : Math.max(0, dueMs - Date.now()),
  removeOnComplete: true,
  removeOnFail: true,
});

/** @param {{ name: string, title: string, workloads: readonly string[], rounds?: number, file: boolean }} how @returns {import('./system.mjs').System} */
const systemOf = ({ file, rounds, ...system }) => ({
  ...system,
  ...(rounds === undefined ? {} : { rounds }),
  settings: `bunqueue ${bunqueueVersion} on Bun ${bunVersion}, server ${file ? 'with its SQLite file' : 'in memory'}, RATE_LIMIT_MAX_REQUESTS out of the way; addBulk in lists of 500; removeOnComplete; workers with batchSize 100 and pollTimeout 5 s, as its guide advises for load; bytes are those by which its resident memory grows${rounds === undefined ? '' : `; in at most ${rounds} of the rounds`}`,
  counts: {
    server: 'the bunqueue server: it keeps the jobs and promotes them',
    worker: 'the processes with a `Worker`: they run handlers',
  },
  execPath: bun,
  server: (where) => startServer({ ...where, file }),
  async producer(url) {
    const { Queue } = await import('bunqueue/client');
    const queue = new Queue('bench', { connection: connection(url) });
    return {
      one: (job) => queue.add('job', dataOf(job), optionsOf(job)),
      async many(jobs) {
        for (let from = 0; from < jobs.length; from += 500) {
          const some = jobs.slice(from, from + 500);
          await queue.addBulk(some.map((job) => ({ name: 'job', data: dataOf(job), opts: optionsOf(job) })));
        }
      },
      close: async () => queue.close(),
    };
  },
  async worker(url, { concurrency, started }) {
    const { Worker } = await import('bunqueue/client');
    const worker = new Worker('bench', async (job) => started(job.data.at), {
      connection: connection(url),
      concurrency,
      batchSize: concurrency,
      pollTimeout: 5000,
      removeOnComplete: true,
    });
    worker.on('error', () => {});
    return { close: () => worker.close(true) };
  },
});

export const bunqueue = systemOf({
  name: 'bunqueue',
  title: 'bunqueue, memory',
  workloads: ['one', 'bulk', 'burst', 'drain', 'steady500', 'steady2000', 'idle', 'memory'],
  file: false,
});
/** In fewer workloads and rounds: it takes its time. */
export const bunqueueFile = systemOf({
  name: 'bunqueue-file',
  title: 'bunqueue, file',
  workloads: ['bulk', 'burst', 'steady500', 'steady2000', 'memory'],
  rounds: 3,
  file: true,
});

/** By default its server takes 10,000 requests a minute of a client; what it refuses then is done twice. */
const NO_RATE_LIMIT = 'RATE_LIMIT_MAX_REQUESTS=1000000000';

/** @param {{ folder: string, port: number, file: boolean }} where @returns {Promise<import('./system.mjs').Server>} */
async function startServer({ folder, port, file }) {
  const httpPort = port + 1;
  const args = ['start', '--host', '127.0.0.1', '--tcp-port', String(port), '--http-port', String(httpPort)];
  const stored = file ? ['--data-path', join(folder, 'bunqueue.db')] : [];
  const cli = resolve('bunqueue/package.json').replace('package.json', 'dist/cli/index.js');
  const child = spawnGuarded({ path: '/usr/bin/env', args: [NO_RATE_LIMIT, bun, cli, ...args, ...stored] });
  child.stdout.resume();
  child.stderr.resume();
  const http = (/** @type {string} */ path) => fetch(`http://127.0.0.1:${httpPort}${path}`);
  const endMs = performance.now() + START_WITHIN_MS;
  while (
    !(await http('/health').then(
      ({ ok }) => ok,
      () => false,
    ))
  ) {
    if (child.exitCode !== null || performance.now() > endMs) throw new Error('the server of bunqueue did not start');
    await sleep(20);
  }
  const pid = child.pid ?? 0;
  return {
    url: `bunqueue://127.0.0.1:${port}`,
    async pending() {
      const reply = await http('/queues/bench/counts');
      const { counts } = /** @type {{ counts: Record<'waiting' | 'prioritized' | 'delayed' | 'active', number> }} */ (
        await reply.json()
      );
      return counts.waiting + counts.prioritized + counts.delayed + counts.active;
    },
    spent: async () => ({ cpuMs: cpuMs(pid), bytes: residentBytes(pid) }),
    async stop() {
      child.kill('SIGKILL');
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    },
  };
}

/** @param {number} pid */
function residentBytes(pid) {
  return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024;
}
