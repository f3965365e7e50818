/** 200 hosts, one of which never answers: the others have their calls while it is asked. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Client, createClient } from '../../../src/client/client.ts';
import { createDaemon, type Daemon } from '../../../src/daemon/daemon.ts';
import { callUrl } from '../../../src/dispatch/call-url.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { createWorker, type WatchedWorker } from '../../../src/worker/worker.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

const HOSTS = 200;
const PER_GROUP = 4;
const SILENT_JOBS = 60;
/** Of the whole loopback network each address is a host of its own. */
const hostOf = (nth: number) => `127.0.1.${nth + 1}`;
const SILENT = hostOf(0);

const hooks = defineQueue<{ url: string }>('hooks', { perGroup: PER_GROUP, fair: true });
let redis: TestRedis;
let receiver: Server;
let port = 0;
let asked: Map<string, number>;
let client: Client;
let daemon: Daemon;
let worker: WatchedWorker;

beforeEach(async () => {
  asked = new Map();
  redis = await startRedis();
  receiver = createServer((request, response) => {
    const host = (request.headers.host ?? '').split(':')[0] ?? '';
    asked.set(host, (asked.get(host) ?? 0) + 1);
    if (host !== SILENT) response.end('fine');
  });
  await new Promise<void>((resolve) => void receiver.listen(0, '0.0.0.0', resolve));
  port = (receiver.address() as AddressInfo).port;
  client = createClient({ redis: redis.url });
  daemon = createDaemon({ redis: redis.url, roles: ['mover'] });
  worker = createWorker(
    hooks,
    callUrl<{ url: string }>({
      url: ({ data }) => data.url,
      hosts: ['*'],
      allow: Array.from({ length: HOSTS }, (_, nth) => hostOf(nth)),
      timeout: '10m',
    }),
    { redis: redis.url, concurrency: 20, shutdown: 0 },
  );
});
afterEach(async () => {
  receiver.closeAllConnections();
  await worker.stop({ shutdown: 0 });
  await daemon.stop();
  await client.close();
  await new Promise<void>((resolve) => void receiver.close(() => resolve()));
  await redis.stop();
});

test('all other hosts are called while the silent one has no more slots than its group may', async () => {
  await client.schedule(hooks, { url: 'https://later.example.com/' }, { id: 'later', delay: '1h' });
  for (let nth = 0; nth < SILENT_JOBS; nth += 1) {
    await client.schedule(hooks, { url: `http://${SILENT}:${port}/` }, { group: SILENT });
  }
  for (let nth = 1; nth < HOSTS; nth += 1) {
    await client.schedule(hooks, { url: `http://${hostOf(nth)}:${port}/` }, { group: hostOf(nth) });
  }
  await daemon.start();
  await worker.start();
  await expect.poll(() => asked.size).toBe(HOSTS);
  expect(asked.get(SILENT)).toBeLessThanOrEqual(PER_GROUP);
  expect([...asked].filter(([host]) => host !== SILENT).every(([, times]) => times === 1)).toBe(true);
});
