/** When connections dial again: not at once, not together, and not for ever faster. */
import { describe, expect, test } from 'vitest';
import { CONNECT_GAP_MS, createDialing, createTurns } from '../../src/redis/connection/dialing.ts';

/** A connection whose tries all fail at once, on a clock that only its waits move. */
function failing(random: () => number) {
  let nowMs = 1_000_000;
  const clock = { monotonicMs: () => nowMs };
  const dialing = createDialing({ clock, random, turns: createTurns() });
  return {
    ...dialing,
    pass: (ms: number) => {
      nowMs += ms;
    },
    tries: (count: number) =>
      Array.from({ length: count }, () => {
        const waitMs = dialing.down();
        nowMs += waitMs;
        return waitMs;
      }),
  };
}

describe('one connection', () => {
  test('waits 100 ms at least, and at most so long that work resumes within 5 s', () => {
    const soonest = failing(() => 0).tries(12);
    const latest = failing(() => 0.999).tries(12);
    expect(Math.min(...soonest)).toBeGreaterThanOrEqual(100);
    expect(Math.max(...soonest)).toBeLessThanOrEqual(100 + CONNECT_GAP_MS);
    expect(latest.slice(0, 4).map((ms) => Math.round(ms / 100))).toEqual([3, 5, 9, 17]);
    expect(Math.max(...latest)).toBeLessThanOrEqual(2500 + CONNECT_GAP_MS);
  });

  test('that comes up and falls again is not dialled faster than one that stays down', () => {
    const flapping = failing(() => 1);
    flapping.tries(6);
    flapping.up();
    flapping.pass(1000);
    expect(flapping.down()).toBeGreaterThan(2000);
  });

  test('that was up for a while makes a fresh start', () => {
    const lived = failing(() => 1);
    lived.tries(6);
    lived.up();
    lived.pass(5000);
    expect(lived.down()).toBeLessThanOrEqual(300 + CONNECT_GAP_MS);
  });
});

test('a thousand connections that are cut at one moment dial one after the other', () => {
  const turns = createTurns();
  const clock = { monotonicMs: () => 5000 };
  const waits = Array.from({ length: 1000 }, () => createDialing({ clock, turns, random: Math.random }).down());
  const sorted = waits.sort((a, b) => a - b);
  const gaps = sorted.slice(1).map((ms, at) => ms - (sorted[at] ?? 0));
  expect(Math.min(...gaps)).toBeGreaterThanOrEqual(CONNECT_GAP_MS);
});

test('one that waits long holds up nobody who wants to try sooner', () => {
  const turns = createTurns();
  expect(turns.take(3000, 0)).toBe(3000);
  expect(turns.take(100, 0)).toBe(100);
  expect(turns.take(100, 0)).toBe(120);
});
