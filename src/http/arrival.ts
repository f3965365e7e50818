/**
 * How a request came: by which names, whether over TLS, below which path. Where the peer is a proxy of `http.trustProxy`, it
 * says in headers what the browser asked for:
 *
 *     browser ── https://ops.example.org/jobs/ ──▶ proxy ── http://127.0.0.1:7420/ + X-Forwarded-Host, -Proto, -Prefix ──▶ here
 *
 * From any other peer these headers change nothing, because anybody may send them; a malformed value changes nothing either.
 * Of several values the last one counts: the proxy that we trust has added it, and whoever stood before may have made up the others.
 */
import { createNetworks } from '../kernel/networks.ts';

export interface Arrival {
  /** Whether the peer is a proxy of `http.trustProxy`. */
  readonly isProxied: boolean;
  /** The Host header. */
  readonly host: string | undefined;
  /** The host that the browser asked for, as a trusted proxy says; else the Host header. */
  readonly publicHost: string | undefined;
  /** Whether the browser speaks TLS: with this server, or with the proxy. */
  readonly isTls: boolean;
  /** What stands before our paths where the browser is: `/ops/jobs`, or nothing. */
  readonly prefix: string;
  /** The path that a trusted proxy was asked for, as it says, with what it took away; undefined where it does not say it. */
  readonly askedPath: string | undefined;
}

export interface ArrivalOptions {
  /** Whether the server speaks TLS itself. */
  readonly isTls: boolean;
  /** Addresses and networks of proxies whose word counts. */
  readonly trustProxy: readonly string[];
  /** In an application of somebody else: below which path. The URL of a request then says how it came there. */
  readonly mountedAt?: string | undefined;
}

export function createArrivals({
  isTls,
  trustProxy,
  mountedAt,
}: ArrivalOptions): (request: Request, env: unknown) => Arrival {
  const isTrusted = createNetworks(trustProxy);
  return ({ headers, url }, env) => {
    const isProxied = isTrusted(peerOf(env));
    const said = isProxied ? saidBy(headers) : {};
    const here = mountedAt === undefined ? undefined : new URL(url);
    // A request that never was on a line has its host in its URL alone.
    const host = headers.get('Host') ?? here?.host;
    const proto = said.proto ?? (isTls || here?.protocol === 'https:' ? 'https' : 'http');
    return {
      isProxied,
      host,
      publicHost: said.host ?? host,
      isTls: proto === 'https',
      prefix: `${said.prefix ?? ''}${mountedAt ?? ''}`,
      askedPath: said.path,
    };
  };
}

/** The address of the other end of the connection, where an adapter for Node hands it over. */
export function peerOf(env: unknown): string | undefined {
  const { incoming } = (env ?? {}) as {
    readonly incoming?: { readonly socket?: { readonly remoteAddress?: string } };
  };
  return incoming?.socket?.remoteAddress;
}

const YEAR_S = 365 * 86_400;

/** Browsers keep to TLS from then on. Of the host of an application only the application may say that. */
export const hstsOf = (
  { isTls }: Arrival,
  { mountedAt }: Pick<ArrivalOptions, 'mountedAt'>,
): Readonly<Record<string, string>> =>
  isTls && mountedAt === undefined ? { 'Strict-Transport-Security': `max-age=${YEAR_S}` } : {};

const PREFIX_CHARS_MAX = 256;

/** A path without its last slash, such as `/ops/jobs`; undefined for anything that is none. */
export function prefixOf(text: string): string | undefined {
  const path = text.replace(/\/$/, '');
  const isPath = path.length <= PREFIX_CHARS_MAX && /^(\/[\w.~-]+)*$/.test(path);
  return isPath && !/\/\.{1,2}(\/|$)/.test(path) ? path : undefined;
}

interface Said {
  readonly host?: string | undefined;
  readonly proto?: string | undefined;
  readonly prefix?: string | undefined;
  readonly path?: string | undefined;
}

const HOST = /^([A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?|\[[0-9A-Fa-f:.]{2,45}\])(:\d{1,5})?$/;
const PROTO = /^https?$/i;

/** The headers that most proxies send come before that of RFC 7239, which many proxies only hand on. */
function saidBy(headers: Headers): Said {
  const forwarded = lastElement(headers.get('Forwarded') ?? '');
  const last = (name: string) => headers.get(name)?.split(',').at(-1)?.trim();
  const first = (form: RegExp, ...values: readonly (string | undefined)[]) =>
    values.find((value) => value !== undefined && form.test(value));
  return {
    host: first(HOST, last('X-Forwarded-Host'), forwarded.get('host')),
    proto: first(PROTO, last('X-Forwarded-Proto'), forwarded.get('proto'))?.toLowerCase(),
    prefix: prefixOf(last('X-Forwarded-Prefix') ?? ''),
    // A path may have commas in it, and no spaces.
    path: /^\/[^?#]*/.exec(
      headers
        .get('X-Forwarded-Uri')
        ?.split(/, +(?=\/)/)
        .at(-1) ?? '',
    )?.[0],
  };
}

const FORWARDED_CHARS_MAX = 1024;
const NOTHING: ReadonlyMap<string, string> = new Map();

/** The last element of `Forwarded: for=192.0.2.1;host=a, for="[2001:db8::1]";host=b;proto=https`; nothing if any is malformed. */
function lastElement(text: string): ReadonlyMap<string, string> {
  if (text === '' || text.length > FORWARDED_CHARS_MAX) return NOTHING;
  const pair = /\s*([\w!#$%&'*+.^`|~-]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s",;]+))\s*(;|,|$)/y;
  let element = new Map<string, string>();
  for (;;) {
    const [, name = '', quoted, plain = '', end] = pair.exec(text) ?? [];
    const key = name.toLowerCase();
    if (end === undefined || element.has(key)) return NOTHING;
    element.set(key, quoted?.replaceAll(/\\(.)/g, '$1') ?? plain);
    if (end === '') return element;
    if (end === ',') element = new Map();
  }
}
