/** A relay is killed between any two of its steps, loses replies, and has others beside it: each row is one job. */
import { describe, expect, onTestFinished, test } from 'vitest';
import { createDaemon } from '../../../src/daemon/daemon.ts';
import { createWorker } from '../../../src/daemon/embedded-worker.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { systemClock } from '../../../src/kernel/clock.ts';
import type { Log } from '../../../src/kernel/log.ts';
import { partitionKeys } from '../../../src/redis/keys.ts';
import { createRelay, type Run, type SqlValue } from '../../../src/sql/index.ts';
import { relayOver } from '../../../src/sql/relay.ts';
import { databases } from '../../support/databases.ts';
import { openLossyLine } from '../../support/lossy-line.ts';
import { useOutbox } from '../../support/outbox.ts';

const mail = defineQueue<{ step: number }>('mail');
const never = () => new Promise<never>(() => undefined);
const nothing = () => undefined;
const silent: Log = { debug: nothing, info: nothing, warn: nothing, error: nothing, child: () => silent };

/** Carries out statements until the one in whose middle the process is killed: before it arrived, or before its reply. */
function killedAt(run: Run, at: number, moment: 'before' | 'after') {
  let nth = -1;
  let tell = () => {};
  const died = new Promise<'killed'>((resolve) => {
    tell = () => resolve('killed');
  });
  const dying = async (text: string, params: SqlValue[]) => {
    nth += 1;
    const isLast = nth === at;
    if (nth > at || (isLast && moment === 'before')) {
      tell();
      return never();
    }
    const rows = await run(text, params);
    if (!isLast) return rows;
    tell();
    return never();
  };
  return { run: dying, died };
}

describe.each(databases)('in $name', (database) => {
  const { outbox, db, client, redis, relay, rows, expireClaims, server } = useOutbox(database);

  test('a relay that is killed at any of its steps, and another after it, make one job of each row', async () => {
    const starts = new Map<string, number>();
    const daemon = createDaemon({ redis: { url: server().url }, roles: ['mover'], http: { port: 0 } });
    await daemon.start();
    const worker = createWorker(mail, ({ id }) => void starts.set(id, (starts.get(id) ?? 0) + 1), {
      redis: server().url,
    });
    await worker.start();
    onTestFinished(async () => {
      await worker.stop();
      await daemon.stop();
    });
    let nth = 0;
    for (const at of [0, 1, 2, 3, 4, 5, 6, 7]) {
      for (const moment of ['before', 'after'] as const) {
        nth += 1;
        const [job, gone, poison] = [`job${nth}`, `gone${nth}`, `bad${nth}`];
        await outbox.schedule(db().run, mail, { step: nth }, { id: job });
        await outbox.schedule(db().run, mail, { step: nth }, { id: gone, delay: '1h' });
        await outbox.cancel(db().run, mail, gone);
        await outbox.cancel(db().run, mail, poison);
        await db().run(`UPDATE duestream_outbox SET body = '?' WHERE key = '${poison}'`, []);
        const { run, died } = killedAt(db().run, at, moment);
        const first = relay({ run });
        const passes = async () => {
          for (let pass = 0; pass < 4; pass += 1) await first.pass();
          return 'through';
        };
        const end = await Promise.race([passes(), died]);
        expect([at, end]).toEqual([at, 'killed']);
        // What it had scheduled has run and ended meanwhile.
        if (await client().get(mail, job)) await expect.poll(() => starts.get(job)).toBe(1);
        await expireClaims();
        const second = relay();
        for (let pass = 0; pass < 3; pass += 1) await second.pass();
        await expect.poll(() => starts.get(job)).toBe(1);
        expect(await client().get(mail, gone)).toMatchObject({ state: 'cancelled' });
        const left = await rows(outbox);
        expect(left).toMatchObject([{ key: poison, state: 'refused' }]);
        await outbox.remove(
          db().run,
          left.map(({ seq }) => seq),
        );
      }
    }
    expect([...starts.values()].every((times) => times === 1)).toBe(true);
    expect(starts.size).toBe(nth);
  });

  test('a reply of Redis is lost, and the job is there once', async () => {
    const line = await openLossyLine(server());
    onTestFinished(line.close);
    await outbox.schedule(db().run, mail, { step: 1 }, { id: 'a', delay: '1h' });
    await outbox.close(db().run, mail, 'invoice:7', { for: '1d' });
    const carrier = relay({ redis: line.url });
    for (const verb of ['schedule', 'close-tags']) {
      line.loseReplyTo(verb);
      await carrier.pass();
    }
    expect(line.lost()).toBeGreaterThan(0);
    expect(await rows(outbox)).toEqual([]);
    expect((await client().list(mail)).jobs.map(({ id }) => id)).toEqual(['a']);
    expect((await client().tags.list(mail)).count).toBe(1);
    await carrier.stop();
  });

  /** A relay whose calls were made, and that dies before it deletes the rows. */
  const killedBeforeDelete = () =>
    new Promise<void>((resolve) => {
      const run: Run = (text, params) => {
        if (!text.startsWith('DELETE')) return db().run(text, params);
        resolve();
        return never();
      };
      void relay({ run }).pass();
    });

  test('schedule, cancel and the same schedule again make a job, also when a relay is killed behind each of them', async () => {
    const at = new Date(Date.now() + 3_600_000);
    const again = () => outbox.schedule(db().run, mail, { step: 1 }, { id: 'reminder', at });
    await again();
    await outbox.cancel(db().run, mail, 'reminder');
    await again();
    for (const left of [2, 1, 0]) {
      await killedBeforeDelete();
      await expireClaims();
      expect(await relay().pass()).toMatchObject({ done: 1 });
      expect(await rows(outbox)).toHaveLength(left);
    }
    expect(await client().get(mail, 'reminder')).toMatchObject({ state: 'scheduled' });
  });

  test('a row that is carried out again does not bring back a job that somebody cancelled meanwhile', async () => {
    await outbox.schedule(db().run, mail, { step: 1 }, { id: 'gone', delay: '1h' });
    await killedBeforeDelete();
    await client().cancel(mail, 'gone');
    await expireClaims();
    expect(await relay().pass()).toMatchObject({ done: 1 });
    expect(await client().get(mail, 'gone')).toMatchObject({ state: 'cancelled' });
  });

  test('a claim runs out while its call is under way, and the other relay keeps its own', async () => {
    await outbox.schedule(db().run, mail, { step: 1 }, { id: 'a', delay: '1h' });
    const other = relay();
    const slow: Run = async (text, params) => {
      if (text.startsWith('DELETE')) {
        await expireClaims();
        // The other one has claimed the row, and is killed.
        await Promise.race([
          relay({ run: killedAt(db().run, 2, 'after').run }).pass(),
          new Promise((resolve) => setTimeout(resolve, 50)),
        ]);
      }
      return db().run(text, params);
    };
    expect(await relay({ run: slow }).pass()).toMatchObject({ done: 1 });
    expect(await rows(outbox)).toMatchObject([{ key: 'a', state: 'claimed', attempts: 2 }]);
    await expireClaims();
    expect(await other.pass()).toMatchObject({ done: 1 });
    expect(await rows(outbox)).toEqual([]);
    expect((await client().list(mail)).jobs.length).toBe(1);
  });

  test('no transaction is open while Redis is asked', async () => {
    await outbox.schedule(db().run, mail, { step: 1 }, { id: 'a', delay: '1h' });
    const said: string[] = [];
    const run: Run = async (text, params) => {
      const done = await db().run(text, params);
      said.push(text.split(' ', 1).join());
      // Would be refused within another one.
      await db().script('BEGIN; COMMIT');
      return done;
    };
    await relay({ run }).pass();
    expect(said).toEqual(['WITH', 'WITH', 'WITH', 'DELETE']);
  });

  test('a relay that was frozen behind its claim asks Redis for nothing', async () => {
    await outbox.schedule(db().run, mail, { step: 1 }, { id: 'a', delay: '1h' });
    let nowMs = 0;
    const clock = { ...systemClock, monotonicMs: () => nowMs };
    const run: Run = async (text, params) => {
      const done = await db().run(text, params);
      nowMs += 21_000;
      return done;
    };
    await expect(relay({ run, clock }).pass()).rejects.toMatchObject({ code: 'unavailable' });
    expect(await client().get(mail, 'a')).toBeUndefined();
    await expireClaims();
    expect(await relay().pass()).toMatchObject({ done: 1 });
  });

  test('it goes on through outages of the database and of Redis, and tells each once', async () => {
    const line = await openLossyLine(server());
    onTestFinished(line.close);
    line.shut(true);
    const lines: string[] = [];
    const note = (level: string) => (fields: object, message: string) =>
      void lines.push(`${level} ${message} ${JSON.stringify(fields)}`);
    const log: Log = {
      debug: note('debug'),
      info: note('info'),
      warn: note('warn'),
      error: note('error'),
      child: () => log,
    };
    let isGone = true;
    const run: Run = async (text, params) => {
      if (isGone) throw new Error('the database is gone');
      return db().run(text, params);
    };
    await outbox.schedule(db().run, mail, { step: 1 }, { id: 'a', delay: '1h' });
    const carrier = relay({ run, redis: line.url, every: '20ms', log, doneWindow: '2s' });
    carrier.start();
    await expect.poll(() => lines.join()).toContain('the database is gone');
    isGone = false;
    await expect.poll(async () => (await rows(outbox))[0]?.attempts).toBe(1);
    line.shut(false);
    await expect.poll(() => rows(outbox)).toEqual([]);
    expect(await client().get(mail, 'a')).toMatchObject({ state: 'scheduled' });
    await carrier.stop();
    expect(lines.filter((text) => text.startsWith('warn')).length).toBeLessThanOrEqual(3);
    expect(lines.at(-1)).toContain('carried out again');
    expect(() => carrier.start()).toThrow(/stopped/);
  });

  test('rows of a queue that Redis refuses hold up no row of another queue, and go when it takes them', async () => {
    const { run } = db();
    await client().schedule('bad', {}, { id: 'first', delay: '1h' });
    const { scheduled } = partitionKeys({ namespace: 'duestream', queue: 'bad', partition: 0 });
    await redis().set(scheduled, 'a person did this');
    const jobs = (name: string, count: number) =>
      Array.from({ length: count }, (_, nth) => ({ data: {}, id: `${name}${nth}`, delay: '1h' as const }));
    await outbox.scheduleMany(run, 'bad', jobs('b', 12));
    await outbox.scheduleMany(
      run,
      mail,
      [...jobs('g', 5)].map((job, step) => ({ ...job, data: { step } })),
    );
    const carrier = relay({ batch: 10 });
    expect(await carrier.pass()).toEqual({ claimed: 15, done: 5, putOff: 10, refused: 0 });
    expect((await client().count(mail)).count).toBe(5);
    expect(carrier.stalled()).toMatchObject([{ queue: 'bad', why: expect.stringContaining('WRONGTYPE') }]);
    const { queues } = await carrier.state();
    expect(queues).toMatchObject([{ queue: 'bad', rows: 12, refused: 0, putOff: 10 }]);
    expect((await rows(outbox)).map(({ state }) => state).sort()).toEqual([
      ...Array(10).fill('put-off'),
      'waits',
      'waits',
    ]);
    await redis().del(scheduled);
    await outbox.retry(run, 'all');
    carrier.start();
    await expect.poll(() => rows(outbox)).toEqual([]);
    expect(carrier.stalled()).toEqual([]);
  });

  test('a call that Redis never answers holds up no other queue, and its own rows keep their order', async () => {
    const { run } = db();
    for (const step of [1, 2]) await outbox.schedule(run, 'down', { step }, { id: 'a' });
    const made: string[] = [];
    const carrier = relayOver({
      place: { run, dialect: database.dialect },
      calls: {
        async schedule(queue: string, plans: readonly { readonly id: string }[]) {
          made.push(...plans.map(({ id }) => `${queue} ${id}`));
          return queue === 'down' ? never() : { answers: [], errors: new Map() };
        },
        cancel: never,
        close: never,
      } as never,
      stop: async () => undefined,
      clock: { ...systemClock, sleep: async () => true },
      everyMs: 10,
      batch: 10,
      log: silent,
    });
    carrier.start();
    await expect.poll(() => made).toEqual(['down a']);
    await outbox.schedule(run, mail, { step: 1 }, { id: 'g' });
    await expect.poll(() => made).toEqual(['down a', 'mail g']);
    await expect.poll(async () => (await rows(outbox)).map(({ state }) => state)).toEqual(['claimed', 'waits']);
    await carrier.stop();
  });

  test('a stop resolves though the database never answers, and what comes later is not sent', async () => {
    await outbox.schedule(db().run, mail, { step: 1 }, { id: 'a', delay: '1h' });
    let answer = () => {};
    const told = new Promise<void>((resolve) => {
      answer = resolve;
    });
    let isAsked = false;
    const run: Run = async (text, params) => {
      if (!text.includes('SKIP LOCKED') && !text.includes('attempts + 1')) return db().run(text, params);
      const claimed = await db().run(text, params);
      isAsked = true;
      await told;
      return claimed;
    };
    const clock = { ...systemClock, sleep: async () => true };
    {
      await using carrier = relay({ run, every: '20ms', clock });
      carrier.start();
      await expect.poll(() => isAsked).toBe(true);
      const stopping = carrier.stop();
      expect(carrier.stop()).toBe(stopping);
      await stopping;
    }
    answer();
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(await client().get(mail, 'a')).toBeUndefined();
    expect(await rows(outbox)).toMatchObject([{ key: 'a', state: 'claimed' }]);
    await expireClaims();
    expect(await relay().pass()).toMatchObject({ done: 1 });
  });

  test('wake ends the wait for the next pass', async () => {
    const carrier = relay({ every: '1m' });
    carrier.start();
    carrier.wake();
    await new Promise((resolve) => setTimeout(resolve, 50));
    await outbox.schedule(db().run, mail, { step: 1 }, { id: 'a', delay: '1h' });
    carrier.wake();
    await expect.poll(() => client().get(mail, 'a')).toBeDefined();
    await carrier.stop();
  });
});

test('a relay that nobody started leaves nothing open', async () => {
  await using idle = createRelay({ dialect: 'sqlite', run: () => [], redis: 'redis://127.0.0.1:1' });
  expect(idle.counts()).toEqual({ done: 0, putOff: 0, refused: 0 });
});
