/**
 * Handlers of the rows about load and abuse. They write down what they were given into a file of their own, so that
 * the log of effects stays that of the workload. The name of a job decides what its handler does with it.
 */
import { appendFileSync } from 'node:fs';
import { defineHandlers, defineQueue, fixed } from 'duestream';
import { isPolluted, jsonOf } from '../faults/abuse.mjs';
import { digestOf } from './load.mjs';

const FILE = process.env.CHAOS_LOAD ?? '';
const say = (/** @type {object} */ what) => appendFileSync(FILE, `${JSON.stringify(what)}\n`);

/** @type {import('duestream').Handler<unknown>} */
const count = ({ id, dueMs }) => say({ id, due: dueMs, ms: Date.now() });

/** @type {import('duestream').Handler<unknown>} */
const weigh = ({ id, data }) => say({ id, bytes: Buffer.byteLength(jsonOf(data)), digest: digestOf(jsonOf(data)) });

/**
 * What came must be what was sent and no more, and no object of this process may have got anything.
 *
 * @type {import('duestream').Handler<unknown>}
 */
const read = ({ id, data }) => say({ id, polluted: isPolluted(data), digest: digestOf(jsonOf(data)) });

/** @type {import('duestream').Handler<unknown>} */
const insult = ({ id, data }) => {
  say({ id });
  const error = new Error(String(data));
  error.name = `Rude\r\n${String(data)}`;
  error.stack = `${String(data)}\n    at ${String(data)}`;
  throw error;
};

// biome-ignore lint/style/noDefaultExport: a handler module is looked up by its default export.
export default defineHandlers(
  { load: { default: count, count, weigh, read, insult } },
  { queues: [defineQueue('load', { partitions: 1, attempts: 2, backoff: fixed('200ms') })] },
);
