/** What a person who runs tests may rely on: titles, tiers, and where a mistake is said to be. */
import { afterEach, describe, expect, test, vi } from 'vitest';
import { close, openCommands, whenReady } from '../src/redis/connection/connect.ts';
import { partitionRef } from '../src/redis/keys.ts';
import { scripts } from '../src/redis/scripts/script-table.ts';
import { run, scriptOptions } from '../src/redis/scripts/scripts.ts';
import { placeOf } from './support/lua-errors.ts';
import { startRedis } from './support/redis.ts';
import { read, walk } from './support/repository.ts';
import { setup } from './support/titles.mjs';
import { filesOf } from './tiers.mjs';

const before = process.exitCode;
afterEach(() => {
  process.exitCode = before;
  vi.restoreAllMocks();
});

/** The exit status of a run by a title, of one file with one test. */
function statusOf(mode: 'run' | 'skip', result?: { readonly state: string }, testNamePattern?: RegExp) {
  process.exitCode = undefined;
  vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  const one = { mode, ...(result && { result }) };
  const config = testNamePattern ? { testNamePattern } : {};
  setup({ vitest: { config, state: { getFiles: () => [{ mode: 'run', tasks: [{ mode: 'run', tasks: [one] }] }] } } })();
  return process.exitCode;
}

test('a run by a title that no test has is red', () => {
  expect(statusOf('skip', undefined, /a title/)).toBe(1);
  expect(statusOf('run', { state: 'pass' }, /a title/)).toBeUndefined();
  expect(statusOf('skip')).toBeUndefined();
});

test('a sentence that a table has is the title of its test as it stands, without quotes or escapes', () => {
  const tables = walk('test').filter((path) => path.endsWith('.ts') && /\$title\b/.test(read(path)));
  expect(tables).toEqual(['test/house-runs.test.ts']);
});

test('every folder of src has tests that `npm test` runs', () => {
  const { exclude } = filesOf('quick');
  const quick = walk('test').filter((path) => path.endsWith('.test.ts') && !exclude.includes(path));
  const imported = new Set(
    quick.flatMap((path) => [...read(path).matchAll(/\/src\/([\w-]+)\//g)].map(([, folder]) => folder)),
  );
  const folders = new Set(walk('src').flatMap((path) => path.split('/').slice(1, -1).slice(0, 1)));
  expect([...folders].filter((folder) => !imported.has(folder))).toEqual([]);
});

describe('a mistake in Lua', () => {
  test.each(['serve', 'schedule'])('is found where somebody wrote it, everywhere in %s', (verb) => {
    const lines = (scriptOptions()[`duestream_${verb}`]?.lua ?? '').split('\n');
    for (const [at, line] of lines.entries()) {
      if (at % 5 !== 0) continue;
      // What the assembler writes itself.
      if (line.trim() === '' || /^\s*-- lua\/lib\//.test(line)) continue;
      const [path = '', of] = (placeOf(verb, at + 1) ?? '').split(':');
      expect(path, `${at + 1}: ${line}`).not.toBe('');
      expect(read(path).split('\n')[Number(of) - 1]?.trim()).toBe(line.trim());
    }
  });

  test('is told with that place, and with the line of the test', async () => {
    const server = await startRedis();
    const redis = openCommands({ redis: { path: server.socketPath }, name: 'test' });
    const { keys } = partitionRef('t', { queue: 'q', partition: 0, layoutGeneration: 0 });
    try {
      await whenReady(redis);
      // No process of ours has such a lease.
      const args = { now: '1', process: 'p', lease: 'long', schema: '1', silent: '', over: '' };
      const error = await run(redis, scripts.elect, { keys, args }).catch((reason) => reason);
      expect(error.message).toMatch(/@user_script:\d+\. \(lua\/verbs\/elect\.lua:\d+\)$/);
      expect(error.stack).toMatch(/house-runs\.test\.ts:\d+/);
    } finally {
      close(redis);
      await server.stop();
    }
  });
});
