/**
 * What limits of a queue do and cost: `npm run bench -- limits`. A daemon leads and two workers run the jobs; each row has a
 * Redis of its own. Writes `bench/results/limits.json` and its section of `docs/reference/measured.md`.
 *
 * - `rate-…`: how close a rate is kept, by the ids of the entries, which are the times at which jobs are let through; and by
 *   how much a job came before the rate and the burst alone would let it, in the stretch of time that had the most: 50 ms are
 *   promised, and the id of an entry is as late as its script is long. Once among 100,000 jobs of another day, where each
 *   twentieth job fails once.
 * - `lock`, `lock-by-hand`: starts and time of jobs of one account one after the other, with `perGroup`, and with a lock and
 *   `Defer`; `handover`: from the end of one to the start of the next.
 * - `tenants-…`: how many jobs start before each of the other tenants, with a job each, had its start.
 * - `priorities`, `weights`: in which turns they come, and groups of weight 1, 2 and 4.
 * - `full`: jobs that wait behind full groups: commands of Redis while nothing happens, without them and with them, and how
 *   long the scripts take while they are lined up and while groups hand over.
 * - `cost-…`: CPU time of Redis per job of a burst.
 *
 *     --seconds 30        how long each rate is watched
 *     --waiting 1000000   how many jobs wait in `full`; Redis needs 600 MB for a million
 *     --only full,cost    rows whose names begin so; with --write they take the place of those in the results of the same machine
 *     --partitions 6      a Redis Cluster of three primaries, whose file is `bench/results/limits-cluster.json`
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Cluster } from 'ioredis';
import { namesIn } from '../lua/assemble.mjs';
import { root } from '../scripts/steps.mjs';
import { startCluster } from '../src/embedded/cluster.mjs';
import { commandsIn, shaOf } from './idle-commands.mjs';
import { cpuMsIn, rounded, settled, startDaemon, withRedis } from './parts.mjs';
import { hostAndNode, keep, resultsOf } from './results.mjs';

const { createClient, createWorker, Defer, defineQueue, fixed } = await import(`${root}dist/index.js`);
const { partitionRef } = await import(`${root}dist/redis/keys.js`);

/** @typedef {import('duestream').QueueOptions} QueueOptions */
/** @typedef {{ id: string, group: string | undefined, atMs: number, endMs: number }} Start */
/** @typedef {{ id: string, ms: number }} Entry of ready, and when it was added */
/** @typedef {{ seconds: number, waiting: number, partitions: number }} Sizes */
/**
 * Where a row is measured.
 *
 * @typedef {object} Place
 * @property {string} url
 * @property {Sizes} sizes
 * @property {import('duestream').Client} client
 * @property {import('ioredis').Redis | Cluster} redis
 * @property {(...words: string[]) => Promise<unknown[]>} ask each node
 */

/** What workers may release when they stop. */
const RELEASED_MAX = 10;
const FAR_JOBS = 100_000;
/** One of so many jobs fails once. */
const FAILS = 20;
const NEIGHBOUR_JOBS = 100_000;
const BURST_JOBS = 20_000;
const LOCKED_JOBS = 60;
const HANDED_OVER_JOBS = 1000;
const WORK_MS = 20;
const FULL_GROUPS = 10_000;
const IDLE_MS = 20_000;
const BUSY_MS = 10_000;
/** So many groups a second hand over while they are watched. */
const HANDOVERS = 1000;

/** @type {Readonly<Record<string, (place: Place) => Promise<object>>>} */
const measures = {
  'rate-200': (place) => rateOf(place, { limit: 200, burst: 1 }),
  'rate-200-among-many': (place) => rateOf(place, { limit: 200, burst: 1, far: FAR_JOBS }),
  'rate-7': (place) => rateOf(place, { limit: 7, burst: 1 }),
  'rate-7-burst-20': (place) => rateOf(place, { limit: 7, burst: 20 }),
  'rate-2000': (place) => rateOf(place, { limit: 2000, burst: 1 }),
  lock: (place) => lockedBy(place, 'perGroup: 1', { perGroup: 1 }),
  'lock-by-hand': (place) => lockedBy(place, 'a lock, and Defer of 100 ms', {}),
  handover,
  'tenants-3': (place) => neighbours(place, 3),
  'tenants-100': (place) => neighbours(place, 100),
  'tenants-10000': (place) => neighbours(place, 10_000),
  priorities,
  weights,
  full: fullGroups,
  'cost-none': (place) => costOf(place, {}),
  'cost-concurrency': (place) => costOf(place, { concurrency: 1_000_000 }),
  'cost-fair': (place) => costOf(place, { fair: true, ofGroups: 1000 }),
  'cost-per-group': (place) => costOf(place, { perGroup: 1, ofGroups: 1000 }),
};
/** @param {import('./bench.mjs').Asked} asked */
export async function run({ binary, number, refuse, values, writes }) {
  const sizes = {
    seconds: number('seconds', { otherwise: 30, from: 5, to: 600 }),
    waiting: number('waiting', { otherwise: 1_000_000, from: 1000, to: 10_000_000 }),
    partitions: number('partitions', { otherwise: 1, from: 1, to: 64 }),
  };
  const names = Object.keys(measures);
  const wanted = typeof values.only === 'string' ? values.only.split(',') : [''];
  for (const word of wanted) {
    if (!names.some((name) => name.startsWith(word))) refuse(`--only ${word}; allowed: ${names.join(', ')}`);
  }
  const where =
    sizes.partitions === 1 ? 'one partition' : `${sizes.partitions} partitions on a Cluster of three primaries`;
  const name = sizes.partitions === 1 ? 'limits' : 'limits-cluster';
  /** @type {Map<string, object>} */
  const rows = new Map(values.only === undefined ? [] : before(name));
  const made = () => ({
    name,
    what: `one queue, two workers, ${where}`,
    rows: names.flatMap((row) => rows.get(row) ?? []),
  });
  for (const [row, measure] of Object.entries(measures)) {
    if (!wanted.some((word) => row.startsWith(word))) continue;
    process.stderr.write(`bench: ${row}\n`);
    rows.set(row, { row, ...(await there(binary, sizes, measure)) });
    // After each row, so that a run that is stopped has not been in vain.
    if (writes) await keep(binary, made());
  }
  return [made()];
}

/** Rows of an earlier run on the same machine. @param {string} name @returns {[string, object][]} */
function before(name) {
  const known = resultsOf(name);
  const { host, node } = hostAndNode();
  return known?.host === host && known.node === node ? known.rows.map((row) => [row.row, row]) : [];
}

/** @param {string} binary @param {Sizes} sizes @param {(place: Place) => Promise<object>} measure */
async function there(binary, sizes, measure) {
  if (sizes.partitions === 1) {
    return withRedis(binary, ({ redis, url }) =>
      led({ url, sizes, redis, ask: async (word = '', ...words) => [await redis.call(word, ...words)] }, measure),
    );
  }
  const cluster = await startCluster({ binary, replicas: 0 });
  const redis = new Cluster(cluster.nodes.map(({ host, port }) => ({ host, port })));
  try {
    const ask = (/** @type {string[]} */ ...words) => Promise.all(cluster.nodes.map((node) => node.ask(...words)));
    return await led({ url: cluster.url, sizes, redis, ask }, measure);
  } finally {
    redis.disconnect();
    await cluster.close();
  }
}

/** @param {Omit<Place, 'client'>} place @param {(place: Place) => Promise<object>} measure */
async function led(place, measure) {
  const daemon = await startDaemon(place.url);
  await settled();
  const client = createClient({ redis: place.url });
  try {
    return await measure({ ...place, client });
  } finally {
    await client.close();
    daemon.kill();
  }
}

/** Epoch ms, to the microsecond. */
function now() {
  return performance.timeOrigin + performance.now();
}

/** @param {Place} place */
function keysOf({ sizes: { partitions } }) {
  return Array.from({ length: partitions }, (_, partition) => {
    const ref = partitionRef('duestream', { queue: 'bench', partition, layoutGeneration: 0 });
    return /** @type {Readonly<Record<string, string>>} */ (ref.keys);
  });
}

/** @param {Place} place @param {import('duestream').Queue<object>} queue @param {readonly { data: object }[]} jobs */
async function scheduleAll({ client }, queue, jobs) {
  for (let from = 0; from < jobs.length; from += 1000) await client.scheduleMany(queue, jobs.slice(from, from + 1000));
}

/**
 * Runs jobs that are all due at one time, and tells their starts in order.
 *
 * @param {Place} place
 * @param {object} of
 * @param {QueueOptions} of.limits
 * @param {readonly object[]} of.jobs
 * @param {number} [of.slots]
 * @param {(job: { id: string }, context: { attempt: number }) => Promise<void> | void} [of.handler]
 * @param {() => Promise<void> | void} [of.begins]
 * @param {(starts: readonly Start[]) => boolean} [of.isOver] the rest of the jobs is left; default: all have ended
 */
async function play(place, { limits, jobs, slots = 20, handler, begins, isOver }) {
  const queue = defineQueue('bench', { partitions: place.sizes.partitions, ...limits });
  /** @type {Start[]} */
  const starts = [];
  let ended = 0;
  const work = async (/** @type {{ id: string }} */ job, /** @type {{ attempt: number }} */ context) => {
    const start = { id: job.id, group: /^\{(.+?)\}/.exec(job.id)?.[1], atMs: now(), endMs: 0 };
    starts.push(start);
    await handler?.(job, context);
    start.endMs = now();
    ended += 1;
  };
  const workers = [1, 2].map(() => createWorker(queue, work, { redis: place.url, concurrency: slots }));
  for (const worker of workers) await worker.start();
  const at = Date.now() + 3000 + jobs.length / 4;
  await scheduleAll(
    place,
    queue,
    jobs.map((job) => ({ data: {}, at: new Date(at), ...job })),
  );
  await sleep(at - Date.now() - 100);
  await begins?.();
  const untilMs = Date.now() + 300_000;
  const isDone = isOver ?? (() => ended >= jobs.length);
  while (!isDone(starts) && Date.now() < untilMs) await sleep(10);
  if (!isDone(starts)) throw new Error(`${ended} of ${jobs.length} ended`);
  await Promise.all(workers.map((worker) => worker.stop()));
  return starts;
}

/** @param {Place} place @param {{ limit: number, burst: number, far?: number }} rate */
async function rateOf(place, { limit, burst, far = 0 }) {
  const { seconds } = place.sizes;
  const many = Array.from({ length: limit * (seconds + 5) + burst }, (_, nth) => ({ id: `n-${nth}` }));
  const another = { at: new Date(Date.now() + 86_400_000) };
  const jobs = [...Array.from({ length: far }, () => another), ...many];
  // An entry stays until it has been seen.
  const handler = async (/** @type {{ id: string }} */ { id }, /** @type {{ attempt: number }} */ { attempt }) => {
    await sleep(150);
    if (far > 0 && attempt === 1 && Number(id.slice(2)) % FAILS === 0) throw new Error('once');
  };
  const limits = { rate: { limit, per: '1s', burst }, backoff: fixed('2s') };
  const untilMs = { value: Number.POSITIVE_INFINITY };
  const seen = keysOf(place).map((keys) => entriesOf(place, keys));
  const begins = () => {
    untilMs.value = Date.now() + 500 + seconds * 1000;
  };
  await play(place, {
    limits,
    jobs,
    handler,
    begins,
    slots: Math.max(50, limit / 5),
    isOver: () => Date.now() >= untilMs.value,
  });
  const entries = await Promise.all(seen.map(async (one) => (await one.stop()).filter(({ ms }) => ms < untilMs.value)));
  const shares = await Promise.all(keysOf(place).map((keys) => place.redis.hget(keys.meta ?? '', 'gates')));
  const aheadMs = entries.map((ofOne, nth) => aheadMsOf(ofOne, shares[nth] ?? ''));
  const times = entries
    .flat()
    .map(({ ms }) => ms)
    .sort((one, other) => one - other);
  // The burst, and what may come early, stand at the beginning of the first second.
  const later = times.filter((ms) => ms >= (times[0] ?? 0) + 1000);
  return {
    what: `${limit} per second, burst ${burst}${far > 0 ? `, among ${far} jobs of another day, 5 % fail once` : ''}`,
    perSecond: rounded((later.length - 1) / (((later.at(-1) ?? 0) - (later[0] ?? 0)) / 1000)),
    entries: times.length,
    aheadMs: rounded(Math.max(...aheadMs)),
  };
}

/**
 * Sees every entry of ready by looking often; none may be missed.
 *
 * @param {Place} place
 * @param {Readonly<Record<string, string>>} keys
 */
function entriesOf({ redis }, { ready = '' }) {
  /** @type {Entry[]} */
  const entries = [];
  let isOver = false;
  const ended = (async () => {
    while (!isOver) {
      for (const [id] of await redis.xrange(ready, `(${entries.at(-1)?.id ?? '0'}`, '+')) {
        entries.push({ id, ms: Number(id.split('-')[0]) });
      }
      await sleep(20);
    }
    // Their handlers take longer than the time between two looks; what a worker releases when it stops does not count.
    const info = /** @type {readonly unknown[]} */ (await redis.xinfo('STREAM', ready));
    const added = Number(info[info.indexOf('entries-added') + 1]);
    if (added > entries.length + RELEASED_MAX) throw new Error(`${entries.length} of ${added} entries were seen`);
    return entries;
  })();
  return {
    stop() {
      isOver = true;
      return ended;
    },
  };
}

/**
 * In the stretch of time that had the most jobs, so much longer it had to be for the rate and the burst alone.
 *
 * @param {readonly Entry[]} entries
 * @param {string} share `<µs per job> <burst> …`
 */
function aheadMsOf(entries, share) {
  const [interval = 0, burst = 0] = share.split(' ').map(Number);
  const perMs = 1000 / interval;
  let most = Number.NEGATIVE_INFINITY;
  let least = Number.POSITIVE_INFINITY;
  for (const [nth, { ms }] of entries.entries()) {
    least = Math.min(least, nth - perMs * ms);
    most = Math.max(most, nth - perMs * ms - least + 1);
  }
  return (most - burst) / perMs;
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
  const starts = await play(place, { limits, jobs, handler });
  const done = starts.filter(({ endMs }) => endMs > 0);
  const [first, last] = [done[0], done.at(-1)];
  return {
    what: `${LOCKED_JOBS} jobs of ${WORK_MS} ms of one account, ${by}`,
    starts: starts.length,
    mostAtOnce: most,
    allMs: Math.round((last?.endMs ?? 0) - (first?.atMs ?? 0)),
    ...gapsOf(done),
  };
}

/** @param {Place} place */
async function handover(place) {
  const jobs = Array.from({ length: HANDED_OVER_JOBS }, () => ({ group: 'acme' }));
  const starts = await play(place, { limits: { perGroup: 1 }, jobs, handler: () => sleep(2) });
  return { what: `${HANDED_OVER_JOBS} jobs of 2 ms of one group of one`, starts: starts.length, ...gapsOf(starts) };
}

/** From the end of a job to the start of the next. @param {readonly Start[]} starts */
function gapsOf(starts) {
  const gaps = starts.slice(1).map(({ atMs }, nth) => atMs - (starts[nth]?.endMs ?? 0));
  return { endToNextStartP50Ms: rounded(quantile(gaps, 0.5)), endToNextStartP99Ms: rounded(quantile(gaps, 0.99)) };
}

/** @param {readonly number[]} values @param {number} share */
function quantile(values, share) {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.ceil(share * sorted.length) - 1] ?? 0;
}

/**
 * The others come when the jobs of their neighbour stand in line.
 *
 * @param {Place} place
 * @param {number} tenants
 */
async function neighbours(place, tenants) {
  const many = Array.from({ length: NEIGHBOUR_JOBS }, () => ({ group: 'big' }));
  const later = new Date(Date.now() + 3000 + (NEIGHBOUR_JOBS + tenants) / 4 + 10_000);
  const others = Array.from({ length: tenants - 1 }, (_, nth) => ({ group: `t${nth}`, at: later }));
  let left = others.length;
  const handler = async (/** @type {{ id: string }} */ { id }) => {
    if (!id.startsWith('{big}')) left -= 1;
    await sleep(2);
  };
  const isOver = () => left === 0;
  const starts = await play(place, { limits: { fair: true }, jobs: [...others, ...many], slots: 2, handler, isOver });
  const since = starts.filter(({ atMs }) => atMs >= later.getTime());
  const places = since.flatMap(({ group }, nth) => (group === 'big' ? [] : [nth + 1]));
  const lateMs = since.flatMap(({ group, atMs }) => (group === 'big' ? [] : [atMs - later.getTime()]));
  return {
    what: `${tenants} tenants, one with ${NEIGHBOUR_JOBS} jobs: starts since the others are due`,
    stillInLine: NEIGHBOUR_JOBS + others.length - starts.length,
    first: places[0],
    last: places.at(-1),
    medianMs: rounded(quantile(lateMs, 0.5)),
  };
}

/** @param {Place} place */
async function priorities(place) {
  const each = 2100;
  const jobs = ['high', 'normal', 'low'].flatMap((priority) =>
    Array.from({ length: each }, (_, nth) => ({ priority, id: `${priority}-${nth}` })),
  );
  const starts = await play(place, { limits: { fair: true }, jobs, slots: 5, handler: () => sleep(1) });
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

/** How many starts each of three groups has while all of them wait. @param {Place} place */
async function weights(place) {
  const rounds = 500;
  const each = 4.2 * rounds;
  const jobs = ['one', 'two', 'four'].flatMap((group) =>
    Array.from({ length: each }, (_, nth) => ({ group, id: `${nth}` })),
  );
  const limits = { fair: /** @type {const} */ (true), groups: { two: { weight: 2 }, four: { weight: 4 } } };
  const starts = await play(place, { limits, jobs, slots: 5, handler: () => sleep(1) });
  // While all three wait.
  const some = starts.slice(0, 7 * rounds);
  const of = (/** @type {string} */ name) => some.filter(({ group }) => group === name).length;
  return {
    what: `of ${7 * rounds} starts while groups of weight 1, 2 and 4 wait`,
    one: of('one'),
    two: of('two'),
    four: of('four'),
  };
}

/** @param {Place} place */
async function fullGroups(place) {
  const { partitions, waiting } = place.sizes;
  const queue = defineQueue('bench', { partitions, perGroup: 1 });
  /** Ends the jobs that run. @type {(() => void)[]} */
  const running = [];
  const work = () => new Promise((/** @type {(value: void) => void} */ resolve) => running.push(resolve));
  const slots = { concurrency: FULL_GROUPS / 2 + 100, jobLease: '1h', shutdown: 0 };
  const workers = [1, 2].map(() => createWorker(queue, work, { redis: place.url, ...slots }));
  for (const worker of workers) await worker.start();
  const group = (/** @type {number} */ nth) => ({ data: {}, group: `g${nth % FULL_GROUPS}` });
  await scheduleAll(
    place,
    queue,
    Array.from({ length: FULL_GROUPS }, (_, nth) => group(nth)),
  );
  await until(`${FULL_GROUPS} groups are full`, () => running.length === FULL_GROUPS);
  const without = await idleCommands(place);
  const linedUp = await scriptTimes(place, async () => {
    const to = FULL_GROUPS;
    for (let from = 0; from < waiting; from += to) {
      await scheduleAll(
        place,
        queue,
        Array.from({ length: Math.min(to, waiting - from) }, (_, nth) => group(from + nth)),
      );
    }
    await until(`${waiting} jobs are in line`, async () => (await inLine(place)) === waiting);
  });
  const withThem = await idleCommands(place);
  let handed = 0;
  const handingOver = await scriptTimes(place, async () => {
    const untilMs = now() + BUSY_MS;
    while (now() < untilMs) {
      const some = running.splice(0, HANDOVERS / 100);
      for (const end of some) end();
      handed += some.length;
      await sleep(10);
    }
  });
  await Promise.all(workers.map((worker) => worker.stop()));
  return {
    what: `${FULL_GROUPS} full groups with ${waiting} waiting jobs, ${handed} of them handed over in ${BUSY_MS / 1000} s`,
    waiting,
    idleCommandsPerMinute: withThem,
    withoutThem: without,
    linedUpScriptP999Ms: linedUp.p999Ms,
    linedUpSlowest: linedUp.slowest,
    handingOverScriptP999Ms: handingOver.p999Ms,
    handingOverSlowest: handingOver.slowest,
  };
}

/** @param {string} what @param {() => boolean | Promise<boolean>} isThere */
async function until(what, isThere) {
  const untilMs = now() + 300_000;
  while (!(await isThere())) {
    if (now() > untilMs) throw new Error(`${what}: not in 300 s`);
    await sleep(100);
  }
}

/** @param {Place} place */
async function inLine(place) {
  const counts = await Promise.all(keysOf(place).map(({ line = '' }) => place.redis.zcard(line)));
  return counts.reduce((sum, one) => sum + one, 0);
}

/** Of all nodes, those of scripts included. @param {Place} place */
async function idleCommands({ ask }) {
  const count = async () => sumOf(await ask('INFO', 'commandstats'), commandsIn);
  await sleep(2000);
  const had = await count();
  await sleep(IDLE_MS);
  return Math.round((((await count()) - had) * 60_000) / IDLE_MS);
}

/**
 * How long scripts take meanwhile, of the node where they take longest.
 *
 * @param {Place} place
 * @param {() => Promise<void>} act
 */
async function scriptTimes({ ask }, act) {
  await ask('CONFIG', 'SET', 'slowlog-log-slower-than', '3000', 'slowlog-max-len', '500');
  await ask('CONFIG', 'SET', 'latency-tracking-info-percentiles', '50 99 99.9');
  await ask('SLOWLOG', 'RESET');
  await ask('CONFIG', 'RESETSTAT');
  await act();
  const stats = (await ask('INFO', 'latencystats')).map(String);
  const micros = stats.map((text) => Number(/percentiles_usec_evalsha:.*p99\.9=([\d.]+)/.exec(text)?.[1] ?? 0));
  const verbs = new Map(namesIn('verbs').map((verb) => [shaOf(verb), verb]));
  const logs = /** @type {(readonly [number, number, number, readonly string[]])[][]} */ (
    await ask('SLOWLOG', 'GET', '-1')
  );
  /** By verb. @type {Map<string, number>} */
  const longest = new Map();
  for (const [, , took, words] of logs.flat()) {
    const verb = verbs.get(String(words[1]));
    if (verb) longest.set(verb, Math.max(longest.get(verb) ?? 0, took / 1000));
  }
  const slow = [...longest].toSorted(([, one], [, other]) => other - one).slice(0, 3);
  return {
    p999Ms: rounded(Math.max(...micros) / 1000),
    slowest: slow.length > 0 ? slow.map(([verb, ms]) => `${verb} ${rounded(ms)} ms`).join(', ') : 'below 3 ms',
  };
}

/** @param {readonly unknown[]} texts @param {(text: string) => number} of */
function sumOf(texts, of) {
  return texts.reduce((/** @type {number} */ sum, text) => sum + of(String(text)), 0);
}

/** @param {Place} place @param {QueueOptions & { ofGroups?: number }} of */
async function costOf(place, { ofGroups: groups = 0, ...limits }) {
  const jobs = Array.from({ length: BURST_JOBS }, (_, nth) => (groups === 0 ? {} : { group: `g${nth % groups}` }));
  const cpu = async () => sumOf(await place.ask('INFO', 'cpu'), cpuMsIn);
  let had = 0;
  const begins = async () => {
    had = await cpu();
  };
  const starts = await play(place, { limits, jobs, slots: 50, begins });
  const micros = ((await cpu()) - had) * 1000;
  return {
    what: `${BURST_JOBS} jobs with ${JSON.stringify(limits)}${groups > 0 ? ` in ${groups} groups` : ''}`,
    redisMicrosPerJob: rounded(micros / starts.length),
  };
}
