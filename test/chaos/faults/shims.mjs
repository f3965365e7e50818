/**
 * Libraries that lie to a process about the world, loaded with LD_PRELOAD: small C files beside this one, compiled when
 * a row needs them. Without a compiler on the PATH a small one is unpacked from Debian into the cache; nothing on the
 * system changes.
 */
import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { fetchDebianPackages } from '../../../scripts/debian.mjs';
import { findOnPath } from '../../../src/embedded/binary.mjs';

const run = promisify(execFile);
const CACHE = fileURLToPath(new URL('../../../.cache/compiler', import.meta.url));
const COMPILE_TIMEOUT_MS = 120_000;

/**
 * @param {string} name of the C file
 * @param {string} folder to put the library into
 * @returns {Promise<string>} its path, for LD_PRELOAD
 */
export async function buildShim(name, folder) {
  if (process.platform !== 'linux') throw new Error('a process can be lied to on Linux only');
  const source = fileURLToPath(new URL(`./shims/${name}.c`, import.meta.url));
  const library = join(folder, `${name}.so`);
  const { path, args } = await compiler();
  await run(path, [...args, '-O1', '-shared', '-fPIC', '-o', library, source], { timeout: COMPILE_TIMEOUT_MS });
  return library;
}

/** @returns {Promise<{ path: string, args: readonly string[] }>} */
async function compiler() {
  const found = await Promise.all(['cc', 'gcc', 'clang', 'tcc'].map((name) => findOnPath(name, process.env.PATH)));
  const path = found.flat()[0];
  if (path) return { path, args: [] };
  const { dir } = await fetchDebianPackages({ names: ['tcc', 'libc6-dev', 'linux-libc-dev'], dir: CACHE });
  const lib = join(dir, 'usr', 'lib');
  // What the system has installed already is not unpacked again, so the system's own folders stay in the search.
  const triplet = readdirSync(lib).find((entry) => entry.includes('-linux-')) ?? '';
  const include = join(dir, 'usr', 'include');
  return {
    path: join(dir, 'usr', 'bin', 'tcc'),
    // The functions of libc are found when the library is loaded, so nothing needs to be linked.
    args: ['-nostdlib', `-B${join(lib, triplet, 'tcc')}`, `-I${include}`, `-I${join(include, triplet)}`],
  };
}
