/** A Valkey, where one can be had: a path in VALKEY_SERVER_BIN, on PATH, or the package of this Debian. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { findOnPath, firstLine } from '../../src/embedded/binary.mjs';
import { fetchDebianPackages } from '../../src/embedded/debian.mjs';

const CACHE = new URL('../../.cache/valkey/', import.meta.url).pathname;

/** @typedef {{ binary: string, reason?: undefined } | { binary: '', reason: string }} Found */

/** @type {Promise<Found> | undefined} */
let found;

/** @returns {Promise<Found>} `reason`: why there is none */
export function valkey() {
  found ??= find();
  return found;
}

/** @returns {Promise<Found>} */
async function find() {
  const named = process.env.VALKEY_SERVER_BIN;
  if (named !== undefined) {
    return existsSync(named)
      ? { binary: named }
      : { binary: '', reason: `VALKEY_SERVER_BIN is ${named}: no such file` };
  }
  const [onPath] = await findOnPath('valkey-server', process.env.PATH);
  if (onPath !== undefined) return { binary: onPath };
  try {
    const { dir } = await fetchDebianPackages({ names: ['valkey-server'], dir: join(CACHE, 'root') });
    return { binary: join(dir, 'usr/bin/valkey-server') };
  } catch (error) {
    return { binary: '', reason: `no VALKEY_SERVER_BIN, none on PATH, and no package: ${firstLine(error)}` };
  }
}
