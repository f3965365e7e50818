/** The weigher of a led partition: its share stands beside its jobs, and what they weigh is counted again and again. */
import { expect, test } from 'vitest';
import { createEmitter } from '../../../src/job/events.ts';
import { gateShare } from '../../../src/job/gate.ts';
import { parseSettings } from '../../../src/job/queue-settings.ts';
import type { Quota } from '../../../src/job/quota.ts';
import { type Clock, systemClock } from '../../../src/kernel/clock.ts';
import { idle } from '../../../src/kernel/loop.ts';
import { createGatekeeper } from '../../../src/mover/chores/gatekeeper.ts';
import { createWeigher } from '../../../src/mover/chores/weigher.ts';
import { otherShare } from '../../../src/redis/scripts/gates.ts';
import { declareQueue, setQueue } from '../../../src/redis/scripts/queues.ts';
import { item, T0, usePartition } from '../../support/partition.ts';

const p = usePartition();
const DUE = T0 + 5000;

async function weigherOn(given: { quota?: Quota; term?: string; clock?: Clock } = {}) {
  const now = { quota: given.quota, term: given.term ?? (await p.lead()) };
  const weigher = createWeigher({
    redis: p.redis,
    ref: p.ref,
    namespace: 't',
    clock: given.clock ?? systemClock,
    events: createEmitter(),
    current: () => ({ ...p.ref, ...(now.quota && { quota: now.quota }) }),
    leading: () => (now.term === '' ? undefined : { term: now.term, epoch: 1 }),
  });
  return { ...weigher, now };
}
const quota = () => p.meta('quota');

test('a queue without limits costs one call for a term', async () => {
  const { pass } = await weigherOn();
  expect(await pass()).toEqual(idle(5000));
  await p.redis.config('RESETSTAT');
  expect(await pass()).toEqual(idle(5000));
  expect(await p.redis.info('commandstats')).not.toMatch(/eval|hget|zcard/);
});

test('limits that the registry no longer has are taken back', async () => {
  await p.redis.hset(p.keys.meta, { quota: '5 4096', held: '7 7' });
  const { pass } = await weigherOn();
  await pass();
  expect([await quota(), await p.meta('held')]).toEqual([null, null]);
});

test('the share is written when the registry says another one, and after a new election', async () => {
  const weigher = await weigherOn({ quota: { pending: 5, bytes: 0 } });
  expect(await weigher.pass()).toEqual(idle(5000));
  expect(await quota()).toBe('5 0');
  weigher.now.quota = { pending: 7, bytes: 0 };
  await weigher.pass();
  expect(await quota()).toBe('7 0');
  await p.redis.hdel(p.keys.meta, 'quota');
  weigher.now.term = '';
  expect(await weigher.pass()).toEqual(idle(5000));
  weigher.now.term = await p.lead();
  await weigher.pass();
  expect(await quota()).toBe('7 0');
});

test('a share that somebody else wrote is compared with the registry, and mended, within a minute', async () => {
  let nowMs = 0;
  const clock = { ...systemClock, monotonicMs: () => nowMs };
  const { pass } = await weigherOn({ quota: { pending: 5, bytes: 0 }, clock });
  await pass();
  await p.redis.hset(p.keys.meta, 'quota', '9 0');
  nowMs = 59_999;
  await pass();
  expect(await quota()).toBe('9 0');
  nowMs = 60_000;
  await pass();
  expect(await quota()).toBe('5 0');
});

test('a gated partition mends its share just so', async () => {
  let nowMs = 0;
  const gates = gateShare(parseSettings({ perGroup: 1 }), { partition: 0, partitions: 1 });
  const { pass } = createGatekeeper({
    redis: p.redis,
    ref: p.ref,
    namespace: 't',
    clock: { ...systemClock, monotonicMs: () => nowMs },
    events: createEmitter(),
    current: () => ({ ...p.ref, gates }),
    leading: () => ({ term, epoch: 1 }),
  });
  const term = await p.lead();
  await pass();
  await p.redis.hset(p.keys.meta, 'gates', '0 1 0 9');
  expect(await otherShare(p.redis, { ...p.ref, gates })).toBe('the limits 0 1 0 9 instead of 0 1 0 1');
  nowMs = 59_999;
  await pass();
  expect(await p.meta('gates')).toBe('0 1 0 9');
  nowMs = 60_000;
  await pass();
  expect(await p.meta('gates')).toBe('0 1 0 1');
  expect(await otherShare(p.redis, { ...p.ref, gates })).toBeUndefined();
});

test('a leader that read the registry some time ago undoes nothing of what somebody has set since', async () => {
  const said = { namespace: 't', queue: p.ref.queue };
  await declareQueue(p.redis, { ...said, partitions: 1, perGroup: 1, maxPending: 5 });
  const gates = gateShare(parseSettings({ perGroup: 1 }), { partition: 0, partitions: 1 });
  const ref = { ...p.ref, gates, quota: { pending: 5, bytes: 0 } };
  const term = await p.lead();
  const duty = { redis: p.redis, ref, namespace: 't', clock: systemClock, events: createEmitter(), current: () => ref };
  const leading = () => ({ term, epoch: 1 });
  await setQueue(p.redis, { ...said, perGroup: 3, maxPending: 7 });
  await createGatekeeper({ ...duty, leading }).pass();
  await createWeigher({ ...duty, leading }).pass();
  expect([await p.meta('gates'), await quota()]).toEqual(['0 1 0 3', '7 0']);
});

test('a deposed leader writes nothing', async () => {
  await p.lead();
  const { pass } = await weigherOn({ quota: { pending: 5, bytes: 0 }, term: 'm0:1:1000' });
  await pass();
  expect(await quota()).toBeNull();
});

test('bytes are counted slice by slice; a count that finds the same is followed by a longer rest', async () => {
  const weigher = await weigherOn({ quota: { pending: 0, bytes: 1_000_000 } });
  const items = Array.from({ length: 700 }, (_, n) => item(`${n}`, { dueMs: DUE, data: 'x'.repeat(n % 50) }));
  await p.scheduleAll(items.slice(0, 400));
  await p.scheduleAll(items.slice(400));
  const rests: unknown[] = [];
  for (let passes = 0; passes < 12 && rests.at(-1) !== 10_000; passes += 1) rests.push(await weigher.pass());
  expect(rests.filter((rest) => rest === 1000)).toHaveLength(1);
  expect(rests.at(-1)).toBe(10_000);
  expect(rests.filter((rest) => rest === 50).length).toBeGreaterThan(2);
  const bytes = items.reduce((sum, { record }) => sum + record.length, 0);
  expect(await p.meta('held')).toBe(`${bytes} 700`);
});

test('a share that somebody removed with all that was there is written again', async () => {
  const weigher = await weigherOn({ quota: { pending: 3, bytes: 5000 } });
  await weigher.pass();
  await p.redis.hdel(p.keys.meta, 'quota', 'held');
  await weigher.pass();
  await weigher.pass();
  expect(await quota()).toBe('3 5000');
});
