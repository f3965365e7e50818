/** After `queues rm` no job waits where nobody looks, in whatever order things happen. */
import { afterEach, expect, it } from 'vitest';
import { createClient } from '../../../src/client/client.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { RHYTHMS } from '../../../src/kernel/rhythm.ts';
import { partitionRef } from '../../../src/redis/keys.ts';
import { declareQueue, listQueues } from '../../../src/redis/scripts/queues.ts';
import { runHere } from '../../support/console.ts';
import { daemonOn } from '../../support/mover-line.ts';
import { eventually, NAMESPACE, QUICK, useLine } from '../../support/worker-line.ts';

const line = useLine({ movers: false, check: false });
/** Nothing here is found by chance: the safety tick and the leases are long. */
const SLOW = { safetyTickMs: 60_000, leaseMs: 60_000 };

afterEach(() => line.redis.flushall());

async function producerOf(): Promise<Awaited<ReturnType<typeof createClient>>> {
  const producer = createClient({ redis: { path: line.server.socketPath }, namespace: NAMESPACE });
  line.onEnd(() => producer.close());
  return producer;
}
const remove = (...flags: string[]) =>
  runHere(['queues', 'rm', line.queue, ...flags, '--redis', line.server.url, '--namespace', NAMESPACE]);
const queues = async () => (await listQueues(line.redis, NAMESPACE)).map(({ queue }) => queue);
const ready = async (partition = 0) =>
  line.redis.xlen(partitionRef(NAMESPACE, { queue: line.queue, partition, layoutGeneration: 0 }).keys.ready);

/** A queue in use: a daemon leads it, and a producer has scheduled into it and knows it. */
async function inUse() {
  const daemon = await daemonOn(line, 'd1', SLOW);
  await daemon.start();
  const producer = await producerOf();
  const { id } = await producer.schedule(line.queue, 1, { delay: '1h' });
  await eventually(() => daemon.leads()).toBe(true);
  await producer.cancel(line.queue, id);
  return { daemon, producer };
}

/** A daemon looks at the registry with one of so many heartbeats. */
async function looks(daemon: Awaited<ReturnType<typeof daemonOn>>): Promise<void> {
  for (let beat = 0; beat < RHYTHMS.default.registryBeats; beat += 1) await daemon.pass();
}

it('a producer that knew the queue schedules after its removal: it is declared anew, and a daemon serves it', async () => {
  const { daemon, producer } = await inUse();
  expect(await remove()).toMatchObject({ code: 0 });
  await eventually(() => daemon.leads()).toBe(false);
  await producer.schedule(line.queue, 2, { id: 'late' });
  expect(await queues()).toEqual([line.queue]);
  await eventually(ready).toBe(1);
  expect(await producer.get(line.queue, 'late')).toMatchObject({ state: 'ready' });
  // The second one finds everything in place.
  await producer.schedule(line.queue, 3, { id: 'later' });
  await eventually(ready).toBe(2);
});

it('the daemon was started anew between the removal and the call: it knew nothing of the queue', async () => {
  const { daemon, producer } = await inUse();
  expect(await remove()).toMatchObject({ code: 0 });
  await daemon.stop();
  daemon.die();
  const next = await daemonOn(line, 'd2', SLOW);
  await next.start();
  expect(next.partitions()).toEqual([]);
  await producer.schedule(line.queue, 2, { id: 'late' });
  await eventually(() => next.leads()).toBe(true);
  await eventually(ready).toBe(1);
});

it('no daemon is there between the removal and the call: the next one finds the queue and its job', async () => {
  const { daemon, producer } = await inUse();
  expect(await remove()).toMatchObject({ code: 0 });
  await daemon.stop();
  daemon.die();
  await producer.schedule(line.queue, 2, { id: 'late' });
  const next = await daemonOn(line, 'd2', SLOW);
  await next.start();
  await eventually(ready).toBe(1);
});

it('a queue that is removed by force under a worker is declared anew by it, and a foreign job in it runs', async () => {
  const { daemon } = await inUse();
  const worker = await line.worker(() => undefined, QUICK);
  expect(await remove('--force')).toMatchObject({ out: expect.stringContaining('is removed') });
  await eventually(queues).toEqual([line.queue]);
  await eventually(() => daemon.leads()).toBe(true);
  await line.plan({ id: 'foreign' });
  await line.redis.spublish(line.ref.keys.wake, '0');
  await eventually(() => worker.heard.of('job.completed')).toMatchObject([{ id: 'foreign' }]);
});

it('a job that a foreign producer puts into a removed queue is found by the daemon that knew the queue', async () => {
  const { daemon } = await inUse();
  expect(await remove()).toMatchObject({ code: 0 });
  await eventually(() => daemon.leads()).toBe(false);
  await line.redis.zadd(line.ref.keys.scheduled, Date.now(), 'order-1');
  await looks(daemon);
  await eventually(ready).toBe(1);
  expect(await queues()).toContain(line.queue);
});

it('a removed queue that stays empty is left in peace', async () => {
  const { daemon } = await inUse();
  expect(await remove()).toMatchObject({ code: 0 });
  await eventually(() => daemon.leads()).toBe(false);
  await looks(daemon);
  await looks(daemon);
  expect(await queues()).not.toContain(line.queue);
  expect(await line.redis.keys(`${NAMESPACE}:v1:{${line.queue}*`)).toEqual([]);
});

it('somebody else declares a removed queue over more partitions: the producer and a worker that runs follow', async () => {
  const { daemon, producer } = await inUse();
  const worker = await line.worker(() => undefined, QUICK);
  // What the command does, but the declaration comes before anybody has noticed.
  expect(await remove('--force')).toMatchObject({ out: expect.stringContaining('is removed') });
  await line.redis.hset(`${NAMESPACE}:v1:{control}:queues`, line.queue, '{"partitions":4,"generation":0}');
  await line.redis.spublish(`${NAMESPACE}:v1:{control}:wake`, 'queue');
  await eventually(() => daemon.partitions().length).toBe(4);
  const jobs = Array.from({ length: 40 }, (_, at) => ({ data: at, id: `n${at}` }));
  const another = await producerOf();
  await another.scheduleMany(defineQueue(line.queue, { partitions: 4 }), jobs);
  await eventually(() => worker.heard.of('job.completed').length).toBe(40);
  expect((await producer.schedule(line.queue, 1, { id: 'n1' })).status).toBe('scheduled');
  await eventually(() => worker.heard.of('job.completed').length).toBe(41);
});

it('everything is flushed away: the next call of a producer declares its queue anew', async () => {
  const { producer } = await inUse();
  await line.redis.flushall();
  await producer.schedule(line.queue, 2, { id: 'late' });
  expect(await queues()).toEqual([line.queue]);
});

it('declaring twice, or over another number of partitions, changes nothing', async () => {
  for (const partitions of [1, 1, 4]) {
    const layout = await declareQueue(line.redis, { namespace: NAMESPACE, queue: line.queue, partitions });
    expect(layout.partitions).toBe(1);
  }
});
