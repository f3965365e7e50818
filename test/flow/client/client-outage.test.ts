/** A producer when Redis is away, slow, full or wrong, and when replies are lost on the way. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Unconfirmed } from '../../../src/client/calls/scheduled.ts';
import { type Client, type ClientOptions, createClient } from '../../../src/client/client.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { DuestreamError, Indeterminate } from '../../../src/kernel/errors.ts';
import type { Redis } from '../../../src/redis/connection/connect.ts';
import { createSubscriber } from '../../../src/worker/broadcast/subscriber.ts';
import { createWorker } from '../../../src/worker/worker.ts';
import { openLossyLine } from '../../support/lossy-line.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

let server: TestRedis;
let admin: Redis;
const made: (() => Promise<void>)[] = [];
const emails = defineQueue<{ to: string }>('emails');
const key = (name: string) => `duestream:v1:{emails:0}:${name}`;

const open = async (options: Partial<ClientOptions> = {}): Promise<Client> => {
  const producer = createClient({ redis: server.url, retryBudget: 300, ...options });
  made.push(() => producer.close());
  return producer;
};

beforeEach(async () => {
  server = await startRedis();
  admin = await server.client();
});
afterEach(async () => {
  await server.kill('SIGCONT');
  for (const end of made.splice(0)) await end();
  await server.stop();
});

async function openLine() {
  const line = await openLossyLine(server);
  made.push(line.close);
  return line;
}

const thrownBy = async (call: Promise<unknown>): Promise<DuestreamError> => {
  const thrown: unknown = await call.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (thrown instanceof DuestreamError) return thrown;
  throw new Error(`expected a DuestreamError, got ${String(thrown)}`);
};
const unconfirmedOf = (error: DuestreamError): Unconfirmed => {
  if (error.cause instanceof Unconfirmed) return error.cause;
  throw new Error('expected the cause to be Unconfirmed');
};

describe('a lost reply', () => {
  test('of schedule is asked for again, and the job is there once', async () => {
    const line = await openLine();
    const producer = await open({ redis: line.url, retryBudget: '5s' });
    await producer.schedule(emails, { to: 'first' }, { delay: '1h' });
    line.lose();
    const result = await producer.schedule(emails, { to: 'x' }, { id: 'x', delay: '1h' });
    expect(line.lost()).toBe(1);
    expect(result).toMatchObject({ id: 'x', status: 'already' });
    expect(await admin.zscore(key('scheduled'), 'j:x')).toBe(String(result.dueMs));
    expect(await admin.hget(key('meta'), 'n.scheduled')).toBe('2');
  });

  test('of many schedules in one call is asked for again for all of them', async () => {
    const line = await openLine();
    const producer = await open({ redis: line.url, retryBudget: '5s' });
    await producer.schedule(emails, { to: 'first' }, { delay: '1h' });
    line.lose();
    const results = await Promise.all(
      Array.from({ length: 300 }, () => producer.schedule(emails, { to: 'x' }, { delay: '1h' })),
    );
    expect(results.every(({ status }) => status === 'already')).toBe(true);
    expect(await admin.zcard(key('scheduled'))).toBe(301);
  });

  test('of cancel is asked for again, and its own work is recognised', async () => {
    const line = await openLine();
    const producer = await open({ redis: line.url, retryBudget: '5s' });
    await producer.schedule(emails, { to: 'x' }, { id: 'x', delay: '1h' });
    line.lose();
    expect(await producer.cancel(emails, 'x')).toEqual({ id: 'x', status: 'cancelled' });
    expect(line.lost()).toBe(1);
    expect(await admin.hget(key('meta'), 'n.cancelled')).toBe('1');
  });

  test('of replay is asked for again, and its own work is recognised', async () => {
    const line = await openLine();
    const producer = await open({ redis: line.url, retryBudget: '5s' });
    await producer.schedule(emails, { to: 'x' }, { id: 'other', delay: '1h' });
    const record = `1${(5e12).toString(36)}|{}`;
    const fields = ['member', 'j:x', 'record', record, 'reason', 'r', 'history', '', 'token', '9', 'attempts', '1'];
    await admin.call('XADD', key('dead'), '7-0', ...fields, 'generation', '0', 'at', '1');
    line.lose({ after: 1 });
    const at = new Date(2_000_000_000_000);
    const replayed = { deadLetter: '7-0', status: 'scheduled', id: 'x', dueMs: at.getTime() };
    expect(await producer.deadLetters.replay(emails, '7-0', { at })).toEqual(replayed);
    expect(line.lost()).toBe(1);
    expect(await admin.xlen(key('dead'))).toBe(0);
  });

  test('of scheduleMany that is not found in time says what is confirmed, and the rest can be repeated', async () => {
    const line = await openLine();
    const producer = await open({ redis: line.url });
    await producer.schedule(emails, { to: 'first' }, { delay: '1h' });
    const jobs = Array.from({ length: 6000 }, (_, n) => ({ data: { to: `${n}` }, id: `job-${n}`, delay: '1h' }));
    line.lose({ after: 2, refusals: 1000 });
    const error = await thrownBy(producer.scheduleMany(emails, jobs));
    expect(error).toBeInstanceOf(Indeterminate);
    const { confirmed, unconfirmed } = unconfirmedOf(error);
    expect(error.message).toContain(`${confirmed.length} of 6000 jobs are confirmed`);
    expect(confirmed.length).toBeGreaterThan(0);
    expect(confirmed.length + unconfirmed.length).toBe(6000);
    expect(unconfirmed.some((job) => !('error' in job))).toBe(true);

    const rest = unconfirmed.map(({ index, id, dueMs }) => {
      return { data: { to: `${index}` }, id, at: new Date(dueMs) };
    });
    const direct = await open();
    const results = await direct.scheduleMany(emails, rest);
    expect(new Set(results.map(({ status }) => status))).toEqual(new Set(['already', 'scheduled']));
    expect(await admin.zcard(key('scheduled'))).toBe(6001);
    expect(await admin.hget(key('meta'), 'n.scheduled')).toBe('6001');
  });
});

describe('a frozen Redis', () => {
  test('makes a call indeterminate, and the same call again makes its job once', async () => {
    const producer = await open({ redis: { url: server.url, commandTimeout: 1000 } });
    await producer.schedule(emails, { to: 'first' }, { delay: '1h' });
    await server.kill('SIGSTOP');
    const error = await thrownBy(producer.schedule(emails, { to: 'x' }, { id: 'x', delay: '1h' }));
    expect(error).toBeInstanceOf(Indeterminate);
    expect(error.message).toMatch(/^job x of queue emails, due 20.*repeat the same call$/);
    await server.kill('SIGCONT');
    const [job] = unconfirmedOf(error).unconfirmed;
    // The socket was silent for a whole time-out, so the producer dials again; meanwhile it may say `unavailable`.
    const again = () => producer.schedule(emails, { to: 'x' }, { id: 'x', at: new Date(job?.dueMs ?? 0) });
    const answer = { id: 'x', queue: 'emails', status: expect.any(String), dueMs: job?.dueMs };
    await expect.poll(() => again().catch((refused: unknown) => refused)).toEqual(answer);
    // What Redis finds when it goes on has come too late, or just in time.
    expect(await again()).toEqual({ ...answer, status: 'already' });
    expect(await admin.hget(key('meta'), 'n.scheduled')).toBe('2');
  });
});

describe('a Redis that is away', () => {
  test('is told when a producer is asked whether it is ready', async () => {
    await server.kill('SIGKILL');
    const refusal = { code: 'unavailable', message: expect.stringMatching(/cannot reach Redis at unix:/) };
    await expect(createClient({ redis: server.url, retryBudget: 300 }).ready()).rejects.toMatchObject(refusal);
  });

  test('makes every call unavailable after its budget, with nothing sent', async () => {
    const producer = await open();
    await producer.schedule(emails, { to: 'first' }, { delay: '1h' });
    await server.kill('SIGKILL');
    await expect(producer.schedule(emails, { to: 'x' }, { id: 'x' })).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(/^job x of queue emails, due .*nothing was sent$/),
    });
    for (const call of [
      producer.schedule('never-seen', 1),
      producer.scheduleMany(emails, [{ data: { to: 'x' } }]),
      producer.cancel(emails, 'x'),
      producer.cancel(emails, ['x']),
      producer.get(emails, 'x'),
      producer.deadLetters.replay(emails, '1-0'),
    ]) {
      await expect(call).rejects.toMatchObject({ code: 'unavailable' });
    }
  });

  test('lets no call wait for ever, however many there are', async () => {
    const producer = await open();
    await producer.schedule(emails, { to: 'first' }, { delay: '1h' });
    await server.kill('SIGKILL');
    const calls = Array.from({ length: 30_000 }, () => producer.schedule(emails, { to: 'x' }));
    const codes = (await Promise.allSettled(calls)).map((one) => one.status === 'rejected' && one.reason.code);
    expect(new Set(codes)).toEqual(new Set(['unavailable']));
    await server.restart();
    await expect.poll(async () => (await producer.schedule(emails, { to: 'y' })).status).toBe('scheduled');
  });

  test('and is back within the budget is not noticed', async () => {
    const producer = await open({ retryBudget: '10s' });
    await server.kill('SIGKILL');
    const scheduling = producer.schedule(emails, { to: 'x' }, { id: 'x', delay: '1h' });
    const stopping = producer.close();
    await server.restart();
    expect((await scheduling).status).toBe('scheduled');
    await stopping;
  });

  test('and comes back empty is told of the queue again, so that daemons see it', async () => {
    const producer = await open({ retryBudget: '10s' });
    await producer.schedule(emails, { to: 'x' });
    await server.restart();
    await producer.schedule(emails, { to: 'x' });
    const layout = '{"partitions":1,"generation":0}';
    await expect.poll(() => admin.hget('duestream:v1:{control}:queues', 'emails')).toBe(layout);
  });
});

describe('a Redis that says no', () => {
  test('because it is full, is told at once', async () => {
    const producer = await open({ retryBudget: '5m' });
    await admin.config('SET', 'maxmemory', '1');
    const error = await thrownBy(producer.schedule(emails, { to: 'x' }));
    expect(error).toMatchObject({
      code: 'out-of-memory',
      message: expect.stringContaining('takes no jobs and no changes'),
    });
  });

  test('because a key is not ours, is told at once', async () => {
    const producer = await open({ retryBudget: '5m' });
    await admin.set(key('scheduled'), 'not a zset');
    await expect(producer.schedule(emails, { to: 'x' })).rejects.toMatchObject({ code: 'refused' });
  });
});

describe('many waits at once', () => {
  test('of ten queues and more, of ready and of calls in an outage are no leak that Node warns of', async () => {
    const warned: string[] = [];
    const hear = (warning: Error) => warned.push(warning.message);
    process.on('warning', hear);
    made.push(async () => void process.off('warning', hear));
    const line = await openLine();
    const producer = await open({ redis: line.url });
    const other = createClient({ redis: line.url, retryBudget: 300 });
    const queues = Array.from({ length: 14 }, (_, nth) => ({ queue: `many${nth}`, handler: () => undefined }));
    const worker = createWorker({ redis: line.url, queues });
    const subscriber = createSubscriber(defineQueue('news', { broadcast: true }), () => undefined, { redis: line.url });
    made.push(() => worker.stop({ shutdown: 0 }), subscriber.stop, other.close);
    const all = [producer, other, worker, subscriber];
    const readyAtOnce = () => Promise.allSettled(all.flatMap((one) => Array.from({ length: 20 }, () => one.ready())));
    expect((await readyAtOnce()).filter(({ status }) => status === 'rejected')).toEqual([]);
    await Promise.all([worker.start(), subscriber.start()]);
    await line.close();
    const calls = Array.from({ length: 200 }, (_, n) => producer.schedule(emails, { to: `${n}` }, { delay: '1h' }));
    const ends = await Promise.all([Promise.allSettled(calls), readyAtOnce()]);
    expect(ends.flat().every(({ status }) => status === 'rejected')).toBe(true);
    expect(warned).toEqual([]);
  });
});
