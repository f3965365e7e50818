/**
 * Handlers of the rows about load and abuse. They write down what they were given into a file of their own, so that
 * the log of effects stays that of the workload. The name of a job decides what its handler does with it.
 */
import { createHash } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import { defineHandlers, defineQueue, fixed } from 'duestream';

const FILE = process.env.CHAOS_LOAD ?? '';
const say = (/** @type {object} */ what) => appendFileSync(FILE, `${JSON.stringify(what)}\n`);

/** @type {import('duestream').Handler<unknown>} */
const count = ({ id, dueMs }) => say({ id, due: dueMs, ms: Date.now() });

/** @type {import('duestream').Handler<unknown>} */
const weigh = ({ id, data }) => {
  const text = JSON.stringify(data) ?? '';
  say({ id, bytes: Buffer.byteLength(text), digest: createHash('sha256').update(text).digest('hex') });
};

/**
 * Reads what a careless handler would, after which no object of this process may have got anything it never had.
 *
 * @type {import('duestream').Handler<unknown>}
 */
const read = ({ id, data }) => {
  const copy = { ...(typeof data === 'object' ? data : {}) };
  const bare = /** @type {Record<string, unknown>} */ ({});
  say({ id, polluted: 'polluted' in bare || 'polluted' in [] || 'polluted' in copy });
};

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
