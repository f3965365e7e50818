/**
 * What watching costs: `npm run bench:viewers`. A daemon with a worker and 5 queues, once without the role http, then with it and
 * 0, 1 and 10 viewers of `/v1/live`: the commands that Redis carries out per second at rest, the CPU of both, and the time in
 * which 20,000 jobs are started and over. Medians of the rounds, in which the settings take turns. Writes
 * `bench/results/viewers.json` and its section of `docs/reference/measured.md`.
 *
 *     --rounds 3   how many
 */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { argumentsFor, wholeNumber } from '../scripts/arguments.mjs';
import { root } from '../scripts/steps.mjs';
import { freePort } from '../src/embedded/port.mjs';
import { commandsOf } from './idle-commands.mjs';
import { writeMeasured } from './measured.mjs';
import { cpuMs, keep, median, prepare, redisCpuMs, rounded, withRedis } from './parts.mjs';

const QUEUES = ['a', 'b', 'c', 'd', 'bench'];
const JOBS = 20_000;
const CHUNK = 1000;
const WARM_MS = 5000;
const REST_MS = 20_000;
/** Undefined: the role is off. */
const SETTINGS = [undefined, 0, 1, 10];

const values = argumentsFor(import.meta.filename, { rounds: { type: 'string' } });
const rounds = wholeNumber(import.meta.filename, 'rounds', { given: values.rounds, otherwise: 3, from: 1, to: 100 });
const { binary } = await prepare();
/** @type {typeof import('../src/index.ts')} */
const { createClient } = await import(`${root}dist/index.js`);

/** @typedef {{ commandsPerSecond: number, daemonPercent: number, redisPercent: number, burstMs: number }} Measured */

/** @type {Map<number | undefined, Measured[]>} */
const measured = new Map(SETTINGS.map((viewers) => [viewers, []]));
for (let round = 1; round <= rounds; round += 1) {
  for (const viewers of SETTINGS) {
    process.stderr.write(`bench: round ${round} of ${rounds}, ${nameOf(viewers)}\n`);
    measured.get(viewers)?.push(await withRedis(binary, (server) => measure(server, viewers)));
  }
}
const rows = SETTINGS.map((viewers) => {
  const all = measured.get(viewers) ?? [];
  const of = (/** @type {keyof Measured} */ name) => rounded(median(all.map((one) => one[name])));
  return {
    viewers: nameOf(viewers),
    commandsPerSecond: of('commandsPerSecond'),
    daemonPercent: of('daemonPercent'),
    redisPercent: of('redisPercent'),
    jobsPerSecond: Math.round((JOBS / of('burstMs')) * 1000),
  };
});
keep('viewers', { what: `5 queues at rest, and a burst of ${JOBS} jobs, medians of ${rounds} rounds`, rows });
writeMeasured('viewers', sectionOf());

/** @param {number | undefined} viewers */
function nameOf(viewers) {
  return viewers === undefined ? 'without the role http' : viewers === 1 ? '1 viewer' : `${viewers} viewers`;
}

/**
 * @param {{ redis: import('ioredis').Redis, url: string }} server
 * @param {number | undefined} viewers
 * @returns {Promise<Measured>}
 */
async function measure({ redis, url }, viewers) {
  const producer = createClient({ redis: url });
  for (const queue of QUEUES) await producer.schedule(queue, 1, { delay: '1d' });
  const port = await freePort(21_000);
  const roles = viewers === undefined ? 'mover,worker' : 'mover,worker,http';
  const module = `${root}bench/idle-handlers.mjs`;
  const daemon = spawn(process.execPath, [join(root, 'dist/main.js'), 'start', '--roles', roles, '--module', module], {
    env: { PATH: process.env.PATH, DUESTREAM_REDIS_URL: url, DUESTREAM_HTTP__PORT: String(port) },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const watching = new AbortController();
  try {
    await new Promise((resolve, reject) => {
      daemon.stdout.on('data', (chunk) => String(chunk).includes('"msg":"started"') && resolve(undefined));
      daemon.once('exit', () => reject(new Error('the daemon ended')));
    });
    for (let nth = 0; nth < (viewers ?? 0); nth += 1) await watch(port, watching.signal);
    await sleep(WARM_MS);
    const pid = daemon.pid ?? 0;
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
    return { ...rest, burstMs: await burst(producer, redis) };
  } finally {
    watching.abort();
    daemon.kill('SIGKILL');
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
 */
async function burst(producer, redis) {
  const atMs = Date.now() + 3000;
  for (let from = 0; from < JOBS; from += CHUNK) {
    await producer.scheduleMany(
      'bench',
      Array.from({ length: CHUNK }, (_, at) => ({ data: from + at, at: new Date(atMs) })),
    );
  }
  await sleep(Math.max(0, atMs - Date.now()));
  const startedMs = Date.now();
  while (Number(await redis.hget('duestream:v1:{bench:0}:meta', 'n.done')) < JOBS) await sleep(20);
  return Date.now() - Math.max(atMs, startedMs - 3000);
}

function sectionOf() {
  return [
    '## What watching costs',
    '',
    'A daemon with a worker in its process and 5 queues of one partition; viewers of the [dashboard](../how-to/dashboard.md) read',
    `\`/v1/live\`. Commands are those that Redis carries out at rest, with those of scripts. Medians of ${rounds} rounds on two cores.`,
    '',
    '| | Redis commands per second | CPU of the daemon | CPU of Redis | burst, jobs per second |',
    '|---|---|---|---|---|',
    ...rows.map(
      ({ viewers, commandsPerSecond, daemonPercent, redisPercent, jobsPerSecond }) =>
        `| ${viewers} | ${commandsPerSecond} | ${daemonPercent} % | ${redisPercent} % | ${jobsPerSecond.toLocaleString('en')} |`,
    ),
  ].join('\n');
}
