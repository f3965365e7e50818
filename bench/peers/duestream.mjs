/**
 * duestream as it is installed, with its defaults: tokens, budgets, done window, heartbeats, recovery and metrics. In the
 * shape that people deploy, with the daemon apart from the workers, and in one process.
 */
import { dataOf } from './system.mjs';

/** As it is built; a team has it as the package `duestream`. @type {typeof import('../../src/index.ts')} */
const built = await import(new URL('../../dist/index.js', import.meta.url).href);
const { createClient, createWorker, defineHandlers, defineQueue } = built;
/** @type {typeof import('../../src/daemon/index.ts')} */
const { createDaemon } = await import(new URL('../../dist/daemon/index.js', import.meta.url).href);

const queue = defineQueue('bench');
const QUIET = /** @type {const} */ ({ level: 'fatal' });

/** @type {import('./system.mjs').System} */
export const duestream = {
  name: 'duestream',
  title: 'duestream',
  settings: 'as built here, all defaults; worker.concurrency as named',
  counts: {
    server: 'redis-server',
    worker: 'the processes with `createWorker`: they run handlers and promote nothing',
    daemon: 'one process, `duestream start --roles mover`: it promotes and runs no handler',
  },
  async producer(url) {
    const producer = createClient({ redis: url });
    const options = (/** @type {import('./system.mjs').Planned} */ { id, dueMs }) => ({
      ...(id === undefined ? {} : { id }),
      ...(dueMs === 0 ? {} : { at: new Date(dueMs) }),
    });
    return {
      one: (job) => producer.schedule(queue, dataOf(job), options(job)),
      many: (jobs) =>
        producer.scheduleMany(
          queue,
          jobs.map((job) => ({ data: dataOf(job), ...options(job) })),
        ),
      close: () => producer.stop(),
    };
  },
  async worker(url, { concurrency, started }) {
    const handler = (/** @type {{ data: unknown }} */ { data }) => started(/** @type {{ at: number }} */ (data).at);
    const worker = createWorker(queue, handler, { redis: url, concurrency });
    await worker.start();
    return { close: () => worker.stop() };
  },
  async daemon(url) {
    const daemon = createDaemon({ redis: { url }, roles: ['mover'], log: QUIET });
    await daemon.start();
    return { close: () => daemon.stop() };
  },
  async pending(redis) {
    const key = (/** @type {string} */ name) => `duestream:v1:{bench:0}:${name}`;
    const [scheduled, ready] = await Promise.all([redis.zcard(key('scheduled')), redis.xlen(key('ready'))]);
    return scheduled + ready;
  },
};

/** Each process is a mover, of which one leads, and a worker. @type {import('./system.mjs').System} */
export const embedded = {
  ...duestream,
  name: 'embedded',
  title: 'duestream, one process',
  counts: {
    server: 'redis-server',
    worker: 'the processes of `duestream start --roles mover,worker` with handlers: mover and handlers are in each',
  },
  // Scheduling and memory are the same in every shape.
  workloads: ['burst', 'burst2', 'drain', 'steady500', 'steady2000', 'idle'],
  daemon: undefined,
  async worker(url, { concurrency, started }) {
    const handler = (/** @type {{ data: unknown }} */ { data }) => started(/** @type {{ at: number }} */ (data).at);
    const daemon = createDaemon(
      { redis: { url }, roles: ['mover', 'worker'], worker: { concurrency }, log: QUIET },
      { handlers: defineHandlers({ bench: handler }) },
    );
    await daemon.start();
    return { close: () => daemon.stop() };
  },
};
