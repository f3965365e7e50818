/** Every system under measurement. The first is the product, the last the floor; ratios are to BullMQ. */
import { beeQueue } from './bee-queue.mjs';
import { bullmq } from './bullmq.mjs';
import { duestream } from './duestream.mjs';
import { floor } from './floor.mjs';

/** @type {readonly import('./system.mjs').System[]} */
export const systems = [duestream, bullmq, beeQueue, floor];
