/**
 * What is left in bookkeeping keys of what is gone (I19): each kind is planted, counted, told, and removed where that is safe.
 * What is in use, or is again by then, stays.
 */
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { systemClock } from '../../../src/kernel/clock.ts';
import { controlKeys } from '../../../src/redis/keys.ts';
import { leftovers, removeLeftover } from '../../../src/redis/repair/leftovers.ts';
import { beat } from '../../../src/redis/scripts/presence.ts';
import { declareQueue } from '../../../src/redis/scripts/queues.ts';
import { arm } from '../../../src/redis/scripts/schedules.ts';
import { useCli } from '../../support/cli.ts';
import { T0, usePartition } from '../../support/partition.ts';

const cli = useCli();
const p = usePartition();
const namespace = 't';
const keys = controlKeys(namespace);
const [session, request] = [keys.session('s'), keys.idempotency('i')];

/** The command looks twice, two seconds apart; no test waits for them. */
const { sleep } = systemClock;
beforeEach(async () => {
  vi.spyOn(systemClock, 'sleep').mockImplementation((ms, signal) => sleep(Math.min(ms, 20), signal));
  await declareQueue(p.redis, { namespace, queue: 'q', partitions: 1, maxPending: 9 });
});

/** `between`: what happens between the two looks. */
const look = (between: () => Promise<unknown> = async () => undefined) => {
  const sleep = async () => {
    await between();
    return true;
  };
  return leftovers(p.redis, { namespace, refs: [p.ref], clock: { ...systemClock, sleep } });
};
const whats = async () => (await look()).found.map(({ flaw }) => `${flaw.invariant} ${flaw.what} ${flaw.name}`);
const doctor = async (...args: readonly string[]) =>
  cli.run(['doctor', '--keys', ...args, '--redis', p.server.url, '--namespace', namespace]);
const lives = (id: string) =>
  beat(p.redis, {
    namespace,
    ttlMs: 60_000,
    identity: { id, role: 'worker', host: 'h', pid: 1, startedMs: T0, queues: ['q'] },
  });
const define = (name: string, queue = 'q') =>
  p.redis.hset(keys.schedules, name, JSON.stringify({ since: 0, schedule: { queue, every: '1h' } }));

/** Whatever may stand in these keys. */
async function furnish(): Promise<void> {
  await lives('w1');
  await p.redis.sadd(keys.alive, ...Array.from({ length: 99 }, (_, at) => `killed${at}`));
  await p.redis.hset(keys.tokens, 'id', '{}');
  await p.redis.set(session, 'id 1', 'PX', 60_000);
  await p.redis.set(request, '- x', 'PX', 60_000);
  await define('nightly');
  await arm(p.redis, p.ref, 'nightly');
}

/** Kind of flaw and its name → how it comes about. */
const planted: readonly (readonly [flaw: string, how: string, plant: () => Promise<unknown>])[] = [
  [
    'I19 ownerless gone:maxPending',
    'a setting without a queue',
    () => p.redis.hset(keys.queues, 'gone:maxPending', '5'),
  ],
  [
    'I19 ownerless gone:later:on',
    'one that a later release has written',
    () => p.redis.hset(keys.queues, 'gone:later:on', '5'),
  ],
  ['I19 lost t:v1:{control}:alive', 'too many killed processes', () => p.redis.sadd(keys.alive, 'killed', 'too')],
  ['I19 endless t:v1:{control}:session:s', 'a session without a time to live', () => p.redis.persist(session)],
  [
    'I19 endless t:v1:{control}:session:s',
    'a session that lives for a day',
    () => p.redis.pexpire(session, 86_400_000),
  ],
  ['I19 endless t:v1:{control}:idempotency:i', 'a request that is known for ever', () => p.redis.persist(request)],
  [
    'I19 gone q:0 old',
    'what a schedule fired that is gone',
    () => p.redis.hset(p.keys.fired, 'old', `${T0} 1 0 - - 0`),
  ],
  ['I19 gone q:0 nightly', 'one that makes jobs for another queue now', () => define('nightly', 'elsewhere')],
];

describe('what is found', () => {
  test('is nothing where all is in use, and it is counted', async () => {
    await furnish();
    expect(await look()).toEqual({
      counts: {
        settings: 1,
        settingsWithoutQueue: 0,
        tokens: 1,
        tokensMax: 1000,
        processes: 100,
        processesWithoutBeat: 99,
        sessions: 1,
        idempotencyKeys: 1,
        withoutTtl: 0,
        firedSchedules: 1,
        firedSchedulesGone: 0,
      },
      found: [],
    });
    const { code, out } = await doctor();
    expect(out).toContain(
      'bookkeeping: 1 setting, 1 of 1000 tokens, 100 processes (99 without a heartbeat), 1 session, 1 Idempotency-Key, 1 schedule that fired\n',
    );
    expect(code).toBe(0);
  });

  test.each(planted)('is %s: %s, which a repair removes, and no second one is needed', async (flaw, _, plant) => {
    await furnish();
    await plant();
    expect(await whats()).toEqual([flaw]);
    const before = await p.redis.hgetall(keys.queues);
    const plan = await doctor('--repair');
    expect([plan.code, plan.err]).toEqual([1, expect.stringMatching(/plan for namespace t: 1 × /)]);
    expect(await p.redis.hgetall(keys.queues)).toEqual(before);
    expect(await whats()).toEqual([flaw]);
    const done = await doctor('--repair', '--yes', '--json');
    const { left, repaired, control } = JSON.parse(done.out);
    expect([done.code, left, repaired, control[0].repaired]).toEqual([0, 0, 1, true]);
    expect(await whats()).toEqual([]);
    expect(await p.redis.hget(keys.queues, 'q:maxPending')).toBe('9');
    expect((await p.redis.smembers(keys.alive)).includes('w1')).toBe(true);
  });

  test('is more tokens than there may be, of which a person takes some away', async () => {
    await p.redis.hset(keys.tokens, ...Array.from({ length: 1001 }, (_, at) => [`id${at}`, '{}']).flat());
    expect(await whats()).toEqual(['I19 crowded t:v1:{control}:tokens']);
    const { code, out } = await doctor('--repair', '--yes');
    expect([code, out]).toEqual([1, expect.stringContaining('[not repaired by doctor]')]);
    expect(await p.redis.hlen(keys.tokens)).toBe(1001);
  });

  test('is believed when it is seen twice', async () => {
    await furnish();
    await p.redis.hset(keys.queues, 'new:maxPending', '5');
    await p.redis.hset(p.keys.fired, 'new', `${T0} 1 0 - - 0`);
    const between = async () => {
      await declareQueue(p.redis, { namespace, queue: 'new', partitions: 1 });
      await define('new');
    };
    expect((await look(between)).found).toEqual([]);
  });

  test('does not need SCAN, which no process of duestream may use', async () => {
    await furnish();
    await p.redis.call('ACL', 'SETUSER', 'default', '-scan');
    try {
      expect(await look()).toMatchObject({ counts: { sessions: undefined, processes: 100 }, found: [] });
      expect((await doctor()).out).toContain('not counted: this user may not use SCAN');
    } finally {
      await p.redis.call('ACL', 'SETUSER', 'default', '+scan');
    }
  });
});

test('a repair leaves what is in use again', async () => {
  await furnish();
  await p.redis.hset(keys.queues, 'new:maxPending', '5');
  await p.redis.hset(p.keys.fired, 'new', `${T0} 1 0 - - 0`);
  await p.redis.sadd(keys.alive, 'back', 'killed');
  await p.redis.persist(session);
  const { found } = await look();
  expect(found).toHaveLength(4);
  await declareQueue(p.redis, { namespace, queue: 'new', partitions: 1 });
  await arm(p.redis, p.ref, 'new');
  await lives('back');
  await p.redis.pexpire(session, 1000);
  for (const { left } of found) if (left) await removeLeftover(p.redis, namespace, left);
  expect(await p.redis.hget(keys.queues, 'new:maxPending')).toBe('5');
  expect(await p.redis.hexists(p.keys.fired, 'new')).toBe(1);
  expect((await p.redis.smembers(keys.alive)).toSorted()).toEqual(['back', 'w1']);
  expect(await p.redis.pttl(session)).toBeLessThanOrEqual(1000);
});
