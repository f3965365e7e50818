/** Local times of single jobs and of the bounds of schedules. */
import { describe, expect, test } from 'vitest';
import { DEFAULT_DST, type DstPolicy, momentOf, parseZone } from '../../src/time/zone.ts';

const zone = parseZone('America/New_York');
const moment = (input: string | Date | undefined, dst: DstPolicy = DEFAULT_DST) =>
  momentOf(input, { what: 'at', zone, dst });

describe('a moment', () => {
  test.each([
    ['2026-03-08T02:30', '2026-03-08T07:30:00.000Z'],
    ['2026-11-01T01:30', '2026-11-01T05:30:00.000Z'],
    ['2026-07-01', '2026-07-01T04:00:00.000Z'],
    ['2026-07-01T09:00:15.5', '2026-07-01T13:00:15.500Z'],
    ['2028-02-29T00:00', '2028-02-29T05:00:00.000Z'],
    ['2026-03-08T02:30Z', '2026-03-08T02:30:00.000Z'],
    ['2026-03-08T02:30:00+01:00', '2026-03-08T01:30:00.000Z'],
  ])('%s is %s', (input, at) => {
    expect(new Date(moment(input) ?? Number.NaN).toISOString()).toBe(at);
  });

  test('may be an instant, or nothing', () => {
    expect(moment(new Date(5))).toBe(5);
    expect(moment(undefined)).toBeUndefined();
  });

  test.each(['2027-01-01T10:00:60', '2027-01-01T10:61', '2027-13-01T10:00'])(
    '%s, which is none, is told as it was given',
    (text) => {
      expect(() => moment(text)).toThrow(`"${text}"; allowed: a local time that exists in`);
    },
  );

  test('that comes twice is the one of the policy', () => {
    expect(moment('2026-11-01T01:30', { gap: 'shift', overlap: 'second' })).toBe(Date.parse('2026-11-01T06:30Z'));
  });
});

describe('a date without a time', () => {
  const of = (input: string, date: 'before' | 'first' | 'last' | 'next', place = 'America/New_York') => {
    const at = momentOf(input, { what: 'to', zone: parseZone(place), dst: { gap: 'skip', overlap: 'second' }, date });
    return new Date(at ?? Number.NaN).toISOString();
  };

  test('is the beginning or the end of its day, also of days of 23 and 25 hours', () => {
    expect(of('2026-11-18', 'before')).toBe('2026-11-18T04:59:59.999Z');
    expect(of('2026-11-18', 'first')).toBe('2026-11-18T05:00:00.000Z');
    expect(of('2026-11-18', 'last')).toBe('2026-11-19T04:59:59.999Z');
    expect(of('2026-11-18', 'next')).toBe('2026-11-19T05:00:00.000Z');
    expect([of('2026-03-08', 'first'), of('2026-03-08', 'next')]).toEqual([
      ...['2026-03-08T05:00:00.000Z', '2026-03-09T04:00:00.000Z'],
    ]);
    expect([of('2026-11-01', 'first'), of('2026-11-01', 'next')]).toEqual([
      ...['2026-11-01T04:00:00.000Z', '2026-11-02T05:00:00.000Z'],
    ]);
    expect(of('2026-12-31', 'next')).toBe('2027-01-01T05:00:00.000Z');
  });

  test('begins with its first minute where clocks leave out midnight', () => {
    expect(of('2018-11-04', 'first', 'America/Sao_Paulo')).toBe('2018-11-04T03:00:00.000Z');
    expect(of('2018-11-03', 'next', 'America/Sao_Paulo')).toBe('2018-11-04T03:00:00.000Z');
  });

  test('with a time is that time, whatever a date would mean', () => {
    expect(of('2026-11-18T00:00', 'next')).toBe('2026-11-18T05:00:00.000Z');
  });
});

const LOCAL = 'a local time that exists in America/New_York';
const INSTANT =
  'a valid Date, a luxon DateTime, or an ISO 8601 text with Z or an offset such as "2026-03-01T10:00:00+01:00"';

test.each([
  ['2026-03-08T02:30', '"2026-03-08T02:30"', LOCAL],
  ['2026-02-30', '"2026-02-30"', LOCAL],
  ['2026-02-29T10:00', '"2026-02-29T10:00"', LOCAL],
  ['2026-13-01T00:00', '"2026-13-01T00:00"', LOCAL],
  ['2026-03-08T25:00', '"2026-03-08T25:00"', LOCAL],
  ['2026-03-08 02:30', '"2026-03-08 02:30"', INSTANT],
  ['tomorrow', '"tomorrow"', INSTANT],
  [new Date(Number.NaN), 'an invalid Date', INSTANT],
])('%j is refused where gaps are not shifted', (input, given, allowed) => {
  expect(() => moment(input, { gap: 'skip', overlap: 'first' })).toThrow(
    expect.objectContaining({ code: 'bad-input', message: `at is ${given}; allowed: ${allowed}` }),
  );
});
