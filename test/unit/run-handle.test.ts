/** How a start is named on the line: the same again when it is read, and nothing for any other text. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { EntryId, Token } from '../../src/job/job.ts';
import { type RunHandle, readRun, writeRun } from '../../src/remote/run-handle.ts';

const RUN: RunHandle = {
  generation: 0,
  partition: 3,
  entry: '1763719000000-12' as EntryId,
  member: 'j:{acme}order-7',
  token: '1763719000000123' as Token,
  startedMs: 1_763_719_000_000,
  timeoutMs: 900_000,
  attempt: 2,
  name: 'welcome',
  mark: 'mi8n7ly8 0123456789abcdef',
};

test('a handle is read as it was written', () => {
  expect(readRun(writeRun(RUN))).toEqual(RUN);
});

test('a handle has at most 512 bytes, for the longest id of duestream', () => {
  const longest = { ...RUN, member: `j:${'x'.repeat(192)}`, name: 'n'.repeat(64), mark: `m|${'t'.repeat(650)}` };
  expect(writeRun(longest).length).toBeLessThanOrEqual(512);
  expect(readRun(writeRun(longest))).toEqual({ ...longest, mark: '' });
});

test('any other text is none', () => {
  const other = (fields: unknown) => Buffer.from(JSON.stringify(fields)).toString('base64url');
  const fields: readonly unknown[] = [0, 3, RUN.entry, RUN.member, RUN.token, 1, 1, 1, 'n', ''];
  expect(readRun(other(fields))).toBeDefined();
  for (const [at, wrong] of [
    [0, -1],
    [1, 1.5],
    [2, '1-'],
    [2, 'x; FLUSHALL'],
    [3, 7],
    [4, '-1'],
    [5, '1'],
    [9, null],
  ] as const) {
    expect(readRun(other(fields.with(at, wrong)))).toBeUndefined();
  }
  expect(readRun(other(fields.slice(1)))).toBeUndefined();
  expect(readRun(other({ run: 1 }))).toBeUndefined();
  expect(readRun('x'.repeat(5000))).toBeUndefined();
  fc.assert(fc.property(fc.string(), (text) => readRun(text) === undefined));
});
