/** The history of a queue on the command line: switched on, listed, and told by `show` after everything else is gone. */
import { beforeEach, expect, test } from 'vitest';
import { createEmitter } from '../../../src/job/events.ts';
import { encodeNote } from '../../../src/job/past.ts';
import { parseSettings } from '../../../src/job/queue-settings.ts';
import { systemClock } from '../../../src/kernel/clock.ts';
import { createRecorder } from '../../../src/mover/chores/recorder.ts';
import { controlKeys } from '../../../src/redis/keys.ts';
import { addKept } from '../../../src/redis/read/minutes.ts';
import { declareQueue } from '../../../src/redis/scripts/queues.ts';
import { useCli } from '../../support/cli.ts';
import { failure, only, T0, usePartition } from '../../support/partition.ts';

const history = parseSettings({ history: { result: true } }).history;
if (!history) throw new Error('no history');
const cli = useCli();
const the = usePartition({ history });

beforeEach(async () => {
  await declareQueue(the.redis, { namespace: 't', queue: 'q', partitions: 1 });
});

const due = (...args: readonly string[]) => cli.run([...args, '--redis', the.server.url, '--namespace', 't']);
const answer = async (...args: readonly string[]) => JSON.parse((await due(...args, '--json')).out);
const switchOn = () => due('queues', 'set', 'q', '--history', '7d', '--history-max', '500', '--history-result');

async function done(id: string, returned: unknown, atMs: number): Promise<void> {
  const claim = await the.running(id);
  await the.retry(claim, { error: failure('boom'), delayMs: 0 });
  const again = only(await the.run());
  const note = { name: 'welcome', record: '1a;t=user:42|{}', startedMs: atMs - 5, tookMs: 5 };
  const mark = `${T0.toString(36)} 0123456789abcdef\n${encodeNote(note, returned, history ?? never())}`;
  await the.complete([{ ...again, mark }], { nowMs: atMs });
}
const never = () => {
  throw new Error('no history');
};

test('is switched on and off, and says how', async () => {
  const { out } = await switchOn();
  expect(out).toBe(
    'q keeps jobs for 7d after their end, at most 500, with what their handlers returned\nall processes follow within half a minute\nto take it back: duestream queues set q --unset history\n',
  );
  expect(await the.redis.hget(controlKeys('t').queues, 'q:history')).toBe(
    '{"on":true,"keepMs":604800000,"max":500,"result":true,"resultBytesMax":16384}',
  );
  expect((await due('queues', 'set', 'q', '--history', 'off')).out).toContain('q keeps no more jobs');
  for (const flags of [[], ['--history', 'off', '--history-max', '5'], ['--history', 'x']]) {
    expect((await due('queues', 'set', 'q', ...flags)).code).toBe(64);
  }
  expect((await answer('queues', 'ls')).queues).toHaveLength(1);
});

test('is listed, the latest end first, by filters and in pages', async () => {
  await switchOn();
  for (const [nth, id] of ['a', 'b', 'c'].entries()) await done(id, { nth }, T0 + nth);
  await the.bury(await the.running('d'), { reason: 'no-handler', nowMs: T0 + 10 });
  const ids = async (...flags: readonly string[]) =>
    (await answer('ls', 'q', '--state', 'over', ...flags)).jobs.map(({ id }: { readonly id: string }) => id);
  expect(await ids()).toEqual(['d', 'c', 'b', 'a']);
  expect(await ids('--state', 'dead')).toEqual(['d']);
  expect(await ids('--tag', 'user:42', '--name', 'welcome', '--id-prefix', 'b')).toEqual(['b']);
  expect(await ids('--newer-than', '1h')).toEqual([]);
  const { cursor, scanned } = await answer('ls', 'q', '--state', 'over', '--limit', '2');
  expect(scanned).toBe(2);
  expect(await ids('--cursor', cursor)).toEqual(['b', 'a']);
  const other = await due('ls', 'q', '--state', 'done', '--cursor', cursor);
  expect(other).toMatchObject({ code: 64, err: expect.stringContaining('the cursor is of another filter') });
  expect((await due('ls', 'q', '--state', 'over', '--cursor', 'x')).err).toContain('cursor is "x"');
  const { out } = await due('ls', 'q', '--state', 'done', '--limit', '1');
  expect(out).toMatch(
    /^id +name +end +attempts +took +worker +over +last error or result\nc +welcome +done +2 +5 ms +w1 /,
  );
  expect(out).toContain('go on with\n--cursor ');
});

test('is listed page by page with the age of the first page', async () => {
  await switchOn();
  const nowMs = Date.now();
  for (const [nth, id] of ['a', 'b', 'c'].entries()) await done(id, { nth }, nowMs - 3_600_000 + nth);
  const list = async (...flags: readonly string[]) =>
    answer('ls', 'q', '--state', 'over', '--newer-than', '2h', '--limit', '1', ...flags);
  const { jobs, cursor } = await list();
  expect(jobs).toMatchObject([{ id: 'c' }]);
  const begunAt = (atMs: number) => cursor.replace(/^\d+/, String(atMs));
  // As if the page before had been asked for at another time: then it was another list.
  const other = await due('ls', 'q', '--state', 'over', '--newer-than', '2h', '--cursor', begunAt(nowMs - 86_400_000));
  expect(other).toMatchObject({ code: 64, err: expect.stringContaining('the cursor is of another filter') });
  expect((await list('--cursor', cursor)).jobs).toMatchObject([{ id: 'b' }]);
});

test('that was switched off is listed until what it kept goes', async () => {
  await switchOn();
  await done('a', 1, T0);
  await due('queues', 'set', 'q', '--history', 'off');
  expect((await answer('ls', 'q', '--state', 'over')).jobs).toMatchObject([
    { id: 'a', state: 'done', tags: ['user:42'] },
  ]);
  expect((await answer('ls', 'q', '--state', 'done', '--name', 'welcome')).jobs).toMatchObject([{ id: 'a' }]);
});

test('tells the story of a job whose tombstone is gone', async () => {
  await switchOn();
  await done('a', { url: 'x' }, T0 + 20);
  const known = (await due('show', 'q', 'a')).out;
  await the.redis.del(the.keys.jobs, the.keys.done);
  const { out } = await due('show', 'q', 'a');
  expect(out).toBe(known);
  expect(out).toMatch(
    /^name +welcome\ndata +not kept: the job is over\ntags +user:42\nresult +\{"url":"x"\}\nstate +done\n/m,
  );
  const times = out.split('\n').filter((text) => /^20/.test(text));
  expect(times.map((text) => text.replace(/^\S+ +/, ''))).toEqual([
    'the due time that was asked for',
    'attempt 1 failed: boom',
    'attempt 2 started on worker w1, which took 5 ms',
    expect.stringMatching(/^done after attempt 2, token \d+$/),
  ]);
  expect(await answer('show', 'q', 'a')).toMatchObject({ state: 'done', name: 'welcome', failures: 1, owner: 'w1' });
});

test('tells earlier lives of an id', async () => {
  await switchOn();
  await the.bury(await the.running('a', { data: 1 }), { reason: 'x', error: failure('worse') });
  await done('a', 1, T0 + 20);
  expect((await due('show', 'q', 'a')).out).toContain('an earlier life of this id ended dead after attempt 1: worse');
});

test('of a queue without one has the same shape, and is what is remembered; a filter is refused', async () => {
  await done('a', 1, T0 + 20);
  await the.bury(await the.running('b'), { reason: 'x', error: failure('worse') });
  const shape = async (...flags: readonly string[]) => {
    const { states, jobs, ...page } = await answer('ls', 'q', ...flags);
    return { states, ids: jobs.map(({ id }: { readonly id: string }) => id).toSorted(), page: Object.keys(page) };
  };
  const over = ['done', 'dead', 'cancelled', 'expired'];
  expect(await shape('--state', 'over')).toMatchObject({ states: over, ids: ['a', 'b'] });
  const plain = await answer('ls', 'q', '--state', 'dead');
  await switchOn();
  await the.bury(await the.running('c'), { reason: 'x', error: failure('worse') });
  const kept = await answer('ls', 'q', '--state', 'dead');
  expect([plain.jobs[0].id, kept.jobs[0].id]).toEqual(['b', 'c']);
  expect(Object.keys(plain)).toEqual(Object.keys(kept));
  for (const { deadLetter, state, attempts } of [plain.jobs[0], kept.jobs[0]])
    expect({ deadLetter, state, attempts }).toEqual({ deadLetter: expect.any(String), state: 'dead', attempts: 1 });
});

test('an age takes a history', async () => {
  const { code, err } = await due('ls', 'q', '--state', 'over', '--newer-than', '1h');
  expect({ code, err }).toEqual({ code: 64, err: expect.stringContaining('keeps no history of jobs that are over') });
});

const MINUTE_MS = 60_000;

/** A leader that keeps minutes has counted so many starts of a queue that promises lateness, in a minute that ends now. */
async function counted({ kept, late }: { readonly kept: number; readonly late: number }): Promise<void> {
  await due('queues', 'set', 'q', '--lateness', '1s', '--lateness-of', '0.99', '--lateness-over', '30d');
  const { lateness } = parseSettings({ lateness: { within: '1s', of: 0.99, over: '30d' } });
  const now = { minute: Math.floor(Date.now() / MINUTE_MS) - 2 };
  const recorder = createRecorder({
    redis: the.redis,
    namespace: 't',
    always: true,
    ref: the.ref,
    current: () => ({ ...the.ref, lateness }),
    events: createEmitter(),
    clock: systemClock,
    serverMs: () => now.minute * MINUTE_MS + 30,
    leading: () => ({ term: 'm:1:5000', epoch: 1 }),
  });
  for (const count of [0, 0, kept + late]) {
    if (count > 0) await addKept(the.redis, the.keys, { withinMs: 1000, kept, late });
    for (const name of ['n.scheduled', 'n.done']) await the.redis.hincrby(the.keys.meta, name, count);
    await recorder.pass();
    now.minute += 1;
  }
}

test('a promise of lateness is told by slo, of now and of a month, and of all queues', async () => {
  expect((await due('slo')).out).toContain('no queue promised anything; "duestream queues set <queue> --lateness 1s"');
  expect(await due('slo', 'q')).toMatchObject({ code: 1, err: expect.stringContaining('promise') });
  await counted({ kept: 999, late: 1 });
  const { out } = await due('slo', 'q');
  expect(out).toMatch(/^queue +q\npromise +99 % within 1s, over 30d\ncounted +from .*Z to .*Z; promised since .*Z\n/);
  expect(out).toMatch(
    /\nkept +yes: 99\.9 % of 1000 jobs\nlate +1 start, 0 expired, 0 stand now\nbudget +10 jobs may be late; 9 still may\n/,
  );
  expect(out).toMatch(/^worst days +late +of the budget +held longest by\n2\S+ +1 +10 % +no worker has told$/m);
  expect((await due('slo')).out).toMatch(
    /^queue +promise +kept +in time +may still be late\nq +99 % within 1s, over 30d +yes /,
  );
  const month = new Date().toISOString().slice(0, 7);
  expect(await answer('slo', 'q', '--month', month)).toMatchObject({ jobs: 1000, late: 1, kept: true });
  expect((await due('slo', 'q', '--month', '2026-13')).code).toBe(64);
  expect((await due('slo', 'q', '--month', '1999-12')).err).toContain('1999-12');
});

test('a promise that is broken says by how many jobs', async () => {
  await counted({ kept: 2, late: 22 });
  expect((await due('slo', 'q')).out).toMatch(
    /\nkept +no: 8\.333 % .*\nlate +22 starts.*\nbudget +10 jobs may be late; 12 more than that were\n/,
  );
});

test('what happened in days is told by queues show, by the hour or the day', async () => {
  expect((await due('queues', 'show', 'q', '--days', '2')).out).toContain('nothing is known of q in this time');
  await counted({ kept: 5, late: 0 });
  const { out } = await due('queues', 'show', 'q', '--days', '2');
  expect(out).toMatch(/^from +starts +p50 +p99 +longest +run p50 +run p99 +done +retried +dead +expired\n/);
  expect(out).toMatch(/T\d\d:00 .* 5 +0 +0 +0\n/);
  expect(await answer('queues', 'show', 'q', '--days', '30', '--by', 'day')).toMatchObject({ stepMs: 86_400_000 });
  expect((await due('queues', 'show', 'q', '--days', '400')).err).toContain('396');
  expect((await due('queues', 'show', 'q', '--days', '91', '--by', 'hour')).code).toBe(64);
});
