/**
 * What batches save a database: `npm run bench -- batch`. Jobs that are due go into a table of PostgreSQL, one INSERT for each, and one INSERT for
 * each batch; both also with an inbox, in one transaction. Redis, a daemon, PostgreSQL and the worker are processes of this machine.
 * Needs the server of PostgreSQL. Writes `bench/results/batch.json` and its section of `docs/reference/measured.md`.
 *
 *     --jobs 10000   how many
 *     --rounds 3     medians of so many, in turns
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { root } from '../scripts/steps.mjs';
import { hasPostgres, startPostgres, transactionIn } from '../test/support/postgres.mjs';
import { median, rounded, settled, startDaemon, withRedis } from './parts.mjs';

/** @typedef {import('pg').Pool} Pool */
/** @typedef {{ data: { name: string }, queue: string, id: string, mark: string }} Job */

const JOBS = 10_000;
const CHUNK = 1000;
const SIZE = 100;
const LOOK_MS = 20;

const { createClient, createWorker, defineQueue, inBatches } = await import(`${root}dist/index.js`);
const { createInbox, inboxTable } = await import(`${root}dist/sql/index.js`);

const inbox = createInbox({ dialect: 'postgres' });
const people = defineQueue('people', { attempts: 1 });

/** Two batches at once, or as many single jobs as the pool has connections. */
const SINGLE = { concurrency: 10 };
const TWO = { concurrency: 2 };
const batches = { size: SIZE, wait: '200ms' };

/** @param {number} count */
const places = (count) => Array.from({ length: count }, (_, at) => `($${at + 1})`).join(', ');

/** Rows of one statement. @param {(text: string, params: unknown[]) => Promise<unknown>} run @param {readonly Job[]} jobs */
const insert = (run, jobs) =>
  run(
    `INSERT INTO people (name) VALUES ${places(jobs.length)}`,
    jobs.map(({ data }) => data.name),
  );

/** How a handler writes. @type {Readonly<Record<string, { options: object, handler: (pool: Pool) => unknown }>>} */
const WAYS = {
  'one by one': {
    options: SINGLE,
    handler: (pool) => (/** @type {Job} */ job) => insert((text, params) => pool.query(text, params), [job]),
  },
  'one INSERT a batch': {
    options: TWO,
    handler: (pool) =>
      inBatches(batches, (/** @type {{ jobs: readonly Job[] }} */ { jobs }) =>
        insert((text, params) => pool.query(text, params), jobs),
      ),
  },
  'one by one, with an inbox': {
    options: SINGLE,
    handler: (pool) => (/** @type {Job} */ job) =>
      transactionIn(pool, async (run) => {
        if (await inbox.once(run, job)) await insert(run, [job]);
      }),
  },
  'one INSERT a batch, with an inbox': {
    options: TWO,
    handler: (pool) =>
      inBatches(batches, (/** @type {{ jobs: readonly Job[] }} */ { jobs }) =>
        transactionIn(pool, async (run) => {
          const first = await inbox.onceEach(run, jobs);
          if (first.length > 0) await insert(run, first);
        }),
      ),
  },
};

/** @param {import('./bench.mjs').Asked} asked */
export async function run({ binary, number, refuse }) {
  if (!hasPostgres()) refuse('this machine has no server of PostgreSQL');
  const jobs = number('jobs', { otherwise: JOBS, from: CHUNK, to: 1_000_000 });
  const rounds = number('rounds', { otherwise: 3, from: 1, to: 100 });
  const postgres = await startPostgres();
  const pool = postgres.pool();
  await pool.query(`${inboxTable('postgres')} CREATE TABLE people (id BIGSERIAL PRIMARY KEY, name TEXT NOT NULL)`);
  try {
    const seen = Object.entries(WAYS).map(([how, way]) => ({ how, way, all: /** @type {number[]} */ ([]) }));
    for (let round = 0; round < rounds; round += 1) {
      for (const { way, all } of seen)
        all.push(await withRedis(binary, ({ url }) => drained({ url, pool, jobs, way })));
    }
    const rows = seen.map(({ how, all }) => {
      const seconds = median(all);
      return { how, jobs, seconds: rounded(seconds), perSecond: Math.round(jobs / seconds) };
    });
    const what = `${jobs.toLocaleString('en')} jobs that are due, in batches of ${SIZE} and two at once, beside ${SINGLE.concurrency} single handlers at once; medians of ${rounds} rounds in turns. The server of PostgreSQL runs without fsync, so a commit is cheap`;
    return [{ name: 'batch', what, rows }];
  } finally {
    await pool.end();
    await postgres.stop();
  }
}

/**
 * Seconds from the start of a worker until all rows are there.
 *
 * @param {{ url: string, pool: Pool, jobs: number, way: (typeof WAYS)[string] }} of
 */
async function drained({ url, pool, jobs, way }) {
  await pool.query('TRUNCATE people, duestream_inbox');
  const client = createClient({ redis: url });
  const daemon = await startDaemon(url);
  for (let from = 0; from < jobs; from += CHUNK) {
    const some = Array.from({ length: CHUNK }, (_, at) => ({ data: { name: `person ${from + at}` } }));
    await client.scheduleMany(people, some);
  }
  await settled();
  const worker = createWorker(people, way.handler(pool), { redis: url, ...way.options });
  let left = jobs;
  worker.events.on('job.completed', () => {
    left -= 1;
  });
  const sinceMs = performance.now();
  await worker.start();
  while (left > 0) await sleep(LOOK_MS);
  const seconds = (performance.now() - sinceMs) / 1000;
  const { rows } = await pool.query('SELECT count(*)::int AS there FROM people');
  if (rows[0]?.there !== jobs) throw new Error(`${rows[0]?.there} rows of ${jobs} jobs`);
  await worker.stop();
  await client.close();
  daemon.kill();
  return seconds;
}
