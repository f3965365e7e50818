/**
 * Texts of strangers on every page: markup that would run if a page took it for markup, and words without an end that would push
 * a phone's page aside. They come from where anybody may write: ids, names, tags, data, errors, reasons, results, hosts of
 * workers, definitions of schedules, audit, the address itself. And the pages below a prefix, as an application mounts them.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createClient } from '../../src/client/client.ts';
import { createDashboard } from '../../src/daemon/dashboard.ts';
import { shortText } from '../../src/dashboard/parts/words.ts';
import { defineQueue } from '../../src/job/queue.ts';
import { audit } from '../../src/redis/audit.ts';
import { controlKeys } from '../../src/redis/keys.ts';
import { beat, type Identity } from '../../src/redis/scripts/presence.ts';
import { createWorker } from '../../src/worker/worker.ts';
import {
  DESKTOP,
  PATIENCE_MS,
  PHONE,
  SMALL_PHONE,
  startBrowser,
  type TestBrowser,
  type Window,
} from '../support/browser.ts';
import { ADDRESSES, enter, MARKUP, must, SCRIPT, type Served, serveDashboard, show } from '../support/dashboard.ts';
import { deskOf } from '../support/desk.ts';

const HOOK_MS = 10 * PATIENCE_MS;
/** Nowhere a place for a line break. */
const ENDLESS = 'w'.repeat(100);
const REASON = `${MARKUP}${ENDLESS}`;
const SPACED = '<img src=x onerror="globalThis.canary=2"> of a \u202estranger';
const LONG_ID = `${ENDLESS}${'x'.repeat(28)}`;
const BEAT_TTL_MS = 3_600_000;

let browser: TestBrowser;
let api: Served;

beforeAll(async () => {
  [browser, api] = await Promise.all([startBrowser(), serveDashboard()]);
  await must(api, 'POST /v1/queues/emails/pause', api.admin, { reason: REASON });
  await must(api, 'POST /v1/schedules/nightly/pause', api.admin, { reason: REASON });
  await must(api, 'POST /v1/queues/emails/jobs', api.admin, {
    id: LONG_ID,
    delay: '1h',
    tags: [ENDLESS.slice(0, 64)],
    data: ENDLESS,
  });
  await strangers();
  await endings();
}, HOOK_MS);
afterAll(async () => {
  await browser?.stop();
  await api?.stop();
}, HOOK_MS);

/** What comes past the API: a plain ZADD, a heartbeat, an entry of the audit, a schedule that nobody can read. */
async function strangers(): Promise<void> {
  const { place } = api;
  const keys = controlKeys(place.namespace);
  await place.redis.zadd('duestream:v1:{emails:0}:scheduled', Date.now() + BEAT_TTL_MS, SPACED);
  await place.redis.hset(keys.schedules, MARKUP, SPACED, `${ENDLESS}-nightly`, '{"queue":');
  const worker: Identity = {
    id: MARKUP,
    role: 'worker',
    host: `${SPACED}${ENDLESS}`,
    pid: 1,
    startedMs: Date.now(),
    queues: [MARKUP, ENDLESS],
  };
  await beat(place.redis, { namespace: place.namespace, identity: worker, ttlMs: BEAT_TTL_MS });
  const change = {
    who: SPACED,
    way: 'cli',
    verb: MARKUP,
    queue: SCRIPT,
    target: `${MARKUP}${ENDLESS}`,
    count: 1,
  } as const;
  // As somebody else may write it.
  await audit(place, change as never);
}

/** A result, an error and an earlier end in a queue that keeps its history; and a dead letter without an end to its error. */
async function endings(): Promise<void> {
  const queue = defineQueue('kept', { history: { keep: '1d', result: true } });
  const worker = createWorker(
    queue,
    (_, { attempt }) => {
      if (attempt === 1) throw new Error(`${SPACED} ${ENDLESS}`);
      return { [MARKUP]: SCRIPT };
    },
    { redis: api.redis.url },
  );
  const producer = createClient({ redis: api.redis.url });
  const ends = (name: 'job.completed' | 'job.dead') =>
    new Promise<void>((resolve) => worker.events.on(name, () => resolve()));
  const [completed, died] = [ends('job.completed'), ends('job.dead')];
  await worker.start();
  const backoff = { kind: 'fixed', delayMs: 1, jitter: 'none' } as const;
  await producer.schedule(queue, {}, { id: MARKUP, backoff, tags: [MARKUP] });
  await producer.schedule(queue, {}, { id: 'dies', attempts: 1 });
  await Promise.all([completed, died]);
  await Promise.all([worker.stop(), producer.close()]);
}

const id = encodeURIComponent(MARKUP);
/** Each page with such texts in it, and which of them it must show as they are. */
const PAGES: readonly (readonly [name: string, address: string, shows: readonly string[]])[] = [
  ...Object.entries(ADDRESSES).map(([name, address]) => [name, address, []] as const),
  ['a paused queue', '#/queue/emails', [REASON]],
  ['workers', '#/workers', [MARKUP, SPACED]],
  ['audit', '#/audit', [SPACED, SCRIPT, MARKUP]],
  ['schedules', '#/schedules', [MARKUP, REASON]],
  ['a paused schedule', '#/schedule/nightly', [REASON]],
  ['jobs with a bare one', '#/jobs/emails', [shortText(SPACED), MARKUP, shortText(LONG_ID)]],
  ['a bare job', `#/job/emails/${encodeURIComponent(SPACED)}?bare=true`, [SPACED]],
  ['a job with an endless id', `#/job/emails/${LONG_ID}`, [LONG_ID]],
  ['a job with a result', `#/job/kept/${id}`, [MARKUP, SCRIPT, SPACED]],
  ['jobs that are over', '#/jobs/kept?state=done', [MARKUP]],
  ['dead letters', '#/dead/kept', ['<img src=x onerror=']],
  ['a filter by markup', `#/jobs/emails?tag=${id}&idPrefix=${id}&name=${id}`, []],
  ['dead letters of a group', `#/dead/emails?error=${id}&reason=${id}&name=${id}`, [MARKUP]],
  ['no such page', `#/${id}/${id}`, [MARKUP]],
  ['no such queue', `#/queue/${id}`, [MARKUP]],
  ['jobs of no such queue', `#/jobs/${id}`, [MARKUP]],
  ['no such job', `#/job/${id}/${id}`, [MARKUP]],
  ['no such schedule', `#/schedule/${id}`, [MARKUP]],
  ['an address that is no percent code', '#/job/emails/%E0%A4%A', []],
];

/** What is wrong with a page; nothing, if all is well. */
async function faultsOf({ page, noises, overflow }: Window, shows: readonly string[]): Promise<readonly string[]> {
  const main = page.locator('main');
  for (const text of shows)
    await main.filter({ hasText: text.replaceAll('\u202e', '\\u202e') }).waitFor({ timeout: PATIENCE_MS });
  const wider = await overflow();
  const markup = await page.locator('main img, main script').count();
  return [
    ...(await noises()),
    ...(wider > 0 ? [`it is wider than the window by ${wider} px`] : []),
    ...(markup > 0 ? ['a text became markup'] : []),
  ];
}

async function lookAtAll(window: Window): Promise<void> {
  const found: Record<string, readonly string[]> = {};
  for (const [name, address, shows] of PAGES) {
    await show(window, address);
    const faults = await faultsOf(window, shows).catch((error: unknown) => [String(error)]);
    if (faults.length > 0) found[name] = faults;
  }
  expect(found).toEqual({});
}

describe('texts of strangers', { timeout: HOOK_MS }, () => {
  test.each([SMALL_PHONE, PHONE, DESKTOP])('run nothing on any page, and push none aside: $width px', async (size) => {
    const window = await enter(browser, api, { token: api.admin, size });
    await lookAtAll(window);
    await window.close();
  });

  test.each([
    ['#/queue/emails', 'Resume …'],
    [`#/job/emails/${LONG_ID}`, 'Edit …'],
    [`#/job/emails/${LONG_ID}`, 'Reschedule …'],
    [`#/job/emails/${id}`, 'Cancel …'],
    ['#/jobs/emails', 'Cancel …'],
    ['#/dead/emails', 'Purge them …'],
    ['#/schedule/nightly', 'Backfill …'],
  ])('fit the dialogs of a phone: %s, %s', async (address, open) => {
    const window = await enter(browser, api, { token: api.admin, size: PHONE });
    const desk = deskOf(window);
    await show(window, address);
    if (address === '#/jobs/emails') await window.page.getByLabel('all that are shown', { exact: true }).check();
    await desk.button(open).click();
    await desk.dialog.waitFor();
    if (address === '#/jobs/emails') {
      await desk.dialog.locator('.ids li', { hasText: LONG_ID }).waitFor();
    }
    const wider = "(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)(document.querySelector('dialog'))";
    expect(await window.page.evaluate(wider)).toBe(0);
    const box = await desk.dialog.boundingBox();
    expect((box?.x ?? -1) + (box?.width ?? PHONE.width)).toBeLessThanOrEqual(PHONE.width);
    expect(box?.x).toBeGreaterThanOrEqual(0);
    expect(await window.overflow()).toBe(0);
    expect(await window.inaccessible()).toEqual([]);
    expect(await window.noises()).toEqual([]);
    await window.close();
  });
});

test('below a prefix every page works, and nothing is asked for outside of it', { timeout: HOOK_MS }, async () => {
  const dashboard = createDashboard({ redis: api.redis.url, prefix: '/ops/jobs' });
  const listener = getRequestListener(dashboard.fetch, { overrideGlobalObjects: false });
  const server = createServer((request, response) => void listener(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const window = await enter(browser, { ...api, url: `${origin}/ops/jobs` }, { token: api.admin, size: PHONE });
  await lookAtAll(window);

  await show(window, '#/jobs/emails?tag=shop&idPrefix=order%2F1');
  const desk = deskOf(window);
  await window.page.reload();
  await desk.told('1 job shown');
  await window.page.getByRole('link', { name: 'order/1' }).click();
  await desk.button('Cancel …').click();
  await desk.inDialog('Cancel the job').click();
  await desk.told('Cancelled');
  expect((await must(api, 'GET /v1/queues/emails/jobs/order%2F1', api.admin)).state).toBe('cancelled');
  await window.page.locator('.live', { hasText: 'live' }).waitFor();
  await desk.button('More').click();
  await desk.button('Log out').click();
  await window.page.getByLabel('Token').waitFor();
  expect(await window.noises()).toEqual([]);
  await window.close();
  await dashboard.stop();
  server.closeAllConnections();
  server.close();
});
