/** Durations and instants as people write them. */
import fc from 'fast-check';
import { DateTime } from 'luxon';
import { describe, expect, test } from 'vitest';
import { durationMs, instantMs, show } from '../../src/kernel/duration.ts';

describe('a duration', () => {
  test.each([
    [0, 0],
    [1500, 1500],
    [1.4, 1],
    ['500ms', 500],
    ['90s', 90_000],
    ['5m', 300_000],
    [' 5 m ', 300_000],
    ['1.5h', 5_400_000],
    ['3d', 259_200_000],
    ['2w', 1_209_600_000],
    ['PT1H30M', 5_400_000],
    ['P1DT2H', 93_600_000],
    ['P1W', 604_800_000],
    ['PT0.5S', 500],
    ['PT0S', 0],
  ])('of %j is %d ms', (input, ms) => {
    expect(durationMs(input, 'delay')).toBe(ms);
  });

  test.each([
    [-1],
    [Number.NaN],
    [Number.POSITIVE_INFINITY],
    [''],
    ['5'],
    ['soon'],
    ['-5m'],
    ['1e3s'],
    ['5 minutes'],
    ['5M'],
    ['P'],
    ['PT'],
    ['P1M'],
    ['P1Y'],
    ['P1Y2DT3H'],
    ['-PT1S'],
    ['P-1D'],
  ])('of %j is refused: a calendar has no fixed length, and a typo must not mean now', (input) => {
    expect(() => durationMs(input, 'delay')).toThrow(expect.objectContaining({ code: 'bad-input' }));
    expect(() => durationMs(input, 'delay')).toThrow(/^delay is .*[;?] allowed: /);
  });

  test.each([[null], [undefined], [{}], [5n], [new Date(0)]])('of the wrong type (%s) is refused', (input) => {
    expect(() => Reflect.apply(durationMs, undefined, [input, 'delay'])).toThrow(/^delay is /);
  });

  test('is never negative and always whole', () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 1e12, noNaN: true }), (ms) => {
        const got = durationMs(ms, 'delay');
        expect(got >= 0 && Number.isInteger(got)).toBe(true);
      }),
    );
  });
});

describe('an instant', () => {
  const MS = Date.UTC(2026, 2, 1, 9, 0, 0);

  test.each([
    [new Date(MS)],
    ['2026-03-01T09:00:00Z'],
    ['2026-03-01T10:00:00+01:00'],
    ['2026-03-01T10:00+01:00'],
    ['2026-03-01T04:00:00.000-0500'],
    ['20260301T090000Z'],
    [DateTime.fromMillis(MS, { zone: 'Asia/Tokyo' })],
  ])('%s is that moment, whatever the zone', (input) => {
    expect(instantMs(input, 'at')).toBe(MS);
  });

  test.each([
    [DateTime.fromMillis(MS + 0.001), 1],
    [DateTime.fromMillis(MS + 0.999), 1],
    [DateTime.fromSeconds((MS + 5) / 1000), 5],
    ['2026-03-01T09:00:00.001Z', 1],
    ['2026-03-01T09:00:00,0010Z', 1],
    ['2026-03-01T09:00:00.0010001+00:00', 2],
    ['2026-03-01T09:00:00.000000001Z', 1],
  ])('%s is the whole millisecond at or after it', (input, ms) => {
    expect(instantMs(input, 'at')).toBe(MS + ms);
  });

  test('every whole millisecond that is given in seconds is that millisecond', () => {
    for (let ms = 0; ms < 1000; ms += 1) {
      expect(instantMs(DateTime.fromSeconds((MS + ms) / 1000), 'at')).toBe(MS + ms);
    }
  });

  test.each([
    [new Date(Number.NaN)],
    ['2026-03-01T10:00:00'],
    ['2026-03-01'],
    ['2026-02-30T10:00:00Z'],
    ['T10:00Z'],
    ['tomorrow'],
    [''],
    [DateTime.invalid('because')],
  ])('%s is refused: it means nothing without guessing', (input) => {
    expect(() => instantMs(input, 'at')).toThrow(/^at is .*; allowed: a valid Date/);
  });

  test.each(['+99:99', '+25:00', '-13:75', '+14:01', '-12:01', '+1500', '-13', '+00:60', '-23:59'])(
    'with the offset %s, which no clock has, is refused',
    (offset) => {
      expect(() => instantMs(`2026-03-01T10:00:00${offset}`, 'at')).toThrow(
        expect.objectContaining({
          message: expect.stringContaining(`; no clock has the offset ${offset}, clocks have`),
        }),
      );
    },
  );

  test.each([
    ['+14:00', -14 * 60],
    ['-1200', 12 * 60],
    ['+05:45', -345],
    ['-00:00', 0],
    ['z', 0],
  ])('with the offset %s is taken', (offset, minutes) => {
    expect(instantMs(`2026-03-01T09:00:00${offset}`, 'at')).toBe(MS + minutes * 60_000);
  });

  test('is read back from what a Date prints', () => {
    fc.assert(
      fc.property(fc.date({ noInvalidDate: true, min: new Date(0), max: new Date(4e12) }), (date) => {
        expect(instantMs(date.toISOString(), 'at')).toBe(date.getTime());
      }),
    );
  });
});

test('a value in a message is short, quoted and on one line', () => {
  expect(show('a\nb')).toBe('"a\\nb"');
  expect(show('x'.repeat(500)).length).toBeLessThan(90);
  expect([show(null), show(undefined), show(Number.NaN), show([1]), show({}), show(() => 1)]).toEqual([
    ...['null', 'undefined', 'NaN', 'an array', 'a value of type object', 'a value of type function'],
  ]);
  expect(show(new Date(Number.NaN))).toBe('an invalid Date');
});
