/**
 * What limits of a queue do and cost: `npm run bench:limits`. How close a rate is kept; how many starts and how long it takes
 * to run jobs of one account one after the other, with `perGroup` and with a lock and `Defer`; how many jobs start before the
 * only job of a tenant whose neighbour has many; in which turns priorities come; and CPU time of Redis per job of a burst.
 * A daemon leads, two workers run the jobs. Writes `bench/results/limits.json`.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { argumentsFor, wholeNumber } from '../scripts/arguments.mjs';
import { root } from '../scripts/steps.mjs';
import { keep, median, prepare, redisCpuMs, rounded, startDaemon, withRedis } from './parts.mjs';

/** @typedef {import('duestream').QueueOptions} QueueOptions */
/** @typedef {{ id: string, group: string | undefined, atMs: number, endMs: number }} Start */

/** By which the promise of a rate lets a job come early. */
const TOLERANCE_MS = 50;
const NEIGHBOUR_JOBS = 20_000;
const BURST_JOBS = 20_000;
const LOCKED_JOBS = 60;
const WORK_MS = 20;
/** What bursts are compared. @type {readonly (QueueOptions & { ofGroups?: number })[]} */
const COSTS = [{}, { concurrency: 1_000_000 }, { fair: true, ofGroups: 1000 }, { perGroup: 1, ofGroups: 1000 }];

const given = argumentsFor(import.meta.filename, { seconds: { type: 'string' } });
const range = { given: given.seconds, otherwise: 30, from: 5, to: 600 };
const seconds = wholeNumber(import.meta.filename, 'seconds', range);
const { binary } = await prepare();
const { createClient, createWorker, Defer, defineQueue } = await import(`${root}dist/index.js`);

const rows = await withRedis(binary, async ({ redis, url }) => {
  const daemon = await startDaemon(url);
  const client = createClient({ redis: url });
  try {
    return await measured({ redis, url, client });
  } finally {
    await client.stop();
    daemon.kill();
  }
});
keep('limits', { what: 'one queue, two workers, one partition', rows });

/** Epoch ms, to the microsecond. */
function now() {
  return performance.timeOrigin + performance.now();
}

/** @typedef {{ redis: import('ioredis').Redis, url: string, client: import('duestream').Client }} Place */

/** @param {Place} place */
async function measured(place) {
  const found = [];
  for (const rate of [
    { limit: 200, per: '1s', burst: 1 },
    { limit: 7, per: '1s', burst: 1 },
    { limit: 7, per: '1s', burst: 20 },
    { limit: 2000, per: '1s', burst: 1 },
  ]) {
    found.push(await rateOf(place, rate));
  }
  found.push(await lockedBy(place, 'perGroup: 1', { perGroup: 1 }));
  found.push(await lockedBy(place, 'a lock, and Defer of 100 ms', {}));
  for (const tenants of [3, 100, 1000]) found.push(await neighbours(place, tenants));
  found.push(await priorities(place));
  for (const limits of COSTS) found.push(await costOf(place, limits));
  return found;
}

/**
 * Runs jobs that are all due at one time, and tells their starts in order.
 *
 * @param {Place} place
 * @param {{ name: string, limits: QueueOptions, jobs: readonly object[], slots?: number, forMs?: number,
 *   handler?: (job: { id: string }) => Promise<void>, begins?: () => Promise<void> }} of
 *   forMs: the jobs are left after that time
 */
async function run({ url, client }, { name, limits, jobs, slots = 20, forMs, handler, begins }) {
  process.stderr.write(`bench: ${name}\n`);
  const queue = defineQueue(
    name
      .toLowerCase()
      .replaceAll(/[^a-z0-9]+/g, '-')
      .slice(0, 64),
    limits,
  );
  /** @type {Start[]} */
  const starts = [];
  let ended = 0;
  const work = async (/** @type {{ id: string }} */ job) => {
    const start = { id: job.id, group: /^\{(.+?)\}/.exec(job.id)?.[1], atMs: now(), endMs: 0 };
    starts.push(start);
    await handler?.(job);
    start.endMs = now();
    ended += 1;
  };
  const workers = [1, 2].map(() => createWorker(queue, work, { redis: url, concurrency: slots }));
  for (const worker of workers) await worker.start();
  const at = Date.now() + 3000 + jobs.length / 4;
  for (let from = 0; from < jobs.length; from += 1000) {
    await client.scheduleMany(
      queue,
      jobs.slice(from, from + 1000).map((job) => ({ data: {}, at: new Date(at), ...job })),
    );
  }
  await sleep(at - Date.now() - 100);
  await begins?.();
  const untilMs = Date.now() + (forMs ?? 300_000);
  while (ended < jobs.length && Date.now() < untilMs) await sleep(10);
  if (forMs === undefined && ended < jobs.length) throw new Error(`${name}: ${ended} of ${jobs.length} ended`);
  await Promise.all(workers.map((worker) => worker.stop()));
  return starts;
}

/** @param {Place} place @param {{ limit: number, per: string, burst: number }} rate */
async function rateOf(place, rate) {
  const name = `${rate.limit} per second, burst ${rate.burst}`;
  const jobs = Array.from({ length: rate.limit * (seconds + 5) + rate.burst }, () => ({}));
  const starts = await run(place, { name, limits: { rate }, jobs, forMs: seconds * 1000 + 500 });
  const times = starts.map(({ atMs }) => atMs);
  // The burst, and what may come early, stand at the beginning of the first second.
  const [from = 0] = times;
  const later = times.filter((atMs) => atMs >= from + 1000 && atMs < from + seconds * 1000);
  const perSecond = (later.length - 1) / (((later.at(-1) ?? 0) - (later[0] ?? 0)) / 1000);
  const inFirst = times.filter((atMs) => atMs < from + 1000).length;
  return {
    what: name,
    perSecond: rounded(perSecond),
    inTheFirstSecond: inFirst,
    atMost: Math.floor((rate.limit * (1000 + TOLERANCE_MS)) / 1000) + rate.burst,
  };
}

/** @param {Place} place @param {string} by @param {QueueOptions} limits */
async function lockedBy(place, by, limits) {
  let isTaken = false;
  let most = 0;
  let running = 0;
  const isLocked = limits.perGroup === undefined;
  const jobs = Array.from({ length: LOCKED_JOBS }, () => (isLocked ? {} : { group: 'acme' }));
  const handler = async () => {
    if (isLocked && isTaken) throw new Defer('100ms', { jitter: 'equal' });
    isTaken = true;
    running += 1;
    most = Math.max(most, running);
    await sleep(WORK_MS);
    running -= 1;
    isTaken = false;
  };
  const starts = await run(place, { name: `one account, ${by}`, limits, jobs, handler });
  const done = starts.filter(({ endMs }) => endMs > 0);
  const gaps = done.slice(1).map(({ atMs }, nth) => atMs - (done[nth]?.endMs ?? 0));
  const [first, last] = [done[0], done.at(-1)];
  return {
    what: `${LOCKED_JOBS} jobs of ${WORK_MS} ms of one account, ${by}`,
    starts: starts.length,
    mostAtOnce: most,
    allMs: Math.round((last?.endMs ?? 0) - (first?.atMs ?? 0)),
    endToNextStartMs: rounded(median(gaps)),
  };
}

/**
 * The others come when the jobs of their neighbour stand in line.
 *
 * @param {Place} place
 * @param {number} tenants
 */
async function neighbours(place, tenants) {
  const many = Array.from({ length: NEIGHBOUR_JOBS }, () => ({ group: 'big' }));
  const later = new Date(Date.now() + 3000 + NEIGHBOUR_JOBS / 4 + 2000);
  const others = Array.from({ length: tenants - 1 }, (_, nth) => ({ group: `t${nth}`, at: later }));
  const name = `${tenants} tenants`;
  const handler = () => sleep(2);
  const starts = await run(place, { name, limits: { fair: true }, jobs: [...others, ...many], slots: 2, handler });
  const since = starts.filter(({ atMs }) => atMs >= later.getTime());
  const places = since.flatMap(({ group }, nth) => (group === 'big' ? [] : [nth + 1]));
  const lateMs = since.flatMap(({ group, atMs }) => (group === 'big' ? [] : [atMs - later.getTime()]));
  return {
    what: `${tenants} tenants, one with ${NEIGHBOUR_JOBS} jobs: starts since the others are due`,
    first: places[0],
    last: places.at(-1),
    medianMs: rounded(median(lateMs)),
  };
}

/** @param {Place} place */
async function priorities(place) {
  const each = 2100;
  const jobs = ['high', 'normal', 'low'].flatMap((priority) =>
    Array.from({ length: each }, (_, nth) => ({ priority, id: `${priority}-${nth}` })),
  );
  const handler = () => sleep(1);
  const starts = await run(place, { name: 'priorities', limits: { fair: true }, jobs, slots: 5, handler });
  // While all three wait.
  const some = starts.slice(0, each);
  const of = (/** @type {string} */ priority) => some.filter(({ id }) => id.startsWith(priority)).length;
  return {
    what: `of ${each} starts while all wait`,
    high: of('high'),
    normal: of('normal'),
    low: of('low'),
  };
}

/** @param {Place} place @param {QueueOptions & { ofGroups?: number }} of */
async function costOf(place, { ofGroups: groups = 0, ...limits }) {
  const jobs = Array.from({ length: BURST_JOBS }, (_, nth) => (groups === 0 ? {} : { group: `g${nth % groups}` }));
  const name = `a burst with ${JSON.stringify(limits)}`;
  let before = 0;
  const begins = async () => {
    before = await redisCpuMs(place.redis);
  };
  const starts = await run(place, { name, limits, jobs, slots: 50, begins });
  const micros = ((await redisCpuMs(place.redis)) - before) * 1000;
  return {
    what: `${BURST_JOBS} jobs with ${JSON.stringify(limits)}`,
    redisMicrosPerJob: rounded(micros / starts.length),
  };
}
