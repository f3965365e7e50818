/**
 * The pages on a phone: places at the thumb, rows as cards with the name of its column in front of each value, ids that
 * wrap as words, everything that is pressed as large as a thumb, and what acts on a whole list at the bottom of the window.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { setQueue } from '../../src/redis/scripts/queues.ts';
import { PATIENCE_MS, PHONE, SMALL_PHONE, startBrowser, type TestBrowser, type Window } from '../support/browser.ts';
import { ADDRESSES, enter, type Served, serveDashboard, show } from '../support/dashboard.ts';
import { deskOf, scheduleAll } from '../support/desk.ts';

const HOOK_MS = 10 * PATIENCE_MS;
/** Ids as people have them: a uuid, one of a schedule, one without an end. */
const UUID = '0192f0a4-7a6e-7c3d-9d5e-1f2a3b4c5d6e';
const ENDLESS = `order-${'7'.repeat(110)}-last`;
/** Of the tabs at the bottom of the window. */
const TABS = 56;
const PAGES: typeof ADDRESSES = { ...ADDRESSES, 'a queue with limits': '#/queue/lined', groups: '#/groups/lined' };

let browser: TestBrowser;
let api: Served;

beforeAll(async () => {
  [browser, api] = await Promise.all([startBrowser(), serveDashboard()]);
  await scheduleAll(
    api,
    'emails',
    [UUID, ENDLESS].map((id) => ({ id, delay: '1h', tags: ['a'.repeat(64), 'b'.repeat(64)] })),
  );
  await scheduleAll(
    api,
    'emails',
    Array.from({ length: 30 }, (_, n) => ({ id: `welcome:${n}`, delay: '1h', tags: ['many'] })),
  );
  await scheduleAll(api, 'lined', [{ id: 'later', delay: '1h' }]);
  await setQueue(api.place.redis, { namespace: 'duestream', queue: 'lined', perGroup: 1 });
  await scheduleAll(
    api,
    'lined',
    ['acme', UUID].flatMap((group) => [1, 2].map((n) => ({ id: `j${n}`, group }))),
  );
}, HOOK_MS);
afterAll(async () => {
  await browser?.stop();
  await api?.stop();
}, HOOK_MS);

/** What is pressed and smaller than a thumb. A link within a sentence is as high as its line. */
const SMALL = `[...document.querySelectorAll('button, select, input, summary, nav a, th a, td a, .tile a, .actions a')]
  .filter((one) => one.checkVisibility() && !one.matches('.skip'))
  .filter((one) => (one.type === 'checkbox' ? one.closest('label') : one).getBoundingClientRect().height < 44)
  .map((one) => one.outerHTML.slice(0, 120))`;
/** Ids that are narrower than a word of twelve letters, or than themselves. */
const NARROW = `[...document.querySelectorAll('main .id')]
  .filter((one) => one.checkVisibility() && one.getBoundingClientRect().width < Math.min(one.textContent.length, 12) * 6)
  .map((one) => one.textContent)`;
/** Cells whose value stands without the name of its column, or with that of another. */
const UNNAMED = `[...document.querySelectorAll('main .scroll table')].filter((one) => one.checkVisibility()).flatMap((table) => {
  const names = [...table.querySelectorAll('thead th')].map((one) => one.textContent);
  return [...table.querySelectorAll('tbody tr')].flatMap((row) => [...row.children].flatMap((cell, at) => {
    if (cell.tagName === 'TH' || cell.textContent === '' || table.matches('.list')) return [];
    const said = getComputedStyle(cell, '::before').content;
    return said === JSON.stringify(names[at]) ? [] : [names[at] + ' is said as ' + said];
  }));
})`;
/** Rows that are wider than the window, though their page is not. */
const CUT = `[...document.querySelectorAll('main .scroll')]
  .filter((one) => one.checkVisibility() && one.scrollWidth > one.clientWidth)
  .map((one) => one.getAttribute('aria-label') + ' is wider by ' + (one.scrollWidth - one.clientWidth))`;

/** Words under an axis of which a part is seen: those without room are in a line that is hidden. */
const CUT_MARKS = `[...document.querySelectorAll('main .axis span')]
  .filter((mark) => mark.textContent !== '' && mark.checkVisibility({ visibilityProperty: true }))
  .filter((mark) => {
    const words = document.createRange();
    words.selectNodeContents(mark);
    const [own, seen] = [words.getBoundingClientRect(), mark.getBoundingClientRect()];
    return own.top < seen.bottom && (own.right > seen.right + 0.5 || own.bottom > seen.bottom + 0.5);
  })
  .map((mark) => mark.textContent + ' is cut off at ' + mark.style.getPropertyValue('--at'))`;

/** Where it is about this hour. The name `Etc/GMT+5` means five hours behind. */
function zoneAtHour(hour: number): string {
  const behind = (new Date().getUTCHours() - hour + 24) % 24;
  return behind > 12 ? `Etc/GMT-${24 - behind}` : `Etc/GMT+${behind}`;
}

async function faultsOf(window: Window): Promise<readonly string[]> {
  const found = await Promise.all(
    [SMALL, NARROW, UNNAMED, CUT, CUT_MARKS].map((what) => window.page.evaluate<string[]>(what)),
  );
  const wider = await window.overflow();
  return [...found.flat(), ...(wider === 0 ? [] : [`the page is wider by ${wider}`])];
}

describe('a phone', { timeout: HOOK_MS }, () => {
  test.each([PHONE, SMALL_PHONE])('shows every page in one column: $width px', async (size) => {
    const window = await enter(browser, api, { token: api.admin, size });
    const faults: Record<string, readonly string[]> = {};
    for (const [name, address] of Object.entries(PAGES)) {
      await show(window, address);
      const found = [...(await faultsOf(window)), ...(await window.inaccessible())];
      if (found.length > 0) faults[name] = found;
    }
    expect(faults).toEqual({});
    expect(await window.noises()).toEqual([]);
    await window.close();
  });

  test.each([{ width: 660, height: 900 }, SMALL_PHONE])(
    'has whole words under its axes wherever a day begins about now: $width px',
    async (size) => {
      for (const zone of [0, 1, 2, 3, 4].map(zoneAtHour)) {
        const window = await enter(browser, api, { token: api.admin, size, zone });
        for (const address of ['#/now', '#/queue/emails', '#/jobs/emails', '#/at', '#/dead']) {
          await show(window, address);
          expect(await window.page.evaluate(CUT_MARKS), `${zone} ${address}`).toEqual([]);
        }
        await window.close();
      }
    },
  );

  test('has rows and cells for those who hear them, although they are drawn as cards', async () => {
    const window = await enter(browser, api, { token: api.admin, size: PHONE });
    await show(window, '#/jobs/emails?tag=shop');
    const table = window.page.getByRole('table');
    // With that of its heading, and that of its section.
    expect(await table.getByRole('row').count()).toBe(6);
    expect((await table.getByRole('columnheader').allTextContents()).slice(1)).toEqual([
      ...['Due ↑', 'Job', 'State', 'Why it waits, or what came of it', 'Attempts'],
    ]);
    expect(await table.getByRole('rowheader').count()).toBe(5);
    await window.close();
  });

  test('has a long id in short, and the whole of it for whoever points at it or opens the job', async () => {
    const window = await enter(browser, api, { token: api.admin, size: PHONE });
    await show(window, '#/jobs/emails?idPrefix=order-');
    const id = window.page.locator('tbody .job th .id');
    expect(await id.textContent()).toMatch(/^order-7+…7+-last$/);
    expect(await id.getAttribute('title')).toBe(ENDLESS);
    await id.click();
    await window.page.locator('main', { hasText: ENDLESS }).waitFor();
    await window.close();
  });

  test('has places at the thumb, and a sheet with the others, which opens by keyboard and closes with Escape and on the way', async () => {
    const window = await enter(browser, api, { token: api.admin, size: PHONE });
    const { page } = window;
    await show(window, '#/now');
    expect(
      await page.getByRole('navigation', { name: 'Pages', exact: true }).getByRole('link').allTextContents(),
    ).toEqual([...['Now', 'Jobs', 'Dead']]);
    const more = page.getByRole('button', { name: 'More', exact: true });
    const audit = page.getByRole('navigation', { name: 'All pages' }).getByRole('link', { name: 'Audit' });
    expect(await audit.isVisible()).toBe(false);
    await more.focus();
    await page.keyboard.press('Enter');
    await audit.waitFor();
    expect([await window.inaccessible(), await window.overflow()]).toEqual([[], 0]);

    await page.keyboard.press('Tab');
    await page.keyboard.press('Escape');
    await audit.waitFor({ state: 'hidden' });
    expect(await page.evaluate('document.activeElement.textContent')).toBe('More');

    await more.click();
    await audit.click();
    await page.getByRole('heading', { level: 1, name: 'Who changed what' }).waitFor();
    expect(await audit.isVisible()).toBe(false);
    await more.click();
    // To the page that is shown already.
    await audit.click();
    await audit.waitFor({ state: 'hidden' });
    await more.click();
    await page.goBack();
    await page.getByRole('heading', { name: 'Comes due in the next 24 h' }).waitFor();
    await audit.waitFor({ state: 'hidden' });
    await window.close();
  });

  test.each([
    ['#/jobs/emails?tag=many', 'toolbar', 'With the selected jobs'],
    ['#/dead/emails', 'region', 'All of these dead letters'],
  ] as const)(
    'has what acts on a whole list above the tabs, and hides no row behind it: %s',
    async (address, role, name) => {
      const window = await enter(browser, api, { token: api.admin, size: SMALL_PHONE });
      const { page } = window;
      await show(window, address);
      if (role === 'toolbar') await page.getByLabel('all that are shown', { exact: true }).check();
      const bar = page.getByRole(role, { name });
      for (const scroll of ['0', 'document.body.scrollHeight']) {
        await page.evaluate(`scrollTo(0, ${scroll})`);
        const box = await bar.boundingBox();
        expect((box?.y ?? 0) + (box?.height ?? 0)).toBeCloseTo(SMALL_PHONE.height - TABS, 0);
        expect(box?.height).toBeLessThan(SMALL_PHONE.height / 3);
      }
      const last = await page.locator('main tbody tr').last().boundingBox();
      expect((last?.y ?? 0) + (last?.height ?? 0)).toBeLessThanOrEqual((await bar.boundingBox())?.y ?? 0);
      await bar.getByRole('button').first().click();
      await page.getByRole('dialog').waitFor();
      await window.close();
    },
  );

  test('has the filter of a list in one line, which is pushed aside, and the page is not', async () => {
    const window = await enter(browser, api, { token: api.admin, size: PHONE });
    const { page } = window;
    await show(window, '#/jobs/emails?tag=many');
    const field = page.getByLabel('Add to the filter');
    await field.fill('tag:shop');
    await field.press('Enter');
    await deskOf(window).told('4 jobs shown');
    const [filter, chip] = [
      await page.locator('.filter').boundingBox(),
      await page.locator('.chip').first().boundingBox(),
    ];
    expect(filter?.height).toBeLessThan(2 * (chip?.height ?? 0));
    expect([await window.overflow(), await window.noises()]).toEqual([0, []]);
    await window.close();
  });
});
