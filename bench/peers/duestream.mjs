/** duestream as it is installed, with its defaults: tokens, budgets, done window, heartbeats, recovery and metrics. */
import { dataOf } from './system.mjs';

/** As it is built; a team has it as the package `duestream`. @type {typeof import('../../src/index.ts')} */
const built = await import(new URL('../../dist/index.js', import.meta.url).href);
const { createDaemon, createClient, defineHandlers, defineQueue } = built;

const queue = defineQueue('bench');

/** @type {import('./system.mjs').System} */
export const duestream = {
  name: 'duestream',
  settings:
    'as built here, all defaults; worker.concurrency as named; mover and worker in one daemon, as `duestream start` runs them',
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
  async worker(url, { concurrency, moves, started }) {
    const handler = (/** @type {{ data: { at: number } }} */ { data }) => started(data.at);
    const roles = moves ? /** @type {const} */ (['mover', 'worker']) : /** @type {const} */ (['worker']);
    const daemon = createDaemon(
      { redis: { url }, roles, worker: { concurrency }, log: { level: 'fatal' } },
      { handlers: defineHandlers({ bench: handler }) },
    );
    await daemon.start();
    return { close: () => daemon.stop() };
  },
  async mover(url) {
    const daemon = createDaemon({ redis: { url }, roles: ['mover'], log: { level: 'fatal' } });
    await daemon.start();
    return { close: () => daemon.stop() };
  },
  async pending(redis) {
    const key = (/** @type {string} */ name) => `duestream:v1:{bench:0}:${name}`;
    const [scheduled, ready] = await Promise.all([redis.zcard(key('scheduled')), redis.xlen(key('ready'))]);
    return scheduled + ready;
  },
};
