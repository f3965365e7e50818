/**
 * A NAT or a load balancer may drop a connection without a word: every open socket is silent for ever, new ones work.
 * Producer, mover and worker must dial again by themselves.
 */
import { createServer, connect as dial, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createClient } from '../../../src/client/client.ts';
import { createDaemon } from '../../../src/daemon/daemon.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { createWorker } from '../../../src/worker/worker.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

let server: TestRedis;
const frozen = new Set<Socket>();
const open = new Set<Socket>();
const proxy = createServer((client) => {
  const upstream = dial(server.socketPath);
  open.add(client);
  client.on('data', (chunk) => !frozen.has(client) && upstream.write(chunk));
  upstream.on('data', (chunk) => !frozen.has(client) && client.write(chunk));
  client.on('error', () => upstream.destroy()).on('close', () => open.delete(client) && upstream.destroy());
  upstream.on('error', () => client.destroy());
});

beforeAll(async () => {
  server = await startRedis();
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
});

afterAll(async () => {
  for (const socket of open) socket.destroy();
  await new Promise((resolve) => proxy.close(resolve));
  await server.stop();
});

test('everybody dials again after all open sockets fell silent', async () => {
  const address = proxy.address();
  const redis = `redis://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`;
  const queue = defineQueue('quiet');
  const daemon = createDaemon({ redis: { url: redis, commandTimeout: 500 }, roles: ['mover'] });
  await daemon.start();
  const ran: string[] = [];
  const worker = createWorker(queue, (job) => void ran.push(job.id), { redis });
  await worker.start();
  const producer = createClient({ redis, retryBudget: '30s' });
  await producer.schedule(queue, {}, { id: 'before' });
  await expect.poll(() => ran).toContain('before');

  for (const socket of open) frozen.add(socket);
  await producer.schedule(queue, {}, { id: 'after' });
  await expect.poll(() => ran).toContain('after');
  expect([...open].filter((socket) => !frozen.has(socket)).length).toBeGreaterThanOrEqual(4);
  await producer.close();
  await worker.stop();
  await daemon.stop();
});
