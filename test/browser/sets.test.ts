/** The page of sets: how far each is; one is sealed, and one removed with its members. */
import { describe, expect, test } from 'vitest';
import { must, type Served, show } from '../support/dashboard.ts';
import { HOOK_MS, type Seat, scheduleAll, useDesk } from '../support/desk.ts';

let seat: Seat;
useDesk((given) => {
  seat = given;
}, prepare);

const rows = () => seat.window.page.getByRole('region', { name: 'Table of sets', exact: true }).locator('tbody tr');
const words = async () => (await rows().allInnerTexts()).map((text) => text.replace(/\s+/g, ' '));

async function prepare(api: Served): Promise<void> {
  await scheduleAll(api, 'rows', [{ id: 'later', delay: '1h' }]);
  for (const name of ['import-7', 'import-8']) {
    const body = { then: { name: 'imported', data: {} } };
    await must(api, `PUT /v1/queues/rows/sets/${name}`, api.admin, body);
    await must(api, 'POST /v1/queues/rows/jobs', api.admin, { id: 'a', set: name, delay: '1h' });
  }
}

describe('sets', { timeout: HOOK_MS }, () => {
  test('are reached from the queue, and one is sealed', async () => {
    await show(seat.window, '#/queue/rows');
    await seat.window.page.getByRole('link', { name: 'Sets', exact: true }).click();
    await seat.window.page.getByRole('heading', { name: 'Sets of rows' }).waitFor();
    await expect.poll(() => rows().count()).toBe(2);
    expect((await words())[0]).toMatch(/^import-7 no 1 0 0 0 0 .* imported/);
    await seat.desk.button('Seal import-7 …').click();
    await seat.desk.inDialog('Seal the set').click();
    await seat.desk.told('import-7 is sealed.');
    await expect.poll(async () => (await words())[0]).toMatch(/^import-7 yes 1 /);
  });

  test('lead to their members', async () => {
    await show(seat.window, '#/sets/rows');
    await seat.window.page.getByRole('link', { name: 'import-8', exact: true }).click();
    const members = seat.window.page.getByRole('region', { name: 'Jobs', exact: true });
    await members.getByText('{set:import-8}a').first().waitFor();
    expect(await members.getByRole('status').first().innerText()).toMatch(/^1 job shown/);
    expect(seat.window.page.url()).toContain('set=import-8');
  });

  test('are removed with their members', async () => {
    const { window, desk, api } = seat;
    await show(window, '#/sets/rows');
    await desk.button('Remove import-8 …').click();
    await desk.inDialog('Remove the set').click();
    await desk.told('import-8 is removed.');
    await expect.poll(() => rows().count()).toBe(1);
    expect((await must(api, 'GET /v1/queues/rows/jobs?set=import-8', api.admin)).jobs).toEqual([]);
    const [entry] = (await must(api, 'GET /v1/audit', api.admin)).entries;
    expect(entry).toMatchObject({ verb: 'sets.remove', target: 'import-8', queue: 'rows', who: 'ada', way: 'page' });
  });
});
