/**
 * How fast the pages are beside 100,000 scheduled and 10,000 dead jobs: `npm run bench -- pages` measures it and writes
 * `bench/results/pages.json` and a page of the reference. Here a small one of the same is looked at, and no time is judged:
 * the lists show what there is, and the counts agree with them while a worker drains the queue.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { writePages } from '../../bench/results.mjs';
import { build } from '../../scripts/steps.mjs';
import { createClient } from '../../src/client/client.ts';
import { createDaemon, type Daemon } from '../../src/daemon/daemon.ts';
import { defineHandlers } from '../../src/worker/run/handlers.ts';
import { DESKTOP, startBrowser, type Window } from '../support/browser.ts';
import { startRedis } from '../support/redis.ts';
import { root } from '../support/repository.ts';

const isMeasuring = process.env.PAINT === 'measure';
const SCHEDULED = isMeasuring ? 100_000 : 2000;
const DEAD = isMeasuring ? 10_000 : 100;
/** One has them all; the others are rows of Now. */
const QUEUES = isMeasuring ? 40 : 3;
const ROUNDS = 5;
const CHUNK = 1000;
const HOUR_MS = 3_600_000;

const LISTS = {
  'jobs that wait': ['#/jobs/emails', /jobs are not over in emails/],
  'jobs by tag': ['#/jobs/emails?tag=user%3A7', /of user:7/],
  'dead letters': ['#/dead/emails', /^Dead letters of/],
  workers: ['#/workers', /room/],
} as const;

/** First paint of a page that is opened anew, ms after it was asked for. */
async function firstPaint({ page }: Window, origin: string): Promise<number> {
  await page.goto('about:blank');
  await page.goto(`${origin}/`);
  await page.getByRole('main').getByRole('heading', { name: 'Queues' }).waitFor();
  const entries = "performance.getEntriesByName('first-contentful-paint').map((one) => one.startTime)";
  const [paint = Number.NaN] = (await page.evaluate(entries)) as number[];
  return paint;
}

/** What came over the wire for the page that is shown first, as the browser has counted it. */
async function bytesSent({ page, settled }: Window): Promise<number> {
  await settled();
  const entries = "[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]";
  const sent = await page.evaluate(`${entries}.reduce((sum, { transferSize }) => sum + (transferSize ?? 0), 0)`);
  return Number(sent);
}

/** From the click on a way to the list, ms. */
async function listed({ page, settled }: Window, [address, title]: readonly [string, RegExp]): Promise<number> {
  await page.evaluate("location.hash = '#/audit'");
  await settled();
  const startedMs = performance.now();
  await page.evaluate(`location.hash = ${JSON.stringify(address)}`);
  await page.getByRole('heading', { level: 1, name: title }).waitFor();
  await page.locator('tbody tr, .wk').first().waitFor();
  await page.locator('[aria-busy="true"]').waitFor({ state: 'detached' });
  return performance.now() - startedMs;
}

async function fill(url: string): Promise<void> {
  const producer = createClient({ redis: url });
  for (let from = 0; from < SCHEDULED; from += CHUNK) {
    const size = Math.min(CHUNK, SCHEDULED - from);
    const jobs = Array.from({ length: size }, (_, at) => {
      const n = from + at;
      return {
        id: `job-${n}`,
        data: { to: `user${n}@example.org` },
        delay: HOUR_MS + n * 100,
        tags: [`user:${n % 1000}`],
      };
    });
    await producer.scheduleMany('emails', jobs);
  }
  for (let from = 0; from < DEAD; from += CHUNK) {
    const size = Math.min(CHUNK, DEAD - from);
    await producer.scheduleMany(
      'emails',
      Array.from({ length: size }, (_, at) => ({ id: `bad-${from + at}`, data: null, attempts: 1 })),
    );
  }
  for (let nth = 1; nth < QUEUES; nth += 1) {
    await producer.schedule(`other-${nth}`, null, { id: 'waits', delay: HOUR_MS });
  }
  await producer.close();
}

async function live(url: string): Promise<{ readonly daemon: Daemon; readonly origin: string }> {
  const handlers = defineHandlers({
    emails: ({ id }) => {
      if (id.startsWith('bad')) throw new Error(`bounce ${Number(id.slice(4)) % 7}`);
    },
  });
  const roles = ['mover', 'worker', 'http'] as const;
  const daemon = createDaemon({ redis: { url }, roles, http: { port: 0 }, worker: { concurrency: 100 } }, { handlers });
  await daemon.start();
  return { daemon, origin: `http://127.0.0.1:${daemon.http()?.port}` };
}

interface Counts {
  readonly scheduled: number;
  readonly ready: number;
  readonly running: number;
  readonly dead: number;
}

const countsAt = async (origin: string): Promise<Counts> => {
  const answer = (await (await fetch(`${origin}/v1/queues`)).json()) as { readonly queues: readonly Counts[] };
  const [counts = { scheduled: -1, ready: -1, running: -1, dead: -1 }] = answer.queues;
  return counts;
};

/** The number of a stage, or of a tab, on the page of a queue. */
const tile = async ({ page }: Window, name: string): Promise<number> => {
  const text = await page.locator('.flow li, .sub a', { hasText: name }).locator('b, span.quiet').first().innerText();
  return Number(text.replaceAll(',', ''));
};

test('lists and counts beside many jobs', { timeout: 900_000 }, async () => {
  await build();
  const server = await startRedis({ port: true });
  const { daemon, origin } = await live(server.url);
  await fill(server.url);
  await expect.poll(async () => (await countsAt(origin)).dead, { timeout: 300_000, interval: 500 }).toBe(DEAD);
  const redis = await server.client();
  await redis.config('RESETSTAT');
  const browser = await startBrowser();
  const window = await browser.open(origin, { theme: 'light', size: DESKTOP });
  const paints: number[] = [];
  const bytes: number[] = [];
  const lists: Record<string, number[]> = Object.fromEntries(Object.keys(LISTS).map((name) => [name, []]));
  for (let round = 0; round < (isMeasuring ? ROUNDS : 1); round += 1) {
    paints.push(await firstPaint(window, origin));
    bytes.push(await bytesSent(window));
    for (const [name, address] of Object.entries(LISTS)) {
      lists[name]?.push(await listed(window, address));
    }
  }
  expect(Math.min(...bytes)).toBeGreaterThan(0);
  const slowest = slowestOf(await redis.info('latencystats'));

  // The counts of the page are those of the API, and both are what is there.
  await window.page.evaluate("location.hash = '#/queue/emails'");
  await window.page.locator('.flow').waitFor();
  const counts = await countsAt(origin);
  expect(counts).toMatchObject({ scheduled: SCHEDULED, dead: DEAD });
  await expect.poll(() => tile(window, 'Scheduled')).toBe(SCHEDULED);
  expect(await tile(window, 'Dead letters')).toBe(DEAD);

  // While a worker drains the queue, and after it: no count is that of another moment for ever.
  const producer = createClient({ redis: server.url });
  const moved = await producer.reschedule('emails', { idPrefix: 'job-1' }, { delay: 0 });
  expect(moved.changed).toBeGreaterThan(SCHEDULED / 10);
  await expect
    .poll(async () => (await countsAt(origin)).scheduled, { timeout: 300_000, interval: 500 })
    .toBe(SCHEDULED - moved.changed);
  await expect.poll(() => tile(window, 'Scheduled')).toBe(SCHEDULED - moved.changed);
  await producer.close();
  expect(await window.noises()).toEqual([]);

  if (isMeasuring) write({ paints, bytes, lists, slowest });
  await window.close();
  await browser.stop();
  await daemon.stop();
  await server.stop();
});

interface Slow {
  readonly command: string;
  readonly p999Us: number;
}

/** The commands that took longest at their 99.9th percentile, but for those that wait. */
function slowestOf(info: string): readonly Slow[] {
  const all = [...info.matchAll(/^latency_percentiles_usec_(\S+):.*p99\.9=([\d.]+)/gm)].map(
    ([, command = '', p999 = '']) => ({ command, p999Us: Number(p999) }),
  );
  return all
    .filter(({ command }) => !/^(xreadgroup|config)/.test(command))
    .sort((a, b) => b.p999Us - a.p999Us)
    .slice(0, 5);
}

const median = (values: readonly number[]): number =>
  Math.round([...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN);

function write(found: {
  readonly paints: readonly number[];
  readonly bytes: readonly number[];
  readonly lists: Readonly<Record<string, readonly number[]>>;
  readonly slowest: readonly Slow[];
}): void {
  const lists = Object.entries(found.lists);
  const result = {
    what: `the pages beside ${SCHEDULED.toLocaleString('en')} scheduled and ${DEAD.toLocaleString('en')} dead jobs in ${QUEUES} queues, medians of ${ROUNDS} rounds, ms`,
    node: process.version,
    firstPaintMs: median(found.paints),
    // Later rounds find most of it in the cache of the browser.
    firstPageBytes: Math.max(...found.bytes),
    rows: lists.map(([page, times]) => ({ page, ms: median(times) })),
    slowestCommandsP999Us: Object.fromEntries(found.slowest.map(({ command, p999Us }) => [command, p999Us])),
  };
  writeFileSync(join(root, 'bench', 'results', 'pages.json'), `${JSON.stringify(result, null, 2)}\n`);
  writePages('pages');
}
