/** How long the mover rests between two passes, by the rate. */
import { expect, it } from 'vitest';
import { createPace } from '../../src/mover/promotion/pace.ts';

/** The gap after a second of so many jobs per pass, a pass each 2 ms. */
function gapAt(jobsPerPass: number, forMs = 1000) {
  const pace = createPace();
  for (let atMs = 0; atMs <= forMs; atMs += 2) pace.promoted(jobsPerPass, atMs);
  return pace.gapMs();
}

it('nothing happened: there is no gap', () => {
  expect(createPace().gapMs()).toBe(0);
});

it('at a hundred jobs a second hardly any job waits for another', () => {
  const pace = createPace();
  for (let atMs = 0; atMs <= 3000; atMs += 10) pace.promoted(1, atMs);
  expect(pace.gapMs()).toBeLessThan(0.5);
});

it.each([1, 4, 8])(
  'with %i jobs in two milliseconds a job waits for others, and for less than two milliseconds',
  (jobs) => {
    expect(gapAt(jobs)).toBeGreaterThan(1);
    expect(gapAt(jobs)).toBeLessThan(2);
  },
);

it('the gap grows with the rate, and not above five milliseconds', () => {
  const gaps = [0, 1, 5, 11, 16, 21, 29, 1000].map((jobs) => gapAt(jobs));
  expect(gaps).toEqual([...gaps].sort((a, b) => a - b));
  expect(gaps.at(0)).toBe(0);
  expect(gaps.at(-1)).toBe(5);
});

it('it is at once again soon after the rush', () => {
  const pace = createPace();
  for (let atMs = 0; atMs <= 1000; atMs += 2) pace.promoted(500, atMs);
  expect(pace.gapMs()).toBe(5);
  pace.promoted(0, 3000);
  expect(pace.gapMs()).toBeLessThan(0.1);
});

it('two passes in the same millisecond, or a clock that stands still, give no infinite rate', () => {
  const pace = createPace();
  for (let times = 0; times < 100; times += 1) pace.promoted(500, 1);
  expect(pace.gapMs()).toBeLessThanOrEqual(5);
  pace.promoted(0, 10_000);
  expect(pace.gapMs()).toBeLessThan(0.1);
});

it('one herd after a long rest does not slow down what follows', () => {
  const pace = createPace();
  pace.promoted(0, 0);
  pace.promoted(500, 60_000);
  expect(pace.gapMs()).toBeLessThan(0.05);
});
