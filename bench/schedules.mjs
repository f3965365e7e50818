/**
 * What schedules cost, by how many there are: `npm run bench -- schedules`. One daemon leads one partition with 1,000 to
 * 100,000 schedules. At rest: commands per second and CPU. While a hundred of them fire: Redis' time per fire and the
 * daemon's. Then 10,000 and 100,000 that all come due at one instant, with worker processes: from the instant to the start of
 * the handler. Their definitions are five expressions in five zones that name the same moment, and nobody has read them
 * before, as at a midnight. A job that is missing, early or there twice ends the measurement. Medians of several rounds; writes
 * `bench/results/schedules.json`, `schedules-minute.json` and the tables in the explanation.
 *
 *     --only minute        or cost
 *     --rounds 5           of each
 *     --schedules 100000   the most
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { root } from '../scripts/steps.mjs';
import { cpuMs, median, redisCpuMs, rounded, scriptMicros, settled, startDaemon, withRedis } from './parts.mjs';
import { duestream } from './peers/duestream.mjs';
import { openGround } from './peers/ground.mjs';
import { finished, judge, mark, quantile, startFleet } from './peers/workloads.mjs';

/** @typedef {import('ioredis').Redis} Redis */

/** @type {typeof import('../src/redis/keys.ts')} */
const { partitionKeys, controlKeys } = await import(`${root}dist/redis/keys.js`);
const keys = partitionKeys({ namespace: 'duestream', queue: 'bench', partition: 0 });
const control = controlKeys('duestream');

const FIRES = 100;
const REST_MS = 5000;
const HOUR_MS = 3_600_000;
const WORKERS = 2;
const ZONES = ['UTC', 'Europe/Berlin', 'America/New_York', 'Asia/Tokyo', 'Australia/Sydney'];
const AT_ONCE = 1000;
/** Longest that a round may take after its instant. */
const PATIENCE_MS = 120_000;

/** @param {import('./bench.mjs').Asked} asked */
export async function run({ binary, chosen, number }) {
  const only = chosen('only', ['cost', 'minute']) ?? ['cost', 'minute'];
  const rounds = number('rounds', { otherwise: 5, from: 1, to: 100 });
  const most = number('schedules', { otherwise: 100_000, from: 1000, to: 1_000_000 });
  const results = [];
  if (only.includes('cost')) {
    const rows = [];
    for (const schedules of [most / 100, most / 10, most].map(Math.floor)) {
      process.stderr.write(`bench: ${schedules} schedules\n`);
      rows.push(await withRedis(binary, (server) => costOf(server, { schedules, rounds })));
    }
    results.push({ name: 'schedules', what: `Medians of ${rounds} rounds`, rows });
  }
  if (only.includes('minute')) {
    const rows = [];
    for (const schedules of [most / 10, most].map(Math.floor)) rows.push(await minuteOf(binary, { schedules, rounds }));
    results.push({ name: 'schedules-minute', what: 'Medians', rows });
  }
  return results;
}

/** @param {{ redis: Redis, url: string }} server @param {{ schedules: number, rounds: number }} what */
async function costOf({ redis, url }, { schedules, rounds }) {
  const farMs = Date.now() + HOUR_MS;
  await define(redis, schedules, (at) => ({ ...daily(at), sinceMs: Date.now(), nextMs: farMs + (at % HOUR_MS) }));
  const bytes = Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1]);
  const daemon = await startDaemon(url);
  await settled();
  try {
    const rests = [];
    const firings = [];
    for (let round = 0; round < rounds; round += 1) {
      rests.push(await during(redis, daemon.pid, () => sleep(REST_MS)));
      firings.push(await during(redis, daemon.pid, () => fireSome(redis, { schedules, round })));
    }
    return {
      schedules,
      restCommandsPerSecond: rounded(median(rests.map(({ commands, ms }) => (commands * 1000) / ms))),
      restRedisPercent: rounded(median(rests.map(({ redisMs, ms }) => (redisMs * 100) / ms))),
      restDaemonPercent: rounded(median(rests.map(({ daemonMs, ms }) => (daemonMs * 100) / ms))),
      fireRedisMicros: rounded(median(firings.map(({ micros }) => micros / FIRES))),
      fireDaemonMicros: rounded(median(firings.map(({ daemonMs }) => (daemonMs * 1000) / FIRES))),
      bytesPerSchedule: Math.round((bytes - 1_000_000) / schedules),
    };
  } finally {
    daemon.kill();
  }
}

/** As people write them. @param {number} at */
const daily = (at) => ({ cron: `${at % 60} ${at % 24} * * *`, zone: 'Europe/Berlin' });

/**
 * Writes the schedules from 0 on, or those that are listed.
 *
 * @param {Redis} redis
 * @param {number | readonly number[]} which
 * @param {(at: number) => { cron: string, zone: string, sinceMs: number, nextMs: number }} of
 */
async function define(redis, which, of) {
  const every = typeof which === 'number' ? Array.from({ length: which }, (_, at) => at) : which;
  for (let from = 0; from < every.length; from += AT_ONCE) {
    const some = every.slice(from, from + AT_ONCE).map((at) => ({ name: `schedule-${at}`, at, ...of(at) }));
    const definitions = some.flatMap(({ name, at, cron, zone, sinceMs }) => {
      const schedule = { queue: 'bench', cron, zone, data: { at } };
      return [name, JSON.stringify({ since: sinceMs, source: 'call', schedule })];
    });
    await redis.hset(control.queues, 'bench', JSON.stringify({ partitions: 1, generation: 0 }));
    await redis.hset(control.schedules, ...definitions);
    await redis.hset(keys.fired, ...some.flatMap(({ name, sinceMs }) => [name, `${sinceMs} 0 0 - - 0`]));
    await redis.zadd(keys.fires, ...some.flatMap(({ name, nextMs }) => [nextMs, name]));
  }
  await redis.spublish(keys.wake, 'schedules');
}

/** A hundred that are spread over all come due: their last look was a day and a half ago. @param {Redis} redis @param {{ schedules: number, round: number }} what */
async function fireSome(redis, { schedules, round }) {
  const some = Array.from({ length: FIRES }, (_, at) => (at * Math.floor(schedules / FIRES) + round) % schedules);
  const pastMs = Date.now() - 36 * HOUR_MS;
  await define(redis, some, (at) => ({ ...daily(at), sinceMs: pastMs, nextMs: 0 }));
  await firedAll(redis, { untilMs: Date.now(), lookMs: 5 });
}

/** What Redis and the daemon spent meanwhile. @param {Redis} redis @param {number} pid @param {() => Promise<unknown>} act */
async function during(redis, pid, act) {
  await redis.config('RESETSTAT');
  const before = { ms: performance.now(), daemonMs: cpuMs(pid), redisMs: await redisCpuMs(redis) };
  await act();
  const commands = Number(/total_commands_processed:(\d+)/.exec(await redis.info('stats'))?.[1]) - 2;
  return {
    commands,
    micros: await scriptMicros(redis),
    ms: performance.now() - before.ms,
    daemonMs: cpuMs(pid) - before.daemonMs,
    redisMs: (await redisCpuMs(redis)) - before.redisMs,
  };
}

/** @param {string} binary @param {{ schedules: number, rounds: number }} what */
async function minuteOf(binary, { schedules, rounds }) {
  /** @type {Awaited<ReturnType<typeof instantOf>>[]} */
  const taken = [];
  for (let round = 1; round <= rounds; round += 1) {
    process.stderr.write(`bench: ${schedules} schedules of one minute, round ${round} of ${rounds}\n`);
    taken.push(await instantOf(binary, schedules));
  }
  const of = (/** @type {keyof (typeof taken)[number]} */ name) => rounded(median(taken.map((one) => one[name])));
  return {
    schedules,
    workers: WORKERS,
    rounds,
    p50Ms: of('p50Ms'),
    p99Ms: of('p99Ms'),
    lastMs: of('lastMs'),
    p99MinMs: Math.min(...taken.map(({ p99Ms }) => p99Ms)),
    p99MaxMs: Math.max(...taken.map(({ p99Ms }) => p99Ms)),
    firedMs: of('firedMs'),
    redisMicros: of('redisMicros'),
    daemonMicros: of('daemonMicros'),
  };
}

/** @param {string} binary @param {number} schedules */
async function instantOf(binary, schedules) {
  const ground = await openGround({ binary });
  try {
    await ground.redis.hset(control.queues, 'bench', JSON.stringify({ partitions: 1, generation: 0 }));
    const fleet = await startFleet(ground, { system: duestream }, { jobs: schedules, processes: WORKERS });
    await settled();
    const instantMs = Math.ceil((Date.now() + 4000 + schedules / 5) / 1000) * 1000;
    const crons = ZONES.map((zone) => ({ cron: cronAt(instantMs, zone), zone }));
    const hourAgo = instantMs - HOUR_MS;
    await define(ground.redis, schedules, (at) => {
      const { cron = '', zone = '' } = crons[at % crons.length] ?? {};
      return { cron, zone, sinceMs: hourAgo, nextMs: instantMs };
    });
    if (Date.now() > instantMs - 1000)
      throw new Error('the machine is too slow: the instant came before its schedules');
    await sleep(instantMs - 500 - Date.now());
    await mark(fleet);
    const before = await ground.spent();
    const firedMs = (await firedAll(ground.redis, { untilMs: instantMs, lookMs: 20 })) - instantMs;
    const seen = await finished(ground, { system: duestream }, { fleet, jobs: schedules });
    const after = await ground.spent();
    const { lateMs } = judge({ system: duestream }, { seen, jobs: schedules, dueOf: () => instantMs });
    return {
      p50Ms: quantile(lateMs, 0.5),
      p99Ms: quantile(lateMs, 0.99),
      lastMs: lateMs.at(-1) ?? Number.NaN,
      firedMs,
      redisMicros: ((after.cpuMs - before.cpuMs) * 1000) / schedules,
      daemonMicros: ((seen.daemonMs ?? 0) * 1000) / schedules,
    };
  } finally {
    await ground.close();
  }
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

/** When no schedule of an instant was left to fire. @param {Redis} redis @param {{ untilMs: number, lookMs: number }} of */
async function firedAll(redis, { untilMs, lookMs }) {
  for (;;) {
    await sleep(Math.max(lookMs, untilMs - Date.now()));
    if (Number(await redis.zcount(keys.fires, 0, untilMs)) === 0) return Date.now();
    if (Date.now() > untilMs + PATIENCE_MS) throw new Error('the schedules did not fire');
  }
}
