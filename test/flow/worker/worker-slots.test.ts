/** Slots that handlers keep although they were told to stop: when they count as lost, and what follows from it. */
import { expect, it } from 'vitest';
import { eventually, gate, HOUR_MS, useLine } from '../../support/worker-line.ts';

const line = useLine();

/** A worker whose handlers wait at a door and look at no signal. */
async function stubborn(settings: { readonly recycleAtPercent?: number; readonly abortGrace?: number } = {}) {
  const door = gate();
  const own = { timeout: 30, attempts: 1, concurrency: 4, abortGrace: 20, ...settings };
  const worker = await line.worker((job) => (job.id === 'good' ? undefined : door.opened), own);
  return { worker, door };
}

it('a slot counts as lost when its handler has not ended a grace after its signal, and is regained with its end', async () => {
  const { worker, door } = await stubborn();
  await line.plan({});
  await eventually(() => worker.heard.of('slots.lost')).toMatchObject([{ id: 'a', lost: 1, concurrency: 4 }]);
  await eventually(() => worker.heard.of('job.dead')).toHaveLength(1);
  expect(worker.isLive()).toBe(true);
  door.open();
  await eventually(() => worker.heard.of('slots.lost').map(({ lost }) => lost)).toEqual([1, 0]);
  expect(worker.heard.of('worker.exhausted')).toEqual([]);
});

it('a handler that needs a moment to clean up after its signal loses no slot', async () => {
  const { worker, door } = await stubborn({ abortGrace: 60_000 });
  await line.plan({});
  await eventually(() => worker.heard.of('job.dead').length).toBe(1);
  door.open();
  await eventually(() => worker.running()).toBe(0);
  expect(worker.heard.of('slots.lost')).toEqual([]);
});

it('a worker that has lost half of its slots says so once, is not live, and works on with the others', async () => {
  const { worker } = await stubborn();
  await line.plan(...line.many(3));
  await eventually(() => worker.heard.of('slots.lost').length).toBe(3);
  expect(worker.heard.of('worker.exhausted')).toMatchObject([{ lost: 2, concurrency: 4 }]);
  expect(worker.isLive()).toBe(false);
  await line.plan({ id: 'good' });
  await eventually(() => worker.heard.of('job.completed')).toMatchObject([{ id: 'good' }]);
});

it('a worker that is told never to recycle is live until its last slot is lost', async () => {
  const { worker } = await stubborn({ recycleAtPercent: 0 });
  await line.plan(...line.many(3));
  await eventually(() => worker.heard.of('slots.lost').length).toBe(3);
  expect(worker.isLive()).toBe(true);
  await line.plan({ id: 'last' });
  await eventually(() => worker.isLive()).toBe(false);
  expect(worker.heard.of('worker.exhausted')).toEqual([]);
});

it('a stop waits for nothing that is lost', async () => {
  const { worker } = await stubborn();
  await line.plan(...line.many(2));
  await eventually(() => worker.heard.of('worker.exhausted').length).toBe(1);
  await worker.stop({ shutdown: HOUR_MS });
});

it('jobs of a later version are told as parked, and run when a worker can read them', async () => {
  const worker = await line.worker(() => undefined);
  const { jobs, scheduled } = line.ref.keys;
  await line.plan({ id: 'new', dueMs: Date.now() + 60_000 });
  const record = (await line.stored('new')) ?? '';
  const make = (version: string) =>
    line.redis
      .multi()
      .hset(jobs, 'j:new', version + record.slice(1))
      .zadd(scheduled, 0, 'j:new')
      .exec();
  await make('2');
  await eventually(() => worker.heard.of('jobs.parked')).toMatchObject([{ queue: line.queue, partition: 0, count: 1 }]);
  expect(worker.heard.of('parked.waiting')).toEqual([{ queue: line.queue, waiting: 1 }]);
  expect(await line.deadLetters()).toEqual([]);
  await make('1');
  await eventually(() => worker.heard.of('job.completed')).toMatchObject([{ id: 'new' }]);
  await eventually(() => worker.heard.of('parked.waiting').at(-1)?.waiting).toBe(0);
});
