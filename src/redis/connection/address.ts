/**
 * Where Redis is, in the one shape that everything of the library takes: a URL, or an object with a `url` and options
 * beside it, or options of ioredis. Whatever else is given is refused: a misspelt option would otherwise send jobs to
 * the Redis on localhost, and an option without a value too.
 */
import { isIP } from 'node:net';
import type { RedisOptions } from 'ioredis';
import { type DurationInput, show } from '../../core/duration.ts';
import { DuestreamError } from '../../core/errors.ts';
import { nearest } from '../../core/nearest.ts';
import { nameNow } from '../../core/option-names.ts';
import { durationIn } from '../../core/ranges.ts';
import { withoutCredentials } from '../../core/redact.ts';

/** `redis://[user:pass@]host[:port][/db]`, `rediss://…` for TLS, `unix:///path/to.sock`, or an object. */
export type RedisInput = string | RedisAddress;

/**
 * Options of ioredis that say where Redis is and who asks: `host`, `port`, `path`, `db`, `username`, `password`, `tls`,
 * `sentinels` and their kin. duestream decides how commands are sent, repeated and timed: such options are
 * accepted but have no effect, apart from `commandTimeout` and `connectTimeout`. `keyPrefix` is refused.
 *
 * @example const producer = createProducer({ redis: { url: 'redis://10.0.0.5:6379', password, commandTimeout: '2s' } });
 */
export interface RedisAddress extends Omit<RedisOptions, 'commandTimeout' | 'connectTimeout'> {
  /** In place of `host`, `port` or `path`. Other options beside it win over what the URL says. */
  readonly url?: string | undefined;
  /** No reply within this time counts as lost: `100ms` to `1m`, default `4s`. */
  readonly commandTimeout?: DurationInput | undefined;
  /** How long a connection may take to come up: `100ms` to `1m`, default `5s`. */
  readonly connectTimeout?: DurationInput | undefined;
}

export interface ParsedAddress {
  readonly options: RedisOptions;
  readonly commandTimeoutMs: number | undefined;
  readonly connectTimeoutMs: number | undefined;
}

/** What becomes of each option of ioredis; the compiler wants a line for every one there is. */
const OPTIONS = {
  ...{ host: 'place', port: 'place', path: 'place', family: 'place', sentinels: 'place', Connector: 'place' },
  ...{ db: 'place', username: 'place', password: 'place', tls: 'place' },
  ...{ name: 'place', role: 'place', sentinelUsername: 'place', sentinelPassword: 'place', sentinelTLS: 'place' },
  ...{ sentinelRetryStrategy: 'place', sentinelReconnectStrategy: 'place', sentinelCommandTimeout: 'place' },
  ...{ sentinelMaxConnections: 'place', preferredSlaves: 'place', enableTLSForSentinelMode: 'place' },
  ...{ natMap: 'place', updateSentinels: 'place', failoverDetector: 'place' },
  ...{ commandTimeout: 'time', connectTimeout: 'time', keyPrefix: 'refused' },
  ...{ retryStrategy: 'ours', blockingTimeout: 'ours', blockingTimeoutGrace: 'ours', socketTimeout: 'ours' },
  ...{ noDelay: 'ours', keepAlive: 'ours', connectionName: 'ours', disableClientInfo: 'ours', clientInfoTag: 'ours' },
  ...{ autoResubscribe: 'ours', autoResendUnfulfilledCommands: 'ours', reconnectOnError: 'ours', readOnly: 'ours' },
  ...{ stringNumbers: 'ours', protocol: 'ours', replyMapping: 'ours', monitor: 'ours', disconnectTimeout: 'ours' },
  ...{ maxRetriesPerRequest: 'ours', maxLoadingRetryTime: 'ours', enableAutoPipelining: 'ours' },
  ...{ autoPipeliningIgnoredCommands: 'ours', offlineQueue: 'ours', commandQueue: 'ours', enableOfflineQueue: 'ours' },
  ...{ enableReadyCheck: 'ours', lazyConnect: 'ours', scripts: 'ours', himportFieldsets: 'ours' },
  ...{ showFriendlyErrorStack: 'ours' },
} as const satisfies Readonly<Record<keyof RedisOptions, 'place' | 'time' | 'ours' | 'refused'>>;

/** How long a connection may take to come up, unless the options say otherwise. */
export const CONNECT_TIMEOUT_MS = 5000;

const OWN = ['url'];
const URLS = 'redis://host:port/db, rediss://… (TLS), unix:///path';
const SHAPES = `a URL such as redis://127.0.0.1:6379, an object with its url, or options of ioredis`;
const TIME = { min: 100, max: 60_000 };

/** @throws DuestreamError `bad-input` that says what was given and what is allowed, without passwords. */
export function parseAddress(input: RedisInput): ParsedAddress {
  if (typeof input === 'string') return { options: parseUrl(input, 'redis'), ...parseTimes({}) };
  if (!isPlain(input)) throw bad(`redis is ${kindOf(input)}; allowed: ${SHAPES}`);
  checkOptions(input);
  const given: [string, unknown][] = Object.entries(input).filter(([name]) => kindOfOption(name) === 'place');
  const beside: RedisOptions = Object.fromEntries(given.filter(([, value]) => value !== undefined));
  const options = input.url === undefined ? beside : { ...parseUrl(input.url, 'redis.url'), ...beside };
  return { options, ...parseTimes(input) };
}

function checkOptions(input: RedisAddress): void {
  const names = Object.keys(input);
  for (const name of names) {
    const kind = kindOfOption(name);
    if (kind === 'refused')
      throw bad(`redis.${name} is set; allowed: the option namespace, which is part of every key`);
    if (kind !== undefined || OWN.includes(name)) continue;
    throw unknown(name);
  }
  const { url, host, path, sentinels, Connector } = input;
  const places = Object.entries({ host, path, sentinels, Connector, port: input.port });
  const [place] = places.find(([, value]) => value !== undefined) ?? [];
  if (url !== undefined && place !== undefined) {
    throw bad(`redis.url and redis.${place} both say where Redis is; allowed: one of them`);
  }
  // A variable of the environment that is not set must not lead to localhost.
  const [named] = Object.entries({ url, host, path }).filter(([name]) => names.includes(name));
  const somewhere = [url, host, path, sentinels, Connector].some((value) => value !== undefined);
  if (named && !somewhere)
    throw bad(`redis.${named[0]} is undefined; allowed: ${named[0] === 'url' ? URLS : 'a text'}`);
}

function unknown(name: string): DuestreamError {
  const now = nameNow(name, TIMES);
  if (now !== undefined) return bad(`redis.${name} is now redis.${now}`);
  const near = nearest(name, [...OWN, ...Object.keys(OPTIONS)]);
  return bad(`redis.${name} is not an option; ${near === undefined ? `allowed: ${SHAPES}` : `did you mean ${near}?`}`);
}

const TIMES = ['commandTimeout', 'connectTimeout'];

function parseTimes({ commandTimeout, connectTimeout }: RedisAddress) {
  return {
    commandTimeoutMs: timeOf('redis.commandTimeout', commandTimeout),
    connectTimeoutMs: timeOf('redis.connectTimeout', connectTimeout),
  };
}

const timeOf = (what: string, given: DurationInput | undefined): number | undefined =>
  given === undefined ? undefined : durationIn(given, what, TIME);

function parseUrl(input: string, what: string): RedisOptions {
  const shown = typeof input === 'string' ? show(withoutCredentials(input)) : kindOf(input);
  if (typeof input !== 'string') throw bad(`${what} is ${shown}; allowed: ${URLS}`);
  if (/^(unix:\/\/)?\//.test(input)) return { path: input.replace(/^unix:\/\//, '') };
  if (!/^rediss?:\/\//.test(input) || !URL.canParse(input)) throw bad(`${what} is ${shown}; allowed: ${URLS}`);
  const url = new URL(input);
  const db = url.pathname.length > 1 ? Number(url.pathname.slice(1)) : 0;
  if (!Number.isInteger(db) || db < 0) throw bad(`the database in ${shown} is not a number`);
  const host = url.hostname.replace(/^\[|\]$/g, '') || '127.0.0.1';
  return {
    host,
    port: Number(url.port || 6379),
    db,
    ...(url.username === '' ? {} : { username: decoded(url.username, what) }),
    ...(url.password === '' ? {} : { password: decoded(url.password, what) }),
    ...(url.protocol === 'rediss:' ? { tls: isIP(host) === 0 ? { servername: host } : {} } : {}),
  };
}

function decoded(text: string, what: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw bad(`the user or the password in ${what} is not percent-encoded; write % as %25`);
  }
}

function kindOfOption(name: string): string | undefined {
  const kinds: Readonly<Record<string, string>> = OPTIONS;
  return Object.hasOwn(kinds, name) ? kinds[name] : undefined;
}

/** An object as it is written in code or read from JSON: a connection or a `URL` has its data elsewhere. */
function isPlain(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function kindOf(value: unknown): string {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || isPlain(value)) return show(value);
  if ('sendCommand' in value) return 'a connection';
  return `an object of the class ${value.constructor?.name ?? 'unknown'}`;
}

const bad = (message: string): DuestreamError => new DuestreamError('bad-input', message);
