/** The page of one job: each action in each state that has it, what is refused in which words, its picture and its story. */
import { describe, expect, test } from 'vitest';
import { createClient } from '../../src/client/client.ts';
import { defineQueue } from '../../src/job/queue.ts';
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

const fact = (term: string) => window.page.locator('.job-facts dl > div', { hasText: term }).first().locator('dd');
const inState = (name: string) => window.page.locator('.say .state', { hasText: name }).waitFor();
const said = () => window.page.getByRole('heading', { level: 1 }).innerText();
const lookAgain = async () => {
  await desk.button('Look again').click();
  await window.settled();
};

describe('a job that waits', { timeout: HOOK_MS }, () => {
  test('runs now: it is ready for the next worker, and the page says so', async () => {
    await scheduleAll(api, 'emails', [{ id: 'soon', delay: '1h' }]);
    await show(window, '#/job/emails/soon');
    await inState('scheduled');
    await desk.button('Run now …').click();
    await desk.inDialog('Back').click();
    expect((await jobOf(api, 'emails', 'soon')).state).toBe('scheduled');
    await desk.button('Run now …').click();
    await desk.inDialog('Run now').click();
    await desk.told('It is due now.');
    await expect.poll(async () => (await jobOf(api, 'emails', 'soon')).state).toBe('ready');
    await lookAgain();
    await inState('ready');
    expect(await said()).toMatch(/^It (waits|has waited) for a worker/);
  });

  test('gets another due time: after a delay, or at a time on the clock of whoever looks', async () => {
    await scheduleAll(api, 'emails', [{ id: 'moved', delay: '1h' }]);
    await show(window, '#/job/emails/moved');
    await desk.button('Reschedule …').click();
    expect(await desk.inDialog('Reschedule').isDisabled()).toBe(true);
    await desk.field('Delay from now').fill('some day');
    await desk.inDialog('Reschedule').click();
    expect(await desk.refused('bad-input')).toContain('milliseconds, or a text such as');
    await desk.field('Delay from now').fill('2d');
    await desk.inDialog('Reschedule').click();
    await desk.told('Rescheduled.');
    expect((await jobOf(api, 'emails', 'moved')).dueMs).toBeGreaterThan(Date.now() + 86_400_000);
    await desk.button('Reschedule …').click();
    // The window is in Berlin, where it is summer then.
    await desk.field('or at').fill('2031-05-05T12:00');
    await desk.inDialog('Reschedule').click();
    await desk.told('Rescheduled.');
    await fact('Due').locator('time[datetime="2031-05-05T10:00:00.000Z"]').waitFor();
    expect((await jobOf(api, 'emails', 'moved')).dueMs).toBe(Date.parse('2031-05-05T10:00:00Z'));
    expect(await fact('Due').innerText()).toContain('Mon 5 May 2031 12:00:00');
    expect(await said()).toMatch(/^Due Mon 5 May 2031 12:00:00, in \d+ d/);
  });

  test('is not overwritten where somebody else has changed it: the page says that, and what to do', async () => {
    await scheduleAll(api, 'emails', [{ id: 'stale', delay: '1h', data: { n: 1 } }]);
    await show(window, '#/job/emails/stale');
    await desk.button('Edit …').click();
    await desk.field('Data (JSON)').fill('{"mine": true}');
    await must(api, 'PATCH /v1/queues/emails/jobs/stale', api.admin, { data: { theirs: true } });
    await desk.inDialog('Save').click();
    const words = await desk.refused('Somebody has changed this job');
    expect(words).toContain('nothing was saved');
    expect(words).toContain('edit it anew');
    expect(await desk.field('Data (JSON)').inputValue()).toBe('{"mine": true}');
    expect((await jobOf(api, 'emails', 'stale')).data).toEqual({ theirs: true });

    await desk.inDialog('Back').click();
    await lookAgain();
    await window.page.locator('.key', { hasText: 'theirs' }).waitFor();
    await desk.button('Edit …').click();
    expect(await desk.field('Data (JSON)').inputValue()).toContain('theirs');
    await desk.field('Data (JSON)').fill('{"both": true}');
    await desk.field('Attempts').fill('7');
    await desk.inDialog('Save').click();
    await desk.told('Changed.');
    const { data, options } = await jobOf(api, 'emails', 'stale');
    expect({ data, attempts: options.attempts }).toEqual({ data: { both: true }, attempts: 7 });
  });

  test('gets new data and another due time in one step; one that is left empty stays', async () => {
    await scheduleAll(api, 'emails', [{ id: 'both', at: '2031-05-05T10:00:00Z', data: { to: 'old' } }]);
    await show(window, '#/job/emails/both');
    await desk.button('Edit …').click();
    expect(await desk.dialog.innerText()).toContain('Mon 5 May 2031 12:00:00');
    await desk.field('Data (JSON)').fill('{"to": "newer"}');
    await desk.inDialog('Save').click();
    await desk.told('Changed.');
    expect(await jobOf(api, 'emails', 'both')).toMatchObject({ dueMs: Date.parse('2031-05-05T10:00:00Z') });
    await lookAgain();
    await desk.button('Edit …').click();
    await desk.field('Data (JSON)').fill('{"to": "newest"}');
    await desk.field('Delay from now').fill('some day');
    await desk.inDialog('Save').click();
    expect(await desk.refused('bad-input')).toContain('delay is "some day"');
    expect((await jobOf(api, 'emails', 'both')).data).toEqual({ to: 'newer' });
    // What is typed last counts.
    await desk.field('or at').fill('2032-05-05T12:00');
    expect(await desk.field('Delay from now').inputValue()).toBe('');
    await desk.inDialog('Save').click();
    await fact('Due').locator('time[datetime="2032-05-05T10:00:00.000Z"]').waitFor();
    expect(await jobOf(api, 'emails', 'both')).toMatchObject({
      data: { to: 'newest' },
      dueMs: Date.parse('2032-05-05T10:00:00Z'),
    });
  });

  test('keeps the digits that somebody typed: a number that would lose some is refused, and nothing is saved', async () => {
    await scheduleAll(api, 'emails', [{ id: 'digits', delay: '1h', data: { user: 1 } }]);
    await show(window, '#/job/emails/digits');
    await desk.button('Edit …').click();
    await desk.field('Data (JSON)').fill('{"user": 1234567824702058497}');
    await desk.inDialog('Save').click();
    expect(await desk.refused('bad-input')).toContain('data.user is 1234567824702058497, which would be read as');
    expect((await jobOf(api, 'emails', 'digits')).data).toEqual({ user: 1 });
    await desk.field('Data (JSON)').fill('{"user": "1234567824702058497"}');
    await desk.inDialog('Save').click();
    await desk.told('Changed.');
    expect((await jobOf(api, 'emails', 'digits')).data).toEqual({ user: '1234567824702058497' });
  });

  test('that began to run meanwhile, or is over, is left alone with a reason', async () => {
    await scheduleAll(api, 'emails', [{ id: 'gone', delay: '1h' }]);
    await show(window, '#/job/emails/gone');
    await must(api, 'DELETE /v1/queues/emails/jobs/gone', api.admin);
    await desk.button('Run now …').click();
    await desk.inDialog('Run now').click();
    expect(await desk.refused('over:')).toContain('is over (cancelled); nothing was changed');
    await desk.escape();
    await lookAgain();
    await inState('cancelled');
    for (const name of ['Edit …', 'Reschedule …', 'Run now …', 'Cancel …'])
      expect(await desk.button(name).count()).toBe(0);
  });

  test('is cancelled, and then nothing can be done with it but to look', async () => {
    await scheduleAll(api, 'emails', [{ id: 'off', delay: '1h' }]);
    await show(window, '#/job/emails/off');
    await desk.button('Cancel …').click();
    await desk.inDialog('Keep it').click();
    expect((await jobOf(api, 'emails', 'off')).state).toBe('scheduled');
    await desk.button('Cancel …').click();
    await desk.field('Why').fill('the customer asked for quiet: ticket 5512 – “später”');
    await desk.inDialog('Cancel the job').click();
    await desk.told('Cancelled');
    await inState('cancelled');
    expect(await said()).toBe('Cancelled by ada: “the customer asked for quiet: ticket 5512 – “später””.');
    await window.page.getByText('It would have been due').waitFor();
    expect((await jobOf(api, 'emails', 'off')).state).toBe('cancelled');
  });
});

test('a job that is due when it was asked for says its due time once in its story', { timeout: HOOK_MS }, async () => {
  await scheduleAll(api, 'emails', [{ id: 'once', at: '2031-05-05T10:00:00Z' }]);
  await show(window, '#/job/emails/once');
  expect(await window.page.locator('.story > li').allInnerTexts()).toEqual([
    expect.stringMatching(/^Mon 5 May 2031 12:00:00\s+Due, in \d+ d/),
  ]);
  expect(await window.page.getByRole('heading', { name: 'Attempts' }).count()).toBe(0);
});

test('who moved a job, from when to when and why, stands in its story', { timeout: HOOK_MS }, async () => {
  await scheduleAll(api, 'emails', [{ id: 'pushed', at: '2031-05-05T10:00:00Z' }]);
  await show(window, '#/job/emails/pushed');
  await desk.button('Reschedule …').click();
  await desk.field('or at').fill('2031-05-06T12:00');
  await desk.dialog.getByText('It will be due Tue 6 May 2031 12:00:00').waitFor();
  await desk.field('Why').fill('not before Tuesday');
  await desk.inDialog('Reschedule').click();
  await desk.told('Rescheduled.');
  const moved = window.page.locator('.story > li', { hasText: 'Moved' });
  await moved.waitFor();
  const text = await moved.innerText();
  for (const part of ['by ada, on a page', '“not before Tuesday”']) expect(text).toContain(part);
  expect(text).toMatch(/Mon 5 May 2031 12:00:00\s+→ Tue 6 May 2031 12:00:00/);
});

describe('a job that runs', { timeout: HOOK_MS }, () => {
  test('shows how far its handler is, and no markup of its text', async () => {
    let end = () => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    const worker = createWorker(
      'rows',
      (_, { progress }) => {
        progress(0.4, 'row <b>400</b>');
        return ended;
      },
      { redis: api.redis.url },
    );
    await worker.start();
    await scheduleAll(api, 'rows', [{ id: 'counts' }]);
    await expect.poll(async () => (await jobOf(api, 'rows', 'counts')).progress?.fraction).toBe(0.4);
    await show(window, '#/job/rows/counts');
    const progress = window.page.getByRole('region', { name: 'Progress' });
    await progress.getByText(/^40 %, row <b>400<\/b>, (now|\d+ s ago)$/).waitFor();
    expect(await said()).toMatch(/^Attempt 1 has run for /);
    end();
    await expect.poll(async () => (await jobOf(api, 'rows', 'counts')).state).toBe('done');
    await lookAgain();
    await inState('done');
    expect(await progress.count()).toBe(0);
    await worker.stop();
  });

  test('shows what its handlers said, with fields, the attempt and the time, and no markup of it', async () => {
    const worker = createWorker(
      'rows',
      (_, { log }) => {
        for (let row = 0; row <= 100; row += 1) log(`row ${row}`);
      },
      { redis: api.redis.url },
    );
    await worker.start();
    await scheduleAll(api, 'rows', [{ id: 'talks' }]);
    await expect.poll(async () => (await jobOf(api, 'rows', 'talks')).state).toBe('done');
    await worker.stop();
    await show(window, '#/job/rows/talks');
    const said = window.page.getByRole('region', { name: 'What its handlers said' });
    await said.getByText('1 line is not kept').waitFor();
    expect(await said.getByRole('listitem').count()).toBe(100);
    expect(await said.getByRole('listitem').first().innerText()).toMatch(/row 1\s+attempt 1$/);
    expect([await window.inaccessible(), await window.noises()]).toEqual([[], []]);

    const other = createWorker('rows', (_, { log }) => log('asked <b>the bank</b>', { account: '<i>DE02</i>' }), {
      redis: api.redis.url,
    });
    await other.start();
    await scheduleAll(api, 'rows', [{ id: 'asks' }]);
    await expect.poll(async () => (await jobOf(api, 'rows', 'asks')).state).toBe('done');
    await other.stop();
    await show(window, '#/job/rows/asks');
    expect(await said.getByRole('listitem').innerText()).toMatch(
      /asked <b>the bank<\/b> \{"account":"<i>DE02<\/i>"\}\s+attempt 1$/,
    );
  });

  test('says that newer data wait for its end, and shows them', async () => {
    let end = () => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    const ran: unknown[] = [];
    const worker = createWorker(
      'rows',
      ({ data }) => {
        ran.push(data);
        return ran.length === 1 ? ended : undefined;
      },
      { redis: api.redis.url },
    );
    await worker.start();
    const call = (data: number) =>
      must(api, 'POST /v1/queues/rows/jobs', api.admin, { id: 'index', data, debounce: { wait: '10ms', max: '1s' } });
    await call(1);
    await expect.poll(() => ran).toEqual([1]);
    expect((await call(2)).status).toBe('behind');
    await show(window, '#/job/rows/index');
    const newer = window.page.getByText(
      /^Newer data came while it runs, and are shown here\. They start when this run/,
    );
    await newer.waitFor();
    end();
    await expect.poll(() => ran).toEqual([1, 2]);
    await expect.poll(async () => (await jobOf(api, 'rows', 'index')).state).toBe('done');
    await lookAgain();
    await inState('done');
    expect(await newer.count()).toBe(0);
    await worker.stop();
  });

  test('is asked to stop, and ends cancelled', async () => {
    let begun = () => {};
    const began = new Promise<void>((resolve) => {
      begun = resolve;
    });
    const worker = createWorker(
      'long',
      (_, { signal }) =>
        new Promise<void>((resolve) => {
          signal.addEventListener('abort', () => resolve(), { once: true });
          begun();
        }),
      { redis: api.redis.url },
    );
    await worker.start();
    await scheduleAll(api, 'long', [{ id: 'runs' }]);
    await began;
    await show(window, '#/job/long/runs');
    expect(await said()).toMatch(/^Attempt 1 has run for /);
    expect(await desk.button('Edit …').count()).toBe(0);
    await desk.button('Cancel …').click();
    expect(await desk.dialog.innerText()).toContain('its handler is asked to stop');
    await desk.inDialog('Cancel the job').click();
    await desk.told('asked to stop');
    await expect.poll(async () => (await jobOf(api, 'long', 'runs')).state).toBe('cancelled');
    await worker.stop();
  });
});

describe('a dead job', { timeout: HOOK_MS }, () => {
  test('shows its reason, and is replayed at once or later', async () => {
    await buryJobs(api.redis.url, [
      { queue: 'dying', id: 'first', reason: 'the card is blocked' },
      { queue: 'dying', id: 'second', reason: 'the card is blocked' },
    ]);
    await show(window, '#/job/dying/first');
    await inState('dead');
    expect(await said()).toBe('Dead after 1 attempt.');
    expect(await fact('Reason').innerText()).toContain('the card is blocked');
    await desk.button('Replay …').click();
    await desk.inDialog('Replay').click();
    await desk.told('It is scheduled again.');
    await expect.poll(async () => (await jobOf(api, 'dying', 'first')).state).toBe('ready');

    await show(window, '#/job/dying/second');
    await desk.button('Replay …').click();
    await desk.field('Delay from now').fill('1d');
    await desk.inDialog('Replay').click();
    await desk.told('It is scheduled again.');
    await inState('scheduled');
    const { state, dueMs } = await jobOf(api, 'dying', 'second');
    expect(state).toBe('scheduled');
    expect(dueMs).toBeGreaterThan(Date.now() + 43_200_000);
  });

  test('that somebody else has replayed meanwhile is not replayed twice, and the page says so', async () => {
    await buryJobs(api.redis.url, [{ queue: 'lost', id: 'third', reason: 'no such customer' }]);
    await show(window, '#/job/lost/third');
    const { deadLetter } = await jobOf(api, 'lost', 'third');
    await desk.button('Replay …').click();
    await must(api, `POST /v1/queues/lost/dead/${deadLetter}/replay`, api.admin, { delay: '1h' });
    await desk.inDialog('Replay').click();
    expect(await desk.refused('not-found')).toContain('it was replayed');
    expect((await jobOf(api, 'lost', 'third')).state).toBe('scheduled');
  });
});

describe('the timeline', { timeout: HOOK_MS }, () => {
  const RESULT = 'the receipt 4711';

  /** Fails twice, and then succeeds; in between the page is looked at. */
  async function failTwice(look: () => Promise<void>): Promise<string> {
    const queue = defineQueue('orders', { history: { keep: '1d', result: true } });
    const worker = createWorker(
      queue,
      (_, { attempt }) => {
        if (attempt <= 2) throw new Error(`the shop is closed, try ${attempt}`);
        return RESULT;
      },
      { redis: api.redis.url },
    );
    const retried = new Promise<void>((resolve) => worker.events.on('job.retried', () => resolve()));
    const completed = new Promise<void>((resolve) => worker.events.on('job.completed', () => resolve()));
    const producer = createClient({ redis: api.redis.url });
    await worker.start();
    const backoff = { kind: 'fixed', delayMs: 3_600_000, jitter: 'none' } as const;
    await producer.schedule(queue, { item: 'book' }, { id: 'twice', attempts: 5, backoff });
    await retried;
    await look();
    await must(api, 'POST /v1/queues/orders/jobs/twice/run', api.admin);
    await expect.poll(async () => (await jobOf(api, 'orders', 'twice')).failures).toBe(2);
    await must(api, 'POST /v1/queues/orders/jobs/twice/run', api.admin);
    await completed;
    await Promise.all([worker.stop(), producer.close()]);
    return worker.consumer;
  }

  const kinds = () => window.page.locator('.story .kind').allInnerTexts();
  const attempts = () => window.page.locator('.att > summary').allInnerTexts();

  test('of a job that failed twice and then succeeded tells each of it in the order of time', async () => {
    const consumer = await failTwice(async () => {
      await show(window, '#/job/orders/twice');
      expect(await kinds()).toEqual(['Due as asked', 'Started', 'Failed', 'Due']);
      expect(await said()).toMatch(/^Attempt 1 failed, and it is tried again .*, in \d+ min/);
      await window.page.locator('.say .state', { hasText: 'will be retried' }).waitFor();
    });
    await expect.poll(async () => (await jobOf(api, 'orders', 'twice')).state).toBe('done');
    await show(window, '#/now');
    await show(window, '#/job/orders/twice');
    const told = await kinds();
    // The administrator ran it twice before its time.
    expect(told.filter((one) => one !== 'Run now')).toEqual([
      ...['Due as asked', 'Started', 'Failed', 'Started', 'Failed', 'Started', 'Done'],
    ]);
    expect(told.filter((one) => one === 'Run now')).toHaveLength(2);
    const texts = await window.page.locator('.story > li').allInnerTexts();
    for (const parts of [
      ['Started', 'attempt 1', `worker ${consumer}`],
      ['Failed', 'attempt 1', 'took ', 'the shop is closed, try 1'],
      ['Started', 'attempt 2', `worker ${consumer}`],
      ['Failed', 'attempt 2', 'took ', 'the shop is closed, try 2'],
      ['Started', 'attempt 3', `worker ${consumer}`, 'took '],
      ['Run now', 'by ada, over the API'],
    ]) {
      expect(texts.some((text) => parts.every((part) => text.includes(part)))).toBe(true);
    }
    expect(await window.page.textContent('section[aria-labelledby="result"]')).toContain(RESULT);
    expect(await fact('Attempts').innerText()).toBe('3 started, 2 failed, 0 crashed');
    // Its end is the present one, and stands above with its result.
    expect(await window.page.getByRole('heading', { name: 'Earlier lives of this id' }).count()).toBe(0);
  });

  test('is drawn to scale: each start with its waits and its error, and all causes by name', async () => {
    await show(window, '#/job/orders/twice');
    expect(await attempts()).toEqual([
      expect.stringMatching(/^Attempt 1\s.*failed$/s),
      expect.stringMatching(/^Attempt 2\s.*failed$/s),
      expect.stringMatching(/^Attempt 3\s.*done$/s),
    ]);
    const [first] = await window.page.locator('.att').all();
    if ((await first?.getAttribute('open')) === null) await first?.locator('summary').first().click();
    await first?.locator('.err', { hasText: 'the shop is closed, try 1' }).waitFor();
    const share = window.page.getByRole('img', { name: /ran / });
    const causes = await window.page.locator('.share-key dt').allInnerTexts();
    expect(causes).toContain('ran');
    for (const cause of causes) expect(await share.getAttribute('aria-label')).toContain(cause);
    await desk.button('From attempt 3').click();
    expect(await desk.button('From attempt 3').getAttribute('aria-pressed')).toBe('true');
  });
});
