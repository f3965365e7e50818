/** What a producer sees of a job after it was scheduled; the mover and the worker are played by their scripts. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Client, createClient } from '../../../src/client/client.ts';
import { encodeAttempted } from '../../../src/job/codec.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import type { OverState } from '../../../src/job/state.ts';
import { close, openCommands, type Redis, whenReady } from '../../../src/redis/connection/connect.ts';
import { partitionRef } from '../../../src/redis/keys.ts';
import { deadLetters } from '../../../src/redis/read/inspect.ts';
import { createJobs, type Jobs } from '../../../src/redis/scripts/jobs.ts';
import { elect } from '../../../src/redis/scripts/lease.ts';
import { readNew } from '../../../src/redis/scripts/ready.ts';
import type { Claim } from '../../../src/redis/scripts/replies.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

let server: TestRedis;
let redis: Redis;
let jobs: Jobs;
let producer: Client;
const emails = defineQueue<{ to: string }>('emails');
const ref = partitionRef('duestream', { queue: 'emails', partition: 0, layoutGeneration: 0 });
const windowMs = 600_000;

beforeAll(async () => {
  server = await startRedis();
  redis = openCommands({ redis: server.url, name: 'test' });
  await whenReady(redis);
  jobs = createJobs(redis);
});
beforeEach(async () => {
  await redis.flushall();
  producer = createClient({ redis: server.url });
});
afterEach(() => producer.close());
afterAll(async () => {
  close(redis);
  await server.stop();
});

/** All that is due becomes ready. */
async function promote(): Promise<void> {
  const { term } = await elect(redis, ref, { processId: 'm', leaseMs: 60_000 });
  await expect
    .poll(async () => {
      const reply = await jobs.promote(ref, { term, leaseMs: 60_000, limit: 500, cap: 10_000 });
      return reply.kind === 'promoted' && reply.count;
    })
    .toBeGreaterThan(0);
}

/** Promotes and starts the only due job. */
async function begin(): Promise<Claim> {
  await promote();
  const [read] = await readNew(redis, [ref], { consumer: 'w1', count: 1, blockMs: 0 });
  const [delivery] = read?.deliveries ?? [];
  if (!delivery) throw new Error('nothing is ready');
  const [started] = await jobs.start(ref, [delivery], { consumer: 'w1', bytesMax: 1e6, windowMs });
  if (started?.kind !== 'run') throw new Error(`start replied ${started?.kind}`);
  return { ...delivery, token: started.token };
}

const failed = encodeAttempted({ atMs: 1, attempt: 1, kind: 'failure', message: 'boom' });
const bury = (claim: Claim) => jobs.bury(ref, claim, { windowMs, reason: 'attempts-exhausted', error: failed });

describe('looking at a job', () => {
  test('shows one that waits, with its data and due times', async () => {
    const { dueMs } = await producer.schedule(emails, { to: 'a' }, { id: 'x', delay: '1h', name: 'welcome' });
    expect(await producer.get(emails, 'x')).toEqual({
      id: 'x',
      queue: 'emails',
      partition: 0,
      bare: false,
      state: 'scheduled',
      name: 'welcome',
      data: { to: 'a' },
      dueMs,
      askedDueMs: dueMs,
      readable: true,
      attempts: 0,
      failures: 0,
      crashes: 0,
      generation: 0,
      cancelRequested: false,
      history: [],
      owner: undefined,
      token: undefined,
      overMs: undefined,
      deadLetter: undefined,
      options: {},
      digest: expect.stringMatching(/^[0-9a-f]{16}$/),
      past: [],
      timeline: [
        { atMs: dueMs, kind: 'asked-due' },
        { atMs: dueMs, kind: 'due', attempt: 1 },
      ],
      nowMs: expect.any(Number),
      etag: expect.stringMatching(`^[0-9a-f]{16}:0:${dueMs}$`),
    });
  });

  test('shows one that is ready, one that runs, and one that waits for its retry', async () => {
    const { dueMs } = await producer.schedule(emails, { to: 'a' }, { id: 'x' });
    await promote();
    expect(await producer.get(emails, 'x')).toMatchObject({ state: 'ready', dueMs: undefined, data: { to: 'a' } });
    await redis.flushall();
    await producer.schedule(emails, { to: 'a' }, { id: 'x', at: new Date(dueMs) });
    const claim = await begin();
    const running = { state: 'running', owner: 'w1', token: claim.token, attempts: 1, failures: 0 };
    expect(await producer.get(emails, 'x')).toMatchObject(running);
    await jobs.retry(ref, claim, { windowMs, delayMs: 60_000, error: failed });
    expect(await producer.get(emails, 'x')).toMatchObject({
      state: 'scheduled',
      owner: undefined,
      attempts: 1,
      failures: 1,
      askedDueMs: dueMs,
      history: [{ message: 'boom', attempt: 1, kind: 'failure' }],
    });
  });

  test('shows the end of one that is over, without its data', async () => {
    await producer.schedule(emails, { to: 'a' }, { id: 'x' });
    const claim = await begin();
    await jobs.complete(ref, [claim], { windowMs });
    const view = await producer.get(emails, 'x');
    expect(view).toMatchObject({ state: 'done', data: undefined, name: undefined, attempts: 1, readable: true });
    expect(view?.overMs).toBeGreaterThan(0);
  });

  test('says that a record cannot be read, or is missing, rather than throwing', async () => {
    await producer.schedule(emails, { to: 'a' }, { id: 'x', at: new Date(2_000_000_000_000) });
    for (const [record, askedDueMs] of [
      [`1${(2_000_000_000_000).toString(36)}|{"d":`, 2_000_000_000_000],
      [`1${(2_000_000_000_000).toString(36)}|7`, 2_000_000_000_000],
      ['nonsense', undefined],
    ] as const) {
      await redis.hset(ref.keys.jobs, 'j:x', record);
      const broken = { state: 'scheduled', readable: false, data: undefined, name: undefined, askedDueMs };
      expect(await producer.get(emails, 'x')).toMatchObject(broken);
    }
    await redis.hdel(ref.keys.jobs, 'j:x');
    expect(await producer.get(emails, 'x')).toMatchObject({ state: 'scheduled', readable: false });
  });

  test('finds a bare job in whichever partition it was put', async () => {
    const wide = defineQueue('wide', { partitions: 4 });
    await producer.schedule(wide, 1, { id: 'declared' });
    for (const partition of [0, 1, 2, 3]) {
      await redis.zadd(`duestream:v1:{wide:${partition}}:scheduled`, 2_000_000_000_000, `order-${partition}`);
      const view = { partition, bare: true, state: 'scheduled', name: 'default', dueMs: 2_000_000_000_000 };
      expect(await producer.get(wide, `order-${partition}`, { bare: true })).toMatchObject({ ...view, readable: true });
    }
    expect(await producer.get(wide, 'order-1')).toBeUndefined();
  });

  test('says undefined of what nobody knows, and refuses an id that cannot be one', async () => {
    expect(await producer.get(emails, 'nobody')).toBeUndefined();
    expect(await producer.get(emails, '{schedule:daily}2026-01-01')).toBeUndefined();
    for (const id of ['', 'a b', 'x'.repeat(193)]) {
      await expect(producer.get(emails, id)).rejects.toMatchObject({ code: 'bad-input' });
    }
    for (const id of ['', 'j:x', 'x'.repeat(1025)]) {
      await expect(producer.get(emails, id, { bare: true })).rejects.toMatchObject({ code: 'bad-input' });
    }
  });
});

describe('cancelling', () => {
  test('ends one that waits, and says so again', async () => {
    await producer.schedule(emails, { to: 'a' }, { id: 'x', delay: '1h' });
    expect(await producer.cancel(emails, 'x')).toEqual({ id: 'x', status: 'cancelled' });
    expect(await producer.cancel(emails, 'x')).toEqual({ id: 'x', status: 'over', over: 'cancelled' });
    expect(await producer.get(emails, 'x')).toMatchObject({ state: 'cancelled' });
  });

  test('asks one that runs to stop', async () => {
    await producer.schedule(emails, { to: 'a' }, { id: 'x' });
    const claim = await begin();
    expect(await producer.cancel(emails, 'x')).toEqual({ id: 'x', status: 'requested' });
    expect(await jobs.extend(ref, [claim], 'w1')).toEqual(['cancel']);
    expect(await producer.get(emails, 'x')).toMatchObject({ state: 'running', cancelRequested: true });
  });

  test('says how one that is over has ended, and that another is unknown', async () => {
    await producer.schedule(emails, { to: 'a' }, { id: 'x' });
    await jobs.complete(ref, [await begin()], { windowMs });
    expect(await producer.cancel(emails, 'x')).toEqual({ id: 'x', status: 'over', over: 'done' });
    expect(await producer.cancel(emails, 'y')).toEqual({ id: 'y', status: 'unknown' });
  });

  test('reaches a bare job in whichever partition it was put', async () => {
    const wide = defineQueue('wide', { partitions: 4 });
    await producer.schedule(wide, 1, { id: 'declared' });
    for (const partition of [0, 3]) {
      await redis.zadd(`duestream:v1:{wide:${partition}}:scheduled`, 2_000_000_000_000, 'order-1');
    }
    expect(await producer.cancel(wide, 'order-1', { bare: true })).toEqual({ id: 'order-1', status: 'cancelled' });
    expect(await producer.cancel(wide, 'order-1', { bare: true })).toEqual({ id: 'order-1', status: 'unknown' });
  });
});

describe('scheduling an id again', () => {
  test('leaves a job that runs alone, also when it was to be replaced', async () => {
    await producer.schedule(emails, { to: 'a' }, { id: 'x' });
    await begin();
    const options = { id: 'x', delay: 60_000 };
    expect(await producer.schedule(emails, { to: 'b' }, options)).toMatchObject({ status: 'exists' });
    const replacing = { ...options, ifExists: 'replace' as const };
    expect(await producer.schedule(emails, { to: 'b' }, replacing)).toMatchObject({ status: 'running' });
    expect(await producer.get(emails, 'x')).toMatchObject({ state: 'running', data: { to: 'a' } });
  });

  test.each<[OverState, (claim: Claim) => Promise<unknown>]>([
    ['done', (claim) => jobs.complete(ref, [claim], { windowMs })],
    ['dead', bury],
  ])('by the same call does not bring back one that is %s, by a new call starts a new life', async (over, settle) => {
    const { dueMs } = await producer.schedule(emails, { to: 'a' }, { id: 'x' });
    await settle(await begin());
    const same = await producer.schedule(emails, { to: 'a' }, { id: 'x', at: new Date(dueMs) });
    expect(same).toEqual({ id: 'x', queue: 'emails', status: 'already', dueMs, over });
    const other = await producer.schedule(emails, { to: 'a' }, { id: 'x', delay: '1h' });
    expect(other.status).toBe('scheduled');
  });
});

describe('replaying a dead letter', () => {
  const die = async () => {
    await producer.schedule(emails, { to: 'a' }, { id: 'x' });
    await bury(await begin());
    const [deadLetter] = await deadLetters(redis, ref, { limit: 1 });
    if (!deadLetter) throw new Error('no dead letter');
    return deadLetter.entry;
  };

  test('schedules its job again, now or when asked', async () => {
    const deadLetter = await die();
    expect((await producer.get(emails, 'x'))?.deadLetter).toBe(deadLetter);
    const at = new Date(2_000_000_000_000);
    const replayed = { deadLetter, status: 'scheduled', id: 'x', dueMs: at.getTime() };
    expect(await producer.deadLetters.replay(emails, deadLetter, { at })).toEqual(replayed);
    const view = {
      state: 'scheduled',
      dueMs: at.getTime(),
      generation: 1,
      attempts: 1,
      failures: 0,
      data: { to: 'a' },
    };
    expect(await producer.get(emails, 'x')).toMatchObject(view);
    expect(await producer.deadLetters.replay(emails, deadLetter)).toMatchObject({ status: 'gone', id: undefined });
  });

  test('leaves the dead letter when a job of its id lives', async () => {
    const deadLetter = await die();
    await producer.schedule(emails, { to: 'b' }, { id: 'x', delay: '1h' });
    expect(await producer.deadLetters.replay(emails, deadLetter)).toMatchObject({ status: 'live', id: 'x' });
    expect(await deadLetters(redis, ref, { limit: 5 })).toHaveLength(1);
  });

  test('asks for the partition where two have a dead letter of the same number', async () => {
    const wide = defineQueue('wide', { partitions: 2 });
    await producer.schedule(wide, 1, { id: 'declared' });
    for (const partition of [0, 1]) {
      const fields = [
        'member',
        `j:p${partition}`,
        'record',
        `1${(5e12).toString(36)}|{}`,
        'reason',
        'r',
        'history',
        '',
      ];
      const counts = ['token', '0', 'attempts', '1', 'generation', '0', 'at', '1'];
      await redis.call('XADD', `duestream:v1:{wide:${partition}}:dead`, '7-0', ...fields, ...counts);
    }
    await expect(producer.deadLetters.replay(wide, '7-0')).rejects.toMatchObject({
      code: 'bad-input',
      message: expect.stringContaining('in the partitions 0, 1; name one'),
    });
    expect(await producer.deadLetters.replay(wide, '7-0', { partition: 1 })).toMatchObject({
      status: 'scheduled',
      id: 'p1',
    });
    expect(await producer.deadLetters.replay(wide, '7-0')).toMatchObject({ status: 'scheduled', id: 'p0' });
  });

  test('finds the newest dead letter of a job by the id of the job', async () => {
    const first = await die();
    await redis.hdel(ref.keys.jobs, 'j:x');
    await redis.zrem(ref.keys.done, 'j:x');
    const second = await die();
    expect(second).not.toBe(first);
    expect(await producer.deadLetters.replay(emails, { job: 'x' })).toMatchObject({
      deadLetter: second,
      status: 'scheduled',
      id: 'x',
    });
    expect(await producer.deadLetters.replay(emails, { job: 'x' })).toMatchObject({
      deadLetter: first,
      status: 'live',
      id: 'x',
    });
    await producer.cancel(emails, 'x');
    expect(await producer.deadLetters.replay(emails, { job: 'x' }, { delay: '1h' })).toMatchObject({
      deadLetter: first,
      status: 'scheduled',
      id: 'x',
    });
    expect(await deadLetters(redis, ref, { limit: 5 })).toEqual([]);
  });

  test('finds it behind others after its tombstone was swept, and says when there is none', async () => {
    const deadLetter = await die();
    await redis.hdel(ref.keys.jobs, 'j:x');
    await redis.zrem(ref.keys.done, 'j:x');
    const rest = ['record', `1${(5e12).toString(36)}|{}`, 'reason', 'r', 'history', ''];
    const counts = ['token', '0', 'attempts', '1', 'generation', '0', 'at', '1'];
    for (let at = 0; at < 450; at += 1) {
      await redis.call('XADD', ref.keys.dead, '*', 'member', `j:y${at}`, ...rest, ...counts);
    }
    const gone = { deadLetter: undefined, status: 'gone', id: 'nobody', dueMs: undefined };
    expect(await producer.deadLetters.replay(emails, { job: 'nobody' })).toEqual(gone);
    expect(await producer.deadLetters.replay(emails, { job: 'x', bare: true })).toMatchObject({
      status: 'gone',
      id: 'x',
    });
    expect(await producer.deadLetters.replay(emails, { job: 'x' })).toMatchObject({
      deadLetter,
      status: 'scheduled',
      id: 'x',
    });
  });

  test('refuses a number that cannot be a dead letter', async () => {
    await expect(producer.deadLetters.replay(emails, 'x')).rejects.toMatchObject({
      code: 'bad-input',
      message:
        'dead letter is "x"; allowed: its id such as 1763719000000-0, an object with it, or { job } with the id of a job',
    });
  });
});
