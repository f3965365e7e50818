/** The consumer-group side of the ready stream. */
import { describe, expect, test } from 'vitest';
import type { EntryId } from '../../src/job/job.ts';
import { partitionRef } from '../../src/redis/keys.ts';
import * as ready from '../../src/redis/scripts/ready.ts';
import { item, only, T0, usePartition } from '../support/partition.ts';

const p = usePartition();

describe('the group', () => {
  test('is made once, and asking again changes nothing', async () => {
    await ready.ensureGroup(p.redis, p.keys);
    await p.withoutWrite(() => ready.ensureGroup(p.redis, p.keys));
  });

  test('made again sees what arrived before it', async () => {
    await p.schedule('a');
    await p.promote();
    await p.redis.call('XGROUP', 'DESTROY', p.keys.ready, 'workers');
    await ready.ensureGroup(p.redis, p.keys);
    expect((await p.read()).map(({ member }) => member)).toEqual(['j:a']);
  });
});

describe('reading', () => {
  test('gives each entry to one consumer, in order, and no more than asked for', async () => {
    await p.scheduleAll([item('a'), item('b'), item('c')]);
    await p.promote();
    expect((await p.read('w1', 2)).map(({ member }) => member)).toEqual(['j:a', 'j:b']);
    expect((await p.read('w2', 2)).map(({ member }) => member)).toEqual(['j:c']);
    expect(await p.read('w1', 2)).toEqual([]);
  });

  test('of several partitions says which is which', async () => {
    const other = partitionRef('t', { queue: 'q', partition: 1, layoutGeneration: 0 });
    await ready.ensureGroup(p.redis, other.keys);
    await p.redis.xadd(other.keys.ready, '*', 'member', 'j:b', 'due', T0);
    await p.schedule('a');
    await p.promote();
    const got = await ready.readNew(p.redis, [p.ref, other], { consumer: 'w1', count: 10, blockMs: 0 });
    const seen = got.map(({ ref, deliveries }) => [ref.partition, deliveries.map(({ member }) => member)]);
    expect(seen).toEqual([
      [0, ['j:a']],
      [1, ['j:b']],
    ]);
  });

  test('waits for data, and not for longer', async () => {
    await ready.ensureGroup(p.redis, p.keys);
    expect(await ready.readNew(p.redis, [p.ref], { consumer: 'w1', count: 1, blockMs: 5 })).toEqual([]);
  });

  test('fails when the group is not there, so that the caller can repair it', async () => {
    await expect(ready.readNew(p.redis, [p.ref], { consumer: 'w1', count: 1, blockMs: 0 })).rejects.toThrow(/^NOGROUP/);
  });
});

describe('what a consumer holds', () => {
  test('is found by its idle time, whether it knows of it or not', async () => {
    await p.schedule('a');
    const { entry } = only(await p.deliver());
    const mine = { consumer: 'w1', idleMs: 0, limit: 10 };
    expect(await ready.ownPending(p.redis, p.keys, mine)).toEqual([entry]);
    expect(await ready.ownPending(p.redis, p.keys, { ...mine, idleMs: 60_000 })).toEqual([]);
    expect(await ready.ownPending(p.redis, p.keys, { ...mine, consumer: 'w2' })).toEqual([]);
  });

  test('can be read again; what was deleted is left out', async () => {
    await p.schedule('a');
    const delivery = only(await p.deliver());
    const gone = '1-1' as EntryId;
    expect(await ready.readEntries(p.redis, p.keys, [gone, delivery.entry])).toEqual([delivery]);
  });
});

test('consumers are listed with what they hold', async () => {
  await p.running('a');
  await p.redis.call('XGROUP', 'CREATECONSUMER', p.keys.ready, 'workers', 'w2');
  expect(await ready.consumers(p.redis, p.keys)).toMatchObject([
    { name: 'w1', pending: 1 },
    { name: 'w2', pending: 0 },
  ]);
});

test('the proof that a partition takes writes changes nothing', async () => {
  await p.running('a');
  await p.withoutWrite(() => ready.proveWritable(p.redis, p.keys));
});
