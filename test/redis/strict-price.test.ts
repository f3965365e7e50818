/** What strict order and a second rate cost, in commands of Redis: little where a queue has it, nothing where it has not. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { encodeRecord } from '../../src/job/codec.ts';
import { close, openCommands, type Redis, whenReady } from '../../src/redis/connection/connect.ts';
import { partitionRef } from '../../src/redis/keys.ts';
import { limit } from '../../src/redis/scripts/gates.ts';
import { createJobs } from '../../src/redis/scripts/jobs.ts';
import { elect } from '../../src/redis/scripts/lease.ts';
import { ensureGroup, readNew } from '../../src/redis/scripts/ready.ts';
import type { Claim } from '../../src/redis/scripts/replies.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';

const JOBS = 5000;
const GROUPS = 100;
const TAKE = 50;
const ref = partitionRef('t', { queue: 'q', partition: 0, layoutGeneration: 0 });
let server: TestRedis;
let redis: Redis;
beforeAll(async () => {
  server = await startRedis();
  redis = openCommands({ redis: { path: server.socketPath }, name: 'price' });
  await whenReady(redis);
});
beforeEach(() => redis.flushall());
afterAll(async () => {
  close(redis);
  await server.stop();
});

type Counts = Readonly<Record<string, number>>;

/** The commands of all jobs from their due time to their end, those within scripts. */
async function commandsOf(share: string | undefined): Promise<Counts> {
  const jobs = createJobs(redis);
  const nowMs = 1_764_000_000_000;
  const { term } = await elect(redis, ref, { processId: 'p', leaseMs: 100_000_000, nowMs });
  await ensureGroup(redis, ref.keys);
  if (share !== undefined) await limit(redis, ref, { share: { share, groups: [] }, nowMs });
  const settings = { mode: 'keep', horizonMs: 1e12, bytesMax: 1000, nowMs } as const;
  for (let from = 0; from < JOBS; from += 250) {
    const items = Array.from({ length: 250 }, (_, at) => {
      const nth = from + at;
      const dueMs = nowMs - 2 * JOBS + nth;
      const member = `j:{g${nth % GROUPS}}n${String(nth).padStart(6, '0')}`;
      return { member, dueMs, record: encodeRecord(dueMs, '{"a":1}', {}) };
    });
    await jobs.schedule(ref, items, settings);
  }
  await redis.call('CONFIG', 'RESETSTAT');
  let mine: readonly Claim[] = [];
  for (let done = 0, turn = 0; done < JOBS; turn += 1) {
    const pass = { term, leaseMs: undefined, limit: 500, cap: 1000, nowMs };
    if (turn % 8 === 0) await jobs.promote(ref, pass);
    const ended = mine.map((claim) => ({ ...claim, mark: 'x 0' }));
    const worker = { consumer: 'w', bytesMax: 655_360, windowMs: 600_000, nowMs };
    const { taken } = await jobs.serve(ref, { ended, given: [], take: TAKE }, worker);
    done += mine.length;
    mine = taken.flatMap((one) => (one.kind === 'run' ? [one] : []));
  }
  return counted();
}

/** What Redis was asked for since the statistics were reset. */
async function counted(): Promise<Counts> {
  const stats = String(await redis.call('INFO', 'commandstats'));
  const counts = [...stats.matchAll(/cmdstat_([\w|]+):calls=(\d+)/g)].map(
    ([, name = '', calls]) => [name, Number(calls)] as const,
  );
  return Object.fromEntries(counts.filter(([name]) => !/^(evalsha|eval|config|info|client)/.test(name)).sort());
}

const sumOf = (counts: Counts): number => Object.values(counts).reduce((sum, count) => sum + count, 0);

test('with strict order a job costs at most a twentieth of its commands more', async () => {
  const lock = sumOf(await commandsOf('0 1 0 1'));
  await redis.flushall();
  const strict = sumOf(await commandsOf('0 1 0 1 s'));
  expect(lock).toBeGreaterThan(4 * JOBS);
  expect(strict / lock).toBeLessThanOrEqual(1.05);
  expect(strict).toBeGreaterThan(lock);
});

test('a second rate costs a field more of a call that lets jobs through, and a queue with one rate nothing', async () => {
  const { hget: ofOne = 0, ...one } = await commandsOf('1 1000000 0 1');
  await redis.flushall();
  const { hget: ofTwo = 0, ...two } = await commandsOf('1 1000000 0 1 r1,1000000');
  expect(ofOne).toBe(0);
  expect(two).toEqual(one);
  expect(ofTwo).toBeGreaterThan(0);
  // As often as `serve` and `promote` are called.
  expect(ofTwo).toBeLessThanOrEqual((one.time ?? 0) + (one.get ?? 0));
});

test('costs are read with each job that is let through, and a queue without them asks for nothing more', async () => {
  const { hget: ofOne = 0, ...one } = await commandsOf('1 1000000 0 1');
  await redis.flushall();
  const { hget: ofCosts = 0 } = await commandsOf('1 1000000 0 1 c');
  expect(ofOne).toBe(0);
  expect(ofCosts).toBeGreaterThanOrEqual(JOBS);
  // And once when turns were used last, in each call that asks for turns.
  expect(ofCosts).toBeLessThanOrEqual(JOBS + (one.time ?? 0) + (one.get ?? 0));
});

/** The commands of a job that expires as a dead letter, and of a commit that is refused halfway. */
async function commandsOfEnds(share: string | undefined): Promise<Counts> {
  const jobs = createJobs(redis);
  const nowMs = 1_764_000_000_000;
  const { term } = await elect(redis, ref, { processId: 'p', leaseMs: 100_000_000, nowMs });
  await ensureGroup(redis, ref.keys);
  if (share !== undefined) await limit(redis, ref, { share: { share, groups: [] }, nowMs });
  const items = ['j:{a}1', 'j:{b}1'].map((member) => {
    const ends = `;e=${(nowMs + 5).toString(36)};p=x|`;
    const dueMs = nowMs - 10;
    return { member, dueMs, record: encodeRecord(dueMs, '{}', {}).replace('|', ends) };
  });
  await jobs.schedule(ref, items, { mode: 'keep', horizonMs: 1e12, bytesMax: 1000, nowMs });
  await jobs.promote(ref, { term, leaseMs: undefined, limit: 500, cap: 1000, nowMs });
  const worker = { consumer: 'w', bytesMax: 655_360, windowMs: 600_000, nowMs };
  const { taken } = await jobs.serve(ref, { ended: [], given: [], take: 1 }, worker);
  const [claim] = taken.flatMap((one) => (one.kind === 'run' ? [one] : []));
  const [batch] = await readNew(redis, [ref], { consumer: 'w', count: 1, blockMs: 0 });
  if (!(claim && batch)) throw new Error('both were let through');
  await redis.call('CONFIG', 'RESETSTAT');
  const key = `${ref.keys.meta.slice(0, -5)}:own`;
  const effects = [
    { command: 'SET', key, args: ['1'] },
    { command: 'HSET', key, args: ['field', '1'] },
  ];
  expect(await jobs.commit(ref, claim, { windowMs: 600_000, nowMs, effects })).toMatch(/^half 2/);
  expect(await jobs.expire(ref, batch.deliveries, { ...worker, nowMs: nowMs + 10 })).toEqual(['dead']);
  return counted();
}

test('a queue without it asks Redis for the same as before there was any, command by command', async () => {
  const lock = await commandsOf('0 1 0 1');
  await redis.flushall();
  const plain = await commandsOf(undefined);
  expect({ lock, plain }).toEqual(BEFORE);
});

test('and so do ends that would hold a group', async () => {
  const lock = await commandsOfEnds('0 1 0 1');
  await redis.flushall();
  const plain = await commandsOfEnds(undefined);
  expect({ lock, plain }).toEqual(BEFORE_OF_ENDS);
});

interface OfBoth {
  readonly lock: Counts;
  readonly plain: Counts;
}

/** What the same test counted before there was strict order. */
const BEFORE: OfBoth = {
  lock: {
    ...{ exists: 13, get: 13, hdel: 100, hincrby: 209, hmget: 1214, hset: 411, spublish: 100, time: 101 },
    ...{ xack: 100, xadd: 5000, xdel: 100, 'xinfo|groups': 112, xlen: 113, xpending: 100, xreadgroup: 201, xtrim: 100 },
    ...{ zadd: 1290, zcard: 795, zmscore: 741, zrange: 17_422, zrangebyscore: 658, zrem: 403 },
  },
  plain: {
    ...{ get: 13, hdel: 100, hincrby: 100, hmget: 1214, hset: 312, time: 101 },
    ...{ xack: 100, xadd: 5000, xdel: 100, 'xinfo|groups': 100, xlen: 113, xpending: 100, xreadgroup: 101, xtrim: 100 },
    ...{ zadd: 100, zmscore: 200, zrange: 14, zrangebyscore: 435, zrem: 446 },
  },
};
const ENDS: Counts = {
  ...{ hdel: 2, hget: 5, hincrby: 2, hmget: 2, hset: 3, hstrlen: 1, set: 1, xack: 2, xadd: 2, xdel: 2 },
  ...{ xpending: 1, xrevrange: 3, zadd: 2, zscore: 2 },
};
const BEFORE_OF_ENDS: OfBoth = { lock: { ...ENDS, zcard: 2, zrange: 2, zrem: 2 }, plain: ENDS };
