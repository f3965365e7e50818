/** BullMQ: a worker promotes delayed jobs by itself, and looks for jobs of dead workers. */
import { Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { versionOf } from '../peers/system.mjs';
import { SLOTS } from './system.mjs';

const version = await versionOf('bullmq', import.meta);

/** @param {string} url */
function connect(url) {
  const connection = new Redis(url, { maxRetriesPerRequest: null });
  connection.on('error', () => {});
  return connection;
}

/** @type {import('./system.mjs').System} */
export const bullmq = {
  name: 'BullMQ',
  title: 'BullMQ',
  settings: `bullmq ${version}; \`jobId\`, so that a call can be made again; completed jobs are kept, so that their ids are known; attempts 5; lock 3 s, stalled check 1.5 s, \`maxStalledCount\` 5`,
  store: 'redis',
  async producer(url) {
    const connection = connect(url);
    const queue = new Queue('kept', { connection });
    queue.on('error', () => {});
    await queue.waitUntilReady();
    return {
      schedule: ({ id, dueMs, data }) =>
        queue.add('job', data, {
          jobId: id,
          delay: Math.max(0, dueMs - Date.now()),
          attempts: 5,
          backoff: { type: 'fixed', delay: 300 },
        }),
      async close() {
        await queue.close();
        connection.disconnect();
      },
    };
  },
  async worker(url, run) {
    const times = { lockDuration: 3000, stalledInterval: 1500, maxStalledCount: 5 };
    const handler = (/** @type {{ data: import('./system.mjs').Data }} */ { data }) => run(data);
    const worker = new Worker('kept', handler, { connection: connect(url), concurrency: SLOTS, ...times });
    worker.on('error', () => {});
    await worker.waitUntilReady();
  },
};
