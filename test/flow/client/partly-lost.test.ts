/** What callers are told of calls that change many, where a reply is lost or Redis goes away half-way. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type ClientOptions, createClient } from '../../../src/client/client.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { DuestreamError } from '../../../src/kernel/errors.ts';
import type { Redis } from '../../../src/redis/connection/connect.ts';
import { openLossyLine } from '../../support/lossy-line.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

let server: TestRedis;
let line: Awaited<ReturnType<typeof openLossyLine>>;
let admin: Redis;
const ends: (() => unknown)[] = [];
const emails = defineQueue('emails', { partitions: 3 });
const bills = defineQueue('bills');
const key = (name: string) => `duestream:v1:{bills:0}:${name}`;

beforeEach(async () => {
  server = await startRedis();
  line = await openLossyLine(server);
  admin = await server.client();
});
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
  await line.close();
  await server.stop();
});

async function open(options: Partial<ClientOptions> = {}) {
  const producer = createClient({ redis: line.url, retryBudget: '5s', ...options });
  ends.push(producer.close);
  await producer.ready();
  return producer;
}

const errorOf = async (call: Promise<unknown>): Promise<DuestreamError | undefined> => {
  const thrown: unknown = await call.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (thrown === undefined || thrown instanceof DuestreamError) return thrown;
  throw thrown;
};

/** As `bury` leaves them. */
async function bury(count: number): Promise<readonly string[]> {
  const ids: string[] = [];
  for (let nth = 1; nth <= count; nth += 1) {
    const record = `1${(5e12).toString(36)}|{}`;
    const fields = [
      'member',
      `j:${nth}`,
      'record',
      record,
      'reason',
      'r',
      'history',
      '',
      'token',
      '9',
      'attempts',
      '1',
    ];
    ids.push(`${nth}-0`);
    await admin.call('XADD', key('dead'), `${nth}-0`, ...fields, 'generation', '0', 'at', '1');
  }
  return ids;
}

describe('a cancel that leaves nothing', () => {
  test('is in doubt after a lost reply, without a done window', async () => {
    const producer = await open({ doneWindow: 0 });
    await producer.schedule(bills, {}, { id: 'a', delay: '1h' });
    line.loseReplyTo('cancel');
    expect(await producer.cancel(bills, ['a', 'b'])).toEqual([
      { id: 'a', status: 'indeterminate' },
      { id: 'b', status: 'indeterminate' },
    ]);
    expect(await producer.cancel(bills, 'a')).toEqual({ id: 'a', status: 'unknown' });
  });

  test('is in doubt after a lost reply, of a bare job', async () => {
    const producer = await open();
    await producer.schedule(bills, {}, { id: 'other', delay: '1h' });
    await admin.zadd(key('scheduled'), Date.now() + 1e6, 'plain');
    line.loseReplyTo('cancel');
    expect(await producer.cancel(bills, 'plain', { bare: true })).toEqual({ id: 'plain', status: 'indeterminate' });
    line.loseReplyTo('cancel');
    expect(await producer.cancel(bills, 'nobody')).toEqual({ id: 'nobody', status: 'unknown' });
  });
});

describe('a replay whose reply was lost', () => {
  const replayed = async (then: () => Promise<unknown>) => {
    const producer = await open();
    await producer.schedule(bills, {}, { id: 'other', delay: '1h' });
    const [deadLetter = ''] = await bury(1);
    const at = new Date(Date.now() + 1e6);
    line.loseReplyTo('replay');
    // Before the call can be repeated, other things happen to the job.
    line.shut(true);
    const replay = producer.deadLetters.replay(bills, deadLetter, { at });
    await expect.poll(() => admin.xlen(key('dead'))).toBe(0);
    await then();
    line.shut(false);
    return { status: (await replay).status, lost: line.lost() };
  };

  test('knows its own work where the job was cancelled since', async () => {
    await using direct = createClient({ redis: server.url });
    await direct.ready();
    expect(await replayed(() => direct.cancel(bills, '1'))).toEqual({ status: 'scheduled', lost: 1 });
  });

  test('is in doubt where nothing is known of the job', async () => {
    const gone = () => admin.del(key('jobs'), key('scheduled'), key('runs'));
    expect(await replayed(gone)).toEqual({ status: 'indeterminate', lost: 1 });
  });
});

describe('an outage in the middle', () => {
  /** Codes of a call whose reply number 1, 2, 3, … is lost, after which there is no Redis. */
  async function codesOf(prepare: () => Promise<() => Promise<unknown>>): Promise<string> {
    const codes: string[] = [];
    for (let after = 0; codes.at(-1) !== 'done'; after += 1) {
      const call = await prepare();
      line.lose({ after, refusals: Number.POSITIVE_INFINITY });
      codes.push((await errorOf(call()))?.code ?? 'done');
      line.lose({ after: Number.POSITIVE_INFINITY });
      for (const end of ends.splice(0)) await end();
    }
    return codes.join(' ');
  }
  const ids = Array.from({ length: 9 }, (_, nth) => `n${nth}`);
  const scheduled = async () => {
    const producer = await open({ retryBudget: 100 });
    await producer.scheduleMany(
      emails,
      ids.map((id) => ({ data: {}, id, delay: '1h', tags: ['user:1'] })),
    );
    return producer;
  };

  test('of a cancel of many is never told as if nothing was sent', async () => {
    const codes = await codesOf(async () => {
      const producer = await scheduled();
      return () => producer.cancel(emails, ids);
    });
    expect(codes).toBe('indeterminate indeterminate indeterminate done');
  });

  test('of an erase is told so before its first change, and in doubt from then on', async () => {
    const codes = await codesOf(async () => {
      await scheduled();
      const eraser = await open({ retryBudget: 100 });
      const queues = [emails.name];
      await eraser.erase({ tag: 'nobody' }, { queues });
      return () => eraser.erase({ tag: 'user:1' }, { queues });
    });
    expect(codes).toMatch(/^(unavailable )+(indeterminate )+done$/);
  });

  test('of a change by filter, before the second page is read, is in doubt and says where to go on', async () => {
    const producer = await open({ retryBudget: 100 });
    const jobs = Array.from({ length: 150 }, (_, nth) => ({ data: {}, id: `m${nth}`, delay: '1h' }));
    await producer.scheduleMany(bills, jobs);
    const onProgress = () => line.lose({ refusals: Number.POSITIVE_INFINITY });
    const error = await errorOf(producer.cancel(bills, { idPrefix: 'm' }, { onProgress }));
    expect(error).toMatchObject({ code: 'indeterminate', message: expect.stringMatching(/100 changed before: go on/) });
    expect(error?.message).not.toContain('nothing was');
    expect(await admin.zcard(key('scheduled'))).toBe(50);
  });
});

describe('a purge whose reply was lost', () => {
  const letters = () => {
    const deadClient = createClient({ redis: line.url, retryBudget: '5s' });
    const dead = deadClient.deadLetters;
    ends.push(deadClient.close);
    return dead;
  };

  test('removes no more than its limit', async () => {
    await bury(10);
    const dead = letters();
    await dead.list(bills);
    line.loseReplyTo('purge');
    expect(await errorOf(dead.remove(bills, { reason: 'r' }, { limit: 4 }))).toMatchObject({ code: 'indeterminate' });
    expect(await admin.xlen(key('dead'))).toBe(6);
  });

  test('counts what it removed by their names', async () => {
    await bury(10);
    const dead = letters();
    await dead.list(bills);
    line.loseReplyTo('purge');
    expect(await dead.remove(bills, { id: '3' })).toMatchObject({ matched: 1, changed: 1 });
    expect([line.lost(), await admin.xlen(key('dead'))]).toEqual([1, 9]);
  });
});

test('a pause and a resume whose replies were lost have changed something', async () => {
  await using direct = createClient({ redis: server.url });
  await direct.schedule(emails, {}, { delay: '1h' });
  const { queues } = await open();
  line.loseReplyTo('pause');
  const paused = await queues.pause(emails, { reason: 'because' });
  expect(paused).toMatchObject({ status: 'changed', pause: { reason: 'because' } });
  line.loseReplyTo('resume');
  expect(await queues.resume('emails')).toMatchObject({ status: 'changed' });
  expect(line.lost()).toBe(2);
  expect(await queues.resume('emails')).toEqual({ status: 'same', pause: undefined });
});
