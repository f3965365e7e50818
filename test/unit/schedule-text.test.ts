/** Definitions as they are stored, and the names of the jobs that follow from them. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ScheduleInput } from '../../src/schedule/input.ts';
import { dueOfFire, firedBy, fireId, routingOf } from '../../src/schedule/schedule.ts';
import { decodeDefinition, defineSchedule, encodeDefinition, firesAlike, isSame } from '../../src/schedule/text.ts';

const SINCE = Date.UTC(2026, 0);
const define = (input: ScheduleInput, { sinceMs = SINCE, source = 'call' as const } = {}) =>
  defineSchedule('nightly', input, { sinceMs, source });
const nightly: ScheduleInput = { queue: 'q', cron: '30 2 * * *' };

const INPUTS: readonly ScheduleInput[] = [
  nightly,
  { queue: 'q', every: '90s', align: 'start' },
  {
    ...nightly,
    zone: 'America/New_York',
    start: '2026-03-08T04:30',
    end: '2026-12-01',
    dst: { gap: 'skip', overlap: 'both' },
  },
  {
    ...nightly,
    calendar: { skip: ['12-25'], outside: 'next' },
    overlap: 'replace',
    catchUp: { policy: 'all', limit: 3 },
  },
  { ...nightly, data: { text: 'ä\n', list: [1, null] }, job: 'report', attempts: 3, timeout: '5s', maxLateness: '1h' },
  { ...nightly, tags: ['a'], jitter: '10s', maxRuns: 5, paused: 'why' },
];

describe('a definition', () => {
  test.each(INPUTS)('is read as it was written: %j', (input) => {
    const definition = define(input);
    const read = decodeDefinition('nightly', encodeDefinition(definition));
    expect(read.schedule).toEqual(definition.schedule);
    expect(isSame(read, definition)).toBe(true);
    expect(encodeDefinition(read)).toBe(encodeDefinition(definition));
  });

  test('tells its bounds in UTC, so that any client can read them', () => {
    const { input } = define({ ...nightly, zone: 'Europe/Berlin', start: '2026-07-01T09:00' });
    expect(input.start).toBe('2026-07-01T07:00:00.000Z');
  });

  test('is the same whenever it was put, but not from another source or with another field', () => {
    expect(isSame(define(nightly), define(nightly, { sinceMs: SINCE + 5 }))).toBe(true);
    const file = defineSchedule('nightly', nightly, { sinceMs: SINCE, source: 'file' });
    expect(isSame(define(nightly), file)).toBe(false);
    expect(isSame(define(nightly), define({ ...nightly, maxRuns: 5 }))).toBe(false);
  });

  test.each<[ScheduleInput, boolean]>([
    [{ ...nightly, data: 1, tags: ['a'], jitter: '1s', overlap: 'skip', catchUp: 'all' }, true],
    [{ ...nightly, cron: '31 2 * * *' }, false],
    [{ ...nightly, zone: 'Asia/Tokyo' }, false],
    [{ ...nightly, dst: { gap: 'skip' } }, false],
    [{ ...nightly, calendar: { skip: ['12-25'] } }, false],
    [{ ...nightly, start: '2026-07-01T00:00Z' }, false],
    [{ ...nightly, paused: true }, false],
  ])('with %j fires alike: %s', (input, alike) => {
    expect(firesAlike(define(nightly), define(input))).toBe(alike);
  });

  test.each([
    ['nonsense', 'schedule nightly: its stored definition is not a JSON object'],
    ['7', 'schedule nightly: its stored definition is not a JSON object'],
    ['{}', 'schedule nightly: queue name is undefined'],
    ['{"schedule":7}', 'schedule nightly: a schedule is 7'],
    ['{"schedule":{"queue":"q","cron":"x"}}', 'schedule nightly: cron is "x"'],
  ])('that nobody can read is refused: %s', (content, told) => {
    expect(() => decodeDefinition('nightly', content)).toThrow(told);
  });

  test.each(['-1', '"x"', 'null'])('written by others with since %s holds since ever', (since) => {
    const content = `{"since":${since},"schedule":{"queue":"q","every":"1m"}}`;
    expect(decodeDefinition('n', content)).toMatchObject({ schedule: { sinceMs: 0 }, source: 'call' });
  });
});

describe('the job of an instant', () => {
  test('is named after schedule and instant, and tells both', () => {
    const atMs = Date.parse('2026-03-08T01:30:00Z');
    expect(fireId('nightly', atMs)).toBe('{schedule:nightly}2026-03-08T01:30:00Z');
    expect(firedBy(fireId('nightly', atMs))).toEqual({ schedule: 'nightly', atMs });
    expect(fireId('nightly', atMs + 7)).toBe('{schedule:nightly}2026-03-08T01:30:00.007Z');
    expect(fireId('nightly', atMs)).toContain(`{${routingOf('nightly')}}`);
  });

  test.each(['order-7', '{schedule:nightly}', '{schedule:nightly}soon', 'schedule:nightly'])('is not %j', (id) => {
    expect(firedBy(id)).toBeUndefined();
  });

  test('is due within the jitter, always by the same', () => {
    fc.assert(
      fc.property(
        fc.string({ minLength: 1 }),
        fc.integer({ min: 0, max: 4e12 }),
        fc.integer({ min: 0, max: 86_400_000 }),
        (name, atMs, jitterMs) => {
          const dueMs = dueOfFire({ name, jitterMs }, atMs);
          expect(dueMs).toBe(dueOfFire({ name, jitterMs }, atMs));
          expect(dueMs).toBeGreaterThanOrEqual(atMs);
          expect(dueMs).toBeLessThanOrEqual(atMs + jitterMs);
        },
      ),
    );
  });

  test('of neighbours lies apart', () => {
    const dueTimes = Array.from(
      { length: 100 },
      (_, at) => dueOfFire({ name: `s${at}`, jitterMs: 30_000 }, SINCE) - SINCE,
    );
    expect(new Set(dueTimes.map((due) => Math.floor(due / 3000))).size).toBe(10);
  });
});
