/**
 * duestream inside an application: a process of its own embeds it several times and looks at itself before, meanwhile
 * and after. Whatever a library could leave behind in a process would show here.
 */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { build } from '../../../scripts/steps.mjs';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { root } from '../../support/repository.ts';

interface Look {
  readonly listeners: readonly string[];
  readonly globals: readonly string[];
  readonly replaced: readonly boolean[];
  readonly resources: readonly string[];
  readonly uncaught: boolean;
  readonly exitCode?: number;
}

interface Seen {
  readonly before: Look;
  readonly imported: Look;
  readonly running: Look;
  readonly after: Look;
  readonly reminded: Readonly<Record<string, readonly string[]>>;
  readonly metrics: readonly string[];
  readonly survivor: readonly string[];
  readonly ready: number;
  readonly otherReady: number;
  readonly ran: number;
  readonly consumers: number;
  readonly failed: string;
  readonly rounds: readonly number[];
  readonly warnings: readonly string[];
}

let server: TestRedis;
let seen: Seen;
let stderr = '';

beforeAll(async () => {
  await build();
  server = await startRedis({ port: true });
  const probe = join(root, 'test', 'fixtures', 'embedding-probe.mjs');
  // Ends by itself, or the time-out ends it and everything here fails.
  const said = await promisify(execFile)(process.execPath, [probe, server.url], { timeout: 60_000 });
  seen = JSON.parse(said.stdout);
  stderr = said.stderr;
}, 150_000);
afterAll(() => server.stop());

describe('the process', () => {
  test('has no listener of ours, neither for signals nor for errors', () => {
    const { before, imported, running, after } = seen;
    expect(before.listeners.filter((line) => /^(SIG|un|reject|beforeExit)/.test(line))).toEqual([]);
    expect(imported.listeners).toEqual(before.listeners);
    expect(running.listeners).toEqual(before.listeners);
    expect(after.listeners).toEqual(before.listeners);
    expect([running.uncaught, after.uncaught, after.exitCode]).toEqual([false, false, undefined]);
  });

  test('keeps its globals as they were', () => {
    expect(seen.running.globals).toEqual(seen.before.globals);
    expect(seen.running.replaced).not.toContain(true);
  });

  test('has nothing open after the import, and nothing after the stop', () => {
    expect(seen.imported.resources).toEqual(seen.before.resources);
    expect(seen.running.resources.length).toBeGreaterThan(seen.before.resources.length);
    expect(seen.after.resources).toEqual(seen.before.resources);
  });

  test('grows no handle over several lives', () => {
    expect(seen.rounds).toEqual([0, 0, 0]);
  });

  test('was warned of nothing and wrote nothing', () => {
    expect(seen.warnings).toEqual([]);
    expect(stderr).toBe('');
  });

  test('left no connection in Redis', async () => {
    const redis = await server.client();
    expect(String(await redis.call('CLIENT', 'LIST'))).not.toContain('name=duestream');
  });
});

test('two applications in one process know nothing of each other', () => {
  expect(seen.reminded).toEqual({ one: ['1'], two: ['2'] });
  expect([seen.ready, seen.otherReady]).toEqual([200, 200]);
  expect(seen.survivor).toEqual(['2', '3']);
});

test('each application shows its own metrics: how late its jobs started, and its queues', () => {
  expect(seen.metrics).toHaveLength(2);
  for (const text of seen.metrics) {
    expect(text).toContain('duestream_start_lateness_seconds_count{queue="reminders"} 1\n');
    expect(text).toContain('duestream_jobs_scheduled_total{queue="reminders",partition="0"} 1\n');
  }
});

test('several producers and workers of several queues share a process', () => {
  expect(seen).toMatchObject({ ran: 60, consumers: 4 });
});

test('an application that cannot start says why and takes down what it had begun', () => {
  expect(seen.failed).toBe('unavailable');
});
