/**
 * What workers over HTTP cost: `npm run bench -- remote`. A daemon with `http.work`; a full queue that is emptied by claims of one
 * job and of many, and by a worker of Node; then 200 and 2,000 claims that wait, at rest, while jobs come one by one, which is done in turns
 * with a worker of Node, and while 100 come at once. Counts of scripts and requests hold on a busy machine; of times only the ratio to
 * Node does. Writes `bench/results/remote.json` and its section of `docs/reference/measured.md`.
 *
 *     --polls 200,2000   claims that wait
 *     --jobs 2000        of the full queue
 *     --seconds 10       of each turn, and at rest
 *     --rounds 5         of turns
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { root } from '../scripts/steps.mjs';
import { freePort } from '../src/embedded/port.mjs';
import { median, rounded, settled, startDaemon, withRedis } from './parts.mjs';
import { endsOf, Poller } from './remote-polls.mjs';

/** @typedef {import('ioredis').Redis} Redis */
/** @typedef {{ redis: Redis, url: string, api: string, client: import('../src/index.ts').Client }} At */

/** @type {typeof import('../src/index.ts')} */
const { createClient, createWorker } = await import(`${root}dist/index.js`);

const POLLS = ['200', '2000'];
const PER_S = 20;
const AT_ONCE = 100;
const NODE_SLOTS = 50;
const LEAD_MS = 2000;
/** Of docs: requests and scripts per job, as they were designed. */
const WAYS = /** @type {const} */ ([
  { way: '1 job, `settle` apart', max: 1, isApart: true, requestsMax: 2, scriptsMax: 2.4 },
  { way: '1 job, ends in the claim', max: 1, isApart: false, requestsMax: 1, scriptsMax: 1.1 },
  { way: '10 jobs, ends in the claim', max: 10, isApart: false, requestsMax: 0.11, scriptsMax: 0.14 },
  { way: '50 jobs, ends in the claim', max: 50, isApart: false, requestsMax: 0.03, scriptsMax: 0.05 },
]);

/** @param {import('./bench.mjs').Asked} asked */
export async function run({ binary, chosen, number }) {
  const polls = (chosen('polls', POLLS) ?? POLLS).map(Number);
  const jobs = number('jobs', { otherwise: 2000, from: 100, to: 9000 });
  const seconds = number('seconds', { otherwise: 10, from: 1, to: 600 });
  const rounds = number('rounds', { otherwise: 5, from: 1, to: 100 });
  return withRedis(binary, async ({ redis, url }) => {
    const port = await freePort(21_000);
    const http = { DUESTREAM_HTTP__PORT: String(port), DUESTREAM_HTTP__WORK: 'on' };
    const limits = { DUESTREAM_HTTP__POLLS_MAX: '5000', DUESTREAM_HTTP__POLLS_MAX_PER_TOKEN: '5000' };
    const rate = { DUESTREAM_HTTP__WORK_RATE_MAX: '1000000' };
    const daemon = await startDaemon(url, { roles: 'mover,http', env: { ...http, ...limits, ...rate } });
    const client = createClient({ redis: url });
    const at = { redis, url, client, api: `http://127.0.0.1:${port}/v1/queues` };
    try {
      const rows = [];
      for (const how of WAYS) rows.push(await emptied(at, { ...how, jobs }));
      rows.push(await emptiedByNode(at, jobs));
      for (const count of polls) rows.push(await waited(at, { polls: count, seconds, rounds }));
      const what = `${jobs} jobs of a full queue; ${PER_S} jobs a second that come one by one, in ${rounds} turns of ${seconds} s; one partition, one daemon, on a busy machine`;
      return [{ name: 'remote', what, rows }];
    } finally {
      daemon.kill();
      await client.close();
    }
  });
}

/** One worker empties a queue in which all jobs are ready. @param {At} at @param {typeof WAYS[number] & { jobs: number }} how */
async function emptied(at, { way, max, isApart, jobs, requestsMax, scriptsMax }) {
  const queue = `full-${max}-${isApart ? 'apart' : 'in'}`;
  await fill(at, queue, jobs);
  const poller = new Poller(`${at.api}/${queue}`);
  const spent = await counting(at.redis, async () => {
    let claimed = await poller.claim({ max });
    for (let done = claimed.length; ; done += claimed.length) {
      const ends = endsOf(claimed);
      // What ends last has no claim to go with.
      if (isApart || done >= jobs) await poller.settle(ends);
      if (done >= jobs) break;
      claimed = await poller.claim({ max, ends: isApart ? [] : ends });
    }
  });
  await poller.leave();
  const per = { requests: rounded(poller.requests / jobs), ...perJob(spent, jobs) };
  return { kind: 'full', way, ...per, requestsMax, scriptsMax };
}

/** @param {At} at @param {number} jobs */
async function emptiedByNode(at, jobs) {
  const queue = 'full-node';
  await fill(at, queue, jobs);
  let done = 0;
  const count = () => {
    done += 1;
  };
  const worker = createWorker(queue, count, { redis: at.url, concurrency: NODE_SLOTS });
  const spent = await counting(at.redis, async () => {
    await worker.start();
    while (done < jobs) await sleep(5);
    await worker.stop();
  });
  return { kind: 'full', way: `Node, ${NODE_SLOTS} slots`, ...perJob(spent, jobs) };
}

/** Claims wait: at rest, while jobs come one by one, and while some come at once. @param {At} at @param {{ polls: number, seconds: number, rounds: number }} how */
async function waited(at, { polls, seconds, rounds }) {
  const queues = { remote: `polls-${polls}`, node: `node-${polls}` };
  for (const queue of Object.values(queues)) await at.client.schedule(queue, 0, { delay: '1d' });
  await settled();
  /** @type {number[]} */
  const lates = [];
  const started = (/** @type {number} */ dueMs) => void lates.push(nowMs() - dueMs);
  const crowd = openPolls(`${at.api}/${queues.remote}`, polls, started);
  const handle = (/** @type {{ dueMs: number }} */ job) => started(job.dueMs);
  const worker = createWorker(queues.node, handle, { redis: at.url, concurrency: NODE_SLOTS });
  await worker.start();
  await crowd.opened();
  await sleep(LEAD_MS);
  const rest = await counting(at.redis, () => sleep(seconds * 1000));
  /** What it cost Redis until so many have started. @param {() => Promise<unknown>} schedule @param {number} count */
  const run = async (schedule, count) => {
    lates.length = 0;
    const spent = await counting(at.redis, async () => {
      await schedule();
      while (lates.length < count) await sleep(20);
    });
    return { scripts: spent.scripts - (rest.scripts / rest.ms) * spent.ms, lates: [...lates] };
  };
  /** @type {Record<'remote' | 'node', Turn[]>} */
  const turns = { remote: [], node: [] };
  const count = PER_S * seconds;
  for (let round = 0; round < rounds; round += 1) {
    for (const who of WHO) turns[who].push(turnOf(await run(() => evenly(at, queues[who], count), count)));
  }
  const many = Array.from({ length: AT_ONCE }, () => ({ data: 0, delay: 0 }));
  const atOnce = await run(() => at.client.scheduleMany(queues.remote, many), AT_ONCE);
  await worker.stop();
  await crowd.close();
  return {
    ...{ kind: 'polls', polls, restScriptsPerSecond: rounded((rest.scripts / rest.ms) * 1000) },
    atOnceScripts: rounded(atOnce.scripts / AT_ONCE),
    ...compared(turns),
  };
}

/** @typedef {{ scripts: number, p50Ms: number, p99Ms: number }} Turn of one that works alone meanwhile; scripts: per job, without those at rest */
const WHO = /** @type {const} */ (['remote', 'node']);

/** @param {{ scripts: number, lates: readonly number[] }} seen @returns {Turn} */
const turnOf = ({ scripts, lates }) => ({
  scripts: scripts / lates.length,
  p50Ms: percentile(lates, 0.5),
  p99Ms: percentile(lates, 0.99),
});

/** Medians of the turns; a ratio is of two turns that follow each other. @param {Record<'remote' | 'node', readonly Turn[]>} turns */
function compared({ remote, node }) {
  const of = (/** @type {readonly Turn[]} */ all, /** @type {keyof Turn} */ name) =>
    rounded(median(all.map((turn) => turn[name])));
  const times = (/** @type {'p50Ms' | 'p99Ms'} */ name) =>
    rounded(median(remote.map((turn, at) => turn[name] / (node[at]?.[name] ?? 0))));
  return {
    ...{ scripts: of(remote, 'scripts'), nodeScripts: of(node, 'scripts') },
    ...{ p50Ms: of(remote, 'p50Ms'), nodeP50Ms: of(node, 'p50Ms'), p50Times: times('p50Ms') },
    ...{ p99Ms: of(remote, 'p99Ms'), nodeP99Ms: of(node, 'p99Ms'), p99Times: times('p99Ms') },
  };
}

/**
 * Polls that go on until they are closed: what one claims is over with its next claim.
 *
 * @param {string} url
 * @param {number} count
 * @param {(dueMs: number) => void} started
 */
function openPolls(url, count, started) {
  let isOpen = true;
  /** @type {Poller[]} */
  const pollers = [];
  const poll = async () => {
    const poller = new Poller(url);
    pollers.push(poller);
    /** @type {readonly import('./remote-polls.mjs').End[]} */
    let ends = [];
    while (isOpen) {
      const jobs = await poller.claim({ ends });
      for (const { dueMs } of jobs) started(dueMs);
      ends = endsOf(jobs);
    }
  };
  for (let nth = 0; nth < count; nth += 1) poll().catch((error) => isOpen && process.stderr.write(`bench: ${error}\n`));
  return {
    async opened() {
      const origin = new URL(url).origin;
      const isWaiting = async () => {
        const text = await (await fetch(`${origin}/metrics`)).text();
        return [...text.matchAll(/^duestream_remote_polls\{?.*\}? (\d+)$/gm)].some(
          ([, polls]) => Number(polls) === count,
        );
      };
      while (!(await isWaiting())) await sleep(100);
    },
    /** Those that wait are answered. */
    async close() {
      isOpen = false;
      for (const poller of pollers) await poller.leave();
    },
  };
}

/** Due one by one. @param {At} at @param {string} queue @param {number} count */
async function evenly({ client }, queue, count) {
  const fromMs = Date.now() + LEAD_MS;
  const jobs = Array.from({ length: count }, (_, nth) => ({ data: nth, at: new Date(fromMs + (nth * 1000) / PER_S) }));
  await client.scheduleMany(queue, jobs);
}

/** All are ready when it returns. @param {At} at @param {string} queue @param {number} count */
async function fill({ client, redis }, queue, count) {
  await client.scheduleMany(
    queue,
    Array.from({ length: count }, (_, nth) => ({ data: nth, delay: 0 })),
  );
  while ((await redis.xlen(`duestream:v1:{${queue}:0}:ready`)) < count) await sleep(20);
  await settled();
}

/** Scripts that Redis ran meanwhile, with the time of their commands. @param {Redis} redis @param {() => Promise<unknown>} act */
async function counting(redis, act) {
  const before = await spentBy(redis);
  const sinceMs = performance.now();
  await act();
  const after = await spentBy(redis);
  return {
    scripts: after.scripts - before.scripts,
    micros: after.micros - before.micros,
    ms: performance.now() - sinceMs,
  };
}

/** @param {Redis} redis */
async function spentBy(redis) {
  const stats = await redis.info('commandstats');
  const found = [...stats.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+),usec=(\d+)/g)];
  const sum = (/** @type {1 | 2} */ at) => found.reduce((total, one) => total + Number(one[at]), 0);
  return { scripts: sum(1), micros: sum(2) };
}

/** @param {{ scripts: number, micros: number }} spent @param {number} jobs */
const perJob = ({ scripts, micros }, jobs) => ({ scripts: rounded(scripts / jobs), micros: Math.round(micros / jobs) });

const nowMs = () => performance.timeOrigin + performance.now();

/** @param {readonly number[]} values @param {number} part */
function percentile(values, part) {
  const sorted = values.toSorted((one, other) => one - other);
  return rounded(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0);
}
