/** The handlers of simulated workers and their log: the same jobs as those of the chaos harness, in virtual time. */

import { DEAF_MS } from '../../chaos/stage/workload.mjs';

/** @typedef {import('./cast.mjs').Actor} Actor */
/** @typedef {{ kind: import('../../chaos/stage/workload.mjs').Kind, workMs: number }} Wish */

/**
 * @param {Actor} actor whose process a bad job takes with it
 * @returns {import('duestream').Handler<Wish>}
 */
export function handlerOf(actor) {
  return async ({ id, attempt, failures, crashes, data, dueMs }, { token, signal }) => {
    const note = (/** @type {string} */ ev, /** @type {object} */ more = {}) =>
      actor.note(ev, { id, token, attempt, ...more });
    note('start', { due: dueMs });
    const isDeaf = data.kind === 'deaf' && attempt === 1;
    try {
      if (isDeaf) await sleep(DEAF_MS);
      else await sleep(data.workMs, signal);
    } catch (error) {
      note('finish', { how: 'aborted' });
      throw error;
    }
    if (data.kind === 'poison' || (data.kind === 'crash' && crashes === 0)) {
      actor.crash();
      await new Promise(() => {});
    }
    if (isDeaf || (failures === 0 && (data.kind === 'throw' || data.kind === 'odd'))) {
      note('finish', { how: 'error' });
      throw new Error('planned');
    }
    note('effect');
    note('finish', { how: 'ok' });
  };
}

/** @param {number} ms @param {AbortSignal} [signal] @returns {Promise<void>} */
export function sleep(ms, signal) {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const onAbort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    }, ms);
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}
