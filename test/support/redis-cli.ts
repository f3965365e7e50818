/** The redis-cli for producers that have nothing else: beside the server the tests run, on PATH, or fetched from Debian. */
import { execFile } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { fetchDebianPackages, hasApt } from '../../scripts/debian.mjs';
import { redisCacheDir, testBinary } from './redis-binary.ts';

const run = promisify(execFile);

/** @throws Error with what was tried */
export async function findRedisCli(): Promise<string> {
  const beside = dirname(await testBinary());
  const known = [join(beside, 'redis-cli'), join(beside, 'valkey-cli'), 'redis-cli', 'valkey-cli'];
  for (const path of known) if (await works(path)) return path;
  const dir = join(redisCacheDir, 'cli');
  if (await hasApt(process.env)) {
    await fetchDebianPackages({ names: ['redis-tools'], dir, stateDir: join(redisCacheDir, 'apt') });
    const path = join(dir, 'usr/bin/redis-cli');
    if (await works(path)) return path;
    throw new Error(
      `the redis-cli of Debian's redis-tools does not run; it has ${await readdir(join(dir, 'usr/bin'))}`,
    );
  }
  throw new Error(`no redis-cli: tried ${known.join(', ')}`);
}

async function works(path: string): Promise<boolean> {
  return run(path, ['--version'], { timeout: 10_000 }).then(
    () => true,
    () => false,
  );
}
