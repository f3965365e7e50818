/** Waits of any length: Node's own timers fire at once above 24.8 days. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { systemClock } from '../../src/kernel/clock.ts';

const DAY_MS = 86_400_000;

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

test('a timer of 60 days rings after 60 days and not before', async () => {
  let rung = 0;
  systemClock.timer(60 * DAY_MS, () => {
    rung += 1;
  });
  await vi.advanceTimersByTimeAsync(60 * DAY_MS - 1);
  expect(rung).toBe(0);
  await vi.advanceTimersByTimeAsync(1);
  expect(rung).toBe(1);
  expect(vi.getTimerCount()).toBe(0);
});

test('a timer that is called off after 30 of 60 days never rings, and leaves nothing behind', async () => {
  let rung = 0;
  const callOff = systemClock.timer(60 * DAY_MS, () => {
    rung += 1;
  });
  await vi.advanceTimersByTimeAsync(30 * DAY_MS);
  callOff();
  expect(vi.getTimerCount()).toBe(0);
  await vi.advanceTimersByTimeAsync(60 * DAY_MS);
  expect(rung).toBe(0);
});

test('a sleep of 60 days lasts so long, and can be cut short after 30', async () => {
  const ended: [string, boolean][] = [];
  const cut = new AbortController();
  void systemClock.sleep(60 * DAY_MS).then((whole) => ended.push(['long', whole]));
  void systemClock.sleep(60 * DAY_MS, cut.signal).then((whole) => ended.push(['cut', whole]));
  await vi.advanceTimersByTimeAsync(30 * DAY_MS);
  expect(ended).toEqual([]);
  cut.abort();
  await vi.advanceTimersByTimeAsync(30 * DAY_MS);
  expect(ended).toEqual([
    ['cut', false],
    ['long', true],
  ]);
});

test('a wait of nothing, or of less, ends at once', async () => {
  const rung: number[] = [];
  for (const ms of [0, -5]) systemClock.timer(ms, () => void rung.push(ms));
  await vi.advanceTimersByTimeAsync(1);
  expect(rung).toEqual([0, -5]);
});
