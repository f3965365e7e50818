/** What a person who runs tests may rely on: titles, tiers, and where a mistake is said to be. */
import { afterEach, expect, test, vi } from 'vitest';
import { read, walk } from './support/repository.ts';
import { setup } from './support/titles.mjs';

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
