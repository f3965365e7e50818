/**
 * A lock between processes, made of a folder with its owner's name in it. No step can be half done or undone by others:
 *
 *     take     rename a folder that already holds our name onto the lock; fails while a name is in it
 *     steal    unlink the name of a dead owner, that one name and no other; the empty folder can then be taken
 *     release  unlink our own name
 *
 * A process that is killed leaves its name behind, and the next one sees that its pid is gone.
 */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { mkdir, readdir, rename, rm, unlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const POLL_MS = 50;

/** Nothing else is ever removed from a lock: a folder that holds other things is somebody's, and no lock. */
const OWNER = /^(\d+)-[0-9a-f]+$/;

/**
 * @template T
 * @param {{ path: string, timeoutMs: number }} lock
 * @param {() => Promise<T>} work
 * @returns {Promise<T>}
 */
export async function withLock({ path, timeoutMs }, work) {
  const name = `${process.pid}-${randomBytes(6).toString('hex')}`;
  await mkdir(dirname(path), { recursive: true });
  const deadlineMs = Date.now() + timeoutMs;
  while (!(await take(path, name))) {
    await evictDeadOwner(path);
    if (Date.now() > deadlineMs) throw new Error(`${path} has been locked by another process for ${timeoutMs} ms`);
    await sleep(POLL_MS);
  }
  try {
    return await work();
  } finally {
    await rm(join(path, name), { force: true });
  }
}

/**
 * @param {string} path
 * @param {string} name
 */
async function take(path, name) {
  const ours = `${path}.${name}`;
  await mkdir(ours);
  try {
    await writeFile(join(ours, name), '');
    await rename(ours, path);
    return true;
  } catch (error) {
    await rm(ours, { recursive: true, force: true });
    if (isCode(error, 'ENOTEMPTY') || isCode(error, 'EEXIST')) return false;
    throw error;
  }
}

/** @param {string} path */
async function evictDeadOwner(path) {
  const names = await readdir(path).catch(() => []);
  const stranger = names.find((name) => !OWNER.test(name));
  if (stranger !== undefined) throw new Error(`${path} is no lock: it holds ${stranger}; move it away and try again`);
  const [owner] = names;
  if (!owner || isAlive(Number.parseInt(owner, 10))) return;
  // Somebody else may have been quicker; then the name is gone and the next try tells.
  await unlink(join(path, owner)).catch(() => {});
}

/** @param {number} pid */
export function isAlive(pid) {
  try {
    process.kill(pid, 0);
  } catch (error) {
    // It runs, but belongs to somebody else.
    return isCode(error, 'EPERM');
  }
  return !isZombie(pid);
}

/**
 * In a container whose first process collects no children, the dead keep their pid for ever.
 *
 * @param {number} pid
 */
function isZombie(pid) {
  try {
    // `pid (name) state …`; a name may hold anything, even a parenthesis.
    return /\) Z [^)]*$/.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return false;
  }
}

/**
 * @param {unknown} error
 * @param {string} code
 */
export function isCode(error, code) {
  return error instanceof Error && 'code' in error && error.code === code;
}
