/** Every server that can be had here: the one that `npm test` runs, and those of the Debian mirror. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { firstLine } from '../../src/embedded/binary.mjs';
import { redis, root } from '../steps.mjs';
import { offersOfMirror } from './suites.mjs';

/**
 * @typedef {object} Server
 * @property {string} id `redis-7.0`
 * @property {string} version
 * @property {string} from for the table
 * @property {() => Promise<string>} obtain the path of its program; rejects with why there is none
 */

/**
 * @param {{ env: NodeJS.ProcessEnv, say: (line: string) => void }} how
 * @returns {Promise<{ servers: readonly Server[], missing: readonly { id: string, why: string }[] }>} older ones first
 */
export async function serversHere({ env, say }) {
  const own = await ownServer(env);
  const { offers, missing } = await offersOfMirror({ cacheDir: join(root, '.cache', 'servers'), env, say });
  const others = offers
    .filter(({ id }) => id !== own?.id)
    .map(({ id, version, suite, obtain }) => ({ id, version: upstream(version), from: `Debian ${suite}`, obtain }));
  const all = [...(own ? [own] : []), ...others];
  return { servers: all.sort((a, b) => a.id.localeCompare(b.id, 'en', { numeric: true })), missing };
}

/** @param {NodeJS.ProcessEnv} env @returns {Promise<Server | undefined>} */
async function ownServer({ DUESTREAM_REDIS_URL: _anybodys, ...env }) {
  const found = await redis(env);
  const binary = found.env.DUESTREAM_REDIS_SERVER_BIN;
  if (!binary) return undefined;
  const text = execFileSync(binary, ['--version'], { encoding: 'utf8' });
  const version = /v=(\S+)/.exec(text)?.[1] ?? firstLine(text);
  const product = /valkey/i.test(text) ? 'valkey' : 'redis';
  const id = `${product}-${version.split('.').slice(0, 2).join('.')}`;
  return { id, version, from: 'what `npm test` runs', obtain: async () => binary };
}

/** `5:8.0.6-3` → `8.0.6`. @param {string} version of a package */
const upstream = (version) => /^(?:\d+:)?([\d.]+)/.exec(version)?.[1] ?? version;
