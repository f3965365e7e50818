/** Working time: dates without work, hours of weekdays, the next working moment, and what is refused. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type CalendarInput, parseCalendar } from '../../src/time/calendar.ts';

const wall = (text: string) => Date.parse(`${text}Z`);
const shown = (wallMs: number | undefined) => wallMs && new Date(wallMs).toISOString().slice(0, 16);

const OFFICE: CalendarInput = {
  hours: { 'mon-fri': ['09:00-12:00', '13:00-17:00'], sat: '10:00-12:00' },
  skip: ['12-25'],
};

describe('a working time', () => {
  test.each([
    ['2026-11-23T08:59', 'outside-hours'],
    ['2026-11-23T09:00', undefined],
    ['2026-11-23T11:59', undefined],
    ['2026-11-23T12:00', 'outside-hours'],
    ['2026-11-23T13:00', undefined],
    ['2026-11-23T17:00', 'outside-hours'],
    ['2026-11-28T11:00', undefined],
    ['2026-11-29T11:00', 'outside-hours'],
    ['2026-12-25T11:00', 'skip-date'],
  ])('%s: %s', (at, why) => {
    expect(parseCalendar(OFFICE).closed(wall(at))).toBe(why);
  });

  test('without hours is the whole of every day that is not skipped', () => {
    const holidays = parseCalendar({ skip: ['2026-12-24/2027-01-01'] });
    expect(holidays.closed(wall('2026-12-23T23:59'))).toBeUndefined();
    expect(holidays.closed(wall('2026-12-24T00:00'))).toBe('skip-date');
    expect(holidays.closed(wall('2027-01-01T23:59'))).toBe('skip-date');
    expect(holidays.closed(wall('2027-01-02T00:00'))).toBeUndefined();
    expect(holidays.outside).toBe('skip');
  });

  test('of a range of days may pass the end of the week', () => {
    const weekend = parseCalendar({ hours: { 'fri-mon': '00:00-24:00' } });
    const open = Array.from({ length: 7 }, (_, day) => weekend.closed(wall(`2026-11-2${day + 2}T23:59`)) === undefined);
    // 22 November 2026 is a Sunday.
    expect(open).toEqual([true, true, false, false, false, true, true]);
  });
});

describe('the next working moment', () => {
  test.each([
    ['2026-11-23T10:30', '2026-11-23T10:30'],
    ['2026-11-23T12:00', '2026-11-23T13:00'],
    ['2026-11-27T18:00', '2026-11-28T10:00'],
    ['2026-11-28T12:00', '2026-11-30T09:00'],
    ['2026-12-24T17:00', '2026-12-26T10:00'],
  ])('after %s is %s', (at, next) => {
    expect(shown(parseCalendar(OFFICE).opens(wall(at)))).toBe(next);
  });

  test('is open, and nothing between is', () => {
    const office = parseCalendar(OFFICE);
    fc.assert(
      fc.property(
        fc.integer({ min: wall('2026-01-01T00:00') / 60_000, max: wall('2027-12-31T00:00') / 60_000 }),
        (minute) => {
          const atMs = minute * 60_000;
          const opensMs = office.opens(atMs) ?? Number.NaN;
          const sinceMs = office.closedSince(atMs);
          expect(office.closed(opensMs)).toBeUndefined();
          expect(sinceMs).toBeLessThanOrEqual(atMs);
          if (office.closed(atMs) === undefined) {
            expect([opensMs, sinceMs]).toEqual([atMs, atMs]);
            return;
          }
          expect(office.closed(sinceMs - 1)).toBeUndefined();
          for (let between = sinceMs; between < opensMs; between += 1_800_000)
            expect(office.closed(between)).toBeDefined();
        },
      ),
      { numRuns: 200 },
    );
  });
});

const DATE = '"2026-12-25", "12-25" for every year, or "2026-12-24/2027-01-01"';
const HOURS = '"09:00-17:00", up to "24:00"';
const DAYS = '"mon", "mon-fri" or "sat,sun"';
const SOME = 'one that leaves some working time';

/** As people without types write them. */
const REFUSED: readonly (readonly [input: unknown, given: string, allowed: string])[] = [
  [{ skip: 'x' }, 'skip is "x"', 'a list of dates'],
  [{ skip: Array.from({ length: 1001 }, () => '12-25') }, 'skip is an array', 'at most 1000 entries'],
  [{ skip: ['2026-02-30'] }, 'skip is "2026-02-30"', DATE],
  [{ skip: ['2026-1-1'] }, 'skip is "2026-1-1"', DATE],
  [{ skip: ['13-01'] }, 'skip is "13-01"', DATE],
  [{ skip: ['12-24/12-26'] }, 'skip is "12-24/12-26"', DATE],
  [{ skip: ['2026-12-24/2026-12-20'] }, 'skip is "2026-12-24/2026-12-20"', DATE],
  [{ skip: [5] }, 'skip is 5', DATE],
  [{ hours: 'x' }, 'hours is "x"', 'days with their hours'],
  [{ hours: null }, 'hours is null', 'days with their hours'],
  [{ hours: { mon: '9-17' } }, 'hours is "9-17"', HOURS],
  [{ hours: { mon: '17:00-09:00' } }, 'hours is "17:00-09:00"', HOURS],
  [{ hours: { mon: '09:00-24:30' } }, 'hours is "09:00-24:30"', HOURS],
  [{ hours: { mon: '09:60-10:00' } }, 'hours is "09:60-10:00"', HOURS],
  [{ hours: { monday: '09:00-17:00' } }, 'hours is "monday"', DAYS],
  [{ hours: { 'mon-': '09:00-17:00' } }, 'hours is "mon-"', DAYS],
  [
    { hours: { mon: ['09:00-12:00', '11:00-13:00'] } },
    'hours is "mon 09:00-12:00 and 11:00-13:00"',
    'hours of a day that do not overlap',
  ],
  [{ hours: {} }, 'calendar is a value of type object', SOME],
  [{ hours: { mon: '09:00-17:00' }, skip: ['2020-01-01/2099-12-31'] }, 'calendar is a value of type object', SOME],
  [{ outside: 'later' }, 'outside is "later"', 'skip, next'],
];

test.each(REFUSED)('%j is refused', (input, given, allowed) => {
  expect(() => parseCalendar(input as CalendarInput)).toThrow(
    expect.objectContaining({ code: 'bad-input', message: `${given}; allowed: ${allowed}` }),
  );
});
