/**
 * What waiting costs: `npm run bench -- idle`. A daemon and a worker, each a process of its own, and partitions that together
 * hold 100,000 jobs of the far future, with each profile. The commands that Redis carries out, those of scripts included,
 * and the CPU of all three; then, not at the same time, who asks for them, by MONITOR. Writes `bench/results/idle.json`, which
 * `duestream admin plan --price` goes by.
 *
 *     --seconds 180          how long each of the two is measured: what `quiet` does once in three minutes counts, too
 *     --profiles quiet,…     only these
 *     --partitions 1         only so many, not 1 and 8
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { root } from '../scripts/steps.mjs';
import { commandsByScript, commandsOf } from './idle-commands.mjs';
import { cpuMs, redisCpuMs, rounded, startDaemon, withRedis } from './parts.mjs';

/** @type {typeof import('../src/redis/keys.ts')} */
const { controlKeys, partitionKeys } = await import(`${root}dist/redis/keys.js`);
/** @type {typeof import('../src/kernel/rhythm.ts')} */
const { PROFILES } = await import(`${root}dist/kernel/rhythm.js`);

const JOBS = 100_000;
/** Once after its start the engine cleans up its memory. */
const WARM_MS = 15_000;
const YEAR_MS = 365 * 86_400_000;

/** @param {import('./bench.mjs').Asked} asked */
export async function run({ binary, chosen, number, values }) {
  const forMs = number('seconds', { otherwise: 180, from: 1, to: 3600 }) * 1000;
  const counts = values.partitions === undefined ? [1, 8] : [number('partitions', { otherwise: 1, from: 1, to: 1024 })];
  const profiles = chosen('profiles', PROFILES) ?? PROFILES;
  // Side by side: at rest they leave each other alone.
  const cells = profiles.flatMap((profile) => counts.map((partitions) => ({ profile, partitions, forMs })));
  process.stderr.write(`bench: ${cells.length} cells side by side, ${(WARM_MS + 2 * forMs) / 1000} s\n`);
  const rows = await Promise.all(cells.map((cell) => withRedis(binary, (server) => measure(server, cell))));
  return [{ name: 'idle', what: `the cost of ${JOBS} jobs of the far future`, rows }];
}

/**
 * @param {{ redis: import('ioredis').Redis, url: string }} server
 * @param {{ profile: string, partitions: number, forMs: number }} what
 */
async function measure({ redis, url }, { profile, partitions, forMs }) {
  await fill(redis, partitions);
  const env = { DUESTREAM_PROFILE: profile };
  const daemon = await startDaemon(url, { env });
  const worker = await startDaemon(url, { env, roles: 'worker', handlers: true });
  try {
    await sleep(WARM_MS);
    const cpuNow = async () => [cpuMs(daemon.pid), cpuMs(worker.pid), await redisCpuMs(redis)];
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
    for (const one of [worker, daemon]) one.kill();
  }
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
