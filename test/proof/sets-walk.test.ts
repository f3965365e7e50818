/**
 * Random walks through two sets, with and without calls that are cut off, and bugs that they have to notice:
 *
 *     SETS_WALKS=2000 npx vitest run test/proof/sets-walk.test.ts
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { GateSettings } from '../../src/job/queue-settings.ts';
import { close, openCommands, type Redis, whenReady } from '../../src/redis/connection/connect.ts';
import { partitionRef } from '../../src/redis/keys.ts';
import type { DeadLetter } from '../../src/redis/read/inspect.ts';
import { scriptOptions } from '../../src/redis/scripts/scripts.ts';
import { luaOf } from '../support/model-cut.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { SetDesk } from '../support/sets-stories.ts';
import { walkSets } from '../support/sets-walk.ts';
import { isSlice } from '../tiers.mjs';

const WALKS = Number(process.env.SETS_WALKS ?? (isSlice ? 20 : 200));
const STEPS = 60;
const ref = partitionRef('t', { queue: 'q', partition: 0, layoutGeneration: 0 });
let server: TestRedis;
let redis: Redis;
beforeAll(async () => {
  server = await startRedis();
  redis = openCommands({ redis: { path: server.socketPath }, name: 'sets' });
  await whenReady(redis);
});
afterAll(async () => {
  close(redis);
  await server.stop();
});

interface Of {
  readonly lua?: (verb: string) => string;
  readonly gates?: GateSettings;
  readonly seen?: (letter: DeadLetter) => DeadLetter;
}

async function walkAll(
  walks: number,
  cuts: boolean,
  { lua = luaOf, gates, seen }: Of = {},
): Promise<string | undefined> {
  for (let seed = 1; seed <= walks; seed += 1) {
    const wrong = await walkSets(new SetDesk(redis, ref, { ...(gates && { gates }) }), {
      seed,
      steps: STEPS,
      lua,
      cuts,
      seen,
    });
    if (wrong !== undefined) return wrong;
  }
  return undefined;
}

test(`the callback comes once, after the last member, in ${WALKS} random walks`, { timeout: 600_000 }, async () => {
  expect(await walkAll(WALKS, false)).toBeUndefined();
});

test('the same where calls are cut off between two writes', { timeout: 600_000 }, async () => {
  expect(await walkAll(WALKS, true)).toBeUndefined();
});

test.each([false, true])('the same where two jobs run at a time, with cuts: %s', { timeout: 600_000 }, async (cuts) => {
  expect(await walkAll(Math.ceil(WALKS / 2), cuts, { gates: { concurrency: 2 } })).toBeUndefined();
});

/** `[what is wrong, words, words in their place]`, wherever the words are. */
const PLANTED: readonly (readonly [wrong: string, words: string, instead: string])[] = [
  ['the callback comes before the last member', 'if hasOpen(keys.tags, name) then return false end', ''],
  ['a set is over before it is sealed', "if not set or set.sealed == '0' then return false end", ''],
  ['nobody makes the callback', 'callBack(keys, now, name)', 'tostring(name)'],
  ['an end counts twice', 'set[letter] + 1', 'set[letter] + 2'],
  ['a replayed member stays dead', 'set.x = math.max(0, set.x - 1)', ''],
  ['a replayed member is not open', 'addTags(keys.tags, {', 'tostring(keys.tags, {'],
  ['a member of no set is taken', "isOpen and reply or 'no-set'", 'reply'],
  ['what the set was stays', "redis.call('HDEL', keys.jobs, '\\0set\\0' .. name, '\\0then\\0' .. name)", ''],
  [
    'a callback counts as two jobs',
    "redis.call('HINCRBY', keys.meta, 'n.scheduled', 1)\n    reweigh",
    "redis.call('HINCRBY', keys.meta, 'n.scheduled', 2)\n    reweigh",
  ],
  ['a seal is forgotten', "set.sealed = '1'", "set.sealed = '0'"],
  ['a set that is removed is there still', "forgetSet(keys, name)\nreturn 'ok'", "return 'ok'"],
  ['a set that is removed is listed still', "redis.call('ZREM', keys.tags, '=sets\\0' .. name)", 'tostring(name)'],
  [
    'a name is begun again while members of before live',
    'if left == 0 or not strayOf(keys, earlier) then',
    'if left == 0 then',
  ],
  ['who is a member of nobody keeps a name', "redis.call('ZREM', tags, earlier)", 'tostring(earlier)'],
  ['who died in an earlier set of the name is a member', 'if isMember and diedBefore(', 'if false and diedBefore('],
  ['who was erased by hand counts', "return text and text:sub(2, 2) or ''", "return text and text:sub(2, 2) or 'c'"],
  [
    'who was erased by hand keeps the set open',
    'if length > 0 and not isTombstone(text) then',
    'if not isTombstone(text) then',
  ],
  ['of dead letters that are named one stays', 'for at = 8, #ARGV do', 'for at = 9, #ARGV do'],
];

/** `[what is taken for its neighbour, words of a dead letter, words in their place]` */
const CONFUSED: readonly (readonly [what: string, words: RegExp, instead: string])[] = [
  ['a set', /set:import-70/g, 'set:import-7'],
  ['a tag', /paid:eu/g, 'paid'],
  ['a name', /"row:eu"/g, '"row"'],
  ['an error', /no answer of it/g, 'no answer'],
];

test.each(CONFUSED)(
  'a filter that takes %s for its neighbour is noticed',
  { timeout: 120_000 },
  async (_, words, instead) => {
    const seen = (letter: DeadLetter): DeadLetter => ({
      ...letter,
      record: letter.record.replace(words, instead),
      history: letter.history.map((one) => ({ ...one, message: one.message.replace(words, instead) })),
    });
    expect(await walkAll(60, false, { seen }).catch(String)).toBeDefined();
  },
);

test.each(PLANTED)('a planted bug is noticed: %s', async (_, words, instead) => {
  const texts = new Map(
    Object.keys(scriptOptions()).flatMap((name) => {
      const verb = name.replace('duestream_', '');
      const text = luaOf(verb);
      const broken = text.split(words).join(instead);
      return broken === text ? [] : [[verb, broken] as const];
    }),
  );
  expect(texts.size).toBeGreaterThan(0);
  for (const [verb, lua] of texts) define(verb, lua);
  try {
    const seen = await walkAll(60, false, { lua: (verb) => texts.get(verb) ?? luaOf(verb) }).catch((error: unknown) =>
      String(error),
    );
    expect(seen).toBeDefined();
  } finally {
    for (const verb of texts.keys()) define(verb, luaOf(verb));
  }
});

function define(verb: string, lua: string): void {
  const name = `duestream_${verb}`;
  const { numberOfKeys } = scriptOptions()[name] ?? {};
  redis.defineCommand(name, numberOfKeys === undefined ? { lua } : { lua, numberOfKeys });
}
