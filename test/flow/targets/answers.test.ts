/** What a server answers has a bound in every direction, and each end of a request is one of a few words. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer as createTcp, type Socket } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { createGuard } from '../../../src/dispatch/guard/guard.ts';
import { BODY_BYTES_MAX, createSender, type OutgoingCall, type Sender } from '../../../src/dispatch/send/sender.ts';
import { createAbort } from '../../../src/kernel/abort.ts';
import { systemClock } from '../../../src/kernel/clock.ts';

const closing: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

const portOf = (server: Pick<Server, 'address'>) => (server.address() as AddressInfo).port;

/** A server that says what it likes, byte by byte. */
async function rawServer(answer: (socket: Socket, path: string) => void): Promise<number> {
  const sockets = new Set<Socket>();
  const server = createTcp((socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('data', (head) => answer(socket, head.toString().split(' ')[1] ?? ''));
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  closing.push(() => {
    for (const socket of sockets) socket.destroy();
    return new Promise<void>((resolve) => void server.close(() => resolve()));
  });
  return portOf(server);
}

async function httpServer(
  answer: (request: IncomingMessage, response: ServerResponse) => void,
  options = {},
): Promise<number> {
  const server = createServer(options, answer);
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  closing.push(() => {
    server.closeAllConnections();
    return new Promise<void>((resolve) => void server.close(() => resolve()));
  });
  return portOf(server);
}

function senderHere(): Sender {
  const sender = createSender({ guard: createGuard({ allow: ['127.0.0.1'] }), clock: systemClock });
  closing.push(sender.close);
  return sender;
}

/** Long enough for every answer that comes at all. */
const AMPLE_MS = 60_000;

const send = (url: string, options: Partial<OutgoingCall> = {}, sender = senderHere()) =>
  sender.send({ url, method: 'POST', headers: {}, body: '{}', timeoutMs: AMPLE_MS, ...options }, createAbort().signal);

/** Writes until the other side has enough. */
function pour(socket: Socket, part: () => string): void {
  const more = () => {
    while (!socket.destroyed && socket.write(part()));
  };
  socket.on('drain', more);
  more();
}

/** Writes one more part whenever the last one has left, for ever. */
function drip(socket: Socket, part: string): void {
  const cancel = { off: () => {} };
  const next = () => {
    if (socket.destroyed) return;
    socket.write(part, () => {
      cancel.off = systemClock.timer(5, next);
    });
  };
  socket.once('close', () => cancel.off());
  next();
}

describe('an answer', () => {
  test('is its status, its headers and the beginning of its body', async () => {
    const port = await httpServer((_request, response) => response.writeHead(503, { 'Retry-After': '7' }).end('later'));
    const end = await send(`http://127.0.0.1:${port}/`);
    expect(end).toMatchObject({ kind: 'answered', status: 503, headers: { 'retry-after': '7' }, address: '127.0.0.1' });
    expect(end.kind === 'answered' && end.body.toString()).toBe('later');
  });

  test('that does not end is read to a bound, and its socket is closed', async () => {
    let isClosed = false;
    const port = await rawServer((socket) => {
      socket.once('close', () => {
        isClosed = true;
      });
      socket.write('HTTP/1.1 200 OK\r\nContent-Type: x\r\n\r\n');
      pour(socket, () => 'x'.repeat(16_384));
    });
    const end = await send(`http://127.0.0.1:${port}/`);
    expect(end).toMatchObject({ kind: 'answered', status: 200 });
    expect(end.kind === 'answered' && end.body.length).toBe(BODY_BYTES_MAX);
    await expect.poll(() => isClosed).toBe(true);
  });

  test('that claims to be compressed is not unpacked', async () => {
    const asked: unknown[] = [];
    const port = await httpServer((request, response) => {
      asked.push(request.headers['accept-encoding']);
      response.writeHead(200, { 'Content-Encoding': 'gzip' }).end('no gzip');
    });
    const end = await send(`http://127.0.0.1:${port}/`);
    expect(end.kind === 'answered' && end.body.toString()).toBe('no gzip');
    expect(asked).toEqual(['identity']);
  });

  test('comes after any number of 1xx', async () => {
    const port = await rawServer((socket) => {
      socket.write('HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n');
      socket.end('HTTP/1.1 204 No Content\r\n\r\n');
    });
    expect(await send(`http://127.0.0.1:${port}/`)).toMatchObject({ kind: 'answered', status: 204 });
  });

  test('101 is an end', async () => {
    const port = await rawServer((socket) =>
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n'),
    );
    expect(await send(`http://127.0.0.1:${port}/`)).toMatchObject({ kind: 'answered', status: 101 });
  });
});

describe('there is no answer, and it is told', () => {
  test.each([
    [
      'of a head without an end',
      (socket: Socket) => {
        socket.write('HTTP/1.1 200 OK\r\n');
        pour(socket, () => `X-${'y'.repeat(1000)}: ${'z'.repeat(1000)}\r\n`);
      },
    ],
    ['of something that is no HTTP', (socket: Socket) => socket.end('SSH-2.0-OpenSSH_9.2\r\n')],
    [
      'of two lengths',
      (socket: Socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 5\r\n\r\nhello'),
    ],
    [
      'of a body that ends too soon',
      (socket: Socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello'),
    ],
    ['of a socket that is closed', (socket: Socket) => socket.end()],
    ['of a socket that is broken', (socket: Socket) => socket.resetAndDestroy()],
  ])('cut off: %s', async (_, answer) => {
    const port = await rawServer(answer);
    expect(await send(`http://127.0.0.1:${port}/`)).toMatchObject({ kind: 'no-answer', why: 'cut-off' });
  });

  test.each([
    ['of silence', () => undefined],
    [
      'of a body by single bytes',
      (socket: Socket) => {
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n');
        drip(socket, '.');
      },
    ],
    ['of 100 Continue for ever', (socket: Socket) => drip(socket, 'HTTP/1.1 100 Continue\r\n\r\n')],
  ])('time-out of the whole request: %s', async (_, answer) => {
    const port = await rawServer(answer);
    expect(await send(`http://127.0.0.1:${port}/`, { timeoutMs: 150 })).toMatchObject({
      kind: 'no-answer',
      why: 'timeout',
    });
  });

  test('a port where nobody listens', async () => {
    const port = await rawServer(() => undefined);
    await closing.pop()?.();
    expect(await send(`http://127.0.0.1:${port}/`)).toMatchObject({ kind: 'no-answer', why: 'not-connected' });
  });

  test('a server without TLS', async () => {
    const port = await rawServer((socket) => socket.end('HTTP/1.1 200 OK\r\n\r\n'));
    expect(await send(`https://127.0.0.1:${port}/`)).toMatchObject({ kind: 'no-answer', why: 'tls' });
  });

  test('a server that says nothing to a handshake of TLS', async () => {
    const port = await rawServer(() => undefined);
    const guard = createGuard({ allow: ['127.0.0.1'] });
    const sender = createSender({ guard, clock: systemClock, connectMs: 100 });
    expect(await send(`https://127.0.0.1:${port}/`, {}, sender)).toMatchObject({ kind: 'no-answer', why: 'timeout' });
  });

  test('a request whose caller stops', async () => {
    const stop = createAbort();
    const port = await rawServer(() => stop.abort());
    const call = { url: `http://127.0.0.1:${port}/`, method: 'POST', headers: {}, body: '', timeoutMs: AMPLE_MS };
    expect(await senderHere().send(call, stop.signal)).toMatchObject({ kind: 'no-answer', why: 'stopped' });
    expect(await senderHere().send(call, stop.signal)).toMatchObject({ kind: 'no-answer', why: 'stopped' });
  });
});

describe('a request', () => {
  test('has its host, its length and no header that a proxy or a browser would send', async () => {
    const seen: (readonly string[])[] = [];
    const bodies: string[] = [];
    const port = await httpServer((request, response) => {
      seen.push(request.rawHeaders);
      void request.setEncoding('utf8').on('data', (text: string) => bodies.push(text));
      request.once('end', () => response.end());
    });
    await send(`http://127.0.0.1:${port}/due?x=1`, { headers: { 'Content-Type': 'application/json' }, body: '"é"' });
    expect(seen).toEqual([
      [
        'Content-Type',
        'application/json',
        'Accept-Encoding',
        'identity',
        'Host',
        `127.0.0.1:${port}`,
        'Content-Length',
        '4',
        'Connection',
        'keep-alive',
      ],
    ]);
    expect(bodies).toEqual(['"é"']);
  });

  test('uses the socket of the one before it, and another one where that was closed', async () => {
    const ports: unknown[] = [];
    const port = await httpServer(({ socket }, response) => {
      ports.push(socket.remotePort);
      response.setHeader('Connection', ports.length < 2 ? 'keep-alive' : 'close').end('x');
    });
    const sender = senderHere();
    for (const path of ['a', 'b', 'c']) {
      expect(await send(`http://127.0.0.1:${port}/${path}`, {}, sender)).toMatchObject({
        kind: 'answered',
        status: 200,
      });
    }
    expect(ports).toEqual([ports[0], ports[0], ports[2]]);
    expect(ports[2]).not.toBe(ports[0]);
  });

  test('that is lost on a socket that was used before is told, and not sent again', async () => {
    const seen: string[] = [];
    const port = await rawServer((socket, path) => {
      seen.push(path);
      if (seen.length === 1) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
      else socket.destroy();
    });
    const sender = senderHere();
    expect(await send(`http://127.0.0.1:${port}/a`, {}, sender)).toMatchObject({ kind: 'answered' });
    expect(await send(`http://127.0.0.1:${port}/b`, {}, sender)).toMatchObject({ kind: 'no-answer', why: 'cut-off' });
    expect(seen).toEqual(['/a', '/b']);
  });

  test('goes to another address of the name where the first one does not answer the dial', async () => {
    const port = await httpServer((_request, response) => response.end('x'));
    const resolve = () => Promise.resolve(['127.0.0.3', '127.0.0.1']);
    const guard = createGuard({ allow: ['127.0.0.1', '127.0.0.3'], resolve });
    const sender = createSender({ guard, clock: systemClock });
    closing.push(sender.close);
    const end = await send(`http://hook.hacker.net:${port}/`, {}, sender);
    expect(end).toMatchObject({ kind: 'answered', address: '127.0.0.1' });
  });
});
