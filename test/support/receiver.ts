/** A server that calls come to: it keeps what it was sent, and answers as it is told. */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

export interface Received {
  readonly path: string;
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export interface Receiver {
  readonly port: number;
  /** `http://127.0.0.1:port/due` */
  readonly url: string;
  readonly received: readonly Received[];
  /** How many sockets were ever opened to it. */
  readonly sockets: () => number;
  /** How the next requests are answered, one after the other; after that with 200. */
  readonly next: (...answers: readonly ((response: ServerResponse, received: Received) => void)[]) => void;
  readonly close: () => Promise<void>;
}

export async function startReceiver(host = '127.0.0.1'): Promise<Receiver> {
  const received: Received[] = [];
  const answers: ((response: ServerResponse, received: Received) => void)[] = [];
  let sockets = 0;
  const server = createServer((request, response) => {
    text(request).then(
      (body) => {
        const one = { path: request.url ?? '', method: request.method ?? '', headers: request.headers, body };
        received.push(one);
        const answer = answers.shift();
        if (answer) answer(response, one);
        else response.end('fine');
      },
      () => undefined,
    );
  });
  server.on('connection', () => {
    sockets += 1;
  });
  await new Promise<void>((resolve) => void server.listen(0, host, resolve));
  const { port } = server.address() as AddressInfo;
  return {
    port,
    url: `http://${host}:${port}/due`,
    received,
    sockets: () => sockets,
    next: (...more) => void answers.push(...more),
    async close() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => void server.close(() => resolve()));
    },
  };
}
