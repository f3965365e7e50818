import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  DESKTOP,
  PATIENCE_MS,
  PHONE,
  SMALL_PHONE,
  startBrowser,
  type TestBrowser,
  type Window,
} from '../support/browser.ts';
import {
  ADDRESSES,
  enter,
  MARKUP,
  must,
  SCRIPT,
  SECRET,
  type Served,
  serveDashboard,
  show,
} from '../support/dashboard.ts';

const HOOK_MS = 10 * PATIENCE_MS;
let browser: TestBrowser;
let api: Served;

beforeAll(async () => {
  [browser, api] = await Promise.all([startBrowser(), serveDashboard()]);
}, HOOK_MS);
afterAll(async () => {
  await browser?.stop();
  await api?.stop();
}, HOOK_MS);

const everyPage = Object.entries(ADDRESSES);

/** Where the menu of pages leads. */
const PLACES = `[...document.querySelectorAll('.rail nav[aria-label="Pages"] a')].map((one) => one.getAttribute('href'))`;

describe('every page', { timeout: HOOK_MS }, () => {
  test('is one of those that are tried here, if the menu leads to it', async () => {
    const window = await enter(browser, api, { token: api.admin });
    // What a token may see is known when it was asked for.
    await window.settled();
    const places = await window.page.evaluate<readonly string[]>(PLACES);
    expect(places.length).toBeGreaterThan(5);
    expect(places.filter((place) => !everyPage.some(([, address]) => address.startsWith(place)))).toEqual([]);
    await window.close();
  });

  test.each([
    { theme: 'light', size: DESKTOP },
    { theme: 'dark', size: PHONE },
    { theme: 'light', size: SMALL_PHONE },
  ] as const)(
    'runs nothing of a job, has no finding of axe and does not scroll sideways: $theme, $size.width px',
    async (options) => {
      const window = await enter(browser, api, { token: api.admin, ...options });
      for (const [name, address] of everyPage) {
        await show(window, address);
        expect(await window.inaccessible(), name).toEqual([]);
        expect(await window.overflow(), name).toBe(0);
        expect(await window.noises(), name).toEqual([]);
      }
      await window.close();
    },
  );

  test('shows a reader no byte of data, and says that they are hidden', async () => {
    const window = await enter(browser, api, { token: api.reader });
    const answers: Promise<string>[] = [];
    // The stream of live events has no end; that it holds no data is tested with the API.
    const isWhole = (type = '') => !type.includes('event-stream');
    window.page.on('response', (response) => {
      if (isWhole(response.headers()['content-type'])) answers.push(response.text().catch(() => ''));
    });
    for (const [name, address] of everyPage) {
      await show(window, address);
      expect(await window.page.content(), name).not.toContain(SECRET);
    }
    await show(window, '#/job/emails/plain');
    expect(await window.page.textContent('.hidden-data')).toContain('data and headers are hidden');
    expect((await Promise.all(answers)).join('\n')).not.toContain(SECRET);
    expect(await window.noises()).toEqual([]);
    await window.close();
  });

  test('shows the texts of a job as they are', async () => {
    const window = await enter(browser, api, { token: api.admin });
    await show(window, `#/job/emails/${encodeURIComponent(MARKUP)}`);
    const text = await window.page.textContent('main');
    for (const one of [MARKUP, SCRIPT, SECRET]) expect(text).toContain(one);
    await window.close();
  });
});

describe('the login', { timeout: HOOK_MS }, () => {
  test('refuses a wrong token in words, takes a right one, and is over after the logout', async () => {
    const window = await browser.open(api.url);
    const { page } = window;
    await page.goto(`${api.url}/`);
    await page.getByLabel('Token').fill('dst_wrong');
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByRole('alert').filter({ hasText: 'opens nothing' }).first().waitFor();
    await page.getByLabel('Token').fill(api.admin);
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Log out' }).waitFor();
    await page.reload();
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByLabel('Token').waitFor();
    expect(await window.noises()).toEqual([]);
    await window.close();
  });
});

describe('the page', { timeout: HOOK_MS }, () => {
  let window: Window;
  beforeAll(async () => {
    window = await enter(browser, api, { token: api.admin });
  }, HOOK_MS);
  afterAll(async () => {
    expect(await window.noises()).toEqual([]);
    await window.close();
  });

  const stateOf = async (id: string): Promise<string> =>
    (await must(api, `GET /v1/queues/emails/jobs/${encodeURIComponent(id)}`, api.admin)).state;
  const button = (name: string | RegExp) => window.page.getByRole('button', { name });
  const inDialog = (name: string | RegExp) => window.page.getByRole('dialog').getByRole('button', { name });
  const told = (text: string) => window.page.getByRole('status').filter({ hasText: text }).first().waitFor();

  test('Jobs keeps its filter in the address, and cancels what a dialog has shown', async () => {
    const { page } = window;
    await show(window, '#/jobs/emails');
    await page.getByLabel('Add to the filter').fill('tag:shop order/1');
    await page.keyboard.press('Enter');
    await told('1 job shown');
    expect(page.url()).toContain('tag=shop');
    expect(await page.locator('tbody .job th').allTextContents()).toEqual(['order/1']);
    await page.getByLabel('select order/1').check();
    await button('Cancel …').click();
    await page.getByRole('dialog').locator('.ids li', { hasText: 'order/1' }).waitFor();
    expect(await stateOf('order/1')).toBe('scheduled');
    await inDialog('Cancel 1 job').click();
    await told('1 job cancelled');
    expect(await stateOf('order/1')).toBe('cancelled');
    expect(await stateOf('order/2')).toBe('scheduled');
  });

  test('Jobs moves all that are shown', async () => {
    await show(window, '#/jobs/emails?tag=shop');
    await window.page.getByLabel('select all that are shown').check();
    await button('Move …').click();
    await inDialog('By …').click();
    await window.page.getByLabel('Later by').fill('3d');
    await inDialog('Move 3 jobs by 3 days').click();
    await told('3 jobs moved');
    const { dueMs, askedDueMs } = await must(api, 'GET /v1/queues/emails/jobs/order%2F2', api.admin);
    expect(dueMs).toBeGreaterThan(Date.now() + 2 * 86_400_000);
    expect(askedDueMs).toBeLessThanOrEqual(dueMs);
  });

  test('Job edits its data, gives it another due time, and cancels it', async () => {
    const { page } = window;
    await show(window, '#/job/emails/order%2F3');
    await button('Edit …').click();
    await page.getByLabel('Data (JSON)').fill('{"n": 33');
    await inDialog('Save').click();
    await page.getByRole('dialog').getByRole('alert').filter({ hasText: 'no JSON' }).waitFor();
    await page.getByLabel('Data (JSON)').fill('{"n": 33}');
    await inDialog('Save').click();
    await told('Changed.');
    expect((await must(api, 'GET /v1/queues/emails/jobs/order%2F3', api.admin)).data).toEqual({ n: 33 });
    await button('Reschedule …').click();
    await page.getByLabel('Delay from now').fill('9d');
    await inDialog('Reschedule').click();
    await told('Rescheduled.');
    await button('Cancel …').click();
    await inDialog('Cancel the job').click();
    await told('Cancelled');
    expect(await stateOf('order/3')).toBe('cancelled');
  });

  test('Job shows each start and failure, and the next try', async () => {
    await show(window, '#/job/emails/retries');
    const text = (await window.page.textContent('section[aria-labelledby="story"]')) ?? '';
    for (const part of ['Started', 'Failed', 'attempt 1', SECRET]) expect(text).toContain(part);
    expect(await window.page.getByRole('heading', { level: 1 }).innerText()).toContain('it is tried again');
  });

  test('Job does not overwrite what somebody else has changed meanwhile', async () => {
    const { page } = window;
    await show(window, '#/job/emails/plain');
    await button('Edit …').click();
    await page.getByLabel('Data (JSON)').fill('{"mine": true}');
    await must(api, 'PATCH /v1/queues/emails/jobs/plain', api.admin, { data: { theirs: true } });
    await inDialog('Save').click();
    await page.getByRole('dialog').locator('.problem').waitFor();
    await page.keyboard.press('Escape');
    expect((await must(api, 'GET /v1/queues/emails/jobs/plain', api.admin)).data).toEqual({ theirs: true });
  });

  test('everything can be done by keyboard: a job is cancelled without a pointer', async () => {
    const { page } = window;
    await show(window, '#/jobs/emails?idPrefix=order%2F4');
    const focus = (script: string) => page.evaluate<string>(`(document.activeElement?.${script} ?? '')`);
    await tabTo(window, async () => (await focus('textContent')) === 'order/4');
    await page.keyboard.press('Enter');
    await button('Run now …').waitFor();
    await tabTo(window, async () => (await focus('textContent')) === 'Cancel …');
    await page.keyboard.press('Space');
    await tabTo(window, async () => (await focus('textContent')) === 'Cancel the job');
    await page.keyboard.press('Enter');
    await told('Cancelled');
    expect(await stateOf('order/4')).toBe('cancelled');
  });

  test('Dead letters are grouped by error, replayed over a time and purged after a count', async () => {
    const { page } = window;
    await show(window, '#/dead/emails');
    const kinds = page.getByRole('region', { name: 'By error' }).locator('.grp-row');
    expect(await kinds.count()).toBe(2);
    // Numbers are taken out of a reason.
    const kind = kinds.filter({ hasText: MARKUP.replace('=1', '=#') });
    await kind.locator('summary').click();
    await kind.getByRole('link', { name: 'See them' }).click();
    await told('2 dead letters shown');
    await button('Replay them …').click();
    await inDialog('1 h').click();
    await inDialog('Replay 2 dead letters over 1h').click();
    await told('2 dead letters replayed');
    expect([await stateOf('dead-1'), await stateOf('dead-2')]).not.toContain('dead');
    await show(window, '#/dead/emails');
    await button('Purge them …').click();
    await inDialog(/^Purge \d+ dead letters?$/).waitFor();
    expect(await stateOf('dead-3')).toBe('dead');
    await inDialog(/^Purge \d+ dead letters?$/).click();
    await told('removed for ever');
    expect((await must(api, 'GET /v1/queues/emails/dead', api.admin)).deadLetters).toEqual([]);
  });

  test('Schedule tells what a clock change does, pauses, resumes, runs one job and fills a past range', async () => {
    const { page } = window;
    await show(window, '#/schedules');
    await page.getByRole('link', { name: 'nightly' }).first().waitFor();
    await page.getByRole('button', { name: 'Next clock change' }).waitFor();
    await show(window, '#/schedule/nightly');
    expect(await page.textContent('main')).toContain('the clock skips the named time');
    await button('Pause …').click();
    await page.getByLabel('Reason').fill(MARKUP);
    await inDialog('Pause').click();
    await told('Paused.');
    await page.locator('.facts dd', { hasText: `paused: ${MARKUP}` }).waitFor();
    await button('Resume …').click();
    await inDialog('Resume').click();
    await told('It fires again.');
    await button('Run one now …').click();
    await inDialog('Run one now').click();
    await told('scheduled');
    await must(api, 'PUT /v1/schedules/hourly', api.admin, { queue: 'emails', every: '1h', start: '2026-01-01' });
    await show(window, '#/schedule/hourly');
    await button('Backfill …').click();
    await page.getByLabel('From').fill('2026-02-01T00:00');
    await page.getByLabel('To', { exact: true }).fill('2026-02-01T03:30');
    await inDialog('Show which').click();
    await inDialog('Schedule 4 jobs').click();
    await told('4 jobs scheduled');
  });

  test('Audit names who did what by a page', async () => {
    await show(window, '#/audit');
    const rows = await window.page.locator('tbody tr').allTextContents();
    for (const verb of ['cancelled', 'paused the schedule', 'backfilled the schedule']) {
      expect(rows.some((row) => row.includes(verb) && row.includes('page') && row.includes('ada'))).toBe(true);
    }
  });
});

/** Presses Tab until the focus is there; a page that never gives it fails the test. */
async function tabTo({ page }: Window, isThere: () => Promise<boolean>): Promise<void> {
  for (let pressed = 0; pressed < 100; pressed += 1) {
    if (await isThere()) return;
    await page.keyboard.press('Tab');
  }
  throw new Error('a hundred tabs, and the focus never came there');
}
