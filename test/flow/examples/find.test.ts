/** The examples of docs/how-to/find-jobs.md, run as they stand there: only the address of Redis is replaced. */
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
  dir = await mkdtemp(join(root, '.cache', 'find-'));
}, 300_000);
afterAll(async () => {
  await server.stop();
  await rm(dir, { recursive: true, force: true });
});

/** The first example below a heading. */
async function runExample(heading: string): Promise<string> {
  const page = read('docs/how-to/find-jobs.md');
  const [, code = ''] = /```ts\n([\s\S]*?)```/.exec(page.slice(page.indexOf(`\n## ${heading}\n`))) ?? [];
  expect(code.split('\n').length, heading).toBeLessThan(25);
  const path = join(dir, `${heading.replaceAll(/\W/g, '-')}.mjs`);
  await writeFile(path, code.replace('redis://127.0.0.1:6379', server.url));
  const { status, stdout, stderr } = spawnSync(process.execPath, [path], { encoding: 'utf8', timeout: 120_000 });
  expect([status, stderr]).toEqual([0, '']);
  return stdout;
}

test('jobs get tags, are listed by them, and cancelled by them', { timeout: 300_000 }, async () => {
  await runExample('Give jobs tags');
  const listed = await runExample("List a user's jobs");
  expect(listed).toMatch(/ scheduled \d{4}-.*Z \{ text: 'your invoice' \}\n/);
  expect(listed).toContain('2 and that is all\n2\n');
  const cancelled = await runExample('Cancel by tag');
  expect(cancelled).toMatch(/^2 \[ '[\w-]{22}', '[\w-]{22}' \]\n/);
  expect(cancelled).toContain('2 of 2 cancelled, 0 run and were asked to stop {}\n');
  expect(await runExample("List a user's jobs")).toBe('0 and that is all\n0\n');
});
