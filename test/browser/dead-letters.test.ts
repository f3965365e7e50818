/** The page of dead letters: by group, replayed at once or spread over a time, purged after a count. */
import { describe, expect, test } from 'vitest';
import { Unrecoverable } from '../../src/job/outcome.ts';
import { createWorker } from '../../src/worker/worker.ts';
import type { Window } from '../support/browser.ts';
import { must, type Served, show } from '../support/dashboard.ts';
import { type Desk, HOOK_MS, idsOf, listed, scheduleAll, useDesk } from '../support/desk.ts';

const HOUR_MS = 3_600_000;
let api: Served;
let window: Window;
let desk: Desk;

useDesk((seat) => {
  ({ api, window, desk } = seat);
});

/** Jobs that die of what their data say. */
async function bury(queue: string, reasons: readonly string[]): Promise<void> {
  const worker = createWorker(queue, ({ data }) => Promise.reject(new Unrecoverable(String(data))), {
    redis: api.redis.url,
  });
  await worker.start();
  await scheduleAll(
    api,
    queue,
    reasons.map((reason, n) => ({ id: `d${n}`, data: reason })),
  );
  const dead = async () => (await must(api, `GET /v1/queues/${queue}`, api.admin)).dead;
  await expect.poll(dead).toBe(reasons.length);
  await worker.stop();
}

const kinds = () => window.page.getByRole('region', { name: 'By error' }).locator('.grp-row');
const letters = () => window.page.getByRole('region', { name: 'Table of dead letters' }).locator('tbody tr');
/** Opens a kind, and goes to its dead letters one by one. */
async function seeThem(error: string): Promise<void> {
  const kind = kinds().filter({ hasText: error });
  await kind.locator('summary').click();
  await kind.getByRole('link', { name: 'See them' }).click();
}

const deadOf = async (queue: string) => {
  const { deadLetters } = await must(api, `GET /v1/queues/${queue}/dead?limit=1000`, api.admin);
  return idsOf(deadLetters);
};

describe('a group', { timeout: HOOK_MS }, () => {
  const refused = Array.from({ length: 4 }, () => 'the bank has refused the card');
  const timeouts = Array.from({ length: 12 }, () => 'no answer from the bank');

  test('is replayed at once, or spread over a time, and the other groups stay', async () => {
    await bury('cards', [...refused, ...timeouts, 'the bank is gone']);
    await show(window, '#/dead/cards');
    expect(await kinds().count()).toBe(3);
    await window.page.getByRole('heading', { name: '17 dead letters of 3 kinds.' }).waitFor();
    await desk.told('17 dead letters shown');

    // At once: the four of one group.
    await seeThem('refused the card');
    await desk.told('4 dead letters shown');
    expect(await letters().count()).toBe(4);
    await desk.button('Replay them …').click();
    await desk.inDialog('Replay 4 dead letters').waitFor();
    expect(await deadOf('cards')).toHaveLength(17);
    await desk.inDialog('Replay 4 dead letters').click();
    await desk.told('4 dead letters replayed.');
    await desk.told('0 dead letters shown');
    const replayed = ['d0', 'd1', 'd2', 'd3'];
    await expect.poll(async () => idsOf(await listed(api, 'cards', 'state=ready'))).toEqual(replayed);

    // Spread: the twelve of another, over an hour.
    await show(window, '#/dead/cards');
    await desk.told('13 dead letters shown');
    await kinds().filter({ hasText: 'no answer from the bank' }).getByRole('button', { name: 'Replay 12 …' }).click();
    await desk.field('Spread over').fill('a while');
    await desk.inDialog('Replay 12 dead letters over a while').click();
    expect(await desk.refused('bad-input')).toContain('a text such as');
    await desk.field('Spread over').fill('1h');
    await desk.inDialog('Replay 12 dead letters over 1h').click();
    await desk.told('12 dead letters replayed.');
    expect(await deadOf('cards')).toEqual(['d16']);
    const dues = (await listed(api, 'cards', 'state=scheduled')).map(({ dueMs }) => dueMs).toSorted((a, b) => a - b);
    // The hash is of entry ids, which tell the time: the first two may be ready already, and two may meet. One run in a
    // hundred thousand has them all within a quarter of the hour.
    expect(dues.length).toBeGreaterThanOrEqual(10);
    expect(new Set(dues).size).toBeGreaterThanOrEqual(dues.length - 1);
    const [first = 0, last = 0] = [dues[0], dues.at(-1)];
    expect(last - first).toBeGreaterThan(HOUR_MS / 4);
    expect(last - first).toBeLessThanOrEqual(HOUR_MS);
  });

  test('is purged after a count, and nothing else is', async () => {
    await bury('mails', ['no such address', 'no such address', 'the box is full']);
    await show(window, '#/dead/mails');
    await seeThem('no such address');
    await desk.told('2 dead letters shown');
    await desk.button('Purge them …').click();
    await desk.inDialog('Purge 2 dead letters').waitFor();
    expect(await desk.dialog.innerText()).toContain('nobody can bring them back');
    await desk.escape();
    expect(await deadOf('mails')).toEqual(['d0', 'd1', 'd2']);
    await desk.button('Purge them …').click();
    await desk.inDialog('Purge 2 dead letters').click();
    await desk.told('2 dead letters removed for ever.');
    expect(await deadOf('mails')).toEqual(['d2']);
  });
});

describe('the overview of all queues', { timeout: HOOK_MS }, () => {
  test('has one row for an error of two queues, and says what its jobs share', async () => {
    await bury('east', ['the gateway says no', 'the gateway says no']);
    await bury('west', ['the gateway says no']);
    await show(window, '#/dead?search=gateway');
    const kind = kinds().filter({ hasText: 'the gateway says no' });
    expect(await kinds().count()).toBe(1);
    expect(await kind.locator('.count').innerText()).toBe('3');
    await kind.locator('summary').click();
    await kind.locator('.common div', { hasText: 'east' }).filter({ hasText: '67 %' }).waitFor();
    await kind.getByRole('link', { name: /^d\d$/ }).waitFor();
    expect(await window.inaccessible()).toEqual([]);
    await kind.getByRole('button', { name: 'Replay 3 …' }).click();
    await desk.inDialog('Replay 3 dead letters').click();
    await desk.told('3 dead letters replayed.');
    expect([await deadOf('east'), await deadOf('west')]).toEqual([[], []]);
  });

  test('a job is replayed with other data, and not at all with what is no JSON', async () => {
    await bury('typos', ['no such user']);
    await show(window, '#/dead/typos');
    await letters().getByRole('button', { name: 'Edit, then replay …' }).click();
    await desk.field('Data as JSON').fill('{"user":');
    await desk.inDialog('Replay with these data').click();
    await desk.refused('no JSON');
    expect(await deadOf('typos')).toEqual(['d0']);
    await desk.field('Data as JSON').fill('{"user":7}');
    await desk.inDialog('Replay with these data').click();
    await desk.told('d0 runs with other data.');
    expect(await deadOf('typos')).toEqual([]);
    expect((await must(api, 'GET /v1/queues/typos/jobs/d0', api.admin)).data).toEqual({ user: 7 });
    await expect.poll(async () => idsOf(await listed(api, 'typos', 'state=ready'))).toEqual(['d0']);
  });
});
