/** Cron expressions: what is taken, what is refused and how that is told. Clock changes are in `recurrence.test.ts`. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CRON_LENGTH_MAX, parseCron } from '../../src/time/cron.ts';

const NEW_YEAR = Date.UTC(2026, 0);

function namedBy(text: string, count: number, fromMs = NEW_YEAR): readonly string[] {
  const cron = parseCron(text, 'seed');
  const named: string[] = [];
  for (let at = cron.next(fromMs); at !== undefined && named.length < count; at = cron.next(at)) {
    named.push(new Date(at).toISOString().slice(0, 19));
  }
  return named;
}

describe('an expression', () => {
  test.each([
    ['*/15 * * * *', ['2026-01-01T00:15:00', '2026-01-01T00:30:00']],
    ['5/15 * * * *', ['2026-01-01T00:05:00', '2026-01-01T00:20:00']],
    ['30 0 0 * * *', ['2026-01-01T00:00:30', '2026-01-02T00:00:30']],
    [' 0  0 * * * ', ['2026-01-02T00:00:00', '2026-01-03T00:00:00']],
    ['0 0 ? * MON', ['2026-01-05T00:00:00', '2026-01-12T00:00:00']],
    ['0 0 * * 7', ['2026-01-04T00:00:00', '2026-01-11T00:00:00']],
    ['0 0 * * FRI#2', ['2026-01-09T00:00:00', '2026-02-13T00:00:00']],
    ['0 0 * * 5L', ['2026-01-30T00:00:00', '2026-02-27T00:00:00']],
    ['0 0 L * *', ['2026-01-31T00:00:00', '2026-02-28T00:00:00']],
    ['0 0 31 * *', ['2026-01-31T00:00:00', '2026-03-31T00:00:00']],
    ['0 0 29 2 *', ['2028-02-29T00:00:00', '2032-02-29T00:00:00']],
    ['0 0 * * mon-sun', ['2026-01-02T00:00:00', '2026-01-03T00:00:00', '2026-01-04T00:00:00']],
    ['0 0 * * SAT-SUN', ['2026-01-03T00:00:00', '2026-01-04T00:00:00', '2026-01-10T00:00:00']],
    ['0 0 * * 5-1', ['2026-01-02T00:00:00', '2026-01-03T00:00:00', '2026-01-04T00:00:00', '2026-01-05T00:00:00']],
    ['0 0 * * fri-mon/2', ['2026-01-02T00:00:00', '2026-01-04T00:00:00', '2026-01-09T00:00:00']],
    ['0 22-2 * * *', ['2026-01-01T01:00:00', '2026-01-01T02:00:00', '2026-01-01T22:00:00', '2026-01-01T23:00:00']],
    ['55-5/5 0 * * *', ['2026-01-01T00:05:00', '2026-01-01T00:55:00', '2026-01-02T00:00:00']],
    ['0 0 1 NOV-FEB *', ['2026-02-01T00:00:00', '2026-11-01T00:00:00', '2026-12-01T00:00:00']],
    ['0 0 31-1 * *', ['2026-01-31T00:00:00', '2026-02-01T00:00:00']],
    ['0 0 13 * FRI', ['2026-01-02T00:00:00', '2026-01-09T00:00:00', '2026-01-13T00:00:00']],
    ['@HOURLY', ['2026-01-01T01:00:00', '2026-01-01T02:00:00']],
    ['@daily', ['2026-01-02T00:00:00', '2026-01-03T00:00:00']],
    ['@midnight', ['2026-01-02T00:00:00', '2026-01-03T00:00:00']],
    ['@weekly', ['2026-01-04T00:00:00', '2026-01-11T00:00:00']],
    ['@monthly', ['2026-02-01T00:00:00', '2026-03-01T00:00:00']],
    ['@yearly', ['2027-01-01T00:00:00', '2028-01-01T00:00:00']],
    ['@annually', ['2027-01-01T00:00:00', '2028-01-01T00:00:00']],
  ])('%j names %o', (text, named) => {
    expect(namedBy(text, named.length)).toEqual(named);
  });

  test('finds the leap day over the eight years without one', () => {
    expect(namedBy('0 0 29 2 *', 1, Date.UTC(2096, 2))).toEqual(['2104-02-29T00:00:00']);
  });

  test('finds a fifth weekday of February, up to forty years away', () => {
    expect(namedBy('0 0 * 2 MON#5', 2)).toEqual(['2044-02-29T00:00:00', '2072-02-29T00:00:00']);
    expect(namedBy('0 0 * 2 MON#5', 1, Date.UTC(2073, 0))).toEqual(['2112-02-29T00:00:00']);
    for (let weekday = 0; weekday < 7; weekday += 1) expect(namedBy(`0 0 * 2 ${weekday}#5`, 1)).toHaveLength(1);
  });

  test.each([
    ['0 * * * *', true],
    ['0 */2 * * *', true],
    ['0 0-23 * * *', true],
    ['0 H/3 * * *', true],
    ['0 9-17 * * *', false],
    ['*/5 2 * * *', false],
    ['0 H * * *', false],
    ['0 */24 * * *', false],
    ['@daily', false],
  ])('%j runs whatever the hour: %s', (text, interval) => {
    expect(parseCron(text, 'seed').interval).toBe(interval);
  });
});

const COUNT = '5 fields (minute hour day-of-month month day-of-week), or 6 with the second first, not';
const NEVER = 'a date that exists; this one never comes';
const ALIASES = '@yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly';
const WORKDAY =
  'a day of month without W; for "the nearest working day" give the schedule a calendar of working hours and `outside: next`';

test.each([
  [undefined, 'undefined', 'a text of 5 fields: minute hour day-of-month month day-of-week'],
  [7, '7', 'a text of 5 fields: minute hour day-of-month month day-of-week'],
  ['', '""', `${COUNT} 1`],
  ['* * * *', '"* * * *"', `${COUNT} 4`],
  [
    '0 0 0 1 1 * 2026',
    '"0 0 0 1 1 * 2026"',
    '5 or 6 fields; a year is not one of them: give the schedule a start and an end',
  ],
  ['*/0 * * * *', '"*/0 * * * *"', 'a step of 1 to 60 in the minute'],
  ['*/61 * * * *', '"*/61 * * * *"', 'a step of 1 to 60 in the minute'],
  ['0 */25 * * *', '"0 */25 * * *"', 'a step of 1 to 24 in the hour'],
  ['0 0 1-31/40 * *', '"0 0 1-31/40 * *"', 'a step of 1 to 31 in the day of month'],
  ['60 * * * *', '"60 * * * *"', 'what each field takes (got value 60 expected range 0-59)'],
  ['0 24 * * *', '"0 24 * * *"', 'what each field takes (got value 24 expected range 0-23)'],
  ['0 0 32 * *', '"0 0 32 * *"', 'what each field takes (got value 32 expected range 1-31)'],
  ['0 0 * 13 *', '"0 0 * 13 *"', 'what each field takes (got value 13 expected range 1-12)'],
  ['0 0 * * 8', '"0 0 * * 8"', 'what each field takes (got value 8 expected range 0-7)'],
  ['0 0 * * 1#6', '"0 0 * * 1#6"', 'what each field takes (invalid dayOfWeek occurrence number (#))'],
  ['0 0 * * FUNDAY', '"0 0 * * FUNDAY"', 'what each field takes (cannot resolve alias "fun")'],
  ['0 0 $ * *', '"0 0 $ * *"', 'only letters, digits and * ? / , - # ( ) in the day of month'],
  ['*/1.5 * * * *', '"*/1.5 * * * *"', 'only letters, digits and * ? / , - # ( ) in the minute'],
  ['0 0 15W * *', '"0 0 15W * *"', WORKDAY],
  ['0 0 30 2 *', '"0 0 30 2 *"', NEVER],
  ['0 0 31 4,6 *', '"0 0 31 4,6 *"', NEVER],
  ['@reboot', '"@reboot"', ALIASES],
  ['@every 5m', '"@every 5m"', `${ALIASES}; for a fixed interval use every instead of cron`],
  ['1'.repeat(CRON_LENGTH_MAX + 1), `"${'1'.repeat(79)}…"`, 'at most 256 characters, not 257'],
])('%j is refused, and the refusal says what is allowed', (input, given, allowed) => {
  expect(() => parseCron(input, 'seed')).toThrow(
    expect.objectContaining({ code: 'bad-input', message: `cron is ${given}; allowed: ${allowed}` }),
  );
});

describe('H', () => {
  test('is the same number for the same name, always, and within its range', () => {
    fc.assert(
      fc.property(
        fc.string({ minLength: 1, maxLength: 64 }),
        fc.constantFrom('H H * * *', 'H(10-20) H(1-3) * * *'),
        (name, text) => {
          const [one, two] = [parseCron(text, name).next(NEW_YEAR), parseCron(text, name).next(NEW_YEAR)];
          expect(one).toBe(two);
          const at = new Date(one ?? Number.NaN);
          if (text.includes('(')) {
            expect(at.getUTCMinutes()).toBeGreaterThanOrEqual(10);
            expect(at.getUTCMinutes()).toBeLessThanOrEqual(20);
            expect(at.getUTCHours()).toBeGreaterThanOrEqual(1);
            expect(at.getUTCHours()).toBeLessThanOrEqual(3);
          }
        },
      ),
      { numRuns: 50 },
    );
  });

  test('spreads names over the hour', () => {
    const minutes = Array.from({ length: 200 }, (_, at) => {
      const next = parseCron('H * * * *', `schedule-${at}`).next(NEW_YEAR);
      return new Date(next ?? Number.NaN).getUTCMinutes();
    });
    expect(new Set(minutes).size).toBeGreaterThan(40);
  });
});
