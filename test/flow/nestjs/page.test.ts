/** The program of `docs/how-to/nestjs.md` as it stands there, compiled with decorators as an application of Nest is, in a process of its own. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import ts from 'typescript';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { build } from '../../../scripts/steps.mjs';
import { portSource } from '../../../src/embedded/port.mjs';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { read, root } from '../../support/repository.ts';

const program = /^```ts\n([\s\S]*?)^```/m.exec(read('docs/how-to/nestjs.md'))?.[1] ?? '';
let redis: TestRedis;
let child: ChildProcess;
let dir = '';
let url = '';
let said = '';

beforeAll(async () => {
  await build();
  redis = await startRedis({ port: true });
  dir = await mkdtemp(join(root, '.cache', 'nestjs-'));
  const port = await portSource()();
  const compilerOptions = {
    ...{ module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2023 },
    ...{ experimentalDecorators: true, emitDecoratorMetadata: true },
  };
  const { outputText } = ts.transpileModule(program.replaceAll('3000', String(port)), { compilerOptions });
  await writeFile(join(dir, 'app.mjs'), outputText);
  url = `http://127.0.0.1:${port}`;
  child = spawn(process.execPath, [join(dir, 'app.mjs')], { env: { ...process.env, REDIS_URL: redis.url } });
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (text) => (said += String(text)));
});
afterAll(async () => {
  child?.kill('SIGKILL');
  await redis?.stop();
  await rm(dir, { recursive: true, force: true });
});

test('it starts, schedules in a route, runs the job in a method, says that it is ready, and ends in order', async () => {
  const isThere = () =>
    fetch(`${url}/readyz`).then(
      ({ status }) => status,
      () => (child.exitCode === null ? 0 : said),
    );
  await expect.poll(isThere).toBe(200);
  const ordered = await fetch(`${url}/orders`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ order: 'tea', remind: '50ms' }),
  });
  expect([ordered.status, await ordered.json()]).toEqual([202, { order: 'tea', reminder: 'scheduled' }]);
  await expect.poll(() => said).toBe('remind tea\n');
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  // Nest ends the process by the signal that it got.
  expect([await ended, said]).toEqual([[null, 'SIGTERM'], 'remind tea\n']);
});
