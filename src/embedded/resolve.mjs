/**
 * Finds a Redis without a manual step. The steps are asked in this order, and the first that gives something wins:
 *
 *     url     DUESTREAM_REDIS_URL          a server that runs somewhere; nothing is started
 *     bin     DUESTREAM_REDIS_SERVER_BIN   a program that somebody named
 *     path    PATH                         redis-server, then valkey-server
 *     cache   the cache folder             our private copy from an earlier time
 *     apt     Debian, Ubuntu               the distribution's package, unpacked into the cache folder
 *
 * A program counts only if it runs and is new enough; else the reason is said and the next step is asked.
 * DUESTREAM_REDIS_SOURCE names the only step that may be asked.
 */
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { findCli, findOnPath, firstLine, judge } from './binary.mjs';
import { cachedServer, installServer } from './cache.mjs';
import { EmbeddedRedisError, noRedis } from './error.mjs';

/** @typedef {'bin' | 'path' | 'cache' | 'apt'} BinarySource */
/** @typedef {{ readonly kind: 'url', readonly url: string }} RedisUrl */
/**
 * @typedef {object} RedisBinary
 * @property {'binary'} kind
 * @property {string} path
 * @property {string} version
 * @property {BinarySource} source
 * @property {string | undefined} cli the redis-cli that lies beside it
 */
/** @typedef {RedisUrl | RedisBinary} RedisFound */
/**
 * @typedef {object} Search
 * @property {import('./debian.mjs').Env} env
 * @property {string} cacheDir
 * @property {import('./debian.mjs').Log} log a line for a person, before a slow step and when a candidate is passed over
 */
/** @typedef {{ readonly found?: RedisFound, readonly reason?: string }} Answer one of the two */

/** @type {Readonly<Record<string, (search: Search) => Promise<Answer>>>} */
const STEPS = { url: fromUrl, bin: fromBin, path: fromPath, cache: fromCache, apt: fromApt };

/**
 * @param {Partial<Search>} [search] defaults: our environment, the cache folder of the user, lines to stderr
 * @returns {Promise<RedisFound>} rejects with an EmbeddedRedisError whose message names every remedy
 */
export async function resolveRedis({ env = process.env, cacheDir = userCacheDir(env), log = toStderr } = {}) {
  const forced = env.DUESTREAM_REDIS_SOURCE || undefined;
  const steps = Object.keys(STEPS);
  if (forced !== undefined && !steps.includes(forced)) {
    const message = `DUESTREAM_REDIS_SOURCE is ${JSON.stringify(forced)}; allowed are ${steps.join(', ')}`;
    throw new EmbeddedRedisError('bad-config', message);
  }
  const tried = [];
  for (const [name, step] of Object.entries(STEPS)) {
    if (forced !== undefined && forced !== name) continue;
    const { found, reason } = await step({ env, cacheDir, log });
    if (found) return found;
    tried.push(`${name.padEnd(6)} ${reason}`);
  }
  throw noRedis(tried, forced);
}

/**
 * Where the published command keeps its copy.
 *
 * @param {import('./debian.mjs').Env} env
 */
export function userCacheDir(env) {
  const given = env.XDG_CACHE_HOME;
  // The specification says that a relative path is to be ignored.
  const base = given && isAbsolute(given) ? given : join(env.HOME || homedir(), '.cache');
  return join(base, 'duestream', 'redis');
}

/**
 * @param {Search} search
 * @returns {Promise<Answer>}
 */
async function fromUrl({ env }) {
  const url = env.DUESTREAM_REDIS_URL;
  return url ? { found: { kind: 'url', url } } : { reason: 'DUESTREAM_REDIS_URL is not set' };
}

/**
 * @param {Search} search
 * @returns {Promise<Answer>}
 */
async function fromBin({ env, log }) {
  const path = env.DUESTREAM_REDIS_SERVER_BIN;
  if (!path) return { reason: 'DUESTREAM_REDIS_SERVER_BIN is not set' };
  return firstGood([path], { source: 'bin', label: 'DUESTREAM_REDIS_SERVER_BIN=', env, log });
}

/**
 * @param {Search} search
 * @returns {Promise<Answer>}
 */
async function fromPath({ env, log }) {
  const names = ['redis-server', 'valkey-server'];
  const files = (await Promise.all(names.map((name) => findOnPath(name, env.PATH)))).flat();
  if (files.length === 0) return { reason: `neither ${names.join(' nor ')} is on PATH` };
  return firstGood(files, { source: 'path', env, log });
}

/**
 * @param {Search} search
 * @returns {Promise<Answer>}
 */
async function fromCache({ env, cacheDir, log }) {
  const path = cachedServer(cacheDir);
  const [copy] = await findOnPath('redis-server', join(path, '..'));
  if (!copy) return { reason: `there is no copy in ${cacheDir}` };
  return firstGood([copy], { source: 'cache', env, log });
}

/**
 * @param {Search} search
 * @returns {Promise<Answer>}
 */
async function fromApt({ env, cacheDir, log }) {
  try {
    const path = await installServer({ cacheDir, env, log });
    return await firstGood([path], { source: 'apt', env, log });
  } catch (error) {
    return { reason: firstLine(error) };
  }
}

/**
 * @param {readonly string[]} paths
 * @param {{ source: BinarySource, label?: string } & Pick<Search, 'env' | 'log'>} how
 * @returns {Promise<Answer>}
 */
async function firstGood(paths, { source, label = '', env, log }) {
  const reasons = [];
  for (const path of paths) {
    const verdict = await judge(path);
    if (verdict.ok) {
      const cli = await findCli(path, env.PATH);
      return { found: { kind: 'binary', path, version: verdict.version, source, cli } };
    }
    const reason = `${label}${path} ${verdict.reason}`;
    log(`passing over ${reason}`);
    reasons.push(reason);
  }
  return { reason: reasons.join('; ') };
}

/** @param {string} line */
function toStderr(line) {
  process.stderr.write(`redis: ${line}\n`);
}
