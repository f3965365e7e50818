/**
 * What really happened, written down by those to whom it happened. Every actor appends to a file of its own, one line
 * of JSON per event and one write per line, so that SIGKILL loses nothing that was said. Handlers write to a log of
 * their own, the effects, which stands for the store of a user: its order is the order in which effects took place. The
 * times are true, even where the clock of the actor is wrong.
 */
import { appendFileSync, existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { trueTime } from '../faults/clocks.mjs';

/**
 * @typedef {object} Event
 * @property {string} ev what happened: `enq.call`, `start`, `exit` …
 * @property {number} us microseconds of the clock that all processes of a machine share
 * @property {number} ms wall clock
 * @property {number} [shownMs] what lateness is counted from, where the clock of Redis jumps
 * @property {string} actor
 * @property {number} pid
 * @property {string} [id] of the job
 * @property {string} [token]
 * @property {number} [attempt]
 * @property {number} [due]
 * @property {string} [how]
 * @property {number} [timeoutMs] what was asked for: its handler is told to stop then
 * @property {string} [code]
 * @property {string} [priority]
 */

/**
 * @param {string} file
 * @param {string} actor
 * @returns {(ev: string, more?: Readonly<Record<string, unknown>>) => void}
 */
export function createRecorder(file, actor) {
  return (ev, more = {}) => {
    const now = trueTime(process.env.CLOCK_SHIM_FILE);
    appendFileSync(file, `${JSON.stringify({ ev, ...now, actor, pid: process.pid, ...more })}\n`);
  };
}

/**
 * @param {string} file
 * @returns {readonly Event[]}
 */
export function readEvents(file) {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, 'utf8').split('\n');
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line));
}

/**
 * The events of all files of a folder whose name ends so, in the order of their time.
 *
 * @param {string} folder
 * @param {string} ending
 */
export function readAll(folder, ending) {
  const files = readdirSync(folder).filter((name) => name.endsWith(ending));
  return files.flatMap((name) => readEvents(join(folder, name))).sort((a, b) => a.us - b.us);
}
