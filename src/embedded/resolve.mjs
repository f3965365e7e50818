/**
 * Finds a Redis without a manual step. The steps are asked in this order, and the first that gives something wins:
 *
 *     url     DUESTREAM_REDIS_URL          a server that runs somewhere; nothing is started
 *     bin     DUESTREAM_REDIS_SERVER_BIN   a program that somebody named
 *     path    PATH                         redis-server, then valkey-server
 *
 * A program counts only if it runs and is new enough; else the reason is said and the next step is asked. On Windows only a
 * URL counts: what ends a server with us is a shell (`guard.mjs`).
 * DUESTREAM_REDIS_SOURCE names the only step that may be asked.
 */

import { findCli, findOnPath, judge } from './binary.mjs';
import { EmbeddedRedisError, noRedis } from './error.mjs';

/** @typedef {Readonly<Record<string, string | undefined>>} Env */
/** @typedef {(line: string) => void} Log */
/** @typedef {{ readonly kind: 'url', readonly url: string }} RedisUrl */
/**
 * @typedef {object} RedisBinary
 * @property {'binary'} kind
 * @property {string} path
 * @property {string} version
 * @property {string} source the step that found it
 * @property {string | undefined} cli the redis-cli that lies beside it
 */
/** @typedef {RedisUrl | RedisBinary} RedisFound */
/**
 * @typedef {object} Search
 * @property {Env} env
 * @property {Log} log a line for a person, before a slow step and when a candidate is passed over
 * @property {NodeJS.Platform} platform
 */
/** @typedef {{ readonly found?: RedisFound, readonly reason?: string }} Answer one of the two */

/** @typedef {Readonly<Record<string, (search: Search) => Promise<Answer>>>} Steps by their names, in their order */

/** @type {Steps} */
export const STEPS = { url: fromUrl, bin: fromBin, path: fromPath };

/**
 * @param {Partial<Search> & { readonly steps?: Steps }} [search] defaults: our environment, lines to stderr
 * @returns {Promise<RedisFound>} rejects with an EmbeddedRedisError that says what was tried, and how to get one
 */
export async function resolveRedis({
  env = process.env,
  log = toStderr,
  platform = process.platform,
  steps = STEPS,
} = {}) {
  const forced = env.DUESTREAM_REDIS_SOURCE || undefined;
  const names = Object.keys(steps);
  if (forced !== undefined && !names.includes(forced)) {
    const message = `DUESTREAM_REDIS_SOURCE is ${JSON.stringify(forced)}; allowed are ${names.join(', ')}`;
    throw new EmbeddedRedisError('bad-config', message);
  }
  const tried = [];
  for (const [name, step] of Object.entries(steps)) {
    if (forced !== undefined && forced !== name) continue;
    const { found, reason } = await step({ env, log, platform });
    if (found) return found;
    tried.push(`${name.padEnd(6)} ${reason}`);
  }
  throw noRedis(tried, forced);
}

const NO_SHELL = {
  reason: 'duestream starts no server on Windows: there is no /bin/sh to end it with duestream; run both in WSL',
};

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
async function fromBin({ env, log, platform }) {
  const path = env.DUESTREAM_REDIS_SERVER_BIN;
  if (path && platform === 'win32') return NO_SHELL;
  if (!path) return { reason: 'DUESTREAM_REDIS_SERVER_BIN is not set' };
  return firstGood([path], { source: 'bin', label: 'DUESTREAM_REDIS_SERVER_BIN=', env, log });
}

/**
 * @param {Search} search
 * @returns {Promise<Answer>}
 */
async function fromPath({ env, log, platform }) {
  if (platform === 'win32') return NO_SHELL;
  const names = ['redis-server', 'valkey-server'];
  const files = (await Promise.all(names.map((name) => findOnPath(name, env.PATH)))).flat();
  if (files.length === 0) return { reason: `neither ${names.join(' nor ')} is on PATH` };
  return firstGood(files, { source: 'path', env, log });
}

/**
 * @param {readonly string[]} paths
 * @param {{ source: string, label?: string } & Pick<Search, 'env' | 'log'>} how
 * @returns {Promise<Answer>}
 */
export async function firstGood(paths, { source, label = '', env, log }) {
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
