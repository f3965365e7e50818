/**
 * What watching costs: `npm run bench -- viewers`. A daemon with a worker and 5 queues, once without the role http, then with it and
 * 0, 1 and 10 viewers of `/v1/live`: the commands that Redis carries out per second at rest, the CPU of both, and the time in
 * which 20,000 jobs are started and over. Medians of the rounds, in which the settings take turns. Writes
 * `bench/results/viewers.json` and its section of `docs/reference/measured.md`.
 *
 *     --rounds 3      how many
 *     --jobs 20000    in the burst
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { root } from '../scripts/steps.mjs';
import { freePort } from '../src/embedded/port.mjs';
import { commandsOf } from './idle-commands.mjs';
import { cpuMs, median, redisCpuMs, rounded, startDaemon, withRedis } from './parts.mjs';

/** @type {typeof import('../src/index.ts')} */
const { createClient } = await import(`${root}dist/index.js`);

const QUEUES = ['a', 'b', 'c', 'd', 'bench'];
const CHUNK = 1000;
const WARM_MS = 5000;
const REST_MS = 20_000;
/** Undefined: the role is off. */
const SETTINGS = [undefined, 0, 1, 10];

/** @typedef {{ commandsPerSecond: number, daemonPercent: number, redisPercent: number, burstMs: number }} Measured */

/** @param {import('./bench.mjs').Asked} asked */
export async function run({ binary, number }) {
  const rounds = number('rounds', { otherwise: 3, from: 1, to: 100 });
  const jobs = number('jobs', { otherwise: 20_000, from: 1, to: 1_000_000 });
  const seen = SETTINGS.map((viewers) => ({ viewers, all: /** @type {Measured[]} */ ([]) }));
  for (let round = 1; round <= rounds; round += 1) {
    for (const { viewers, all } of seen) {
      process.stderr.write(`bench: round ${round} of ${rounds}, ${nameOf(viewers)}\n`);
      all.push(await withRedis(binary, (server) => measure(server, { viewers, jobs })));
    }
  }
  const rows = seen.map(({ viewers, all }) => {
    const of = (/** @type {keyof Measured} */ name) => rounded(median(all.map((one) => one[name])));
    return {
      viewers: nameOf(viewers),
      commandsPerSecond: of('commandsPerSecond'),
      daemonPercent: of('daemonPercent'),
      redisPercent: of('redisPercent'),
      jobsPerSecond: Math.round((jobs / of('burstMs')) * 1000),
    };
  });
  const what = `5 queues at rest, and a burst of ${jobs.toLocaleString('en')} jobs, medians of ${rounds} rounds`;
  return [{ name: 'viewers', what, rows }];
}

/** @param {number | undefined} viewers */
function nameOf(viewers) {
  return viewers === undefined ? 'without the role http' : viewers === 1 ? '1 viewer' : `${viewers} viewers`;
}

/**
 * @param {{ redis: import('ioredis').Redis, url: string }} server
 * @param {{ viewers: number | undefined, jobs: number }} what
 * @returns {Promise<Measured>}
 */
async function measure({ redis, url }, { viewers, jobs }) {
  const producer = createClient({ redis: url });
  for (const queue of QUEUES) await producer.schedule(queue, 1, { delay: '1d' });
  const port = await freePort(21_000);
  const roles = viewers === undefined ? 'mover,worker' : 'mover,worker,http';
  const daemon = await startDaemon(url, { roles, handlers: true, env: { DUESTREAM_HTTP__PORT: String(port) } });
  const watching = new AbortController();
  try {
    for (let nth = 0; nth < (viewers ?? 0); nth += 1) await watch(port, watching.signal);
    await sleep(WARM_MS);
    const { pid } = daemon;
    const before = { daemonMs: cpuMs(pid), redisMs: await redisCpuMs(redis), ms: performance.now() };
    const commandsBefore = await commandsOf(redis);
    await sleep(REST_MS);
    const commands = (await commandsOf(redis)) - commandsBefore;
    const seconds = (performance.now() - before.ms) / 1000;
    const rest = {
      commandsPerSecond: commands / seconds,
      daemonPercent: (cpuMs(pid) - before.daemonMs) / seconds / 10,
      redisPercent: ((await redisCpuMs(redis)) - before.redisMs) / seconds / 10,
    };
    return { ...rest, burstMs: await burst(producer, redis, jobs) };
  } finally {
    watching.abort();
    daemon.kill();
    await producer.close();
  }
}

/** A viewer that reads all it is sent. @param {number} port @param {AbortSignal} signal */
async function watch(port, signal) {
  const { body } = await fetch(`http://127.0.0.1:${port}/v1/live`, { signal });
  const read = async () => {
    for await (const _ of body ?? []);
  };
  read().catch(() => undefined);
}

/**
 * @param {import('../src/index.ts').Client} producer
 * @param {import('ioredis').Redis} redis
 * @param {number} jobs
 */
async function burst(producer, redis, jobs) {
  const atMs = Date.now() + 3000;
  for (let from = 0; from < jobs; from += CHUNK) {
    await producer.scheduleMany(
      'bench',
      Array.from({ length: Math.min(CHUNK, jobs - from) }, (_, at) => ({ data: from + at, at: new Date(atMs) })),
    );
  }
  await sleep(Math.max(0, atMs - Date.now()));
  const startedMs = Date.now();
  while (Number(await redis.hget('duestream:v1:{bench:0}:meta', 'n.done')) < jobs) await sleep(20);
  return Date.now() - Math.max(atMs, startedMs - 3000);
}
