/** What a leader decides is decided in steps, so that it can renew its lease between them. */
import { expect, test } from 'vitest';
import { createEmitter } from '../../src/job/events.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import { atOnce, type Steps, within } from '../../src/kernel/steps.ts';
import { FirePlanner } from '../../src/mover/schedules/fire-plan.ts';
import { partitionRef } from '../../src/redis/keys.ts';
import { decodeFired } from '../../src/schedule/progress.ts';
import { defineSchedule, encodeDefinition } from '../../src/schedule/text.ts';

const NOW = Date.UTC(2026, 5, 15, 12);

const planner = new FirePlanner({
  ref: partitionRef('t', { queue: 'q', partition: 0, layoutGeneration: 0 }),
  clock: systemClock,
  events: createEmitter(),
});

/** The longest time that nobody else had a turn, in looks at the rule. */
function stepsOf<T>(work: Steps<T>): { readonly found: T; readonly steps: number } {
  const budget = { left: 1_000_000 };
  const found = atOnce(within(work, budget));
  if (found === undefined) throw new Error('it took too many steps');
  return { found, steps: 1_000_000 - budget.left };
}

test('a rule that misses its working times is left between them, and one that fires is decided at once', () => {
  const halves = Array.from(
    { length: 24 },
    (_, hour) => `${String(hour).padStart(2, '0')}:00-${String(hour).padStart(2, '0')}:30`,
  );
  const of = (name: string, input: object) =>
    encodeDefinition(defineSchedule(name, { queue: 'q', ...input }, { sinceMs: NOW - 60_000, source: 'call' }));
  const look = (name: string) => ({ name, fired: decodeFired('0 0 0 - - 0'), nowMs: NOW });
  const never = stepsOf(
    planner.plan(look('never'), of('never', { cron: '* 30-59 * * * *', calendar: { hours: { 'mon-sun': halves } } })),
  );
  expect(never.steps).toBeGreaterThan(10_000);
  expect(never.found).toMatchObject({ fire: { items: [], lookMs: undefined } });
  const each = stepsOf(planner.plan(look('each'), of('each', { every: '1m' })));
  expect(each.steps).toBeLessThan(5);
  expect(each.found).toMatchObject({ fire: { lookMs: NOW + 60_000 }, atMs: [NOW] });
});
