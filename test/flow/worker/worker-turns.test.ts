/** A busy worker, whose turns complete, deliver and start in one call: what it loses, and what others wait for. */
import { expect, it } from 'vitest';
import { openLossyLine } from '../../support/lossy-line.ts';
import { eventually, useLine } from '../../support/worker-line.ts';

const line = useLine({ partitions: 2 });
const soon = () => new Promise<void>((resolve) => setImmediate(resolve));
const sorted = (ids: readonly string[]) => [...ids].sort();
const idsOf = (jobs: readonly { readonly id?: string }[]) => sorted(jobs.map(({ id = '' }) => id));

it('turns that lose their replies cost no job, no second run and no crash', async () => {
  const lossy = await openLossyLine(line.server);
  line.onEnd(lossy.close);
  const ran: string[] = [];
  const worker = await line.worker(
    async ({ id }) => {
      ran.push(id);
      if (ran.length === 100 || ran.length === 200) lossy.loseReplyTo('serve');
      await soon();
    },
    { redis: lossy.url, concurrency: 8 },
  );
  const jobs = line.many(300);
  await line.plan(...jobs);
  await eventually(() => worker.heard.of('job.completed').length).toBe(300);
  expect(lossy.lost()).toBe(2);
  expect(idsOf(worker.heard.of('job.completed'))).toEqual(idsOf(jobs));
  expect(sorted(ran)).toEqual(idsOf(jobs));
  expect(await line.count('crashed')).toBe(0);
});

it('a stop in the middle of a backlog loses nothing: what was started and not run is put back', async () => {
  const ran: string[] = [];
  const handler = async ({ id }: { id: string }) => {
    ran.push(id);
    await soon();
  };
  const jobs = line.many(400);
  await line.plan(...jobs);
  const completed: string[] = [];
  for (const share of [100, 200, 400]) {
    const worker = await line.worker(handler, { concurrency: 20 });
    await eventually(() => ran.length).toBeGreaterThanOrEqual(share);
    if (share === 400) await eventually(() => completed.length + worker.heard.of('job.completed').length).toBe(400);
    await worker.stop();
    completed.push(...worker.heard.of('job.completed').map(({ id }) => id));
    expect((await line.picture()).pending).toBeUndefined();
  }
  expect([sorted(ran), sorted(completed)]).toEqual([idsOf(jobs), idsOf(jobs)]);
  expect(await line.count('crashed')).toBe(0);
});

it('a group that somebody destroys under a busy worker is made again, and every job ends', async () => {
  const worker = await line.worker(soon, { concurrency: 8 });
  const jobs = line.many(300);
  await line.plan(...jobs);
  await eventually(() => worker.heard.of('job.completed').length).toBeGreaterThan(50);
  await line.redis.xgroup('DESTROY', line.ref.keys.ready, 'workers');
  await eventually(() => new Set(worker.heard.of('job.completed').map(({ id }) => id)).size).toBe(300);
});

it('a group that is made anew does not run again what its worker runs', async () => {
  const held = line.many(3, 'held');
  const ran: string[] = [];
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  const worker = await line.worker(
    async ({ id }) => {
      ran.push(id);
      if (id.startsWith('held')) await opened;
      else await soon();
    },
    { concurrency: 4 },
  );
  await line.planIn(line.ref, ...held);
  await eventually(() => ran.length).toBe(3);
  // It begins with what is held, one entry after the other, by a read and then by turns.
  await line.redis.xgroup('DESTROY', line.ref.keys.ready, 'workers');
  const others = line.many(50, 'other');
  await line.planIn(line.ref, ...others);
  await eventually(() => worker.heard.of('job.completed').length).toBe(50);
  open();
  await eventually(() => worker.heard.of('job.completed').length).toBe(53);
  expect(sorted(ran)).toEqual(idsOf([...held, ...others]));
});

it('a backlog in one partition does not keep the others waiting', async () => {
  let before = Number.NaN;
  const worker = await line.worker(
    async ({ id }) => {
      if (id === 'other') before = worker.heard.of('job.completed').length;
      await soon();
    },
    { concurrency: 2 },
  );
  const [first, second] = line.refs;
  if (!first || !second) throw new Error('there are two partitions');
  await line.planIn(first, ...line.many(1000));
  await eventually(() => worker.heard.of('job.completed').length).toBeGreaterThan(20);
  await line.planIn(second, { id: 'other' });
  await eventually(() => worker.heard.of('job.completed').length).toBe(1001);
  expect(before).toBeLessThan(900);
});
