/** The one shape of everything that runs for long. */
import { describe, expect, it, vi } from 'vitest';
import { createEmitter } from '../../src/job/events.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import { createLoop, createWaiter, type Idle, idle } from '../../src/kernel/loop.ts';

function loopOf(pass: () => Promise<number>, onError?: (error: unknown) => void | Promise<void>) {
  const events = createEmitter();
  const said: string[] = [];
  events.on('redis.away', ({ who, why }) => said.push(`away ${who}: ${why}`));
  events.on('redis.back', ({ who }) => said.push(`back ${who}`));
  const random = () => 0;
  const loop = createLoop({ who: 'it', pass, clock: systemClock, events, random, ...(onError ? { onError } : {}) });
  return { ...loop, said };
}

const until = (read: () => unknown) => expect.poll(read, { interval: 2 });

it('passes follow each other after the time each asked for, until it is stopped', async () => {
  let passes = 0;
  const loop = loopOf(async () => {
    passes += 1;
    return passes < 5 ? 1 : 60_000;
  });
  loop.start();
  await until(() => passes).toBe(5);
  await loop.stop();
  expect(passes).toBe(5);
});

it('a wait of nothing still gives the event loop its turn', async () => {
  let passes = 0;
  const loop = loopOf(async () => {
    passes += 1;
    return 0;
  });
  loop.start();
  await new Promise((resolve) => setTimeout(resolve, 5));
  await loop.stop();
  expect(passes).toBeGreaterThan(1);
});

it('a wake cuts a wait short', async () => {
  let passes = 0;
  const loop = loopOf(async () => {
    passes += 1;
    return 60_000;
  });
  loop.start();
  await until(() => passes).toBe(1);
  loop.wake();
  await until(() => passes).toBe(2);
  await loop.stop();
});

it('a wake during a pass is remembered, and several are one', async () => {
  let passes = 0;
  let open: () => void = () => undefined;
  const loop = loopOf(async () => {
    passes += 1;
    if (passes === 1) await new Promise<void>((resolve) => (open = resolve));
    return 60_000;
  });
  loop.start();
  loop.wake();
  loop.wake();
  open();
  await until(() => passes).toBe(2);
  await new Promise((resolve) => setImmediate(resolve));
  expect(passes).toBe(2);
  await loop.stop();
});

it('a stop waits for the pass that is under way, also the second stop', async () => {
  let open: () => void = () => undefined;
  let ended = false;
  const loop = loopOf(async () => {
    await new Promise<void>((resolve) => (open = resolve));
    ended = true;
    return 0;
  });
  loop.start();
  const stops = Promise.all([loop.stop(), loop.stop()]);
  expect(ended).toBe(false);
  open();
  await stops;
  expect(ended).toBe(true);
});

it('a loop that was stopped before its start never passes, and a second start is the first', async () => {
  const pass = vi.fn(async () => 60_000);
  const dead = loopOf(pass);
  await dead.stop();
  dead.start();
  expect(pass).not.toHaveBeenCalled();
  const loop = loopOf(pass);
  loop.start();
  loop.start();
  await loop.stop();
  expect(pass).toHaveBeenCalledTimes(1);
});

it('an outage is reported once when it comes and once when it goes, however many passes fail', async () => {
  let passes = 0;
  const repaired: unknown[] = [];
  const loop = loopOf(
    async () => {
      passes += 1;
      if (passes <= 3) throw new Error(`rain ${passes}`);
      return 60_000;
    },
    (error) => {
      repaired.push(error instanceof Error && error.message);
      throw new Error('repairing failed too');
    },
  );
  loop.start();
  await until(() => passes).toBe(4);
  await loop.stop();
  expect(loop.said).toEqual(['away it: rain 1', 'back it']);
  expect(repaired).toEqual(['rain 1', 'rain 2', 'rain 3']);
});

describe('a pass that asked Redis nothing', () => {
  /** Fails once and asks nothing any more. */
  function idling(probe?: () => Promise<unknown>) {
    const events = createEmitter();
    const said: string[] = [];
    let passes = 0;
    events.on('redis.away', ({ why }) => said.push(`away: ${why}`));
    events.on('redis.back', ({ stopped }) => said.push(stopped ? 'stopped' : 'back'));
    const pass = async (): Promise<number | Idle> => {
      passes += 1;
      if (passes === 1) throw new Error('reset');
      return idle(1);
    };
    const parts = { who: 'it', pass, clock: systemClock, events, pauseAfter: () => 1 };
    const loop = createLoop(probe ? { ...parts, probe } : parts);
    loop.start();
    return { loop, said, passes: () => passes };
  }

  it('does not tell that Redis is back', async () => {
    const { loop, said, passes } = idling();
    await expect.poll(passes).toBeGreaterThan(5);
    expect(said).toEqual(['away: reset']);
    await loop.stop();
    expect(said).toEqual(['away: reset', 'stopped']);
  });

  it('has Redis asked for a sign of life, until it answers', async () => {
    let asked = 0;
    const { loop, said, passes } = idling(async () => {
      asked += 1;
      if (asked < 3) throw new Error('still away');
    });
    await expect.poll(() => said).toEqual(['away: reset', 'back']);
    const before = passes();
    await expect.poll(passes).toBeGreaterThan(before + 5);
    expect(asked).toBe(3);
    await loop.stop();
  });

  it('is progress, for nobody has to lead or to run anything', async () => {
    const { loop, passes } = idling();
    const progressMs = loop.lastProgressMs();
    await expect.poll(passes).toBeGreaterThan(2);
    await expect.poll(() => loop.lastProgressMs() > progressMs).toBe(true);
    await loop.stop();
  });
});

it('an answer is told after a silence, and another answer after that, not more often than every few seconds', async () => {
  let nowMs = 0;
  const replies = ['connect ECONNREFUSED', 'Connection is closed.', 'LOADING data', 'LOADING more', 'WRONGTYPE key'];
  const events = createEmitter();
  const said: string[] = [];
  events.on('redis.away', ({ why, answered }) => said.push(`${why} ${answered}`));
  events.on('redis.back', ({ awayMs, stopped }) => said.push(`back ${awayMs} ${stopped}`));
  const pass = async () => {
    nowMs += 6000;
    const message = replies.shift();
    if (message === undefined) return 60_000;
    throw Object.assign(new Error(message), /^[A-Z]{2}/.test(message) ? { name: 'ReplyError' } : {});
  };
  const clock = { ...systemClock, monotonicMs: () => nowMs };
  const loop = createLoop({ who: 'it', pass, clock, events, pauseAfter: () => 1 });
  loop.start();
  const told = ['connect ECONNREFUSED false', 'LOADING data true', 'WRONGTYPE key true', 'back 30000 undefined'];
  await until(() => said).toEqual(told);
  await loop.stop();
  expect(said).toEqual(told);
});

it('a loop that stops in an outage says so, and not that Redis is back', async () => {
  const events = createEmitter();
  const stopped: unknown[] = [];
  events.on('redis.back', (e) => stopped.push(e.stopped));
  const pass = () => Promise.reject(new Error('away'));
  const loop = createLoop({ who: 'it', pass, clock: systemClock, events });
  loop.start();
  await loop.stop();
  expect(stopped).toEqual([true]);
});

it('wakes do not make a failing loop a hot one', async () => {
  let passes = 0;
  const pass = () => {
    passes += 1;
    return Promise.reject(new Error('no'));
  };
  const loop = createLoop({ who: 'it', pass, clock: systemClock, events: createEmitter(), pauseAfter: () => 60_000 });
  loop.start();
  const waking = setInterval(loop.wake, 1);
  await new Promise((resolve) => setTimeout(resolve, 400));
  clearInterval(waking);
  await loop.stop();
  expect(passes).toBeLessThanOrEqual(3);
});

it('a failed pass is a turn and no progress', async () => {
  const loop = loopOf(() => Promise.reject(new Error('away')));
  const progressMs = loop.lastProgressMs();
  const turnMs = loop.lastTurnMs();
  loop.start();
  await until(() => loop.lastTurnMs() > turnMs).toBe(true);
  await loop.stop();
  expect(loop.lastProgressMs()).toBe(progressMs);
});

it('a pass that throws before its first await is a failed pass', async () => {
  const loop = loopOf(() => {
    throw new Error('at once');
  });
  loop.start();
  await until(() => loop.said).toEqual(['away it: at once']);
  await loop.stop();
});

it('a waiter that was woken before its wait does not wait, once', async () => {
  const waiter = createWaiter();
  waiter.wake();
  await waiter.wait(60_000);
  const second = waiter.wait(60_000);
  waiter.wake();
  await second;
});
