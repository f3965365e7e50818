/**
 * The command on Deno and on Bun: a daemon that is mover, worker and HTTP API serves a page and runs a job, and stops in
 * order on SIGTERM. Both runtimes are packages of npm, and are put into the cache of the repository once. Where that does not
 * work, the test is skipped and says why.
 */
import { execFile } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { withLock } from '../../../src/embedded/lock.mjs';
import { createClient } from '../../../src/index.ts';
import { HANDLERS, readEffects } from '../../support/effects.ts';
import { useProcesses } from '../../support/processes.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { root } from '../../support/repository.ts';

const run = promisify(execFile);
const INSTALL_MS = 240_000;

/** `scope`: where the packages with the binaries are, one for each kind of machine. */
const RUNTIMES = [
  { name: 'Deno', packaged: 'deno@2.9.6', scope: '@deno', binary: 'deno', args: ['run', '--allow-all'] },
  { name: 'Bun', packaged: 'bun@1.4.5', scope: '@oven', binary: 'bin/bun', args: [] },
] as const;
type Runtime = (typeof RUNTIMES)[number];

const processes = useProcesses();
let server: TestRedis;

vi.setConfig({ testTimeout: 2 * INSTALL_MS });
beforeAll(async () => {
  server = await startRedis({ port: true });
});
afterAll(() => server.stop());

test.for(RUNTIMES)('$name serves pages, runs a job, and stops in order', async (runtime, { skip }) => {
  const found = await binaryOf(runtime);
  if ('why' in found) return skip(found.why);
  const cwd = mkdtempSync(join(processes.folder, 'project-'));
  mkdirSync(join(cwd, 'node_modules'));
  symlinkSync(root, join(cwd, 'node_modules', 'duestream'));
  copyFileSync(HANDLERS, join(cwd, 'handlers.mjs'));
  const file = join(cwd, 'effects.jsonl');
  const namespace = runtime.name.toLowerCase();
  const env = {
    DUESTREAM_REDIS_URL: server.url,
    DUESTREAM_NAMESPACE: namespace,
    DUESTREAM_HTTP__PORT: '0',
    EFFECTS_FILE: file,
  };
  const args = ['start', '--roles', 'mover,worker,http', '--module', 'handlers.mjs'];
  const running = processes.launch({ ...runtime, runtime: [found.path, ...runtime.args], args, env, cwd });
  const { http } = await running.logged('started');
  const { port } = http as { readonly port: number };

  expect(await (await fetch(`http://127.0.0.1:${port}/`)).text()).toContain('<div id="app">');
  const client = createClient({ redis: server.url, namespace });
  await client.schedule('emails', { ms: 1 }, { id: 'ada', delay: 1 });
  await client.close();
  const seen = () => readEffects(file).map(({ what, id }) => `${what} ${id}`);
  await expect.poll(seen).toEqual(['start ada', 'end ada']);
  expect(await running.end('SIGTERM')).toEqual({ code: 0, signal: null });
});

/** The one of its packages that runs here; installed if it is not there. */
async function binaryOf(runtime: Runtime): Promise<{ readonly path: string } | { readonly why: string }> {
  const folder = join(root, '.cache', 'runtimes', runtime.packaged);
  const install = ['install', '--prefix', folder, '--ignore-scripts', '--no-audit', '--no-fund', runtime.packaged];
  try {
    return await withLock({ path: `${folder}.lock`, timeoutMs: INSTALL_MS }, async () => {
      const there = await runsHere(runtime, folder);
      if (there !== undefined) return { path: there };
      await run('npm', install, { cwd: root, timeout: INSTALL_MS });
      const path = await runsHere(runtime, folder);
      return path === undefined ? { why: `no binary of ${runtime.packaged} runs on this machine` } : { path };
    });
  } catch (error) {
    return { why: `${runtime.packaged} cannot be installed: ${String(error).split('\n', 1)[0]}` };
  }
}

async function runsHere({ scope, binary }: Runtime, folder: string): Promise<string | undefined> {
  const scoped = join(folder, 'node_modules', scope);
  if (!existsSync(scoped)) return undefined;
  for (const name of readdirSync(scoped)) {
    const path = join(scoped, name, binary);
    const says = await run(path, ['--version'], { timeout: 30_000 }).catch(() => undefined);
    if (says !== undefined) return path;
  }
  return undefined;
}
