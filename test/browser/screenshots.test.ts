/**
 * Pictures of every page, light and dark, on a desktop and on a phone. `npm run screenshots` puts them into
 * `docs/screenshots`; here it is checked that the docs have one of each, and that together they stay small.
 */
import { mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { build } from '../../scripts/steps.mjs';
import { createClient } from '../../src/client/client.ts';
import { createDaemon } from '../../src/daemon/daemon.ts';
import { defineHandlers } from '../../src/worker/run/handlers.ts';
import { DESKTOP, PATIENCE_MS, PHONE, startBrowser } from '../support/browser.ts';
import { startRedis } from '../support/redis.ts';
import { read, root } from '../support/repository.ts';

const FOLDER = join(root, 'docs', 'screenshots');
const BYTES_MAX = 3_000_000;
const QUALITY = 60;

const PAGES = {
  now: '#/now',
  queue: '#/queue/emails',
  jobs: '#/jobs/emails',
  job: '#/job/emails/receipt%3A1003',
  dead: '#/dead/emails',
  schedules: '#/schedules',
  schedule: '#/schedule/nightly',
  workers: '#/workers',
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
  const row = [...document.querySelectorAll('main tbody tr, main .story li')].find((one) => one.checkVisibility());
  if (row === undefined) return 'there are no rows';
  const below = () => row.getBoundingClientRect().top - innerHeight * 0.4;
  if (below() > 0) scrollBy(0, below() + innerHeight * 0.25);
  return below() > 0 && innerWidth < 640 ? 'the rows are not seen' : 'the rows are seen';
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

test.runIf(isWriting)('every page has its picture taken', { timeout: 600_000 }, async () => {
  await build();
  const { origin, stop } = await serveSomething();
  const browser = await startBrowser();
  mkdirSync(FOLDER, { recursive: true });
  for (const { theme, screen, size } of LOOKS) {
    const window = await browser.open(origin, { theme, size });
    await window.page.goto(`${origin}/`);
    await window.page.getByRole('heading', { name: 'What comes due' }).waitFor({ timeout: PATIENCE_MS });
    // A browser without a desktop has a font with serifs for `system-ui`, which nobody has set.
    await window.page.evaluate(`document.documentElement.style.fontFamily = '"DejaVu Sans", sans-serif'`);
    for (const [name, address] of Object.entries(PAGES)) {
      await window.page.evaluate(`location.hash = ${JSON.stringify(address)}`);
      await window.settled();
      await window.page.getByRole('heading', { level: 1 }).waitFor();
      await window.settled();
      expect(await window.page.evaluate(TO_ROWS), name).toBe(
        name === 'queue' ? 'there are no rows' : 'the rows are seen',
      );
      const picture = await window.page.screenshot({ type: 'jpeg', quality: QUALITY });
      writeFileSync(join(FOLDER, `${name}-${theme}-${screen}.jpg`), picture);
    }
    expect(await window.noises()).toEqual([]);
    await window.close();
  }
  await browser.stop();
  await stop();
});

/** A daemon with a worker, jobs in every state with ids as people have them, schedules, and two minutes of history for the charts. */
async function serveSomething() {
  const server = await startRedis({ port: true, appendonly: true });
  const handlers = defineHandlers({
    emails: async ({ id }) => {
      if (id.startsWith('bounce')) throw new Error('connect ECONNREFUSED 10.0.0.25:25');
      await new Promise((resolve) => setTimeout(resolve, 20));
      if (id.startsWith('receipt')) throw new Error('421 the mailbox is busy, try again later');
    },
  });
  const http = { port: 0, title: 'production', color: 'red' } as const;
  const config = { redis: { url: server.url }, roles: ['mover', 'worker', 'http'] as const, http };
  const daemon = createDaemon(config, { handlers });
  await daemon.start();
  const producer = createClient({ redis: server.url });
  const client = createClient({ redis: server.url });
  const schedules = client.schedules;
  await schedules.put('nightly', { queue: 'emails', cron: '30 2 * * *', zone: 'America/New_York' });
  await schedules.put('digest', { queue: 'emails', every: '5m' });
  for (let n = 1; n <= 40; n += 1) {
    const data = { to: `user${n}@example.org`, template: 'welcome', order: { id: 1000 + n, items: ['book', 'pen'] } };
    await producer.schedule('emails', data, { id: `welcome:${n}`, delay: `${n}m`, tags: [`user:${n}`] });
  }
  for (let n = 1; n <= 12; n += 1) {
    const id = `0192f0a4-7a6e-7c3d-9d5e-1f2a3b4c${String(5000 + n)}`;
    await producer.schedule('reports', { month: n }, { id, delay: `${n}h`, tags: ['tenant:acme', `month:${n}`] });
  }
  for (let n = 1; n <= 6; n += 1) await producer.schedule('emails', {}, { id: `bounce:${n}`, attempts: 1 });
  // Its picture is taken after the third try, and before the fourth.
  const backoff = { kind: 'exponential', delayMs: 30_000, factor: 2, maxMs: 600_000, jitter: 'none' } as const;
  const receipt = { to: 'user3@example.org', template: 'receipt', order: { id: 1003, items: ['book', 'pen'] } };
  await producer.schedule('emails', receipt, { id: 'receipt:1003', attempts: 5, backoff, tags: ['user:3'] });
  const origin = `http://127.0.0.1:${daemon.http()?.port}`;
  const change = async (path: string, body: object = {}) => {
    const headers = { 'Content-Type': 'application/json' };
    const { ok } = await fetch(`${origin}/v1/${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
    expect(ok, path).toBe(true);
  };
  await change('queues/reports/pause', { reason: 'the mail server moves' });
  await change('queues/reports/resume');
  await change('schedules/digest/pause', { reason: 'holidays' });
  await change('schedules/digest/resume');
  await change('queues/emails/jobs/welcome:40/reschedule', { delay: '2h' });
  await change('queues/emails/tags/user:39/close', { for: '30d', reason: 'paid' });
  const untilMs = Date.now() + 130_000;
  while (Date.now() < untilMs) {
    await producer.scheduleMany('emails', [{ data: { n: 1 } }, { data: { n: 2 } }]);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  const stop = async () => {
    await Promise.all([producer.close(), client.close()]);
    await daemon.stop();
    await server.stop();
  };
  return { origin, stop };
}
