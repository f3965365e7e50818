import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Unconfirmed } from '../../../src/client/calls/scheduled.ts';
import { type BulkJob, type Client, createClient } from '../../../src/client/client.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import type { Redis } from '../../../src/redis/connection/connect.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

let server: TestRedis;
let admin: Redis;
let producer: Client;
const emails = defineQueue<{ n: number; pad?: string }>('emails');
const scheduledKey = 'duestream:v1:{emails:0}:scheduled';
const list = (length: number): BulkJob<{ n: number }>[] =>
  Array.from({ length }, (_, n) => ({ data: { n }, id: `job-${n}`, delay: '1h' }));
const calls = async (command: string) =>
  Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(await admin.info('commandstats'))?.[1] ?? 0);

beforeAll(async () => {
  server = await startRedis();
  admin = await server.client();
});
beforeEach(async () => {
  await admin.flushall();
  producer = createClient({ redis: server.url });
});
afterEach(() => producer.close());
afterAll(() => server.stop());

describe('scheduleMany', () => {
  test('schedules all, in few script calls, with results in order', async () => {
    await admin.config('RESETSTAT');
    const results = await producer.scheduleMany(emails, list(5200));
    expect(results.map(({ id }) => id)).toEqual(list(5200).map(({ id }) => id));
    expect(await admin.zcard(scheduledKey)).toBe(5200);
    // And one that declares the queue.
    expect((await calls('eval')) + (await calls('evalsha'))).toBe(22);
  });

  test('counts every delay from the moment of the call', async () => {
    const results = await producer.scheduleMany(emails, list(3000));
    expect(new Set(results.map(({ dueMs }) => dueMs)).size).toBe(1);
  });

  test('cuts by bytes as well', async () => {
    await admin.config('RESETSTAT');
    const jobs = Array.from({ length: 12 }, (_, n) => ({ data: { n, pad: 'x'.repeat(250_000) } }));
    expect(await producer.scheduleMany(emails, jobs)).toHaveLength(12);
    // And one that declares the queue.
    expect((await calls('eval')) + (await calls('evalsha'))).toBe(7);
  });

  test('sends again what Redis had no room to look at: large jobs that live under the ids', async () => {
    const jobs = (pad: string) => Array.from({ length: 12 }, (_, n) => ({ data: { n, pad }, id: `job-${n}` }));
    await producer.scheduleMany(emails, jobs('x'.repeat(200_000)));
    // As if they were promoted: only their records tell when they are due.
    await admin.del(scheduledKey);
    await admin.config('RESETSTAT');
    const again = await producer.scheduleMany(emails, jobs(''));
    expect(again.map(({ id, status }) => [id, status])).toEqual(jobs('').map(({ id }) => [id, 'exists']));
    expect((await calls('eval')) + (await calls('evalsha'))).toBe(4);
  });

  test('sends nothing when one is wrong, and says which', async () => {
    const jobs = list(1500);
    jobs[1234] = { data: { n: 1 }, delay: '3 fortnights' };
    await expect(producer.scheduleMany(emails, jobs)).rejects.toMatchObject({
      code: 'bad-input',
      message: expect.stringMatching(/^jobs\[1234\]: delay is "3 fortnights"; allowed: .*nothing was sent/),
    });
    expect(await admin.dbsize()).toBe(0);
  });

  test.each([[null], [undefined], [7]])('refuses a job that is %j', async (job) => {
    const jobs = [{ data: { n: 1 } }, job] as BulkJob<{ n: number }>[];
    await expect(producer.scheduleMany(emails, jobs)).rejects.toMatchObject({
      code: 'bad-input',
      message: expect.stringMatching(/^jobs\[1\]: /),
    });
  });

  test('refuses what is no list', async () => {
    const input = { data: 1 } as unknown as BulkJob<{ n: number }>[];
    await expect(producer.scheduleMany(emails, input)).rejects.toMatchObject({
      code: 'bad-input',
      message: expect.stringMatching(/jobs is of type object; allowed: an array of at most 1000000/),
    });
  });

  test('an empty list is fine', async () => {
    expect(await producer.scheduleMany(emails, [])).toEqual([]);
  });

  test('one that exists is an error when asked for, and the others are scheduled and named', async () => {
    await producer.schedule(emails, { n: 0 }, { id: 'job-2' });
    const error: unknown = await producer
      .scheduleMany(
        emails,
        list(4).map((job) => ({ ...job, ifExists: 'error' as const })),
      )
      .catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      code: 'exists',
      message: expect.stringMatching(/^jobs\[2\]: .*3 of 4 jobs are conf/),
    });
    const cause = error instanceof Error ? error.cause : undefined;
    if (!(cause instanceof Unconfirmed)) throw new Error('expected the cause to be Unconfirmed');
    expect(cause.confirmed.map(({ id }) => id)).toEqual(['job-0', 'job-1', 'job-3']);
    expect(cause.unconfirmed).toMatchObject([{ index: 2, id: 'job-2', error: { code: 'exists' } }]);
  });

  test('the same list again is already there', async () => {
    const jobs = list(3).map(({ data, id }) => ({ data, ...(id ? { id } : {}), at: new Date(2_000_000_000_000) }));
    await producer.scheduleMany(emails, jobs);
    const again = await producer.scheduleMany(emails, jobs);
    expect(again.map(({ status }) => status)).toEqual(['already', 'already', 'already']);
  });
});

describe('cancel of a list', () => {
  test('asks again for what Redis had no room to read, until all are cancelled', async () => {
    const ids = Array.from({ length: 12 }, (_, n) => `job-${n}`);
    await producer.scheduleMany(
      emails,
      ids.map((id, n) => ({ data: { n, pad: 'x'.repeat(200_000) }, id, delay: '1h' })),
    );
    await admin.config('RESETSTAT');
    const results = await producer.cancel(emails, [...ids, 'ghost']);
    expect(results.map(({ id, status }) => [id, status])).toEqual([
      ...ids.map((id) => [id, 'cancelled']),
      ['ghost', 'unknown'],
    ]);
    expect((await calls('eval')) + (await calls('evalsha'))).toBe(4);
  });

  test('answers in the order of the ids, over all partitions', async () => {
    const wide = defineQueue('wide', { partitions: 3 });
    await producer.scheduleMany(
      wide,
      list(1200).map(({ id, delay }) => ({ data: 1, id, delay })),
    );
    const ids = Array.from({ length: 1200 }, (_, n) => (n % 100 === 7 ? `nobody-${n}` : `job-${n}`));
    const results = await producer.cancel(wide, ids);
    expect(results.map(({ id }) => id)).toEqual(ids);
    expect(results.map(({ status }) => status)).toEqual(
      ids.map((id) => (id.startsWith('nobody') ? 'unknown' : 'cancelled')),
    );
  });

  test('sends nothing when an id is wrong', async () => {
    await producer.schedule(emails, { n: 1 }, { id: 'a', delay: '1h' });
    await expect(producer.cancel(emails, ['a', 'b c'])).rejects.toMatchObject({ code: 'bad-input' });
    expect((await producer.get(emails, 'a'))?.state).toBe('scheduled');
  });
});
