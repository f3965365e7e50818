/**
 * The handlers of the workload. Their only effect is a line in the log of effects. What a job's data says decides
 * whether its handler returns, throws once, throws something odd once, or takes its worker with it, once or always.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { defineHandlers, defineQueue } from 'duestream';
import { misbehave } from '../faults/misdeeds.mjs';
import { PARTITIONS } from '../judge/dump.mjs';
import { createRecorder } from './history.mjs';

const partitions = Number(process.env.CHAOS_PARTITIONS ?? PARTITIONS.length);
/** @type {Readonly<Record<'concurrency' | 'perGroup', number>> | {}} */
const gates = JSON.parse(process.env.CHAOS_GATES ?? '{}');
const write = createRecorder(process.env.CHAOS_EFFECTS ?? '', `worker-${process.pid}`);

/** @typedef {{
 *   readonly kind?: import('./workload.mjs').Kind | import('../faults/misdeeds.mjs').Misdeed,
 *   readonly workMs?: number,
 *   readonly blockMs?: number,
 * } | undefined} Wish */

/** @type {import('duestream').Handler<Wish>} */
const handler = async ({ id, attempt, failures, crashes, data, dueMs }, { token, signal }) => {
  const note = (/** @type {string} */ ev, /** @type {object} */ more = {}) =>
    write(ev, { id, token, attempt, ...more });
  const kind = data?.kind ?? 'plain';
  note('start', { due: dueMs, crashes, failures });
  const moreMs = await misbehave(kind, { attempt, blockMs: data?.blockMs ?? 0, note });
  try {
    await sleep((data?.workMs ?? 5) + moreMs, undefined, { signal });
  } catch (error) {
    note('finish', { how: 'aborted' });
    throw error;
  }
  if (kind === 'poison' || (kind === 'crash' && crashes === 0)) {
    note('crash');
    process.kill(process.pid, 'SIGKILL');
  }
  if (kind === 'fail' || (failures === 0 && (kind === 'throw' || kind === 'odd'))) {
    note('finish', { how: 'error' });
    throw kind === 'odd' ? oddity(id) : new Error('planned');
  }
  note('effect');
  note('finish', { how: 'ok' });
};

// biome-ignore lint/style/noDefaultExport: a handler module is looked up by its default export.
export default defineHandlers(
  { chaos: { default: handler } },
  { queues: [defineQueue('chaos', { partitions, ...gates })] },
);

/**
 * Things that JavaScript lets a handler throw.
 *
 * @param {string} id
 * @returns {unknown}
 */
function oddity(id) {
  /** @type {Record<string, unknown>} */
  const circular = {};
  circular.self = circular;
  const trap = {
    get message() {
      throw new Error('a getter that throws');
    },
  };
  const huge = new Error('huge');
  huge.stack = 'x'.repeat(10_000_000);
  const all = [undefined, null, 'text', Object.freeze(new Error('frozen')), circular, trap, huge, Symbol('odd')];
  return all[Number(id.split('-')[1]) % all.length];
}
