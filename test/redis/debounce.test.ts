/** `schedule` with mode `debounce`: many calls for an id are one job, and newer data of a running job make its next life. */
import { describe, expect, test } from 'vitest';
import { parseSettings } from '../../src/job/queue-settings.ts';
import { decodeHeader } from '../../src/job/record-header.ts';
import { effectsOf } from '../../src/worker/run/commit-jobs.ts';
import { begun, debounceDesk, J, MAX, sent, WAIT } from '../support/debounce-desk.ts';
import { cutOff, luaOf } from '../support/model-cut.ts';
import { item, LEASE_MS, only, T0, usePartition, WINDOW_MS } from '../support/partition.ts';

const p = usePartition();
const { sendAll, send, scoreOf, dataOf, runOf, started, running, ends, limits } = debounceDesk(p);

describe('a job that waits', () => {
  test('is made by the first call, and moved by the next ones, to its ceiling at most', async () => {
    expect(await send()).toEqual({ kind: 'ok' });
    expect([await scoreOf(), await dataOf()]).toEqual([T0 + WAIT, T0]);
    expect(await send({ atMs: T0 + 900 })).toEqual({ kind: 'merged', dueMs: T0 + 1900 });
    expect([await scoreOf(), await dataOf()]).toEqual([T0 + 1900, T0 + 900]);
    for (const ms of [1800, 2700, 3600]) await send({ atMs: T0 + ms });
    expect(await send({ atMs: T0 + 4500 })).toEqual({ kind: 'merged', dueMs: T0 + MAX });
    expect([await scoreOf(), await dataOf()]).toEqual([T0 + MAX, T0 + 4500]);
    expect(decodeHeader((await p.redis.hget(p.keys.jobs, J)) ?? '')?.askedDueMs).toBe(T0 + MAX);
    expect(await p.redis.hlen(p.keys.jobs)).toBe(1);
    expect(await p.count('scheduled')).toBe(1);
  });

  test('is the same after the same call, also with headers, and while it runs', async () => {
    const call = { late: { headers: { a: 'b' } } };
    await send(call);
    expect(await p.withoutWrite(() => send(call))).toEqual({ kind: 'already', over: undefined });
    const run = await started(T0 + WAIT);
    expect(await p.withoutWrite(() => send(call))).toEqual({ kind: 'already', over: undefined });
    await p.complete([run]);
    expect(await p.withoutWrite(() => send(call))).toEqual({ kind: 'already', over: 'done' });
  });

  test('is not moved by an older call, nor by another one of the same ms', async () => {
    await send({ order: T0 + 5 });
    const overtaken = { kind: 'overtaken', order: T0 + 5 };
    expect(await p.withoutWrite(() => send({ order: T0 + 5, data: 'x' }))).toEqual(overtaken);
    expect(await p.withoutWrite(() => send({ order: T0 + 4 }))).toEqual(overtaken);
    expect(await send({ order: T0 + 6 })).toMatchObject({ kind: 'merged' });
  });

  test('that was moved by hand is moved by the next call, with the due time its run has for its lateness', async () => {
    await send();
    await p.reschedule(J, T0 + 60_000);
    expect(await send({ atMs: T0 + 10 })).toEqual({ kind: 'merged', dueMs: T0 + 1010 });
    expect([await scoreOf(), (await runOf())?.nextDueMs]).toEqual([T0 + 1010, T0 + 1010]);
  });

  test('that was edited by hand still knows the calls', async () => {
    await send();
    await p.edit(J, { hasData: true, data: 'by hand' });
    expect(await send()).toMatchObject({ kind: 'already' });
    expect(await send({ atMs: T0 + 1 })).toMatchObject({ kind: 'merged' });
    expect(await dataOf()).toBe(T0 + 1);
  });

  test('keeps its tags as the last call says them', async () => {
    await send({ late: { tags: ['x', 'y'] } });
    await send({ atMs: T0 + 1, late: { tags: ['y', 'z'] } });
    expect(await p.redis.zrange(p.keys.tags, '0', '-1')).toEqual([`y\0${J}`, `z\0${J}`]);
  });

  test('keeps its due time where it is due, ready or delivered', async () => {
    await send();
    const late = T0 + WAIT;
    expect(await send({ atMs: late })).toEqual({ kind: 'kept', dueMs: T0 + WAIT });
    await p.promote({ nowMs: late });
    expect(await send({ atMs: late + 1 })).toEqual({ kind: 'kept', dueMs: T0 + WAIT });
    const [delivery] = await p.read();
    expect(await send({ atMs: late + 2 })).toEqual({ kind: 'kept', dueMs: T0 + WAIT });
    expect(await p.claim(delivery ? [delivery] : [])).toHaveLength(1);
    expect(await dataOf()).toBe(late + 2);
    expect(await p.count('scheduled')).toBe(1);
  });

  test('that was made without debounce stays as it is', async () => {
    await p.schedule('a', { dueMs: T0 + 7000 });
    expect(await p.withoutWrite(() => send())).toEqual({ kind: 'exists', dueMs: T0 + 7000 });
  });

  test('is replaced by a call without debounce that asks for that, and kept otherwise', async () => {
    await send();
    expect(await p.schedule('a', { dueMs: T0 + 7000 })).toEqual({ kind: 'exists', dueMs: T0 + WAIT });
    expect(await p.schedule('a', { dueMs: T0 + 7000, mode: 'replace' })).toEqual({ kind: 'replaced' });
    expect(await send({ atMs: T0 + 1 })).toEqual({ kind: 'exists', dueMs: T0 + 7000 });
  });
});

describe('a job that was started', () => {
  test('goes on when its handler fails: a call keeps its next due time and its failures', async () => {
    await p.retry(await running(), { delayMs: 60_000, nowMs: T0 + WAIT });
    const dueMs = T0 + WAIT + 60_000;
    expect(await send({ atMs: T0 + 2000 })).toEqual({ kind: 'kept', dueMs });
    expect([await scoreOf(), await dataOf()]).toEqual([dueMs, T0 + 2000]);
    expect(await runOf()).toMatchObject({ failures: 1, attempts: 1, nextDueMs: dueMs });
  });

  test.each(['retry', 'defer'] as const)('has the newest data after a %s, and no life more', async (verb) => {
    const run = await running();
    expect(await send({ atMs: T0 + 2000 })).toEqual({ kind: 'behind' });
    await p[verb](run, { delayMs: 10, nowMs: T0 + 2000 });
    expect(await send({ atMs: T0 + 2001 })).toMatchObject({ kind: 'kept' });
    const second = await started(T0 + 3000);
    expect([second.data, second.attempts]).toEqual([T0 + 2001, 2]);
    expect(await p.complete([second])).toEqual(['ok']);
    expect(await p.picture()).toMatchObject({ jobs: { [J]: 'tombstone done' } });
  });

  test('and has lost its worker: the late end of that start hides nothing, and an earlier cancel is over', async () => {
    const run = await running();
    await p.cancel(J);
    await p.reclaim('w1');
    expect(await send({ atMs: T0 + 2000 })).toMatchObject({ kind: 'kept' });
    expect(await p.complete([run])).toEqual(['fenced']);
    const again = only(await p.start([{ entry: run.entry, member: J, dueMs: T0 }], { consumer: 'w2' }));
    expect(again).toMatchObject({ kind: 'run', attempts: 2 });
    expect(await dataOf()).toBe(T0 + 2000);
  });
});

describe.each(ends)('%s of a run for which newer data came', (verb, end) => {
  test('begins the next life with them, and leaves neither tombstone nor dead letter', async () => {
    const run = await running();
    await p.redis.hset(p.keys.meta, 'wake', T0 + 99_000);
    expect(await send({ atMs: T0 + 2000 })).toEqual({ kind: 'behind' });
    expect(await send({ atMs: T0 + 2500 })).toEqual({ kind: 'behind' });
    const nudges = await p.nudgesOf(async () => expect(await end(run)).toBe('ok'));
    expect(nudges).toEqual([String(T0 + 3500)]);
    expect(await scoreOf()).toBe(T0 + 3500);
    expect(await runOf()).toMatchObject({ token: run.token, generation: 1, attempts: 0, owner: undefined });
    const { jobs, dead, done, ready, pending } = await p.picture();
    expect({ dead, done, ready, pending }).toEqual({});
    expect(jobs).toMatchObject({ [J]: 'record' });
    expect(await p.count(verb === 'bury' ? 'dead' : 'done')).toBe(1);
    expect(await p.meta('effect')).toBe(verb === 'commit' ? '1' : null);
  });

  test('is `already` when it is called again', async () => {
    const run = await running();
    await send({ atMs: T0 + 2000 });
    await end(run);
    expect(await p.withoutWrite(() => end(run))).toBe('already');
    const second = await started(T0 + 3000);
    expect([second.data, second.attempts]).toEqual([T0 + 2000, 1]);
    expect(await p.withoutWrite(() => end(run))).toBe('fenced');
    expect(await p.complete([second])).toEqual(['ok']);
    expect(await send({ atMs: T0 + 2000 })).toEqual({ kind: 'already', over: 'done' });
  });

  test('has a ceiling from the first call of that run', async () => {
    const run = await running();
    for (const ms of [2000, 4000, 6500]) await send({ atMs: T0 + ms });
    await end(run);
    expect(await scoreOf()).toBe(T0 + 2000 + MAX);
    expect(await send({ atMs: T0 + 6900 })).toEqual({ kind: 'merged', dueMs: T0 + 7000 });
    const second = await started(T0 + 7000);
    await send({ atMs: T0 + 9000 });
    expect(await end(second)).toBe('ok');
    expect(await send({ atMs: T0 + 9500 })).toEqual({ kind: 'merged', dueMs: T0 + 10_500 });
  });

  test('is cancelled by a cancel of before, whose job is the older one', async () => {
    const run = await running();
    expect(await p.cancel(J)).toEqual({ kind: 'requested' });
    expect(await send({ atMs: T0 + 2000 })).toEqual({ kind: 'behind' });
    expect(await p.extend([run])).toEqual(['cancel']);
    expect(await end(run)).toBe('cancelled');
    expect(await p.picture()).toMatchObject({ jobs: { [J]: 'record' }, scheduled: { [J]: T0 + 3000 } });
    expect(await p.count('cancelled')).toBe(1);
  });

  test('ends both when the cancel came after them, and knows the newer call', async () => {
    const run = await running();
    await send({ atMs: T0 + 2000, late: { tags: ['new'] } });
    expect(await p.cancel(J)).toEqual({ kind: 'requested' });
    expect(await end(run)).toBe('cancelled');
    expect(await p.picture()).toMatchObject({ jobs: { [J]: 'tombstone cancelled' } });
    expect(await send({ atMs: T0 + 2000, late: { tags: ['new'] } })).toEqual({ kind: 'already', over: 'cancelled' });
    expect(await send({ atMs: T0 + 1999 })).toEqual({ kind: 'overtaken', order: T0 + 2000 });
    expect(await send({ atMs: T0 + 2001 })).toEqual({ kind: 'ok' });
  });

  test('tells nobody who waits, until the job is over', async () => {
    const run = await running();
    await p.await(J);
    await send({ atMs: T0 + 2000 });
    expect(await p.nudgesOf(() => end(run), p.keys.over)).toEqual([]);
    const second = await started(T0 + 3000);
    const heard = await p.nudgesOf(() => p.complete([second]), p.keys.over);
    expect(heard).toEqual([`d ${second.token} ${J}`]);
  });
});

test('half-done effects of a dead run with newer data are taken back', async () => {
  const run = await running();
  await send({ atMs: T0 + 2000 });
  const compensation = { member: 'j:undo', record: item('undo').record };
  expect(await p.bury(run, { compensation })).toBe('ok');
  expect(await p.picture()).toMatchObject({ scheduled: { [J]: T0 + 3000, 'j:undo': T0 } });
});

test('a commit whose second effect is refused leaves no dead letter where newer data came', async () => {
  const run = await running();
  await send({ atMs: T0 + 2000 });
  const effect = { command: 'HSET', key: p.keys.meta, args: ['effect', '1'] };
  expect(await p.commit(run, [effect, { ...effect, command: 'LPUSH' }])).toMatch(/^half 2 /);
  expect(await p.picture()).toEqual({
    scheduled: { [J]: T0 + 3000 },
    jobs: { [J]: 'record' },
    runs: { [J]: 'waiting' },
  });
  expect(await p.count('dead')).toBe(1);
});

describe('a commit that makes a job, of a run for which newer data came', () => {
  const NEXT = 'j:a!then:7.00';
  const LATER = T0 + 99_000;
  const job = item('a!then:7.00', { dueMs: LATER });
  const next = () => effectsOf(p.keys, [{ ...job, id: 'a!then:7.00', bytes: 0, mode: 'keep', strict: false }]);
  /** What is live, with its due time. */
  const live = async () => Object.fromEntries(Object.entries((await p.picture()).scheduled ?? {}));
  const both = { [J]: T0 + 3000, [NEXT]: LATER };
  async function newer() {
    const run = await running();
    await send({ atMs: T0 + 2000 });
    return run;
  }

  test('makes it, and begins the next life; the same call again makes neither', async () => {
    const run = await newer();
    await p.redis.hset(p.keys.meta, { quota: '10 0', held: '0 1' });
    expect(await p.commit(run, next())).toBe('ok');
    expect(await live()).toEqual(both);
    expect([await p.count('scheduled'), await p.count('done')]).toEqual([3, 1]);
    expect(await p.meta('held')).toMatch(/ 2$/);
    expect(await p.withoutWrite(() => p.commit(run, next()))).toBe('already');
    expect(await send({ id: 'a!then:7.00', atMs: T0 + 9000 })).toMatchObject({ kind: 'exists' });
    const second = await started(T0 + 3000);
    expect(await p.withoutWrite(() => p.commit(run, next()))).toBe('fenced');
    expect((await runOf())?.token).toBe(second.token);
  });

  test('makes none after a cancel, whether it came before the newer data or after them', async () => {
    const before = await running();
    await p.cancel(J);
    await send({ atMs: T0 + 2000 });
    expect(await p.commit(before, next())).toBe('cancelled');
    expect(await live()).toEqual({ [J]: T0 + 3000 });
    const after = await started(T0 + 3000);
    await send({ atMs: T0 + 4000 });
    await p.cancel(J);
    expect(await p.commit(after, next())).toBe('cancelled');
    expect(await live()).toEqual({});
    expect(await p.withoutWrite(() => p.commit(after, next()))).toBe('cancelled');
  });

  test('makes none when a newer start runs, nor when its first command is refused', async () => {
    const run = await newer();
    const bad = { command: 'LPUSH', key: p.keys.meta, args: ['x'] };
    await expect(p.withoutWrite(() => p.commit(run, [bad, ...next()]))).rejects.toThrow(/WRONGTYPE/);
    await p.reclaim('w1');
    await p.start([{ entry: run.entry, member: J, dueMs: T0 }], { consumer: 'w2' });
    expect(await p.withoutWrite(() => p.commit(run, next()))).toBe('fenced');
  });

  test('that is half done keeps the job that it made, and has its next life', async () => {
    const run = await newer();
    const bad = { command: 'LPUSH', key: p.keys.meta, args: ['x'] };
    expect(await p.commit(run, [...next(), bad])).toMatch(/^half 5 WRONGTYPE/);
    expect(await live()).toEqual(both);
    expect(await p.withoutWrite(() => p.commit(run, [...next(), bad]))).toBe('already');
  });

  test('that is cut off before each of its writes, and made again, makes one job and one life', async () => {
    for (let allowed = 0; ; allowed += 1) {
      await p.reset();
      const run = await newer();
      const call = () => p.commit(run, next());
      const site = await cutOff(p.redis, { verb: 'commit', lua: luaOf('commit'), allowed, call });
      if (site !== undefined) expect(['ok', 'already']).toContain(await call());
      expect([site, await live()]).toEqual([site, both]);
      if (site === undefined) break;
    }
    expect((await started(T0 + 3000)).data).toBe(T0 + 2000);
    await p.reset();
  });
});

test.each(['retry', 'defer'] as const)('a %s of a cancelled run with newer data begins the next life', async (verb) => {
  const run = await running();
  await p.cancel(J);
  await send({ atMs: T0 + 2000 });
  expect(await p[verb](run)).toBe('cancelled');
  expect(await p.picture()).toMatchObject({ scheduled: { [J]: T0 + 3000 }, jobs: { [J]: 'record' } });
  expect(await p.count('cancelled')).toBe(1);
});

test('a start after newer data has them, whatever was asked before them; the end of that start is the end', async () => {
  const run = await running();
  await p.cancel(J);
  await send({ atMs: T0 + 2000 });
  await p.reclaim('w1');
  const delivery = { entry: run.entry, member: J, dueMs: T0 };
  const second = begun(delivery, only(await p.start([delivery], { consumer: 'w2' })));
  expect([second.attempts, second.data]).toEqual([2, T0 + 2000]);
  expect(await p.complete([second])).toEqual(['ok']);
  expect(await p.picture()).toMatchObject({ jobs: { [J]: 'tombstone done' } });
});

test('a start whose reply was lost is another start where newer data came, and they run once', async () => {
  await send();
  const delivery = only(await p.deliver({ nowMs: T0 + WAIT }));
  const first = begun(delivery, only(await p.start([delivery])));
  await send({ atMs: T0 + 2000 });
  const again = begun(delivery, only(await p.start([delivery])));
  expect([again.attempts, again.data]).toEqual([2, T0 + 2000]);
  expect(await p.complete([first])).toEqual(['fenced']);
  expect(await p.complete([again])).toEqual(['ok']);
  expect(await p.picture()).toMatchObject({ jobs: { [J]: 'tombstone done' } });
});

test('an expiry of before does not end newer data', async () => {
  const run = await running();
  await p.reclaim('w1');
  await send({ atMs: T0 + 2000, late: { expiresAtMs: T0 + 99_000 } });
  const deliveries = [{ entry: run.entry, member: J, dueMs: T0 }];
  expect(await p.start(deliveries, { consumer: 'w2', nowMs: T0 + 9000 })).toMatchObject([{ kind: 'run' }]);
});

test('a replayed job keeps the later mark of its tombstone, and its attempts', async () => {
  await p.bury(await running());
  const [deadLetter = ''] = only(await p.redis.xrevrange(p.keys.dead, '+', '-', 'COUNT', 1));
  expect(await send({ atMs: T0 + 2000 })).toEqual({ kind: 'ok' });
  expect(await p.replay(deadLetter)).toMatchObject({ kind: 'live' });
  await p.complete([await started(T0 + 3000)]);
  const replay = () => p.replay(deadLetter, { nowMs: T0 + 4000 });
  const cuts: string[] = [];
  for (let allowed = 0; allowed < 9; allowed += 1) {
    const cut = await cutOff(p.redis, { verb: 'replay', lua: luaOf('replay'), allowed, call: replay });
    if (cut === undefined) break;
    cuts.push(cut);
  }
  expect(cuts.length).toBeGreaterThan(3);
  expect(await replay()).toEqual({ kind: 'gone' });
  expect(await dataOf()).toBe(T0);
  expect(await send({ atMs: T0 + 1500 })).toEqual({ kind: 'overtaken', order: T0 + 2000 });
  expect(await send({ atMs: T0 + 2000 })).toEqual({ kind: 'already', over: undefined });
  expect(await send({ atMs: T0 + 5000 })).toEqual({ kind: 'kept', dueMs: T0 + 4000 });
  // Calls that were cut off have not counted.
  await p.reset();
});

test('a broadcast job is merged until it is due, and is over when it is cast', async () => {
  const broadcast = parseSettings({ broadcast: true }).broadcast;
  if (!broadcast) throw new Error('no broadcast');
  await send();
  expect(await send({ atMs: T0 + 500 })).toMatchObject({ kind: 'merged' });
  const pass = { term: await p.lead(), leaseMs: LEASE_MS, limit: 10, windowMs: WINDOW_MS, broadcast };
  expect(await p.jobs.cast(p.ref, { ...pass, nowMs: T0 + 1499 })).toMatchObject({ count: 0 });
  expect(await p.jobs.cast(p.ref, { ...pass, nowMs: T0 + 1500 })).toMatchObject({ count: 1 });
  expect(await p.picture()).toMatchObject({ jobs: { [J]: 'tombstone done' } });
  expect(await send({ atMs: T0 + 500 })).toEqual({ kind: 'already', over: 'done' });
  expect(await send({ atMs: T0 + 2000 })).toEqual({ kind: 'ok' });
});

test('a lock goes to the next one when a run ends for which newer data came, and is taken again later', async () => {
  await limits({ perGroup: 1 });
  await send({ id: '{g}a' });
  await send({ id: '{g}b', atMs: T0 + 1 });
  const first = await started(T0 + WAIT + 1);
  expect(await p.read()).toEqual([]);
  await send({ id: first.member.slice(2), atMs: T0 + 2000 });
  await p.complete([first]);
  const [next] = await p.read();
  expect(next?.member).not.toBe(first.member);
  expect(await p.redis.zcard(p.keys.holds)).toBe(1);
  const second = begun(next ?? only([]), only(await p.start(next ? [next] : [])));
  await p.complete([second]);
  expect((await started(T0 + 3000)).member).toBe(first.member);
});

test('a completion that holds its entry lets it go where newer data came', async () => {
  const run = await running();
  await send({ atMs: T0 + 2000 });
  expect(await p.complete([run], { hold: true })).toEqual(['ok']);
  expect(await p.complete([run], { hold: true })).toEqual(['already']);
  expect(await p.picture()).toEqual({
    scheduled: { [J]: T0 + 3000 },
    jobs: { [J]: 'record' },
    runs: { [J]: 'waiting' },
  });
});

test('a job without debounce costs no command of it, from its call to its end', async () => {
  await p.running('warm');
  await p.promote({ nowMs: T0 });
  await p.redis.config('RESETSTAT');
  await p.schedule('plain');
  await p.complete(await p.run());
  const stats = await p.redis.info('commandstats');
  const calls = [...stats.matchAll(/cmdstat_([\w|-]+):calls=(\d+)/g)].map(([, name = '', count]) => [
    name,
    Number(count),
  ]);
  const { hget, hset, hmget, hstrlen, hincrby, hdel, zadd, zscore, zmscore, zrem } = Object.fromEntries(calls);
  const names = { hget, hset, hmget, hstrlen, hincrby, hdel, zadd, zscore, zmscore, zrem };
  // As many as before there was such a job.
  expect(names).toEqual({ hget: 1, hset: 6, hmget: 7, hstrlen: 1, hincrby: 2, hdel: 1, zadd: 2, zmscore: 2, zrem: 1 });
});

test('a call without an order is refused', async () => {
  const items = [item('a'), { ...sent(), record: sent().record.replace(/d=\w+/, 'd=zzzzzzzzzzzzz') }];
  expect(await p.withoutWrite(() => p.scheduleAll(items, { mode: 'debounce' }))).toEqual([
    { kind: 'bad-record' },
    { kind: 'bad-record' },
  ]);
});

test('calls of one list are judged one after the other', async () => {
  const calls = [{}, { order: T0 + 1 }, { id: 'b' }, { order: T0 }, { order: T0 + 2, data: 'last' }];
  expect(await sendAll(calls)).toMatchObject([
    { kind: 'ok' },
    { kind: 'merged' },
    { kind: 'ok' },
    { kind: 'overtaken' },
    { kind: 'merged' },
  ]);
  expect(await dataOf()).toBe('last');
});

describe('limits', () => {
  test('of the queue refuse a new job, and data that are heavier', async () => {
    await p.redis.hset(p.keys.meta, { quota: '1 400', held: '0 0' });
    expect(await sendAll([{}, { id: 'b' }])).toEqual([
      { kind: 'ok' },
      { kind: 'full', what: 'pending', limit: 1, there: 1 },
    ]);
    const heavy = { atMs: T0 + 1, data: 'x'.repeat(500) };
    expect(await p.withoutWrite(() => send(heavy))).toMatchObject({ kind: 'full', what: 'bytes' });
    const run = await started(T0 + WAIT);
    expect(await p.withoutWrite(() => send(heavy))).toMatchObject({ kind: 'full', what: 'bytes' });
    expect(await send({ atMs: T0 + 2000 })).toEqual({ kind: 'behind' });
    await p.complete([run]);
    expect(await p.meta('held')).toMatch(/ 1$/);
  });

  test('of a group refuse a new job of it, and count one whose data say so since', async () => {
    await send({ id: '{g}1' });
    await limits({ groupPending: 1 });
    const counted = { isCounted: true };
    expect(await send({ id: '{g}1', atMs: T0 + 1 })).toEqual({ kind: 'uncounted' });
    expect(
      await sendAll([
        { id: '{g}1', atMs: T0 + 1, ...counted },
        { id: '{g}2', ...counted },
      ]),
    ).toMatchObject([{ kind: 'merged' }, { kind: 'full', what: 'group', there: 1 }]);
  });

  test('a closed tag refuses what would be new, and knows a call of before', async () => {
    const late = { tags: ['x'] };
    await send({ late });
    const change = { mode: 'close', untilMs: T0 + 99_000, text: '{}', most: 10 } as const;
    await p.jobs.closeTags(p.ref, ['x'], change);
    const closed = { kind: 'closed', tag: 'x', untilMs: T0 + 99_000 };
    expect(await p.withoutWrite(() => send({ atMs: T0 + 1, late }))).toEqual(closed);
    expect(await send({ late })).toMatchObject({ kind: 'already' });
    expect(await send({ id: 'b', late })).toEqual(closed);
    expect(await p.start(await p.deliver({ nowMs: T0 + WAIT }))).toMatchObject([{ kind: 'cancelled' }]);
  });

  test('of a rate: a job in line keeps its place, and takes another one for another priority', async () => {
    await limits({ rate: { limit: 1, perMs: 60_000, burst: 1 } });
    for (const id of ['a', 'b', 'c']) await send({ id });
    const nowMs = T0 + WAIT;
    await p.promote({ nowMs });
    const line = () => p.redis.zrange(p.keys.line, '0', '-1');
    const before = await line();
    const waiting = before.map((place) => place.slice(-3)).at(-1) ?? '';
    const id = waiting.slice(2);
    expect(await send({ id, atMs: nowMs })).toEqual({ kind: 'kept', dueMs: T0 + WAIT });
    expect(await line()).toEqual(before);
    const late = { priority: 'high' } as const;
    expect(await send({ id, atMs: nowMs + 1, late })).toEqual({ kind: 'kept', dueMs: T0 + WAIT });
    expect(await line()).not.toEqual(before);
    await p.promote({ nowMs: nowMs + 1 });
    expect((await line()).at(0)).toContain(waiting);
  });
});

/** A call that is cut off after each of its writes, and made again: nothing is lost, and nothing runs with older data. */
async function cutEach(verb: string, call: () => Promise<unknown>): Promise<readonly string[]> {
  const cuts: string[] = [];
  for (let allowed = 0; ; allowed += 1) {
    const cut = await cutOff(p.redis, { verb, lua: luaOf(verb), allowed, call });
    if (cut === undefined) return cuts;
    cuts.push(cut);
  }
}

describe('cut off after each write, and called again', () => {
  test.each(['retry', 'defer'] as const)('a %s of a cancelled run begins the next life', async (verb) => {
    const run = await running();
    await p.cancel(J);
    await send({ atMs: T0 + 2000 });
    expect((await cutEach(verb, () => p[verb](run))).length).toBeGreaterThan(2);
    expect((await started(T0 + 4000)).data).toBe(T0 + 2000);
    await p.reset();
  });

  test('a call that merges, and one that is behind, are carried out', async () => {
    await send({ late: { tags: ['x'] } });
    const late = { tags: ['y'] };
    expect(await cutEach('schedule', () => send({ atMs: T0 + 500, late }))).toHaveLength(4);
    expect([await scoreOf(), await dataOf()]).toEqual([T0 + 1500, T0 + 500]);
    const run = await started(T0 + 1500);
    expect(await cutEach('schedule', () => send({ atMs: T0 + 2000, late }))).toHaveLength(3);
    await p.complete([run]);
    expect((await started(T0 + 3000)).data).toBe(T0 + 2000);
    await p.reset();
  });

  test('one whose record was not written yet ends in another life, never in none', async () => {
    const run = await running();
    const call = () => send({ atMs: T0 + 2000 });
    await cutOff(p.redis, { verb: 'schedule', lua: luaOf('schedule'), allowed: 1, call });
    await p.complete([run]);
    expect(await p.picture()).toMatchObject({ jobs: { [J]: 'record' } });
    expect(await send({ atMs: T0 + 2000 })).toMatchObject({ kind: 'kept' });
  });

  test.each(ends)('the end by %s begins the next life', async (verb, end) => {
    const run = await running();
    await send({ atMs: T0 + 2000 });
    expect((await cutEach(verb, () => end(run))).length).toBeGreaterThan(2);
    const second = await started(T0 + 4000);
    expect(second.data).toBe(T0 + 2000);
    await p.complete([second]);
    // The entry of the call that was cut off before it could let it go.
    expect(await p.start([{ ...run, dueMs: T0 }])).toMatchObject([{ kind: 'dropped' }]);
    expect(await p.picture()).toMatchObject({ jobs: { [J]: 'tombstone done' } });
    expect(await p.redis.xlen(p.keys.ready)).toBe(0);
    await p.reset();
  });
});
