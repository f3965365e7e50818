/**
 * Other servers than the one this system has: what the suites of its Debian mirror hold. The system's own apt reads the
 * lists of a suite, chooses, downloads and verifies by signature and checksum, with private lists; nothing is installed.
 *
 * The programs of a newer suite need its C library. So all libraries come from the same suite, and a program is run by
 * the loader among them: `ld-linux… --argv0 redis-server --library-path …`.
 */
import { chmod, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { firstLine, judge } from '../../src/embedded/binary.mjs';
import { withLock } from '../../src/embedded/lock.mjs';
import { archivesOf, hasApt, privateApt } from '../debian.mjs';
import { capture, Failed } from '../run.mjs';

const LOCK_TIMEOUT_MS = 10 * 60_000;
const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg';
const PRODUCTS = /** @type {const} */ (['redis', 'valkey']);

/** @typedef {Readonly<Record<string, string | undefined>>} Env */
/** @typedef {(line: string) => void} Say */
/** @typedef {{ version: string, section: string, depends: readonly string[] }} Package */
/** @typedef {{ name: string, suites: readonly string[] }} Source `name` for people; later suites win */
/**
 * @typedef {object} Offer a server that can be had
 * @property {string} id `valkey-9.1`
 * @property {'redis' | 'valkey'} product
 * @property {string} version of the package
 * @property {string} suite
 * @property {() => Promise<string>} obtain the path of its redis-server, which was run once
 */
/** @typedef {{ id: string, why: string }} Missing */

/**
 * @param {{ cacheDir: string, env: Env, say: Say }} where
 * @returns {Promise<{ offers: readonly Offer[], missing: readonly Missing[] }>}
 */
export async function offersOfMirror({ cacheDir, env, say }) {
  const mirror = await mirrorHere(env);
  if (typeof mirror === 'string') return { offers: [], missing: [{ id: 'other suites', why: mirror }] };
  /** @type {Map<string, Offer>} */
  const offers = new Map();
  /** @type {Missing[]} */
  const missing = [];
  for (const source of sourcesFor(mirror.codename)) {
    try {
      say(`reading the package lists of ${source.name}`);
      const suite = await openSuite({ source, uri: mirror.uri, stateDir: join(cacheDir, source.name), env });
      for (const product of PRODUCTS) {
        const found = suite.packages.get(`${product}-tools`);
        if (found === undefined) continue;
        const id = `${product}-${/^(?:\d+:)?(\d+\.\d+)/.exec(found.version)?.[1] ?? found.version}`;
        const obtain = () => obtainServer({ product, id, version: found.version, suite, cacheDir, env, say });
        // Of two suites with the same version of a product the later one has the newer package.
        offers.set(id, { id, product, version: found.version, suite: source.name, obtain });
      }
    } catch (error) {
      missing.push({ id: source.name, why: firstLine(error) });
    }
  }
  return { offers: [...offers.values()], missing };
}

/** @param {string} codename @returns {readonly Source[]} older before newer */
function sourcesFor(codename) {
  return [
    { name: `${codename}-backports`, suites: [codename, `${codename}-backports`] },
    ...['stable', 'testing', 'unstable'].map((suite) => ({ name: suite, suites: [suite] })),
  ];
}

/**
 * @param {Env} env
 * @returns {Promise<{ uri: string, codename: string } | string>} a text: why there is none
 */
async function mirrorHere(env) {
  if (!(await hasApt(env))) return 'this system has no apt-get and dpkg-deb';
  const asked = ['indextargets', '--format', '$(REPO_URI)', 'Created-By: Packages'];
  const { output } = await capture('apt-get', asked, { cwd: '.', env: { ...env } });
  const uri = output.split('\n').find((line) => /\/debian\/?$/.test(line.trim()));
  if (uri === undefined) return "apt of this system knows no archive of Debian's";
  const release = await readFile('/etc/os-release', 'utf8').catch(() => '');
  return { uri: uri.trim(), codename: /^VERSION_CODENAME=(\S+)/m.exec(release)?.[1] ?? 'stable' };
}

/** @typedef {Awaited<ReturnType<typeof openSuite>>} Suite */

/** @param {{ source: Source, uri: string, stateDir: string, env: Env }} of */
async function openSuite({ source, uri, stateDir, env }) {
  const { lists, archivesDir, ownLists, apt } = await privateApt({ stateDir, env });
  const signed = (await readable(KEYRING)) ? `[signed-by=${KEYRING}] ` : '';
  const sourcelist = join(stateDir, 'sources.list');
  await writeFile(sourcelist, source.suites.map((suite) => `deb ${signed}${uri} ${suite} main\n`).join(''));
  const only = ['-o', `Dir::Etc::sourcelist=${sourcelist}`, '-o', 'Dir::Etc::sourceparts=/dev/null'];
  // Lists as plain text, which is read below, and in no language.
  const plain = ['-o', 'Acquire::GzipIndexes=false', '-o', 'Acquire::Languages=none'];
  const options = [...ownLists, ...only, ...plain, '-o', 'APT::Update::Error-Mode=any'];
  await apt(options, ['update']);
  return {
    packages: await packagesIn(lists, source.suites),
    /** @param {readonly string[]} wanted `name=version` @returns {Promise<readonly string[]>} paths of archives */
    async download(wanted) {
      await apt(options, ['download', ...wanted]);
      return archivesOf(archivesDir, [...wanted]);
    },
  };
}

/**
 * @param {string} lists
 * @param {readonly string[]} suites
 * @returns {Promise<ReadonlyMap<string, Package>>} by name
 */
async function packagesIn(lists, suites) {
  const files = (await readdir(lists)).filter((name) => name.endsWith('_Packages'));
  /** @type {Map<string, Package>} */
  const packages = new Map();
  for (const suite of suites) {
    const file = files.find((name) => name.includes(`_dists_${suite}_`));
    if (file === undefined) throw new Error(`apt has no list of ${suite}`);
    for (const stanza of (await readFile(join(lists, file), 'utf8')).split('\n\n')) {
      const field = (/** @type {string} */ name) => new RegExp(`^${name}: (.*)$`, 'm').exec(stanza)?.[1] ?? '';
      const name = /^Package: (\S+)/.exec(stanza)?.[1];
      if (name === undefined) continue;
      const depends = `${field('Pre-Depends')},${field('Depends')}`.split(',');
      packages.set(name, { version: field('Version'), section: field('Section'), depends: depends.flatMap(firstName) });
    }
  }
  return packages;
}

/** `libssl3t64 (>= 3.0.0) | libssl3` → the first of them. @param {string} alternatives */
function firstName(alternatives) {
  const name = /^\s*([a-z0-9][a-z0-9+.-]+)/.exec(alternatives)?.[1];
  return name === undefined ? [] : [name];
}

/**
 * The packages of a server and every library they need. What makes users and starts services is left out.
 *
 * @param {readonly string[]} names
 * @param {ReadonlyMap<string, Package>} packages
 * @returns {readonly string[]} `name=version`
 */
export function closureOf(names, packages) {
  const wanted = new Set(names.filter((name) => packages.has(name)));
  for (const name of wanted) {
    for (const needed of packages.get(name)?.depends ?? []) {
      if (packages.get(needed)?.section === 'libs') wanted.add(needed);
    }
  }
  return [...wanted].map((name) => `${name}=${packages.get(name)?.version}`);
}

/**
 * @param {{ product: 'redis' | 'valkey', id: string, version: string, suite: Suite, cacheDir: string, env: Env, say: Say }} wanted
 */
async function obtainServer({ product, id, version, suite, cacheDir, env, say }) {
  const dir = join(cacheDir, `${id}_${version.replaceAll(/[^\w.+~-]/g, '-')}`);
  const server = join(dir, 'bin', 'redis-server');
  return withLock({ path: join(cacheDir, `${id}.lock`), timeoutMs: LOCK_TIMEOUT_MS }, async () => {
    if ((await judge(server)).ok) return server;
    const wanted = closureOf([`${product}-tools`, `${product}-server`], suite.packages);
    say(`${id}: downloading ${wanted.length} packages`);
    const archives = await suite.download(wanted);
    const draft = `${dir}.draft`;
    for (const old of [draft, dir]) await rm(old, { recursive: true, force: true });
    await mkdir(join(draft, 'root'), { recursive: true });
    for (const archive of archives) {
      const { code, output } = await capture('dpkg-deb', ['-x', archive, join(draft, 'root')], {
        cwd: draft,
        env: { ...env },
      });
      if (code !== 0) throw new Failed(code, output);
    }
    await writePrograms(draft, product);
    await rename(draft, dir);
    const verdict = await judge(server);
    if (!verdict.ok) throw new Error(`${id} of its package ${verdict.reason}`);
    return server;
  });
}

/**
 * Scripts by the names that the tests look for. The server is the program that Debian calls the checker of snapshots: it
 * looks at the name it is called by.
 *
 * @param {string} dir
 * @param {string} product
 */
async function writePrograms(dir, product) {
  const root = join(dir, 'root');
  const files = await readdir(root, { recursive: true, withFileTypes: true });
  const regular = files.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const loader = regular.find((path) => /^ld-linux[\w-]*\.so\.\d+$/.test(basename(path)));
  if (loader === undefined) throw new Error('its libraries hold no loader');
  const below = (/** @type {string} */ path) => `$here/root${path.slice(root.length)}`;
  const folders = [...new Set(regular.filter((path) => /\.so(\.|$)/.test(path)).map((path) => dirname(path)))];
  const libraries = folders
    .filter((path) => !/gconv|engines|ossl-modules/.test(path))
    .map(below)
    .join(':');
  await mkdir(join(dir, 'bin'));
  const programs = { 'redis-server': [`${product}-server`, `${product}-check-rdb`], 'redis-cli': [`${product}-cli`] };
  for (const [name, [calledBy = '', ...others]] of Object.entries(programs)) {
    const program = regular.find((path) => [calledBy, ...others].includes(basename(path)) && path.includes('/bin/'));
    if (program === undefined) throw new Error(`its packages hold no ${calledBy}`);
    const call = `"${below(loader)}" --argv0 ${calledBy} --library-path "${libraries}" "${below(program)}"`;
    await writeFile(join(dir, 'bin', name), `#!/bin/sh\nhere=\${0%/*}/..\nexec ${call} "$@"\n`);
    await chmod(join(dir, 'bin', name), 0o755);
  }
}

/** @param {string} path */
async function readable(path) {
  return readFile(path).then(
    () => true,
    () => false,
  );
}
