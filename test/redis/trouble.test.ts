/** What is said of a Redis whose certificate is not to be trusted, or that speaks TLS where we do not, with real servers. */
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer, type Server } from 'node:tls';
import type { RedisOptions } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { close, describe as labelOf, openCommands, whenReady } from '../../src/redis/connect.ts';
import { troubleOf, Unreachable } from '../../src/redis/trouble.ts';
import { weatherOf } from '../../src/redis/weather.ts';
import { makeCertificates } from '../chaos/certificates.mjs';
import { freePort } from '../chaos/users.mjs';
import { startRedis, type TestRedis } from '../support/redis.ts';

let folder: string;
let made: Awaited<ReturnType<typeof makeCertificates>>;
let server: TestRedis;
/** In front of Redis, because not every build of it has TLS. */
let front: Server;
let tlsPort: number;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'due-tls-'));
  made = await makeCertificates(folder);
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
}, 120_000);
afterAll(async () => {
  front.close();
  await server.stop();
  await rm(folder, { recursive: true });
});

const present = (name: 'good' | 'expired' | 'elsewhere' | 'selfSigned') =>
  front.setSecureContext({ cert: readFileSync(made[name].cert), key: readFileSync(made[name].key) });
const trusting = (): RedisOptions => ({
  ...{ host: '127.0.0.1', port: tlsPort },
  tls: { ca: readFileSync(made.authority) },
});

/** What the first wait for a connection ends with. */
async function outcome(redis: RedisOptions | string, withinMs = 5000): Promise<unknown> {
  const connection = openCommands({ redis, name: 'test' });
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
    expect(await outcome(trusting())).toEqual(saying(/for another host \(IP: 127\.0\.0\.1 is not/, /name Redis as/));
  });

  test.each(['good', 'selfSigned'] as const)('that nobody vouches for is refused: %s', async (name) => {
    present(name);
    const error = await outcome(`rediss://user:secret@127.0.0.1:${tlsPort}`);
    expect(error).toEqual(saying(/signed by nobody whom this process trusts/, /NODE_EXTRA_CA_CERTS/));
    expect(String(error)).not.toContain('secret');
  });
});

describe('one side that speaks TLS alone', () => {
  test('is told that the other one may be plain', async () => {
    expect(await outcome(`rediss://127.0.0.1:${server.port}`, 1000)).toEqual(saying(/not answer in TLS/, /redis:\/\//));
  });

  test('is told that the other one may want it', async () => {
    expect(await outcome(`redis://127.0.0.1:${tlsPort}`, 1000)).toEqual(saying(/before its first word/, /rediss:\/\//));
  });
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
    .toMatch(/not connected: its certificate has expired .*; renew it/);
  expect(weatherOf(await failure())).toBe('away');
  present('good');
  await expect.poll(() => redis.ping().catch(String), { timeout: 10_000 }).toBe('PONG');
  close(redis);
});

test.each(['CERT_REVOKED', 'CERT_SIGNATURE_FAILURE', 'INVALID_CA', 'ERR_TLS_HANDSHAKE', 'UNABLE_TO_GET_CRL'])(
  'what is rarely wrong with one is told with its name: %s',
  (code) => {
    expect(troubleOf(Object.assign(new Error('no'), { code }))?.why).toBe(`its certificate is refused (${code})`);
  },
);

test('weather is no trouble', () => {
  for (const code of ['ECONNREFUSED', 'ECONNRESET', 'ETIMEDOUT']) {
    expect(troubleOf(Object.assign(new Error('no'), { code }))).toBeUndefined();
  }
  expect(new Unreachable('here', { why: 'a', remedy: 'b' }, undefined).message).toBe(
    'cannot reach Redis at here: a; b',
  );
});
