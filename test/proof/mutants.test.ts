/**
 * A check that finds nothing may be blind. Here the scripts are broken on purpose, in every way on a list and one at a
 * time, and the model or the cut must notice each. `killers.json` holds the shortest lists that did so when a mutant was
 * new; without one random lists are tried. `noticed-by.json` says which list to try first, so that most mutants cost one:
 *
 *     PROOF_KEEP=1 npx vitest run test/proof/mutants.test.ts
 *     PROOF_OF=past,cancel npx vitest run test/proof/mutants.test.ts      # only those of these scripts and parts
 *
 * CI plants those whose scripts have changed (`test/support/verdicts.ts`).
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { whenReady } from '../../src/redis/connection/connect.ts';
import { scriptOptions } from '../../src/redis/scripts/scripts.ts';
import { type List, lists, verbOf } from '../support/model-commands.ts';
import { luaOf } from '../support/model-cut.ts';
import { cutList } from '../support/model-cutter.ts';
import { keptIn, parse } from '../support/model-kept.ts';
import { type Bench, startBench } from '../support/model-run.ts';
import { EQUIVALENT, type Mutant, mutants } from '../support/mutants.ts';
import { read, root } from '../support/repository.ts';
import { digestOfBug, named, verdictsOf } from '../support/verdicts.ts';

let bench: Bench;
beforeAll(async () => {
  bench = await startBench();
});
afterAll(() => bench.stop());

const scenes: readonly List[] = keptIn('test/proof/scenes.json').map(({ commands }) => [
  ...parse('elect 0 0 0'),
  ...commands,
]);
const killers: readonly List[] = keptIn('test/proof/killers.json').map(({ commands }) => commands);
/** Mutant → what noticed it when this was written. What is not true any more costs time, and hides nothing. */
const NOTICES = 'test/proof/noticed-by.json';
const lastTime = JSON.parse(read(NOTICES)) as Readonly<Record<string, string>>;
const random = lists({ seed: 1, runs: 100, length: 40 });

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
  const { numberOfKeys } = scriptOptions()[name] ?? {};
  bench.redis.defineCommand(name, numberOfKeys === undefined ? { lua } : { lua, numberOfKeys });
}

/** A list that may notice a mutant. Its name goes into `noticed-by.json`. */
interface Way {
  readonly name: string;
  readonly notices: () => Promise<boolean>;
}

/** In the order in which they are cheap: kept lists that speak of the mutant, their calls cut off, and random ones. */
function waysOf({ scripts }: Mutant): readonly Way[] {
  // What reclaim has to clear away is left by others.
  const open = [...scripts.keys(), ...(scripts.has('reclaim') ? ['complete'] : [])];
  const cutting = {
    isOpen: (verb: string) => open.includes(verb),
    luaOf: (verb: string) => scripts.get(verb) ?? luaOf(verb),
  };
  const speaks = ({ list }: { readonly list: List }) => list.some((command) => open.includes(verbOf(command)));
  const named = (kind: string, some: readonly List[]) => some.map((list, nth) => ({ name: `${kind} ${nth}`, list }));
  return [
    ...[...named('killer', killers), ...named('scene', scenes)]
      .filter(speaks)
      .map(({ name, list }) => ({ name, notices: () => fails(list) })),
    ...named('cut of scene', scenes)
      .filter(speaks)
      .map(({ name, list }) => ({ name, notices: async () => (await cutList(bench, list, cutting)).length > 0 })),
    ...named('random', random).map(({ name, list }) => ({ name, notices: () => fails(list) })),
  ];
}

/** Its name, whatever was put above its line meanwhile. */
const placeless = ({ name }: Mutant) => name.replace(/, line \d+/, '');

/** Of all that there are: what was told now, or else the last time. */
function noticed(told: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const names = lives.map(placeless).map((name) => [name, told[name] ?? lastTime[name] ?? ''] as const);
  return Object.fromEntries(names.filter(([, by]) => by !== ''));
}

/** What notices a mutant; what did so the last time is asked first. */
async function noticedBy(mutant: Mutant): Promise<string | undefined> {
  const ways = waysOf(mutant);
  const known = ways.filter(({ name }) => name === lastTime[placeless(mutant)]);
  for (const { name, notices } of [...known, ...ways]) if (await notices()) return name;
  return undefined;
}

const all = mutants();
const lives = all
  .filter(({ name }) => !EQUIVALENT.has(name))
  .map((mutant) => ({ ...mutant, digest: digestOfBug(mutant.scripts) }));
const verdicts = verdictsOf('mutants', ['test/support/model', 'test/proof/scenes', 'test/proof/killers']);
const planted = lives.filter(({ of, digest }) => named?.includes(of) ?? verdicts.isAsked(digest));

/** What still runs on the server when a bug is planted would notice it in the place of its lists. */
let isSound = false;
test('the lists that notice mutants find nothing in the scripts as they are', { timeout: 1_800_000 }, async () => {
  for (const list of [...killers, ...scenes]) await bench.run(list);
  isSound = true;
});

test(`each of ${planted.length} planted bugs is noticed, of ${lives.length}`, { timeout: 1_800_000 }, async () => {
  expect(isSound).toBe(true);
  const survivors: string[] = [];
  const told: Record<string, string> = {};
  for (const mutant of planted) {
    for (const [verb, lua] of mutant.scripts) define(verb, lua);
    const by = await noticedBy(mutant);
    if (by === undefined) survivors.push(mutant.name);
    else told[placeless(mutant)] = by;
    for (const verb of mutant.scripts.keys()) define(verb, luaOf(verb));
    // A mutant that never ends would make all that follow it look noticed.
    expect(await fails(parse('elect 0 0 0')), `after ${mutant.name}`).toBe(false);
  }
  expect(survivors).toEqual([]);
  await verdicts.keep(lives.map(({ digest }) => digest));
  if (process.env.PROOF_KEEP) await writeFile(join(root, NOTICES), `${JSON.stringify(noticed(told), null, 2)}\n`);
});

test('every mutant that is said to change nothing is one of them', () => {
  const names = new Set(all.map(({ name }) => name));
  expect([...EQUIVALENT.keys()].filter((name) => !names.has(name))).toEqual([]);
});
