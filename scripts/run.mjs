/** Other programs, run to their end. A signal to us goes on to them, and their exit status is ours to pass on. */
import { spawn } from 'node:child_process';
import { constants } from 'node:os';

/** A step that failed, with what the program printed. */
export class Failed extends Error {
  /**
   * @param {number} code the exit status to end with
   * @param {string} output
   */
  constructor(code, output) {
    super(output.trim());
    this.name = 'Failed';
    this.exitCode = code;
  }
}

/**
 * Runs a program that a person watches.
 *
 * @param {string} command
 * @param {readonly string[]} args
 * @param {{ cwd: string, env?: NodeJS.ProcessEnv }} options
 * @returns {Promise<number>} its exit status; 128 + n for signal n
 */
export function show(command, args, options) {
  return ended(spawn(command, args, { ...options, stdio: 'inherit' }));
}

/**
 * Runs a program whose output matters only when it fails.
 *
 * @param {string} command
 * @param {readonly string[]} args
 * @param {{ cwd: string, env?: NodeJS.ProcessEnv, kept?: number }} options kept: characters of output, the last ones
 * @returns {Promise<{ code: number, output: string }>}
 */
export async function capture(command, args, { kept = 100_000, ...options }) {
  const child = spawn(command, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk) => {
      output = (output + chunk).slice(-kept);
    });
  }
  return { code: await ended(child), output };
}

/**
 * Ctrl-C at a terminal reaches the whole group, so it is passed on only where there is no terminal; twice would make
 * most programs drop what they are finishing.
 *
 * @param {import('node:child_process').ChildProcess} child
 * @returns {Promise<number>}
 */
function ended(child) {
  const onInterrupt = () => {
    if (!process.stdin.isTTY) child.kill('SIGINT');
  };
  const onTerminate = () => child.kill('SIGTERM');
  process.on('SIGINT', onInterrupt).on('SIGTERM', onTerminate);
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => resolve(code ?? 128 + (signal ? constants.signals[signal] : 0)));
  }).finally(() => process.off('SIGINT', onInterrupt).off('SIGTERM', onTerminate));
}
