/** The fixture that every other test stands on: it starts, survives a kill, and leaves nothing behind. */
import { existsSync } from 'node:fs';
import { expect, test } from 'vitest';
import { startRedis } from '../support/redis.ts';

test('a test server answers on its socket and removes its directory when stopped', async () => {
  const redis = await startRedis();
  const client = await redis.client();
  expect(await client.set('key', 'value')).toBe('OK');
  expect(await client.call('DEBUG', 'SLEEP', '0')).toBe('OK');
  await redis.stop();
  await redis.stop();
  expect(existsSync(redis.dir)).toBe(false);
});

test('a test server with a port answers there, and a restart keeps the port but not the data', async () => {
  const redis = await startRedis({ port: true });
  const client = await redis.client();
  await client.set('key', 'value');
  const before = redis.pid;
  await redis.restart();
  expect(redis.pid).not.toBe(before);
  expect(await client.get('key')).toBeNull();
  expect(redis.url).toBe(`redis://127.0.0.1:${redis.port}`);
  await redis.stop();
});

test('a test server with appendonly keeps every acknowledged write over a kill', async () => {
  const redis = await startRedis({ appendonly: true });
  const client = await redis.client();
  await client.set('key', 'value');
  await redis.kill('SIGKILL');
  await redis.restart();
  expect(await client.get('key')).toBe('value');
  await redis.stop();
});
