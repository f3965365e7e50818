/** `import redisson`: delayed queues as the scripts of Redisson write them, packed by the server's own Lua. */
import type { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { type Client, createClient } from '../../../src/client/client.ts';
import { useCli } from '../../support/cli.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

const cli = useCli();
const DUE_MS = Date.now() + 3_600_000;
let server: TestRedis;
let redis: Redis;
let client: Client;

beforeAll(async () => {
  server = await startRedis({ port: true });
  redis = await server.client();
  client = createClient({ redis: server.url });
});
afterEach(() => redis.flushall());
afterAll(async () => {
  await client.close();
  await server.stop();
});

const forms = {
  newer: "return struct.pack('Bc0Lc0', #ARGV[1], ARGV[1], #ARGV[2], ARGV[2])",
  older: "return struct.pack('dLc0', tonumber(ARGV[3]), #ARGV[2], ARGV[2])",
};

/** Offers a value that is due at a time. */
async function offer(name: string, value: string | Buffer, nth = 1, form: keyof typeof forms = 'newer') {
  const number = Buffer.alloc(8, nth);
  const element = await redis.callBuffer('EVAL', forms[form], 0, number, value, nth * 1.5);
  if (!(element instanceof Buffer)) throw new Error('no element');
  await redis.zadd(`redisson_delay_queue_timeout:{${name}}`, DUE_MS + nth, element);
  await redis.rpush(`redisson_delay_queue:{${name}}`, element);
}

const run = (...flags: readonly string[]) =>
  cli.run(['import', 'redisson', '--from', server.url, '--redis', server.url, ...flags]);

test('elements of both forms are here, due to the millisecond, and leave Redisson', async () => {
  for (const nth of [1, 2, 3]) await offer('Orders', `{"id":${nth}}`, nth);
  await offer('Orders', 'plain text', 4, 'older');
  const { code, out } = await run('--json');
  expect({ code, done: JSON.parse(out).queues }).toMatchObject({
    code: 0,
    done: [{ from: 'Orders', to: 'orders', taken: 0, places: { delayed: { found: 4, imported: 4 } } }],
  });
  const found = [];
  for await (const { dueMs, id } of client.list('orders', { sort: 'due' })) {
    found.push([dueMs, (await client.get('orders', id))?.data]);
  }
  expect(found).toEqual([
    [DUE_MS + 1, { id: 1 }],
    [DUE_MS + 2, { id: 2 }],
    [DUE_MS + 3, { id: 3 }],
    [DUE_MS + 4, 'plain text'],
  ]);
  expect(await redis.keys('*Orders*')).toEqual([]);
});

test('a copy leaves all there and is recognised, and a dry run writes nothing', async () => {
  await offer('orders', '"a"');
  await redis.rpush('orders', '"due"');
  const before = await redis.call('DEBUG', 'DIGEST');
  expect((await run('--dry-run')).out).toContain('orders: 1 value due: their consumers take them there');
  expect(await redis.call('DEBUG', 'DIGEST')).toEqual(before);
  expect((await run('--copy')).out).toMatch(/orders {2}orders {2}delayed +1 +1 +0 +0 +0\n/);
  expect((await run('--copy')).out).toMatch(/orders {2}orders {2}delayed +1 +0 +1 +0 +0\n/);
  expect(await redis.llen('redisson_delay_queue:{orders}')).toBe(1);
});

test('values that only Java reads stay, or come as base64', async () => {
  const value = Buffer.from([3, 1, 130, 97]);
  await offer('orders', value);
  expect((await run()).out).toContain('orders: 1 left: an element cannot be read');
  expect(await redis.zcard('redisson_delay_queue_timeout:{orders}')).toBe(1);
  await run('--base64');
  const { jobs } = await client.list('orders');
  expect((await client.get('orders', jobs[0]?.id ?? ''))?.data).toEqual({ base64: value.toString('base64') });
});

test('an import that was cut short goes on with what it had taken', async () => {
  await offer('orders', '"a"');
  const [element] = await redis.lrangeBuffer('redisson_delay_queue:{orders}', 0, 0);
  if (!element) throw new Error('no element');
  await redis.hset('duestream_taken:{orders}', element, `${DUE_MS + 1} ${Date.now()}`);
  await redis.del('redisson_delay_queue:{orders}');
  expect((await run('--queue', 'orders')).out).toMatch(/orders {2}orders {2}cut short +1 +1 +0 +0 +0\n/);
  expect(await redis.exists('duestream_taken:{orders}')).toBe(0);
  const { jobs } = await client.list('orders');
  expect(jobs.map(({ dueMs }) => dueMs)).toEqual([DUE_MS + 1]);
});

test('a Redis without delayed queues is told', async () => {
  expect(await run()).toMatchObject({ code: 1, err: expect.stringContaining('no RDelayedQueue') });
});
