/** Local times of single jobs and of the bounds of schedules. */
import { describe, expect, test } from 'vitest';
import { momentOf } from '../../src/core/moment.ts';
import { DEFAULT_DST, type DstPolicy, parseZone } from '../../src/core/zone.ts';

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

  test('that comes twice is the one of the policy', () => {
    expect(moment('2026-11-01T01:30', { gap: 'shift', overlap: 'second' })).toBe(Date.parse('2026-11-01T06:30Z'));
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
