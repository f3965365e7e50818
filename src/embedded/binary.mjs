/**
 * Judges a redis-server by running it. That the file exists says little: it may be too old, built for another system,
 * or miss a library, and all of that shows when it is asked for its version.
 */
import { execFile } from 'node:child_process';
import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { delimiter, dirname, isAbsolute, join, resolve } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const VERSION_TIMEOUT_MS = 10_000;

/** Streams, scripts and ACLs as we use them; Valkey's count begins where it left Redis 7.2. */
const OLDEST = /** @type {const} */ ({ redis: [7, 0], valkey: [7, 2] });

/** @typedef {{ readonly ok: true, readonly version: string } | { readonly ok: false, readonly reason: string }} Verdict */

/**
 * @param {string} path
 * @returns {Promise<Verdict>}
 */
export async function judge(path) {
  try {
    const { stdout } = await run(path, ['--version'], { timeout: VERSION_TIMEOUT_MS });
    return judgeVersion(stdout);
  } catch (error) {
    return { ok: false, reason: `does not run (${firstLine(error)})` };
  }
}

/**
 * @param {string} text what `--version` printed
 * @returns {Verdict}
 */
export function judgeVersion(text) {
  const found = /\bv=((\d+)\.(\d+)\S*)/.exec(text);
  if (!found) return { ok: false, reason: `is no redis-server (it says ${JSON.stringify(text.slice(0, 80))})` };
  const [, version = '', major, minor] = found;
  const kind = /valkey/i.test(text) ? 'valkey' : 'redis';
  const [oldestMajor, oldestMinor] = OLDEST[kind];
  const enough = Number(major) > oldestMajor || (Number(major) === oldestMajor && Number(minor) >= oldestMinor);
  if (enough) return { ok: true, version };
  return { ok: false, reason: `is ${kind} ${version}, too old: ${oldestMajor}.${oldestMinor} is needed` };
}

/**
 * Every program of that name, in the order of PATH.
 *
 * @param {string} name
 * @param {string} [path]
 */
export async function findOnPath(name, path = '') {
  const places = path.split(delimiter).filter((folder) => folder !== '');
  const found = await Promise.all(places.map((folder) => executable(join(resolve(folder), name))));
  return found.filter((file) => file !== undefined);
}

/**
 * The command line client that came with a server: it lies beside it.
 *
 * @param {string} serverPath
 * @param {string} [path] where to look for a server given by its name alone
 */
export async function findCli(serverPath, path) {
  const [server] = isAbsolute(serverPath) ? [serverPath] : await findOnPath(serverPath, path);
  if (!server) return undefined;
  const beside = await Promise.all(['redis-cli', 'valkey-cli'].map((name) => executable(join(dirname(server), name))));
  return beside.find((file) => file !== undefined);
}

/** @param {string} file */
export async function executable(file) {
  try {
    await access(file, constants.X_OK);
    return file;
  } catch {
    return undefined;
  }
}

/** @param {unknown} error */
export function firstLine(error) {
  const said = error instanceof Error && 'stderr' in error && typeof error.stderr === 'string' ? error.stderr : '';
  const text = said.trim() || (error instanceof Error ? error.message : String(error));
  return text.split('\n', 1)[0] ?? '';
}
