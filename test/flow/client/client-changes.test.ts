/** Changing jobs that wait, from the library: each verb in every state, at once with others, and after a lost reply. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Client, createClient, type MovedJobs } from '../../../src/client/client.ts';
import { ladder } from '../../../src/job/backoff.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { close, openCommands, type Redis, whenReady } from '../../../src/redis/connection/connect.ts';
import { partitionRef } from '../../../src/redis/keys.ts';
import { createJobs, type Jobs } from '../../../src/redis/scripts/jobs.ts';
import { elect } from '../../../src/redis/scripts/lease.ts';
import { readNew } from '../../../src/redis/scripts/ready.ts';
import type { Claim } from '../../../src/redis/scripts/replies.ts';
import { createTestKit } from '../../../src/testing/index.ts';
import { openLossyLine } from '../../support/lossy-line.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

let server: TestRedis;
let redis: Redis;
let jobs: Jobs;
let producer: Client;
const stops: (() => Promise<unknown>)[] = [];
const reminders = defineQueue<{ to: string }>('reminders');
const ref = partitionRef('duestream', { queue: 'reminders', partition: 0, layoutGeneration: 0 });
const windowMs = 600_000;
const HOUR_MS = 3_600_000;

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
afterEach(async () => {
  await producer.close();
  for (const stop of stops.splice(0)) await stop();
});
afterAll(async () => {
  close(redis);
  await server.stop();
});

/** All that is due becomes ready. */
async function promote(): Promise<void> {
  const { term } = await elect(redis, ref, { processId: 'm', leaseMs: 60_000 });
  const pass = async () => {
    const reply = await jobs.promote(ref, { term, leaseMs: 60_000, limit: 500, cap: 10_000 });
    return reply.kind === 'promoted' && reply.count;
  };
  await expect.poll(pass).toBeGreaterThan(0);
}

async function begin(): Promise<Claim> {
  await promote();
  const [read] = await readNew(redis, [ref], { consumer: 'w1', count: 1, blockMs: 0 });
  const [delivery] = read?.deliveries ?? [];
  if (!delivery) throw new Error('nothing is ready');
  const [started] = await jobs.start(ref, [delivery], { consumer: 'w1', bytesMax: 1e6, windowMs });
  if (started?.kind !== 'run') throw new Error(`start replied ${started?.kind}`);
  return { ...delivery, token: started.token };
}

const schedule = (id: string, options = {}) =>
  producer.schedule(reminders, { to: 'ada' }, { id, delay: '1h', ...options });

describe('another due time', () => {
  test('is what get shows, and the rest of the job stays', async () => {
    const { dueMs } = await schedule('x', { attempts: 3, name: 'first', maxLateness: '10m' });
    const before = await producer.get(reminders, 'x');
    const at = new Date(dueMs + HOUR_MS);
    expect(await producer.reschedule(reminders, 'x', { at })).toEqual({
      id: 'x',
      status: 'rescheduled',
      dueMs: at.getTime(),
      wasMs: dueMs,
    });
    const etag = `${before?.digest}:0:${at.getTime()}`;
    const after = await producer.get(reminders, 'x');
    const { nowMs, timeline } = after ?? {};
    expect(after).toEqual({ ...before, nowMs, timeline, dueMs: at.getTime(), etag });
  });

  test('counts a delay from now, and knows zones', async () => {
    await schedule('x');
    const now = (await redis.time()).map(Number)[0] ?? 0;
    const { dueMs = 0 } = await producer.reschedule(reminders, 'x', { delay: '2h' });
    expect(Math.floor(dueMs / 1000)).toBeGreaterThanOrEqual(now + 7200);
    const local = { at: '2030-06-01T09:00', zone: 'Europe/Berlin' };
    const found = await producer.reschedule(reminders, 'x', local);
    expect(found.dueMs).toBe(Date.parse('2030-06-01T09:00:00+02:00'));
  });

  test.each(['product', 'kit'])('is refused where the job could never start: %s', async (where) => {
    const client = where === 'kit' ? createTestKit({ handlers: {} }).client : producer;
    const { dueMs } = await client.schedule(reminders, { to: 'ada' }, { id: 'x', delay: '1h', tags: ['t'] });
    const expiresAt = new Date(dueMs + 1000);
    await client.edit(reminders, 'x', { expiresAt });
    const at = new Date(dueMs + 1001);
    const refusal = { code: 'bad-input', message: expect.stringContaining('after its expiresAt') };
    await expect(client.reschedule(reminders, 'x', { at })).rejects.toMatchObject(refusal);
    await expect(client.reschedule(reminders, ['x'], { at })).rejects.toMatchObject(refusal);
    await expect(client.edit(reminders, 'x', { at })).rejects.toMatchObject(refusal);
    expect(await client.reschedule(reminders, { tag: 't' }, { at })).toMatchObject({
      changed: 0,
      skipped: { refused: 1 },
    });
    expect(await client.get(reminders, 'x')).toMatchObject({ dueMs });
    expect(await client.edit(reminders, 'x', { at, expiresAt: at })).toMatchObject({ status: 'edited' });
    expect(await client.runNow(reminders, 'x')).toMatchObject({ status: 'due' });
  });

  test('only if it is earlier, or later', async () => {
    const { dueMs } = await schedule('x');
    const later = { at: new Date(dueMs + 1) };
    expect(await producer.reschedule(reminders, 'x', { ...later, only: 'earlier' })).toEqual({
      id: 'x',
      status: 'kept',
      dueMs,
    });
    expect(await producer.reschedule(reminders, 'x', { ...later, only: 'later' })).toMatchObject({
      status: 'rescheduled',
    });
  });

  test('takes a job out of ready, and none out of a handler', async () => {
    await schedule('x', { delay: 0 });
    await promote();
    expect(await producer.reschedule(reminders, 'x', { delay: '1h' })).toMatchObject({
      status: 'rescheduled',
      wasMs: undefined,
    });
    expect(await producer.get(reminders, 'x')).toMatchObject({ state: 'scheduled' });
    await schedule('y', { delay: 0 });
    await promote();
    await readNew(redis, [ref], { consumer: 'w1', count: 9, blockMs: 0 });
    await schedule('z', { delay: 0 });
    const claim = await begin();
    expect(await producer.reschedule(reminders, 'z', { delay: '1h' })).toEqual({ id: 'z', status: 'running' });
    await jobs.complete(ref, [claim], { windowMs });
    expect(await producer.reschedule(reminders, 'z', { delay: '1h' })).toEqual({
      id: 'z',
      status: 'over',
      over: 'done',
    });
    expect(await producer.reschedule(reminders, 'nobody', { delay: '1h' })).toEqual({
      id: 'nobody',
      status: 'unknown',
    });
  });

  test('of many jobs over several partitions, each in its place', async () => {
    const wide = defineQueue<number>('wide', { partitions: 4 });
    const ids = Array.from({ length: 600 }, (_, at) => `job-${at}`);
    await producer.scheduleMany(
      wide,
      ids.map((id) => ({ data: 1, id, delay: '1h' })),
    );
    const at = new Date(Date.now() + 10 * HOUR_MS);
    const asked = [...ids, 'nobody'];
    const found = await producer.reschedule(wide, asked, { at });
    expect(found.map(({ id }) => id)).toEqual([...ids, 'nobody']);
    expect(new Set(found.slice(0, -1).map(({ status }) => status))).toEqual(new Set(['rescheduled']));
    expect(found.at(-1)?.status).toBe('unknown');
    const again = await producer.reschedule(wide, asked, { at });
    expect(new Set(again.slice(0, -1).map(({ status }) => status))).toEqual(new Set(['already']));
  });

  test.each(['product', 'kit'])('is so much later, or earlier, than each had, and each once: %s', async (where) => {
    const client = where === 'kit' ? createTestKit({ handlers: {} }).client : producer;
    const ids = ['a', 'b', 'c', 'd', 'e'];
    const given = ids.map((id, at) => ({ id, data: { to: 'ada' }, delay: `${at + 1}h`, tags: ['t'] }));
    const made = await client.scheduleMany(reminders, given);
    const moved = async () => {
      const found = await Promise.all(ids.map((id) => client.get(reminders, id)));
      return found.map((job, at) => ((job?.dueMs ?? 0) - (made[at]?.dueMs ?? 0)) / HOUR_MS);
    };
    const { cursor } = await client.reschedule(reminders, { tag: 't' }, { shift: '1h' }, { limit: 2 });
    const rest = await client.reschedule(reminders, { tag: 't' }, { shift: HOUR_MS }, { cursor });
    expect(rest).toMatchObject({ matched: 3, changed: 3, skipped: {} });
    expect(await moved()).toEqual([1, 1, 1, 1, 1]);
    const dueMs = made[0]?.dueMs ?? 0;
    expect(await client.reschedule(reminders, 'a', { shift: '1d' })).toMatchObject({
      status: 'rescheduled',
      wasMs: dueMs + HOUR_MS,
      dueMs: dueMs + 25 * HOUR_MS,
    });
    const some = await client.reschedule(reminders, ['b', { id: 'c', shift: -HOUR_MS }, 'none'], { shift: '-2h' });
    expect(some.map(({ status }) => status)).toEqual(['rescheduled', 'rescheduled', 'unknown']);
    expect(await moved()).toEqual([25, -1, 0, 1, 1]);
    const { etag } = (await client.get(reminders, 'd')) ?? {};
    await client.reschedule(reminders, 'd', { shift: '1m' }, { ifMatch: etag });
    expect(await client.reschedule(reminders, 'd', { shift: '1m' }, { ifMatch: etag })).toMatchObject({
      status: 'changed',
    });
  });

  test.each(['product', 'kit'])(
    'is never before now, never after an expiry nor beyond the horizon: %s',
    async (where) => {
      const client = where === 'kit' ? createTestKit({ handlers: {} }).client : producer;
      const { dueMs } = await client.schedule(reminders, { to: 'ada' }, { id: 'x', delay: '1h', tags: ['t'] });
      await client.edit(reminders, 'x', { expiresAt: new Date(dueMs + 1000) });
      expect(await client.reschedule(reminders, { tag: 't' }, { shift: 1001 })).toMatchObject({
        skipped: { refused: 1 },
      });
      await expect(client.reschedule(reminders, 'x', { shift: 1001 })).rejects.toThrow('after its expiresAt');
      await expect(client.reschedule(reminders, 'x', { shift: '9999d' })).rejects.toThrow('beyond the horizon');
      const beforeMs = dueMs - HOUR_MS;
      const earlier = await client.reschedule(reminders, 'x', { shift: '-2h' });
      expect(earlier).toMatchObject({ status: 'rescheduled', wasMs: dueMs });
      expect(earlier.dueMs).toBeGreaterThanOrEqual(beforeMs);
      expect(earlier.dueMs).toBeLessThan(dueMs);
      // The kit is at the same millisecond.
      const { status } = await client.reschedule(reminders, 'x', { shift: '-2h' });
      expect(status).toBe(where === 'kit' ? 'already' : 'ready');
    },
  );

  test.each(['product', 'kit'])('says before and after, and its dry run is carried out once: %s', async (where) => {
    const client = where === 'kit' ? createTestKit({ handlers: {} }).client : producer;
    const given = ['a', 'b'].map((id, at) => ({ id, data: { to: 'ada' }, delay: `${at + 1}h`, tags: ['t'] }));
    const made = await client.scheduleMany(reminders, given);
    const dues = made.map(({ dueMs }) => dueMs);
    const dueOf = async () => Promise.all(['a', 'b'].map(async (id) => (await client.get(reminders, id))?.dueMs));
    const later = dues.map((dueMs) => dueMs + HOUR_MS);
    const dry = await client.reschedule(reminders, { tag: 't' }, { shift: '1h' }, { dryRun: true });
    expect(dry.moves).toMatchObject(dues.map((wasMs, at) => ({ id: given[at]?.id, wasMs, dueMs: later[at] })));
    expect(await dueOf()).toEqual(dues);
    const planned = ({ moves }: MovedJobs) =>
      moves.map(({ id, dueMs, etag }) => ({ id, at: new Date(dueMs), ifMatch: etag }));
    // Twice, as after a crash or a lost reply.
    for (const status of ['rescheduled', 'already']) {
      const done = await client.reschedule(reminders, planned(dry), {});
      expect(done.map((one) => one.status)).toEqual([status, status]);
      expect(await dueOf()).toEqual(later);
    }
    const { moves } = await client.reschedule(reminders, { tag: 't' }, { shift: '-30m' });
    const back = moves.map(({ id, wasMs = 0, etag }) => ({ id, at: new Date(wasMs), ifMatch: etag }));
    expect((await client.reschedule(reminders, back, {})).map((one) => one.status)).toEqual([
      'rescheduled',
      'rescheduled',
    ]);
    expect(await dueOf()).toEqual(later);
    // Somebody else has moved one meanwhile: it is left alone.
    await client.reschedule(reminders, 'a', { shift: '1m' });
    const stale = await client.reschedule(
      reminders,
      planned(dry).map((one) => ({ ...one, at: new Date(dues[1] ?? 0) })),
      {},
    );
    expect(stale.map((one) => one.status)).toEqual(['changed', 'changed']);
  });

  test('of a dry run leaves out what would stay where it is', async () => {
    await producer.schedule(reminders, { to: 'ada' }, { id: 'x', delay: '1h', tags: ['t'] });
    const at = new Date(Date.now() + 2 * HOUR_MS);
    const moved = async (only: 'earlier' | 'later') =>
      (await producer.reschedule(reminders, { tag: 't' }, { at, only }, { dryRun: true })).moves.map(
        ({ dueMs }) => dueMs,
      );
    expect([await moved('earlier'), await moved('later')]).toEqual([[], [at.getTime()]]);
  });

  test('by a shift needs a tag or a set in a filter, and nothing beside it', async () => {
    const shifted = (filter: object, due: object) => producer.reschedule(reminders, filter, due);
    await expect(shifted({ state: 'scheduled' }, { shift: '1d' })).rejects.toThrow('neither tag nor set');
    await expect(shifted({ tag: 't' }, { shift: '1d', delay: '1d' })).rejects.toThrow('allowed: shift alone');
    await expect(shifted({ tag: 't' }, { shift: 0 })).rejects.toThrow('shift is 0');
    await expect(shifted({ tag: 't' }, { shift: 'soon' })).rejects.toThrow('shift is "soon"');
  });

  test.each([
    [{}, /neither delay nor at is given; allowed: one of them, a shift, or runNow/],
    [{ delay: '1h', only: 'sooner' }, /only is "sooner"; allowed: earlier, later/],
    [{ delay: '1h', only: 'any' }, /only is "any"/],
    [{ dealy: '1h' }, /dealy is not an option of reschedule; did you mean delay\?/],
    [{ delay: '1h', at: new Date() }, /allowed: one of them/],
    [{ at: new Date(5) }, /at is 1970/],
  ])('%o is refused before anything is sent', async (due, message) => {
    await expect(producer.reschedule(reminders, 'x', due as object)).rejects.toThrow(message);
  });
});

describe('run now', () => {
  test('makes a job due that waits for its time, or for its retry', async () => {
    await schedule('x');
    expect(await producer.runNow(reminders, 'x')).toEqual({ id: 'x', status: 'due' });
    const claim = await begin();
    expect(await producer.runNow(reminders, 'x')).toEqual({ id: 'x', status: 'running' });
    await jobs.retry(ref, claim, { windowMs, delayMs: HOUR_MS, error: '{}' });
    expect(await producer.runNow(reminders, ['x', 'nobody'])).toEqual([
      { id: 'x', status: 'due' },
      { id: 'nobody', status: 'unknown' },
    ]);
    await promote();
    expect(await producer.runNow(reminders, 'x')).toEqual({ id: 'x', status: 'already-due' });
  });
});

describe('another content', () => {
  test('is what get shows; what is not named stays', async () => {
    await schedule('x', { attempts: 3, name: 'first', maxLateness: '10m', backoff: ladder(['1m']) });
    const before = await producer.get(reminders, 'x');
    const edited = await producer.edit(reminders, 'x', { data: { to: 'bob' }, attempts: 5, timeout: '9s' });
    const after = await producer.get(reminders, 'x');
    expect(edited).toEqual({ id: 'x', status: 'edited', digest: after?.digest, etag: after?.etag });
    expect(after).toEqual({
      ...before,
      nowMs: after?.nowMs,
      data: { to: 'bob' },
      digest: edited.digest,
      etag: edited.etag,
      options: { ...before?.options, attempts: 5, timeoutMs: 9000 },
    });
    expect(await producer.edit(reminders, 'x', { attempts: null, timeout: null, name: 'second' })).toMatchObject({
      status: 'edited',
    });
    expect((await producer.get(reminders, 'x'))?.options).toEqual({
      backoff: before?.options.backoff,
      maxLatenessMs: 600_000,
      onLate: 'drop',
    });
  });

  test.each(['product', 'kit'])('comes with another due time in one step, and keeps all else: %s', async (where) => {
    const client = where === 'kit' ? createTestKit({ handlers: {} }).client : producer;
    const options = { id: 'x', delay: '1h', tags: ['invoice:7'], name: 'first', attempts: 3 } as const;
    const { dueMs } = await client.schedule(reminders, { to: 'old' }, options);
    const before = await client.get(reminders, 'x');
    const change = { data: { to: 'new' }, at: new Date(dueMs + HOUR_MS) };
    const edited = await client.edit(reminders, 'x', change, { ifMatch: before?.etag });
    expect(edited).toMatchObject({ status: 'edited', dueMs: dueMs + HOUR_MS });
    const after = await client.get(reminders, 'x');
    expect(after).toMatchObject({ data: { to: 'new' }, dueMs: dueMs + HOUR_MS, name: 'first', etag: edited.etag });
    expect(after?.options).toEqual(before?.options);
    expect(await client.edit(reminders, 'x', change)).toMatchObject({ status: 'already', etag: edited.etag });
    expect(await client.edit(reminders, 'x', { delay: '9h' }, { ifMatch: before?.etag })).toMatchObject({
      status: 'changed',
    });
    expect(await client.edit(reminders, ['x', 'y'], { delay: '9h' })).toMatchObject([
      { status: 'edited' },
      { status: 'unknown' },
    ]);
    await expect(client.edit(reminders, { tag: 'invoice:7' }, { delay: '9h' })).rejects.toThrow('reschedule');
    await client.cancel(reminders, 'x');
    expect(await client.edit(reminders, 'x', change)).toMatchObject({ status: 'over', over: 'cancelled' });
  });

  test('again is already there', async () => {
    await schedule('x');
    await producer.edit(reminders, 'x', { data: { to: 'bob' } });
    expect(await producer.edit(reminders, 'x', { data: { to: 'bob' } })).toMatchObject({ status: 'already' });
  });

  test('only if the job is what the caller has seen', async () => {
    await schedule('x');
    const ifDigest = (await producer.get(reminders, 'x'))?.digest;
    await producer.edit(reminders, 'x', { name: 'other' });
    expect(await producer.edit(reminders, 'x', { data: { to: 'bob' } }, { ifDigest })).toMatchObject({
      status: 'changed',
    });
    const { digest } = (await producer.get(reminders, 'x')) ?? {};
    expect(await producer.edit(reminders, 'x', { data: { to: 'bob' } }, { ifDigest: digest })).toMatchObject({
      status: 'edited',
    });
  });

  test('of edits at once undoes none', async () => {
    await schedule('x');
    const found = await Promise.all([
      ...[1, 2, 3].map((attempts) => producer.edit(reminders, 'x', { attempts })),
      producer.edit(reminders, 'x', { name: 'other' }),
      producer.edit(reminders, 'x', { data: { to: 'bob' } }),
    ]);
    expect(found.every(({ status }) => status === 'edited' || status === 'changed')).toBe(true);
    const view = await producer.get(reminders, 'x');
    const done = (at: number) => found[at]?.status === 'edited';
    expect(view?.name).toBe(done(3) ? 'other' : 'default');
    expect(view?.data).toEqual({ to: done(4) ? 'bob' : 'ada' });
  });

  test('of a job that runs, is over or unknown is refused', async () => {
    await schedule('x', { delay: 0 });
    const claim = await begin();
    const change = { data: { to: 'bob' } };
    expect(await producer.edit(reminders, 'x', change)).toEqual({ id: 'x', status: 'running' });
    await jobs.complete(ref, [claim], { windowMs });
    expect(await producer.edit(reminders, 'x', change)).toEqual({ id: 'x', status: 'over', over: 'done' });
    expect(await producer.edit(reminders, 'nobody', change)).toEqual({ id: 'nobody', status: 'unknown' });
  });

  test('of a record that cannot be read is refused, and one that JavaScript would round', async () => {
    await schedule('x');
    await redis.hset(ref.keys.jobs, 'j:x', '2abc|{}');
    expect(await producer.edit(reminders, 'x', { name: 'other' })).toEqual({ id: 'x', status: 'unreadable' });
    await redis.hset(ref.keys.jobs, 'j:x', '1mi8or64g|{"d":9007199254740993}');
    await expect(producer.edit(reminders, 'x', { name: 'other' })).rejects.toThrow(/which JavaScript would round/);
  });

  test('of many large jobs goes in several calls', async () => {
    const large = defineQueue<string>('large', { partitions: 2 });
    const ids = Array.from({ length: 60 }, (_, at) => `job-${at}`);
    await producer.scheduleMany(
      large,
      ids.map((id) => ({ data: 'x'.repeat(100_000), id, delay: '1h' })),
    );
    const found = await producer.edit(large, ids, { data: 'y'.repeat(100_000) });
    expect(found.map(({ id, status }) => `${id} ${status}`)).toEqual(ids.map((id) => `${id} edited`));
    expect((await producer.get(large, 'job-59'))?.data).toBe('y'.repeat(100_000));
  });

  test.each([
    [{}, /nothing is to be different; allowed: at least one of data, name, delay, at, zone, attempts/],
    [{ attempts: 0 }, /attempts is 0/],
    [{ within: '1h' }, /within is not an option of edit/],
    [{ ifDigest: 'x', name: 'a' }, /ifDigest is not an option of edit/],
    [{ data: 'x'.repeat(300_000) }, /data is 300002 bytes of JSON; allowed: 262144 bytes/],
    [{ name: 'no name' }, /name is "no name"/],
  ])('%o is refused before anything is sent', async (change, message) => {
    await expect(producer.edit('reminders', 'x', change as object)).rejects.toThrow(message);
  });

  test('is refused for what is no digest', async () => {
    const call = producer.edit('reminders', 'x', { name: 'a' }, { ifDigest: 'x' });
    await expect(call).rejects.toThrow(/ifDigest is "x"; allowed: the digest that get shows/);
  });
});

describe('an option for another kind of target', () => {
  const loose = { dryRun: true, ifMatch: '*', limit: 5, bare: true } as const;
  type Name = keyof typeof loose;
  const all = { tag: 't' };
  test.each<[string, Name, (options: object) => Promise<unknown>]>([
    ['a dry run of one id', 'dryRun', (options) => producer.cancel('reminders', 'x', options)],
    ['a dry run of a list', 'dryRun', (options) => producer.edit('reminders', ['x'], { attempts: 1 }, options)],
    ['a limit of a list', 'limit', (options) => producer.runNow('reminders', ['x'], options)],
    ['a condition on a list', 'ifMatch', (options) => producer.cancel('reminders', ['x'], options)],
    ['a condition on a filter', 'ifMatch', (options) => producer.reschedule('reminders', all, { delay: 1 }, options)],
    ['bare jobs by a filter', 'bare', (options) => producer.cancel('reminders', all, options)],
  ])('is refused: %s', async (_, name, call) => {
    await expect(call({ [name]: loose[name] })).rejects.toThrow(
      new RegExp(`^${name} is given to \\w+ with .*; it goes with .*; allowed: `),
    );
    await expect(call({ [name]: undefined })).resolves.toBeDefined();
  });

  test.each([5, null, undefined, true])('and so is %s as a target', async (target) => {
    await expect(producer.cancel('reminders', target as never)).rejects.toMatchObject({
      code: 'bad-input',
      message: expect.stringContaining('allowed: the id of a job, a list of ids, or a filter'),
    });
  });

  test('and so is an element of a list that names no job', async () => {
    await expect(producer.cancel('reminders', ['x', 5 as never])).rejects.toThrow(/jobs\[1\] is 5; allowed: an id/);
    const wrong = [{ id: 'x', delay: '1h' }] as never;
    await expect(producer.cancel('reminders', wrong)).rejects.toThrow(/delay is not an option of cancel/);
  });
});

describe('a list', () => {
  test('may say what is for one of its jobs alone', async () => {
    await schedule('x');
    await schedule('y');
    const { etag } = (await producer.get(reminders, 'x')) ?? {};
    await producer.edit(reminders, 'x', { attempts: 4 });
    const done = await producer.edit(reminders, [{ id: 'x', ifMatch: etag }, { id: 'y', attempts: 7 }, 'none'], {
      attempts: 2,
      timeout: '1m',
    });
    expect(done.map(({ id, status }) => `${id} ${status}`)).toEqual(['x changed', 'y edited', 'none unknown']);
    expect((await producer.get(reminders, 'y'))?.options).toMatchObject({ attempts: 7, timeoutMs: 60_000 });
    const at = new Date(Date.now() + 10 * HOUR_MS);
    await producer.reschedule(reminders, ['x', { id: 'y', delay: '30h' }], { at });
    expect((await producer.get(reminders, 'x'))?.dueMs).toBe(at.getTime());
    expect((await producer.get(reminders, 'y'))?.dueMs).toBeGreaterThan(at.getTime());
    expect(await producer.cancel(reminders, [{ id: 'x', ifMatch: etag }, 'y'])).toEqual([
      { id: 'x', status: 'changed' },
      { id: 'y', status: 'cancelled' },
    ]);
  });
});

describe('a lost reply', () => {
  async function overLine() {
    const line = await openLossyLine(server);
    const over = createClient({ redis: line.url, retryBudget: '5s' });
    stops.push(over.close, line.close);
    await over.schedule(reminders, { to: 'first' }, { delay: '1h' });
    return { line, over };
  }

  test('of a reschedule is asked for again, and its own work is recognised', async () => {
    const { line, over } = await overLine();
    await schedule('x');
    const at = new Date(Date.now() + 10 * HOUR_MS);
    line.lose({ after: 1 });
    expect(await over.reschedule(reminders, 'x', { at })).toMatchObject({ status: 'already', dueMs: at.getTime() });
    expect(line.lost()).toBe(1);
    expect(await redis.hget(ref.keys.meta, 'n.rescheduled')).toBe('1');
  });

  test.each([['x'], [{ tag: 't' }]])('of a shift of %o is asked for again, and shifts once', async (target) => {
    const { line, over } = await overLine();
    const { dueMs } = await schedule('x', { tags: ['t'] });
    line.lose({ after: 1 });
    await over.reschedule(reminders, target as string, { shift: '1d' });
    expect(line.lost()).toBe(1);
    expect((await producer.get(reminders, 'x'))?.dueMs).toBe(dueMs + 24 * HOUR_MS);
    expect(await redis.hget(ref.keys.meta, 'n.rescheduled')).toBe('1');
  });

  test('of an edit is asked for again, and its own work is recognised', async () => {
    const { line, over } = await overLine();
    await schedule('x');
    line.lose({ after: 1 });
    expect(await over.edit(reminders, 'x', { data: { to: 'bob' } })).toMatchObject({ status: 'edited' });
    expect(line.lost()).toBe(1);
    expect(await redis.hget(ref.keys.meta, 'n.edited')).toBe('1');
  });
});

describe('a refusal that passes', () => {
  const far = new Date(Date.now() + 10 * HOUR_MS);
  const filter = { idPrefix: 'run' };

  /** One job that runs, one that is over, and one that waits. */
  async function jobsInEachState() {
    await schedule('runs', { delay: 0, tags: ['t'] });
    await begin();
    await schedule('over');
    await producer.cancel(reminders, 'over');
    await schedule('waits', { at: far, delay: undefined });
  }

  const verbs: readonly (readonly [string, () => Promise<unknown>])[] = [
    ['reschedule', () => producer.reschedule(reminders, 'runs', { delay: '2h' })],
    ['reschedule a list', () => producer.reschedule(reminders, ['over', 'none', 'waits'], { at: far })],
    ['runNow', () => producer.runNow(reminders, 'none')],
    ['runNow a list', () => producer.runNow(reminders, ['runs', 'over', 'none'])],
    ['edit', () => producer.edit(reminders, 'waits', { data: { to: 'ada' } })],
    ['edit of none', () => producer.edit(reminders, 'none', { attempts: 2 })],
    ['edit a list', () => producer.edit(reminders, ['waits', { id: 'over', attempts: 2 }], { data: { to: 'ada' } })],
    ['cancel', () => producer.cancel(reminders, 'over')],
    ['cancel a list', () => producer.cancel(reminders, ['over', 'none'])],
    ['cancel by filter', () => producer.cancel(reminders, { idPrefix: 'zzz' })],
    ['edit by filter', () => producer.edit(reminders, { state: 'scheduled' }, { data: { to: 'ada' } })],
    ['reschedule by filter', () => producer.reschedule(reminders, filter, { at: far })],
    ['replay', () => producer.deadLetters.replay(reminders, { job: 'over' })],
  ];

  test.each(verbs)('of %s is answered as a first call is', async (_, call) => {
    await jobsInEachState();
    const first = await call();
    await redis.config('SET', 'min-replicas-to-write', '1');
    const refused = async () => Number(/rejected_calls=([1-9]\d*)/.exec(await redis.info('commandstats'))?.[1] ?? 0);
    await redis.config('RESETSTAT');
    let isAnswered = false;
    const again = call().finally(() => {
      isAnswered = true;
    });
    await expect.poll(async () => isAnswered || (await refused()) > 0).toBe(true);
    await redis.config('SET', 'min-replicas-to-write', '0');
    expect(await again).toEqual(first);
  });
});

test('a priority means nothing in a queue without limits, and an edit that gives one is refused there as a schedule is', async () => {
  await producer.schedule(reminders, { to: 'a' }, { id: 'a', delay: '1h' });
  const refusal =
    'priority "high", and queue reminders is not gated; allowed: after "duestream queues set reminders --fair"';
  await expect(producer.schedule(reminders, { to: 'b' }, { priority: 'high' })).rejects.toThrow(refusal);
  await expect(producer.edit(reminders, 'a', { priority: 'high' })).rejects.toThrow(refusal);
  await expect(producer.edit(reminders, { idPrefix: 'a' }, { priority: 'high' })).rejects.toThrow(refusal);
  await expect(producer.edit(reminders, [{ id: 'a', priority: 'high' }], {})).rejects.toMatchObject({
    code: 'bad-input',
  });
  expect(await producer.edit(reminders, 'a', { priority: 'normal', data: { to: 'c' } })).toMatchObject({
    status: 'edited',
  });
  // Somebody else sets limits: this client has not read them yet.
  const other = createClient({ redis: server.url });
  stops.push(() => other.close());
  await other.schedule(defineQueue('reminders', { fair: true }), { to: 'x' }, { delay: '1h' });
  expect(await producer.edit(reminders, 'a', { priority: 'high' })).toMatchObject({ status: 'edited' });
  expect(await producer.get(reminders, 'a')).toMatchObject({ options: { priority: 'high' } });
});
