/** Behind a proxy: what its headers change where it is trusted, and that they change nothing where it is not. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { build } from '../../../scripts/steps.mjs';
import { type Answered, ask, type ServedApi, serveApi } from '../../support/api.ts';
import { PREFIX, serveMounted, serveWindow } from '../../support/ways-in.ts';

const TOLD = { 'X-Forwarded-Host': 'ops.example.org', 'X-Forwarded-Proto': 'https', 'X-Forwarded-Prefix': '/jobs' };
const SPOOFED: readonly Readonly<Record<string, string>>[] = [
  ...Object.entries(TOLD).map(([name, value]) => ({ [name]: value })),
  { 'X-Forwarded-Uri': '/v1/queues/emails/jobs/other' },
  TOLD,
  { 'X-Forwarded-Host': 'evil.example' },
  { 'X-Forwarded-Prefix': '//evil.example' },
  { Forwarded: 'for=192.0.2.1;host=evil.example;proto=https' },
  { 'X-Forwarded-Email': 'root', 'X-Forwarded-User': 'root' },
];
let api: ServedApi;
let token: string;

beforeAll(async () => {
  await build();
  api = await serveApi({ roles: ['http', 'mover'], http: { tokens: 'always' } });
  token = await api.tokenOf({ scopes: ['admin'] });
});
afterAll(() => api.stop());

const allowedHosts = ['ops.example.org'];

/** Everything that headers of proxies may change. */
async function look(url: string, headers: Readonly<Record<string, string>>) {
  const asked = (what: string, options: Parameters<typeof ask>[2] = {}) =>
    ask(url, what, { ...options, headers: { ...options.headers, ...headers } });
  const opened = await asked('POST /v1/session', { body: { token } });
  const cookie = (opened.headers.get('set-cookie') ?? '').replace(/(_\d+)?=[\w-]{43}|Max-Age=\d+/g, '');
  const made = await asked('POST /v1/queues/emails/jobs', { token, body: { delay: '1h' } });
  const location = (made.headers.get('location') ?? '').replace(/[^/]+$/, '');
  const document = await asked('GET /v1/openapi.json');
  const page = await asked('GET /');
  const own = await asked('GET /v1/queues', { token, headers: { Origin: 'https://ops.example.org' } });
  const stranger = await asked('GET /v1/queues');
  const answers: readonly Answered[] = [opened, made, document, page, own, stranger];
  return {
    cookie,
    location,
    server: document.body?.servers[0].url,
    hsts: [opened, page].map((answer) => answer.headers.get('strict-transport-security')),
    statuses: answers.map(({ status }) => status),
  };
}

describe('from an address that is trusted', () => {
  test('they say where everything is for the browser', async () => {
    const { url, stop } = await serveWindow(api, { trustProxy: ['127.0.0.1'], allowedHosts });
    expect(await look(url, TOLD)).toEqual({
      cookie: 'duestream_session; Path=/jobs; ; HttpOnly; SameSite=Strict; Secure',
      location: '/jobs/v1/queues/emails/jobs/',
      server: 'https://ops.example.org/jobs/v1',
      hsts: ['max-age=31536000', 'max-age=31536000'],
      statuses: [201, 201, 200, 200, 200, 401],
    });
    const forwarded = { Forwarded: 'for=192.0.2.1;host="ops.example.org:8443";proto=https' };
    expect(await look(url, forwarded)).toMatchObject({
      server: 'https://ops.example.org:8443/v1',
      location: '/v1/queues/emails/jobs/',
    });
    await stop();
  });

  test('the name that the browser asked for must be allowed, as well as the one by which the request came', async () => {
    const { url, stop } = await serveWindow(api, { trustProxy: ['127.0.0.1'], allowedHosts });
    const status = async (headers: Readonly<Record<string, string>>, path = '/v1/queues') =>
      (await ask(url, `GET ${path}`, { token, headers })).status;
    for (const path of ['/v1/queues', '/']) {
      expect(await status(TOLD, path)).toBe(200);
      expect(await status({ ...TOLD, 'X-Forwarded-Host': 'evil.example' }, path)).toBe(421);
      expect(await status({ Forwarded: 'host=evil.example' }, path)).toBe(421);
    }
    await stop();
  });

  test('X-Forwarded-Uri says which path was asked, and one that the proxy has changed is refused', async () => {
    const { url, stop } = await serveWindow(api, { trustProxy: ['127.0.0.1'], allowedHosts });
    await ask(url, 'POST /v1/queues/paths/batch/schedule', {
      token,
      body: { jobs: ['b', 'a:b,c'].map((id) => ({ id, delay: '1h' })) },
    });
    const cancel = async (id: string, asked: string) => {
      const headers = { ...TOLD, 'X-Forwarded-Uri': asked };
      return ask(url, `DELETE /v1/queues/paths/jobs/${id}`, { token, headers });
    };
    for (const asked of ['a%2F..%2Fb', '%2Fb', 'b%2F', '%252e', 'a/..//b']) {
      const refused = await cancel('b', `/jobs/v1/queues/paths/jobs/${asked}?x=1`);
      expect(refused, asked).toMatchObject({ status: 400, body: { code: 'bad-input' } });
      expect(refused.body.detail).toContain('a proxy has changed the path');
    }
    // It is the same path, however it is encoded, and whatever stood before it.
    expect(await cancel('a:b,c', '/jobs/v1/queues/paths/jobs/a%3Ab%2Cc')).toMatchObject({ status: 200 });
    expect(await cancel('b', '/v1/queues/paths/jobs/%62?bare=false')).toMatchObject({ status: 200 });
    await stop();
  });

  test('in an application they count too, where the adapter hands over who asks', async () => {
    const http = { trustProxy: ['127.0.0.1'] };
    const { url, stop } = await serveMounted({ redis: api.redis.url, prefix: PREFIX, http });
    expect(await look(url, TOLD)).toEqual({
      cookie: `duestream_session; Path=/jobs${PREFIX}; ; HttpOnly; SameSite=Strict; Secure`,
      location: `/jobs${PREFIX}/v1/queues/emails/jobs/`,
      server: `https://ops.example.org/jobs${PREFIX}/v1`,
      // That is for the application to say.
      hsts: [null, null],
      statuses: [201, 201, 200, 200, 200, 401],
    });
    const bare = await fetch(url, { headers: TOLD, redirect: 'manual' });
    expect([bare.status, bare.headers.get('location')]).toEqual([308, `/jobs${PREFIX}/`]);
    await stop();
  });
});

describe('from any other address', () => {
  test.each([
    ['a daemon that trusts nobody', {}],
    ['a daemon that trusts others', { trustProxy: ['10.0.0.0/8', '::1'], userHeader: 'X-Forwarded-Email' }],
  ])('they change nothing at %s', async (_, http) => {
    const { url, stop } = await serveWindow(api, { tokens: 'always', allowedHosts, ...http });
    const plain = await look(url, {});
    expect(plain).toMatchObject({
      cookie: 'duestream_session; Path=/; ; HttpOnly; SameSite=Strict',
      hsts: [null, null],
    });
    expect(plain.statuses).toEqual([201, 201, 200, 200, 403, 401]);
    for (const headers of SPOOFED) expect(await look(url, headers), JSON.stringify(headers)).toEqual(plain);
    await stop();
  });

  test('nor in an application', async () => {
    const { url, stop } = await serveMounted({ redis: api.redis.url, prefix: PREFIX });
    const plain = await look(url, {});
    expect(plain).toMatchObject({ location: `${PREFIX}/v1/queues/emails/jobs/` });
    for (const headers of SPOOFED) expect(await look(url, headers), JSON.stringify(headers)).toEqual(plain);
    await stop();
  });
});
