/** What processes wrote to their logs. */
import { existsSync, readFileSync } from 'node:fs';

/**
 * How many lines a log got between two moments of the wall clock.
 *
 * @param {string} file
 * @param {number} fromMs
 * @param {number} toMs
 */
export function linesWithin(file, fromMs, toMs) {
  if (!existsSync(file)) return 0;
  return readFileSync(file, 'utf8')
    .split('\n')
    .flatMap((line) => /"time":"?([^",]+)/.exec(line)?.[1] ?? [])
    .map((time) => (/^\d+$/.test(time) ? Number(time) : Date.parse(time)))
    .filter((ms) => ms >= fromMs && ms < toMs).length;
}
