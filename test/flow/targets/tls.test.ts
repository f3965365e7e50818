/** Calls over TLS: whose certificate is taken, which one is shown, and the way through a proxy. */
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer as createHttp, type Server as HttpServer } from 'node:http';
import { createServer, type Server } from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { createGuard } from '../../../src/dispatch/guard/guard.ts';
import type { Certificate, EgressProxy } from '../../../src/dispatch/send/dial.ts';
import { type CallEnd, createSender } from '../../../src/dispatch/send/sender.ts';
import { createAbort } from '../../../src/kernel/abort.ts';
import { systemClock } from '../../../src/kernel/clock.ts';
import { makeCertificates } from '../../chaos/faults/certificates.mjs';

let folder = '';
let made: Awaited<ReturnType<typeof makeCertificates>>;
const closing: (() => Promise<unknown>)[] = [];
const textOf = (path: string) => readFileSync(path, 'utf8');

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'due-tls-'));
  made = await makeCertificates(folder);
});
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function listening(server: Server | HttpServer): Promise<number> {
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  closing.push(() => {
    server.closeAllConnections();
    return new Promise<void>((resolve) => void server.close(() => resolve()));
  });
  return (server.address() as AddressInfo).port;
}

interface Shown {
  readonly name: string | undefined;
  readonly host: string | undefined;
}

/** Answers with what it was shown. */
async function tlsServer(which: 'good' | 'expired' | 'elsewhere' | 'selfSigned', options: object = {}) {
  const shown: Shown[] = [];
  const { cert, key } = made[which];
  const server = createServer({ cert: textOf(cert), key: textOf(key), ...options }, (request, response) => {
    const { subject } = (request.socket as TLSSocket).getPeerCertificate();
    const name = subject?.CN;
    shown.push({ name: Array.isArray(name) ? name[0] : name, host: request.headers.host });
    response.end('fine');
  });
  server.on('tlsClientError', () => undefined);
  return { port: await listening(server), shown };
}

interface Sent {
  readonly ca?: readonly string[];
  readonly certificate?: Certificate;
  readonly proxy?: EgressProxy;
}

function send(url: string, { ca = [textOf(made.authority)], certificate, proxy }: Sent = {}): Promise<CallEnd> {
  const guard = createGuard({ allow: ['127.0.0.1'], names: ['localhost'], proxyResolves: proxy?.resolves });
  const sender = createSender({ guard, clock: systemClock, ca, proxy });
  closing.push(async () => sender.close());
  const call = { url, method: 'POST', headers: {}, body: '{}', timeoutMs: 60_000, certificate };
  return sender.send(call, createAbort().signal);
}

describe('the certificate of a target', () => {
  test('is taken when it is of the name or address, and of a root that counts', async () => {
    const { port, shown } = await tlsServer('good');
    for (const host of ['127.0.0.1', 'localhost']) {
      expect(await send(`https://${host}:${port}/due`)).toMatchObject({
        kind: 'answered',
        status: 200,
        address: '127.0.0.1',
      });
    }
    expect(shown.map(({ host }) => host)).toEqual([`127.0.0.1:${port}`, `localhost:${port}`]);
  });

  test.each(['expired', 'elsewhere', 'selfSigned'] as const)('%s is refused, and nothing is sent', async (which) => {
    const { port, shown } = await tlsServer(which);
    expect(await send(`https://127.0.0.1:${port}/due`)).toMatchObject({ kind: 'no-answer', why: 'tls' });
    expect(shown).toEqual([]);
  });

  test('of a root that does not count is refused, whatever the environment says', async () => {
    const before = process.env.NODE_TLS_REJECT_UNAUTHORIZED;
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
    try {
      const { port, shown } = await tlsServer('good');
      expect(await send(`https://127.0.0.1:${port}/`, { ca: [textOf(made.selfSigned.cert)] })).toMatchObject({
        why: 'tls',
      });
      expect(shown).toEqual([]);
    } finally {
      if (before === undefined) delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
      else process.env.NODE_TLS_REJECT_UNAUTHORIZED = before;
    }
  });

  test('is asked for: a server that speaks no TLS is told as such', async () => {
    const port = await listening(createHttp((_request, response) => response.end('plain')));
    expect(await send(`https://127.0.0.1:${port}/`)).toMatchObject({ kind: 'no-answer', why: 'tls' });
  });
});

describe('a certificate of one’s own', () => {
  const own = (hosts: readonly string[]): Certificate => ({
    cert: textOf(made.good.cert),
    key: textOf(made.good.key),
    hosts,
  });
  const asking = () => ({ requestCert: true, rejectUnauthorized: false, ca: textOf(made.authority) });

  test('is shown to its hosts', async () => {
    const { port, shown } = await tlsServer('good', asking());
    await send(`https://127.0.0.1:${port}/`, { certificate: own(['127.0.0.1']) });
    expect(shown.map(({ name }) => name)).toEqual(['good']);
  });

  test('is shown to nobody else', async () => {
    const { port, shown } = await tlsServer('good', asking());
    await send(`https://localhost:${port}/`, { certificate: own(['127.0.0.1', '*.localhost']) });
    expect(shown).toEqual([{ name: undefined, host: `localhost:${port}` }]);
  });
});

describe('a proxy', () => {
  async function proxy(): Promise<{ readonly through: (resolves: boolean) => EgressProxy; readonly asked: string[] }> {
    const asked: string[] = [];
    const server = createHttp((_request, response) => response.writeHead(405).end());
    server.on('connect', (request, socket) => {
      asked.push(request.url ?? '');
      const { port } = new URL(`http://${request.url}`);
      const to = connect({ host: '127.0.0.1', port: Number(port) }, () => {
        socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
        to.pipe(socket).pipe(to);
      });
      to.on('error', () => socket.destroy());
      socket.on('error', () => to.destroy());
    });
    const port = await listening(server);
    return { asked, through: (resolves) => ({ host: '127.0.0.1', port, resolves }) };
  }

  test('is asked for the address that was judged, and TLS inside is with the name', async () => {
    const { through, asked } = await proxy();
    const { port, shown } = await tlsServer('good');
    expect(await send(`https://localhost:${port}/`, { proxy: through(false) })).toMatchObject({
      kind: 'answered',
      status: 200,
    });
    expect(asked).toEqual([`127.0.0.1:${port}`]);
    expect(shown).toMatchObject([{ host: `localhost:${port}` }]);
  });

  test('that looks names up itself is asked for the name, and gets no plain http', async () => {
    const { through, asked } = await proxy();
    const { port } = await tlsServer('good');
    expect(await send(`https://localhost:${port}/`, { proxy: through(true) })).toMatchObject({ kind: 'answered' });
    expect(asked).toEqual([`localhost:${port}`]);
    expect(await send(`http://localhost:${port}/`, { proxy: through(true) })).toMatchObject({ kind: 'refused' });
    expect(asked).toHaveLength(1);
  });

  test('that refuses is no connection, and an address that may not be called is not asked for', async () => {
    const port = await listening(
      createHttp().on('connect', (_request, socket) => void socket.end('HTTP/1.1 403 Forbidden\r\n\r\n')),
    );
    const refusing = { host: '127.0.0.1', port, resolves: false };
    expect(await send('https://127.0.0.1:9443/', { proxy: refusing })).toMatchObject({
      kind: 'no-answer',
      why: 'not-connected',
    });
    const { through, asked } = await proxy();
    expect(await send('https://10.20.0.5/', { proxy: through(false) })).toMatchObject({ kind: 'refused' });
    expect(asked).toEqual([]);
  });

  test('of the environment is not read', async () => {
    const { through, asked } = await proxy();
    process.env.HTTPS_PROXY = `http://127.0.0.1:${through(false).port}`;
    try {
      const { port } = await tlsServer('good');
      expect(await send(`https://127.0.0.1:${port}/`)).toMatchObject({ kind: 'answered' });
      expect(asked).toEqual([]);
    } finally {
      delete process.env.HTTPS_PROXY;
    }
  });
});
