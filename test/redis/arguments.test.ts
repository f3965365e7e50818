/**
 * No command of ours has more than 3,900 arguments: some services refuse more. What grows with processes, queues, schedules or
 * entries is asked for in parts, in its order. That the count notices a longer one is shown first.
 */
import { describe, expect, test } from 'vitest';
import { gateShare } from '../../src/job/gate.ts';
import { parseSettings } from '../../src/job/queue-settings.ts';
import { subscribeAll } from '../../src/redis/channels.ts';
import { controlKeys, partitionKeys } from '../../src/redis/keys.ts';
import { ARGUMENTS_MAX, inParts } from '../../src/redis/scripts/bytes.ts';
import { limit } from '../../src/redis/scripts/gates.ts';
import { createJobs } from '../../src/redis/scripts/jobs.ts';
import { presence } from '../../src/redis/scripts/presence.ts';
import { declaredAmong } from '../../src/redis/scripts/queues.ts';
import { ensureGroup } from '../../src/redis/scripts/ready.ts';
import { definitions, firedOf } from '../../src/redis/scripts/schedules.ts';
import { takeTooLong } from '../support/arguments.ts';
import { usePartition } from '../support/partition.ts';

const p = usePartition();
const MANY = 5000;
const names = Array.from({ length: MANY }, (_, nth) => `n${nth}`);
/** Some of many, far apart, in the order in which they are asked for. */
const SOME = [0, 2999, 3000, 4999];

describe('the count', () => {
  test('refuses a command of ours that is longer, and tells of it although nobody else does', async () => {
    const tags = names.slice(0, ARGUMENTS_MAX);
    const change = { mode: 'open' } as const;
    await expect(createJobs(p.redis).closeTags(p.ref, tags, change)).rejects.toThrow(
      /^too many arguments: evalsha with 39\d\d/,
    );
    expect(takeTooLong()).toHaveLength(1);
  });

  test('takes one that is as long as it may be', async () => {
    await p.redis.hmget('h', ...names.slice(0, ARGUMENTS_MAX - 2));
    await expect(async () => p.redis.hmget('h', ...names.slice(0, ARGUMENTS_MAX - 1))).rejects.toThrow(
      'hmget with 3901',
    );
    expect(takeTooLong()).toEqual(['hmget with 3901']);
  });
});

describe('in parts, and in its order, come', () => {
  test('items of any number, and none for none', async () => {
    const asked: number[] = [];
    const double = async (some: readonly number[]) => {
      asked.push(some.length);
      return some.map((one) => 2 * one);
    };
    expect(await inParts([1, 2, 3, 4, 5], double, 2)).toEqual([2, 4, 6, 8, 10]);
    expect(await inParts([], double, 2)).toEqual([]);
    expect(asked).toEqual([2, 2, 1]);
  });

  test('definitions of schedules, and how far they were fired', async () => {
    const { schedules } = controlKeys('t');
    for (const at of SOME) await p.redis.hset(schedules, `n${at}`, `text ${at}`);
    const texts = await definitions(p.redis, 't', names);
    expect(texts).toHaveLength(MANY);
    expect(SOME.map((at) => texts[at])).toEqual(SOME.map((at) => `text ${at}`));
    expect(texts.filter((one) => one !== undefined)).toHaveLength(SOME.length);
    expect(await firedOf(p.redis, p.ref, names)).toEqual(names.map(() => undefined));
  });

  test('queues that are declared', async () => {
    const { queues } = controlKeys('t');
    for (const at of SOME) await p.redis.hset(queues, `n${at}`, '{"partitions":1,"generation":0}');
    expect([...(await declaredAmong(p.redis, 't', names))]).toEqual(SOME.map((at) => `n${at}`));
    await p.redis.del(queues);
  });

  test('processes with their heartbeats', async () => {
    const { alive, beat } = controlKeys('t');
    await p.redis.sadd(alive, ...names.slice(0, 2500));
    await p.redis.sadd(alive, ...names.slice(2500));
    for (const at of SOME) await p.redis.set(beat(`n${at}`), JSON.stringify({ id: `n${at}` }));
    const all = await presence(p.redis, 't');
    expect(all).toHaveLength(MANY);
    const there = all.filter(({ identity }) => identity !== undefined).map(({ id, identity }) => [id, identity?.id]);
    expect(there).toEqual(SOME.map((at) => [`n${at}`, `n${at}`]).toSorted());
  });

  test('entries that are released', async () => {
    const lost = names.map((name, nth) => ({ entry: `${nth + 1}-0` as never, member: `j:${name}`, dueMs: 1 }));
    await ensureGroup(p.redis, p.keys);
    const released = createJobs(p.redis).release(p.ref, lost, { consumer: 'w1' });
    expect(await released).toEqual(names.map(() => 'lost'));
  });
});

test('a thousand groups with limits of their own fit into one command', async () => {
  const groups = Object.fromEntries(names.slice(0, 1000).map((name) => [name, { concurrency: 1 }]));
  const share = gateShare(parseSettings({ groups }), { partition: 0, partitions: 1 });
  if (!share) throw new Error('it is not gated');
  expect(share.groups).toHaveLength(1000);
  expect(await limit(p.redis, p.ref, { share })).toBe('ok');
});

test('the channels of many partitions are subscribed in parts', async () => {
  const subscriber = await p.server.client();
  const channels = names.map((queue) => partitionKeys({ namespace: 't', queue, partition: 0 }).wake);
  await subscribeAll(subscriber, channels);
  for (const at of SOME)
    expect(await p.redis.call('PUBSUB', 'SHARDNUMSUB', channels[at] ?? '')).toEqual([channels[at], 1]);
});
