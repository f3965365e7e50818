/** bee-queue: small and quick; a worker with `activateDelayedJobs` promotes. It has no list call but a pipelined one. */
import BeeQueue from 'bee-queue';
import { dataOf, versionOf } from './system.mjs';

const version = await versionOf('bee-queue', import.meta);

/** @type {import('./system.mjs').System} */
export const beeQueue = {
  name: 'bee-queue',
  title: 'bee-queue',
  settings: `bee-queue ${version}; saveAll in lists of 500; removeOnSuccess, storeJobs false, getEvents and sendEvents false; nearTermWindow 1 s; it keeps due times to the second and schedules no id twice`,
  counts: {
    server: 'redis-server',
    worker: 'the processes that run handlers; the first promotes as well (activateDelayedJobs)',
  },
  roundsToSeconds: true,
  async producer(url) {
    const queue = new BeeQueue('bench', { ...plain(url), isWorker: false });
    await queue.ready();
    const made = (/** @type {import('./system.mjs').Planned} */ job) => {
      const one = queue.createJob(dataOf(job));
      if (job.id !== undefined) one.setId(job.id);
      return job.dueMs === 0 ? one : one.delayUntil(job.dueMs);
    };
    return {
      one: (job) => made(job).save(),
      async many(jobs) {
        for (let from = 0; from < jobs.length; from += 500) {
          const failed = await queue.saveAll(jobs.slice(from, from + 500).map(made));
          if (failed.size > 0) throw new Error(`bee-queue did not save ${failed.size} jobs`);
        }
      },
      close: () => queue.close(),
    };
  },
  async worker(url, { concurrency, moves, started }) {
    const queue = new BeeQueue('bench', { ...plain(url), activateDelayedJobs: moves, nearTermWindow: 1000 });
    await queue.ready();
    queue.process(concurrency, async (/** @type {{ data: { at: number } }} */ { data }) => started(data.at));
    return { close: () => queue.close(1000).catch(() => undefined) };
  },
  async pending(redis) {
    const key = (/** @type {string} */ name) => `bq:bench:${name}`;
    const [delayed, waiting, active] = await Promise.all([
      redis.zcard(key('delayed')),
      redis.llen(key('waiting')),
      redis.llen(key('active')),
    ]);
    return delayed + waiting + active;
  },
};

/** @param {string} url */
function plain(url) {
  return { redis: { url }, removeOnSuccess: true, storeJobs: false, getEvents: false, sendEvents: false };
}
