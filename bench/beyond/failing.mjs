/**
 * One of three primaries fails, killed or frozen, while jobs come due all the time. How late do jobs of the other
 * partitions start, before and meanwhile, and when do those of its own partitions go on?
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { rounded } from '../parts.mjs';
import { planned } from '../peers/plan.mjs';
import { homesOf, onStage, partitionOf, quantile, startsOf, until } from './stage.mjs';

/** @typedef {import('./stage.mjs').Stage} Stage */
/** @typedef {{ signal: 'SIGKILL' | 'SIGSTOP', control: boolean }} Case `control`: it has the control keys as well */
/** @typedef {{ warmMs: number, beforeMs: number, afterMs: number, perSecond: number }} Times */

const PARTITIONS = 12;
const DAEMONS = 2;
/** Of worker processes, and of the workers in each. */
const PROCESSES = 2;
const NODE_TIMEOUT_MS = 2000;
/** Until others have voted and clients have followed. */
const FOLLOW_MS = 3000;
/** What is allowed to the neighbours: a fifth more than before, or so many ms. */
const MORE = 0.2;
const MORE_MS = 5;
const SEED = 7;
/** @type {readonly Case[]} */
const CASES = [
  { signal: 'SIGKILL', control: false },
  { signal: 'SIGKILL', control: true },
  { signal: 'SIGSTOP', control: false },
  { signal: 'SIGSTOP', control: true },
];
/** @type {Times} */
const WHOLE = { warmMs: 10_000, beforeMs: 60_000, afterMs: 60_000, perSecond: 500 };
/** @type {Times} */
const QUICK = { warmMs: 3000, beforeMs: 10_000, afterMs: 15_000, perSecond: 200 };

/** @param {{ binary: string, quick: boolean, rounds: number }} given */
export async function failing({ binary, quick, rounds }) {
  const times = quick ? QUICK : WHOLE;
  const shape = { replicas: 3, nodeTimeoutMs: NODE_TIMEOUT_MS, settings: { 'cluster-require-full-coverage': 'no' } };
  const rows = [];
  for (const one of CASES) {
    const measured = [];
    for (let round = 1; round <= rounds; round += 1) {
      process.stderr.write(
        `failing: ${one.signal}${one.control ? ', control keys' : ''}, round ${round} of ${rounds}\n`,
      );
      measured.push(await onStage({ binary, partitions: PARTITIONS, shape }, (stage) => measure(stage, one, times)));
    }
    rows.push(rowOf(one, measured));
  }
  return rows;
}

/** @param {Stage} stage @param {Case} one @param {Times} times */
async function measure(stage, one, times) {
  const cluster = stage.theCluster();
  const producer = await stage.start('producer');
  const forMs = times.warmMs + times.beforeMs + times.afterMs;
  const jobs = Math.round((forMs / 1000) * times.perSecond);
  for (let nth = 0; nth < DAEMONS; nth += 1) await stage.start('daemon');
  /** @type {import('./stage.mjs').Child[]} */
  const workers = [];
  for (let nth = 0; nth < PROCESSES; nth += 1) workers.push(await stage.start('workers', { workers: PROCESSES }));
  const fromMs = Date.now() + 5000 + jobs / 5;
  const plan = { jobs, bytes: 100, dueMs: fromMs, forMs, seed: SEED };
  await producer.ask('load', plan);
  if (Date.now() > fromMs) throw new Error('jobs came due while they were still being scheduled');
  const { control, homes } = await homesOf(cluster, PARTITIONS);
  const victim = one.control ? control : cluster.nodes.slice(0, 3).find((node) => node !== control);
  if (!victim) throw new Error('there is no primary without the control keys');
  await sleep(fromMs + times.warmMs + times.beforeMs - Date.now());
  const struckMs = Date.now();
  if (one.signal === 'SIGKILL') await victim.kill();
  else victim.signal('SIGSTOP');
  await sleep(Math.max(0, fromMs + forMs - Date.now()));
  const seen = async () => startsOf(workers);
  await until(async () => (await seen()).size >= jobs, `${jobs} jobs run`);
  const starts = await seen();
  const all = planned(plan).map(({ at, dueMs }) => {
    const { times: often = 0, firstMs = Number.NaN } = starts.get(at) ?? {};
    const home = homes[partitionOf(at, PARTITIONS)];
    return { dueMs, firstMs, often, partition: partitionOf(at, PARTITIONS), isStruck: home === victim };
  });
  return judged(all, { struckMs, beforeMs: struckMs - times.beforeMs, untilMs: struckMs + times.afterMs });
}

/** @typedef {{ dueMs: number, firstMs: number, often: number, partition: number, isStruck: boolean }} Job */

/** @param {readonly Job[]} jobs @param {{ struckMs: number, beforeMs: number, untilMs: number }} at */
function judged(jobs, { struckMs, beforeMs, untilMs }) {
  const late = (/** @type {number} */ from, /** @type {number} */ to) =>
    jobs
      .filter(({ isStruck, dueMs }) => !isStruck && dueMs >= from && dueMs < to)
      .map(({ firstMs, dueMs }) => firstMs - dueMs);
  /** @type {Map<number, number>} */
  const resumed = new Map();
  for (const { partition, isStruck, dueMs, firstMs } of jobs) {
    if (!isStruck || dueMs < struckMs) continue;
    resumed.set(partition, Math.min(resumed.get(partition) ?? Number.POSITIVE_INFINITY, firstMs - struckMs));
  }
  const resumedMs = Math.max(...resumed.values());
  const [before, during, minute] = [
    late(beforeMs, struckMs),
    late(struckMs, struckMs + resumedMs),
    late(struckMs, untilMs),
  ];
  return {
    resumedMs,
    struck: resumed.size,
    jobsBefore: before.length,
    jobsDuring: during.length,
    beforeP50Ms: quantile(before, 0.5),
    duringP50Ms: quantile(during, 0.5),
    minuteP50Ms: quantile(minute, 0.5),
    beforeP99Ms: quantile(before, 0.99),
    duringP99Ms: quantile(during, 0.99),
    minuteP99Ms: quantile(minute, 0.99),
    again: jobs.filter(({ often }) => often > 1).length,
  };
}

/**
 * Of the rounds: medians of how late jobs were, and the longest time until all went on.
 *
 * @param {Case} one
 * @param {readonly ReturnType<typeof judged>[]} measured
 */
function rowOf({ signal, control }, measured) {
  const of = (/** @type {keyof ReturnType<typeof judged>} */ name) => measured.map((figures) => figures[name]);
  const middle = (/** @type {keyof ReturnType<typeof judged>} */ name) => rounded(quantile(of(name), 0.5));
  const beforeP50Ms = middle('beforeP50Ms');
  return {
    signal,
    control,
    partitions: PARTITIONS,
    struck: middle('struck'),
    jobsBefore: middle('jobsBefore'),
    jobsDuring: middle('jobsDuring'),
    again: Math.max(...of('again')),
    beforeP50Ms,
    duringP50Ms: middle('duringP50Ms'),
    minuteP50Ms: middle('minuteP50Ms'),
    beforeP99Ms: middle('beforeP99Ms'),
    duringP99Ms: middle('duringP99Ms'),
    minuteP99Ms: middle('minuteP99Ms'),
    allowedP50Ms: rounded(Math.max(beforeP50Ms * (1 + MORE), beforeP50Ms + MORE_MS)),
    resumedMs: Math.round(Math.max(...of('resumedMs'))),
    allowedMs: NODE_TIMEOUT_MS + FOLLOW_MS,
  };
}
