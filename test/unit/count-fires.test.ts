/** Instants are counted without walking through them, and as many are counted as a walk finds. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { atOnce, within } from '../../src/kernel/steps.ts';
import { parseSchedule, type ScheduleInput } from '../../src/schedule/input.ts';
import { recurrenceOf } from '../../src/schedule/schedule.ts';
import { countFires, occurrences } from '../../src/time/recurrence.ts';

const DAY_MS = 86_400_000;
const rule = (input: Partial<ScheduleInput>) =>
  recurrenceOf(parseSchedule('s', { queue: 'q', ...input }, { sinceMs: 0, isStored: true }));

const ZONES = ['UTC', 'America/New_York', 'Australia/Lord_Howe', 'Africa/Cairo', 'Antarctica/Troll', 'Pacific/Apia'];
const TEXTS = [
  '*/7 * * * *',
  '*/11 1-3 * * *',
  '5,50 */2 * * *',
  '0 0 * * *',
  '30 2 * * *',
  '0 0 31 * 5',
  '*/40 */9 0-3 * * *',
];
const RULES: readonly Partial<ScheduleInput>[] = [
  ...TEXTS.map((cron) => ({ cron })),
  { every: '13m' },
  { every: '1h' },
];
const hours = fc.constantFrom('00:30-01:30', '01:00-02:00', '02:10-02:40', '03:00-24:00', '00:00-24:00');
const calendar = fc.record({
  hours: fc.dictionary(fc.constantFrom('sat', 'sun', 'mon', 'fri', 'tue-thu'), hours, { minKeys: 1 }),
  skip: fc.constantFrom([], ['2026-03-29', '10-04'], ['2011-12-28/2012-01-02']),
  outside: fc.constantFrom<'skip' | 'next'>('skip', 'next'),
});
const dst = fc.record({
  gap: fc.constantFrom<'shift' | 'skip'>('shift', 'skip'),
  overlap: fc.constantFrom<'first' | 'second' | 'both'>('first', 'second', 'both'),
});

test('a count is that of a walk which leaps over nothing, in any zone, with any calendar', () => {
  const given = fc.record({
    of: fc.constantFrom(...RULES),
    zone: fc.constantFrom(...ZONES),
    dst,
    calendar: fc.option(calendar, { nil: undefined }),
    // Clock changes of these zones, and the day that Apia left out.
    day: fc.constantFrom('2026-03-06', '2026-10-30', '2026-04-03', '2026-10-02', '2026-04-23', '2011-12-28'),
    offsetMs: fc.integer({ min: 0, max: DAY_MS }),
    spanMs: fc.integer({ min: 0, max: 9 * DAY_MS }),
  });
  fc.assert(
    fc.property(given, ({ of, zone, dst: policy, calendar: working, day, offsetMs, spanMs }) => {
      const recurrence = rule({ ...of, zone, dst: policy, calendar: working });
      const afterMs = Date.parse(day) + offsetMs;
      const upToMs = afterMs + spanMs;
      let walked = 0;
      for (const { atMs, dropped } of occurrences(recurrence, afterMs, { closedRows: Number.POSITIVE_INFINITY })) {
        if (atMs > upToMs) break;
        if (dropped === undefined) walked += 1;
      }
      expect(atOnce(countFires(recurrence, afterMs, upToMs))).toBe(walked);
    }),
    { numRuns: 400 },
  );
});

test('what a leap leaves out is what a walk without leaps tells', () => {
  const given = fc.record({
    of: fc.constantFrom(...RULES),
    zone: fc.constantFrom(...ZONES),
    dst,
    calendar,
    closedRows: fc.integer({ min: 2, max: 12 }),
    spanMs: fc.integer({ min: 0, max: 9 * DAY_MS }),
    day: fc.constantFrom('2026-03-06', '2026-10-30', '2026-04-03', '2026-10-02', '2026-04-23'),
  });
  fc.assert(
    fc.property(given, ({ of, zone, dst: policy, calendar: working, closedRows, day, spanMs }) => {
      // What moves may move beyond the end.
      const recurrence = rule({ ...of, zone, dst: policy, calendar: { ...working, outside: 'skip' } });
      const [afterMs, untilMs] = [Date.parse(day), Date.parse(day) + spanMs];
      const whole = [...occurrences(recurrence, afterMs, { untilMs, closedRows: Number.POSITIVE_INFINITY })].length;
      let told = 0;
      for (const { leftOut = 0 } of occurrences(recurrence, afterMs, { untilMs, closedRows })) told += 1 + leftOut;
      expect(told).toBe(whole);
    }),
    { numRuns: 300 },
  );
});

test('ten years of seconds take a few steps for each working time', () => {
  const [fromMs, toMs] = [Date.UTC(2020, 0), Date.UTC(2030, 0)];
  const steps = (input: Partial<ScheduleInput>) => {
    const budget = { left: 100_000 };
    const count = atOnce(within(countFires(rule(input), fromMs - 1, toMs - 1), budget));
    return [count, 100_000 - budget.left];
  };
  const seconds = (toMs - fromMs) / 1000;
  expect(steps({ cron: '* * * * * *' })).toEqual([seconds, expect.any(Number)]);
  expect(steps({ cron: '* * * * * *' })[1]).toBeLessThan(20);
  expect(steps({ every: '1s' })[1]).toBeLessThan(20);
  const [count, taken] = steps({ cron: '* * * * * *', calendar: { hours: { 'mon-sun': '06:00-06:01' } } });
  expect(count).toBe(60 * 3653);
  expect(taken).toBeLessThan(5 * 3653);
});
