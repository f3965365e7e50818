/**
 * A socket to an address that the guard let through, and to no other: nothing here knows how to look a name up. The name is in
 * TLS alone, where the certificate must be of it.
 *
 *     address ──connect──▶ socket, whose peer is compared once more ──TLS of the name──▶ socket for requests
 *     proxy ──connect──▶ CONNECT address:port ─┘
 */
import { request as httpRequest } from 'node:http';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { isNamed, type TargetUrl } from '../../job/target-url.ts';
import type { Clock } from '../../kernel/clock.ts';
import { messageOf } from '../../kernel/errors.ts';

/** A certificate that this side shows, to hosts that its owner named. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
  /** Names, or `*.example.com`. */
  readonly hosts: readonly string[];
}

/** Through which machine all requests leave. With `resolves` it gets the name, and judges where that leads. */
export interface EgressProxy {
  readonly host: string;
  readonly port: number;
  readonly resolves: boolean;
}

export interface DialParts {
  readonly clock: Pick<Clock, 'timer'>;
  readonly connectMs: number;
  readonly refusalOfPeer: (address: string, port: number) => string | undefined;
  /** Roots of one's own, beside those of Node. */
  readonly ca?: readonly string[] | undefined;
  readonly proxy?: EgressProxy | undefined;
}

export interface Dialled {
  readonly url: TargetUrl;
  readonly address: string;
  readonly certificate?: Certificate | undefined;
}

export type DialWhy = 'not-connected' | 'timeout' | 'tls' | 'refused';

/** Nothing was sent yet. `why` may be told to anybody; the message says more than a caller may know. */
export class DialError extends Error {
  override readonly name = 'DialError';
  readonly why: DialWhy;

  constructor(why: DialWhy, message: string, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.why = why;
  }
}

/** @throws DialError */
export async function dial(to: Dialled, parts: DialParts): Promise<Socket> {
  const opened: Socket[] = [];
  let callOff = () => {};
  const late = new Promise<never>((_, reject) => {
    callOff = parts.clock.timer(parts.connectMs, () =>
      reject(new DialError('timeout', `no connection to ${to.address} within ${parts.connectMs} ms`)),
    );
  });
  try {
    return await Promise.race([late, openSocket(to, parts, opened)]);
  } catch (error) {
    for (const socket of opened) socket.destroy();
    throw error;
  } finally {
    callOff();
  }
}

async function openSocket(to: Dialled, parts: DialParts, opened: Socket[]): Promise<Socket> {
  const raw = parts.proxy ? await throughProxy(to, parts.proxy, opened) : await direct(to, opened);
  if (!parts.proxy) {
    const why = parts.refusalOfPeer(raw.remoteAddress ?? '', to.url.port);
    if (why !== undefined) throw new DialError('refused', `the socket went to ${raw.remoteAddress}: ${why}`);
  }
  return to.url.isTls ? overTls(raw, to, parts) : raw;
}

const direct = ({ address, url: { port } }: Dialled, opened: Socket[]): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const socket = connect({ host: address, port, lookup: refuseLookup });
    opened.push(socket);
    const fail = (error: Error) => reject(new DialError('not-connected', messageOf(error), { cause: error }));
    socket.once('error', fail);
    socket.once('connect', () => {
      socket.off('error', fail);
      resolve(socket);
    });
  });

/** An address needs no look-up: whoever comes here would dial a name. */
const refuseLookup = () => {
  throw new DialError('refused', 'a name was to be looked up behind the guard');
};

const throughProxy = ({ address, url }: Dialled, proxy: EgressProxy, opened: Socket[]): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const host = proxy.resolves ? url.host : address;
    const path = `${host.includes(':') ? `[${host}]` : host}:${url.port}`;
    const asked = {
      host: proxy.host,
      port: proxy.port,
      method: 'CONNECT',
      path,
      agent: false,
      headers: { Host: path },
    };
    const request = httpRequest(asked);
    const fail = (message: string, cause?: unknown) => reject(new DialError('not-connected', message, { cause }));
    request.once('socket', (socket) => opened.push(socket));
    request.once('error', (error) => fail(messageOf(error), error));
    request.once('response', ({ statusCode }) => fail(`the proxy answers ${statusCode}`));
    request.once('connect', ({ statusCode }, socket) => {
      if (statusCode === 200) resolve(socket);
      else fail(`the proxy answers ${statusCode}`);
    });
    request.end();
  });

function overTls(socket: Socket, { url, certificate }: Dialled, { ca }: DialParts): Promise<Socket> {
  const shown = certificate && isNamed(url.host, certificate.hosts) ? certificate : undefined;
  return new Promise((resolve, reject) => {
    const secured = connectTls({
      socket,
      host: url.host,
      servername: url.version === 0 ? url.host : '',
      // Whatever the environment says: a certificate that is not checked is none.
      rejectUnauthorized: true,
      ALPNProtocols: ['http/1.1'],
      ...(ca && { ca: [...ca] }),
      ...(shown && { cert: shown.cert, key: shown.key }),
    });
    const fail = (error: Error) => reject(new DialError('tls', messageOf(error), { cause: error }));
    secured.once('error', fail);
    secured.once('secureConnect', () => {
      secured.off('error', fail);
      resolve(secured);
    });
  });
}
