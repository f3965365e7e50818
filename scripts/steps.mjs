/**
 * The steps before the task. Each says what it did in one line, and does nothing when nothing is missing: what is
 * installed is judged by npm's own records, what is built by the files it was built from.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { assemble } from '../lua/assemble.mjs';
import { withLock } from '../src/embedded/lock.mjs';
import { keepPublicTypes } from './public-types.mjs';
import { findRedis } from './redis-package.mjs';
import { capture, Failed } from './run.mjs';

export const root = fileURLToPath(new URL('..', import.meta.url));
const buildRecord = join(root, '.cache', 'built-from');
/** Test files that start processes all build first: one does, and the others wait for it. */
const BUILD_MS = 600_000;

/** Puts `node_modules` in step with `package-lock.json`. */
export async function dependencies() {
  if (isInstalled()) return 'there already';
  say('dependencies', 'npm ci, a quarter of a minute or so');
  const { code, output } = await npm('ci');
  if (code === 0) return 'installed with npm ci';
  if (!/in sync|out of (step|sync)|Missing: .* from lock file/i.test(output)) throw new Failed(code, output);
  say('dependencies', 'package-lock.json is out of step with package.json, so npm install goes on without it; commit');
  const second = await npm('install');
  if (second.code !== 0) throw new Failed(second.code, second.output);
  return 'installed with npm install';
}

/**
 * Installs what a folder needs that has a lock of its own, so that the product does not get it.
 *
 * @param {string} name of the folder: `bench`
 */
export async function packagesOf(name) {
  const folder = join(root, name);
  const lock = read(join(folder, 'package-lock.json'));
  const kept = join(folder, 'node_modules', '.installed-of');
  if (read(kept) === lock) return;
  say(name, 'npm ci there, half a minute or so');
  const { code, output } = await npm('ci', ['--ignore-scripts', '--engine-strict=false'], folder);
  if (code !== 0) throw new Failed(code, output);
  writeFileSync(kept, lock);
}

/**
 * Hands a program on by DUESTREAM_REDIS_SERVER_BIN, so that nobody needs to look again.
 *
 * @param {NodeJS.ProcessEnv} env
 * @returns {Promise<{ env: NodeJS.ProcessEnv, said: string }>}
 */
export async function redis(env) {
  const found = await findRedis({
    env,
    cacheDir: join(root, '.cache', 'redis'),
    log: (line) => say('redis', line),
  });
  if (found.kind === 'url') return { env, said: 'the one named by DUESTREAM_REDIS_URL' };
  const { DUESTREAM_REDIS_SOURCE: _done, ...rest } = env;
  return { env: { ...rest, DUESTREAM_REDIS_SERVER_BIN: found.path }, said: `${found.version} (${found.source})` };
}

/** Compiles `src` into `dist`, and puts the scripts together. */
export const build = () => withLock({ path: join(root, '.cache', 'building'), timeoutMs: BUILD_MS }, builtNow);

async function builtNow() {
  assemble();
  const sources = fingerprint();
  if (existsSync(join(root, 'dist')) && read(buildRecord) === sources) return 'there already';
  // What an earlier source was compiled to would be shipped.
  rmSync(join(root, 'dist'), { recursive: true, force: true });
  const tsc = join(root, 'node_modules', '.bin', 'tsc');
  const { code, output } = await capture(tsc, ['-p', 'tsconfig.build.json'], { cwd: root });
  if (code !== 0) throw new Failed(code, output);
  keepPublicTypes();
  // It brings megabytes of tools: loaded only where something is to be built.
  const { buildDashboard } = await import('../src/dashboard/build.mjs');
  await buildDashboard();
  mkdirSync(dirname(buildRecord), { recursive: true });
  writeFileSync(buildRecord, sources);
  return 'dist is new';
}

/**
 * @param {string} step
 * @param {string} line
 */
export function say(step, line) {
  process.stderr.write(`${step.padEnd(13)} ${line}\n`);
}

/**
 * @param {string} command
 * @param {readonly string[]} [further]
 * @param {string} [cwd]
 */
function npm(command, further = [], cwd = root) {
  const script = process.env.npm_execpath;
  const args = [command, '--no-audit', '--no-fund', ...further];
  const options = { cwd };
  return script?.endsWith('.js')
    ? capture(process.execPath, [script, ...args], options)
    : capture('npm', args, options);
}

/**
 * npm keeps a copy of the lock of what it installed, written last. It must name every package of our lock, but for
 * optional ones of other systems, and our lock must know what package.json asks for.
 */
function isInstalled() {
  const manifest = JSON.parse(read(join(root, 'package.json')) || '{}');
  const lock = JSON.parse(read(join(root, 'package-lock.json')) || '{}').packages ?? {};
  const installed = JSON.parse(read(join(root, 'node_modules', '.package-lock.json')) || '{}').packages;
  if (installed === undefined || lock[''] === undefined) return false;
  for (const kind of ['dependencies', 'devDependencies']) {
    if (!sameEntries(manifest[kind], lock[''][kind])) return false;
  }
  return Object.entries(lock).every(([path, wanted]) => {
    if (path === '') return true;
    const there = installed[path];
    if (there === undefined) return wanted.optional === true;
    return there.version === wanted.version && there.integrity === wanted.integrity;
  });
}

/**
 * @param {Record<string, string>} [a]
 * @param {Record<string, string>} [b]
 */
function sameEntries(a = {}, b = {}) {
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((name) => a[name] === b[name]);
}

/** Names, sizes and times of all that the compiler reads. */
function fingerprint() {
  const sources = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' }).map((name) =>
    join('src', name),
  );
  const hash = createHash('sha256');
  for (const name of ['tsconfig.json', 'tsconfig.build.json', 'package.json', 'package-lock.json', ...sources.sort()]) {
    const { size, mtimeMs } = statSync(join(root, name));
    hash.update(`${name} ${size} ${mtimeMs}\n`);
  }
  return hash.digest('hex');
}

/** @param {string} file */
function read(file) {
  return existsSync(file) ? readFileSync(file, 'utf8') : '';
}
