/** Rules of schedules in words, and clock changes, as the dashboard tells them. */
import { describe, expect, test } from 'vitest';
import { ruleText } from '../../src/dashboard/pages/schedules/rule.ts';
import { nextClockChange } from '../../src/dashboard/pages/schedules/zones.ts';

describe('a rule in words', () => {
  test.each([
    ['30 2 * * *', 'every day at 02:30'],
    ['0 9,17 * * *', 'every day at 09:00, 17:00'],
    ['0 17 * * 1-5', 'Mon – Fri at 17:00'],
    ['15 3 * * SUN,3', 'Sun, Wed at 03:15'],
    ['*/15 9-17 * * 1-5', 'every 15 min, 09:00 to 17:59, Mon – Fri'],
    ['0 * * * *', 'every hour'],
    ['5 * * * *', 'every hour at :05'],
    ['0 */6 * * *', 'every 6 h'],
    ['30 */6 * * *', 'every 6 h at :30'],
    ['0 9-17 * * *', 'every hour, 09:00 to 17:00'],
    ['0 0 1 * *', 'on day 1 of each month at 00:00'],
    ['@yearly', '1 January at 00:00'],
  ])('says %s as people do', (cron, text) => {
    expect(ruleText({ cron })).toBe(text);
  });

  // A step that does not divide the hour or the day is no distance between runs.
  test.each([
    '*/45 * * * *',
    '0 */7 * * *',
    'H H * * *',
    '0 0 L * *',
    '0 0 1 * 5',
    '*/7 1,2 * * *',
    '0 30 2 * * *',
    '0 0 * * FRI#2',
    '',
  ])('leaves %s to speak for itself', (cron) => {
    expect(ruleText({ cron })).toBeUndefined();
  });

  test('says how often, from a text and from ms', () => {
    expect(ruleText({ every: '15m' })).toBe('every 15 min');
    expect(ruleText({ every: 90_000 })).toBe('every 90 s');
  });
});

describe('the next clock change', () => {
  const after = Date.UTC(2026, 10, 26);
  const zoned = (zones: readonly string[]) => nextClockChange(zones, after, zones[0]);

  test('is the minute at which a zone goes forward, and by how much', () => {
    expect(zoned(['Europe/Berlin'])).toEqual({
      atMs: Date.UTC(2027, 2, 28, 1),
      byMs: 3_600_000,
      zone: undefined,
    });
  });

  test('is that of another zone where the first has none, and none where none has', () => {
    expect(zoned(['UTC', 'America/New_York'])).toEqual({
      atMs: Date.UTC(2027, 2, 14, 7),
      byMs: 3_600_000,
      zone: 'America/New_York',
    });
    expect(zoned(['UTC', 'Asia/Tokyo', 'Nowhere/There'])).toBeUndefined();
  });
});
