/**
 * Schedules that all come due at one instant, with a daemon and worker processes of their own: from the instant to the
 * start of the handler. Their definitions are five expressions in five zones that name the same moment, and nobody has
 * read them before, as at a midnight. A job that is missing, early or there twice ends the measurement.
 */
import { fork } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { cpuMs, median, redisCpuMs, rounded, startDaemon, withRedis } from './parts.mjs';

/** @typedef {import('ioredis').Redis} Redis */
/** @typedef {import('node:child_process').ChildProcess} ChildProcess */
/** @typedef {{ readonly count: number, readonly twice: number, readonly atMs: Float64Array }} Report */

const SIZES = [
  { schedules: 10_000, rounds: 5 },
  { schedules: 100_000, rounds: 3 },
];
const WORKERS = 2;
const CONCURRENCY = 100;
const ZONES = ['UTC', 'Europe/Berlin', 'America/New_York', 'Asia/Tokyo', 'Australia/Sydney'];
const AT_ONCE = 1000;
/** Longest that a round may take after its instant. */
const PATIENCE_MS = 120_000;

const [, file, role, url = ''] = process.argv;
if (file === fileURLToPath(import.meta.url) && role === 'worker') await work();

/** @param {string} binary of redis-server */
export async function measureMinutes(binary) {
  const rows = [];
  for (const { schedules, rounds } of SIZES) {
    /** @type {Awaited<ReturnType<typeof measureMinute>>[]} */
    const taken = [];
    for (let round = 1; round <= rounds; round += 1) {
      process.stderr.write(`bench: ${schedules} schedules of one minute, round ${round} of ${rounds}\n`);
      taken.push(await withRedis(binary, (server) => measureMinute(server, schedules)));
    }
    const of = (/** @type {keyof (typeof taken)[number]} */ name) => rounded(median(taken.map((one) => one[name])));
    rows.push({
      schedules,
      workers: WORKERS,
      rounds,
      p50Ms: of('p50Ms'),
      p99Ms: of('p99Ms'),
      lastMs: of('lastMs'),
      p99MinMs: Math.min(...taken.map(({ p99Ms }) => p99Ms)),
      p99MaxMs: Math.max(...taken.map((one) => one.p99Ms)),
      firedMs: of('firedMs'),
      redisMicros: of('redisMicros'),
      daemonMicros: of('daemonMicros'),
    });
  }
  return rows;
}

/** @param {{ redis: Redis, url: string }} server @param {number} schedules */
async function measureMinute({ redis, url: address }, schedules) {
  await redis.hset('duestream:v1:{control}:queues', 'bench', JSON.stringify({ partitions: 1, generation: 0 }));
  const daemon = await startDaemon(address);
  /** @type {ChildProcess[]} */
  const workers = [];
  try {
    while (workers.length < WORKERS) workers.push(await forked(address));
    const leadMs = 4000 + schedules / 5;
    const instantMs = Math.ceil((Date.now() + leadMs) / 1000) * 1000;
    await fill(redis, { schedules, instantMs });
    if (Date.now() > instantMs - 1000)
      throw new Error('the machine is too slow: the instant came before its schedules');
    await sleep(instantMs - 100 - Date.now());
    const before = { daemonMs: cpuMs(daemon.pid ?? 0), redisMs: await redisCpuMs(redis) };
    const firedMs = (await firedAll(redis, instantMs)) - instantMs;
    const reports = await ended(workers, { schedules, instantMs });
    const lateMs = lateness(reports, { schedules, instantMs });
    const at = (/** @type {number} */ share) => lateMs[Math.ceil(lateMs.length * share) - 1] ?? Number.NaN;
    return {
      p50Ms: at(0.5),
      p99Ms: at(0.99),
      lastMs: at(1),
      firedMs,
      redisMicros: (((await redisCpuMs(redis)) - before.redisMs) * 1000) / schedules,
      daemonMicros: ((cpuMs(daemon.pid ?? 0) - before.daemonMs) * 1000) / schedules,
    };
  } finally {
    for (const worker of workers) worker.kill('SIGKILL');
    daemon.kill('SIGKILL');
  }
}

/** @param {Redis} redis @param {{ schedules: number, instantMs: number }} what */
async function fill(redis, { schedules, instantMs }) {
  const key = (/** @type {string} */ name) => `duestream:v1:{bench:0}:${name}`;
  const crons = ZONES.map((zone) => ({ cron: cronAt(instantMs, zone), zone }));
  for (let from = 0; from < schedules; from += AT_ONCE) {
    const all = Array.from({ length: Math.min(AT_ONCE, schedules - from) }, (_, at) => from + at);
    const names = all.map((nth) => `schedule-${nth}`);
    const texts = all.map((nth) => {
      const schedule = { queue: 'bench', ...crons[nth % crons.length], data: { nth } };
      return JSON.stringify({ since: instantMs - 3_600_000, source: 'call', schedule });
    });
    await redis.hset('duestream:v1:{control}:schedules', ...names.flatMap((name, at) => [name, texts[at] ?? '']));
    await redis.hset(key('fired'), ...names.flatMap((name) => [name, `${instantMs - 3_600_000} 0 0 - - 0`]));
    await redis.zadd(key('fires'), ...names.flatMap((name) => [instantMs, name]));
  }
  await redis.spublish(key('wake'), 'schedules');
}

/** Second, minute, hour, day and month of an instant, as the clocks of a zone show them. @param {number} atMs @param {string} zone */
function cronAt(atMs, zone) {
  const format = new Intl.DateTimeFormat('en-GB', {
    timeZone: zone,
    hourCycle: 'h23',
    second: 'numeric',
    minute: 'numeric',
    hour: 'numeric',
    day: 'numeric',
    month: 'numeric',
  });
  const parts = new Map(format.formatToParts(atMs).map(({ type, value }) => [type, Number(value)]));
  const fields = /** @type {const} */ (['second', 'minute', 'hour', 'day', 'month']).map((type) => parts.get(type));
  return `${fields.join(' ')} *`;
}

/** When no schedule of the instant was left to fire. @param {Redis} redis @param {number} instantMs */
async function firedAll(redis, instantMs) {
  for (;;) {
    await sleep(Math.max(20, instantMs - Date.now()));
    if (Number(await redis.zcount('duestream:v1:{bench:0}:fires', 0, instantMs)) === 0) return Date.now();
    if (Date.now() > instantMs + PATIENCE_MS) throw new Error('the schedules did not fire');
  }
}

/** @param {readonly ChildProcess[]} workers @param {{ schedules: number, instantMs: number }} what */
async function ended(workers, { schedules, instantMs }) {
  for (;;) {
    const reports = await Promise.all(workers.map(reportOf));
    if (reports.reduce((sum, { count }) => sum + count, 0) >= schedules) return reports;
    if (Date.now() > instantMs + PATIENCE_MS) throw new Error('some jobs are missing');
    await sleep(200);
  }
}

/** Sorted ms from the instant to each start. @param {readonly Report[]} reports @param {{ schedules: number, instantMs: number }} what */
function lateness(reports, { schedules, instantMs }) {
  const lateMs = reports.flatMap(({ atMs }) => [...atMs].filter((ms) => ms > 0).map((ms) => ms - instantMs));
  lateMs.sort((a, b) => a - b);
  const twice = reports.reduce((sum, report) => sum + report.twice, 0);
  if (twice > 0 || lateMs.length !== schedules)
    throw new Error(`${lateMs.length} of ${schedules} jobs, ${twice} twice`);
  if ((lateMs[0] ?? 0) < 0) throw new Error('a job ran before its instant');
  return lateMs;
}

/** @param {ChildProcess} worker @returns {Promise<Report>} */
function reportOf(worker) {
  return new Promise((resolve, reject) => {
    worker.once('message', (message) => resolve(/** @type {Report} */ (message)));
    worker.once('exit', () => reject(new Error('a worker ended')));
    worker.send('report');
  });
}

/** @param {string} address */
async function forked(address) {
  const child = fork(fileURLToPath(import.meta.url), ['worker', address], { serialization: 'advanced', execArgv: [] });
  child.setMaxListeners(0);
  await new Promise((resolve, reject) => {
    child.once('message', resolve);
    child.once('exit', () => reject(new Error('a worker ended')));
  });
  return child;
}

/** A process of one worker that notes when each handler starts. */
async function work() {
  /** @type {typeof import('../src/index.ts')} */
  const { createWorker, defineQueue } = await import(new URL('../dist/index.js', import.meta.url).href);
  const atMs = new Float64Array(Math.max(...SIZES.map(({ schedules }) => schedules)));
  let [count, twice] = [0, 0];
  const handler = (/** @type {{ data: { nth: number } }} */ { data }) => {
    if ((atMs[data.nth] ?? 0) > 0) twice += 1;
    atMs[data.nth] = Date.now();
    count += 1;
  };
  const worker = createWorker(defineQueue('bench'), handler, { redis: url, concurrency: CONCURRENCY });
  await worker.start();
  process.on('disconnect', () => process.exit(1));
  process.on('message', () => process.send?.({ count, twice, atMs }));
  process.send?.('ready');
}
