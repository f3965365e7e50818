/**
 * What a page gives to somebody who may look and do nothing: no byte of data, and each action is refused in words that name the
 * scope that is missing. A token of one queue does not learn that there are others.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { PATIENCE_MS, startBrowser, type TestBrowser, type Window } from '../support/browser.ts';
import { ADDRESSES, CLOSED_TAG, enter, must, SECRET, type Served, serveDashboard, show } from '../support/dashboard.ts';
import { type Desk, deskOf, listed, scheduleAll } from '../support/desk.ts';

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

/** What is asked for with which buttons, where. */
interface Asking {
  readonly what: string;
  readonly at: string;
  readonly open: string;
  readonly fill?: Readonly<Record<string, string>>;
  readonly yes: string;
  /** What is needed. */
  readonly scope?: 'admin';
}

const job = { at: '#/job/emails/plain' };
const list = { at: '#/jobs/emails?tag=shop', yes: 'Show which' };
const schedule = { at: '#/schedule/nightly' };
const dead = { at: '#/dead/emails', yes: 'Count them' };
const ASKINGS: readonly Asking[] = [
  { what: 'opening a tag', at: '#/closed/emails', open: `Open ${CLOSED_TAG} …`, yes: 'Open the tag' },
  { what: 'sealing a set', at: '#/sets/emails', open: 'Seal import-7 …', yes: 'Seal the set' },
  { what: 'pausing a queue', at: '#/queue/emails', open: 'Pause …', yes: 'Pause' },
  { ...job, what: 'an edit', open: 'Edit …', fill: { Attempts: '9' }, yes: 'Save' },
  { ...job, what: 'another due time', open: 'Reschedule …', fill: { 'Delay from now': '3d' }, yes: 'Reschedule' },
  { ...job, what: 'a start now', open: 'Run now …', yes: 'Run now' },
  { ...job, what: 'a cancel', open: 'Cancel …', yes: 'Cancel the job' },
  { at: '#/job/emails/dead-1', what: 'a replay', open: 'Replay …', yes: 'Replay' },
  { ...list, what: 'a cancel of many', open: 'Cancel …' },
  { ...list, what: 'a start of many', open: 'Run now …' },
  { ...list, what: 'another due time for many', open: 'Reschedule …', fill: { 'Delay from now': '3d' } },
  { ...dead, what: 'a replay of many', open: 'Replay them …' },
  { ...dead, what: 'a purge', open: 'Purge them …', scope: 'admin' },
  { ...schedule, what: 'pausing a schedule', open: 'Pause …', yes: 'Pause' },
  { ...schedule, what: 'an extra job', open: 'Run one now …', yes: 'Run one now' },
  {
    ...schedule,
    what: 'a backfill',
    open: 'Backfill …',
    fill: { From: '2026-02-01T00:00', To: '2026-02-02T00:00' },
    yes: 'Show which',
  },
];

describe('somebody who may only look', { timeout: HOOK_MS }, () => {
  let window: Window;
  let desk: Desk;
  beforeAll(async () => {
    window = await enter(browser, api, { token: api.reader });
    desk = deskOf(window);
  }, HOOK_MS);
  afterAll(async () => {
    expect(await window.noises()).toEqual([]);
    await window.close();
  });

  const everything = async () => {
    const jobs = await listed(api, 'emails', 'state=scheduled,ready,running');
    const { deadLetters } = await must(api, 'GET /v1/queues/emails/dead?limit=1000', api.admin);
    const { paused: pause } = await must(api, 'GET /v1/schedules/nightly', api.admin);
    const { paused } = await must(api, 'GET /v1/queues/emails', api.admin);
    const { entries } = await must(api, 'GET /v1/audit', api.admin);
    return { jobs, deadLetters, pause, paused, entries };
  };

  test.each(ASKINGS)('is refused $what, in words', async ({ at, open, fill = {}, yes, scope = 'write' }) => {
    const before = await everything();
    await show(window, at);
    await desk.button(open).click();
    for (const [label, text] of Object.entries(fill)) {
      await desk.dialog.getByLabel(label, { exact: label === 'To' }).fill(text);
    }
    await desk.inDialog(yes).click();
    const words = await desk.refused('forbidden');
    expect(words).toContain(`token reader has the scopes read; allowed: one with ${scope}`);
    expect(words).not.toContain(SECRET);
    await desk.escape();
    expect(await everything()).toEqual(before);
  });

  test('sees that the data of a job are hidden, also in the form to edit it', async () => {
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
  await window.page.locator('.tile', { hasText: 'Scheduled' }).first().waitFor();
  expect((await Promise.all(answers)).join('\n')).not.toContain(OTHER);
  await window.page.evaluate(`location.hash = '#/jobs/${OTHER}'`);
  const alert = window.page.getByRole('alert').filter({ hasText: 'forbidden' }).first();
  expect(await alert.innerText()).toContain('is not for this queue; allowed: emails');
  expect(await window.noises()).toEqual([]);
  await window.close();
});
