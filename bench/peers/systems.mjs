/** Every system under measurement. The first is the product as people deploy it, the last the floor; ratios are to BullMQ. */
import { beeQueue } from './bee-queue.mjs';
import { bullmq } from './bullmq.mjs';
import { duestream, embedded } from './duestream.mjs';
import { floor } from './floor.mjs';

/** @type {readonly import('./system.mjs').System[]} */
export const systems = [duestream, embedded, bullmq, beeQueue, floor];
