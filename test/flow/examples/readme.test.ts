/**
 * The quick start of the README, run as it stands there: only the address of Redis and the delay are replaced. It ends:
 * the producer by itself, worker and daemon when they are asked to.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { build } from '../../../scripts/steps.mjs';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { read, root } from '../../support/repository.ts';

let server: TestRedis;
let dir: string;
const running = new Set<ChildProcess>();

beforeAll(async () => {
  await build();
  server = await startRedis({ port: true });
  dir = await mkdtemp(join(root, '.cache', 'readme-'));
});

afterAll(async () => {
  for (const child of running) child.kill('SIGKILL');
  await server.stop();
  await rm(dir, { recursive: true, force: true });
});

test('the quick start of the README schedules a job, runs it, shows it, and ends', async () => {
  const daemon = start([join(root, 'dist/main.js'), 'start', '--http-port', '0', '--redis', server.url]);
  const worker = start([await save('worker.mjs')]);
  await worker.said('waiting for jobs');

  const producer = start([await save('client.mjs')]);
  expect(await producer.ended()).toBe(0);
  expect(producer.output()).toContain("status: 'scheduled'");
  await worker.said('mail to ada@example.com, attempt 1');

  worker.child.kill('SIGINT');
  expect(await worker.ended()).toBe(0);
  const show = start([join(root, 'dist/main.js'), 'show', 'emails', 'welcome:ada', '--redis', server.url]);
  expect(await show.ended()).toBe(0);
  expect(show.output()).toMatch(/state +done/);
  expect(show.output()).toMatch(
    /the due time that was asked for\n.* attempt 1 started\n.* done after attempt 1, token \d+/,
  );
  daemon.child.kill('SIGINT');
  expect(await daemon.ended()).toBe(0);
});

async function save(name: string): Promise<string> {
  const [, code = ''] =
    new RegExp(`<!-- quick start: ${name}[^>]*-->\\n\`\`\`js\\n([^]*?)\`\`\``).exec(read('README.md')) ?? [];
  expect(code).toContain("from 'duestream'");
  expect(code.split('\n').filter((line) => line.trim() !== '').length).toBeLessThanOrEqual(12);
  const adapted = code
    .replace('redis://127.0.0.1:6379', server.url)
    .replace("'3s'", "'200ms'")
    .replace('= createClient(', '= await createClient(');
  const file = join(dir, name);
  await writeFile(file, adapted);
  return file;
}

function start(args: readonly string[]) {
  const child = spawn(process.execPath, args, { cwd: dir, stdio: ['ignore', 'pipe', 'pipe'] });
  running.add(child);
  let output = '';
  const listeners = new Set<() => void>();
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString();
      for (const listener of listeners) listener();
    });
  }
  const closed = once(child, 'close').then(([code]: unknown[]) => {
    running.delete(child);
    return code;
  });
  /** Waits until it has printed that. */
  const said = async (text: string): Promise<void> => {
    const seen = new Promise<void>((resolve) => {
      const listener = () => {
        if (output.includes(text)) resolve();
      };
      listeners.add(listener);
      listener();
    });
    await Promise.race([
      seen,
      closed.then((code) => {
        if (!output.includes(text)) throw new Error(`ended with ${String(code)} before it said ${text}: ${output}`);
      }),
    ]);
  };
  return { child, said, ended: () => closed, output: () => output };
}
