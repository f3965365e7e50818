/**
 * The documentation as a site: built as anybody would build it, each link followed to its page and heading, and read in a browser.
 */
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { calls, pageOfCall } from '../site/.vitepress/pages.mjs';
import {
  PATIENCE_MS,
  PHONE,
  SMALL_PHONE,
  startBrowser,
  type TestBrowser,
  type WindowOptions,
} from './support/browser.ts';
import { root } from './support/repository.ts';

const HOOK_MS = 10 * PATIENCE_MS;
const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
};

let built = '';
let server: Server;
let origin = '';
let browser: TestBrowser;

beforeAll(async () => {
  built = mkdtempSync(join(tmpdir(), 'due-site-'));
  const environment = { ...process.env, SITE_OUT: built, NODE_ENV: 'production' };
  await promisify(execFile)(process.execPath, [join(root, 'scripts', 'site.mjs')], {
    env: environment,
    timeout: HOOK_MS,
  });
  server = createServer(({ url = '/' }, response) => {
    const { pathname } = new URL(url, 'http://site.test');
    const path = join(built, decodeURIComponent(pathname.endsWith('/') ? `${pathname}index.html` : pathname));
    if (!existsSync(path)) return void response.writeHead(404).end();
    response.setHeader('content-type', TYPES[extname(path)] ?? 'application/octet-stream');
    response.end(readFileSync(path));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  browser = await startBrowser();
}, 2 * HOOK_MS);
afterAll(async () => {
  await browser?.stop();
  server?.close();
  rmSync(built, { recursive: true, force: true });
}, HOOK_MS);

const pages = () => readdirSync(built, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.html'));
const html = (path: string) => readFileSync(join(built, path), 'utf8');

async function open(path: string, options: WindowOptions = {}) {
  const window = await browser.open(origin, options);
  await window.page.goto(`${origin}${path}`);
  await window.settled();
  return window;
}

describe('a site', { timeout: HOOK_MS }, () => {
  test('has a page for each page of the documentation and for each call over HTTP', () => {
    const docs = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.md'))
      .map((path) =>
        path
          .replace(/\.md$/, '.html')
          .replace(/^README/, 'pages')
          .replace(/README/, 'index'),
      );
    expect(docs.length).toBeGreaterThan(80);
    const wanted = [...docs, ...calls.map((call) => `reference/calls/${pageOfCall(call)}.html`), 'index.html'];
    expect(wanted.filter((path) => !existsSync(join(built, path)))).toEqual([]);
  });

  test('leads each of its links to a page, a heading or a file that is there', () => {
    const ids = new Map(pages().map((path) => [`/${path}`, idsOf(html(path))]));
    const followed = pages().flatMap((path) =>
      [...html(path).matchAll(/<a [^>]*?href="([^"]+)"/g)].map(([, href = '']) => ({ path, href })),
    );
    expect(followed.length).toBeGreaterThan(5000);
    const broken = followed.filter(({ path, href }) => {
      const { host, pathname, hash } = new URL(href, `http://site.test/${path}`);
      if (host !== 'site.test') return false;
      const to = decodeURIComponent(pathname.endsWith('/') ? `${pathname}index.html` : pathname);
      const heading = decodeURIComponent(hash.slice(1));
      return !existsSync(join(built, to)) || (heading !== '' && ids.get(to)?.has(heading) !== true);
    });
    expect([...new Set(broken.map(({ path, href }) => `${path} -> ${href}`))]).toEqual([]);
  });

  test('says first what it is, in a picture and three lines of code', async () => {
    for (const theme of ['light', 'dark'] as const) {
      const window = await open('/', { theme });
      await window.page.getByRole('heading', { level: 1, name: /later/ }).waitFor();
      expect(await window.page.locator('pre code .line').count()).toBe(3);
      const picture = window.page.locator('img:visible');
      expect(await picture.count()).toBe(1);
      expect(await picture.getAttribute('src')).toContain(`-${theme}-`);
      expect(await picture.evaluate((image) => Reflect.get(image, 'naturalWidth'))).toBeGreaterThan(1000);
      expect(await window.inaccessible()).toEqual([]);
      expect(await window.noises()).toEqual([]);
      await window.close();
    }
  });

  test('finds a page, and a call over HTTP, by words', async () => {
    const window = await open('/pages.html');
    for (const [words, address] of [
      ['one customer must not keep another waiting', '/how-to/limits.html'],
      ['schedule a job', '/reference/calls/jobs-schedule.html'],
    ] as const) {
      const input = window.page.locator('#localsearch-input');
      // A key that comes before the scripts of the page does nothing.
      const isOpen = async () => {
        if (!(await input.isVisible())) await window.page.keyboard.press('Control+k');
        return input.isVisible();
      };
      await expect.poll(isOpen, { timeout: PATIENCE_MS }).toBe(true);
      await input.fill(words);
      const found = window.page.locator(`#localsearch-list a[href^="${address}"]`).first();
      await found.click();
      await window.page.waitForURL((url) => url.pathname === address);
    }
    expect(await window.noises()).toEqual([]);
    await window.close();
  });

  test('shows what a call takes and answers', async () => {
    const window = await open('/reference/calls/jobs-schedule.html');
    const text = await window.page.locator('main').innerText();
    expect(text).toContain('POST /v1/queues/{queue}/jobs');
    expect(text).toContain('Idempotency-Key');
    expect(text).toContain('Without delay and at it is due now');
    expect(await window.noises()).toEqual([]);
    await window.close();
  });

  test.each([
    { path: '/', size: SMALL_PHONE },
    { path: '/how-to/limits.html', size: PHONE },
    { path: '/reference/measured.html', size: SMALL_PHONE },
    { path: '/reference/calls/jobs-schedule.html', size: PHONE },
  ])('fits a window of $size.width pixels: $path', async ({ path, size }) => {
    const window = await open(path, { size });
    expect(await window.overflow()).toBe(0);
    expect(await window.noises()).toEqual([]);
    await window.close();
  });
});

function idsOf(text: string): ReadonlySet<string> {
  return new Set([...text.matchAll(/\sid="([^"]+)"/g)].map(([, id = '']) => id));
}
