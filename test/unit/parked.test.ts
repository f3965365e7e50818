/** How many jobs wait for a worker that can read them. */
import { expect, it } from 'vitest';
import { createEmitter } from '../../src/job/emitter.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import { createParked } from '../../src/worker/run/parked.ts';

function setUp() {
  let timers: { readonly ms: number; readonly ring: () => void }[] = [];
  const timer = (ms: number, ring: () => void) => {
    const one = { ms, ring };
    timers.push(one);
    return () => {
      timers = timers.filter((other) => other !== one);
    };
  };
  const events = createEmitter();
  const told: number[] = [];
  let parked = 0;
  events.on('parked.waiting', ({ waiting }) => told.push(waiting));
  events.on('jobs.parked', ({ count }) => {
    parked += count;
  });
  return {
    ...createParked({ queue: 'q', clock: { ...systemClock, timer }, events }),
    told,
    count: () => parked,
    armed: () => timers.map(({ ms }) => ms),
    /** The oldest timer rings. */
    ring: () => timers.shift()?.ring(),
  };
}

it('a job that was put off waits for as long as that, and then counts where it comes to next', () => {
  const { saw, told, count, armed, ring } = setUp();
  saw(0, 3);
  saw(1, 2);
  saw(1, 0);
  expect([told, count(), armed()]).toEqual([[3, 5], 5, [4000, 4000]]);
  ring();
  ring();
  expect(told).toEqual([3, 5, 2, 0]);
});

it('a worker that stopped has none that wait, and leaves no timer', () => {
  const { saw, stop, told, count, armed } = setUp();
  saw(0, 3);
  stop();
  saw(0, 1);
  expect([told, count(), armed()]).toEqual([[3, 0], 4, []]);
  stop();
  expect(told).toEqual([3, 0]);
});
