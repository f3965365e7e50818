/** The page of a queue: what it holds, why nothing moves, pause and resume, the charts and the tables behind them. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { refsOfQueue } from '../../src/client/queues/refs.ts';
import { MINUTE_MS, noBuckets, stateText } from '../../src/job/minutes.ts';
import { writeStates } from '../../src/redis/read/minutes.ts';
import { createWorker } from '../../src/worker/worker.ts';
import { PATIENCE_MS, startBrowser, type TestBrowser, type Window } from '../support/browser.ts';
import { enter, must, type Served, servePages, show } from '../support/dashboard.ts';
import { deskOf, jobOf, listed, scheduleAll } from '../support/desk.ts';

const HOOK_MS = 10 * PATIENCE_MS;
const REASON = 'the mail server moves to another house';
let browser: TestBrowser;
let api: Served;
/** Nobody leads here, so nobody but the test writes what happened by the minute. */
let leaderless: Served;

beforeAll(async () => {
  [browser, api, leaderless] = await Promise.all([startBrowser(), servePages(), servePages({ roles: ['http'] })]);
}, HOOK_MS);
afterAll(async () => {
  await browser?.stop();
  await Promise.all([api?.stop(), leaderless?.stop()]);
}, HOOK_MS);

const why = ({ page }: Window) => page.getByRole('region', { name: 'Why nothing moves' });
const badge = ({ page }: Window) => page.getByRole('heading', { level: 1 }).locator('.badge');
const tile = ({ page }: Window, name: string) => page.locator('.tile', { hasText: name }).first();

describe('a pause', { timeout: HOOK_MS }, () => {
  test('is asked for with a reason, which everybody who looks then sees, until somebody resumes', async () => {
    const ran: string[] = [];
    const worker = createWorker('emails', ({ id }) => void ran.push(id), { redis: api.redis.url });
    await worker.start();
    await scheduleAll(api, 'emails', [{ id: 'later', delay: '1h' }]);
    const window = await enter(browser, api, { token: api.admin });
    const viewer = await enter(browser, api, { token: api.reader });
    await Promise.all([show(window, '#/queue/emails'), show(viewer, '#/queue/emails')]);
    await why(viewer).filter({ hasText: 'every job waits for its due time' }).waitFor();
    const desk = deskOf(window);

    await desk.button('Pause …').click();
    await desk.field('Reason').fill(REASON);
    await desk.escape();
    expect((await must(api, 'GET /v1/queues/emails', api.admin)).paused).toBe(false);

    await desk.button('Pause …').click();
    await desk.field('Reason').fill(REASON);
    await desk.inDialog('Pause').click();
    await desk.told('The queue is paused. Running jobs go on to their end.');
    await desk.dialog.waitFor({ state: 'detached' });
    for (const one of [window, viewer]) {
      await badge(one).filter({ hasText: 'paused' }).waitFor();
      await why(one)
        .filter({ hasText: `: ${REASON}` })
        .waitFor();
    }
    expect((await must(api, 'GET /v1/queues/emails', api.reader)).pause).toMatchObject({ reason: REASON });

    await scheduleAll(api, 'emails', [{ id: 'held' }]);
    expect(['scheduled', 'ready']).toContain((await jobOf(api, 'emails', 'held')).state);
    expect(ran).toEqual([]);

    await desk.button('Resume …').click();
    await desk.inDialog('Resume').click();
    await desk.told('The queue goes on.');
    await expect.poll(async () => (await jobOf(api, 'emails', 'held')).state).toBe('done');
    expect(ran).toEqual(['held']);
    for (const one of [window, viewer]) {
      await badge(one).waitFor({ state: 'detached' });
      await why(one).filter({ hasNotText: REASON, hasText: 'every job waits' }).waitFor();
      expect(await one.noises()).toEqual([]);
    }
    await Promise.all([window.close(), viewer.close()]);
    await worker.stop();
  });

  test('without a reason says so, and a queue that nobody serves says that, too', async () => {
    await scheduleAll(api, 'reports', [{ id: 'a', delay: '1h' }]);
    const window = await enter(browser, api, { token: api.admin });
    await show(window, '#/queue/reports');
    const desk = deskOf(window);
    await desk.button('Pause …').click();
    await desk.inDialog('Pause').click();
    await desk.told('The queue is paused.');
    await why(window).filter({ hasText: 'without a reason' }).waitFor();
    expect(await why(window).innerText()).toContain('no worker that lives serves it');
    expect(await tile(window, 'Workers').getAttribute('class')).toContain('bad');
    await window.close();
  });
});

test('each count leads to the list of what it counts', { timeout: HOOK_MS }, async () => {
  await scheduleAll(api, 'counted', [{ id: 'now-1' }, { id: 'now-2' }]);
  const later = ['a', 'b', 'c'].map((id) => ({ id, delay: '1h' }));
  await scheduleAll(api, 'counted', later);
  await expect.poll(async () => (await listed(api, 'counted', 'state=ready')).length).toBe(2);
  const window = await enter(browser, api, { token: api.admin });
  for (const [name, count] of [
    ['Scheduled', 3],
    ['Ready', 2],
  ] as const) {
    await show(window, '#/queue/counted');
    await expect.poll(() => tile(window, name).locator('dd').innerText()).toBe(String(count));
    await tile(window, name).getByRole('link').click();
    await deskOf(window).told(`${count} jobs shown`);
    expect(await window.page.locator('tbody tr').count()).toBe(count);
  }
  await window.close();
});

test('a queue with limits shows them, who is in line, and what to do', { timeout: HOOK_MS }, async () => {
  await scheduleAll(api, 'gated', [{ id: 'first', delay: '1h' }]);
  const body = { rate: '1/h', concurrency: 5, reason: 'the provider said 429' };
  await must(api, 'PATCH /v1/queues/gated/settings', api.admin, body);
  await scheduleAll(api, 'gated', [{ id: 'a' }, { id: 'b' }, { id: 'c' }]);
  await expect.poll(async () => (await listed(api, 'gated', 'state=waiting')).length).toBe(2);
  const window = await enter(browser, api, { token: api.admin });
  await show(window, '#/');
  const row = window.page.getByRole('row', { name: /^gated/ });
  await row.filter({ hasText: '1/h · 5 at once' }).filter({ hasText: '0 of 5' }).waitFor();
  await window.page
    .getByText(/gated: 2 jobs wait in line, and the rate 1\/h takes 120 min for them at the least;/)
    .waitFor();
  await row.getByRole('link', { name: '2', exact: true }).click();
  await deskOf(window).told('2 jobs shown');
  await show(window, '#/queue/gated');
  expect(await tile(window, 'Limits').locator('dd').innerText()).toBe('1/h · 5 at once');
  await why(window).filter({ hasText: 'start one with "duestream worker <module>"' }).waitFor();
  await show(window, '#/audit');
  await window.page
    .getByRole('row', { name: /queues\.set/ })
    .filter({ hasText: 'the provider said 429' })
    .waitFor();
  expect(await window.noises()).toEqual([]);
  await window.close();
});

describe('the charts', { timeout: HOOK_MS }, () => {
  let window: Window;
  let minute: number;

  beforeAll(async () => {
    await scheduleAll(leaderless, 'charted', [{ id: 'a', delay: '1h' }]);
    minute = await seedMinutes();
    window = await enter(browser, leaderless, { token: leaderless.admin });
    await show(window, '#/queue/charted');
  }, HOOK_MS);
  afterAll(async () => {
    expect(await window.noises()).toEqual([]);
    await window.close();
  });

  /** Counters and times as they were when the last minutes began: what happened is the difference of two. */
  async function seedMinutes(): Promise<number> {
    const [ref] = await refsOfQueue(leaderless.place, 'charted');
    if (!ref) throw new Error('the queue has no partition');
    const now = Math.floor(Number((await leaderless.place.redis.time())[0]) / 60);
    const run = noBuckets().map((_, at) => (at === 4 ? 90 : at === 7 ? 10 : 0));
    const start = noBuckets().map((_, at) => (at === 2 ? 100 : 0));
    const before = { counters: [], promotion: [], start: [], run: [] };
    // scheduled, promoted, done, retried, deferred, dead
    const after = { counters: [1200, 600, 600, 60, 0, 6], promotion: start, start, run };
    const since = now - 60;
    const states = [
      { minute: now - 3, since, text: stateText(before) },
      { minute: now - 2, since, text: stateText(after) },
    ];
    // As if the leader had looked until in half an hour: the test may take as long as it likes.
    await writeStates(leaderless.place.redis, ref, { at: { minute: now + 30, since }, states });
    return now - 3;
  }

  const chart = (title: string) => window.page.locator('figure.chart', { hasText: title });
  const tableOf = (title: string) => window.page.getByRole('region', { name: `Table of ${title}`, exact: true });

  /** The cells of the minute in which something happened. */
  async function cellsOf(title: string): Promise<readonly string[]> {
    const at = new Date(minute * MINUTE_MS);
    const clock = at.toLocaleTimeString('en-GB', { timeZone: 'Europe/Berlin' });
    const row = tableOf(title).locator('tbody tr').filter({ hasText: clock });
    expect(await row.count(), `${title} at ${clock}`).toBe(1);
    return row.locator('td').allInnerTexts();
  }

  test.each([
    ['Jobs per second', ['20', '10', '1', '0.1']],
    ['Lateness of starts', ['4 ms', '5 ms']],
    ['Lateness of promotions', ['4 ms', '5 ms']],
    ['Run time', ['16 ms', '235 ms']],
  ])('%s is drawn, and is a table for whoever wants the numbers', async (title, cells) => {
    await chart(title).locator('canvas').waitFor();
    const summary = chart(title).getByText(`${title} as a table`);
    expect(await tableOf(title).isVisible()).toBe(false);
    await summary.click();
    await tableOf(title).waitFor();
    expect(await tableOf(title).locator('tbody tr').count()).toBe(60);
    expect(await cellsOf(title)).toEqual(cells);
    await summary.click();
  });

  test('a day has steps of ten minutes, with the same jobs in them', async () => {
    const desk = deskOf(window);
    await desk.button('Day').click();
    await window.page.getByRole('heading', { name: 'The last day' }).waitFor();
    await window.settled();
    await chart('Jobs per second').getByText('Jobs per second as a table').click();
    await expect.poll(() => tableOf('Jobs per second').locator('tbody tr').count()).toBe(144);
    // 600 jobs in ten minutes; nobody has looked for the whole of a day.
    const { counts } = await must(leaderless, 'GET /v1/queues/charted/minutes?hours=24', leaderless.admin);
    expect(counts.done.reduce((sum: number, one: number) => sum + one, 0)).toBe(600);
    await desk.button('Hour').click();
    await window.page.getByRole('heading', { name: 'The last hour' }).waitFor();
  });
});

describe('what somebody set by command', { timeout: HOOK_MS }, () => {
  test('is shown with who and why, and is taken back by whoever may', async () => {
    await scheduleAll(api, 'calls', [{ id: 'later', delay: '1h' }]);
    const set = (what: string, body: object) => must(api, what, api.admin, body);
    await set('PATCH /v1/queues/calls/settings', { rate: '1/s', reason: 'incident 7' });
    await set('PATCH /v1/queues/calls/settings', { redact: ['card'] });
    await set('PATCH /v1/queues/calls/settings', { perGroup: { concurrency: 2, maxPending: 9 }, history: false });
    await set('PUT /v1/queues/calls/groups/pro-*/limits', { concurrency: 3, reason: 'they pay for it' });
    const writer = await api.tokenOf({ name: 'bob', scopes: ['read', 'write'] });
    const window = await enter(browser, api, { token: writer });
    const viewer = await enter(browser, api, { token: api.reader });
    await Promise.all([show(window, '#/queue/calls'), show(viewer, '#/queue/calls')]);
    const row = ({ page }: Window, name: string) =>
      page.getByRole('region', { name: 'Table of settings that were set by command' }).locator('tr', { hasText: name });
    for (const text of ['1/s', 'nothing', 'incident 7']) expect(await row(window, 'rate').innerText()).toContain(text);
    expect(await row(viewer, 'the limits of pro-*').innerText()).toContain('they pay for it');
    expect(await viewer.page.getByRole('button', { name: 'Take back' }).count()).toBe(0);
    // Redaction is taken back with the scope admin alone.
    expect(await row(window, 'redact').getByRole('button').count()).toBe(0);

    const desk = deskOf(window);
    for (const name of ['rate', 'the limits of pro-*']) {
      await row(window, name).getByRole('button').click();
      await desk.escape();
      await row(window, name).getByRole('button').click();
      await desk.inDialog('Take it back').click();
      await desk.told(`The override of ${name} is taken back.`);
    }
    // Limits of each group go together, and the page says so.
    expect(await row(window, 'perGroup').count()).toBe(2);
    await row(window, 'perGroup').first().getByRole('button').click();
    await window.page.getByText('All that was set of perGroup by command is taken back.').waitFor();
    await desk.inDialog('Take it back').click();
    await desk.told('The override of perGroup is taken back.');
    await row(window, 'redact').waitFor();
    expect(await row(window, 'history').innerText()).toContain('off');
    expect(await row(window, 'perGroup').count()).toBe(0);
    const { overrides } = await must(api, 'GET /v1/queues/calls/settings', api.admin);
    expect(overrides.map((one: { readonly setting: string }) => one.setting).toSorted()).toEqual(['history', 'redact']);
    await Promise.all([window.close(), viewer.close()]);
  });
});
