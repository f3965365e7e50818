/** `targets try`: one request from here, and what came of it, step by step. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Client, createClient } from '../../../src/client/client.ts';
import { useCli } from '../../support/cli.ts';
import { type Receiver, startReceiver } from '../../support/receiver.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

const cli = useCli();
let server: TestRedis;
let client: Client;
let receiver: Receiver;

beforeEach(async () => {
  server = await startRedis();
  client = createClient({ redis: server.url });
  receiver = await startReceiver();
  await client.schedule('hooks', {}, { id: 'later', delay: '1h' });
});
afterEach(async () => {
  await client.close();
  await receiver.close();
  await server.stop();
});

const env = { DUESTREAM_TARGETS__ALLOW: '127.0.0.1', DUESTREAM_TARGETS__VALUES: '{"crm": "Bearer x-canary"}' };
const run = (args: readonly string[]) => cli.run([...args, '--redis', server.url], { env });

test('it says where the request went, what was answered, and what a job would be', async () => {
  const set = await run(['queues', 'set', 'hooks', '--target', receiver.url]);
  expect(set.out).toMatch(/each job of hooks calls POST http:\/\/127\.0\.0\.1:\d+\/due, without a signature/);
  const { code, out } = await run(['targets', 'try', 'hooks', '--data', '{"order": 7}']);
  expect(out).toMatch(
    /^POST http.*\nok {3}names: without a signature\nok {3}address: 127\.0\.0\.1 is 127\.0\.0\.1\nok {3}answer: 200 from 127\.0\.0\.1 after \d+ ms\na job would be done\n$/,
  );
  expect(code).toBe(0);
  expect(receiver.received).toMatchObject([{ body: '{"order":7}' }]);
});

test('it fails with the step at which it ended, and sends nothing where the guard refuses', async () => {
  await run(['queues', 'set', 'hooks', '--target', 'https://10.20.0.5/due']);
  const { code, out } = await run(['targets', 'try', 'hooks']);
  expect(out).toMatch(/fail host: 10\.20\.0\.5: it is not public\na job: dead \(10\.20\.0\.5: it is not public\)\n$/);
  expect(code).toBe(1);
});

test('a name that is not in the configuration is said, and no value that is there', async () => {
  const target = JSON.stringify({ url: receiver.url, headers: { Authorization: '$crn' } });
  await run(['queues', 'set', 'hooks', '--target', target]);
  const { code, out } = await run(['targets', 'try', 'hooks']);
  expect(out).toMatch(/fail names: the target names crn, .*did you mean crm/);
  expect(out).not.toContain('x-canary');
  expect(code).toBe(1);
  expect(receiver.sockets()).toBe(0);
});

test('a queue without a target, and data that are no JSON, are refused with what to do', async () => {
  expect(await run(['targets', 'try', 'hooks'])).toMatchObject({
    code: 64,
    err: expect.stringMatching(/has no target; set one: duestream queues set hooks --target/),
  });
  expect((await run(['targets', 'try', 'hooks', '--data', '{'])).err).toMatch(/--data is no JSON/);
});
