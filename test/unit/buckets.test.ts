/** Instants of rules in buckets of time: counted as a walk through them would, whatever the rule. */
import { describe, expect, test } from 'vitest';
import { bucketsOf, instantsIn } from '../../src/client/schedules/forecast.ts';
import { atOnce, within } from '../../src/kernel/steps.ts';
import { parseSchedule, type ScheduleInput } from '../../src/schedule/input.ts';
import { recurrenceOf } from '../../src/schedule/schedule.ts';
import { fires } from '../support/instants.ts';

const HOUR = 3_600_000;
const fromMs = Date.UTC(2026, 2, 28, 21, 20, 30, 500);
const day = bucketsOf({ fromMs, untilMs: fromMs + 24 * HOUR, stepMs: HOUR });
const any = Number.POSITIVE_INFINITY;
const rule = (input: Partial<ScheduleInput>) =>
  recurrenceOf(parseSchedule('s', { queue: 'q', ...input }, { sinceMs: fromMs }));

test('buckets begin at full hours, the first one now, and the last one ends at the bound', () => {
  const { edges } = bucketsOf({ fromMs, untilMs: fromMs + 2 * HOUR, stepMs: HOUR });
  expect(edges.map((edge) => new Date(edge).toISOString().slice(11, 19))).toEqual([
    ...['21:20:30', '22:00:00', '23:00:00', '23:20:30'],
  ]);
  expect(bucketsOf({ fromMs, untilMs: fromMs + 1000, stepMs: HOUR }).edges).toEqual([fromMs, fromMs + 1000]);
});

describe('instants', () => {
  test.each<[string, Partial<ScheduleInput>]>([
    ['a cron', { cron: '0 * * * *' }],
    ['a cron of a zone whose clock changes', { cron: '*/20 1-3 * * *', zone: 'Europe/Berlin' }],
    ['an interval', { every: '7m' }],
    ['an interval on the hour', { every: '1h' }],
    ['an interval within bounds', { every: '90s', start: '2026-03-29T00:00', end: '2026-03-29T02:00' }],
    ['an interval from its start', { every: '11m', align: 'start', start: '2026-03-28T23:03' }],
    ['an interval with a calendar', { every: '1h', calendar: { hours: { 'mon-sun': '09:00-17:00' } } }],
  ])('of %s are counted in the bucket they are in', (_, input) => {
    const recurrence = rule(input);
    const { edges } = day;
    const expected = edges.slice(1).map(() => 0);
    for (const at of fires(recurrence, fromMs)) {
      if (at >= (edges.at(-1) ?? 0)) break;
      const bucket = edges.findLastIndex((edge) => edge <= at);
      expected[bucket] = (expected[bucket] ?? 0) + 1;
    }
    expect(atOnce(instantsIn(recurrence, day, any))).toEqual(expected);
  });

  test('end with the runs that are left', () => {
    const counts = atOnce(instantsIn(rule({ every: '1h' }), day, 3));
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(3);
    expect(atOnce(instantsIn(rule({ cron: '* * * * * *' }), day, 3000)).slice(0, 3)).toEqual([2369, 631, 0]);
  });

  test.each<[string, Partial<ScheduleInput>]>([
    ['a cron', { cron: '* * * * * *', zone: 'Europe/Berlin' }],
    ['an interval', { every: '1s' }],
    ['seconds in working time', { cron: '* * * * * *', calendar: { hours: { 'mon-sun': '09:30-10:30' } } }],
    ['seconds that move', { every: '1s', calendar: { hours: { 'mon-sun': '09:30-10:30' }, outside: 'next' } }],
  ])('of each second cost a few steps for each bucket: %s', (_, input) => {
    const budget = { left: 6 * day.edges.length };
    const counts = atOnce(within(instantsIn(rule(input), day, any), budget));
    const isWorking = input.calendar !== undefined;
    expect(counts?.slice(12, 15)).toEqual(isWorking ? [1800, 1800, 0] : [3600, 3600, 3600]);
  });
});
