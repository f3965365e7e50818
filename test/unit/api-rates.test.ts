/** How many requests a caller may send, by a clock that the test moves. */
import { expect, test } from 'vitest';
import { createRates } from '../../src/http/api/gate.ts';
import { systemClock } from '../../src/kernel/clock.ts';

function ratesOf(perSecond: number) {
  let nowMs = 0;
  const rates = createRates(perSecond, { ...systemClock, monotonicMs: () => nowMs });
  const passed = (key: string, tries: number) => {
    let count = 0;
    for (let at = 0; at < tries; at += 1) {
      try {
        rates.take(key);
        count += 1;
      } catch {
        // Refused.
      }
    }
    return count;
  };
  return {
    rates,
    passed,
    later(ms: number) {
      nowMs += ms;
    },
  };
}

test('a second of requests may come at once, then as many as the time allows', () => {
  const { passed, later } = ratesOf(10);
  expect(passed('a', 50)).toBe(10);
  later(500);
  expect(passed('a', 50)).toBe(5);
  later(3_600_000);
  expect(passed('a', 50)).toBe(10);
});

test('callers do not take from each other', () => {
  const { passed } = ratesOf(3);
  expect([passed('a', 9), passed('b', 9)]).toEqual([3, 3]);
});

test('a refusal says how many are allowed, and for how long to wait', () => {
  const { rates, passed } = ratesOf(1);
  passed('a', 1);
  expect(() => rates.take('a')).toThrow(
    expect.objectContaining({ code: 'too-many', more: expect.objectContaining({ headers: { 'Retry-After': '1' } }) }),
  );
});

test('a million callers take no more memory than ten thousand', () => {
  const { passed } = ratesOf(1);
  for (let at = 0; at < 10_000; at += 1) passed(`caller ${at}`, 1);
  expect(passed('caller 0', 1)).toBe(0);
  passed('one more', 1);
  // The one that came first was forgotten.
  expect(passed('caller 0', 1)).toBe(1);
});
