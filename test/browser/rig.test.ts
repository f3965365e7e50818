import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { PATIENCE_MS, PHONE, startBrowser, type TestBrowser } from '../support/browser.ts';

const POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'";

let browser: TestBrowser;
let server: Server;
let origin: string;
/** What the server answers, by path. */
const files = new Map<string, { readonly type: string; readonly text: string }>();

beforeAll(async () => {
  browser = await startBrowser();
  server = createServer((request, response) => {
    const file = files.get(request.url ?? '/');
    const type = file?.type ?? 'text/plain';
    response.writeHead(file ? 200 : 404, { 'Content-Type': type, 'Content-Security-Policy': POLICY });
    response.end(file?.text ?? 'not here');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}, 10 * PATIENCE_MS);

afterAll(async () => {
  await browser?.stop();
  await new Promise((resolve) => server?.close(resolve) ?? resolve(undefined));
});

const html = (body: string, script = ''): string =>
  `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>rig</title><link rel="icon" href="data:,"></head>
<body><main><h1>Rig</h1>${body}</main>${script === '' ? '' : '<script src="/script.js"></script>'}</body></html>`;

async function seen(body: string, script = '') {
  files.set('/', { type: 'text/html; charset=utf-8', text: html(body, script) });
  files.set('/script.js', { type: 'text/javascript', text: script });
  const window = await browser.open(origin, { size: PHONE });
  await window.page.goto(`${origin}/`);
  return window;
}

async function noise(body: string, script = ''): Promise<string> {
  const window = await seen(body, script);
  await window.page.waitForLoadState('networkidle');
  const noises = await window.noises();
  await window.close();
  return noises.join('\n');
}

describe('the watched window', { timeout: 5 * PATIENCE_MS }, () => {
  test('a page that does nothing wrong is quiet, has no finding of axe and does not scroll sideways', async () => {
    const window = await seen('<p>All is well.</p>', "document.querySelector('p').textContent = 'Still.'");
    expect(await window.page.textContent('p')).toBe('Still.');
    expect(await window.noises()).toEqual([]);
    expect(await window.inaccessible()).toEqual([]);
    expect(await window.overflow()).toBe(0);
    await window.close();
  });

  test('names a dialog, an error, a canary, a refusal of the policy and a request to another site', async () => {
    expect(await noise('<p>x</p>', "alert('canary 1')")).toContain('dialog: canary 1');
    expect(await noise('<p>x</p>', "throw new Error('no such luck')")).toContain('error: no such luck');
    expect(await noise('<p>x</p>', 'globalThis.canary = 1')).toContain('a canary ran');
    expect(await noise('<p onclick="1">x</p><script>globalThis.canary = 1</script>')).toContain(
      'refused by the policy',
    );
    expect(await noise('<p>x</p>', "console.error('bad news')")).toContain('console: bad news');
    const other = await noise('<p>x</p>', "fetch('http://127.0.0.1:9/elsewhere').catch(() => {})");
    expect(other).toMatch(/127\.0\.0\.1:9\/elsewhere/);
  });

  test('finds what axe refuses, and how far a page is too wide', async () => {
    const window = await seen('<img src="data:,"><input>', "document.querySelector('main').style.width = '500px'");
    const findings = await window.inaccessible();
    expect(findings.some((line) => line.startsWith('image-alt'))).toBe(true);
    expect(findings.some((line) => line.startsWith('label'))).toBe(true);
    expect(await window.overflow()).toBeGreaterThanOrEqual(500 - PHONE.width);
    await window.close();
  });
});
