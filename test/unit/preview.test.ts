/** What a preview tells, that it agrees with what is fired, and that the tables of the documentation are true. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  handledAhead,
  type PreviewRange,
  type PreviewRow,
  previewOf,
  runsLeft,
} from '../../src/core/recurring/preview.ts';
import { fires } from '../../src/core/recurring/recurrence.ts';
import { fireMember, recurrenceOf, type Schedule } from '../../src/core/recurring/schedule.ts';
import { parseSchedule, type ScheduleInput } from '../../src/core/recurring/schedule-input.ts';
import { read } from '../support/repository.ts';

const utc = (atMs: number) => new Date(atMs).toISOString().replace('.000Z', 'Z');
const scheduleOf = (input: Partial<ScheduleInput>) => parseSchedule('n', { queue: 'q', ...input }, { sinceMs: 0 });

function rows(input: Partial<ScheduleInput>, from: string, range: Partial<PreviewRange> = {}): readonly PreviewRow[] {
  return [...previewOf(scheduleOf(input), { fromMs: Date.parse(from), ...range })];
}

const NEW_YORK = { zone: 'America/New_York' };

describe('a row', () => {
  test('tells id, UTC, local time, offset and due time', () => {
    expect(rows({ cron: '30 2 * * *', zone: 'Asia/Kathmandu' }, '2026-01-01T00:00Z', { next: 1 })).toEqual([
      {
        ...{
          id: '{schedule:n}2026-01-01T20:45:00Z',
          atMs: Date.parse('2026-01-01T20:45:00Z'),
          local: '2026-01-02T02:30:00',
        },
        ...{ offset: '+05:45', named: undefined, dst: undefined, calendar: undefined, dropped: undefined },
        dueMs: Date.parse('2026-01-01T20:45:00Z'),
      },
    ]);
  });

  test('tells the time that was named, where a gap shifted it', () => {
    expect(rows({ cron: '30 2 * * *', ...NEW_YORK }, '2026-03-08T00:00Z', { next: 1 })).toMatchObject([
      {
        atMs: Date.parse('2026-03-08T07:30:00Z'),
        local: '2026-03-08T03:30:00',
        offset: '-04:00',
        named: '2026-03-08T02:30:00',
        dst: 'shifted',
      },
    ]);
  });

  test('tells what is dropped, and gives it no id', () => {
    expect(rows({ cron: '30 1 * * *', ...NEW_YORK }, '2026-11-01T00:00Z', { next: 2 })).toMatchObject([
      { atMs: Date.parse('2026-11-01T05:30:00Z'), offset: '-04:00', dst: 'first', dropped: undefined },
      {
        atMs: Date.parse('2026-11-01T06:30:00Z'),
        offset: '-05:00',
        dst: 'second',
        dropped: 'overlap',
        id: undefined,
        dueMs: undefined,
      },
      { atMs: Date.parse('2026-11-02T06:30:00Z'), dst: undefined, dropped: undefined },
    ]);
    expect(
      rows({ cron: '30 2 * * *', ...NEW_YORK, dst: { gap: 'skip' } }, '2026-03-08T00:00Z', { next: 1 })[0],
    ).toMatchObject({
      ...{ named: '2026-03-08T02:30:00', dst: 'gap', dropped: 'gap', id: undefined },
    });
  });

  test('tells what the calendar did', () => {
    const calendar = { hours: { 'mon-fri': '09:00-17:00' }, skip: ['2026-12-25'] };
    const of = (outside: 'skip' | 'next') =>
      rows({ cron: '0 20 * * *', calendar: { ...calendar, outside } }, '2026-12-24T12:00Z', { next: 1 });
    expect(of('next').map(({ calendar: why, dropped, atMs }) => [why, dropped, utc(atMs)])).toEqual([
      ['moved', undefined, '2026-12-28T09:00:00Z'],
    ]);
    const dropped = rows({ cron: '0 10 * * *', calendar }, '2026-12-24T12:00Z', { next: 1 }).map(
      ({ atMs, dropped: why }) => [utc(atMs).slice(0, 10), why],
    );
    expect(dropped).toEqual([
      ['2026-12-25', 'skip-date'],
      ['2026-12-26', 'outside-hours'],
      ['2026-12-27', 'outside-hours'],
      ['2026-12-28', undefined],
    ]);
  });

  test('shows a due time that is later by the jitter', () => {
    const [row] = rows({ cron: '0 0 * * *', jitter: '1h' }, '2026-01-01T12:00Z', { next: 1 });
    expect((row?.dueMs ?? 0) - (row?.atMs ?? 0)).toBeGreaterThan(0);
  });
});

describe('a range', () => {
  test('ends after so many rows that fire, or at an instant, itself included', () => {
    expect(rows({ every: '1h' }, '2026-01-01T00:00Z', { next: 3 })).toHaveLength(3);
    const until = rows({ every: '1h' }, '2026-01-01T00:00Z', { untilMs: Date.parse('2026-01-01T04:00Z') });
    expect(until.map(({ atMs }) => utc(atMs))).toEqual([1, 2, 3, 4].map((hour) => `2026-01-01T0${hour}:00:00Z`));
  });

  test('shows nothing from before the schedule was put', () => {
    const schedule = parseSchedule('n', { queue: 'q', every: '1h' }, { sinceMs: Date.parse('2026-06-01T00:30Z') });
    const [first] = previewOf(schedule, { fromMs: 0, next: 1 });
    expect(first?.atMs).toBe(Date.parse('2026-06-01T01:00:00Z'));
  });
});

test('what a preview shows as fired is what is fired', () => {
  const inputs: readonly Partial<ScheduleInput>[] = [
    { cron: '*/20 1-3 * * *' },
    { cron: '30 0-4 * * *' },
    { cron: '0 */3 * * *' },
    { cron: 'H H * * *' },
    { every: '7h', align: 'start' },
    { cron: '0 22 * * *', calendar: { hours: { 'mon-fri': '09:00-17:00' }, outside: 'next' } },
    { cron: '0 * * * *', calendar: { hours: { sun: '01:00-04:00' }, outside: 'skip' } },
  ];
  fc.assert(
    fc.property(
      fc.constantFrom(...inputs),
      fc.constantFrom('America/New_York', 'Australia/Lord_Howe', 'Africa/Cairo', 'Antarctica/Troll', 'Pacific/Apia'),
      fc.record({
        gap: fc.constantFrom('shift' as const, 'skip' as const),
        overlap: fc.constantFrom('first' as const, 'second' as const, 'both' as const),
      }),
      fc.integer({ min: Date.UTC(2009, 0), max: Date.UTC(2027, 0) }),
      (input, zone, dst, fromMs) => {
        const schedule = scheduleOf({ ...input, zone, dst });
        const shown = [...previewOf(schedule, { fromMs, next: 20 })].filter(({ dropped }) => !dropped);
        const list = fires(recurrenceOf(schedule), fromMs);
        const fired = shown.map(() => list.next().value);
        expect(shown.map(({ atMs }) => atMs)).toEqual(fired);
        expect(shown).toHaveLength(20);
      },
    ),
    { numRuns: 40 },
  );
});

describe('docs/explanation/schedules.md', () => {
  const SPRING = { fromMs: Date.parse('2026-03-08T05:00Z'), untilMs: Date.parse('2026-03-09T03:59Z') };
  const AUTUMN = { fromMs: Date.parse('2026-11-01T04:00Z'), untilMs: Date.parse('2026-11-02T04:59Z') };
  const table = read('docs/explanation/schedules.md')
    .split('\n')
    .filter((line) => /^\| `[^`]+` \| \d\d:\d\d/.test(line))
    .map((line) => line.split('|').map((cell) => cell.trim()));

  /** `01:30 EST (06:30Z)` for every run of that night, as the table writes it. */
  function nightOf(cron: string, range: PreviewRange): readonly string[] {
    const night = [...previewOf(scheduleOf({ cron, ...NEW_YORK }), range)].filter(({ dropped }) => !dropped);
    return night.map(
      ({ local, offset, atMs }) =>
        `${local.slice(11, 16)} ${offset === '-04:00' ? 'EDT' : 'EST'} ${utc(atMs).slice(11, 16)}Z`,
    );
  }

  /** What a cell says: every time in it, with the abbreviation that follows it. */
  function saidIn(cell: string): readonly string[] {
    const plain = cell.split(/, once|: an hour|;/)[0] ?? '';
    const times = [...plain.replace(/ to /g, ' … ').matchAll(/\d\d:\d\d(?!Z)/g)];
    return times.map(({ 0: time, index }) => `${time} ${/EDT|EST/.exec(plain.slice(index))?.[0] ?? '?'}`);
  }

  test('has a table of rules with a spring and an autumn', () => {
    expect(table.length).toBeGreaterThanOrEqual(5);
  });

  test.each(table)('%s%s in spring: %s, in autumn: %s', (_, rule = '', spring = '', autumn = '') => {
    const cron = rule.replaceAll('`', '');
    for (const [cell, range] of [
      [spring, SPRING],
      [autumn, AUTUMN],
    ] as const) {
      const night = nightOf(cron, range);
      const said = saidIn(cell);
      const within = night.filter((run) => (cron.startsWith('30 * ') ? said.some((one) => run.startsWith(one)) : true));
      const [first, last] = [said[0], said.at(-1)];
      if (cell.includes(' to '))
        expect([within[0], within.at(-1)].map((run) => run?.slice(0, 9))).toEqual([first, last]);
      else expect(within.map((run) => run.slice(0, 9))).toEqual(said);
      const utc = [...cell.matchAll(/\((\d\d:\d\dZ)\)/g)].map((match) => match[1]);
      for (const at of utc) expect(within.some((run) => run.endsWith(at ?? '?'))).toBe(true);
      if (cell.includes('once')) expect(night).toHaveLength(1);
    }
  });
});

describe('a schedule with maxRuns', () => {
  const HOUR_MS = 3_600_000;
  const START = Date.UTC(2026, 0);
  const thrice = scheduleOf({ every: '1h', maxRuns: 3 });
  const fired = (hour: number, runs: number) => ({ reachedMs: START + hour * HOUR_MS, runs, waiting: undefined });
  const hours = (range: Partial<PreviewRange>, nowMs: number) =>
    [...previewOf(thrice, { fromMs: nowMs, ...range })].map(({ atMs }) => (atMs - START) / HOUR_MS);

  test('shows the runs that are left', () => {
    const nowMs = START + HOUR_MS + 1;
    expect(hours({ left: runsLeft(thrice, { fired: fired(1, 1), nowMs }) }, nowMs)).toEqual([2, 3]);
    expect(hours({ left: runsLeft(thrice, { fired: fired(1, 3), nowMs }) }, nowMs)).toEqual([]);
  });

  test('counts what is caught up at once and what waits, and those before the first row', () => {
    const nowMs = START + 5 * HOUR_MS + 1;
    expect(hours({ left: runsLeft(thrice, { fired: fired(1, 1), nowMs }) }, nowMs)).toEqual([6]);
    const waiting = { ...fired(5, 1), waiting: fireMember('n', START + 5 * HOUR_MS) };
    const left = runsLeft(thrice, { fired: waiting, nowMs });
    expect(hours({ left }, nowMs)).toEqual([6]);
    expect(hours({ left, fromMs: START + 7 * HOUR_MS }, nowMs)).toEqual([]);
  });

  test('refuses to count more than a hundred thousand runs', () => {
    const left = { afterMs: START, runs: 1e9 };
    const rowsLater = () => [...previewOf(scheduleOf({ every: '1s' }), { fromMs: START + 1e9, next: 1, left })];
    expect(rowsLater).toThrow(/would have to be counted for maxRuns; allowed: an earlier from/);
  });

  test('refuses to walk through more than two hundred thousand instants, though few of them fire', () => {
    const few = { every: '1s', calendar: { hours: { sun: '01:00-01:01' }, outside: 'skip' } } as const;
    const left = { afterMs: START, runs: 1e9 };
    const rowsLater = () => [...previewOf(scheduleOf(few), { fromMs: START + 1e9, next: 1, left })];
    expect(rowsLater).toThrow(/or 200000 instants, up to from .*; allowed: an earlier from/);
  });
});

describe('a schedule that was fired by a clock that went back since', () => {
  const HOUR_MS = 3_600_000;
  const NOW = Date.UTC(2026, 0);
  const DECADE_HOURS = 24 * 3653;
  const fired = { reachedMs: NOW + DECADE_HOURS * HOUR_MS, runs: 1, waiting: undefined };
  const hours = (schedule: Schedule, fromMs: number) => {
    const [left, handled] = [runsLeft(schedule, { fired, nowMs: NOW }), handledAhead(fired, NOW)];
    return [...previewOf(schedule, { fromMs, next: 3, left, handled })].map(({ atMs }) => (atMs - NOW) / HOUR_MS);
  };

  test('shows nothing of what was fired, and what came before', () => {
    const hourly = scheduleOf({ every: '1h' });
    expect(hours(hourly, NOW)).toEqual([1, 2, 3].map((hour) => DECADE_HOURS + hour));
    expect(hours(hourly, NOW - HOUR_MS)).toEqual([0, DECADE_HOURS + 1, DECADE_HOURS + 2]);
    expect(hours(hourly, NOW + 5 * HOUR_MS)).toEqual([1, 2, 3].map((hour) => DECADE_HOURS + hour));
    expect(handledAhead({ reachedMs: NOW }, NOW)).toBeUndefined();
  });

  test('has its runs left after them', () => {
    expect(hours(scheduleOf({ every: '1h', maxRuns: 3 }), NOW)).toEqual([DECADE_HOURS + 1, DECADE_HOURS + 2]);
  });
});

test('a schedule that does not fire shows what it would fire, as dropped', () => {
  const found = rows({ every: '1h', paused: 'lunch' }, '2026-01-01T00:30Z', { next: 2 });
  expect(found.map(({ atMs, id, dueMs, dropped }) => [utc(atMs).slice(11, 16), id, dueMs, dropped])).toEqual([
    ['01:00', undefined, undefined, 'paused'],
    ['02:00', undefined, undefined, 'paused'],
  ]);
  expect(rows({ every: '1h' }, '2026-01-01T00:30Z', { next: 1, held: 'unreadable' })[0]?.dropped).toBe('unreadable');
});
