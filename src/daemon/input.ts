/**
 * What `createDaemon` is given → a complete configuration and the address of Redis. From code, Redis may be said in every
 * way that a producer takes; a file and the environment know a URL and two time-outs.
 */
import { defineConfig } from '../config/load.ts';
import type { Config, ConfigInput } from '../config/options.ts';
import { show } from '../core/duration.ts';
import { DuestreamError } from '../core/errors.ts';
import { parseAddress, type RedisInput } from '../redis/connection/address.ts';

/** A configuration, or the part of it that differs from the defaults. */
export type DaemonInput = Config | (Omit<ConfigInput, 'redis'> & { readonly redis?: RedisInput | undefined });

/** @throws DuestreamError `bad-config` */
export function readDaemonInput(input: DaemonInput): { readonly config: Config; readonly redis: RedisInput } {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) {
    throw new DuestreamError('bad-config', `the configuration is ${show(input)}; allowed: an object of options`);
  }
  const { redis, ...rest } = input;
  if (redis === undefined) {
    const config = defineConfig(rest);
    return { config, redis: config.redis };
  }
  const { commandTimeoutMs, connectTimeoutMs, names } = checked(redis);
  const url = typeof redis === 'string' ? redis : redis.url;
  const config = defineConfig({
    ...rest,
    redis: {
      ...(url === undefined ? {} : { url }),
      ...(commandTimeoutMs === undefined ? {} : { commandTimeoutMs }),
      ...(connectTimeoutMs === undefined ? {} : { connectTimeoutMs }),
    },
  });
  const options = typeof redis === 'string' ? {} : redis;
  return { config, redis: names ? { ...options, ...config.redis, url } : { ...options, ...config.redis } };
}

/** `names`: it says where Redis is without a URL. */
function checked(redis: RedisInput) {
  try {
    const { options, ...times } = parseAddress(redis);
    const { host, port, path, sentinels, Connector } = options;
    return { ...times, names: [host, port, path, sentinels, Connector].some((place) => place !== undefined) };
  } catch (error) {
    if (!(error instanceof DuestreamError)) throw error;
    throw new DuestreamError('bad-config', error.message, { cause: error });
  }
}
