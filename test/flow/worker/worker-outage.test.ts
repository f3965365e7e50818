/** Redis loses scripts, connections, replies and keys while jobs run. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { isTombstone } from '../../../src/job/codec.ts';
import { findQueue } from '../../../src/redis/scripts/queues.ts';
import { readNew } from '../../../src/redis/scripts/ready.ts';
import { useRhythm } from '../../support/rhythm.ts';
import { eventually, gate, NAMESPACE, useLine } from '../../support/worker-line.ts';

const line = useLine({ check: false });
// What no reply has told of is adopted as soon as no read can bring it any more.
useRhythm({ adoptMs: 300, blockMs: 500 });

/** How many jobs of this queue are done, as Redis sees it. */
async function doneCount(): Promise<number> {
  return (await line.redis.hvals(line.ref.keys.jobs)).filter((value) => value.startsWith('.d')).length;
}

it('every job runs once while scripts are flushed ten times a second', async () => {
  const runs = new Map<string, number>();
  await line.worker(
    async (job) => {
      runs.set(job.id, (runs.get(job.id) ?? 0) + 1);
      await sleep(2);
    },
    { concurrency: 5 },
  );
  const timer = setInterval(() => void line.redis.script('FLUSH').catch(() => undefined), 50);
  line.onEnd(() => clearInterval(timer));
  await line.plan(...line.many(300));
  await eventually(doneCount).toBe(300);
  expect([...runs.values()].every((count) => count === 1)).toBe(true);
});

it('every job runs, and its starts are bounded, while all connections are killed again and again', async () => {
  const runs = new Map<string, number>();
  const attempts = new Set<number>();
  await line.worker(
    async (job) => {
      runs.set(job.id, (runs.get(job.id) ?? 0) + 1);
      attempts.add(job.attempt);
      await sleep(3);
    },
    { concurrency: 5 },
  );
  const killer = await line.server.client();
  await line.plan(...line.many(300));
  for (let kill = 0; kill < 12; kill += 1) {
    await killer.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await sleep(120);
  }
  await eventually(() => runs.size).toBe(300);
  await eventually(async () => doneCount().catch(() => 0)).toBe(300);
  expect(Math.max(...runs.values())).toBeLessThanOrEqual(2);
  expect([...attempts]).toEqual([1]);
});

it('a delivery whose reply never came is adopted by the worker it was meant for', async () => {
  const worker = await line.worker(() => undefined, { concurrency: 8 });
  // Somebody reads in its name: for Redis that is a reply the worker got, for the worker one that was lost.
  const read = () => readNew(line.redis, [line.ref], { consumer: worker.consumer, count: 10, blockMs: 0 });
  await line.plan(...line.many(300));
  const stolen: string[] = [];
  await eventually(async () => {
    const batches = await read();
    stolen.push(...batches.flatMap(({ deliveries }) => deliveries.map(({ member }) => member)));
    return doneCount().then((done) => done + stolen.length);
  }).toBe(300);
  expect(stolen.length).toBeGreaterThan(0);
  await eventually(doneCount).toBe(300);
  expect(worker.heard.of('entries.adopted').reduce((sum, { count }) => sum + count, 0)).toBe(stolen.length);
  expect(worker.heard.of('job.started').every(({ attempt }) => attempt === 1)).toBe(true);
});

it('a ready stream that somebody deleted is made again, and what runs is completed', async () => {
  const door = gate();
  const worker = await line.worker((job) => (job.id === 'a' ? door.opened : undefined), { concurrency: 2 });
  await line.plan({ id: 'a' });
  await eventually(() => worker.heard.of('job.started').length).toBe(1);
  await line.redis.del(line.ref.keys.ready);
  await line.plan({ id: 'b' });
  await eventually(() => worker.heard.of('job.completed')).toMatchObject([{ id: 'b' }]);
  door.open();
  await eventually(() => worker.heard.of('job.completed').length).toBe(2);
  expect(await doneCount()).toBe(2);
});

it('a job that runs when the ready stream is deleted is not lost, although its lease is', async () => {
  let starts = 0;
  const worker = await line.worker(
    (_job, { signal }) => {
      starts += 1;
      if (starts > 1) return undefined;
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('stopped'))));
    },
    { jobLease: 550, concurrency: 2 },
  );
  await line.plan({ id: 'a' });
  await eventually(() => worker.heard.of('job.started').length).toBe(1);
  await line.redis.del(line.ref.keys.ready);
  await eventually(() => worker.heard.of('job.completed')).toMatchObject([{ id: 'a' }]);
  expect(starts).toBe(2);
});

it('a consumer group that somebody destroyed is made again at its beginning, and nothing runs twice', async () => {
  const door = gate();
  const ran: string[] = [];
  const worker = await line.worker(
    async (job) => {
      ran.push(job.id);
      if (job.id === 'a') await door.opened;
    },
    { concurrency: 2 },
  );
  await line.plan({ id: 'a' });
  await eventually(() => ran).toEqual(['a']);
  await line.redis.xgroup('DESTROY', line.ref.keys.ready, 'workers');
  await line.plan({ id: 'b' });
  await eventually(() => worker.heard.of('job.completed')).toMatchObject([{ id: 'b' }]);
  door.open();
  await eventually(() => worker.heard.of('job.completed').length).toBe(2);
  expect(ran).toEqual(['a', 'b']);
});

it('everything is flushed away: the worker recovers and takes what is scheduled afterwards', async () => {
  const worker = await line.worker(() => undefined);
  await line.redis.flushall();
  await line.plan({ id: 'after' });
  await eventually(() => worker.heard.of('job.completed')).toMatchObject([{ id: 'after' }]);
  expect(isTombstone((await line.stored('after')) ?? '')).toBe(true);
});

it('everything is flushed away: the worker declares its queue again with its next heartbeat', async () => {
  await line.worker(() => undefined, { beatTtl: 300 });
  await line.redis.flushall();
  await eventually(() => findQueue(line.redis, NAMESPACE, line.queue)).toMatchObject({ partitions: 1 });
});

it('Redis is restarted without its data: the worker reconnects and goes on', async () => {
  const worker = await line.worker(() => undefined);
  await line.server.restart();
  await eventually(async () =>
    line.plan({ id: 'after' }).then(
      () => true,
      () => false,
    ),
  ).toBe(true);
  await eventually(() => worker.heard.of('job.completed')).toMatchObject([{ id: 'after' }]);
  expect(worker.heard.of('redis.away').length).toBeGreaterThan(0);
  expect(worker.isReady()).toBe(true);
});
