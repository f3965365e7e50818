/** Who led when, as the leader keys say five times a second. */
import { setTimeout as sleep } from 'node:timers/promises';
import { keyOf, PARTITIONS } from './dump.mjs';

/** @typedef {{ partition: number, leader: string, us: number }} Term whose term, one that was not seen before, and when */

const EVERY_MS = 200;

/** @param {import('ioredis').Redis} redis */
export function watchTerms(redis) {
  /** @type {Term[]} */
  const terms = [];
  /** @type {Map<number, string>} */
  const last = new Map();
  let watching = true;

  async function look() {
    // One key at a time: in a cluster they are in several slots. MGET takes a key of a wrong type for none.
    const leaders = (await Promise.all(PARTITIONS.map((partition) => redis.mget(keyOf(partition, 'leader'))))).flat();
    const us = Number(process.hrtime.bigint() / 1000n);
    for (const [at, partition] of PARTITIONS.entries()) {
      const term = leaders[at] ?? undefined;
      if (term === undefined || last.get(partition) === term) continue;
      last.set(partition, term);
      terms.push({ partition, leader: term.split(':')[0] ?? '', us });
    }
  }

  const watched = (async () => {
    while (watching) {
      // A Redis that is away, busy or full of other types has nothing to say; the next look may.
      await look().catch(() => {});
      await sleep(EVERY_MS);
    }
  })();

  return {
    terms,
    /** Does not wait for a look that may never be answered. */
    stop() {
      watching = false;
      watched.catch(() => {});
    },
  };
}
