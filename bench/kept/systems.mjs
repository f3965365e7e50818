/** Every system that is asked whether it keeps jobs. */
import { bullmq } from './bullmq.mjs';
import { duestream } from './duestream.mjs';
import { noPgBoss, pgBoss } from './pg-boss.mjs';

/** @type {readonly import('./system.mjs').System[]} */
export const systems = [duestream, bullmq, ...(noPgBoss === undefined ? [pgBoss] : [])];

/** What cannot be tried on this machine, and why. @type {readonly string[]} */
export const absent = noPgBoss === undefined ? [] : [noPgBoss];
