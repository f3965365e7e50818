/** What a queue is defined with: nothing that nobody knows, and no backoff that would be ignored. */
import { expect, test } from 'vitest';
import { fixed } from '../../src/core/backoff.ts';
import { defineQueue } from '../../src/core/queue.ts';

test.each([
  [{ atempts: 3 }, /atempts is not an option of defineQueue; did you mean attempts\?/],
  [{ timeoutMs: 3 }, /timeoutMs is now timeout/],
  [[], /the options of defineQueue are .*; allowed: an object of options/],
  [{ backoff: { type: 'fixed', delay: 5 } }, /did you mean fixed\(5\)\?/],
  [{ backoff: '10s' }, /backoff is "10s"; allowed: fixed/],
])('%o is refused', (options, message) => {
  expect(() => defineQueue('emails', options as object)).toThrow(
    expect.objectContaining({ code: 'bad-input', message: expect.stringMatching(message) }),
  );
});

test('a backoff may be a function, or data of its own functions', () => {
  const policy = (failures: number) => failures * 1000;
  expect(defineQueue('emails', { backoff: policy }).backoff).toBe(policy);
  expect(defineQueue('emails', { backoff: fixed('5s') }).backoff).toEqual(fixed('5s'));
});
