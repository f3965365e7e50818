/** `schedule`: a job comes into being, or the same call is recognised. */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { decodeRun, encodeRecord } from '../../src/job/codec.ts';
import type { JobHeaders } from '../../src/job/labels.ts';
import { sweep } from '../../src/redis/scripts/lease.ts';
import { firstSend, item, only, sentBefore, T0, usePartition } from '../support/partition.ts';

const p = usePartition();
const DUE = T0 + 5000;

describe('a new id', () => {
  test('gets a due in scheduled and a record, and nothing else', async () => {
    expect(await p.schedule('a', { dueMs: DUE })).toEqual({ kind: 'ok' });
    expect(await p.picture()).toEqual({ scheduled: { 'j:a': DUE }, jobs: { 'j:a': 'record' } });
    expect(await p.count('scheduled')).toBe(1);
  });

  test('may be due in the past or now: it is due at once', async () => {
    expect(await p.schedule('past', { dueMs: T0 - 1 })).toEqual({ kind: 'ok' });
    expect(await p.schedule('now', { dueMs: T0 })).toEqual({ kind: 'ok' });
  });

  test('is one of many in a call, and each is answered in its place', async () => {
    const far = item('far', { dueMs: T0 + 2000 });
    const big = item('big', { data: 'x'.repeat(200) });
    const replies = await p.scheduleAll([item('a'), far, item('a'), big, item('b')], {
      horizonMs: 1000,
      bytesMax: 100,
    });
    expect(replies).toEqual([
      { kind: 'ok' },
      { kind: 'bad-due', nowMs: T0 },
      { kind: 'already', over: undefined },
      { kind: 'too-large' },
      { kind: 'ok' },
    ]);
    expect(await p.picture()).toMatchObject({ scheduled: { 'j:a': T0, 'j:b': T0 } });
    expect(await p.count('scheduled')).toBe(2);
  });
});

describe('many jobs in one call', () => {
  test('are written together, 250 at a time: one command for the zset and one for the records', async () => {
    const items = Array.from({ length: 600 }, (_, n) => item(`job-${n}`, { dueMs: DUE + n }));
    await p.redis.config('RESETSTAT');
    expect(await p.scheduleAll(items)).toEqual(items.map(() => ({ kind: 'ok' })));
    const stats = await p.redis.info('commandstats');
    expect(['zadd', 'hset'].map((name) => new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(stats)?.[1])).toEqual([
      '3',
      '3',
    ]);
    expect(await p.redis.zcard(p.keys.scheduled)).toBe(600);
    expect(await p.redis.hlen(p.keys.jobs)).toBe(600);
    expect(await p.redis.zscore(p.keys.scheduled, 'j:job-599')).toBe(String(DUE + 599));
    expect(await p.count('scheduled')).toBe(600);
  });

  test('of one id are judged one after the other, as calls of their own would be', async () => {
    const all = [item('a'), item('a', { data: 2 }), item('a', { data: 2 }), item('b'), item('a')];
    const kinds = async (mode: 'keep' | 'replace') => (await p.scheduleAll(all, { mode })).map(({ kind }) => kind);
    expect(await kinds('keep')).toEqual(['ok', 'exists', 'exists', 'ok', 'already']);
    await p.redis.flushall();
    expect(await kinds('replace')).toEqual(['ok', 'replaced', 'already', 'ok', 'replaced']);
    expect(await p.redis.hget(p.keys.jobs, 'j:a')).toBe(item('a').record);
    expect(await p.count('scheduled')).toBe(2);
  });

  test('are new, replaced and new again after their end in the same call', async () => {
    await p.complete([await p.running('over')]);
    await p.retry(await p.running('waits'));
    const all = [
      item('new', { dueMs: DUE }),
      item('over', { data: 1, dueMs: DUE }),
      item('waits', { data: 1, dueMs: DUE }),
    ];
    const replies = await p.scheduleAll(all, { mode: 'replace' });
    expect(replies.map(({ kind }) => kind)).toEqual(['ok', 'ok', 'replaced']);
    const { runs, ...rest } = await p.picture();
    expect(rest).toEqual({
      scheduled: { 'j:new': DUE, 'j:over': DUE, 'j:waits': DUE },
      jobs: { 'j:new': 'record', 'j:over': 'record', 'j:waits': 'record' },
    });
    expect(decodeRun((await p.redis.hget(p.keys.runs, 'j:waits')) ?? '')).toMatchObject({ generation: 1, attempts: 0 });
  });

  test.each(['1763719000000.4', ' 1763719000000', '1.763719e12', '0x19aa4d1f6c0'])(
    'take a due of %j as a whole number',
    async (due) => {
      const { scheduled, jobs, runs, done, meta, wake, stale, tags, ready } = p.keys;
      const lua = readFileSync(new URL('../../lua/schedule.lua', import.meta.url), 'utf8');
      const { member, record } = item('a');
      const args = ['', '0', 'keep', '315360000000', '266240', member, record, due];
      expect(await p.redis.eval(lua, 9, scheduled, jobs, runs, done, meta, wake, stale, tags, ready, ...args)).toEqual([
        'ok',
      ]);
      expect(await p.redis.zscore(scheduled, member)).toBe(Number(due).toFixed(0));
    },
  );
});

describe('is refused without a write', () => {
  test.each([Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, -1])('when due is %s', async (dueMs) => {
    const bad = { ...item('a'), dueMs };
    expect(await p.withoutWrite(() => p.scheduleAll([bad]))).toEqual([{ kind: 'bad-due', nowMs: T0 }]);
  });

  test('when due is past the horizon by one millisecond, and not at the horizon', async () => {
    const call = { horizonMs: 1000 };
    const late = await p.withoutWrite(() => p.schedule('a', { dueMs: T0 + 1001, ...call }));
    expect(late).toEqual({ kind: 'bad-due', nowMs: T0 });
    expect(await p.schedule('a', { dueMs: T0 + 1000, ...call })).toEqual({ kind: 'ok' });
  });

  test('when the record is larger than the limit by one byte, and not at the limit', async () => {
    const bytes = item('a', { data: 'text' }).record.length;
    const call = { data: 'text', bytesMax: bytes - 1 };
    expect(await p.withoutWrite(() => p.schedule('a', call))).toEqual({ kind: 'too-large' });
    expect(await p.schedule('a', { ...call, bytesMax: bytes })).toEqual({ kind: 'ok' });
  });

  test('when the partition has no generation, and the layout was read some time ago: its queue may be gone', async () => {
    const settings = { mode: 'keep', horizonMs: 1e12, bytesMax: 1000, nowMs: T0 } as const;
    const call = (id: string, layoutAge?: 'remembered' | 'fresh') =>
      p.jobs.schedule(p.ref, [item(id)], { ...settings, ...(layoutAge ? { layoutAge } : {}) });
    expect(await p.withoutWrite(() => call('a', 'remembered'))).toEqual({ kind: 'moved', layoutGeneration: 0 });
    expect(await call('a')).toEqual([{ kind: 'ok' }]);
    expect(await p.meta('generation')).toBeNull();
    expect(await call('b', 'remembered')).toEqual({ kind: 'moved', layoutGeneration: 0 });
    expect(await call('b', 'fresh')).toEqual([{ kind: 'ok' }]);
    expect(await p.meta('generation')).toBe('0');
    expect(await call('c', 'remembered')).toEqual([{ kind: 'ok' }]);
    expect(await call('c', 'fresh')).toEqual([{ kind: 'already', over: undefined }]);
    await p.redis.hset(p.keys.meta, 'generation', 3);
    for (const layout of ['remembered', 'fresh'] as const) {
      expect(await p.withoutWrite(() => call('d', layout))).toEqual({ kind: 'moved', layoutGeneration: 3 });
    }
    expect(
      await p.jobs.schedule({ ...p.ref, layoutGeneration: 3 }, [item('d')], { ...settings, layoutAge: 'fresh' }),
    ).toEqual([{ kind: 'ok' }]);
    expect(await p.meta('generation')).toBe('3');
  });

  test('when the partition has another generation', async () => {
    await p.redis.hset(p.keys.meta, 'generation', 3);
    const call = { mode: 'keep', horizonMs: 1000, bytesMax: 1000, nowMs: T0 } as const;
    const reply = await p.withoutWrite(() => p.jobs.schedule(p.ref, [item('a')], call));
    expect(reply).toEqual({ kind: 'moved', layoutGeneration: 3 });
    expect(await p.jobs.schedule({ ...p.ref, layoutGeneration: 3 }, [item('a')], call)).toEqual([{ kind: 'ok' }]);
  });
});

describe('the same call again', () => {
  test('is already there while the job is scheduled, ready or running', async () => {
    const again = () => p.withoutWrite(() => p.schedule('a', { data: 1 }));
    await p.schedule('a', { data: 1 });
    expect(await again()).toEqual({ kind: 'already', over: undefined });
    const deliveries = await p.deliver();
    expect(await again()).toEqual({ kind: 'already', over: undefined });
    await p.start(deliveries);
    expect(await again()).toEqual({ kind: 'already', over: undefined });
  });

  test('is already there while the job waits for its next attempt', async () => {
    await p.retry(await p.running('a', { data: 1 }));
    expect(await p.withoutWrite(() => p.schedule('a', { data: 1 }))).toEqual({ kind: 'already', over: undefined });
  });

  test('says how the job ended when it is over, and does not bring it back', async () => {
    await p.complete([await p.running('done')]);
    await p.schedule('cancelled');
    await p.cancel('j:cancelled');
    await p.dead('dead');
    for (const over of ['done', 'cancelled', 'dead'] as const) {
      expect(await p.withoutWrite(() => p.schedule(over))).toEqual({ kind: 'already', over });
    }
  });

  test('is recognised in replace mode too', async () => {
    await p.schedule('a');
    expect(await p.withoutWrite(() => p.schedule('a', { mode: 'replace' }))).toEqual({
      kind: 'already',
      over: undefined,
    });
  });
});

describe('an update', () => {
  const news = { data: 'new', dueMs: DUE + 1, mode: 'update' } as const;
  const exists = (dueMs: number) => ({ kind: 'exists', dueMs });
  /** The same call again, and one that was sent before, find the same and change nothing. */
  const update = async (id: string, call: Parameters<typeof p.schedule>[1] = news) => {
    const all = [];
    for (const sends of [undefined, firstSend(), sentBefore(T0 - 1)]) {
      all.push(await p.withoutWrite(() => p.schedule(id, { ...call, ...(sends && { sends }) })));
    }
    expect(all).toEqual([all[0], all[0], all[0]]);
    return all[0];
  };

  test('makes a job that nobody knows, once', async () => {
    expect(await p.schedule('a', news)).toEqual({ kind: 'ok' });
    expect(await p.picture()).toMatchObject({ scheduled: { 'j:a': DUE + 1 } });
    expect(await update('a')).toEqual(exists(DUE + 1));
  });

  test('leaves each job that lives to its caller, and says when it is due, also one that the same call has made', async () => {
    await p.schedule('a', { dueMs: DUE });
    expect(await update('a')).toEqual(exists(DUE));
    expect(await update('a', { dueMs: DUE, mode: 'update' })).toEqual(exists(DUE));
    await p.schedule('b');
    await p.deliver();
    expect(await update('b')).toEqual(exists(T0));
    await p.running('c');
    expect(await update('c')).toEqual(exists(T0));
    await p.retry(await p.running('d'));
    expect(await update('d')).toMatchObject({ kind: 'exists' });
  });

  test('never makes a job again that is over: other data, and a cancel, make no difference', async () => {
    await p.complete([await p.running('done')]);
    await p.schedule('cancelled');
    await p.cancel('j:cancelled');
    await p.dead('dead');
    for (const over of ['done', 'cancelled', 'dead'] as const) {
      expect(await update(over)).toEqual({ kind: 'already', over });
      expect(await update(over, { mode: 'update' })).toEqual({ kind: 'already', over });
    }
  });

  test('makes a job whose tombstone is damaged', async () => {
    await p.redis.hset(p.keys.jobs, 'j:a', '.');
    expect(await p.schedule('a', news)).toEqual({ kind: 'ok' });
  });
});

describe('the same call, made after a cancel,', () => {
  test('is another one: the job runs, with any mode, and a tombstone of any other end is still of this call', async () => {
    for (const mode of ['keep', 'replace'] as const) {
      await p.schedule('a', { dueMs: DUE });
      await p.cancel('j:a');
      expect(await p.schedule('a', { dueMs: DUE, mode, sends: firstSend() })).toEqual({ kind: 'ok' });
      expect(await p.picture()).toMatchObject({ scheduled: { 'j:a': DUE }, jobs: { 'j:a': 'record' } });
      await p.cancel('j:a');
    }
    await p.complete([await p.running('b')]);
    expect(await p.schedule('b', { sends: firstSend() })).toEqual({ kind: 'already', over: 'done' });
  });

  test('is another one too when the job was ready: its old entry is dropped, and the new one runs', async () => {
    await p.schedule('a');
    await p.promote();
    await p.cancel('j:a');
    expect(await p.schedule('a', { sends: firstSend() })).toEqual({ kind: 'ok' });
    await p.promote();
    const started = await p.start(await p.read());
    expect(started.map(({ kind }) => kind).toSorted()).toEqual(['dropped', 'run']);
  });

  test('is not made by a repeat of what was sent before the cancel, also where the job was ready', async () => {
    await p.schedule('a', { dueMs: DUE, sends: firstSend() });
    await p.cancel('j:a', { nowMs: T0 + 10 });
    const repeat = { dueMs: DUE, nowMs: T0 + 20, sends: sentBefore(T0 + 10) };
    expect(await p.schedule('a', repeat)).toEqual({ kind: 'already', over: 'cancelled' });
    await p.schedule('b');
    await p.promote();
    await p.cancel('j:b', { nowMs: T0 + 10 });
    expect(await p.schedule('b', { ...repeat, dueMs: T0 })).toEqual({ kind: 'already', over: 'cancelled' });
  });

  test('is made by a repeat of what was sent after the cancel, once', async () => {
    await p.schedule('a', { dueMs: DUE });
    await p.cancel('j:a', { nowMs: T0 + 10 });
    const repeat = { dueMs: DUE, nowMs: T0 + 20, sends: sentBefore(T0 + 11) };
    expect(await p.schedule('a', repeat)).toEqual({ kind: 'ok' });
    expect(await p.schedule('a', repeat)).toEqual({ kind: 'already', over: undefined, dueMs: DUE });
    await p.cancel('j:a', { nowMs: T0 + 30 });
    expect(await p.schedule('a', { ...repeat, nowMs: T0 + 40 })).toEqual({ kind: 'already', over: 'cancelled' });
  });

  test('is told that the job exists, or runs, while a worker has not stopped it yet', async () => {
    await p.running('a');
    await p.cancel('j:a');
    expect(await p.schedule('a', { sends: firstSend() })).toEqual({ kind: 'exists', dueMs: T0 });
    expect(await p.schedule('a', { mode: 'replace', sends: firstSend() })).toEqual({ kind: 'running' });
  });
});

describe('the same call in replace mode', () => {
  const back = { dueMs: DUE, mode: 'replace' } as const;

  test('takes a job back that was rescheduled, and says its due time where it is only a repeat', async () => {
    await p.schedule('a', back);
    await p.reschedule('j:a', DUE + 300);
    expect(await p.schedule('a', { ...back, sends: sentBefore(T0) })).toEqual({
      kind: 'already',
      over: undefined,
      dueMs: DUE + 300,
    });
    expect(await p.schedule('a', { ...back, mode: 'keep', sends: firstSend() })).toMatchObject({ dueMs: DUE + 300 });
    expect(await p.schedule('a', { ...back, sends: firstSend() })).toEqual({ kind: 'replaced' });
    expect(await p.picture()).toMatchObject({ scheduled: { 'j:a': DUE } });
    expect(await p.schedule('a', { ...back, sends: firstSend() })).toMatchObject({ kind: 'already', dueMs: DUE });
  });

  test('takes the data back of a job that was edited', async () => {
    await p.schedule('a', { ...back, data: 1 });
    await p.edit('j:a', { data: 2 });
    expect(await p.schedule('a', { ...back, data: 1, sends: firstSend() })).toEqual({ kind: 'replaced' });
    expect(await p.redis.hget(p.keys.jobs, 'j:a')).toBe(item('a', { dueMs: DUE, data: 1 }).record);
  });

  test('leaves a job alone that waits for its next attempt', async () => {
    await p.retry(await p.running('a'));
    expect(await p.schedule('a', { mode: 'replace', sends: firstSend() })).toMatchObject({
      kind: 'already',
      dueMs: T0 + 1000,
    });
  });
});

describe('another call for a live id', () => {
  test('is told the due of the job that exists', async () => {
    await p.schedule('a', { dueMs: DUE });
    expect(await p.withoutWrite(() => p.schedule('a', { data: 'other' }))).toEqual({ kind: 'exists', dueMs: DUE });
  });

  test('is told the due that was asked for once the job is ready or running', async () => {
    await p.schedule('a', { dueMs: T0 - 7 });
    const deliveries = await p.deliver();
    const other = () => p.withoutWrite(() => p.schedule('a', { data: 'other' }));
    expect(await other()).toEqual({ kind: 'exists', dueMs: T0 - 7 });
    await p.start(deliveries);
    expect(await other()).toEqual({ kind: 'exists', dueMs: T0 - 7 });
  });

  test('is told the due of the next attempt when the job waits for it', async () => {
    await p.retry(await p.running('a'), { delayMs: 3000 });
    expect(await p.schedule('a', { data: 'other' })).toEqual({ kind: 'exists', dueMs: T0 + 3000 });
  });
});

describe('another call for an id that is over', () => {
  test('starts a new life with nothing of the old one', async () => {
    await p.complete([await p.running('a')]);
    expect(await p.schedule('a', { data: 'other', dueMs: DUE })).toEqual({ kind: 'ok' });
    expect(await p.picture()).toEqual({ scheduled: { 'j:a': DUE }, jobs: { 'j:a': 'record' } });
    expect(await p.count('scheduled')).toBe(2);
  });

  test('with the same data and another due is another call', async () => {
    await p.complete([await p.running('a')]);
    expect(await p.schedule('a', { dueMs: T0 + 1 })).toEqual({ kind: 'ok' });
  });

  test('after a cancel in ready lets neither the old entry nor two entries run', async () => {
    await p.schedule('a');
    const old = await p.deliver();
    await p.cancel('j:a');
    expect(await p.schedule('a', { data: 'new' })).toEqual({ kind: 'ok' });
    expect(await p.start(old)).toEqual([{ kind: 'dropped' }]);
    expect(await p.run()).toHaveLength(1);
  });
});

describe('replace', () => {
  test('of a scheduled job takes the new due and record', async () => {
    await p.schedule('a', { data: 'old', dueMs: DUE });
    expect(await p.schedule('a', { data: 'new', dueMs: T0, mode: 'replace' })).toEqual({ kind: 'replaced' });
    expect(await p.picture()).toEqual({ scheduled: { 'j:a': T0 }, jobs: { 'j:a': 'record' } });
    expect(await p.redis.hget(p.keys.jobs, 'j:a')).toContain('"new"');
    expect(await p.count('scheduled')).toBe(1);
  });

  test('of a job that waits for its next attempt begins a new generation with fresh budgets', async () => {
    await p.retry(await p.running('a'));
    expect(await p.schedule('a', { data: 'new', mode: 'replace' })).toEqual({ kind: 'replaced' });
    const run = decodeRun((await p.redis.hget(p.keys.runs, 'j:a')) ?? '');
    expect(run).toMatchObject({ generation: 1, attempts: 0, failures: 0, crashes: 0, history: [], entry: undefined });
    const claim = await p.run();
    expect(claim).toHaveLength(1);
  });

  test('of a ready job puts it back: its entry is dropped and the new one runs once', async () => {
    await p.schedule('a', { data: 'old' });
    const old = await p.deliver();
    expect(await p.schedule('a', { data: 'new', dueMs: DUE, mode: 'replace' })).toEqual({ kind: 'replaced' });
    expect(await p.start(old)).toEqual([{ kind: 'dropped' }]);
    expect(await p.picture()).toEqual({ scheduled: { 'j:a': DUE }, jobs: { 'j:a': 'record' } });
    expect(await p.run({ nowMs: DUE })).toHaveLength(1);
  });

  test('of a running job is refused', async () => {
    await p.running('a');
    expect(await p.withoutWrite(() => p.schedule('a', { data: 'new', mode: 'replace' }))).toEqual({ kind: 'running' });
  });

  test('of an id that is over, or was never there, is a new job', async () => {
    await p.complete([await p.running('a')]);
    expect(await p.schedule('a', { data: 'new', mode: 'replace' })).toEqual({ kind: 'ok' });
    expect(await p.schedule('b', { mode: 'replace' })).toEqual({ kind: 'ok' });
  });
});

describe('what leaves ready for a new life', () => {
  const noted = () => p.redis.zrange(p.keys.stale, '0', '-1', 'WITHSCORES');
  /** Starts and ends one after the other whatever ready holds, without a done window; the kinds of the starts. */
  async function work(): Promise<readonly string[]> {
    const kinds: string[] = [];
    for (const delivery of await p.read()) {
      const [reply] = await p.start([delivery], { windowMs: 0 });
      kinds.push(reply?.kind ?? 'none');
      if (reply && 'token' in reply) await p.complete([{ ...delivery, token: reply.token }], { windowMs: 0 });
    }
    return kinds;
  }

  test('is noted, and of its two entries one runs and the other goes in silence', async () => {
    await p.schedule('a');
    await p.promote();
    expect(await noted()).toEqual([]);
    expect(await p.schedule('a', { data: 1, mode: 'replace', nowMs: T0 + 7 })).toEqual({ kind: 'replaced' });
    expect(await noted()).toEqual(['j:a', String(T0 + 7)]);
    await p.promote();
    expect(await work()).toEqual(['run', 'dropped']);
    expect([await p.picture(), await p.count('refused')]).toEqual([{}, 0]);
  });

  test('goes in silence too when it is cancelled then', async () => {
    await p.schedule('a');
    await p.promote();
    await p.schedule('a', { data: 1, mode: 'replace' });
    expect(await p.cancel('j:a', { windowMs: 0 })).toEqual({ kind: 'cancelled' });
    expect(await work()).toEqual(['dropped']);
    expect([await p.picture(), await p.count('refused')]).toEqual([{}, 0]);
  });

  test('is no false dead letter either when its other entry waits for longer than the done window', async () => {
    await p.schedule('a');
    await p.promote();
    await p.schedule('a', { data: 1, mode: 'replace' });
    await p.promote();
    const [first, second] = await p.read();
    if (!first || !second) throw new Error('there are two entries');
    await p.complete(await p.claim([first]));
    const limits = { batch: 100, windowMs: 0, tombstonesMax: 0, floorMs: 0, retentionMs: 1e12, deadLettersMax: 100 };
    await sweep(p.redis, p.ref, { term: await p.lead(), limits, nowMs: T0 + 1 });
    expect(await p.start([second])).toEqual([{ kind: 'dropped' }]);
    expect(await p.picture()).toEqual({});
  });

  test('has a note for each of its entries, and each goes with its entry while others wait', async () => {
    await p.schedule('waits');
    await p.promote();
    await p.schedule('a');
    await p.promote();
    for (let times = 1; times <= 5; times += 1) {
      await p.reschedule('j:a', T0 + times);
      expect(await p.redis.zcard(p.keys.stale)).toBe(times);
      await p.promote({ nowMs: T0 + times });
    }
    const [waits, ...entries] = await p.read();
    expect(waits?.member).toBe('j:waits');
    for (const [nth, entry] of entries.entries()) {
      const [reply] = await p.start([entry], { windowMs: 0 });
      if (reply?.kind === 'run') await p.complete([{ ...entry, token: reply.token }], { windowMs: 0 });
      expect([reply?.kind, await p.redis.zcard(p.keys.stale)]).toEqual([nth === 0 ? 'run' : 'dropped', 5 - nth]);
    }
    expect(await p.count('refused')).toBe(0);
  });

  test('is noted by replay too, where an entry of the life between waits: no dead letter without a window', async () => {
    const deadLetter = await p.dead('a');
    await p.schedule('a', { data: 'again' });
    await p.promote();
    await p.cancel('j:a', { windowMs: 0 });
    expect(await p.replay(deadLetter)).toMatchObject({ kind: 'ok' });
    await p.promote();
    expect(await work()).toEqual(['run', 'dropped']);
    expect([await p.picture(), await p.count('refused'), await noted()]).toEqual([{}, 0, []]);
  });

  test('of a start that is acknowledged and held has a note until it is let go', async () => {
    const claim = await p.running('a');
    await p.complete([claim], { hold: true });
    expect(await noted()).toEqual(['j:a', String(T0)]);
    await p.schedule('a', { data: 2 });
    expect(await p.redis.zcard(p.keys.stale)).toBe(1);
    await p.cancel('j:a', { windowMs: 0 });
    await p.release(await p.read());
  });

  test('has no note any more when its worker hands the entry back', async () => {
    await p.schedule('a');
    const deliveries = await p.deliver();
    await p.reschedule('j:a', T0 + 5000);
    expect(await p.release(deliveries)).toEqual(['dropped']);
    expect(await noted()).toEqual([]);
    await p.cancel('j:a');
  });

  test('is noted when a job is cancelled in ready, once, though its tombstone is overwritten', async () => {
    await p.schedule('a');
    await p.promote();
    await p.cancel('j:a', { windowMs: 0 });
    expect(await p.schedule('a', { data: 1 })).toEqual({ kind: 'ok' });
    expect(await noted()).toEqual(['j:a', String(T0)]);
    await p.promote();
    expect(await work()).toEqual(['run', 'dropped']);
  });

  test('is not noted when nothing of it is in ready', async () => {
    await p.schedule('a', { dueMs: T0 + 50 });
    await p.schedule('a', { data: 1, mode: 'replace' });
    await p.complete(await p.run());
    await p.schedule('a', { data: 2 });
    await p.retry(only(await p.run()));
    await p.schedule('a', { data: 3, mode: 'replace' });
    expect(await noted()).toEqual([]);
  });
});

describe('the wake-up', () => {
  test('is lowered once by a burst, and published once', async () => {
    await p.promote();
    const heard = await p.nudgesOf(async () => {
      for (const id of ['a', 'b', 'c', 'd']) await p.schedule(id, { dueMs: DUE });
      await p.scheduleAll([item('e', { dueMs: DUE }), item('f', { dueMs: DUE + 1 })]);
    });
    expect(heard).toEqual([String(DUE)]);
    expect(await p.meta('wake')).toBe(String(DUE));
  });

  test('is the soonest of a bulk call, and is lowered again only by a sooner one', async () => {
    await p.promote();
    const heard = await p.nudgesOf(async () => {
      await p.scheduleAll([item('a', { dueMs: DUE + 9 }), item('b', { dueMs: DUE })]);
      await p.schedule('c', { dueMs: DUE + 1 });
      await p.schedule('d', { dueMs: DUE - 1 });
    });
    expect(heard).toEqual([String(DUE), String(DUE - 1)]);
  });

  test('is left alone while nobody leads, and while the leader says it does not sleep', async () => {
    expect(await p.nudgesOf(() => p.schedule('a'))).toEqual([]);
    await p.redis.hset(p.keys.meta, 'wake', 0);
    expect(await p.nudgesOf(() => p.schedule('b'))).toEqual([]);
  });
});

describe('the same call with other headers', () => {
  const LONG = 'x'.repeat(400);
  const withHeaders = (data: unknown, ...headers: (JobHeaders | undefined)[]) =>
    headers.map((one) => {
      const made = item('a', { dueMs: DUE, data });
      const body = made.record.slice(made.record.indexOf('|') + 1);
      return { ...made, record: encodeRecord(DUE, body, one ? { headers: one } : undefined) };
    });

  test.each([1, LONG])('is already carried out, with the data %j, while the job waits', async (data) => {
    const all = withHeaders(data, { a: '1' }, { a: '2' }, { b: '1'.repeat(300) }, undefined, { a: '1' });
    for (const [nth, one] of all.entries()) {
      expect(await p.scheduleAll([one])).toEqual([nth === 0 ? { kind: 'ok' } : { kind: 'already', over: undefined }]);
      expect(await p.scheduleAll([one], { mode: 'replace' })).toEqual([{ kind: 'already', over: undefined }]);
    }
    expect(await p.redis.hget(p.keys.jobs, 'j:a')).toBe(all[0]?.record);
    const others = withHeaders([data], { a: '1' }, undefined);
    expect(await p.scheduleAll(others)).toEqual(others.map(() => ({ kind: 'exists', dueMs: DUE })));
  });

  test.each([1, LONG])('is already carried out, with the data %j, where the first one had none', async (data) => {
    const [plain, other] = withHeaders(data, undefined, { a: '1' });
    expect(await p.scheduleAll([plain, other].flatMap((one) => one ?? []))).toEqual([
      { kind: 'ok' },
      { kind: 'already', over: undefined },
    ]);
  });

  test('is already carried out after the end', async () => {
    const all = withHeaders(LONG, { a: '1' }, { a: '2' }, undefined);
    await p.scheduleAll(all.slice(0, 1));
    expect((await p.cancel('j:a')).kind).toBe('cancelled');
    expect(await p.scheduleAll(all)).toEqual(all.map(() => ({ kind: 'already', over: 'cancelled' })));
    expect(await p.scheduleAll(withHeaders(2, { a: '1' }))).toEqual([{ kind: 'ok' }]);
  });
});
