/** `stats`: the counts of one partition at one moment, without a write. */
import { expect, test } from 'vitest';
import { stats } from '../../src/redis/read/inspect.ts';
import { item, LEASE_MS, T0, usePartition } from '../support/partition.ts';

const p = usePartition();
const now = () => p.withoutWrite(() => stats(p.redis, p.ref));

test('an empty partition has nothing and nobody', async () => {
  expect(await now()).toMatchObject({
    scheduled: 0,
    headDueMs: undefined,
    ready: 0,
    running: 0,
    dead: 0,
    done: 0,
    term: undefined,
    paused: false,
    wakeMs: undefined,
    counters: {},
  });
});

test('every state is counted, and nothing twice', async () => {
  await p.dead('dead');
  await p.complete([await p.running('done')]);
  await p.running('running');
  await p.schedule('ready');
  await p.promote();
  await p.scheduleAll([item('later', { dueMs: T0 + 900 }), item('latest', { dueMs: T0 + 999 })]);
  expect(await now()).toMatchObject({
    scheduled: 2,
    headDueMs: T0 + 900,
    ready: 1,
    running: 1,
    dead: 1,
    done: 2,
    counters: { scheduled: 6, promoted: 4, done: 1, dead: 1 },
  });
});

test('a job that is not due is scheduled, also where it was offered ahead or a worker holds it', async () => {
  const nowMs = Date.now();
  const dues = {
    runs: nowMs - 5,
    held: nowMs + 8000,
    read: nowMs + 8001,
    offered: nowMs + 8002,
    later: nowMs + 60_000,
  };
  await p.scheduleAll(Object.entries(dues).map(([id, dueMs]) => item(id, { dueMs })));
  const pass = { term: await p.lead(), leaseMs: LEASE_MS, limit: 500, cap: 1000 };
  await p.jobs.promote(p.ref, pass);
  await p.jobs.start(p.ref, await p.read(), { consumer: 'w1', bytesMax: 1000, windowMs: 1000 });
  expect(await p.jobs.promote(p.ref, { ...pass, aheadMs: 9000 })).toMatchObject({ offered: 3 });
  await p.jobs.start(p.ref, await p.read('w1', 1), { consumer: 'w1', bytesMax: 1000, windowMs: 1000 });
  await p.read('w1', 1);
  expect(await now()).toMatchObject({ scheduled: 4, ready: 0, running: 1 });
});

test('the leader, its lease and its wake-up are told', async () => {
  const term = await p.lead();
  await p.promote();
  const found = await now();
  expect(found).toMatchObject({ term, wakeMs: Number.MAX_SAFE_INTEGER });
  expect(found.leaseTtlMs > 0 && found.leaseTtlMs <= LEASE_MS).toBe(true);
});

test('when a job was started last is told', async () => {
  expect((await now()).startedMs).toBeUndefined();
  await p.running('a');
  expect(Math.abs(((await now()).startedMs ?? 0) - Date.now())).toBeLessThan(60_000);
});

test('a paused partition says so', async () => {
  await p.redis.hset(p.keys.meta, 'paused', '1');
  expect(await now()).toMatchObject({ paused: true });
});

test('a head that is never due is read as such', async () => {
  await p.put('never', '+inf');
  expect(await now()).toMatchObject({ headDueMs: Number.POSITIVE_INFINITY });
});

test('sets are counted until their callbacks are made', async () => {
  const callback = { member: 'j:x', record: '10|{}', delayMs: 0 };
  expect((await now()).sets).toBeUndefined();
  await p.jobs.changeSet(p.ref, { kind: 'gather', name: 'a', callback });
  await p.jobs.changeSet(p.ref, { kind: 'gather', name: 'b', callback });
  expect((await now()).sets).toBe(2);
  await p.jobs.changeSet(p.ref, { kind: 'disband', name: 'a' });
  await p.jobs.changeSet(p.ref, { kind: 'disband', name: 'b' });
  expect((await now()).sets).toBeUndefined();
});
