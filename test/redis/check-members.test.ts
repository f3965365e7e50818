/** `checkMembers`: every member that lacks a part is found, and nothing that is whole is named. */
import { expect, test } from 'vitest';
import { checkMembers } from '../../src/redis/repair/damage.ts';
import { T0, usePartition } from '../support/partition.ts';

const p = usePartition({});
const look = async (part: 'all' | 'jobs' | 'runs' | 'scheduled' = 'all', limit = 1000, cursor = '0') => {
  const reply = await p.withoutWrite(() => checkMembers(p.redis, p.ref, { part, limit, cursor }));
  if (reply.kind === 'large') throw new Error('too large');
  return reply;
};
const kinds = async () => (await look()).found.map(({ kind, name, detail }) => [kind, name, detail]);

test('a partition with jobs in every state is whole', async () => {
  await p.complete([await p.running('done')]);
  await p.dead('dead');
  await p.running('runs');
  await p.retry(await p.running('fails'));
  await p.schedule('ready');
  await p.promote();
  await p.cancel('j:ready');
  await p.schedule('waits', { dueMs: T0 + 1000 });
  await p.put('bare', T0 + 1000);
  expect(await look()).toMatchObject({ records: 3, found: [], next: undefined });
});

test('an empty partition is whole', async () => {
  expect(await look()).toEqual({ kind: 'counted', next: undefined, looked: 0, records: 0, surplus: 0, found: [] });
});

test('a record in no index is an orphan, with who ran it', async () => {
  await p.running('runs');
  await p.schedule('waits', { dueMs: T0 + 1000 });
  await p.redis.del(p.keys.ready, p.keys.scheduled);
  expect((await kinds()).toSorted()).toEqual([
    ['orphan', 'j:runs', 'w1'],
    ['orphan', 'j:waits', '-'],
  ]);
  expect((await look()).surplus).toBe(2);
  await p.reset();
});

test('a tombstone in no index is found, and a run without a record', async () => {
  await p.complete([await p.running('a')]);
  await p.redis.hset(p.keys.runs, 'j:a', '1 0 1 0 0 - - - 0');
  await p.redis.del(p.keys.done);
  expect((await kinds()).toSorted()).toEqual([
    ['idle', 'j:a', '-'],
    ['tombstone', 'j:a', ''],
  ]);
  await p.reset();
});

test('a scheduled member of ours without a record is found, a bare one is not', async () => {
  await p.put('j:lost', T0);
  await p.put('bare', T0);
  expect(await kinds()).toEqual([['unrecorded', 'j:lost', '']]);
  await p.reset();
});

test('a run that cannot be is found: a token nobody gave, more failures than starts, a holder that is another', async () => {
  await p.running('a');
  await p.redis.call(
    'XCLAIM',
    p.keys.ready,
    'workers',
    'w2',
    0,
    (await p.redis.xrange(p.keys.ready, '-', '+'))[0]?.[0] ?? '',
  );
  await p.schedule('b', { dueMs: T0 + 1000 });
  await p.redis.hset(p.keys.runs, 'j:b', '1 0 1 2 0 - - - 0');
  expect((await kinds()).toSorted()).toEqual([
    ['ahead', 'j:b', ''],
    ['shared', 'j:a', 'w2'],
  ]);
});

test('a debounced record without its order is found, and newer data of one that is not debounced', async () => {
  await p.running('a');
  await p.redis.hset(p.keys.runs, 'j:a', ((await p.redis.hget(p.keys.runs, 'j:a')) ?? '').replace(/0$/, '2'));
  await p.schedule('b', { dueMs: T0 + 1000 });
  await p.redis.hset(p.keys.jobs, 'j:b', '1mi8or64g;d=mi8or9zk|{}');
  await p.schedule('c', { dueMs: T0 + 1000, data: ';d=1|' });
  expect((await kinds()).toSorted()).toEqual([
    ['unordered', 'j:a', ''],
    ['unordered', 'j:b', ''],
  ]);
});

test('what is too much for one moment is refused with its size, and walked slice by slice', async () => {
  await p.scheduleAll([]);
  for (let nth = 0; nth < 300; nth += 1) await p.schedule(`n${nth}`, { dueMs: T0 + 1000, data: 'x'.repeat(80) });
  expect(await checkMembers(p.redis, p.ref, { part: 'all', limit: 100 })).toEqual({ kind: 'large', size: 600 });
  await p.redis.zrem(p.keys.scheduled, 'j:n7');
  const found = new Set<string>();
  let records = 0;
  for (let cursor: string | undefined = '0'; cursor !== undefined; ) {
    const slice = await look('jobs', 50, cursor);
    expect(slice.looked).toBeLessThan(150);
    records += slice.records;
    for (const { kind, name } of slice.found) found.add(`${kind} ${name}`);
    cursor = slice.next;
  }
  expect([...found]).toEqual(['orphan j:n7']);
  expect(records).toBeGreaterThanOrEqual(300);
  await p.reset();
});
