/**
 * The quick start of the README, run as it stands there: only the address of Redis and the delay are replaced.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { read, root } from '../../support/repository.ts';

let server: TestRedis;
let dir: string;

beforeAll(async () => {
  server = await startRedis({ port: true });
  dir = await mkdtemp(join(root, '.cache', 'readme-'));
});

afterAll(async () => {
  await server.stop();
  await rm(dir, { recursive: true, force: true });
});

test('the quick start of the README schedules a job and runs it', async () => {
  const code = /<!-- quick start[^>]*-->\n```js\n([\s\S]*?)```/.exec(read('README.md'))?.[1] ?? '';
  expect(code.split('\n').filter((line) => line.trim() !== '').length).toBeLessThanOrEqual(20);
  const adapted = code.replace('redis://127.0.0.1:6379', server.url).replace("'3s'", "'200ms'");
  expect(adapted).toContain(server.url);
  const file = join(dir, 'quickstart.mjs');
  await writeFile(file, adapted);

  const child = spawn(process.execPath, [file], { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  const mailed = new Promise<void>((resolve) => {
    const listen = (chunk: Buffer) => {
      output += chunk.toString();
      if (output.includes('mail to')) resolve();
    };
    child.stdout.on('data', listen);
    child.stderr.on('data', listen);
    child.on('exit', () => resolve());
  });
  await mailed;
  child.kill('SIGKILL');
  await once(child, 'close');
  expect(output).toContain('mail to ada@example.com, attempt 1');
  expect(output).toContain("state: 'scheduled'");
});
