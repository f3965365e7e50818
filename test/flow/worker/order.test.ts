/** Jobs that one producer made due at the same millisecond run in the order in which it scheduled them. */
import { expect, it } from 'vitest';
import { type ClientMiddleware, createClient } from '../../../src/client/client.ts';
import { defineQueue, type QueueInput } from '../../../src/job/queue.ts';
import { eventually, NAMESPACE, useLine } from '../../support/worker-line.ts';

const line = useLine();
/** One due time of all jobs, and it is past: whatever promotes them finds all of them due. */
const at = new Date('2026-03-01T09:00:00Z');
const numbers = (from: number, count: number) => Array.from({ length: count }, (_, nth) => from + nth);

function producer(name = 'producer') {
  const made = createClient({ redis: { path: line.server.socketPath }, namespace: NAMESPACE, name });
  line.onEnd(() => made.close());
  return made;
}

/** The data of the jobs in the order in which one slot starts them, once all of them are stored. */
async function runAll(schedule: () => Promise<unknown>, delivery?: 'effectively-once'): Promise<readonly unknown[]> {
  await line.stopMovers();
  await schedule();
  const stored = await line.redis.zcard(line.ref.keys.scheduled);
  const ran: unknown[] = [];
  await line.worker(async ({ data }) => void ran.push(data), { concurrency: 1, ...(delivery ? { delivery } : {}) });
  line.mover().start();
  await eventually(() => ran.length).toBe(stored);
  return ran;
}

it('500 calls at once that nobody awaits one by one, before the first connection', async () => {
  const { schedule } = producer();
  const ran = await runAll(() => Promise.all(numbers(0, 500).map((nth) => schedule(line.queue, nth, { at }))));
  expect(ran).toEqual(numbers(0, 500));
});

it('a list of more jobs than one script call and one pass of the leader take', async () => {
  const { scheduleMany } = producer();
  const ran = await runAll(() =>
    scheduleMany(
      line.queue,
      numbers(0, 1200).map((data) => ({ data, at })),
    ),
  );
  expect(ran).toEqual(numbers(0, 1200));
});

it('single calls, lists and awaited calls, one after the other', async () => {
  const { schedule, scheduleMany } = producer();
  const ran = await runAll(async () => {
    const calls: Promise<unknown>[] = [];
    for (const nth of numbers(0, 10)) {
      calls.push(schedule(line.queue, nth * 30, { at }));
      const list = numbers(nth * 30 + 1, 28).map((data) => ({ data, at }));
      calls.push(scheduleMany(line.queue, list));
      const last = schedule(line.queue, nth * 30 + 29, { at });
      if (nth % 3 === 0) await last;
      calls.push(last);
    }
    await Promise.all(calls);
  });
  expect(ran).toEqual(numbers(0, 300));
});

it('calls of a queue whose schema answers later for some jobs than for others', async () => {
  const held: (() => void)[] = [];
  const schema = {
    '~standard': {
      version: 1 as const,
      vendor: 'test',
      validate: (value: unknown) =>
        Number(value) % 2 === 0
          ? { value }
          : new Promise<{ value: unknown }>((resolve) => held.unshift(() => resolve({ value }))),
    },
  };
  const queue: QueueInput<unknown> = defineQueue(line.queue, { jobs: { default: schema } }) as never;
  const { schedule } = producer();
  const ran = await runAll(async () => {
    const calls = numbers(0, 40).map((nth) => schedule(queue, nth, { at }));
    await Promise.all(calls.filter((_, nth) => nth % 2 === 0));
    for (const answer of held) answer();
    await Promise.all(calls);
  });
  expect(ran).toEqual(numbers(0, 40));
});

it('calls through a middleware that holds some of them back', async () => {
  const held: (() => void)[] = [];
  const middleware: ClientMiddleware = {
    async schedule(call, next) {
      if (Number(call.jobs[0]?.data) % 2 === 1) await new Promise<void>((resolve) => held.unshift(resolve));
      return next({ ...call, jobs: call.jobs.map((job) => ({ ...job, name: 'through' })) });
    },
  };
  const made = producer();
  made.use(middleware);
  const ran = await runAll(async () => {
    const calls = numbers(0, 40).map((nth) => made.schedule(line.queue, nth, { at }));
    await Promise.all(calls.filter((_, nth) => nth % 2 === 0));
    for (const go of held) go();
    await Promise.all(calls);
  });
  expect(ran).toEqual(numbers(0, 40));
});

it('jobs that one job commits with its end: more than nine', async () => {
  const ran: unknown[] = [];
  await line.worker(
    async ({ data }, { commitJob }) => {
      ran.push(data);
      if (data !== 'first') return;
      await Promise.all(numbers(0, 100).map((nth) => commitJob(nth, { at })));
    },
    { concurrency: 1, delivery: 'effectively-once' },
  );
  await line.plan({ data: 'first' });
  await eventually(() => ran.length).toBe(101);
  expect(ran).toEqual(['first', ...numbers(0, 100)]);
});

it('the ids of several producers at once are all different', async () => {
  await line.stopMovers();
  const calls = ['a', 'b', 'c', 'd'].map((name) =>
    producer(name).scheduleMany(
      line.queue,
      numbers(0, 1000).map((data) => ({ data, at })),
    ),
  );
  const ids = (await Promise.all(calls)).flat().map(({ id }) => id);
  expect(new Set(ids).size).toBe(4000);
  expect(await line.redis.zcard(line.ref.keys.scheduled)).toBe(4000);
  await line.redis.flushall();
});
