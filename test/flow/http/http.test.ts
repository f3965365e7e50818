/** What the HTTP window answers, asked by a real client on a real port. */
import { connect } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { createHttp, type Http, type HttpOptions } from '../../../src/http/server.ts';
import { DuestreamError } from '../../../src/kernel/errors.ts';
import { silentLog } from '../../../src/kernel/log.ts';

const TOKEN = 'a-token:with/"odd"characters!';
const open: Http[] = [];

afterEach(async () => {
  await Promise.all(open.splice(0).map((http) => http.stop()));
});

/** A server on a free port; resolves to its URL. */
async function serve(given: Partial<HttpOptions> = {}): Promise<string> {
  const http = createHttp({
    host: '127.0.0.1',
    port: 0,
    live: () => ({ ok: true, detail: { lastProgressMs: 12 } }),
    ready: async () => ({ ok: true, detail: 'redis answers' }),
    scrape: async () => 'duestream_ready 1\n',
    contentType: 'text/plain; version=0.0.4; charset=utf-8',
    ...given,
  });
  open.push(http);
  const { host, port } = await http.start();
  return `http://${host}:${port}`;
}

describe('health', () => {
  test('says ok, and with ?verbose why', async () => {
    const url = await serve();
    for (const path of ['/livez', '/readyz']) {
      const response = await fetch(url + path);
      expect([response.status, await response.text()]).toEqual([200, 'ok\n']);
    }
    expect(await (await fetch(`${url}/livez?verbose`)).json()).toEqual({ ok: true, detail: { lastProgressMs: 12 } });
    expect(await (await fetch(`${url}/readyz?verbose`)).json()).toEqual({ ok: true, detail: 'redis answers' });
  });

  test('says 503 and why when the process is stuck or not ready', async () => {
    const bad = { ok: false, detail: 'no progress for 30 s' };
    const url = await serve({ live: () => bad, ready: async () => bad });
    for (const path of ['/livez', '/readyz']) {
      const response = await fetch(url + path);
      expect([response.status, await response.text()]).toEqual([503, 'not ok\n']);
      const verbose = await fetch(`${url}${path}?verbose`);
      expect([verbose.status, await verbose.json()]).toEqual([503, bad]);
    }
  });

  test('is never cached', async () => {
    expect((await fetch(`${await serve()}/readyz`)).headers.get('cache-control')).toBe('no-store');
  });
});

describe('metrics', () => {
  test('are the scrape, in the format it says', async () => {
    const response = await fetch(`${await serve()}/metrics`);
    expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(await response.text()).toBe('duestream_ready 1\n');
  });

  test('need the token once there is one, and nothing else does', async () => {
    const url = await serve({ token: TOKEN });
    const ask = (Authorization: string) => fetch(`${url}/metrics`, { headers: { Authorization } });
    for (const response of [
      await fetch(`${url}/metrics`),
      await ask('Bearer'),
      await ask(`Bearer ${TOKEN}x`),
      await ask(`Bearer ${TOKEN.slice(0, -1)}`),
      await ask(`Basic ${TOKEN}`),
      await ask(TOKEN),
      await fetch(`${url}/metrics`, { method: 'HEAD' }),
    ]) {
      expect(response.status).toBe(401);
      expect(response.headers.get('www-authenticate')).toBe('Bearer realm="duestream"');
      expect(await response.text()).not.toContain('duestream_ready');
    }
    expect((await ask(`Bearer ${TOKEN}`)).status).toBe(200);
    expect((await ask(`bearer ${TOKEN}`)).status).toBe(200);
    expect((await fetch(`${url}/livez`)).status).toBe(200);
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
  });
});

describe('other requests', () => {
  test('an unknown path is 404 as JSON', async () => {
    const url = await serve();
    for (const path of ['/', '/metrics/', '/v1/jobs', '/livez/../x', '/%00']) {
      const response = await fetch(url + path);
      expect(response.status).toBe(404);
      expect(await response.json()).toMatchObject({ error: 'not-found' });
    }
  });

  test.each(['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])('%s is 405 and says what is allowed', async (method) => {
    const url = await serve({ token: TOKEN });
    for (const path of ['/livez', '/readyz', '/metrics']) {
      const response = await fetch(url + path, { method });
      expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
      expect(await response.json()).toMatchObject({ error: 'method-not-allowed' });
    }
  });

  test('HEAD is GET without the body', async () => {
    const url = await serve();
    for (const path of ['/livez', '/readyz', '/metrics']) {
      const response = await fetch(url + path, { method: 'HEAD' });
      expect([response.status, await response.text()]).toEqual([200, '']);
    }
  });

  test('a prober that sends no Host header is answered', async () => {
    expect(await raw(await serve(), 'GET /livez HTTP/1.0\r\n\r\n')).toMatch(/^HTTP\/1\.1 200 OK/);
  });

  test.each([
    ['nonsense', 'nonsense\r\n\r\n', '400'],
    ['a bad Host', 'GET /livez HTTP/1.1\r\nHost: a b\r\nConnection: close\r\n\r\n', '400'],
    ['headers beyond 8 KiB', `GET /livez HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(9000)}\r\n\r\n`, '431'],
  ])('%s is refused without a word about us', async (_, text, status) => {
    const answer = await raw(await serve(), text);
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(answer).not.toMatch(/\bat |node_modules|\.ts\b|\.js\b/);
  });

  test('with the API headers may be larger: a proxy that logs people in hands on its cookies', async () => {
    const url = await serve({ api: () => new Response('{}') });
    const asked = (length: number) =>
      raw(url, `GET /v1/x HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(length)}\r\nConnection: close\r\n\r\n`);
    expect(await asked(30_000)).toMatch(/^HTTP\/1\.1 200 /);
    expect(await asked(40_000)).toMatch(/^HTTP\/1\.1 431 /);
  });

  test('a method that fetch does not know ends with an error, not with a crash', async () => {
    const url = await serve();
    expect(await raw(url, 'TRACE /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')).toMatch(
      /^HTTP\/1\.1 4\d\d /,
    );
    expect((await fetch(`${url}/livez`)).status).toBe(200);
  });
});

describe('failures', () => {
  const secret = new Error('password hunter2 is wrong');
  const lines: unknown[] = [];
  const log = { ...silentLog, error: (fields: unknown) => lines.push(fields) };

  test('are a code to the client and a line in the log', async () => {
    const url = await serve({
      log,
      live: () => {
        throw secret;
      },
      ready: () => Promise.reject(new DuestreamError('unavailable', 'no Redis at secret.internal')),
      scrape: () => Promise.reject(secret),
    });
    for (const [path, status, error] of [
      ['/livez', 500, 'failed'],
      ['/readyz?verbose', 503, 'unavailable'],
      ['/metrics', 500, 'failed'],
    ] as const) {
      const response = await fetch(url + path);
      expect([response.status, await response.text()]).toEqual([status, JSON.stringify({ error })]);
    }
    expect(lines).toEqual([
      { path: '/livez', status: 500, error: 'password hunter2 is wrong' },
      { path: '/readyz', status: 503, error: 'no Redis at secret.internal' },
      { path: '/metrics', status: 500, error: 'password hunter2 is wrong' },
    ]);
  });
});

describe('addresses', () => {
  const at =
    (host: string, token = '') =>
    () =>
      createHttp({
        host,
        port: 0,
        token,
        live: () => ({ ok: true, detail: '' }),
        ready: async () => ({ ok: true, detail: '' }),
        scrape: async () => '',
        contentType: 'text/plain',
      });

  test.each([
    '0.0.0.0',
    '::',
    '',
    '10.0.0.5',
    '128.0.0.1',
    '::2',
    '127.0.0.1.example.com',
    'example.com',
    '::ffff:10.0.0.5',
  ])('beyond loopback ("%s") are refused without a token and taken with one', (host) => {
    expect(at(host)).toThrow(expect.objectContaining({ code: 'bad-config' }));
    expect(at(host)).toThrow(/http\.host is ".*" and http\.token is empty; allowed: /);
    expect(at(host, TOKEN)).not.toThrow();
  });

  test.each(['127.0.0.1', '127.8.9.10', 'localhost', '::1', '0:0:0:0:0:0:0:1', '::ffff:127.0.0.1'])(
    'of this machine (%s) need no token',
    (host) => expect(at(host)).not.toThrow(),
  );

  test('a port in use is a configuration error that names it', async () => {
    const { port } = new URL(await serve());
    const refused = serve({ port: Number(port) });
    await expect(refused).rejects.toMatchObject({ code: 'bad-config' });
    await expect(refused).rejects.toThrow(`http.port ${port}: listen EADDRINUSE`);
  });

  test('two servers in one process do not clash', async () => {
    const [one, other] = await Promise.all([serve(), serve({ scrape: async () => 'other 1\n' })]);
    expect(await (await fetch(`${one}/metrics`)).text()).toBe('duestream_ready 1\n');
    expect(await (await fetch(`${other}/metrics`)).text()).toBe('other 1\n');
  });

  test('the globals of the host program stay what they are', async () => {
    const before = [globalThis.Request, globalThis.Response];
    await fetch(`${await serve()}/livez`);
    expect([globalThis.Request, globalThis.Response]).toEqual(before);
  });
});

/** Sends bytes as they are and reads until the server closes. */
function raw(url: string, text: string): Promise<string> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    let answer = '';
    const socket = connect(Number(port), hostname, () => socket.write(text));
    socket.on('data', (chunk) => {
      answer += String(chunk);
    });
    socket.on('close', () => resolve(answer)).on('error', reject);
  });
}
