/** `close-tags`: no job with a closed tag starts, however it came to be, until its end or until somebody opens it. */
import { describe, expect, test } from 'vitest';
import { parseSettings } from '../../src/job/queue-settings.ts';
import { markOf } from '../../src/job/record-header.ts';
import { closedTags } from '../../src/redis/read/closed.ts';
import type { TagsChange } from '../../src/redis/scripts/jobs.ts';
import { sweep } from '../../src/redis/scripts/lease.ts';
import { luaOf } from '../support/model-cut.ts';
import { item, LEASE_MS, only, T0, usePartition, WINDOW_MS } from '../support/partition.ts';

const p = usePartition();
const DAY_MS = 86_400_000;
const text = (reason = 'paid') => JSON.stringify({ at: T0, by: 'me', reason });

interface Asked {
  readonly untilMs?: number;
  readonly most?: number;
  readonly reason?: string;
  readonly layoutAge?: 'remembered' | 'fresh';
}
const call = (tags: readonly string[], change: TagsChange, layoutGeneration = 0) =>
  p.jobs.closeTags({ ...p.ref, layoutGeneration }, tags, change);
const close = (tags: readonly string[], { untilMs = T0 + DAY_MS, most = 100, reason, ...aged }: Asked = {}) =>
  call(tags, { mode: 'close', untilMs, text: text(reason), most, ...aged });
const open = (...tags: readonly string[]) => call(tags, { mode: 'open' });
const closed = async () => (await closedTags(p.redis, p.ref, { from: 0, limit: 1000 })).tags;
const tagged = (id: string, ...tags: readonly string[]) => item(id, { late: { tags } });
const schedule = async (id: string, ...tags: readonly string[]) => only(await p.scheduleAll([tagged(id, ...tags)]));
const kinds = async () => (await p.start(await p.deliver())).map(({ kind }) => kind);
const LIMITS = { batch: 100, windowMs: WINDOW_MS, tombstonesMax: 1000, floorMs: 0, retentionMs: DAY_MS };
const swept = async (nowMs: number, batch = 100) =>
  sweep(p.redis, p.ref, { term: await p.lead(), limits: { ...LIMITS, batch, deadLettersMax: 1000 }, nowMs });

describe('a tag', () => {
  test('is closed with its end and text, and the partition says so', async () => {
    expect(await close(['invoice:7', 'a=b'])).toEqual([{ kind: 'closed' }, { kind: 'closed' }]);
    const said = { untilMs: T0 + DAY_MS, atMs: T0, by: 'me', reason: 'paid' };
    expect(await closed()).toEqual([
      { tag: 'a=b', ...said },
      { tag: 'invoice:7', ...said },
    ]);
    expect(await p.meta('closed')).toBe('1');
  });

  test('stays closed until the longest end, whatever comes later', async () => {
    await close(['x']);
    const untilMs = T0 + DAY_MS;
    expect(await p.withoutWrite(() => close(['x']))).toEqual([{ kind: 'already', untilMs }]);
    expect(await p.withoutWrite(() => close(['x'], { untilMs: untilMs - 1, reason: 'late' }))).toEqual([
      { kind: 'already', untilMs },
    ]);
    expect(await close(['x'], { untilMs: untilMs + 1, reason: 'more' })).toEqual([{ kind: 'longer' }]);
    expect(await closed()).toMatchObject([{ untilMs: untilMs + 1, reason: 'more' }]);
  });

  test('that is one too many is refused, and nobody is put out for it', async () => {
    expect(await close(['a', 'b', 'a', 'c'], { most: 2 })).toEqual([
      { kind: 'closed' },
      { kind: 'closed' },
      { kind: 'already', untilMs: T0 + DAY_MS },
      { kind: 'full' },
    ]);
    expect(await close(['b', 'c'], { most: 2, untilMs: T0 + 2 * DAY_MS })).toEqual([
      { kind: 'longer' },
      { kind: 'full' },
    ]);
    expect((await closed()).map(({ tag }) => tag)).toEqual(['a', 'b']);
  });

  test('is opened, and with the last one nothing is left', async () => {
    await close(['a', 'b']);
    expect(await open('a', 'c')).toEqual([{ kind: 'opened' }, { kind: 'open' }]);
    expect((await closed()).map(({ tag }) => tag)).toEqual(['b']);
    expect(await open('b')).toEqual([{ kind: 'opened' }]);
    expect(await open('b')).toEqual([{ kind: 'open' }]);
    expect(await p.redis.keys('*')).toEqual([]);
  });

  test('gets its text from the second call where the first was cut off before it', async () => {
    await close(['x']);
    await p.redis.hdel(p.keys.why, 'x');
    await close(['x'], { reason: 'again' });
    expect(await closed()).toMatchObject([{ reason: 'again' }]);
  });

  test('is closed in the layout that the caller knows, and no other', async () => {
    const moved = { kind: 'moved', layoutGeneration: 0 };
    const change = { mode: 'close', untilMs: T0, text: '', most: 1 } as const;
    expect(await p.withoutWrite(() => call(['x'], change, 1))).toEqual(moved);
    expect(await p.withoutWrite(() => close(['x'], { layoutAge: 'remembered' }))).toEqual(moved);
    expect(await close(['x'], { layoutAge: 'fresh' })).toEqual([{ kind: 'closed' }]);
    expect(await p.meta('generation')).toBe('0');
    expect(await close(['y'], { layoutAge: 'remembered' })).toEqual([{ kind: 'closed' }]);
  });

  test('can be closed and opened when Redis is full', async () => {
    await p.redis.config('SET', 'maxmemory', '1');
    try {
      await expect(p.redis.set('more', 'x')).rejects.toThrow(/^OOM/);
      expect(await close(['x'])).toEqual([{ kind: 'closed' }]);
      expect(await open('x')).toEqual([{ kind: 'opened' }]);
    } finally {
      await p.redis.config('SET', 'maxmemory', '0');
    }
  });
});

describe('a job with a closed tag', () => {
  test('is cancelled at its start, whatever it waited for, and another one starts', async () => {
    await p.scheduleAll([tagged('a', 'x', 'y'), tagged('b', 'z'), item('c')]);
    await close(['x']);
    expect(await kinds()).toEqual(['cancelled', 'run', 'run']);
    expect(await p.picture()).toMatchObject({ jobs: { 'j:a': 'tombstone cancelled' }, ready: ['j:b', 'j:c'] });
    expect([await p.count('cancelled'), await p.redis.zrange(p.keys.tags, '0', '-1')]).toEqual([1, ['z\0j:b']]);
  });

  test('was delivered before its tag was closed, and does not start', async () => {
    await schedule('a', 'x');
    const delivered = await p.deliver();
    await close(['x']);
    expect(await p.start(delivered)).toEqual([{ kind: 'cancelled' }]);
  });

  test('has a start from before, which goes on although its reply was lost', async () => {
    await schedule('a', 'x');
    const delivered = await p.deliver();
    const [first] = await p.start(delivered);
    await close(['x']);
    expect(first).toMatchObject({ kind: 'run' });
    expect(await p.start(delivered)).toMatchObject([{ kind: 'again', attempts: 1 }]);
  });

  test('is cancelled before its next start, after a failure and after the death of its worker', async () => {
    await p.scheduleAll([tagged('a', 'x'), tagged('b', 'x')]);
    const [a, b] = await p.run();
    await close(['x']);
    if (!(a && b)) throw new Error('both run');
    await p.retry(a, { delayMs: 10 });
    expect((await p.start(await p.deliver({ nowMs: T0 + 10 }))).map(({ kind }) => kind)).toEqual(['cancelled']);
    expect((await p.start((await p.reclaim('w1')).deliveries, { consumer: 'w2' })).map(({ kind }) => kind)).toEqual([
      'cancelled',
    ]);
  });

  test('is cancelled also where the queue is paused, and where it is too late', async () => {
    await p.scheduleAll([tagged('a', 'x'), item('b', { late: { tags: ['x'], maxLatenessMs: 1 } })]);
    const delivered = await p.deliver();
    await close(['x']);
    expect((await p.start(delivered, { nowMs: T0 + 1000 })).map(({ kind }) => kind)).toEqual([
      'cancelled',
      'cancelled',
    ]);
    await schedule('c', 'y');
    const more = await p.deliver();
    await close(['y']);
    await p.redis.hset(p.keys.meta, 'paused', `${T0} now`);
    expect((await p.start(more)).map(({ kind }) => kind)).toEqual(['cancelled']);
    await p.redis.hdel(p.keys.meta, 'paused');
  });

  test('does not start in a turn of its worker, or in a pass of the leader', async () => {
    const settings = { consumer: 'w1', bytesMax: 1_000_000, windowMs: WINDOW_MS, nowMs: T0 };
    await close(['x']);
    // What others scheduled without looking.
    const byOthers = async (id: string) => {
      const { member, record } = tagged(id, 'x');
      await p.redis.hset(p.keys.jobs, member, record);
      await p.redis.zadd(p.keys.tags, 0, `x\0${member}`);
      await p.redis.hincrby(p.keys.meta, 'n.scheduled', 1);
      await p.put(member, T0);
    };
    await byOthers('a');
    await p.promote();
    const served = await p.jobs.serve(p.ref, { ended: [], given: [], take: 5 }, settings);
    await byOthers('b');
    const pass = { term: await p.lead(), leaseMs: LEASE_MS, limit: 10, cap: 100 };
    const relayed = await p.jobs.relay(p.ref, { ended: [], take: 5, pass }, settings);
    expect([served, relayed].map(({ taken }) => taken.map(({ kind }) => kind))).toEqual([['cancelled'], ['cancelled']]);
  });

  test('goes to no subscriber', async () => {
    const broadcast = parseSettings({ broadcast: { age: '7d' } }).broadcast;
    if (!broadcast) throw new Error('no broadcast');
    await p.scheduleAll([tagged('a', 'x'), tagged('b', 'y')]);
    await close(['x']);
    const pass = { term: await p.lead(), leaseMs: LEASE_MS, limit: 10, windowMs: WINDOW_MS, broadcast, nowMs: T0 };
    expect(await p.jobs.cast(p.ref, pass)).toMatchObject({ count: 1 });
    expect(await p.picture()).toMatchObject({ jobs: { 'j:a': 'tombstone cancelled', 'j:b': 'tombstone done' } });
    expect([await p.count('cancelled'), await p.count('done')]).toEqual([1, 1]);
  });

  test('starts again when the tag was opened, if it was not started meanwhile', async () => {
    await schedule('a', 'x');
    await close(['x']);
    await open('x');
    expect(await kinds()).toEqual(['run']);
  });

  test('is known by ten tags of up to 64 bytes, and not by its priority', async () => {
    const long = 'l'.repeat(64);
    const eleven = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', long, 'k'].join(',');
    const record = item('a').record.replace('|', `;t=${eleven}|`);
    const priority = item('b').record.replace('|', ';t= high|');
    await close(['k', '=high', `${long}l`]);
    await p.scheduleAll([
      { ...item('a'), record },
      { ...item('b'), record: priority },
      { ...item('c'), record: item('c').record.replace('|', `;t=${long}l|`) },
    ]);
    expect(await kinds()).toEqual(['run', 'run', 'run']);
    await close([long]);
    expect(only(await p.scheduleAll([{ ...item('d'), record }]))).toEqual({
      kind: 'closed',
      tag: long,
      untilMs: T0 + DAY_MS,
    });
  });
});

describe('whoever schedules', () => {
  test('is told the tag that is closed for the longest, and nothing is changed', async () => {
    await close(['x']);
    await close(['y'], { untilMs: T0 + 2 * DAY_MS });
    const told = await p.withoutWrite(() => schedule('a', 'x', 'y', 'z'));
    expect(told).toEqual({ kind: 'closed', tag: 'y', untilMs: T0 + 2 * DAY_MS });
    expect(await schedule('b', 'z')).toEqual({ kind: 'ok' });
  });

  test('is told so of a tag with =, which the header has as a space', async () => {
    await close(['k=v']);
    expect(await schedule('a', 'k=v')).toEqual({ kind: 'closed', tag: 'k=v', untilMs: T0 + DAY_MS });
  });

  test('replaces nothing, and is recognised when he repeats a call from before', async () => {
    await schedule('a', 'x');
    await close(['x']);
    const replacing = { mode: 'replace' } as const;
    expect(await schedule('a', 'x')).toEqual({ kind: 'already', over: undefined });
    expect(only(await p.scheduleAll([item('a', { data: 1, late: { tags: ['x'] } })], replacing))).toMatchObject({
      kind: 'closed',
    });
    expect(only(await p.scheduleAll([item('a', { data: 1 })], replacing))).toEqual({ kind: 'replaced' });
  });

  test('does not hear of it where his script names no key for it; the start looks', async () => {
    await close(['x']);
    const { member, record } = tagged('a', 'x');
    const names = ['scheduled', 'jobs', 'runs', 'done', 'meta', 'wake', 'stale', 'tags', 'ready', 'line'] as const;
    const args = ['', '0', 'keep', DAY_MS * 3650, 1_000_000, member, record, T0];
    const ten = names.map((name) => p.keys[name]);
    expect(await p.redis.call('EVAL', luaOf('schedule'), 10, ...ten, ...args)).toEqual(['ok']);
    expect(await kinds()).toEqual(['cancelled']);
  });

  test('replays no dead letter, which stays, and can when the tag is open', async () => {
    await schedule('a', 'x');
    await p.bury(only(await p.run()));
    const deadLetter = only(await p.redis.xrange(p.keys.dead, '-', '+'))[0];
    await close(['x']);
    expect(await p.withoutWrite(() => p.replay(deadLetter))).toEqual({
      kind: 'closed',
      tag: 'x',
      untilMs: T0 + DAY_MS,
    });
    await open('x');
    expect(await p.replay(deadLetter)).toMatchObject({ kind: 'ok' });
  });

  test('costs the same commands as long as no tag is closed, and one more for a tagged job then', async () => {
    const counted = async (work: () => Promise<unknown>) => {
      await p.redis.config('RESETSTAT');
      await work();
      const told = (await p.redis.info('commandstats')).matchAll(/cmdstat_([a-z|]+):calls=(\d+)/g);
      return Object.fromEntries([...told].map(([, name = '', calls]) => [name, Number(calls)]));
    };
    await p.lead();
    const life = async (id: string) => {
      await schedule(id, 'x');
      const claims = await p.run();
      await p.complete(claims.map((claim) => ({ ...claim, mark: `${markOf(tagged(id, 'x').record)}|x` })));
    };
    await life('warm');
    const before = await counted(() => life('a'));
    await close(['other']);
    const since = await counted(() => life('b'));
    const { zmscore: asked = 0, ...rest } = before;
    expect(since).toEqual({ ...rest, zmscore: asked + 2 });
    expect(await counted(async () => p.schedule('c'))).not.toHaveProperty('zmscore');
  });
});

describe('the leader', () => {
  test('opens what has ended, and until then it is closed, whatever the clock says', async () => {
    await close(['a'], { untilMs: T0 + 10 });
    await close(['b'], { untilMs: T0 + 11 });
    await schedule('j', 'c');
    expect(await swept(T0 + 9)).toMatchObject({ more: false });
    expect((await closed()).map(({ tag }) => tag)).toEqual(['a', 'b']);
    expect(only(await p.scheduleAll([tagged('k', 'b')], { nowMs: T0 + 60_000 }))).toMatchObject({ kind: 'closed' });
    await swept(T0 + 10);
    expect((await closed()).map(({ tag }) => tag)).toEqual(['b']);
    await swept(T0 + 11);
    expect([await closed(), await p.meta('closed'), await p.redis.exists(p.keys.why)]).toEqual([[], null, 0]);
  });

  test('opens a slice in a call, and says that there are more', async () => {
    await close(['a', 'b', 'c'], { untilMs: T0 });
    expect([await swept(T0, 2), (await closed()).length]).toMatchObject([{ more: true }, 1]);
    expect([await swept(T0, 2), (await closed()).length]).toMatchObject([{ more: false }, 0]);
  });

  test('takes the mark away that a call has left which was cut off', async () => {
    await p.redis.hset(p.keys.meta, 'closed', '1');
    await swept(T0);
    expect(await p.meta('closed')).toBeNull();
  });
});

test('closed tags are found by name, or page by page', async () => {
  expect(await closedTags(p.redis, p.ref, { named: ['x'] })).toEqual({ tags: [], count: 0 });
  await close(['a', 'b']);
  await close(['c'], { untilMs: T0 });
  await p.redis.hset(p.keys.why, 'b', 'no JSON');
  const of = async (ask: Parameters<typeof closedTags>[2]) => closedTags(p.redis, p.ref, ask);
  expect(await of({ from: 0, limit: 2 })).toMatchObject({ tags: [{ tag: 'c' }, { tag: 'a' }], count: 3 });
  expect(await of({ from: 2, limit: 2 })).toMatchObject({ tags: [{ tag: 'b', reason: '', by: '', atMs: undefined }] });
  expect(await of({ named: ['x', 'b'] })).toMatchObject({ tags: [{ tag: 'b', untilMs: T0 + DAY_MS }], count: 3 });
  expect(await of({ named: ['x'] })).toEqual({ tags: [], count: 3 });
  // A text without its tag is none of ours.
  await p.redis.hdel(p.keys.why, 'b');
});
