/** States of minutes: as text and back, and what happened between two of them. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  BOUNDS_MS,
  between,
  bucketOf,
  LONGEST_MS,
  markText,
  noBuckets,
  quantileOf,
  readMark,
  readState,
  stateText,
} from '../../src/job/minutes.ts';

const buckets = (...given: readonly (readonly [at: number, count: number])[]) => {
  const list = noBuckets();
  for (const [at, count] of given) list[at] = count;
  return list;
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
    expect(readState(text)).toEqual({ minute: 29_395_316, since: 29_395_000, ...state });
    expect(text.length).toBeLessThan(70);
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

  test('have quantiles that lie between the bounds of their bucket, and are none of the bounds', () => {
    expect(quantileOf(noBuckets(), 0.5)).toBeUndefined();
    // Jobs that were two to three minutes late were not five.
    expect(quantileOf(buckets([11, 20]), 0.5)).toBe(165_000);
    expect(quantileOf(buckets([11, 20]), 0.99)).toBe(297_000);
    expect(quantileOf(buckets([0, 50], [3, 49], [12, 1]), 0.25)).toBe(0.5);
    expect(quantileOf(buckets([0, 50], [3, 50]), 0.75)).toBe(7.5);
    expect(quantileOf(buckets([8, 1]), 0.5)).toBe(625);
    expect(quantileOf(buckets([11, 7]), 1)).toBe(LONGEST_MS - 1);
  });

  test('above the last bound are told by that bound alone, which says "longer"', () => {
    expect(quantileOf(buckets([0, 50], [3, 49], [12, 1]), 1)).toBe(LONGEST_MS);
    expect(quantileOf(buckets([12, 5]), 0.5)).toBe(LONGEST_MS);
    expect(BOUNDS_MS.at(-1)).toBe(LONGEST_MS);
  });

  test('have quantiles that only grow with the share', () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat(50), { minLength: 13, maxLength: 13 }),
        fc.double({ min: 0.01, max: 1, noNaN: true }),
        (all, share) => {
          fc.pre(all.some((one) => one > 0));
          const [one, more] = [quantileOf(all, share), quantileOf(all, Math.min(1, share * 1.5))];
          expect(one).toBeGreaterThanOrEqual(0);
          expect(more).toBeGreaterThanOrEqual(one ?? Number.POSITIVE_INFINITY);
        },
      ),
    );
  });
});
