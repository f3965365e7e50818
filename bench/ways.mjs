/**
 * What each way to a handler costs: `npm run bench -- ways`. A read that waits (XREADGROUP, then `serve`), polling (a message
 * wakes the worker, then `serve`), and `relay`, where the only worker shares the process of the leader. Jobs that come evenly, and
 * a drain of 20,000: lateness, and what a job costs Redis and the processes. Medians of the rounds, in which the ways take turns,
 * so that a busy machine is busy for all. Writes `bench/results/ways.json`.
 *
 *     --rounds 3                   how many
 *     --seconds 4                  for each rate
 *     --rates 10,100,500,2000,0    jobs a second; 0 = the drain
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { root } from '../scripts/steps.mjs';
import { cpuMsIn, median, rounded, withRedis } from './parts.mjs';

/** Processes of each way: what one runs, and how its worker reads. */
const WAYS = {
  'one process, relay': ['both'],
  'one process, read': ['mover worker'],
  'one process, poll': ['mover worker poll'],
  'one worker, read': ['mover', 'worker'],
  'one worker, poll': ['mover', 'worker poll'],
  'two workers, read': ['mover', 'worker', 'worker'],
  'two workers, poll': ['mover', 'worker poll', 'worker poll'],
};
const LEAD_MS = 4000;
const DRAINED = 20_000;

const RATES = ['10', '100', '500', '2000', '0'];

if (process.argv[2] === 'part') await part(process.argv[3] ?? '', process.argv[4] ?? '');

/** @param {import('./bench.mjs').Asked} asked */
export async function run({ binary, number, chosen }) {
  const rounds = number('rounds', { otherwise: 3, from: 1, to: 100 });
  const seconds = number('seconds', { otherwise: 4, from: 1, to: 600 });
  const rates = (chosen('rates', RATES) ?? RATES).map(Number);
  /** @type {Map<string, Record<string, number>[]>} */
  const found = new Map();
  for (let round = 1; round <= rounds; round += 1) {
    for (const rate of rates) {
      for (const [way, parts] of Object.entries(WAYS)) {
        const key = `${rate === 0 ? 'drain' : `${rate}/s`}, ${way}`;
        process.stderr.write(`bench: round ${round} of ${rounds}, ${key}\n`);
        const row = await withRedis(binary, (server) => measure(server, parts, { seconds, rate }));
        found.set(key, [...(found.get(key) ?? []), row]);
      }
    }
  }
  const rows = [...found].map(([way, all]) => {
    const names = Object.keys(all[0] ?? {});
    return {
      way,
      ...Object.fromEntries(names.map((name) => [name, rounded(median(all.map((row) => row[name] ?? 0)))])),
    };
  });
  return [{ name: 'ways', what: `${seconds} s of each rate, medians of ${rounds} rounds`, rows }];
}

/**
 * @param {{ url: string, redis: import('ioredis').Redis }} server
 * @param {readonly string[]} parts
 * @param {{ seconds: number, rate: number }} load
 */
async function measure({ url, redis }, parts, { seconds, rate }) {
  const { createClient } = await import(`${root}dist/index.js`);
  const running = parts.map((does) => fork(import.meta.filename, ['part', does, url]));
  for (const child of running) await once(child, 'message');
  const producer = createClient({ redis: url });
  const count = rate === 0 ? DRAINED : rate * seconds;
  const fromMs = Date.now() + LEAD_MS + (rate === 0 ? 3000 : 0);
  const jobs = Array.from({ length: count }, (_, nth) => ({
    data: nth,
    at: new Date(fromMs + (rate && (nth * 1000) / rate)),
  }));
  await producer.scheduleMany('ways', jobs);
  await producer.close();
  await sleep(fromMs - Date.now() - 100);
  const before = await figures(redis);
  const cpuBefore = await ask(running, 'cpu');
  if (rate === 0) while (await isLeft(redis)) await sleep(50);
  else await sleep(fromMs + seconds * 1000 + 500 - Date.now());
  const after = await figures(redis);
  const cpu = await ask(running, 'cpu');
  const late = (await ask(running, 'late'))
    .flat()
    .toSorted((/** @type {number} */ a, /** @type {number} */ b) => a - b);
  for (const child of running) child.kill();
  await Promise.all(running.map((child) => once(child, 'exit')));
  const at = (/** @type {number} */ share) => late[Math.floor(share * (late.length - 1))] ?? Number.NaN;
  const sum = (/** @type {number[]} */ all) => all.reduce((one, other) => one + other, 0);
  return {
    ran: late.length / count,
    p50Ms: at(0.5),
    p95Ms: at(0.95),
    redisUs: ((after.cpu - before.cpu) * 1000) / count,
    ownUs: ((sum(cpu) - sum(cpuBefore)) * 1000) / count,
    bytes: (after.bytes - before.bytes) / count,
    calls: (after.calls - before.calls) / count,
    connections: after.connections - 1,
    ...(rate === 0 && { jobsPerS: (count * 1000) / at(1) }),
  };
}

/** @param {import('ioredis').Redis} redis */
async function isLeft(redis) {
  const key = 'duestream:v1:{ways:0}:';
  return (await redis.zcard(`${key}scheduled`)) + (await redis.xlen(`${key}ready`)) > 0;
}

/** @param {import('ioredis').Redis} redis */
async function figures(redis) {
  const info = await redis.info();
  const of = (/** @type {string} */ name) => Number(new RegExp(`${name}:(\\d+)`).exec(info)?.[1]);
  return {
    cpu: cpuMsIn(info),
    bytes: of('total_net_input_bytes') + of('total_net_output_bytes'),
    calls: of('total_commands_processed'),
    connections: of('connected_clients'),
  };
}

/** @param {readonly import('node:child_process').ChildProcess[]} children @param {string} what @returns {Promise<any[]>} */
async function ask(children, what) {
  return Promise.all(
    children.map(async (child) => {
      child.send(what);
      return (await once(child, 'message'))[0];
    }),
  );
}

/** A process of its own. @param {string} does @param {string} url */
async function part(does, url) {
  const { createWorker, defineHandlers } = await import(`${root}dist/index.js`);
  const { createDaemon } = await import(`${root}dist/daemon/index.js`);
  /** @type {number[]} */
  const late = [];
  const ways = (/** @type {{ dueMs: number }} */ job) =>
    void late.push(performance.timeOrigin + performance.now() - job.dueMs);
  const quiet = /** @type {const} */ ({ redis: { url }, log: { level: 'fatal' } });
  const read = does.includes('poll') ? 'poll' : 'block';
  if (does === 'both') {
    await createDaemon({ ...quiet, roles: ['mover', 'worker'] }, { handlers: defineHandlers({ ways }) }).start();
  }
  if (does.includes('mover')) await createDaemon({ ...quiet, roles: ['mover'] }).start();
  if (does.includes('worker')) await createWorker('ways', ways, { redis: url, read }).start();
  process.on('message', (what) => {
    const { user, system } = process.cpuUsage();
    process.send?.(what === 'cpu' ? (user + system) / 1000 : late);
  });
  process.send?.('ready');
}
