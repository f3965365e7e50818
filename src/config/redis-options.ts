/**
 * The options that say where Redis is and who asks, and what they are in the words of `RedisInput`. A file and the
 * environment know texts alone: certificates are paths there, and the addresses of a NAT are pairs.
 */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { z } from 'zod';
import { DuestreamError, messageOf } from '../kernel/errors.ts';
import { ms, option } from './table.ts';

const PATH = { kind: 'text', allowed: 'a path of at most 4096 characters, or empty' } as const;
const path = (doc: string) => option(z.string().max(4096).default(''), { ...PATH, doc });
const PAIR = String.raw`[^\s,=]+:\d{1,5}=[^\s,=]+:\d{1,5}`;

export const redisOptions = z.strictObject({
  url: option(
    z
      .string()
      .regex(/^((redis|sentinel|cluster)s?:\/\/|unix:\/\/|\/)./)
      .max(2048)
      .default('redis://127.0.0.1:6379'),
    {
      kind: 'text',
      doc: 'The Redis that holds the jobs.',
      allowed:
        'redis://, sentinel://, cluster:// (with TLS: rediss://, sentinels://, clusters://) or unix:// and an address, or the path of a socket',
      secret: 'credentials',
      flag: 'redis',
      env: 'DUESTREAM_REDIS_URL',
    },
  ),
  sentinelUsername: option(z.string().max(256).default(''), {
    kind: 'text',
    doc: 'The user for the sentinels; that of the servers is part of redis.url.',
    allowed: 'at most 256 characters, or empty',
  }),
  sentinelPassword: option(z.string().max(1024).default(''), {
    kind: 'text',
    doc: 'The password for the sentinels.',
    allowed: 'at most 1024 characters, or empty',
    secret: 'value',
  }),
  ca: path('With TLS: the file with the certificate of the authority, instead of those that Node.js trusts.'),
  cert: path('With TLS: the file with the certificate that this process shows; it needs redis.key.'),
  key: path('With TLS: the file with the key of redis.cert.'),
  natMap: option(
    z
      .string()
      .max(16_384)
      .regex(new RegExp(`^(${PAIR}(,${PAIR})*)?$`))
      .default(''),
    {
      kind: 'text',
      doc: 'Where addresses that sentinels or nodes of a cluster name are found from here.',
      allowed: 'host:port=host:port, several with commas between them, or empty',
    },
  ),
  commandTimeout: ms(
    4000,
    { min: 100, max: 60_000 },
    'How long to wait for the reply to a command before it counts as lost.',
  ),
  connectTimeout: ms(5000, { min: 100, max: 60_000 }, 'How long connecting may take.'),
});

interface RedisConfig {
  readonly url: string;
  readonly sentinelUsername: string;
  readonly sentinelPassword: string;
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
  readonly natMap: string;
  readonly commandTimeoutMs: number;
  readonly connectTimeoutMs: number;
}

/**
 * What the configuration says about Redis, in the words of `RedisInput`. It reads the files of certificates.
 *
 * @throws DuestreamError `bad-config` for a file that cannot be read, or certificates for an address without TLS
 */
export function redisOf({ redis }: { readonly redis: RedisConfig }) {
  const { url, sentinelUsername, sentinelPassword, natMap, commandTimeoutMs, connectTimeoutMs } = redis;
  return {
    url,
    commandTimeout: commandTimeoutMs,
    connectTimeout: connectTimeoutMs,
    ...(sentinelUsername === '' ? {} : { sentinelUsername }),
    ...(sentinelPassword === '' ? {} : { sentinelPassword }),
    ...tlsOf(redis),
    ...(natMap === '' ? {} : { natMap: Object.fromEntries(natMap.split(',').map(pairOf)) }),
  };
}

function tlsOf({ url, ...files }: RedisConfig) {
  const given = (['ca', 'cert', 'key'] as const).filter((name) => files[name] !== '');
  const [first] = given;
  if (first === undefined) return {};
  if (!/^(redis|sentinel|cluster)s:/.test(url)) {
    throw bad(`redis.${first} is set, but redis.url is without TLS; allowed: rediss://, sentinels://, clusters://`);
  }
  if ((files.cert === '') !== (files.key === '')) {
    throw bad('redis.cert and redis.key belong together; allowed: both or none');
  }
  return { tls: Object.fromEntries(given.map((name) => [name, contentOf(`redis.${name}`, files[name])])) };
}

function contentOf(name: string, file: string): string {
  try {
    return readFileSync(resolve(file), 'utf8');
  } catch (error) {
    throw bad(`${name} cannot be read: ${messageOf(error)}`);
  }
}

function pairOf(pair: string): [string, { host: string; port: number }] {
  const [from = '', to = ''] = pair.split('=');
  const at = to.lastIndexOf(':');
  return [from, { host: to.slice(0, at).replace(/^\[|\]$/g, ''), port: Number(to.slice(at + 1)) }];
}

const bad = (message: string): DuestreamError => new DuestreamError('bad-config', message);
