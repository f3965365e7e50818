/**
 * What a page gives to whom: no byte of data to a token without that scope, and those buttons alone whose calls the API would
 * not refuse. A token of one queue does not learn that there are others.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { revokeToken } from '../../src/access/tokens.ts';
import { PATIENCE_MS, startBrowser, type TestBrowser, type Window } from '../support/browser.ts';
import {
  ADDRESSES,
  CLOSED_TAG,
  enter,
  must,
  SECRET,
  type Served,
  serveDashboard,
  servePages,
  show,
} from '../support/dashboard.ts';
import { type Desk, deskOf, scheduleAll } from '../support/desk.ts';

const HOOK_MS = 10 * PATIENCE_MS;
const OTHER = 'salaries';
let browser: TestBrowser;
let api: Served;

beforeAll(async () => {
  [browser, api] = await Promise.all([startBrowser(), serveDashboard()]);
  await scheduleAll(api, OTHER, [{ id: `${OTHER}/1`, delay: '1h' }]);
  await must(api, `PUT /v1/schedules/${OTHER}-nightly`, api.admin, { queue: OTHER, cron: '30 2 * * *' });
}, HOOK_MS);
afterAll(async () => {
  await browser?.stop();
  await api?.stop();
}, HOOK_MS);

/** A button, where it stands, and the call that it leads to. */
interface Action {
  readonly at: string;
  readonly button: string;
  readonly call: string;
  /** What must be seen first: the page asks it for what the button is about. */
  readonly sees?: string;
}

const tag = encodeURIComponent(CLOSED_TAG);
const queue = { at: '#/queue/emails' };
const job = { at: '#/job/emails/plain' };
const list = { at: '#/jobs/emails?tag=shop' };
const dead = { at: '#/dead/emails' };
const closed = { at: '#/closed/emails' };
/** By what kinds differ is for whoever may read errors. */
const kind = { ...dead, sees: 'GET /v1/queues/emails/dead?error=x' };
const sets = { at: '#/sets/emails' };
const schedule = { at: '#/schedule/nightly', sees: 'GET /v1/schedules/nightly' };
/** Every one that there is: a new one is a row here, or the tests of an administrator fail. */
const ACTIONS: readonly Action[] = [
  { ...queue, button: 'Pause …', call: 'POST /v1/queues/emails/pause' },
  { ...job, button: 'Edit …', call: 'PATCH /v1/queues/emails/jobs/plain' },
  { ...job, button: 'Reschedule …', call: 'POST /v1/queues/emails/jobs/plain/reschedule' },
  { ...job, button: 'Run now …', call: 'POST /v1/queues/emails/jobs/plain/run' },
  { ...job, button: 'Cancel …', call: 'DELETE /v1/queues/emails/jobs/plain' },
  { at: '#/job/emails/dead-1', button: 'Replay …', call: 'POST /v1/queues/emails/dead/1-1/replay' },
  { ...list, button: 'Move …', call: 'POST /v1/queues/emails/batch/reschedule' },
  { ...list, button: 'Run now …', call: 'POST /v1/queues/emails/batch/run' },
  { ...list, button: 'Edit …', call: 'POST /v1/queues/emails/batch/edit' },
  { ...list, button: 'Cancel …', call: 'POST /v1/queues/emails/batch/cancel' },
  { ...kind, button: 'Replay 1 …', call: 'POST /v1/queues/emails/dead/replay' },
  { ...kind, button: 'Replay 2 …', call: 'POST /v1/queues/emails/dead/replay' },
  { ...dead, button: 'Replay them …', call: 'POST /v1/queues/emails/dead/replay' },
  { ...dead, button: 'Purge them …', call: 'POST /v1/queues/emails/dead/purge' },
  { ...closed, button: 'Close a tag …', call: 'POST /v1/queues/emails/tags/sold/close' },
  { ...closed, button: `Open ${CLOSED_TAG} …`, call: `POST /v1/queues/emails/tags/${tag}/open` },
  { ...sets, button: 'Seal import-7 …', call: 'POST /v1/queues/emails/sets/import-7/seal' },
  { ...sets, button: 'Remove import-7 …', call: 'DELETE /v1/queues/emails/sets/import-7' },
  { ...schedule, button: 'Pause …', call: 'POST /v1/schedules/nightly/pause' },
  { ...schedule, button: 'Run one now …', call: 'POST /v1/schedules/nightly/trigger' },
  { ...schedule, button: 'Backfill …', call: 'POST /v1/schedules/nightly/backfill' },
];
/** Pages whose links in the menu are for those who may ask for what they show. */
const LINKS = {
  ...{ Now: 'live?events=1', Jobs: 'jobs', 'Dead letters': 'dead', Schedules: 'schedules', Workers: 'workers' },
  // What asks about one queue leads to any of them.
  ...{ Simulate: 'doctor', 'SLO report': 'slo', Audit: 'audit' },
};

/** No condition at all, so it is refused by whoever may ask, before anything is done. */
const NEVER = { 'If-Match': 'never' };

async function mayAsk(token: string, { call, sees }: Pick<Action, 'call' | 'sees'>): Promise<boolean> {
  if (sees !== undefined && (await api.ask(sees, { token })).status >= 400) return false;
  const { status } = await api.ask(call, { token, headers: NEVER });
  expect([400, 403], call).toContain(status);
  return status === 400;
}

/** Buttons that lead to a question, by what they are called. */
const BUTTONS = `[...document.querySelectorAll('main button')]
  .map((one) => one.getAttribute('aria-label') ?? one.textContent)
  .filter((name) => name.endsWith('…'))`;

describe('what may be pressed', { timeout: HOOK_MS }, () => {
  test.each([
    { scopes: ['read'] },
    { scopes: ['data'] },
    { scopes: ['write'] },
    { scopes: ['data', 'write'] },
    { scopes: ['admin'] },
    { scopes: ['read'], queues: ['emails'] },
    { scopes: ['write'], queues: ['emails'] },
    { scopes: ['admin'], queues: ['emails'] },
    { scopes: ['admin'], queues: [OTHER] },
  ] as const)('is what the API would not refuse, and all of that: $scopes, $queues', async (given) => {
    const token = await api.tokenOf(given);
    const window = await enter(browser, api, { token });
    const found: Record<string, readonly string[]> = {};
    const allowed: Record<string, readonly string[]> = {};
    for (const at of new Set(ACTIONS.map((one) => one.at))) {
      await show(window, at);
      // A count of the live view comes with its next event.
      if (at === queue.at) await window.page.locator('.flow, .say pre, .problem').first().waitFor();
      // What is done with jobs is there when some are selected.
      const boxes = window.page.getByLabel('select all that are shown');
      if (at === list.at && (await boxes.count()) > 0) await boxes.check();
      found[at] = await window.page.evaluate<string[]>(BUTTONS);
      const here = ACTIONS.filter((one) => one.at === at);
      const may = await Promise.all(here.map((one) => mayAsk(token, one)));
      allowed[at] = here.filter((_, nth) => may[nth]).map(({ button }) => button);
    }
    expect(found).toEqual(allowed);
    const links = await window.page.getByRole('navigation', { name: 'Pages' }).getByRole('link').allTextContents();
    const statuses = await Promise.all(Object.values(LINKS).map((path) => api.ask(`GET /v1/${path}`, { token })));
    expect(links).toEqual(Object.keys(LINKS).filter((_, nth) => statuses[nth]?.status === 200));
    expect(await window.noises()).toEqual([]);
    await window.close();
  });

  test('is nothing on any page for somebody who may only look', async () => {
    const window = await enter(browser, api, { token: api.reader });
    for (const [name, address] of Object.entries(ADDRESSES)) {
      await show(window, address);
      expect(await window.page.evaluate(BUTTONS), name).toEqual([]);
    }
    await window.close();
  });

  test('is no deed that an address or the search asks for, and no page that they may not read', async () => {
    const window = await enter(browser, api, { token: api.reader });
    const { page } = window;
    for (const deed of ['move', 'run', 'edit', 'cancel']) {
      await show(window, `#/jobs/emails?tag=shop&do=${deed}`);
      await page.getByRole('link', { name: 'order/1' }).waitFor();
      expect(await page.getByRole('dialog').count(), deed).toBe(0);
    }
    await page.keyboard.press('/');
    const search = page.getByRole('dialog');
    const field = search.getByRole('combobox');
    const hits = () => search.getByRole('option').allInnerTexts();
    await field.fill('shop');
    await search.getByRole('option', { name: /4 jobs are not over/ }).waitFor();
    expect((await hits()).filter((text) => text.includes('…'))).toEqual([]);
    await field.fill('audit');
    await search.getByRole('option', { name: 'Jobs whose id begins with audit' }).waitFor();
    expect((await hits()).filter((text) => text.includes('Audit'))).toEqual([]);
    await field.fill('pause emails');
    await search.getByRole('option', { name: 'Jobs whose id begins with pause:emails' }).waitFor();
    expect((await hits()).filter((text) => text.includes('Pause'))).toEqual([]);
    await window.close();
  });

  test('is everything where no token is needed', async () => {
    const open = await servePages({ http: { tokens: 'beyond-loopback' } });
    await scheduleAll(open, 'emails', [{ id: 'plain', delay: '1h' }]);
    const window = await browser.open(open.url);
    await window.page.goto(`${open.url}/${job.at}`);
    await window.page.getByRole('heading', { level: 1 }).waitFor();
    const all = ACTIONS.filter(({ at }) => at === job.at).map(({ button }) => button);
    await expect.poll(() => window.page.evaluate(BUTTONS)).toEqual(all);
    await window.close();
    await open.stop();
  });
});

describe('somebody who may not see data', { timeout: HOOK_MS }, () => {
  let window: Window;
  let desk: Desk;
  beforeAll(async () => {
    window = await enter(browser, api, { token: await api.tokenOf({ scopes: ['write'] }) });
    desk = deskOf(window);
  }, HOOK_MS);
  afterAll(async () => {
    expect(await window.noises()).toEqual([]);
    await window.close();
  });

  test('sees that they are hidden, also in the form to edit them', async () => {
    await show(window, '#/job/emails/plain');
    await desk.button('Edit …').click();
    expect(await desk.dialog.innerText()).toContain('Your token may not see the data');
    expect(await desk.field('Data (JSON)').count()).toBe(0);
    await desk.escape();
    await show(window, '#/dead/emails');
    const page = await window.page.content();
    expect(page).toContain('dead-1');
    expect(page).not.toContain(SECRET);
  });

  test('is sent to the login by a button that was there, when the token was revoked meanwhile', async () => {
    const token = await api.tokenOf({ name: 'short', scopes: ['write'] });
    const other = await enter(browser, api, { token });
    await show(other, '#/job/emails/plain');
    await deskOf(other).button('Cancel …').click();
    await revokeToken(api.place, 'short');
    await deskOf(other).inDialog('Cancel the job').click();
    await other.page.getByLabel('Token').waitFor();
    await other.close();
    expect((await must(api, 'GET /v1/queues/emails/jobs/plain', api.admin)).state).toBe('scheduled');
  });
});

test('a token of one queue shows that queue, and no page names another', { timeout: HOOK_MS }, async () => {
  const token = await api.tokenOf({ name: 'mailer', scopes: ['read', 'data'], queues: ['emails'] });
  const window = await enter(browser, api, { token });
  const answers: Promise<string>[] = [];
  window.page.on('response', (response) => {
    const isWhole = !(response.headers()['content-type'] ?? '').includes('event-stream');
    if (isWhole) answers.push(response.text().catch(() => ''));
  });
  for (const [name, address] of Object.entries(ADDRESSES)) {
    await show(window, address);
    expect(await window.page.content(), name).not.toContain(OTHER);
  }
  await show(window, '#/queue/emails');
  await window.page.locator('.flow', { hasText: 'Scheduled' }).waitFor();
  expect((await Promise.all(answers)).join('\n')).not.toContain(OTHER);
  await window.page.evaluate(`location.hash = '#/jobs/${OTHER}'`);
  const alert = window.page.getByRole('alert').filter({ hasText: 'forbidden' }).first();
  expect(await alert.innerText()).toContain('is not for this queue; allowed: emails');
  expect(await window.noises()).toEqual([]);
  await window.close();
});
