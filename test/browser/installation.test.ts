/** Which installation a page shows: its name and colour, its Redis and namespace, on every page and to nobody who is not known. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createDashboard } from '../../src/daemon/dashboard.ts';
import { shortText } from '../../src/dashboard/parts/words.ts';
import { PATIENCE_MS, SMALL_PHONE, startBrowser, type TestBrowser } from '../support/browser.ts';
import { enter, type Served, servePages, show } from '../support/dashboard.ts';
import { scheduleAll } from '../support/desk.ts';

const HOOK_MS = 10 * PATIENCE_MS;
/** As long as it may be, with what would be markup. */
const TITLE = '<b>production</b> of the house in Lyngby';
const PAGES = ['#/now', '#/queue/emails', '#/jobs/emails', '#/schedules', '#/workers', '#/audit', '#/nowhere'];

let browser: TestBrowser;
let api: Served;

beforeAll(async () => {
  const http = { title: TITLE, color: 'red' } as const;
  [browser, api] = await Promise.all([startBrowser(), servePages({ http, namespace: 'shop' })]);
  await scheduleAll(api, 'emails', [{ id: 'a', delay: '1h' }]);
}, HOOK_MS);
afterAll(async () => {
  await browser?.stop();
  await api?.stop();
}, HOOK_MS);

describe('the installation', { timeout: HOOK_MS }, () => {
  test('stands in the rail of every page and in its tab, and its colour is the mark beside it', async () => {
    const window = await enter(browser, api, { token: api.reader });
    const place = window.page.getByRole('complementary').locator('.place');
    for (const address of PAGES) {
      await show(window, address);
      const text = (await place.innerText()).replace(/\s+/g, ' ');
      expect(text, address).toContain(TITLE);
      expect(text, address).toContain('· namespace shop');
      expect(await window.page.title()).toBe(`${TITLE} · ${address.slice(2).replace('/', ' ')} · duestream`);
    }
    expect(await place.locator('.id').textContent()).toBe(shortText(api.redis.url.replace('redis://', '')));
    expect(await window.page.evaluate('getComputedStyle(document.querySelector(".place i")).backgroundColor')).toBe(
      'rgb(180, 35, 24)',
    );
    expect([await window.inaccessible(), await window.noises()]).toEqual([[], []]);
    await window.page.getByRole('button', { name: 'Log out' }).click();
    await window.page.getByLabel('Token').waitFor();
    expect([await window.page.title(), await window.page.getByText('production').count()]).toEqual(['duestream', 0]);
    await window.close();
  });

  test.each(['light', 'dark'] as const)('fits the smallest phone: %s', async (theme) => {
    const window = await enter(browser, api, { token: api.reader, size: SMALL_PHONE, theme });
    await show(window, '#/jobs/emails');
    await window.page.getByRole('banner').getByText(TITLE).waitFor();
    expect([await window.overflow(), await window.inaccessible()]).toEqual([0, []]);
    await window.close();
  });

  test('is told to nobody who has no token', async () => {
    const window = await browser.open(api.url);
    const answers: Promise<string>[] = [];
    window.page.on('response', (response) => answers.push(response.text().catch(() => '')));
    await window.page.goto(`${api.url}/`);
    await window.page.getByLabel('Token').waitFor();
    await window.settled();
    const all = [...(await Promise.all(answers)), await window.page.content(), await window.page.title()].join('\n');
    for (const secret of [TITLE, api.redis.url, 'namespace shop']) expect(all).not.toContain(secret);
    expect(await api.ask('GET /v1/about')).toMatchObject({ status: 401, body: { code: 'unauthorized' } });
    await window.close();
  });

  test('is told by a dashboard that an application mounts', async () => {
    const dashboard = createDashboard({
      redis: api.redis.url,
      namespace: 'shop',
      http: { title: 'staging', color: 'blue' },
    });
    const asked = new Request('https://ops.example.org/v1/about', {
      headers: { Authorization: `Bearer ${api.reader}` },
    });
    const answer = await dashboard.fetch(asked);
    expect(await answer.json()).toEqual({
      title: 'staging',
      color: 'blue',
      redis: api.redis.url,
      namespace: 'shop',
      name: 'reader',
      scopes: ['read'],
    });
    await dashboard.stop();
    expect(() => createDashboard({ redis: api.redis.url, http: { title: 'x'.repeat(41) } })).toThrow(/http\.title/);
    expect(() => createDashboard({ redis: api.redis.url, http: { color: 'pink' as 'red' } })).toThrow(/red, orange/);
  });
});
