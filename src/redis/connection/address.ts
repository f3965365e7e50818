/**
 * Where Redis is, in the one shape that everything of the library takes: a URL, or an object with a `url` and options
 * beside it, or options of ioredis. Whatever else is given is refused: a misspelt option would otherwise send jobs to
 * the Redis on localhost, and an option without a value too.
 */

import { isIP } from 'node:net';
import type { RedisOptions } from 'ioredis';
import { durationIn, nearest } from '../../kernel/checks.ts';
import { type DurationInput, show } from '../../kernel/duration.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import { withoutCredentials } from '../../kernel/reason.ts';

/**
 * One primary: `redis://[user:pass@]host[:port][/db]`, `rediss://…` for TLS, `unix:///path/to.sock`. The primary that
 * sentinels name: `sentinel://[user:pass@]host[:port],…/name[/db]`, `sentinels://…`. A cluster:
 * `cluster://[user:pass@]host[:port],…`, `clusters://…`. Or an object.
 */
export type RedisInput = string | RedisAddress;

/**
 * Options of ioredis that say where Redis is and who asks: `host`, `port`, `path`, `db`, `username`, `password`, `tls`,
 * `sentinels` and their kin. `tls` takes what `tls.connect` of Node.js takes: `ca`, `cert`, `key`, `servername`,
 * `checkServerIdentity`; it holds for every server, and for the sentinels unless `sentinelTLS` is set. `sentinelUsername`
 * and `sentinelPassword` are those of the sentinels. `natMap` says where an address that sentinels or nodes of a cluster
 * name is found from here: `{ '10.0.0.5:6379': { host: 'localhost', port: 7000 } }`. duestream decides how commands are sent, repeated and timed: such options are
 * accepted but have no effect, apart from `commandTimeout` and `connectTimeout`. `keyPrefix` is refused.
 *
 * @example const client = createClient({ redis: { url: 'redis://10.0.0.5:6379', password, commandTimeout: '2s' } });
 */
export interface RedisAddress extends Omit<RedisOptions, 'commandTimeout' | 'connectTimeout'> {
  /** In place of `host`, `port` or `path`. Other options beside it win over what the URL says. */
  readonly url?: string | undefined;
  /** No reply within this time counts as lost: `100ms` to `1m`, default `4s`. */
  readonly commandTimeout?: DurationInput | undefined;
  /** How long a connection may take to come up: `100ms` to `1m`, default `5s`. */
  readonly connectTimeout?: DurationInput | undefined;
}

interface ParsedAddress {
  readonly options: RedisOptions;
  /** Nodes of a cluster to begin with; undefined where there is one primary. */
  readonly nodes: readonly Place[] | undefined;
  readonly commandTimeoutMs: number | undefined;
  readonly connectTimeoutMs: number | undefined;
}

/** What becomes of each option of ioredis; the compiler wants a line for every one there is. */
const OPTIONS = {
  host: 'place',
  port: 'place',
  path: 'place',
  family: 'place',
  sentinels: 'place',
  Connector: 'place',
  db: 'place',
  username: 'place',
  password: 'place',
  tls: 'place',
  name: 'place',
  role: 'place',
  sentinelUsername: 'place',
  sentinelPassword: 'place',
  sentinelTLS: 'place',
  sentinelRetryStrategy: 'place',
  sentinelReconnectStrategy: 'place',
  sentinelCommandTimeout: 'place',
  sentinelMaxConnections: 'place',
  preferredSlaves: 'place',
  enableTLSForSentinelMode: 'place',
  natMap: 'place',
  updateSentinels: 'place',
  failoverDetector: 'place',
  commandTimeout: 'time',
  connectTimeout: 'time',
  keyPrefix: 'refused',
  retryStrategy: 'ours',
  blockingTimeout: 'ours',
  blockingTimeoutGrace: 'ours',
  socketTimeout: 'ours',
  noDelay: 'ours',
  keepAlive: 'ours',
  connectionName: 'ours',
  disableClientInfo: 'ours',
  clientInfoTag: 'ours',
  autoResubscribe: 'ours',
  autoResendUnfulfilledCommands: 'ours',
  reconnectOnError: 'ours',
  readOnly: 'ours',
  stringNumbers: 'ours',
  protocol: 'ours',
  replyMapping: 'ours',
  monitor: 'ours',
  disconnectTimeout: 'ours',
  maxRetriesPerRequest: 'ours',
  maxLoadingRetryTime: 'ours',
  enableAutoPipelining: 'ours',
  autoPipeliningIgnoredCommands: 'ours',
  offlineQueue: 'ours',
  commandQueue: 'ours',
  enableOfflineQueue: 'ours',
  enableReadyCheck: 'ours',
  lazyConnect: 'ours',
  scripts: 'ours',
  himportFieldsets: 'ours',
  showFriendlyErrorStack: 'ours',
} as const satisfies Readonly<Record<keyof RedisOptions, 'place' | 'time' | 'ours' | 'refused'>>;

/** How long a connection may take to come up, unless the options say otherwise. */
export const CONNECT_TIMEOUT_MS = 5000;

const OWN = ['url'];
const OF_SENTINELS: readonly string[] = Object.keys(OPTIONS).filter((name) =>
  /^(sentinel|name$|role$|preferred|enableTLSFor|updateS|failoverD)/.test(name),
);
const SHAPES = `a URL such as redis://127.0.0.1:6379, an object with its url, or options of ioredis`;
const TIME = { min: 100, max: 60_000 };

/** @throws DuestreamError `bad-input` that says what was given and what is allowed, without passwords. */
export function parseAddress(input: RedisInput): ParsedAddress {
  if (typeof input === 'string') return { ...placed(input, 'redis'), ...parseTimes({}) };
  if (!isPlain(input)) throw bad(`redis is ${kindOf(input)}; allowed: ${SHAPES}`);
  checkOptions(input);
  const given: [string, unknown][] = Object.entries(input).filter(([name]) => kindOfOption(name) === 'place');
  const beside: RedisOptions = Object.fromEntries(given.filter(([, value]) => value !== undefined));
  const { options, nodes } = input.url === undefined ? { options: {} } : placed(input.url, 'redis.url');
  const address = { options: withTls({ ...options, ...beside }, beside), nodes };
  checkKind(address);
  return { ...address, ...parseTimes(input) };
}

function placed(url: string, what: string): Pick<ParsedAddress, 'options' | 'nodes'> {
  if (typeof url !== 'string') throw bad(`${what} is ${kindOf(url)}; allowed: ${URLS}`);
  const { options, nodes } = parseUrl(url, what);
  return { options, nodes };
}

/** What `tls` says of the servers holds for their sentinels too, unless these have an option of their own. */
function withTls(options: RedisOptions, { tls, sentinelTLS }: RedisOptions): RedisOptions {
  const shared = tls && options.enableTLSForSentinelMode && !sentinelTLS;
  return shared ? { ...options, sentinelTLS: tls } : options;
}

/** Options that would have no effect, or lead to a server that takes no jobs. */
function checkKind({ options, nodes }: Pick<ParsedAddress, 'options' | 'nodes'>): void {
  const { sentinels, name, role, db } = options;
  if (role !== undefined && role !== 'master') {
    throw bad(`redis.role is ${show(role)}; allowed: master, because a replica takes no jobs`);
  }
  if (sentinels && !name)
    throw bad('redis.sentinels is set without redis.name; allowed: both, the name of the primary');
  if (sentinels?.length === 0) throw bad('redis.sentinels is an empty list; allowed: one sentinel or more');
  if (nodes === undefined) return;
  const [alone] = Object.entries(options).find(([option]) => OF_SENTINELS.includes(option)) ?? [];
  if (alone !== undefined) throw bad(`redis.${alone} is set for a cluster; allowed: with sentinel:// addresses`);
  if (db) throw bad(`redis.db is ${show(db)}; allowed for a cluster: 0, the only database that it has`);
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
  checkPlace(input, names);
  checkValues(input);
}

function checkPlace(input: RedisAddress, names: readonly string[]): void {
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
  if (!somewhere && input.port === undefined) {
    throw bad(`redis names no place${names.length > 0 ? `, only ${names.join(', ')}` : ''}; allowed: ${SHAPES}`);
  }
}

function checkValues(input: RedisAddress): void {
  for (const [name, { fits, allowed }] of Object.entries(VALUES)) {
    const value: unknown = Reflect.get(input, name);
    if (value === undefined || fits(value)) continue;
    throw bad(`redis.${name} is ${SECRET.includes(name) ? kindOnly(value) : show(value)}; allowed: ${allowed}`);
  }
}

const TEXT = { fits: (value: unknown) => typeof value === 'string' && value !== '', allowed: 'a text' };
const ANY_TEXT = { fits: (value: unknown) => typeof value === 'string', allowed: 'a text' };
const OBJECT = {
  fits: (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value),
  allowed: 'an object of options, {} for none',
};
const isWhole = (value: unknown, min: number, max: number): boolean =>
  typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max;

/** What ioredis would take in silence and read as something else, or as nothing. */
const VALUES: {
  readonly [Name in keyof RedisAddress]?: Readonly<Record<'fits', (value: unknown) => boolean>> & {
    readonly allowed: string;
  };
} = {
  host: TEXT,
  path: TEXT,
  name: TEXT,
  username: ANY_TEXT,
  password: ANY_TEXT,
  sentinelUsername: ANY_TEXT,
  sentinelPassword: ANY_TEXT,
  tls: OBJECT,
  sentinelTLS: OBJECT,
  port: { fits: (value) => isWhole(value, 1, 65_535), allowed: 'a whole number from 1 to 65535' },
  db: { fits: (value) => isWhole(value, 0, 999_999_999), allowed: 'a whole number from 0' },
  family: { fits: (value) => [0, 4, 6].includes(Number(value)), allowed: '0, 4, 6' },
  sentinels: { fits: (value) => Array.isArray(value) && value.every(isPlain), allowed: 'a list of { host, port }' },
};
const SECRET: readonly string[] = ['password', 'sentinelPassword'];
const kindOnly = (value: unknown): string => `a value of type ${typeof value}`;

function unknown(name: string): DuestreamError {
  const near = nearest(name, [...OWN, ...Object.keys(OPTIONS)]);
  return bad(`redis.${name} is not an option; ${near === undefined ? `allowed: ${SHAPES}` : `did you mean ${near}?`}`);
}

function parseTimes({ commandTimeout, connectTimeout }: RedisAddress) {
  return {
    commandTimeoutMs: timeOf('redis.commandTimeout', commandTimeout),
    connectTimeoutMs: timeOf('redis.connectTimeout', connectTimeout),
  };
}

const timeOf = (what: string, given: DurationInput | undefined): number | undefined =>
  given === undefined ? undefined : durationIn(given, what, TIME);

/** How an address is written, without credentials. */
export function urlOf({ options, nodes }: { readonly options: RedisOptions; readonly nodes?: ParsedAddress['nodes'] }) {
  const { path, host = 'localhost', port = 6379, db, tls, sentinels, name } = options;
  const s = tls ? 's' : '';
  const database = db ? `/${db}` : '';
  if (nodes) return `cluster${s}://${nodes.map((one) => hostPort(one)).join(',')}`;
  if (sentinels) {
    const all = sentinels.map((one) => hostPort({ host: one.host ?? 'localhost', port: one.port ?? 26_379 }));
    return `sentinel${s}://${all.join(',')}/${name}${database}`;
  }
  return path ? `unix://${path}` : `redis${s}://${hostPort({ host, port })}${database}`;
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

// The URL of a Redis, in its four kinds:
//
//  redis://[user:pass@]host[:port][/db]                    one primary; rediss:// with TLS
//  unix:///path/to.sock                                    the same on this machine
//  sentinel://[user:pass@]host[:port],…/name[/db]          the primary that these sentinels name; sentinels:// with TLS
//  cluster://[user:pass@]host[:port],…                     a cluster, found from any of these nodes; clusters:// with TLS
//
// The database may stand in the query instead, as the registered form of redis: URLs has it: `?db=3`. Nothing else may.
// The user and the password are those of the Redis servers. Sentinels have their own, which are options beside the URL.

/** One server of several. */
export interface Place {
  readonly host: string;
  readonly port: number;
}

/** As it stands in a URL. */
export const hostPort = ({ host, port }: Place): string => `${host.includes(':') ? `[${host}]` : host}:${port}`;

/** Where a URL leads. */
interface UrlAddress {
  /** Of one connection; those of a cluster are made from it for each node. */
  readonly options: RedisOptions;
  /** Nodes of a cluster to begin with; undefined where there is one primary. */
  readonly nodes?: readonly Place[] | undefined;
}

/** What may be written, for people. */
const URLS =
  'redis://host:port/db, rediss://… (TLS), unix:///path, sentinel://host:port,…/name/db, sentinels://… (TLS), cluster://host:port,…, clusters://… (TLS)';

const PORTS = { redis: 6379, sentinel: 26379, cluster: 6379 };
const SENTINEL = 'sentinel://host:port,host:port/name, where name is that of the primary, and after it /db if you like';

/** @throws DuestreamError `bad-input`, without passwords */
function parseUrl(input: string, what: string): UrlAddress {
  const shown = show(withoutCredentials(input));
  const [, url = '', query, fragment] = /^([^?#]*)(?:\?([^#]*))?(#.*)?$/s.exec(input) ?? [];
  const [, kind, tls, rest = ''] = /^(redis|sentinel|cluster)(s?):\/\/(.*)$/s.exec(url) ?? [];
  const given: Given = { what, shown, tls: tls === 's', db: queriedDb(query, { what, shown }) };
  if (/^\s|\s$/.test(input)) throw bad(`${what} is ${shown}, with white space around it; allowed: ${URLS}`);
  if (fragment !== undefined) throw bad(`${what} is ${shown}; allowed: no #; in a password write %23`);
  if (/^(unix:\/\/)?\//.test(url)) return { options: { path: url.replace(/^unix:\/\//, ''), ...dbIn('', given) } };
  if (kind === undefined || /\s/.test(url)) throw bad(`${what} is ${shown}; allowed: ${URLS}`);
  if (kind === 'redis') return { options: parseOne(url, given) };
  const { user, hosts, path } = partsOf(rest, given);
  return kind === 'sentinel' ? sentinelOf({ user, hosts, path }, given) : clusterOf({ user, hosts, path }, given);
}

/** What `?db=` says, and nothing else may be said there. */
function queriedDb(query: string | undefined, { what, shown }: Pick<Given, 'what' | 'shown'>): string | undefined {
  if (query === undefined) return undefined;
  const [, db] = /^db=(\d+)$/.exec(query) ?? [];
  if (db !== undefined) return db;
  throw bad(`${what} is ${shown}; allowed after ?: db=3, the number of a database; other options stand beside the URL`);
}

interface Given {
  readonly what: string;
  /** Without credentials. */
  readonly shown: string;
  readonly tls: boolean;
  /** The database that its query names. */
  readonly db: string | undefined;
}

interface Parts {
  readonly user: Pick<RedisOptions, 'username' | 'password'>;
  readonly hosts: string;
  readonly path: readonly string[];
}

function parseOne(input: string, given: Given): RedisOptions {
  const { what, shown, tls } = given;
  if (!URL.canParse(input)) throw bad(`${what} is ${shown}; allowed: ${URLS}`);
  const url = new URL(input);
  const host = url.hostname.replace(/^\[|\]$/g, '') || '127.0.0.1';
  return {
    host,
    port: portOf(url.port, given),
    db: 0,
    ...dbIn(url.pathname.slice(1), given),
    ...userOf(url, what),
    ...(tls ? { tls: isIP(host) === 0 ? { servername: host } : {} } : {}),
  };
}

/** `URL` of Node.js knows no list of hosts. The last @ counts, as in `withoutCredentials`. */
function partsOf(rest: string, { what, shown }: Given): Parts {
  const [, login, hosts = '', path = ''] = /^(?:(.*)@)?([^/?#]*)(?:\/([^?#]*))?$/s.exec(rest) ?? [];
  if (hosts === '') throw bad(`${what} is ${shown} and names no host; allowed: ${URLS}`);
  const [, username = '', password = ''] = /^([^:]*)(?::(.*))?$/s.exec(login ?? '') ?? [];
  return { user: userOf({ username, password }, what), hosts, path: path === '' ? [] : path.split('/') };
}

function sentinelOf({ user, hosts, path }: Parts, given: Given): UrlAddress {
  const [name = '', db = '', ...more] = path;
  if (name === '' || more.length > 0) throw bad(`${given.what} is ${given.shown}; allowed: ${SENTINEL}`);
  const sentinels = placesOf(hosts, PORTS.sentinel, given);
  const secure = { tls: {}, sentinelTLS: {}, enableTLSForSentinelMode: true };
  const master = { sentinels: [...sentinels], name: decoded(name, given.what), db: 0, ...dbIn(db, given) };
  return { options: { ...master, ...user, ...(given.tls ? secure : {}) } };
}

function clusterOf({ user, hosts, path }: Parts, given: Given): UrlAddress {
  const { db = 0 } = dbIn(path.join('/'), given);
  if (db !== 0) {
    throw bad(`${given.what} is ${given.shown}; allowed: no path, because a cluster has database 0 alone`);
  }
  const nodes = placesOf(hosts, PORTS.cluster, given);
  return { options: { ...user, ...(given.tls ? { tls: {} } : {}) }, nodes };
}

function placesOf(hosts: string, port: number, { what, shown }: Given): readonly Place[] {
  return hosts.split(',').map((text) => {
    const [, six, four, digits] = /^(?:\[([0-9a-f:.]+)\]|([^:[\]\s]+))(?::(\d{1,5}))?$/i.exec(text) ?? [];
    const host = six ?? four;
    const place = { host: host ?? '', port: digits === undefined ? port : Number(digits) };
    if (host !== undefined && place.port >= 1 && place.port <= 65_535) return place;
    throw bad(`${what} is ${shown}; allowed between the commas: host, host:port or [IPv6 address]:port`);
  });
}

function portOf(text: string, { what, shown }: Given): number {
  const port = Number(text || PORTS.redis);
  if (port !== 0) return port;
  throw bad(`${what} is ${shown}; allowed: a port from 1 to 65535`);
}

/** The database that the path names, or else the query. */
function dbIn(path: string, { what, shown, db }: Given): { readonly db?: number } {
  if (path !== '' && !/^\d{1,9}$/.test(path))
    throw bad(`the database in ${shown} is not a number; allowed: digits, such as /3, or nothing`);
  if (path !== '' && db !== undefined && Number(path) !== Number(db)) {
    throw bad(`${what} is ${shown}, which names two databases; allowed: one`);
  }
  const named = path || db;
  return named === undefined ? {} : { db: Number(named) };
}

function userOf({ username, password }: { readonly username: string; readonly password: string }, what: string) {
  return {
    ...(username === '' ? {} : { username: decoded(username, what) }),
    ...(password === '' ? {} : { password: decoded(password, what) }),
  };
}

function decoded(text: string, what: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw bad(`the user or the password in ${what} is not percent-encoded; write % as %25`);
  }
}
