/**
 * The URL of a Redis, in its four kinds:
 *
 *  redis://[user:pass@]host[:port][/db]                    one primary; rediss:// with TLS
 *  unix:///path/to.sock                                    the same on this machine
 *  sentinel://[user:pass@]host[:port],…/name[/db]          the primary that these sentinels name; sentinels:// with TLS
 *  cluster://[user:pass@]host[:port],…                     a cluster, found from any of these nodes; clusters:// with TLS
 *
 * The user and the password are those of the Redis servers. Sentinels have their own, which are options beside the URL.
 */
import { isIP } from 'node:net';
import type { RedisOptions } from 'ioredis';
import { show } from '../../core/duration.ts';
import { DuestreamError } from '../../core/errors.ts';
import { withoutCredentials } from '../../core/redact.ts';

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
  if (/^(unix:\/\/)?\//.test(input)) return { options: { path: input.replace(/^unix:\/\//, '') } };
  const [, kind, tls, rest = ''] = /^(redis|sentinel|cluster)(s?):\/\/(.*)$/s.exec(input) ?? [];
  const given: Given = { what, shown: show(withoutCredentials(input)), tls: tls === 's' };
  if (kind === undefined) throw bad(`${what} is ${given.shown}; allowed: ${URLS}`);
  if (kind === 'redis') return { options: parseOne(input, given) };
  const { user, hosts, path } = partsOf(rest, given);
  return kind === 'sentinel' ? sentinelOf({ user, hosts, path }, given) : clusterOf({ user, hosts, path }, given);
}

interface Given {
  readonly what: string;
  /** Without credentials. */
  readonly shown: string;
  readonly tls: boolean;
}

interface Parts {
  readonly user: Pick<RedisOptions, 'username' | 'password'>;
  readonly hosts: string;
  readonly path: readonly string[];
}

function parseOne(input: string, { what, shown, tls }: Given): RedisOptions {
  if (!URL.canParse(input)) throw bad(`${what} is ${shown}; allowed: ${URLS}`);
  const url = new URL(input);
  const db = databaseOf(url.pathname.slice(1), shown);
  const host = url.hostname.replace(/^\[|\]$/g, '') || '127.0.0.1';
  return {
    host,
    port: Number(url.port || PORTS.redis),
    db,
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
  const master = { sentinels: [...sentinels], name: decoded(name, given.what), db: databaseOf(db, given.shown) };
  return { options: { ...master, ...user, ...(given.tls ? secure : {}) } };
}

function clusterOf({ user, hosts, path }: Parts, given: Given): UrlAddress {
  if (path.length > 0 && path.join('/') !== '0') {
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

function databaseOf(text: string, shown: string): number {
  const db = Number(text);
  if (!Number.isInteger(db) || db < 0) throw bad(`the database in ${shown} is not a number`);
  return db;
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
