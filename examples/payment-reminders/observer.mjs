/**
 * Looks into Redis from outside, to know whom to kill and what that process was doing. It reads the documented keys
 * (docs/architecture.md) and changes nothing.
 */
import { Redis } from 'ioredis';
import { conflictsKey, withoutScheme } from './account-lock.mjs';

const QUEUES = ['emails', 'accounts'];
const ENTRIES_MAX = 1000;

/** @typedef {{ readonly id: string, readonly role: string, readonly pid: number }} Identity */
/** @typedef {{ readonly running: readonly string[], readonly held: readonly string[] }} Holding ids of jobs */

/** @param {{ url: string, namespace: string }} place */
export function createObserver({ url, namespace }) {
  const redis = new Redis(withoutScheme(url), { maxRetriesPerRequest: 3 });
  // What fails is the command that needs the connection; it says so itself.
  redis.on('error', () => {});
  const control = `${namespace}:v1:{control}`;
  /** @param {string} queue */
  const partition = (queue) => `${namespace}:v1:{${queue}:0}`;

  /** @returns {Promise<readonly Identity[]>} everybody whose heartbeat is fresh */
  async function alive() {
    const ids = await redis.smembers(`${control}:alive`);
    const beats = ids.length === 0 ? [] : await redis.mget(ids.map((id) => `${control}:beat:${id}`));
    return beats.flatMap((beat) => (beat === null ? [] : [/** @type {Identity} */ (JSON.parse(beat))]));
  }

  /** @param {string} queue */
  async function leaderOf(queue) {
    const [id, epoch] = ((await redis.get(`${partition(queue)}:leader`)) ?? '').split(':');
    if (!id) return undefined;
    const pid = (await alive()).find((identity) => identity.id === id)?.pid;
    return { id, epoch: Number(epoch), pid };
  }

  /**
   * @param {number} pid of a worker
   * @returns {Promise<Holding>}
   */
  async function holdingOf(pid) {
    const consumers = (await alive()).filter((identity) => identity.pid === pid).map(({ id }) => id);
    const parts = await Promise.all(QUEUES.flatMap((queue) => consumers.map((consumer) => holdingIn(queue, consumer))));
    return { running: parts.flatMap(({ running }) => running), held: parts.flatMap(({ held }) => held) };
  }

  /**
   * @param {string} queue
   * @param {string} consumer
   * @returns {Promise<Holding>}
   */
  async function holdingIn(queue, consumer) {
    const key = partition(queue);
    const reply = await redis.xpending(`${key}:ready`, 'workers', '-', '+', ENTRIES_MAX, consumer);
    const entries = /** @type {[string, ...unknown[]][]} */ (reply).map(([entry]) => entry);
    /** @type {string[]} */
    const members = [];
    for (const entry of entries) {
      const [found] = await redis.xrange(`${key}:ready`, entry, entry);
      if (found?.[1][1] !== undefined) members.push(found[1][1]);
    }
    const runs = members.length === 0 ? [] : await redis.hmget(`${key}:runs`, ...members);
    // Fields of a run: token, generation, attempts, failures, crashes, entry, owner, ...
    const started = members.filter((_, at) => (runs[at] ?? '').split(' ')[6] === consumer);
    return { running: started.map(idOf), held: members.map(idOf) };
  }

  /** Fails with one clear sentence when there is no Redis. */
  async function reach() {
    await redis.ping().catch((cause) => {
      throw new Error('the Redis that DUESTREAM_REDIS_URL names does not answer', { cause });
    });
  }

  return {
    reach,
    alive,
    leaderOf,
    holdingOf,
    /** How many jobs are scheduled, ready or running. */
    async left() {
      const counts = await Promise.all(
        QUEUES.flatMap((queue) => [
          redis.zcard(`${partition(queue)}:scheduled`),
          redis.xlen(`${partition(queue)}:ready`),
        ]),
      );
      return counts.reduce((sum, count) => sum + count, 0);
    },
    conflicts: async () => Number((await redis.get(conflictsKey(namespace))) ?? 0),
    /** Removes every key of the demo, for a Redis that is not ours alone. */
    async clear() {
      for await (const keys of redis.scanStream({ match: `${namespace}:*`, count: 500 })) {
        if (keys.length > 0) await redis.unlink(...keys);
      }
    },
    close: () => redis.disconnect(),
  };
}

/** @param {string} member */
const idOf = (member) => member.replace(/^j:/, '');
