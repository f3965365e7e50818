/**
 * What `createDaemon` is given → a complete configuration and the address of Redis. From code, Redis may be said in every
 * way that a producer takes; a file and the environment know a URL and two time-outs.
 */
import { defineConfig } from '../config/load.ts';
import type { Config, ConfigInput } from '../config/options.ts';
import { redisOf } from '../config/redis-options.ts';
import { asConfig, checkObject } from '../kernel/checks.ts';
import { parseAddress, type RedisInput } from '../redis/connection/address.ts';

/** The part of the configuration that differs from the defaults. */
export type DaemonInput = Omit<ConfigInput, 'redis'> & { readonly redis?: RedisInput | undefined };

/** What a daemon is made from: a complete configuration, and the address of Redis in the words of `RedisInput`. */
export interface DaemonSettings {
  readonly config: Config;
  readonly redis: RedisInput;
  /** Where `http.port` is taken: the next one that is free. */
  readonly orNextPort?: boolean;
}

/** @throws DuestreamError `bad-config` */
export function readDaemonInput(input: DaemonInput): DaemonSettings {
  checkObject(input, 'createDaemon');
  const { redis, ...rest } = input;
  if (redis === undefined) {
    const config = defineConfig(rest);
    return { config, redis: redisOf(config) };
  }
  const { commandTimeoutMs, connectTimeoutMs, names } = checked(redis);
  const url = typeof redis === 'string' ? redis : redis.url;
  const config = defineConfig({
    ...rest,
    redis: {
      ...(url === undefined ? {} : { url }),
      ...(commandTimeoutMs === undefined ? {} : { commandTimeout: commandTimeoutMs }),
      ...(connectTimeoutMs === undefined ? {} : { connectTimeout: connectTimeoutMs }),
    },
  });
  const options = typeof redis === 'string' ? {} : redis;
  return { config, redis: { ...options, ...redisOf(config), ...(names ? { url } : {}) } };
}

/** `names`: it says where Redis is without a URL. */
function checked(redis: RedisInput) {
  const { options, ...times } = asConfig(() => parseAddress(redis));
  const { host, port, path, sentinels, Connector } = options;
  return { ...times, names: [host, port, path, sentinels, Connector].some((place) => place !== undefined) };
}
