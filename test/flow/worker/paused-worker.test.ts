/** A single worker that somebody pauses: what it takes, what it goes on with, and who else sees it. */
import { expect, it } from 'vitest';
import { createClient } from '../../../src/client/client.ts';
import { workersSeen } from '../../../src/client/queues/processes.ts';
import { controlKeys } from '../../../src/redis/keys.ts';
import { beatAndHear } from '../../../src/redis/scripts/presence.ts';
import { readNew } from '../../../src/redis/scripts/ready.ts';
import { eventually, gate, NAMESPACE, QUICK, useLine } from '../../support/worker-line.ts';

const line = useLine();
const control = controlKeys(NAMESPACE);

function workers() {
  const client = createClient({ redis: { path: line.server.socketPath }, namespace: NAMESPACE });
  line.onEnd(() => client.close());
  return client.workers;
}
const seen = async () => (await workersSeen({ redis: line.redis, namespace: NAMESPACE }, { limit: 10 })).workers;

it('takes nothing new, goes on with what it runs, and takes again when it is resumed', async () => {
  const door = gate();
  const ran: string[] = [];
  const worker = await line.worker(
    async ({ id }) => {
      if (id === 'long') await door.opened;
      ran.push(id);
    },
    { ...QUICK, concurrency: 5 },
  );
  await line.plan({ id: 'long' });
  await eventually(worker.running).toBe(1);
  const all = workers();
  const paused = await all.pause(worker.consumer, { by: 'ada', reason: 'a dump' });
  expect(paused).toMatchObject({ status: 'changed', pause: { by: 'ada', reason: 'a dump' } });
  await eventually(() => worker.heard.of('worker.paused')).toEqual([{ by: 'ada', reason: 'a dump' }]);
  expect([worker.isReady(), worker.isLive()]).toEqual([true, true]);
  await line.plan({ id: 'later' });
  await eventually(line.picture).toMatchObject({ ready: ['j:long', 'j:later'] });
  door.open();
  // The call that completes the one brings nothing new.
  await eventually(line.picture).toMatchObject({ ready: ['j:later'] });
  expect((await line.picture()).pending).toBeUndefined();
  expect(await all.pause(worker.consumer, { by: 'bob' })).toMatchObject({ status: 'same', pause: { by: 'ada' } });
  expect(await seen()).toMatchObject([{ id: worker.consumer, pause: { by: 'ada', reason: 'a dump' }, pauses: true }]);
  expect(ran).toEqual(['long']);
  expect(await all.resume(worker.consumer)).toMatchObject({ status: 'changed', pause: { by: 'ada' } });
  await eventually(() => ran).toEqual(['long', 'later']);
  expect(worker.heard.of('worker.resumed')).toEqual([{ pausedMs: expect.any(Number) }]);
  expect(await all.resume(worker.consumer)).toEqual({ status: 'same', pause: undefined });
});

it('leaves its jobs to the other workers of the queue', async () => {
  const ran: string[] = [];
  const one = await line.worker(() => void ran.push('one'), QUICK);
  const two = await line.worker(() => void ran.push('two'), QUICK);
  await workers().pause(one.consumer);
  await eventually(() => one.heard.of('worker.paused').length).toBe(1);
  await line.plan(...line.many(50));
  await eventually(() => ran.length).toBe(50);
  // What a read brought that was under way when the pause came, at the most.
  expect(ran.filter((name) => name === 'two').length).toBeGreaterThanOrEqual(49);
  expect(two.heard.of('worker.paused')).toEqual([]);
});

it('stays paused when Redis loses its heartbeat, and is gone with its process', async () => {
  const worker = await line.worker(() => undefined, QUICK);
  const all = workers();
  await all.pause(worker.consumer, { reason: 'a dump' });
  await eventually(() => worker.heard.of('worker.paused').length).toBe(1);
  await line.redis.del(control.beat(worker.consumer));
  await eventually(seen).toMatchObject([{ id: worker.consumer, pause: { reason: 'a dump' } }]);
  expect(worker.heard.of('worker.resumed')).toEqual([]);
  await worker.stop();
  await expect(all.resume(worker.consumer)).rejects.toMatchObject({ code: 'not-found' });
  await line.worker(() => undefined, QUICK);
  expect((await seen()).map(({ pause }) => pause)).toEqual([undefined]);
});

it('ends with a worker that dies: its job goes on elsewhere, and not with another that is paused', async () => {
  const all = workers();
  const asleep = await line.worker(() => undefined, QUICK);
  await all.pause(asleep.consumer);
  await eventually(() => asleep.heard.of('worker.paused').length).toBe(1);
  // One that was paused while it ran a job. It sends no beat any more, as a process that was killed.
  await line.plan({});
  await eventually(async () => (await line.picture()).ready).toEqual(['j:a']);
  const consumer = 'ghost';
  line.onEnd(() => line.redis.srem(control.alive, consumer));
  const identity = { id: consumer, role: 'worker', host: 'mill', pid: 7, startedMs: 1, queues: [line.queue] } as const;
  await beatAndHear(line.redis, { namespace: NAMESPACE, identity: { ...identity, pauses: true }, ttlMs: 1000 });
  expect(await all.pause(consumer, { reason: 'a dump' })).toMatchObject({ status: 'changed' });
  const [batch] = await readNew(line.redis, [line.ref], { consumer, count: 1, blockMs: 0 });
  await line.jobs.start(line.ref, batch?.deliveries ?? [], { consumer, bytesMax: 1_000_000, windowMs: 60_000 });
  const awake = await line.worker(() => undefined, QUICK);
  await eventually(() => awake.heard.of('job.completed').length).toBe(1);
  expect(awake.heard.of('entries.reclaimed')).toMatchObject([{ from: consumer, count: 1 }]);
  expect(asleep.heard.of('entries.reclaimed')).toEqual([]);
  await expect(all.resume(consumer)).rejects.toMatchObject({ code: 'not-found' });
  expect(await line.redis.exists(control.beat(consumer))).toBe(0);
  expect((await seen()).filter(({ pause }) => pause).map(({ id }) => id)).toEqual([asleep.consumer]);
});

it('is not done to a process that there is not, nor to one of an older version', async () => {
  const all = workers();
  await expect(all.pause('w-none')).rejects.toMatchObject({
    code: 'not-found',
    message: expect.stringContaining('no worker "w-none" lives'),
  });
  await expect(all.pause('a b')).rejects.toMatchObject({ code: 'bad-input' });
  const identity = { id: 'w-old', role: 'worker', host: 'mill', pid: 7, startedMs: 1, queues: ['q'], version: '0.2.0' };
  await line.redis.sadd(control.alive, 'w-old');
  await line.redis.set(control.beat('w-old'), JSON.stringify(identity), 'PX', 60_000);
  line.onEnd(() => line.redis.del(control.beat('w-old'), control.alive));
  await expect(all.pause('w-old')).rejects.toMatchObject({
    code: 'bad-input',
    message: expect.stringContaining('is of version 0.2.0, which hears of no pause'),
  });
  expect((await seen()).filter(({ id }) => id === 'w-old')).toMatchObject([{ pauses: false }]);
});
