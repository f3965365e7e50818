/**
 * The private copy of redis-server. It lies in `server/` of the cache folder, appears there by one rename, and is never
 * changed afterwards: who finds it sees all of it.
 *
 *     cache/server/bin/redis-server   what to run: a two-line script that knows the libraries, or a link
 *     cache/server/root/usr/…         the unpacked packages, if it came from Debian
 *     cache/apt/                      apt's lists and the archives
 */
import { randomBytes } from 'node:crypto';
import { chmod, mkdir, readdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { executable, findOnPath, judge } from './binary.mjs';
import { fetchDebianPackages, hasApt } from './debian.mjs';
import { isCode, withLock } from './lock.mjs';

const INSTALL_TIMEOUT_MS = 5 * 60_000;

/**
 * In Debian `redis-server` is only a link to `redis-check-rdb`, and redis-tools (1 MB) already holds that program. The
 * others are for releases that pack it differently or have Valkey instead.
 */
const PACKAGES = ['redis-tools', 'redis-server', 'valkey-tools', 'valkey-server'];
const PROGRAMS = ['redis-server', 'valkey-server', 'redis-check-rdb', 'valkey-check-rdb'];

/** @param {string} cacheDir */
export const cachedServer = (cacheDir) => join(cacheDir, 'server', 'bin', 'redis-server');

/**
 * Fills the cache from what Debian has: a copy that is installed under another name, else its packages.
 *
 * @param {{ cacheDir: string, env: import('./debian.mjs').Env, log: import('./debian.mjs').Log }} where
 * @returns {Promise<string>} the path of a server that passed; rejects with the reasons of all that did not
 */
export async function installServer({ cacheDir, env, log }) {
  if (!(await hasApt(env))) throw new Error('this system has no apt-get and dpkg-deb');
  return withLock({ path: join(cacheDir, 'install.lock'), timeoutMs: INSTALL_TIMEOUT_MS }, async () => {
    // Another process may have done the work while we waited for the lock.
    if ((await judge(cachedServer(cacheDir))).ok) return cachedServer(cacheDir);
    const draft = join(cacheDir, `draft-${process.pid}-${randomBytes(4).toString('hex')}`);
    const reasons = [];
    /** @param {string} name */
    const unpack = async (name) => {
      const root = join(draft, 'root');
      await fetchDebianPackages({ names: [name], dir: root, stateDir: join(cacheDir, 'apt'), env, log });
      return wrap(draft, name);
    };
    try {
      for (const candidate of [() => linkInstalled(draft, env), ...PACKAGES.map((name) => () => unpack(name))]) {
        await rm(draft, { recursive: true, force: true });
        const reason = await candidate().catch((error) => String(error instanceof Error ? error.message : error));
        if (reason === undefined) return await publish(draft, cacheDir);
        reasons.push(reason);
      }
    } finally {
      await rm(draft, { recursive: true, force: true });
    }
    throw new Error([...new Set(reasons)].join('; '));
  });
}

/**
 * Where redis-tools is installed the server is there already, under the name of the checker. The program looks at the
 * name it is called by.
 *
 * @param {string} draft
 * @param {import('./debian.mjs').Env} env
 * @returns {Promise<string | undefined>} why it gave no server
 */
async function linkInstalled(draft, env) {
  const path = [env.PATH ?? '', '/usr/bin'].join(':');
  const [checker] = await findOnPath('redis-check-rdb', path);
  if (!checker) return 'no redis-check-rdb is installed';
  const bin = join(draft, 'bin');
  await mkdir(bin, { recursive: true });
  await symlink(checker, join(bin, 'redis-server'));
  const cli = await executable(join(dirname(checker), 'redis-cli'));
  if (cli) await symlink(cli, join(bin, 'redis-cli'));
  return check(join(bin, 'redis-server'), checker);
}

/**
 * Programs get a script that names the unpacked libraries, so that nobody who runs them needs to know.
 *
 * @param {string} draft
 * @param {string} name of the package, for the reason
 * @returns {Promise<string | undefined>}
 */
async function wrap(draft, name) {
  const root = join(draft, 'root');
  const programs = await Promise.all(PROGRAMS.map((program) => executable(join(root, 'usr', 'bin', program))));
  const program = programs.find((file) => file !== undefined);
  if (!program) return `the package ${name} holds no server`;
  const libraries = await libraryFolders(root);
  const bin = join(draft, 'bin');
  await mkdir(bin, { recursive: true });
  // The link gives the checker the name that makes it a server.
  await symlink(basename(program), join(dirname(program), 'duestream-redis-server'));
  await writeScript(join(bin, 'redis-server'), 'usr/bin/duestream-redis-server', libraries);
  for (const cli of ['redis-cli', 'valkey-cli']) {
    if (await executable(join(root, 'usr', 'bin', cli))) await writeScript(join(bin, cli), `usr/bin/${cli}`, libraries);
  }
  return check(join(bin, 'redis-server'), `the package ${name}`);
}

/**
 * @param {string} file
 * @param {string} program below the root
 * @param {readonly string[]} libraries below the root
 */
async function writeScript(file, program, libraries) {
  const folders = libraries.map((folder) => `$root/${folder}`).join(':');
  const setting = folders ? `LD_LIBRARY_PATH="${folders}\${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" ` : '';
  await writeFile(file, `#!/bin/sh\nroot=\${0%/*}/../root\n${setting}exec "$root/${program}" "$@"\n`);
  await chmod(file, 0o755);
}

/** @param {string} root */
async function libraryFolders(root) {
  const folders = new Set();
  for (const base of ['usr/lib', 'lib']) {
    const entries = await readdir(join(root, base), { recursive: true }).catch(() => []);
    for (const entry of entries) if (/\.so(\.|$)/.test(basename(entry))) folders.add(dirname(join(base, entry)));
  }
  return [...folders];
}

/**
 * @param {string} server
 * @param {string} label
 */
async function check(server, label) {
  const verdict = await judge(server);
  return verdict.ok ? undefined : `${label} ${verdict.reason}`;
}

/**
 * @param {string} draft
 * @param {string} cacheDir
 */
async function publish(draft, cacheDir) {
  const target = join(cacheDir, 'server');
  try {
    await rename(draft, target);
  } catch (error) {
    if (!isCode(error, 'ENOTEMPTY') && !isCode(error, 'EEXIST') && !isCode(error, 'ENOTDIR')) throw error;
    // What lies there does not run; the check under the lock said so.
    const broken = `${draft}-broken`;
    await rename(target, broken);
    await rename(draft, target);
    await rm(broken, { recursive: true, force: true });
  }
  return cachedServer(cacheDir);
}
