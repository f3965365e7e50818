/** Every system under measurement. The first is the product as people deploy it, the last the floor; ratios are to BullMQ. */
import { beeQueue } from './bee-queue.mjs';
import { bullmq } from './bullmq.mjs';
import { bunqueue, bunqueueFile, noBun } from './bunqueue.mjs';
import { ahead, duestream, embedded, lingering, others } from './duestream.mjs';
import { floor } from './floor.mjs';
import { graphileWorker, noPostgres } from './graphile-worker.mjs';

/** @type {readonly import('./system.mjs').System[]} */
export const systems = [
  duestream,
  embedded,
  ...others,
  ...ahead,
  ...lingering,
  bullmq,
  beeQueue,
  ...(noBun === undefined ? [bunqueue, bunqueueFile] : []),
  ...(noPostgres === undefined ? [graphileWorker] : []),
  floor,
];

/** What cannot be measured on this machine, and why. @type {readonly string[]} */
export const absent = [noBun, noPostgres].flatMap((why) => why ?? []);
