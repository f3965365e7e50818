/** Changes that hold only for what was seen, from the library: in Redis, in the test kit, and after a lost reply. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Client, createClient, type JobsClient } from '../../../src/client/client.ts';
import type { Schedules } from '../../../src/client/schedules/schedules.ts';
import { close, openCommands, type Redis, whenReady } from '../../../src/redis/connection/connect.ts';
import { partitionRef } from '../../../src/redis/keys.ts';
import { createTestKit } from '../../../src/testing/index.ts';
import { openLossyLine } from '../../support/lossy-line.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

let server: TestRedis;
let redis: Redis;
let producer: Client;
let schedules: Schedules;
let schedulesClient: Client;
const stops: (() => Promise<unknown>)[] = [];
const { keys } = partitionRef('duestream', { queue: 'mail', partition: 0, layoutGeneration: 0 });
const HOURLY = { queue: 'mail', every: '1h' } as const;
const at = (hours: number) => new Date(Date.now() + hours * 3_600_000);

beforeAll(async () => {
  server = await startRedis();
  redis = openCommands({ redis: server.url, name: 'test' });
  await whenReady(redis);
});
beforeEach(async () => {
  await redis.flushall();
  producer = createClient({ redis: server.url });
  schedulesClient = createClient({ redis: server.url });
  schedules = schedulesClient.schedules;
  await producer.schedule('mail', 'first', { id: 'a', at: at(1) });
  await schedules.put('hourly', HOURLY);
});
afterEach(async () => {
  for (const stop of [producer.close, schedulesClient.close, ...stops.splice(0)]) await stop();
});
afterAll(async () => {
  close(redis);
  await server.stop();
});

const etagOf = async (of: JobsClient = producer) => (await of.get('mail', 'a'))?.etag;
const etagOfSchedule = async () => (await schedules.get('hourly'))?.etag;

async function bury(entry: string, generation: number): Promise<void> {
  const record = (await redis.hget(keys.jobs, 'j:a')) ?? '';
  const died = { reason: 'no-handler', history: '', attempts: 1, failures: 0, crashes: 0, token: 5, at: 1763719000000 };
  await redis.xadd(keys.dead, entry, ...Object.entries({ member: 'j:b', record, ...died, generation }).flat());
}

describe.each(['Redis', 'the test kit'])('in %s', (place) => {
  const of = async (): Promise<JobsClient> => {
    if (place === 'Redis') return producer;
    const kit = createTestKit({ handlers: {} });
    await kit.schedule('mail', 'first', { id: 'a', at: at(1) });
    return kit.client;
  };

  test('a job is changed, with each verb, only if it is what was seen', async () => {
    const one = await of();
    const stale = await etagOf(one);
    const edited = await one.edit('mail', 'a', { data: 'second' }, { ifMatch: stale });
    expect(edited).toMatchObject({ status: 'edited', etag: await etagOf(one) });
    const refused = { id: 'a', status: 'changed' };
    expect(await one.edit('mail', 'a', { data: 'third' }, { ifMatch: stale })).toMatchObject(refused);
    expect(await one.reschedule('mail', 'a', { at: at(2) }, { ifMatch: stale })).toEqual(refused);
    expect(await one.reschedule('mail', 'a', { at: at(2), only: 'earlier' }, { ifMatch: stale })).toEqual(refused);
    expect(await one.runNow('mail', 'a', { ifMatch: stale })).toEqual(refused);
    expect(await one.cancel('mail', 'a', { ifMatch: stale })).toEqual(refused);
    expect(await one.get('mail', 'a')).toMatchObject({ state: 'scheduled', data: 'second', etag: edited.etag });
    const moved = await one.reschedule('mail', 'a', { at: at(3) }, { ifMatch: edited.etag });
    expect(moved).toMatchObject({ status: 'rescheduled' });
    expect(await one.cancel('mail', 'a', { ifMatch: edited.etag })).toEqual(refused);
    expect(await one.cancel('mail', 'a', { ifMatch: await etagOf(one) })).toEqual({ id: 'a', status: 'cancelled' });
    expect(await etagOf(one)).toBeUndefined();
  });

  test('whatever it is, * means it', async () => {
    const one = await of();
    expect(await one.reschedule('mail', 'a', { at: at(2) }, { ifMatch: '*' })).toMatchObject({ status: 'rescheduled' });
    expect(await one.cancel('mail', 'a', { ifMatch: '*' })).toMatchObject({ status: 'cancelled' });
  });

  test('what is no ETag is refused, and so is one of many jobs', async () => {
    const one = await of();
    for (const ifMatch of ['', 'two words', '"quoted"', 7]) {
      const given = { ifMatch } as object;
      await expect(one.cancel('mail', 'a', given)).rejects.toMatchObject({
        code: 'bad-input',
        message: /^ifMatch is /,
      });
      await expect(one.runNow('mail', 'a', given)).rejects.toMatchObject({ code: 'bad-input' });
      await expect(one.edit('mail', 'a', { data: 1 }, given)).rejects.toMatchObject({ code: 'bad-input' });
    }
    const all = { tag: 't' };
    await expect(one.edit('mail', all, { attempts: 2 }, { ifMatch: 'x' } as object)).rejects.toThrow(
      /ifMatch is given/,
    );
    await expect(one.reschedule('mail', all, { at: at(2) }, { ifMatch: 'x' } as object)).rejects.toThrow(/ifMatch/);
    await expect(one.runNow('mail', ['a'], { ifMatch: 'x' } as object)).rejects.toThrow(/ifMatch/);
  });
});

test('many jobs get another due time, each if it is what was seen of it', async () => {
  await producer.schedule('mail', 1, { id: 'b', at: at(1) });
  const [stale, seen] = [await etagOf(), (await producer.get('mail', 'b'))?.etag];
  await producer.edit('mail', 'a', { data: 'else' });
  const jobs = [{ id: 'a', ifMatch: stale }, { id: 'b', ifMatch: seen }, 'a'];
  const done = await producer.reschedule('mail', jobs, { at: at(9) });
  expect(done.map(({ status }) => status)).toEqual(['changed', 'rescheduled', 'rescheduled']);
});

test('a dead letter of a job is replayed only if it is the one that was seen', async () => {
  await bury('1763719000000-0', 1);
  const [placed] = await redis.xrange(keys.dead, '-', '+');
  expect(placed?.[0]).toBe('1763719000000-0');
  await bury('1763719000001-0', 2);
  const replay = (ifMatch: string) => producer.deadLetters.replay('mail', { job: 'b' }, { ifMatch });
  expect(await replay('0123456789abcdef')).toMatchObject({ deadLetter: '1763719000001-0', status: 'changed' });
  expect(await redis.xlen(keys.dead)).toBe(2);
  expect(await replay('*')).toMatchObject({ deadLetter: '1763719000001-0', status: 'scheduled' });
});

test('a schedule is changed, with each verb, only if it is what was seen', async () => {
  const stale = await etagOfSchedule();
  const put = await schedules.put('hourly', { ...HOURLY, data: 2 }, { ifMatch: stale });
  expect(put).toMatchObject({ name: 'hourly', status: 'changed', etag: await etagOfSchedule() });
  const refused = { code: 'changed', message: expect.stringContaining(`its etag is "${put.etag}"`) };
  await expect(schedules.put('hourly', { ...HOURLY, data: 3 }, { ifMatch: stale })).rejects.toMatchObject(refused);
  await expect(schedules.pause('hourly', '', { ifMatch: stale })).rejects.toMatchObject(refused);
  await expect(schedules.trigger('hourly', { ifMatch: stale })).rejects.toMatchObject(refused);
  await expect(schedules.remove('hourly', { ifMatch: stale })).rejects.toMatchObject(refused);
  await expect(schedules.put('none', HOURLY, { ifMatch: '*' })).rejects.toMatchObject({ code: 'changed' });
  expect(await schedules.get('none')).toBeUndefined();
  expect(await redis.zcard(keys.scheduled)).toBe(1);
  const paused = await schedules.pause('hourly', 'lunch', { ifMatch: put.etag });
  await expect(schedules.resume('hourly', { ifMatch: put.etag })).rejects.toMatchObject({ code: 'changed' });
  expect(await schedules.trigger('hourly', { ifMatch: paused.etag })).toMatchObject({ status: 'scheduled' });
  await expect(schedules.remove('hourly', { ifmatch: 'x' } as object)).rejects.toMatchObject({ code: 'bad-input' });
  expect(await schedules.remove('hourly', { ifMatch: paused.etag })).toBe(true);
});

describe('after a lost reply', () => {
  async function overLine() {
    const line = await openLossyLine(server);
    const over = createClient({ redis: line.url, retryBudget: '5s' });
    const overSchedulesClient = createClient({ redis: line.url, retryBudget: '5s' });
    const overSchedules = overSchedulesClient.schedules;
    stops.push(over.close, overSchedulesClient.close, line.close);
    await Promise.all([over.get('mail', 'a'), overSchedules.get('hourly')]);
    return { line, over, overSchedules };
  }

  test("the call's own change is not taken for somebody else's", async () => {
    const { line, over, overSchedules } = await overLine();
    const lose = async <T>(verb: string, call: () => Promise<T>): Promise<T> => {
      const before = line.lost();
      line.loseReplyTo(verb);
      const done = await call();
      expect(line.lost()).toBe(before + 1);
      return done;
    };
    const job = async () => ({ ifMatch: await etagOf() });
    const schedule = async () => ({ ifMatch: await etagOfSchedule() });
    const seen = await job();
    expect(await lose('edit', () => over.edit('mail', 'a', { data: 2 }, seen))).toMatchObject({ status: 'edited' });
    const edited = await job();
    const moved = await lose('reschedule', () => over.reschedule('mail', 'a', { at: at(5) }, edited));
    expect(moved).toMatchObject({ status: 'already' });
    const later = await job();
    expect(await lose('reschedule', () => over.runNow('mail', 'a', later))).toMatchObject({ status: 'already-due' });
    const due = await job();
    expect(await lose('cancel', () => over.cancel('mail', 'a', due))).toMatchObject({ status: 'cancelled' });
    const first = await schedule();
    const put = await lose('define', () => overSchedules.put('hourly', { ...HOURLY, data: 2 }, first));
    expect(put).toMatchObject({ status: 'changed', etag: await etagOfSchedule() });
    const second = await schedule();
    const paused = await lose('define', () => overSchedules.pause('hourly', 'lunch', second));
    expect(paused).toMatchObject({ status: 'changed', etag: await etagOfSchedule() });
    const third = await schedule();
    await lose('schedule', () => overSchedules.trigger('hourly', { ...third, id: 'x' }));
    expect(await redis.zcard(keys.scheduled)).toBe(1);
    expect(await lose('define', () => overSchedules.remove('hourly', third))).toBe(true);
    expect(await schedules.get('hourly')).toBeUndefined();
  });

  test('of a removal without a condition, the schedule was there', async () => {
    const { line, overSchedules } = await overLine();
    line.loseReplyTo('define');
    expect(await overSchedules.remove('hourly')).toBe(true);
    expect(line.lost()).toBe(1);
    expect(await overSchedules.remove('hourly')).toBe(false);
  });

  test('of a dead letter, its replay is recognised', async () => {
    await bury('1763719000000-0', 1);
    const { line, over } = await overLine();
    line.loseReplyTo('replay');
    const done = await over.deadLetters.replay('mail', '1763719000000-0', { ifMatch: '*' });
    expect([done.status, line.lost()]).toEqual(['scheduled', 1]);
  });

  test("a change by somebody else since leaves open what became of the call's own", async () => {
    const { line, over, overSchedules } = await overLine();
    const meanwhile = async <T>(verb: string, call: () => Promise<T>, other: () => Promise<unknown>) => {
      const before = line.lost();
      line.loseReplyTo(verb);
      line.shut(true);
      const done = call().catch((error: unknown) => error);
      await expect.poll(line.lost).toBe(before + 1);
      await other();
      line.shut(false);
      return done;
    };
    const seen = { ifMatch: await etagOf() };
    const moved = await meanwhile(
      'reschedule',
      () => over.reschedule('mail', 'a', { at: at(5) }, seen),
      () => producer.reschedule('mail', 'a', { at: at(6) }),
    );
    expect(moved).toMatchObject({ status: 'indeterminate' });
    const again = { ifMatch: await etagOf() };
    const cancelled = await meanwhile(
      'cancel',
      () => over.cancel('mail', 'a', again),
      () => producer.schedule('mail', 'another', { id: 'a', at: at(7) }),
    );
    expect(cancelled).toMatchObject({ status: 'indeterminate' });
    expect(await producer.get('mail', 'a')).toMatchObject({ state: 'scheduled', data: 'another' });
    const schedule = { ifMatch: await etagOfSchedule() };
    const put = await meanwhile(
      'define',
      () => overSchedules.put('hourly', { ...HOURLY, data: 2 }, schedule),
      () => schedules.put('hourly', { ...HOURLY, data: 3 }),
    );
    expect(put).toMatchObject({ code: 'indeterminate' });
    expect((await schedules.get('hourly'))?.input.data).toBe(3);
  });
});
