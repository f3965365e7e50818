/**
 * A check that finds nothing may be blind. Here the scripts are broken on purpose, in every way on a list and one at a
 * time, and the model or the cut must notice each. `killers.json` holds the shortest lists that did so when a mutant was
 * new; without one random lists are tried.
 */
import { setImmediate } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { whenReady } from '../../src/redis/connection/connect.ts';
import { scriptOptions } from '../../src/redis/transitions/scripts.ts';
import { type List, lists } from '../support/model-commands.ts';
import { luaOf } from '../support/model-cut.ts';
import { cutList } from '../support/model-cutter.ts';
import { keptIn, parse } from '../support/model-kept.ts';
import { type Bench, startBench } from '../support/model-run.ts';
import { EQUIVALENT, type Mutant, mutants } from '../support/mutants.ts';
import { isSlice } from '../tiers.mjs';

let bench: Bench;
beforeAll(async () => {
  bench = await startBench();
});
afterAll(() => bench.stop());

const scenes: readonly List[] = keptIn('test/proof/scenes.json').map(({ commands }) => [
  ...parse('elect 0 0 0'),
  ...commands,
]);
const kept: readonly List[] = [...keptIn('test/proof/killers.json').map(({ commands }) => commands), ...scenes];
const random = lists({ seed: 1, runs: 100, length: 40 });

/** Commands that call a script of another name. */
const CALLED_BY: Readonly<Record<string, readonly string[]>> = {
  schedule: ['schedule', 'again'],
  start: ['start', 'adopt'],
};
/** The lists that speak of a script or part; what noticed its last mutant comes first, because it often notices the next. */
const speaking = new Map<string, readonly List[]>();

function listsOf({ of, scripts }: Mutant): readonly List[] {
  const words = new Set([...scripts.keys()].flatMap((verb) => CALLED_BY[verb] ?? [verb]));
  return speaking.get(of) ?? kept.filter((list) => list.some(([word]) => words.has(word)));
}

/** A reply that cannot be that of its call costs the connection. */
async function connected(): Promise<void> {
  while ((await bench.redis.ping().catch(() => undefined)) === undefined) {
    await setImmediate();
    await whenReady(bench.redis);
  }
}

async function fails(list: List): Promise<boolean> {
  await connected();
  return bench.run(list).then(
    () => false,
    () => true,
  );
}

function define(verb: string, lua: string): void {
  const name = `duestream_${verb}`;
  const { numberOfKeys } = scriptOptions[name] ?? {};
  bench.redis.defineCommand(name, numberOfKeys === undefined ? { lua } : { lua, numberOfKeys });
}

async function isNoticed(mutant: Mutant): Promise<boolean> {
  const known = listsOf(mutant);
  for (const list of known) {
    if (!(await fails(list))) continue;
    speaking.set(mutant.of, [list, ...known.filter((other) => other !== list)]);
    return true;
  }
  return (await isNoticedByCuts(mutant)) || (await someFails(random));
}

async function someFails(all: readonly List[]): Promise<boolean> {
  for (const list of all) if (await fails(list)) return true;
  return false;
}

/** What reclaim has to clear away is left by others. */
async function isNoticedByCuts({ scripts }: Mutant): Promise<boolean> {
  const open = [...scripts.keys(), ...(scripts.has('reclaim') ? ['complete'] : [])];
  const cutting = {
    isOpen: (other: string) => open.includes(other),
    luaOf: (other: string) => scripts.get(other) ?? luaOf(other),
  };
  const words = new Set(open.flatMap((one) => CALLED_BY[one] ?? [one]));
  for (const list of scenes.filter((scene) => scene.some(([word]) => words.has(word)))) {
    if ((await cutList(bench, list, cutting)).length > 0) return true;
  }
  return false;
}

const all = mutants();
const planted = isSlice ? all.filter((_, nth) => nth % 4 === 0) : all;

test('the lists that notice mutants find nothing in the scripts as they are', async () => {
  for (const list of kept) await bench.run(list);
});

test(`each of ${planted.length} planted bugs is noticed`, { timeout: 1_800_000 }, async () => {
  const survivors: string[] = [];
  for (const mutant of planted) {
    if (EQUIVALENT.has(mutant.name)) continue;
    for (const [verb, lua] of mutant.scripts) define(verb, lua);
    if (!(await isNoticed(mutant))) survivors.push(mutant.name);
    for (const verb of mutant.scripts.keys()) define(verb, luaOf(verb));
    // A mutant that never ends would make all that follow it look noticed.
    expect(await fails(parse('elect 0 0 0')), `after ${mutant.name}`).toBe(false);
  }
  expect(survivors).toEqual([]);
});

test('every mutant that is said to change nothing is one of them', () => {
  const names = new Set(all.map(({ name }) => name));
  expect([...EQUIVALENT.keys()].filter((name) => !names.has(name))).toEqual([]);
});
