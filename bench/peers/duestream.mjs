/**
 * duestream as it is installed, with its defaults: tokens, budgets, done window, heartbeats, recovery and metrics. In the
 * shape that people deploy, with the daemon apart from the workers, and in one process.
 */
import { dataOf, node24 } from './system.mjs';

/** As it is built; a team has it as the package `duestream`. @type {typeof import('../../src/index.ts')} */
const built = await import(new URL('../../dist/index.js', import.meta.url).href);
const { createClient, createWorker, defineHandlers, defineQueue } = built;
/** @type {typeof import('../../src/daemon/index.ts')} */
const { createDaemon } = await import(new URL('../../dist/daemon/index.js', import.meta.url).href);

const QUIET = /** @type {const} */ ({ level: 'fatal' });

/** @typedef {Pick<import('./system.mjs').System, 'name' | 'title' | 'workloads' | 'rounds' | 'fleet' | 'execPath' | 'lingerMs'> & { partitions?: number, aheadMs?: number }} Shape */

/** Daemons and workers, one of each where the shape or the workload says nothing else. @param {Shape} shape @returns {import('./system.mjs').System} */
const apart = ({ partitions = 1, aheadMs, ...shape }) => ({
  ...shape,
  settings: `as built here, all defaults${shape.lingerMs ? ` but \`linger: '${shape.lingerMs}ms'\`` : ''}${aheadMs === undefined ? '' : ` but \`ahead: '${aheadMs}ms'\``}${partitions === 1 ? '' : ` but \`partitions: ${partitions}\``}; worker.concurrency as named`,
  counts: {
    server: 'redis-server',
    worker: 'the processes with `createWorker`: they run handlers and promote nothing',
    daemon: 'the processes of `duestream start --roles mover`, one or as named: they promote and run no handler',
  },
  async producer(url) {
    const queue = defineQueue('bench', { partitions, linger: shape.lingerMs ?? 0, ahead: aheadMs });
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
      close: () => producer.close(),
    };
  },
  async worker(url, { concurrency, started }) {
    const handler = (/** @type {{ data: unknown }} */ { data }) => started(/** @type {{ at: number }} */ (data).at);
    const worker = createWorker('bench', handler, { redis: url, concurrency });
    await worker.start();
    return { close: () => worker.stop() };
  },
  async daemon(url) {
    const daemon = createDaemon({ redis: { url }, roles: ['mover'], log: QUIET });
    await daemon.start();
    return { close: () => daemon.stop() };
  },
  async pending(redis) {
    const counts = Array.from({ length: partitions }, (_, at) => `duestream:v1:{bench:${at}}`).flatMap((key) => [
      redis.zcard(`${key}:scheduled`),
      redis.xlen(`${key}:ready`),
    ]);
    return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
  },
});

/** Each process is a mover, of which one leads, and a worker. @param {Shape} shape @returns {import('./system.mjs').System} */
const together = (shape) => ({
  ...apart(shape),
  counts: {
    server: 'redis-server',
    worker: 'the processes of `duestream start --roles mover,worker` with handlers: mover and handlers are in each',
  },
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
});

export const duestream = apart({ name: 'duestream', title: 'duestream', lingerMs: 0 });

export const embedded = together({
  name: 'embedded',
  title: 'duestream, one process',
  // Scheduling and memory are the same in every shape.
  workloads: ['burst', 'burst2', 'drain', 'steady500', 'steady2000', 'idle'],
  lingerMs: 0,
});

/** Beside the row above: more of each process, and another engine. @type {readonly import('./system.mjs').System[]} */
export const others = [
  apart({
    name: 'duestream-fleet',
    title: 'duestream, 2 daemons, 4 workers, 8 partitions',
    workloads: ['burst', 'drain', 'steady500', 'steady2000'],
    fleet: { daemons: 2, workers: 4 },
    partitions: 8,
    lingerMs: 0,
  }),
  ...(node24 === undefined
    ? []
    : [
        apart({
          name: 'duestream-node24',
          title: 'duestream, Node 24',
          workloads: ['one', 'burst', 'drain', 'steady500', 'steady2000'],
          execPath: node24,
          lingerMs: 0,
        }),
      ]),
];

/** Of 20 ms more is wanted than to know it, so it takes part in every round. */
const ROUNDS = 3;

/** How long before their due time jobs are handed out, where it is not the default. @type {readonly import('./system.mjs').System[]} */
export const ahead = [0, 10, 50].map((aheadMs) =>
  apart({
    name: `duestream-ahead-${aheadMs}`,
    title: `duestream, ahead ${aheadMs} ms`,
    workloads: ['steady500', 'steady2000'],
    rounds: ROUNDS,
    lingerMs: 0,
    aheadMs,
  }),
);

/** Both shapes where due jobs wait for company. @type {readonly import('./system.mjs').System[]} */
export const lingering = [
  ...[5, 20, 100].map((lingerMs) =>
    apart({
      name: `duestream-${lingerMs}`,
      title: `duestream, linger ${lingerMs} ms`,
      workloads: ['steady50', 'steady500', 'steady2000'],
      ...(lingerMs === 20 ? {} : { rounds: ROUNDS }),
      lingerMs,
    }),
  ),
  together({
    name: 'embedded-20',
    title: 'duestream, one process, linger 20 ms',
    workloads: ['steady500', 'steady2000'],
    lingerMs: 20,
  }),
];
