/**
 * Listens to all that Redis is told and writes down which terms really promoted, in the order in which Redis carried
 * it out. A promote that was refused moves nothing, so only those are kept whose script added to the ready stream, or to
 * the line of a gated queue. And looks again and again at who has a lease.
 */

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { keyOf, PARTITIONS } from './dump.mjs';

/** @typedef {{ partition: number, epoch: number, us: number }} Pass */

/**
 * @param {import('ioredis').Redis} redis
 * @param {string} product
 */
export async function watchPromotes(redis, product) {
  const lua = readFileSync(join(product, 'lua', 'promote.lua'), 'utf8');
  const digest = createHash('sha1').update(lua).digest('hex');
  // A client's first call carries the text, and MONITOR escapes its lines; the name in its header stays as it is.
  const header = '-- promote: ';
  if (!lua.includes(header)) throw new Error(`lua/promote.lua has no line that begins with ${header}`);
  const leaders = new Map(PARTITIONS.map((partition) => [keyOf(partition, 'leader'), partition]));
  const added = new Map([
    ...PARTITIONS.map((partition) => /** @type {const} */ ([keyOf(partition, 'ready'), 'XADD'])),
    ...PARTITIONS.map((partition) => /** @type {const} */ ([keyOf(partition, 'line'), 'ZADD'])),
  ]);
  /** @type {Pass[]} */
  const passes = [];
  /** @type {{ partition: number, epoch: number } | undefined} */
  let current;
  const monitor = await redis.monitor();
  monitor.on(
    'monitor',
    (/** @type {string} */ time, /** @type {readonly string[]} */ args, /** @type {string} */ source) => {
      const [command = '', script = '', , leader = ''] = args;
      if (source === 'lua') {
        if (current && command === added.get(script)) {
          passes.push({ ...current, us: Math.round(Number(time) * 1e6) });
          current = undefined;
        }
        return;
      }
      const isPromote = script === digest || script.includes(header);
      current = undefined;
      if (!/^eval(sha)?$/i.test(command) || !isPromote) return;
      const partition = leaders.get(leader);
      const epoch = Number(args.find((arg) => /^[^:]+:\d+:\d+$/.test(arg))?.split(':')[1]);
      if (partition !== undefined) current = { partition, epoch };
    },
  );
  return { passes, stop: () => monitor.disconnect() };
}

const LOOK_EVERY_MS = 20;

/**
 * Which jobs have a lease, again and again: their run says who has it.
 *
 * @param {import('ioredis').Redis} redis
 * @param {number} partitions
 */
export function watchLeases(redis, partitions) {
  /** @type {import('./gates.mjs').Look[]} */
  const looks = [];
  let isOver = false;
  const look = async (/** @type {number} */ partition) => {
    const runs = Object.entries(await redis.hgetall(keyOf(partition, 'runs')));
    const leased = runs.filter(([, run]) => (run.split(' ')[6] ?? '-') !== '-');
    const running = leased.map(([member]) => member.replace(/^j:/, ''));
    looks.push({ us: Number(process.hrtime.bigint() / 1000n), running });
  };
  const ended = (async () => {
    while (!isOver) {
      await Promise.all(PARTITIONS.slice(0, partitions).map(look)).catch(() => {});
      await sleep(LOOK_EVERY_MS);
    }
  })();
  return {
    looks,
    /** Does not wait for a look that may never be answered. */
    stop() {
      isOver = true;
      ended.catch(() => {});
    },
  };
}
