/**
 * A Redis of our own with its data in a folder of the project. What must hold:
 *
 *   - One server per folder. Two on the same files would destroy them, so a start happens under a lock, and a server
 *     that is there already is used (`reused`) or waited for, never doubled.
 *   - Data outlives any kill: every change goes to an append-only file that is synced each second.
 *   - No server outlives its starter (see `guard.mjs`), and nobody ends a server that somebody else started.
 *
 * The folder holds `redis.pid`, written by Redis before it loads its data, and `server.json`, written by us when it
 * answers. A pid alone proves nothing, since pids come back: a server is ours when it answers at the address in
 * `server.json` and names this folder as its own.
 */
import { mkdir, realpath, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { answersPing } from './ask.mjs';
import { EmbeddedRedisError } from './error.mjs';
import { spawnGuarded } from './guard.mjs';
import { withLock } from './lock.mjs';
import { freePort, onFreePort } from './port.mjs';
import { replaceFile } from './replace.mjs';
import { claims, findRunning, waitUntil } from './running.mjs';

/** For logs and output, wherever an embedded server is used. */
export const EMBEDDED_NOTICE =
  'Embedded Redis: for development and a single node. It ends with this process; a power failure can lose two seconds.';

export const DEFAULT_PORT = 6379;
/** A big append-only file takes its time to load. */
const READY_TIMEOUT_MS = 60_000;
const STOP_TIMEOUT_MS = 10_000;
const LOCK_TIMEOUT_MS = READY_TIMEOUT_MS + 30_000;
/** A program that left a child behind keeps its output open: then what it said so far must do. */
const LAST_WORDS_TIMEOUT_MS = 2000;
/** The kernel's limit for the path of a socket is 108 bytes on Linux and 104 elsewhere, with the final zero. */
const SOCKET_PATH_BYTES_MAX = 103;

/** @typedef {import('./ask.mjs').Address} Address */
/**
 * @typedef {object} EmbeddedSettings
 * @property {string} binary the path of a redis-server
 * @property {string} dataDir made if it is missing
 * @property {number} [port] of 127.0.0.1; the next free one is taken when it is in use. Default 6379
 * @property {string} [socket] an absolute path to listen on instead of a port
 * @property {boolean} [persistence] default true; false keeps the data in memory only
 */
/**
 * @typedef {object} EmbeddedServer
 * @property {string} url `redis://127.0.0.1:port` or `unix://path`
 * @property {number | undefined} port
 * @property {string | undefined} socketPath
 * @property {number} pid
 * @property {boolean} reused a server of this folder ran already; `stop` leaves it alone
 * @property {() => Promise<void>} stop resolves when the data is on disk and the server is gone; twice is fine
 */

/**
 * @param {EmbeddedSettings} settings
 * @returns {Promise<EmbeddedServer>}
 */
export async function startEmbedded({ binary, dataDir, port = DEFAULT_PORT, socket, persistence = true }) {
  if (socket !== undefined) checkSocketPath(socket);
  await mkdir(dataDir, { recursive: true });
  const dir = await realpath(dataDir);
  return withLock({ path: join(dir, 'start.lock'), timeoutMs: LOCK_TIMEOUT_MS }, async () => {
    const running = await findRunning(dir);
    if (running) return describe({ ...running, reused: true, stop: async () => {} });
    if (socket !== undefined) return launch({ binary, dir, address: { socketPath: socket }, persistence });
    const launchOn = (/** @type {number} */ free) => launch({ binary, dir, address: { port: free }, persistence });
    return (await onFreePort(() => freePort(port), launchOn)).started;
  });
}

/**
 * @param {{ binary: string, dir: string, address: Address, persistence: boolean }} launch
 * @returns {Promise<EmbeddedServer>}
 */
async function launch({ binary, dir, address, persistence }) {
  // Redis writes its pid into what it finds there, through a link as well.
  await rm(join(dir, 'redis.pid'), { force: true });
  const child = spawnGuarded({ path: binary, args: serverArgs(dir, address, persistence) });
  const output = lastOutput(child);
  let ended = false;
  const exit = new Promise((resolve) => {
    const onEnd = () => {
      ended = true;
      resolve(undefined);
    };
    child.once('exit', onEnd).once('error', onEnd);
  });

  // The exit can be told before the last output is read.
  const silence = new Promise((resolve) => child.once('close', resolve));

  const isUp = async () => (await answersPing(address)) && (await claims(address, dir));
  await waitUntil(async () => ended || (await isUp()), READY_TIMEOUT_MS);
  const { pid } = child;
  if (ended || pid === undefined || !(await isUp())) {
    child.kill('SIGKILL');
    await Promise.race([silence, sleep(LAST_WORDS_TIMEOUT_MS, undefined, { ref: false })]);
    throw new EmbeddedRedisError('unavailable', `${binary} did not start in ${dir}:\n${output()}`);
  }
  const record = join(dir, 'server.json');
  await replaceFile(record, `${JSON.stringify({ pid, ...address })}\n`);

  const stop = async () => {
    if (ended) return;
    child.kill('SIGTERM');
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS);
    await exit;
    clearTimeout(timer);
    await rm(record, { force: true });
  };
  return describe({ address, pid, reused: false, stop });
}

/** @param {{ address: Address } & Pick<EmbeddedServer, 'pid' | 'reused' | 'stop'>} server */
function describe({ address, pid, reused, stop }) {
  const port = 'port' in address ? address.port : undefined;
  const socketPath = 'socketPath' in address ? address.socketPath : undefined;
  const url = socketPath === undefined ? `redis://127.0.0.1:${port}` : `unix://${socketPath}`;
  return { url, port, socketPath, pid, reused, stop };
}

/**
 * @param {string} dir
 * @param {Address} address
 * @param {boolean} persistence
 */
function serverArgs(dir, address, persistence) {
  const place =
    'port' in address
      ? { port: String(address.port), bind: '127.0.0.1' }
      : { port: '0', unixsocket: address.socketPath, unixsocketperm: '700' };
  /** @type {Record<string, string>} */
  const options = {
    ...place,
    'protected-mode': 'yes',
    dir,
    pidfile: join(dir, 'redis.pid'),
    save: '',
    appendonly: persistence ? 'yes' : 'no',
    appendfsync: 'everysec',
    // Anything else would let Redis drop jobs when memory is short.
    'maxmemory-policy': 'noeviction',
    daemonize: 'no',
  };
  return Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]);
}

/** @param {string} path */
function checkSocketPath(path) {
  const bytes = Buffer.byteLength(path);
  if (path.startsWith('/') && bytes <= SOCKET_PATH_BYTES_MAX) return;
  const message = `the socket path ${path} has ${bytes} bytes; it must be absolute and at most ${SOCKET_PATH_BYTES_MAX}`;
  throw new EmbeddedRedisError('bad-config', message);
}

/**
 * Keeps what the server said last, for the error when it does not start. Reading it also keeps the pipes from filling.
 *
 * @param {import('node:child_process').ChildProcessWithoutNullStreams} child
 */
function lastOutput(child) {
  let text = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk) => {
      text = (text + chunk).slice(-4000);
    });
  }
  return () => text.trim();
}
