/**
 * A handler module whose only effect is a line in the file EFFECTS_FILE when it starts and another when it ends. A line
 * that was appended stays, whatever becomes of the process, so the file tells what really ran.
 *
 * A handler takes 5 to 60 ms, by the job's id; `data.ms` sets another time. It stops when it is told to, unless
 * `data.stubborn` says otherwise.
 */
import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { defineHandlers } from 'duestream';

const file = process.env.EFFECTS_FILE ?? '';

/** @typedef {{ readonly ms?: number, readonly stubborn?: boolean } | undefined} Wish */

/** @type {import('duestream').Handler<Wish>} */
const handler = async (job, { token, signal }) => {
  const { id, attempt, crashes, data, dueMs } = job;
  const note = (/** @type {'start' | 'end'} */ what) => {
    const effect = { what, id, attempt, crashes, token, pid: process.pid, ms: Date.now(), due: dueMs };
    appendFileSync(file, `${JSON.stringify(effect)}\n`);
  };
  note('start');
  await sleep(data?.ms ?? 5 + (seedOf(id) % 56), undefined, data?.stubborn ? {} : { signal });
  note('end');
};

export default defineHandlers({ effects: handler, emails: handler });

/** @param {string} id */
function seedOf(id) {
  let seed = 2_166_136_261;
  for (const char of id) seed = Math.imul(seed ^ char.charCodeAt(0), 16_777_619) >>> 0;
  return seed;
}
