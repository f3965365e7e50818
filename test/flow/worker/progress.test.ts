/** `context.progress`: what a handler says of how far it is, and what people see of that while its job runs. */
import { expect, it } from 'vitest';
import { createClient } from '../../../src/client/client.ts';
import { fixed } from '../../../src/job/backoff.ts';
import { decodeRun, memberOf } from '../../../src/job/codec.ts';
import { Defer } from '../../../src/job/outcome.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { peek } from '../../../src/redis/read/inspect.ts';
import type { HandlerContext } from '../../../src/worker/run/handlers.ts';
import { eventually, gate, NAMESPACE, useLine } from '../../support/worker-line.ts';

const line = useLine();

const look = async () => {
  const seen = await peek(line.redis, line.ref, memberOf('a'));
  return seen && 'kind' in seen ? undefined : seen;
};
const progress = async () => {
  const { fraction, text } = (await look())?.run?.progress ?? {};
  return [fraction, text];
};
const stored = async () => (await line.redis.hget(line.ref.keys.runs, memberOf('a'))) ?? '';

it('the first word is seen at once although the lease is long, the newest one a second later, and the end ends it', async () => {
  const doors = [gate(), gate()];
  const worker = await line.worker(
    async (_job, { progress }) => {
      expect(progress(0, 'begins')).toBeUndefined();
      await doors[0]?.opened;
      for (let row = 1; row <= 1000; row += 1) progress(row / 1000, `row ${row}`);
      await doors[1]?.opened;
    },
    { jobLease: '5m' },
  );
  await line.plan({});
  await eventually(progress).toEqual([0, 'begins']);
  const sinceMs = Date.now();
  doors[0]?.open();
  await eventually(progress).toEqual([1, 'row 1000']);
  expect(Date.now() - sinceMs).toBeLessThan(3000);
  const calls = async () => Number(/cmdstat_xclaim:calls=(\d+)/.exec(await line.redis.info('commandstats'))?.[1] ?? 0);
  expect(await calls()).toBeLessThan(6);
  doors[1]?.open();
  await eventually(() => worker.heard.of('job.completed').length).toBe(1);
  expect(await look()).toMatchObject({ state: 'done' });
});

it('a job that failed, or was put aside, has no progress until its next handler says so, and no error more', async () => {
  const ends = [new Error('no'), new Defer('20ms', { reason: 'locked' })];
  const door = gate();
  const histories: unknown[] = [];
  const worker = await line.worker(
    async (job, context) => {
      histories.push(job.history.map(({ message }) => message));
      if (job.attempt === 3) return door.opened;
      context.progress(0.5, 'half');
      await eventually(stored).toContain(`"a":${job.attempt},"k":"progress"`);
      throw ends[job.attempt - 1];
    },
    { backoff: fixed(20), attempts: 3 },
  );
  await line.plan({});
  await eventually(() => histories.length).toBe(3);
  await eventually(async () => (await look())?.state).toBe('running');
  expect(await progress()).toEqual([undefined, undefined]);
  expect(histories).toEqual([[], ['no'], ['no']]);
  expect(await look()).toMatchObject({ run: { attempts: 3, failures: 1, history: [{ message: 'no' }] } });
  door.open();
  await eventually(() => worker.heard.of('job.completed').length).toBe(1);
});

it('nothing is written for a handler whose lease was lost or that has ended', async () => {
  const late = gate();
  let context: HandlerContext | undefined;
  const worker = await line.worker(
    async (_job, given) => {
      context = given;
      await late.opened;
    },
    { jobLease: 2000 },
  );
  await line.plan({});
  await eventually(async () => decodeRun(await stored())?.owner).toBe(worker.consumer);
  await line.redis.hset(line.ref.keys.runs, memberOf('a'), (await stored()).replace(` ${worker.consumer} `, ' w2 '));
  await eventually(() => context?.signal.aborted).toBe(true);
  context?.progress(0.5, 'nobody hears it');
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(await stored()).not.toContain('progress');
  await line.redis.hset(line.ref.keys.runs, memberOf('a'), (await stored()).replace(' w2 ', ` ${worker.consumer} `));
  late.open();
  await eventually(() => worker.running()).toBe(0);
  expect(() => context?.progress(1)).not.toThrow();
});

it('a queue that delivers at most once takes it and says nothing: its jobs are over already', async () => {
  const worker = await line.worker((_job, { progress }) => progress(0.5, 'half'), { delivery: 'at-most-once' });
  await line.plan({});
  await eventually(() => worker.heard.of('job.completed').length).toBe(1);
  expect(await stored()).toBe('');
});

it('a text shows nothing of what its queue hides', async () => {
  const door = gate();
  const queue = defineQueue(line.queue, { redact: ['email'] });
  const client = createClient({ redis: { path: line.server.socketPath }, namespace: NAMESPACE });
  await client.schedule(queue, { email: 'ann@example.org' }, { id: 'a' });
  await client.close();
  await line.worker(async (job, { progress }) => {
    progress(0.5, `mail to ${(job.data as { email: string }).email}`);
    await door.opened;
  });
  await eventually(progress).toEqual([0.5, 'mail to [redacted]']);
  door.open();
});

it('what is no progress is refused with what is allowed', async () => {
  const refused: string[] = [];
  const wrong: readonly (readonly unknown[])[] = [
    [1.1],
    [-0.1],
    [Number.NaN],
    ['0.5'],
    [],
    [0.5, 7],
    [0.5, 'two\nlines'],
    [0.5, '\ud800'],
    [0.5, 'ä'.repeat(101)],
  ];
  const worker = await line.worker(async (_job, context) => {
    for (const [fraction, text] of wrong) {
      try {
        context.progress(fraction as number, text as string);
      } catch (error) {
        refused.push((error as Error).message);
      }
    }
    context.progress(0, 'ä'.repeat(100));
    context.progress(1, '');
  });
  await line.plan({});
  await eventually(() => worker.heard.of('job.completed').length).toBe(1);
  const number = 'allowed: a number from 0 to 1';
  const text = 'allowed: at most 200 bytes without control characters';
  expect(refused).toEqual([
    `progress is 1.1; ${number}`,
    `progress is -0.1; ${number}`,
    `progress is NaN; ${number}`,
    `progress is "0.5"; ${number}`,
    `progress is undefined; ${number}`,
    `the text of progress is 7; ${text}`,
    `the text of progress is "two\\nlines"; ${text}`,
    `the text of progress is "\\ud800"; ${text}`,
    `the text of progress has 202 bytes; ${text}`,
  ]);
});
