/** The pages of a queue with limits: who waits, by group, who holds the limit of a group, and why a job waits. */
import { afterAll, describe, expect, test, vi } from 'vitest';
import { setQueue } from '../../src/redis/scripts/queues.ts';
import { createWorker } from '../../src/worker/worker.ts';
import { must, type Served, show } from '../support/dashboard.ts';
import { HOOK_MS, type Seat, scheduleAll, useDesk } from '../support/desk.ts';

let seat: Seat;
let letGo = () => {};
let stop = async () => {};
useDesk((given) => {
  seat = given;
}, prepare);
afterAll(async () => {
  letGo();
  await stop();
});

const tableOf = (what: string) => seat.window.page.getByRole('region', { name: `Table of ${what}`, exact: true });
const rows = (what: string) => tableOf(what).locator('tbody tr');
const words = async (what: string) => (await rows(what).allInnerTexts()).map((text) => text.replace(/\s+/g, ' '));

/** In each of 60 groups one job runs, and one is in line behind it; in acme three are. */
async function prepare(api: Served): Promise<void> {
  await scheduleAll(api, 'imports', [{ id: 'later', delay: '1h' }]);
  await scheduleAll(api, 'open', [{ id: 'later', delay: '1h' }]);
  await setQueue(api.place.redis, { namespace: 'duestream', queue: 'imports', perGroup: 1 });
  const held = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  const worker = createWorker('imports', () => held, { redis: api.redis.url, concurrency: 100 });
  await worker.start();
  stop = () => worker.stop();
  const groups = ['acme', ...Array.from({ length: 59 }, (_, nth) => `g${String(nth).padStart(2, '0')}`)];
  const jobs = groups.flatMap((group) => [1, 2].map((nth) => ({ id: `j${nth}`, group })));
  await scheduleAll(api, 'imports', [...jobs, { id: 'j3', group: 'acme' }, { id: 'j4', group: 'acme' }]);
  const count = async (state: string) =>
    (await must(api, `GET /v1/queues/imports/count?state=${state}`, api.admin)).count;
  await vi.waitUntil(async () => (await count('running')) === 60, { timeout: HOOK_MS });
  await vi.waitUntil(async () => (await count('waiting')) === 62, { timeout: HOOK_MS });
}

describe('who waits', { timeout: HOOK_MS }, () => {
  test('stands on the page of the queue, the longest first, and leads to a group and who holds it', async () => {
    const { window, api } = seat;
    await show(window, '#/queue/imports');
    await expect.poll(() => rows('groups').count()).toBe(10);
    expect((await words('groups'))[0]).toMatch(/^acme 3 \S.* 1 1, full –$/);
    await tableOf('groups').getByRole('link', { name: 'acme', exact: true }).click();
    await window.page.getByRole('heading', { name: 'Group acme' }).waitFor();
    await expect.poll(() => rows('holders').count()).toBe(1);
    const { holders } = await must(api, 'GET /v1/queues/imports/groups/acme', api.admin);
    expect(await words('holders')).toEqual([expect.stringMatching(/^\{acme\}j1 /)]);
    expect((await words('holders'))[0]).toContain(holders[0].owner);
    // The number in line leads to these jobs.
    await window.page.locator('.facts').getByRole('link', { name: '3', exact: true }).click();
    await expect.poll(() => rows('jobs').count()).toBe(3);
  });

  test('is listed by name, page by page', async () => {
    const { window, desk } = seat;
    await show(window, '#/queue/imports');
    await window.page.getByRole('link', { name: 'All groups' }).click();
    await desk.told('50 groups shown, and there are more');
    await desk.button('Show more').click();
    await desk.told('60 groups shown');
    expect(await rows('groups').count()).toBe(60);
  });

  test('is not asked where no job can wait in line', async () => {
    const { window } = seat;
    await show(window, '#/queue/open');
    await window.page.getByText('no worker that lives serves it').waitFor();
    expect(await window.page.getByRole('heading', { name: 'Who waits' }).count()).toBe(0);
  });
});

test('a job in line says why it waits, and leads to the one in its way', { timeout: HOOK_MS }, async () => {
  const { window } = seat;
  await show(window, `#/job/imports/${encodeURIComponent('{acme}j4')}`);
  const why = window.page.getByRole('region', { name: 'Why it waits' });
  await why.getByText('2 jobs of group acme, normal priority, come before it').waitFor();
  await why.getByText('its group acme is full: 1 of 1 run').waitFor();
  await why.getByRole('link', { name: '{acme}j1' }).click();
  await window.page.getByText('It runs now.').waitFor();
});
