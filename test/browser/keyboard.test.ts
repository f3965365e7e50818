/**
 * Every action once by keyboard alone: Tab, Enter, Space, Escape and what is typed. At each stop the focus must be seen, by
 * the style that the browser has computed, and a dialog gives the focus back to where it came from.
 */
import { describe, expect, test } from 'vitest';
import type { TestBrowser, Window } from '../support/browser.ts';
import { buryJobs } from '../support/buried.ts';
import { must, type Served, show } from '../support/dashboard.ts';
import { type Desk, HOOK_MS, idsOf, jobOf, listed, scheduleAll, useDesk } from '../support/desk.ts';

const TABS_MAX = 150;
/** What has the focus, by its name for people, and the outline around it. */
const FOCUS = `(() => {
  const at = document.activeElement;
  if (at === null || at === document.body) return { name: '', outline: 'nowhere', width: 0 };
  const label = at.labels?.[0]?.firstChild?.textContent;
  const { outlineStyle, outlineWidth } = getComputedStyle(at);
  const name = (label ?? at.getAttribute('aria-label') ?? at.textContent ?? '').trim();
  return { name, outline: outlineStyle, width: Number.parseFloat(outlineWidth) };
})()`;
const IN_DIALOG = `document.activeElement?.closest('[role=dialog], dialog') instanceof Element`;
const VALUE = 'document.activeElement?.value';

let browser: TestBrowser;
let api: Served;
let window: Window;
let desk: Desk;

useDesk((seat) => {
  ({ browser, api, window, desk } = seat);
});

interface Focus {
  readonly name: string;
  readonly outline: string;
  readonly width: number;
}

const focus = () => window.page.evaluate<Focus>(FOCUS);

/** Tab by tab until the focus is on what has this name; it is seen at each stop. */
async function reach(name: string | RegExp, key: 'Tab' | 'Shift+Tab' = 'Tab'): Promise<void> {
  const met: string[] = [];
  for (let tabs = 0; tabs < TABS_MAX; tabs += 1) {
    const at = await focus();
    if (tabs > 0 && at.outline !== 'nowhere') {
      expect(at, 'the focus is seen').toMatchObject({ outline: 'solid' });
      expect(at.width, at.name).toBeGreaterThanOrEqual(2);
    }
    if (typeof name === 'string' ? at.name === name : name.test(at.name)) return;
    met.push(at.name);
    await window.page.keyboard.press(key);
  }
  throw new Error(`${TABS_MAX} tabs, and the focus never came to ${name}; it met ${[...new Set(met)].join(' | ')}`);
}

/** What ends with … opens a dialog, and takes the focus there. */
const press = async (name: string | RegExp, key: 'Enter' | 'Space' = 'Enter') => {
  await reach(name);
  await window.page.keyboard.press(key);
  if (String(name).endsWith('…')) await expect.poll(() => window.page.evaluate(IN_DIALOG)).toBe(true);
};
/**
 * Day, month and year, and behind them the time. A browser forgets the first digit of a part when the second one comes
 * late, as on a busy machine: then all is typed again.
 */
const typeInstant = async (name: string, [day, time]: readonly [string, string], wanted: string) => {
  const typed = async () => {
    await reach('Back');
    await type(name, day);
    await window.page.keyboard.press('ArrowRight');
    await window.page.keyboard.type(time);
    return window.page.evaluate(VALUE);
  };
  await expect.poll(typed).toBe(wanted);
};
/** Of a dialog whose field may have the focus already. */
const type = async (name: string, text: string) => {
  await reach(name);
  await window.page.keyboard.type(text);
};

describe('by keyboard alone', { timeout: HOOK_MS }, () => {
  test('one asks which keys there are, and goes to a place with two of them', async () => {
    const { page } = window;
    await show(window, '#/now');
    await page.keyboard.press('?');
    await desk.dialog.getByText('these keys').waitFor();
    expect(await window.inaccessible()).toEqual([]);
    await desk.escape();
    await page.keyboard.press('g');
    await page.keyboard.press('w');
    await page.getByRole('heading', { level: 1, name: 'Workers' }).waitFor();
    // Who types into a field types.
    await show(window, '#/jobs/emails');
    const field = page.getByLabel('Add to the filter');
    await field.pressSequentially('?gn/');
    expect([await field.inputValue(), await desk.dialog.count()]).toEqual(['?gn/', 0]);
  });

  test('one logs in, stops the live view and lets it go on, and logs out', async () => {
    const stranger = await browser.open(api.url);
    const mine = window;
    window = stranger;
    await stranger.page.goto(`${api.url}/`);
    await stranger.page.getByLabel('Token').waitFor();
    await type('Token', api.admin);
    await stranger.page.keyboard.press('Enter');
    await stranger.page.getByRole('button', { name: 'Log out' }).waitFor();
    const lamp = stranger.page.locator('.live');
    await press('Pause', 'Space');
    await lamp.filter({ hasText: 'paused' }).waitFor();
    await press('Go on', 'Space');
    await lamp.filter({ hasText: 'live' }).waitFor();
    await press('Log out');
    await stranger.page.getByLabel('Token').waitFor();
    expect(await stranger.noises()).toEqual([]);
    await stranger.close();
    window = mine;
  });

  test('a queue is paused with a reason and resumed, and the worst hour ahead leads to its map', async () => {
    await scheduleAll(api, 'emails', [{ id: 'a', delay: '1h' }]);
    await show(window, '#/queue/emails');
    await desk.button('Pause …').waitFor();
    await press('Pause …');
    await window.page.keyboard.press('Escape');
    await desk.dialog.waitFor({ state: 'detached' });
    expect((await focus()).name).toBe('Pause …');
    await window.page.keyboard.press('Enter');
    await type('Reason', 'the mail server moves');
    await press('Pause');
    await desk.told('The queue is paused.');
    expect((await must(api, 'GET /v1/queues/emails', api.admin)).pause.reason).toBe('the mail server moves');
    await desk.button('Resume …').waitFor();
    await press('Resume …');
    await press('Resume', 'Space');
    await desk.told('The queue goes on.');
    await show(window, '#/now');
    const worst = await window.page.locator('.facts-line button').innerText();
    await press(worst);
    expect((await focus()).name).toBe('Comes due in the next 24 h');
  });

  test('a job is edited, rescheduled, run, cancelled', async () => {
    const ids = ['edited', 'moved', 'run', 'off'];
    await scheduleAll(
      api,
      'jobs',
      ids.map((id) => ({ id, delay: '1h', data: { n: 1 } })),
    );
    await show(window, '#/jobs/jobs');
    await press('edited');
    await desk.button('Edit …').waitFor();
    await press('Edit …');
    await type('Attempts, empty: as the queue says', '9');
    await press('Save');
    await desk.told('Changed.');
    expect((await jobOf(api, 'jobs', 'edited')).options.attempts).toBe(9);

    await show(window, '#/job/jobs/moved');
    await press('Reschedule …');
    await type('Delay from now, such as 2h', '3d');
    await press('Reschedule');
    await desk.told('Rescheduled.');
    expect((await jobOf(api, 'jobs', 'moved')).dueMs).toBeGreaterThan(Date.now() + 2 * 86_400_000);

    await show(window, '#/job/jobs/run');
    await press('Run now …', 'Space');
    await press('Run now');
    await desk.told('It is due now.');

    await show(window, '#/job/jobs/off');
    await press('Cancel …');
    await press('Cancel the job');
    await desk.told('Cancelled');
    expect((await jobOf(api, 'jobs', 'off')).state).toBe('cancelled');
  });

  test('selected jobs are moved, run and cancelled, and a word of the filter is taken away', async () => {
    const jobs = ['b1', 'b2'].map((id) => ({ id, delay: '1h', tags: ['mine'] }));
    await scheduleAll(api, 'many', [...jobs, { id: 'b3', delay: '1h' }]);
    await show(window, '#/jobs/many');
    await type('Add to the filter', 'tag:mine');
    await window.page.keyboard.press('Enter');
    await desk.told('2 jobs shown');
    const act = async (button: string, ...then: readonly string[]) => {
      await press('select all that are shown', 'Space');
      await press(button);
      for (const one of then) await press(one);
    };
    await act('Move …', '+ 1 day', 'Move 2 jobs by 1 day');
    await desk.told('2 jobs moved');
    await act('Run now …', 'Run 2 jobs now');
    await desk.told('2 jobs due now');
    await expect.poll(async () => idsOf(await listed(api, 'many', 'state=ready'))).toEqual(['b1', 'b2']);
    await press('Look again');
    await desk.told('2 jobs shown');
    await act('Cancel …', 'Cancel 2 jobs');
    await desk.told('2 jobs cancelled');
    expect(idsOf(await listed(api, 'many', 'state=scheduled,ready'))).toEqual(['b3']);
    await press('without the tag');
    await desk.told('1 job shown');
  });

  test('dead letters are replayed, one and many, and purged', async () => {
    await buryJobs(
      api.redis.url,
      ['d1', 'd2', 'd3'].map((id) => ({ queue: 'dying', id, reason: id === 'd3' ? 'no such address' : 'no answer' })),
    );
    const stateOf = async (id: string) => (await jobOf(api, 'dying', id)).state;
    await show(window, '#/job/dying/d1');
    await press('Replay …');
    await type('Delay from now, such as 2h', '1h');
    await press('Replay');
    await desk.told('It is scheduled again.');
    expect(await stateOf('d1')).toBe('scheduled');

    await show(window, '#/dead/dying');
    await desk.told('2 dead letters shown');
    await press(/^no answer/);
    await press('See them');
    await desk.told('1 dead letter shown');
    await press('Replay them …');
    await type('Spread over, such as 6h; empty: at once', '2h');
    await desk.inDialog('Replay 1 dead letter over 2h').waitFor();
    await press('Replay 1 dead letter over 2h');
    await desk.told('1 dead letter replayed');
    await expect.poll(() => stateOf('d2')).not.toBe('dead');
    await show(window, '#/dead/dying');
    await desk.told('1 dead letter shown');
    await press('Purge them …');
    await desk.inDialog('Purge 1 dead letter').waitFor();
    await press('Purge 1 dead letter');
    await desk.told('removed for ever');
  });

  test('a schedule is paused, resumed, run and filled', async () => {
    await must(api, 'PUT /v1/schedules/hourly', api.admin, { queue: 'sums', every: '1h', start: '2026-01-01' });
    await show(window, '#/schedule/hourly');
    await press('Pause …');
    await type('Reason', 'holidays');
    await press('Pause');
    await desk.told('Paused.');
    await desk.button('Resume …').waitFor();
    await press('Resume …');
    await press('Resume');
    await desk.told('It fires again.');
    await press('Run one now …');
    await press('Run one now');
    await desk.told('scheduled');
    await press('Backfill …');
    // Day and month are the same, so that it does not matter in which order the browser asks for them.
    await typeInstant('From', ['02022026', '0101A'], '2026-02-02T01:01');
    await typeInstant('To', ['02022026', '0401A'], '2026-02-02T04:01');
    await press('Show which');
    await desk.inDialog('Schedule 3 jobs').waitFor();
    await press('Schedule 3 jobs');
    await desk.told('3 jobs scheduled');
  });

  test('one comes past the navigation at once, and from a list to its next page', async () => {
    const jobs = Array.from({ length: 60 }, (_, n) => ({ id: `p${n}`, delay: '1h' }));
    await scheduleAll(api, 'paged', jobs);
    await show(window, '#/jobs/paged');
    // A new page has the focus at its content: the navigation is behind whoever reads on.
    await window.page.keyboard.press('Tab');
    expect((await focus()).name).toBe('paged');
    await reach('Skip to the content', 'Shift+Tab');
    const box = await window.page.locator('.skip').boundingBox();
    expect(box?.x).toBeGreaterThanOrEqual(0);
    await window.page.keyboard.press('Enter');
    expect(await window.page.evaluate('document.activeElement.id')).toBe('content');
    await press('Show more');
    await desk.told('60 jobs shown');
  });
});

/** Of all that the page shows, what moves: names of elements with a transition or an animation that takes time. */
const MOVING = `[...document.querySelectorAll('*')].flatMap((one) => {
  const { transitionDuration, animationName, animationDuration, scrollBehavior } = getComputedStyle(one);
  const isMoving = /[1-9]/.test(transitionDuration) || (animationName !== 'none' && /[1-9]/.test(animationDuration));
  return isMoving || scrollBehavior === 'smooth' ? [one.tagName] : [];
})`;

test('nothing moves for whoever wants reduced motion', { timeout: HOOK_MS }, async () => {
  await scheduleAll(api, 'still', [{ id: 'a', delay: '1h' }]);
  const moving = () => window.page.evaluate<readonly string[]>(MOVING);
  for (const address of [
    '#/now',
    '#/queue/still',
    '#/jobs/still',
    '#/job/still/a',
    '#/dead',
    '#/schedules',
    '#/schedules/new',
    '#/workers',
    '#/audit',
  ]) {
    await show(window, address);
    expect(await moving(), address).toEqual([]);
    expect(await window.page.evaluate('document.getAnimations().length'), address).toBe(0);
  }
  // The others see buttons change softly: so it is looked at in the right place.
  await window.page.emulateMedia({ reducedMotion: 'no-preference' });
  expect(new Set(await moving())).toContain('BUTTON');
});
