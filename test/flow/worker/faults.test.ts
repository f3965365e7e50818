/**
 * Our own code throws at one job, where a worker looks at what the job brought: the job ends all the same, its neighbours
 * complete, and both slots serve on. What it throws anywhere else ends the process (test/unit/round-trips.test.ts).
 */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { encodeAttempted } from '../../../src/job/codec.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { endMark } from '../../../src/job/record-header.ts';
import { servedOf, settleReply, takenOf } from '../../../src/redis/scripts/replies.ts';
import { startedJob } from '../../../src/worker/run/context.ts';
import { createWorker } from '../../../src/worker/worker.ts';
import { type Heard, NAMESPACE, QUICK, useLine } from '../../support/worker-line.ts';

vi.mock('../../../src/job/codec.ts', { spy: true });
vi.mock('../../../src/job/record-header.ts', { spy: true });
vi.mock('../../../src/redis/scripts/replies.ts', { spy: true });
vi.mock('../../../src/worker/run/context.ts', { spy: true });

const line = useLine();

const fault = (): never => {
  throw new TypeError('our own code threw');
};

/** What nobody caught. */
const escaped: unknown[] = [];
const note = (error: unknown) => void escaped.push(error);
beforeEach(() => void process.on('unhandledRejection', note).on('uncaughtException', note));
afterEach(() => {
  process.off('unhandledRejection', note).off('uncaughtException', note);
  vi.resetAllMocks();
  expect(escaped.splice(0)).toEqual([]);
});

const NEIGHBOURS = line.many(8);
const idsOf = (some: readonly { readonly id?: string }[]) => some.map(({ id }) => id ?? '').toSorted();
const isOf = (jobs: readonly { readonly id?: string }[]) => idsOf(jobs).filter((id) => id.startsWith('m'));
/** Each job once, however it ended. */
const over = ({ of }: Heard) => [...new Set(idsOf([...of('job.completed'), ...of('job.dead')]))];
const OPTIONS = { ...QUICK, concurrency: 2, attempts: 1 };

/** All eight end, and six more, with two at once. */
async function expectAllOver(heard: Heard, running: () => number): Promise<void> {
  await expect.poll(() => over(heard)).toEqual(idsOf(NEIGHBOURS));
  const before = running();
  await line.plan(...line.many(6, 'm'));
  await expect.poll(() => isOf(heard.of('job.completed'))).toHaveLength(6);
  expect([before, running()]).toEqual([0, 0]);
}

/** A handler that counts how many of it run. */
function counted(body: (id: string) => unknown) {
  let now = 0;
  let most = 0;
  return {
    running: () => now,
    most: () => most,
    async handler({ id }: { readonly id: string }) {
      now += 1;
      most = Math.max(most, now);
      await new Promise((resolve) => setImmediate(resolve));
      now -= 1;
      return body(id);
    },
  };
}

describe('a function of ours that throws once', () => {
  it.each([
    ['as it makes what the handler gets', () => vi.mocked(startedJob).mockImplementationOnce(fault), ['unjudged']],
    ['as it makes the mark of an end', () => vi.mocked(endMark).mockImplementationOnce(fault), ['unjudged']],
    ['as it reads what a start answered', () => vi.mocked(takenOf).mockImplementationOnce(fault), []],
    ['as it reads what a turn answered', () => vi.mocked(servedOf).mockImplementationOnce(fault), []],
  ])('%s', async (_when, plant, dead) => {
    const { handler, running, most } = counted((id) => id);
    plant();
    const worker = await line.worker(handler, OPTIONS);
    await line.plan(...NEIGHBOURS);
    await expectAllOver(worker.heard, running);
    expect(most()).toBe(2);
    expect((await line.deadLetters()).map(({ reason }) => reason)).toEqual(dead);
  });

  it('before a job is completed that is delivered at most once, its data once checked: it is a dead letter', async () => {
    const jobs = { default: z.unknown().refine(async () => true) };
    const queue = defineQueue(line.queue, { delivery: 'at-most-once', jobs });
    const place = { redis: { path: line.server.socketPath }, namespace: NAMESPACE };
    const worker = createWorker(queue, () => undefined, { ...place, concurrency: 2 });
    line.onEnd(() => worker.stop());
    const ended: string[] = [];
    worker.events.on('job.completed', () => ended.push('done'));
    worker.events.on('job.failed', () => ended.push('failed'));
    worker.events.on('job.dead', ({ reason }) => ended.push(reason));
    vi.mocked(endMark).mockImplementationOnce(fault);
    await line.plan(...NEIGHBOURS);
    await worker.start();
    await expect.poll(() => ended.toSorted()).toEqual([...NEIGHBOURS.slice(1).map(() => 'done'), 'unjudged']);
  });

  it('as it writes down why a handler failed: that job alone is a dead letter', async () => {
    const { handler, running } = counted((id) => (id === 'n3' ? Promise.reject(new Error('no')) : id));
    vi.mocked(encodeAttempted).mockImplementationOnce(fault);
    const worker = await line.worker(handler, OPTIONS);
    await line.plan(...NEIGHBOURS);
    await expectAllOver(worker.heard, running);
    expect((await line.deadLetters()).map(({ reason }) => reason)).toEqual(['unjudged']);
    expect(idsOf(worker.heard.of('job.dead'))).toEqual(['n3']);
  });

  it('as it reads the answer to an end: the end is told all the same', async () => {
    const { handler, running } = counted((id) => (id === 'n3' ? Promise.reject(new Error('no')) : id));
    vi.mocked(settleReply).mockImplementationOnce(fault);
    const worker = await line.worker(handler, OPTIONS);
    await line.plan(...NEIGHBOURS);
    await expectAllOver(worker.heard, running);
    expect(idsOf(worker.heard.of('job.dead'))).toEqual(['n3']);
  });
});
