/** What processes wrote to their logs. */
import { existsSync, readFileSync } from 'node:fs';

/**
 * How many lines a log got at most in any stretch of so many ms that begins at a moment of the wall clock or later,
 * without the one that every failure of a job gets.
 *
 * @param {string} file
 * @param {{ fromMs: number, forMs: number }} when
 */
export function mostLinesIn(file, { fromMs, forMs }) {
  if (!existsSync(file)) return 0;
  const moments = readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => !line.includes('"msg":"job failed'))
    .flatMap((line) => /"time":"?([^",]+)/.exec(line)?.[1] ?? [])
    .map((time) => (/^\d+$/.test(time) ? Number(time) : Date.parse(time)))
    .filter((ms) => ms >= fromMs)
    .sort((a, b) => a - b);
  let [most, first] = [0, 0];
  for (const [at, ms] of moments.entries()) {
    while (ms - (moments[first] ?? ms) >= forMs) first += 1;
    most = Math.max(most, at - first + 1);
  }
  return most;
}

const OUTCRY = /uncaught|unhandled|nobody listened|^\s+at .+:\d+:\d+\)?$|^\w*Error: /i;

/**
 * The lines that tell of an error which nobody caught, as Node.js prints them or as our own processes log them.
 *
 * @param {string} file
 */
export function outcriesIn(file) {
  if (!existsSync(file)) return [];
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => OUTCRY.test(line))
    .map((line) => line.slice(0, 300));
}

/**
 * The lines of a log that say something.
 *
 * @param {string} file
 * @param {string} words
 * @returns {readonly { line: string, ms: number }[]}
 */
export function said(file, words) {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line.includes(words));
  return lines.map((line) => ({ line, ms: Date.parse(/"time":"?([^",]+)/.exec(line)?.[1] ?? '') }));
}
