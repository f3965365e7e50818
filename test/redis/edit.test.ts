/** `edit`: a job that waits gets another record, if its record is still the one from which that was made. */
import { describe, expect, test } from 'vitest';
import { decodeRecord, decodeRun, decodeTombstone } from '../../src/job/codec.ts';
import { digestOf } from '../../src/job/record-header.ts';
import { item, only, T0, usePartition } from '../support/partition.ts';

const p = usePartition();
const stored = async (member: string) => (await p.redis.hget(p.keys.jobs, member)) ?? '';
const runOf = async (member: string) => decodeRun((await p.redis.hget(p.keys.runs, member)) ?? '');
const DUE = T0 + 9;

describe('a job that waits', () => {
  test('has the new content when it runs, and is due as before', async () => {
    await p.schedule('a', { dueMs: DUE, data: 1 });
    expect(await p.edit('j:a', { data: 2, name: 'other', options: { attempts: 7 } })).toEqual({ kind: 'ok' });
    expect(await p.picture()).toEqual({
      scheduled: { 'j:a': DUE },
      jobs: { 'j:a': 'record' },
      runs: { 'j:a': 'waiting' },
    });
    const reply = only(await p.start(await p.deliver({ nowMs: DUE })));
    if (reply.kind !== 'run') throw new Error(reply.kind);
    expect(decodeRecord(reply.record)).toMatchObject({ data: 2, name: 'other', attempts: 7, askedDueMs: DUE });
    expect(reply).toMatchObject({ attempts: 1, generation: 0 });
    expect(await p.count('edited')).toBe(1);
  });

  test('has the new content at a new due time, in one step, and the same edit again changes nothing', async () => {
    await p.schedule('a', { dueMs: DUE, data: 1 });
    const before = await stored('j:a');
    const edit = () => p.edit('j:a', { data: 2 }, { before, due: DUE + 50 });
    expect(await edit()).toEqual({ kind: 'ok' });
    expect(await p.picture()).toMatchObject({ scheduled: { 'j:a': DUE + 50 }, runs: { 'j:a': 'waiting' } });
    expect(await p.withoutWrite(edit)).toEqual({ kind: 'already' });
    expect(await p.run({ nowMs: DUE + 49 })).toEqual([]);
    const reply = only(await p.start(await p.deliver({ nowMs: DUE + 50 })));
    expect(reply.kind === 'run' && decodeRecord(reply.record).data).toBe(2);
  });

  test('that was moved when the call was cut off gets its record from the same call', async () => {
    await p.schedule('a', { dueMs: DUE, data: 1 });
    await p.redis.zadd(p.keys.scheduled, DUE + 50, 'j:a');
    expect(await p.edit('j:a', { data: 2 }, { due: DUE + 50 })).toEqual({ kind: 'ok' });
    expect(decodeRecord(await stored('j:a')).data).toBe(2);
  });

  test('in ready waits for its new time, and its entry is dropped', async () => {
    await p.schedule('a', { data: 1 });
    const deliveries = await p.deliver();
    expect(await p.edit('j:a', { data: 2 }, { due: DUE + 50 })).toEqual({ kind: 'ok' });
    expect(only(await p.start(deliveries))).not.toMatchObject({ kind: 'run' });
    expect(await p.picture()).toMatchObject({ scheduled: { 'j:a': DUE + 50 } });
  });

  test('for a retry keeps its attempts and its history', async () => {
    await p.retry(await p.running('a', { data: 1 }));
    const before = await runOf('j:a');
    expect(await p.edit('j:a', { data: 2 })).toEqual({ kind: 'ok' });
    expect(await runOf('j:a')).toEqual(before);
  });

  test('in ready has the new content when it is started', async () => {
    await p.schedule('a', { data: 1 });
    const deliveries = await p.deliver();
    expect(await p.edit('j:a', { data: 2 })).toEqual({ kind: 'ok' });
    const reply = only(await p.start(deliveries));
    expect(reply.kind === 'run' && decodeRecord(reply.record).data).toBe(2);
  });

  test('whose worker was lost leaves that start: its late end has no effect', async () => {
    const claim = await p.running('a', { data: 1 });
    const { deliveries } = await p.reclaim('w1');
    expect(await p.edit('j:a', { data: 2 })).toEqual({ kind: 'ok' });
    expect(await p.complete([claim])).toEqual(['fenced']);
    expect(await p.start(deliveries, { consumer: 'w2' })).toMatchObject([{ kind: 'run', attempts: 2 }]);
  });
});

describe('the call that made the job is known', () => {
  const asked = { dueMs: DUE, data: { text: 'x'.repeat(400) } };

  test('while the job lives, whatever its new length', async () => {
    await p.schedule('a', asked);
    await p.edit('j:a', { data: 2 });
    expect(await p.withoutWrite(() => p.schedule('a', asked))).toEqual({ kind: 'already', over: undefined });
    await p.edit('j:a', { data: { text: 'y'.repeat(500) } });
    expect(await p.withoutWrite(() => p.schedule('a', asked))).toEqual({ kind: 'already', over: undefined });
    expect(await p.schedule('a', { ...asked, data: 3 })).toEqual({ kind: 'exists', dueMs: DUE });
  });

  test('after it was cancelled', async () => {
    await p.schedule('a', asked);
    await p.edit('j:a', { data: 2 });
    await p.cancel('j:a');
    expect(await p.withoutWrite(() => p.schedule('a', asked))).toEqual({ kind: 'already', over: 'cancelled' });
  });

  test('after it ran, and after it died', async () => {
    await p.scheduleAll([item('a', asked), item('b', asked)]);
    await p.edit('j:a', { data: 2 });
    await p.edit('j:b', { data: 2 });
    const [a, b] = await p.run({ nowMs: DUE });
    if (!a || !b) throw new Error('two jobs were expected to run');
    await p.complete([a]);
    await p.bury(b);
    expect(await p.schedule('a', asked)).toEqual({ kind: 'already', over: 'done' });
    expect(await p.schedule('b', asked)).toEqual({ kind: 'already', over: 'dead' });
    expect(decodeTombstone(await stored('j:a'))).toMatchObject({ digest: digestOf(item('a', asked).record) });
  });

  test('after its dead letter was replayed', async () => {
    await p.schedule('a', asked);
    await p.edit('j:a', { data: 2 });
    await p.bury(only(await p.run({ nowMs: DUE })));
    const [deadLetter] = only(await p.redis.xrange(p.keys.dead, '-', '+'));
    await p.replay(deadLetter);
    expect(await p.schedule('a', asked)).toEqual({ kind: 'already', over: undefined });
  });

  test('but not after the job was replaced', async () => {
    await p.schedule('a', asked);
    await p.edit('j:a', { data: 2 });
    expect(await p.schedule('a', { ...asked, data: 3, mode: 'replace' })).toEqual({ kind: 'replaced' });
    expect(await p.schedule('a', asked)).toEqual({ kind: 'exists', dueMs: DUE });
  });
});

describe('is refused without a write', () => {
  test('when the record is what it would be, also while it runs', async () => {
    await p.schedule('a', { data: 1 });
    const before = await stored('j:a');
    await p.edit('j:a', { data: 2 });
    expect(await p.withoutWrite(() => p.edit('j:a', { data: 2 }, { before }))).toEqual({ kind: 'already' });
    await p.run();
    expect(await p.withoutWrite(() => p.edit('j:a', { data: 2 }, { before }))).toEqual({ kind: 'already' });
  });

  test('when somebody has changed it', async () => {
    await p.schedule('a', { data: 1 });
    const before = await stored('j:a');
    await p.edit('j:a', { data: 2 });
    expect(await p.withoutWrite(() => p.edit('j:a', { data: 3 }, { before }))).toEqual({ kind: 'changed' });
  });

  test('while the job runs, and when it is over or unknown', async () => {
    const { record } = item('a', { data: 1 });
    await p.running('runs', { data: 1 });
    await p.complete([await p.running('done', { data: 1 })]);
    for (const [id, reply] of [
      ['runs', { kind: 'running' }],
      ['done', { kind: 'over', over: 'done' }],
      ['nobody', { kind: 'unknown' }],
    ] as const) {
      expect(await p.withoutWrite(() => p.edit(`j:${id}`, { data: 2 }, { before: record }))).toEqual(reply);
    }
  });

  test('when the record is none, too large, or not made from the one that is there', async () => {
    await p.schedule('a', { data: 1 });
    const before = digestOf(await stored('j:a'));
    const send = async (record: string) => {
      const reply = await p.withoutWrite(() =>
        p.jobs.edit(p.ref, [{ member: 'j:a', before, record }], { bytesMax: 60 }),
      );
      return 'kind' in reply ? reply : only(reply);
    };
    expect(await send('.d0')).toEqual({ kind: 'bad-record' });
    expect(await send(item('a', { data: 2 }).record)).toEqual({ kind: 'bad-record' });
    expect(await send(item('a', { data: 'x'.repeat(100) }).record)).toEqual({ kind: 'too-large' });
  });

  test('when the partition has another generation', async () => {
    const { member, record } = item('a');
    const elsewhere = { ...p.ref, layoutGeneration: 1 };
    const reply = await p.withoutWrite(() =>
      p.jobs.edit(elsewhere, [{ member, before: '', record }], { bytesMax: 99 }),
    );
    expect(reply).toEqual({ kind: 'moved', layoutGeneration: 0 });
  });
});

test('what would be read beyond 640 KiB is to be sent again', async () => {
  const items = ['a', 'b', 'c'].map((id) => item(id, { data: 'x'.repeat(300_000) }));
  await p.scheduleAll(items);
  const asked = items.map(({ member, record }) => ({ member, before: digestOf(record), record: `${record} ` }));
  const reply = await p.jobs.edit(p.ref, asked, { bytesMax: 1_000_000 });
  expect(reply).toEqual([{ kind: 'bad-record' }, { kind: 'bad-record' }, { kind: 'later' }]);
});
