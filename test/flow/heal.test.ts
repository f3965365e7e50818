/** What somebody else breaks under load is whole again: no job is lost, whichever part of it was removed. */
import { expect, it } from 'vitest';
import { systemClock } from '../../src/core/clock.ts';
import { createEmitter, type Events } from '../../src/core/events.ts';
import { idle } from '../../src/core/loop.ts';
import { createHealer, type HealerOptions } from '../../src/mover/healer.ts';
import { handClock, restOf } from '../support/mover-line.ts';
import { eventually, QUICK, useLine } from '../support/worker-line.ts';

const line = useLine();
const COUNT = 120;
const SHORT: HealerOptions = { restMs: 50, apartMs: 100, ownedApartMs: 400 };

function healerOn(options: Partial<HealerOptions> = SHORT, clock = systemClock) {
  const events = createEmitter();
  const mended: Events['partition.mended'][] = [];
  events.on('partition.mended', (event) => mended.push(event));
  const state = { leads: true };
  const healer = createHealer({
    ...{ redis: line.redis, ref: line.ref, options, clock, events },
    leading: () => (state.leads ? { term: 'm:1:1', epoch: 1 } : undefined),
  });
  line.onEnd(() => healer.stop());
  return { ...healer, mended, state };
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
  const healer = healerOn();
  healer.start();
  await eventually(() => ended.size).toBe(COUNT);
  await eventually(async () => (await line.picture()).ready ?? []).toEqual([]);
  await eventually(async () =>
    Object.values((await line.picture()).jobs ?? {}).filter((one) => one === 'record'),
  ).toEqual([]);
  return healer.mended;
}

it('a deleted stream loses no job', async () => {
  const mended = await broken(() => line.redis.del(line.ref.keys.ready));
  expect(mended.reduce((sum, { count }) => sum + count, 0)).toBeGreaterThan(COUNT / 2);
  expect(mended.every(({ what }) => what === 'orphan')).toBe(true);
});

it('a trimmed stream loses no job', async () => {
  const mended = await broken(() => line.redis.xtrim(line.ref.keys.ready, 'MAXLEN', 0));
  expect(mended.length).toBeGreaterThan(0);
});

it('a busy consumer that was removed loses no job', async () => {
  await broken((consumer) => line.redis.call('XGROUP', 'DELCONSUMER', line.ref.keys.ready, 'workers', consumer));
});

it('a slice that large records cut short is followed sooner, until the walk is through', async () => {
  const dueMs = Date.now() + 100_000;
  await line.plan(...line.many(60).map((job) => ({ ...job, dueMs, data: 'x'.repeat(100_000) })));
  const healer = healerOn({}, handClock());
  expect(await healer.pass()).toBe(1000);
  let passes = 1;
  while (restOf(await healer.pass()) < 12_000) passes += 1;
  expect(passes).toBeGreaterThan(3);
}, 40_000);

it('an index that was deleted is made again from the records, never early', async () => {
  const clock = handClock();
  const dueMs = Date.now() + 100_000;
  await line.plan(...line.many(20).map((job) => ({ ...job, dueMs })));
  await line.redis.del(line.ref.keys.scheduled);
  const healer = healerOn({}, clock);
  expect(await healer.pass()).toBe(2000);
  expect((await line.picture()).scheduled).toBeUndefined();
  clock.advance(2000);
  await healer.pass();
  expect(healer.mended).toEqual([{ queue: line.queue, partition: 0, what: 'orphan', count: 20 }]);
  expect(Object.values((await line.picture()).scheduled ?? {})).toEqual(Array.from({ length: 20 }, () => dueMs));
  expect(await healer.pass()).toBe(12_000);
});

it('a whole partition is looked at in two short calls, and never written to', async () => {
  await line.plan(...line.many(20).map((job) => ({ ...job, dueMs: Date.now() + 100_000 })));
  const healer = healerOn({});
  const calls = async () => Number(/total_commands_processed:(\d+)/.exec(await line.redis.info('stats'))?.[1]);
  await healer.pass();
  await line.stopMovers();
  const before = await line.picture();
  const counted = await calls();
  expect(await healer.pass()).toBe(12_000);
  // Two scripts with a handful of commands each for the counts, and one look at the index per job.
  expect((await calls()) - counted).toBeLessThan(60);
  expect(await line.picture()).toEqual(before);
  expect(healer.mended).toEqual([]);
});

it('who does not lead looks at nothing', async () => {
  await line.plan({ id: 'a', dueMs: Date.now() + 100_000 });
  await line.redis.del(line.ref.keys.scheduled);
  const clock = handClock();
  const healer = healerOn({}, clock);
  await healer.pass();
  healer.state.leads = false;
  clock.advance(5000);
  expect(await healer.pass()).toEqual(idle(12_000));
  expect(healer.mended).toEqual([]);
  healer.state.leads = true;
  await healer.pass();
  clock.advance(2000);
  await healer.pass();
  expect(healer.mended).toHaveLength(1);
});
