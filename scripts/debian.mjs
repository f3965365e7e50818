/**
 * Debian packages without installing them: the system's own apt chooses, downloads and verifies, and we unpack into a
 * private folder. Nothing on the system changes, no service starts, and no root is needed, because apt's state (its
 * lists, its caches) is private too, and the commands that a system lets apt run after an update are not run: as root
 * they would write to its caches, or empty them. What the system has installed is not fetched again.
 *
 * The environment is passed on whole: with a stripped PATH apt does not find gpgv and calls good archives unsigned.
 */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { access, mkdir, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findOnPath, firstLine } from '../src/embedded/binary.mjs';
import { isCode, withLock } from '../src/embedded/lock.mjs';
import { replaceFile } from '../src/embedded/replace.mjs';

const run = promisify(execFile);
const APT_TIMEOUT_MS = 120_000;
const LOCK_TIMEOUT_MS = 5 * 60_000;

/** Read after the system's own settings, which `-o` could only add to. */
const NO_HOOKS = '#clear APT::Update;\n#clear AptCli::Hooks;\n';

/** @typedef {import('../src/embedded/resolve.mjs').Env} Env */
/** @typedef {import('../src/embedded/resolve.mjs').Log} Log */

/**
 * Unpacks packages, with what they depend on and the system lacks, below `dir`: `dir/usr/bin/…`. An existing `dir` is
 * taken as complete, because it appears by one rename.
 *
 * @param {{ names: readonly string[], dir: string, stateDir?: string, env?: Env, log?: Log }} wanted `stateDir` keeps
 *   apt's lists and the archives, so that the next time downloads nothing. Default: beside `dir`.
 * @returns {Promise<{ dir: string, packages: string[] }>} packages: what was unpacked now, as `name=version`
 */
export async function fetchDebianPackages({ names, dir, stateDir = `${dir}.apt`, env = process.env, log = () => {} }) {
  if (!(await hasApt(env))) throw new Error('apt-get and dpkg-deb are not on PATH');
  return withLock({ path: `${stateDir}.lock`, timeoutMs: LOCK_TIMEOUT_MS }, async () => {
    if (await exists(dir)) return { dir, packages: [] };
    const { packages, archives } = await download({ names, stateDir, env, log });
    const unpacked = `${dir}.${randomBytes(6).toString('hex')}`;
    try {
      await mkdir(unpacked, { recursive: true });
      for (const archive of archives)
        await run('dpkg-deb', ['-x', archive, unpacked], { env, timeout: APT_TIMEOUT_MS });
      await rename(unpacked, dir);
    } catch (error) {
      await rm(unpacked, { recursive: true, force: true });
      throw error;
    }
    return { dir, packages };
  });
}

/** @param {Env} env */
export async function hasApt(env) {
  const tools = await Promise.all(['apt-get', 'dpkg-deb'].map((name) => findOnPath(name, env.PATH)));
  return tools.every((found) => found.length > 0);
}

/**
 * The system's apt with lists, archives and caches of our own below `stateDir`.
 *
 * @param {{ stateDir: string, env: Env }} where
 */
export async function privateApt({ stateDir, env }) {
  const lists = join(stateDir, 'lists');
  const archivesDir = join(stateDir, 'archives');
  const cache = join(stateDir, 'cache');
  const settings = join(stateDir, 'apt.conf');
  await mkdir(join(lists, 'partial'), { recursive: true });
  await mkdir(join(cache, 'archives', 'partial'), { recursive: true });
  await mkdir(archivesDir, { recursive: true });
  await replaceFile(settings, NO_HOOKS);

  const common = ['-q', '-c', settings, '-o', 'Debug::NoLocking=1', '-o', 'APT::Sandbox::User='];
  // A system may have given each of them a path of its own. Without the two files (70 MB) apt reads the lists anew.
  common.push('-o', `Dir::Cache=${cache}`, '-o', `Dir::Cache::archives=${join(cache, 'archives')}`);
  common.push('-o', 'Dir::Cache::pkgcache=', '-o', 'Dir::Cache::srcpkgcache=');
  return {
    lists,
    archivesDir,
    /** Of `apt`: reads and writes our lists instead of the system's. */
    ownLists: ['-o', `Dir::State::lists=${lists}`],
    /** @param {readonly string[]} options @param {readonly string[]} args @returns {Promise<{ stdout: string }>} */
    apt: (options, args) =>
      run('apt-get', [...common, ...options, ...args], {
        cwd: archivesDir,
        env: { ...env, LC_ALL: 'C', DEBIAN_FRONTEND: 'noninteractive' },
        timeout: APT_TIMEOUT_MS,
        maxBuffer: 16 << 20,
      }),
  };
}

/**
 * Asks the system's package lists first. They may be missing (slim images) or name a version that the mirror has
 * dropped since; then private lists are asked, and at last private lists made new.
 *
 * @param {{ names: readonly string[], stateDir: string, env: Env, log: Log }} wanted
 */
async function download({ names, stateDir, env, log }) {
  const { lists, archivesDir, ownLists, apt } = await privateApt({ stateDir, env });
  /** @param {readonly string[]} options */
  const attempt = async (options) => {
    const { stdout } = await apt(options, ['-s', '--no-install-recommends', 'install', ...names]);
    const packages = plannedPackages(stdout);
    if (packages.length > 0) log(`downloading ${packages.length} Debian packages for ${names.join(', ')}`);
    // An archive that lies there already, with the right checksum, is not downloaded again.
    if (packages.length > 0) await apt(options, ['download', ...packages]);
    return { packages, archives: await archivesOf(archivesDir, packages) };
  };

  try {
    return await attempt([]);
  } catch {
    // The next lists may know better; the last attempt reports.
  }
  if ((await readdir(lists)).some((name) => name.includes('_Packages'))) {
    try {
      return await attempt(ownLists);
    } catch {
      // They may be old by now.
    }
  }
  log('reading the Debian package lists (privately, about 10 MB)');
  // One broken third-party source fails the update but not the packages we need, so the attempt decides.
  const update = await apt(ownLists, ['update']).then(() => undefined, firstLine);
  try {
    return await attempt(ownLists);
  } catch (error) {
    const reason = update === undefined ? firstLine(error) : `${firstLine(error)} (apt-get update: ${update})`;
    throw new Error(`apt-get cannot fetch ${names.join(', ')}: ${reason}`, { cause: error });
  }
}

/**
 * `Inst libjemalloc2 (5.3.0-1 Debian:12/stable [amd64])`; the old version stands in brackets before an upgrade.
 *
 * @param {string} simulation
 */
export function plannedPackages(simulation) {
  const planned = [...simulation.matchAll(/^Inst (\S+) (?:\[[^\]]*\] )?\((\S+)/gm)];
  return planned.map(([, name, version]) => `${name}=${version}`);
}

/**
 * `redis-tools=5:7.0.15-1` lies in `redis-tools_5%3a7.0.15-1_amd64.deb`.
 *
 * @param {string} archivesDir
 * @param {string[]} packages
 */
export async function archivesOf(archivesDir, packages) {
  const files = await readdir(archivesDir);
  return packages.map((wanted) => {
    const [name = '', version = ''] = wanted.split('=');
    const prefix = `${name.split(':', 1)[0]}_${version.replaceAll(':', '%3a')}_`;
    const file = files.find((candidate) => candidate.startsWith(prefix) && candidate.endsWith('.deb'));
    if (!file) throw new Error(`apt-get downloaded no archive for ${wanted}`);
    return join(archivesDir, file);
  });
}

/** @param {string} path */
async function exists(path) {
  try {
    await access(path);
    return true;
  } catch (error) {
    if (isCode(error, 'ENOENT')) return false;
    throw error;
  }
}
