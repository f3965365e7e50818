/** A stand-in for a reverse proxy: it does to a request, and to its answer, what real ones do unless they are told otherwise. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

interface ProxyOptions {
  /** Where requests go. */
  readonly to: string;
  /** The path that it takes away; what is not below it is not found. */
  readonly below?: string;
  /** Whether it hands on the Host header of the client; nginx does not, unless it is told. */
  readonly keepsHost?: boolean;
  /** Whether it says in X-Forwarded-Host, -Proto and -Prefix what it was asked for. */
  readonly tells?: boolean;
  /** Headers that it sets, also in place of those of the client. In lower case. */
  readonly sets?: Readonly<Record<string, string>>;
  /** Paths that it refuses by itself. */
  readonly refuses?: RegExp;
}

interface TestProxy {
  /** With `below`, without a slash at its end. */
  readonly url: string;
  readonly stop: () => Promise<void>;
}

export async function startProxy(options: ProxyOptions): Promise<TestProxy> {
  const { below = '', refuses } = options;
  const server = createServer((asked, answer) => {
    const path = asked.url ?? '/';
    if (path.startsWith(`${below}/`) && !refuses?.test(path)) return handOn(options, asked, answer);
    answer.writeHead(refuses?.test(path) ? 403 : 404, { 'Content-Type': 'text/plain' }).end('refused by the proxy\n');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${below}`,
    async stop() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

function handOn(options: ProxyOptions, asked: IncomingMessage, answer: ServerResponse): void {
  const { to, below = '', keepsHost, tells, sets = {} } = options;
  const { host, hostname, port } = new URL(to);
  const told = {
    'x-forwarded-host': asked.headers.host,
    'x-forwarded-proto': 'http',
    'x-forwarded-prefix': below,
    'x-forwarded-for': asked.socket.remoteAddress,
  };
  const headers = { ...asked.headers, ...(keepsHost ? {} : { host }), ...(tells ? told : {}), ...sets };
  const path = asked.url?.slice(below.length);
  const handed = request({ hostname, port, path, headers, method: asked.method }, (got) => {
    const send = () => answer.writeHead(got.statusCode ?? 502, got.headers);
    // nginx collects an answer, unless the answer forbids it.
    if (got.headers['x-accel-buffering'] === 'no') {
      send().flushHeaders();
      got.pipe(answer);
      return;
    }
    const chunks: Buffer[] = [];
    got.on('data', (chunk: Buffer) => chunks.push(chunk)).on('end', () => send().end(Buffer.concat(chunks)));
  });
  handed.on('error', () => answer.destroy());
  answer.on('close', () => handed.destroy());
  asked.pipe(handed);
}
