/** How many requests to one host are under way at a time. */
import { expect, test } from 'vitest';
import { createHostSlots } from '../../src/dispatch/host-slots.ts';

test('a host has as many slots as it may, and another host has its own', () => {
  const slots = createHostSlots(2);
  const first = slots.enter('a.example.com');
  expect(slots.enter('a.example.com')).toBeDefined();
  expect(slots.enter('a.example.com')).toBeUndefined();
  expect(slots.enter('b.example.com')).toBeDefined();
  first?.();
  expect(slots.enter('a.example.com')).toBeDefined();
  expect(slots.enter('a.example.com')).toBeUndefined();
});
