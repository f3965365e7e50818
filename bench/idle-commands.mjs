/**
 * Which commands Redis carries out in a time, by what asks for them: each script with the commands it calls, and each
 * command that comes over a connection by itself. MONITOR shows a script before the commands of that script.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { namesIn } from '../lua/assemble.mjs';
import { root } from '../scripts/steps.mjs';
import { rounded } from './parts.mjs';

/** Of all kinds, those of scripts included. @param {import('ioredis').Redis} redis */
export async function commandsOf(redis) {
  return commandsIn(await redis.info('commandstats'));
}

/** @param {string} info of the section commandstats */
export function commandsIn(info) {
  return [...info.matchAll(/^cmdstat_(?!monitor|config)[^:]+:calls=(\d+)/gm)].reduce(
    (sum, [, calls]) => sum + Number(calls),
    0,
  );
}

/**
 * Commands per second by who asks, the most first.
 *
 * @param {import('ioredis').Redis} redis
 * @param {number} forMs
 * @returns {Promise<Readonly<Record<string, number>>>}
 */
export async function commandsByScript(redis, forMs) {
  const scripts = new Map(namesIn('verbs').map((verb) => [shaOf(verb), verb]));
  /** @type {Map<string, number>} */
  const counts = new Map();
  let asks = '';
  const monitor = await redis.monitor();
  monitor.on('monitor', (_time, args, source) => {
    const [command = '', sha = ''] = args;
    const name = command.toLowerCase();
    if (source !== 'lua') asks = scripts.get(sha) ?? name.toUpperCase();
    counts.set(asks, (counts.get(asks) ?? 0) + 1);
  });
  await sleep(forMs);
  monitor.disconnect();
  const sorted = [...counts].sort(([, one], [, other]) => other - one);
  return Object.fromEntries(sorted.map(([name, count]) => [name, rounded(count / (forMs / 1000))]));
}

/** @param {string} verb */
export const shaOf = (verb) =>
  createHash('sha1')
    .update(readFileSync(`${root}lua/${verb}.lua`))
    .digest('hex');
