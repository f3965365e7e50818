/**
 * The URL of a Redis, in its four kinds:
 *
 *  redis://[user:pass@]host[:port][/db]                    one primary; rediss:// with TLS
 *  unix:///path/to.sock                                    the same on this machine
 *  sentinel://[user:pass@]host[:port],…/name[/db]          the primary that these sentinels name; sentinels:// with TLS
 *  cluster://[user:pass@]host[:port],…                     a cluster, found from any of these nodes; clusters:// with TLS
 *
 * The database may stand in the query instead, as the registered form of redis: URLs has it: `?db=3`. Nothing else may. The
 * user and the password are those of the Redis servers. Sentinels have their own, which are options beside the URL.
 */
import { isIP } from 'node:net';
import type { RedisOptions } from 'ioredis';
import { show } from '../../kernel/duration.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import { withoutCredentials } from '../../kernel/reason.ts';

/** One server of several. */
export interface Place {
  readonly host: string;
  readonly port: number;
}

/** As it stands in a URL. */
export const hostPort = ({ host, port }: Place): string => `${host.includes(':') ? `[${host}]` : host}:${port}`;

/** Where a URL leads. */
export interface UrlAddress {
  /** Of one connection; those of a cluster are made from it for each node. */
  readonly options: RedisOptions;
  /** Nodes of a cluster to begin with; undefined where there is one primary. */
  readonly nodes?: readonly Place[] | undefined;
}

/** What may be written, for people. */
export const URLS =
  'redis://host:port/db, rediss://… (TLS), unix:///path, sentinel://host:port,…/name/db, sentinels://… (TLS), cluster://host:port,…, clusters://… (TLS)';

const PORTS = { redis: 6379, sentinel: 26379, cluster: 6379 };
const SENTINEL = 'sentinel://host:port,host:port/name, where name is that of the primary, and after it /db if you like';

/** @throws DuestreamError `bad-input`, without passwords */
export function parseUrl(input: string, what: string): UrlAddress {
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

const bad = (message: string): DuestreamError => new DuestreamError('bad-input', message);
