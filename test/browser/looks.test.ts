/** What pages show that nobody has to click for: past runs, versions, lateness, and numbers that come without an event stream. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { refsOfQueue } from '../../src/client/queues/refs.ts';
import { bucketOf, MINUTE_COUNTERS, MINUTE_MS, noBuckets, stateText } from '../../src/job/minutes.ts';
import { addTimes, writeStates } from '../../src/redis/read/minutes.ts';
import { beat } from '../../src/redis/scripts/presence.ts';
import { PATIENCE_MS, startBrowser, type TestBrowser, type Window } from '../support/browser.ts';
import { enter, must, type Served, serveDashboard, show } from '../support/dashboard.ts';

const HOOK_MS = 10 * PATIENCE_MS;
let browser: TestBrowser;
let api: Served;
let window: Window;

beforeAll(async () => {
  [browser, api] = await Promise.all([startBrowser(), serveDashboard()]);
  window = await enter(browser, api, { token: api.admin });
}, HOOK_MS);
afterAll(async () => {
  await window?.close();
  await browser?.stop();
  await api?.stop();
}, HOOK_MS);

/** As a leader and workers would have written it: of a hundred starts two were late. */
async function startedInTheLastHour(queue: string): Promise<void> {
  const { redis } = api.place;
  const [ref] = await refsOfQueue(api.place, queue);
  if (!ref) throw new Error(`queue ${queue} has no partition`);
  const minute = Math.floor(Date.now() / MINUTE_MS);
  const none = { counters: MINUTE_COUNTERS.map(() => 0), promotion: noBuckets(), start: noBuckets(), run: noBuckets() };
  const start = noBuckets();
  start[bucketOf(0)] = 98;
  start[bucketOf(900)] = 2;
  const tally = { buckets: [...start], fine: new Map(), maxMs: 0 };
  await addTimes(redis, ref, { name: 'start', tally, minute });
  const mark = (ago: number) => ({ minute: minute - ago, since: minute - 60 });
  const states = [
    { ...mark(30), text: stateText(none) },
    { ...mark(29), text: stateText({ ...none, start }) },
  ];
  await writeStates(redis, ref, { at: mark(0), states });
}

describe('a page', { timeout: HOOK_MS }, () => {
  test('Schedule lists past runs with what became of each, and more of them on demand', async () => {
    const { page } = window;
    await must(api, 'PUT /v1/schedules/ticks', api.admin, { queue: 'ticks', every: '1s' });
    const seen = async (): Promise<number> =>
      (await must(api, 'GET /v1/schedules/ticks/runs?limit=100', api.admin)).runs.length;
    await expect.poll(seen, { timeout: PATIENCE_MS }).toBeGreaterThan(20);
    await show(window, '#/schedule/ticks');
    const past = page.locator('section[aria-labelledby="past-runs"]');
    expect(await past.locator('tbody tr').count()).toBe(20);
    const made = past.locator('tbody tr').getByRole('link', { name: /^(scheduled|ready)$/ });
    await made.first().waitFor();
    await past.getByRole('button', { name: 'Show more' }).click();
    await past.locator('tbody tr').nth(20).waitFor();
    await made.last().click();
    await page.locator('.job-facts .id', { hasText: '{schedule:ticks}' }).first().waitFor();
    expect(await window.noises()).toEqual([]);
  });

  test('Workers and leaders shows versions, and says at the top when they differ', async () => {
    const { page } = window;
    await show(window, '#/workers');
    await page.getByText(`Version of duestream: ${packageJson.version}`).waitFor();
    expect(await page.locator('section[aria-label="Leaders"] tbody tr').first().textContent()).toContain(
      packageJson.version,
    );
    const { redis, namespace } = api.place;
    const identity = { id: 'w-older', role: 'worker' as const, host: 'mill', pid: 7, startedMs: 1, queues: ['emails'] };
    await beat(redis, { namespace, identity: { ...identity, version: '0.0.9' }, ttlMs: HOOK_MS });
    await show(window, '#/now');
    await show(window, '#/workers');
    const both = page.locator('.versions.many');
    await both.waitFor();
    expect(await both.textContent()).toBe(
      `2 versions of duestream run: 0.0.9 (1 process), ${packageJson.version} (1 process)`,
    );
    await page.locator('section[aria-label="Workers"] .wk', { hasText: '0.0.9' }).waitFor();
    await show(window, '#/now');
    await page.locator('.checks .warn', { hasText: '2 versions' }).waitFor();
    expect([await window.inaccessible(), await window.overflow(), await window.noises()]).toEqual([[], 0, []]);
  });

  test('warns of a queue that nobody works for only where it has work', async () => {
    const { page } = window;
    await must(api, 'POST /v1/queues/lonely/jobs', api.admin, { id: 'a', delay: '1h' });
    await show(window, '#/now');
    const row = page.getByRole('row', { name: /^lonely/ }).first();
    const sentence = page.getByRole('heading', { level: 1 });
    await row.waitFor();
    await expect.poll(() => row.getAttribute('class')).toBe('warn');
    await expect.poll(() => sentence.innerText()).toContain('lonely has no worker');
    await must(api, 'DELETE /v1/queues/lonely/jobs/a', api.admin);
    await expect.poll(() => row.getAttribute('class')).toBeNull();
    expect(await sentence.innerText()).not.toContain('lonely');
  });

  test('has no table, and so no heads, where there are no rows', async () => {
    await show(window, '#/jobs/lonely');
    expect(await window.page.getByRole('status').filter({ hasText: '0 jobs shown' }).count()).toBe(1);
    expect(await window.page.getByRole('columnheader').count()).toBe(0);
  });

  test('Now has how late starts were: of all queues together and of each', async () => {
    const { page } = window;
    await must(api, 'POST /v1/queues/late/jobs', api.admin, { delay: '1h' });
    await startedInTheLastHour('late');
    // The page asks anew when it opens.
    await show(window, '#/workers');
    await show(window, '#/now');
    const row = page.getByRole('row', { name: /^late/ }).first();
    await expect.poll(() => row.locator('td').nth(1).innerText()).toBe('≈ 438 ms');
    // Half of an hour ago may be another hour of the clock: it is made into one when that is over.
    expect(await row.getByRole('img').last().getAttribute('aria-label')).toMatch(
      /^starts of late by the hour, (0|100) together$/,
    );
  });
});

describe('where a proxy lets no events through', { timeout: HOOK_MS }, () => {
  test('the page polls, says so, shows what changes, and listens again when it can', async () => {
    const { page } = window;
    await page.route('**/v1/live', (route) =>
      route.fulfill({ status: 502, contentType: 'text/html', body: '<h1>bad gateway</h1>' }),
    );
    await show(window, '#/now');
    await page.reload();
    await page.locator('.live.polling').waitFor();
    await page.getByText('No events come through').waitFor();
    const body = { jobs: [1, 2, 3].map((n) => ({ id: `later-${n}`, delay: '1h' })) };
    await must(api, 'POST /v1/queues/polled/batch/schedule', api.admin, body);
    await page.locator('tr', { hasText: 'polled' }).first().waitFor();
    expect([await window.inaccessible(), await window.noises()]).toEqual([[], []]);
    await page.unroute('**/v1/live');
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.getByRole('button', { name: 'Go on' }).click();
    await page.locator('.live.live').waitFor();
    expect(await page.getByText('No events come through').count()).toBe(0);
  });
});
