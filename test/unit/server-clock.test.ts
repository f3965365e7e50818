import { describe, expect, test } from 'vitest';
import { type Clock, systemClock } from '../../src/kernel/clock.ts';
import { createServerClock, createServers } from '../../src/redis/connection/server-clock.ts';

/** A server an hour ahead, a line with a delay each way, and time that passes only when it is told to. */
function setUp() {
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
  const server = createServerClock(redis, clock);
  const behindMs = () => serverMs() - server.latestMs();
  /** How far each reading is ahead of the server. */
  const aheadMs = () => [server.earliestMs(), server.nowMs(), server.latestMs()].map((ms) => ms - serverMs());
  return { state, pass, redis, clock, server, serverMs, behindMs, aheadMs, breakLine: () => (broken = true) };
}

describe('the clock that delays are counted from', () => {
  test('is never behind the server, and ahead by the shortest way there', async () => {
    const { state, server, behindMs } = setUp();
    state.there = [40, 3, 20];
    await server.measure();
    expect(behindMs()).toBeCloseTo(-3, 3);
  });

  test('is not led astray by a slow way back', async () => {
    const { state, server, behindMs } = setUp();
    state.back = 500;
    await server.measure();
    expect(behindMs()).toBeCloseTo(-1, 3);
  });

  test('is used without waiting while it is fresh, and measured beside after 30 s', async () => {
    const { state, pass, server } = setUp();
    await server.measure();
    pass(29_000);
    expect(server.settle()).toBeUndefined();
    expect(state.calls).toBe(3);
    pass(2000);
    expect(server.settle()).toBeUndefined();
    await expect.poll(() => state.calls).toBe(6);
  });

  test('is waited for after a long pause', async () => {
    const { state, pass, server, behindMs } = setUp();
    await server.measure();
    pass(3_600_000);
    state.aheadMs += 5000;
    await server.settle();
    expect(behindMs()).toBeCloseTo(-1, 3);
    expect(server.settle()).toBeUndefined();
  });

  test('is waited for when this machine was suspended, because its monotonic clock stood still', async () => {
    const { state, server, behindMs } = setUp();
    await server.measure();
    state.wallMs += 60_000;
    expect(behindMs()).toBeGreaterThan(59_000);
    await server.settle();
    expect(behindMs()).toBeCloseTo(-1, 3);
  });

  test('is waited for when another primary may answer', async () => {
    const { state, server, behindMs } = setUp();
    await server.measure();
    state.aheadMs += 700;
    server.doubt();
    await server.settle();
    expect(behindMs()).toBeCloseTo(-1, 3);
  });

  test('is measured once for all who wait', async () => {
    const { state, pass, server } = setUp();
    await server.measure();
    pass(3_600_000);
    await Promise.all([server.settle(), server.settle(), server.settle()]);
    expect(state.calls).toBe(6);
  });

  test('stays as it was when Redis does not answer, and is not asked for again at once', async () => {
    const { state, pass, server, behindMs, breakLine } = setUp();
    await server.measure();
    breakLine();
    pass(3_600_000);
    await server.settle();
    expect(behindMs()).toBeCloseTo(-1, 3);
    expect(server.settle()).toBeUndefined();
    expect(state.calls).toBe(4);
  });
});

describe('the clock of the server', () => {
  test('is that of this machine before anything was heard of it', () => {
    const { state, server } = setUp();
    expect(server.nowMs()).toBe(state.wallMs);
    expect(server.latestMs(state.monotonicMs - 7)).toBe(state.wallMs - 7);
  });

  test('is wrong by at most half of the shortest round trip, and between its edges', async () => {
    const { state, server, aheadMs } = setUp();
    state.there = [40, 3, 20];
    state.back = 9;
    for (const _ of state.there) await server.sample();
    const [earliest = 0, now = 0, latest = 0] = aheadMs();
    expect(earliest).toBeCloseTo(-9, 3);
    expect(latest).toBeCloseTo(3, 3);
    expect(now).toBeCloseTo(-3, 3);
    expect(Math.abs(now)).toBeLessThanOrEqual(12 / 2);
  });

  test('is narrowed by samples that were quick in different directions', async () => {
    const { state, server, aheadMs } = setUp();
    state.there = [30, 1, 30];
    await server.sample();
    state.back = 30;
    await server.sample();
    for (const ms of aheadMs()) expect(Math.abs(ms)).toBeLessThanOrEqual(1.001);
  });

  test.each([-5000, 5000, 40])('that was set by %i ms is followed from the next sample on', async (ms) => {
    const { state, server, aheadMs } = setUp();
    await server.measure();
    state.aheadMs += ms;
    state.there = [10, 10, 10];
    await server.sample();
    expect(aheadMs().map(Math.round)).toEqual([-1, 5, 10]);
  });

  test('is not told by what is old, because clocks drift', async () => {
    const { state, pass, server, aheadMs } = setUp();
    await server.sample();
    pass(31_000);
    state.there = [20, 20, 20];
    await server.sample();
    expect(aheadMs()[2]).toBeCloseTo(20, 3);
  });

  test('is learnt from answers that have whole milliseconds of it, and never ahead nor behind then', async () => {
    const { state, server, serverMs, aheadMs, pass } = setUp();
    state.wallMs += 0.9;
    const sentMs = state.monotonicMs;
    pass(2);
    const at = Math.floor(serverMs());
    pass(1);
    server.saw({ sentMs, receivedMs: state.monotonicMs, serverMs: at });
    const [earliest = 0, now = 0, latest = 0] = aheadMs();
    expect(earliest).toBeLessThanOrEqual(0);
    expect(latest).toBeGreaterThanOrEqual(0);
    expect(Math.abs(now)).toBeLessThanOrEqual(2);
  });

  test('does not change when Redis does not answer', async () => {
    const { server, aheadMs, breakLine } = setUp();
    await server.measure();
    const before = aheadMs();
    breakLine();
    await expect(server.sample()).rejects.toThrow('closed');
    expect(aheadMs()).toEqual(before);
  });

  test('is one for all partitions of one primary', () => {
    const { redis, clock } = setUp();
    const serverOf = createServers(redis, clock);
    expect(serverOf()).toBe(serverOf());
  });
});
