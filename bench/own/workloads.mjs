/**
 * What duestream alone is put through. Each acts with a Redis and processes of its own; a job that is missing, starts too
 * often or starts early ends the bench, as in `bench/peers/workloads.mjs`.
 */
import { fork } from 'node:child_process';
import { freemem } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { embedded as duestream } from '../peers/duestream.mjs';
import { openGround, spentBy } from '../peers/ground.mjs';
import { planned } from '../peers/plan.mjs';
import { finished, judge, mark, perJob, quantile, startFleet, TooSoon, withRoom } from '../peers/workloads.mjs';
import { failing, STARTS } from './failing.mjs';
import { valkey } from './valkey.mjs';

/** @typedef {import('../peers/ground.mjs').RedisGround} Ground */
/** @typedef {import('../peers/system.mjs').System} System */
/** @typedef {Readonly<Record<string, number>>} Figures */
/** @typedef {{ binary: string, size: (jobs: number) => number, round: number, full: boolean }} Given */

/** @typedef {object} Workload
 * @property {string} name
 * @property {string} title
 * @property {(given: Given) => Promise<Figures>} run
 * @property {(given: Given) => string | undefined | Promise<string | undefined>} [skip] why it cannot run here
 */

const BYTES = 200;
const LARGE_BYTES = 256 * 1024 - 64;
const FAR_MS = 90 * 86_400_000;
/** A producer makes the jobs of a call before it sends them, so a call has no more. */
const PART = 250_000;
const FREE_MIN = 8 * 2 ** 30;
const PROBE = fileURLToPath(new URL('probe.mjs', import.meta.url));

/** @type {readonly Workload[]} */
export const workloads = [
  {
    name: 'retries',
    title: 'a storm of retries: each job fails twice and then succeeds, backoff 1 s',
    run: (given) => burst(given, { jobs: given.size(20_000), system: failing, times: STARTS }),
  },
  { name: 'growth100k', title: 'beside 100,000 pending jobs', run: (given) => growth(given, 100_000) },
  { name: 'growth1M', title: 'beside 1,000,000 pending jobs', run: (given) => growth(given, 1_000_000) },
  {
    name: 'growth10M',
    title: 'beside 10,000,000 pending jobs',
    run: (given) => growth(given, 10_000_000),
    skip: ({ full }) => {
      if (!full) return 'only with --full';
      const free = freemem();
      return free < FREE_MIN ? `it needs 8 GiB of free memory, there are ${(free / 2 ** 30).toFixed(1)}` : undefined;
    },
  },
  {
    name: 'herd',
    title: 'a herd of 1,000,000 jobs due at one instant, and what another client of Redis feels',
    run: herd,
  },
  {
    name: 'burst',
    title: 'burst of 50,000 jobs, append-only file off',
    run: (given) => burst(given, { jobs: given.size(50_000) }),
  },
  {
    name: 'burstAof',
    title: 'the same with the append-only file, fsync everysec',
    run: (given) => burst(given, { jobs: given.size(50_000), fsync: 'everysec' }),
  },
  {
    name: 'large',
    title: 'a burst of records of 256 KiB',
    run: (given) => burst(given, { jobs: given.size(1000), bytes: LARGE_BYTES }),
  },
  {
    name: 'valkey',
    title: 'the burst of 50,000 jobs on Valkey',
    run: async (given) => burst({ ...given, binary: (await valkey()).binary }, { jobs: given.size(50_000) }),
    skip: async () => (await valkey()).reason,
  },
];

/** @template T @param {{ binary: string, fsync?: 'none' | 'everysec' }} on @param {(ground: Ground) => Promise<T>} act */
async function withGround(on, act) {
  const ground = await openGround(on);
  try {
    return await act(ground);
  } finally {
    await ground.close();
  }
}

/**
 * All due at one instant, one worker process with the mover inside.
 *
 * @param {Given} given
 * @param {{ jobs: number, system?: System, times?: number, bytes?: number, fsync?: 'none' | 'everysec' }} how
 * @returns {Promise<Figures>}
 */
function burst({ binary }, { jobs, system = duestream, times = 1, bytes = BYTES, fsync = 'none' }) {
  return withRoom(jobs, (dueMs) =>
    withGround({ binary, fsync }, async (ground) => {
      await scheduled(ground, { jobs, bytes, dueMs });
      const ran = await running(ground, { system, jobs, schedule: () => dueMs });
      const { lastMs } = judge({ system }, { seen: ran.seen, jobs, dueOf: () => dueMs, times });
      return {
        jobsPerSecond: (jobs / (lastMs - dueMs)) * 1000,
        ...perJob(ran.before, ran.after, jobs),
        workerMicros: (ran.seen.workerMs / jobs) * 1000,
        ...(await slowest(ground)),
      };
    }),
  );
}

/** @param {Given} given @returns {Promise<Figures>} */
function herd({ binary, size }) {
  const jobs = size(1_000_000);
  return withRoom(jobs, (dueMs) =>
    withGround({ binary }, async (ground) => {
      await scheduled(ground, { jobs, bytes: BYTES, dueMs });
      const probe = await probing(ground.url);
      const ran = await running(ground, { system: duestream, jobs, schedule: () => dueMs, onDue: probe.begin });
      const felt = await probe.end();
      const { lastMs } = judge({ system: duestream }, { seen: ran.seen, jobs, dueOf: () => dueMs });
      return {
        jobsPerSecond: (jobs / (lastMs - dueMs)) * 1000,
        ...perJob(ran.before, ran.after, jobs),
        probeP50Ms: quantile(felt, 0.5),
        probeP99Ms: quantile(felt, 0.99),
        probeMaxMs: felt.at(-1) ?? 0,
        ...(await slowest(ground)),
      };
    }),
  );
}

/**
 * So many jobs wait, far from due. Then a thousand more are scheduled one by one, and a steady stream comes due.
 *
 * @param {Given} given @param {number} pending @returns {Promise<Figures>}
 */
function growth({ binary, size, round }, pending) {
  const jobs = size(pending);
  const ONE_BY_ONE = 5000;
  const PER_SECOND = 200;
  const SECONDS = 5;
  const steady = PER_SECOND * SECONDS;
  return withGround({ binary }, async (ground) => {
    await ground.redis.call('MEMORY', 'PURGE');
    const empty = await spentBy(ground.redis);
    await scheduled(ground, { jobs, bytes: BYTES, dueMs: Date.now() + FAR_MS, forMs: FAR_MS, generated: true });
    await sleep(500);
    const full = await spentBy(ground.redis);
    const producer = await ground.start('producer', duestream);
    const one = { jobs: ONE_BY_ONE, bytes: BYTES, dueMs: Date.now() + FAR_MS, forMs: FAR_MS, generated: true };
    const { took = 0 } = await producer.ask('one', one);
    const after = await spentBy(ground.redis);
    const far = jobs + ONE_BY_ONE;
    const system = {
      ...duestream,
      pending: async () => (await ground.pending(duestream)) - far,
    };
    /** @type {import('../peers/plan.mjs').Plan} */
    let plan = { jobs: steady, bytes: BYTES, forMs: SECONDS * 1000, seed: round };
    // The worker is there first: how long it takes to start says nothing about lateness.
    const schedule = async () => {
      plan = { ...plan, dueMs: Date.now() + 3000 };
      await producer.ask('many', plan);
      await producer.ask('close');
      return plan.dueMs ?? 0;
    };
    const ran = await running(ground, { system, jobs: steady, schedule });
    const dueTimes = planned(plan).map((job) => job.dueMs);
    const { lateMs } = judge({ system }, { seen: ran.seen, jobs: steady, dueOf: (at) => dueTimes[at] ?? 0 });
    return {
      bytesPerJob: (full.bytes - empty.bytes) / jobs,
      schedulesPerSecond: (ONE_BY_ONE / took) * 1000,
      scheduleMicros: perJob(full, after, ONE_BY_ONE).serverMicros,
      serverMicros: perJob(ran.before, ran.after, steady).serverMicros,
      lateP50Ms: quantile(lateMs, 0.5),
      lateP99Ms: quantile(lateMs, 0.99),
      ...(await slowest(ground)),
    };
  });
}

/** @param {Ground} ground @param {import('../peers/plan.mjs').Plan} plan */
async function scheduled(ground, { jobs, ...plan }) {
  const producer = await ground.start('producer', duestream);
  if (plan.generated) {
    for (let left = jobs; left > 0; left -= PART) await producer.ask('many', { ...plan, jobs: Math.min(left, PART) });
  } else await producer.ask('many', { ...plan, jobs });
  await producer.ask('close');
}

/**
 * A worker with the mover inside, from before the due time until every job is over.
 *
 * @param {Ground} ground
 * @param {{ system: System, jobs: number, schedule: () => Promise<number> | number, onDue?: () => Promise<void> }} what
 *   `schedule`: what is left to schedule when the worker is there; when the first job is due
 */
async function running(ground, { system, jobs, schedule, onDue }) {
  const given = { binary: '', system, size: (/** @type {number} */ count) => count, seed: 1 };
  const fleet = await startFleet(ground, given, { jobs, processes: 1 });
  const dueMs = await schedule();
  await sleep(dueMs - Date.now() - 300);
  if (dueMs - Date.now() < 100) throw new TooSoon('duestream was not ready when the jobs came due');
  await mark(fleet);
  await ground.redis.config('RESETSTAT');
  await onDue?.();
  const before = await spentBy(ground.redis);
  const seen = await finished(ground, given, { fleet, jobs });
  return { before, seen, after: await spentBy(ground.redis) };
}

/** What the longest scripts took since the last reset, all scripts together. @param {Ground} ground @returns {Promise<Figures>} */
async function slowest({ redis }) {
  const stats = await redis.info('latencystats');
  const micros = Number(/latency_percentiles_usec_evalsha:.*p99\.9=([\d.]+)/.exec(stats)?.[1] ?? 0);
  return { scriptP999Ms: micros / 1000 };
}

/** @param {string} url */
async function probing(url) {
  const child = fork(PROBE, [url], { serialization: 'advanced', execArgv: [] });
  const said = () =>
    new Promise((resolve, reject) => {
      child.once('message', resolve);
      child.once('exit', () => reject(new Error('the probe ended')));
    });
  await said();
  return {
    async begin() {
      const begun = said();
      child.send('begin');
      await begun;
    },
    /** @returns {Promise<readonly number[]>} ms of each call, in order of their length */
    async end() {
      const told = said();
      child.send('end');
      return /** @type {number[]} */ (await told).sort((a, b) => a - b);
    },
  };
}
