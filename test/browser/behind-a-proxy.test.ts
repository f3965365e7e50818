/**
 * The pages behind proxies, in a browser: those of `docs/how-to/http-api.md`, nginx and Caddy as they stand there, and
 * stand-ins that send what Traefik, oauth2-proxy and an nginx without settings send. And what a page says that cannot work.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { portSource } from '../../src/embedded/port.mjs';
import { escapedPart, isEscaped, isUntidy, writePart } from '../../src/kernel/path-part.ts';
import { ask } from '../support/api.ts';
import { PATIENCE_MS, startBrowser, type TestBrowser, type Window } from '../support/browser.ts';
import { enter, must, type Served, servePages, show } from '../support/dashboard.ts';
import { deskOf } from '../support/desk.ts';
import { startProxy } from '../support/proxy.ts';
import { type ProxyProgram, startProxyProgram } from '../support/proxy-programs.ts';
import { read } from '../support/repository.ts';
import { OAUTH2_PROXY, serveMounted, serveWindow } from '../support/ways-in.ts';

const HOOK_MS = 10 * PATIENCE_MS;
const TRUSTING = { trustProxy: ['127.0.0.1'], allowedHosts: ['ops.example.org'] };
const freePort = portSource();
const open: { readonly stop: () => Promise<void> }[] = [];
let browser: TestBrowser;
let api: Served;

beforeAll(async () => {
  [browser, api] = await Promise.all([startBrowser(), servePages()]);
}, HOOK_MS);
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.stop();
});
afterAll(async () => {
  await browser?.stop();
  await api?.stop();
}, HOOK_MS);

const until = <T extends { readonly stop: () => Promise<void> }>(one: T): T => {
  open.push(one);
  return one;
};

let jobs = 0;

/** The page of a job, what is live, and a change, in a window that has come in. */
async function work(window: Window, who: string): Promise<void> {
  jobs += 1;
  const id = `job-${jobs}`;
  await must(api, 'POST /v1/queues/emails/jobs', api.admin, { id, delay: '1h' });
  const desk = deskOf(window);
  await show(window, `#/job/emails/${id}`);
  await window.page.locator('.live', { hasText: 'live' }).waitFor();
  expect(await window.page.locator('#unloaded').count()).toBe(0);
  await desk.button('Cancel …').click();
  await desk.inDialog('Cancel the job').click();
  await desk.told('Cancelled');
  expect((await must(api, `GET /v1/queues/emails/jobs/${id}`, api.admin)).state).toBe('cancelled');
  const [entry] = (await must(api, 'GET /v1/audit', api.admin)).entries;
  expect(entry).toMatchObject({ verb: 'jobs.cancel', target: id, who, way: 'page' });
  expect(await window.noises()).toEqual([]);
}

async function logInAndWork(url: string): Promise<void> {
  const window = await enter(browser, { ...api, url }, { token: api.admin });
  await work(window, 'ada');
  await window.page.reload();
  await deskOf(window).button('Log out').click();
  await window.page.getByLabel('Token').waitFor();
  await window.close();
}

describe('a page behind', { timeout: HOOK_MS }, () => {
  test('a proxy that changes the Host, tells nothing and collects answers works: nginx without settings', async () => {
    const served = until(await serveWindow(api, { tokens: 'always' }));
    const proxy = until(await startProxy({ to: served.url }));
    await logInAndWork(proxy.url);
  });

  test('a Basic login of somebody else works: its header comes with every request', async () => {
    const served = until(await serveWindow(api, { tokens: 'always' }));
    const sets = { authorization: `Basic ${Buffer.from('ops:secret').toString('base64')}` };
    await logInAndWork(until(await startProxy({ to: served.url, sets })).url);
  });

  test('a proxy that takes a prefix away and tells it works: Traefik', async () => {
    const served = until(await serveWindow(api, TRUSTING));
    const proxy = until(await startProxy({ to: served.url, below: '/jobs', keepsHost: true, tells: true }));
    await logInAndWork(proxy.url);
  });

  test.each<[ProxyProgram, string]>([
    ['nginx', 'nginx'],
    ['caddy', 'Caddy'],
  ])('%s as the how-to has it works, below its path, and believes no client', async (program, heading) => {
    const served = until(await serveWindow(api, TRUSTING));
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    until(await startProxyProgram(program, snippet(heading, { port, to: served.url }), url));
    await logInAndWork(`${url}/jobs`);

    const bare = await fetch(`${url}/jobs`, { redirect: 'manual' });
    expect([bare.status, new URL(bare.headers.get('location') ?? '', url).href]).toEqual([308, `${url}/jobs/`]);
    const call = (what: string, options = {}) => ask(`${url}/jobs`, what, { token: api.admin, ...options });
    const made = await call('POST /v1/queues/emails/jobs', { body: { id: program, delay: '1h' } });
    expect(made.headers.get('location')).toBe(`/jobs/v1/queues/emails/jobs/${program}`);
    await reachOnlyWhatIsAsked(`${url}/jobs`);
    for (const headers of [
      {},
      { Forwarded: 'host=evil.example;proto=https' },
      { 'X-Forwarded-Host': 'evil.example', 'X-Forwarded-Proto': 'https', 'X-Forwarded-Prefix': '/evil' },
    ]) {
      const { body } = await call('GET /v1/openapi.json', { headers });
      expect(body.servers, JSON.stringify(headers)).toEqual([{ url: `${url}/jobs/v1` }]);
    }
  });

  test('a proxy that logs people in asks for no token: oauth2-proxy', async () => {
    const users = { userHeader: 'X-Forwarded-Email', userScopes: ['data', 'write'] as const };
    const served = until(await serveWindow(api, { ...TRUSTING, ...users }));
    const proxy = until(await startProxy({ to: served.url, sets: OAUTH2_PROXY, keepsHost: true }));
    await comeInAndWork(proxy.url, 'ada@example.org');
  });
});

describe('a page in an application that knows who asks', { timeout: HOOK_MS }, () => {
  test('asks for no token, and has no button to log out', async () => {
    const authorize = () => ({ name: 'Ada Lovelace', scopes: ['data', 'write'] as const });
    const served = until(await serveMounted({ redis: api.redis.url, prefix: '/ops', authorize }));
    await comeInAndWork(served.url, 'Ada Lovelace');
  });

  test('says so where the application lets nobody in, and shows no form', async () => {
    const served = until(await serveMounted({ redis: api.redis.url, prefix: '/ops', authorize: () => undefined }));
    const window = await browser.open(served.url);
    await window.page.goto(`${served.url}/`);
    const told = 'the login of the application did not let this request in';
    await window.page.getByRole('alert').filter({ hasText: told }).waitFor();
    expect(await window.page.getByLabel('Token').count()).toBe(0);
    expect(await window.inaccessible()).toEqual([]);
    await window.close();
  });
});

test('a page whose application fails to say who asks tells that, and not that it is looking', async () => {
  const authorize = () => {
    throw new Error('no directory');
  };
  const served = until(await serveMounted({ redis: api.redis.url, prefix: '/ops', authorize }));
  const window = await browser.open(served.url);
  await window.page.goto(`${served.url}/`);
  const note = window.page.getByRole('alert');
  await note.first().waitFor();
  expect(await note.first().innerText()).not.toMatch(/from before|directory/);
  expect(await window.page.getByText('Looking').count()).toBe(0);
  await window.close();
});

/** Nobody has to log in. */
async function comeInAndWork(url: string, who: string): Promise<void> {
  const window = await browser.open(url);
  await window.page.goto(`${url}/`);
  await window.page.locator('.rail .who', { hasText: who }).waitFor();
  expect(await window.page.getByLabel('Token').count()).toBe(0);
  expect(await deskOf(window).button('Log out').count()).toBe(0);
  await work(window, who);
  await window.close();
}

describe('a page that cannot work says why', { timeout: HOOK_MS }, () => {
  const shown = async (refuses: RegExp): Promise<Window> => {
    const proxy = until(await startProxy({ to: api.url, refuses }));
    const window = await browser.open(proxy.url);
    await window.page.goto(`${proxy.url}/`);
    await window.page.getByText('The script of this page did not run').waitFor();
    return window;
  };

  test('without its script', async () => {
    const window = await shown(/\.js$/);
    expect(await window.page.textContent('#unloaded')).toContain('http.trustProxy');
    expect(await window.overflow()).toBe(0);
    await window.close();
  });

  test('without any of its parts', async () => {
    const window = await shown(/\/assets\//);
    await window.close();
  });

  test('whose login is refused: a cookie that does not come back', async () => {
    const served = until(await serveWindow(api, TRUSTING));
    const proxy = until(await startProxy({ to: served.url, sets: { 'x-forwarded-prefix': '/elsewhere' } }));
    const window = await browser.open(proxy.url);
    await window.page.goto(`${proxy.url}/`);
    await window.page.getByLabel('Token').fill(api.admin);
    await window.page.getByRole('button', { name: 'Log in' }).click();
    await window.page.getByRole('alert').filter({ hasText: 'its cookie did not come back' }).waitFor();
    await window.close();
  });
});

/** Parts that a proxy decodes, resolves or joins: each request is about what was asked for, or is refused. */
async function reachOnlyWhatIsAsked(url: string): Promise<void> {
  const call = (what: string, body?: object) => ask(url, what, { token: api.admin, body });
  const stateOf = async (id: string) => (await call(`GET /v1/queues/paths/jobs/${escapedPart(id)}`)).body.state;
  await call('POST /v1/queues/paths/jobs', { id: 'first', delay: '1h' });
  await call('PATCH /v1/queues/paths/settings', { perGroup: 1 });
  const ids = ['order/7', 'order//8', '/x', 'x/', 'a/../b', '%2F', 'a\\b', '~Yg'];
  const others = ['x', 'b', 'order', '7', 'order/8', '/'];
  await call('POST /v1/queues/paths/batch/schedule', { jobs: [...ids, ...others].map((id) => ({ id, delay: '1h' })) });
  for (const id of ids) {
    const plain = `/v1/queues/paths/jobs/${encodeURIComponent(id)}`;
    const seen = await call(`GET ${plain}`);
    if (!isEscaped(id) && seen.status !== 400) expect(seen.body).toMatchObject({ id });
    if (isUntidy(id)) expect((await call(`DELETE ${plain}`)).status, id).toBe(400);
    expect(await stateOf(id)).toBe('scheduled');
    expect((await call(`DELETE /v1/queues/paths/jobs/${writePart(id)}`)).body).toMatchObject({
      id,
      status: 'cancelled',
    });
    expect(await stateOf(id)).toBe('cancelled');
  }
  for (const id of others) expect(await stateOf(id), id).toBe('scheduled');
  for (const name of ['acme/eu', '..', 'a/../b', '//', '%2F']) {
    const [group, tag] = ['groups', 'tags'].map((kind) => `/v1/queues/paths/${kind}/${writePart(name)}`);
    expect((await call(`POST ${group}/close`, { for: '1h' })).body).toMatchObject({ group: name, changed: true });
    expect((await call(`GET ${group}`)).body).toMatchObject({ group: name, closed: { reason: '' } });
    expect((await call(`POST ${tag}/close`, { for: '1h' })).body).toMatchObject({ tag: name });
    for (const at of [group, tag]) expect((await call(`POST ${at}/open`)).body).toMatchObject({ changed: true });
  }
  for (const id of others) await call(`DELETE /v1/queues/paths/jobs/${escapedPart(id)}`);
}

/** The example below a heading, with the addresses of this test, and without TLS. */
function snippet(heading: string, { port, to }: { readonly port: number; readonly to: string }): string {
  const text = read('docs/how-to/http-api.md');
  const [, code = ''] =
    new RegExp(`^### ${heading}\\n[\\s\\S]*?^\`\`\`\\w+\\n([\\s\\S]*?)^\`\`\``, 'm').exec(text) ?? [];
  expect(code).toContain('127.0.0.1:7420');
  return code
    .replace('listen 443 ssl;', `listen 127.0.0.1:${port};`)
    .replaceAll(/^ *ssl_certificate.*\n/gm, '')
    .replace(/^ops\.example\.org \{/, `http://127.0.0.1:${port} {`)
    .replaceAll('127.0.0.1:7420', new URL(to).host);
}
