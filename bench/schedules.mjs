/**
 * What schedules cost, by how many there are: `npm run bench:schedules`. One daemon leads one partition with 1,000 to
 * 100,000 schedules. At rest: commands per second and CPU. While a hundred of them fire: Redis' time per fire and the
 * daemon's. Then 10,000 and 100,000 of one minute (`schedules-minute.mjs`). Several rounds, medians; writes
 * `bench/results/schedules.json`, `schedules-minute.json` and the tables in the explanation.
 *
 *     --minute   only the schedules of one minute
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { argumentsFor } from '../scripts/arguments.mjs';
import { root } from '../scripts/steps.mjs';
import { cpuMs, keep, median, prepare, redisCpuMs, rounded, startDaemon, withRedis } from './parts.mjs';
import { measureMinutes } from './schedules-minute.mjs';

/** @typedef {import('ioredis').Redis} Redis */
/** @typedef {{ readonly fires: string, readonly fired: string, readonly wake: string }} Keys */

const SIZES = [1000, 10_000, 100_000];
const ROUNDS = 5;
const FIRES = 100;
const REST_MS = 5000;
const PAGE = join(root, 'docs/explanation/schedules.md');

const { minute } = argumentsFor(import.meta.filename, { minute: { type: 'boolean', default: false } });
const { binary } = await prepare();
const { partitionKeys, controlKeys } = await import(`${root}dist/redis/keys.js`);

if (!minute) await measureCost();
const minutes = await measureMinutes(binary);
writeMinutes(keep('schedules-minute', { what: 'schedules of one minute, from their instant, medians', rows: minutes }));

async function measureCost() {
  const rows = [];
  for (const schedules of SIZES) {
    process.stderr.write(`bench: ${schedules} schedules\n`);
    rows.push(await withRedis(binary, (server) => measure(server, schedules)));
  }
  writeCost(keep('schedules', { what: 'the cost of schedules at rest and while they fire, medians', rows }));
}

/** @param {{ redis: Redis, url: string }} server @param {number} schedules */
async function measure({ redis, url }, schedules) {
  const keys = partitionKeys({ namespace: 'duestream', queue: 'bench', partition: 0 });
  const control = controlKeys('duestream');
  await redis.hset(control.queues, 'bench', JSON.stringify({ partitions: 1, generation: 0 }));
  const farMs = Date.now() + 3_600_000;
  await fill(redis, { keys, control, schedules, farMs });
  const bytes = Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1]);
  const daemon = await startDaemon(url);
  const pid = daemon.pid ?? 0;
  try {
    const rests = [];
    const firings = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      rests.push(await during(redis, pid, () => sleep(REST_MS)));
      firings.push(await during(redis, pid, () => fireSome(redis, { keys, schedules, round })));
    }
    return {
      schedules,
      restCommandsPerSecond: rounded(median(rests.map(({ commands, ms }) => (commands * 1000) / ms))),
      restRedisPercent: rounded(median(rests.map(({ redisMs, ms }) => (redisMs * 100) / ms))),
      restDaemonPercent: rounded(median(rests.map(({ daemonMs, ms }) => (daemonMs * 100) / ms))),
      fireRedisMicros: rounded(median(firings.map(({ fireMicros }) => fireMicros))),
      fireDaemonMicros: rounded(median(firings.map(({ daemonMs }) => (daemonMs * 1000) / FIRES))),
      bytesPerSchedule: Math.round((bytes - 1_000_000) / schedules),
    };
  } finally {
    daemon.kill('SIGKILL');
  }
}

/**
 * Schedules whose next instant is far; a definition as people write them.
 *
 * @param {Redis} redis
 * @param {{ keys: Keys, control: { readonly schedules: string }, schedules: number, farMs: number }} what
 */
async function fill(redis, { keys, control, schedules, farMs }) {
  for (let from = 0; from < schedules; from += 1000) {
    const names = Array.from({ length: Math.min(1000, schedules - from) }, (_, at) => `schedule-${from + at}`);
    const definition = (/** @type {string} */ name, /** @type {number} */ at) =>
      JSON.stringify({
        since: Date.now(),
        source: 'call',
        schedule: { queue: 'bench', cron: `${at % 60} ${at % 24} * * *`, zone: 'Europe/Berlin', data: { name } },
      });
    await redis.hset(control.schedules, ...names.flatMap((name, at) => [name, definition(name, from + at)]));
    await redis.hset(keys.fired, ...names.flatMap((name) => [name, `${Date.now()} 0 0 - - 0`]));
    await redis.zadd(keys.fires, ...names.flatMap((name, at) => [farMs + ((from + at) % 3_600_000), name]));
  }
}

/**
 * A hundred that are spread over all come due: their last look was a day and a half ago.
 *
 * @param {Redis} redis
 * @param {{ keys: Keys, schedules: number, round: number }} what
 */
async function fireSome(redis, { keys, schedules, round }) {
  const names = Array.from(
    { length: FIRES },
    (_, at) => `schedule-${(at * Math.floor(schedules / FIRES) + round) % schedules}`,
  );
  const pastMs = Date.now() - 36 * 3_600_000;
  await redis.hset(keys.fired, ...names.flatMap((name) => [name, `${pastMs} 0 0 - - 0`]));
  await redis.hset(
    'duestream:v1:{control}:schedules',
    ...names.flatMap((name, at) => [name, definitionSince(name, at, pastMs)]),
  );
  await redis.zadd(keys.fires, ...names.flatMap((name) => [0, name]));
  await redis.spublish(keys.wake, 'schedules');
  const untilMs = Date.now() + 10_000;
  while (Number(await redis.zcount(keys.fires, 0, Date.now())) > 0) {
    if (Date.now() > untilMs) throw new Error('the schedules did not fire');
    await sleep(5);
  }
}

/** @param {string} name @param {number} at @param {number} since */
function definitionSince(name, at, since) {
  const schedule = { queue: 'bench', cron: `${at % 60} ${at % 24} * * *`, zone: 'Europe/Berlin', data: { name } };
  return JSON.stringify({ since, source: 'call', schedule });
}

/** What Redis and the daemon spent meanwhile. @param {Redis} redis @param {number} pid @param {() => Promise<unknown>} act */
async function during(redis, pid, act) {
  await redis.config('RESETSTAT');
  const before = { ms: performance.now(), daemonMs: cpuMs(pid), redisMs: await redisCpuMs(redis) };
  await act();
  const commands = Number(/total_commands_processed:(\d+)/.exec(await redis.info('stats'))?.[1]) - 2;
  const [, micros = 0] = /cmdstat_evalsha:calls=\d+,usec=(\d+)/.exec(await redis.info('commandstats')) ?? [];
  return {
    commands,
    fireMicros: Number(micros) / FIRES,
    ms: performance.now() - before.ms,
    daemonMs: cpuMs(pid) - before.daemonMs,
    redisMs: (await redisCpuMs(redis)) - before.redisMs,
  };
}

/** @typedef {{ readonly host: string, readonly node: string, readonly date: string, readonly rows: readonly object[] }} Result */

/** @param {Result} result */
function writeCost(result) {
  writeTable('cost', result, `Medians of ${ROUNDS} rounds`, [
    ...['schedules', 'at rest: commands/s', 'CPU of Redis, %', 'CPU of the daemon, %', 'one fire: Redis, µs'],
    ...['daemon, µs', 'bytes per schedule'],
  ]);
}

/** @param {Result} result */
function writeMinutes(result) {
  writeTable('minute', result, 'Medians', [
    ...['schedules', 'worker processes', 'rounds', 'start of the handler: p50, ms', 'p99, ms', 'last, ms'],
    ...['p99 of the best round, ms', 'of the worst, ms', 'all fired, ms', 'Redis per job, µs', 'daemon per job, µs'],
  ]);
}

/** @param {string} mark @param {Result} result @param {string} what @param {readonly string[]} heads */
function writeTable(mark, { host, node, date, rows }, what, heads) {
  const [begin, end] = [`<!-- ${mark}: made by npm run bench:schedules -->`, `<!-- end of ${mark} -->`];
  const line = (/** @type {readonly string[]} */ cells) => `| ${cells.join(' | ')} |`;
  const table = [
    ...[begin, `${what}, ${host}, Node.js ${node.slice(1)}, ${date}.`, ''],
    ...[line(heads), `|${'--:|'.repeat(heads.length)}`],
    ...rows.map((row) => line(Object.values(row).map((value) => value.toLocaleString('en')))),
    end,
  ].join('\n');
  const page = readFileSync(PAGE, 'utf8');
  writeFileSync(PAGE, page.slice(0, page.indexOf(begin)) + table + page.slice(page.indexOf(end) + end.length));
}
