/** The fault matrix as far as it can be run here: one table, in the order of the faults' numbers. */
import { processRows } from './rows-processes.mjs';
import { redisRows } from './rows-redis.mjs';

/** @type {readonly import('./run.mjs').Row[]} */
export const rows = [...processRows, ...redisRows].sort((a, b) => numberOf(a.id) - numberOf(b.id));

/** @param {string} id */
function numberOf(id) {
  return Number(id.slice(1));
}
