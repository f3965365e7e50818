/**
 * The arguments of a script for people. `--help` prints the comment that the file begins with, so what a flag means
 * is written once; an unknown flag is told with the known ones, and ends the process with 64 before anything is done.
 */
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { parseArgs } from 'node:util';

/** @typedef {NonNullable<import('node:util').ParseArgsConfig['options']>} Options */

const USAGE_ERROR = 64;

/**
 * @template {Options} const T
 * @param {string} file of the script, `import.meta.filename`
 * @param {T} options as `parseArgs` takes them
 * @param {readonly string[]} [args]
 */
export function argumentsFor(file, options, args = process.argv.slice(2)) {
  if (args.includes('--help') || args.includes('-h')) {
    process.stdout.write(`${headerOf(file)}\n`);
    process.exit(0);
  }
  try {
    return parseArgs({ args: [...args], options }).values;
  } catch (error) {
    const known = [...Object.keys(options), 'help'].map((name) => `--${name}`).join(', ');
    const said = error instanceof Error ? error.message.replace(/\. To specify a positional.*$/s, '') : String(error);
    return refuse(file, `${said.replace(/\.$/, '')}; allowed: ${known}`);
  }
}

/**
 * A whole number among the arguments.
 *
 * @param {string} file of the script
 * @param {string} flag without its dashes
 * @param {{ given: string | undefined, otherwise: number, from: number, to: number }} range
 */
export function wholeNumber(file, flag, { given, otherwise, from, to }) {
  if (given === undefined) return otherwise;
  const number = Number(given);
  if (Number.isInteger(number) && number >= from && number <= to && given.trim() !== '') return number;
  return refuse(file, `--${flag} ${given}; allowed: a whole number from ${from} to ${to}`);
}

/**
 * @param {string} file of the script
 * @param {string} why
 * @returns {never}
 */
export function refuse(file, why) {
  process.stderr.write(`${basename(file, '.mjs')}: ${why}\n`);
  process.exit(USAGE_ERROR);
}

/** The first comment of a file, without its stars. @param {string} file */
export function headerOf(file) {
  const [, comment = ''] = /^\/\*\*\n([\s\S]*?)\n \*\//.exec(readFileSync(file, 'utf8')) ?? [];
  return comment.replaceAll(/^ \* ?/gm, '');
}
