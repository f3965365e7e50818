/** Jobs that a row asks for itself, beside the workload, and what it can see of them while it goes on. */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { keyOf, PARTITIONS } from '../judge/dump.mjs';
import { readEvents } from './history.mjs';

/** @typedef {import('./scene.mjs').Scene} Scene */
/** @typedef {Omit<import('duestream').ScheduleOptions, 'id'> & { id: string, data?: object }} Extra */

/**
 * Schedules them all, and tells the judge that they were asked for.
 *
 * @param {Scene} scene
 * @param {readonly Extra[]} jobs
 */
export async function ask({ server, asked }, jobs) {
  // Only now: the rows are listed before the product is built.
  const { createClient, defineQueue } = await import('duestream');
  const producer = createClient({ redis: server.url });
  const queue = defineQueue('chaos', { partitions: PARTITIONS.length });
  try {
    await Promise.all(
      jobs.map(({ data, ...options }) => {
        asked(options.id, typeof options.timeout === 'number' ? options.timeout : undefined);
        return producer.schedule(queue, data, options);
      }),
    );
  } finally {
    await producer.close();
  }
}

/** @param {string} prefix @param {number} count */
export const idsOf = (prefix, count) => Array.from({ length: count }, (_, at) => `${prefix}-${at}`);

/**
 * Schedules a record of a version that the product's own producer does not write, with the script of whoever does.
 *
 * @param {Scene} scene
 * @param {{ lua: string, id: string, record: string, dueMs: number }} job
 */
export async function askRaw({ redis, asked }, { lua, id, record, dueMs }) {
  const keys = ['scheduled', 'jobs', 'runs', 'done', 'meta', 'wake'].map((name) => keyOf(partitionOf(id), name));
  asked(id);
  const call = ['', '0', 'keep', '315360000000', '266240', `j:${id}`, record, String(dueMs)];
  const replies = await redis.eval(lua, keys.length, ...keys, ...call);
  if (String(replies) !== 'ok') throw new Error(`schedule answered ${replies}`);
}

/** Of a job that `askRaw` put. @param {string} id */
export const partitionOf = (id) => PARTITIONS[Number(id.split('-')[1]) % PARTITIONS.length] ?? 0;

/** What handlers have written down so far. @param {Scene} scene */
export const effectsSoFar = ({ server }) => readEvents(join(dirname(server.socketPath), 'effects.jsonl'));

/**
 * How many of these jobs have had their effect.
 *
 * @param {Scene} scene
 * @param {readonly string[]} ids
 */
export function doneOf(scene, ids) {
  const done = new Set(effectsSoFar(scene).flatMap(({ ev, id = '' }) => (ev === 'effect' ? [id] : [])));
  return ids.filter((id) => done.has(id)).length;
}

/**
 * Waits for longer than `until` of the scene does. Returns how many ms it took.
 *
 * @param {number} forMs
 * @param {() => Promise<boolean> | boolean} holds
 * @param {string} what
 */
export async function within(forMs, holds, what) {
  const startedMs = performance.now();
  while (!(await holds())) {
    if (performance.now() - startedMs > forMs) throw new Error(`ran out of time after ${forMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return Math.round(performance.now() - startedMs);
}

/**
 * The lines of a log with this message, as data.
 *
 * @param {{ log: string }} actor
 * @param {string} message
 * @returns {readonly Readonly<Record<string, unknown>>[]}
 */
export function saidBy({ log }, message) {
  return readFileSync(log, 'utf8')
    .split('\n')
    .filter((line) => line.includes(`"msg":"${message}`))
    .map((line) => JSON.parse(line));
}
