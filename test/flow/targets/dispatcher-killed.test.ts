/** A dispatcher that is killed while a target answers: the request comes again, from another one, under the same id. */
import { randomBytes } from 'node:crypto';
import type { ServerResponse } from 'node:http';
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
  DUESTREAM_TARGETS__CONCURRENCY: '5',
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
  await expect.poll(async () => (await client.get('hooks', 'order-42'))?.state).toBe('done');
  const ids = receiver.received.map(({ headers, body }) => verifyWebhook(headers, body, SECRET).id);
  expect(ids.length).toBeGreaterThanOrEqual(2);
  expect(new Set(ids).size).toBe(1);
  const attempts = receiver.received.map(({ headers }) => headers['duestream-token']);
  expect(new Set(attempts).size).toBe(attempts.length);
});

test('killed with calls under way and again behind an answer: each job is sent under one id, and none is lost', async () => {
  const jobs = Array.from({ length: 40 }, (_, nth) => `order-${nth}`);
  // So many calls are answered, the last of them by `atLast`; those after it are held.
  let left = 0;
  let atLast = (response: ServerResponse): void => void response.end('fine');
  const answer = (response: ServerResponse) => {
    left -= 1;
    if (left > 0) response.end('fine');
    else if (left === 0) atLast(response);
  };
  receiver.next(...Array.from({ length: 1000 }, () => answer));
  const tenth = (last: (response: ServerResponse, isSeen: () => void) => void) =>
    new Promise<void>((resolve) => {
      left = 10;
      atLast = (response) => last(response, resolve);
    });
  for (const id of jobs) await client.schedule('hooks', { id }, { id });
  await start('mover', 'mover');
  const isAsked = tenth((_, isSeen) => isSeen());
  const first = await start('dispatcher 1', 'dispatcher');
  await isAsked;
  await first.end('SIGKILL');
  const isAnswered = tenth((response, isSeen) => void response.end('fine', isSeen));
  const second = await start('dispatcher 2', 'dispatcher');
  await isAnswered;
  await second.end('SIGKILL');
  left = 1000;
  await start('dispatcher 3', 'dispatcher');
  const states = async () =>
    new Set((await Promise.all(jobs.map((id) => client.get('hooks', id)))).map((of) => of?.state));
  await expect.poll(states, { interval: 200 }).toEqual(new Set(['done']));
  const calls = receiver.received.map(({ headers, body }) => ({ ...verifyWebhook(headers, body, SECRET), body }));
  const ids = new Map(
    jobs.map((id) => [id, new Set(calls.filter(({ body }) => JSON.parse(body).id === id).map((of) => of.id))]),
  );
  expect([...ids].filter(([, seen]) => seen.size !== 1)).toEqual([]);
  expect(calls.length).toBeGreaterThan(jobs.length);
  const tokens = receiver.received.map(({ headers }) => headers['duestream-token']);
  expect(new Set(tokens).size).toBe(tokens.length);
});
