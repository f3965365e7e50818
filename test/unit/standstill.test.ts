/** How long a capped partition is left alone: hardly while it drains, longer while it stands still. */
import { expect, it } from 'vitest';
import { createStandstill } from '../../src/mover/promotion/standstill.ts';

/** The rests while the backlog is as given, in turn. */
const rests = (readyMax: number, backlogs: readonly number[]) => {
  const standstill = createStandstill({ readyMax });
  return backlogs.map(standstill.restMs);
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
  const standstill = createStandstill({ readyMax: 10_000 });
  for (const backlog of still(30)) standstill.restMs(backlog);
  standstill.over();
  expect(standstill.restMs(10_000)).toBe(5);
});
