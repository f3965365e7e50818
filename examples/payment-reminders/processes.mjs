/**
 * The daemons and workers as real processes, started as anybody would start them. Each writes its log to a file, and is
 * ended only by the pid we were given. None outlives us, even if we are killed: the guard ends it then.
 */
import { execFile } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { spawnGuarded } from '../../src/embedded/guard.mjs';

const MAIN = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
const STOP_MS = 8000;
const ASK_MS = 60_000;

/**
 * @typedef {object} Running
 * @property {string} name
 * @property {number} pid
 * @property {Promise<void>} exited
 * @property {() => boolean} alive
 * @property {(signal: NodeJS.Signals) => void} signal
 */

/**
 * @param {{ logDir: string, env: Readonly<Record<string, string>>, onUnexpectedExit: (name: string) => void }} crew
 */
export function createCrew({ logDir, env, onUnexpectedExit }) {
  /** @type {Running[]} */
  const all = [];
  let stopping = false;
  inheritOnly(env);

  /**
   * @param {string} name for people, and for its log
   * @param {readonly string[]} args of the command `duestream`
   * @returns {Running}
   */
  const start = (name, args) => {
    const child = spawnGuarded({ path: process.execPath, args: [MAIN, ...args] });
    const log = createWriteStream(join(logDir, `${name.replaceAll(' ', '-')}.log`));
    child.stdout.pipe(log, { end: false });
    child.stderr.pipe(log, { end: false });
    let alive = true;
    let wanted = false;
    const exited = new Promise((/** @type {(value: void) => void} */ resolve) => {
      const ended = () => {
        if (!alive) return;
        alive = false;
        if (!stopping && !wanted) onUnexpectedExit(name);
        resolve();
      };
      child.once('exit', ended).once('error', ended);
      // What it said last may come after its end.
      child.once('close', () => log.end());
    });
    const running = {
      name,
      pid: child.pid ?? 0,
      exited,
      alive: () => alive,
      signal: (/** @type {NodeJS.Signals} */ signal) => {
        wanted ||= signal === 'SIGKILL';
        if (alive) child.kill(signal);
      },
    };
    all.push(running);
    return running;
  };

  /** Asks everybody to leave, and makes those leave who do not. */
  const stop = async () => {
    stopping = true;
    // A process that was stopped with SIGSTOP hears nothing else.
    for (const running of all)
      for (const signal of /** @type {const} */ (['SIGCONT', 'SIGTERM'])) running.signal(signal);
    const timer = setTimeout(() => kill(all), STOP_MS);
    await Promise.all(all.map(({ exited }) => exited));
    clearTimeout(timer);
  };

  return { start, stop };
}

/**
 * Runs the command `duestream` as an operator would, with the settings of the crew.
 *
 * @param {readonly string[]} args
 * @returns {Promise<string>} what it said
 */
export async function ask(args) {
  const { stdout } = await promisify(execFile)(process.execPath, [MAIN, ...args], { timeout: ASK_MS });
  return stdout.trimEnd();
}

/** @param {readonly Running[]} list */
function kill(list) {
  for (const running of list) running.signal('SIGKILL');
}

/**
 * Processes inherit our environment: settings that somebody made for a duestream of theirs are not for these.
 *
 * @param {Readonly<Record<string, string>>} env
 */
function inheritOnly(env) {
  for (const name of Object.keys(process.env)) if (name.startsWith('DUESTREAM_')) delete process.env[name];
  Object.assign(process.env, env);
}
