/** One worker, three partitions, fewer slots than partitions. */
import { expect, it } from 'vitest';
import { eventually, useLine } from '../../support/worker-line.ts';

const line = useLine({ partitions: 3 });

it('a worker with two slots serves three partitions, and holds two entries at most', async () => {
  const doors: (() => void)[] = [];
  const worker = await line.worker(() => new Promise<void>((resolve) => doors.push(resolve)), { concurrency: 2 });
  for (const ref of line.refs) await line.planIn(ref, ...line.many(4, `p${ref.partition}-`));
  const pending = async () => {
    const counts = await Promise.all(line.refs.map((ref) => line.redis.xpending(ref.keys.ready, 'workers')));
    return counts.reduce<number>((sum, reply) => sum + Number((reply as [number])[0]), 0);
  };
  for (let ended = 0; ended < 12; ended += 1) {
    await eventually(() => doors.length).toBeGreaterThan(ended);
    expect(doors.length - ended).toBeLessThanOrEqual(2);
    // What is being settled uses no slot, so it may be pending for a moment beside them.
    await eventually(pending).toBeLessThanOrEqual(2);
    doors[ended]?.();
  }
  await eventually(() => worker.heard.of('job.completed').length).toBe(12);
  const ids = worker.heard.of('job.completed').map(({ id }) => id);
  expect(new Set(ids).size).toBe(12);
});

it('a worker with many slots never holds more than them over all partitions', async () => {
  let running = 0;
  const counts: number[] = [];
  const worker = await line.worker(
    async () => {
      running += 1;
      counts.push(running);
      await new Promise((resolve) => setImmediate(resolve));
      running -= 1;
    },
    { concurrency: 7 },
  );
  for (const ref of line.refs) await line.planIn(ref, ...line.many(50, `p${ref.partition}-`));
  await eventually(() => worker.heard.of('job.completed').length).toBe(150);
  expect(Math.max(...counts)).toBeLessThanOrEqual(7);
  expect(Math.max(...counts)).toBeGreaterThan(1);
});

it('a worker takes the number of partitions that the registry has, whatever its definition says', async () => {
  const queues = 't:v1:{control}:queues';
  await line.redis.hset(queues, line.queue, JSON.stringify({ partitions: 2, generation: 0 }));
  const worker = await line.worker(() => undefined);
  const [first, second, third] = line.refs;
  if (!first || !second || !third) throw new Error('there are three partitions');
  await line.planIn(second, { id: 'b' });
  await eventually(() => worker.heard.of('job.completed')).toMatchObject([{ id: 'b' }]);
  expect(await line.redis.exists(third.keys.meta)).toBe(1);
  expect(await line.redis.xinfo('GROUPS', first.keys.ready)).toHaveLength(1);
});
