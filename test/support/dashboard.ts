/**
 * A daemon with its dashboard, and jobs, dead letters and schedules in it whose every text tries to run something, or is
 * a secret. The pages are those of the last build.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createClient } from '../../src/client/client.ts';
import { createWorker } from '../../src/worker/worker.ts';
import { type ServedApi, serveApi } from './api.ts';
import type { TestBrowser, Window, WindowOptions } from './browser.ts';
import { buryJobs } from './buried.ts';
import { root } from './repository.ts';

/** Where a page takes text for markup, it runs. */
export const MARKUP = '<img/src=x/onerror=globalThis.canary=1>';
export const SCRIPT = '"><script>globalThis.canary=1</script>';
/** In data and errors: a token without the scope `data` sees nothing of it. */
export const SECRET = 'secret-7f3a';
/** No job has it. */
export const CLOSED_TAG = `paid${MARKUP}`;

export interface Served extends ServedApi {
  readonly admin: string;
  readonly reader: string;
}

/** A daemon with nothing in it, its pages, a token that may do all and one that may only look. */
export async function servePages(given: Parameters<typeof serveApi>[0] = {}): Promise<Served> {
  if (!existsSync(join(root, 'dist', 'dashboard', 'pages.mjs'))) {
    throw new Error('the dashboard is not built; run "npm run build" first');
  }
  const api = await serveApi({ roles: ['http', 'mover'], ...given, http: { tokens: 'always', ...given.http } });
  const admin = await api.tokenOf({ name: 'ada', scopes: ['read', 'data', 'write', 'admin'] });
  const reader = await api.tokenOf({ name: 'reader', scopes: ['read'] });
  return { ...api, admin, reader };
}

/** A queue `emails` with six jobs that wait, one that waits for its retry, three dead ones, a closed tag and a set; a schedule `nightly`. */
export async function serveDashboard(): Promise<Served> {
  const api = await servePages();
  const { admin } = api;
  const jobs = [1, 2, 3, 4].map((n) => ({ id: `order/${n}`, delay: '1h', tags: ['shop'], data: { n, to: SECRET } }));
  const hostile = {
    id: MARKUP,
    name: 'hostile',
    tags: [MARKUP],
    delay: '2h',
    data: { [MARKUP]: SCRIPT, secret: SECRET },
  };
  const plain = { id: 'plain', delay: '3h', data: { deep: { list: [1, null, 'two'] }, secret: SECRET } };
  await must(api, 'POST /v1/queues/emails/batch/schedule', admin, { jobs: [...jobs, hostile, plain] });
  const at = `${new Date().getUTCFullYear() + 1}-03-25`;
  const schedule = {
    queue: 'emails',
    cron: '30 2 * * *',
    zone: 'Europe/Berlin',
    start: at,
    data: { [MARKUP]: SECRET },
  };
  await must(api, 'PUT /v1/schedules/nightly', admin, schedule);
  await buryJobs(api.redis.url, [
    { queue: 'emails', id: 'dead-1', data: SECRET, reason: `${SECRET} ${MARKUP}` },
    { queue: 'emails', id: 'dead-2', data: SECRET, reason: `${SECRET} ${MARKUP}` },
    { queue: 'emails', id: 'dead-3', data: SECRET, reason: `another ${SECRET}` },
  ]);
  await must(api, 'PUT /v1/queues/emails/sets/import-7', admin, { then: { data: {} } });
  await must(api, `POST /v1/queues/emails/tags/${encodeURIComponent(CLOSED_TAG)}/close`, admin, {
    for: '90d',
    reason: SCRIPT,
  });
  await failOnce(api.redis.url);
  return api;
}

/** Asks, and says what was refused. */
export async function must(api: ServedApi, what: string, token: string, body?: unknown) {
  const answered = await api.ask(what, { token, ...(body === undefined ? {} : { body }) });
  if (answered.status >= 300) throw new Error(`${what}: ${answered.status} ${answered.text}`);
  return answered.body;
}

/** A job that waits for its retry, with an error in its history. */
export async function failOnce(redis: string, queue = 'emails'): Promise<void> {
  const worker = createWorker(queue, () => Promise.reject(new Error(`${SECRET} ${SCRIPT}`)), { redis });
  const failed = new Promise<void>((resolve) => worker.events.on('job.retried', () => resolve()));
  await worker.start();
  const producer = createClient({ redis });
  const backoff = { kind: 'fixed', delayMs: 3_600_000, jitter: 'none' } as const;
  await producer.schedule(queue, { secret: SECRET }, { id: 'retries', attempts: 5, backoff });
  await failed;
  await worker.stop();
  await producer.close();
}

/** A window that has logged in. */
export async function enter(
  browser: TestBrowser,
  { url }: ServedApi,
  { token, ...options }: WindowOptions & { readonly token: string },
): Promise<Window> {
  const window = await browser.open(url, options);
  await window.page.goto(`${url}/`);
  await window.page.getByLabel('Token').fill(token);
  await window.page.getByRole('button', { name: 'Log in' }).click();
  await window.page.locator('.app').waitFor();
  return window;
}

/** Each page, by its address. */
export const ADDRESSES: Readonly<Record<string, string>> = {
  now: '#/now',
  queue: '#/queue/emails',
  workers: '#/workers',
  jobs: '#/jobs/emails?state=scheduled,ready,running',
  'jobs of all queues': '#/jobs',
  'what ran': '#/at',
  'job with markup': `#/job/emails/${encodeURIComponent(MARKUP)}`,
  'job that retries': '#/job/emails/retries',
  'dead job': '#/job/emails/dead-1',
  create: '#/create/emails',
  'dead letters': '#/dead/emails',
  'dead letters of all queues': '#/dead',
  'closed tags': '#/closed/emails',
  sets: '#/sets/emails',
  'why it was late': '#/late/emails',
  schedules: '#/schedules',
  schedule: '#/schedule/nightly',
  'a new schedule': '#/schedules/new',
  'a changed schedule': '#/schedules/edit/nightly',
  simulate: '#/simulate',
  'SLO report': '#/slo',
  audit: '#/audit',
  nowhere: '#/nowhere',
};

/** Shows a page, and waits until it has asked for all that it shows. */
export async function show({ page, settled }: Window, address: string): Promise<void> {
  await page.evaluate(`location.hash = ${JSON.stringify(address)}`);
  await settled();
  await page.getByRole('heading', { level: 1 }).waitFor();
  await settled();
}
