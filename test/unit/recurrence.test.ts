/** The instants of a recurrence, and what clock changes and working time do to them. */
import { CronExpressionParser } from 'cron-parser';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type CalendarInput, parseCalendar } from '../../src/time/calendar.ts';
import { parseCron } from '../../src/time/cron.ts';
import { occurrences, type Recurrence } from '../../src/time/recurrence.ts';
import { DEFAULT_DST, type DstPolicy, parseZone } from '../../src/time/zone.ts';
import { fires, nextFire } from '../support/instants.ts';

interface Asked {
  readonly zone?: string;
  readonly dst?: Partial<DstPolicy>;
  readonly calendar?: CalendarInput;
  readonly start?: string;
  readonly end?: string;
}

function cron(text: string, { zone = 'UTC', dst, calendar, start, end }: Asked = {}): Recurrence {
  return {
    rule: { cron: parseCron(text, 'seed') },
    zone: parseZone(zone),
    dst: { ...DEFAULT_DST, ...dst },
    calendar: calendar && parseCalendar(calendar),
    startMs: start === undefined ? undefined : Date.parse(start),
    endMs: end === undefined ? undefined : Date.parse(end),
  };
}

function firstOf(recurrence: Recurrence, after: string, count: number): readonly string[] {
  const found: string[] = [];
  for (const atMs of fires(recurrence, Date.parse(after))) {
    found.push(new Date(atMs).toISOString().slice(0, 16));
    if (found.length === count) break;
  }
  return found;
}

/** Nothing is leapt over. */
const WHOLE = { closedRows: Number.POSITIVE_INFINITY };
const DAY_MS = 86_400_000;
const NEW_YORK = { zone: 'America/New_York' };
const SPRING = '2026-03-08T05:00:00Z';
const AUTUMN = '2026-11-01T04:00:00Z';

describe('when the clock goes forward', () => {
  test.each([
    ['30 2 * * *', {}, ['2026-03-08T07:30', '2026-03-09T06:30']],
    ['30 2 * * *', { dst: { gap: 'skip' as const } }, ['2026-03-09T06:30', '2026-03-10T06:30']],
    ['*/30 2 * * *', {}, ['2026-03-08T07:00', '2026-03-08T07:30', '2026-03-09T06:00']],
    ['30 * * * *', {}, ['2026-03-08T05:30', '2026-03-08T06:30', '2026-03-08T07:30']],
    ['0 */2 * * *', {}, ['2026-03-08T08:00', '2026-03-08T10:00']],
    ['0 2,3 * * *', {}, ['2026-03-08T07:00', '2026-03-09T06:00', '2026-03-09T07:00']],
  ])('%s with %o', (text, more, expected) => {
    expect(firstOf(cron(text, { ...NEW_YORK, ...more }), SPRING, expected.length)).toEqual(expected);
  });

  test('at midnight, the day keeps its run', () => {
    const midnight = cron('0 0 * * *', { zone: 'Africa/Cairo' });
    expect(firstOf(midnight, '2026-04-22T23:00:00Z', 3)).toEqual([
      ...['2026-04-23T22:00', '2026-04-24T21:00', '2026-04-25T21:00'],
    ]);
  });

  test('over a whole day, its run and that of the next day are one', () => {
    const nine = cron('0 9 * * *', { zone: 'Pacific/Apia' });
    expect(firstOf(nine, '2011-12-28T20:00:00Z', 3)).toEqual([
      '2011-12-29T19:00',
      '2011-12-30T19:00',
      '2011-12-31T19:00',
    ]);
  });
});

describe('when the clock goes back', () => {
  test.each([
    ['30 1 * * *', {}, ['2026-11-01T05:30', '2026-11-02T06:30']],
    ['30 1 * * *', { dst: { overlap: 'second' as const } }, ['2026-11-01T06:30', '2026-11-02T06:30']],
    ['30 1 * * *', { dst: { overlap: 'both' as const } }, ['2026-11-01T05:30', '2026-11-01T06:30', '2026-11-02T06:30']],
    ['30 * * * *', {}, ['2026-11-01T04:30', '2026-11-01T05:30', '2026-11-01T06:30', '2026-11-01T07:30']],
  ])('%s with %o', (text, more, expected) => {
    expect(firstOf(cron(text, { ...NEW_YORK, ...more }), AUTUMN, expected.length)).toEqual(expected);
  });

  test('by half an hour, only what is shown twice is doubled', () => {
    const all = cron('15,45 1 * * *', { zone: 'Australia/Lord_Howe', dst: { overlap: 'both' } });
    expect(firstOf(all, '2026-04-04T10:00:00Z', 3)).toEqual([
      '2026-04-04T14:15',
      '2026-04-04T14:45',
      '2026-04-04T15:15',
    ]);
  });
});

describe('working time', () => {
  const calendar = { hours: { 'mon-fri': '09:00-17:00' }, skip: ['2026-11-24'] };
  const late = (outside: 'skip' | 'next') =>
    cron('0 22 * * *', { zone: 'Europe/Berlin', calendar: { ...calendar, outside } });

  test('moves to the next working moment, and runs that meet there are one', () => {
    expect(firstOf(late('next'), '2026-11-19T12:00:00Z', 3)).toEqual([
      '2026-11-20T08:00',
      '2026-11-23T08:00',
      '2026-11-25T08:00',
    ]);
  });

  test('drops what lies outside, and tells why', () => {
    const [first, second] = [
      ...occurrences(
        { ...late('skip'), endMs: Date.parse('2026-11-25T00:00:00Z') },
        Date.parse('2026-11-22T22:00:00Z'),
        WHOLE,
      ),
    ];
    expect(first).toMatchObject({ dropped: 'outside-hours' });
    expect(second).toMatchObject({ dropped: 'skip-date' });
  });

  test('found from within closed time is the same as from before it', () => {
    for (const from of ['2026-11-20T16:00:00Z', '2026-11-21T12:00:00Z', '2026-11-23T07:59:00Z']) {
      expect(firstOf(late('next'), from, 1)).toEqual(['2026-11-23T08:00']);
    }
  });
});

describe('working time at a clock change', () => {
  test('that begins in a gap begins where the clock goes on', () => {
    // Casablanca went from 00:00 to 01:00 on 1 June 2009, a Monday.
    const calendar: CalendarInput = { hours: { 'mon-fri': '00:30-02:30' }, outside: 'next' };
    const monthly = cron('0 0 L * *', { zone: 'Africa/Casablanca', calendar });
    const opens = '2009-06-01T00:00';
    expect(firstOf(monthly, '2009-05-15T00:00:00Z', 1)).toEqual([opens]);
    expect(nextFire(monthly, Date.parse(`${opens}Z`) - 1)).toBe(Date.parse(`${opens}Z`));
    expect(nextFire(monthly, Date.parse(`${opens}Z`))).toBe(Date.parse('2009-06-29T23:30Z'));
  });

  test('that comes twice is found both times', () => {
    const calendar: CalendarInput = { hours: { sun: '01:00-01:30' }, outside: 'next' };
    const quarters = cron('*/15 * * * *', { ...NEW_YORK, calendar });
    expect(firstOf(quarters, '2026-11-01T04:50:00Z', 5)).toEqual([
      ...['2026-11-01T05:00', '2026-11-01T05:15', '2026-11-01T06:00', '2026-11-01T06:15', '2026-11-08T06:00'],
    ]);
  });
});

describe('bounds', () => {
  test('nothing comes before the start, at the end or after it', () => {
    const daily = cron('0 0 * * *', { start: '2026-01-02T00:00:00Z', end: '2026-01-04T00:00:00Z' });
    expect([...fires(daily, 0)].map((atMs) => new Date(atMs).toISOString().slice(0, 10))).toEqual([
      '2026-01-02',
      '2026-01-03',
    ]);
    expect(nextFire(daily, Date.parse('2026-01-03T00:00:00Z'))).toBeUndefined();
  });

  test('leap days come in leap years only', () => {
    expect(firstOf(cron('0 0 29 2 *'), '2026-01-01T00:00:00Z', 2)).toEqual(['2028-02-29T00:00', '2032-02-29T00:00']);
  });

  test('every counts elapsed time from its anchor', () => {
    const every = { rule: { everyMs: 90_000, anchorMs: 1000 }, zone: parseZone('UTC'), dst: DEFAULT_DST };
    expect(nextFire(every, 1000)).toBe(91_000);
    expect(nextFire(every, -5_000_000)).toBe(1000);
  });
});

const ZONES = [
  ...['UTC', 'America/New_York', 'Australia/Lord_Howe', 'Africa/Cairo', 'Africa/Casablanca', 'Antarctica/Troll'],
  ...['Asia/Kathmandu', 'Pacific/Apia'],
];
const TEXTS = [
  ...['0 * * * *', '30 2 * * *', '*/20 1-3 * * *', '0 0 L * *', '15 6 * * 1#2', '0 12 29 2 *', '*/5 0 */3 * * *'],
  ...['0 0 * * *', '0 0 31 * *', '30 0,23 * * 5L', '0 9 1,15 * FRI'],
];
const CALENDARS: readonly (CalendarInput | undefined)[] = [
  undefined,
  { skip: ['12-25', '2011-12-20/2012-01-05'] },
  { skip: ['12-25', '2011-12-20/2012-01-05'], outside: 'next' },
  { hours: { 'mon-fri': ['00:30-02:30', '09:00-17:00'] }, outside: 'next' },
  { hours: { 'sat-sun': '02:15-02:45', wed: '10:00-11:00' }, outside: 'next' },
];

const anyRecurrence = fc
  .record({
    text: fc.constantFrom(...TEXTS),
    zone: fc.constantFrom(...ZONES),
    gap: fc.constantFrom<DstPolicy['gap']>('shift', 'skip'),
    overlap: fc.constantFrom<DstPolicy['overlap']>('first', 'second', 'both'),
    calendar: fc.constantFrom(...CALENDARS),
  })
  .map(({ text, zone, gap, overlap, calendar }) =>
    cron(text, { zone, dst: { gap, overlap }, ...(calendar ? { calendar } : {}) }),
  );
const anyMoment = fc.oneof(
  fc.integer({ min: Date.UTC(2000, 0), max: Date.UTC(2037, 0) }),
  // Around the day that Apia left out.
  fc.integer({ min: Date.UTC(2011, 11, 25), max: Date.UTC(2012, 0, 5) }),
);

function some(recurrence: Recurrence, fromMs: number, count: number): readonly number[] {
  const list: number[] = [];
  for (const atMs of fires(recurrence, fromMs)) {
    list.push(atMs);
    if (list.length === count) break;
  }
  return list;
}

test('instants grow, none is left out, and the next of each is the next in the list', () => {
  fc.assert(
    fc.property(anyRecurrence, anyMoment, (recurrence, fromMs) => {
      let lastMs = fromMs;
      for (const atMs of some(recurrence, fromMs, 12)) {
        expect(atMs).toBeGreaterThan(lastMs);
        expect(nextFire(recurrence, lastMs)).toBe(atMs);
        expect(nextFire(recurrence, atMs - 1)).toBe(atMs);
        lastMs = atMs;
      }
    }),
    { numRuns: 60 },
  );
});

test('the list is the same from wherever it is begun', () => {
  fc.assert(
    fc.property(anyRecurrence, anyMoment, fc.nat({ max: 40 * 86_400_000 }), (recurrence, fromMs, laterMs) => {
      const whole = some(recurrence, fromMs, 10);
      const later = whole.filter((atMs) => atMs > fromMs + laterMs);
      if (later.length > 0) expect(some(recurrence, fromMs + laterMs, later.length)).toEqual(later);
    }),
    { numRuns: 60 },
  );
});

test('every instant lies within working time', () => {
  const calendar = parseCalendar({ hours: { 'mon-fri': '09:00-17:00' }, skip: ['12-25'], outside: 'next' });
  fc.assert(
    fc.property(fc.constantFrom(...TEXTS), fc.constantFrom(...ZONES), anyMoment, (text, zone, fromMs) => {
      const recurrence = { ...cron(text, { zone }), calendar };
      for (const atMs of some(recurrence, fromMs, 5)) {
        expect(calendar.closed(atMs + recurrence.zone.offsetMs(atMs))).toBeUndefined();
      }
    }),
    { numRuns: 60 },
  );
});

test('steps through an expression as the library that reads it does', () => {
  const texts = [
    ...['*/5 9-17 * * MON-FRI', '0 0 L * *', '0 0 * * 5L', '0 0 * * 1#2', '0 0 1 * 1', '0 0 L * 5', '0 0 1 * 0-6'],
    ...['*/7 */5 * * * *', '0 0 31 * *', '5 4 L 2 *', '0 0 * * 1L,3', '59 59 23 31 12 *', '0 12 29 2 *'],
  ];
  for (const text of texts) {
    const steps = CronExpressionParser.parse(text, { tz: 'UTC', currentDate: new Date('2026-01-01T00:00:00Z') });
    const { next } = parseCron(text, 'seed');
    let wallMs = Date.UTC(2026, 0);
    for (let count = 0; count < 20; count += 1) {
      const expected = steps.next().getTime();
      expect(next(wallMs), text).toBe(expected);
      wallMs = expected;
    }
  }
});

describe('a rule of seconds with rare working time', () => {
  const SECONDS: Asked = { calendar: { hours: { mon: '09:00-09:01' } } };

  test('leaps over what has no working time', () => {
    const calendar = { ...SECONDS.calendar, skip: ['2027-01-01/2028-12-25'] };
    expect(firstOf(cron('* * * * * *', { calendar }), '2026-12-29T00:00:00Z', 1)).toEqual(['2029-01-01T09:00']);
    const never = cron('* * * * * *', { calendar: { skip: ['2027-01-01/9999-12-31'] } });
    expect(nextFire(never, Date.parse('2027-01-01T00:00:00Z'))).toBeUndefined();
  });

  test('tells of a time without work so many as it is asked for, and how many it leaps over', () => {
    const calendar: CalendarInput = { hours: { 'mon-sun': '00:00-00:01' } };
    const from = Date.parse('2026-12-29T00:00:58Z');
    const found = [...occurrences(cron('* * * * * *', { calendar }), from, { untilMs: from + DAY_MS, closedRows: 3 })];
    expect(found).toHaveLength(1 + 3 + 59);
    expect(found.map(({ leftOut }) => leftOut).filter((count) => count !== undefined)).toEqual([86_340 - 3]);
  });

  test('looks at a gap of a whole day as far as it is walked', () => {
    const named = cron('* * 0-22 * * *', { zone: 'Pacific/Apia' });
    const parsed = parseCron('* * 0-22 * * *', 'seed');
    let asked = 0;
    const next = (wallMs: number) => {
      asked += 1;
      return parsed.next(wallMs);
    };
    const counted = { ...named, rule: { cron: { ...parsed, next } } };
    const list = occurrences(counted, Date.parse('2011-12-30T10:00:00Z') - 1);
    const some = Array.from({ length: 4 }, () => list.next().value);
    expect(some.map((one) => [one?.dst, one?.dropped])).toEqual([
      ...[
        [undefined, undefined],
        ['shifted', 'coincides'],
        [undefined, undefined],
        ['shifted', 'coincides'],
      ],
    ]);
    expect(asked).toBeLessThan(10);
  });

  test('gives up on working times that the rule always misses', () => {
    const halves = Array.from(
      { length: 24 },
      (_, hour) => `${String(hour).padStart(2, '0')}:00-${String(hour).padStart(2, '0')}:30`,
    );
    const never = cron('* 30-59 * * * *', { zone: 'Europe/Berlin', calendar: { hours: { 'mon-sun': halves } } });
    expect(nextFire(never, Date.parse('2027-01-01T00:00:00Z'))).toBeUndefined();
  });

  test('fires what one finds that looks at each of its times', () => {
    const hours = fc.constantFrom('00:30-01:30', '01:00-02:00', '02:10-02:40', '03:00-24:00', '00:00-03:00');
    const asked = fc.record({
      zone: fc.constantFrom('America/New_York', 'Australia/Lord_Howe', 'Africa/Cairo', 'UTC'),
      hours: fc.dictionary(fc.constantFrom('sat', 'sun', 'mon', 'fri'), hours, { minKeys: 1 }),
      outside: fc.constantFrom<'skip' | 'next'>('skip', 'next'),
      overlap: fc.constantFrom<'first' | 'second' | 'both'>('first', 'second', 'both'),
      text: fc.constantFrom('*/7 * * * *', '*/11 1-3 * * *', '5,50 */2 * * *'),
      day: fc.constantFrom('2026-03-06', '2026-10-30', '2026-04-03', '2026-10-02', '2026-04-23'),
    });
    fc.assert(
      fc.property(asked, ({ zone, hours: week, outside, overlap, text, day }) => {
        const recurrence = cron(text, { zone, dst: { overlap }, calendar: { hours: week, outside } });
        const untilMs = Date.parse(day) + 12 * 86_400_000;
        const soon = (atMs: number) => atMs <= untilMs;
        const each = [...whileTrue(occurrences(recurrence, Date.parse(day), WHOLE), ({ atMs }) => soon(atMs))]
          .filter(({ dropped }) => dropped === undefined)
          .map(({ atMs }) => atMs);
        const leapt = [...whileTrue(fires(recurrence, Date.parse(day)), soon)];
        expect(leapt).toEqual(each);
      }),
      { numRuns: 40 },
    );
  });
});

function* whileTrue<T>(all: Iterable<T>, holds: (one: T) => boolean): Generator<T> {
  for (const one of all) {
    if (!holds(one)) return;
    yield one;
  }
}
