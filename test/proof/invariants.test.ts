/** The checker finds what it is for: each invariant is broken on purpose, by hand, in a partition that was whole. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { broken, type Since, type Snapshot, takeSnapshot } from '../support/invariants.ts';
import { parse } from '../support/model-kept.ts';
import { type Bench, startBench } from '../support/model-run.ts';
import type { World } from '../support/model-world.ts';

let bench: Bench;
beforeAll(async () => {
  bench = await startBench();
});
afterAll(() => bench.stop());

/** One job that runs, one that waits, one that is over, and one that is ready. */
const WHOLE =
  'elect 0 0 0, schedule 2 0 0, promote 0 0 0, read 0 0 0, start 0 0 0, complete 0 0 0, schedule 0 0 0, promote 0 0 0, read 0 0 0, start 0 0 0, schedule 1 4 0, put 0 0 0, promote 0 0 0';

type Damage = (world: World) => Promise<unknown>;
const key = ({ ref }: World) => ref.keys;

/** What is done to the partition, and what is said about it. */
const damages: Readonly<Record<string, readonly [says: RegExp, damage: Damage]>> = {
  'a run under the entry of another': [
    /^I1 j:a runs under/,
    async (world) => {
      const other = (await takeSnapshot(world.redis, key(world))).ready.find(({ member }) => member === 'bare');
      const run = (await world.redis.hget(key(world).runs, 'j:a')) ?? '';
      return world.redis.hset(key(world).runs, 'j:a', run.replace(/\d+-\d+/, other?.entry ?? ''));
    },
  ],
  'an entry that somebody else holds': [
    /^I1 j:a runs with w1, but w2 holds it/,
    async (world) => {
      const [entry = ''] = (await takeSnapshot(world.redis, key(world))).pending.keys();
      return world.redis.call('XCLAIM', key(world).ready, 'workers', 'w2', 0, entry);
    },
  ],
  'a record without an index': [/^I2 j:b is lost/, ({ redis, ref }) => redis.zrem(ref.keys.scheduled, 'j:b')],
  'a tombstone without an index': [
    /^I2 the tombstone of j:c is never swept/,
    ({ redis, ref }) => redis.del(ref.keys.done),
  ],
  'a tombstone that cannot be read': [
    /^I2 the tombstone of j:c cannot be read/,
    ({ redis, ref }) => redis.hset(ref.keys.jobs, 'j:c', '.'),
  ],
  'an index without a record': [/^I3 j:x is scheduled/, ({ redis, ref }) => redis.zadd(ref.keys.scheduled, 1, 'j:x')],
  'an entry that was deleted': [/^I4 \d+-\d+ is pending/, (world) => deleted(world)],
  'an entry that was acknowledged': [/^I5 \d+-\d+ of j:a was acknowledged/, (world) => acknowledged(world)],
  'a group that is gone': [
    /^I6 ready has entries/,
    ({ redis, ref }) => redis.xgroup('DESTROY', ref.keys.ready, 'workers'),
  ],
  'a token of the future': [/^I7 j:a has a token/, (world) => patchRun(world, { at: 0, by: '9999999999999999' })],
  'a token that fell': [/^I7 the token of j:a fell/, (world) => patchRun(world, { at: 0, by: '5' })],
  'attempts that fell': [
    /^I7 of j:a fell within a generation: attempts/,
    (world) => patchRun(world, { at: 2, by: '0' }),
  ],
  'a generation that fell': [/^I7 the generation of j:a fell/, (world) => patchRun(world, { at: 1, by: '-1' })],
  'more failures than starts': [/^I7 j:a failed more often/, (world) => patchRun(world, { at: 3, by: '7' })],
  'an epoch that fell': [/^I7 the last epoch/, ({ redis, ref }) => redis.hset(ref.keys.meta, 'epoch', 1)],
  'an early entry': [
    /^I8 j:e was promoted before/,
    ({ redis, ref }) => redis.xadd(ref.keys.ready, '*', 'member', 'j:e', 'due', 9e15),
  ],
  'a forgotten member': [
    /^I9 forgotten is overdue/,
    ({ redis, ref }) => redis.zadd(ref.keys.scheduled, 1e12, 'forgotten'),
  ],
  'a lease for ever': [/^I10 the lease lives for -1/, ({ redis, ref }) => redis.persist(ref.keys.leader)],
  'a lease that is too long': [/^I10 the lease lives for/, ({ redis, ref }) => redis.pexpire(ref.keys.leader, 9e6)],
  'jobs that expire': [/^I10 a key that should stay expires/, ({ redis, ref }) => redis.pexpire(ref.keys.jobs, 9e6)],
  'a job that nobody counted': [
    /^I11 4 came in, 4 are live/,
    ({ redis, ref }) => redis.hset(ref.keys.jobs, 'j:x', '11|{}'),
  ],
  'a run without a record': [
    /^I12 the run of j:x has no record/,
    ({ redis, ref }) => redis.hset(ref.keys.runs, 'j:x', '0 0 0 0 0 - - - 0'),
  ],
  'a run that cannot be read': [
    /^I12 the run of j:a cannot be read/,
    ({ redis, ref }) => redis.hset(ref.keys.runs, 'j:a', 'x'),
  ],
  'a tag of a job that is over': [
    /^I15 x of j:gone is in the index/,
    ({ redis, ref }) => redis.zadd(ref.keys.tags, 0, 'x\0j:gone'),
  ],
  'a tag that is in no index': [
    /^I15 x of j:a is not in the index/,
    async ({ redis, ref }) => {
      const record = (await redis.hget(ref.keys.jobs, 'j:a')) ?? '';
      return redis.hset(ref.keys.jobs, 'j:a', record.replace(/^(\w+)/, '$1;t=x'));
    },
  ],
};

const nowOf = async ({ redis, ref }: World): Promise<Snapshot> => takeSnapshot(redis, ref.keys);

async function deleted(world: World): Promise<unknown> {
  const [entry = ''] = (await nowOf(world)).pending.keys();
  return world.redis.xdel(world.ref.keys.ready, entry);
}

async function acknowledged(world: World): Promise<unknown> {
  const [entry = ''] = (await nowOf(world)).pending.keys();
  return world.redis.xack(world.ref.keys.ready, 'workers', entry);
}

async function patchRun({ redis, ref }: World, { at, by }: { at: number; by: string }): Promise<unknown> {
  const fields = ((await redis.hget(ref.keys.runs, 'j:a')) ?? '').split(' ');
  return redis.hset(ref.keys.runs, 'j:a', fields.with(at, by).join(' '));
}

test('a whole partition has nothing to find', async () => {
  const world = await bench.reach(parse(WHOLE));
  const before = await nowOf(world);
  expect(broken(before, { before, promotedUpTo: world.model.nowMs })).toEqual([]);
});

test.each(Object.entries(damages))('finds %s', async (_, [says, damage]) => {
  const world = await bench.reach(parse(WHOLE));
  const before = await nowOf(world);
  await damage(world);
  const since: Since = { before, promotedUpTo: world.model.nowMs };
  expect(broken(await nowOf(world), since)).toContainEqual(expect.stringMatching(says));
});

test('every invariant of the design is broken once', () => {
  const said = new Set(Object.values(damages).map(([says]) => /I\d+/.exec(says.source)?.[0]));
  expect([...said].sort()).toEqual([...Array.from({ length: 12 }, (_, index) => `I${index + 1}`), 'I15'].sort());
});
