/**
 * One process of `npm run bench:beyond`: a daemon, some workers, both together, or a producer. It does what its parent asks
 * over the channel between them, and counts: the commands it sent to Redis, how often each job was started, and when first.
 */
import { createRequire } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import { planned } from '../peers/plan.mjs';

/**
 * @typedef {object} Role
 * @property {'daemon' | 'workers' | 'both' | 'producer'} role
 * @property {string} url
 * @property {number} partitions of the queue
 * @property {number} [workers]
 * @property {number} [concurrency] of each worker
 */
/** @typedef {{ ids: Int32Array, times: Uint8Array, firstMs: Float64Array }} Starts of the jobs by number */
/** @typedef {{ calls: number, failures: readonly string[], duesMs: Float64Array }} Flowed the due of a job that was refused is 0 */
/** @typedef {{ perSecond: number, nearMs: number, farMs: number }} Flow jobs that are due so long after their call */
/** @typedef {{ names?: readonly string[], producer?: import('../../src/index.ts').Client }} Part */

const FLOW_EVERY_MS = 10;
const AT_ONCE = 5000;

/** The one that the product uses; in this folder there is another one, for its peers. @type {typeof import('ioredis')} */
const { Redis } = createRequire(new URL('../../package.json', import.meta.url))('ioredis');
/** As a team has it. @type {typeof import('../../src/index.ts')} */
const product = await import(new URL('../../dist/index.js', import.meta.url).href);
/** @type {typeof import('../../src/daemon/index.ts')} */
const { createDaemon } = await import(new URL('../../dist/daemon/index.js', import.meta.url).href);

/** @type {Role} */
const given = JSON.parse(process.argv[2] ?? '{}');
const queue = product.defineQueue('beyond', { partitions: given.partitions });
/** @type {Map<number, { times: number, firstMs: number }>} */
const starts = new Map();
/** Starts of each worker of this process. */
const each = Array.from({ length: given.workers ?? 1 }, () => 0);
/** @type {ReturnType<typeof flow> | undefined} */
let flowing;
let requests = 0;
let trips = 0;
countRequests();

/** Fractions of a millisecond, by the wall clock. */
const nowMs = () => performance.timeOrigin + performance.now();
const part = await begin(given);

process.on('disconnect', () => process.exit(1));
process.on('message', (/** @type {{ nth: number, what: string, how: unknown }} */ { nth, what, how }) => {
  const tell = (/** @type {object} */ told) => void process.send?.({ nth, ...told });
  answer(what, how).then(
    (told) => tell({ told }),
    (error) => tell({ failed: String(error?.stack ?? error) }),
  );
});
process.send?.({ nth: 0 });

/** @param {string} what @param {unknown} how */
async function answer(what, how) {
  if (what === 'requests') return requests;
  if (what === 'trips') return trips;
  if (what === 'sockets') return process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length;
  if (what === 'names') return part.names ?? [];
  if (what === 'count') return starts.size;
  if (what === 'each') return each;
  if (what === 'starts') return startsNow();
  if (what === 'load') return load(/** @type {import('../peers/plan.mjs').Plan} */ (how));
  if (what === 'flow') {
    flowing = flow(/** @type {Flow} */ (how));
    return undefined;
  }
  if (what === 'dam') return flowing?.stop();
  throw new Error(`nobody knows how to ${what}`);
}

/** @param {Role} role @returns {Promise<Part>} */
async function begin({ role, url, workers = 1, concurrency = 100 }) {
  const log = /** @type {const} */ ({ level: 'fatal' });
  if (role === 'producer') {
    const producer = product.createClient({ redis: url });
    await producer.ready();
    return { producer };
  }
  if (role === 'daemon') {
    const daemon = createDaemon({ redis: { url }, roles: ['mover'], log });
    await daemon.start();
    return {};
  }
  if (role === 'both') {
    const handlers = product.defineHandlers({ beyond: handlerOf(0) }, { queues: [queue] });
    const roles = /** @type {const} */ (['mover', 'worker']);
    const daemon = createDaemon({ redis: { url }, roles, worker: { concurrency }, log }, { handlers });
    await daemon.start();
    return {};
  }
  const all = Array.from({ length: workers }, (_, nth) =>
    product.createWorker(queue, handlerOf(nth), { redis: url, concurrency }),
  );
  for (const worker of all) await worker.start();
  return { names: all.map(({ consumer }) => consumer) };
}

/** @param {number} nth worker of this process @returns {(job: { data: unknown }) => void} */
function handlerOf(nth) {
  return ({ data }) => {
    const at = Number(/** @type {{ at: number }} */ (data).at);
    const seen = starts.get(at);
    if (seen) seen.times += 1;
    else starts.set(at, { times: 1, firstMs: nowMs() });
    each[nth] = (each[nth] ?? 0) + 1;
  };
}

/** @returns {Starts} */
function startsNow() {
  const all = [...starts];
  return {
    ids: Int32Array.from(all, ([at]) => at),
    times: Uint8Array.from(all, ([, { times }]) => times),
    firstMs: Float64Array.from(all, ([, { firstMs }]) => firstMs),
  };
}

/** Jobs of the future, in bulk. @param {import('../peers/plan.mjs').Plan} plan */
async function load(plan) {
  const jobs = planned(plan);
  for (let from = 0; from < jobs.length; from += AT_ONCE) {
    await theProducer().scheduleMany(
      queue,
      jobs.slice(from, from + AT_ONCE).map(({ id, at, dueMs }) => ({
        ...(id === undefined ? {} : { id }),
        data: { at },
        at: new Date(dueMs),
      })),
    );
  }
}

/** Schedules so many jobs per second until it is stopped. @param {Flow} how */
function flow({ perSecond, nearMs, farMs }) {
  const producer = theProducer();
  /** @type {number[]} */
  const duesMs = [];
  /** @type {string[]} */
  const failures = [];
  /** @type {Set<Promise<void>>} */
  const open = new Set();
  let calls = 0;
  const begunMs = performance.now();
  const call = (/** @type {number} */ from, /** @type {number} */ to) => {
    const items = Array.from({ length: to - from }, (_, nth) => {
      const dueMs = Math.round(Date.now() + nearMs + Math.random() * (farMs - nearMs));
      duesMs[from + nth] = dueMs;
      return { id: `job-${String(from + nth).padStart(12, '0')}`, data: { at: from + nth }, at: new Date(dueMs) };
    });
    calls += 1;
    const made = producer.scheduleMany(queue, items).then(
      () => undefined,
      (error) => {
        failures.push(error instanceof product.DuestreamError ? error.code : String(error));
        for (let at = from; at < to; at += 1) duesMs[at] = 0;
      },
    );
    open.add(made);
    void made.finally(() => open.delete(made));
  };
  const timer = setInterval(() => {
    const wanted = Math.floor(((performance.now() - begunMs) / 1000) * perSecond);
    if (wanted > duesMs.length) call(duesMs.length, wanted);
  }, FLOW_EVERY_MS);
  return {
    /** @returns {Promise<Flowed>} */
    async stop() {
      clearInterval(timer);
      while (open.size > 0) await Promise.race([Promise.all(open), sleep(1000)]);
      return { calls, failures, duesMs: Float64Array.from(duesMs) };
    },
  };
}

function theProducer() {
  if (!part.producer) throw new Error('this is no producer');
  return part.producer;
}

/**
 * Every command that is written to any server counts. What one turn of the event loop writes to one connection goes out and
 * is answered together: one round trip.
 */
function countRequests() {
  const send = Redis.prototype.sendCommand;
  /** @type {Set<unknown>} */
  const written = new Set();
  /** @this {import('ioredis').Redis} @param {unknown[]} args */
  function counted(...args) {
    requests += 1;
    if (written.size === 0) setImmediate(() => written.clear());
    if (!written.has(this)) trips += 1;
    written.add(this);
    return Reflect.apply(send, this, args);
  }
  Reflect.set(Redis.prototype, 'sendCommand', counted);
}
