/**
 * Who gets the jobs of a queue that Node and Python serve: `npm run bench -- sharing`. One worker of Node, and one over HTTP, the client
 * in Python, with ten slots each; a handler takes 20 ms, so each alone can do 500 jobs a second. Jobs come evenly, fewer and more than
 * one of them can do, or all at once. Counts who started them. Needs Python. Writes `bench/results/sharing.json` and its section of
 * `docs/reference/measured.md`.
 *
 *     --seconds 10   of jobs that come evenly
 *     --rounds 3     medians of so many, in turns
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { root } from '../scripts/steps.mjs';
import { findOnPath } from '../src/embedded/binary.mjs';
import { freePort } from '../src/embedded/port.mjs';
import { median, rounded, settled, startDaemon, withRedis } from './parts.mjs';

/** @typedef {{ load: string, perSecond?: number, jobs?: number }} Load */

/** @type {typeof import('../src/index.ts')} */
const { createClient, createWorker } = await import(`${root}dist/index.js`);

const SLOTS = 10;
const WORK_MS = 20;
const LEAD_MS = 2000;
const LOOK_MS = 20;
const QUEUE = 'shared';

/** @type {readonly Load[]} */
const LOADS = [
  { load: '20 a second', perSecond: 20 },
  { load: '300 a second', perSecond: 300 },
  { load: '700 a second: more than one can do', perSecond: 700 },
  { load: '5,000 at once', jobs: 5000 },
];

/** Says each start on a line. */
const PYTHON = `
import os, sys, time
from duestream_worker import Worker
def handle(job):
    os.write(1, b"began\\n")
    time.sleep(${WORK_MS / 1000})
Worker(sys.argv[1], "${QUEUE}", handle, concurrency=${SLOTS}).run()
`;

/** @param {import('./bench.mjs').Asked} asked */
export async function run({ binary, number, refuse }) {
  const seconds = number('seconds', { otherwise: 10, from: 1, to: 600 });
  const rounds = number('rounds', { otherwise: 3, from: 1, to: 100 });
  const [python] = await findOnPath('python3', process.env.PATH);
  if (python === undefined) return refuse('there is no python3 on PATH');
  const seen = LOADS.map((load) => ({ load, all: /** @type {Shares[]} */ ([]) }));
  for (let round = 0; round < rounds; round += 1) {
    for (const { load, all } of seen) {
      all.push(await withRedis(binary, ({ url }) => sharesOf({ url, python, load, seconds })));
    }
  }
  const rows = seen.map(({ load: { load }, all }) => {
    const node = Math.round(median(all.map((one) => one.node)));
    const http = Math.round(median(all.map((one) => one.http)));
    const percents = all.map((one) => rounded((100 * one.http) / (one.node + one.http)));
    return { load, node, http, httpPercent: median(percents), percents };
  });
  const what = `${SLOTS} slots each, and handlers of ${WORK_MS} ms; jobs that come evenly for ${seconds} s, or all at once; medians of ${rounds} rounds in turns, on a busy machine`;
  return [{ name: 'sharing', what, rows }];
}

/** @typedef {{ node: number, http: number }} Shares starts */

/**
 * Starts of each worker, when all jobs have begun.
 *
 * @param {{ url: string, python: string, load: Load, seconds: number }} of
 * @returns {Promise<Shares>}
 */
async function sharesOf({ url, python, load, seconds }) {
  const port = await freePort(21_000);
  const http = { DUESTREAM_HTTP__PORT: String(port), DUESTREAM_HTTP__WORK: 'on' };
  const daemon = await startDaemon(url, { roles: 'mover,http', env: http });
  const client = createClient({ redis: url });
  const seen = { node: 0, http: 0 };
  const count = () => {
    seen.node += 1;
    return sleep(WORK_MS);
  };
  const worker = createWorker(QUEUE, count, { redis: url, concurrency: SLOTS });
  const env = { ...process.env, PYTHONPATH: join(root, 'clients/python'), PYTHONDONTWRITEBYTECODE: '1' };
  const remote = spawn(python, ['-c', PYTHON, `http://127.0.0.1:${port}`], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  remote.stdout.on('data', (chunk) => {
    seen.http += String(chunk).split('\n').length - 1;
  });
  try {
    // Each has had a job before it is counted.
    await client.schedule(QUEUE, null, { delay: 0 });
    while (seen.http < 1) await sleep(LOOK_MS);
    await worker.start();
    await settled();
    Object.assign(seen, { node: 0, http: 0 });
    const jobs = load.jobs ?? (load.perSecond ?? 0) * seconds;
    await client.scheduleMany(QUEUE, dues(load, jobs));
    while (seen.node + seen.http < jobs) await sleep(LOOK_MS);
    return { ...seen };
  } finally {
    const gone = once(remote, 'exit');
    remote.kill('SIGKILL');
    await gone;
    await worker.stop();
    await client.close();
    daemon.kill();
  }
}

/** @param {Load} load @param {number} jobs */
function dues({ perSecond }, jobs) {
  const fromMs = Date.now() + LEAD_MS;
  const afterMs = (/** @type {number} */ nth) => (perSecond === undefined ? 0 : (nth * 1000) / perSecond);
  return Array.from({ length: jobs }, (_, nth) => ({ data: null, at: new Date(fromMs + afterMs(nth)) }));
}
