/** `repair`: what lost a part gets it back, never early and never twice. */
import { expect, test } from 'vitest';
import { decodeRun } from '../../src/job/codec.ts';
import type { DamageKind } from '../../src/redis/repair/damage.ts';
import { repair } from '../../src/redis/repair/repair.ts';
import { READ_BYTES_MAX } from '../../src/redis/scripts/bytes.ts';
import { scripts } from '../../src/redis/scripts/script-table.ts';
import { run } from '../../src/redis/scripts/scripts.ts';
import { only, T0, usePartition } from '../support/partition.ts';

const p = usePartition();

async function repaired(kind: DamageKind, name = '', nowMs = T0): Promise<string> {
  return only([...(await repair(p.redis, p.ref, [{ kind, name, detail: '' }], { nowMs })).values()]);
}
/** Repairs, and again: the second call finds nothing to do. */
async function repairTwice(kind: DamageKind, name = '', nowMs = T0): Promise<void> {
  expect(await repaired(kind, name, nowMs)).toBe('repaired');
  expect(await p.withoutWrite(() => repaired(kind, name, nowMs))).toBe('sound');
}
const entryOf = async () => only(await p.redis.xrange(p.keys.ready, '-', '+'))[0];
const deleteConsumer = () => p.redis.call('XGROUP', 'DELCONSUMER', p.keys.ready, 'workers', 'w1');

test('an orphan that never ran is scheduled at its asked due time, and its leader is told', async () => {
  await p.schedule('a', { dueMs: T0 + 5000 });
  await p.redis.del(p.keys.scheduled);
  await p.promote();
  expect(await p.nudgesOf(() => repairTwice('orphan', 'j:a'))).toEqual([String(T0 + 5000)]);
  expect((await p.picture()).scheduled).toEqual({ 'j:a': T0 + 5000 });
});

test('an orphan whose due time has passed is scheduled now', async () => {
  await p.schedule('a');
  await p.redis.del(p.keys.scheduled);
  await repairTwice('orphan', 'j:a', T0 + 9000);
  expect((await p.picture()).scheduled).toEqual({ 'j:a': T0 + 9000 });
});

test('an orphan in retry wait keeps its next due time, its attempts and its failures', async () => {
  await p.retry(await p.running('a'), { delayMs: 60_000 });
  await p.redis.del(p.keys.scheduled);
  await repairTwice('orphan', 'j:a');
  expect((await p.picture()).scheduled).toEqual({ 'j:a': T0 + 60_000 });
  expect(decodeRun((await p.redis.hget(p.keys.runs, 'j:a')) ?? '')).toMatchObject({ attempts: 1, failures: 1 });
});

test('an orphan that ran loses its entry: its late end has no effect, and it runs again', async () => {
  const claim = await p.running('a');
  await p.redis.del(p.keys.ready);
  await repairTwice('orphan', 'j:a');
  expect(await p.complete([claim])).not.toEqual(['ok']);
  expect(only(await p.run()).token).not.toBe(claim.token);
});

test('a job that is scheduled, ready, running or over is no orphan', async () => {
  await p.complete([await p.running('over')]);
  await p.running('runs');
  await p.schedule('ready');
  await p.promote();
  await p.schedule('waits', { dueMs: T0 + 1000 });
  for (const name of ['j:over', 'j:runs', 'j:ready', 'j:waits', 'j:nobody']) {
    expect(await p.withoutWrite(() => repaired('orphan', name))).toBe('sound');
  }
});

test('a tombstone in no index is swept again one day', async () => {
  await p.complete([await p.running('a')]);
  await p.redis.del(p.keys.done);
  await repairTwice('tombstone', 'j:a', T0 + 1);
  expect((await p.picture()).done).toEqual({ 'j:a': T0 + 1 });
});

test('the tombstone of a cancelled job that is still ready waits for its entry', async () => {
  await p.schedule('a');
  await p.promote();
  await p.cancel('j:a');
  expect(await p.withoutWrite(() => repaired('tombstone', 'j:a'))).toBe('sound');
});

test('a run without a record goes, unless somebody runs it at this moment', async () => {
  await p.complete([await p.running('a')]);
  await p.redis.hset(p.keys.runs, 'j:a', '1 0 1 0 0 - - - 0');
  await repairTwice('idle', 'j:a');
  const claim = await p.running('b');
  await p.redis.hdel(p.keys.jobs, 'j:b');
  expect(await p.withoutWrite(() => repaired('idle', 'j:b'))).toBe('sound');
  await p.complete([claim]);
  await p.reset();
});

test('a stuck entry of a running job goes back to its owner, whose end counts', async () => {
  const claim = await p.running('a');
  await deleteConsumer();
  await repairTwice('stuck', claim.entry);
  expect((await p.picture()).pending).toEqual({ w1: ['j:a'] });
  expect(await p.extend([claim])).toEqual(['ok']);
  expect(await p.complete([claim])).toEqual(['ok']);
});

test('a stuck entry that nobody started comes last and is delivered again', async () => {
  await p.schedule('a');
  const { entry } = only(await p.deliver());
  await deleteConsumer();
  await repairTwice('stuck', entry);
  expect(await entryOf()).not.toBe(entry);
  expect(await p.claim(await p.read('w2'), 'w2')).toHaveLength(1);
});

test('a stuck entry whose job is over goes, and its tombstone is swept one day', async () => {
  await p.schedule('a');
  const { entry } = only(await p.deliver());
  await p.cancel('j:a');
  await deleteConsumer();
  await repairTwice('stuck', entry);
  expect(await p.picture()).toEqual({ jobs: { 'j:a': 'tombstone cancelled' }, done: { 'j:a': T0 } });
});

test('an entry that waits or is held is not stuck', async () => {
  for (const id of ['a', 'b']) await p.schedule(id);
  await p.promote();
  await p.read('w1', 1);
  for (const [entry] of await p.redis.xrange(p.keys.ready, '-', '+')) {
    expect(await p.withoutWrite(() => repaired('stuck', entry))).toBe('sound');
  }
  expect(await p.withoutWrite(() => repaired('stuck', '1-1'))).toBe('sound');
});

test('a group that is gone is made again from the beginning', async () => {
  await p.schedule('a');
  await p.promote();
  await p.redis.call('XGROUP', 'DESTROY', p.keys.ready, 'workers');
  await repairTwice('group');
  expect(await p.read()).toHaveLength(1);
});

test('a Redis at its memory limit is repaired all the same', async () => {
  await p.schedule('a');
  const { entry } = only(await p.deliver());
  await p.redis.call('XGROUP', 'DELCONSUMER', p.keys.ready, 'workers', 'w1');
  await p.schedule('b');
  await p.redis.del(p.keys.scheduled);
  await p.redis.config('SET', 'maxmemory', '1');
  try {
    expect(await repaired('orphan', 'j:b')).toBe('repaired');
    expect(await repaired('stuck', entry)).toBe('repaired');
  } finally {
    await p.redis.config('SET', 'maxmemory', '0');
  }
});

test('when ready has grown by too much since it was read, nothing is touched', async () => {
  await p.schedule('a');
  await p.redis.del(p.keys.scheduled);
  for (let nth = 1; nth <= 1000; nth += 1) await p.redis.xadd(p.keys.ready, `${nth}-1`, 'member', 'x', 'due', 1);
  const args = { now: T0, seen: '-', bytes: READ_BYTES_MAX };
  const call = () => run(p.redis, scripts.repair, { keys: p.keys, args, each: ['orphan', 'j:a'] });
  expect(await p.withoutWrite(call)).toEqual(['unsure']);
  expect(await repaired('orphan', 'j:a')).toBe('repaired');
  await p.reset();
});
