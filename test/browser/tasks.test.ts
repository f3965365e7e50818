/**
 * What people come for, each in as few steps as the pages promise. A step is a click, a choice or a typed word; reading is none.
 */
import { readFile } from 'node:fs/promises';
import type { Locator } from 'playwright-core';
import { beforeEach, describe, expect, test } from 'vitest';
import { createWorker } from '../../src/worker/worker.ts';
import type { Window } from '../support/browser.ts';
import { buryJobs } from '../support/buried.ts';
import { must, type Served, show } from '../support/dashboard.ts';
import { type Desk, HOOK_MS, jobOf, scheduleAll, useDesk } from '../support/desk.ts';

let api: Served;
let window: Window;
let desk: Desk;

useDesk((seat) => {
  ({ api, window, desk } = seat);
});

/** Counts what somebody does. */
function steps() {
  let count = 0;
  return {
    count: () => count,
    click(what: Locator): Promise<void> {
      count += 1;
      return what.click();
    },
    press(key: string): Promise<void> {
      count += 1;
      return window.page.keyboard.press(key);
    },
    type(into: Locator, text: string): Promise<void> {
      count += 1;
      return into.fill(text);
    },
  };
}

describe('the page Now', { timeout: HOOK_MS }, () => {
  test('says what is late and why, and which hour ahead is the worst: no step', async () => {
    await scheduleAll(api, 'push', [{ id: 'later', delay: '1h' }]);
    await must(api, 'PATCH /v1/queues/push/settings', api.admin, { rate: '1/h' });
    await scheduleAll(
      api,
      'push',
      Array.from({ length: 5 }, (_, n) => ({ id: `due-${n}`, group: 'acme' })),
    );
    const herd = Array.from({ length: 40 }, (_, n) => ({ id: `herd-${n}`, delay: '7h' }));
    await scheduleAll(api, 'campaign', herd);
    await show(window, '#/now');
    const says = window.page.getByRole('heading', { level: 1 });
    await says.filter({ hasText: /push is \d+ s late/ }).waitFor();
    await window.page.getByText('No worker that lives serves it.').waitFor();
    const worst = window.page.locator('.facts-line button');
    expect(await worst.innerText()).toMatch(/^\w{3} \d\d:00$/);
    await window.page.locator('.heat-map p', { hasText: 'most of them of campaign' }).waitFor();
    expect([await window.inaccessible(), await window.overflow()]).toEqual([[], 0]);
  });
});

describe('the page Simulate', { timeout: HOOK_MS }, () => {
  test('says what 5/s would do, and how to set it: 2 steps', async () => {
    await scheduleAll(
      api,
      'what-if',
      Array.from({ length: 100 }, (_, n) => ({ id: `w-${n}`, delay: '1h' })),
    );
    await must(api, 'PATCH /v1/queues/what-if/settings', api.admin, { rate: '100/s' });
    await show(window, '#/simulate/what-if');
    // Nobody has run a job there, so nobody knows for how long one runs.
    await window.page.getByRole('textbox', { name: 'Run time' }).fill('100ms');
    const { click, type, count } = steps();
    await type(window.page.getByRole('textbox', { name: 'Rate' }), '5/s');
    await click(desk.button('Simulate'));
    const says = window.page.getByRole('heading', { level: 1 });
    await says
      .filter({
        hasText:
          /^With this, what-if would be up to 1\d s late\.$|^With this, what-if would be up to 1\d s \d+ ms late\.$/,
      })
      .waitFor();
    expect(await window.page.locator('.command').innerText()).toContain('duestream queues set what-if --rate 5/s');
    await window.page.getByRole('img', { name: /^Latest start: by \d+ min$/ }).waitFor();
    await window.page.getByText('These numbers as a table').click();
    const numbers = window.page.getByRole('region', { name: 'Latest start' });
    await numbers.getByRole('row', { name: / 100 / }).waitFor();
    expect(count()).toBe(2);
    expect((await must(api, 'GET /v1/queues/what-if/settings', api.admin)).settings.rate).toBe('100/s');
    expect([await window.inaccessible(), await window.overflow()]).toEqual([[], 0]);
  });
});

test('who chooses a queue to simulate by keyboard keeps the focus, and begins with it as it is', {
  timeout: HOOK_MS,
}, async () => {
  await scheduleAll(api, 'if-one', [{ id: 'a', delay: '1h' }]);
  await scheduleAll(api, 'if-two', [{ id: 'a', delay: '1h' }]);
  await show(window, '#/simulate');
  const { page } = window;
  const chooser = page.getByRole('combobox', { name: 'Queue' });
  await chooser.locator('option', { hasText: 'if-two' }).waitFor({ state: 'attached' });
  const choose = async (queue: string) => {
    await chooser.focus();
    await page.keyboard.type(queue);
    await page.getByRole('heading', { level: 1, name: new RegExp(`^${queue}: `) }).waitFor();
    expect(await page.evaluate('document.activeElement?.tagName')).toBe('SELECT');
    expect(await chooser.inputValue()).toBe(queue);
  };
  await choose('if-one');
  await page.getByRole('textbox', { name: 'Rate' }).fill('5/s');
  await choose('if-two');
  expect(await page.getByRole('textbox', { name: 'Rate' }).inputValue()).toBe('');
});

test('a slider says what a limit would do when it is let go, by keyboard too, and its field says the same', {
  timeout: HOOK_MS,
}, async () => {
  const jobs = Array.from({ length: 60 }, (_, n) => ({ id: `s-${n}`, delay: '1h' }));
  await scheduleAll(api, 'slid', jobs);
  await must(api, 'PATCH /v1/queues/slid/settings', api.admin, { rate: '100/s' });
  const { page } = window;
  await show(window, '#/simulate/slid');
  await page.getByRole('textbox', { name: 'Run time' }).fill('100ms');
  const slider = page.getByRole('slider', { name: 'Slider: rate' });
  await expect.poll(() => slider.getAttribute('aria-valuetext')).toBe('now 100/s');
  await slider.focus();
  await page.keyboard.press('ArrowLeft');
  await page.keyboard.press('ArrowLeft');
  expect(await page.getByRole('textbox', { name: 'Rate' }).inputValue()).toBe('50/s');
  await page.getByRole('heading', { level: 1, name: /^With this, slid would be up to/ }).waitFor();
  await page.keyboard.press('Home');
  await page.locator('p.command', { hasText: 'duestream queues set slid --rate 1/s' }).waitFor();
  await page.getByRole('heading', { level: 1, name: /^With this, slid would be up to (5\d s|1 min)/ }).waitFor();
  expect([await window.inaccessible(), await window.overflow()]).toEqual([[], 0]);
});

test('a limit of an address stands in the command to be pasted as one word', { timeout: HOOK_MS }, async () => {
  await scheduleAll(api, 'pasted', [{ id: 'a', delay: '1h' }]);
  await show(window, `#/simulate/pasted?rate=${encodeURIComponent('5/s; reboot')}`);
  const command = window.page.locator('p.command');
  await command.filter({ hasText: "duestream queues set pasted --rate '5/s; reboot'" }).waitFor();
});

describe('the page of promises', { timeout: HOOK_MS }, () => {
  test('says whether each was kept this month, and how to make one where there is none', async () => {
    await show(window, '#/slo');
    await window.page.getByText('duestream queues set emails --lateness 1s').waitFor();
    await scheduleAll(api, 'kept', [{ id: 'a', delay: '1h' }]);
    await must(api, 'PATCH /v1/queues/kept/settings', api.admin, { lateness: { within: '1s', of: 0.99, over: '30d' } });
    await show(window, '#/now');
    await show(window, '#/slo');
    await window.page.getByRole('heading', { level: 1, name: /^1 of 1 queue keeps its promise in / }).waitFor();
    await window.page.getByRole('row', { name: /^kept 99 % within 1 s/ }).waitFor();
    expect([await window.inaccessible(), await window.overflow()]).toEqual([[], 0]);
  });
});

/** What a button keeps as a file. */
async function kept(button: Locator): Promise<{ readonly name: string; readonly lines: readonly string[] }> {
  const [file] = await Promise.all([window.page.waitForEvent('download'), button.click()]);
  const text = await readFile(await file.path(), 'utf8');
  return { name: file.suggestedFilename(), lines: text.trimEnd().split('\r\n') };
}

describe('a file for a spreadsheet', { timeout: HOOK_MS }, () => {
  test('has each promise of the month, with its numbers', async () => {
    await scheduleAll(api, 'promised', [{ id: 'a', delay: '1h' }]);
    const lateness = { within: '1s', of: 0.99, over: '30d' };
    await must(api, 'PATCH /v1/queues/promised/settings', api.admin, { lateness });
    await show(window, '#/slo');
    const { name, lines } = await kept(desk.button('Export as CSV'));
    expect(name).toMatch(/^slo-\d{4}-\d\d\.csv$/);
    expect(lines[0]).toContain('queue,promised share,within ms,jobs,');
    expect(lines.find((line) => line.startsWith('promised,'))).toMatch(/^promised,0\.99,1000,0,/);
  });

  test('has the changes of the filter, and no formula of somebody else', async () => {
    await scheduleAll(api, 'noted', [{ id: 'a', delay: '1h' }]);
    await must(api, 'POST /v1/queues/noted/pause', api.admin, { reason: '=HYPERLINK("x")' });
    await show(window, '#/audit?queue=noted');
    const { name, lines } = await kept(desk.button('Export as CSV'));
    expect([name, lines.length]).toEqual(['audit.csv', 2]);
    expect(lines[1]).toMatch(/Z,ada,api,queues\.pause,noted,/);
    expect(lines[1]).toContain(`"'=HYPERLINK(""x"")"`);
  });
});

describe('the way back from a change', { timeout: HOOK_MS }, () => {
  test('stands beside the newest change of its kind: a limit is set back, a pause ends', async () => {
    await scheduleAll(api, 'undone', [{ id: 'a', delay: '1h' }]);
    await must(api, 'PATCH /v1/queues/undone/settings', api.admin, { rate: '40/s' });
    await must(api, 'PATCH /v1/queues/undone/settings', api.admin, { rate: '20/s', concurrency: 3 });
    await show(window, '#/audit?queue=undone');
    expect(await desk.button(/^Set back undone …$/).count()).toBe(1);
    await desk.button('Set back undone …').click();
    await desk.inDialog('Set it back').click();
    await desk.told('undone is set back.');
    const { settings } = await must(api, 'GET /v1/queues/undone/settings', api.admin);
    expect([settings.rate, settings.concurrency]).toEqual(['40/s', false]);
    await must(api, 'POST /v1/queues/undone/pause', api.admin, { reason: 'a look' });
    await show(window, '#/now');
    await show(window, '#/audit?queue=undone');
    await desk.button('Resume undone …').click();
    await desk.inDialog('Resume it').click();
    await desk.told('undone is resumed.');
    // What was taken back can be no more.
    await expect.poll(() => desk.button('Resume undone …').count()).toBe(0);
    expect([await window.inaccessible(), await window.overflow()]).toEqual([[], 0]);
  });
});

describe('the page Workers', { timeout: HOOK_MS }, () => {
  test('pauses one process with a reason, and resumes it; what was asked stays asked', async () => {
    const redis = api.redis.url;
    const worker = createWorker('served', () => Promise.resolve(), { redis, profile: 'quiet' });
    await worker.start();
    await show(window, '#/workers');
    const { page } = window;
    const row = page.locator('.wk', { hasText: `pid ${process.pid}` });
    await row.locator('summary').click();
    await desk.button(/^Pause .* …$/).click();
    await desk.field('Why, for the next person who looks').fill('a heap dump');
    await desk.inDialog('Pause the worker').click();
    const paused = row.filter({ hasText: 'paused for' }).filter({ hasText: 'by ada' });
    await paused.waitFor();
    const [{ id, pause }] = (await must(api, 'GET /v1/workers', api.admin)).workers;
    expect(pause).toMatchObject({ by: 'ada', reason: 'a heap dump' });
    await desk.button(/^Resume .* …$/).click();
    await desk.inDialog('Resume the worker').click();
    await desk.button(/^Pause .* …$/).click();
    // Somebody else is quicker: whoever asks for a pause does not end one.
    await must(api, `POST /v1/workers/${id}/pause`, api.admin, {});
    await paused.waitFor();
    await desk.inDialog('Pause the worker').click();
    await desk.button(/^Resume .* …$/).waitFor();
    expect((await must(api, 'GET /v1/workers', api.admin)).workers[0].pause).toBeDefined();
    expect([await window.inaccessible(), await window.overflow()]).toEqual([[], 0]);
    await worker.stop();
  });
});

describe('the page of a job', { timeout: HOOK_MS }, () => {
  test('says who cancelled it and why, and leads to the others: 1 step from its page', async () => {
    const jobs = ['bf:42', 'bf:42b', 'bf:42c'].map((id) => ({ id, tags: ['customer:42'], delay: '2d' }));
    await scheduleAll(api, 'campaign', jobs);
    await api.ask('POST /v1/queues/campaign/batch/cancel', {
      token: api.admin,
      headers: { 'X-Reason': encodeURIComponent('customer asked for quiet') },
      body: { filter: { tag: 'customer:42' }, dryRun: false },
    });
    await show(window, '#/job/campaign/bf%3A42');
    expect(await window.page.getByRole('heading', { level: 1 }).innerText()).toBe(
      'Cancelled by ada, with 2 others: “customer asked for quiet”.',
    );
    const { click, count } = steps();
    await click(window.page.getByRole('link', { name: 'in the audit' }));
    await window.page.getByText('customer asked for quiet').first().waitFor();
    expect(count()).toBeLessThanOrEqual(3);
  });
});

describe('the page of a queue', { timeout: HOOK_MS }, () => {
  test('says why it holds: no step', async () => {
    await scheduleAll(api, 'sms', [{ id: 'later', delay: '1h' }]);
    await must(api, 'PATCH /v1/queues/sms/settings', api.admin, { concurrency: 1, reason: 'the gateway said 429' });
    await must(api, 'POST /v1/queues/sms/close', api.admin, { for: '1h', reason: 'partner maintenance' });
    await scheduleAll(api, 'sms', [{ id: 'a' }, { id: 'b' }, { id: 'c' }]);
    await must(api, 'POST /v1/queues/sms/pause', api.admin, { reason: 'a look at the log' });
    await show(window, '#/queue/sms');
    const says = window.page.getByRole('heading', { level: 1 });
    await says.filter({ hasText: 'Paused by ada' }).filter({ hasText: '“a look at the log”' }).waitFor();
    await window.page
      .getByRole('listitem')
      .filter({ hasText: 'Promoted' })
      .filter({ hasText: 'Here it holds' })
      .waitFor();
    expect([await window.inaccessible(), await window.overflow()]).toEqual([[], 0]);
  });

  test('closes a group with a reason, and opens it again: 4 steps', async () => {
    await scheduleAll(api, 'push', [{ id: 'later', delay: '1h' }]);
    await must(api, 'PATCH /v1/queues/push/settings', api.admin, { concurrency: 1 });
    const jobs = ['a', 'b', 'c'].map((id) => ({ id, group: 'acme' }));
    await scheduleAll(api, 'push', jobs);
    await show(window, '#/queue/push');
    const { click, type, count } = steps();
    await click(desk.button('Close acme …'));
    await type(desk.field('Reason'), 'they asked us to');
    await click(desk.inDialog('Close it'));
    await desk.told('acme is closed for 1h.');
    const { closed } = await must(api, 'GET /v1/queues/push/groups/acme', api.admin);
    expect(closed.reason).toBe('they asked us to');
    await click(desk.button('Open acme'));
    await desk.told('acme is open.');
    expect((await must(api, 'GET /v1/queues/push/groups/acme', api.admin)).closed).toBeUndefined();
    expect(count()).toBe(4);
  });
});

describe('the page Create', { timeout: HOOK_MS }, () => {
  test('makes a job beside a herd, at a time when it starts on time: 6 steps', async () => {
    // The window is in Berlin, where it is summer then.
    const herd = Array.from({ length: 300 }, (_, n) => ({ id: `herd-${n}`, at: '2031-05-05T07:00:00Z' }));
    await scheduleAll(api, 'herds', herd);
    await must(api, 'PATCH /v1/queues/herds/settings', api.admin, { rate: '1/s' });
    await show(window, '#/now');
    const { click, type, count } = steps();
    await click(window.page.getByRole('link', { name: 'Create a job' }).first());
    await type(window.page.getByLabel('Queue', { exact: true }), 'herds');
    await click(desk.button('At'));
    await type(window.page.getByLabel('Day and time'), '2031-05-05T09:00');
    const preview = window.page.getByRole('complementary', { name: 'What will happen' });
    await preview.getByText('together with 300 others').waitFor();
    await preview.getByText('It may start 4 min late').waitFor();
    await click(desk.button('Take 09:05 instead: on time'));
    await preview.getByText('It may start').waitFor({ state: 'detached' });
    await click(desk.button('Create the job'));
    await window.page.getByRole('heading', { name: /^Due Mon 5 May 2031 09:05:00, in / }).waitFor();
    expect(count()).toBe(6);
    const id = decodeURIComponent(window.page.url().split('/').at(-1) ?? '');
    expect(await jobOf(api, 'herds', id)).toMatchObject({ dueMs: Date.parse('2031-05-05T07:05:00Z') });
  });

  test('takes over what a job has, says what the daemon refuses, and shows the same as a command', async () => {
    const like = { id: 'one', name: 'welcome', tags: ['customer:42'], delay: '2d', data: { to: 'ada' }, attempts: 7 };
    await scheduleAll(api, 'likes', [like]);
    await show(window, '#/job/likes/one');
    await window.page.getByRole('link', { name: 'Create one like it' }).click();
    const data = window.page.getByRole('textbox', { name: 'Data (JSON)' });
    await expect.poll(() => data.inputValue()).toContain('"to": "ada"');
    await data.fill('{"to": 1234567824702058497}');
    await window.page.getByRole('alert').filter({ hasText: 'would be read as' }).first().waitFor();
    await data.fill('{"to": "it\'s ada"}');
    await window.page.getByLabel('Id', { exact: false }).first().fill('one');
    await window.page.getByText('is there already: scheduled').waitFor();
    await desk.button('Create the job').click();
    await window.page.getByRole('alert').filter({ hasText: 'is there already, and was kept' }).waitFor();
    await window.page.getByLabel('Id', { exact: false }).first().fill('two');
    const command = await window.page.locator('.as-code pre').innerText();
    for (const part of ['duestream schedule likes', '--id two', '--tag customer:42', '--attempts 7'])
      expect(command).toContain(part);
    expect(command).toContain(`--data '{"to":"it'\\''s ada"}'`);
    await desk.button('Create the job').click();
    await window.page.getByRole('heading', { level: 1 }).filter({ hasText: 'waits for a worker' }).waitFor();
    const { data: made, name, tags, options } = await jobOf(api, 'likes', 'two');
    expect({ made, name, tags, attempts: options.attempts }).toEqual({
      ...{ made: { to: "it's ada" }, name: 'welcome', tags: ['customer:42'], attempts: 7 },
    });
  });
});

describe('Jobs and the search', { timeout: HOOK_MS }, () => {
  const DAY_MS = 86_400_000;
  const JOBS = [
    ['mails', 'receipt:88121', '1h'],
    ['sms', 'sms:88121', '2h'],
    ['reminders', 'remind:20418', '3d'],
  ] as const;
  const dues = () => Promise.all(JOBS.map(async ([queue, id]): Promise<number> => (await jobOf(api, queue, id)).dueMs));
  const field = () => window.page.getByRole('combobox', { name: 'Find or do' });

  beforeEach(async () => {
    for (const [queue, id, delay] of JOBS) await scheduleAll(api, queue, [{ id, delay, tags: ['client:42'] }]);
  });

  test('find all of client 42, with the queue unknown: 3 steps', async () => {
    const { page } = window;
    const { press, type, count } = steps();
    await press('/');
    await type(field(), 'client 42');
    await page.getByRole('option', { name: /client:42 3 jobs are not over/ }).waitFor();
    expect([await window.inaccessible(), await window.overflow()]).toEqual([[], 0]);
    await press('Enter');
    await page.getByRole('heading', { level: 1, name: '3 jobs of client:42 are not over in 3 queues' }).waitFor();
    expect(await page.locator('tbody .job th').allInnerTexts()).toEqual(JOBS.map(([, id]) => id));
    expect(count()).toBe(3);
  });

  test('move them by a day, and take it back: 4 steps', async () => {
    const { page } = window;
    await show(window, '#/jobs?tag=client:42');
    const before = await dues();
    const { click, count } = steps();
    await click(page.getByLabel('select all that are shown'));
    await click(desk.button('Move …'));
    await click(desk.inDialog('+ 1 day'));
    await click(desk.inDialog('Move 3 jobs by 1 day'));
    await desk.told('3 jobs moved.');
    expect(count()).toBe(4);
    const apart = (await dues()).map((ms, at) => ms - (before[at] ?? 0));
    // An hour more or less where the clock is changed between them.
    for (const ms of apart) expect(Math.abs(ms - DAY_MS)).toBeLessThanOrEqual(3_600_000);
    await desk.button('Undo').click();
    await desk.told('3 jobs moved back.');
    expect(await dues()).toEqual(before);
  });

  test('say what ran at 02:30: 3 steps', async () => {
    const { page } = window;
    const { press, type, count } = steps();
    await press('/');
    await type(field(), 'at 02:30');
    await page.getByRole('option', { name: /What ran at .*02:30/ }).waitFor();
    await press('Enter');
    await page.getByRole('heading', { level: 2, name: 'Ran from 02:30 to 02:31' }).waitFor();
    expect(count()).toBe(3);
  });
});

const place = (name: string) => window.page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name });

describe('dead letters', { timeout: HOOK_MS }, () => {
  test('all that died of one error run again over an hour: 4 steps from Now', async () => {
    const buried = (id: string, reason: string) => ({ queue: 'push.sms', id, reason });
    await buryJobs(api.redis.url, [
      buried('s1', '503 Service Unavailable'),
      buried('s2', '503 Service Unavailable'),
      buried('s3', 'no such number'),
    ]);
    await show(window, '#/now');
    const { click, count } = steps();
    await click(place('Dead letters'));
    await click(window.page.locator('.grp-row', { hasText: '503' }).getByRole('button', { name: 'Replay 2 …' }));
    await click(desk.inDialog('1 h'));
    await click(desk.inDialog('Replay 2 dead letters over 1h'));
    expect(count()).toBeLessThanOrEqual(4);
    await desk.told('2 dead letters replayed.');
    const { deadLetters } = await must(api, 'GET /v1/queues/push.sms/dead', api.admin);
    expect(deadLetters.map(({ id }: { readonly id: string }) => id)).toEqual(['s3']);
    expect((await must(api, 'GET /v1/queues/push.sms/jobs?state=scheduled,ready', api.admin)).jobs).toHaveLength(2);
  });
});

describe('the audit', { timeout: HOOK_MS }, () => {
  test('says who cancelled a job: 2 steps from Now', async () => {
    await scheduleAll(api, 'mails', [{ id: 'welcome:7', delay: '1h' }]);
    await must(api, 'DELETE /v1/queues/mails/jobs/welcome:7', api.admin);
    await show(window, '#/now');
    const { click, type, count } = steps();
    await click(place('Audit'));
    const field = window.page.getByLabel('Job, schedule, group, tag or token');
    await type(field, 'welcome:7');
    await field.press('Enter');
    expect(count()).toBeLessThanOrEqual(3);
    await desk.told('1 change shown');
    const row = window.page.getByRole('row', { name: /welcome:7/ });
    expect(await row.innerText()).toMatch(/ada[\s\S]*cancelled/);
  });
});
