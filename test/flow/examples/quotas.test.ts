/** The example of docs/how-to/limits.md, run as it stands there: only the address of Redis is replaced. */
import { spawnSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { build } from '../../../scripts/steps.mjs';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { read, root } from '../../support/repository.ts';

let server: TestRedis;
let dir: string;

beforeAll(async () => {
  await build();
  server = await startRedis({ port: true });
  dir = await mkdtemp(join(root, '.cache', 'quotas-'));
}, 300_000);
afterAll(async () => {
  await server.stop();
  await rm(dir, { recursive: true, force: true });
});

test('the third job of a queue with room for two is refused', { timeout: 300_000 }, async () => {
  const [, code = ''] =
    /## How many jobs may wait\n[\s\S]*?```ts\n([\s\S]*?)```/.exec(read('docs/how-to/limits.md')) ?? [];
  expect(code.split('\n').length).toBeLessThan(25);
  const path = join(dir, 'example.mjs');
  const plain = code.replace('redis://127.0.0.1:6379', server.url).replace('<{ to: string }>', '');
  await writeFile(path, plain);
  const { stdout, stderr } = spawnSync(process.execPath, [path], { encoding: 'utf8', timeout: 120_000 });
  expect(stderr).toBe('');
  expect(stdout).toBe('ann@example.org scheduled\nbob@example.org scheduled\ncid@example.org refused\n');
});
