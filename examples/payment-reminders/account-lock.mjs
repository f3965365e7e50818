/**
 * A lock on one account, as teams already have them: SET NX PX, and a release that takes away only its own. It ends by
 * itself when its holder dies. Correctness of the jobs does not rest on it; it is here to be in the way.
 */
import { randomUUID } from 'node:crypto';

const RELEASE = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

/** @typedef {import('ioredis').Redis} Redis */

/**
 * Runs the work under the lock, or says that somebody else holds it.
 *
 * @param {{ redis: Redis, prefix: string, account: string, ttlMs: number }} lock
 * @param {() => Promise<void>} work
 * @returns {Promise<'done' | 'taken'>}
 */
export async function withAccount({ redis, prefix, account, ttlMs }, work) {
  const key = `${prefix}:lock:${account}`;
  const mine = randomUUID();
  if ((await redis.set(key, mine, 'PX', ttlMs, 'NX')) !== 'OK') {
    await redis.incr(conflictsKey(prefix));
    return 'taken';
  }
  try {
    await work();
  } finally {
    await redis.eval(RELEASE, 1, key, mine);
  }
  return 'done';
}

/**
 * Counts how often somebody found a lock taken.
 *
 * @param {string} prefix
 */
export const conflictsKey = (prefix) => `${prefix}:conflicts`;

/**
 * ioredis wants the plain path of a socket.
 *
 * @param {string} url
 */
export const withoutScheme = (url) => url.replace(/^unix:\/\//, '');
