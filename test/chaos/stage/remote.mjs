/**
 * Workers over HTTP for a run: what starts a daemon that takes them, always at the address that it had before it was killed, and
 * what starts a worker for Python or, where Go is installed, for Go.
 */
import { execFile } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { findOnPath } from '../../../src/embedded/binary.mjs';
import { portSource } from '../../../src/embedded/port.mjs';

/** @typedef {{ readonly path: string, readonly args: readonly string[], readonly env: Readonly<Record<string, string>> }} Program */
/**
 * @typedef {object} Remote
 * @property {Readonly<Record<string, string>>} daemonEnv what every daemon is told
 * @property {readonly string[]} daemonArgs
 * @property {() => number} nextPort of a daemon that is not started again
 * @property {() => Program} nextWorker three of four are for Python
 */

const SLOTS = 4;
const HANDLERS = fileURLToPath(new URL('./remote/', import.meta.url));
const CLIENTS = fileURLToPath(new URL('../../../clients/', import.meta.url));
const MODULE = 'github.com/duestream/duestream/clients/go';
const run = promisify(execFile);

/**
 * @param {object} parts
 * @param {string} parts.folder of the run
 * @param {number} parts.daemons
 * @param {object} parts.settings of the queue
 * @returns {Promise<Remote>}
 */
export async function openRemote({ folder, daemons, settings }) {
  const python = await pythonOf();
  if (python === undefined) throw new Error(whyNoPython());
  const ports = await Promise.all(Array.from({ length: daemons }, portSource()));
  const urls = ports.map((port) => `http://127.0.0.1:${port}`);
  const forPython = {
    path: python,
    args: [join(HANDLERS, 'handlers.py')],
    env: { PYTHONPATH: join(CLIENTS, 'python'), PYTHONDONTWRITEBYTECODE: '1' },
  };
  const go = await goProgram(folder);
  const forGo = go === undefined ? forPython : { path: go, args: [], env: {} };
  const config = join(folder, 'daemon.json');
  writeFileSync(config, JSON.stringify({ queues: { chaos: settings } }));
  let [started, workers] = [0, 0];
  return {
    // The judge looks for the tombstones of all jobs, after runs of ten minutes too.
    daemonEnv: { DUESTREAM_HTTP__WORK: 'on', DUESTREAM_DONE__WINDOW: '2h' },
    daemonArgs: ['start', '--config', config, '--roles', 'mover,http'],
    nextPort: () => ports[started++ % ports.length] ?? 0,
    nextWorker() {
      workers += 1;
      const { env, ...program } = workers % 4 === 0 ? forGo : forPython;
      // Whoever leaves a daemon tries the next of its list: in one order all would come to the same.
      const order = workers % 2 === 0 ? urls : urls.toReversed();
      return { ...program, env: { ...env, CHAOS_DAEMONS: order.join(','), CHAOS_SLOTS: String(SLOTS) } };
    },
  };
}

/** @returns {string | undefined} */
export function whyNoPython() {
  const folders = (process.env.PATH ?? '').split(delimiter);
  return folders.some((folder) => existsSync(join(folder, 'python3'))) ? undefined : 'python3 is not on the PATH';
}

/** The program itself: one that only starts it, as managers of versions do, would be what is killed. */
async function pythonOf() {
  const [python] = await findOnPath('python3', process.env.PATH);
  if (python === undefined) return undefined;
  return (await run(python, ['-c', 'import sys; print(sys.executable)'])).stdout.trim();
}

/** @param {string} folder @returns {Promise<string | undefined>} nothing where Go cannot be had */
async function goProgram(folder) {
  const [go] = await findOnPath('go', process.env.PATH);
  if (go === undefined) return undefined;
  const cwd = join(folder, 'handlers-go');
  mkdirSync(cwd);
  copyFileSync(join(HANDLERS, 'handlers.go'), join(cwd, 'main.go'));
  const uses = `require ${MODULE} v0.0.0\nreplace ${MODULE} => ${join(CLIENTS, 'go')}\n`;
  writeFileSync(join(cwd, 'go.mod'), `module handlers\ngo 1.19\n${uses}`);
  const env = { ...process.env, GOFLAGS: '-mod=mod', GOPROXY: 'off' };
  await run(go, ['build', '-o', 'handlers', '.'], { cwd, env });
  return join(cwd, 'handlers');
}
