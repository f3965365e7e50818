/** What is said of a due job that waits for the next pass of its leader. */
import { expect, test } from 'vitest';
import { lingerLeftMs, lingerText } from '../../src/client/queues/why.ts';

test.each([
  ['it is not due', { lingerMs: 20, dueMs: 101, nowMs: 100 }, undefined],
  ['it is due just now', { lingerMs: 20, dueMs: 100, nowMs: 100 }, 20],
  ['it lingers', { lingerMs: 20, dueMs: 100, nowMs: 112 }, 8],
  ['a pass should have taken it', { lingerMs: 20, dueMs: 100, nowMs: 120 }, undefined],
  ['its queue does not linger', { lingerMs: undefined, dueMs: 100, nowMs: 100 }, undefined],
  ['there is none', { lingerMs: 20, dueMs: undefined, nowMs: 100 }, undefined],
])('%s', (_, job, leftMs) => expect(lingerLeftMs(job)).toBe(leftMs));

test('the sentence has whole milliseconds', () => {
  expect(lingerText(7.2)).toBe('due jobs linger for company; the next pass is in 8 ms at most');
});
