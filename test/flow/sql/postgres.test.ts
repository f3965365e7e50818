/** What only a server of PostgreSQL shows: transactions beside each other. Skipped on a machine that has none. */
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Client, createClient } from '../../../src/client/client.ts';
import { createClaims } from '../../../src/sql/claims.ts';
import { createInbox, createOutbox, createRelay, inboxTable, outboxTable, type Run } from '../../../src/sql/index.ts';
import { hasPostgres, startPostgres } from '../../support/postgres.mjs';
import { startRedis, type TestRedis } from '../../support/redis.ts';

const outbox = createOutbox({ dialect: 'postgres' });
const inbox = createInbox({ dialect: 'postgres' });
const onServer = test.skipIf(!hasPostgres());
let server: TestRedis;
let client: Client;
let database: Awaited<ReturnType<typeof startPostgres>>;
let pool: pg.Pool;

beforeAll(async () => {
  if (!hasPostgres()) return;
  database = await startPostgres();
  pool = database.pool();
  await pool.query(outboxTable('postgres') + inboxTable('postgres'));
  server = await startRedis();
  client = createClient({ redis: server.url });
});
afterAll(async () => {
  if (!hasPostgres()) return;
  await client.close();
  await server.stop();
  await pool.end();
  await database.stop();
});

const runOn =
  (on: pg.Pool | pg.PoolClient): Run<Promise<unknown[]>> =>
  async (text, params) =>
    (await on.query(text, params)).rows;
const relay = (run: Run = runOn(pool)) => createRelay({ dialect: 'postgres', run, redis: server.url });

/** A transaction that is open until it is ended by hand. */
async function opened() {
  const own = await pool.connect();
  await own.query('BEGIN');
  const end = async (how: 'COMMIT' | 'ROLLBACK') => {
    await own.query(how);
    own.release();
  };
  return { run: runOn(own), end };
}

onServer('a row that is written first and committed last is carried out, and was not seen before', async () => {
  const first = await opened();
  await outbox.schedule(first.run, 'mail', 1, { id: 'first', delay: '1h' });
  const second = await opened();
  await outbox.schedule(second.run, 'mail', 2, { id: 'second', delay: '1h' });
  await second.end('COMMIT');
  await using carrier = relay();
  expect(await carrier.pass()).toMatchObject({ done: 1 });
  expect(await client.get('mail', 'first')).toBeUndefined();
  await first.end('COMMIT');
  expect(await carrier.pass()).toMatchObject({ done: 1 });
  expect(await client.get('mail', 'first')).toMatchObject({ state: 'scheduled' });
});

onServer('a claim passes over rows that another claim holds, and leaves the later rows of their keys', async () => {
  for (const step of [1, 2]) await outbox.schedule(runOn(pool), 'mail', step, { id: 'held', delay: '1h' });
  await outbox.schedule(runOn(pool), 'mail', 3, { id: 'free', delay: '1h' });
  const other = await opened();
  await other.run(`SELECT seq FROM duestream_outbox WHERE key = 'held' ORDER BY seq LIMIT 1 FOR UPDATE`, []);
  await using carrier = relay();
  const before = Date.now();
  expect(await carrier.pass()).toEqual({ claimed: 1, done: 1, putOff: 0, refused: 0 });
  expect(Date.now() - before).toBeLessThan(10_000);
  expect(await client.get('mail', 'free')).toBeDefined();
  await other.end('ROLLBACK');
  expect([await carrier.pass(), await carrier.pass()]).toMatchObject([{ done: 1 }, { done: 1 }]);
  expect(await client.get('mail', 'held')).toMatchObject({ data: 1 });
});

/** Two claims beside each other, the first in a transaction that is open until the second has its rows or waits for it. */
async function claimTwice(broken: (text: string) => string) {
  await pool.query('DELETE FROM duestream_outbox');
  for (let nth = 0; nth < 6; nth += 1) await outbox.schedule(runOn(pool), 'mail', nth, { id: `lock${nth}` });
  const claimsOn = (on: pg.Pool | pg.PoolClient, me: string) => {
    const run = runOn(on);
    return createClaims({ dialect: 'postgres', run: (text, params) => run(broken(text), params) }, me);
  };
  const own = await pool.connect();
  await own.query('BEGIN');
  const place = { queue: 'mail', from: '', limit: 3 };
  const { rows: first } = await claimsOn(own, 'one').claim(place);
  let isAnswered = false;
  const claim = claimsOn(pool, 'two')
    .claim(place)
    .finally(() => {
      isAnswered = true;
    });
  const locked = async () =>
    (await pool.query("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'")).rows.length > 0;
  await expect.poll(async () => isAnswered || (await locked())).toBe(true);
  const hasWaited = !isAnswered;
  await own.query('COMMIT');
  own.release();
  const { rows: second } = await claim;
  const both = first
    .filter(({ seq }) => second.some((row) => row.seq === seq))
    .map(({ key }) => key)
    .toSorted();
  await pool.query('DELETE FROM duestream_outbox');
  return { both, hasWaited };
}

onServer('two claims at one moment have no row in common, and none waits for the other', async () => {
  expect(await claimTwice((text) => text)).toEqual({ both: [], hasWaited: false });
});

onServer.each([
  ['the claim takes no row lock', ' FOR UPDATE OF o SKIP LOCKED', '', { both: ['lock0', 'lock1', 'lock2'] }],
  ['the claim waits for rows of another one', ' SKIP LOCKED', '', { hasWaited: true }],
])('a planted bug is noticed: %s', async (_, words, instead, seen) => {
  const broken = (text: string) => text.replace(words, instead);
  expect(await claimTwice(broken)).toMatchObject(seen);
});

onServer('many relays at once claim each row once, and the rows of a key in their order', async () => {
  const run = runOn(pool);
  for (let nth = 0; nth < 300; nth += 1) {
    await outbox.schedule(run, 'many', nth, { id: `job${nth % 100}`, delay: '1h', ifExists: 'replace' });
  }
  const relays = Array.from({ length: 6 }, () =>
    createRelay({ dialect: 'postgres', run, redis: server.url, batch: 9 }),
  );
  for (let left = 300; left > 0; left = (await outbox.state(run)).rows) {
    await Promise.all(relays.map((one) => one.pass()));
  }
  expect(relays.reduce((sum, one) => sum + one.counts().done, 0)).toBe(300);
  await Promise.all(relays.map((one) => one.stop()));
  const { jobs } = await client.list('many', { limit: 200 });
  expect(jobs.length).toBe(100);
  for (const { id } of jobs) {
    expect((await client.get('many', id))?.data).toBe(200 + Number(id.slice('job'.length)));
  }
});

onServer(
  'a second start waits for the transaction of the first, and is the first where that was rolled back',
  async () => {
    for (const [how, isFirst] of [
      ['COMMIT', false],
      ['ROLLBACK', true],
    ] as const) {
      const job = { queue: 'charges', id: how, mark: 'x 1' };
      const [one, other] = [await opened(), await opened()];
      expect(await inbox.once(one.run, job)).toBe(true);
      let isAnswered = false;
      const answer = inbox.once(other.run, job).finally(() => {
        isAnswered = true;
      });
      await sleep(100);
      expect(isAnswered).toBe(false);
      await one.end(how);
      expect(await answer).toBe(isFirst);
      await other.end('COMMIT');
    }
  },
);
