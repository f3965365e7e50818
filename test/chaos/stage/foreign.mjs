/** What a producer that is not ours has to know of the wire format, written from its description. */

import { readFileSync } from 'node:fs';
import { loadKey } from './load.mjs';

const SCHEDULE = readFileSync(new URL('../../../lua/schedule.lua', import.meta.url), 'utf8');

/** The partition of an id without braces. @param {string} id @param {number} partitions */
export function routed(id, partitions) {
  let crc = 0;
  for (const byte of Buffer.from(id)) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit += 1) crc = (crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1) & 0xffff;
  }
  return crc % partitions;
}

const KEYS = ['scheduled', 'jobs', 'runs', 'done', 'meta', 'wake'];
const HORIZON_MS = 86_400_000;

/**
 * Calls `schedule.lua` for the queue `load` as a client in another language would; all are due now.
 *
 * @param {import('ioredis').Redis} redis
 * @param {{ items: readonly (readonly (string | Buffer)[])[], bytes: number }} call member and record of each
 * @returns {Promise<readonly string[]>}
 */
export async function callSchedule(redis, { items, bytes }) {
  const each = items.flatMap(([member = '', record = '']) => [member, record, 0]);
  const keys = KEYS.map(loadKey);
  const replies = await redis.call('EVAL', SCHEDULE, keys.length, ...keys, '', '0', 'keep', HORIZON_MS, bytes, ...each);
  return Array.isArray(replies) ? replies.map(String) : [];
}
