/** Instants before a moment are those that the rule names from its beginning on, whatever the rule is and however few are asked for. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { atOnce, within } from '../../src/kernel/steps.ts';
import { parseSchedule, type ScheduleInput } from '../../src/schedule/input.ts';
import { instantsBefore as instantsBeforeIn } from '../../src/schedule/instants.ts';
import { recurrenceOf } from '../../src/schedule/schedule.ts';
import { planned } from '../support/instants.ts';

const scheduleOf = (input: Partial<ScheduleInput>, sinceMs = 0) =>
  parseSchedule('n', { queue: 'q', ...input }, { sinceMs });
const utc = (text: string) => Date.parse(`${text}Z`);
const DAY_MS = 86_400_000;
const instantsBefore = (...given: Parameters<typeof instantsBeforeIn>) => atOnce(instantsBeforeIn(...given));

function timesBefore(input: Partial<ScheduleInput>, before: string, count: number): readonly string[] {
  const rows = instantsBefore(scheduleOf(input), { beforeMs: utc(before), count });
  return rows.map(({ atMs }) => new Date(atMs).toISOString().slice(0, 19));
}

describe('the instants before a moment', () => {
  test('come latest first, without the moment itself', () => {
    expect(timesBefore({ cron: '0 * * * *' }, '2026-03-01T02:00:00', 3)).toEqual([
      ...['2026-03-01T01:00:00', '2026-03-01T00:00:00', '2026-02-28T23:00:00'],
    ]);
  });

  test('are found where a rule names every second of one month, and where it names one day in four years', () => {
    expect(timesBefore({ cron: '* * * * 1 *' }, '2026-06-01T00:00:00', 2)).toEqual([
      ...['2026-01-31T23:59:59', '2026-01-31T23:59:58'],
    ]);
    expect(timesBefore({ cron: '0 0 29 2 *' }, '2026-06-01T00:00:00', 2)).toEqual([
      ...['2024-02-29T00:00:00', '2020-02-29T00:00:00'],
    ]);
  });

  test('end at the last change of the rule, and at its start', () => {
    const since = utc('2026-03-01T00:30:00');
    const rows = instantsBefore(scheduleOf({ cron: '0 * * * *' }, since), {
      beforeMs: utc('2026-03-01T02:30:00'),
      count: 10,
    });
    expect(rows.map(({ atMs }) => atMs)).toEqual([utc('2026-03-01T02:00:00'), utc('2026-03-01T01:00:00')]);
    const start = '2026-03-01T02:00:00Z';
    expect(timesBefore({ cron: '0 * * * *', start }, '2026-03-01T03:30:00', 10)).toEqual([
      ...['2026-03-01T03:00:00', '2026-03-01T02:00:00'],
    ]);
  });

  test('have what a clock change took away, and nothing of times without work', () => {
    const input = { cron: '30 1 * * *', zone: 'America/New_York' };
    const rows = instantsBefore(scheduleOf(input), { beforeMs: utc('2026-11-02T00:00:00'), count: 2 });
    expect(rows).toMatchObject([
      { dst: 'second', dropped: 'overlap', id: undefined },
      { dst: 'first', dropped: undefined, id: '{schedule:n}2026-11-01T05:30:00Z' },
    ]);
    const calendar = { hours: { 'mon-fri': '09:00-10:00' } };
    expect(timesBefore({ cron: '* * * * *', calendar }, '2026-03-02T09:02:00', 3)).toEqual([
      ...['2026-03-02T09:01:00', '2026-03-02T09:00:00', '2026-02-27T09:59:00'],
    ]);
  });

  test('are the same as those that come from the beginning on, for any rule, count and moment', () => {
    const rules: readonly Partial<ScheduleInput>[] = [
      ...[{ every: '7m' }, { cron: '*/5 9-10 * * 1-3' }, { cron: '30 2 * * *', zone: 'Europe/Berlin' }],
      { cron: '15,45 * 1 * *', zone: 'Asia/Kathmandu' },
      { cron: '* * * * *', calendar: { hours: { sat: '10:00-12:00' } } },
      { cron: '0 */3 * * *', dst: { overlap: 'both' }, zone: 'Europe/Berlin' },
    ];
    const begin = utc('2026-03-20T00:00:00');
    const given = fc.record({
      rule: fc.constantFrom(...rules),
      spanMs: fc.integer({ min: 0, max: 12 * DAY_MS }),
      count: fc.integer({ min: 1, max: 40 }),
    });
    fc.assert(
      fc.property(given, ({ rule, spanMs, count }) => {
        const schedule = scheduleOf(rule, begin);
        const beforeMs = begin + spanMs;
        const all: number[] = [];
        for (const { atMs } of planned(recurrenceOf(schedule), begin)) {
          if (atMs >= beforeMs) break;
          all.push(atMs);
        }
        const found = instantsBefore(schedule, { beforeMs, count }).map(({ atMs }) => atMs);
        expect(found).toEqual(all.slice(-count).reverse());
      }),
      { numRuns: 60 },
    );
  });

  test('of two years of seconds in one minute a day take steps by what is asked for', () => {
    const input = {
      cron: '* * * * * *',
      calendar: { hours: { 'mon-sun': '03:00-03:01' }, skip: ['2026-01-02/2026-05-30'] },
    };
    const budget = { left: 100_000 };
    const rows = atOnce(
      within(
        instantsBeforeIn(scheduleOf(input, utc('2024-06-01T00:00:00')), {
          beforeMs: utc('2026-05-30T00:00:00'),
          count: 100,
        }),
        budget,
      ),
    );
    expect(rows).toHaveLength(100);
    expect(rows?.[0]?.atMs).toBe(utc('2026-01-01T03:00:59'));
    expect(budget.left).toBeGreaterThan(85_000);
  });
});
