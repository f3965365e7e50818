/** What the pages say in words: times in the zone of whoever looks, with UTC beside it, and long ids. */
import { expect, test } from 'vitest';
import { utcBeside } from '../../src/dashboard/parts/clock.ts';
import { shortText } from '../../src/dashboard/parts/words.ts';

const atMs = Date.UTC(2026, 10, 22, 22, 14, 5);

test('UTC stands beside a local time that differs, with its date where that differs too', () => {
  expect(utcBeside(atMs, '2026-11-22 23:14:05 GMT+1')).toBe('22:14:05 UTC');
  expect(utcBeside(atMs, '2026-11-23 07:14:05 GMT+9')).toBe('2026-11-22 22:14:05 UTC');
  expect(utcBeside(atMs, '2026-11-22 22:14:05 UTC')).toBe('');
});

test('a due time beyond any calendar has none', () => {
  expect(utcBeside(1e17, '100000000000000000')).toBe('');
});

test('an id is shown whole up to 48 characters, and a longer one without its middle', () => {
  const uuid = '0192f0a4-7a6e-7c3d-9d5e-1f2a3b4c5d6e';
  expect([shortText(uuid), shortText('x'.repeat(48))]).toEqual([uuid, 'x'.repeat(48)]);
  expect(shortText(`order-${'7'.repeat(90)}-last`)).toBe(`order-${'7'.repeat(20)}…${'7'.repeat(13)}-last`);
  expect([...shortText('🙂'.repeat(60))]).toHaveLength(45);
});
