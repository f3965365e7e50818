/**
 * Listens to all that Redis is told and writes down which terms really promoted, in the order in which Redis carried
 * it out. A promote that was refused moves nothing, so only those are kept whose script added to the ready stream.
 */

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
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
  const readies = new Set(PARTITIONS.map((partition) => keyOf(partition, 'ready')));
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
        if (current && command === 'XADD' && readies.has(script)) {
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
