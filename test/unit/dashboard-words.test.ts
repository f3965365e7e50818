/** Times as the pages tell them: in the zone of whoever looks, with UTC beside it. */
import { expect, test } from 'vitest';
import { utcBeside } from '../../src/dashboard/parts/words.ts';

const atMs = Date.UTC(2026, 10, 22, 22, 14, 5);

test('UTC stands beside a local time that differs, with its date where that differs too', () => {
  expect(utcBeside(atMs, '2026-11-22 23:14:05 GMT+1')).toBe('22:14:05 UTC');
  expect(utcBeside(atMs, '2026-11-23 07:14:05 GMT+9')).toBe('2026-11-22 22:14:05 UTC');
  expect(utcBeside(atMs, '2026-11-22 22:14:05 UTC')).toBe('');
});

test('a due time beyond any calendar has none', () => {
  expect(utcBeside(1e17, '100000000000000000')).toBe('');
});
