/** The page of closed tags: what is closed, until when and why; a search, and a tag that is opened before its end. */
import { describe, expect, test } from 'vitest';
import { must, type Served, show } from '../support/dashboard.ts';
import { HOOK_MS, type Seat, scheduleAll, useDesk } from '../support/desk.ts';

let seat: Seat;
useDesk((given) => {
  seat = given;
}, prepare);

const rows = () =>
  seat.window.page.getByRole('region', { name: 'Table of closed tags', exact: true }).locator('tbody tr');
const words = async () => (await rows().allInnerTexts()).map((text) => text.replace(/\s+/g, ' '));

async function prepare(api: Served): Promise<void> {
  await scheduleAll(api, 'mail', [{ id: 'later', delay: '1h' }]);
  for (let nth = 0; nth < 60; nth += 1) {
    await must(api, `POST /v1/queues/mail/tags/invoice:${100 + nth}/close`, api.admin, { for: '90d', reason: 'paid' });
  }
  await must(api, 'POST /v1/queues/mail/tags/user:7/close', api.admin, { for: '1d' });
}

describe('closed tags', { timeout: HOOK_MS }, () => {
  test('are reached from the queue, the soonest end first, page by page', async () => {
    await show(seat.window, '#/queue/mail');
    await seat.window.page.getByRole('link', { name: 'Closed tags', exact: true }).click();
    await seat.window.page.getByRole('heading', { name: 'Closed tags of mail' }).waitFor();
    await expect.poll(() => rows().count()).toBe(50);
    expect((await words())[0]).toMatch(/^user:7 .* ada /);
    await seat.desk.button('Show more').click();
    await expect.poll(() => rows().count()).toBe(61);
  });

  test('are searched, and one is opened', async () => {
    const { window, desk, api } = seat;
    await show(window, '#/closed/mail');
    await window.page.getByLabel('Search').fill(':7');
    await window.page.getByRole('button', { name: 'Search', exact: true }).click();
    await expect.poll(() => rows().count()).toBe(1);
    await desk.button('Open user:7 …').click();
    await desk.inDialog('Open the tag').click();
    await desk.told('user:7 is open.');
    await expect.poll(() => rows().count()).toBe(0);
    expect((await must(api, 'GET /v1/queues/mail/closed?tag=user:7', api.admin)).tags).toEqual([]);
    const [entry] = (await must(api, 'GET /v1/audit', api.admin)).entries;
    expect(entry).toMatchObject({ verb: 'tags.open', target: 'user:7', queue: 'mail', who: 'ada', way: 'page' });
  });
});
