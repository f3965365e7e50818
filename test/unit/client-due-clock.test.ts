import { describe, expect, test } from 'vitest';
import { createDueClock } from '../../src/client/due-clock.ts';
import { type Clock, systemClock } from '../../src/core/clock.ts';

/** A server an hour ahead, a line with a delay each way, and time that passes only when it is told to. */
function world() {
  const state = {
    monotonicMs: 5000,
    wallMs: 1_700_000_000_000,
    aheadMs: 3_600_000,
    there: [1, 1, 1],
    back: 1,
    calls: 0,
  };
  const pass = (ms: number) => {
    state.monotonicMs += ms;
    state.wallMs += ms;
  };
  const clock: Clock = { ...systemClock, wallMs: () => state.wallMs, monotonicMs: () => state.monotonicMs };
  const serverMs = () => state.wallMs + state.aheadMs;
  let broken = false;
  const redis = {
    async time() {
      state.calls += 1;
      await Promise.resolve();
      if (broken) throw new Error('Connection is closed.');
      pass(state.there[(state.calls - 1) % 3] ?? 0);
      const atMs = serverMs();
      pass(state.back);
      return [String(Math.floor(atMs / 1000)), String((atMs % 1000) * 1000)];
    },
  };
  const dueClock = createDueClock(redis, clock);
  const behindMs = () => serverMs() - dueClock.epochMs(state.monotonicMs);
  return { state, pass, dueClock, behindMs, breakLine: () => (broken = true) };
}

describe('the clock that due times are counted from', () => {
  test('is never behind the server, and ahead by the shortest way there', async () => {
    const { state, dueClock, behindMs } = world();
    state.there = [40, 3, 20];
    await dueClock.measure();
    expect(behindMs()).toBeCloseTo(-3, 3);
  });

  test('is not led astray by a slow way back', async () => {
    const { state, dueClock, behindMs } = world();
    state.back = 500;
    await dueClock.measure();
    expect(behindMs()).toBeCloseTo(-1, 3);
  });

  test('is used without waiting while it is fresh, and measured beside after 30 s', async () => {
    const { state, pass, dueClock } = world();
    await dueClock.measure();
    pass(29_000);
    expect(dueClock.settle()).toBeUndefined();
    expect(state.calls).toBe(3);
    pass(2000);
    expect(dueClock.settle()).toBeUndefined();
    await expect.poll(() => state.calls).toBe(6);
  });

  test('is waited for after a long pause', async () => {
    const { state, pass, dueClock, behindMs } = world();
    await dueClock.measure();
    pass(3_600_000);
    state.aheadMs += 5000;
    await dueClock.settle();
    expect(behindMs()).toBeCloseTo(-1, 3);
    expect(dueClock.settle()).toBeUndefined();
  });

  test('is waited for when this machine was suspended, because its monotonic clock stood still', async () => {
    const { state, dueClock, behindMs } = world();
    await dueClock.measure();
    state.wallMs += 60_000;
    expect(behindMs()).toBeGreaterThan(59_000);
    await dueClock.settle();
    expect(behindMs()).toBeCloseTo(-1, 3);
  });

  test('is waited for when another primary may answer', async () => {
    const { state, dueClock, behindMs } = world();
    await dueClock.measure();
    state.aheadMs += 700;
    dueClock.doubt();
    await dueClock.settle();
    expect(behindMs()).toBeCloseTo(-1, 3);
  });

  test('is measured once for all who wait', async () => {
    const { state, pass, dueClock } = world();
    await dueClock.measure();
    pass(3_600_000);
    await Promise.all([dueClock.settle(), dueClock.settle(), dueClock.settle()]);
    expect(state.calls).toBe(6);
  });

  test('stays as it was when Redis does not answer, and is not asked for again at once', async () => {
    const { state, pass, dueClock, behindMs, breakLine } = world();
    await dueClock.measure();
    breakLine();
    pass(3_600_000);
    await dueClock.settle();
    expect(behindMs()).toBeCloseTo(-1, 3);
    expect(dueClock.settle()).toBeUndefined();
    expect(state.calls).toBe(4);
  });
});
