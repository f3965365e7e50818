/** What a handler does to other jobs, on the connection of its worker, and middleware around it, on a real Redis. */
import { expect, test } from 'vitest';
import { createClient } from '../../../src/client/client.ts';
import { createWorker } from '../../../src/daemon/embedded-worker.ts';
import type { Handler } from '../../../src/worker/run/handlers.ts';
import { eventually, NAMESPACE, useLine } from '../../support/worker-line.ts';

const line = useLine();

function make(handler: Handler<string>) {
  const place = { redis: { path: line.server.socketPath }, namespace: NAMESPACE };
  const producer = createClient(place);
  const worker = createWorker<string>(line.queue, handler, place);
  const ended: string[] = [];
  worker.events.on('job.completed', ({ id }) => ended.push(id));
  worker.events.on('job.dead', ({ id, error }) => ended.push(`${id}: ${error.message}`));
  line.onEnd(() => producer.close());
  line.onEnd(() => worker.stop());
  return { producer, worker, ended };
}

/** But for the one that hears orders to stop, which a worker opens when a handler has run for a while. */
const connections = async () =>
  [...String(await line.redis.client('LIST')).matchAll(/name=duestream:(?!orders)/g)].length;

test('a handler schedules, reschedules and cancels on the connection of its worker', async () => {
  const replies: unknown[] = [];
  let open = 0;
  const { producer, worker, ended } = make(async (job, context) => {
    if (job.data !== 'act') return;
    const next = { id: `next:${job.id}`, delay: '1h' } as const;
    replies.push((await context.schedule(line.queue, 'later', next)).status);
    replies.push((await context.reschedule(line.queue, `next:${job.id}`, { delay: 0 })).status);
    replies.push((await context.cancel(line.queue, 'other')).status);
    await expect(context.schedule(line.queue, 1, { durability: 'fsynced' })).rejects.toMatchObject({
      code: 'bad-input',
      message: expect.stringContaining('a client of your own'),
    });
    open = await connections();
  });
  await producer.schedule(line.queue, 'x', { id: 'other', delay: '1h' });
  await worker.start();
  const before = await connections();
  await producer.schedule(line.queue, 'act', { id: 'a' });
  await eventually(() => [...ended].sort()).toEqual(['a', 'next:a']);
  expect(replies).toEqual(['scheduled', 'rescheduled', 'cancelled']);
  expect(open).toBe(before);
});

test('a second run of a handler finds the job of the first one by its id', async () => {
  const replies: string[] = [];
  const { producer, worker, ended } = make(async (job, context) => {
    if (job.data !== 'twice') return;
    const at = new Date(job.askedDueMs + 86_400_000);
    replies.push((await context.schedule(line.queue, 'later', { id: `next:${job.id}`, at })).status);
    if (job.attempt === 1) throw new Error('once more');
  });
  await worker.start();
  await producer.schedule(line.queue, 'twice', { id: 'a', backoff: { kind: 'fixed', delayMs: 1, jitter: 'none' } });
  await eventually(() => ended).toEqual(['a']);
  expect(replies).toEqual(['scheduled', 'already']);
  await producer.cancel(line.queue, 'next:a');
});

test('middleware of a worker stands around its handlers and around what they schedule', async () => {
  const told: string[] = [];
  const { producer, worker, ended } = make(async (job, context) => {
    told.push(`handler ${job.id}`);
    if (job.id === 'a') await context.schedule(line.queue, 'then', { id: 'b' });
    if (job.id === 'c') throw new Error('no');
  });
  worker.use({
    async handle(job, _context, next) {
      told.push(`begin ${job.id}`);
      await next();
      told.push(`end ${job.id}`);
    },
    schedule(call, next) {
      told.push(`schedule ${call.jobs[0]?.id}`);
      return next(call);
    },
  });
  await worker.start();
  await producer.schedule(line.queue, 'x', { id: 'a' });
  await eventually(() => ended).toEqual(expect.arrayContaining(['a', 'b']));
  await producer.schedule(line.queue, 'x', { id: 'c', attempts: 1 });
  await eventually(() => ended).toContain('c: no');
  expect(told.slice(0, 3)).toEqual(['begin a', 'handler a', 'schedule b']);
  expect(told).toEqual(expect.arrayContaining(['end a', 'begin b', 'end b', 'begin c']));
  expect(told).not.toContain('end c');
});
