/** What somebody else breaks under load is whole again: no job is lost, whichever part of it was removed. */
import { expect, it } from 'vitest';
import { createEmitter, type Events } from '../../../src/job/events.ts';
import { systemClock } from '../../../src/kernel/clock.ts';
import { idle } from '../../../src/kernel/loop.ts';
import { createRepairer, type RepairerOptions } from '../../../src/mover/chores/repairer.ts';
import { handClock, restOf } from '../../support/mover-line.ts';
import { eventually, QUICK, useLine } from '../../support/worker-line.ts';

const line = useLine();
const COUNT = 120;
const SHORT: RepairerOptions = { restMs: 50, walkMs: 50, walkedMs: 50, apartMs: 100, ownedApartMs: 400 };

function repairerOn(options: Partial<RepairerOptions> = SHORT, clock = systemClock) {
  const events = createEmitter();
  const repaired: Events['partition.repaired'][] = [];
  events.on('partition.repaired', (event) => repaired.push(event));
  const state = { leads: true };
  const repairer = createRepairer({
    redis: line.redis,
    ref: line.ref,
    options,
    clock,
    events,
    leading: () => (state.leads ? { term: 'm:1:1', epoch: 1 } : undefined),
  });
  line.onEnd(() => repairer.stop());
  return { ...repairer, repaired, state };
}

/** Jobs under a worker of a few slots, which is busy when `break` is called; all of them must be over in the end. */
async function broken(act: (consumer: string) => Promise<unknown>) {
  const ended = new Set<string>();
  const worker = await line.worker(
    async (job) => {
      await systemClock.sleep(20);
      ended.add(job.id);
    },
    { concurrency: 8, ...QUICK },
  );
  await line.plan(...line.many(COUNT));
  await eventually(() => ended.size).toBeGreaterThan(10);
  expect(ended.size).toBeLessThan(COUNT);
  await act(worker.consumer);
  const repairer = repairerOn();
  repairer.start();
  await eventually(() => ended.size).toBe(COUNT);
  await eventually(async () => (await line.picture()).ready ?? []).toEqual([]);
  await eventually(async () =>
    Object.values((await line.picture()).jobs ?? {}).filter((one) => one === 'record'),
  ).toEqual([]);
  return repairer.repaired;
}

it('a deleted stream loses no job', async () => {
  const repaired = await broken(() => line.redis.del(line.ref.keys.ready));
  expect(repaired.reduce((sum, { count }) => sum + count, 0)).toBeGreaterThan(COUNT / 2);
  expect(repaired.every(({ what }) => what === 'orphan')).toBe(true);
});

it('a trimmed stream loses no job', async () => {
  const repaired = await broken(() => line.redis.xtrim(line.ref.keys.ready, 'MAXLEN', 0));
  expect(repaired.length).toBeGreaterThan(0);
});

it('a busy consumer that was removed loses no job', async () => {
  await broken((consumer) => line.redis.call('XGROUP', 'DELCONSUMER', line.ref.keys.ready, 'workers', consumer));
});

it('a slice that large records cut short is followed sooner, until the walk is through', async () => {
  const dueMs = Date.now() + 100_000;
  await line.plan(...line.many(60).map((job) => ({ ...job, dueMs, data: 'x'.repeat(100_000) })));
  const repairer = repairerOn({}, handClock());
  expect(await repairer.pass()).toBe(500);
  let passes = 1;
  while (restOf(await repairer.pass()) < 24_000) passes += 1;
  expect(passes).toBeGreaterThan(3);
});

it('an index that was deleted is made again from the records, never early', async () => {
  const clock = handClock();
  const dueMs = Date.now() + 100_000;
  await line.plan(...line.many(20).map((job) => ({ ...job, dueMs })));
  await line.redis.del(line.ref.keys.scheduled);
  const repairer = repairerOn({}, clock);
  expect(await repairer.pass()).toBe(2000);
  expect((await line.picture()).scheduled).toBeUndefined();
  clock.advance(2000);
  await repairer.pass();
  expect(repairer.repaired).toEqual([{ queue: line.queue, partition: 0, what: 'orphan', count: 20 }]);
  expect(Object.values((await line.picture()).scheduled ?? {})).toEqual(Array.from({ length: 20 }, () => dueMs));
  expect(await repairer.pass()).toBe(60_000);
});

it('a whole partition is looked at in two short calls, and never written to', async () => {
  await line.plan(...line.many(20).map((job) => ({ ...job, dueMs: Date.now() + 100_000 })));
  const repairer = repairerOn({});
  const calls = async () => Number(/total_commands_processed:(\d+)/.exec(await line.redis.info('stats'))?.[1]);
  await repairer.pass();
  await line.stopMovers();
  const before = await line.picture();
  const counted = await calls();
  expect(await repairer.pass()).toBe(60_000);
  // Two scripts with a handful of commands each for the counts, and one look at the index per job.
  expect((await calls()) - counted).toBeLessThan(60);
  expect(await line.picture()).toEqual(before);
  expect(repairer.repaired).toEqual([]);
});

it('a stuck entry behind many that are held is found by a later look', async () => {
  const { redis, ref } = line;
  await line.stopMovers();
  const entries = await Promise.all(
    Array.from({ length: 400 }, (_, n) => redis.xadd(ref.keys.ready, '*', 'member', `bare-${n}`, 'due', '1')),
  );
  await redis.call('XGROUP', 'CREATE', ref.keys.ready, 'workers', '0');
  await redis.xreadgroup('GROUP', 'workers', 'w', 'COUNT', 400, 'STREAMS', ref.keys.ready, '>');
  await redis.xack(ref.keys.ready, 'workers', entries[399] ?? '');
  const clock = handClock();
  const repairer = repairerOn({}, clock);
  const stuck = () => repairer.repaired.filter(({ what }) => what === 'stuck');
  await repairer.pass();
  await repairer.pass();
  clock.advance(2000);
  await repairer.pass();
  expect(stuck()).toEqual([{ queue: line.queue, partition: 0, what: 'stuck', count: 1 }]);
});

it('who does not lead looks at nothing', async () => {
  await line.plan({ id: 'a', dueMs: Date.now() + 100_000 });
  await line.redis.del(line.ref.keys.scheduled);
  const clock = handClock();
  const repairer = repairerOn({}, clock);
  await repairer.pass();
  repairer.state.leads = false;
  clock.advance(5000);
  expect(await repairer.pass()).toEqual(idle(12_000));
  expect(repairer.repaired).toEqual([]);
  repairer.state.leads = true;
  await repairer.pass();
  clock.advance(2000);
  await repairer.pass();
  expect(repairer.repaired).toHaveLength(1);
});

it('once all was looked at and the counts agree, a pass looks at a few jobs; a loss shows in the counts', async () => {
  await line.plan(...line.many(700).map((job) => ({ ...job, dueMs: Date.now() + 100_000 })));
  await line.stopMovers();
  const clock = handClock();
  const repairer = repairerOn({}, clock);
  /** Pages of jobs whose index was read by one pass. */
  const pages = async () => {
    await line.redis.config('RESETSTAT');
    const rest = await repairer.pass();
    return { rest, pages: Number(/cmdstat_zmscore:calls=(\d+)/.exec(await line.redis.info('commandstats'))?.[1]) };
  };
  // More than 512 members are no list that comes whole.
  expect((await pages()).pages).toBeGreaterThanOrEqual(5);
  expect((await pages()).rest).toBe(60_000);
  expect((await pages()).pages).toBeLessThanOrEqual(2);
  await line.redis.zrem(line.ref.keys.scheduled, ...line.many(10).map(({ id }) => `j:${id}`));
  expect((await pages()).rest).toBeLessThanOrEqual(2000);
  expect((await pages()).pages).toBeGreaterThan(2);
  // A lost job may have been looked at first by one of these passes: it is repaired when it was seen for 2 s.
  for (let passes = 0; passes < 6; passes += 1) {
    clock.advance(2000);
    await repairer.pass();
  }
  expect(await line.redis.zcard(line.ref.keys.scheduled)).toBe(700);
});
