/**
 * What happens to the disk of Redis. The power is cut: all that was not synced is gone, as the fsync shim wrote it down.
 * Or the disk is full: a small file system of its own, which needs the right to mount one.
 */
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { buildShim } from './shims.mjs';

const MIB = 2 ** 20;

/** A Redis of which is known what is on its disk. @param {string} folder @returns {Promise<import('../stage/server.mjs').Special>} */
export async function onRealDisk(folder) {
  const durable = durableIn(folder);
  mkdirSync(durable, { recursive: true });
  return { env: { LD_PRELOAD: await buildShim('fsync', folder), FSYNC_SHIM_DIR: durable } };
}

/**
 * Kills Redis and cuts every append-only file, base file and manifest to what was synced of it.
 *
 * @param {import('../stage/server.mjs').Server} server
 * @returns {Promise<{ cutBytes: number }>}
 */
export async function losePower(server) {
  server.signal('SIGKILL');
  await server.ended();
  const dir = join(server.dir, 'appendonlydir');
  let cutBytes = 0;
  for (const name of readdirSync(dir)) {
    const path = join(dir, name);
    const { ino, size } = statSync(path);
    const record = join(durableIn(join(server.dir, '..')), String(ino));
    const durable = existsSync(record) ? Number(readFileSync(record, 'utf8')) : 0;
    if (durable >= size) continue;
    truncateSync(path, durable);
    cutBytes += size - durable;
  }
  return { cutBytes };
}

/** @param {string} folder */
const durableIn = (folder) => join(folder, 'durable');

/** A Redis on a disk of a few megabytes. @param {string} folder @returns {Promise<import('../stage/server.mjs').Special>} */
export async function onSmallDisk(folder) {
  const dir = join(folder, 'redis');
  mkdirSync(dir, { recursive: true });
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=48m,mode=700', 'tmpfs', dir], { stdio: 'ignore' });
  return { release: () => execFileSync('umount', ['-l', dir], { stdio: 'ignore' }) };
}

/** Why a small disk cannot be had here, or nothing. @param {string} folder */
export function whyNoSmallDisk(folder) {
  const dir = join(folder, 'probe');
  mkdirSync(dir, { recursive: true });
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', dir], { stdio: 'ignore' });
    execFileSync('umount', [dir], { stdio: 'ignore' });
    return undefined;
  } catch {
    return 'nobody may mount a tmpfs here';
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** Somebody else writes until there is no room left. @param {string} dir */
export function fill(dir) {
  const path = join(dir, 'filler');
  for (const bytes of [MIB, 4096, 1]) {
    try {
      for (;;) writeFileSync(path, Buffer.alloc(bytes), { flag: 'a' });
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'ENOSPC')) throw error;
    }
  }
}

/** @param {string} dir */
export const free = (dir) => rmSync(join(dir, 'filler'), { force: true });
