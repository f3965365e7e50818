/** How long the leader waits between two passes: by the rate, and while the backlog is at its cap. */
import { expect, it } from 'vitest';
import { BacklogBackoff, PromotionRate } from '../../src/mover/promotion/mover.ts';

/** The gap after a second of so many jobs per pass, a pass each 2 ms. */
function gapAt(jobsPerPass: number, forMs = 1000) {
  const rate = new PromotionRate();
  for (let atMs = 0; atMs <= forMs; atMs += 2) rate.promoted(jobsPerPass, atMs);
  return rate.gapMs();
}

it('nothing happened: there is no gap', () => {
  expect(new PromotionRate().gapMs()).toBe(0);
});

it('at a hundred jobs a second hardly any job waits for another', () => {
  const rate = new PromotionRate();
  for (let atMs = 0; atMs <= 3000; atMs += 10) rate.promoted(1, atMs);
  expect(rate.gapMs()).toBeLessThan(0.5);
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
  const rate = new PromotionRate();
  for (let atMs = 0; atMs <= 1000; atMs += 2) rate.promoted(500, atMs);
  expect(rate.gapMs()).toBe(5);
  rate.promoted(0, 3000);
  expect(rate.gapMs()).toBeLessThan(0.1);
});

it('two passes in the same millisecond, or a clock that stands still, give no infinite rate', () => {
  const rate = new PromotionRate();
  for (let times = 0; times < 100; times += 1) rate.promoted(500, 1);
  expect(rate.gapMs()).toBeLessThanOrEqual(5);
  rate.promoted(0, 10_000);
  expect(rate.gapMs()).toBeLessThan(0.1);
});

it('one herd after a long rest does not slow down what follows', () => {
  const rate = new PromotionRate();
  rate.promoted(0, 0);
  rate.promoted(500, 60_000);
  expect(rate.gapMs()).toBeLessThan(0.05);
});

/** The rests while the backlog is as given, in turn. */
const rests = (readyMax: number, backlogs: readonly number[]) => {
  const backoff = new BacklogBackoff({ readyMax });
  return backlogs.map((backlog) => backoff.waitMs(backlog));
};
const still = (count: number) => Array.from({ length: count }, () => 10_000);

it('a backlog that shrinks is looked at every 5 ms', () => {
  expect(rests(10, [10_000, 9990, 9000, 10, 9])).toEqual([5, 5, 5, 5, 5]);
});

it('a backlog that stands still, or grows, is looked at ever more rarely, never a quarter longer than it stood', () => {
  const found = rests(10_000, still(60));
  let stoodMs = 0;
  for (const [at, restMs] of found.entries()) {
    if (at > 0) expect(restMs).toBeLessThanOrEqual(5 + stoodMs / 4);
    stoodMs += restMs;
  }
  expect(found.at(-1)).toBe(500);
  expect(rests(10_000, [10, 11, 12]).map(Math.round)).toEqual([5, 6, 8]);
});

it('the longest rest is no longer than a full backlog lasts at 20,000 jobs/s, but for small caps', () => {
  expect([1, 100, 2000, 4000, 1_000_000].map((cap) => rests(cap, still(200)).at(-1))).toEqual([
    ...[100, 100, 100, 200, 50_000],
  ]);
});

it('after any progress it begins anew', () => {
  expect(rests(10_000, [...still(30), 9999, 9999]).slice(-2)).toEqual([5, 6.25]);
  const backoff = new BacklogBackoff({ readyMax: 10_000 });
  for (const backlog of still(30)) backoff.waitMs(backlog);
  backoff.reset();
  expect(backoff.waitMs(10_000)).toBe(5);
});
