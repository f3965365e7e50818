/** Calls of an outbox become jobs when their transaction commits, in PostgreSQL and in SQLite. */
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { refsOfQueue } from '../../../src/client/queues/refs.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { createClaims } from '../../../src/sql/claims.ts';
import { createOutbox, createRelay, outboxTable, type Run, type SqlValue } from '../../../src/sql/index.ts';
import { databases } from '../../support/databases.ts';
import { useOutbox } from '../../support/outbox.ts';

const mail = defineQueue<{ step: number }>('mail');
const idle = { claimed: 0, done: 0, putOff: 0, refused: 0 };

describe.each(databases)('in $name', (database) => {
  const { dialect } = database;
  const { outbox, db, client, relay, rows, expireClaims, redis } = useOutbox(database);

  test('a job that is scheduled in a transaction is a job after its COMMIT, and its row is gone', async () => {
    const carrier = relay();
    const beforeMs = Date.now();
    await db().transaction(async (run) => {
      const job = await outbox.schedule(
        run,
        mail,
        { step: 1 },
        { id: 'a', delay: '1h', tags: ['invoice:7'], name: 'remind' },
      );
      expect(job).toMatchObject({ id: 'a', queue: 'mail' });
      expect(job.dueMs).toBeGreaterThanOrEqual(beforeMs + 3_600_000);
    });
    expect(await rows(outbox)).toMatchObject([
      { verb: 'schedule', queue: 'mail', key: 'a', attempts: 0, state: 'waits', error: undefined },
    ]);
    expect(await carrier.pass()).toEqual({ claimed: 1, done: 1, putOff: 0, refused: 0 });
    expect(await client().get(mail, 'a')).toMatchObject({
      state: 'scheduled',
      name: 'remind',
      data: { step: 1 },
      tags: ['invoice:7'],
    });
    expect(await rows(outbox)).toEqual([]);
    expect(await carrier.pass()).toEqual(idle);
    expect(carrier.counts()).toEqual({ done: 1, putOff: 0, refused: 0 });
  });

  test('many jobs are few statements, and each is one row and one job', async () => {
    const texts: string[] = [];
    const run: Run = (text, params) => {
      texts.push(text);
      return db().run(text, params);
    };
    const jobs = Array.from({ length: 401 }, (_, step) => ({ data: { step }, id: `job${step}`, delay: '1h' as const }));
    const made = await outbox.scheduleMany(run, mail, [...jobs, { data: { step: 401 } }]);
    expect(texts).toHaveLength(3);
    expect(made.slice(0, 2).map(({ id, queue }) => [id, queue])).toEqual([
      ['job0', 'mail'],
      ['job1', 'mail'],
    ]);
    expect(made).toHaveLength(402);
    expect(await outbox.state(db().run)).toMatchObject({ rows: 402 });
    const carrier = relay({ batch: 500 });
    expect(await carrier.pass()).toMatchObject({ done: 402 });
    expect(await client().get(mail, 'job400')).toMatchObject({ data: { step: 400 }, dueMs: made[400]?.dueMs });
    expect(await client().get(mail, made[401]?.id ?? '')).toMatchObject({ data: { step: 401 } });
    expect(await outbox.scheduleMany(run, mail, [])).toEqual([]);
  });

  test('of many jobs a wrong one is named by its place, and none is written', async () => {
    const { run } = db();
    const good = { data: { step: 1 } };
    const many = (jobs: readonly unknown[]) => outbox.scheduleMany(run, mail, jobs as readonly (typeof good)[]);
    const wrong: readonly (readonly [unknown, RegExp])[] = [
      [{ ...good, id: 'with space' }, /^jobs\[1\]: job id is "with space"; .*nothing was sent$/],
      [{ ...good, durability: 'fsynced' }, /^jobs\[1\]: .*durability/],
      [5, /^jobs\[1\]: the job is 5; allowed/],
      [{ ...good, debounce: { wait: '1h' } }, /^jobs\[1\]: debounce is given without id/],
    ];
    for (const [job, words] of wrong) expect(caught(() => many([good, job])).message).toMatch(words);
    expect(caught(() => many('ab' as never)).message).toMatch(/jobs is of type string; allowed: an array/);
    expect(await rows(outbox)).toEqual([]);
    const debounced = (step: number) => ({ data: { step }, id: 'a', debounce: { wait: '1h' } });
    await outbox.scheduleMany(run, mail, [debounced(1), debounced(2)]);
    const carrier = relay();
    for (const pass of [1, 2]) expect([pass, (await carrier.pass()).done]).toEqual([pass, 1]);
    expect(await client().get(mail, 'a')).toMatchObject({ data: { step: 2 } });
  });

  test('a transaction that is rolled back leaves nothing', async () => {
    const work = db().transaction(async (run) => {
      await outbox.schedule(run, mail, { step: 1 }, { id: 'a' });
      throw new Error('no');
    });
    await expect(work).rejects.toThrow('no');
    expect(await relay().pass()).toEqual(idle);
    expect(await client().get(mail, 'a')).toBeUndefined();
  });

  test('due time, id and bytes are those of the call, however late the relay comes', async () => {
    const { id, dueMs } = await outbox.schedule(db().run, 'mail', { step: 1 }, { delay: 60_000 });
    await new Promise((resolve) => setTimeout(resolve, 30));
    await relay().pass();
    expect(await client().get('mail', id)).toMatchObject({ dueMs, askedDueMs: dueMs });
    // The same call by a client is known.
    const again = await client().schedule('mail', { step: 1 }, { id, at: new Date(dueMs) });
    expect(again.status).toBe('already');
  });

  test('a row updates a job that waits by what its call names, and the same row once more changes nothing', async () => {
    const codec = { encode: (text: string) => `#${text}`, decode: (text: string) => text.slice(1) };
    const sealed = defineQueue('sealed', { codec });
    const update = { ifExists: 'update' } as const;
    await client().schedule(mail, { step: 1 }, { id: 'a', delay: '1h', tags: ['invoice:7'], attempts: 2 });
    await client().schedule(sealed, { step: 1 }, { id: 'b', at: new Date(2e12), name: 'remind' });
    const { dueMs } = await outbox.schedule(db().run, mail, { step: 2 }, { id: 'a', delay: '2h', ...update });
    await outbox.scheduleMany(db().run, sealed, [
      { data: { step: 2 }, id: 'b', ...update },
      { data: { step: 3 }, id: 'c', delay: '1h', ...update },
    ]);
    expect(await relay().pass()).toMatchObject({ claimed: 3, done: 3 });
    const job = { data: { step: 2 }, dueMs, tags: ['invoice:7'], options: { attempts: 2 } };
    expect(await client().get(mail, 'a')).toMatchObject(job);
    expect(await client().get(sealed, 'b')).toMatchObject({ data: '#{"step":2}', dueMs: 2e12, name: 'remind' });
    expect(await client().get(sealed, 'c')).toMatchObject({ data: '#{"step":3}' });
    // A relay that died after its call: another one makes it again.
    await outbox.schedule(db().run, mail, { step: 2 }, { id: 'a', at: new Date(dueMs), ...update });
    await createClaims({ dialect, run: db().run }, 'dead').claim({ queue: 'mail', from: '', limit: 1 });
    await expireClaims();
    expect(await relay().pass()).toMatchObject({ done: 1 });
    expect(await client().get(mail, 'a')).toMatchObject(job);
  });

  test('a job of the outbox is cancelled by it, behind its own row', async () => {
    await outbox.schedule(db().run, mail, { step: 1 }, { id: 'a', delay: '1h' });
    await outbox.cancel(db().run, mail, 'a');
    await outbox.schedule(db().run, mail, { step: 2 }, { id: 'b', delay: '1h' });
    const carrier = relay();
    // One row per key and pass.
    expect(await carrier.pass()).toMatchObject({ claimed: 2, done: 2 });
    expect(await carrier.pass()).toMatchObject({ claimed: 1, done: 1 });
    expect(await client().get(mail, 'a')).toMatchObject({ state: 'cancelled' });
    expect(await client().get(mail, 'b')).toMatchObject({ state: 'scheduled' });
  });

  test('tags are closed in all queues that were named, until the end that was named', async () => {
    await client().schedule(mail, { step: 1 }, { id: 'a', delay: '1h', tags: ['invoice:7'] });
    const given = { for: '90d', reason: 'paid', by: 'shop' };
    const { untilMs, tags } = await outbox.close(db().run, [mail, 'sms'], ['invoice:7', 'invoice:8'], given);
    expect([tags, Math.abs(untilMs - Date.now() - 90 * 86_400_000) < 10_000]).toEqual([
      ['invoice:7', 'invoice:8'],
      true,
    ]);
    expect(await relay().pass()).toMatchObject({ claimed: 2, done: 2 });
    expect(await client().get(mail, 'a')).toMatchObject({ state: 'cancelled' });
    for (const queue of [mail, 'sms']) {
      const { tags: closed } = await client().tags.list(queue);
      expect(closed.map(({ tag, reason, by }) => [tag, reason, by]).sort()).toEqual([
        ['invoice:7', 'paid', 'shop'],
        ['invoice:8', 'paid', 'shop'],
      ]);
      expect(closed.every((one) => Math.abs(one.untilMs - untilMs) < 5000)).toBe(true);
    }
  });

  test('debounce calls of an outbox become one job with the data of the last', async () => {
    const { run } = db();
    for (const step of [1, 2, 3])
      await outbox.schedule(run, mail, { step }, { id: 'a', debounce: { wait: '1h', max: '2h' } });
    const carrier = relay();
    for (const pass of [1, 2, 3]) expect([pass, (await carrier.pass()).done]).toEqual([pass, 1]);
    expect(await client().get(mail, 'a')).toMatchObject({ state: 'scheduled', data: { step: 3 } });
    const broken = caught(() => outbox.schedule(run, mail, { step: 4 }, { debounce: { wait: '1h' } }));
    expect(broken).toMatchObject({ code: 'bad-input' });
  });

  test('a member of a set goes through an outbox, and one of no set is refused', async () => {
    await client().sets.begin(mail, 'import-7', { then: { data: { step: 9 } } });
    const { id } = await outbox.schedule(db().run, mail, { step: 1 }, { id: 'row-1', set: 'import-7', delay: '1h' });
    await outbox.schedule(db().run, mail, { step: 2 }, { id: 'row-1', set: 'import-8', delay: '1h' });
    expect(await relay().pass()).toMatchObject({ done: 1, refused: 1 });
    expect(id).toBe('{set:import-7}row-1');
    expect(await client().get(mail, id)).toMatchObject({ state: 'scheduled' });
  });

  test('a debounce call that is made again puts no older data in the place of newer ones', async () => {
    const { run } = db();
    const options = { id: 'a', debounce: { wait: '1h' } };
    await outbox.schedule(run, mail, { step: 1 }, options);
    const [row] = await run('SELECT key, body FROM duestream_outbox', []);
    const { key, body } = row as { readonly key: string; readonly body: string };
    await relay().pass();
    await client().schedule(mail, { step: 2 }, options);
    // As a relay leaves it that was killed behind its call.
    await outbox.cancel(run, mail, key);
    const places = dialect === 'postgres' ? '$1' : '?';
    await run(`UPDATE duestream_outbox SET verb = 'schedule', attempts = 1, body = ${places}`, [body]);
    expect(await relay().pass()).toMatchObject({ done: 1 });
    expect(await client().get(mail, 'a')).toMatchObject({ data: { step: 2 } });
  });

  test('a new queue gets what its definition says', async () => {
    const wide = defineQueue<{ step: number }>('wide', { partitions: 4 });
    await outbox.schedule(db().run, wide, { step: 1 }, { id: 'a', delay: '1h' });
    await relay({ queues: [wide] }).pass();
    expect((await refsOfQueue({ redis: redis(), namespace: 'duestream' }, 'wide')).length).toBe(4);
  });

  test('a wrong call is refused before anything is written, with the words of a client', async () => {
    const { run } = db();
    const wrong = [{ delay: '2 fortnights' }, { id: 'with space' }, { tags: [] }, { dealy: '1m' }, { at: new Date(0) }];
    for (const options of wrong) {
      const said = await client()
        .schedule(mail, { step: 1 }, options)
        .catch((error) => error);
      const thrown = caught(() => outbox.schedule(run, mail, { step: 1 }, options));
      expect([thrown.code, thrown.message.replace(/to \d{4}-\S+/, '')]).toEqual([
        said.code,
        said.message.replace(/to \d{4}-\S+/, ''),
      ]);
    }
    const heavy = { step: 1, text: 'x'.repeat(300_000) };
    expect(caught(() => outbox.schedule(run, mail, heavy))).toMatchObject({ code: 'bad-input' });
    expect(caught(() => outbox.schedule(run, mail, { step: Number.NaN }))).toMatchObject({ code: 'bad-input' });
    const durable: object = { durability: 'fsynced' };
    expect(caught(() => outbox.schedule(run, mail, { step: 1 }, durable)).message).toContain('of the relay');
    expect(caught(() => outbox.cancel(run, mail, ''))).toMatchObject({ code: 'bad-input' });
    expect(caught(() => outbox.close(run, mail, '=x', { for: '1d' }))).toMatchObject({ code: 'bad-input' });
    expect(caught(() => outbox.close(run, mail, 'x', { for: 'ever' }))).toMatchObject({ code: 'bad-input' });
    expect(await rows(outbox)).toEqual([]);
  });

  test('data goes through the schema and the codec of its queue', async () => {
    const letters = defineQueue('letters', {
      jobs: { welcome: z.object({ to: z.string() }) },
      codec: {
        name: 'turn',
        encode: (text) => [...text].reverse().join(''),
        decode: (text) => [...text].reverse().join(''),
      },
    });
    const wrong: never = Object({ to: 5 }) as never;
    expect(caught(() => outbox.schedule(db().run, letters, wrong, { name: 'welcome' }))).toMatchObject({
      code: 'bad-input',
    });
    await outbox.schedule(db().run, letters, { to: 'ada' }, { name: 'welcome', id: 'a', delay: '1h' });
    await relay({ queues: [letters] }).pass();
    expect(await client().get(letters, 'a')).toMatchObject({ data: '}"ada":"ot"{', codec: 'turn' });
  });

  test('a row that can never be carried out stops its key alone, until a person has decided', async () => {
    const { run } = db();
    const insert = async (seq: number, key: string, body: string, verb = 'schedule') =>
      run(
        dialect === 'postgres'
          ? 'INSERT INTO duestream_outbox (seq, verb, queue, key, body, made) VALUES ($1, $2, $3, $4, $5, 0)'
          : 'INSERT INTO duestream_outbox (seq, verb, queue, key, body, made) VALUES (?, ?, ?, ?, ?, 0)',
        [seq, verb, 'mail', key, body],
      );
    const due = Date.now() + 3_600_000;
    const good = JSON.stringify({ record: `1${due.toString(36)}|{"d":{"step":1}}`, mode: 'keep' });
    await insert(1001, 'a', 'no JSON \u{1f4a9}');
    await insert(1002, 'a', good);
    await insert(1003, 'b', '{"record":"2x|","mode":"keep"}');
    await insert(1004, 'c', good, 'shout');
    await insert(1005, 'd', good);
    await insert(1006, 'e', good.replace('"keep"', '"update","names":["data","dat"]'));
    const carrier = relay();
    expect(await carrier.pass()).toEqual({ claimed: 5, done: 1, putOff: 0, refused: 4 });
    expect(await carrier.pass()).toEqual(idle);
    const [first, second] = await rows(outbox);
    expect(first).toMatchObject({ seq: 1001, state: 'refused', attempts: 1 });
    expect(first?.error).toContain('allowed: an object of JSON');
    expect(second).toMatchObject({ seq: 1002, state: 'waits', attempts: 0 });
    expect(await outbox.state(run)).toMatchObject({ rows: 5, refused: 4 });
    expect((await outbox.list(run, { refused: true, limit: 2 })).map(({ seq }) => seq)).toEqual([1001, 1003]);
    expect((await outbox.list(run, { after: 1003 })).map(({ seq }) => seq)).toEqual([1004, 1006]);
    expect((await outbox.list(run, { after: 1004 }))[0]?.error).toContain('allowed: a list of data, name, at');
    expect(await outbox.remove(run, [1001, 7])).toEqual([1001]);
    expect(await carrier.pass()).toMatchObject({ claimed: 1, done: 1 });
    expect(await client().get(mail, 'a')).toMatchObject({ state: 'scheduled', dueMs: due });
    expect(await outbox.retry(run, 'all')).toEqual([1003, 1004, 1006]);
    expect(await carrier.pass()).toMatchObject({ refused: 3 });
    expect(await outbox.retry(run, [1003])).toEqual([1003]);
    await expect(outbox.remove(run, [])).rejects.toMatchObject({ code: 'bad-input' });
  });

  test('a row of a lower number that is committed later is carried out', async () => {
    const { run } = db();
    const text = 'UPDATE duestream_outbox SET seq = 1 WHERE seq > 1';
    await outbox.schedule(run, mail, { step: 1 }, { id: 'late', delay: '1h' });
    const [held] = await run(`DELETE FROM duestream_outbox RETURNING body`, []);
    await outbox.schedule(run, mail, { step: 2 }, { id: 'early', delay: '1h' });
    const carrier = relay();
    await carrier.pass();
    await outbox.schedule(run, mail, { step: 1 }, { id: 'late', delay: '1h' });
    await run(text, []);
    expect(held).toBeDefined();
    expect(await carrier.pass()).toMatchObject({ done: 1 });
    expect(await client().get(mail, 'late')).toMatchObject({ state: 'scheduled' });
  });

  test('two relays at once make one job of each row', async () => {
    const { run } = db();
    for (let nth = 0; nth < 60; nth += 1)
      await outbox.schedule(run, mail, { step: nth }, { id: `job${nth}`, delay: '1h' });
    const [one, other] = [relay({ batch: 7 }), relay({ batch: 7 })];
    for (let nth = 0; nth < 5; nth += 1) await Promise.all([one.pass(), other.pass()]);
    expect(await rows(outbox)).toEqual([]);
    expect(one.counts().done + other.counts().done).toBe(60);
    expect((await client().list(mail, { limit: 100 })).jobs.length).toBe(60);
  });

  test('what a full queue has no room for is tried again later, and other queues go on', async () => {
    const small = defineQueue<{ step: number }>('small', { maxPending: 1 });
    for (const id of ['a', 'b']) await outbox.schedule(db().run, small, { step: 1 }, { id, delay: '1h' });
    await outbox.schedule(db().run, mail, { step: 1 }, { id: 'c', delay: '1h' });
    const carrier = relay({ queues: [small] });
    expect(await carrier.pass()).toEqual({ claimed: 3, done: 2, putOff: 1, refused: 0 });
    expect(await carrier.pass()).toEqual(idle);
    const [left] = await rows(outbox);
    expect(left).toMatchObject({ state: 'put-off', attempts: 1 });
    await client().cancel(small, left?.key === 'a' ? 'b' : 'a');
    await expireClaims();
    expect(await carrier.pass()).toMatchObject({ done: 1 });
  });

  test('a look for rows to claim touches a few of them, however many wait behind one that was refused', async () => {
    const { run } = db();
    const values = (nth: number) => `('schedule', 'mail', 'x', '{}', ${nth}), ('schedule', 'mail', 'y${nth}', '{}', 0)`;
    const many = Array.from({ length: 1000 }, (_, nth) => values(nth)).join(', ');
    for (let part = 0; part < 5; part += 1)
      await run(`INSERT INTO duestream_outbox (verb, queue, key, body, made) VALUES ${many} RETURNING seq`, []);
    await run("UPDATE duestream_outbox SET error = 'no' WHERE key = 'x'", []);
    if (dialect === 'postgres') await db().script('ANALYZE duestream_outbox');
    const claims = createClaims({ dialect, run: explained }, 'me');
    const plans: string[] = [];
    async function explained(text: string, params: SqlValue[]) {
      const how = dialect === 'postgres' ? 'EXPLAIN (ANALYZE, FORMAT JSON)' : 'EXPLAIN QUERY PLAN';
      plans.push(JSON.stringify(await run(`${how} ${text}`, params)).replaceAll('\\', ''));
      return text.startsWith('UPDATE') ? [] : run(text, params);
    }
    await claims.queues('');
    await claims.claim({ queue: 'mail', from: '', limit: 50 });
    expect(plans).toHaveLength(3);
    for (const plan of plans) {
      expect(plan).not.toMatch(/"Seq Scan"[^{}]*"Relation Name": ?"duestream_outbox"/);
      expect(plan).not.toMatch(/SCAN (o|duestream_outbox)/);
      const touched = [...plan.matchAll(/"Actual Rows": ?(\d+)|Rows Removed by (?:Filter|Index Recheck)": ?(\d+)/g)];
      expect(touched.length > 0).toBe(dialect === 'postgres');
      expect(touched.every(([, rows, removed]) => Number(rows ?? removed) <= 300)).toBe(true);
    }
  });

  test('the lag is the age of the oldest row that was not refused', async () => {
    const { run } = db();
    expect(await outbox.state(run)).toEqual({ rows: 0, refused: 0, lagMs: 0, queues: [] });
    await outbox.schedule(run, mail, { step: 1 }, { id: 'a' });
    await outbox.schedule(run, mail, { step: 1 }, { id: 'b' });
    await run(`UPDATE duestream_outbox SET made = made - 60000 WHERE key = 'a'`, []);
    await run(`UPDATE duestream_outbox SET made = made - 900000, error = 'x' WHERE key = 'b'`, []);
    const { lagMs, queues, ...counts } = await relay().state();
    expect(counts).toEqual({ rows: 2, refused: 1 });
    expect(queues).toMatchObject([{ queue: 'mail', rows: 2, refused: 1, putOff: 0 }]);
    expect([lagMs >= 60_000, lagMs < 120_000]).toEqual([true, true]);
  });
});

test('a driver that has its rows at once has its result at once', async () => {
  const db = await databases.find(({ dialect }) => dialect === 'sqlite')?.open();
  if (!db) throw new Error('no SQLite');
  await db.script(outboxTable('sqlite'));
  const run = (text: string, params: (string | number | null)[]) => db.run(text, params) as readonly unknown[];
  const outbox = createOutbox({ dialect: 'sqlite' });
  expect(outbox.schedule(run, mail, { step: 1 }, { id: 'a' }).id).toBe('a');
  const many = Array.from({ length: 450 }, (_, step) => ({ data: { step }, id: `m${step}` }));
  expect(outbox.scheduleMany(run, mail, many).map(({ id }) => id)).toEqual(many.map(({ id }) => id));
  expect(outbox.scheduleMany(run, mail, [])).toEqual([]);
  expect(run('SELECT count(*) AS count FROM duestream_outbox', [])).toEqual([{ count: 451 }]);
  expect(outbox.cancel(run, mail, 'a')).toEqual({ id: 'a', queue: 'mail' });
  expect(outbox.close(run, mail, 'x', { for: '1d' }).tags).toEqual(['x']);
  // Its row would come when the transaction is over.
  const slow = defineQueue<{ step: number }>('slow', {
    codec: { encode: async (text) => text, decode: (text) => text },
  });
  expect(caught(() => outbox.schedule(run, slow, { step: 1 })).message).toContain('run that returns a promise');
  expect(caught(() => outbox.scheduleMany(run, slow, [{ data: { step: 1 } }])).message).toContain('returns a promise');
  const later = async (text: string, params: (string | number | null)[]) => run(text, params);
  expect(await outbox.schedule(later, slow, { step: 1 }, { id: 'b' })).toMatchObject({ id: 'b' });
  expect(await outbox.scheduleMany(later, slow, [{ data: { step: 1 }, id: 'c' }])).toMatchObject([{ id: 'c' }]);
  const picky = defineQueue('picky', {
    jobs: { default: z.object({ step: z.number() }).refine(async ({ step }) => step > 0) },
  });
  const refused = outbox.scheduleMany(later, picky, [{ data: { step: 1 } }, { data: { step: 0 } }]);
  await expect(refused).rejects.toThrow(/^jobs\[1\]: /);
  await db.close();
});

test('what is no outbox and no relay is refused', () => {
  const redis = 'redis://127.0.0.1:1';
  const run = async () => [];
  const wrong: readonly (() => unknown)[] = [
    () => createOutbox({ dialect: 'mysql' as never }),
    () => createOutbox({ dialect: 'sqlite', table: 'x' } as never),
    () => createOutbox({ dialect: 'sqlite', horizon: '0s' }),
    () => createRelay({ dialect: 'sqlite', run: 5 as never, redis }),
    () => createRelay({ dialect: 'sqlite', run, redis, every: '0s' }),
    () => createRelay({ dialect: 'sqlite', run, redis, batch: 0 }),
    () => createRelay({ dialect: 'sqlite', run, redis, queue: mail } as never),
    () => outboxTable('oracle' as never),
  ];
  for (const make of wrong) expect(String(caught(make).code)).toMatch(/^bad-/);
});

function caught(call: () => unknown): { readonly code?: string; readonly message: string } {
  try {
    call();
  } catch (error) {
    if (error instanceof Error) return error;
  }
  return { message: 'nothing was thrown' };
}
