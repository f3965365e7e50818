/** What the configuration says about Redis → what a connection is made from. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { defineConfig, loadConfig } from '../../src/config/load.ts';
import { redisOf } from '../../src/config/redis-options.ts';

const folder = mkdtempSync(join(tmpdir(), 'due-config-'));
const file = (name: string) => {
  writeFileSync(join(folder, name), name.toUpperCase());
  return join(folder, name);
};
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('without more it is the address and two time-outs', () => {
  const redis = redisOf(defineConfig({}));
  expect(redis).toEqual({ url: 'redis://127.0.0.1:6379', commandTimeout: 4000, connectTimeout: 5000 });
});

test('certificates are read from their files, and addresses of a NAT from pairs', () => {
  const env = {
    DUESTREAM_REDIS_URL: 'sentinels://one:1/mine',
    DUESTREAM_REDIS__CA: file('ca'),
    DUESTREAM_REDIS__CERT: file('cert'),
    DUESTREAM_REDIS__KEY: file('key'),
    DUESTREAM_REDIS__SENTINEL_USERNAME: 'ann',
    DUESTREAM_REDIS__SENTINEL_PASSWORD: 'secret',
    DUESTREAM_REDIS__NAT_MAP: '10.0.0.1:6379=localhost:7000,10.0.0.2:6379=[::1]:7001',
  };
  expect(redisOf(loadConfig({ env, cwd: folder }).config)).toMatchObject({
    url: 'sentinels://one:1/mine',
    tls: { ca: 'CA', cert: 'CERT', key: 'KEY' },
    sentinelUsername: 'ann',
    sentinelPassword: 'secret',
    natMap: {
      '10.0.0.1:6379': { host: 'localhost', port: 7000 },
      '10.0.0.2:6379': { host: '::1', port: 7001 },
    },
  });
});

test.each([
  [{ url: 'redis://one', ca: '/ca.pem' }, /redis\.ca is set, but redis\.url is without TLS; allowed: rediss:\/\//],
  [{ url: 'clusters://one', cert: '/cert.pem' }, /redis\.cert and redis\.key belong together/],
  [{ url: 'clusters://one', ca: '/nowhere/ca.pem' }, /redis\.ca cannot be read: ENOENT/],
])('%j is refused', (redis, why) => {
  expect(() => redisOf(defineConfig({ redis }))).toThrow(why);
});

test('a NAT that is no pair is refused by its option', () => {
  expect(() => defineConfig({ redis: { natMap: 'one=two' } })).toThrow(
    /redis\.natMap is "one=two".*host:port=host:port/,
  );
});
