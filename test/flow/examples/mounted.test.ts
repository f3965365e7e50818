/** The programs of the pages about Express and Fastify, run as they stand there: client, worker, mover and dashboard in one process. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { build } from '../../../scripts/steps.mjs';
import { portSource } from '../../../src/embedded/port.mjs';
import { type ServedApi, serveApi } from '../../support/api.ts';
import { read, root } from '../../support/repository.ts';

const ADDRESS = 'redis://127.0.0.1:6379';
const PORT = '3000';
/** The first program of a page. */
const programs = ['express', 'fastify'].map((name) => ({
  name,
  code: /^```js\n([\s\S]*?)^```/m.exec(read(`docs/how-to/${name}.md`))?.[1] ?? '',
}));
const freePort = portSource();
let api: ServedApi;
let dir: string;

beforeAll(async () => {
  await build();
  api = await serveApi({ roles: ['http', 'mover'] });
  dir = await mkdtemp(join(root, '.cache', 'mounted-'));
});
afterAll(async () => {
  await api?.stop();
  await rm(dir, { recursive: true, force: true });
});

describe.each(programs)('in $name', ({ name, code }) => {
  let child: ChildProcess;
  let url: string;
  let said = '';

  test('it starts', async () => {
    const port = await freePort();
    const file = join(dir, `${name}.mjs`);
    await writeFile(file, code.replaceAll(PORT, String(port)).replaceAll(ADDRESS, api.redis.url));
    url = `http://127.0.0.1:${port}`;
    child = spawn(process.execPath, [file], { stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (text) => (said += String(text)));
    const isThere = () =>
      fetch(url).then(
        () => true,
        () => (child.exitCode === null ? false : said),
      );
    await expect.poll(isThere).not.toBe(false);
    expect(said).toBe('');
  });
  afterAll(() => child?.kill('SIGKILL'));

  test('the pages are served below the prefix, with their slash', async () => {
    const bare = await fetch(`${url}/ops/jobs`, { redirect: 'manual' });
    expect([bare.status, bare.headers.get('Location')]).toEqual([308, '/ops/jobs/']);
    const page = await fetch(`${url}/ops/jobs/`);
    expect(page.headers.get('Content-Security-Policy')).toContain("default-src 'none'");
    const text = await page.text();
    expect(text).toContain('<div id="app">');
    const [, script = ''] = /src="\.\/([^"]+\.js)"/.exec(text) ?? [];
    expect((await fetch(`${url}/ops/jobs/${script}`)).status).toBe(200);
    expect((await fetch(`${url}/v1/queues`)).status).toBe(404);
  });

  test('the API takes bodies, wants a token, and streams what is live', async () => {
    const token = await api.tokenOf({ scopes: ['read', 'write'] });
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
    const body = JSON.stringify({ id: `from-${name}`, delay: '1h' });
    const path = `${url}/ops/jobs/v1/queues/emails/jobs`;
    expect(
      (await fetch(path, { method: 'POST', body, headers: { ...headers, Authorization: 'Bearer x' } })).status,
    ).toBe(401);
    const made = await fetch(path, { method: 'POST', body, headers });
    expect([made.status, await made.json()]).toEqual([201, expect.objectContaining({ id: `from-${name}` })]);
    expect((await api.ask(`GET /v1/queues/emails/jobs/from-${name}`)).status).toBe(200);
    expect((await fetch(`${path}/from-${name}`, { method: 'DELETE', headers })).status).toBe(200);
    const live = await fetch(`${url}/ops/jobs/v1/live?events=1`, { headers });
    expect(await live.text()).toContain('event: now');
  });

  test('the application keeps its own routes and parsers, and schedules in them', async () => {
    const item = `tea-${name}`;
    const ordered = await fetch(`${url}/orders`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ item }),
    });
    expect([ordered.status, await ordered.json()]).toEqual([202, { ordered: item, reminder: 'scheduled' }]);
    expect((await api.ask(`GET /v1/queues/reminders/jobs/remind:${item}`)).body).toMatchObject({
      data: { order: item },
    });
  });

  test('its worker runs what is due, and it says that it is ready', async () => {
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
    await api.ask(`POST /v1/queues/reminders/jobs/remind:tea-${name}/run`);
    await expect.poll(() => said).toContain(`remind tea-${name}\n`);
    said = '';
  });

  test('it ends in order while somebody watches', async () => {
    const token = await api.tokenOf({ scopes: ['read'] });
    const live = await fetch(`${url}/ops/jobs/v1/live`, { headers: { Authorization: `Bearer ${token}` } });
    const text = live.text();
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    expect(await text).toContain('"stopping"');
    expect(await ended).toEqual([0, null]);
    expect(said).toBe('');
  });
});
