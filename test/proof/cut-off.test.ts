/**
 * A script that was cut off between two writes leaves what it wrote. Adding comes before removing, so no job is lost; and
 * the same call again, with what movers and workers do anyway, brings every job to the end it would have had.
 *
 * The states come from random lists of commands: of each list one call is cut off before each of its writes, and made
 * again. It goes on until every write of every script was cut off in several states.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { scriptOptions } from '../../src/redis/scripts.ts';
import { broken, takeSnapshot } from '../support/invariants.ts';
import { type List, lists, resolve, show } from '../support/model-commands.ts';
import { cutOff, drain, endsOf, isReadOnly, savePoint, writesOf } from '../support/model-cut.ts';
import { keptIn, parse } from '../support/model-kept.ts';
import { type Bench, startBench } from '../support/model-run.ts';
import { reclaimCall } from '../support/model-worker-calls.ts';
import { type Call, make, type World } from '../support/model-world.ts';

const SEED = Number(process.env.PROOF_SEED ?? 7);
const LISTS_MAX = 400;
const STATES = 3;

let bench: Bench;
beforeAll(async () => {
  bench = await startBench();
});
afterAll(() => bench.stop());

/** Works on damage, which commands do not do, and does what is left of it when it is called again. */
const ELSEWHERE = ['mend'];
const verbs = Object.keys(scriptOptions)
  .map((name) => name.replace('duestream_', ''))
  .filter((verb) => !ELSEWHERE.includes(verb) && !isReadOnly(verb));
const sites = new Map(verbs.flatMap(writesOf).map((site) => [site, 0]));
const missing = () => [...sites].filter(([, states]) => states < STATES).map(([site]) => site);

/** What a call that was cut off and made again leads to, for each of its writes. Sentences where it goes wrong. */
async function cutEverywhere(
  { redis, ref, model }: World,
  { call, back }: { call: Call; back: () => Promise<void> },
): Promise<readonly string[]> {
  // An effect that a handler asked for may be refused: that is a reply as well.
  const again = () => call.real().catch(() => undefined);
  await again();
  await drain(redis, ref, model.nowMs);
  const expected = endsOf(await takeSnapshot(redis, ref.keys));
  const wrong: string[] = [];
  for (let allowed = 0; ; allowed += 1) {
    await back();
    const site = await cutOff(redis, { verb: call.verb, allowed, call: call.real }).catch(() => undefined);
    if (site === undefined) return wrong;
    sites.set(site, (sites.get(site) ?? 0) + 1);
    const faults = {
      foreign: new Set(['j:ghost']),
      spoiled: true,
      groupless: !model.group,
      regrouped: model.regrouped,
    };
    const cut = await takeSnapshot(redis, ref.keys);
    const say = (sentence: string) => wrong.push(`${site}: ${sentence}`);
    broken(cut, { ...faults, cutOff: true }).forEach(say);
    await again();
    await drain(redis, ref, model.nowMs);
    const after = await takeSnapshot(redis, ref.keys);
    // A durable counter may have been raised by both calls.
    broken(after, faults)
      .filter((sentence) => !sentence.startsWith('I11'))
      .forEach(say);
    const ends = endsOf(after);
    if (ends.join() !== expected.join()) say(`ends with ${ends.join(', ')} instead of ${expected.join(', ')}`);
  }
}

/** Cuts off every call of a list that writes, as long as something in its script was not cut off often enough. */
async function cutList(list: List): Promise<readonly string[]> {
  const world = await bench.reach([]);
  for (const [at, command] of list.entries()) {
    const call = resolve(world, command);
    if (!call) continue;
    if (isOpen(call.verb) && (await writes(world, call))) {
      const back = await savePoint(world.redis);
      const wrong = await cutEverywhere(world, { call, back });
      if (wrong.length > 0) return [...wrong, `  ${show(list.slice(0, at + 1))}`];
      await back();
    }
    await make(world, call);
  }
  return [];
}

const isOpen = (verb: string) => missing().some((site) => site.startsWith(`${verb}:`));

/** Cut off before its first write, a call changes nothing. */
async function writes({ redis }: World, { verb, real }: Call): Promise<boolean> {
  return (await cutOff(redis, { verb, allowed: 0, call: real }).catch(() => undefined)) !== undefined;
}

/** What else there may be while a scene is played. */
const CROWDS: readonly List[] = [
  [],
  parse('schedule 4 3 0'),
  parse('schedule 2 0 0, promote 0 0 0, read 1 0 0, start 1 0 0'),
];
const begin: List = parse('elect 0 0 0');

test.each(keptIn('test/proof/scenes.json'))('cut off anywhere and called again: $title', async ({ commands }) => {
  for (const crowd of CROWDS) expect(await cutList([...begin, ...crowd, ...commands])).toEqual([]);
});

test('a replay that was cut off, called again and cut off again is called again', async () => {
  const list = [...begin, ...parse('schedule 0 0 0, promote 0 0 0, read 0 2 0, start 0 0 0, bury 0 0 0')];
  for (const crowd of CROWDS) {
    const world = await bench.reach([...crowd, ...list]);
    const call = resolve(world, ['replay', 0, 1, 0]);
    if (!call) throw new Error('there is a letter');
    // All but the two last writes: the second call finds a live job of the letter's next generation.
    await cutOff(bench.redis, { verb: 'replay', allowed: 5, call: call.real });
    const back = await savePoint(bench.redis);
    expect(await cutEverywhere(world, { call, back })).toEqual([]);
  }
});

test('an entry that a cut-off end has deleted is taken off its consumer by a reclaim', async () => {
  for (const crowd of CROWDS) {
    const world = await bench.reach([
      ...begin,
      ...crowd,
      ...parse('schedule 0 0 0, promote 0 0 0, read 0 2 0, start 0 0 0'),
    ]);
    const { redis, ref } = world;
    const { pending } = await takeSnapshot(redis, ref.keys);
    const [entry = ''] = [...pending.keys()].filter((held) => pending.get(held) === 'w1');
    await redis.xdel(ref.keys.ready, entry);
    const call = reclaimCall(world, { owner: 'w1', consumer: 'w2', entries: [entry], onlyIdle: false });
    const site = await cutOff(redis, { verb: 'reclaim', allowed: 0, call: call.real });
    expect(site).toMatch(/XACK/);
    if (site !== undefined) sites.set(site, (sites.get(site) ?? 0) + 1);
    await call.real();
    expect((await takeSnapshot(redis, ref.keys)).pending.has(entry)).toBe(false);
  }
});

test('a crash is counted once by a reclaim that was cut off and called again', async () => {
  const world = await bench.reach([...begin, ...parse('schedule 0 0 0, promote 0 0 0, read 0 2 0, start 0 0 0')]);
  const { redis, ref } = world;
  const call = resolve(world, ['reclaim', 0, 0, 0]);
  if (!call) throw new Error('there is an entry');
  expect(await cutOff(redis, { verb: 'reclaim', allowed: 1, call: call.real })).toMatch(/XCLAIM/);
  await call.real();
  expect((await redis.hget(ref.keys.runs, 'j:a'))?.split(' ')[4]).toBe('1');
});

test('whatever is cut off anywhere and called again ends as it would have', { timeout: 120_000 }, async () => {
  const wrong: string[] = [];
  for (const list of lists({ seed: SEED, runs: LISTS_MAX, length: 40 })) {
    wrong.push(...(await cutList(list)));
    if (wrong.length > 0 || missing().length === 0) break;
  }
  expect(wrong).toEqual([]);
  expect(missing()).toEqual([]);
});
