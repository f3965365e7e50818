/**
 * Is there a server on this folder already? The answer must be right: "no" by mistake lets two servers write the same
 * files, "yes" by mistake hands out an address where nobody answers a moment later.
 */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { ask } from './ask.mjs';
import { EmbeddedRedisError } from './error.mjs';
import { isAlive } from './lock.mjs';

const run = promisify(execFile);

/** A server whose starter was killed is about to go: its watcher has told it, and it obeys at its next 100 ms tick. */
const LEAVING_MS = 300;
const GONE_TIMEOUT_MS = 10_000;
const POLL_MS = 20;

/** @typedef {{ readonly pid: number, readonly address: import('./ask.mjs').Address }} Running */

/**
 * @param {string} dir the real path
 * @returns {Promise<Running | undefined>} undefined when a server may be started; rejects when one is stuck there
 */
export async function findRunning(dir) {
  const pid = await pidOf(dir);
  if (pid === undefined || !isAlive(pid)) return undefined;
  const running = await ours(dir, pid);
  if (running) {
    await sleep(LEAVING_MS);
    if (await ours(dir, pid)) return running;
  }
  // Pids come back: the file may name a stranger by now.
  if (!(await isRedis(pid))) return undefined;
  if (await waitUntil(async () => !isAlive(pid), GONE_TIMEOUT_MS)) return undefined;
  const message = `the server with pid ${pid} holds ${dir} but does not answer; end it and try again`;
  throw new EmbeddedRedisError('unavailable', message);
}

/**
 * @param {() => Promise<boolean>} condition
 * @param {number} timeoutMs
 * @returns {Promise<boolean>} false when the time was up first
 */
export async function waitUntil(condition, timeoutMs) {
  const deadlineMs = Date.now() + timeoutMs;
  while (!(await condition())) {
    if (Date.now() > deadlineMs) return false;
    await sleep(POLL_MS);
  }
  return true;
}

/**
 * Whether the server at an address says that this folder is its own. Another one may have taken the port.
 *
 * @param {import('./ask.mjs').Address} address
 * @param {string} dir the real path
 */
export async function claims(address, dir) {
  const reply = await ask(address, ['CONFIG', 'GET', 'dir']).catch(() => undefined);
  return Array.isArray(reply) && reply[1] === dir;
}

/** @param {string} dir */
async function pidOf(dir) {
  const text = await readFile(join(dir, 'redis.pid'), 'utf8').catch(() => '');
  const pid = Number.parseInt(text, 10);
  return pid > 0 ? pid : undefined;
}

/**
 * The server at the recorded address, if it says that this folder is its own.
 *
 * @param {string} dir
 * @param {number} pid
 * @returns {Promise<Running | undefined>}
 */
async function ours(dir, pid) {
  try {
    const record = JSON.parse(await readFile(join(dir, 'server.json'), 'utf8'));
    const address = record.socketPath ? { socketPath: String(record.socketPath) } : { port: Number(record.port) };
    return record.pid === pid && (await claims(address, dir)) ? { pid, address } : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Where the system cannot tell, the answer is yes: an error is better than two servers.
 *
 * @param {number} pid
 */
async function isRedis(pid) {
  const ps = () => run('ps', ['-o', 'args=', '-p', String(pid)]).then(({ stdout }) => stdout);
  const command = await readFile(`/proc/${pid}/cmdline`, 'utf8')
    .catch(ps)
    .catch(() => 'redis');
  return /redis|valkey/.test(command);
}
