/** Limits that several queues share: what a ledger lends, and what a partition does with it, call by call. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { close, openCommands, type Redis, whenReady } from '../../src/redis/connection/connect.ts';
import { LendingDesk, lendingStories } from '../support/lending-stories.ts';
import { cutOff, lineOf, luaOf } from '../support/model-cut.ts';
import { planted, slipped } from '../support/planted.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';

let server: TestRedis;
let redis: Redis;
beforeAll(async () => {
  server = await startRedis();
  redis = openCommands({ redis: { path: server.socketPath }, name: 'lend' });
  await whenReady(redis);
});
beforeEach(() => redis.flushall());
afterAll(async () => {
  close(redis);
  await server.stop();
});

/** Rows of the table of transitions. */
const moves = new Set<string>();

for (const { title, tell } of lendingStories) test(title, () => tell(new LendingDesk(redis, moves)));

test('what the table of transitions says of jobs that wait for a shared limit happens, and nothing else', () => {
  expect([...moves].filter((row) => / borrow /.test(row))).toEqual(['waiting borrow ready']);
});

/** How often each command was called by what these queues do: lines, turns, groups that are full, jobs that go past the line. */
async function commandsOf(share: string): Promise<Readonly<Record<string, string>>> {
  await redis.flushall();
  const { desk } = new LendingDesk(redis);
  await desk.begin(share);
  await redis.config('RESETSTAT');
  await desk.line('a');
  await desk.line('{x}b', '{x}c', 'd', 'e');
  const taken = await desk.serve(2);
  desk.nowMs += 1000;
  await desk.serve(5, { over: taken });
  await desk.relay(5, { over: [...desk.claims.keys()] });
  await desk.line('f');
  const found = (await redis.info('commandstats')).matchAll(/^cmdstat_(\S+):calls=(\d+)/gm);
  const calls = [...found].map(([, command = '', count = '']) => [command, count] as const);
  return Object.fromEntries(calls.filter(([command]) => !/^(info|config|eval)/.test(command)));
}

test('a queue that shares no limit makes the same commands as if there were none to share', async () => {
  const shares = ['0 1 0 0', '100000 2 3 1', '0 1 0 1'];
  const now: unknown[] = [];
  for (const share of shares) now.push(await commandsOf(share));
  const without = { of: 'gate', words: "gate.names = ((more or '') .. ' '):match(' l(%S+) ')", instead: '' };
  const heal = planted(redis, { of: without.of, lua: slipped(without) });
  const before: unknown[] = [];
  for (const share of shares) before.push(await commandsOf(share));
  heal();
  expect(now).toEqual(before);
  expect(await commandsOf('0 1 0 0 lpace')).not.toEqual(before[0]);
});

/** A gift, and turns that are used: what of it is cut off was used, and nobody starts without a turn. */
test('cut off before each of its writes, no call lets through more than was lent', async () => {
  const calls: Readonly<Record<string, (desk: LendingDesk) => Promise<unknown>>> = {
    borrow: (desk) => desk.give([{ name: 'pace', seq: 2, turns: 2 }]),
    serve: (desk) => desk.desk.serve(5),
    promote: (desk) => desk.desk.promote(),
    relay: (desk) => desk.desk.relay(5),
  };
  const cuts: string[] = [];
  for (const [verb, call] of Object.entries(calls)) {
    for (let allowed = 0; ; allowed += 1) {
      await redis.flushall();
      const lending = new LendingDesk(redis);
      await lending.line('pace', 'a', 'b', 'c', 'd', 'e');
      // So no bell is rung.
      await lending.desk.pause();
      await lending.give([{ name: 'pace', seq: 1, turns: 2 }]);
      await lending.desk.resume();
      await lending.desk.put(['f']);
      const site = await cutOff(redis, { verb, lua: luaOf(verb), allowed, call: () => call(lending) });
      if (site !== undefined && /meta, 'lent'/.test(lineOf(verb, site))) cuts.push(verb);
      await call(lending).catch(() => undefined);
      await lending.desk.serve(9);
      const most = verb === 'borrow' ? 4 : 2;
      const { claims } = lending.desk;
      expect([verb, allowed, new Set(claims.keys()).size <= most]).toEqual([verb, allowed, true]);
      if (site === undefined) break;
    }
  }
  expect([...new Set(cuts)]).toEqual(['borrow', 'serve', 'promote', 'relay']);
});
