/** The list of jobs: filters that stay in the address, pages that stay while jobs move, and changes of all that a filter finds. */
import { describe, expect, test } from 'vitest';
import type { TestBrowser, Window } from '../support/browser.ts';
import { enter, failOnce, must, SECRET, type Served, show } from '../support/dashboard.ts';
import { type Desk, HOOK_MS, idsOf, jobOf, listed, scheduleAll, useDesk } from '../support/desk.ts';

const MINUTE_MS = 60_000;
let browser: TestBrowser;
let api: Served;
let window: Window;
let desk: Desk;

useDesk((seat) => {
  ({ browser, api, window, desk } = seat);
});

const ids = () => window.page.locator('tbody .job th').allInnerTexts();
const numbered = (prefix: string, n: number) => `${prefix}${String(n).padStart(3, '0')}`;
/** Until the list has been asked for anew, and is there. */
const listIsThere = () => window.settled();

/** Words of the filter that are there, such as `tag shop`. */
const chips = async () =>
  (await window.page.locator('.filter .chip:not(.open)').allInnerTexts()).map((text) =>
    text.replace(/\s+/g, ' ').trim(),
  );
const add = async (typed: string) => {
  await window.page.getByLabel('Add to the filter').fill(typed);
  await window.page.keyboard.press('Enter');
  await listIsThere();
};

describe('the filter', { timeout: HOOK_MS }, () => {
  test('stands in the address as words: it survives a reload, and the way back and forth; each word can be taken away', async () => {
    const { page } = window;
    await scheduleAll(api, 'mixed', [
      { id: 'a/1', name: 'invoice', tags: ['shop'], at: '2031-03-01T10:00:00Z' },
      { id: 'a/2', name: 'invoice', tags: ['shop'], at: '2031-04-01T10:00:00Z' },
      { id: 'a/3', name: 'receipt', tags: ['shop'], at: '2031-03-01T10:00:00Z' },
      { id: 'b/1', name: 'invoice', tags: ['other'], at: '2031-03-01T10:00:00Z' },
    ]);
    await show(window, '#/jobs/mixed');
    expect(new Set(await ids())).toEqual(new Set(['a/1', 'a/2', 'a/3', 'b/1']));
    // On a phone alone there is no head of the table with a box of its own.
    expect(await page.getByText('all that are shown', { exact: true }).isVisible()).toBe(false);
    await add('tag:shop name:invoice');
    await expect.poll(async () => (await ids()).toSorted()).toEqual(['a/1', 'a/2']);
    await add('a/');
    await desk.button('Due any time').click();
    await page.getByLabel('Due from').fill('2031-03-15T00:00');
    await page.getByLabel('Due before').fill('2031-05-01T00:00');
    await desk.button('Show').click();
    await expect.poll(ids).toEqual(['a/2']);
    const whole = ['tag shop', 'name invoice', 'id from a/'];
    expect(await chips()).toEqual(whole);

    await page.reload();
    await expect.poll(ids).toEqual(['a/2']);
    expect(await chips()).toEqual(whole);
    await desk.button(/^Due 15 Mar 2031 00:00/).waitFor();
    await page.goBack();
    await page.goBack();
    await expect.poll(async () => (await ids()).toSorted()).toEqual(['a/1', 'a/2']);
    expect(await chips()).toEqual(['tag shop', 'name invoice']);
    await page.goForward();
    await page.goForward();
    await expect.poll(ids).toEqual(['a/2']);
    await desk.button('without the name').click();
    await expect.poll(chips).toEqual(['tag shop', 'id from a/']);

    // Somebody who gets the address sees the same.
    const other = await enter(browser, api, { token: api.reader });
    await other.page.goto(page.url());
    await other.page.getByRole('link', { name: 'a/2' }).waitFor();
    expect(await other.page.locator('tbody .job th').allInnerTexts()).toEqual(['a/2']);
    await other.close();
  });

  test('by state shows that state, and what nobody can know is said in words', async () => {
    const { page } = window;
    await scheduleAll(api, 'states', [{ id: 'waits', delay: '1h' }, { id: 'off', delay: '1h' }, { id: 'due' }]);
    await must(api, 'DELETE /v1/queues/states/jobs/off', api.admin);
    await expect.poll(async () => idsOf(await listed(api, 'states', 'state=ready'))).toEqual(['due']);
    await show(window, '#/jobs/states');
    await expect.poll(async () => (await ids()).toSorted()).toEqual(['due', 'waits']);
    for (const [state, wanted] of [
      ['ready', ['due']],
      ['cancelled', ['off']],
      ['scheduled', ['waits']],
      ['', ['due', 'waits']],
    ] as const) {
      await page.getByLabel('State', { exact: true }).selectOption(state);
      await expect.poll(async () => (await ids()).toSorted()).toEqual(wanted);
      expect(new URLSearchParams(page.url().split('?')[1]).get('state') ?? '').toBe(state);
    }
    await show(window, '#/jobs/states?state=done&tag=shop');
    await page.getByText('No history is kept by states').waitFor();
  });

  test('keeps the focus of whoever goes through a chooser by arrow keys', async () => {
    const { page } = window;
    await scheduleAll(api, 'arrows', [{ id: 'a', tags: ['shop'], delay: '1h' }]);
    await show(window, '#/jobs/arrows?tag=shop');
    const chooser = page.getByLabel('State', { exact: true });
    const state = () => new URLSearchParams(page.url().split('?')[1]).get('state') ?? '';
    const focused = () => page.evaluate("document.activeElement?.getAttribute('aria-label')");
    await chooser.focus();
    await page.keyboard.press('ArrowDown');
    await expect.poll(state).toBe('scheduled');
    await listIsThere();
    await page.keyboard.press('ArrowDown');
    await expect.poll(state).toBe('waiting');
    await listIsThere();
    expect(await focused()).toBe('State');
    expect(await chips()).toEqual(['tag shop']);
    await page.getByRole('combobox', { name: 'Queue', exact: true }).focus();
    await page.keyboard.press('ArrowUp');
    await expect.poll(() => page.url()).not.toContain('#/jobs/arrows');
    await listIsThere();
    expect(await focused()).toBe('Queue');
  });

  test('that could not be asked for is an error, and not an empty list', async () => {
    const other = await enter(browser, api, { token: api.admin });
    await other.page.route(/\/v1\/jobs\?/, (route) =>
      route.fulfill({ status: 503, json: { code: 'unavailable', detail: 'Redis is away' } }),
    );
    await show(other, '#/jobs');
    await other.page.getByRole('alert').filter({ hasText: 'unavailable: Redis is away' }).waitFor();
    const page = await other.page.locator('main').innerText();
    expect(page).not.toMatch(/\b0 jobs/);
    expect(page).not.toContain('No job waits or runs');
    await other.close();
  });

  test('has a state for what will be retried, with the last error of each', async () => {
    const { page } = window;
    await scheduleAll(api, 'flaky', [{ id: 'new', delay: '1h' }]);
    await failOnce(api.redis.url, 'flaky');
    await show(window, '#/jobs/flaky');
    await expect.poll(async () => (await ids()).toSorted()).toEqual(['new', 'retries']);
    await page.getByLabel('State', { exact: true }).selectOption('will be retried');
    await expect.poll(ids).toEqual(['retries']);
    expect(page.url()).toContain('#/jobs/flaky?state=retry');
    const title = page.getByRole('heading', { level: 1 });
    expect((await title.innerText()).replace(/\s+/g, ' ')).toBe('1 job will be retried in flaky');
    expect(await page.locator('tbody .job .note').innerText()).toContain(SECRET);
    // It is a state like others: what waits can be selected and changed.
    await page.getByLabel('select retries').check();
    await desk.button('Cancel …').waitFor();
    expect([await window.inaccessible(), await window.noises()]).toEqual([[], []]);
  });

  test('without a queue finds jobs of all queues by their due time, under their days', async () => {
    await scheduleAll(api, 'letters', [{ id: 'l1', tags: ['all'], delay: '3d' }]);
    await scheduleAll(api, 'calls', [
      { id: 'c1', tags: ['all'], delay: '2d' },
      { id: 'c2', tags: ['all'], delay: '4d' },
    ]);
    await show(window, '#/jobs?tag=all');
    expect(await ids()).toEqual(['c1', 'l1', 'c2']);
    expect(await window.page.locator('tbody .job .in').allInnerTexts()).toEqual(['calls', 'letters', 'calls']);
    expect(await window.page.locator('.group th').allInnerTexts()).toEqual(['Later 3']);
    const title = window.page.getByRole('heading', { level: 1 });
    expect((await title.innerText()).replace(/\s+/g, ' ')).toBe('3 jobs of all are not over in 2 queues');
    expect(await window.inaccessible()).toEqual([]);
  });
});

test('columns are chosen, and the choice stays: names, tags, and the beginning of the data', {
  timeout: HOOK_MS,
}, async () => {
  const { page } = window;
  await scheduleAll(api, 'wide', [{ id: 'w', name: 'invoice', tags: ['shop'], data: { to: 'ada' }, delay: '1h' }]);
  await show(window, '#/jobs/wide');
  await desk.button('Columns').click();
  for (const column of ['Name', 'Tags', 'Data']) await page.getByLabel(column, { exact: true }).check();
  await page.keyboard.press('Escape');
  const cells = () => page.locator('tbody .job .more').allInnerTexts();
  await expect.poll(cells).toEqual(['invoice', 'shop', '{"to":"ada"}']);
  await page.reload();
  await expect.poll(cells).toEqual(['invoice', 'shop', '{"to":"ada"}']);
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
  await expect.poll(async () => (await ids()).slice(0, 3)).toEqual(['m005', 'new-front', 'm120']);
  expect(await ids()).not.toContain('m003');
});

describe('selected jobs', { timeout: HOOK_MS }, () => {
  const all = () => window.page.getByLabel('select all that are shown').check();
  const reason = (why: string) => desk.field('Why').fill(why);

  test('are cancelled after a dialog that says how many and which, with a reason; also those that are not shown', async () => {
    const many = Array.from({ length: 1300 }, (_, n) => ({ id: `c${n}`, delay: '1h', tags: ['old'] }));
    await scheduleAll(api, 'bulk', [...many, { id: 'stays', delay: '1h', tags: ['young'] }]);
    await show(window, '#/jobs/bulk?tag=old');
    await all();
    await desk.button('Select all of the filter').click();
    await desk.button('Cancel …').click();
    await desk.inDialog('Cancel 1,300 jobs').waitFor();
    const named = await desk.dialog.locator('.ids li').allInnerTexts();
    expect(named).toHaveLength(20);
    for (const id of named) expect(id).toMatch(/^c\d+$/);
    expect(await desk.dialog.innerText()).toContain('and 1,280 others');
    await desk.escape();
    expect((await must(api, 'GET /v1/queues/bulk/count?state=scheduled', api.admin)).count).toBe(1301);

    await desk.button('Cancel …').click();
    await desk.inDialog('Cancel 1,300 jobs').waitFor();
    // What somebody else has cancelled meanwhile is not counted.
    await must(api, 'DELETE /v1/queues/bulk/jobs/c7', api.admin);
    await reason('paid twice');
    await desk.inDialog('Cancel 1,300 jobs').click();
    await desk.told('1,299 jobs cancelled; left alone: 1 over.');
    await desk.told('0 jobs shown');
    expect(idsOf(await listed(api, 'bulk', 'state=scheduled'))).toEqual(['stays']);
    const { entries } = await must(api, 'GET /v1/audit?limit=1', api.admin);
    expect(entries[0]).toMatchObject({ verb: 'jobs.cancel', reason: 'paid twice', way: 'page' });
  });

  test('come to one time, and only those that are selected', async () => {
    const jobs = ['r1', 'r2', 'r3'].map((id) => ({ id, delay: '1h', tags: ['late'] }));
    await scheduleAll(api, 'bulk', [...jobs, { id: 'r4', delay: '1h' }]);
    await show(window, '#/jobs/bulk?idPrefix=r');
    for (const id of ['r1', 'r2', 'r3']) await window.page.getByLabel(`select ${id}`).check();
    await desk.button('Move …').click();
    expect(await desk.inDialog('Move 3 jobs').isDisabled()).toBe(true);
    await desk.inDialog('To one time …').click();
    await desk.field('All are due at').fill('2031-05-05T12:00');
    await desk.inDialog('Move 3 jobs to 5 May 2031 12:00').click();
    await desk.told('3 jobs moved');
    for (const id of ['r1', 'r2', 'r3']) {
      expect((await jobOf(api, 'bulk', id)).dueMs).toBe(Date.parse('2031-05-05T10:00:00Z'));
    }
    expect((await jobOf(api, 'bulk', 'r4')).dueMs).toBeLessThan(Date.parse('2031-01-01'));
  });

  test('move each from its own due time, once: what failed goes on where it stopped, and is taken back', async () => {
    const hours = (n: number) => new Date(Date.parse('2031-01-01T00:00:00Z') + n * 3_600_000).toISOString();
    const many = Array.from({ length: 1100 }, (_, n) => ({ id: numbered('s', n), at: hours(n), tags: ['shift'] }));
    await scheduleAll(api, 'shifted', many);
    await show(window, '#/jobs/shifted?tag=shift');
    await all();
    await desk.button('Select all of the filter').click();
    await desk.button('Move …').click();
    await desk.inDialog('By …').click();
    await desk.field('Later by').fill('36h');
    await desk.inDialog('Move 1,100 jobs by 36h').waitFor();
    // The second request of the change is lost on its way there.
    let asked = 0;
    await window.page.route('**/batch/reschedule', (route) => {
      asked += 1;
      return asked === 2
        ? route.fulfill({ status: 503, json: { code: 'unavailable', detail: 'try again' } })
        : route.continue();
    });
    await desk.inDialog('Move 1,100 jobs by 36h').click();
    await desk.refused('unavailable');
    await desk.inDialog('Move 1,100 jobs by 36h').click();
    await desk.told('1,100 jobs moved.');
    const dues = () =>
      Promise.all([0, 1, 999, 1099].map(async (n) => (await jobOf(api, 'shifted', numbered('s', n))).dueMs));
    expect(await dues()).toEqual([0, 1, 999, 1099].map((n) => Date.parse(hours(n + 36))));
    // Somebody moves one of them again: it stays there.
    await must(api, 'POST /v1/queues/shifted/jobs/s500/reschedule', api.admin, { at: hours(9000) });
    await desk.button('Undo').click();
    await desk.told('1,099 jobs moved back; left alone: 1 changed meanwhile.');
    expect(await dues()).toEqual([0, 1, 999, 1099].map((n) => Date.parse(hours(n))));
    expect((await jobOf(api, 'shifted', 's500')).dueMs).toBe(Date.parse(hours(9000)));
  });

  test('keep their hour by a day, also where the clock is changed', async () => {
    await scheduleAll(api, 'dst', [{ id: 'spring', at: '2031-03-29T08:00:00+01:00' }]);
    await show(window, '#/jobs/dst');
    await all();
    await desk.button('Move …').click();
    await desk.inDialog('+ 1 day').click();
    expect(await desk.dialog.innerText()).toContain('The same hour in Europe/Berlin');
    await desk.inDialog('Move 1 job by 1 day').click();
    await desk.told('1 job moved');
    expect((await jobOf(api, 'dst', 'spring')).dueMs).toBe(Date.parse('2031-03-30T08:00:00+02:00'));
  });

  test('are run now, and edited, and others are left as they are', async () => {
    const jobs = ['n1', 'n2'].map((id) => ({ id, delay: '1h', tags: ['now'] }));
    await scheduleAll(api, 'bulk', [...jobs, { id: 'n3', delay: '1h' }]);
    await show(window, '#/jobs/bulk?tag=now');
    await all();
    await desk.button('Edit …').click();
    await desk.field('Attempts, at most').fill('7');
    await desk.inDialog('Edit 2 jobs').click();
    await desk.told('2 jobs edited');
    expect((await jobOf(api, 'bulk', 'n1')).options.attempts).toBe(7);
    await listIsThere();
    await all();
    await desk.button('Run now …').click();
    expect(idsOf(await listed(api, 'bulk', 'state=ready'))).toEqual([]);
    await desk.inDialog('Run 2 jobs now').click();
    await desk.told('2 jobs due now');
    await expect.poll(async () => idsOf(await listed(api, 'bulk', 'state=ready'))).toEqual(['n1', 'n2']);
    expect((await jobOf(api, 'bulk', 'n3')).state).toBe('scheduled');
  });

  test('that an address asks to be changed are selected once, and also where the same list is shown already', async () => {
    const { page } = window;
    const jobs = ['d1', 'd2', 'd3'].map((id) => ({ id, delay: '1h', tags: ['deed'] }));
    await scheduleAll(api, 'deeds', jobs);
    await show(window, '#/jobs?tag=deed');
    await page.keyboard.press('/');
    await desk.dialog.getByRole('combobox').fill('deed');
    await desk.dialog.getByRole('option', { name: /^Cancel …/ }).click();
    await desk.inDialog('Cancel 3 jobs').waitFor();
    await desk.escape();
    const selected = () => page.locator('tbody .job[aria-selected="true"]').count();
    expect(await selected()).toBe(3);
    await page.getByLabel('select d1').uncheck();
    await page.getByLabel('select d2').uncheck();
    await desk.button('Cancel …').click();
    await desk.inDialog('Cancel 1 job').click();
    await desk.told('1 job cancelled');
    await listIsThere();
    expect(await ids()).toEqual(['d1', 'd2']);
    expect([await selected(), await desk.dialog.count()]).toEqual([0, 0]);
  });

  test('are none where nothing is found, and jobs that are over cannot be selected', async () => {
    await show(window, '#/jobs/bulk?tag=nobody');
    await window.page.getByRole('heading', { name: 'No job is like this' }).waitFor();
    await show(window, '#/jobs/bulk?state=cancelled');
    expect(await window.page.getByRole('checkbox').and(window.page.locator('.jobs *')).count()).toBe(0);
  });
});

describe('what ran then', { timeout: HOOK_MS }, () => {
  test('is a page of its own, with a time that stands in the address', async () => {
    const { page } = window;
    await show(window, '#/at?t=2026-03-01T01:30:00.000Z');
    await page.getByRole('heading', { level: 1, name: /Sun 1 Mar 02:30/ }).waitFor();
    await page.getByRole('heading', { level: 2, name: 'Ran from 02:30 to 02:31' }).waitFor();
    await page.getByRole('textbox', { name: 'When' }).fill('2026-03-02T04:15');
    await desk.button('Show').click();
    await page.getByRole('heading', { level: 2, name: 'Ran from 04:15 to 04:16' }).waitFor();
    expect(page.url()).toContain('t=2026-03-02T03:15');
    expect([await window.inaccessible(), await window.overflow()]).toEqual([[], 0]);
  });
});
