/**
 * Makes the fixture of the version that is checked out: `npm run fixture`. Real processes of the build put jobs into
 * every state, some are killed, and what Redis holds then is kept as a dump, beside a manifest that says how each job must end when a later version drains
 * it, and beside the package as it would be published. They go to `test/fixtures/<version>/`, or to `--folder`.
 */
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { startServer } from '../test/chaos/stage/server.mjs';
import { argumentsFor } from './arguments.mjs';
import { fill } from './fixture/fill.mjs';
import { capture, Failed } from './run.mjs';
import { build, redis as findRedis, root } from './steps.mjs';

/** @typedef {import('./fixture/fill.mjs').Manifest} Manifest */

/** The dump and its manifest. @param {{ binary: string, folder: string, version: string }} where @returns {Promise<Manifest>} */
export async function makeDump({ binary, folder, version }) {
  mkdirSync(folder, { recursive: true });
  const place = mkdtempSync(join(tmpdir(), 'due-fixture-'));
  const server = await startServer({ binary, folder: place, mode: 'none' });
  const redis = new Redis({ path: server.socketPath });
  try {
    const filled = await fill({ redis, url: server.url });
    await redis.call('SAVE');
    copyFileSync(join(server.dir, 'dump.rdb'), join(folder, 'dump.rdb'));
    const manifest = { version, made: new Date().toISOString().slice(0, 10), ...filled };
    writeFileSync(join(folder, 'manifest.json'), `${JSON.stringify(manifest, null, 2)}\n`);
    return manifest;
  } finally {
    redis.disconnect();
    await server.stop();
    rmSync(place, { recursive: true, force: true });
  }
}

/** @param {string} folder */
async function pack(folder) {
  const args = ['pack', '--pack-destination', folder];
  const { code, output } = await capture('npm', args, { cwd: root });
  if (code !== 0) throw new Failed(code, output);
}

if (process.argv[1] === import.meta.filename) {
  const values = argumentsFor(import.meta.filename, { folder: { type: 'string' } });
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const folder = values.folder ?? join(root, 'test/fixtures', version);
  const { env } = await findRedis(process.env);
  const { DUESTREAM_REDIS_SERVER_BIN: binary = '' } = env;
  if (binary === '') throw new Error('a fixture needs a Redis of its own: leave DUESTREAM_REDIS_URL out');
  await build();
  const { jobs } = await makeDump({ binary, folder, version });
  await pack(folder);
  process.stdout.write(`${jobs.length} jobs, a dump and the package of ${version} are in ${folder}\n`);
}
