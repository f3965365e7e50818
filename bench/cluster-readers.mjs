/**
 * How workers of a cluster hear of jobs: `npm run bench:cluster [-- --beside <folder of another build>]`. Three primaries,
 * workers of one queue over few and many partitions: their connections, the commands that Redis carries out while nothing is
 * due (those of scripts included), those per job that comes alone, and how late its handler starts. Writes
 * `bench/results/cluster-readers.json`; with another build beside, both in turns.
 */
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { root } from '../scripts/steps.mjs';
import { startCluster } from '../src/embedded/cluster.mjs';
import { keep, prepare, rounded } from './parts.mjs';

const PARTITIONS = [6, 64];
const WORKERS = 6;
const JOBS = 300;
const APART_MS = 20;
const WARM_MS = 15_000;
const IDLE_MS = 10_000;
const ROUNDS = 2;

const { binary } = await prepare();
const { beside } = parseArgs({ options: { beside: { type: 'string' } } }).values;
const builds = [{ build: 'this', folder: root }, ...(beside ? [{ build: 'beside', folder: resolve(beside) }] : [])];
const rows = [];
for (let round = 1; round <= ROUNDS; round += 1) {
  for (const partitions of PARTITIONS) {
    for (const { build, folder } of builds) {
      process.stderr.write(`bench: round ${round}, ${build}, ${partitions} partitions, about 40 s\n`);
      rows.push({ round, build, partitions, workers: WORKERS, ...(await measure(folder, partitions)) });
    }
  }
}
keep('cluster-readers', {
  what: `${WORKERS} workers of one queue on three primaries, ${JOBS} jobs that come alone`,
  rows,
});
process.exit(0);

/** @param {string} folder @param {number} partitions */
async function measure(folder, partitions) {
  /** @type {typeof import('../src/index.ts')} */
  const product = await import(pathToFileURL(join(folder, 'dist', 'index.js')).href);
  /** @type {typeof import('../src/daemon/daemon.ts')} */
  const { createDaemon } = await import(pathToFileURL(join(folder, 'dist', 'daemon', 'daemon.js')).href);
  const cluster = await startCluster({ binary, replicas: 0 });
  const queue = product.defineQueue('bench', { partitions });
  const daemon = createDaemon({ redis: { url: cluster.url }, roles: ['mover'], log: { level: 'fatal' } });
  /** @type {number[]} */
  const lates = [];
  const handler = (/** @type {{ dueMs: number }} */ job) => void lates.push(Date.now() - job.dueMs);
  const workers = Array.from({ length: WORKERS }, () => product.createWorker(queue, handler, { redis: cluster.url }));
  const producer = product.createClient({ redis: cluster.url });
  try {
    await daemon.start();
    await Promise.all(workers.map((worker) => worker.start()));
    await sleep(WARM_MS);
    const connections = await ofAll(cluster, async (node) => {
      const list = String(await node.ask('CLIENT', 'LIST'));
      return list
        .split('\n')
        .filter((line) => / name=duestream:(worker|reader|calls):| name=duestream:bench/.test(line)).length;
    });
    const before = await commandsOf(cluster);
    await sleep(IDLE_MS);
    const perSecond = ((await commandsOf(cluster)) - before) / (IDLE_MS / 1000);
    const fromMs = Date.now() + 2000;
    const at = (/** @type {number} */ nth) => new Date(fromMs + nth * APART_MS);
    await producer.scheduleMany(
      queue,
      Array.from({ length: JOBS }, (_, nth) => ({ data: nth, at: at(nth) })),
    );
    const startMs = Date.now();
    const begun = await commandsOf(cluster);
    while (lates.length < JOBS) await sleep(20);
    await sleep(100);
    const all = (await commandsOf(cluster)) - begun;
    const perJob = (all - (perSecond * (Date.now() - startMs)) / 1000) / JOBS;
    const sorted = lates.toSorted((one, other) => one - other);
    const late = (/** @type {number} */ share) => sorted[Math.floor(share * (JOBS - 1))] ?? 0;
    return {
      connectionsPerWorker: rounded(connections / WORKERS),
      idleCommandsPerSecond: rounded(perSecond),
      commandsPerJob: rounded(perJob),
      p50Ms: late(0.5),
      p90Ms: late(0.9),
      p99Ms: late(0.99),
    };
  } finally {
    await Promise.all([producer.close(), daemon.stop(), ...workers.map((worker) => worker.stop())]);
    await cluster.close();
  }
}

/** @typedef {import('../src/embedded/cluster.mjs').Cluster} Cluster */

/** @param {Cluster} cluster @param {(node: Cluster['nodes'][number]) => Promise<number>} count */
async function ofAll({ nodes }, count) {
  return (await Promise.all(nodes.map(count))).reduce((sum, one) => sum + one, 0);
}

/** Of all nodes, those of scripts included. @param {Cluster} cluster */
function commandsOf(cluster) {
  return ofAll(cluster, async (node) => {
    const stats = String(await node.ask('INFO', 'commandstats'));
    return [...stats.matchAll(/:calls=(\d+)/g)].reduce((sum, [, calls]) => sum + Number(calls), 0);
  });
}
