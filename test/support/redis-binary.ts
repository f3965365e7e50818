/** The redis-server the tests run: the one handed over by scripts/up.mjs, else the private copy in the repository. */
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export interface TestBinary {
  readonly path: string;
  readonly env: Readonly<Record<string, string>>;
}

export async function testBinary(): Promise<TestBinary> {
  const given = process.env.DUESTREAM_REDIS_SERVER_BIN;
  if (given) return { path: given, env: {} };
  const root = fileURLToPath(new URL('../../.cache/redis/server/usr', import.meta.url));
  if (!existsSync(`${root}/bin/redis-server`)) return { path: 'redis-server', env: {} };
  return { path: `${root}/bin/redis-server`, env: { LD_LIBRARY_PATH: `${root}/lib/x86_64-linux-gnu` } };
}
