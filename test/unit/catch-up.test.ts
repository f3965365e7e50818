/** Which instants are fired when nobody looked for a while: every policy, its window, its limit, and what it costs. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { atOnce, within } from '../../src/kernel/steps.ts';
import { firesDue as firesDueIn, ON_TIME_MS } from '../../src/schedule/instants.ts';
import type { CatchUp } from '../../src/schedule/schedule.ts';
import { parseCalendar } from '../../src/time/calendar.ts';
import { type Cron, parseCron } from '../../src/time/cron.ts';
import type { Recurrence } from '../../src/time/recurrence.ts';
import { DEFAULT_DST, parseZone } from '../../src/time/zone.ts';
import { fires, nextFire } from '../support/instants.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const NOW = Date.UTC(2026, 5, 15, 12);

const firesDue = (...given: Parameters<typeof firesDueIn>) => atOnce(firesDueIn(...given));
const of = (cron: string, zone = 'UTC'): Recurrence => ({
  rule: { cron: parseCron(cron, 'seed') },
  zone: parseZone(zone),
  dst: DEFAULT_DST,
});
const hourly = of('0 * * * *');
const all = (windowMs = DAY_MS, limit = 100): CatchUp => ({ policy: 'all', windowMs, limit });
const once = (windowMs = DAY_MS): CatchUp => ({ policy: 'once', windowMs, limit: 100 });
const skip: CatchUp = { policy: 'skip', windowMs: DAY_MS, limit: 100 };

const due = (catchUp: CatchUp, { hours = 5, nowMs = NOW, recurrence = hourly } = {}) =>
  firesDue(recurrence, { afterMs: nowMs - hours * HOUR_MS, nowMs, catchUp });
const back = (...hours: readonly number[]) => hours.map((hour) => NOW - hour * HOUR_MS);

describe('after five hours without anybody', () => {
  test('all fires each, oldest first', () => {
    expect(due(all())).toEqual({ instants: back(4, 3, 2, 1, 0), missed: 0, nextMs: NOW + HOUR_MS });
  });

  test('all fires the last ones of more than its limit, and tells that some were missed', () => {
    expect(due(all(DAY_MS, 2))).toMatchObject({ instants: back(1, 0), missed: 3 });
  });

  test('all forgets what is older than its window', () => {
    expect(due(all(2 * HOUR_MS))).toMatchObject({ instants: back(1, 0), missed: 3 });
  });

  test('once fires the last one', () => {
    expect(due(once())).toMatchObject({ instants: back(0), missed: 4 });
    expect(due(once(), { nowMs: NOW + 59 * MINUTE_MS })).toMatchObject({ instants: back(0), missed: 4 });
  });

  test('once fires none that is older than its window', () => {
    expect(due(once(10 * MINUTE_MS), { nowMs: NOW + 59 * MINUTE_MS })).toMatchObject({ instants: [], missed: 5 });
  });

  test('skip fires none but one that is less than a minute old', () => {
    expect(due(skip, { nowMs: NOW + ON_TIME_MS - 1 })).toMatchObject({ instants: back(0), missed: 4 });
    expect(due(skip, { nowMs: NOW + ON_TIME_MS })).toMatchObject({ instants: [], missed: 5 });
  });
});

describe('on time', () => {
  test.each([all(0), once(0), skip])('an instant of seconds ago is fired with no window at all: %o', (catchUp) => {
    const fired = firesDue(hourly, { afterMs: NOW - HOUR_MS, nowMs: NOW + 30_000, catchUp });
    expect(fired).toEqual({ instants: [NOW], missed: 0, nextMs: NOW + HOUR_MS });
  });

  test('nothing is fired between instants, twice, or before what was handled', () => {
    expect(firesDue(hourly, { afterMs: NOW, nowMs: NOW + 1000, catchUp: all() })).toEqual({
      instants: [],
      missed: 0,
      nextMs: NOW + HOUR_MS,
    });
    // A clock that was set back: what was handled lies ahead.
    expect(firesDue(hourly, { afterMs: NOW, nowMs: NOW - 5 * HOUR_MS, catchUp: all() })).toEqual({
      instants: [],
      missed: 0,
      nextMs: NOW + HOUR_MS,
    });
  });

  test('nothing comes after the end', () => {
    const ended = { ...hourly, endMs: NOW };
    expect(firesDue(ended, { afterMs: NOW - 2 * HOUR_MS, nowMs: NOW, catchUp: all() })).toEqual({
      instants: back(1),
      missed: 0,
      nextMs: undefined,
    });
  });
});

describe('a long absence', () => {
  /** Counts the questions to the expression. */
  function counted(cron: string) {
    let asked = 0;
    const parsed = parseCron(cron, 'seed');
    const next: Cron['next'] = (wallMs) => {
      asked += 1;
      return parsed.next(wallMs);
    };
    const rule = { cron: { ...parsed, next } };
    return { recurrence: { ...hourly, rule }, asked: () => asked };
  }

  test.each([
    ['* * * * * *', once(366 * DAY_MS), 1000],
    ['* * * * * *', all(366 * DAY_MS, 1000), 10_000],
    ['* * * * * *', skip, 1000],
    ['0 0 29 2 *', once(366 * DAY_MS), 200],
    ['0 0 29 2 *', all(366 * DAY_MS), 200],
  ])('of ten years costs no more than what is fired: %s with %o', (cron, catchUp, most) => {
    const { recurrence, asked } = counted(cron);
    firesDue(recurrence, { afterMs: NOW - 10 * 366 * DAY_MS, nowMs: NOW, catchUp });
    expect(asked()).toBeLessThan(most);
  });
});

describe('a long absence from a rule of seconds with rare working time', () => {
  const calendar = parseCalendar({ hours: { 'mon-sun': '03:00-03:01' } });
  const yearly = parseCalendar({ skip: datesButNewYear() });

  test.each([
    ['a minute a day', calendar, Date.parse('2026-06-15T03:00:59Z')],
    ['a day a year', yearly, Date.parse('2026-01-01T23:59:59Z')],
  ])('%s: all fires the last ones, within steps that no absence multiplies', (_, working, lastMs) => {
    const recurrence = { ...of('* * * * * *'), calendar: working };
    const budget = { left: 100_000 };
    const asked = { afterMs: NOW - 3000 * DAY_MS, nowMs: NOW, catchUp: all(3000 * DAY_MS, 50) };
    const found = atOnce(within(firesDueIn(recurrence, asked), budget));
    expect(found?.instants).toEqual(Array.from({ length: 50 }, (__, at) => lastMs - (49 - at) * 1000));
    expect(budget.left).toBeGreaterThan(90_000);
  });
});

/** `01-02` to `12-31`. */
function datesButNewYear(): readonly string[] {
  const days = Array.from({ length: 365 }, (_, at) => new Date(Date.UTC(2024, 0, 2 + at)));
  return days.map((day) => day.toISOString().slice(5, 10));
}

test('what is fired is the end of all instants that passed within the window', () => {
  const calendar = parseCalendar({ hours: { 'mon-fri': '09:00-17:00' }, outside: 'next' });
  const recurrences = [
    hourly,
    of('30 2 * * *', 'America/New_York'),
    of('*/20 1-3 * * *', 'Europe/Berlin'),
    { ...of('0 22 * * *', 'Europe/Berlin'), calendar },
    { ...hourly, rule: { everyMs: 7 * MINUTE_MS, anchorMs: 5 } },
  ];
  fc.assert(
    fc.property(
      fc.constantFrom(...recurrences),
      fc.integer({ min: Date.UTC(2026, 2, 1), max: Date.UTC(2026, 10, 30) }),
      fc.integer({ min: 0, max: 5 * DAY_MS }),
      fc.record({
        policy: fc.constantFrom('skip' as const, 'once' as const, 'all' as const),
        windowMs: fc.integer({ min: 0, max: 3 * DAY_MS }),
        limit: fc.integer({ min: 1, max: 50 }),
      }),
      (recurrence, nowMs, absentMs, catchUp) => {
        const afterMs = nowMs - absentMs;
        const passed: number[] = [];
        for (const atMs of fires(recurrence, afterMs)) {
          if (atMs > nowMs) break;
          passed.push(atMs);
        }
        const windowMs = Math.max(catchUp.policy === 'skip' ? 0 : catchUp.windowMs, ON_TIME_MS);
        const expected = passed
          .filter((atMs) => atMs > nowMs - windowMs)
          .slice(catchUp.policy === 'all' ? -catchUp.limit : -1);
        expect(firesDue(recurrence, { afterMs, nowMs, catchUp })).toEqual({
          instants: expected,
          missed: passed.length - expected.length,
          nextMs: nextFire(recurrence, nowMs),
        });
      },
    ),
    { numRuns: 150 },
  );
});
