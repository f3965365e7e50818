/**
 * One process of a measurement: a producer, a worker or a daemon of one system. It does what it is told over the channel of
 * its parent, keeps what it saw in typed arrays, and says at the end what it cost.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { planned } from './plan.mjs';
import { systems } from './systems.mjs';

/**
 * @typedef {object} Told by a child
 * @property {number} [count] handlers that were started so far
 * @property {number} [took] ms of what was asked for
 * @property {ArrayLike<number>} [starts] how often each job was started
 * @property {ArrayLike<number>} [atMs] when it was started last, wall clock
 * @property {number} [cpuMs] of this process since it was asked last
 * @property {string} [failed]
 */

/** Seldom, for what it costs counts as the system's. */
const COUNT_EVERY_MS = 250;

const [, , role = '', name = '', url = '', text = '{}'] = process.argv;
const options = JSON.parse(text);
const system = systems.find((one) => one.name === name);
if (!system) throw new Error(`there is no system ${name}`);

const starts = new Uint8Array(options.jobs ?? 0);
const atMs = new Float64Array(options.jobs ?? 0);
let count = 0;
let told = 0;
let usage = process.cpuUsage();

/** @param {number} at */
function started(at) {
  starts[at] = (starts[at] ?? 0) + 1;
  atMs[at] = Date.now();
  count += 1;
}

/** @param {Told} message */
const tell = (message) => void process.send?.(message);

/** @type {{ close: () => Promise<unknown> } & Partial<import('./system.mjs').Producer>} */
let part;
if (role === 'producer') part = await system.producer(url);
else if (role === 'daemon') part = (await system.daemon?.(url)) ?? { close: async () => {} };
else part = await system.worker(url, { concurrency: options.concurrency, moves: options.moves, started });

const counting = setInterval(() => {
  if (count !== told) tell({ count });
  told = count;
}, COUNT_EVERY_MS);

process.on('disconnect', () => process.exit(1));
process.on('message', (/** @type {{ ask: string, plan?: import('./plan.mjs').Plan }} */ message) => {
  void answer(message).then(tell, (error) => tell({ failed: String(error?.stack ?? error) }));
});
tell({ count: 0 });

/** @param {{ ask: string, plan?: import('./plan.mjs').Plan }} message @returns {Promise<Told>} */
async function answer({ ask, plan }) {
  if (ask === 'mark') {
    usage = process.cpuUsage();
    return { cpuMs: 0 };
  }
  if (ask === 'report') {
    const spent = process.cpuUsage(usage);
    // Another engine than Node speaks JSON to us, which has no typed arrays.
    const seen = process.versions.bun ? { starts: [...starts], atMs: [...atMs] } : { starts, atMs };
    return { count, ...seen, cpuMs: (spent.user + spent.system) / 1000 };
  }
  if (ask === 'close') {
    clearInterval(counting);
    await Promise.race([part.close(), sleep(10_000)]);
    setImmediate(() => process.exit(0));
    return {};
  }
  const jobs = plan ? planned(plan) : [];
  usage = process.cpuUsage();
  const fromMs = performance.now();
  if (ask === 'many') await part.many?.(jobs);
  else await oneByOne(jobs);
  const spent = process.cpuUsage(usage);
  return { took: performance.now() - fromMs, cpuMs: (spent.user + spent.system) / 1000 };
}

/** A hundred calls in flight, as an application with many requests has them. @param {readonly import('./system.mjs').Planned[]} jobs */
async function oneByOne(jobs) {
  let next = 0;
  const lane = async () => {
    for (let job = jobs[next]; job !== undefined; job = jobs[next]) {
      next += 1;
      await part.one?.(job);
    }
  };
  await Promise.all(Array.from({ length: 100 }, lane));
}
