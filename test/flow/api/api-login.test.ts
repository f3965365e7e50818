/**
 * Who asks, where somebody else says it: the login of an application around the API, a proxy that logs people in; and what
 * counts when a request carries several things that say who it is.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { build } from '../../../scripts/steps.mjs';
import { csrfOf, revokeToken } from '../../../src/access/tokens.ts';
import { createDashboard, type DashboardOptions } from '../../../src/daemon/dashboard.ts';
import { type Log, silentLog } from '../../../src/kernel/log.ts';
import { type Answered, ask, type ServedApi, serveApi } from '../../support/api.ts';
import { startProxy } from '../../support/proxy.ts';
import { CLOUDFLARE_ACCESS, OAUTH2_PROXY, serveMounted, serveWindow } from '../../support/ways-in.ts';

const PAUSE = 'POST /v1/queues/emails/pause';
const BASIC = `Basic ${Buffer.from('ada:secret').toString('base64')}`;
let api: ServedApi;
let setup: string;
const open: { readonly stop: () => Promise<void> }[] = [];

beforeAll(async () => {
  await build();
  api = await serveApi({ roles: ['http', 'mover'], http: { tokens: 'always' } });
  setup = await api.tokenOf({ name: 'setup', scopes: ['admin'] });
  for (const queue of ['emails', 'sms']) {
    await api.ask(`POST /v1/queues/${queue}/jobs`, { token: setup, body: { id: 'a', delay: '1h' } });
  }
});
// A pause of what is paused already changes nothing, and is no entry of the audit.
beforeEach(() => api.ask('POST /v1/queues/emails/resume', { token: setup }));
afterEach(async () => {
  for (const one of open.splice(0)) await one.stop();
});
afterAll(() => api.stop());

const until = <T extends { readonly stop: () => Promise<void> }>(one: T): T => {
  open.push(one);
  return one;
};

/** The cookie of an answer, and the CSRF token that belongs to it. */
const pageOf = ({ headers, body }: Answered) => ({
  Cookie: headers.get('set-cookie')?.split(';')[0] ?? '',
  'X-CSRF-Token': String(body?.csrf),
});

const nameOf = (cookie: string): string => cookie.slice(0, cookie.indexOf('='));

const problem = (status: number, code: string, detail: unknown) => ({ status, body: { status, code, detail } });

/** The newest entry of the audit. */
async function audited() {
  return (await api.ask('GET /v1/audit?limit=1', { token: setup })).body.entries[0];
}

/** A log that keeps the reasons of its errors. */
function loud(): { readonly log: Log; readonly reasons: string[] } {
  const reasons: string[] = [];
  const log: Log = { ...silentLog, error: ({ error }) => void reasons.push(String(error)), child: () => log };
  return { log, reasons };
}

describe('the login of an application', () => {
  type Authorize = NonNullable<DashboardOptions['authorize']>;

  async function mounted(authorize: unknown, log?: Log) {
    const served = until(
      await serveMounted({ redis: api.redis.url, prefix: '/ops/jobs', authorize: authorize as Authorize, log }),
    );
    return (what: string, options: Parameters<typeof ask>[2] = {}) => ask(served.url, what, options);
  }
  const ada = { name: 'ada@example.org', scopes: ['data', 'write'] };

  test('is the only one: the session says who it is, and the audit has the name', async () => {
    const call = await mounted(() => ada);
    expect((await call('GET /v1/queues')).status).toBe(200);
    const session = await call('GET /v1/session');
    expect(session).toMatchObject({
      status: 200,
      body: { name: 'ada@example.org', login: 'application', scopes: ['read', 'data', 'write'] },
    });
    expect(session.body.expiresMs).toBeUndefined();
    const headers = pageOf(session);
    expect(session.headers.get('set-cookie')).toMatch(
      /^duestream_session_\d+=[\w-]{43}; Path=\/ops\/jobs; HttpOnly; SameSite=Strict$/,
    );
    expect((await call(PAUSE, { headers })).status).toBe(200);
    expect(await audited()).toMatchObject({ who: 'ada@example.org', way: 'page', verb: 'queues.pause' });
    expect((await call('GET /v1/audit', { headers })).status).toBe(403);
  });

  test('has changes that need the CSRF token, and no page of another site', async () => {
    const call = await mounted(() => ada);
    const headers = pageOf(await call('GET /v1/session'));
    const { Cookie, 'X-CSRF-Token': csrf } = headers;
    const refused: readonly Readonly<Record<string, string>>[] = [
      {},
      { Cookie },
      { 'X-CSRF-Token': csrf },
      { Cookie, 'X-CSRF-Token': 'x' },
      // What belongs to an empty cookie, or to a text that was made up, anybody can work out.
      { 'X-CSRF-Token': csrfOf('') },
      { Cookie: `${nameOf(Cookie)}=`, 'X-CSRF-Token': csrfOf('') },
      { Cookie: `${nameOf(Cookie)}=x`, 'X-CSRF-Token': csrfOf('x') },
      { ...headers, Origin: 'https://evil.example' },
      { ...headers, 'Sec-Fetch-Site': 'cross-site' },
      { ...headers, Origin: 'https://ops.example.org', 'Sec-Fetch-Site': 'same-site' },
    ];
    for (const given of refused) {
      expect((await call(PAUSE, { headers: given })).status, JSON.stringify(given)).toBe(403);
    }
    expect((await call(PAUSE, { headers: { ...headers, 'Sec-Fetch-Site': 'same-origin' } })).status).toBe(200);
  });

  test('keeps the cookie of a browser that has one: a page that is open goes on', async () => {
    const call = await mounted(() => ada);
    const headers = pageOf(await call('GET /v1/session'));
    const again = await call('GET /v1/session', { headers: { Cookie: headers.Cookie } });
    expect([again.headers.get('set-cookie'), again.body.csrf]).toEqual([null, headers['X-CSRF-Token']]);
    const other = await call('GET /v1/session', { headers: { Cookie: `${nameOf(headers.Cookie)}=short` } });
    expect(other.headers.get('set-cookie')).toContain(`${nameOf(headers.Cookie)}=`);
  });

  test('that knows nobody is answered with 401, whatever else the request has', async () => {
    const call = await mounted(() => undefined);
    const token = await api.tokenOf({ scopes: ['admin'] });
    const opened = await api.ask('POST /v1/session', { body: { token } });
    const told = problem(401, 'unauthorized', 'the login of the application did not let this request in');
    const refused = { ...told, body: { ...told.body, login: 'application' } };
    for (const [what, options] of [
      ['GET /v1/queues', {}],
      ['GET /v1/queues', { token }],
      ['GET /v1/queues', { headers: pageOf(opened) }],
      ['GET /v1/session', { headers: pageOf(opened) }],
      ['GET /v1/live?events=1', {}],
      ['POST /v1/session', { body: { token } }],
      [PAUSE, { headers: pageOf(opened) }],
    ] as const) {
      expect(await call(what, options), what).toMatchObject(refused);
    }
    for (const nothing of [null, false]) {
      expect((await (await mounted(() => nothing))('GET /v1/queues')).status).toBe(401);
    }
    // The page itself holds nothing of anybody, and says the sentence.
    expect((await call('GET /')).status).toBe(200);
  });

  test('needs no second login: a token has nothing to log in to', async () => {
    const call = await mounted(() => ada);
    const token = await api.tokenOf({});
    expect(await call('POST /v1/session', { body: { token } })).toMatchObject(
      problem(403, 'forbidden', 'the application has let ada@example.org in already; there is nothing to log in to'),
    );
  });

  test.each<[string, unknown, RegExp]>([
    [
      'a scope that there is not',
      { name: 'ada', scopes: ['read', 'root'] },
      /scopes "root"; allowed: one or more of read/,
    ],
    ['a scope that is none', { name: 'ada', scopes: ['admin', undefined] }, /scopes undefined/],
    ['no scope', { name: 'ada', scopes: [] }, /scopes an array; allowed/],
    ['a scope instead of a list', { name: 'ada', scopes: 'admin' }, /scopes "admin"/],
    ['no name', { scopes: ['admin'] }, /name undefined; allowed: 1 to 128 characters/],
    ['an empty name', { name: ' ', scopes: ['admin'] }, /name " "/],
    ['a name with a line break', { name: 'ada\nroot', scopes: ['admin'] }, /name "ada\\nroot"/],
    ['a name that turns its line around', { name: 'ada\u202e', scopes: ['admin'] }, /name /],
    ['a name without an end', { name: 'a'.repeat(129), scopes: ['admin'] }, /name /],
    ['queues that match nothing', { name: 'ada', scopes: ['admin'], queues: [] }, /queues an array; allowed: 1 to 100/],
    ['a queue that cannot be', { name: 'ada', scopes: ['admin'], queues: ['Emails*'] }, /queue name is "Emails\*"/],
    ['one queue instead of a list', { name: 'ada', scopes: ['admin'], queues: 'sms' }, /queues "sms"/],
    [
      'a misspelt name of a field',
      { name: 'ada', scopes: ['admin'], queue: ['sms'] },
      /queue is not an option.*queues/,
    ],
    ['a text', 'admin', /authorize returned "admin"; allowed: { name, scopes, queues }, or undefined/],
    ['yes', true, /authorize returned a value of type boolean; allowed/],
  ])('whose answer is %s lets nobody in: 500, and why in the log', async (_, given, why) => {
    const { log, reasons } = loud();
    const call = await mounted(async () => given, log);
    for (const what of ['GET /v1/queues', 'GET /v1/session', PAUSE]) {
      const answered = await call(what);
      expect(answered).toMatchObject(
        problem(500, 'failed', 'the login of the application has failed; the log says why'),
      );
    }
    expect(reasons[0]).toMatch(why);
  });

  test('that throws, or rejects, lets nobody in: 500, and why in the log alone', async () => {
    for (const authorize of [
      () => {
        throw new Error('no such session store: secret');
      },
      () => Promise.reject(new Error('no such session store: secret')),
    ]) {
      const { log, reasons } = loud();
      const answered = await (await mounted(authorize, log))('GET /v1/queues');
      expect([answered.status, answered.body.code]).toEqual([500, 'failed']);
      expect(answered.text).not.toContain('secret');
      expect(reasons[0]).toBe('no such session store: secret');
    }
  });

  test('whose fault no log is told of says that a log would say why', async () => {
    const answered = await (await mounted(() => true))('GET /v1/queues');
    expect(answered).toMatchObject(
      problem(500, 'failed', 'the login of the application has failed; give createDashboard a log, and it says why'),
    );
  });

  test('may open some queues only', async () => {
    const call = await mounted(() => ({ name: 'sam', scopes: ['admin'], queues: ['sms'] }));
    expect((await call('GET /v1/queues')).body.queues.map(({ queue }: { queue: string }) => queue)).toEqual(['sms']);
    expect(await call('GET /v1/queues/emails')).toMatchObject(
      problem(403, 'forbidden', 'the caller sam is not for this queue; allowed: sms'),
    );
    expect((await call('GET /v1/doctor')).status).toBe(403);
  });

  test('sees the request as it came, without its body, and what the adapter handed over', async () => {
    const seen: unknown[] = [];
    const call = await mounted((request: Request, env: { incoming: { url: string } }) => {
      seen.push(request.method, new URL(request.url).pathname, request.headers.get('x-user'), request.body);
      seen.push(env.incoming.url);
      return ada;
    });
    const headers = { ...pageOf(await call('GET /v1/session')), 'X-User': '7' };
    seen.length = 0;
    const made = await call('POST /v1/queues/emails/jobs', { headers, body: { id: 'b', delay: '1h' } });
    const path = '/ops/jobs/v1/queues/emails/jobs';
    expect([made.status, made.headers.get('location')]).toEqual([201, `${path}/b`]);
    expect(seen).toEqual(['POST', path, '7', null, path]);
  });

  test('is asked again while somebody watches, and ends what it no longer allows', async () => {
    const { log, reasons } = loud();
    const once = (then: () => unknown) => {
      let asked = 0;
      return () => {
        asked += 1;
        return asked === 1 ? ada : then();
      };
    };
    const gone = () => {
      throw new Error('the store is gone');
    };
    const other = () => ({ name: 'eve', scopes: ['admin'] });
    const fewer = () => ({ ...ada, queues: ['sms'] });
    const ends = [() => undefined, other, fewer, gone].map(async (then) => {
      const call = await mounted(once(then), log);
      return (await call('GET /v1/live')).text;
    });
    for (const text of await Promise.all(ends)) expect(text).toContain('event: bye\ndata: {"code":"revoked"}');
    expect(reasons).toContain('the store is gone');
  });

  test('is a function, and none of a daemon', () => {
    const make = (given: object) => () => createDashboard({ redis: api.redis.url, ...given });
    expect(make({ authorize: 'ada' })).toThrow(/authorize is "ada"; allowed: a function/);
    const http = { userHeader: 'X-User', trustProxy: ['127.0.0.1'] };
    expect(make({ http })).toThrow(/http\.userHeader is for the server of a daemon; allowed here: authorize/);
    expect(make({ log: console })).toThrow(/log has no method child/);
  });
});

describe('a header Authorization of somebody else', () => {
  test('never beats a valid cookie, whose changes need the CSRF token as ever', async () => {
    const token = await api.tokenOf({ name: 'cookie', scopes: ['write'] });
    const headers = pageOf(await api.ask('POST /v1/session', { body: { token } }));
    for (const Authorization of [
      BASIC,
      'Bearer e30.e30.c2ln',
      'Bearer due_0123456789ab_x',
      'Negotiate abc',
      'nonsense',
    ]) {
      const call = (what: string, given: object) => api.ask(what, { headers: { ...given, Authorization } });
      expect((await call('GET /v1/queues', headers)).status, Authorization).toBe(200);
      expect((await call('GET /v1/session', headers)).body.name, Authorization).toBe('cookie');
      expect((await call(PAUSE, headers)).status, Authorization).toBe(200);
      expect((await call(PAUSE, { Cookie: headers.Cookie })).status, Authorization).toBe(403);
      expect((await call('GET /v1/queues', {})).status, Authorization).toBe(401);
    }
    expect(await audited()).toMatchObject({ who: 'cookie', way: 'page' });
    await revokeToken(api.place, 'cookie');
    expect((await api.ask('GET /v1/queues', { headers: { ...headers, Authorization: BASIC } })).status).toBe(401);
  });

  test('says what is wrong with it, where nothing else lets the request in', async () => {
    const refused = async (Authorization: string) =>
      (await api.ask('GET /v1/queues', { headers: { Authorization } })).body.detail;
    expect(await refused(BASIC)).toContain('the header Authorization is of the scheme Basic');
    expect(await refused(BASIC)).not.toContain(BASIC.slice(6));
    expect(await refused('Bearer e30.e30.c2ln')).toContain('this token opens nothing');
  });

  test('does not hinder a login', async () => {
    const token = await api.tokenOf({});
    const opened = await api.ask('POST /v1/session', { body: { token }, headers: { Authorization: BASIC } });
    expect(opened.status).toBe(201);
  });

  test('that is a token of ours counts, also beside a cookie', async () => {
    const [one, other] = [await api.tokenOf({ name: 'one' }), await api.tokenOf({ name: 'other', scopes: ['write'] })];
    const headers = pageOf(await api.ask('POST /v1/session', { body: { token: one } }));
    expect((await api.ask(PAUSE, { token: other, headers: { Cookie: headers.Cookie } })).status).toBe(200);
    expect(await audited()).toMatchObject({ who: 'other', way: 'api' });
  });
});

describe('a login with a token that is refused says why', () => {
  /** Tests before this one may have used up what strangers may ask in this second. */
  const logIn = (token: string, headers: Readonly<Record<string, string>> = {}) =>
    vi.waitFor(
      async () => {
        const answer = await api.ask('POST /v1/session', { body: { token }, headers });
        expect(answer.status).not.toBe(429);
        return answer;
      },
      { timeout: 60_000, interval: 200 },
    );

  test('a text that is no token, a token that was revoked, a page of another site', async () => {
    const token = await api.tokenOf({ name: 'gone' });
    await revokeToken(api.place, 'gone');
    expect(await logIn('password')).toMatchObject(
      problem(401, 'unauthorized', 'this text opens nothing: a token begins with due_'),
    );
    expect((await logIn(token)).body.detail).toContain('never created, was revoked, or has expired');
    const { status, body } = await logIn(token, { Origin: 'https://jobs.example.org' });
    expect([status, body.detail]).toEqual([
      403,
      expect.stringMatching(
        /^the page is of "https:\/\/jobs\.example\.org", and "127\.0\.0\.1:\d+" was asked; .*http\.trustProxy$/,
      ),
    ]);
  });

  test('a cookie that the browser would not keep', async () => {
    const served = until(
      await serveWindow(api, { tokens: 'always', trustProxy: ['127.0.0.1'], allowedHosts: ['jobs.example'] }),
    );
    const token = await api.tokenOf({});
    const via = (Origin: string) =>
      ask(served.url, 'POST /v1/session', {
        body: { token },
        headers: { Origin, 'X-Forwarded-Host': 'jobs.example', 'X-Forwarded-Proto': 'https' },
      });
    const { status, body } = await via('http://jobs.example');
    expect([status, body.detail]).toEqual([403, expect.stringContaining('the browser would not keep it')]);
    expect((await via('https://jobs.example')).headers.get('set-cookie')).toMatch(/; Secure$/);
  });
});

describe('the users of a proxy', () => {
  const USERS = { userHeader: 'X-Forwarded-Email', userScopes: ['write'] as const, trustProxy: ['127.0.0.1'] };

  test.each([
    ['oauth2-proxy', 'X-Forwarded-Email', OAUTH2_PROXY],
    ['Cloudflare Access', 'Cf-Access-Authenticated-User-Email', CLOUDFLARE_ACCESS],
  ])('come from %s as it sends them, and stand in the audit', async (_, userHeader, sets) => {
    const served = until(await serveWindow(api, { ...USERS, userHeader }));
    const proxy = until(await startProxy({ to: served.url, sets, keepsHost: true }));
    const call = (what: string, headers = {}) => ask(proxy.url, what, { headers });
    expect((await call('GET /v1/queues')).status).toBe(200);
    const session = await call('GET /v1/session');
    expect(session.body).toMatchObject({ name: 'ada@example.org', login: 'proxy', scopes: ['read', 'write'] });
    const isTls = 'x-forwarded-proto' in sets;
    expect(session.headers.get('set-cookie')?.endsWith('; Secure')).toBe(isTls);
    expect((await call(PAUSE)).status).toBe(403);
    expect((await call(PAUSE, pageOf(session))).status).toBe(200);
    expect(await audited()).toMatchObject({ who: 'ada@example.org', way: 'page' });
    // What a client says of itself, the proxy replaces.
    expect((await call('GET /v1/session', { [userHeader]: 'root' })).body.name).toBe('ada@example.org');
  });

  test.each([
    ['another address', { trustProxy: ['10.0.0.5', '127.0.0.2', '::1'] }, 401],
    ['a trusted address', {}, 200],
    ['a trusted network', { trustProxy: ['127.0.0.0/8'] }, 200],
    ['a trusted address, mapped', { trustProxy: ['::ffff:127.0.0.1'] }, 200],
    ['no header at all', { userHeader: 'X-Other' }, 401],
  ])('are known from %s', async (_, http, status) => {
    const served = until(await serveWindow(api, { ...USERS, tokens: 'always', ...http }));
    const headers = { 'X-Forwarded-Email': 'ada@example.org' };
    expect((await ask(served.url, 'GET /v1/queues', { headers })).status).toBe(status);
  });

  test.each([
    ['of a trusted address without the header', {}, {}, 'has no header http.userHeader'],
    [
      'of another address with the header',
      { trustProxy: ['10.0.0.5'] },
      { 'X-Forwarded-Email': 'ada' },
      'comes from no',
    ],
  ])('are looked for in the log: the first request %s is told, and no second one', async (_, http, headers, why) => {
    const warnings: string[] = [];
    const log: Log = { ...silentLog, warn: (_fields, message) => void warnings.push(message), child: () => log };
    const served = until(await serveWindow(api, { ...USERS, tokens: 'always', ...http }, log));
    for (const _again of [1, 2]) {
      expect((await ask(served.url, 'GET /v1/session', { headers })).text).not.toContain('X-Forwarded-Email');
    }
    expect(warnings).toEqual([expect.stringContaining(why)]);
  });

  test('have one plain name: two, none and control characters are refused', async () => {
    const served = until(await serveWindow(api, USERS));
    const status = async (value: string) =>
      (await ask(served.url, 'GET /v1/queues', { headers: { 'X-Forwarded-Email': value } })).status;
    for (const value of ['ada', 'Ada Lovelace', 'ada+ops@example.org', 'CN=ada;OU=ops', 'a'.repeat(128)]) {
      expect(await status(value), value).toBe(200);
    }
    for (const value of ['', 'ada, root', 'ada,root', 'ada\troot', 'ad\u00e4', '\u00a0', 'a'.repeat(129)]) {
      expect(await status(value), JSON.stringify(value)).toBe(401);
    }
    const two = new Headers([
      ['X-Forwarded-Email', 'ada'],
      ['X-Forwarded-Email', 'root'],
    ]);
    expect((await fetch(`${served.url}/v1/queues`, { headers: two })).status).toBe(401);
  });

  test('log in with nothing else; a program may have a token, and somebody on the machine of the proxy is nobody', async () => {
    const served = until(await serveWindow(api, USERS));
    const token = await api.tokenOf({ name: 'program', scopes: ['write'] });
    const headers = { 'X-Forwarded-Email': 'ada' };
    expect(await ask(served.url, 'POST /v1/session', { headers, body: { token } })).toMatchObject(
      problem(403, 'forbidden', 'a proxy has let ada in already; there is nothing to log in to'),
    );
    expect((await ask(served.url, PAUSE, { token })).status).toBe(200);
    expect((await ask(served.url, PAUSE, { token, headers })).status).toBe(200);
    expect(await audited()).toMatchObject({ who: 'program', way: 'api' });
    // Loopback needs no token, but here it is the address of the proxy.
    expect((await ask(served.url, 'GET /v1/queues')).status).toBe(401);
  });

  test('send large headers: cookies and tokens of the proxy come along', async () => {
    const served = until(await serveWindow(api, USERS));
    const headers = { 'X-Forwarded-Email': 'ada', Cookie: `_oauth2_proxy=${'x'.repeat(16_000)}` };
    expect((await ask(served.url, 'GET /v1/queues', { headers })).status).toBe(200);
  });
});
