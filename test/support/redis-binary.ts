/** The redis-server the tests run. Never a running one that somebody named: tests write what they like, and kill. */
import { fileURLToPath } from 'node:url';
import { findRedis } from '../../scripts/redis-package.mjs';

/** The repository's own cache, so that `npx vitest run …` alone needs nothing set up. */
export const redisCacheDir = fileURLToPath(new URL('../../.cache/redis', import.meta.url));

let found: Promise<string> | undefined;

/** The one handed over by `scripts/up.mjs` is taken as it is; it was checked there. */
export function testBinary(): Promise<string> {
  found ??= find();
  return found;
}

async function find(): Promise<string> {
  const given = process.env.DUESTREAM_REDIS_SERVER_BIN;
  if (given) return given;
  const env = { ...process.env, DUESTREAM_REDIS_URL: undefined, DUESTREAM_REDIS_SOURCE: undefined };
  const redis = await findRedis({ env, cacheDir: redisCacheDir });
  if (redis.kind === 'url') throw new Error('tests need a redis-server of their own');
  return redis.path;
}
