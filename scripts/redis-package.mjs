/**
 * The Redis of this repository: `npm run demo`, `npm test` and the bench take what `duestream dev` would take, and where that
 * is nothing, one that needs no manual step:
 *
 *     cache   the cache folder   our private copy from an earlier time
 *     apt     Debian, Ubuntu     the distribution's package, unpacked into the cache folder
 *
 * The private copy of redis-server. It lies in `server/` of the cache folder, appears there by one rename, and is never
 * changed afterwards: who finds it sees all of it.
 *
 *     cache/server/bin/redis-server     what to run: a script of three lines that knows the libraries
 *     cache/server/links/redis-server   a link to the program, by the name that makes it a server
 *     cache/server/root/usr/…           the unpacked packages, if it came from Debian
 *     cache/apt/                        apt's lists and the archives
 *
 * The program may be the system's own. So nothing in `bin` is a link: whoever writes to a path that we hand out, a
 * person who repairs the cache or a test that spoils it, changes a file of the cache and not `/usr/bin/redis-check-rdb`.
 */
import { randomBytes } from 'node:crypto';
import { mkdir, readdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { executable, findOnPath, firstLine, judge } from '../src/embedded/binary.mjs';
import { isCode, withLock } from '../src/embedded/lock.mjs';
import { firstGood, resolveRedis, STEPS } from '../src/embedded/resolve.mjs';
import { fetchDebianPackages, hasApt } from './debian.mjs';

/** @typedef {import('../src/embedded/resolve.mjs').Search} Search */
/** @typedef {import('../src/embedded/resolve.mjs').Answer} Answer */

/** @param {Partial<Search> & { readonly cacheDir: string }} search */
export function findRedis({ cacheDir, ...search }) {
  return resolveRedis({
    ...search,
    steps: { ...STEPS, cache: (given) => fromCache(cacheDir, given), apt: (given) => fromApt(cacheDir, given) },
  });
}

/** @param {string} cacheDir @param {Search} search @returns {Promise<Answer>} */
async function fromCache(cacheDir, { env, log }) {
  const path = cachedServer(cacheDir);
  const [copy] = await findOnPath('redis-server', join(path, '..'));
  if (!copy) return { reason: `there is no copy in ${cacheDir}` };
  return firstGood([copy], { source: 'cache', env, log });
}

/** @param {string} cacheDir @param {Search} search @returns {Promise<Answer>} */
async function fromApt(cacheDir, { env, log }) {
  try {
    const path = await installServer({ cacheDir, env, log });
    return await firstGood([path], { source: 'apt', env, log });
  } catch (error) {
    return { reason: firstLine(error) };
  }
}

const INSTALL_TIMEOUT_MS = 5 * 60_000;

/**
 * In Debian `redis-server` is only a link to `redis-check-rdb`, and redis-tools (1 MB) already holds that program. The
 * others are for releases that pack it differently or have Valkey instead.
 */
const PACKAGES = ['redis-tools', 'redis-server', 'valkey-tools', 'valkey-server'];
const PROGRAMS = ['redis-server', 'valkey-server', 'redis-check-rdb', 'valkey-check-rdb'];

/** @param {string} cacheDir */
const cachedServer = (cacheDir) => join(cacheDir, 'server', 'bin', 'redis-server');

/**
 * Fills the cache from what Debian has: a copy that is installed under another name, else its packages.
 *
 * @param {{ cacheDir: string, env: import('../src/embedded/resolve.mjs').Env, log: import('../src/embedded/resolve.mjs').Log }} where
 * @returns {Promise<string>} the path of a server that passed; rejects with the reasons of all that did not
 */
async function installServer({ cacheDir, env, log }) {
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
 * @param {import('../src/embedded/resolve.mjs').Env} env
 * @returns {Promise<string | undefined>} why it gave no server
 */
async function linkInstalled(draft, env) {
  const path = [env.PATH ?? '', '/usr/bin'].join(':');
  const [checker] = await findOnPath('redis-check-rdb', path);
  if (!checker) return 'no redis-check-rdb is installed';
  const cli = await executable(join(dirname(checker), 'redis-cli'));
  await writePrograms(draft, { programs: { 'redis-server': checker, 'redis-cli': cli }, libraries: [] });
  return check(join(draft, 'bin', 'redis-server'), checker);
}

/**
 * @param {string} draft
 * @param {string} name of the package, for the reason
 * @returns {Promise<string | undefined>}
 */
async function wrap(draft, name) {
  const root = join(draft, 'root');
  const [server] = await unpacked(root, PROGRAMS);
  if (!server) return `the package ${name} holds no server`;
  const clis = await unpacked(root, ['redis-cli', 'valkey-cli']);
  const programs = { 'redis-server': server, ...Object.fromEntries(clis.map((cli) => [basename(cli), cli])) };
  await writePrograms(draft, { programs, libraries: await libraryFolders(root) });
  return check(join(draft, 'bin', 'redis-server'), `the package ${name}`);
}

/**
 * Which of these programs were unpacked, as a link in `links` names them.
 *
 * @param {string} root
 * @param {readonly string[]} names
 */
async function unpacked(root, names) {
  const found = await Promise.all(names.map((name) => executable(join(root, 'usr', 'bin', name))));
  return names.filter((_, at) => found[at] !== undefined).map((name) => join('..', 'root', 'usr', 'bin', name));
}

/**
 * Each program gets a link of its name, and a script that runs the link and names the unpacked libraries, so that nobody
 * who runs it needs to know.
 *
 * @param {string} draft
 * @param {{ programs: Readonly<Record<string, string | undefined>>, libraries: readonly string[] }} what name → what the
 *   link leads to; libraries are folders below the root
 */
async function writePrograms(draft, { programs, libraries }) {
  const folders = libraries.map((folder) => `$here/root/${folder}`).join(':');
  const setting = folders ? `LD_LIBRARY_PATH="${folders}\${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" ` : '';
  for (const folder of ['bin', 'links']) await mkdir(join(draft, folder), { recursive: true });
  for (const [name, target] of Object.entries(programs)) {
    if (target === undefined) continue;
    await symlink(target, join(draft, 'links', name));
    const script = `#!/bin/sh\nhere=\${0%/*}/..\n${setting}exec "$here/links/${name}" "$@"\n`;
    await writeFile(join(draft, 'bin', name), script, { mode: 0o755, flag: 'wx' });
  }
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
