/** BullMQ: a worker promotes delayed jobs by itself, so there is no mover apart. */
import { Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { dataOf, versionOf } from './system.mjs';

const [bullmqVersion, ioredisVersion] = [
  await versionOf('bullmq', import.meta),
  await versionOf('ioredis', import.meta),
];

/** @param {string} url */
const connect = (url) => new Redis(url, { maxRetriesPerRequest: null, enableAutoPipelining: false });

/** @param {import('./system.mjs').Planned} job */
const optionsOf = ({ id, dueMs }) => ({
  ...(id === undefined ? {} : { jobId: id }),
  delay: dueMs === 0 ? 0 : Math.max(0, dueMs - Date.now()),
  removeOnComplete: true,
  removeOnFail: true,
});

/** @type {import('./system.mjs').System} */
export const bullmq = {
  name: 'BullMQ',
  title: 'BullMQ',
  settings: `bullmq ${bullmqVersion} on ioredis ${ioredisVersion}; addBulk in lists of 500; removeOnComplete, so that nothing piles up; no metrics, no events read`,
  counts: { server: 'redis-server', worker: 'the processes with a `Worker`: each promotes and runs handlers' },
  async producer(url) {
    const connection = connect(url);
    const queue = new Queue('bench', { connection, skipMetasUpdate: true });
    await queue.waitUntilReady();
    return {
      one: (job) => queue.add('job', dataOf(job), optionsOf(job)),
      async many(jobs) {
        for (let from = 0; from < jobs.length; from += 500) {
          const some = jobs.slice(from, from + 500);
          await queue.addBulk(some.map((job) => ({ name: 'job', data: dataOf(job), opts: optionsOf(job) })));
        }
      },
      async close() {
        await queue.close();
        connection.disconnect();
      },
    };
  },
  async worker(url, { concurrency, started }) {
    const connection = connect(url);
    const worker = new Worker('bench', async (job) => started(job.data.at), { connection, concurrency });
    worker.on('error', () => {});
    await worker.waitUntilReady();
    return {
      async close() {
        await worker.close(true);
        connection.disconnect();
      },
    };
  },
  async pending(redis) {
    const key = (/** @type {string} */ name) => `bull:bench:${name}`;
    const [delayed, wait, active] = await Promise.all([
      redis.zcard(key('delayed')),
      redis.llen(key('wait')),
      redis.llen(key('active')),
    ]);
    return delayed + wait + active;
  },
};
