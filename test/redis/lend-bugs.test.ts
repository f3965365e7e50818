/** Bugs in what lends and borrows, planted one at a time: a story must tell something else. The model of `test/proof` has one queue. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { close, openCommands, type Redis, whenReady } from '../../src/redis/connection/connect.ts';
import { LendingDesk, lendingStories } from '../support/lending-stories.ts';
import { brokenTexts } from '../support/mutants.ts';
import { planted, slipped } from '../support/planted.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';

let server: TestRedis;
let redis: Redis;
beforeAll(async () => {
  server = await startRedis();
  redis = openCommands({ redis: { path: server.socketPath }, name: 'lend-bugs' });
  await whenReady(redis);
});
afterAll(async () => {
  close(redis);
  await server.stop();
});

/** Bugs that no operator makes: `[script or part, words of it, words in their place]`. */
const SLIPS: readonly (readonly [of: string, words: string, instead: string])[] = [
  ['ledger', 'mine.share > 0 and starved and isFull', 'starved and isFull'],
  ['ledger', 'room, fair - mine.share)', 'fair - mine.share)'],
  ['ledger', 'room, fair - mine.share)', 'room)'],
  ['ledger', 'mine.handsOn = handsOn and 1 or mine.handsOn', 'mine.handsOn = handsOn and 1 or 0'],
  ['ledger', 'gate.micros + aheadBy(gate, ahead, old.pace)', 'gate.micros'],
  ['ledger', 'book.gate.arrival = book.gate.arrival + given * book.gate.interval', ''],
  ['ledger', 'free = isAfter and math.floor(free / (rivals + 1)) or free', ''],
  ['ledger', 'row.share == 0 and book.now - row.beat', 'book.now - row.beat'],
  ['ledger', 'target = room < 0', 'target = false'],
  ['lend', 'back and back < mine.share', 'back'],
  ['lend', 'mine.share, mine.handsOn, mine.since = back, 0, now', 'mine.share, mine.since = back, now'],
  ['lent', 'turn.count, left = turn.count - taken, left - taken', 'left = left - taken'],
  ['lent', 'one.used = math.max(0, one.used + count)', ''],
  ['borrow', 'one.kind, one.epoch, one.seq, one.share = kind, epoch, seq, share', 'one.kind, one.share = kind, share'],
  [
    'borrow',
    'one.turns[#one.turns + 1] = { count = turns, ends = ends }',
    'one.turns = { { count = turns, ends = ends } }',
  ],
  ['borrow', 'math.max(running, one.share)', 'one.share'],
  ['borrow', 'ipairs(ratesIn(meta, gate))', 'ipairs({ gate })'],
  ['gate', " or share:find(' l%w') ~= nil", ''],
  ['letting-through', 'room = math.min(room, lentRoom(keys, gate))', ''],
  ['letting-through', '    useLent(keys, gate, given)\n', ''],
  ['lining-up', 'if gate.names and #list > lentRoom(keys, gate) then return list end', ''],
  ['lining-up', '    useLent(keys, gate, #list)\n', ''],
  ['lining-up', '    useLent(keys, gate, -#rest)\n', ''],
];

const bugs = [
  ...['lend', 'borrow', 'ledger', 'lent'].flatMap((of) => brokenTexts(of).map((bug) => ({ of, ...bug }))),
  ...SLIPS.map(([of, words, instead]) => ({
    of,
    name: `${of}: "${instead}" in the place of "${words}"`,
    lua: slipped({ of, words, instead }),
  })),
];

/** Why a bug changes nothing that a story could tell, by the words of its line. */
const EQUIVALENT: readonly (readonly [words: string, why: string])[] = [
  ['turned <: target = room < 0', 'where all is lent nothing is to be given back'],
  ['turned <: silent[#silent + 1] = #silent < 100', 'one row more goes in a call'],
  ['no guard: if count == 0 then return end', 'what is there is written again'],
];

async function isNoticed(): Promise<boolean> {
  for (const { tell } of lendingStories) {
    await redis.flushall();
    const isWrong = await tell(new LendingDesk(redis)).then(
      () => false,
      () => true,
    );
    if (isWrong) return true;
  }
  return false;
}

test('the stories find nothing in the scripts as they are', async () => {
  expect(await isNoticed()).toBe(false);
});

test(`each of ${bugs.length} planted bugs is noticed`, { timeout: 600_000 }, async () => {
  const survivors: string[] = [];
  for (const bug of bugs) {
    if (EQUIVALENT.some(([words]) => bug.name.includes(words))) continue;
    const heal = planted(redis, bug);
    if (!(await isNoticed())) survivors.push(bug.name);
    heal();
  }
  expect(survivors).toEqual([]);
});
