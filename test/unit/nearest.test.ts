/** Which name a misspelt one meant. */
import { expect, test } from 'vitest';
import { hintOf, nearest } from '../../src/kernel/checks.ts';

const QUEUES = ['emails', 'orders', 'payments'];

test.each([
  ['email', 'emails'],
  ['emial', 'emails'],
  ['EMAILS', 'emails'],
  ['ordres', 'orders'],
  ['paymets', 'payments'],
  ['', undefined],
  ['reports', undefined],
  ['emergencies', undefined],
])('%j is most like %j', (name, expected) => {
  expect(nearest(name, QUEUES)).toBe(expected);
});

test('of two that are as near the first is taken, and without any there is no hint', () => {
  expect(nearest('b', ['ab', 'cb'])).toBe('ab');
  expect([hintOf('emial', QUEUES), hintOf('reports', QUEUES)]).toEqual(['; did you mean emails?', '']);
});
