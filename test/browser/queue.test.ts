/** The page of a queue: why it holds, pause and resume, its flow, charts with their numbers, settings and diary. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { refsOfQueue } from '../../src/client/queues/refs.ts';
import { MINUTE_MS, noBuckets, stateText } from '../../src/job/minutes.ts';
import { writeStates } from '../../src/redis/read/minutes.ts';
import { createWorker } from '../../src/worker/worker.ts';
import { PATIENCE_MS, startBrowser, type TestBrowser, type Window } from '../support/browser.ts';
import { enter, must, type Served, servePages, show } from '../support/dashboard.ts';
import { deskOf, jobOf, listed, scheduleAll } from '../support/desk.ts';
import { startReceiver } from '../support/receiver.ts';

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
const says = ({ page }: Window) => page.getByRole('heading', { level: 1 });
const stage = ({ page }: Window, name: string) => page.locator('.flow li', { hasText: name }).first();

describe('a pause', { timeout: HOOK_MS }, () => {
  test('is asked for with a reason, which everybody who looks then sees, until somebody resumes', async () => {
    const ran: string[] = [];
    const worker = createWorker('emails', ({ id }) => void ran.push(id), { redis: api.redis.url });
    await worker.start();
    await scheduleAll(api, 'emails', [{ id: 'later', delay: '1h' }]);
    const window = await enter(browser, api, { token: api.admin });
    const viewer = await enter(browser, api, { token: api.reader });
    await Promise.all([show(window, '#/queue/emails'), show(viewer, '#/queue/emails')]);
    await says(viewer).filter({ hasText: 'Quiet, as it should be. The next job is due in' }).waitFor();
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
      await says(one).filter({ hasText: 'Paused by ada' }).waitFor();
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
      await says(one).filter({ hasText: 'Quiet' }).waitFor();
      await why(one).waitFor({ state: 'detached' });
      expect(await one.noises()).toEqual([]);
    }
    await Promise.all([window.close(), viewer.close()]);
    await worker.stop();
  });

  test('stays a pause in a dialog that is open while somebody else pauses: Enter does not resume', async () => {
    await scheduleAll(api, 'shared', [{ id: 'a', delay: '1h' }]);
    const window = await enter(browser, api, { token: api.admin });
    await show(window, '#/queue/shared');
    const desk = deskOf(window);
    await desk.button('Pause …').click();
    await desk.field('Reason').fill('and mine');
    await must(api, 'POST /v1/queues/shared/pause', api.admin, { reason: 'theirs' });
    await says(window).filter({ hasText: 'Paused by ada' }).waitFor();
    await desk.dialog.getByRole('heading', { name: 'Pause shared' }).waitFor();
    await desk.field('Reason').press('Enter');
    await desk.told('The queue is paused.');
    expect((await must(api, 'GET /v1/queues/shared', api.admin)).paused).toBe(true);
    await window.close();
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
    expect(await why(window).innerText()).toContain('No worker that lives serves it');
    expect(await stage(window, 'Ready').innerText()).toContain('no worker lives');
    expect(await stage(window, 'Promoted').getAttribute('class')).toBe('held warn');
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
    await expect.poll(() => stage(window, name).locator('b').innerText()).toBe(String(count));
    await stage(window, name).locator('b').getByRole('link').click();
    await deskOf(window).told(`${count} jobs shown`);
    expect(await window.page.locator('tbody .job').count()).toBe(count);
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
  await show(window, '#/queue/gated');
  await stage(window, 'In line').getByRole('link', { name: '2', exact: true }).click();
  await deskOf(window).told('2 jobs shown');
  await show(window, '#/queue/gated');
  await says(window).filter({ hasText: 'No worker serves this queue' }).waitFor();
  await why(window).filter({ hasText: 'start one with "duestream worker <module>"' }).waitFor();
  await why(window).filter({ hasText: '2 jobs wait in line' }).waitFor();
  await window.page.getByRole('meter', { name: 'Concurrency: 1 of 5' }).waitFor();
  await window.page.getByRole('meter', { name: /^Rate: .* of 1\/h$/ }).waitFor();
  await show(window, '#/audit');
  await window.page
    .getByRole('row', { name: /^.* ada.* set / })
    .filter({ hasText: 'the provider said 429' })
    .waitFor();
  expect(await window.noises()).toEqual([]);
  await window.close();
});

test('a queue that shares limits shows what all of its queues use, and who they are', {
  timeout: HOOK_MS,
}, async () => {
  await must(api, 'PUT /v1/limits/licences', api.admin, { concurrency: 2 });
  await must(api, 'PUT /v1/limits/provider', api.admin, { rate: '1/h' });
  for (const queue of ['sharing', 'beside']) {
    await scheduleAll(api, queue, [{ id: 'first', delay: '1h' }]);
    await must(api, `PATCH /v1/queues/${queue}/settings`, api.admin, { limits: ['licences', 'provider'] });
  }
  await scheduleAll(api, 'sharing', [{ id: 'a' }, { id: 'b' }]);
  const window = await enter(browser, api, { token: api.admin });
  await show(window, '#/queue/sharing');
  const gauge = (name: RegExp) => window.page.locator('.gauge', { has: window.page.getByRole('meter', { name }) });
  await gauge(/^Shared limit licences: [12] of 2$/)
    .filter({ hasText: 'Shared with beside.' })
    .waitFor();
  await gauge(/^Shared limit provider: .* of 1\/h$/)
    .filter({ hasText: 'Jobs of this queue wait for a turn. Shared with beside.' })
    .waitFor();
  expect(await window.noises()).toEqual([]);
  await window.close();
});

describe('the charts', { timeout: HOOK_MS }, () => {
  let window: Window;
  let minute: number;

  beforeAll(async () => {
    await scheduleAll(leaderless, 'charted', [{ id: 'a', delay: '1h' }]);
    const run = noBuckets().map((_, at) => (at === 4 ? 90 : at === 7 ? 10 : 0));
    const start = noBuckets().map((_, at) => (at === 2 ? 100 : 0));
    // scheduled, promoted, done, retried, deferred, dead
    minute = await seedMinutes('charted', { counters: [1200, 600, 600, 60, 0, 6], promotion: start, start, run });
    window = await enter(browser, leaderless, { token: leaderless.admin });
    await show(window, '#/queue/charted');
  }, HOOK_MS);
  afterAll(async () => {
    expect(await window.noises()).toEqual([]);
    await window.close();
  });

  /** Counters and times as they were when the last minutes began: what happened is the difference of two. */
  async function seedMinutes(queue: string, after: Parameters<typeof stateText>[0]): Promise<number> {
    const [ref] = await refsOfQueue(leaderless.place, queue);
    if (!ref) throw new Error('the queue has no partition');
    const now = Math.floor(Number((await leaderless.place.redis.time())[0]) / 60);
    const before = { counters: [], promotion: [], start: [], run: [] };
    const since = now - 60;
    const states = [
      { minute: now - 3, since, text: stateText(before) },
      { minute: now - 2, since, text: stateText(after) },
    ];
    // As if the leader had looked until in half an hour: the test may take as long as it likes.
    await writeStates(leaderless.place.redis, ref, { at: { minute: now + 30, since }, states });
    return now - 3;
  }

  const seedFew = (queue: string) => {
    const three = noBuckets().map((_, at) => (at === 2 ? 3 : 0));
    return seedMinutes(queue, { counters: [3, 3, 3, 0, 0, 0], promotion: three, start: three, run: three });
  };

  const drawn = (title: string) => window.page.locator('figure.plot', { hasText: title });
  const numbers = () => window.page.getByRole('region', { name: 'Table of what happened', exact: true });

  test('draw starts, lateness, ends and run time, and say in words what they show', async () => {
    for (const [title, say] of [
      ['Starts per minute', '100 in all'],
      ['Lateness of starts', '99 % within 5 ms'],
      ['Ends per minute', '600 done, 60 retried, 6 died'],
      ['Run time', '99 % within 228 ms'],
    ] as const) {
      await drawn(title).filter({ hasText: say }).waitFor();
      const label = await drawn(title).getByRole('img').getAttribute('aria-label');
      expect(label).toContain(`${title}: ${say}`);
    }
  });

  test('are a table for whoever wants the numbers', async () => {
    const summary = window.page.getByText('These numbers as a table');
    expect(await numbers().count()).toBe(0);
    await summary.click();
    await numbers().waitFor();
    expect(await numbers().locator('tbody tr').count()).toBe(60);
    const clock = new Date(minute * MINUTE_MS).toLocaleTimeString('en-GB', { timeZone: 'Europe/Berlin' });
    const row = numbers().locator('tbody tr').filter({ hasText: clock });
    expect(await row.locator('td').allInnerTexts()).toEqual([
      ...['600', '5 ms', '100', '3 ms', '5 ms', '600', '60', '6', '16 ms', '228 ms'],
    ]);
    await summary.click();
  });

  test('a day has steps of ten minutes, with the same jobs in them, and 90 days are days', async () => {
    const desk = deskOf(window);
    await desk.button('Day').click();
    await window.page.getByRole('heading', { name: 'The last day' }).waitFor();
    await window.settled();
    await window.page.getByText('These numbers as a table').click();
    await expect.poll(() => numbers().locator('tbody tr').count()).toBe(144);
    // 600 jobs in ten minutes; nobody has looked for the whole of a day.
    await drawn('Ends in ten minutes').filter({ hasText: '600 done' }).waitFor();
    await desk.button('90 days').click();
    await window.page.getByRole('heading', { name: 'The last 90 days' }).waitFor();
    await window.settled();
    await desk.button('Hour').click();
    await window.page.getByRole('heading', { name: 'The last hour' }).waitFor();
  });

  test('of a few runs are dots, and nothing is drawn of an hour without any', async () => {
    await scheduleAll(leaderless, 'seldom', [{ id: 'a', delay: '1h' }]);
    await seedFew('seldom');
    await show(window, '#/queue/seldom');
    await drawn('Lateness of starts').filter({ hasText: '3 only: each dot is the longest of its step' }).waitFor();
    expect(await drawn('Lateness of starts').locator('path.dots').count()).toBe(1);
    await scheduleAll(leaderless, 'idle', [{ id: 'a', delay: '1h' }]);
    await show(window, '#/queue/idle');
    await window.page.getByText('There are no counts by the minute yet.').waitFor();
    expect(await window.page.locator('figure.plot').count()).toBe(0);
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
      page.getByRole('region', { name: 'Table of settings', exact: true }).locator('tr', { hasText: name });
    for (const text of ['1/s', 'ada', 'The definition says nothing', 'incident 7']) {
      expect(await row(window, 'Rate').first().innerText()).toContain(text);
    }
    expect(await row(viewer, 'Limits of pro-*').innerText()).toContain('they pay for it');
    expect(await viewer.page.getByRole('button', { name: 'Take back' }).count()).toBe(0);
    // Redaction is taken back with the scope admin alone.
    expect(await row(window, 'Redacted fields').getByRole('button').count()).toBe(0);

    const desk = deskOf(window);
    for (const name of ['Rate', 'Limits of pro-*']) {
      await desk.button(`Take back: ${name} …`).click();
      await desk.escape();
      await desk.button(`Take back: ${name} …`).click();
      await desk.inDialog('Take it back').click();
      await desk.told(`The override of ${name} is taken back.`);
    }
    // Limits of each group go together, and the page says so.
    await desk.button('Take back: Per group …').click();
    await window.page.getByText('All that was set of Per group by command is taken back.').waitFor();
    await desk.inDialog('Take it back').click();
    await desk.told('The override of Per group is taken back.');
    // The message stands before the table is read again.
    await desk.button('Take back: Per group …').waitFor({ state: 'detached' });
    expect(await row(window, 'History').innerText()).toContain('off');
    const { overrides } = await must(api, 'GET /v1/queues/calls/settings', api.admin);
    expect(overrides.map((one: { readonly setting: string }) => one.setting).toSorted()).toEqual(['history', 'redact']);
    await Promise.all([window.close(), viewer.close()]);
  });

  test('is changed by a form with a reason, as typed: a number, a rate with a burst, parts, nothing', async () => {
    await scheduleAll(api, 'formed', [{ id: 'later', delay: '1h' }]);
    const window = await enter(browser, api, { token: api.admin });
    await show(window, '#/queue/formed');
    const desk = deskOf(window);
    const settings = async () => (await must(api, 'GET /v1/queues/formed/settings', api.admin)).settings;
    const change = async (name: string, fields: Readonly<Record<string, string>>) => {
      await desk.button(`Change ${name} …`).click();
      for (const [field, text] of Object.entries(fields)) await desk.field(field).fill(text);
      await desk.inDialog('Change it').click();
      await desk.told(`${name} is changed.`);
    };
    await window.page.getByText('more hold by default').click();
    await change('Rate', { Value: '7/90s burst 3', Reason: 'incident 9' });
    expect((await settings()).rate).toEqual({ limit: 7, per: '90s', burst: 3 });
    await change('Per group', { 'at a time': '4', rate: '2/s' });
    expect((await settings()).perGroup).toMatchObject({ concurrency: 4, rate: '2/s' });
    await change('Lateness promised', { within: '5s' });
    expect((await settings()).lateness).toMatchObject({ within: '5s' });
    await change('Rate', { Value: '' });
    expect((await settings()).rate).toBe(false);
    const diary = window.page.getByRole('region', { name: 'Diary' });
    await diary.getByText('Rate from no limit to 7/90s burst 3 by ada').waitFor();
    await diary.getByText('incident 9').waitFor();

    // What is refused stays in the form, with what is allowed.
    await desk.button('Change Rate …').click();
    await desk.field('Value').fill('soon');
    await desk.inDialog('Change it').click();
    expect(await desk.refused('allowed')).toContain('10/s');
    await desk.escape();
    expect(await window.noises()).toEqual([]);
    await window.close();
  });

  test('stands in the diary, which leads to why the queue was late within some time', async () => {
    await scheduleAll(api, 'told', [{ id: 'later', delay: '1h' }]);
    await must(api, 'POST /v1/queues/told/pause', api.admin, { reason: REASON });
    // A pause counts from a second on.
    await expect
      .poll(async () => (await must(api, 'GET /v1/queues/told/late', api.admin)).verdict)
      .toContain('it was paused');
    const window = await enter(browser, api, { token: api.admin });
    await show(window, '#/queue/told');
    await window.page.getByRole('region', { name: 'Diary' }).getByText(REASON).waitFor();
    await window.page.getByRole('link', { name: 'Why was last night late?' }).click();
    await says(window).filter({ hasText: 'told' }).waitFor();
    await window.page.getByRole('link', { name: 'Last hour' }).click();
    await says(window).filter({ hasText: 'it was paused' }).waitFor();
    await window.page.getByRole('region', { name: 'Diary' }).getByText(REASON).waitFor();
    expect([await window.inaccessible(), await window.noises()]).toEqual([[], []]);
    await window.close();
  });
});

describe('a target', { timeout: HOOK_MS }, () => {
  test('is shown to all, and one request tries it for whoever may set it', async () => {
    const receiver = await startReceiver();
    const calling = await servePages({ roles: ['http', 'mover', 'dispatcher'], targets: { allow: ['127.0.0.1'] } });
    try {
      await scheduleAll(calling, 'hooks', [{ id: 'later', delay: '1h' }]);
      await must(calling, 'PATCH /v1/queues/hooks/settings', calling.admin, { target: receiver.url });
      const window = await enter(browser, calling, { token: calling.admin });
      const viewer = await enter(browser, calling, { token: calling.reader });
      await Promise.all([show(window, '#/queue/hooks'), show(viewer, '#/queue/hooks')]);
      const target = ({ page }: Window) => page.getByRole('region', { name: 'Target', exact: true });
      await target(viewer)
        .filter({ hasText: `POST ${receiver.url} without a signature` })
        .waitFor();
      expect(await target(viewer).getByRole('button').count()).toBe(0);

      receiver.next((response) => void response.writeHead(503).end('busy'));
      await target(window).getByRole('button', { name: 'Send one request now' }).click();
      await target(window).getByText('A job would be tried again.').waitFor();
      const steps = await target(window).getByRole('listitem').allInnerTexts();
      expect(steps).toEqual([
        'ok Names: without a signature',
        'ok Address: 127.0.0.1 is 127.0.0.1',
        expect.stringMatching(/^failed Answer: 503 from 127\.0\.0\.1 after \d+ ms$/),
      ]);
      expect(receiver.received).toHaveLength(1);
      await Promise.all([window.close(), viewer.close()]);
    } finally {
      await calling.stop();
      await receiver.close();
    }
  });
});
