/** Many workers in one process: what a crowd of small processes is to Redis, at the price of a few. */
import { createWorker } from 'duestream';
import handlers from './handlers.mjs';

const { CHAOS_FLEET = '1', DUESTREAM_REDIS_URL = '' } = process.env;
const [queue] = handlers.queues;
const handler = handlers.map.chaos;
if (!queue || !handler) throw new Error('the handlers have no queue');

// They are here to come and to vanish; looking after each other, 200 in a handful of processes, is not their part.
const times = /** @type {const} */ ({ jobLease: '3s', beatTtl: '1500ms', grace: '20s' });
const workers = Array.from({ length: Number(CHAOS_FLEET) }, () =>
  createWorker(queue.name, handler, { redis: DUESTREAM_REDIS_URL, concurrency: 1, ...times }),
);
await Promise.all(workers.map((worker) => worker.start()));
console.log(JSON.stringify({ msg: 'started' }));
