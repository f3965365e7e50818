/** What Redis holds of a queue in the end, read from the wire format as documented and not through the product. */

import { hollowNodes } from '../../support/streams.mjs';

/** @typedef {import('ioredis').Redis} Redis */
/** @typedef {import('./checker.mjs').Member} Member */

/** Of the queue: the one list that handlers, producers, rows and this file go by. */
export const PARTITIONS = [0, 1, 2, 3, 4, 5, 6, 7];

/**
 * @param {number} partition
 * @param {string} name
 */
export const keyOf = (partition, name) => `duestream:v1:{chaos:${partition}}:${name}`;

/**
 * @param {Redis} redis
 * @returns {Promise<readonly Member[]>}
 */
export async function membersOf(redis) {
  const all = await Promise.all(PARTITIONS.map((partition) => partitionOf(redis, partition)));
  return all.flat();
}

/**
 * @param {Redis} redis
 * @param {number} partition
 */
async function partitionOf(redis, partition) {
  const scheduled = new Set(await redis.zrange(keyOf(partition, 'scheduled'), '0', '-1'));
  const entries = await redis.xrange(keyOf(partition, 'ready'), '-', '+');
  const ready = new Set(entries.map(([, fields]) => fields[fields.indexOf('member') + 1]));
  const jobs = Object.entries(await redis.hgetall(keyOf(partition, 'jobs')));
  const deadLetters = (await redis.xrange(keyOf(partition, 'dead'), '-', '+')).map(([, fields]) => fields);
  const attempts = new Map(
    deadLetters.map((fields) => [fieldOf(fields, 'member'), Number(fieldOf(fields, 'attempts'))]),
  );
  return jobs.map(([member, content]) => {
    const live = !content.startsWith('.');
    return {
      id: member.startsWith('j:') ? member.slice(2) : member,
      partition,
      live,
      indexed: scheduled.has(member) || ready.has(member),
      outcome: live ? '' : content.charAt(1),
      token: live ? '' : (content.split(' ')[2] ?? ''),
      attempts: attempts.get(member) ?? 0,
    };
  });
}

/** @param {readonly string[]} fields @param {string} name */
const fieldOf = (fields, name) => fields[fields.indexOf(name) + 1] ?? '';

/**
 * What must be empty when all is done.
 *
 * @param {Redis} redis
 * @returns {Promise<Readonly<Record<string, number>>>}
 */
export async function leftIn(redis) {
  const sum = async (/** @type {(partition: number) => Promise<number>} */ count) =>
    (await Promise.all(PARTITIONS.map(count))).reduce((total, value) => total + value, 0);
  const [scheduled, ready, runs, pending, line, holds, hollow] = await Promise.all([
    sum((partition) => redis.zcard(keyOf(partition, 'scheduled'))),
    sum((partition) => redis.xlen(keyOf(partition, 'ready'))),
    sum((partition) => redis.hlen(keyOf(partition, 'runs'))),
    sum((partition) => pendingIn(redis, partition)),
    // Of a gated queue.
    sum((partition) => redis.zcard(keyOf(partition, 'line'))),
    sum((partition) => redis.zcard(keyOf(partition, 'holds'))),
    // Nodes that a stricter server would not load.
    sum((partition) => hollowNodes(redis, keyOf(partition, 'ready'))),
  ]);
  return { scheduled, ready, pending, runs, line, holds, hollow };
}

/**
 * @param {Redis} redis
 * @param {number} partition
 */
async function pendingIn(redis, partition) {
  const summary = await redis.call('XPENDING', keyOf(partition, 'ready'), 'workers').catch(() => [0]);
  return Array.isArray(summary) ? Number(summary[0]) : 0;
}

/**
 * A text that changes whenever anything is done: what is left, the durable counters and the last token of a start.
 *
 * @param {Redis} redis
 */
export async function motionIn(redis) {
  const of = PARTITIONS.map(async (partition) => {
    const meta = Object.entries(await redis.hgetall(keyOf(partition, 'meta')));
    return meta.filter(([name]) => name === 'token' || name.startsWith('n.')).sort();
  });
  return JSON.stringify([await leftIn(redis), ...(await Promise.all(of))]);
}

/** Reason → how many dead letters. @param {Redis} redis */
export async function deadLettersIn(redis) {
  /** @type {Record<string, number>} */
  const reasons = {};
  for (const partition of PARTITIONS) {
    for (const [, fields] of await redis.xrange(keyOf(partition, 'dead'), '-', '+')) {
      const reason = fieldOf(fields, 'reason');
      reasons[reason] = (reasons[reason] ?? 0) + 1;
    }
  }
  return reasons;
}

/** The sum of a durable counter. @param {Redis} redis @param {string} name */
export async function counted(redis, name) {
  const values = await Promise.all(PARTITIONS.map((partition) => redis.hget(keyOf(partition, 'meta'), `n.${name}`)));
  return values.reduce((total, value) => total + Number(value ?? 0), 0);
}
