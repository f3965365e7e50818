/** `doctor --keys`: a partition without damage is reported as such, each flaw is named, and a repair does what is safe and no more. */
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { systemClock } from '../../../src/kernel/clock.ts';
import { controlKeys, partitionTable, storedKeys } from '../../../src/redis/keys.ts';
import { examine, examineControl } from '../../../src/redis/repair/examine.ts';
import { declareQueue } from '../../../src/redis/scripts/queues.ts';
import { arm } from '../../../src/redis/scripts/schedules.ts';
import { useCli } from '../../support/cli.ts';
import { item, only, T0, usePartition } from '../../support/partition.ts';

/** By the server's own clock as well. */
const LATER = T0 + 5 * 365 * 86_400_000;

const cli = useCli();
const p = usePartition();

/** The command looks twice, two seconds apart; no test waits for them. */
const { sleep } = systemClock;
beforeEach(async () => {
  vi.spyOn(systemClock, 'sleep').mockImplementation((ms, signal) => sleep(Math.min(ms, 20), signal));
  await declareQueue(p.redis, { namespace: 't', queue: 'q', partitions: 1 });
});

/** No test waits the two seconds; `between` happens meanwhile. */
const look = (between: () => Promise<unknown> = async () => undefined, atomicMax = 20_000) => {
  const sleep = async () => {
    await between();
    return true;
  };
  return examine(p.redis, p.ref, { clock: { ...systemClock, sleep }, atomicMax });
};
const flaws = async (atomicMax?: number) =>
  (await look(undefined, atomicMax)).flaws.map(({ invariant, what, name }) => `${invariant} ${what} ${name}`);
const doctor = (...args: readonly string[]) =>
  cli.run(['doctor', '--keys', ...args, '--redis', p.server.url, '--namespace', 't']);

type Name = keyof typeof partitionTable;
const typeOf = (name: Name) => partitionTable[name].type;
/** What holds something. */
const STORED = (Object.keys(partitionTable) as readonly Name[]).filter(
  (name) => name !== 'leader' && typeOf(name) !== 'channel',
);
/** And never expires. */
const LASTING = STORED.filter((name) => !('ttl' in partitionTable[name]));
const control = storedKeys(controlKeys('t'));

/** One job in every state. */
async function crowd(): Promise<void> {
  await p.complete([await p.running('done')]);
  await p.dead('dead');
  await p.running('runs');
  await p.schedule('ready');
  await p.promote();
  await p.scheduleAll([item('waits', { dueMs: LATER, late: { tags: ['t'] } })]);
}

describe('what it finds', () => {
  test.each(STORED)('another type where %s belongs, by the name of the key, and so does every error', async (name) => {
    const key = p.keys[name];
    await p.redis.del(key);
    await p.redis.set(key, 'x');
    expect(await flaws()).toEqual([`key type ${key}`]);
    const stuck = await p.schedule('a').then(
      () => p.redis.set(p.keys.leader, 'x'),
      (error: Error) => error.message,
    );
    if (['scheduled', 'jobs', 'meta'].includes(name)) {
      expect(stuck).toBe(`WRONGTYPE ${key}: it is a string and must be a ${typeOf(name)}; rename or delete it`);
    }
    await p.reset();
  });

  test('another type where the looks of schedules belong is named to whoever puts one', async () => {
    await p.redis.set(p.keys.fires, 'x');
    const put = arm(p.redis, p.ref, 'nightly');
    await expect(put).rejects.toThrow(
      `WRONGTYPE ${p.keys.fires}: it is a string and must be a zset; rename or delete it`,
    );
  });

  test.each(LASTING)('a time to live on %s, and none on the lease', async (name) => {
    await crowd();
    const {
      fires,
      fired,
      stale,
      past,
      ended,
      minutes,
      cast,
      line,
      lanes,
      holds,
      groups,
      order,
      closed,
      why,
      logs,
      meta,
    } = p.keys;
    await p.redis.hset(p.keys.claims, 'h-1 0', '1');
    await p.redis.hset(p.keys.spends, '1-0', '1 1 1');
    await p.redis.hset(groups, 'acme', '0 0');
    await p.redis.hset(order, 'acme', 'j:waits');
    await p.redis.hset(meta, 'closed', '1');
    await p.redis.zadd(closed, LATER, 'invoice:7');
    await p.redis.hset(why, 'invoice:7', '{}');
    for (const index of [line, lanes, holds]) await p.redis.zadd(index, 0, 'x');
    await p.redis.zadd(fires, 0, 'nightly');
    await p.redis.hset(fired, 'nightly', '0 0 0 - - 1');
    await p.redis.zadd(stale, T0, 'j:a');
    await p.redis.hset(past, 'j:over', '{}');
    await p.redis.hset(logs, 'j:a', '{}');
    await p.redis.zadd(ended, T0, 'j:over');
    await p.redis.hset(minutes, '0', '-');
    await p.redis.xadd(cast, '*', 'count', '1');
    expect(await flaws()).toEqual([]);
    await p.redis.pexpire(p.keys[name], 3_600_000);
    expect(await flaws()).toEqual([`I10 expiring ${p.keys[name]}`]);
  });

  test.each(control)('another type where $key belongs, by the name of the key', async ({ key, type }) => {
    await p.redis.del(key);
    await (type === 'string' ? p.redis.hset(key, 'odd', 'x') : p.redis.set(key, 'x'));
    expect((await examineControl(p.redis, 't')).map(({ what, name }) => [what, name])).toEqual([['type', key]]);
    await p.redis.del(key);
  });

  test.each(control)('a time to live on $key', async ({ key, type }) => {
    await p.redis.del(key);
    if (type === 'hash') await p.redis.hset(key, 'x', '{"partitions":1,"generation":0}');
    else if (type === 'set') await p.redis.sadd(key, 'x');
    else if (type === 'stream') await p.redis.xadd(key, '*', 'x', '1');
    else await p.redis.set(key, 'x');
    expect(await examineControl(p.redis, 't')).toEqual([]);
    await p.redis.pexpire(key, 3_600_000);
    expect(await examineControl(p.redis, 't')).toMatchObject([{ invariant: 'I10', what: 'expiring', name: key }]);
    await p.redis.del(key);
  });

  test('what is wrong with the keys of the namespace, in the answer of the command', async () => {
    const { alive } = controlKeys('t');
    await p.redis.set(alive, 'x');
    const { out, code } = await doctor('--json');
    expect([code, JSON.parse(out).control]).toMatchObject([1, [{ invariant: 'key', what: 'type', name: alive }]]);
    await p.redis.del(alive);
  });

  const LAST_ID = '18446744073709551615-18446744073709551615';

  test.each([true, false])('a ready to which nothing can be added, its entry was read: %s', async (isRead) => {
    const before = await p.running('before');
    await p.redis.xadd(p.keys.ready, LAST_ID, 'member', 'j:odd', 'due', '1');
    if (isRead) await p.read();
    await p.schedule('next');
    await expect(p.promote()).rejects.toThrow('exhausted');
    expect(await flaws()).toContain(`key exhausted ${p.keys.ready}`);
    const { out: quick } = await cli.run(['doctor', '--redis', p.server.url, '--namespace', 't']);
    expect(quick).toMatch(/fail +streams +1 stream with an entry of the last id of all, such as t:v1:\{q:0\}:ready/);
    expect((await doctor('--repair', '--yes')).out).toMatch(/exhausted.*repaired/);
    await p.complete([before]);
    expect(await p.count('done')).toBe(1);
    await p.promote();
    const read = await p.read();
    expect(read.map(({ member }) => member)).toEqual(['j:odd', 'j:next']);
    expect((await p.start(read)).map(({ kind }) => kind)).toEqual(['deadLetter', 'run']);
    await p.reset();
  });

  test('a dead to which nothing can be added, and of which no dead letter goes', async () => {
    const kept = await p.redis.xadd(p.keys.dead, '*', 'member', 'j:a');
    await p.redis.xadd(p.keys.dead, LAST_ID, 'member', 'j:b');
    expect((await doctor('--repair', '--yes')).out).toMatch(/exhausted.*repaired/);
    const letters = await p.redis.xrange(p.keys.dead, '-', '+');
    expect([letters[0]?.[0], ...letters.map(([, fields]) => fields[1])]).toEqual([kept, 'j:a', 'j:b']);
    expect(await p.redis.xadd(p.keys.dead, '*', 'member', 'j:c')).toBeTruthy();
    await p.reset();
  });

  test('a stream that is empty and has nodes', async () => {
    await p.redis.xadd(p.keys.dead, '1-0', 'a', '1');
    await p.redis.xadd(p.keys.dead, '2-0', 'a', '1');
    await p.redis.xdel(p.keys.dead, '2-0');
    await p.redis.call('XTRIM', p.keys.dead, 'MINID', '=', '2-0');
    expect(await flaws()).toEqual([`key hollow ${p.keys.dead}`]);
    const { out: quick } = await cli.run(['doctor', '--redis', p.server.url, '--namespace', 't']);
    expect(quick).toMatch(/fail +streams +1 stream with more nodes than entries, such as t:v1:\{q:0\}:dead/);
    const { code, out } = await doctor('--repair', '--yes');
    expect([code, out]).toEqual([0, expect.stringMatching(/hollow.*repaired/)]);
    await p.redis.xadd(p.keys.dead, '3-0', 'a', '1');
    expect((await doctor('--repair', '--yes')).code).toBe(0);
    expect([await flaws(), await p.redis.xlen(p.keys.dead)]).toEqual([[], 1]);
    await p.reset();
  });

  test.each([20_000, 0])('nothing, where there is no damage (at one moment up to %i things)', async (atomicMax) => {
    await crowd();
    expect(await look(undefined, atomicMax)).toMatchObject({ flaws: [], more: false, atomic: atomicMax > 0 });
    expect((await look()).looked).toBeGreaterThanOrEqual(8);
  });

  test.each([20_000, 0])('jobs and tombstones that lost their index (%i)', async (atomicMax) => {
    await crowd();
    await p.redis.del(p.keys.ready, p.keys.scheduled, p.keys.done);
    expect((await flaws(atomicMax)).toSorted()).toEqual([
      'I2 orphan j:ready',
      'I2 orphan j:runs',
      'I2 orphan j:waits',
      'I2 tombstone j:dead',
      'I2 tombstone j:done',
    ]);
    await p.reset();
  });

  test.each([20_000, 0])('thousands of them, with none left out (%i)', async (atomicMax) => {
    const all = Array.from({ length: 3000 }, (_, nth) => item(`n${nth}`, { dueMs: LATER }));
    await p.scheduleAll(all);
    await p.redis.del(p.keys.scheduled);
    expect(new Set(await flaws(atomicMax)).size).toBe(3000);
    await p.reset();
  });

  test('members without a record, runs without a record, and what they do to the counters', async () => {
    await p.schedule('a', { dueMs: LATER });
    await p.redis.hset(p.keys.runs, 'j:a', '0 0 0 0 0 - - - 0');
    await p.redis.hdel(p.keys.jobs, 'j:a');
    expect((await flaws()).toSorted()).toEqual(['I11 balance ', 'I12 idle j:a', 'I3 unrecorded j:a']);
    await p.reset();
  });

  test('entries that nobody would deliver, and a group that is gone', async () => {
    for (const id of ['a', 'b']) await p.schedule(id);
    await p.promote();
    const { entry } = only(await p.read('w1', 1));
    await p.redis.call('XGROUP', 'DELCONSUMER', p.keys.ready, 'workers', 'w1');
    expect(await flaws()).toEqual([`I5 stuck ${entry}`]);
    await p.redis.call('XGROUP', 'DESTROY', p.keys.ready, 'workers');
    expect(await flaws()).toEqual(['I6 group ']);
    await p.reset();
  });

  test('a lease that never ends, a key that expires, and a job nobody promotes', async () => {
    await p.lead();
    await p.schedule('a');
    await p.redis.persist(p.keys.leader);
    await p.redis.pexpire(p.keys.jobs, 1_000_000);
    await p.redis.hset(p.keys.meta, 'wake', '9007199254740991');
    expect((await flaws()).toSorted()).toEqual([`I10 expiring ${p.keys.jobs}`, 'I10 lease ', 'I9 overdue ']);
  });

  test('nothing that was only on its way: it must be seen twice', async () => {
    await p.schedule('a', { dueMs: LATER });
    await p.redis.zrem(p.keys.scheduled, 'j:a');
    const { flaws: found } = await look(() => p.redis.zadd(p.keys.scheduled, T0, 'j:a'));
    expect(found).toEqual([]);
  });
});

describe('the command', () => {
  test('ends with 0 when there is no damage', async () => {
    await crowd();
    const { code, out } = await doctor('q');
    expect(out).toMatch(
      /^q:0 {2}no damage, \d+ checked at one moment\nok {4}keys {9}no damage found in 1 partition\n$/,
    );
    expect(code).toBe(0);
  });

  test('tells each flaw and ends with 1, and a plan touches nothing', async () => {
    await crowd();
    await p.redis.del(p.keys.scheduled);
    const { code, out, err } = await p.withoutWrite(() => doctor('--repair'));
    expect(code).toBe(1);
    expect(out).toContain('  I2   orphan j:waits: its record is in no index, so the job would never run');
    expect(out).toContain('nothing was changed: add --yes to carry out the plan');
    expect(err).toMatch(/^plan for q:0: 1 × orphan: schedule it at its due time/);
    await p.redis.zadd(p.keys.scheduled, T0, 'j:waits');
  });

  test('repairs what is safe, leaves the rest to a person, and finds nothing the next time', async () => {
    await crowd();
    await p.redis.del(p.keys.scheduled, p.keys.done);
    await p.put('j:nobody', LATER);
    const first = await doctor('q', '--repair', '--yes', '--json');
    expect(first.code).toBe(1);
    expect(JSON.parse(first.out)).toMatchObject({ ok: false, left: 1, repaired: 3 });
    await p.redis.zrem(p.keys.scheduled, 'j:nobody');
    const second = await doctor('q', '--repair', '--yes', '--json');
    expect(JSON.parse(second.out)).toMatchObject({ ok: true, left: 0, repaired: 0 });
    expect(second.code).toBe(0);
    expect((await p.picture()).scheduled).toEqual({ 'j:waits': LATER });
  });

  test('a heartbeat without an end is found', async () => {
    await p.redis.sadd('t:v1:{control}:alive', 'x');
    await p.redis.set('t:v1:{control}:beat:x', '{}');
    const { code, out } = await doctor();
    expect(code).toBe(1);
    expect(out).toContain('I10  immortal t:v1:{control}:beat:x');
  });

  test('consent without a repair ends with 64, and a Redis that is away with 69', async () => {
    expect((await doctor('--yes')).code).toBe(64);
    expect((await doctor('--restored')).code).toBe(64);
    expect((await cli.run(['doctor', '--keys', '--redis', 'redis://127.0.0.1:1'])).code).toBe(69);
    expect((await doctor('nobody')).code).toBe(1);
  });
});
