/**
 * What a fleet costs while it has nothing to do: `npm run bench:fleet`. So many idle workers of one queue with one daemon;
 * commands that Redis carries out (also those that scripts call), bytes on its lines and its time, per worker and second.
 * Then how long the event loop of a survivor stands still while 1,000 entries of a dead worker are shared among 1,000.
 * Writes `bench/results/fleet.json`.
 */
import { fork } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { argumentsFor } from '../scripts/arguments.mjs';
import { root } from '../scripts/steps.mjs';
import { keep, prepare, redisCpuMs, rounded, startDaemon, withRedis } from './parts.mjs';

const FLEETS = [10, 100, 400];
/** So many workers live in one process. */
const PER_PROCESS = 100;
/** So many start together: each must reach Redis within 5 s, also on a busy machine. */
const AT_ONCE = 10;
const WARM_MS = 10_000;
const MEASURE_MS = 20_000;
const SHARES = [
  { entries: 50, survivors: 100 },
  { entries: 1000, survivors: 100 },
  { entries: 1000, survivors: 1000 },
];

const [, , role, ...words] = process.argv;
if (role === 'workers') await work(words[0] ?? '', Number(words[1]));
else await bench();

async function bench() {
  argumentsFor(import.meta.filename, {});
  const { binary } = await prepare();
  const rows = [];
  for (const workers of FLEETS) {
    process.stderr.write(`bench: ${workers} workers, ${(WARM_MS + MEASURE_MS) / 1000} s\n`);
    rows.push(await withRedis(binary, (server) => measure(server, workers)));
  }
  for (const call of SHARES) rows.push(await share(call));
  keep('fleet', { what: 'idle workers of one queue, and the shares of survivors', rows });
}

/**
 * @param {{ redis: import('ioredis').Redis, url: string }} server
 * @param {number} workers
 */
async function measure({ redis, url }, workers) {
  await redis.hset('duestream:v1:{control}:queues', 'bench', '{"partitions":1,"generation":0}');
  const daemon = await startDaemon(url);
  const children = [];
  try {
    for (let left = workers; left > 0; left -= PER_PROCESS)
      children.push(await forked(url, Math.min(left, PER_PROCESS)));
    await sleep(WARM_MS);
    const before = { ...(await statsOf(redis)), redisMs: await redisCpuMs(redis), ms: performance.now() };
    await sleep(MEASURE_MS);
    const after = { ...(await statsOf(redis)), redisMs: await redisCpuMs(redis), ms: performance.now() };
    const seconds = (after.ms - before.ms) / 1000;
    const each = (/** @type {number} */ total) => rounded(total / seconds / workers);
    return {
      workers,
      commandsPerWorker: each(after.commands - before.commands),
      bytesInPerWorker: each(after.bytesIn - before.bytesIn),
      bytesOutPerWorker: each(after.bytesOut - before.bytesOut),
      redisPercent: rounded((after.redisMs - before.redisMs) / seconds / 10),
    };
  } finally {
    for (const child of children) child.kill('SIGKILL');
    daemon.kill('SIGKILL');
  }
}

/** @param {string} url @param {number} count */
async function forked(url, count) {
  const child = fork(fileURLToPath(import.meta.url), ['workers', url, String(count)], { execArgv: [] });
  await new Promise((resolve, reject) => {
    child.once('message', resolve);
    child.once('exit', () => reject(new Error('the workers ended')));
  });
  return child;
}

/** @param {string} url @param {number} count */
async function work(url, count) {
  const { createWorker } = await import(`${root}dist/index.js`);
  for (let left = count; left > 0; left -= AT_ONCE) {
    const some = Array.from({ length: Math.min(left, AT_ONCE) }, () =>
      createWorker('bench', () => undefined, { redis: url }),
    );
    await Promise.all(some.map((worker) => worker.start()));
  }
  process.send?.('started');
}

/** @param {import('ioredis').Redis} redis */
async function statsOf(redis) {
  const info = await redis.info('stats');
  const of = (/** @type {string} */ name) => Number(new RegExp(`${name}:(\\d+)`).exec(info)?.[1]);
  return {
    commands: of('total_commands_processed'),
    bytesIn: of('total_net_input_bytes'),
    bytesOut: of('total_net_output_bytes'),
  };
}

/** @param {{ entries: number, survivors: number }} call */
async function share({ entries, survivors }) {
  const { sharesOf } = await import(`${root}dist/worker/recover/reclaimer.js`);
  const left = Array.from({ length: entries }, (_, at) => `1763719000000-${at}`);
  const living = Array.from({ length: survivors }, (_, at) => `w-${String(at).padStart(22, 'x')}`);
  let heldMs = 0;
  let turnMs = performance.now();
  let over = false;
  const turn = () => {
    const nowMs = performance.now();
    heldMs = Math.max(heldMs, nowMs - turnMs);
    turnMs = nowMs;
    if (!over) setImmediate(turn);
  };
  turn();
  const startMs = performance.now();
  for (const round of [0, 1]) await sharesOf(left, { consumer: living[0], living, round, most: entries });
  const tookMs = performance.now() - startMs;
  over = true;
  turn();
  return { entries, survivors, twoRoundsMs: rounded(tookMs), longestHoldMs: rounded(heldMs) };
}
