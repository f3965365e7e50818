/** The programs of `docs/how-to/twelve-tasks.md`, run as they stand there; only the address of Redis is replaced. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import ts from 'typescript';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { build } from '../../../scripts/steps.mjs';
import { createDaemon, type Daemon } from '../../../src/daemon/daemon.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { read, root } from '../../support/repository.ts';

const LINES_MAX = 25;
const ADDRESS = 'redis://127.0.0.1:6379';
const run = promisify(execFile);
let server: TestRedis;
let daemon: Daemon;
let dir: string;

interface Task {
  readonly title: string;
  readonly language: string;
  readonly code: string;
  readonly printed: string;
}

const tasks = read('docs/how-to/twelve-tasks.md')
  .split(/^## /m)
  .slice(1)
  .map((section): Task => {
    const [, language = '', code = ''] = /^```(js|ts)\n([\s\S]*?)^```/m.exec(section) ?? [];
    const [, printed = ''] = /^```text\n([\s\S]*?)^```/m.exec(section) ?? [];
    return { title: section.split('\n')[0] ?? '', language, code, printed };
  });

beforeAll(async () => {
  await build();
  server = await startRedis({ port: true });
  daemon = createDaemon({ redis: { url: server.url }, roles: ['mover'], http: { port: 0 } });
  await daemon.start();
  dir = await mkdtemp(join(root, '.cache', 'tasks-'));
});
afterAll(async () => {
  await daemon.stop();
  await server.stop();
  await rm(dir, { recursive: true, force: true });
});

test(`there are twelve, of at most ${LINES_MAX} lines`, () => {
  expect(tasks.map(({ title }) => Number.parseInt(title, 10))).toEqual(Array.from({ length: 12 }, (_, at) => at + 1));
  const long = tasks.filter(({ code }) => code.trim().split('\n').length > LINES_MAX);
  expect(long.map(({ title }) => title)).toEqual([]);
});

for (const { title, language, code, printed } of tasks) {
  test(title, { timeout: 180_000 }, async () => {
    const program =
      language === 'ts' ? ts.transpile(code, { target: ts.ScriptTarget.ES2023, module: ts.ModuleKind.ESNext }) : code;
    const file = join(dir, `task-${Number.parseInt(title, 10)}.mjs`);
    await writeFile(file, program.replaceAll(ADDRESS, server.url));
    const { stdout } = await run(process.execPath, [file], { timeout: 150_000 });
    expect(stdout).toBe(printed);
  });
}
