/** The clock of delays: a later call is never behind an earlier one, also where the clock of Redis steps. */
import { expect, test } from 'vitest';
import { createSteadyNow } from '../../src/client/calls/steady-now.ts';

/** A clock of Redis that is ahead of the monotonic one by an offset, which a test sets. */
function stepping() {
  const server = { offsetMs: 1_700_000_000_000 };
  return { server, now: createSteadyNow((calledMs) => calledMs + server.offsetMs) };
}

test('follows the clock of Redis while that goes forward, also by a step', () => {
  const { server, now } = stepping();
  expect(now(10)).toBe(1_700_000_000_010);
  server.offsetMs += 3_600_000;
  expect(now(11)).toBe(1_700_003_600_011);
});

test.each([0.25, 5, 60_000])('stands while the clock of Redis is %d ms back, and then goes on with it', (stepMs) => {
  const { server, now } = stepping();
  const before = now(0);
  server.offsetMs -= stepMs;
  expect(now(0)).toBe(before);
  expect(now(stepMs / 2)).toBe(before);
  expect(now(stepMs)).toBe(before);
  expect(now(stepMs + 1)).toBe(before + 1);
});

test('follows a clock of Redis that goes back by more than a minute: jobs do not wait until it is as late again', () => {
  const { server, now } = stepping();
  const before = now(0);
  server.offsetMs -= 60_001;
  expect(now(0)).toBe(before - 60_001);
  expect(now(7)).toBe(before - 60_001 + 7);
});

test('a call that is planned after a later one is not behind that, and moves nothing', () => {
  const { server, now } = stepping();
  const later = now(100);
  expect(now(40)).toBe(later - 60);
  server.offsetMs += 80;
  expect(now(40)).toBe(later);
  expect(now(100)).toBe(later + 80);
});
