/** The order of a daemon's life: stopped before, during and after its start. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createDaemon } from '../../../src/daemon/daemon.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

let server: TestRedis;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());

test('a daemon that is stopped while it waits for Redis says that it was stopped, not that Redis is away', async () => {
  const daemon = createDaemon({ redis: { url: 'unix:///nowhere/redis.sock' }, roles: ['mover'] });
  const started = daemon.start();
  await daemon.stop();
  await expect(started).rejects.toMatchObject({ code: 'stopped' });
});

test('a daemon that cannot reach Redis says so', async () => {
  const daemon = createDaemon({ redis: { url: 'unix:///nowhere/redis.sock' }, roles: ['mover'] });
  await expect(daemon.start()).rejects.toMatchObject({ code: 'unavailable' });
});

test('stop gives every lease back and leaves no connection, also twice', async () => {
  const daemon = createDaemon({ redis: { url: server.url }, roles: ['mover'], queues: { bills: {} } });
  await daemon.start();
  const redis = await server.client();
  await expect.poll(() => redis.exists('duestream:v1:{bills:0}:leader')).toBe(1);
  await Promise.all([daemon.stop(), daemon.stop()]);
  expect(await redis.exists('duestream:v1:{bills:0}:leader')).toBe(0);
  expect(String(await redis.client('LIST'))).not.toContain('name=duestream');
});
