/**
 * What waiting costs: `npm run bench:idle`. A daemon and a worker, each a process of its own, and partitions that together
 * hold 100,000 jobs of the far future, with each profile. The commands that Redis carries out, those of scripts included,
 * and the CPU of all three; then, not at the same time, who asks for them, by MONITOR. Writes `bench/results/idle.json`, which
 * `duestream plan --price` goes by.
 *
 *   --seconds N     how long each of the two is measured (180: what `quiet` does once in three minutes counts, too)
 *   --profiles A,B  only these (all)
 *   --partitions N  only so many (1 and 8)
 *
 * With an argument nothing is written.
 */
import { spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { argumentsFor, wholeNumber } from '../scripts/arguments.mjs';
import { root } from '../scripts/steps.mjs';
import { commandsByScript, commandsOf } from './idle-commands.mjs';
import { cpuMs, keep, prepare, redisCpuMs, rounded, withRedis } from './parts.mjs';

const JOBS = 100_000;
/** Once after its start the engine cleans up its memory. */
const WARM_MS = 15_000;
const YEAR_MS = 365 * 86_400_000;

const given = argumentsFor(import.meta.filename, {
  seconds: { type: 'string' },
  profiles: { type: 'string' },
  partitions: { type: 'string' },
});
const number = (
  /** @type {'seconds' | 'partitions'} */ flag,
  /** @type {number} */ otherwise,
  /** @type {number} */ to,
) => wholeNumber(import.meta.filename, flag, { given: given[flag], otherwise, from: 1, to });
const forMs = number('seconds', 180, 3600) * 1000;
const counts = given.partitions === undefined ? [1, 8] : [number('partitions', 1, 1024)];
const { binary } = await prepare();
const { controlKeys, partitionKeys } = await import(`${root}dist/redis/keys.js`);
/** @type {{ PROFILES: readonly string[] }} */
const { PROFILES } = await import(`${root}dist/kernel/rhythm.js`);
const profiles = given.profiles?.split(',') ?? PROFILES;

// Side by side: at rest they leave each other alone.
const cells = profiles.flatMap((profile) => counts.map((partitions) => ({ profile, partitions })));
process.stderr.write(`bench: ${cells.length} cells side by side, ${(WARM_MS + 2 * forMs) / 1000} s\n`);
const rows = await Promise.all(cells.map((cell) => withRedis(binary, (server) => measure(server, cell))));
if (Object.keys(given).length === 0) keep('idle', { what: `the cost of ${JOBS} jobs of the far future`, rows });
else process.stdout.write(`${JSON.stringify(rows, null, 2)}\n`);

/**
 * @param {{ redis: import('ioredis').Redis, url: string }} server
 * @param {{ profile: string, partitions: number }} what
 */
async function measure({ redis, url }, { profile, partitions }) {
  await fill(redis, partitions);
  const daemon = await started(url, profile, ['--roles', 'mover']);
  const worker = await started(url, profile, ['--roles', 'worker', '--module', `${root}bench/idle-handlers.mjs`]);
  try {
    await sleep(WARM_MS);
    const cpuNow = async () => [cpuMs(daemon.pid ?? 0), cpuMs(worker.pid ?? 0), await redisCpuMs(redis)];
    const [before, commandsBefore, sinceMs] = [await cpuNow(), await commandsOf(redis), performance.now()];
    await sleep(forMs);
    const commands = (await commandsOf(redis)) - commandsBefore;
    const percent = 100 / (performance.now() - sinceMs);
    const after = await cpuNow();
    const [daemonPercent, workerPercent, redisPercent] = after.map((ms, at) =>
      rounded((ms - (before[at] ?? 0)) * percent),
    );
    return {
      profile,
      jobs: JOBS,
      partitions,
      commandsPerSecond: rounded(commands * 10 * percent),
      daemonPercent,
      workerPercent,
      redisPercent,
      byScript: await commandsByScript(redis, forMs),
    };
  } finally {
    for (const one of [worker, daemon]) one.kill('SIGKILL');
  }
}

/**
 * @param {string} url
 * @param {string} profile
 * @param {readonly string[]} roles
 */
async function started(url, profile, roles) {
  const one = spawn(process.execPath, [`${root}dist/main.js`, 'start', ...roles], {
    env: { PATH: process.env.PATH, DUESTREAM_REDIS_URL: url, DUESTREAM_HTTP__PORT: '0', DUESTREAM_PROFILE: profile },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await new Promise((resolve, reject) => {
    one.stdout.on('data', (chunk) => String(chunk).includes('"msg":"started"') && resolve(undefined));
    one.once('exit', () => reject(new Error('the process ended')));
  });
  return one;
}

/** @param {import('ioredis').Redis} redis @param {number} partitions */
async function fill(redis, partitions) {
  const control = controlKeys('duestream');
  await redis.hset(control.queues, 'bench', JSON.stringify({ partitions, generation: 0 }));
  const dueMs = Date.now() + YEAR_MS;
  for (let partition = 0; partition < partitions; partition += 1) {
    const keys = partitionKeys({ namespace: 'duestream', queue: 'bench', partition });
    const count = JOBS / partitions;
    for (let from = 0; from < count; from += 1000) {
      const members = Array.from({ length: Math.min(1000, count - from) }, (_, at) => `j:job-${from + at}`);
      const record = `1${dueMs.toString(36)}|{"d":{"customer":"c-1"}}`;
      await redis.zadd(keys.scheduled, ...members.flatMap((member) => [dueMs, member]));
      await redis.hset(keys.jobs, ...members.flatMap((member) => [member, record]));
      await redis.hincrby(keys.meta, 'n.scheduled', members.length);
    }
  }
}
