/** The pages of a queue with limits: who waits, by group, who holds the limit of a group, and why a job waits. */
import { afterAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { fixed } from '../../src/job/backoff.ts';
import { Unrecoverable } from '../../src/job/outcome.ts';
import { defineQueue } from '../../src/job/queue.ts';
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
    expect((await words('groups'))[0]).toMatch(/^acme 3 \S.* 1 of 1 full/);
    await tableOf('groups').getByRole('link', { name: 'acme', exact: true }).click();
    await window.page.getByRole('heading', { name: 'Group acme' }).waitFor();
    await expect.poll(() => rows('holders').count()).toBe(1);
    const { holders } = await must(api, 'GET /v1/queues/imports/groups/acme', api.admin);
    expect(await words('holders')).toEqual([expect.stringMatching(/^\{acme\}j1 /)]);
    expect((await words('holders'))[0]).toContain(holders[0].owner);
    // The number in line leads to these jobs.
    await window.page.locator('.facts-line').getByRole('link', { name: '3', exact: true }).click();
    await expect.poll(() => window.page.locator('tbody .job').count()).toBe(3);
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
    await window.page.getByText('No worker serves this queue').waitFor();
    expect(await window.page.getByRole('heading', { name: 'Who waits' }).count()).toBe(0);
  });
});

test('a group is closed with a reason and opened again, has limits of its own, and is found though nobody is in it', {
  timeout: HOOK_MS,
}, async () => {
  const { window, desk, api } = seat;
  await show(window, '#/groups/imports');
  await desk.button('Close g01 …').click();
  await desk.field('For how long').fill('2h');
  await desk.field('Reason').fill('they asked us to');
  await desk.inDialog('Close it').click();
  await desk.told('g01 is closed for 2h.');
  const row = rows('groups').filter({ hasText: 'g01' });
  await row.filter({ hasText: 'they asked us to' }).waitFor();
  await desk.button('Open g01').click();
  await desk.told('g01 is open.');
  await row.filter({ hasNotText: 'they asked us to' }).waitFor();

  await window.page.getByLabel('Name of a group').fill('pro-*');
  await desk.button('Look at it').click();
  await window.page.getByRole('heading', { name: 'Group pro-*' }).waitFor();
  await desk.button('Limits of pro-* …').click();
  await desk.field('at a time').fill('3');
  await desk.field('turns').fill('2');
  await desk.field('Reason').fill('they pay for it');
  await desk.inDialog('Set the limits').click();
  await desk.told('pro-* has limits of its own.');
  const { settings, overrides } = await must(api, 'GET /v1/queues/imports/settings', api.admin);
  expect(settings.groups['pro-*']).toEqual({ concurrency: 3, weight: 2 });
  expect(overrides).toContainEqual(expect.objectContaining({ group: 'pro-*', by: 'ada', reason: 'they pay for it' }));
});

test('a job in line says why it waits, and leads to the one in its way', { timeout: HOOK_MS }, async () => {
  const { window } = seat;
  await show(window, `#/job/imports/${encodeURIComponent('{acme}j4')}`);
  const why = window.page.getByRole('region', { name: 'Why it waits' });
  await why.getByText('2 jobs of group acme, normal priority, come before it').first().waitFor();
  await why.getByText('its group acme is full: 1 of 1 run').waitFor();
  await why.getByRole('link', { name: '{acme}j1' }).click();
  await window.page.getByRole('heading', { name: /^Attempt 1 has run for / }).waitFor();
});

describe('a group in strict order', { timeout: HOOK_MS }, () => {
  /** Job 1 of acme waits for a retry in an hour; that of umbrella is dead. Two wait behind each. */
  async function hold(api: Served): Promise<void> {
    const steps = defineQueue<object>('steps', {
      perGroup: { concurrency: 1, order: 'strict', onDead: 'hold' },
      backoff: fixed('1h'),
    });
    const worker = createWorker(
      steps,
      ({ id }) => {
        if (id === '{acme}1') throw new Error('not yet');
        if (id === '{umbrella}1') throw new Unrecoverable('no such account');
      },
      { redis: api.redis.url },
    );
    onTestFinished(() => worker.stop());
    await worker.start();
    const jobs = ['acme', 'umbrella'].flatMap((group) => ['1', '2', '3'].map((id) => ({ id, group })));
    await scheduleAll(api, 'steps', jobs);
    const keeper = async (group: string) => (await must(api, `GET /v1/queues/steps/groups/${group}`, api.admin)).keeper;
    await vi.waitUntil(async () => (await keeper('acme'))?.attempt === 2, { timeout: HOOK_MS });
    await vi.waitUntil(async () => (await keeper('umbrella'))?.deadLetter, { timeout: HOOK_MS });
  }

  test('says who has it, when that one goes on and who waits behind, and is opened by hand after a dead letter', async () => {
    const { window, desk, api } = seat;
    await hold(api);
    const keeper = window.page.getByRole('region', { name: 'Who has it until it is over' });
    await show(window, '#/groups/steps/acme');
    await keeper.getByText('has this group, and waits for attempt 2').waitFor();
    await keeper.getByText('2 jobs in line behind it.').waitFor();
    expect(await keeper.getByRole('time').getAttribute('datetime')).toMatch(/^\d{4}-/);
    expect(await keeper.getByRole('button').count()).toBe(0);

    await show(window, `#/job/steps/${encodeURIComponent('{umbrella}3')}`);
    const why = window.page.getByRole('region', { name: 'Why it waits' });
    await why.getByText('its group umbrella is held by {umbrella}1, which is dead').waitFor();
    await why.getByRole('link', { name: '{umbrella}1' }).waitFor();
    await show(window, '#/groups/steps/umbrella');
    await keeper.getByText('its dead letter holds this group').waitFor();
    await desk.button('Open by hand …').click();
    await desk.dialog.getByText('The jobs behind {umbrella}1 start without it.').waitFor();
    await desk.inDialog('Let the others start').click();
    await desk.told('umbrella is open: its next job may start.');
    await keeper.waitFor({ state: 'detached' });
    const state = async () =>
      (await must(api, `GET /v1/queues/steps/jobs/${encodeURIComponent('{umbrella}3')}`, api.admin)).state;
    await vi.waitUntil(async () => (await state()) === 'done', { timeout: HOOK_MS });
  });
});
