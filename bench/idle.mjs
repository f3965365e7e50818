/**
 * What waiting costs: `npm run bench:idle`. A daemon with the defaults leads partitions that together hold 100,000 jobs of
 * the far future, alone or with a worker in the same process. The CPU of that process and of Redis and the commands that
 * Redis carries out, those of scripts included, over a minute; then, not at the same time, who asks for them, by MONITOR.
 * Writes `bench/results/idle.json`.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { argumentsFor } from '../scripts/arguments.mjs';
import { root } from '../scripts/steps.mjs';
import { commandsByScript, commandsOf } from './idle-commands.mjs';
import { cpuMs, keep, prepare, redisCpuMs, rounded, startDaemon, withRedis } from './parts.mjs';

const JOBS = 100_000;
const PARTITIONS = [1, 8];
/** Once after its start the engine cleans up its memory. */
const WARM_MS = 20_000;
const REST_MS = 60_000;
const MONITOR_MS = 60_000;
const YEAR_MS = 365 * 86_400_000;

argumentsFor(import.meta.filename, {});
const { binary } = await prepare();
const { controlKeys, partitionKeys } = await import(`${root}dist/redis/keys.js`);

const rows = [];
for (const partitions of PARTITIONS) {
  for (const worker of [false, true]) {
    const what = `${partitions} partitions, ${worker ? 'with' : 'without'} a worker`;
    process.stderr.write(`bench: ${what}, ${(WARM_MS + REST_MS + MONITOR_MS) / 1000} s\n`);
    rows.push(await withRedis(binary, (server) => measure(server, { partitions, worker })));
  }
}
keep('idle', { what: `the cost of ${JOBS} jobs of the far future`, rows });

/**
 * @param {{ redis: import('ioredis').Redis, url: string }} server
 * @param {{ partitions: number, worker: boolean }} what
 */
async function measure({ redis, url }, { partitions, worker }) {
  await fill(redis, partitions);
  const daemon = await startDaemon(url, worker ? `${root}bench/idle-handlers.mjs` : undefined);
  const pid = daemon.pid ?? 0;
  try {
    await sleep(WARM_MS);
    const before = { daemonMs: cpuMs(pid), redisMs: await redisCpuMs(redis), ms: performance.now() };
    const commandsBefore = await commandsOf(redis);
    await sleep(REST_MS);
    const commands = (await commandsOf(redis)) - commandsBefore;
    const daemonMs = cpuMs(pid) - before.daemonMs;
    const redisMs = (await redisCpuMs(redis)) - before.redisMs;
    const percent = 100 / (performance.now() - before.ms);
    const perSecond = commands * 10 * percent;
    return {
      jobs: JOBS,
      partitions,
      worker,
      daemonPercent: rounded(daemonMs * percent),
      redisPercent: rounded(redisMs * percent),
      commandsPerSecond: rounded(perSecond),
      perPartition: rounded(perSecond / partitions),
      byScript: await commandsByScript(redis, MONITOR_MS),
    };
  } finally {
    daemon.kill('SIGKILL');
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
