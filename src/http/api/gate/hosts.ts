/**
 * Which names and which pages a request may come by. A page of a stranger can make a browser ask this machine, under a name of
 * his own that leads here (DNS rebinding), or from his page: the first is refused by its Host, the second by its Origin.
 */
import { isLoopback } from '../../access.ts';
import { Problem } from '../problem.ts';

export interface HostOptions {
  /** What the server listens on. */
  readonly host: string;
  readonly allowedHosts: readonly string[];
  readonly allowedOrigins: readonly string[];
}

interface Asked {
  readonly host: string | undefined;
  readonly origin: string | undefined;
  readonly site: string | undefined;
}

/** The name in a Host header, without its port and brackets. */
export function nameOf(host: string | undefined): string | undefined {
  if (host === undefined) return undefined;
  try {
    return new URL(`http://${host}`).hostname.replace(/^\[|\]$/g, '').toLowerCase();
  } catch {
    return undefined;
  }
}

/**
 * @throws Problem `misdirected`, `forbidden`
 */
export function checkHosts({ host, allowedHosts, allowedOrigins }: HostOptions, asked: Asked): void {
  const name = nameOf(asked.host);
  const known = name !== undefined && (allowedHosts.includes(name) || name === host.toLowerCase() || isLoopback(name));
  // Beyond loopback a token is needed, which no stranger's page has; so any name does, unless some are named.
  const isOpen = !isLoopback(host) && allowedHosts.length === 0 && name !== undefined;
  if (!known && !isOpen) {
    throw new Problem('misdirected', {
      detail: 'the Host header names no host of this daemon; allowed: http.allowedHosts',
    });
  }
  checkOrigin({ allowedOrigins }, asked);
}

function checkOrigin({ allowedOrigins }: Pick<HostOptions, 'allowedOrigins'>, { host, origin, site }: Asked): void {
  if (origin === undefined) {
    if (site !== 'cross-site') return;
    throw new Problem('forbidden', { detail: 'a page of another site asks; allowed: http.allowedOrigins' });
  }
  if (isOwn(origin, host) || allowedOrigins.includes(origin.toLowerCase())) return;
  throw new Problem('forbidden', { detail: 'the Origin header names another page; allowed: http.allowedOrigins' });
}

/** A page of the same host and port. Its scheme may differ: a proxy in front may speak TLS. */
export function isOwn(origin: string, host: string | undefined): boolean {
  try {
    return host !== undefined && new URL(origin).host === new URL(`${new URL(origin).protocol}//${host}`).host;
  } catch {
    return false;
  }
}
