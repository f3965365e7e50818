/** The files of the dashboard as they are served, and the handler that an application mounts. */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { gzipSync } from 'node:zlib';
import { Hono } from 'hono';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { builtIntoPages } from '../../../scripts/sbom.mjs';
import { build } from '../../../scripts/steps.mjs';
import { createClient } from '../../../src/client/client.ts';
import { createDashboard, type Dashboard } from '../../../src/daemon/dashboard.ts';
import { ask, type ServedApi, serveApi } from '../../support/api.ts';
import { root } from '../../support/repository.ts';
import { serveMounted } from '../../support/ways-in.ts';

/** Of what the first page loads, compressed: a phone on a slow line reads it in two seconds. */
const PAGE_BYTES_MAX = 120_000;

let api: ServedApi;
/** Text by path, as the build has put them into its module. */
let files: Readonly<Record<string, string>>;

beforeAll(async () => {
  await build();
  ({ pages: files } = await import(pathToFileURL(join(root, 'dist', 'dashboard', 'pages.mjs')).href));
  api = await serveApi({ roles: ['http', 'mover'] });
  await using producer = createClient({ redis: api.redis.url });
  await producer.schedule('emails', {}, { id: 'a', delay: '1h' });
});
afterAll(() => api.stop());

/** What the first page loads: other files come when somebody needs them. */
const isFirst = (path: string): boolean => files['index.html']?.includes(path) === true;
const asset = (extension: string): string =>
  Object.keys(files).find((path) => path.endsWith(extension) && isFirst(path)) ?? '';

test('the first page stays small', () => {
  const loaded = Object.entries(files).filter(([path]) => path === 'index.html' || isFirst(path));
  expect(loaded.length).toBeGreaterThan(2);
  const bytes = loaded.reduce((sum, [, text]) => sum + gzipSync(text).length, 0);
  expect(bytes).toBeLessThan(PAGE_BYTES_MAX);
});

test('the licences of what is built into the pages go with them', async () => {
  const response = await fetch(`${api.url}/licenses.md`);
  expect(response.headers.get('Content-Type')).toBe('text/plain; charset=utf-8');
  const text = await response.text();
  for (const name of builtIntoPages()) expect(text).toContain(`## ${name}`);
  expect(text.match(/Permission is hereby granted/g)?.length).toBe(builtIntoPages().length);
});

describe('a page', () => {
  test('is served under a policy that runs nothing but its own files, and is not kept', async () => {
    const response = await fetch(`${api.url}/`);
    expect(response.status).toBe(200);
    expect(response.headers.get('Content-Type')).toBe('text/html; charset=utf-8');
    expect(response.headers.get('Cache-Control')).toBe('no-store');
    expect(response.headers.get('X-Content-Type-Options')).toBe('nosniff');
    const policy = response.headers.get('Content-Security-Policy');
    expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'");
    expect(policy).not.toMatch(/unsafe|\*|https?:/);
    const text = await response.text();
    expect(text).not.toMatch(/<script(?![^>]* src=)/);
    expect(text).not.toMatch(/ style=|<style| on\w+=/);
  });

  test('has assets that are kept for ever, because their names say what is in them', async () => {
    const response = await fetch(`${api.url}/${asset('.js')}`);
    expect(response.headers.get('Cache-Control')).toBe('public, max-age=31536000, immutable');
    expect(response.headers.get('Content-Encoding')).toBe('gzip');
    expect(await response.text()).toBe(files[asset('.js')]);
    const plain = await fetch(`${api.url}/${asset('.css')}`, { headers: { 'Accept-Encoding': 'identity' } });
    expect(plain.headers.get('Content-Encoding')).toBeNull();
    expect(plain.headers.get('Content-Type')).toBe('text/css; charset=utf-8');
  });

  test.each([
    ['another method', '/', { method: 'POST' }, 405],
    ['a file that is not there', '/assets/none.js', {}, 404],
    ['a way out of the folder', '/assets/..%2f..%2fpackage.json', {}, 404],
    ['a script of another site', '/', { headers: { Origin: 'https://evil.example' } }, 403],
  ])('refuses %s', async (_, path, init, status) => {
    expect((await fetch(`${api.url}${path}`, init)).status).toBe(status);
  });

  test('is not served without the API', async () => {
    const without = await serveApi({ roles: ['http', 'mover'], http: { api: 'off' } });
    expect((await fetch(`${without.url}/`)).status).toBe(404);
    await without.stop();
  });
});

describe('createDashboard', () => {
  let dashboard: Dashboard;
  let token: string;
  const at = (path: string, init?: RequestInit) =>
    dashboard.fetch(new Request(`https://ops.example.org/ops/jobs${path}`, init));

  beforeAll(async () => {
    dashboard = createDashboard({ redis: api.redis.url, prefix: '/ops/jobs' });
    token = await api.tokenOf({ scopes: ['read', 'data', 'write'] });
  });
  afterAll(() => dashboard.stop());

  test('answers pages and API below its prefix, and nothing else', async () => {
    expect((await at('/')).status).toBe(200);
    expect((await at(`/${asset('.js')}`)).status).toBe(200);
    const bare = await at('');
    expect([bare.status, bare.headers.get('Location')]).toEqual([308, '/ops/jobs/']);
    expect((await dashboard.fetch(new Request('https://ops.example.org/v1/queues'))).status).toBe(404);
    expect((await at('/metrics')).status).toBe(404);
  });

  test('says what came to it, where a router has cut the prefix off', async () => {
    const cut = await dashboard.fetch(new Request('https://ops.example.org/v1/queues'));
    expect(await cut.text()).toBe(
      'no such path; the pages are at /ops/jobs/ and the API is below /ops/jobs/v1/, and /v1/queues was asked\n',
    );
  });

  test('says so, where a parser of the application has read the body', async () => {
    const served = await serveMounted({ redis: api.redis.url, prefix: '/ops/jobs' }, async (request) => {
      for await (const _ of request);
    });
    const told = await ask(served.url, 'POST /v1/queues/emails/pause', { token, body: { reason: 'too late' } });
    expect([told.status, told.body.code]).toEqual([500, 'failed']);
    expect(told.body.detail).toContain('mount the dashboard before every parser');
    expect((await ask(served.url, 'POST /v1/queues/emails/resume', { token })).status).toBe(200);
    await served.stop();
  });

  test('wants a token from everybody, and shows its bearer the queues', async () => {
    expect((await at('/v1/queues')).status).toBe(401);
    const response = await at('/v1/queues', { headers: { Authorization: `Bearer ${token}` } });
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({ queues: [{ queue: 'emails', scheduled: 1 }] });
  });

  test('gives a session whose cookie goes over TLS only, and whose changes carry its CSRF token', async () => {
    const headers = { 'Content-Type': 'application/json' };
    const opened = await at('/v1/session', { method: 'POST', headers, body: JSON.stringify({ token }) });
    expect(opened.status).toBe(201);
    const cookie = opened.headers.get('Set-Cookie') ?? '';
    expect(cookie).toMatch(/HttpOnly; SameSite=Strict; Secure/);
    const { csrf } = (await opened.json()) as { readonly csrf: string };
    const Cookie = cookie.split(';')[0] ?? '';
    const job = { method: 'POST', body: JSON.stringify({ id: 'b', delay: '1h' }) };
    const path = '/v1/queues/emails/jobs';
    expect((await at(path, { ...job, headers: { ...headers, Cookie } })).status).toBe(403);
    const made = await at(path, { ...job, headers: { ...headers, Cookie, 'X-CSRF-Token': csrf } });
    expect([made.status, made.headers.get('Location')]).toEqual([201, '/ops/jobs/v1/queues/emails/jobs/b']);
  });

  test('is mounted in an application of Hono as the how-to shows', async () => {
    const app = new Hono();
    app.all('/ops/jobs/*', (c) => dashboard.fetch(c.req.raw));
    const page = await app.request('/ops/jobs/');
    expect(await page.text()).toContain('<div id="app">');
    const asked = await app.request('/ops/jobs/v1/queues', { headers: { Authorization: `Bearer ${token}` } });
    expect(asked.status).toBe(200);
  });

  test('refuses a prefix that is no path, and options that are not there', () => {
    expect(() => createDashboard({ redis: api.redis.url, prefix: 'ops' })).toThrow(/prefix is "ops"; allowed: a path/);
    expect(() => createDashboard({ redis: api.redis.url, ...{ prefx: '/x' } })).toThrow(/prefx/);
  });
});
