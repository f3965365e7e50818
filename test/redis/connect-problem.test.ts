/** What is said of a Redis that does not come up over TLS, or that speaks it where we do not, with real servers. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect, createServer as createTcpServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer, type Server } from 'node:tls';
import type { RedisOptions } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { close, describe as labelOf, openCommands, whenReady } from '../../src/redis/connection/connect.ts';
import { connectProblemOf, Unreachable } from '../../src/redis/connection/connect-problem.ts';
import { outageOf } from '../../src/redis/connection/outage.ts';
import { makeCertificates } from '../chaos/faults/certificates.mjs';
import { tlsSettings, whyNoTls } from '../chaos/faults/tls.mjs';
import { freePort } from '../chaos/faults/users.mjs';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { testBinary } from '../support/redis-binary.ts';

let folder: string;
let made: Awaited<ReturnType<typeof makeCertificates>>;
let server: TestRedis;
/** In front of Redis, because not every build of it has TLS. */
let front: Server;
let tlsPort: number;
let redisHasTls: boolean;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'due-tls-'));
  made = await makeCertificates(folder);
  redisHasTls = whyNoTls(folder, await testBinary()) === undefined;
  server = await startRedis({ port: true });
  tlsPort = await freePort();
  front = createServer((client) => {
    const upstream = connect(server.socketPath);
    client.pipe(upstream).pipe(client);
    for (const socket of [client, upstream]) {
      socket.on('error', () => undefined);
      socket.on('close', () => {
        client.destroy();
        upstream.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => front.listen(tlsPort, '127.0.0.1', resolve));
});
afterAll(async () => {
  front.close();
  await server.stop();
  await rm(folder, { recursive: true });
});

const present = (name: 'good' | 'expired' | 'elsewhere' | 'selfSigned') =>
  front.setSecureContext({ cert: readFileSync(made[name].cert), key: readFileSync(made[name].key) });
const trusting = (): RedisOptions => ({
  host: '127.0.0.1',
  port: tlsPort,
  tls: { ca: readFileSync(made.authority) },
});

/** What the first wait for a connection ends with. */
async function outcome(redis: RedisOptions | string, withinMs = 5000, connectTimeoutMs = 5000): Promise<unknown> {
  const connection = openCommands({ redis, name: 'test', connectTimeoutMs });
  try {
    await whenReady(connection, withinMs);
    return `${labelOf(connection)} ${await connection.ping()}`;
  } catch (error) {
    return error;
  } finally {
    close(connection);
  }
}

const saying = (saw: RegExp, remedy: RegExp) =>
  expect.objectContaining({
    code: 'unavailable',
    saw: expect.stringMatching(saw),
    remedy: expect.stringMatching(remedy),
  });

describe('a certificate', () => {
  test('of an authority that is trusted is taken', async () => {
    present('good');
    expect(await outcome(trusting())).toBe(`rediss://127.0.0.1:${tlsPort} PONG`);
  });

  test('that has expired is refused at once', async () => {
    present('expired');
    expect(await outcome(trusting(), 60_000)).toEqual(
      saying(/^cannot reach Redis at rediss:.*has expired/, /renew it/),
    );
  });

  test('for another host is refused, and its names are told', async () => {
    present('elsewhere');
    expect(await outcome(trusting())).toEqual(
      saying(/for another host \(IP: 127\.0\.0\.1 is not/, /use the host name of/),
    );
  });

  test.each(['good', 'selfSigned'] as const)('that nobody vouches for is refused: %s', async (name) => {
    present(name);
    const error = await outcome(`rediss://user:secret@127.0.0.1:${tlsPort}`);
    expect(error).toEqual(saying(/does not trust the authority that signed its certificate/, /NODE_EXTRA_CA_CERTS/));
    expect(String(error)).not.toContain('secret');
  });
});

describe('one side that speaks TLS alone', () => {
  test('is told that the other one may be plain', async () => {
    expect(await outcome(`rediss://127.0.0.1:${server.port}`, 1000)).toEqual(saying(/not answer in TLS/, /redis:\/\//));
  });

  test('is told so at once when the other one answers in plain text', async () => {
    await answering(
      (client) => client.write('-ERR unknown command\r\n'),
      async (port) => expect(await outcome(at(port), 60_000)).toEqual(saying(/not answer in TLS/, /redis:\/\//)),
    );
  });

  test('is told that the other one may want it', async () => {
    expect(await outcome(`redis://127.0.0.1:${tlsPort}`, 1000)).toEqual(saying(/before its first word/, /rediss:\/\//));
  });
});

/** Somebody who does with each client that begins a handshake what is told, and its port. */
async function answering(
  answer: (client: Socket, hello: Buffer, count: number) => void,
  act: (port: number) => Promise<void>,
) {
  const sockets = new Set<Socket>();
  let count = 0;
  const other = createTcpServer((client) => {
    sockets.add(client.on('error', () => undefined));
    client.once('data', (hello) => {
      count += 1;
      answer(client, hello, count);
    });
  });
  const port = await freePort();
  await new Promise<void>((resolve) => other.listen(port, '127.0.0.1', resolve));
  try {
    await act(port);
  } finally {
    for (const socket of sockets) socket.destroy();
    other.close();
  }
}

/** A fatal alert of TLS, as it is on the wire. */
const alert = (description: number) => Buffer.from([21, 3, 3, 0, 2, 2, description]);
const at = (port: number): RedisOptions => ({ ...trusting(), port });
/** With its own words, and no guess about TLS. */
const plainly = (message: RegExp) =>
  expect.toSatisfy((error) => error instanceof Error && !(error instanceof Unreachable) && message.test(error.message));

describe('a Redis that wants a certificate of the client', () => {
  const wanting = saying(
    /it wants a certificate of the client \(ERR_SSL_/,
    /tls: \{ cert, key \}.*tls-auth-clients no/,
  );

  test.each([
    ['TLS 1.3', 116],
    ['TLS 1.2', 40],
  ])('says so at once in %s, and nobody is told to write plain text', async (_, description) => {
    await answering(
      (client) => client.end(alert(description)),
      async (port) => expect(await outcome(at(port), 60_000)).toEqual(wanting),
    );
  });

  test('is understood as a real one says it, and taken with such a certificate', async () => {
    // A build without TLS is stood in for by the alert.
    if (!redisHasTls) return;
    for (const protocol of ['TLSv1.2', 'TLSv1.3']) {
      const port = await freePort();
      const settings = { ...tlsSettings(made.good, made.authority, port), 'tls-auth-clients': 'yes' };
      const args = Object.entries({ ...settings, 'tls-protocols': protocol }).flatMap(([key, value]) => [
        `--${key}`,
        value,
      ]);
      const strict = await startRedis({ args });
      try {
        // With TLS 1.3 a reset may overtake the alert: another dialling hears it.
        expect(await outcome(at(port), 60_000)).toEqual(wanting);
        const { cert, key } = made.good;
        const tls = { ...trusting().tls, cert: readFileSync(cert), key: readFileSync(key) };
        expect(await outcome({ ...at(port), tls })).toMatch(/PONG$/);
      } finally {
        await strict.stop();
      }
    }
  });

  test('may be behind whoever only ever hangs up after the handshake', async () => {
    present('good');
    const hangUp = (socket: Socket) => socket.destroy();
    front.prependListener('secureConnection', hangUp);
    try {
      expect(await outcome(trusting(), 2000)).toEqual(
        saying(/closes the connection after the handshake/, /if it wants/),
      );
    } finally {
      front.off('secureConnection', hangUp);
    }
  });
});

describe('what may pass in TLS', () => {
  test('is dialled again: an internal error, then an end without a word', async () => {
    present('good');
    await answering(
      (client, hello, count) => {
        if (count === 1) client.end(alert(80));
        else if (count === 2) client.end();
        else {
          const upstream = connect(tlsPort, '127.0.0.1').on('error', () => undefined);
          upstream.write(hello);
          client.pipe(upstream).pipe(client);
        }
      },
      async (port) => expect(await outcome(at(port), 10_000)).toBe(`rediss://127.0.0.1:${port} PONG`),
    );
  });

  test('is said in its own words when it does not', async () => {
    await answering(
      (client) => client.end(alert(80)),
      async (port) => expect(await outcome(at(port), 1500)).toEqual(plainly(/rediss:.*alert internal error/)),
    );
  });
});

describe('silence over TLS', () => {
  const frozen = async (act: () => Promise<void>) => {
    present('good');
    await server.kill('SIGSTOP');
    try {
      await act();
    } finally {
      await server.kill('SIGCONT');
    }
  };

  test('after the handshake does not mean that the port is plain: Redis may be loading', async () => {
    await frozen(async () => expect(await outcome(trusting(), 2000)).toEqual(plainly(/rediss:.*: no answer$/)));
  });

  test('is judged by how far a connection is that was opened before the wait', async () => {
    await frozen(async () => {
      const through = openCommands({ redis: trusting(), name: 'test' });
      await once(through, 'connect');
      const accepted = openCommands({ redis: at(server.port ?? 0), name: 'test' });
      await expect.poll(() => accepted.stream?.connecting).toBe(false);
      try {
        await expect(whenReady(through, 200)).rejects.toEqual(plainly(/: no answer$/));
        await expect(whenReady(accepted, 200)).rejects.toEqual(saying(/not answer in TLS/, /redis:\/\//));
      } finally {
        close(through);
        close(accepted);
      }
    });
  });

  test('of a host that takes no connection keeps its reason', async () => {
    // Who waits in a full queue of a server that takes nobody is told nothing.
    const full = await startRedis({ port: true, args: ['--tcp-backlog', '1'] });
    await full.kill('SIGSTOP');
    const queue = Array.from({ length: 8 }, () => connect(full.port ?? 0, '127.0.0.1').on('error', () => undefined));
    try {
      await expect.poll(() => queue.filter(({ connecting }) => !connecting).length).toBeGreaterThan(0);
      expect(await outcome(at(full.port ?? 0), 1500, 300)).toEqual(plainly(/rediss:.*: connect ETIMEDOUT$/));
    } finally {
      for (const socket of queue) socket.destroy();
      await full.stop();
    }
  });
});

test.each([
  ['wrong version number', /not answer in TLS/],
  ['sslv3 alert handshake failure', /wants a certificate/],
  ['ssl/tls alert handshake failure', /wants a certificate/],
  ['tlsv13 alert certificate required', /wants a certificate/],
])('what OpenSSL says while Node.js writes is read from the message: %s', (words, why) => {
  const message = `write EPROTO 80F0:error:0A000410:SSL routines:ssl3_read_bytes:${words}:../rec_layer_s3.c:1601:`;
  expect(connectProblemOf(Object.assign(new Error(message), { code: 'EPROTO' }))?.why).toMatch(why);
});

test('a connection that worked says why it does not come back, and does when the certificate is renewed', async () => {
  present('good');
  const redis = openCommands({ redis: trusting(), name: 'test' });
  await whenReady(redis);
  present('expired');
  await (await server.client()).call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
  const failure = () => redis.ping().then(String, (error: unknown) => error);
  await expect
    .poll(async () => String(await failure()))
    .toMatch(/^ConnectionError: not connected to Redis at rediss:\S+: its certificate has expired .*; renew it/);
  expect(outageOf(await failure())).toBe('away');
  present('good');
  await expect.poll(() => redis.ping().catch(String)).toBe('PONG');
  close(redis);
});

test.each(['CERT_REVOKED', 'CERT_SIGNATURE_FAILURE', 'INVALID_CA', 'ERR_TLS_HANDSHAKE', 'UNABLE_TO_GET_CRL'])(
  'what is rarely wrong with one is told with its name: %s',
  (code) => {
    expect(connectProblemOf(Object.assign(new Error('no'), { code }))?.why).toBe(
      `its certificate is refused (${code})`,
    );
  },
);

test('an outage is no trouble', () => {
  const passing = ['ERR_SSL_TLSV1_ALERT_INTERNAL_ERROR', 'ERR_SSL_UNEXPECTED_EOF_WHILE_READING', 'EPROTO'];
  for (const code of ['ECONNREFUSED', 'ECONNRESET', 'ETIMEDOUT', ...passing]) {
    expect(connectProblemOf(Object.assign(new Error('no'), { code }))).toBeUndefined();
  }
  expect(new Unreachable('here', { why: 'a', remedy: 'b' }, undefined).message).toBe(
    'cannot reach Redis at here: a; b',
  );
});
