/**
 * A script that was cut off between two writes leaves what it wrote. Adding comes before removing, so no job is lost; and
 * the same call again, with what movers and workers do anyway, brings every job to the end it would have had.
 *
 * The states come from random lists of commands: of each list one call is cut off before each of its writes, and made
 * again. It goes on until every write of every script was cut off in several states.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { scriptOptions } from '../../src/redis/scripts/scripts.ts';
import { takeSnapshot } from '../support/invariants.ts';
import { type List, lists, resolve, verbOf } from '../support/model-commands.ts';
import {
  cutOff,
  isOfAhead,
  isOfDebounce,
  isOfGates,
  isOfLending,
  isOfLogs,
  isOfSets,
  isReadOnly,
  lineOf,
  luaOf,
  writesOf,
} from '../support/model-cut.ts';
import { cutList } from '../support/model-cutter.ts';
import { type Kept, keptIn, parse } from '../support/model-kept.ts';
import { type Bench, startBench } from '../support/model-run.ts';
import { reclaimCall } from '../support/model-worker-calls.ts';
import { ELSEWHERE } from '../support/mutants.ts';
import { digestOfScene, verdictsOf } from '../support/verdicts.ts';
import { isSlice } from '../tiers.mjs';

const SEED = Number(process.env.PROOF_SEED ?? 7);
const LISTS_MAX = 400;
const STATES = 2;

let bench: Bench;
beforeAll(async () => {
  bench = await startBench();
});
afterAll(() => bench.stop());

const verbs = Object.keys(scriptOptions())
  .map((name) => name.replace('duestream_', ''))
  .filter((verb) => !ELSEWHERE.includes(verb) && !isReadOnly(verb));
/** The history of the model is too long to be swept; `test/redis/past.test.ts` sweeps one. */
const isOfHistory = (site: string): boolean =>
  /\b(past|ended), unpack\(ids\)/.test(luaOf('sweep').split('\n')[Number(/^sweep:(\d+)/.exec(site)?.[1]) - 1] ?? '');
/**
 * Writes of parts that `relay` uses as well: what it brings is young, and goes back to scheduled only where its record is of
 * a later version, which the model has not. `start` and `serve` are cut off there.
 */
const BY_OTHERS = ["0, job.entry, 'JUSTID'", 'keys.scheduled, due, job.member', 'job.member, unboundText(run, due)'];
/** What the lists seldom meet there; the same parts are cut off in `complete`, `cancel`, `bury`, `commit` and others. */
const SELDOM: readonly (readonly [verbs: readonly string[], words: readonly string[]])[] = [
  // A job with tags.
  [['promote', 'start', 'expire', 'serve', 'retry', 'defer', 'edit'], ["redis.call('ZREM', tags,"]],
  // No leader of the lists ends late jobs; `test/redis/expire.test.ts` cuts it off.
  [
    ['expire'],
    ["'ZREM', keys.scheduled, member)", "'ZADD', keys.done, 'NX', ('%.0f'):format(now)", "'HDEL', keys.runs, member)"],
  ],
  // A second entry that stands for no job; and nobody holds an acknowledged entry by a turn or a pass.
  [['promote', 'relay', 'schedule', 'complete', 'reschedule', 'edit'], ["redis.call('ZADD', stale, ms, member .."]],
  [['serve', 'relay'], ["redis.call('ZADD', stale, ms, member"]],
  // A job with an earlier life in the history.
  [
    ['start', 'serve', 'relay', 'retry', 'defer', 'expire'],
    ["redis.call('ZADD', ended, redis.call('ZSCORE'", "redis.call('HSET', past, id, found)"],
  ],
];
/** What ends eight jobs at once trims, and deletes the last of them; `test/proof/head.test.ts` cuts that off. */
const isTrim = (verb: string, site: string) =>
  site.endsWith(' XTRIM') || lineOf(verb, site).includes("'XDEL', ready, last)");
const isByOthers = (verb: string, site: string) =>
  (verb === 'relay' && BY_OTHERS.some((words) => lineOf(verb, site).includes(words))) ||
  SELDOM.some(([of, words]) => of.includes(verb) && words.some((some) => lineOf(verb, site).includes(some)));
const sitesOf = (verb: string) =>
  writesOf(verb).filter(
    (site) =>
      !isByOthers(verb, site) &&
      !isOfHistory(site) &&
      !isTrim(verb, site) &&
      !isOfGates(verb, site) &&
      !isOfLogs(verb, site) &&
      !isOfLending(verb, site) &&
      !isOfSets(verb, site) &&
      !isOfDebounce(verb, site) &&
      !isOfAhead(verb, site),
  );
const sites = new Map(verbs.flatMap(sitesOf).map((site) => [site, 0]));
const missing = () => [...sites].filter(([, states]) => states < STATES).map(([site]) => site);

const verdicts = verdictsOf('cut-off', ['test/support/model']);
const ofScene = ({ commands }: Kept) => digestOfScene(JSON.stringify(commands));
const ofVerb = (verb: string) => digestOfScene('', verb);
const isChanged = (verb: string) => verdicts.isAsked(ofVerb(verb));
const scenes = keptIn('test/proof/scenes.json').map((scene) => ({ ...scene, isNew: verdicts.isAsked(ofScene(scene)) }));
/** In CI the scenes that are new, and those that call a script whose text has changed: of these calls of that script. */
const asked = scenes.filter(
  ({ isNew, commands }) => isNew || commands.map(verbOf).some((verb) => verbs.includes(verb) && isChanged(verb)),
);
/** Of those; one less while the test at the end has not passed. */
let passed = 0;
afterAll(async () => {
  if (passed >= asked.length) await verdicts.keep([...verbs.map(ofVerb), ...scenes.map(ofScene)]);
});

const isOpen = (verb: string) => missing().some((site) => site.startsWith(`${verb}:`));
const seen = (site: string) => sites.has(site) && sites.set(site, (sites.get(site) ?? 0) + 1);
const done = new Set<string>();
const cut = (list: List, isOf = (_verb: string) => true) =>
  cutList(bench, list, { isOpen: (verb) => isOf(verb) && isOpen(verb), luaOf, seen, done });

/** What else there may be while a scene is played. */
const CROWDS: readonly List[] = [
  [],
  ...(isSlice ? [] : [parse('schedule 4 3 0, schedule 2 0 0, promote 0 0 0, read 1 0 0, start 1 0 0')]),
];
const begin: List = parse('elect 0 0 0');

for (const { title, commands, isNew } of asked) {
  test(`cut off anywhere and called again: ${title}`, async () => {
    for (const crowd of CROWDS)
      expect(await cut([...begin, ...crowd, ...commands], isNew ? undefined : isChanged)).toEqual([]);
    passed += 1;
  });
}

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
    const site = await cutOff(redis, { verb: 'reclaim', lua: luaOf('reclaim'), allowed: 0, call: call.real });
    expect(site).toMatch(/XACK/);
    if (site !== undefined) seen(site);
    await call.real();
    expect((await takeSnapshot(redis, ref.keys)).pending.has(entry)).toBe(false);
  }
});

test('a crash is counted once by a reclaim that was cut off and called again', async () => {
  const world = await bench.reach([...begin, ...parse('schedule 0 0 0, promote 0 0 0, read 0 2 0, start 0 0 0')]);
  const { redis, ref } = world;
  const call = resolve(world, ['reclaim', 0, 0, 0]);
  if (!call) throw new Error('there is an entry');
  expect(await cutOff(redis, { verb: 'reclaim', lua: luaOf('reclaim'), allowed: 1, call: call.real })).toMatch(
    /XCLAIM/,
  );
  await call.real();
  expect((await redis.hget(ref.keys.runs, 'j:a'))?.split(' ')[4]).toBe('1');
});

// The search for states in which each write can be cut off, of which the scenes above have most.
if (asked.length === scenes.length && !isSlice) {
  test('whatever is cut off anywhere and called again ends as it would have', { timeout: 1_800_000 }, async () => {
    passed -= 1;
    const wrong: string[] = [];
    for (const list of lists({ seed: SEED, runs: LISTS_MAX, length: 40 })) {
      wrong.push(...(await cut(list)));
      if (wrong.length > 0 || missing().length === 0) break;
    }
    expect(wrong).toEqual([]);
    expect(missing()).toEqual([]);
    passed += 1;
  });
}
