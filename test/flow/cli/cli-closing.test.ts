/** `close`, `open` and `closed` on the command line. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { auditEntries } from '../../../src/access/audit.ts';
import { type Client, createClient } from '../../../src/client/client.ts';
import { close, openCommands, type Redis, whenReady } from '../../../src/redis/connection/connect.ts';
import { useCli } from '../../support/cli.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

const cli = useCli();
let server: TestRedis;
let redis: Redis;
let client: Client;
beforeAll(async () => {
  server = await startRedis();
  redis = openCommands({ redis: server.url, name: 'test' });
  await whenReady(redis);
});
beforeEach(async () => {
  await client?.close();
  await redis.flushall();
  client = createClient({ redis: server.url });
  await client.schedule('mail', 1, { id: 'a', tags: ['invoice:7'], delay: '1h' });
});
afterAll(async () => {
  await client.close();
  close(redis);
  await server.stop();
});
const run = (...args: readonly string[]) => cli.run([...args, '--redis', server.url]);

test('a tag is closed with a reason, listed, and opened', async () => {
  const closed = await run('tags', 'close', 'mail', 'invoice:7', 'invoice:8', '--for', '90d', '--reason', 'paid');
  expect(closed).toMatchObject({ code: 0 });
  expect(closed.out).toMatch(/^invoice:7, invoice:8 of mail {2}closed until .*\n1 job cancelled\n$/);
  const listed = await run('tags', 'ls', 'mail', '--search', ':7');
  expect(listed.out).toMatch(/invoice:7 .*paid/);
  expect(listed.out).not.toContain('invoice:8');
  expect((await run('schedule', 'mail', '--data', '2', '--id', 'b', '--tag', 'invoice:7')).out).toMatch(
    /^b {2}closed {2}not scheduled: tag invoice:7 is closed until/,
  );
  expect((await run('tags', 'open', 'mail', 'invoice:7', 'x')).out).toBe(
    'invoice:7 of mail  is open\nx of mail  was open\n',
  );
  const told = await auditEntries({ redis, namespace: 'duestream' }, { limit: 10 });
  expect(told.map(({ verb, target, reason }) => [verb, target, reason])).toEqual([
    ['tags.open', 'invoice:7', undefined],
    ['tags.close', 'invoice:7, invoice:8', 'paid'],
  ]);
});

test('as JSON', async () => {
  const closed = JSON.parse((await run('tags', 'close', 'mail', 'invoice:7', '--for', '1h', '--json')).out);
  expect(closed).toEqual({
    queue: 'mail',
    tags: ['invoice:7'],
    cancelled: 1,
    running: [],
    untilMs: expect.any(Number),
  });
  const listed = JSON.parse((await run('tags', 'ls', 'mail', '--json')).out);
  expect(listed).toMatchObject({
    queue: 'mail',
    count: 1,
    tags: [{ tag: 'invoice:7', untilMs: closed.untilMs, reason: '' }],
  });
});

test('a queue that there is not is refused, and so is a tag without an end', async () => {
  expect(await run('tags', 'close', 'mails', 'x', '--for', '1h')).toMatchObject({ code: 1 });
  expect(await run('tags', 'close', 'mail', 'x')).toMatchObject({ code: 64 });
  expect(await redis.keys('*mails*')).toEqual([]);
});
