/** A dispatcher that is killed while a target answers: the request comes again, from another one, under the same id. */
import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Client, createClient } from '../../../src/client/client.ts';
import { verifyWebhook } from '../../../src/dispatch/signature.ts';
import { useProcesses } from '../../support/processes.ts';
import { type Receiver, startReceiver } from '../../support/receiver.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

const processes = useProcesses();
const SECRET = `whsec_${randomBytes(32).toString('base64')}`;
let server: TestRedis;
let client: Client;
let receiver: Receiver;

beforeEach(async () => {
  server = await startRedis({ port: true });
  client = createClient({ redis: server.url });
  receiver = await startReceiver();
  await client.schedule('hooks', {}, { id: 'later', delay: '1h' });
  await client.queues.set('hooks', { target: { url: receiver.url, secret: 'main' } });
});
afterEach(async () => {
  await client.close();
  await receiver.close();
  await server.stop();
});

const env = () => ({
  DUESTREAM_REDIS_URL: server.url,
  DUESTREAM_MOVER__LEASE: '1000',
  DUESTREAM_WORKER__JOB_LEASE: '500',
  DUESTREAM_WORKER__BEAT_TTL: '500',
  DUESTREAM_WORKER__GRACE: '200',
  DUESTREAM_TARGETS__ALLOW: '127.0.0.1',
  DUESTREAM_TARGETS__SECRETS: JSON.stringify({ main: SECRET }),
});
const start = (name: string, roles: string) =>
  processes.started({ name, args: ['start', '--roles', roles], env: env() });

test.each([
  ['before the first byte of the answer', () => undefined],
  ['in the middle of the answer', (write: (part: string) => void) => write('the beginning')],
])('%s: one id over all tries, each with a signature of its own time', async (_, answer) => {
  await start('mover', 'mover');
  const first = await start('dispatcher 1', 'dispatcher');
  // Never ended: the process that asked is gone by then.
  const isAsked = new Promise<void>((resolve) =>
    receiver.next((response) => {
      answer((part) => void response.write(part));
      resolve();
    }),
  );
  await client.schedule('hooks', { order: 42 }, { id: 'order-42' });
  await isAsked;
  await first.end('SIGKILL');
  await start('dispatcher 2', 'dispatcher');
  await expect.poll(async () => (await client.get('hooks', 'order-42'))?.state, { timeout: 20_000 }).toBe('done');
  const ids = receiver.received.map(({ headers, body }) => verifyWebhook(headers, body, SECRET).id);
  expect(ids.length).toBeGreaterThanOrEqual(2);
  expect(new Set(ids).size).toBe(1);
  const attempts = receiver.received.map(({ headers }) => headers['duestream-token']);
  expect(new Set(attempts).size).toBe(attempts.length);
});
