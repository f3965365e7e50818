/** A Redis at its memory limit, and everybody dead: new processes start, work the backlog off, and memory is free again. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { encodeBody, encodeRecord, memberOf } from '../../../src/job/codec.ts';
import { close, openCommands, type Redis, whenReady } from '../../../src/redis/connection/connect.ts';
import { partitionRef } from '../../../src/redis/keys.ts';
import { createJobs } from '../../../src/redis/scripts/jobs.ts';
import { declareQueue } from '../../../src/redis/scripts/queues.ts';
import { useProcesses } from '../../support/processes.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { root } from '../../support/repository.ts';

const processes = useProcesses();
const JOBS = 500;
const BYTES = 8000;
const SHORT = {
  DUESTREAM_MOVER__LEASE: '1000',
  DUESTREAM_WORKER__JOB_LEASE: '2000',
  DUESTREAM_WORKER__GRACE: '300',
  DUESTREAM_WORKER__BEAT_TTL: '1000',
};

let server: TestRedis;
let redis: Redis;
beforeAll(async () => {
  server = await startRedis();
  redis = openCommands({ redis: { path: server.socketPath }, name: 'test' });
  await whenReady(redis);
  const index = JSON.stringify(join(root, 'dist/index.js'));
  const module = `import { defineHandlers } from ${index};\nexport default defineHandlers({ emails: () => undefined });\n`;
  writeFileSync(join(processes.folder, 'handlers.mjs'), module);
});
afterAll(async () => {
  close(redis);
  await server.stop();
});

const env = () => ({ ...SHORT, DUESTREAM_REDIS_URL: `unix://${server.socketPath}` });
const daemon = () => processes.started({ name: 'daemon', args: ['start', '--http-port', '0'], env: env() });
const worker = () => processes.started({ name: 'worker', args: ['worker', './handlers.mjs'], env: env() });

async function usedBytes(): Promise<number> {
  return Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1]);
}

test('new workers and daemons drain a full Redis', async () => {
  await declareQueue(redis, { namespace: 'duestream', queue: 'emails', partitions: 1 });
  const ref = partitionRef('duestream', { queue: 'emails', partition: 0, layoutGeneration: 0 });
  const before = await Promise.all([daemon(), worker()]);
  for (const one of before) await one.end('SIGKILL');

  const dueMs = Date.now();
  const record = encodeRecord(dueMs, encodeBody({ name: 'default', data: 'x'.repeat(BYTES) }));
  const items = Array.from({ length: JOBS }, (_, at) => ({ member: memberOf(`job-${at}`), record, dueMs }));
  await createJobs(redis).schedule(ref, items, { mode: 'keep', horizonMs: 1e12, bytesMax: 100_000 });
  const full = await usedBytes();
  await redis.config('SET', 'maxmemory', String(full - 500_000), 'maxmemory-policy', 'noeviction');
  await expect(redis.set('more', 'x')).rejects.toThrow(/^OOM/);

  await Promise.all([daemon(), worker()]);
  await expect.poll(() => redis.hget(ref.keys.meta, 'n.done'), { interval: 50 }).toBe(String(JOBS));
  expect(await redis.xlen(ref.keys.ready)).toBe(0);
  expect(full - (await usedBytes())).toBeGreaterThan((JOBS * BYTES) / 2);
  expect(await redis.set('more', 'x')).toBe('OK');
});
