/** What a stopping worker releases, called by hand. */
import { expect, it } from 'vitest';
import { decodeRun } from '../../../src/job/codec.ts';
import { ensureGroup, readNew } from '../../../src/redis/scripts/ready.ts';
import { createHandover } from '../../../src/worker/recover/handover.ts';
import { InFlight } from '../../../src/worker/run/in-flight.ts';
import { eventually, useLine } from '../../support/worker-line.ts';

const line = useLine();
const WINDOW_MS = 60_000;

function leaving() {
  const inFlight = new InFlight(4);
  const parts = { commands: line.redis, jobs: line.jobs, refs: line.refs, consumer: 'w', windowMs: WINDOW_MS };
  return { inFlight, handover: createHandover({ ...parts, inFlight }) };
}

/** Jobs that were delivered to the worker. */
async function delivered(count: number, prefix = 'n') {
  await line.plan(...line.many(count, prefix));
  await eventually(async () => line.redis.xlen(line.ref.keys.ready)).toBe(count);
  await line.stopMovers();
  const [batch] = await readNew(line.redis, [line.ref], { consumer: 'w', count, blockMs: 0 });
  return batch?.deliveries ?? [];
}
const start = (deliveries: Awaited<ReturnType<typeof delivered>>) =>
  line.jobs.start(line.ref, deliveries, { consumer: 'w', bytesMax: 1_000_000, windowMs: WINDOW_MS });
const pending = async () => ((await line.redis.xpending(line.ref.keys.ready, 'workers')) as [number])[0];

it('entries that nobody saw are released also behind a thousand that run', async () => {
  const { inFlight, handover } = leaving();
  const deliveries = await delivered(1300);
  for (const delivery of deliveries.slice(0, 1100)) inFlight.add(line.ref, delivery);
  await handover.unseen();
  expect(await pending()).toBe(1100);
  expect(await line.redis.zcard(line.ref.keys.scheduled)).toBe(200);
  for (const held of inFlight.all()) inFlight.forgotten(held);
  await handover.unseen();
  expect(await pending()).toBe(0);
});

it('a job that was started in a reply that nobody trusted goes back, and no crash is counted', async () => {
  const { handover } = leaving();
  const deliveries = await delivered(3);
  await start(deliveries.slice(0, 2));
  await handover.unseen();
  expect(await pending()).toBe(0);
  expect(await line.count('crashed')).toBe(0);
  expect(Object.keys((await line.picture()).scheduled ?? {}).sort()).toEqual(['j:n0', 'j:n1', 'j:n2']);
  await handover.consumer();
  const mover = line.mover();
  mover.start();
  const worker = await line.worker(() => undefined);
  await eventually(() => worker.heard.of('job.completed').length).toBe(3);
});

it('one that was started ahead, in a reply that nobody trusted, waits for its due time, and nothing is counted', async () => {
  const { handover } = leaving();
  await line.stopMovers();
  await line.redis.set(line.ref.keys.leader, 'm');
  await ensureGroup(line.redis, line.ref.keys);
  const [seconds] = await line.redis.time();
  const dueMs = Number(seconds) * 1000 + 9000;
  await line.plan({ id: 'a', dueMs });
  await line.jobs.promote(line.ref, { term: 'm', leaseMs: 60_000, limit: 500, cap: 1000, aheadMs: 10_000 });
  const settings = { consumer: 'w', bytesMax: 1_000_000, windowMs: WINDOW_MS };
  const { taken } = await line.jobs.serve(line.ref, { ended: [], given: [], take: 1 }, settings);
  expect(taken).toMatchObject([{ kind: 'run', member: 'j:a', dueMs }]);
  await handover.unseen();
  expect(await pending()).toBe(0);
  expect((await line.picture()).scheduled).toEqual({ 'j:a': dueMs });
  expect(decodeRun((await line.redis.hget(line.ref.keys.runs, 'j:a')) ?? '')).toMatchObject({
    attempts: 0,
    crashes: 0,
  });
  expect(await line.count('deferred')).toBe(0);
});

it('those whose records do not fit into one reply are released as well', async () => {
  const { handover } = leaving();
  const data = 'x'.repeat(250_000);
  await line.plan(...line.many(10).map((job) => ({ ...job, data })));
  await eventually(async () => line.redis.xlen(line.ref.keys.ready)).toBe(10);
  await line.stopMovers();
  const [batch] = await readNew(line.redis, [line.ref], { consumer: 'w', count: 10, blockMs: 0 });
  for (const delivery of batch?.deliveries ?? []) await start([delivery]);
  await handover.unseen();
  expect(await pending()).toBe(0);
  expect(await line.redis.zcard(line.ref.keys.scheduled)).toBe(10);
});

it('one that was cancelled meanwhile ends cancelled', async () => {
  const { handover } = leaving();
  const deliveries = await delivered(1);
  await start(deliveries);
  await line.jobs.cancel(line.ref, ['j:n0'], { windowMs: WINDOW_MS });
  await handover.unseen();
  expect(await pending()).toBe(0);
  expect(await line.picture()).toMatchObject({ jobs: { 'j:n0': 'tombstone cancelled' } });
});
