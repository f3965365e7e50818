/**
 * Effects in the Redis of the queue: credits to accounts, each exactly once. `commit` collects commands; they are
 * carried out in the same step in which the job is completed, so there is no moment between the two.
 *
 *     npx duestream worker examples/effectively-once/redis-balances.mjs
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { defineHandlers, defineQueue, Unrecoverable } from 'duestream';

/** How long the work takes that comes before the effects. */
const WORK_MS = Number(process.env.WORK_MS ?? 100);

/** @typedef {{ account: string, cents: number }} Credit */

/** @type {import('duestream').Queue<Credit>} */
export const credits = defineQueue('credits', { delivery: 'effectively-once' });

/** @type {import('duestream').Handler<Credit>} */
export const credit = async ({ id, data: { account, cents } }, { commit, tag, signal }) => {
  if (!Number.isInteger(cents)) throw new Unrecoverable(`cents are ${cents}`);
  await sleep(WORK_MS, undefined, { signal });
  // A name with `tag` in it lives where the job lives. With several partitions an account has a part in each.
  commit('HINCRBY', `${tag}:balances`, account, cents);
  commit('LPUSH', `${tag}:statement:${account}`, `${id} ${cents}`);
  commit('LTRIM', `${tag}:statement:${account}`, 0, 999);
};

export default defineHandlers({ credits: credit }, { queues: [credits] });
