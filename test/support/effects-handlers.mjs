/**
 * A handler module whose only effect is a line in the file EFFECTS_FILE when it starts and another when it ends. A line
 * that was appended stays, whatever becomes of the process, so the file tells what really ran.
 *
 * A handler takes 1 ms; `data.ms` sets another time, or one for each attempt. It stops when it is told to, unless
 * `data.stubborn` says otherwise.
 */
import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { defineHandlers } from 'duestream';

const file = process.env.EFFECTS_FILE ?? '';

/** @typedef {{ readonly ms?: number | readonly number[], readonly stubborn?: boolean } | undefined} Wish */

/** @type {import('duestream').Handler<Wish>} */
const handler = async (job, { token, signal }) => {
  const { id, attempt, crashes, data, dueMs } = job;
  const note = (/** @type {'start' | 'end'} */ what) => {
    const effect = { what, id, attempt, crashes, token, pid: process.pid, ms: Date.now(), due: dueMs };
    appendFileSync(file, `${JSON.stringify(effect)}\n`);
  };
  note('start');
  const { ms = 1, stubborn } = data ?? {};
  await sleep(typeof ms === 'number' ? ms : ms[attempt - 1], undefined, stubborn ? {} : { signal });
  note('end');
};

export default defineHandlers({ effects: handler, emails: handler });
