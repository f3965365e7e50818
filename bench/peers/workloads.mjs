/**
 * The workloads that every system is put through. Each acts with a Redis of its own and returns figures per job. A job
 * that is missing, that starts twice or that starts early ends the bench: a system that loses jobs is quick for nothing.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { openGround, openOwnGround, until } from './ground.mjs';
import { planned } from './plan.mjs';

/** @typedef {import('./system.mjs').System} System */
/** @typedef {import('./ground.mjs').Ground} Ground */
/** @typedef {{ binary: string, system: System, size: (jobs: number) => number, seed: number, filled?: () => Promise<unknown> }} Given `filled`: waits until the others are as far */
/** @typedef {Readonly<Record<string, number>>} Figures */

const CONCURRENCY = 100;
const BYTES = 200;
const FAR_MS = 90 * 86_400_000;
/** Some work comes once a minute only. */
const IDLE_MS = 60_000;
/** What keeps due times to the second only may be so early. */
const EARLY_MS = 1000;
/** In so many calls V8 compiles what a call runs through: each of them costs about twice as much as the later ones. */
const COLD = 15_000;

/** @typedef {object} Workload
 * @property {string} name
 * @property {string} title
 * @property {number} [rounds] at most so many: it hardly moves from round to round, or it is a row of a table only
 * @property {boolean} [linger] only to show what linger does, beside the peer of the ratios
 * @property {boolean} [together] all systems at one time: they wait
 * @property {(given: Given) => Promise<Figures>} run
 */

/** @type {readonly Workload[]} */
export const workloads = [
  {
    name: 'one',
    title: 'schedule one by one, 100 calls in flight, cold and then warm',
    run: (given) => schedule(given, 'one'),
  },
  { name: 'bulk', title: 'schedule in bulk', run: (given) => schedule(given, 'many') },
  { name: 'burst', title: 'burst: all due at one instant, 1 worker process', run: (given) => burst(given, 1) },
  { name: 'burst2', title: 'burst, 2 worker processes', run: (given) => burst(given, 2) },
  { name: 'drain', title: 'drain of immediate jobs, 1 worker process', run: drain },
  {
    name: 'steady50',
    title: 'steady, 50 jobs/s at random due times',
    rounds: 3,
    linger: true,
    run: (given) => steady(given, 50),
  },
  { name: 'steady500', title: 'steady, 500 jobs/s at random due times', run: (given) => steady(given, 500) },
  { name: 'steady2000', title: 'steady, 2,000 jobs/s at random due times', run: (given) => steady(given, 2000) },
  {
    name: 'idle',
    title: 'idle with 100,000 jobs that are far from due, 1 worker process',
    rounds: 1,
    together: true,
    run: idle,
  },
  {
    name: 'memory',
    title: 'bytes per pending job, ids of 16 bytes',
    rounds: 1,
    run: (given) => memory(given, false),
  },
  {
    name: 'memoryOwn',
    title: 'bytes per pending job, ids that the system makes',
    rounds: 1,
    run: (given) => memory(given, true),
  },
];

/** Jobs were still being scheduled when they came due: the machine does something else as well. */
export class TooSoon extends Error {}

/**
 * With time enough to schedule all jobs before they are due; where it was not enough, once more with more of it.
 *
 * @param {number} jobs
 * @param {(untilMs: number) => Promise<Figures>} act
 * @returns {Promise<Figures>}
 */
export async function withRoom(jobs, act) {
  for (const times of [1, 2, 4, 8]) {
    try {
      return await act(Math.ceil((Date.now() + times * (2500 + jobs / 15)) / 1000) * 1000);
    } catch (error) {
      if (!(error instanceof TooSoon) || times === 8) throw error;
    }
  }
  throw new TooSoon('no room');
}

/** @template T @param {Given} given @param {(ground: Ground) => Promise<T>} act */
async function on({ binary, system: { server } }, act) {
  const ground = server ? await openOwnGround(server) : await openGround({ binary });
  try {
    return await act(ground);
  } finally {
    await ground.close();
  }
}

/** @param {Given} given @param {'one' | 'many'} how @returns {Promise<Figures>} */
function schedule(given, how) {
  const jobs = given.size(how === 'one' ? 30_000 : 50_000);
  return on(given, async (ground) => {
    const producer = await ground.start('producer', given.system);
    const plan = { jobs, bytes: BYTES, dueMs: Date.now() + FAR_MS };
    const firsts = how === 'one' ? given.size(COLD) : 1000;
    const cold = await producer.ask(how, { ...plan, jobs: firsts, generated: true });
    const before = await ground.spent();
    const { took = 0, cpuMs = 0 } = await producer.ask(how, plan);
    const after = await ground.spent();
    const there = await ground.pending(given.system);
    if (there !== jobs + firsts) throw new Error(`${given.system.name} has ${there} of ${jobs + firsts} jobs`);
    const figures = perJob(before, after, jobs);
    const producerMicros = (cpuMs / jobs) * 1000;
    return {
      jobsPerSecond: (jobs / took) * 1000,
      ...(how === 'one' ? { coldMicros: ((cold.cpuMs ?? 0) / firsts) * 1000 } : {}),
      ...figures,
      producerMicros,
      allMicros: figures.serverMicros + producerMicros,
    };
  });
}

/** @param {Given} given @param {number} processes @returns {Promise<Figures>} */
function burst(given, processes) {
  const jobs = given.size(50_000);
  return withRoom(jobs, (dueMs) => burstAt(given, { jobs, processes, dueMs }));
}

/** @param {Given} given @param {{ jobs: number, processes: number, dueMs: number }} options @returns {Promise<Figures>} */
function burstAt(given, { jobs, processes, dueMs }) {
  return on(given, async (ground) => {
    const producer = await ground.start('producer', given.system);
    await producer.ask('many', { jobs, bytes: BYTES, dueMs });
    await producer.ask('close');
    const fleet = await startFleet(ground, given, { jobs, processes });
    await sleep(dueMs - Date.now() - 300);
    if (dueMs - Date.now() < 200) throw new TooSoon(`${given.system.name} was not ready when the burst began`);
    await mark(fleet);
    const before = await ground.spent();
    const seen = await finished(ground, given, { fleet, jobs });
    const after = await ground.spent();
    const { lastMs } = judge(given, { seen, jobs, dueOf: () => dueMs });
    return {
      jobsPerSecond: (jobs / (lastMs - dueMs)) * 1000,
      ...cpuPerJob({ before, after, seen, jobs }),
    };
  });
}

/** @param {Given} given @returns {Promise<Figures>} */
function drain(given) {
  const jobs = given.size(50_000);
  return on(given, async (ground) => {
    const producer = await ground.start('producer', given.system);
    await producer.ask('many', { jobs, bytes: BYTES });
    await producer.ask('close');
    const before = await ground.spent();
    const fleet = await startFleet(ground, given, { jobs, processes: 1 });
    const seen = await finished(ground, given, { fleet, jobs });
    const after = await ground.spent();
    const { firstMs, lastMs } = judge(given, { seen, jobs, dueOf: () => 0 });
    return { jobsPerSecond: (jobs / (lastMs - firstMs)) * 1000, ...cpuPerJob({ before, after, seen, jobs }) };
  });
}

/** @param {Given} given @param {number} rate @returns {Promise<Figures>} */
function steady(given, rate) {
  const seconds = given.size(rate < 100 ? 12 : 10);
  const jobs = rate * seconds;
  return withRoom(jobs, (dueMs) => steadyFrom(given, { jobs, seconds, dueMs }));
}

/** @param {Given} given @param {{ jobs: number, seconds: number, dueMs: number }} options @returns {Promise<Figures>} */
function steadyFrom(given, { jobs, seconds, dueMs }) {
  return on(given, async (ground) => {
    const producer = await ground.start('producer', given.system);
    const plan = { jobs, bytes: BYTES, dueMs, forMs: seconds * 1000, seed: given.seed };
    await producer.ask('many', plan);
    await producer.ask('close');
    const fleet = await startFleet(ground, given, { jobs, processes: 1 });
    await sleep(dueMs - Date.now() - 200);
    if (dueMs - Date.now() < 100) throw new TooSoon(`${given.system.name} was not ready when the jobs came due`);
    await mark(fleet);
    const before = await ground.spent();
    const seen = await finished(ground, given, { fleet, jobs });
    const after = await ground.spent();
    const dueTimes = planned(plan).map((job) => job.dueMs);
    const { lateMs } = judge(given, { seen, jobs, dueOf: (at) => dueTimes[at] ?? 0 });
    return {
      lateP50Ms: quantile(lateMs, 0.5),
      lateP99Ms: quantile(lateMs, 0.99),
      lateP999Ms: quantile(lateMs, 0.999),
      lateMaxMs: lateMs.at(-1) ?? 0,
      ...cpuPerJob({ before, after, seen, jobs }),
    };
  });
}

/** @param {Given} given @returns {Promise<Figures>} */
function idle(given) {
  const jobs = given.size(100_000);
  return on(given, async (ground) => {
    const producer = await ground.start('producer', given.system);
    await producer.ask('many', { jobs, bytes: BYTES, dueMs: Date.now() + FAR_MS });
    await producer.ask('close');
    const fleet = await startFleet(ground, given, { jobs: 1, processes: 1 });
    await given.filled?.();
    await sleep(10_000);
    await mark(fleet);
    const before = await ground.spent();
    const fromMs = performance.now();
    await sleep(given.size(IDLE_MS));
    const after = await ground.spent();
    const seconds = (performance.now() - fromMs) / 1000;
    const { workerMs, daemonMs } = await spentByFleet(fleet);
    const { commands } = before;
    return {
      ...(commands === undefined ? {} : { commandsPerSecond: ((after.commands ?? 0) - commands) / seconds }),
      serverMsPerSecond: (after.cpuMs - before.cpuMs) / seconds,
      workerMsPerSecond: workerMs / seconds,
      ...(daemonMs === undefined ? {} : { daemonMsPerSecond: daemonMs / seconds }),
    };
  });
}

/** @param {Given} given @param {boolean} generated @returns {Promise<Figures>} */
function memory(given, generated) {
  const jobs = given.size(200_000);
  return on(given, async (ground) => {
    const producer = await ground.start('producer', given.system);
    const plan = { bytes: BYTES, generated, dueMs: Date.now() + FAR_MS, forMs: FAR_MS };
    const before = await ground.spent();
    await producer.ask('many', { ...plan, jobs });
    await producer.ask('close');
    await sleep(500);
    const after = await ground.spent();
    return { bytesPerJob: (after.bytes - before.bytes) / jobs };
  });
}

/** @typedef {import('./ground.mjs').Child} Child */
/** The processes that run jobs, and those that only promote, where a system has such. @typedef {{ workers: readonly Child[], daemons: readonly Child[] }} Fleet */

/** @param {Ground} ground @param {Pick<Given, 'system'>} given @param {{ jobs: number, processes: number }} options @returns {Promise<Fleet>} */
export async function startFleet(ground, { system }, { jobs, processes }) {
  const { daemons = system.daemon ? 1 : 0, workers = processes } = system.fleet ?? {};
  const started = (/** @type {number} */ length, /** @type {(nth: number) => Promise<Child>} */ start) =>
    Promise.all(Array.from({ length }, (_, nth) => start(nth)));
  const [ofDaemons, ofWorkers] = await Promise.all([
    started(daemons, () => ground.start('daemon', system)),
    started(workers, (nth) => ground.start('worker', system, { jobs, concurrency: CONCURRENCY, moves: nth === 0 })),
  ]);
  return { daemons: ofDaemons, workers: ofWorkers };
}

/** What the processes have spent so far does not count. @param {Fleet} fleet */
export async function mark({ workers, daemons }) {
  for (const one of [...workers, ...daemons]) await one.ask('mark');
}

/** @typedef {{ workerMs: number, daemonMs: number | undefined }} SpentByFleet since the mark; of all of a kind together */
/** @typedef {{ starts: Uint8Array, atMs: Float64Array } & SpentByFleet} Seen */

/** @param {Fleet} fleet @param {(told: import('./process.mjs').Told) => void} [each] what a worker saw @returns {Promise<SpentByFleet>} */
async function spentByFleet({ workers, daemons }, each) {
  let workerMs = 0;
  let daemonMs = 0;
  for (const worker of workers) {
    const told = await worker.ask('report');
    workerMs += told.cpuMs ?? 0;
    each?.(told);
  }
  for (const daemon of daemons) daemonMs += (await daemon.ask('report')).cpuMs ?? 0;
  return { workerMs, daemonMs: daemons.length === 0 ? undefined : daemonMs };
}

/** @param {Ground} ground @param {Pick<Given, 'system'>} given @param {{ fleet: Fleet, jobs: number }} options @returns {Promise<Seen>} */
export async function finished(ground, { system }, { fleet, jobs }) {
  const all = () => fleet.workers.reduce((sum, worker) => sum + worker.count(), 0) >= jobs;
  const forMs = 300_000 + jobs;
  await until(async () => all(), { forMs, what: `${system.name} runs ${jobs} jobs` });
  await until(async () => (await ground.pending(system)) === 0, { what: `${system.name} settles` });
  const starts = new Uint8Array(jobs);
  const atMs = new Float64Array(jobs);
  const spent = await spentByFleet(fleet, (told) => {
    for (let at = 0; at < jobs; at += 1) {
      starts[at] = (starts[at] ?? 0) + (told.starts?.[at] ?? 0);
      atMs[at] = Math.max(atMs[at] ?? 0, told.atMs?.[at] ?? 0);
    }
  });
  return { starts, atMs, ...spent };
}

/** @param {{ system: System }} given @param {{ seen: Seen, jobs: number, dueOf: (at: number) => number }} options */
export function judge({ system }, { seen, jobs, dueOf }) {
  const early = system.roundsToSeconds ? EARLY_MS : 0;
  const lateMs = [];
  const wrong = { missing: 0, twice: 0, early: 0 };
  let firstMs = Number.POSITIVE_INFINITY;
  let lastMs = 0;
  for (let at = 0; at < jobs; at += 1) {
    const atMs = seen.atMs[at] ?? 0;
    if ((seen.starts[at] ?? 0) < 1) wrong.missing += 1;
    if ((seen.starts[at] ?? 0) > 1) wrong.twice += 1;
    if (atMs < dueOf(at) - early) wrong.early += 1;
    lateMs.push(atMs - dueOf(at));
    firstMs = Math.min(firstMs, atMs);
    lastMs = Math.max(lastMs, atMs);
  }
  if (wrong.missing + wrong.twice + wrong.early > 0) throw new Error(`${system.name}: ${JSON.stringify(wrong)}`);
  return { lateMs: lateMs.sort((a, b) => a - b), firstMs, lastMs };
}

/** @typedef {import('./ground.mjs').Spent} Spent */
/** @param {Spent} before @param {Spent} after @param {number} jobs */
export function perJob(before, after, jobs) {
  const { commands, scripts } = before;
  return {
    serverMicros: ((after.cpuMs - before.cpuMs) / jobs) * 1000,
    ...(commands === undefined ? {} : { commands: ((after.commands ?? 0) - commands) / jobs }),
    ...(scripts === undefined ? {} : { scripts: ((after.scripts ?? 0) - scripts) / jobs }),
  };
}

/** What a job costs each kind of process, and all of them. @param {{ before: Spent, after: Spent, seen: Seen, jobs: number }} spent */
function cpuPerJob({ before, after, seen: { workerMs, daemonMs }, jobs }) {
  const figures = perJob(before, after, jobs);
  const workerMicros = (workerMs / jobs) * 1000;
  const daemonMicros = ((daemonMs ?? 0) / jobs) * 1000;
  return {
    ...figures,
    workerMicros,
    ...(daemonMs === undefined ? {} : { daemonMicros }),
    allMicros: figures.serverMicros + workerMicros + daemonMicros,
  };
}

/** @param {readonly number[]} sorted @param {number} part */
export const quantile = (sorted, part) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
