/** `promote`: due jobs move to ready, for the leader of this term only, and nothing stops a pass. */
import { describe, expect, test } from 'vitest';
import { item, LEASE_MS, only, T0, usePartition } from '../support/partition.ts';

const p = usePartition();
const ids = (count: number) => Array.from({ length: count }, (_, at) => item(`job-${String(at).padStart(4, '0')}`));

describe('due jobs', () => {
  test('move to ready, with their lateness, and the next due is told', async () => {
    await p.scheduleAll([item('a', { dueMs: T0 - 20 }), item('b'), item('c'), item('d', { dueMs: T0 + 500 })]);
    const reply = await p.promote();
    expect(reply).toMatchObject({
      kind: 'promoted',
      nowMs: T0,
      nextMs: T0 + 500,
      backlog: 3,
      deadLetters: 0,
      count: 3,
    });
    expect('lateness' in reply && [...reply.lateness].sort(([a], [b]) => a - b)).toEqual([
      [0, 2],
      [20, 1],
    ]);
    expect(await p.picture()).toEqual({
      scheduled: { 'j:d': T0 + 500 },
      jobs: { 'j:a': 'record', 'j:b': 'record', 'j:c': 'record', 'j:d': 'record' },
      ready: ['j:a', 'j:b', 'j:c'],
    });
    expect(await p.count('promoted')).toBe(3);
  });

  test('are never early by a millisecond', async () => {
    await p.schedule('a', { dueMs: T0 + 1 });
    expect(await p.promote({ nowMs: T0 })).toMatchObject({ count: 0, nextMs: T0 + 1 });
    expect(await p.promote({ nowMs: T0 + 1 })).toMatchObject({ count: 1, nextMs: undefined });
  });

  test('carry their due into the entry', async () => {
    await p.schedule('a', { dueMs: T0 - 3 });
    expect(await p.deliver()).toMatchObject([{ member: 'j:a', dueMs: T0 - 3 }]);
  });

  test('become ready in the order of due, then of member', async () => {
    await p.scheduleAll([item('c'), item('a', { dueMs: T0 - 1 }), item('b')]);
    await p.promote();
    expect((await p.picture()).ready).toEqual(['j:a', 'j:b', 'j:c']);
  });

  test('are moved in bounded passes, each of the next ones', async () => {
    await p.scheduleAll(ids(7));
    expect(await p.promote({ limit: 3 })).toMatchObject({ count: 3, nextMs: T0, backlog: 3 });
    expect(await p.promote({ limit: 3 })).toMatchObject({ count: 3, nextMs: T0, backlog: 6 });
    expect(await p.promote({ limit: 3 })).toMatchObject({ count: 1, nextMs: undefined, backlog: 7 });
  });

  test('are moved once: a second call finds nothing', async () => {
    await p.schedule('a');
    await p.promote();
    expect(await p.promote()).toMatchObject({ kind: 'promoted', count: 0, nextMs: undefined });
    expect((await p.picture()).ready).toEqual(['j:a']);
  });

  test.each([
    ['a fraction', T0 - 10.25, T0 - 11],
    ['few digits', 1_500_000_000_000, 1_500_000_000_000],
    ['twelve digits', 999_999_999_999, 999_999_999_999],
  ])('with %s in their score carry whole milliseconds, as digits', async (_what, score, dueMs) => {
    await p.schedule('a');
    await p.put('j:a', score);
    await p.promote();
    const [[, fields] = ['', []]] = await p.redis.xrange(p.keys.ready, '-', '+');
    expect(fields).toEqual(['member', 'j:a', 'due', String(dueMs)]);
  });

  test('are moved by the clock of the server when no time is given', async () => {
    await p.schedule('a');
    const call = { term: await p.lead(), leaseMs: LEASE_MS, limit: 10, cap: 10 };
    const reply = await p.jobs.promote(p.ref, call);
    expect(reply).toMatchObject({ kind: 'promoted', count: 1 });
  });
});

describe('the term', () => {
  test('of a deposed leader is refused', async () => {
    await p.schedule('a');
    await p.lead();
    await p.redis.set(p.keys.leader, 'm2:9:5000', 'PX', 5000);
    expect(await p.withoutWrite(() => p.promote())).toEqual({ kind: 'fenced' });
  });

  test('of nobody is refused', async () => {
    await p.schedule('a');
    await p.lead();
    await p.redis.del(p.keys.leader);
    expect(await p.withoutWrite(() => p.promote())).toEqual({ kind: 'fenced' });
  });

  test('is prolonged by a pass', async () => {
    await p.lead();
    await p.redis.pexpire(p.keys.leader, 1000);
    await p.promote();
    expect(await p.redis.pttl(p.keys.leader)).toBeGreaterThan(1000);
  });
});

test('a pass that was not asked to prolong the lease leaves it as it is', async () => {
  const term = await p.lead();
  await p.redis.pexpire(p.keys.leader, 1000);
  await p.schedule('a');
  const reply = await p.jobs.promote(p.ref, { term, leaseMs: undefined, limit: 10, cap: 10, nowMs: T0 });
  expect(reply).toMatchObject({ kind: 'promoted', count: 1 });
  expect(await p.redis.pttl(p.keys.leader)).toBeLessThanOrEqual(1000);
});

describe('the advertised wake-up', () => {
  test.each([1, 2, 3, 5, 6, 7, 13, 14, 15, 26, 27, 40])(
    'is the next due after %i jobs, whatever was read with them',
    async (count) => {
      await p.scheduleAll([...ids(count), item('next', { dueMs: T0 + 7 })]);
      expect(await p.promote()).toMatchObject({ count, nextMs: T0 + 7, backlog: count });
      expect([await p.meta('wake'), await p.count('promoted')]).toEqual([String(T0 + 7), count]);
      expect(await p.promote({ nowMs: T0 + 7 })).toMatchObject({ count: 1, nextMs: undefined });
      expect((await p.picture()).ready).toHaveLength(count + 1);
    },
  );

  test('of a bare member that runs is its next turn, if that comes first', async () => {
    await p.put('a', T0);
    await p.run();
    await p.put('a', T0);
    await p.schedule('later', { dueMs: T0 + 5000 });
    expect(await p.promote()).toMatchObject({ count: 0, nextMs: T0 + 1000 });
    expect(await p.meta('wake')).toBe(String(T0 + 1000));
  });

  test('is the next due, or the end of time when nothing is scheduled', async () => {
    await p.promote();
    expect(await p.meta('wake')).toBe(String(Number.MAX_SAFE_INTEGER));
    await p.schedule('a', { dueMs: T0 + 10 });
    await p.promote();
    expect(await p.meta('wake')).toBe(String(T0 + 10));
  });

  test('is 0 while paused: nobody needs to nudge', async () => {
    await p.redis.hset(p.keys.meta, 'paused', '1');
    await p.schedule('a');
    expect(await p.promote()).toMatchObject({ kind: 'paused', count: 0, nextMs: T0 });
    expect(await p.meta('wake')).toBe('0');
    expect(await p.picture()).toMatchObject({ scheduled: { 'j:a': T0 } });
    await p.redis.hdel(p.keys.meta, 'paused');
    expect(await p.promote()).toMatchObject({ kind: 'promoted', count: 1 });
  });

  test('is 0 while capped, and promotion goes on as soon as entries were read', async () => {
    await p.scheduleAll(ids(5));
    expect(await p.promote({ cap: 2 })).toMatchObject({ kind: 'promoted', count: 2, backlog: 2 });
    expect(await p.promote({ cap: 2 })).toMatchObject({ kind: 'capped', count: 0, backlog: 2 });
    expect(await p.meta('wake')).toBe('0');
    await p.read('w1', 1);
    expect(await p.promote({ cap: 2 })).toMatchObject({ kind: 'promoted', count: 1, backlog: 2 });
  });
});

describe('a bare member', () => {
  test('is adopted: it gets a minimal record before it leaves the zset', async () => {
    await p.put('order-1042', T0 - 5);
    expect(await p.promote()).toMatchObject({ kind: 'promoted', count: 1, lateness: [[5, 1]] });
    expect(await p.picture()).toEqual({ jobs: { 'order-1042': 'record' }, ready: ['order-1042'] });
    expect(await p.redis.hget(p.keys.jobs, 'order-1042')).toBe(`1${(T0 - 5).toString(36)};b=1|{}`);
    expect(await p.count('adopted')).toBe(1);
  });

  test('with a fraction in its score is due at the whole millisecond', async () => {
    await p.put('a', `${T0}.75`);
    expect(await p.promote({ nowMs: T0 })).toMatchObject({ count: 0 });
    expect(await p.promote({ nowMs: T0 + 1 })).toMatchObject({ count: 1, lateness: [[1, 1]] });
  });

  test('put again while it is ready: both entries stand, and one runs', async () => {
    await p.put('a', T0);
    await p.promote();
    await p.put('a', T0 + 1);
    await p.promote({ nowMs: T0 + 1 });
    expect((await p.picture()).ready).toEqual(['a', 'a']);
    expect(await p.count('adopted')).toBe(1);
    const deliveries = await p.read();
    expect((await p.start(deliveries)).map(({ kind }) => kind)).toEqual(['run', 'dropped']);
  });

  test('put again while it is ready leaves no dead letter about its second entry, without a done window', async () => {
    await p.put('bare', T0);
    await p.promote();
    await p.put('bare', T0 + 1);
    await p.promote({ nowMs: T0 + 1 });
    const [first, second] = await p.read();
    if (!first || !second) throw new Error('there are two entries');
    await p.complete(await p.claim([first]), { windowMs: 0 });
    expect(await p.start([second], { windowMs: 0 })).toEqual([{ kind: 'dropped' }]);
    expect([await p.picture(), await p.count('refused')]).toEqual([{}, 0]);
  });

  test('in its retry wait is in no entry, so nothing is noted', async () => {
    await p.put('bare', T0);
    await p.retry(only(await p.run()));
    await p.promote({ nowMs: T0 + 1000 });
    expect(await p.redis.exists(p.keys.stale)).toBe(0);
  });

  test('put again while it is ready and not yet due: the last ZADD wins', async () => {
    await p.put('a', T0);
    const deliveries = await p.deliver();
    await p.put('a', T0 + 5000);
    expect(await p.start(deliveries)).toEqual([{ kind: 'dropped' }]);
    expect(await p.picture()).toEqual({ scheduled: { a: T0 + 5000 }, jobs: { a: 'record' } });
  });

  test('put again while it runs waits for the end of the run, then runs again', async () => {
    await p.put('a', T0);
    const claims = await p.run();
    await p.put('a', T0);
    expect(await p.promote()).toMatchObject({ count: 0, deadLetters: 0, nextMs: T0 + 1000 });
    expect(await p.picture()).toMatchObject({ scheduled: { a: T0 + 1000 }, runs: { a: 'running' } });
    expect(await p.complete(claims)).toEqual(['ok']);
    expect(await p.picture()).toEqual({ scheduled: { a: T0 + 1000 }, jobs: { a: 'record' } });
    expect(await p.run({ nowMs: T0 + 1000 })).toHaveLength(1);
  });

  test('put again after it was done is a new life, and the tombstone goes', async () => {
    await p.put('a', T0);
    await p.complete(await p.run());
    await p.put('a', T0 + 1);
    await p.promote({ nowMs: T0 + 1 });
    expect(await p.picture()).toEqual({ jobs: { a: 'record' }, ready: ['a'] });
    expect(await p.count('adopted')).toBe(2);
  });

  test.each(['due', 'member'])('called %s, like a field of its entry, keeps its name and due', async (name) => {
    await p.put(name, T0 - 1);
    expect(await p.deliver()).toMatchObject([{ member: name, dueMs: T0 - 1 }]);
  });

  test('of the same id as one of ours is another job', async () => {
    await p.put('a', T0);
    await p.schedule('a');
    expect((await p.run()).map(({ member }) => member)).toEqual(['a', 'j:a']);
  });
});

describe('nonsense', () => {
  test('a score of 0 means now', async () => {
    await p.put('a', 0);
    expect(await p.promote()).toMatchObject({ count: 1, deadLetters: 0, lateness: [[0, 1]] });
    expect(await p.read()).toMatchObject([{ member: 'a', dueMs: T0 }]);
  });

  test.each([5, -1, '-inf', T0 / 1000, 99_999_999_999])('a score of %s becomes a dead letter', async (score) => {
    await p.put('a', score);
    await p.schedule('good');
    expect(await p.promote()).toMatchObject({ kind: 'promoted', count: 1, deadLetters: 1 });
    expect(await p.picture()).toEqual({ jobs: { 'j:good': 'record' }, ready: ['j:good'], dead: ['a: bad-due'] });
    expect(await p.count('refused')).toBe(1);
  });

  test('a score of +inf stays where it is; the next due is a number all the same', async () => {
    await p.put('a', '+inf');
    expect(await p.promote()).toMatchObject({ count: 0, deadLetters: 0, nextMs: Number.MAX_SAFE_INTEGER });
    expect(await p.picture()).toEqual({ scheduled: { a: Number.POSITIVE_INFINITY } });
    expect(Number(await p.meta('wake'))).toBeGreaterThan(T0);
  });

  test('a job of ours with a bad due becomes a dead letter with its record', async () => {
    await p.schedule('a', { data: 'kept' });
    await p.put('j:a', 5);
    expect(await p.promote()).toMatchObject({ count: 0, deadLetters: 1 });
    const picture = await p.picture();
    expect(picture).toMatchObject({ jobs: { 'j:a': 'tombstone dead' }, dead: ['j:a: bad-due'], done: { 'j:a': T0 } });
    expect(picture.scheduled).toBeUndefined();
    expect(await p.count('dead')).toBe(1);
  });

  test('a bad due of a bare member that runs leaves the run alone', async () => {
    await p.put('a', T0);
    const claims = await p.run();
    await p.put('a', 5);
    expect(await p.promote()).toMatchObject({ deadLetters: 1 });
    expect(await p.complete(claims)).toEqual(['ok']);
  });

  test.each([
    ['binary', Buffer.from([0xff, 0x00, 0x01])],
    ['with a space', Buffer.from('a b')],
    ['empty', Buffer.alloc(0)],
    ['of 131 bytes', Buffer.from('x'.repeat(131))],
    ['of 1 MB', Buffer.alloc(1_000_000, 'x')],
  ])('a member %s becomes a dead letter that keeps its bytes', async (_what, member) => {
    await p.put(member, T0);
    expect(await p.promote()).toMatchObject({ count: 0, deadLetters: 1 });
    const deadLetters = await p.redis.callBuffer('XRANGE', p.keys.dead, '-', '+');
    expect(Array.isArray(deadLetters) && deadLetters[0][1][1].equals(member)).toBe(true);
    expect((await p.picture()).scheduled).toBeUndefined();
  });

  test('a member of 130 bytes is read', async () => {
    await p.put('x'.repeat(130), T0);
    expect(await p.promote()).toMatchObject({ count: 1, deadLetters: 0 });
  });

  test('giant members are moved few at a time, and all in the end', async () => {
    for (const letter of ['a', 'b', 'c', 'd']) await p.put(Buffer.alloc(600_000, letter), T0);
    await p.schedule('good');
    const first = await p.promote();
    expect(first).toMatchObject({ kind: 'promoted', nextMs: T0 });
    for (let passes = 0; passes < 4; passes += 1) await p.promote();
    expect((await p.picture()).ready).toEqual(['j:good']);
    expect(await p.redis.xlen(p.keys.dead)).toBe(4);
  });

  test('of every kind at once stops nothing', async () => {
    await p.put(Buffer.from([0xff]), T0);
    await p.put('seconds', T0 / 1000);
    await p.put('minus', '-inf');
    await p.put('zero', 0);
    await p.put('never', '+inf');
    await p.schedule('good');
    expect(await p.promote()).toMatchObject({ count: 2, deadLetters: 3 });
    expect((await p.picture()).ready?.toSorted()).toEqual(['j:good', 'zero']);
  });
});

test('the group is made again when the stream vanished, and sees what is promoted', async () => {
  await p.schedule('a');
  await p.promote();
  await p.redis.del(p.keys.ready);
  await p.redis.hdel(p.keys.jobs, 'j:a');
  await p.redis.hdel(p.keys.meta, 'n.scheduled');
  await p.schedule('b');
  expect(await p.deliver()).toMatchObject([{ member: 'j:b' }]);
});
