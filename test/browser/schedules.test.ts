/** The pages of schedules: pause and resume, one job now, and past instants after a dry run. */
import { describe, expect, test } from 'vitest';
import type { TestBrowser, Window } from '../support/browser.ts';
import { enter, must, type Served, show } from '../support/dashboard.ts';
import { type Desk, HOOK_MS, listed, useDesk } from '../support/desk.ts';

let browser: TestBrowser;
let api: Served;
let window: Window;
let desk: Desk;

useDesk(
  (seat) => {
    ({ browser, api, window, desk } = seat);
  },
  async (api) => {
    const yearly = { queue: 'reports', cron: '0 6 1 1 *', zone: 'Europe/Berlin' };
    await must(api, 'PUT /v1/schedules/yearly', api.admin, yearly);
    const february = { queue: 'sums', cron: '0 * 1 2 *', zone: 'Europe/Berlin', start: '2026-01-01' };
    await must(api, 'PUT /v1/schedules/february', api.admin, february);
  },
);

const fact = (term: string) => window.page.locator('.facts > div', { hasText: term }).first().locator('dd');

describe('a schedule', { timeout: HOOK_MS }, () => {
  test('is paused with a reason that others see, and resumed', async () => {
    await show(window, '#/schedule/yearly');
    await desk.button('Pause …').click();
    await desk.field('Reason').fill('the auditors are here');
    await desk.escape();
    expect((await must(api, 'GET /v1/schedules/yearly', api.admin)).paused).toBeUndefined();
    await desk.button('Pause …').click();
    await desk.field('Reason').fill('the auditors are here');
    await desk.inDialog('Pause').click();
    await desk.told('Paused. It makes no jobs until somebody resumes it.');
    await fact('State').filter({ hasText: 'paused: the auditors are here' }).waitFor();
    await fact('Paused by').filter({ hasText: 'ada' }).waitFor();
    const viewer = await enter(browser, api, { token: api.reader });
    await show(viewer, '#/schedules');
    await viewer.page.locator('tbody tr', { hasText: 'yearly' }).filter({ hasText: 'the auditors are here' }).waitFor();
    await viewer.close();
    await desk.button('Resume …').click();
    await desk.inDialog('Resume').click();
    await desk.told('It fires again.');
    await fact('State').filter({ hasText: 'fires' }).waitFor();
    expect((await must(api, 'GET /v1/schedules/yearly', api.admin)).paused).toBeUndefined();
  });

  test('makes one job now, and its instants stay as they are', async () => {
    await show(window, '#/schedule/yearly');
    const next = await fact('Next').locator('time').getAttribute('datetime');
    await desk.button('Run one now …').click();
    await desk.inDialog('Run one now').click();
    await desk.told(': scheduled.');
    await expect.poll(async () => (await listed(api, 'reports', 'state=ready')).length).toBe(1);
    expect(await fact('Next').locator('time').getAttribute('datetime')).toBe(next);
  });

  test('is not overwritten by a new one of its name, unless somebody says so', async () => {
    const { page } = window;
    await must(api, 'PUT /v1/schedules/taken', api.admin, { queue: 'reports', cron: '0 6 * * *' });
    await show(window, '#/schedules/new');
    const crumbs = () => page.locator('.crumbs li').allInnerTexts();
    expect(await crumbs()).toEqual(['Schedules', 'A new schedule']);
    await page.getByLabel('Name', { exact: true }).fill('taken');
    await page.getByLabel('Queue of its jobs').fill('sums');
    await page.getByLabel('Rule: minute').fill('0 7 * * *');
    await desk.button('Make the schedule').click();
    await desk.dialog.getByText('It makes jobs of reports.').waitFor();
    expect(await desk.dialog.innerText()).toContain('0 6 * * *');
    await desk.escape();
    expect((await must(api, 'GET /v1/schedules/taken', api.admin)).queue).toBe('reports');
    await desk.button('Make the schedule').click();
    await desk.inDialog('Replace it').click();
    await page.getByRole('heading', { level: 1, name: 'Schedule taken' }).waitFor();
    expect((await must(api, 'GET /v1/schedules/taken', api.admin)).input.cron).toBe('0 7 * * *');
  });

  test('that somebody else has changed since the form was opened is not overwritten', async () => {
    const { page } = window;
    await must(api, 'PUT /v1/schedules/edited', api.admin, { queue: 'reports', cron: '0 6 * * *' });
    const other = await enter(browser, api, { token: api.admin });
    await show(other, '#/schedules/edit/edited');
    expect(await other.page.locator('.crumbs li').allInnerTexts()).toEqual(['Schedules', 'edited', 'Change edited']);
    await must(api, 'PUT /v1/schedules/edited', api.admin, { queue: 'reports', cron: '0 8 * * *' });
    await other.page.getByLabel('Rule: minute').fill('0 7 * * *');
    await other.page.getByRole('button', { name: 'Save the change' }).click();
    await other.page.getByRole('alert').filter({ hasText: 'changed: ' }).waitFor();
    await other.close();
    expect((await must(api, 'GET /v1/schedules/edited', api.admin)).input.cron).toBe('0 8 * * *');
    await show(window, '#/schedules/edit/edited');
    await page.getByLabel('Rule: minute').fill('0 9 * * *');
    await desk.button('Save the change').click();
    await page.getByRole('heading', { level: 1, name: 'Schedule edited' }).waitFor();
    expect((await must(api, 'GET /v1/schedules/edited', api.admin)).input.cron).toBe('0 9 * * *');
  });

  test('makes the jobs of past instants once, after a dry run that names them', async () => {
    const jobs = async () => (await listed(api, 'sums', 'state=scheduled,ready')).map(({ id }) => id);
    const before = await jobs();
    await show(window, '#/schedule/february');
    const fill = async () => {
      await desk.button('Backfill …').click();
      expect(await desk.inDialog('Show which').isDisabled()).toBe(true);
      await desk.field('From').fill('2026-02-01T00:00');
      await desk.dialog.getByLabel('To', { exact: true }).fill('2026-02-01T03:30');
      await desk.inDialog('Show which').click();
    };
    await fill();
    await desk.inDialog('Schedule 4 jobs').waitFor();
    const named = await desk.dialog.locator('.ids li').allInnerTexts();
    expect(named).toHaveLength(4);
    for (const one of named) expect(one).toMatch(/^2026-02-01 0[0-3]:00:00 GMT\+1: will be scheduled$/);
    expect(await jobs()).toEqual(before);
    await desk.inDialog('Schedule 4 jobs').click();
    await desk.told('4 jobs scheduled.');
    const made = (await jobs()).filter((id) => !before.includes(id));
    expect(made).toHaveLength(4);

    // The same again makes none: each of these instants has its job.
    await fill();
    await desk.inDialog('Schedule 4 jobs').click();
    await desk.told('0 jobs scheduled; left alone: 4 wait or run already.');
    expect((await jobs()).filter((id) => !before.includes(id))).toHaveLength(4);
  });
});
