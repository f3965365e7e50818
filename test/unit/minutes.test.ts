/** States of minutes: as text and back, and what happened between two of them. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  addTime,
  BOUNDS_MS,
  between,
  bucketOf,
  FINE_BOUNDS_MS,
  LONGEST_MS,
  markText,
  NO_FINE,
  noBuckets,
  noTally,
  quantileOf,
  readMark,
  readState,
  stateText,
  type Times,
  timesSum,
} from '../../src/job/minutes.ts';

type Given = readonly (readonly [at: number, count: number])[];

const buckets = (...given: Given) => {
  const list = noBuckets();
  for (const [at, count] of given) list[at] = count;
  return list;
};
/** As an older version has counted them. */
const coarse = (...given: Given): Times => ({ buckets: buckets(...given), fine: NO_FINE });
const timesOf = (all: readonly number[]): Times => {
  const tally = noTally();
  for (const ms of all) addTime(tally, ms);
  return { buckets: tally.buckets, fine: { counts: tally.fine, maxMs: tally.maxMs } };
};
const state = {
  counters: [1, 0, 123_456_789, 0, 0, 0, 0, 8],
  promotion: buckets([0, 5]),
  start: buckets(),
  run: buckets([12, 1_000_000]),
};

describe('a state', () => {
  test('is the same after it was written and read', () => {
    const text = `${markText({ minute: 29_395_316, since: 29_395_000 })} ${stateText(state)}`;
    expect(readState(text)).toEqual({
      ...{ minute: 29_395_316, since: 29_395_000 },
      ...state,
      fine: { promotion: NO_FINE, start: NO_FINE, run: NO_FINE },
    });
    expect(text.length).toBeLessThan(70);
  });

  test('has what came since the one before, finely, behind all that older versions read', () => {
    const { buckets: run, fine } = timesOf([33_000, 33_000, 400_000]);
    const written = { ...state, run, fine: { promotion: NO_FINE, start: NO_FINE, run: fine } };
    const text = `${markText({ minute: 5, since: 4 })} ${stateText(written)}`;
    expect(readState(text)).toEqual({ minute: 5, since: 4, ...written });
    // An older version looks for so many lists, and takes so many numbers of each.
    const lists = text.split(' ').slice(2);
    expect(lists).toHaveLength(4);
    const numbers = lists
      .at(-1)
      ?.split(',')
      .slice(0, BOUNDS_MS.length + 1);
    expect(numbers?.map((one) => Number.parseInt(one, 36) || 0)).toEqual(run);
    expect(text.length).toBeLessThan(80);
  });

  test.each(['', '1', '1 2', 'x y a b c d', '1 2 3', null, undefined])('is none: %s', (text) => {
    expect(readState(text)).toBeUndefined();
  });

  test('of nonsense counts nothing', () => {
    expect(readState('5 4 §§,-,zzzzzzzzzzzzzzzzz  x ')?.counters).toEqual([0, 0, 0, 0, 0, 0, 0, 0]);
    expect(readMark('5 4 anything')).toEqual({ minute: 5, since: 4 });
  });
});

describe('between two states', () => {
  test('is what grew, and nothing where a counter was lost', () => {
    expect(between([1, 5, 9], [4, 5, 2])).toEqual([3, 0, 0]);
  });
});

describe('times', () => {
  test('are in the bucket of the first bound that is not less', () => {
    expect([0, 1, 2, 3, 300_000, 300_001, 1e12].map(bucketOf)).toEqual([0, 0, 1, 2, 11, 12, 12]);
  });

  test('are known to within 5 %, from a ms to a day, and the longest exactly', () => {
    const ms = fc.double({ min: 1, max: 86_400_000, noNaN: true });
    fc.assert(
      fc.property(fc.array(ms, { minLength: 1, maxLength: 60 }), fc.constantFrom(0.5, 0.9, 0.99, 1), (all, share) => {
        const sorted = [...all].sort((a, b) => a - b);
        const exact = sorted[Math.ceil(share * sorted.length - 1e-9) - 1] ?? 0;
        const found = quantileOf(timesOf(all), share) ?? 0;
        expect(Math.abs(found - exact) / exact).toBeLessThan(0.0501);
        expect(timesOf(all).fine.maxMs).toBe(Math.max(...all));
      }),
    );
    expect(FINE_BOUNDS_MS.length).toBeLessThan(220);
  });

  test('of 100 jobs that were 33 s late are 33 s, and no five minutes', () => {
    const all = timesOf(Array.from({ length: 100 }, () => 33_000));
    expect([quantileOf(all, 0.5), quantileOf(all, 0.99)]).toEqual([expect.closeTo(33_000, -4), 33_000]);
  });

  test('of both versions are one list: the fine ones stand for as many as the coarse ones count', () => {
    const half = timesSum([timesOf([33_000, 33_000]), coarse([11, 2], [0, 4])]);
    expect(half.buckets.reduce((sum, one) => sum + one, 0)).toBe(8);
    expect(quantileOf(half, 0.99)).toBe(33_000);
    expect(quantileOf(half, 0.25)).toBe(0.5);
  });

  test('of an older version have quantiles that lie between the bounds of their bucket, and are none of the bounds', () => {
    expect(quantileOf(coarse(), 0.5)).toBeUndefined();
    // Jobs that were two to three minutes late were not five.
    expect(quantileOf(coarse([11, 20]), 0.5)).toBe(165_000);
    expect(quantileOf(coarse([11, 20]), 0.99)).toBe(297_000);
    expect(quantileOf(coarse([0, 50], [3, 49], [12, 1]), 0.25)).toBe(0.5);
    expect(quantileOf(coarse([0, 50], [3, 50]), 0.75)).toBe(7.5);
    expect(quantileOf(coarse([8, 1]), 0.5)).toBe(625);
    expect(quantileOf(coarse([11, 7]), 1)).toBe(LONGEST_MS - 1);
  });

  test('of an older version above the last bound are told by that bound alone, which says "longer"', () => {
    expect(quantileOf(coarse([0, 50], [3, 49], [12, 1]), 1)).toBe(LONGEST_MS);
    expect(quantileOf(coarse([12, 5]), 0.5)).toBe(LONGEST_MS);
    expect(BOUNDS_MS.at(-1)).toBe(LONGEST_MS);
  });

  test('have quantiles that only grow with the share', () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat(50), { minLength: 13, maxLength: 13 }),
        fc.double({ min: 0.01, max: 1, noNaN: true }),
        (all, share) => {
          fc.pre(all.some((one) => one > 0));
          const given = { buckets: all, fine: NO_FINE };
          const [one, more] = [quantileOf(given, share), quantileOf(given, Math.min(1, share * 1.5))];
          expect(one).toBeGreaterThanOrEqual(0);
          expect(more).toBeGreaterThanOrEqual(one ?? Number.POSITIVE_INFINITY);
        },
      ),
    );
  });
});
