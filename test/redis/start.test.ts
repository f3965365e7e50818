/** `start`: entries become running jobs with a token each, and one of several entries of a member gets through. */
import { describe, expect, test } from 'vitest';
import { decodeRun } from '../../src/job/codec.ts';
import { createJobs } from '../../src/redis/scripts/jobs.ts';
import type { Claim, Delivery, StartReply } from '../../src/redis/scripts/replies.ts';
import { failure, item, only, T0, usePartition, WINDOW_MS } from '../support/partition.ts';

const p = usePartition();
const kinds = (replies: readonly StartReply[]) => replies.map(({ kind }) => kind);
const tokens = (replies: readonly StartReply[]) =>
  replies.map((reply) => ('token' in reply ? BigInt(reply.token) : 0n));
const runOf = async (member: string) => decodeRun((await p.redis.hget(p.keys.runs, member)) ?? '');

describe('an entry the caller owns', () => {
  test('becomes a running job: its record and first attempt are replied', async () => {
    await p.schedule('a', { data: { to: 'x' } });
    const reply = only(await p.start(await p.deliver()));
    const record = item('a', { data: { to: 'x' } }).record;
    expect(reply).toMatchObject({
      kind: 'run',
      attempts: 1,
      failures: 0,
      crashes: 0,
      generation: 0,
      history: [],
      record,
    });
    expect(await p.picture()).toEqual({
      jobs: { 'j:a': 'record' },
      runs: { 'j:a': 'running' },
      ready: ['j:a'],
      pending: { w1: ['j:a'] },
    });
  });

  test('is answered the same again, and the attempt is counted once', async () => {
    await p.schedule('a');
    const deliveries = await p.deliver();
    const first = only(await p.start(deliveries));
    const again = only(await p.start(deliveries));
    expect(again).toEqual({ ...first, kind: 'again' });
    expect(await runOf('j:a')).toMatchObject({ attempts: 1 });
  });

  test('of a bare member runs with the record it was given', async () => {
    await p.put('order-1', T0);
    const reply = only(await p.start(await p.deliver()));
    expect(reply).toMatchObject({ kind: 'run', record: `1${T0.toString(36)};b=1|{}` });
  });

  test('of a second attempt carries what happened before', async () => {
    await p.retry(await p.running('a'), { error: failure('boom') });
    const reply = only(await p.start(await p.deliver({ nowMs: T0 + 1000 })));
    expect(reply).toMatchObject({ kind: 'run', attempts: 2, failures: 1, crashes: 0 });
    expect('history' in reply && reply.history).toEqual([{ atMs: T0, attempt: 1, kind: 'failure', message: 'boom' }]);
  });

  test('whose record nobody can read is counted as an attempt all the same', async () => {
    await p.schedule('a');
    const deliveries = await p.deliver();
    await p.redis.hset(p.keys.jobs, 'j:a', '1zz|{not json');
    expect(only(await p.start(deliveries))).toMatchObject({ kind: 'run', attempts: 1, record: '1zz|{not json' });
  });
});

describe('a token', () => {
  test('is newer for every start of a batch', async () => {
    await p.scheduleAll([item('a'), item('b'), item('c')]);
    const [first = 0n, second = 0n, third = 0n] = tokens(await p.start(await p.deliver()));
    expect(first < second && second < third).toBe(true);
  });

  test('is newer for the next life of an id', async () => {
    const old = await p.running('a');
    await p.complete([old]);
    await p.schedule('a', { data: 'next life' });
    expect(BigInt(only(await p.run()).token) > BigInt(old.token)).toBe(true);
  });

  test('grows when the clock of the server went back', async () => {
    await p.redis.hset(p.keys.meta, 'token', '9000000000000000');
    expect((await p.running('a')).token).toBe('9000000000000002');
  });

  test('is newer after everything was flushed', async () => {
    const old = await p.running('a');
    await p.redis.flushall();
    await p.redis.call('XGROUP', 'CREATE', p.keys.ready, 'workers', '0', 'MKSTREAM');
    await p.redis.set(p.keys.leader, await p.lead(), 'PX', 60_000);
    expect(BigInt((await p.running('a')).token) > BigInt(old.token)).toBe(true);
  });
});

describe('an entry the caller does not own', () => {
  test('is lost, and nothing is written', async () => {
    await p.schedule('a');
    const deliveries = await p.deliver({ consumer: 'w2' });
    expect(kinds(await p.withoutWrite(() => p.start(deliveries)))).toEqual(['lost']);
  });

  test('is lost after it was reclaimed by another consumer', async () => {
    await p.schedule('a');
    const deliveries = await p.deliver();
    await p.reclaim('w1', { consumer: 'w2' });
    expect(kinds(await p.withoutWrite(() => p.start(deliveries)))).toEqual(['lost']);
    expect(kinds(await p.start(deliveries, { consumer: 'w2' }))).toEqual(['run']);
  });

  test('is lost when it was settled, or never was', async () => {
    await p.schedule('a');
    const deliveries = await p.deliver();
    await p.complete(await p.claim(deliveries));
    expect(kinds(await p.withoutWrite(() => p.start(deliveries)))).toEqual(['lost']);
  });

  test('does not stop those beside it', async () => {
    await p.scheduleAll([item('a'), item('b')]);
    await p.promote();
    const mine = await p.read('w1', 1);
    const theirs = await p.read('w2', 1);
    expect(kinds(await p.start([...mine, ...theirs]))).toEqual(['run', 'lost']);
  });
});

describe('an entry that was added less than 100 ms ago', () => {
  /** Starts so many ms after Redis added the first of them, and says how often Redis looked who holds an entry. */
  async function started(deliveries: readonly Delivery[], addedMs: number, consumer = 'w1') {
    const nowMs = Number(deliveries[0]?.entry.split('-')[0]) + addedMs;
    await p.redis.config('RESETSTAT');
    const settings = { consumer, bytesMax: 1_000_000, windowMs: WINDOW_MS, nowMs };
    const replies = await createJobs(p.redis).start(p.ref, deliveries, settings);
    const looks = /cmdstat_xpending:calls=(\d+)/.exec(await p.redis.info('commandstats'))?.[1] ?? 0;
    return { kinds: kinds(replies), looks: Number(looks), claim: claimOf(deliveries, replies) };
  }
  const claimOf = (deliveries: readonly Delivery[], replies: readonly StartReply[]) => ({
    entry: deliveries[0]?.entry as Claim['entry'],
    member: deliveries[0]?.member as Claim['member'],
    token: String(tokens(replies)[0]) as Claim['token'],
  });

  test.each([
    [0, 0],
    [99, 0],
    [100, 1],
    [-1, 1],
  ])('starts %i ms after it was added, with %i looks who holds it', async (addedMs, looks) => {
    await p.schedule('a');
    expect(await started(await p.deliver(), addedMs)).toMatchObject({ kinds: ['run'], looks });
  });

  test('is asked about, with all others of its call, when it does not start plainly', async () => {
    await p.scheduleAll([item('a'), item('b')]);
    const deliveries = await p.deliver();
    await p.start(deliveries);
    expect(await started(deliveries, 1)).toMatchObject({ kinds: ['again', 'again'], looks: 1 });
    expect((await started(deliveries, 1, 'w2')).kinds).toEqual(['lost', 'lost']);
  });

  test('is lost to a worker that was frozen for a job lease, after another one took it over', async () => {
    await p.schedule('a');
    const deliveries = await p.deliver();
    // By the clock of Redis, which alone decides: the shortest lease there is.
    await expect.poll(async () => (await p.reclaim('w1', { idleMs: 100 })).deliveries.length).toBe(1);
    const late = { consumer: 'w1', bytesMax: 1_000_000, windowMs: WINDOW_MS };
    expect(kinds(await p.withoutWrite(() => p.jobs.start(p.ref, deliveries, late)))).toEqual(['lost']);
  });

  test('starts although a person gave it to another consumer, whose start then fences it', async () => {
    await p.schedule('a');
    const deliveries = await p.deliver();
    await p.redis.xclaim(p.keys.ready, 'workers', 'w2', 0, only(deliveries).entry);
    const first = await started(deliveries, 5);
    const second = await started(deliveries, 9, 'w2');
    expect([first.kinds, second.kinds]).toEqual([['run'], ['run']]);
    expect(await p.complete([first.claim])).toEqual(['fenced']);
    expect(await p.complete([second.claim])).toEqual(['ok']);
  });

  test.each([
    ['acknowledged it', (entry: string) => p.redis.xack(p.keys.ready, 'workers', entry)],
    ['deleted its consumer', () => p.redis.xgroup('DELCONSUMER', p.keys.ready, 'workers', 'w1')],
  ])('starts once and is over with its end, although a person %s', async (_, act) => {
    await p.schedule('a');
    const deliveries = await p.deliver();
    await act(only(deliveries).entry);
    expect(await p.complete([(await started(deliveries, 5)).claim])).toEqual(['ok']);
    expect(await p.picture()).toEqual({ jobs: { 'j:a': 'tombstone done' }, done: { 'j:a': T0 } });
  });
});

describe('an entry is dropped', () => {
  test('when its member runs under another pending entry, whichever consumer holds it', async () => {
    await p.put('a', T0);
    await p.promote();
    await p.put('a', T0);
    await p.promote();
    const first = await p.read('w1', 1);
    const second = await p.read('w2', 1);
    expect(kinds(await p.start(first))).toEqual(['run']);
    expect(kinds(await p.start(second, { consumer: 'w2' }))).toEqual(['dropped']);
    expect(await p.picture()).toMatchObject({ runs: { a: 'running' }, ready: ['a'], pending: { w1: ['a'] } });
  });

  test('when two entries of one member come in one batch, the second', async () => {
    await p.put('a', T0);
    await p.promote();
    await p.put('a', T0);
    await p.promote();
    expect(kinds(await p.start(await p.read()))).toEqual(['run', 'dropped']);
    expect(await runOf('a')).toMatchObject({ attempts: 1 });
  });

  test('when its member has a tombstone, which enters the done window then', async () => {
    await p.schedule('a');
    const deliveries = await p.deliver();
    await p.cancel('j:a');
    expect(await p.picture()).toEqual({
      jobs: { 'j:a': 'tombstone cancelled' },
      ready: ['j:a'],
      pending: { w1: ['j:a'] },
    });
    expect(kinds(await p.start(deliveries, { nowMs: T0 + 5 }))).toEqual(['dropped']);
    expect(await p.picture()).toEqual({ jobs: { 'j:a': 'tombstone cancelled' }, done: { 'j:a': T0 + 5 } });
  });

  test('when its member has a tombstone, and the tombstone goes with it when there is no done window', async () => {
    await p.schedule('a');
    const deliveries = await p.deliver();
    await p.cancel('j:a', { windowMs: 0 });
    expect(kinds(await p.start(deliveries, { windowMs: 0 }))).toEqual(['dropped']);
    expect(await p.picture()).toEqual({});
  });

  test('when its member is in scheduled again', async () => {
    await p.schedule('a');
    const deliveries = await p.deliver();
    await p.schedule('a', { data: 'new', mode: 'replace', dueMs: T0 + 9 });
    expect(kinds(await p.start(deliveries))).toEqual(['dropped']);
    expect(await p.picture()).toEqual({ scheduled: { 'j:a': T0 + 9 }, jobs: { 'j:a': 'record' } });
  });

  test('when its member was reclaimed and put again: the zset holds it, and its run has no entry any more', async () => {
    await p.put('a', T0);
    await p.run();
    const { deliveries } = await p.reclaim('w1');
    await p.put('a', T0 + 9);
    expect(kinds(await p.start(deliveries, { consumer: 'w2' }))).toEqual(['dropped']);
    expect(await p.picture()).toEqual({ scheduled: { a: T0 + 9 }, jobs: { a: 'record' }, runs: { a: 'waiting' } });
    expect(await runOf('a')).toMatchObject({ attempts: 1, crashes: 1 });
  });

  test('and is lost for a second identical call', async () => {
    await p.schedule('a');
    const deliveries = await p.deliver();
    await p.cancel('j:a');
    await p.start(deliveries);
    expect(kinds(await p.withoutWrite(() => p.start(deliveries)))).toEqual(['lost']);
  });
});

describe('a reclaimed job', () => {
  test('starts again under its own entry with a new token, and the old one is fenced', async () => {
    const old = await p.running('a');
    const { deliveries } = await p.reclaim('w1');
    const reply = only(await p.start(deliveries, { consumer: 'w2' }));
    expect(reply).toMatchObject({ kind: 'run', attempts: 2, failures: 0, crashes: 1 });
    expect(await p.withoutWrite(() => p.complete([old]))).toEqual(['fenced']);
  });
});

describe('a job without a record', () => {
  test('becomes a dead letter that says so, and its entry goes', async () => {
    await p.put('j:ghost', T0);
    expect(kinds(await p.start(await p.deliver()))).toEqual(['deadLetter']);
    expect(await p.picture()).toEqual({ dead: ['j:ghost: record-missing'] });
    expect(await p.count('refused')).toBe(1);
  });

  test('takes the state of its earlier attempts with it', async () => {
    await p.retry(await p.running('a'));
    const deliveries = await p.deliver({ nowMs: T0 + 1000 });
    await p.redis.hdel(p.keys.jobs, 'j:a');
    await p.redis.hdel(p.keys.meta, 'n.scheduled');
    expect(kinds(await p.start(deliveries))).toEqual(['deadLetter']);
    expect(await p.picture()).toEqual({ dead: ['j:a: record-missing'] });
  });

  test('keeps the bytes of its member in the dead letter', async () => {
    const member = Buffer.from([0x6a, 0x3a, 0xff, 0x00]);
    await p.promote();
    await p.redis.xadd(p.keys.ready, '*', 'member', member, 'due', T0);
    expect(kinds(await p.start(await p.read()))).toEqual(['deadLetter']);
    const deadLetters = await p.redis.callBuffer('XRANGE', p.keys.dead, '-', '+');
    expect(Array.isArray(deadLetters) && deadLetters[0][1][1].equals(member)).toBe(true);
  });
});

describe('a cancel request', () => {
  test('that waited through a crash ends the job instead of starting it again', async () => {
    await p.running('a');
    await p.cancel('j:a');
    const { deliveries } = await p.reclaim('w1');
    expect(kinds(await p.start(deliveries, { consumer: 'w2' }))).toEqual(['cancelled']);
    expect(await p.picture()).toEqual({ jobs: { 'j:a': 'tombstone cancelled' }, done: { 'j:a': T0 } });
    expect(await p.count('cancelled')).toBe(1);
  });

  test('leaves nothing behind when there is no done window', async () => {
    await p.running('a');
    await p.cancel('j:a');
    const { deliveries } = await p.reclaim('w1');
    expect(kinds(await p.start(deliveries, { consumer: 'w2', windowMs: 0 }))).toEqual(['cancelled']);
    expect(await p.picture()).toEqual({});
  });
});

describe('a record of a later version', () => {
  const later = (header = '') => `2${T0.toString(36)}${header}|what nobody here can read`;
  async function delivered(record: string) {
    await p.schedule('a');
    const deliveries = await p.deliver();
    await p.redis.hset(p.keys.jobs, 'j:a', record);
    return deliveries;
  }

  test.each(['', ';z=new', ';e=1'])(
    'with the header %j is parked for four seconds, and nothing is counted',
    async (h) => {
      const deliveries = await delivered(later(h));
      expect(kinds(await p.start(deliveries))).toEqual(['parked']);
      expect(await p.picture()).toEqual({ scheduled: { 'j:a': T0 + 4000 }, jobs: { 'j:a': 'record' } });
      expect(await p.redis.hgetall(p.keys.meta)).not.toHaveProperty('token');
      expect(kinds(await p.withoutWrite(() => p.start(deliveries)))).toEqual(['lost']);
    },
  );

  test('is parked again when it comes back, and waits at its due in a paused queue', async () => {
    await p.start(await delivered(later()));
    const again = await p.deliver({ nowMs: T0 + 4000 });
    await p.redis.hset(p.keys.meta, 'paused', '1');
    expect(kinds(await p.start(again, { nowMs: T0 + 4000 }))).toEqual(['released']);
    expect(await p.picture()).toMatchObject({ scheduled: { 'j:a': T0 + 4000 } });
  });

  test('that somebody had started keeps its counts, and the late end of that start is refused', async () => {
    const late = await p.running('a');
    await p.redis.hset(p.keys.jobs, 'j:a', later());
    const { deliveries } = await p.reclaim('w1');
    expect(kinds(await p.start(deliveries, { consumer: 'w2' }))).toEqual(['parked']);
    expect(await p.complete([late])).toEqual(['fenced']);
    expect(await runOf('j:a')).toMatchObject({ attempts: 1, crashes: 1, nextDueMs: T0 + 4000 });
  });

  test.each(['{bad json', '2|{}', '21aa', 'x1aa|{}'])(
    '%j is none: it is started, to become a dead letter',
    async (record) => {
      expect(kinds(await p.start(await delivered(record)))).toEqual(['run']);
    },
  );
});

describe('a paused queue', () => {
  test('releases what was delivered: back to scheduled at its due, no attempt used', async () => {
    await p.schedule('a', { dueMs: T0 - 3 });
    const deliveries = await p.deliver();
    await p.redis.hset(p.keys.meta, 'paused', '1');
    expect(kinds(await p.start(deliveries))).toEqual(['released']);
    expect(await p.picture()).toEqual({ scheduled: { 'j:a': T0 - 3 }, jobs: { 'j:a': 'record' } });
  });

  test('still answers a repeated call for what was started before', async () => {
    await p.schedule('a');
    const deliveries = await p.deliver();
    await p.start(deliveries);
    await p.redis.hset(p.keys.meta, 'paused', '1');
    expect(kinds(await p.start(deliveries))).toEqual(['again']);
  });

  test('releases a job whose worker was lost, and keeps count of its crash', async () => {
    const late = await p.running('a');
    const { deliveries } = await p.reclaim('w1');
    await p.redis.hset(p.keys.meta, 'paused', '1');
    expect(kinds(await p.start(deliveries, { consumer: 'w2' }))).toEqual(['released']);
    expect(await p.picture()).toEqual({
      scheduled: { 'j:a': T0 },
      jobs: { 'j:a': 'record' },
      runs: { 'j:a': 'waiting' },
    });
    expect(await p.complete([late])).toEqual(['fenced']);
    expect(await runOf('j:a')).toMatchObject({ attempts: 1, crashes: 1 });
  });
});

describe('bytes', () => {
  test('end a call at the first record that does not fit, and nothing after it is read', async () => {
    const large = 'x'.repeat(400);
    await p.scheduleAll([item('a', { data: large }), item('b', { data: large }), item('c')]);
    const deliveries = await p.deliver();
    expect(kinds(await p.start(deliveries, { bytesMax: 500 }))).toEqual(['run', 'later', 'later']);
    expect(kinds(await p.start(deliveries.slice(1), { bytesMax: 900 }))).toEqual(['run', 'run']);
  });

  test('count records that do not run: a large one that is dropped leaves less room', async () => {
    const large = 'x'.repeat(400);
    await p.scheduleAll([item('a', { data: large }), item('b', { data: large })]);
    const deliveries = await p.deliver();
    await p.redis.zadd(p.keys.scheduled, T0 + 60_000, 'j:a');
    expect(kinds(await p.start(deliveries, { bytesMax: 500 }))).toEqual(['dropped', 'later']);
  });

  test('end a call before tombstones as well, which the next one drops', async () => {
    await p.scheduleAll([item('a', { data: 'x'.repeat(400) }), item('b'), item('c')]);
    const deliveries = await p.deliver();
    for (const member of ['j:b', 'j:c']) await p.cancel(member);
    expect(kinds(await p.start(deliveries, { bytesMax: 10 }))).toEqual(['run', 'later', 'later']);
    expect(kinds(await p.start(deliveries.slice(1), { bytesMax: 500 }))).toEqual(['dropped', 'dropped']);
  });

  test('bound a reply: the rest is told to come later, and comes', async () => {
    const data = 'x'.repeat(400);
    await p.scheduleAll([item('a', { data }), item('b', { data }), item('c', { data })]);
    const deliveries = await p.deliver();
    expect(kinds(await p.start(deliveries, { bytesMax: 900 }))).toEqual(['run', 'run', 'later']);
    expect(kinds(await p.start(deliveries.slice(2), { bytesMax: 900 }))).toEqual(['run']);
  });

  test('come as they are, also those above 1 KiB, which are texts of their own, between others', async () => {
    const items = [1, 1000, 2000, 3, 70_000, 4].map((size, nth) => item(`r${nth}`, { data: 'x'.repeat(size) }));
    await p.scheduleAll(items);
    const taken = await p.start(await p.deliver(), { bytesMax: 1_000_000 });
    expect(taken.map((one) => 'record' in one && one.record)).toEqual(items.map(({ record }) => record));
  });

  test('of exactly 1 KiB are joined, and one byte more is apart', async () => {
    const padded = (id: string, size: number) => {
      const own = item(id, { data: '' }).record.length;
      return item(id, { data: 'x'.repeat(size - own) });
    };
    const items = [padded('a', 1024), padded('b', 1025)];
    expect(items.map(({ record }) => record.length)).toEqual([1024, 1025]);
    await p.scheduleAll(items);
    const taken = await p.start(await p.deliver());
    expect(taken.map((one) => 'record' in one && one.record)).toEqual(items.map(({ record }) => record));
  });

  test('never hold back the first record, however large', async () => {
    await p.schedule('a', { data: 'x'.repeat(4000) });
    expect(kinds(await p.start(await p.deliver(), { bytesMax: 10 }))).toEqual(['run']);
  });

  test('of a repeated call are bounded as well', async () => {
    const data = 'x'.repeat(400);
    await p.scheduleAll([item('a', { data }), item('b', { data })]);
    const deliveries = await p.deliver();
    await p.start(deliveries);
    expect(kinds(await p.start(deliveries, { bytesMax: 500 }))).toEqual(['again', 'later']);
  });
});

describe('an entry that waited before its start', () => {
  async function idleMs(entry: string): Promise<number> {
    const [pending] = await p.redis.xpending(p.keys.ready, 'workers', entry, entry, 1);
    return Array.isArray(pending) ? Number(pending[2]) : Number.NaN;
  }
  const delivered = async (waitedMs: number) => {
    await p.schedule('a');
    await p.promote();
    const delivery = only(await p.read());
    await p.redis.call('XCLAIM', p.keys.ready, 'workers', 'w1', 0, delivery.entry, 'IDLE', waitedMs, 'JUSTID');
    return delivery;
  };

  test('is young again, so that nobody takes it over at once', async () => {
    const delivery = await delivered(60_000);
    await p.start([delivery]);
    expect(await idleMs(delivery.entry)).toBeLessThan(30_000);
  });

  test('stays as old as it is while it is not started', async () => {
    const delivery = await delivered(60_000);
    expect(await p.start([delivery], { consumer: 'w2' })).toEqual([{ kind: 'lost' }]);
    expect(await idleMs(delivery.entry)).toBeGreaterThanOrEqual(60_000);
  });
});

test('a whole batch of a thousand starts in one call', async () => {
  await p.scheduleAll(Array.from({ length: 1000 }, (_, at) => item(`job-${at}`)));
  await p.promote({ limit: 1000 });
  const replies = await p.start(await p.read());
  expect(new Set(tokens(replies)).size).toBe(1000);
});

describe('a job under which a worker died', () => {
  test('is held back from a caller who runs others, with the token of its last start', async () => {
    const lost = await p.running('a');
    await p.schedule('b');
    await p.promote();
    const { deliveries } = await p.reclaim('w1');
    const all = [...deliveries, ...(await p.read('w2'))];
    const call = { consumer: 'w2', suspects: 1 } as const;
    const [first, second] = await p.start(all, call);
    expect(first).toEqual({ kind: 'suspect', token: lost.token });
    expect(second?.kind).toBe('run');
    expect(await p.withoutWrite(() => p.start(deliveries, call))).toEqual([first]);
  });

  test('runs when it is asked for alone, and that call may be repeated in any company', async () => {
    await p.running('a');
    const { deliveries } = await p.reclaim('w1');
    expect(await p.start(deliveries, { consumer: 'w2' })).toMatchObject([{ kind: 'run', crashes: 1 }]);
    const again = await p.start(deliveries, { consumer: 'w2', suspects: 1 });
    expect(again).toMatchObject([{ kind: 'again', crashes: 1 }]);
  });

  test('uses up the bytes of a call like every record that is read', async () => {
    await p.running('a', { data: 'x'.repeat(400) });
    await p.schedule('b', { data: 'x'.repeat(400) });
    await p.promote();
    const { deliveries } = await p.reclaim('w1');
    const all = [...deliveries, ...(await p.read('w2'))];
    expect(kinds(await p.start(all, { consumer: 'w2', suspects: 1, bytesMax: 500 }))).toEqual(['suspect', 'later']);
    expect(kinds(await p.start(all.slice(1), { consumer: 'w2', suspects: 1, bytesMax: 500 }))).toEqual(['run']);
  });
});
