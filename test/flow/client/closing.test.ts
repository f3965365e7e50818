/** Tags are closed by a client: over partitions and queues, while workers run, after a call that was cut short. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { type Client, createClient } from '../../../src/client/client.ts';
import { createDaemon, type Daemon } from '../../../src/daemon/daemon.ts';
import { createWorker } from '../../../src/daemon/embedded-worker.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { DuestreamError } from '../../../src/kernel/errors.ts';
import { close, openCommands, type Redis, whenReady } from '../../../src/redis/connection/connect.ts';
import { partitionKeys } from '../../../src/redis/keys.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { gate } from '../../support/worker-line.ts';

const mail = defineQueue<{ step: number }>('mail', { partitions: 3 });
const sms = defineQueue<{ step: number }>('sms');
const tags = ['invoice:7'];
let server: TestRedis;
let redis: Redis;
let daemon: Daemon;
let client: Client;

beforeAll(async () => {
  server = await startRedis();
  redis = openCommands({ redis: server.url, name: 'test' });
  await whenReady(redis);
});
beforeEach(async () => {
  await redis.flushall();
  daemon = createDaemon({ redis: { url: server.url }, roles: ['mover'], http: { port: 0 } });
  await daemon.start();
  client = createClient({ redis: server.url });
});
afterEach(async () => {
  await client.close();
  await daemon.stop();
});
afterAll(async () => {
  close(redis);
  await server.stop();
});

const keysOf = (partition: number, queue = 'mail') => partitionKeys({ namespace: 'duestream', queue, partition });
const ladder = (queue: typeof mail, count: number, first = 0) =>
  client.scheduleMany(
    queue,
    Array.from({ length: count }, (_, nth) => ({
      id: `${queue.name}:${first + nth}`,
      data: { step: nth },
      tags,
      delay: '1h',
    })),
  );
const statesOf = async (results: Promise<readonly { readonly status: string }[]>) =>
  (await results).map(({ status }) => status);

test('jobs in all partitions are cancelled, and what comes later is answered closed', async () => {
  await ladder(mail, 12);
  await client.schedule(mail, { step: 0 }, { id: 'other', tags: ['invoice:8'], delay: '1h' });
  const beforeMs = Date.now();
  const done = await client.tags.close(mail, 'invoice:7', { for: '90d', reason: 'paid' });
  expect(done).toEqual({ cancelled: 12, running: [], untilMs: expect.any(Number) });
  expect(Math.abs(done.untilMs - beforeMs - 90 * 86_400_000)).toBeLessThan(60_000);
  expect(Number((await client.count(mail)).count)).toBe(1);
  expect(await client.schedule(mail, { step: 9 }, { id: 'late', tags, delay: '1h' })).toMatchObject({
    status: 'closed',
    closed: { tag: 'invoice:7', untilMs: done.untilMs },
  });
  expect(await statesOf(ladder(mail, 2, 100))).toEqual(['closed', 'closed']);
});

test('the same call again, and a shorter one, change nothing; a longer one stands', async () => {
  const { untilMs } = await client.tags.close(mail, tags, { for: '2h', reason: 'paid' });
  const shorter = await client.tags.close(mail, tags, { for: '1h', reason: 'late' });
  expect(shorter.untilMs).toBe(untilMs);
  expect((await client.tags.list(mail)).tags).toMatchObject([{ tag: 'invoice:7', untilMs, reason: 'paid' }]);
  expect((await client.tags.close(mail, tags, { for: '3h', reason: 'more' })).untilMs).toBeGreaterThan(untilMs);
});

test('several tags of several queues have one end, and are listed, found and opened', async () => {
  await ladder(mail, 3);
  await ladder(sms, 2);
  const done = await client.tags.close([mail, sms, 'mail'], ['invoice:7', 'invoice:8', 'user:1'], {
    for: '1h',
    by: 'me',
  });
  expect(done).toMatchObject({ cancelled: 5, running: [] });
  for (const queue of [mail, sms]) {
    const page = await client.tags.list(queue);
    expect(page).toMatchObject({ count: 3, cursor: undefined });
    expect(new Set(page.tags.map(({ untilMs }) => untilMs))).toEqual(new Set([done.untilMs]));
    expect(page.tags[0]).toMatchObject({ by: 'me', reason: '' });
  }
  const first = await client.tags.list(mail, { limit: 2 });
  const second = await client.tags.list(mail, { limit: 2, cursor: first.cursor });
  expect([...first.tags, ...second.tags].map(({ tag }) => tag)).toEqual(['invoice:7', 'invoice:8', 'user:1']);
  expect(second.cursor).toBeUndefined();
  expect((await client.tags.list(mail, { search: 'voice:8' })).tags.map(({ tag }) => tag)).toEqual(['invoice:8']);
  expect((await client.tags.list(mail, { tag: ['user:1', 'user:2'] })).tags.map(({ tag }) => tag)).toEqual(['user:1']);
  expect(await client.tags.open([mail, sms], ['user:1', 'user:2'])).toEqual({ opened: ['user:1'] });
  expect(await client.tags.open(mail, 'user:1')).toEqual({ opened: [] });
  await expect(client.tags.list(sms, { cursor: first.cursor })).rejects.toMatchObject({ code: 'bad-input' });
});

test('a job that runs is named and asked to stop, and the next starts of it are none', async () => {
  const [begun, stopped] = [gate(), gate()];
  const worker = createWorker(
    mail,
    async ({ id }, { signal }) => {
      begun.open();
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
      stopped.open();
      throw new Error(`${id} stops`);
    },
    { redis: server.url, jobLease: '2s' },
  );
  await worker.start();
  onTestFinished(() => worker.stop());
  await client.schedule(mail, { step: 1 }, { id: 'runs', tags });
  await begun.opened;
  expect(await client.tags.close(mail, tags, { for: '1h' })).toMatchObject({ cancelled: 0, running: ['runs'] });
  await stopped.opened;
  await expect.poll(async () => (await client.get(mail, 'runs'))?.state).toBe('cancelled');
});

test('a partition that does not answer rejects the call, and the same call again closes the rest', async () => {
  await ladder(mail, 9);
  await redis.set(keysOf(1).closed, 'of somebody else');
  const call = () => client.tags.close(mail, tags, { for: '1h', reason: 'paid' });
  await expect(call()).rejects.toBeInstanceOf(DuestreamError);
  await redis.del(keysOf(1).closed);
  expect(await call()).toMatchObject({ cancelled: 9 });
  const ends = await Promise.all([0, 1, 2].map((partition) => redis.zscore(keysOf(partition).closed, 'invoice:7')));
  expect(ends).not.toContain(null);
});

test('a queue that was removed since is declared anew, in all its partitions', async () => {
  await ladder(mail, 3);
  for (const key of await redis.keys('*')) if (!key.endsWith(':leader')) await redis.del(key);
  expect(await client.tags.close(mail, tags, { for: '1h' })).toMatchObject({ cancelled: 0 });
  for (const partition of [0, 1, 2]) {
    expect(await redis.hmget(keysOf(partition).meta, 'generation', 'closed')).toEqual(['0', '1']);
  }
});

test('as many tags as may be are closed, and the others are named', async () => {
  const small = createClient({ redis: server.url, closedMax: 1 });
  onTestFinished(() => small.close());
  await ladder(mail, 2);
  const untilMs = expect.any(Number);
  expect(await small.tags.close(mail, 'a', { for: '1h' })).toEqual({ cancelled: 0, running: [], untilMs });
  expect(await small.tags.close(mail, tags, { for: '1h' })).toEqual({ cancelled: 2, running: [], untilMs, full: tags });
  expect((await client.tags.list(mail)).tags.map(({ tag }) => tag)).toEqual(['a']);
});

test('of calls with one place left one closes its tag, and the others close theirs nowhere', async () => {
  const clients = [1, 2, 3].map(() => createClient({ redis: server.url, closedMax: 1 }));
  onTestFinished(() => Promise.all(clients.map((one) => one.close())).then(() => undefined));
  await Promise.all(clients.map((one, nth) => one.schedule(mail, { step: 1 }, { id: `x${nth}`, delay: '1h' })));
  for (let round = 0; round < 5; round += 1) {
    const all = await Promise.all(clients.map((one, nth) => one.tags.close(mail, `t${nth}`, { for: '1h' })));
    const closed = all.flatMap(({ full }, nth) => (full === undefined ? [`t${nth}`] : []));
    expect(closed).toHaveLength(1);
    for (const partition of [0, 1, 2]) expect(await redis.zrange(keysOf(partition).closed, '0', '-1')).toEqual(closed);
    await client.tags.open(mail, closed);
  }
});

test('a call that dies behind the first partition has refused nothing, and the same call again closes the rest', async () => {
  const small = createClient({ redis: server.url, closedMax: 1 });
  onTestFinished(() => small.close());
  await ladder(mail, 1);
  for (const partition of [1, 2]) await redis.set(keysOf(partition).closed, 'of somebody else');
  await expect(small.tags.close(mail, 'a', { for: '1h' })).rejects.toBeInstanceOf(DuestreamError);
  for (const partition of [1, 2]) await redis.del(keysOf(partition).closed);
  expect(await small.tags.close(mail, 'b', { for: '1h' })).toMatchObject({ full: ['b'] });
  expect(await small.tags.close(mail, 'a', { for: '1h' })).not.toHaveProperty('full');
  for (const partition of [0, 1, 2]) expect(await redis.zrange(keysOf(partition).closed, '0', '-1')).toEqual(['a']);
});

test('the leader opens a tag at its end', async () => {
  await client.tags.close(sms, tags, { for: '1s' });
  expect((await client.tags.list(sms)).count).toBe(1);
  await expect.poll(async () => (await client.tags.list(sms)).count, { interval: 200 }).toBe(0);
  expect(await client.schedule(sms, { step: 1 }, { tags, delay: '1h' })).toMatchObject({ status: 'scheduled' });
});

test.each([
  ['no tag', () => client.tags.close(mail, [], { for: '1h' }), /tag is a list of 0/],
  ['a tag that is none', () => client.tags.close(mail, '=high', { for: '1h' }), /tag is "=high"/],
  ['no queue', () => client.tags.close([], 'a', { for: '1h' }), /queue is a list of 0/],
  ['no end', () => client.tags.close(mail, 'a', {} as never), /for is undefined/],
  ['an end that is too near', () => client.tags.close(mail, 'a', { for: 10 }), /for is 10/],
  [
    'a long reason',
    () => client.tags.close(mail, 'a', { for: '1h', reason: 'x'.repeat(201) }),
    /reason is a text of 201/,
  ],
  ['an option that there is not', () => client.tags.close(mail, 'a', { for: '1h', until: 1 } as never), /until/],
  ['an option of another call', () => client.tags.open(mail, 'a', { for: '1h' } as never), /for/],
  ['a page that is too long', () => client.tags.list(mail, { limit: 1001 }), /limit is 1001/],
])('%s is refused before anything is sent', async (_, call, words) => {
  await expect(call()).rejects.toMatchObject({ code: 'bad-input', message: expect.stringMatching(words) });
});
