/** States of minutes, hours and days: as text and back, and what happened between two of them. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  addTime,
  BOUNDS_MS,
  between,
  bucketOf,
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
import { OCTAVES, octaveFromMs, octaveOf, octaveWidthMs } from '../../src/job/octaves.ts';
import { alertOf, budgetOf, PACE_SPANS_MS, promisedSum, readNoted } from '../../src/job/promise.ts';

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

  test('are counted by whole ms, eight buckets in each power of two, which have no gap', () => {
    for (let octave = 0; octave < OCTAVES; octave += 1) {
      const [fromMs, toMs] = [octaveFromMs(octave), octaveFromMs(octave) + octaveWidthMs(octave) - 1];
      expect([octaveOf(fromMs), octaveOf(toMs), toMs + 1]).toEqual([octave, octave, octaveFromMs(octave + 1)]);
      expect(octaveWidthMs(octave)).toBeLessThanOrEqual(Math.max(1, fromMs / 8));
    }
    expect([-3, 0.4, 0.6, 1e12].map(octaveOf)).toEqual([0, 0, 1, OCTAVES - 1]);
  });

  test('have percentiles in the bucket of the exact one, exact below 16 ms, and the longest exactly', () => {
    const ms = fc.integer({ min: 0, max: 86_400_000 });
    fc.assert(
      fc.property(fc.array(ms, { minLength: 1, maxLength: 60 }), fc.constantFrom(0.5, 0.9, 0.99, 1), (all, share) => {
        const sorted = [...all].sort((a, b) => a - b);
        const exact = sorted[Math.ceil(share * sorted.length - 1e-9) - 1] ?? 0;
        const found = quantileOf(timesOf(all), share) ?? 0;
        // Three digits are told.
        expect(Math.abs(found - exact)).toBeLessThanOrEqual(exact < 16 ? 0 : exact / 8 + found / 200);
        expect(timesOf(all).fine.maxMs).toBe(Math.max(...all));
      }),
    );
  });

  const lognormal = (medianMs: number, wide: number) => (one: number, other: number) =>
    medianMs * Math.exp(wide * Math.sqrt(-2 * Math.log(1 - one)) * Math.cos(2 * Math.PI * other));
  test.each([
    ['a healthy queue', lognormal(2, 0.7)],
    ['a busy queue', lognormal(80, 1.5)],
    ['two humps', (one: number, other: number) => lognormal(one < 0.02 ? 40_000 : 3, 0.5)(one, other)],
    ['a long tail', (one: number) => 2 / (1 - one) ** (1 / 1.1)],
    ['an even hour', (one: number) => one * 3_600_000],
    ['a herd', (one: number, other: number) => (one < 0.3 ? other * 90_000 : lognormal(2, 0.4)(one, other))],
  ])('of many jobs of %s have percentiles to within 2 in 100, however they are added', (_, draw) => {
    let seed = 7;
    const random = () => {
      seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
      return seed / 2 ** 32;
    };
    const all = Array.from({ length: 100_000 }, () => Math.floor(draw(random(), random())));
    const hours = timesSum(Array.from({ length: 10 }, (_, nth) => timesOf(all.filter((_, at) => at % 10 === nth))));
    const sorted = Float64Array.from(all).sort();
    for (const share of [0.5, 0.99, 0.999]) {
      const exact = sorted[Math.ceil(share * sorted.length) - 1] ?? 0;
      expect(Math.abs((quantileOf(hours, share) ?? 0) - exact)).toBeLessThanOrEqual(Math.max(1, exact * 0.02));
    }
    expect(quantileOf(hours, 0.99)).toBe(quantileOf(timesOf(all), 0.99));
  });

  test('of 100 jobs that were 33 s late are 33 s, and no five minutes', () => {
    const all = timesOf(Array.from({ length: 100 }, () => 33_000));
    expect([quantileOf(all, 0.5), quantileOf(all, 0.99)]).toEqual([expect.closeTo(33_000, -4), 33_000]);
  });

  test('of both versions are one list: the fine ones stand for as many as the coarse ones count', () => {
    const half = timesSum([timesOf([33_000, 33_000]), coarse([11, 2], [0, 4])]);
    expect(half.buckets.reduce((sum, one) => sum + one, 0)).toBe(8);
    expect(quantileOf(half, 0.75)).toBeGreaterThan(30_000);
    expect(quantileOf(half, 0.25)).toBeLessThan(1);
  });

  test('of an older version have quantiles that lie between the bounds of their bucket, and are none of the bounds', () => {
    expect(quantileOf(coarse(), 0.5)).toBeUndefined();
    // Jobs that were two to three minutes late were not five.
    expect(quantileOf(coarse([11, 20]), 0.5)).toBe(158_000);
    expect(quantileOf(coarse([11, 20]), 0.99)).toBe(293_000);
    expect(quantileOf(coarse([0, 50], [3, 49], [12, 1]), 0.25)).toBe(0.49);
    expect(quantileOf(coarse([0, 50], [3, 50]), 0.75)).toBe(7.45);
    expect(quantileOf(coarse([8, 1]), 0.5)).toBe(625);
    expect(quantileOf(coarse([11, 1000]), 1)).toBe(LONGEST_MS - 1);
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

describe('an alert about a promise', () => {
  const over = 30 * 86_400_000;
  const rings = (budget: number, late: Readonly<Record<number, number>>, standing = 0) =>
    alertOf(
      { budget, overMs: over, standing },
      PACE_SPANS_MS.map((forMs) => ({ forMs, late: late[forMs / 60_000] ?? 0 })),
    );

  test('rings by what the budget may use in a while, over a long and a short one', () => {
    expect(rings(1000, { 5: 5, 30: 21, 60: 21, 360: 21, 4320: 21 })).toBe('page');
    expect(rings(1000, { 5: 0, 30: 21, 60: 21, 360: 21, 4320: 21 })).toBeUndefined();
    expect(rings(1000, { 5: 1, 30: 5, 60: 9, 360: 51, 4320: 51 })).toBe('page');
    expect(rings(1000, { 5: 0, 30: 1, 60: 2, 360: 9, 4320: 101 })).toBe('ticket');
    expect(rings(1000, {}, 21)).toBe('page');
  });

  test('does not ring for one late job of ten at night, nor for two, however small the budget is', () => {
    expect(rings(10, { 5: 1, 30: 1, 60: 1, 360: 1, 4320: 1 })).toBeUndefined();
    expect(rings(10, { 5: 2, 30: 2, 60: 2, 360: 2, 4320: 2 })).toBeUndefined();
    expect(rings(10, { 5: 3, 30: 3, 60: 3, 360: 3, 4320: 3 })).toBe('page');
  });

  test('stands on a budget of ten jobs at least', () => {
    expect(budgetOf(0.99, { kept: 90, late: 9, expired: 1 }, 0)).toEqual({
      jobs: 100,
      budget: 10,
      spent: 10,
      isKept: true,
    });
    expect(budgetOf(0.99, { kept: 9900, late: 90, expired: 5 }, 6)).toMatchObject({
      budget: 100.01,
      spent: 101,
      isKept: false,
    });
  });
});

describe('what a promise has counted', () => {
  const promised = {
    since: 29_395_316,
    kept: 120_000,
    late: 3,
    expired: 1,
    withinMs: 1000,
    of: 0.999,
    overMs: 86_400_000,
  };

  test('stands in a state behind what version 0.2 reads, and in an hour', () => {
    const text = `${markText({ minute: 5, since: 4 })} ${stateText({ ...state, promised })}`;
    expect(readState(text)).toMatchObject({ ...state, promised });
    expect(text.split(' ').slice(2)).toHaveLength(4);
  });

  test.each([[promised], [undefined]])('what held late starts stands behind it, and behind none: %j', (told) => {
    const lateBy = new Map([['no-worker', 3] as const, ['rate', 120] as const]);
    const text = `${markText({ minute: 5, since: 4 })} ${stateText({ ...state, promised: told, lateBy })}`;
    const fine = { promotion: NO_FINE, start: NO_FINE, run: NO_FINE };
    expect(readState(text)).toEqual({ minute: 5, since: 4, ...state, ...(told && { promised: told }), lateBy, fine });
    expect(text.split(' ').slice(2)).toHaveLength(4);
    // A letter of a later version, and none at all.
    expect(readState(text.replace('A3', 'A3J9'))?.lateBy).toEqual(lateBy);
    expect(readState(text.replace('A3R120', '§'))?.lateBy).toBeUndefined();
  });

  test('is added under the promise that began last', () => {
    const before = { ...promised, since: 5, kept: 7 };
    expect(promisedSum([before, promised, undefined, promised])).toEqual({
      ...promised,
      kept: 240_000,
      late: 6,
      expired: 2,
    });
    expect(promisedSum([undefined])).toBeUndefined();
  });

  test.each([undefined, '', '1 2 3', '1 2 x 4 5 6 7', '0 1 0.9 4 5 6 7'])('is none where the note is %s', (text) => {
    expect(readNoted(text)).toBeUndefined();
  });
});
