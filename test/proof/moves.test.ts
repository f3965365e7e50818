/**
 * The table of transitions says no more than happens: for each row there is a list of commands that brings a job from
 * the one state to the other. That it says no less is checked after every command of the model test.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { repair } from '../../src/redis/repair/repair.ts';
import { arm, fire, firedOf, type ScheduleFire } from '../../src/redis/scripts/schedules.ts';
import { takeSnapshot } from '../support/invariants.ts';
import { keptIn, parse } from '../support/model-kept.ts';
import { movesOf, rows } from '../support/model-moves.ts';
import { type Bench, startBench } from '../support/model-run.ts';
import type { World } from '../support/model-world.ts';
import { item, T0 } from '../support/partition.ts';

let bench: Bench;
beforeAll(async () => {
  bench = await startBench();
});
afterAll(() => bench.stop());

const kept = keptIn('test/proof/moves.json');
/**
 * The model has neither damage nor schedules, and neither a broadcast queue nor limits: `cast.test.ts` shows the rows of the one,
 * `test/redis/gates.test.ts` those of the other. Its debounced jobs have lists of their own; `test/redis/debounce.test.ts` shows their rows.
 * No leader of it ends late jobs: `test/redis/expire.test.ts` has one.
 */
const ELSEWHERE = [
  ...['ready repair scheduled', 'running repair scheduled', 'none fire scheduled'],
  ...['ready schedule ready', 'running schedule running'],
  ...['scheduled expire expired', 'scheduled expire dead', 'scheduled expire none'],
  // Nor does it hand anything out ahead: `test/redis/ahead.test.ts` does.
  ...['scheduled start running', 'scheduled start cancelled', 'scheduled start none'],
  ...['none commit scheduled', 'ready complete scheduled', 'ready commit scheduled', 'ready bury scheduled'],
  ...[...rows].filter((row) => / cast |\bwaiting\b| limit | mend-gates | (retry|defer|release) ready/.test(row)),
];

test('every row of the table has its list, once', () => {
  expect([...kept.map(({ title }) => title), ...ELSEWHERE].sort()).toEqual([...rows].sort());
});

for (const { title, commands } of kept) {
  test(title, async () => {
    expect([...(await bench.run(commands)).moves]).toContain(title);
  });
}

async function movesDuring({ redis, ref }: World, verb: string, act: () => Promise<unknown>) {
  const before = await takeSnapshot(redis, ref.keys);
  await act();
  return movesOf(verb, { before, after: await takeSnapshot(redis, ref.keys) });
}

test('a job that is nowhere is repaired: ready or running by its record alone, scheduled afterwards', async () => {
  const world = await bench.reach(
    parse('elect 0 0 0, schedule 0 0 0, schedule 1 0 0, promote 0 0 0, read 0 0 0, start 0 0 0'),
  );
  const { redis, ref } = world;
  await redis.del(ref.keys.ready);
  const damages = ['j:a', 'j:b'].map((name) => ({ kind: 'orphan', name, detail: '' }) as const);
  const moves = await movesDuring(world, 'repair', () => repair(redis, ref, damages, { nowMs: T0 }));
  expect(moves).toEqual(['ready repair scheduled', 'running repair scheduled']);
});

test('an instant of a schedule that is due becomes a job', async () => {
  const world = await bench.reach(parse('elect 0 0 0'));
  const { redis, ref, terms } = world;
  await arm(redis, ref, 'nightly');
  const [state] = await firedOf(redis, ref, ['nightly']);
  const schedule: ScheduleFire = {
    name: 'nightly',
    state: state?.text ?? '',
    reachedMs: T0,
    lookMs: undefined,
    overlap: 'allow',
    items: [item('a')],
  };
  const moves = await movesDuring(world, 'fire', () =>
    fire(redis, ref, { term: terms[0] ?? '', schedules: [schedule], nowMs: T0 }),
  );
  expect(moves).toEqual(['none fire scheduled']);
});
