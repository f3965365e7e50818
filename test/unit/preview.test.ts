/** What a preview tells, that it agrees with what is fired, and that the tables of the documentation are true. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { atOnce, within } from '../../src/kernel/steps.ts';
import { parseSchedule, type ScheduleInput } from '../../src/schedule/input.ts';
import type { PreviewRow } from '../../src/schedule/instants.ts';
import { handledAhead, type PreviewRange, previewOf, runsLeft } from '../../src/schedule/preview.ts';
import { fireMember, recurrenceOf, type Schedule } from '../../src/schedule/schedule.ts';
import { fires } from '../support/instants.ts';
import { read } from '../support/repository.ts';

const utc = (atMs: number) => new Date(atMs).toISOString().replace('.000Z', 'Z');
const scheduleOf = (input: Partial<ScheduleInput>) => parseSchedule('n', { queue: 'q', ...input }, { sinceMs: 0 });

const leftOf = (...given: Parameters<typeof runsLeft>) => atOnce(runsLeft(...given));
const previewed = (...given: Parameters<typeof previewOf>) => atOnce(previewOf(...given)).rows;

function rows(input: Partial<ScheduleInput>, from: string, range: Partial<PreviewRange> = {}): readonly PreviewRow[] {
  return previewed(scheduleOf(input), { fromMs: Date.parse(from), ...range });
}

const NEW_YORK = { zone: 'America/New_York' };

describe('a row', () => {
  test('tells id, UTC, local time, offset and due time', () => {
    expect(rows({ cron: '30 2 * * *', zone: 'Asia/Kathmandu' }, '2026-01-01T00:00Z', { next: 1 })).toEqual([
      {
        id: '{schedule:n}2026-01-01T20:45:00Z',
        atMs: Date.parse('2026-01-01T20:45:00Z'),
        local: '2026-01-02T02:30:00',
        offset: '+05:45',
        named: undefined,
        dst: undefined,
        calendar: undefined,
        dropped: undefined,
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
      named: '2026-03-08T02:30:00',
      dst: 'gap',
      dropped: 'gap',
      id: undefined,
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
    const [first] = previewed(schedule, { fromMs: 0, next: 1 });
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
        const shown = previewed(schedule, { fromMs, next: 20 }).filter(({ dropped }) => !dropped);
        const list = fires(recurrenceOf(schedule), fromMs);
        const fired = shown.map(() => list.next().value);
        expect(shown.map(({ atMs }) => atMs)).toEqual(fired);
        expect(shown).toHaveLength(20);
      },
    ),
    { numRuns: 40 },
  );
});

describe('what a preview leaves out', () => {
  const NOW = Date.parse('2026-11-25T10:00:00Z');
  const look = (input: Partial<ScheduleInput>, range: Partial<PreviewRange>) => {
    const budget = { left: 250_000 };
    const found = atOnce(within(previewOf(scheduleOf(input), { fromMs: NOW, ...range }), budget));
    if (!found) throw new Error('it took too many steps');
    const fired = found.rows.filter(({ dropped }) => !dropped);
    return { ...found, fired, steps: 250_000 - budget.left, bytes: JSON.stringify(found).length };
  };
  const oneMinute = { cron: '* * * * * *', calendar: { hours: { 'mon-sun': '03:00-03:01' } } };

  test('is a time without work but for its first instants, and those that were asked for are all there', () => {
    const { rows, fired, leftOut, steps } = look(oneMinute, { next: 65 });
    expect(fired.map(({ atMs }) => utc(atMs))).toEqual([
      ...Array.from({ length: 60 }, (_, at) => `2026-11-26T03:00:${String(at).padStart(2, '0')}Z`),
      ...Array.from({ length: 5 }, (_, at) => `2026-11-27T03:00:0${at}Z`),
    ]);
    expect(rows).toHaveLength(65 + 20);
    // To three in the morning, and a day without a minute.
    expect(leftOut).toMatchObject({ dropped: 17 * 3600 - 10 - 1 + (86_340 - 10), later: 0, atLeast: false });
    expect(rows[9]).toMatchObject({ dropped: 'outside-hours', leftOut: 17 * 3600 - 10 - 1 });
    expect(steps).toBeLessThan(100);
  });

  test('is nothing where all is shown', () => {
    expect(look({ cron: '0 9 * * *', calendar: { hours: { mon: '09:00-10:00' } } }, { next: 2 })).toMatchObject({
      leftOut: undefined,
      rows: { length: 12 },
    });
  });

  test('is counted where the answer is full: it has less than a megabyte, and goes on where it ended', () => {
    const untilMs = NOW + 30 * 86_400_000;
    const { rows, fired, leftOut, bytes } = look({ every: '1s' }, { untilMs });
    expect(bytes).toBeLessThan(1_000_000);
    expect(rows.length + (leftOut?.later ?? 0)).toBe(30 * 86_400);
    expect(leftOut).toMatchObject({ dropped: 0, atLeast: false, upToMs: fired.at(-1)?.atMs });
    const more = look({ every: '1s' }, { fromMs: leftOut?.upToMs ?? 0, next: 1 });
    expect(more.rows[0]?.atMs).toBe((fired.at(-1)?.atMs ?? 0) + 1000);
    expect(look({ every: '1s' }, { next: 100_000 })).toMatchObject({ leftOut: { later: 100_000 - rows.length } });
    expect(look({ every: '1s', paused: 'x' }, { untilMs }).leftOut?.later).toBeGreaterThan(2_000_000);
  });

  test('is never what fires for what is dropped, though it drops before each', () => {
    const { rows, fired, leftOut, bytes } = look(oneMinute, { next: 4000 });
    expect([fired.length, bytes < 1_000_000]).toEqual([4000, true]);
    expect(rows.length).toBeLessThanOrEqual(4000 + 1000);
    expect(leftOut).toMatchObject({ later: 0, atLeast: false });
    const often = { cron: '* 30-59 * * * *', calendar: { hours: { 'mon-sat': halves(30), sun: '00:00-24:00' } } };
    const rare = look(often, { next: 2000 });
    expect(rare.fired).toHaveLength(2000);
    expect(rare.rows.length).toBeLessThanOrEqual(3000);
  });

  test('is all that comes after very many looks without any that fires, and it says so', () => {
    const never = { cron: '* 30-59 * * * *', calendar: { hours: { 'mon-sun': halves(30) } } };
    const schedule = parseSchedule('n', { queue: 'q', ...never }, { sinceMs: 0, isStored: true });
    const budget = { left: 250_000 };
    const found = atOnce(within(previewOf(schedule, { fromMs: NOW, next: 5 }), budget));
    expect(found?.rows.filter(({ dropped }) => !dropped)).toEqual([]);
    expect(found?.rows).toHaveLength(1000);
    expect(found?.leftOut).toMatchObject({ later: 5, upToMs: expect.any(Number) });
    expect(found?.leftOut?.dropped).toBeGreaterThan(1_000_000);
  });

  test('is nothing beyond its range: instants that were handled already do not count', () => {
    const handled = { afterMs: NOW, upToMs: NOW + 10 * 86_400_000 };
    const { leftOut, rows } = look(oneMinute, { handled, next: 1 });
    expect(rows).toHaveLength(11);
    expect(leftOut?.dropped).toBe(17 * 3600 - 11);
    expect(look(oneMinute, { untilMs: NOW + 60_000 }).leftOut?.dropped).toBe(50);
  });
});

/** The first minutes of each hour. */
function halves(minutes: number): readonly string[] {
  const two = (value: number) => String(value).padStart(2, '0');
  return Array.from({ length: 24 }, (_, hour) => `${two(hour)}:00-${two(hour)}:${two(minutes)}`);
}

describe('docs/explanation/schedules.md', () => {
  const SPRING = { fromMs: Date.parse('2026-03-08T05:00Z'), untilMs: Date.parse('2026-03-09T03:59Z') };
  const AUTUMN = { fromMs: Date.parse('2026-11-01T04:00Z'), untilMs: Date.parse('2026-11-02T04:59Z') };
  const table = read('docs/explanation/schedules.md')
    .split('\n')
    .filter((line) => /^\| `[^`]+` \| \d\d:\d\d/.test(line))
    .map((line) => line.split('|').map((cell) => cell.trim()));

  /** `01:30 EST (06:30Z)` for every run of that night, as the table writes it. */
  function nightOf(cron: string, range: PreviewRange): readonly string[] {
    const night = previewed(scheduleOf({ cron, ...NEW_YORK }), range).filter(({ dropped }) => !dropped);
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
    previewed(thrice, { fromMs: nowMs, ...range }).map(({ atMs }) => (atMs - START) / HOUR_MS);

  test('shows the runs that are left', () => {
    const nowMs = START + HOUR_MS + 1;
    expect(hours({ left: leftOf(thrice, { fired: fired(1, 1), nowMs }) }, nowMs)).toEqual([2, 3]);
    expect(hours({ left: leftOf(thrice, { fired: fired(1, 3), nowMs }) }, nowMs)).toEqual([]);
  });

  test('counts what is caught up at once and what waits, and those before the first row', () => {
    const nowMs = START + 5 * HOUR_MS + 1;
    expect(hours({ left: leftOf(thrice, { fired: fired(1, 1), nowMs }) }, nowMs)).toEqual([6]);
    const waiting = { ...fired(5, 1), waiting: fireMember('n', START + 5 * HOUR_MS) };
    const left = leftOf(thrice, { fired: waiting, nowMs });
    expect(hours({ left }, nowMs)).toEqual([6]);
    expect(hours({ left, fromMs: START + 7 * HOUR_MS }, nowMs)).toEqual([]);
  });

  test('counts the runs before a row that is far away', () => {
    const left = { afterMs: START, runs: 1_000_002 };
    const later = (input: Partial<ScheduleInput>) =>
      previewed(scheduleOf(input), { fromMs: START + 1e9, next: 9, left }).length;
    expect(later({ every: '1s' })).toBe(2);
    expect(later({ cron: '* * * * * *', zone: 'Europe/Berlin' })).toBe(2);
  });

  test('refuses a row behind very many working times', () => {
    const few = { every: '1s', calendar: { hours: { 'mon-sun': '01:00-01:01' } } } as const;
    const left = { afterMs: START, runs: 1e9 };
    const rowsLater = () => previewed(scheduleOf(few), { fromMs: Date.UTC(9000, 0), next: 1, left });
    expect(rowsLater).toThrow(/too many working times up to from .*; allowed: an earlier from/);
  });
});

describe('a schedule that was fired by a clock that went back since', () => {
  const HOUR_MS = 3_600_000;
  const NOW = Date.UTC(2026, 0);
  const DECADE_HOURS = 24 * 3653;
  const fired = { reachedMs: NOW + DECADE_HOURS * HOUR_MS, runs: 1, waiting: undefined };
  const hours = (schedule: Schedule, fromMs: number) => {
    const [left, handled] = [leftOf(schedule, { fired, nowMs: NOW }), handledAhead(fired, NOW)];
    return previewed(schedule, { fromMs, next: 3, left, handled }).map(({ atMs }) => (atMs - NOW) / HOUR_MS);
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
