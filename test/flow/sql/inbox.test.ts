/** A handler that is started again has its effect in a database once. */
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { type Client, createClient } from '../../../src/client/client.ts';
import { createDaemon, type Daemon } from '../../../src/daemon/daemon.ts';
import { createWorker } from '../../../src/daemon/embedded-worker.ts';
import { fixed } from '../../../src/job/backoff.ts';
import type { Job } from '../../../src/job/job.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { createInbox, inboxTable } from '../../../src/sql/index.ts';
import { createTestKit } from '../../../src/testing/index.ts';
import { inBatches } from '../../../src/worker/run/batch.ts';
import { databases, type TestDatabase } from '../../support/databases.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

const charges = defineQueue<{ cents: number }>('charges', { attempts: 2, backoff: fixed('10ms') });

describe.each(databases)('in $name', ({ dialect, open }) => {
  const inbox = createInbox({ dialect });
  let db: TestDatabase;
  let server: TestRedis;
  let daemon: Daemon;
  let client: Client;

  beforeAll(async () => {
    db = await open();
    await db.script(`${inboxTable(dialect)} CREATE TABLE effects (id TEXT NOT NULL)`);
    server = await startRedis();
    daemon = createDaemon({ redis: { url: server.url }, roles: ['mover'], http: { port: 0 } });
    await daemon.start();
    client = createClient({ redis: server.url });
  });
  beforeEach(async () => {
    await db.script('DELETE FROM effects; DELETE FROM duestream_inbox');
  });
  afterAll(async () => {
    await client.close();
    await daemon.stop();
    await server.stop();
    await db.close();
  });

  const effects = async () => (await db.run('SELECT id FROM effects', [])).length;

  /** Starts of a worker whose handler has its effect in a transaction; `then` says whether it fails afterwards. */
  async function serve(then: (job: Job, nth: number) => void) {
    const starts: { readonly job: Job; readonly isFirst: boolean }[] = [];
    const handler = async (job: Job) => {
      let isFirst = false;
      await db.transaction(async (run) => {
        isFirst = await inbox.once(run, job);
        if (isFirst) await run(`INSERT INTO effects (id) VALUES ('${job.id}')`, []);
      });
      // Only now: before the COMMIT nobody else sees the effect.
      starts.push({ job, isFirst });
      then(job, starts.length);
    };
    const worker = createWorker(charges, handler as never, { redis: server.url });
    await worker.start();
    onTestFinished(() => worker.stop());
    return starts;
  }

  test('a retry, an edit and a replay have the mark of the first start, and a new life has another', async () => {
    const starts = await serve((_job, nth) => {
      if (nth <= 4) throw new Error('after the COMMIT');
    });
    await client.schedule(charges, { cents: 5 }, { id: 'a' });
    await expect.poll(() => client.get(charges, 'a')).toMatchObject({ state: 'dead' });
    expect(starts.map(({ isFirst }) => isFirst)).toEqual([true, false]);
    await client.deadLetters.replay(charges, { job: 'a' }, { delay: '1h' });
    await client.edit(charges, 'a', { data: { cents: 6 }, tags: ['x'] });
    await client.runNow(charges, 'a');
    await expect.poll(() => client.get(charges, 'a')).toMatchObject({ state: 'dead' });
    expect(starts.map(({ isFirst }) => isFirst)).toEqual([true, false, false, false]);
    expect(new Set(starts.map(({ job }) => job.mark)).size).toBe(1);
    expect(await effects()).toBe(1);
    await client.deadLetters.remove(charges, { job: 'a' });
    const { status } = await client.schedule(charges, { cents: 5 }, { id: 'a' });
    expect(status).toBe('scheduled');
    await expect.poll(() => starts.length).toBe(5);
    expect([starts[4]?.isFirst, await effects()]).toEqual([true, 2]);
  });

  test('a start whose transaction was rolled back was none', async () => {
    await client.schedule(charges, { cents: 5 }, { id: 'b' });
    const starts = await serve(() => undefined);
    await expect.poll(() => starts.length).toBe(1);
    const [start] = starts;
    if (!start) throw new Error('there was no start');
    const job = { ...start.job, id: 'other', mark: start.job.mark };
    const work = db.transaction(async (run) => {
      expect(await inbox.once(run, job)).toBe(true);
      throw new Error('no');
    });
    await expect(work).rejects.toThrow('no');
    expect(await inbox.once(db.run, job)).toBe(true);
    expect(await inbox.once(db.run, job)).toBe(false);
    expect(await inbox.once(db.run, { ...job, queue: 'elsewhere' })).toBe(true);
  });

  test('a job of a foreign producer has a mark, and its next life another', async () => {
    const starts = await serve(() => undefined);
    const redis = await server.client();
    const sinceMs = Date.now() - 60_000;
    for (const [nth, dueMs] of [sinceMs, sinceMs + 1].entries()) {
      await redis.zadd('duestream:v1:{charges:0}:scheduled', dueMs, 'bare');
      await expect.poll(() => starts.length).toBe(nth + 1);
      await expect.poll(() => redis.hlen('duestream:v1:{charges:0}:runs')).toBe(0);
    }
    expect(starts.map(({ isFirst }) => isFirst)).toEqual([true, true]);
    expect(starts.every(({ job }) => job.bare && job.mark !== '')).toBe(true);
  });

  test('old rows are swept, by the clock of the database', async () => {
    const job = (id: string) => ({ queue: 'charges', id, mark: 'x 1' });
    for (let nth = 0; nth < 2100; nth += 700) {
      await db.transaction(async (run) => {
        for (let at = nth; at < nth + 700; at += 1) await inbox.once(run, job(`old${at}`));
      });
    }
    await db.run('UPDATE duestream_inbox SET made = made - 120000', []);
    await inbox.once(db.run, job('new'));
    expect(await inbox.sweep(db.run, { olderThan: '1m' })).toBe(2100);
    expect(await inbox.sweep(db.run, { olderThan: '1m' })).toBe(0);
    expect(await inbox.once(db.run, job('new'))).toBe(false);
    await expect(inbox.sweep(db.run, { olderThan: '1s' })).rejects.toMatchObject({ code: 'bad-input' });
    await expect(inbox.sweep(db.run, {} as never)).rejects.toMatchObject({ code: 'bad-input' });
  });

  test('of the jobs of a batch those are first that were never there, in one transaction', async () => {
    const job = (id: string) => ({ queue: 'charges', id, mark: 'x 1', cents: 5 });
    const [a, b, c] = [job('c'), job('a'), job('b')];
    const work = db.transaction(async (run) => {
      expect(await inbox.onceEach(run, [a, b])).toEqual([a, b]);
      throw new Error('no');
    });
    await expect(work).rejects.toThrow('no');
    await db.transaction(async (run) => {
      expect(await inbox.onceEach(run, [a, b])).toEqual([a, b]);
      expect(await inbox.onceEach(run, [a, c, b])).toEqual([c]);
      expect(await inbox.onceEach(run, [a, b, c])).toEqual([]);
      expect(await inbox.onceEach(run, [])).toEqual([]);
    });
    expect(await inbox.once(db.run, c)).toBe(false);
    const many = Array.from({ length: 1000 }, (_, nth) => job(`many${nth}`));
    expect(await inbox.onceEach(db.run, many)).toEqual(many);
    expect(() => inbox.onceEach(db.run, [...many, a])).toThrow('1001 jobs; allowed: a list of at most 1000 jobs');
    expect(() => inbox.onceEach(db.run, [{ ...a, mark: '' }])).toThrow(/the job that a handler was given/);
  });

  test('a batch has its effects once, whatever becomes of its starts', async () => {
    const sizes: number[] = [];
    const handler = inBatches<{ cents: number }>({ size: 3, wait: '1s' }, async (batch) => {
      await db.transaction(async (run) => {
        const first = await inbox.onceEach(run, batch.jobs);
        sizes.push(first.length);
        for (const { id } of first) await run(`INSERT INTO effects (id) VALUES ('${id}')`, []);
      });
      if (sizes.length === 1) throw new Error('after the COMMIT');
    });
    const worker = createWorker(charges, handler, { redis: server.url, concurrency: 1 });
    await worker.start();
    onTestFinished(() => worker.stop());
    const ids = ['batch-1', 'batch-2', 'batch-3'];
    await client.scheduleMany(
      charges,
      ids.map((id) => ({ id, data: { cents: 5 } })),
    );
    const states = async () => Promise.all(ids.map(async (id) => (await client.get(charges, id))?.state));
    await expect.poll(() => states()).toEqual(['done', 'done', 'done']);
    expect(sizes[0]).toBe(3);
    expect(sizes.slice(1).every((count) => count === 0)).toBe(true);
    expect(await effects()).toBe(3);
  });

  test('what is not the job of a handler is refused', () => {
    for (const job of [undefined, 5, { queue: 'charges', id: 'a' }, { queue: 'charges', id: 'a', mark: '' }]) {
      expect(() => inbox.once(db.run, job as never)).toThrow(/the job that a handler was given/);
    }
  });
});

test('a driver that has its rows at once is answered at once', async () => {
  const db = await databases.find(({ dialect }) => dialect === 'sqlite')?.open();
  if (!db) throw new Error('no SQLite');
  await db.script(inboxTable('sqlite'));
  const run = (text: string, params: (string | number | null)[]) => db.run(text, params) as readonly unknown[];
  const inbox = createInbox({ dialect: 'sqlite' });
  const job = { queue: 'charges', id: 'a', mark: 'x 1' };
  expect([inbox.once(run, job), inbox.once(run, job)]).toEqual([true, false]);
  await db.close();
});

test('a handler in the test kit sees a mark that its retries share', async () => {
  const marks: string[] = [];
  const kit = createTestKit({
    handlers: {
      charges: ({ mark }) => {
        marks.push(mark);
        if (marks.length === 1) throw new Error('no');
      },
    },
    queues: [charges],
  });
  await kit.client.schedule(charges, { cents: 5 }, { id: 'a' });
  await kit.advance('1h');
  await kit.client.schedule(charges, { cents: 6 }, { id: 'a' });
  await kit.advance('1h');
  const [first, retry, next] = marks;
  expect(marks.length).toBe(3);
  expect(first).toMatch(/^[0-9a-z]+ [0-9a-f]{16}$/);
  expect([retry === first, next === first]).toEqual([true, false]);
});
