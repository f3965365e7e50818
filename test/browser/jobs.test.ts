/** The list of jobs: filters that stay in the address, pages that stay while jobs move, and changes of all that a filter finds. */
import { describe, expect, test } from 'vitest';
import type { TestBrowser, Window } from '../support/browser.ts';
import { enter, must, type Served, show } from '../support/dashboard.ts';
import { type Desk, HOOK_MS, idsOf, jobOf, listed, scheduleAll, useDesk } from '../support/desk.ts';

const MINUTE_MS = 60_000;
let browser: TestBrowser;
let api: Served;
let window: Window;
let desk: Desk;

useDesk((seat) => {
  ({ browser, api, window, desk } = seat);
});

const ids = () => window.page.locator('tbody th').allInnerTexts();
const numbered = (prefix: string, n: number) => `${prefix}${String(n).padStart(3, '0')}`;
/** Until the list has been asked for anew, and is there. */
const listIsThere = async () => {
  await window.settled();
  await window.page.waitForFunction('document.querySelector(\'[aria-busy="true"]\') === null');
};

describe('the filter', { timeout: HOOK_MS }, () => {
  const FIELDS = ['State', 'Id begins with', 'Name', 'Tag', 'Due from', 'Due before'];
  const filter = async () => {
    const form = window.page.getByRole('form', { name: 'Filter' });
    return Promise.all(FIELDS.map((label) => form.getByLabel(label).inputValue()));
  };

  test('stands in the address: it survives a reload, and the way back and forth', async () => {
    const { page } = window;
    await scheduleAll(api, 'mixed', [
      { id: 'a/1', name: 'invoice', tags: ['shop'], at: '2031-03-01T10:00:00Z' },
      { id: 'a/2', name: 'invoice', tags: ['shop'], at: '2031-04-01T10:00:00Z' },
      { id: 'a/3', name: 'receipt', tags: ['shop'], at: '2031-03-01T10:00:00Z' },
      { id: 'b/1', name: 'invoice', tags: ['other'], at: '2031-03-01T10:00:00Z' },
    ]);
    await show(window, '#/jobs/mixed');
    expect(new Set(await ids())).toEqual(new Set(['a/1', 'a/2', 'a/3', 'b/1']));
    await page.getByLabel('Tag').fill('shop');
    await page.getByLabel('Name', { exact: true }).fill('invoice');
    await page.keyboard.press('Enter');
    await listIsThere();
    await expect.poll(async () => (await ids()).toSorted()).toEqual(['a/1', 'a/2']);
    await page.getByLabel('Id begins with').fill('a/');
    await page.getByLabel('Due from').fill('2031-03-15T00:00');
    await page.getByLabel('Due before').fill('2031-05-01T00:00');
    await desk.button('Show').click();
    await expect.poll(ids).toEqual(['a/2']);
    const whole = ['scheduled', 'a/', 'invoice', 'shop', '2031-03-15T00:00', '2031-05-01T00:00'];
    expect(await filter()).toEqual(whole);

    await page.reload();
    await expect.poll(ids).toEqual(['a/2']);
    expect(await filter()).toEqual(whole);
    await page.goBack();
    await expect.poll(async () => (await ids()).toSorted()).toEqual(['a/1', 'a/2']);
    expect(await filter()).toEqual(['scheduled', '', 'invoice', 'shop', '', '']);
    await page.goForward();
    await expect.poll(ids).toEqual(['a/2']);
    expect(await filter()).toEqual(whole);

    // Somebody who gets the address sees the same.
    const other = await enter(browser, api, { token: api.reader });
    await other.page.goto(page.url());
    await other.page.getByRole('link', { name: 'a/2' }).waitFor();
    expect(await other.page.locator('tbody th').allInnerTexts()).toEqual(['a/2']);
    await other.close();
  });

  test('by state shows that state, and what nobody can know is refused in words', async () => {
    const { page } = window;
    await scheduleAll(api, 'states', [{ id: 'waits', delay: '1h' }, { id: 'off', delay: '1h' }, { id: 'due' }]);
    await must(api, 'DELETE /v1/queues/states/jobs/off', api.admin);
    await expect.poll(async () => idsOf(await listed(api, 'states', 'state=ready'))).toEqual(['due']);
    await show(window, '#/jobs/states');
    for (const [state, wanted] of [
      ['ready', ['due']],
      ['cancelled', ['off']],
      ['scheduled', ['waits']],
      ['scheduled,ready,running', ['due', 'waits']],
    ] as const) {
      await page.getByLabel('State').selectOption(state);
      await expect.poll(async () => (await ids()).toSorted()).toEqual(wanted);
      expect(new URLSearchParams(page.url().split('?')[1]).get('state')).toBe(state);
    }
    await show(window, '#/jobs/states?state=done&tag=shop');
    const problem = await page.getByRole('alert').filter({ hasText: 'bad-input' }).first().innerText();
    expect(problem).toContain('keeps no history');
  });
});

test('pages stay while jobs move: what stays is shown once, and what was shown stays where it was', {
  timeout: HOOK_MS,
}, async () => {
  const all = Array.from({ length: 130 }, (_, n) => numbered('m', n));
  const at = (minutes: number) => new Date(Date.parse('2031-01-01T00:00:00Z') + minutes * MINUTE_MS).toISOString();
  await scheduleAll(
    api,
    'moving',
    all.map((id, n) => ({ id, at: at(n) })),
  );
  await show(window, '#/jobs/moving');
  await desk.told('50 jobs shown, and there may be more');
  const first = await ids();
  expect(first).toEqual(all.slice(0, 50));

  const jobs = 'POST /v1/queues/moving/jobs';
  // Of those shown: one goes, one moves to the end, one becomes ready. Of the others: one goes, one moves to the front.
  await must(api, 'DELETE /v1/queues/moving/jobs/m003', api.admin);
  await must(api, `${jobs}/m004/reschedule`, api.admin, { at: at(500) });
  await must(api, `${jobs}/m005/run`, api.admin);
  await must(api, 'DELETE /v1/queues/moving/jobs/m100', api.admin);
  await must(api, `${jobs}/m120/reschedule`, api.admin, { at: at(-10) });
  await scheduleAll(api, 'moving', [
    { id: 'new-front', at: at(-20) },
    { id: 'new-end', at: at(600) },
  ]);
  for (let pages = 1; pages < 3; pages += 1) {
    await desk.button('Show more').click();
    await listIsThere();
  }
  await expect.poll(() => desk.button('Show more').count()).toBe(0);
  const shown = await ids();
  expect(shown.slice(0, 50)).toEqual(first);
  expect(new Set(shown).size).toBe(shown.length);
  const still = all.filter((id) => !['m003', 'm004', 'm005', 'm100', 'm120'].includes(id));
  for (const id of still) expect(shown).toContain(id);
  expect(shown).not.toContain('m100');

  await desk.button('Look again').click();
  await expect.poll(async () => (await ids()).slice(0, 3)).toEqual(['new-front', 'm120', 'm000']);
  expect(await ids()).not.toContain('m003');
});

describe('all jobs of a filter', { timeout: HOOK_MS }, () => {
  const status = () => window.page.getByRole('region', { name: 'All jobs of this filter' }).getByRole('status').first();

  test('are cancelled after a dry run that says how many and which; more than one request is needed', async () => {
    const many = Array.from({ length: 2300 }, (_, n) => ({ id: `c${n}`, delay: '1h', tags: ['old'] }));
    await scheduleAll(api, 'bulk', [...many, { id: 'stays', delay: '1h', tags: ['young'] }]);
    await show(window, '#/jobs/bulk?tag=old');
    await desk.button('Cancel …').click();
    await desk.inDialog('Show which').click();
    await desk.inDialog('Cancel: 2,300 jobs').waitFor();
    expect(await desk.dialog.innerText()).toContain('2,300 jobs, of them the first 20:');
    const named = await desk.dialog.locator('.ids li').allInnerTexts();
    expect(named).toHaveLength(20);
    for (const id of named) expect(id).toMatch(/^c\d+$/);
    await desk.escape();
    expect((await must(api, 'GET /v1/queues/bulk/count?state=scheduled', api.admin)).count).toBe(2301);

    await desk.button('Cancel …').click();
    await desk.inDialog('Show which').click();
    await desk.inDialog('Cancel: 2,300 jobs').waitFor();
    // What somebody else has cancelled since the dry run is not counted.
    await must(api, 'DELETE /v1/queues/bulk/jobs/c7', api.admin);
    await desk.inDialog('Cancel: 2,300 jobs').click();
    await status().filter({ hasText: '2,299 jobs cancelled' }).waitFor();
    await desk.told('0 jobs shown');
    expect(idsOf(await listed(api, 'bulk', 'state=scheduled'))).toEqual(['stays']);
  });

  test('are rescheduled; another due time needs another dry run', async () => {
    const jobs = ['r1', 'r2', 'r3'].map((id) => ({ id, delay: '1h', tags: ['late'] }));
    await scheduleAll(api, 'bulk', [...jobs, { id: 'r4', delay: '1h' }]);
    await show(window, '#/jobs/bulk?tag=late');
    await desk.button('Reschedule …').click();
    expect(await desk.inDialog('Show which').isDisabled()).toBe(true);
    await desk.field('Delay from now').fill('2d');
    await desk.inDialog('Show which').click();
    await desk.inDialog('Reschedule: 3 jobs').waitFor();
    expect((await desk.dialog.locator('.ids li').allInnerTexts()).toSorted()).toEqual(['r1', 'r2', 'r3']);
    await desk.field('or at').fill('2031-05-05T12:00');
    await desk.inDialog('Show which').click();
    await desk.inDialog('Reschedule: 3 jobs').click();
    await status().filter({ hasText: '3 jobs rescheduled' }).waitFor();
    for (const id of ['r1', 'r2', 'r3']) {
      expect((await jobOf(api, 'bulk', id)).dueMs).toBe(Date.parse('2031-05-05T10:00:00Z'));
    }
    expect((await jobOf(api, 'bulk', 'r4')).dueMs).toBeLessThan(Date.parse('2031-01-01'));
  });

  test('move each from its own due time, once: a run that failed goes on where it stopped', async () => {
    const hours = (n: number) => new Date(Date.parse('2031-01-01T00:00:00Z') + n * 3_600_000).toISOString();
    const many = Array.from({ length: 1100 }, (_, n) => ({ id: numbered('s', n), at: hours(n), tags: ['shift'] }));
    await scheduleAll(api, 'shifted', many);
    await show(window, '#/jobs/shifted');
    await desk.button('Reschedule …').click();
    expect(await desk.dialog.innerText()).toContain('filter by a tag or a set');
    await desk.escape();
    await show(window, '#/jobs/shifted?tag=shift');
    await desk.button('Reschedule …').click();
    await desk.field('or at').fill('2033-05-05T12:00');
    await desk.field('or each later by').fill('1d');
    expect(await desk.field('or at').inputValue()).toBe('');
    await desk.inDialog('Show which').click();
    await desk.inDialog('Reschedule: 1,100 jobs').waitFor();
    // The second request of the change is lost on its way there.
    let asked = 0;
    await window.page.route('**/batch/reschedule', (route) => {
      asked += 1;
      return asked === 2
        ? route.fulfill({ status: 503, json: { code: 'unavailable', detail: 'try again' } })
        : route.continue();
    });
    await desk.inDialog('Reschedule: 1,100 jobs').click();
    await desk.refused('unavailable');
    await desk.inDialog('Reschedule: 1,100 jobs').click();
    await status().filter({ hasText: '1,100 jobs rescheduled' }).waitFor();
    for (const n of [0, 1, 999, 1000, 1099]) {
      expect((await jobOf(api, 'shifted', numbered('s', n))).dueMs).toBe(Date.parse(hours(n + 24)));
    }
  });

  test('are run now, and others are left where they are', async () => {
    const jobs = ['n1', 'n2'].map((id) => ({ id, delay: '1h', tags: ['now'] }));
    await scheduleAll(api, 'bulk', [...jobs, { id: 'n3', delay: '1h' }]);
    await show(window, '#/jobs/bulk?tag=now');
    await desk.button('Run now …').click();
    await desk.inDialog('Show which').click();
    await desk.inDialog('Run now: 2 jobs').waitFor();
    expect(idsOf(await listed(api, 'bulk', 'state=ready'))).toEqual([]);
    await desk.inDialog('Run now: 2 jobs').click();
    await status().filter({ hasText: '2 jobs due now' }).waitFor();
    await expect.poll(async () => idsOf(await listed(api, 'bulk', 'state=ready'))).toEqual(['n1', 'n2']);
    expect((await jobOf(api, 'bulk', 'n3')).state).toBe('scheduled');
  });

  test('that nothing is left of cannot be changed, and jobs that are over have no such buttons', async () => {
    await show(window, '#/jobs/bulk?tag=nobody');
    await desk.button('Cancel …').click();
    await desk.inDialog('Show which').click();
    await desk.inDialog('Cancel: 0 jobs').waitFor();
    expect(await desk.inDialog('Cancel: 0 jobs').isDisabled()).toBe(true);
    await desk.escape();
    await show(window, '#/jobs/bulk?state=cancelled');
    expect(await desk.button('Cancel …').count()).toBe(0);
  });
});
