/**
 * Handlers that go on although they were told to stop. Their jobs wait for them, and keep their places, until they have ended or
 * their slots count as lost; and what follows from a lost slot.
 */
import { describe, expect, it } from 'vitest';
import { fixed } from '../../../src/job/backoff.ts';
import { aborted, eventually, gate, HOUR_MS, QUICK, useLine } from '../../support/worker-line.ts';

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
  await eventually(() => worker.heard.of('job.dead')).toMatchObject([{ error: { kind: 'timeout' } }]);
  expect(worker.heard.of('job.overran')).toMatchObject([{ queue: line.queue, id: 'a', name: 'default' }]);
  expect(worker.isLive()).toBe(true);
  door.open();
  await eventually(() => worker.heard.of('slots.lost').map(({ lost }) => lost)).toEqual([1, 0]);
  expect(worker.heard.of('worker.exhausted')).toEqual([]);
});

describe('a handler that goes on after its time-out', () => {
  /** Its first attempts wait at a door; the job b passes. */
  async function lingering(settings: Parameters<typeof line.worker>[1] = {}) {
    const door = gate();
    const started: string[] = [];
    const told: string[] = [];
    const own = {
      ...QUICK,
      timeout: 30,
      attempts: 2,
      backoff: fixed(1),
      concurrency: 4,
      abortGrace: HOUR_MS,
      ...settings,
    };
    const worker = await line.worker(async ({ id, attempt }, { signal }) => {
      started.push(`${id}${attempt}`);
      if (id !== 'a' || attempt > 1) return;
      told.push(await aborted(signal));
      await door.opened;
    }, own);
    await line.plan({});
    await eventually(() => told).toEqual(['job aborted: timeout']);
    return { worker, door, started };
  }

  it('keeps its job until it ends: nothing starts it again, and what it returns does not count', async () => {
    const { worker, door, started } = await lingering();
    const other = await line.worker(({ id, attempt }) => void started.push(`${id}${attempt}`), QUICK);
    const sinceMs = Date.now();
    // So long that the lease has ended twice, if nothing extended it.
    for (let nth = 0; Date.now() - sinceMs < 2 * QUICK.jobLease; nth += 1) {
      await line.plan({ id: `b${nth}` });
      await eventually(() => started.includes(`b${nth}1`)).toBe(true);
    }
    expect(started.filter((start) => start.startsWith('a'))).toEqual(['a1']);
    expect(worker.heard.of('job.retried')).toEqual([]);
    door.open();
    await eventually(() => started.filter((start) => start.startsWith('a'))).toEqual(['a1', 'a2']);
    expect(worker.heard.of('job.retried')).toMatchObject([{ id: 'a', error: { kind: 'timeout' } }]);
    expect([worker, other].flatMap(({ heard }) => heard.of('slots.lost'))).toEqual([]);
    expect([worker, other].flatMap(({ heard }) => heard.of('job.fenced'))).toEqual([]);
  });

  it('is cancelled, if somebody asked for that meanwhile, when it ends', async () => {
    const { worker, door, started } = await lingering();
    expect(await line.jobs.cancel(line.ref, ['j:a'], { windowMs: 60_000 })).toMatchObject([{ kind: 'requested' }]);
    door.open();
    await eventually(() => worker.heard.of('job.cancelled')).toMatchObject([{ id: 'a' }]);
    expect(started).toEqual(['a1']);
  });

  it('holds up no stop: its outcome is written down at the end of the time, as one of its attempts', async () => {
    const { worker, door } = await lingering({ attempts: 1 });
    await worker.stop({ shutdown: 0 });
    expect(worker.heard.of('job.overran')).toHaveLength(1);
    expect(worker.heard.of('job.dead')).toMatchObject([{ id: 'a', error: { kind: 'timeout' } }]);
    door.open();
  });

  it('that no worker lives for any more is a crash, and its job starts elsewhere', async () => {
    const { worker, started } = await lingering();
    worker.abandon();
    await line.worker(({ id, attempt }) => void started.push(`${id}${attempt}`), QUICK);
    await eventually(() => started).toEqual(['a1', 'a2']);
  });
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
