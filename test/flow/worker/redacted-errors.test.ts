/** What handlers throw goes into histories, dead letters, events and logs: without the values of fields that a queue redacts. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { type Client, createClient } from '../../../src/client/client.ts';
import { createDaemon, type Daemon } from '../../../src/daemon/daemon.ts';
import { createWorker, type Worker } from '../../../src/daemon/embedded-worker.ts';
import { fixed } from '../../../src/job/backoff.ts';
import type { Codec } from '../../../src/job/content.ts';
import type { Attempted } from '../../../src/job/outcome.ts';
import { Unrecoverable } from '../../../src/job/outcome.ts';
import { defineQueue, type QueueOptions } from '../../../src/job/queue.ts';
import { partitionKeys } from '../../../src/redis/keys.ts';
import { inBatches } from '../../../src/worker/run/batch.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

const SECRET = 'ann@example.org';
let server: TestRedis;
let daemon: Daemon;
let producer: Client;
let worker: Worker | undefined;

beforeAll(async () => {
  server = await startRedis();
});
beforeEach(async () => {
  await (await server.client()).flushall();
  daemon = createDaemon({ redis: { url: server.url }, roles: ['mover'], http: { port: 0 } });
  await daemon.start();
  producer = createClient({ redis: server.url });
});
afterEach(async () => {
  await worker?.stop();
  worker = undefined;
  await producer.close();
  await daemon.stop();
});
afterAll(() => server.stop());

const mails = (more: QueueOptions = {}) =>
  defineQueue<{ to: string }>('mails', { redact: ['to'], history: true, attempts: 2, backoff: fixed(0), ...more });

/** Runs one job whose handler throws until it is dead; what was told of it meanwhile. */
async function dies(queue = mails(), thrown: (to: string) => unknown = (to) => new Error(`no mail to ${to} now`)) {
  const errors: Attempted[] = [];
  worker = createWorker(
    queue,
    ({ data }) => {
      throw thrown(data.to);
    },
    { redis: server.url },
  );
  worker.events.on('job.retried', ({ error }) => errors.push(error));
  worker.events.on('job.dead', ({ error }) => errors.push(error));
  await worker.start();
  await producer.schedule(queue, { to: SECRET }, { id: 'a' });
  await expect.poll(async () => (await producer.get(queue, 'a'))?.state).toBe('dead');
  const { dead, past } = partitionKeys({ namespace: 'duestream', queue: 'mails', partition: 0 });
  const redis = await server.client();
  const [[, fields = []] = []] = await redis.xrange(dead, '-', '+');
  const stored = { history: fields[fields.indexOf('history') + 1], reason: fields[fields.indexOf('reason') + 1] };
  return { errors, stored, past: await redis.hget(past, 'j:a') };
}

test('messages and stacks have [redacted] in the place of the value, wherever they are told', async () => {
  const { errors, stored, past } = await dies();
  expect(errors.map(({ message }) => message)).toEqual(Array(2).fill('no mail to [redacted] now'));
  expect(errors[0]?.stack).toContain('no mail to [redacted] now');
  for (const text of [JSON.stringify(errors), stored.history, past]) {
    expect(text).toContain('[redacted]');
    expect(text).not.toContain(SECRET);
  }
});

test('so have causes, parts and codes of errors, in a queue that keeps no history', async () => {
  const { errors, stored } = await dies(mails({ history: false }), (to) => {
    const cause = Object.assign(new Error(`no such mailbox: ${to}`), { code: to });
    return new AggregateError([new Error(`refused ${to}`), 'second'], 'both failed', { cause });
  });
  const message = 'both failed [refused [redacted]; second]; cause: no such mailbox: [redacted]';
  expect(errors.map((error) => error.message)).toEqual([message, message]);
  const [first = '', last = ''] = stored.history?.split('\n') ?? [];
  expect([first, last].map((one) => 's' in JSON.parse(one))).toEqual([false, true]);
  expect(JSON.parse(last)).toMatchObject({
    m: message,
    s: expect.stringMatching(/^\w*Error: both failed\n +at .*redacted-errors/),
  });
  expect(JSON.stringify([errors, stored])).not.toContain(SECRET);
});

test('what a handler says of a batch names no other job of it either: errors, reasons and lines', async () => {
  const queue = mails({ backoff: fixed('1h') });
  const others = ['bob@example.org', 'cleo@example.org'];
  worker = createWorker(
    queue,
    inBatches({ size: 3, wait: '1m' }, ({ jobs, defer }) => {
      const all = jobs.map(({ data }) => data.to).join(' ');
      for (const job of jobs) job.log(`beside ${all}`, { all });
      defer('c', '1h', `locked: ${all}`);
      throw new Error(`no mail to ${all}`);
    }),
    { redis: server.url, concurrency: 1 },
  );
  await worker.start();
  await producer.scheduleMany(
    queue,
    [SECRET, ...others].map((to, at) => ({ data: { to }, id: ['a', 'b', 'c'][at] ?? '' })),
  );
  const told = async (id: string) => JSON.stringify({ ...(await producer.get(queue, id)), data: undefined });
  const HIDDEN = '[redacted] [redacted] [redacted]';
  for (const [id, said] of Object.entries({ a: 'no mail to', b: 'no mail to', c: 'locked:' })) {
    await expect.poll(() => told(id)).toContain(`${said} ${HIDDEN}`);
    expect(await told(id)).toContain(`beside ${HIDDEN}`);
    expect(await told(id)).not.toContain('@example');
  }
});

test('so has the reason of a dead letter that the handler gave', async () => {
  const { stored } = await dies(mails(), (to) => new Unrecoverable(`${to} is gone`));
  expect(stored.reason).toBe('[redacted] is gone');
});

test('a value that a codec has hidden in Redis is known too, also where decoding takes its time', async () => {
  const codec: Codec = {
    encode: (text) => Buffer.from(text).toString('base64'),
    decode: async (text) => Buffer.from(text, 'base64').toString(),
  };
  const { errors } = await dies(mails({ codec }));
  expect(errors[0]?.message).toBe('no mail to [redacted] now');
});

test('a queue that redacts nothing tells what was thrown', async () => {
  const { errors } = await dies(mails({ redact: [] }));
  expect(errors[0]?.message).toBe(`no mail to ${SECRET} now`);
});

test('of a record that cannot be read nothing is quoted', async () => {
  (await producer.count(mails())).count;
  const { jobs, scheduled } = partitionKeys({ namespace: 'duestream', queue: 'mails', partition: 0 });
  const redis = await server.client();
  await redis.hset(jobs, 'j:a', `1${Date.now().toString(36)}|{"d":{"to":"${SECRET}"`);
  await redis.zadd(scheduled, Date.now(), 'j:a');
  worker = createWorker(mails(), () => undefined, { redis: server.url });
  await worker.start();
  await expect.poll(async () => (await producer.get(mails(), 'a'))?.state).toBe('dead');
  expect(await producer.get(mails(), 'a')).toMatchObject({
    reason: 'unreadable-record',
    history: [{ message: 'the record cannot be read, and is not quoted because its queue redacts data' }],
  });
});
