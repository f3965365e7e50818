/**
 * The reply to the call that ends a start is lost: the same call again is answered from what the first one left, and the
 * worker tells the same event as if nothing had been lost, once.
 */
import { expect, it } from 'vitest';
import { createClient } from '../../../src/client/client.ts';
import { fixed } from '../../../src/job/backoff.ts';
import type { EventName } from '../../../src/job/events.ts';
import { Defer, Unrecoverable } from '../../../src/job/outcome.ts';
import type { Handler } from '../../../src/worker/run/handlers.ts';
import { openLossyLine } from '../../support/lossy-line.ts';
import { eventually, gate, NAMESPACE, useLine } from '../../support/worker-line.ts';

const line = useLine();

const throwing = (thrown: () => Error): Handler => {
  return () => {
    throw thrown();
  };
};
const fails = throwing(() => new Error('no'));
const defers = throwing(() => new Defer('1h'));
const dies = throwing(() => new Unrecoverable('never'));
const commits: Handler = (_job, { commit, tag }) => commit('INCRBY', `${tag}:sum`, 5);
const halfCommits: Handler = (job, context) => {
  context.commit('SET', `${context.tag}:word`, 'a word');
  context.commit('INCR', `${context.tag}:word`);
  return commits(job, context);
};

async function lossyWorker(handler: Handler) {
  const lossy = await openLossyLine(line.server);
  line.onEnd(lossy.close);
  const worker = await line.worker(handler, {
    redis: lossy.url,
    delivery: 'effectively-once',
    backoff: fixed('1h'),
  });
  const ends = () => worker.heard.names().filter((name) => name !== 'job.started' && !name.startsWith('redis.'));
  return { lossy, worker, ends };
}

const ENDS: readonly (readonly [verb: string, handler: Handler, event: EventName, told: object])[] = [
  ['retry', fails, 'job.retried', { delayMs: 3_600_000, error: { message: 'no' } }],
  ['defer', defers, 'job.deferred', { delayMs: 3_600_000 }],
  ['bury', dies, 'job.dead', { reason: 'never' }],
  ['commit', commits, 'job.completed', {}],
  [
    'commit',
    halfCommits,
    'job.dead',
    { reason: 'half-committed', error: { message: expect.stringMatching(/^command 2 ERR/) } },
  ],
];

it.each(ENDS)('the reply of %s is lost, and $2 is told once', async (verb, handler, event, told) => {
  const { lossy, worker, ends } = await lossyWorker(handler);
  lossy.loseReplyTo(verb);
  await line.plan({});
  await eventually(ends).toEqual([event]);
  expect(worker.heard.of(event)).toMatchObject([{ id: 'a', ...told }]);
  await eventually(() => worker.running()).toBe(0);
  expect([lossy.lost(), ends()]).toEqual([1, [event]]);
});

it.each([
  ['retry', fails],
  ['defer', defers],
  ['bury', dies],
  ['commit', commits],
])('the reply of %s is lost although the job was to be cancelled, and that is told once', async (verb, handler) => {
  const door = gate();
  const { lossy, worker, ends } = await lossyWorker(async (job, context) => {
    await door.opened;
    return handler(job, context);
  });
  await line.plan({});
  await eventually(() => worker.heard.of('job.started').length).toBe(1);
  await line.jobs.cancel(line.ref, ['j:a'], { windowMs: 60_000 });
  lossy.loseReplyTo(verb);
  door.open();
  await eventually(ends).toEqual(['job.cancelled']);
  await eventually(() => worker.running()).toBe(0);
  expect([lossy.lost(), ends()]).toEqual([1, ['job.cancelled']]);
});

it.each([false, true])('the reply of expire is lost, and the event is told once: dead %s', async (dead) => {
  const { lossy, worker, ends } = await lossyWorker(() => undefined);
  await using producer = createClient({ redis: { path: line.server.socketPath }, namespace: NAMESPACE });
  lossy.loseReplyTo('expire');
  const at = new Date(Date.now() - 60_000);
  await producer.schedule(line.queue, 'x', { id: 'a', at, maxLateness: '1s', onLate: dead ? 'dead' : 'drop' });
  await eventually(ends).toEqual(['job.expired']);
  expect(worker.heard.of('job.expired')).toEqual([{ queue: line.queue, id: 'a', dead }]);
  expect(lossy.lost()).toBe(1);
});
