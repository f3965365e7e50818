/**
 * One partition, and ways to bring jobs into each state. Nothing here is measured but the calls themselves; the product's
 * own functions are used throughout, taken from `dist`.
 */
import { root } from '../scripts/steps.mjs';
import { countedAlone } from './stages-counted.mjs';

/**
 * @typedef {object} Given
 * @property {number} jobs how many
 * @property {number} bytes of data of each
 * @property {boolean} [isLate] they are past their expiry, and become dead letters
 * @property {boolean} [isTagged] each has a tag of its own
 * @property {boolean} [isDebounced] they are calls of debounce, due in an hour
 *
 * @typedef {{ entry: string, member: string, dueMs: number }} Delivery
 * @typedef {{ entry: string, member: string, token: string, mark?: string }} Claim
 * @typedef {{ member: string, record: string, dueMs: number }} Item
 * @typedef {Awaited<ReturnType<typeof createPartition>>} Partition
 */

const CONSUMER = 'bench';
const LEASE_MS = 3_600_000;
const WINDOW_MS = 600_000;
const HOUR_MS = 3_600_000;
const BYTES_MAX = 1_048_576;
const HORIZON_MS = 10 * 365 * 86_400_000;
/** What one call of the preparation carries at the most; longer ones would stall Redis for the next case. */
const CHUNK_BYTES = 4_000_000;

/** @param {string} socketPath */
export async function createPartition(socketPath) {
  const { openCommands, whenReady } = await import(`${root}dist/redis/connection/connect.js`);
  const { createJobs } = await import(`${root}dist/redis/scripts/jobs.js`);
  const { partitionRef } = await import(`${root}dist/redis/keys.js`);
  const lease = await import(`${root}dist/redis/scripts/lease.js`);
  const ready = await import(`${root}dist/redis/scripts/ready.js`);
  const { checkEntries, checkMembers } = await import(`${root}dist/redis/repair/damage.js`);
  const { repair } = await import(`${root}dist/redis/repair/repair.js`);
  const { scriptOptions } = await import(`${root}dist/redis/scripts/scripts.js`);
  const schedules = await import(`${root}dist/redis/scripts/schedules.js`);
  const { allot } = await import(`${root}dist/redis/scripts/quotas.js`);
  const { purge } = await import(`${root}dist/redis/scripts/upkeep.js`);
  const { oldestDueAge, peek, stats } = await import(`${root}dist/redis/read/inspect.js`);
  const { FIRE_BYTES_MAX, READ_BYTES_MAX } = await import(`${root}dist/redis/scripts/bytes.js`);
  const { CHUNK_BYTES_MAX } = await import(`${root}dist/client/calls/batch.js`);
  const { encodeBody, encodeRecord } = await import(`${root}dist/job/codec.js`);
  const { debounceLetter } = await import(`${root}dist/job/debounce.js`);
  const { endMark } = await import(`${root}dist/job/record-header.js`);

  const redis = openCommands({ redis: { path: socketPath }, name: 'bench', commandTimeoutMs: 60_000 });
  await whenReady(redis);
  const measuring = countedAlone(redis, scriptOptions());
  const jobs = createJobs(redis);
  const ref = partitionRef('bench', { queue: 'q', partition: 0, layoutGeneration: 0 });
  let term = '';
  let order = Date.now();
  let state = '';

  /** An empty partition that we lead. */
  async function fresh() {
    await redis.flushall();
    ({ term } = await lease.elect(redis, ref, { processId: 'bench', leaseMs: LEASE_MS }));
    await ready.join(redis, ref.keys, CONSUMER);
    state = '0 0 0 - - 0';
    await redis.hset(ref.keys.fired, 'bench', state);
  }

  /** @param {Given} given @returns {readonly Item[]} whose due time has come; ids of 16 bytes */
  function items({ jobs: count, bytes, isLate = false, isTagged = false, isDebounced = false }) {
    const dueMs = Date.now() + (isDebounced ? HOUR_MS : -1000);
    const body = encodeBody({ name: 'default', data: 'x'.repeat(bytes - 2) });
    const late = isLate ? { expiresAtMs: dueMs, onLate: 'dead' } : {};
    order += 1;
    const letter = isDebounced ? debounceLetter(order, { waitMs: HOUR_MS, maxMs: 2 * HOUR_MS }) : undefined;
    return Array.from({ length: count }, (_, at) => ({
      member: `j:job-${String(at).padStart(12, '0')}`,
      record: encodeRecord(dueMs, body, isTagged ? { ...late, tags: [`invoice:${at}`] } : late, letter),
      dueMs,
    }));
  }

  /** Some other tags are closed. @param {number} count */
  async function closeTags(count) {
    const tags = Array.from({ length: count }, (_, at) => `invoice:other-${at}`);
    for (let from = 0; from < count; from += 500) {
      const untilMs = Date.now() + HOUR_MS;
      const how = { mode: 'close', untilMs, text: '{}', most: count, layoutAge: 'fresh' };
      await jobs.closeTags(ref, tags.slice(from, from + 500), how);
    }
  }

  /**
   * Repeats the call for what it answered `later` of.
   *
   * @template T
   * @param {readonly T[]} all
   * @param {(rest: readonly T[]) => Promise<readonly unknown[]>} call
   */
  async function untilTaken(all, call) {
    for (let rest = all; rest.length > 0; ) {
      const replies = await call(rest);
      if (!Array.isArray(replies)) throw new Error(`unexpected answer ${JSON.stringify(replies)}`);
      const left = rest.filter((_, at) => (replies[at]?.kind ?? replies[at]) === 'later');
      if (left.length === rest.length) throw new Error('a call took nothing at all');
      rest = left;
    }
  }

  /** In calls of the bytes that a producer sends at once. @param {readonly Item[]} chunk @param {'keep' | 'debounce'} [mode] */
  async function schedule(chunk, mode = 'keep') {
    // `layout` is the name of `layoutAge` in older builds.
    const options = { mode, horizonMs: HORIZON_MS, bytesMax: BYTES_MAX, layout: 'fresh', layoutAge: 'fresh' };
    const each = Math.max(1, Math.floor(CHUNK_BYTES_MAX / (chunk[0]?.record.length ?? 1)));
    for (let from = 0; from < chunk.length; from += each) {
      await untilTaken(chunk.slice(from, from + each), (rest) => jobs.schedule(ref, rest, options));
    }
  }

  /** @param {Given} given */
  async function scheduled(given) {
    const all = items(given);
    const each = Math.max(1, Math.min(500, Math.floor(CHUNK_BYTES / given.bytes)));
    for (let from = 0; from < all.length; from += each)
      await schedule(all.slice(from, from + each), given.isDebounced ? 'debounce' : 'keep');
    return all;
  }

  /** @param {number} limit */
  async function promote(limit) {
    const reply = await jobs.promote(ref, { term, leaseMs: LEASE_MS, limit, cap: 1_000_000 });
    if (!(reply.count > 0)) throw new Error(`nothing was promoted: ${JSON.stringify(reply)}`);
    return Number(reply.count);
  }

  /** @param {Given} given */
  async function readied(given) {
    const all = await scheduled(given);
    for (let left = all.length; left > 0; ) left -= await promote(Math.min(500, left));
    return all;
  }

  /** @param {number} count @returns {Promise<readonly Delivery[]>} */
  async function read(count) {
    const [batch] = await ready.readNew(redis, [ref], { consumer: CONSUMER, count, blockMs: 0 });
    return batch?.deliveries ?? [];
  }

  /** @param {Given} given */
  async function delivered(given) {
    await readied(given);
    return read(given.jobs);
  }

  /** @param {readonly Delivery[]} deliveries @returns {Promise<readonly Claim[]>} */
  async function start(deliveries) {
    /** @type {Claim[]} */
    const claims = [];
    await untilTaken(deliveries, async (rest) => {
      const options = { consumer: CONSUMER, bytesMax: READ_BYTES_MAX, windowMs: WINDOW_MS };
      const replies = await jobs.start(ref, rest, options);
      for (const [at, { kind, token, record }] of replies.entries()) {
        const delivery = rest[at];
        if (kind !== 'run' || !delivery) continue;
        // As a worker does, which has the record: `complete` need not read it.
        claims.push({ entry: delivery.entry, member: delivery.member, token, mark: endMark(record, WINDOW_MS) });
      }
      return replies;
    });
    return claims;
  }

  /** @param {Given} given */
  async function started(given) {
    const deliveries = await delivered(given);
    const claims = [];
    for (let from = 0; from < deliveries.length; from += 100)
      claims.push(...(await start(deliveries.slice(from, from + 100))));
    return claims;
  }

  /** One that died, and as many that are like it. @param {Given} given @returns {Promise<readonly string[]>} ids of dead letters */
  async function dead(given) {
    const [claim] = await started({ ...given, jobs: 1 });
    await jobs.bury(ref, claim, { windowMs: WINDOW_MS, reason: 'bench', error: '' });
    const [deadLetter] = await redis.xrange(ref.keys.dead, '-', '+');
    const fields = deadLetter?.[1] ?? [];
    await pipelined(items(given).slice(1), given.bytes, (line, { member }) =>
      line.xadd(ref.keys.dead, '*', ...fields.with(1, member)),
    );
    const deadLetters = await redis.xrange(ref.keys.dead, '-', '+');
    return deadLetters.map(([deadLetter = '']) => deadLetter);
  }

  /** Tombstones that left the done window: of one that is over, and of as many that are like it. @param {Given} given */
  async function over(given) {
    const claims = await started({ ...given, jobs: 1 });
    await jobs.complete(ref, claims, { windowMs: WINDOW_MS });
    const all = items(given);
    const tombstone = (await redis.hget(ref.keys.jobs, all[0]?.member ?? '')) ?? '';
    await pipelined(all.slice(1), tombstone.length, (line, { member }) =>
      line.hset(ref.keys.jobs, member, tombstone).zadd(ref.keys.done, Date.now(), member),
    );
    return all;
  }

  /** Records that are in no index. @param {Given} given */
  async function orphaned(given) {
    const all = await scheduled(given);
    await redis.del(ref.keys.scheduled);
    return all.map(({ member }) => ({ kind: 'orphan', name: member, detail: '-' }));
  }

  /**
   * @param {readonly Item[]} all
   * @param {number} bytes of each
   * @param {(line: import('ioredis').ChainableCommander, item: Item) => unknown} add
   */
  async function pipelined(all, bytes, add) {
    const each = Math.max(1, Math.min(1000, Math.floor(CHUNK_BYTES / bytes)));
    for (let from = 0; from < all.length; from += each) {
      const line = redis.pipeline();
      for (const item of all.slice(from, from + each)) add(line, item);
      await line.exec();
    }
  }

  /** All that a call carries at once, as after a downtime. @param {readonly Item[]} chunk */
  async function fire(chunk) {
    const each = Math.max(1, Math.floor(FIRE_BYTES_MAX / (chunk[0]?.record.length ?? 1)));
    for (let from = 0; from < chunk.length; from += each) {
      const items = chunk.slice(from, from + each);
      const schedule = { name: 'bench', state, reachedMs: Date.now() - 1, lookMs: undefined, overlap: 'allow', items };
      const reply = await schedules.fire(redis, ref, { term, schedules: [schedule] });
      const [fired] = reply.schedules ?? [];
      if (fired?.kind !== 'fired') throw new Error(`not fired: ${JSON.stringify(reply)}`);
      state = fired.fired.text;
    }
  }

  /** @param {number} batch */
  async function sweep(batch) {
    const limits = {
      batch,
      windowMs: 1,
      tombstonesMax: 1_000_000,
      floorMs: 1,
      retentionMs: HORIZON_MS,
      deadLettersMax: 1_000_000,
    };
    const nowMs = Date.now() + 2 * WINDOW_MS;
    const swept = await lease.sweep(redis, ref, { term, limits, nowMs });
    if (swept === 'fenced' || !Object.values(swept).some((count) => Number(count) > 0))
      throw new Error('nothing was swept');
  }

  return {
    redis,
    jobs,
    ref,
    /** As of a queue with `maxPending` and `maxBytes` that nothing reaches. */
    limit: () => allot(redis, ref, { quota: { pending: 1_000_000, bytes: 1e12 } }),
    fresh,
    items,
    untilTaken,
    closeTags,
    schedule,
    scheduled,
    promote,
    readied,
    read,
    delivered,
    start,
    started,
    dead,
    over,
    orphaned,
    sweep,
    fire,
    measuring,
    /** @param {readonly string[]} entries */
    reclaim: (entries) =>
      ready.reclaim(redis, ref, { owner: CONSUMER, consumer: 'other', idleMs: 0, limit: entries.length, entries }),
    /** @param {number} limit */
    async purge(limit) {
      const { matched } = await purge(redis, ref, { mode: 'remove', ageMs: 0, limit, nowMs: Date.now() + WINDOW_MS });
      if (!(matched > 0)) throw new Error('nothing was purged');
      return Number(matched);
    },
    /** @param {string} member */
    peek: (member) => peek(redis, ref, member),
    /** @param {{ part: 'jobs' | 'all', limit: number }} which */
    checkMembers: (which) => checkMembers(redis, ref, which),
    /** @param {number} limit */
    checkEntries: (limit) => checkEntries(redis, ref, { part: 'front', limit }),
    /** @param {readonly { kind: string, name: string, detail: string }[]} damages */
    async repair(damages) {
      const replies = [...(await repair(redis, ref, damages)).values()];
      if (replies.some((reply) => reply !== 'repaired')) throw new Error(`not repaired: ${replies.join(' ')}`);
    },
    oldest: () => oldestDueAge(redis, ref),
    stats: () => stats(redis, ref),
    close: () => redis.disconnect(),
  };
}
