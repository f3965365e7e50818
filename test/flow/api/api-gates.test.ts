/** The gates before every verb: host and origin, size, rate, time; and what is answered while Redis or the daemon goes. */

import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import { request as requestTls } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { defineConfig } from '../../../src/config/load.ts';
import { doneLimits } from '../../../src/config/options.ts';
import { createDaemonOf } from '../../../src/daemon/daemon.ts';
import { readDaemonInput } from '../../../src/daemon/input.ts';
import { type Api, type ApiOptions, createApi } from '../../../src/http/api/api.ts';
import { createHttp } from '../../../src/http/server.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { makeCertificates } from '../../chaos/faults/certificates.mjs';
import { type ServedApi, serveApi } from '../../support/api.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

const codeIn = async (answered: Response): Promise<unknown> => JSON.parse(await answered.text()).code;

let redis: TestRedis;
const apis: Api[] = [];
const served: ServedApi[] = [];

beforeAll(async () => {
  redis = await startRedis();
});
afterEach(async () => {
  await Promise.all(apis.splice(0).map((api) => api.stop()));
  await Promise.all(served.splice(0).map((api) => api.stop()));
});
afterAll(() => redis.stop());

/** The API without a server around it, so that it can believe to listen anywhere. */
function create(given: Partial<ApiOptions> = {}): (path: string, init?: RequestInit) => Promise<Response> {
  const api = createApi({
    redis: redis.url,
    namespace: 'duestream',
    horizonMs: 1e9,
    dataBytesMax: 1000,
    doneWindowMs: 60_000,
    queueOf: (name) => defineQueue(name),
    examined: { done: doneLimits(defineConfig({})), closedMax: 1000 },
    readyMax: 10_000,
    limits: { bodyBytesMax: 2000, batchMax: 3, rateMax: 1_000_000, workRateMax: 1_000_000 },
    host: '127.0.0.1',
    tokens: 'beyond-loopback',
    allowedHosts: [],
    allowedOrigins: [],
    trustProxy: [],
    isTls: false,
    ...given,
  });
  apis.push(api);
  return async (path, { headers = {}, ...init } = {}) =>
    api.fetch(
      new Request(`http://127.0.0.1:7420${path}`, { ...init, headers: { Host: '127.0.0.1:7420', ...headers } }),
      { incoming: { socket: { remoteAddress: '127.0.0.1' } } },
    );
}

async function serve(given: Parameters<typeof serveApi>[0] = {}): Promise<ServedApi> {
  const api = await serveApi(given);
  served.push(api);
  return api;
}

describe('a request by another name', () => {
  const statusOf = async (ask: ReturnType<typeof create>, Host: string) =>
    (await ask('/v1/queues', { headers: { Host } })).status;

  test.each(['127.0.0.1:7420', 'localhost', 'LOCALHOST:1', '[::1]:7420', '127.9.9.9'])(
    '%s is of this machine',
    async (host) => {
      expect(await statusOf(create(), host)).toBe(200);
    },
  );

  test.each([
    'evil.example',
    'evil.example:7420',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    '10.0.0.5',
    'a b',
    '',
  ])('%s is refused on loopback: a name of a stranger may lead here', async (host) => {
    const answered = await create()('/v1/queues', { headers: { Host: host } });
    expect([answered.status, await codeIn(answered)]).toEqual([421, 'misdirected']);
  });

  test('is taken when it was allowed', async () => {
    expect(await statusOf(create({ allowedHosts: ['jobs.example'] }), 'jobs.example:443')).toBe(401);
    expect(await statusOf(create({ allowedHosts: ['jobs.example'] }), 'other.example')).toBe(421);
  });

  test('beyond loopback needs a token, whatever its name; with allowed hosts it must be one of them', async () => {
    expect(await statusOf(create({ host: '0.0.0.0' }), '10.0.0.5:7420')).toBe(401);
    expect(await statusOf(create({ host: '0.0.0.0' }), '127.0.0.1:7420')).toBe(401);
    expect(await statusOf(create({ host: '0.0.0.0', allowedHosts: ['jobs.example'] }), '10.0.0.5')).toBe(421);
  });

  test('that came through a proxy needs a token also on loopback', async () => {
    for (const header of ['X-Forwarded-For', 'Forwarded', 'Via', 'X-Real-IP']) {
      expect((await create()('/v1/queues', { headers: { [header]: '10.0.0.5' } })).status, header).toBe(401);
    }
    expect((await create({ tokens: 'always' })('/v1/queues')).status).toBe(401);
  });
});

describe('a page of another site', () => {
  const allowedOrigins = ['https://ops.example'];
  const ask = (
    headers: Readonly<Record<string, string>>,
    method = 'POST',
    given: Partial<ApiOptions> = { allowedOrigins },
  ) => create(given)('/v1/queues/emails/resume', { method, headers });

  test('is refused, whatever it asks', async () => {
    for (const Origin of ['https://evil.example', 'null', 'http://127.0.0.1:9', 'nonsense']) {
      const answered = await ask({ Origin });
      expect([answered.status, await codeIn(answered)], Origin).toEqual([403, 'forbidden']);
      expect(answered.headers.get('access-control-allow-origin'), Origin).toBeNull();
      expect((await ask({ Origin, 'Access-Control-Request-Method': 'POST' }, 'OPTIONS')).status).toBe(403);
    }
    expect((await ask({ 'Sec-Fetch-Site': 'cross-site' })).status).toBe(403);
  });

  test('is known by what the browser says, whatever the Host has become on the way', async () => {
    const changed = { Origin: 'https://jobs.example.org', Host: '127.0.0.1:7420' };
    expect((await ask(changed)).status).toBe(403);
    expect((await ask({ ...changed, 'Sec-Fetch-Site': 'same-origin' })).status).toBe(404);
    for (const site of ['same-site', 'cross-site', 'none', 'nonsense', 'same-origin, cross-site']) {
      expect((await ask({ ...changed, 'Sec-Fetch-Site': site })).status, site).toBe(403);
      // The browser knows better than a comparison of names.
      const own = { Origin: 'http://127.0.0.1:7420', 'Sec-Fetch-Site': site };
      expect((await ask(own)).status, site).toBe(403);
    }
    // Somebody has typed the address, or a program asks.
    expect((await ask({ 'Sec-Fetch-Site': 'none' })).status).toBe(404);
  });

  test('that has a name which leads here is refused, whatever its browser says of it', async () => {
    const rebound = { Host: 'evil.example', Origin: 'http://evil.example', 'Sec-Fetch-Site': 'same-origin' };
    expect((await ask(rebound)).status).toBe(421);
    const given = { trustProxy: ['127.0.0.1'], allowedHosts: ['jobs.example'] };
    expect((await ask({ ...rebound, 'X-Forwarded-Host': 'jobs.example' }, 'POST', given)).status).toBe(421);
  });

  test('of the same host is none; one that was allowed may read answers', async () => {
    expect((await ask({ Origin: 'http://127.0.0.1:7420' })).status).toBe(404);
    const allowed = await ask({ Origin: 'https://ops.example' });
    expect([allowed.status, allowed.headers.get('access-control-allow-origin')]).toEqual([404, 'https://ops.example']);
    const preflight = await ask({ Origin: 'https://ops.example', 'Access-Control-Request-Method': 'PATCH' }, 'OPTIONS');
    expect(preflight.status).toBe(204);
    expect(preflight.headers.get('access-control-allow-methods')).toContain('PATCH');
    // What instrumentation of a page adds to its requests.
    expect(preflight.headers.get('access-control-allow-headers')).toMatch(/\btraceparent\b.*\btracestate\b/);
    expect(preflight.headers.get('access-control-allow-credentials')).toBeNull();
  });
});

describe('too much', () => {
  test('of a body is refused, also in chunks', async () => {
    const api = await serve({ http: { bodyBytesMax: 2000 } });
    const large = JSON.stringify({ data: 'x'.repeat(3000) });
    const whole = await api.ask('POST /v1/queues/emails/jobs', { body: large });
    expect(whole).toMatchObject({
      status: 413,
      body: { code: 'too-large', detail: 'allowed: 2000 bytes (http.bodyBytesMax)' },
    });
    expect(await chunked(api.url, [large.slice(0, 1500), large.slice(1500)])).toBe(413);
    expect(await chunked(api.url, ['{"delay":', '"1h"}'])).toBe(201);
  });

  test('of jobs in one request is refused, before any is scheduled', async () => {
    const api = await serve({ http: { batchMax: 2 } });
    const jobs = ['a', 'b', 'c'].map((id) => ({ id, delay: '1h' }));
    const answered = await api.ask('POST /v1/queues/emails/batch/schedule', { body: { jobs } });
    expect(answered).toMatchObject({
      status: 400,
      body: { detail: 'the batch has 3 jobs; allowed: 2 (http.batchMax)' },
    });
    expect((await api.ask('GET /v1/queues')).body.queues).toEqual([]);
    await api.ask('POST /v1/queues/emails/jobs', { body: jobs[0] });
    expect((await api.ask('POST /v1/queues/emails/batch/cancel', { body: { ids: ['a', 'b', 'c'] } })).status).toBe(400);
  });

  test('of requests is told to wait, each caller for itself', async () => {
    const api = await serve({ http: { rateMax: 5, tokens: 'always' } });
    const [one, other] = [await api.tokenOf({}), await api.tokenOf({})];
    const all = await Promise.all(Array.from({ length: 30 }, () => api.ask('GET /v1/queues', { token: one })));
    const refused = all.filter(({ status }) => status === 429);
    expect(refused.length).toBeGreaterThan(0);
    for (const { body, headers } of refused) {
      expect([body.code, headers.get('retry-after')]).toEqual(['too-many', '1']);
    }
    expect((await api.ask('GET /v1/queues', { token: other })).status).toBe(200);
    expect((await api.ask('GET /livez')).status).toBe(200);
  });

  test('of wrong tokens is told to wait, while right ones are answered', async () => {
    const api = await serve({ http: { tokens: 'always' } });
    const token = await api.tokenOf({});
    const all = await Promise.all(
      Array.from({ length: 40 }, (_, at) => api.ask('GET /v1/queues', { token: `due_${at}` })),
    );
    expect(new Set(all.map(({ status }) => status))).toEqual(new Set([401, 429]));
    expect((await api.ask('GET /v1/queues', { token })).status).toBe(200);
  });
});

describe('while something goes', () => {
  test('Redis is away, an answer says so without its address', async () => {
    const api = await serve();
    expect((await api.ask('POST /v1/queues/emails/jobs', { body: { delay: '1h' } })).status).toBe(201);
    await api.redis.kill('SIGKILL');
    for (const what of ['GET /v1/queues', 'POST /v1/queues/emails/jobs']) {
      const { status, body, text, headers } = await api.ask(what, what.startsWith('GET') ? {} : { body: { id: 'x' } });
      expect([status, headers.get('retry-after') ?? '-'], text).toEqual([503, body.code === 'unavailable' ? '1' : '-']);
      expect(['unavailable', 'indeterminate']).toContain(body.code);
      expect(text).not.toContain(api.redis.dir);
    }
    const wrong = await api.ask('POST /v1/queues/emails/jobs', { body: { delay: 'x' } });
    expect(wrong.status).toBe(400);
  });

  test('the daemon stops, a request under way on a kept connection has its answer', async () => {
    let open: () => void = () => undefined;
    let came: () => void = () => undefined;
    const entered = new Promise<void>((resolve) => {
      came = resolve;
    });
    const answer = () =>
      new Promise<Response>((resolve) => {
        open = () => resolve(new Response('{}'));
        came();
      });
    const http = createHttp({
      host: '127.0.0.1',
      port: 0,
      drainMs: 600_000,
      contentType: 'text/plain',
      api: answer,
      live: () => ({ ok: true, detail: '' }),
      ready: async () => ({ ok: true, detail: '' }),
      scrape: async () => '',
    });
    const { port } = await http.start();
    const agent = new Agent({ keepAlive: true });
    const answered = new Promise<{ status: number | undefined; connection: string | undefined }>((resolve, reject) => {
      request({ port, agent, path: '/v1/queues' }, (response) => {
        response
          .resume()
          .on('end', () => resolve({ status: response.statusCode, connection: response.headers.connection }));
      })
        .on('error', reject)
        .end();
    });
    await entered;
    const stopped = http.stop();
    // It says so from its next step on.
    await new Promise(setImmediate);
    open();
    expect(await answered).toEqual({ status: 200, connection: 'close' });
    await stopped;
    agent.destroy();
  });
});

describe('TLS', () => {
  test('is spoken with the certificate and key of files, and cookies are Secure', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'due-'));
    try {
      const { authority, good } = await makeCertificates(dir);
      const api = await serve({ http: { cert: good.cert, key: good.key } });
      const token = await api.tokenOf({});
      const ca = await readFile(authority, 'utf8');
      const answered = await new Promise<{ status: number | undefined; cookie: string; hsts: unknown }>(
        (resolve, reject) => {
          const headers = { 'Content-Type': 'application/json' };
          requestTls(`${api.url}/v1/session`, { ca, method: 'POST', headers }, (response) => {
            const { statusCode: status, headers: got } = response;
            response.resume();
            resolve({ status, cookie: String(got['set-cookie']), hsts: got['strict-transport-security'] });
          })
            .on('error', reject)
            .end(JSON.stringify({ token }));
        },
      );
      expect(answered).toEqual({ status: 201, cookie: expect.stringMatching(/; Secure$/), hsts: 'max-age=31536000' });
    } finally {
      await rm(dir, { recursive: true, force: true });
    }
  });

  test.each([
    [{ cert: 'only.pem' }, /http\.cert and http\.key belong together/],
    [{ cert: 'missing.pem', key: 'missing.key' }, /http\.cert cannot be read/],
    [{ cert: 'package.json', key: 'package.json' }, /http\.cert and http\.key cannot be used/],
  ])('with %o stops the start', (http, why) => {
    const make = () => createDaemonOf(readDaemonInput({ redis: redis.url, http: { port: 0, ...http } }), {});
    expect(make).toThrow(expect.objectContaining({ code: 'bad-config' }));
    expect(make).toThrow(why);
  });
});

test('without the API its paths are as unknown as any', async () => {
  const api = await serve({ http: { api: 'off' } });
  expect(await api.ask('GET /v1/queues')).toMatchObject({ status: 404, body: { error: 'not-found' } });
  expect((await api.ask('GET /livez')).status).toBe(200);
});

describe('what it costs Redis', () => {
  const connections = async (api: ServedApi) =>
    [...String(await api.place.redis.call('CLIENT', 'LIST')).matchAll(/ name=(\S+)/g)].map(([, name]) => name);

  test('is nothing as long as nobody asks: not even a connection', async () => {
    const api = await serve();
    const before = await connections(api);
    expect(before.filter((name) => /api|schedules/.test(name ?? ''))).toEqual([]);
    await api.ask('POST /v1/queues/emails/jobs', { body: { delay: '1h' } });
    expect(await connections(api)).toEqual(expect.arrayContaining([...before, 'duestream:api']));
  });

  test('is one HGET for the token of a request, and what the library needs', async () => {
    const api = await serve({ roles: ['http'], http: { tokens: 'always' } });
    const token = await api.tokenOf({ scopes: ['write'] });
    const schedule = (at: number) =>
      api.ask('POST /v1/queues/emails/jobs', { token, body: { id: `j${at}`, delay: '1h' } });
    await schedule(0);
    await api.place.redis.call('CONFIG', 'RESETSTAT');
    for (let at = 1; at <= 50; at += 1) await schedule(at);
    const stats = String(await api.place.redis.info('commandstats'));
    const calls = (name: string) => Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
    // The read of a hash is that of the token: what the script has to know it reads at once, with HMGET.
    expect([calls('evalsha'), calls('hget'), calls('smembers'), calls('hgetall')]).toEqual([50, 50, 0, 0]);
  });
});

/** Sends a body whose length nobody says beforehand. */
function chunked(url: string, parts: readonly string[]): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const headers = { 'Content-Type': 'application/json', 'Transfer-Encoding': 'chunked' };
    const asking = request(`${url}/v1/queues/emails/jobs`, { method: 'POST', headers }, (response) => {
      response.resume();
      resolve(response.statusCode);
    }).on('error', reject);
    for (const part of parts) asking.write(part);
    asking.end();
  });
}
