/**
 * Counts agree with lists while a worker drains a queue of 100,000 scheduled and 10,000 dead jobs for a minute by the clock of
 * Redis; in CI a fifth of them, for a quarter of a minute. What "agree" means is exact, however long a look takes.
 *
 * A **sample** is what `GET /v1/queues/emails` says: counts and counters of one moment of Redis. Between two samples so many jobs
 * `came` into a state and so many `left` it; the counters say it. Whoever walks a list between them meets each job that stayed
 * once, and each that came or left at most once. So of every list that is walked between the samples `a` and `b`:
 *
 *     a.count − left  <=  jobs in the list  <=  a.count + came
 *
 * A look of the live view has the time of Redis at which it was taken, so it lies between two samples as well; and what the page
 * shows must be one of these looks, all four counts of it, and never an older one than before.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { build } from '../../scripts/steps.mjs';
import { createClient } from '../../src/client/client.ts';
import { createDaemon, type Daemon } from '../../src/daemon/daemon.ts';
import { Unrecoverable } from '../../src/job/outcome.ts';
import { createWorker } from '../../src/worker/worker.ts';
import { PATIENCE_MS, startBrowser, type TestBrowser, type Window } from '../support/browser.ts';
import { type Held, type LookStream, openLooks } from '../support/look-stream.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { isSlice } from '../tiers.mjs';

const HOOK_MS = 10 * PATIENCE_MS;
const SCHEDULED = isSlice ? 20_000 : 100_000;
/** Of these: due when the draining begins. A worker with so few slots and such a handler cannot end them within it. */
const DUE = isSlice ? 4000 : 11_000;
const SLOTS = 10;
const HANDLER_MS = 60;
/** Every so many of those that are due become dead letters. */
const DIES_EVERY = 25;
const DEAD = isSlice ? 2000 : 10_000;
const DRAINS_MS = isSlice ? 15_000 : 60_000;
const CHUNK = 1000;
const AT_ONCE = 4;
/** So that jobs become ready little by little, too. */
const READY_MAX = 1000;

/** In which round the long lists are walked. */
const WHOLE_AT = isSlice ? 3 : 10;

let browser: TestBrowser;
let redis: TestRedis;
let daemon: Daemon;
let origin: string;

beforeAll(async () => {
  await build();
  [browser, redis] = await Promise.all([startBrowser(), startRedis()]);
  const roles = ['mover', 'http'] as const;
  daemon = createDaemon({
    redis: { url: redis.url },
    roles,
    http: { port: 0, rateMax: 1_000_000 },
    mover: { readyMax: READY_MAX },
  });
  await daemon.start();
  origin = `http://127.0.0.1:${daemon.http()?.port}`;
  await fill();
}, HOOK_MS);
afterAll(async () => {
  await browser?.stop();
  await daemon?.stop();
  await redis?.stop();
}, HOOK_MS);

interface NewJob {
  readonly id: string;
  readonly data: unknown;
  readonly delay?: string;
}

async function fill(): Promise<void> {
  const worker = createWorker('emails', () => Promise.reject(new Unrecoverable('no such address')), {
    redis: redis.url,
    concurrency: 200,
  });
  let dead = 0;
  const buried = new Promise<void>((resolve) => {
    worker.events.on('job.dead', () => {
      dead += 1;
      if (dead === DEAD) resolve();
    });
  });
  await worker.start();
  const producer = createClient({ redis: redis.url });
  const chunks = (count: number, job: (n: number) => NewJob) =>
    Array.from(
      { length: count / CHUNK },
      (_, chunk) => () =>
        producer.scheduleMany(
          'emails',
          Array.from({ length: CHUNK }, (__, n) => job(chunk * CHUNK + n)),
        ),
    );
  const all = [
    ...chunks(DEAD, (n) => ({ id: `bad-${n}`, data: null })),
    ...chunks(SCHEDULED, (n) => ({ id: `${n < DUE ? 'due' : 'later'}-${n}`, data: { n }, delay: '6h' })),
  ];
  for (let from = 0; from < all.length; from += AT_ONCE) {
    await Promise.all(all.slice(from, from + AT_ONCE).map((schedule) => schedule()));
  }
  await buried;
  await Promise.all([worker.stop(), producer.close()]);
}

interface Sample extends Held {
  readonly counters: Readonly<Record<string, number>>;
}

async function ask(path: string) {
  const response = await fetch(`${origin}/v1/queues${path}`);
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return JSON.parse(await response.text());
}

async function sample(): Promise<Sample> {
  const { nowMs, scheduled, ready, running, dead, counters } = await ask('/emails');
  return { nowMs, scheduled, ready, running, dead, counters };
}

const STATES = ['scheduled', 'ready', 'running', 'dead'] as const;
type State = (typeof STATES)[number];

/** How many jobs may have come into a state and left it between two samples. */
function moved(a: Sample, b: Sample): Readonly<Record<State, { readonly came: number; readonly left: number }>> {
  const grown = (name: string) => (b.counters[name] ?? 0) - (a.counters[name] ?? 0);
  const promoted = a.scheduled - b.scheduled;
  const ended = grown('done') + grown('dead');
  const delivered = ended + b.running - a.running;
  expect(promoted, 'what left scheduled was promoted').toBe(grown('promoted'));
  expect(b.dead - a.dead, 'dead letters grow by what died').toBe(grown('dead'));
  expect(b.ready - a.ready, 'what is ready was promoted and not delivered').toBe(promoted - delivered);
  return {
    scheduled: { came: 0, left: promoted },
    ready: { came: promoted, left: delivered },
    running: { came: delivered, left: ended },
    dead: { came: grown('dead'), left: 0 },
  };
}

function expectBetween(a: Sample, b: Sample, seen: Partial<Record<State, number>>, what: string): void {
  const between = moved(a, b);
  for (const state of STATES) {
    const count = seen[state];
    if (count === undefined) continue;
    const { came, left } = between[state];
    expect(count, `${what}: ${state}`).toBeGreaterThanOrEqual(a[state] - left);
    expect(count, `${what}: ${state}`).toBeLessThanOrEqual(a[state] + came);
  }
}

/** All pages of a list: how many jobs it has. No job is met twice. */
async function walk(path: string, rowsOf: 'jobs' | 'deadLetters'): Promise<number> {
  const met = new Set<string>();
  let rows = 0;
  let cursor: string | undefined;
  do {
    const page = await ask(`/emails/${path}limit=1000${cursor === undefined ? '' : `&cursor=${cursor}`}`);
    for (const { id } of page[rowsOf]) met.add(id);
    rows += page[rowsOf].length;
    cursor = page.cursor;
  } while (cursor !== undefined);
  expect(met.size, `${path} has no job twice`).toBe(rows);
  return rows;
}

const listOf = (state: 'scheduled' | 'ready' | 'running') => walk(`jobs?state=${state}&`, 'jobs');

/** The four counts of the page, as they stand there at one moment: three of its flow, and one of a tab. */
const TILES = `[...document.querySelectorAll('.flow b a'), ...document.querySelectorAll('.sub a[href^="#/dead"] span')]
  .map((one) => Number(one.textContent.replaceAll(',', '')))`;
const tiles = ({ page }: Window) => page.evaluate<readonly number[]>(TILES);
const countsOf = (held: Held): readonly number[] => STATES.map((state) => held[state]);

async function open(address: string): Promise<Window> {
  const window = await browser.open(origin);
  await window.page.goto(`${origin}/${address}`);
  return window;
}

/** The list of jobs that run, as a page shows it when somebody presses the button. */
async function listInPage({ page, settled }: Window): Promise<number> {
  await page.getByRole('button', { name: 'Look again' }).click();
  await settled();
  return page.locator('tbody tr').count();
}

/**
 * What the page shows is one of the looks, and none before the one that it has shown. It may be told of a look before we are:
 * then we wait for it. @returns the place of the look
 */
async function settledLook(window: Window, looks: LookStream, before: number): Promise<number> {
  let at = before;
  await expect
    .poll(async () => {
      const shown = String(await tiles(window));
      at = looks.seen.findLastIndex((held) => String(countsOf(held)) === shown);
      return at;
    })
    .toBeGreaterThanOrEqual(before);
  return at;
}

test('counts agree with lists while a worker drains, and are equal after it', {
  timeout: HOOK_MS,
}, async () => {
  const first = await sample();
  expect(first).toMatchObject({ scheduled: SCHEDULED, ready: 0, running: 0, dead: DEAD });
  const looks = await openLooks(origin, 'emails');
  const queue = await open('#/queue/emails');
  const running = await open('#/jobs/emails?state=running');
  await queue.page.locator('.flow').waitFor();
  let isSlow = true;
  const worker = createWorker('emails', ({ id }) => drain(id, () => isSlow), { redis: redis.url, concurrency: SLOTS });
  await worker.start();
  const producer = createClient({ redis: redis.url });
  const due = await producer.runNow('emails', { idPrefix: 'due-' });
  expect(due.changed).toBe(DUE);

  const samples: Sample[] = [await sample()];
  let shown = await settledLook(queue, looks, 0);
  const shownLooks = new Set<number>();
  const untilMs = (samples[0]?.nowMs ?? 0) + DRAINS_MS;
  // At least until the long lists are walked, on a slow machine too.
  for (let round = 0; round <= WHOLE_AT || (samples.at(-1)?.nowMs ?? 0) < untilMs; round += 1) {
    // Once a second, when the page is told as well.
    await looks.next();
    const a = await sample();
    const seen = { ready: await listOf('ready'), running: await listOf('running') };
    const { count: scheduled } = await ask('/emails/count?state=scheduled');
    const b = await sample();
    expectBetween(a, b, { ...seen, scheduled }, 'a list');
    const inPage = await listInPage(running);
    const c = await sample();
    expectBetween(b, c, { running: inPage }, 'the list in the page');
    if (round === WHOLE_AT) {
      const whole = { scheduled: await listOf('scheduled'), dead: await walk('dead?', 'deadLetters') };
      const d = await sample();
      expectBetween(c, d, whole, 'a whole list');
      samples.push(d);
    }
    shown = await settledLook(queue, looks, shown);
    shownLooks.add(shown);
    samples.push(a, b, c);
    samples.sort((one, other) => one.nowMs - other.nowMs);
  }
  const last = await sample();
  expect(last.counters.done).toBeGreaterThan(0);
  checkLooks(looks.seen, [...samples, last]);
  expect(shownLooks.size, 'the page went on').toBeGreaterThan(1);

  // The rest at once; then all is equal.
  isSlow = false;
  const after = { scheduled: SCHEDULED - DUE, ready: 0, running: 0, dead: DEAD + DUE / DIES_EVERY };
  await expect.poll(sample, { timeout: HOOK_MS, interval: 500 }).toMatchObject(after);
  const lists = [listOf('scheduled'), listOf('ready'), listOf('running'), walk('dead?', 'deadLetters')];
  expect(await Promise.all(lists)).toEqual(STATES.map((state) => after[state]));
  expect((await ask('/emails/count')).count).toBe(after.scheduled);
  expect((await ask('')).queues).toMatchObject([after]);
  await expect.poll(() => tiles(queue)).toEqual(STATES.map((state) => after[state]));
  await expect.poll(() => listInPage(running)).toBe(0);
  for (const window of [queue, running]) {
    expect(await window.noises()).toEqual([]);
    await window.close();
  }
  await Promise.all([worker.stop(), producer.close(), looks.stop()]);
});

async function drain(id: string, isSlow: () => boolean): Promise<void> {
  if (isSlow()) await new Promise((resolve) => setTimeout(resolve, HANDLER_MS));
  if (Number(id.slice('due-'.length)) % DIES_EVERY === 0) throw new Unrecoverable('no such address');
}

/** Each look lies between the sample before it and the one after it, by the clock of Redis. */
function checkLooks(looks: readonly Held[], samples: readonly Sample[]): void {
  let checked = 0;
  for (const look of looks) {
    const a = samples.findLast((one) => one.nowMs < look.nowMs);
    const b = samples.find((one) => one.nowMs > look.nowMs);
    if (!a || !b) continue;
    expectBetween(a, b, look, 'a look');
    checked += 1;
  }
  expect(checked).toBeGreaterThan(1);
}
