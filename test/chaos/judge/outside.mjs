/**
 * Asks the judge from outside: writes what was seen as a history of Jepsen, and looks whether each job can have lived as
 * it did. `npm run chaos -- --keep` keeps both files: `history.edn` is of jobs, `register.edn` of registers, for checkers
 * that know nothing of jobs.
 */
import { closeSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { judge, textOf } from '../outside/history.mjs';
import { recorded } from '../outside/recorded.mjs';

/** Larger runs are judged as well, and not written down. */
const WRITTEN_MAX = 20_000;

/**
 * @param {string} folder of the run
 * @param {import('../outside/recorded.mjs').Told} told
 */
export function judgeOutside(folder, told) {
  const { lines, registers, leftOut } = recorded(told);
  const { objects, operations, flaws } = judge(lines, 'job');
  if (objects <= WRITTEN_MAX) {
    write(join(folder, 'history.edn'), lines);
    write(join(folder, 'register.edn'), registers);
  }
  const anomalies = flaws.map(({ key, stuck: { f, value } }) => ({
    kind: 'NOT-LINEAR',
    id: key,
    detail: `no order of its calls allows ${f} ${JSON.stringify(value)}`,
  }));
  return { anomalies, counts: { outside: objects, outsideCalls: operations, outsideLeftOut: leftOut } };
}

/** @param {string} path @param {readonly import('../outside/history.mjs').Line[]} lines */
function write(path, lines) {
  const file = openSync(path, 'w');
  try {
    for (const line of textOf(lines)) writeSync(file, line);
  } finally {
    closeSync(file);
  }
}
