/** What is remembered of a recurrence is what would have been computed. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { atOnce } from '../../src/kernel/steps.ts';
import { parseCalendar } from '../../src/time/calendar.ts';
import { parseCron } from '../../src/time/cron.ts';
import { nextFireOf as nextFireOfIn, type Recurrence } from '../../src/time/recurrence.ts';
import { DEFAULT_DST, parseZone } from '../../src/time/zone.ts';
import { nextFire } from '../support/instants.ts';

const NOW = Date.UTC(2026, 9, 31, 22);
const DAY_MS = 86_400_000;
const zone = parseZone('America/New_York');
const nextFireOf = (recurrence: Recurrence, afterMs: number) => atOnce(nextFireOfIn(recurrence, afterMs));

const RECURRENCES: readonly (() => Recurrence)[] = [
  () => ({ rule: { cron: parseCron('30 1 * * *', 'a') }, zone, dst: DEFAULT_DST }),
  () => ({ rule: { cron: parseCron('*/20 1,2 * * *', 'a') }, zone, dst: { gap: 'skip', overlap: 'both' } }),
  () => ({ rule: { everyMs: 7_000_000, anchorMs: 5 }, zone, dst: DEFAULT_DST, startMs: NOW + 3, endMs: NOW + DAY_MS }),
  () => ({
    rule: { cron: parseCron('0 * * * *', 'a') },
    zone,
    dst: DEFAULT_DST,
    calendar: parseCalendar({ hours: { 'mon-fri': '09:00-17:00' }, outside: 'next' }),
  }),
];

test('whatever is asked, in any order, the answer is that of the rule', () => {
  const moments = fc.array(fc.integer({ min: NOW - 2 * DAY_MS, max: NOW + 5 * DAY_MS }), { maxLength: 40 });
  fc.assert(
    fc.property(fc.constantFrom(...RECURRENCES), moments, (make, asked) => {
      const recurrence = make();
      for (const atMs of asked) expect(nextFireOf(recurrence, atMs)).toBe(nextFire(recurrence, atMs));
    }),
  );
});

test('the instant itself and the moment before it have different answers', () => {
  const hourly: Recurrence = { rule: { everyMs: 3_600_000, anchorMs: 0 }, zone, dst: DEFAULT_DST };
  expect([NOW - 1, NOW, NOW - 1, NOW + 3_600_000].map((atMs) => nextFireOf(hourly, atMs))).toEqual([
    ...[NOW, NOW + 3_600_000, NOW, NOW + 7_200_000],
  ]);
});
