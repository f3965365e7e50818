/**
 * The URL of a target, as far as its text alone can say whether it is one. What it leads to is another question, which the
 * dispatcher asks before each request (`dispatch/guard/`).
 *
 * Two readers of one URL must never see two hosts in it, for then one checks what the other does not call. So a text is refused
 * unless it is written in the one way that all readers agree on: WHATWG reads `127.1`, `0x7f.1` and `①②⑦.0.0.1` as 127.0.0.1, and a
 * backslash as a slash, where RFC 3986 reads something else.
 */
import { isIP } from 'node:net';
import { show } from '../kernel/duration.ts';
import { DuestreamError } from '../kernel/errors.ts';

/** A URL that was read. */
export interface TargetUrl {
  readonly isTls: boolean;
  /** In lower case: a name without its last dot, or an address; IPv6 without brackets. */
  readonly host: string;
  /** 4 or 6 of an address, 0 of a name. */
  readonly version: number;
  readonly port: number;
  /** What stands in the header `Host`: IPv6 in brackets, and the port unless it is that of the scheme. */
  readonly authority: string;
  /** Path and query, as they are sent. */
  readonly path: string;
}

export const URL_CHARS_MAX = 2048;

/**
 * @param what how the message names it
 * @throws DuestreamError `bad-input` with what was given and what is allowed
 * @example readTargetUrl('https://api.example.com/due?tenant=4', 'url').host // 'api.example.com'
 */
export function readTargetUrl(text: unknown, what: string): TargetUrl {
  const why = flawOf(text);
  if (why === undefined && typeof text === 'string') {
    const read = parsed(text);
    if (typeof read !== 'string') return read;
    throw badUrl(text, what, read);
  }
  throw badUrl(text, what, why ?? 'is no text');
}

const badUrl = (text: unknown, what: string, why: string) =>
  new DuestreamError(
    'bad-input',
    `${what} is ${show(text)}, which ${why}; allowed: a URL such as https://api.example.com/due`,
  );

const FORM = /^(https?):\/\/([^/?#]+)(?:[/?]|$)/i;

/** What is wrong with the text, before anybody parses it. */
function flawOf(text: unknown): string | undefined {
  if (typeof text !== 'string') return 'is no text';
  if (text.length > URL_CHARS_MAX) return `has ${text.length} characters, and ${URL_CHARS_MAX} are the most`;
  if (!/^[\x21-\x7e]*$/.test(text))
    return 'has a space or a character beyond ASCII: write names and paths in their ASCII form';
  if (/[\\<>"`{}|^]/.test(text)) return 'has a character that URLs do not have: write it with %';
  if (text.includes('#')) return 'has a fragment, which is never sent';
  const [, , authority] = FORM.exec(text) ?? [];
  if (authority === undefined) return 'does not begin with https:// and a host';
  if (authority.includes('@')) return 'has a user or a password: give them as a header';
  if (authority.includes('%')) return 'has a % in its host';
  return undefined;
}

function parsed(text: string): TargetUrl | string {
  const [, scheme = '', authority = ''] = FORM.exec(text) ?? [];
  const [, written = '', portText = ''] = /^(\[[^\]]*\]|[^:]*)((?::\d*)?)$/.exec(authority) ?? [];
  if (written === '' || portText === ':') return 'has no host, or no port behind its colon';
  const url = urlOf(text);
  if (!url) return 'no URL can be read from';
  const host = url.hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
  const version = isIP(host);
  const flaw = version === 0 ? flawOfName(written, host) : flawOfAddress(written, url.hostname);
  if (flaw !== undefined) return flaw;
  const isTls = scheme.toLowerCase() === 'https';
  const port = url.port === '' ? (isTls ? 443 : 80) : Number(url.port);
  if (!isPortAllowed(port))
    return `goes to port ${port}: allowed are 80, 443, and those from 1024 that no well-known service has`;
  // The name of TLS and the header have no last dot.
  const authorityOf = `${version === 6 ? `[${host}]` : host}${url.port === '' ? '' : `:${port}`}`;
  return { isTls, host, version, port, authority: authorityOf, path: `${url.pathname}${url.search}` };
}

function urlOf(text: string): URL | undefined {
  try {
    return new URL(text);
  } catch {
    return undefined;
  }
}

/** An address is written as it is shown everywhere else, so that a list of denied texts and this see the same. */
const flawOfAddress = (written: string, canonical: string): string | undefined =>
  written.toLowerCase() === canonical ? undefined : `has an address that is not written as ${canonical}`;

const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;
const NAME_CHARS_MAX = 253;

function flawOfName(written: string, host: string): string | undefined {
  const labels = host.split('.');
  const isName =
    written.toLowerCase().replace(/\.$/, '') === host &&
    host.length <= NAME_CHARS_MAX &&
    labels.every((label) => LABEL.test(label));
  if (!isName) return 'has no host name: letters, digits, hyphens and dots make one';
  // Some readers take such a name for a number, and a number for an address.
  return /^(?:\d+|0x[0-9a-f]*)$/.test(labels.at(-1) ?? '') ? 'has a host name that ends with a number' : undefined;
}

/**
 * Ports of services that do not speak HTTP, or that whoever can reach them commands: mail and shells lie below 1024 and are refused
 * with all others there.
 */
const SERVICES: ReadonlySet<number> = new Set([
  ...[
    1433, 1521, 3306, 3389, 5432, 5433, 5984, 6379, 6380, 7000, 7001, 8086, 9042, 9200, 9300, 11_211, 26_257, 26_379,
    27_017,
  ],
  ...[27_018, 27_019, 28_017],
  // Docker, etcd, ZooKeeper, kubelet, controllers of Kubernetes, Consul, Kafka, AMQP, NATS, memcached, VNC.
  ...[2375, 2376, 2377, 2379, 2380, 2181, 10_248, 10_249, 10_250, 10_255, 10_256, 10_257, 10_259, 6443],
  ...[8300, 8301, 8302, 8500, 9092, 5671, 5672, 4222, 6222, 5900, 5901],
]);

const isPortAllowed = (port: number): boolean => port === 443 || port === 80 || (port >= 1024 && !SERVICES.has(port));

/** Exactly, or by `*.` and what a name ends with. */
export const isNamed = (host: string, names: readonly string[]): boolean =>
  names.some((name) => name === host || (name.startsWith('*.') && host.endsWith(name.slice(1))));
