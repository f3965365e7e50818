/**
 * Cuts calls off at each of their writes, makes them again, and compares how the jobs end with how they would have ended.
 * The scripts may be broken ones, to see whether that is noticed.
 */
import { broken, takeSnapshot } from './invariants.ts';
import { type List, resolve, show } from './model-commands.ts';
import { cutOff, drain, endsOf, savePoint } from './model-cut.ts';
import type { Bench } from './model-run.ts';
import { type Call, make, type World } from './model-world.ts';

export interface Cutting {
  /** Which calls of a list are cut off. */
  readonly isOpen: (verb: string) => boolean;
  readonly luaOf: (verb: string) => string;
  /** A write before which a call was cut off. */
  readonly seen?: (site: string) => void;
  /** Beginnings of lists whose last call was cut off already: lists that begin alike need not be cut off alike. */
  readonly done?: Set<string>;
}

/** Calls that find what they did themselves, so that their second call is cut off as well. */
const TWICE = ['replay', 'close-tags'];
const ONCE = [Number.POSITIVE_INFINITY];

/** Sentences about what goes wrong when calls of this list are cut off; none when nothing does. */
export async function cutList(bench: Bench, list: List, cutting: Cutting): Promise<readonly string[]> {
  const world = await bench.reach([]);
  for (const [at, command] of list.entries()) {
    const call = resolve(world, command);
    if (!call) continue;
    const begun = show(list.slice(0, at + 1));
    const isNew = !cutting.done?.has(begun);
    cutting.done?.add(begun);
    if (isNew && cutting.isOpen(call.verb) && (await writes(world, call, cutting))) {
      const wrong = await cutEverywhere(world, call, cutting);
      if (wrong.length > 0) return [...wrong, `  ${begun}`];
    }
    await make(world, call);
  }
  return [];
}

/** Cut off before its first write, a call changes nothing. */
async function writes({ redis }: World, { verb, real }: Call, { luaOf }: Cutting): Promise<boolean> {
  const site = await cutOff(redis, { verb, lua: luaOf(verb), allowed: 0, call: real }).catch(() => undefined);
  return site !== undefined;
}

/** Leaves the partition as it was. */
async function cutEverywhere(world: World, call: Call, cutting: Cutting): Promise<readonly string[]> {
  const { redis, ref, model } = world;
  const back = await savePoint(redis);
  await again(call);
  await drain(redis, ref, { fromMs: model.nowMs, windowMs: call.windowMs });
  const expected = endsOf(await takeSnapshot(redis, ref.keys)).join(', ');
  const wrong: string[] = [];
  for (let allowed = 0, site: string | undefined = ''; site !== undefined; allowed += 1) {
    for (const second of TWICE.includes(call.verb) ? [...ONCE, 0, 1, 2, 3, 4, 5] : ONCE) {
      await back();
      site = await cutOnce(world, call, { cutting, allowed });
      if (site === undefined) break;
      const where = site;
      wrong.push(...(await wrongAfterCut(world)).map((sentence) => `${where}: ${sentence}`));
      if (second !== Number.POSITIVE_INFINITY) await cutOnce(world, call, { cutting, allowed: second });
      await again(call);
      wrong.push(...(await wrongAtTheEnd(world, call, expected)).map((sentence) => `${where}: ${sentence}`));
    }
  }
  await back();
  return wrong;
}

async function cutOnce(
  { redis }: World,
  { verb, real }: Call,
  { cutting, allowed }: { cutting: Cutting; allowed: number },
): Promise<string | undefined> {
  const site = await cutOff(redis, { verb, lua: cutting.luaOf(verb), allowed, call: real }).catch(() => undefined);
  if (site !== undefined) cutting.seen?.(site);
  return site;
}

/** An effect that a handler asked for may be refused: that is a reply as well. */
const again = ({ real, otherwise = real }: Call): Promise<unknown> => otherwise().catch(() => undefined);

const faultsOf = ({ model }: World) => ({
  keeps: true,
  foreign: new Set(['j:ghost']),
  spoiled: true,
  groupless: !model.group,
  regrouped: model.regrouped,
});

async function wrongAfterCut(world: World): Promise<readonly string[]> {
  return broken(await takeSnapshot(world.redis, world.ref.keys), { ...faultsOf(world), cutOff: true });
}

async function wrongAtTheEnd(world: World, { windowMs }: Call, expected: string): Promise<readonly string[]> {
  const { redis, ref, model } = world;
  await drain(redis, ref, { fromMs: model.nowMs, windowMs });
  const after = await takeSnapshot(redis, ref.keys);
  const ends = endsOf(after).join(', ');
  // A durable counter may have been raised by both calls. An old tag may be left in the index: lists leave it out.
  const mayBe = (sentence: string) => sentence.startsWith('I11') || /^I15 .* is in the index$/.test(sentence);
  const sentences = broken(after, faultsOf(world)).filter((sentence) => !mayBe(sentence));
  return ends === expected ? sentences : [...sentences, `ends with ${ends} instead of ${expected}`];
}
