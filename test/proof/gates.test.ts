/**
 * Random steps on a gated partition: what is promised holds after each of them, and each planted bug breaks a promise.
 * `GATES_SEED` and `GATES_ROUNDS` make other walks and more of them.
 */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import type { Redis } from '../../src/redis/connection/connect.ts';
import { close, openCommands, whenReady } from '../../src/redis/connection/connect.ts';
import { partitionRef } from '../../src/redis/keys.ts';
import { scriptOptions } from '../../src/redis/scripts/scripts.ts';
import { GatesQueue } from '../support/gates-queue.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { isSlice } from '../tiers.mjs';

const SEED = Number(process.env.GATES_SEED ?? 1);
const ROUNDS = Number(process.env.GATES_ROUNDS ?? (isSlice ? 2 : 8));
/** In so many walks a planted bug has to be noticed. */
const PLANTED_ROUNDS = 40;
const STEPS = 300;

let server: TestRedis;
let redis: Redis;
beforeAll(async () => {
  server = await startRedis();
  redis = openCommands({ redis: { path: server.socketPath }, name: 'gates' });
  await whenReady(redis);
});
afterEach(() => define((lua) => lua));
afterAll(async () => {
  close(redis);
  await server.stop();
});

/** Every script with another text. */
function define(changed: (lua: string) => string): void {
  for (const [name, { lua, numberOfKeys }] of Object.entries(scriptOptions())) {
    redis.defineCommand(name, { lua: changed(lua), ...(numberOfKeys !== undefined && { numberOfKeys }) });
  }
}

/** A bug, in every script that has these words. */
function plant(words: string, instead: string): void {
  expect(Object.values(scriptOptions()).some(({ lua }) => lua.includes(words))).toBe(true);
  define((lua) => lua.replaceAll(words, () => instead));
}

interface Kind {
  readonly cuts?: boolean;
  readonly owns?: boolean;
  readonly strict?: boolean | 'at times';
  readonly two?: boolean;
  readonly costs?: boolean;
  readonly partitions?: number;
}

/** What was wrong in the first walk in which anything was, and how many jobs were let through. */
async function walk(
  rounds: number,
  { cuts = false, owns = false, partitions = 1, ...more }: Kind = {},
): Promise<{ readonly wrong: string | undefined; readonly through: number; readonly kept: number }> {
  let [through, kept] = [0, 0];
  for (let round = 0; round < rounds; round += 1) {
    await redis.flushall();
    const refs = Array.from({ length: partitions }, (_, partition) =>
      partitionRef('duestream', { queue: 'q', partition, layoutGeneration: 0 }),
    );
    const queue = new GatesQueue(redis, refs, { seed: SEED * 1000 + round, cuts, owns, ...more });
    await queue.begin();
    const wrong = await queue.walk(STEPS * partitions);
    if (wrong !== undefined) return { wrong: `round ${round}, ${wrong}`, through, kept };
    through += queue.through;
    kept += queue.kept;
  }
  return { wrong: undefined, through, kept };
}

test('limits, order in a lane, holds and line hold after each of many random steps', { timeout: 600_000 }, async () => {
  const { wrong, through } = await walk(ROUNDS);
  expect(wrong).toBeUndefined();
  expect(through).toBeGreaterThan(ROUNDS * 20);
});

test('the same where scripts are cut off between two writes and called again', { timeout: 600_000 }, async () => {
  expect((await walk(ROUNDS / 2, { cuts: true })).wrong).toBeUndefined();
});

test('the same where groups have rates and limits of their own, and are closed', { timeout: 600_000 }, async () => {
  expect((await walk(ROUNDS, { owns: true })).wrong).toBeUndefined();
});

test('the same, cut off and called again', { timeout: 600_000 }, async () => {
  expect((await walk(ROUNDS / 2, { owns: true, cuts: true })).wrong).toBeUndefined();
});

for (const owns of [false, true]) {
  const of = owns ? ', and groups have rates of their own and are closed' : '';
  test(`each of two rates holds in any time${of}`, { timeout: 600_000 }, async () => {
    expect((await walk(ROUNDS, { owns, two: true })).wrong).toBeUndefined();
  });

  test(`the same, cut off and called again${of}`, { timeout: 600_000 }, async () => {
    expect((await walk(ROUNDS / 2, { owns, cuts: true, two: true })).wrong).toBeUndefined();
  });
}

for (const two of [false, true]) {
  const of = two ? ', of each of two rates' : '';
  test(`what jobs cost holds in any time${of}, also where they say what they have really used`, {
    timeout: 600_000,
  }, async () => {
    for (const owns of [false, true]) expect((await walk(ROUNDS, { owns, two, costs: true })).wrong).toBeUndefined();
  });

  test(`the same, cut off and called again${of}, and in strict order`, { timeout: 600_000 }, async () => {
    for (const strict of [false, true]) {
      const kind = { owns: true, cuts: true, two, costs: true, strict };
      expect((await walk(ROUNDS / 2, kind)).wrong).toBeUndefined();
    }
  });
}

test('the same where strict order begins and ends while jobs run and wait', { timeout: 600_000 }, async () => {
  for (const owns of [false, true]) {
    for (const cuts of [false, true]) {
      expect((await walk(ROUNDS / 2, { owns, cuts, strict: 'at times' })).wrong).toBeUndefined();
    }
  }
});

for (const owns of [false, true]) {
  const of = owns ? ', and groups have rates of their own and are closed' : '';
  test(`who has a group in strict order is overtaken by nobody${of}`, { timeout: 600_000 }, async () => {
    const { wrong, kept } = await walk(ROUNDS, { owns, strict: true });
    expect(wrong).toBeUndefined();
    expect(kept).toBeGreaterThan(ROUNDS);
  });

  test(`the same, cut off and called again${of}`, { timeout: 600_000 }, async () => {
    expect((await walk(ROUNDS / 2, { owns, cuts: true, strict: true })).wrong).toBeUndefined();
  });
}

for (const cuts of [false, true]) {
  const of = cuts ? ', cut off and called again' : '';
  test(`over two partitions nobody overtakes who has a group in strict order${of}`, { timeout: 600_000 }, async () => {
    let keptInAll = 0;
    for (const strict of [true, 'at times'] as const) {
      const { wrong, kept } = await walk(ROUNDS / 2, { owns: true, cuts, strict, partitions: 2 });
      expect(wrong).toBeUndefined();
      keptInAll += kept;
    }
    // A short walk may have no strict order at all where it has one at times.
    expect(keptInAll).toBeGreaterThan(ROUNDS);
  });
}

/** Only a cut gives them away. */
const OF_CUTS: readonly string[] = [
  'a start does not care for its hold',
  'an older entry is taken for a new one',
  'a job that waits is started by an entry that a cut has left',
];

/** `[what is wrong, words, words in their place]` */
const PLANTED: readonly (readonly [wrong: string, words: string, instead: string])[] = [
  ['a start does not care for its hold', 'holdAll(keys.holds, begun, first)', ''],
  ['a group has one more', 'return most - #redis', 'return most + 1 - #redis'],
  ['a queue has one more', 'gate.concurrency - redis', 'gate.concurrency + 1 - redis'],
  ['the lanes of a group stay shut when it has room', '  openLanes(keys, opened)\n  if #holds', '  if #holds'],
  ['a stale place counts', 'tonumber(scores[nth]) ~= WAITS + dues[nth]', 'not scores[nth]'],
  ['a lane is shut after each job', 'elseif #head.jobs >= head.free then', 'elseif true then'],
  [
    'a lane is shut when its group has one place left',
    'elseif #head.jobs >= head.free then',
    'elseif #head.jobs + 1 >= head.free then',
  ],
  ['a lane is not opened for who comes', 'if not isOpen and not isGroupFull(', 'if false and not isGroupFull('],
  ['a lane has no order', "('0'):rep(9 - #text) .. text", "('0'):rep(9 - #text) .. text:reverse()"],
  ['two lanes of a group fill the same place', 'head.free - taken', 'head.free'],
  [
    'a group with several places stays shut when one is free',
    'gate.perGroup == 1 or isGroupFull(keys, gate, group)',
    'gate.perGroup == 1',
  ],
  ['who has a priority has none', "redis.call('ZCARD', keys.tags) == 0", 'true'],
  ['an older entry is taken for a new one', 'begun[at] == first', 'first'],
  ['a hold stays when its entry goes', "redis.call('ZREM', keys.holds, unpack(holds))", 'tostring(holds)'],
  [
    'who goes past the line has no hold',
    "redis.call('ZADD', keys.holds, 0, group .. '\\0' .. entry)",
    'tostring(entry)',
  ],
  ['what nobody has read stays in ready', "if not takeBackAll() then return 'more' end", ''],
  ['what runs gets no hold', "redis.call('ZADD', holds, unpack(words))", 'tostring(words)'],
  ['a walk that was left half made is forgotten', 'hadMore == getsMore', 'true'],
  ['a higher limit opens no lane', 'or lanesOf(line, group)) do\n      opened', 'or {}) do\n      opened'],
];

/** The same of groups with limits of their own. */
const PLANTED_OWN: typeof PLANTED = [
  ['a closed group is let through', 'own.groupClosed > gate.now and 0 or turnsIn(own)', 'turnsIn(own)'],
  ['a closed queue is let through', 'not interval or gate.queueClosed > now', 'not interval'],
  ['a turn forgets what is closed', 'gate.queueClosed, gate.groupsClosed)', '0, 0)'],
  ['a group uses no turn of its rate', 'own.arrival + count * own.interval', 'own.arrival'],
  ['who goes past the line does not ask his group', 'or own and ownTurns(gate, own) <= 0', ''],
  ['the shortest beginning counts', 'for nth = #fields, 2, -1 do', 'for nth = 2, #fields do'],
  ['limits of groups are forgotten', "redis.call('HSET', groups, '', table", "tostring(groups, '', table"],
  ['what waits for a time never opens', 'addLanes(keys, redis.call(', 'tostring(keys, redis.call('],
];

/** The same of strict order. */
const PLANTED_ORDER: typeof PLANTED = [
  ['who has a group is not asked', 'if kept[head.group] and room > 0 then', 'if false then'],
  [
    'a retry gives its group up',
    'giveUp(keys, state, now, micros, { entry }, { member }, {}, isOver)',
    'giveUp(keys, state, now, micros, { entry }, { member }, {}, true)',
  ],
  ['who is let through has nothing', "redis.call('HSET', keys.order, unpack(kept))", 'tostring(kept)'],
  ['who goes past the line has nothing', "redis.call('HSET', keys.order, unpack(words))", 'tostring(words)'],
  ['who goes past the line passes who has the group', 'has and has.member ~= job.member', 'false'],
  [
    'a start that is dropped gives the group up',
    "leaveReady(keys, call.gate, call.gone, call.left, 'ask')",
    'leaveReady(keys, call.gate, call.gone, call.left, true)',
  ],
  ['who is let through waits all the same', "redis.call('ZREM', keys.scheduled, unpack(members))", 'tostring(members)'],
  [
    'a job that waits is started by an entry that a cut has left',
    "if not job.offer and redis.call('ZSCORE', keys.scheduled, job.member) then",
    'if false then',
  ],
  ['a worker that has lost a job ends it', "if run.token ~= token or run.entry ~= entry then return 'fenced' end", ''],
];

/** The same of two rates. */
const PLANTED_RATES: typeof PLANTED = [
  ['a turn of the second rate is not used', 'second.arrival + count * second.interval', 'second.arrival'],
  [
    'the second rate is not asked',
    'second and math.min(turnsIn(gate), turnsIn(second)) or turnsIn(gate)',
    'turnsIn(gate)',
  ],
  ['the first rate is not asked', 'math.min(turnsIn(gate), turnsIn(second))', 'turnsIn(second)'],
];

/** The same of costs. */
const PLANTED_COSTS: typeof PLANTED = [
  ['a job uses one turn, whatever it costs', 'use(keys.meta, gate, used)', 'use(keys.meta, gate, given)'],
  ['what is owed is cut', 'gate.hasCosts and math.huge or 1', '1'],
  ['more is not used', 'useMore(own, more)', 'tostring(own)'],
  ['a word that comes late counts', 'tonumber(nth) >= job.nth', 'false'],
];

/**
 * Few walks leave the state behind in which one of these shows, so many have to be made. In CI `gates-mutants.test.ts` plants
 * them, and a story notices each at once.
 */
const SELDOM = [
  'a stale place counts',
  'the lanes of a group stay shut when it has room',
  'a start does not care for its hold',
  'the shortest beginning counts',
];
const roundsOf = (wrong: string) => (SELDOM.includes(wrong) ? 4 : 1) * PLANTED_ROUNDS;
const often = ([wrong]: (typeof PLANTED)[number]) => !(isSlice && SELDOM.includes(wrong));

test.each(PLANTED_OWN.filter(often))(
  'a planted bug of own limits is noticed: %s',
  { timeout: 600_000 },
  async (wrong, words, instead) => {
    plant(words, instead);
    expect((await walk(roundsOf(wrong), { owns: true })).wrong).toBeDefined();
  },
);

test.each(PLANTED_ORDER)(
  'a planted bug of strict order is noticed: %s',
  { timeout: 600_000 },
  async (wrong, words, instead) => {
    plant(words, instead);
    expect((await walk(PLANTED_ROUNDS, { strict: true, cuts: OF_CUTS.includes(wrong) })).wrong).toBeDefined();
  },
);

test.each(PLANTED_RATES)(
  'a planted bug of two rates is noticed: %s',
  { timeout: 600_000 },
  async (_, words, instead) => {
    plant(words, instead);
    expect((await walk(PLANTED_ROUNDS, { two: true })).wrong).toBeDefined();
  },
);

test.each(PLANTED_COSTS)('a planted bug of costs is noticed: %s', { timeout: 600_000 }, async (_, words, instead) => {
  plant(words, instead);
  expect((await walk(PLANTED_ROUNDS, { owns: true, costs: true, cuts: true })).wrong).toBeDefined();
});

test.each(PLANTED.filter(often))(
  'a planted bug is noticed: %s',
  { timeout: 600_000 },
  async (wrong, words, instead) => {
    plant(words, instead);
    expect((await walk(roundsOf(wrong), { cuts: OF_CUTS.includes(wrong) })).wrong).toBeDefined();
  },
);
