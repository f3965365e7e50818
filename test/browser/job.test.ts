/** The page of one job: each action in each state that has it, what is refused in which words, and the timeline. */
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

const fact = (term: string) => window.page.locator('.facts > div', { hasText: term }).first().locator('dd');
const lookAgain = async () => {
  await desk.button('Look again').click();
  await window.settled();
};

describe('a job that waits', { timeout: HOOK_MS }, () => {
  test('runs now: it is ready for the next worker, and the page says so', async () => {
    await scheduleAll(api, 'emails', [{ id: 'soon', delay: '1h' }]);
    await show(window, '#/job/emails/soon');
    expect(await fact('State').innerText()).toBe('scheduled');
    await desk.button('Run now …').click();
    await desk.inDialog('Back').click();
    expect((await jobOf(api, 'emails', 'soon')).state).toBe('scheduled');
    await desk.button('Run now …').click();
    await desk.inDialog('Run now').click();
    await desk.told('It is due now.');
    await expect.poll(async () => (await jobOf(api, 'emails', 'soon')).state).toBe('ready');
    await lookAgain();
    await fact('State').filter({ hasText: 'ready' }).waitFor();
    expect(await window.page.textContent('main')).toContain('it waits for a worker');
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
    await fact('Due').locator('time[datetime="2031-05-05T10:00:00.000Z"]').waitFor();
    expect((await jobOf(api, 'emails', 'moved')).dueMs).toBe(Date.parse('2031-05-05T10:00:00Z'));
    expect(await fact('Due').innerText()).toContain('2031-05-05 12:00:00');
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
    expect(words).toContain('Look again');
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
    expect(await desk.dialog.innerText()).toContain('2031-05-05 12:00:00');
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
    await fact('State').filter({ hasText: 'cancelled' }).waitFor();
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
    await desk.inDialog('Cancel the job').click();
    await desk.told('Cancelled');
    await fact('State').filter({ hasText: 'cancelled' }).waitFor();
    expect(await window.page.textContent('main')).toContain('It is over.');
    expect((await jobOf(api, 'emails', 'off')).state).toBe('cancelled');
  });
});

test('a job that is due when it was asked for says its due time once, and how far that is away', {
  timeout: HOOK_MS,
}, async () => {
  await scheduleAll(api, 'emails', [{ id: 'once', at: '2031-05-05T10:00:00Z' }]);
  await show(window, '#/job/emails/once');
  const text = (await window.page.textContent('main')) ?? '';
  expect(text.split('2031-05-05 12:00:00')).toHaveLength(2);
  expect(await window.page.locator('.timeline > li').allInnerTexts()).toEqual([expect.stringMatching(/^Due in \d+ d/)]);
  expect(text).toContain('It waits for its due time.');
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
    expect(await fact('Progress').innerText()).toMatch(/^40 %, row <b>400<\/b>, (now|\d+ s ago)$/);
    end();
    await expect.poll(async () => (await jobOf(api, 'rows', 'counts')).state).toBe('done');
    await lookAgain();
    await fact('State').filter({ hasText: 'done' }).waitFor();
    expect(await fact('Progress').count()).toBe(0);
    await worker.stop();
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
    expect(await fact('Newer data').innerText()).toMatch(
      /^came while it runs, and are shown below\. They start when this run has ended/,
    );
    end();
    await expect.poll(() => ran).toEqual([1, 2]);
    await expect.poll(async () => (await jobOf(api, 'rows', 'index')).state).toBe('done');
    await lookAgain();
    await fact('State').filter({ hasText: 'done' }).waitFor();
    expect(await fact('Newer data').count()).toBe(0);
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
    expect(await window.page.textContent('main')).toContain('It runs now.');
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
    expect(await fact('State').innerText()).toBe('dead');
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
    await fact('State').filter({ hasText: 'scheduled' }).waitFor();
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

  const moments = () => window.page.locator('.timeline > li');
  const kinds = () => window.page.locator('.timeline .kind').allInnerTexts();

  test('of a job that failed twice and then succeeded tells each of it in the order of time', async () => {
    const consumer = await failTwice(async () => {
      await show(window, '#/job/orders/twice');
      expect(await kinds()).toEqual(['Due as asked', 'Started', 'Failed', 'Due']);
      expect(await window.page.textContent('section[aria-labelledby="timeline"]')).toContain(
        'It waits for its next try.',
      );
    });
    await expect.poll(async () => (await jobOf(api, 'orders', 'twice')).state).toBe('done');
    await show(window, '#/now');
    await show(window, '#/job/orders/twice');
    expect(await kinds()).toEqual(['Due as asked', 'Started', 'Failed', 'Started', 'Failed', 'Started', 'Done']);
    const texts = await moments().allInnerTexts();
    for (const [at, parts] of [
      [1, ['attempt 1', `worker ${consumer}`]],
      [2, ['attempt 1', 'took ', 'the shop is closed, try 1']],
      [3, ['attempt 2', `worker ${consumer}`]],
      [4, ['attempt 2', 'took ', 'the shop is closed, try 2']],
      [5, ['attempt 3', `worker ${consumer}`, 'took ']],
      [6, ['attempt 3']],
    ] as const) {
      for (const part of parts) expect(texts[at]).toContain(part);
    }
    expect(await window.page.textContent('main')).toContain('It is over.');
    expect(await window.page.textContent('section[aria-labelledby="data"]')).toContain(RESULT);
    expect(await fact('Attempts').innerText()).toBe('3 started, 2 failed, 0 crashed');
    // Its end is the present one, and stands above with its result.
    expect(await window.page.getByRole('heading', { name: 'Earlier ends of this id' }).count()).toBe(0);
  });
});
