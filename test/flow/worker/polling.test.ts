/** A worker that waits in no read: it is told of jobs, and looks now and then. Where nothing can be told, `served-redis.test.ts`. */
import { expect, test } from 'vitest';
import { createClient } from '../../../src/client/client.ts';
import { createDaemonOf } from '../../../src/daemon/daemon.ts';
import { readDaemonInput } from '../../../src/daemon/input.ts';
import { partitionKeys } from '../../../src/redis/keys.ts';
import { createWorker } from '../../../src/worker/worker.ts';
import { aborted, eventually, useLine } from '../../support/worker-line.ts';

const line = useLine();
const POLLS = { read: 'poll', pollEvery: 50 } as const;

/** How often reads that block came to the server. */
const blocked = async () => Number(/blocked_clients:(\d+)/.exec(await line.redis.info('clients'))?.[1]);

test('runs jobs, more than it has slots, without a read of its own', async () => {
  const ran: string[] = [];
  const worker = await line.worker(({ id }) => void ran.push(id), { ...POLLS, concurrency: 3 });
  await line.plan(...line.many(50));
  await eventually(() => worker.heard.of('job.completed').length).toBe(50);
  expect(new Set(ran).size).toBe(50);
  const named = String(await line.redis.call('CLIENT', 'LIST'));
  expect(named).toContain(`name=duestream:calls:${line.queue}`);
  expect(named).not.toContain(`name=duestream:reader:${line.queue}`);
  expect(await blocked()).toBe(0);
  await worker.stop();
});

test('stops at once, and hands back what runs', async () => {
  let begun = 0;
  const worker = await line.worker(
    async (_job, { signal }) => {
      begun += 1;
      await aborted(signal);
      throw new Error('stopped');
    },
    { ...POLLS, concurrency: 2 },
  );
  await line.plan(...line.many(3));
  await eventually(() => begun).toBe(2);
  await worker.stop({ shutdown: 0 });
  expect(worker.heard.of('job.completed')).toEqual([]);
  const [held] = (await line.redis.xpending(line.ref.keys.ready, 'workers')) as [number];
  expect([held, await line.redis.hlen(line.ref.keys.jobs)]).toEqual([0, 3]);
});

test('is called by the leader of its queue, and a worker that blocks is not', async () => {
  const queues = { polled: POLLS, blocked: {} } as const;
  const heard: string[] = [];
  const ears = await line.server.client();
  const options = { redis: { path: line.server.socketPath } };
  const workers = Object.entries(queues).map(([queue, own]) =>
    createWorker(queue, () => undefined, { ...options, ...own }),
  );
  ears.on('smessage', (channel: string) => heard.push(channel));
  const channels = Object.keys(queues).map(
    (queue) => partitionKeys({ namespace: 'duestream', queue, partition: 0 }).work,
  );
  for (const channel of channels) await ears.ssubscribe(channel);
  for (const worker of workers) await worker.start();
  const daemon = createDaemonOf(readDaemonInput({ roles: ['mover'], redis: { url: line.server.url } }));
  await daemon.start();
  const client = createClient(options);
  for (const queue of Object.keys(queues)) {
    await client.schedule(queue, {}, { id: 'a' });
    expect(await client.wait(queue, 'a')).toMatchObject({ status: 'done' });
  }
  await eventually(() => heard).toEqual([channels[0]]);
  await client.close();
  await daemon.stop();
  for (const worker of workers) await worker.stop();
});

test('what a worker or a subscriber cannot be told is refused', () => {
  const make = (own: object) => () => createWorker('q', () => undefined, { redis: 'redis://127.0.0.1:1', ...own });
  expect(make({ read: 'pull' })).toThrow('read is "pull"; allowed: block, poll');
  expect(make({ pollEvery: '6s' })).toThrow('pollEvery is "6s"; allowed: 10ms to 5s');
});
