/** Long work leaves the event loop to others, however much of it there is at once. */
import { expect, test } from 'vitest';
import { atOnce, createTurns, inTurns, oneStep, type Steps, within } from '../../src/kernel/steps.ts';

const STEP_MS = 5;

/** Turns of an event loop whose time passes with each look at the clock; `longest` is the time that one turn took. */
function loop() {
  let [nowMs, turns, beganMs, longest] = [0, 0, 0, 0];
  const soon = (callback: () => void) =>
    void setImmediate(() => {
      longest = Math.max(longest, nowMs - beganMs);
      [turns, beganMs] = [turns + 1, nowMs];
      callback();
    });
  const line = createTurns({ nowMs: () => (nowMs += STEP_MS), soon });
  return { line, turns: () => turns, longestMs: () => longest };
}

function* work(steps: number): Steps<number> {
  for (let step = 0; step < steps; step += 1) yield;
  return steps;
}

test('work that is long is cut into turns of the event loop', async () => {
  const { line, turns, longestMs } = loop();
  expect(await inTurns(work(1000), line)).toBe(1000);
  expect(turns()).toBeGreaterThan(200);
  expect(longestMs()).toBeLessThanOrEqual(50);
});

test('much of it at once has no longer turns: all share one slice', async () => {
  const { line, longestMs } = loop();
  const all = await Promise.all(Array.from({ length: 50 }, (_, at) => inTurns(work(10 + at), line)));
  expect(all).toEqual(Array.from({ length: 50 }, (_, at) => 10 + at));
  // Each of them looks at the clock once more before it waits.
  expect(longestMs()).toBeLessThanOrEqual(50 + 50 * STEP_MS);
});

test('others have their turn between', async () => {
  const { line } = loop();
  const seen: string[] = [];
  const tick = () => {
    if (seen.push('tick') < 3) setImmediate(tick);
  };
  setImmediate(tick);
  await inTurns(work(1000), line);
  expect(seen).toEqual(['tick', 'tick', 'tick']);
});

test('a budget ends it, and what is left of one is known', () => {
  const budget = { left: 10 };
  expect(atOnce(within(work(4), budget))).toBe(4);
  expect(budget.left).toBe(6);
  expect(atOnce(within(work(7), budget))).toBeUndefined();
  expect(atOnce(within(work(0), budget))).toBe(0);
});

test('what throws in a step throws where it is driven', async () => {
  const bad = () => oneStep(() => JSON.parse('{'));
  expect(() => atOnce(bad())).toThrow(SyntaxError);
  await expect(inTurns(bad())).rejects.toThrow(SyntaxError);
});
