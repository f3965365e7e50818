/**
 * Pictures of every page, light and dark, on a desktop and on a phone: of a day that was played (`support/day.ts`). `npm run
 * screenshots` puts them into `docs/screenshots`, which takes some minutes; here it is checked that the docs have one of each, and
 * that together they stay small.
 */
import { mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { build } from '../../scripts/steps.mjs';
import { createClient } from '../../src/client/client.ts';
import { createDaemon } from '../../src/daemon/daemon.ts';
import { queueMinutes } from '../../src/inspect/minutes.ts';
import { queuesIn } from '../../src/redis/read/each-queue.ts';
import { partitionsOf } from '../../src/redis/scripts/queues.ts';
import { defineHandlers } from '../../src/worker/run/handlers.ts';
import { DESKTOP, PATIENCE_MS, PHONE, startBrowser } from '../support/browser.ts';
import { playDay } from '../support/day.ts';
import { brokenInvariants } from '../support/keyspace.ts';
import { startRedis } from '../support/redis.ts';
import { read, root } from '../support/repository.ts';

const FOLDER = join(root, 'docs', 'screenshots');
const BYTES_MAX = 3_600_000;
const QUALITY = 60;

const PAGES = {
  now: '#/now',
  queue: '#/queue/reports',
  jobs: '#/jobs',
  job: '#/job/mails/receipt%3A1003',
  at: '#/at',
  dead: '#/dead',
  schedules: '#/schedules',
  schedule: '#/schedule/nightly',
  workers: '#/workers',
  slo: '#/slo',
  audit: '#/audit',
} as const;
const LOOKS = [
  { theme: 'light', screen: 'desktop', size: DESKTOP },
  { theme: 'dark', screen: 'desktop', size: DESKTOP },
  { theme: 'light', screen: 'phone', size: PHONE },
  { theme: 'dark', screen: 'phone', size: PHONE },
] as const;

const names = Object.keys(PAGES).flatMap((page) => LOOKS.map(({ theme, screen }) => `${page}-${theme}-${screen}.jpg`));

/** On a phone the head of a page may fill the window: its picture is of what is listed below. */
const TO_ROWS = `(() => {
  const row = [...document.querySelectorAll('main tbody tr, main .story li, main .grp')].find((one) => one.checkVisibility());
  if (row === undefined) return 'there are no rows';
  const below = () => row.getBoundingClientRect().top - innerHeight * 0.4;
  if (innerWidth < 640 && below() > 0) scrollBy(0, below() + innerHeight * 0.25);
  const isHidden = row.getBoundingClientRect().top > innerHeight * 0.8;
  return isHidden && innerWidth < 640 ? 'the rows are not seen' : 'the rows are seen';
})()`;

const isWriting = process.env.SCREENSHOTS === 'write';

describe('the pictures in the docs', () => {
  test.skipIf(isWriting)('are one of each page, light and dark, desktop and phone, and small together', () => {
    expect(readdirSync(FOLDER).sort()).toEqual([...names].sort());
    const bytes = names.map((name) => statSync(join(FOLDER, name)).size);
    expect(Math.min(...bytes)).toBeGreaterThan(2000);
    expect(bytes.reduce((sum, one) => sum + one, 0)).toBeLessThan(BYTES_MAX);
  });

  test('are shown in the tour through the dashboard', () => {
    const tour = read('docs/how-to/dashboard.md');
    for (const page of Object.keys(PAGES)) expect(tour).toContain(`screenshots/${page}-light-desktop.jpg`);
  });

  test('are not shipped', () => {
    expect(JSON.parse(read('package.json')).files).toContain('!docs/screenshots');
  });
});

test('an hour of the day that they show is played by the services, and every key of it is whole', {
  timeout: 300_000,
}, async () => {
  const server = await startRedis();
  const redis = await server.client();
  await playDay(redis, { hours: 1 });
  const place = { redis, namespace: 'duestream' };
  const { all: layouts } = await queuesIn(redis, 'duestream', () => true);
  expect(layouts.map(({ queue }) => queue).toSorted()).toEqual([
    'invoices',
    'mails',
    'reminders',
    'reports',
    'webhooks',
  ]);
  for (const layout of layouts) {
    for (const { keys } of partitionsOf('duestream', layout)) expect(await brokenInvariants(redis, keys)).toEqual([]);
  }
  const { counts, start } = await queueMinutes(place, 'mails', { hours: 24, nowMs: Date.now() });
  const sum = (values: readonly number[]) => values.reduce((all, one) => all + one, 0);
  expect(sum(counts.done)).toBeGreaterThan(3);
  expect(sum(start.count)).toBeGreaterThanOrEqual(sum(counts.done));
  await server.stop();
});

test.runIf(isWriting)('every page has its picture taken', { timeout: 600_000 }, async () => {
  await build();
  const { origin, failedMs, stop } = await serveDay();
  const browser = await startBrowser();
  mkdirSync(FOLDER, { recursive: true });
  for (const { theme, screen, size } of LOOKS) {
    const window = await browser.open(origin, { theme, size });
    await window.page.goto(`${origin}/`);
    await window.page.getByRole('heading', { name: 'Comes due in the next 24 h' }).waitFor({ timeout: PATIENCE_MS });
    // A browser without a desktop has a font with serifs for `system-ui`, which nobody has set.
    await window.page.evaluate(`document.documentElement.style.fontFamily = '"DejaVu Sans", sans-serif'`);
    for (const [name, page] of Object.entries(PAGES)) {
      const address = name === 'at' ? `${page}?t=${new Date(failedMs).toISOString()}` : page;
      await window.page.evaluate(`location.hash = ${JSON.stringify(address)}`);
      await window.settled();
      await window.page.getByRole('heading', { level: 1 }).waitFor();
      await window.settled();
      expect(await window.page.evaluate(TO_ROWS), name).toBe('the rows are seen');
      const picture = await window.page.screenshot({ type: 'jpeg', quality: QUALITY });
      writeFileSync(join(FOLDER, `${name}-${theme}-${screen}.jpg`), picture);
    }
    expect(await window.noises()).toEqual([]);
    await window.close();
  }
  await browser.stop();
  await stop();
});

/** A daemon that goes on with a day that was played: its worker fails as the day does, and runs two long reports. */
async function serveDay() {
  const server = await startRedis({ port: true });
  const { failedMs } = await playDay(await server.client());
  const runs = (ms: number, signal: AbortSignal) =>
    new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      signal.addEventListener('abort', () => {
        clearTimeout(timer);
        resolve();
      });
    });
  const handlers = defineHandlers({
    mails: async ({ id }, { signal }) => {
      await runs(120, signal);
      if (id.startsWith('receipt:1003')) throw new Error('421 the mailbox is busy, try again later');
    },
    reminders: (_, { signal }) => runs(30, signal),
    webhooks: (_, { signal }) => runs(400, signal),
    invoices: (_, { signal }) => runs(300, signal),
    reports: (_, { signal }) => runs(1_800_000, signal),
  });
  const http = { port: 0, title: 'production', color: 'red' } as const;
  const config = { redis: { url: server.url }, roles: ['mover', 'worker', 'http'] as const, http };
  const daemon = createDaemon(config, { handlers });
  await daemon.start();
  const client = createClient({ redis: server.url });
  // Two run, and the others are in line behind them.
  for (const tenant of ['acme', 'bolt', 'cargo', 'delta', 'elm'])
    await client.schedule('reports', { tenant }, { id: `export:${tenant}` });
  const stop = async () => {
    await client.close();
    await daemon.stop();
    await server.stop();
  };
  return { origin: `http://127.0.0.1:${daemon.http()?.port}`, failedMs, stop };
}
