/**
 * Our own code throws at one job, at each place where a worker handles one: the job ends all the same, its neighbours
 * complete, and both slots serve on. Faults come from a clock that throws, and from functions of ours that do.
 */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { encodeAttempted } from '../../../src/job/codec.ts';
import { endMark } from '../../../src/job/record-header.ts';
import { type Clock, systemClock } from '../../../src/kernel/clock.ts';
import { servedOf, settleReply, takenOf } from '../../../src/redis/scripts/replies.ts';
import { startedJob } from '../../../src/worker/run/context.ts';
import { type Heard, QUICK, useLine } from '../../support/worker-line.ts';

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

/** A clock that throws at its first reading by a function whose line of the stack is like this. */
function faultyClock(place: RegExp) {
  let hasThrown = false;
  const reading =
    <A extends readonly unknown[], R>(read: (...args: A) => R) =>
    (...args: A): R => {
      const [, , reader = ''] = (new Error('here').stack ?? '').split('\n');
      if (hasThrown || !place.test(reader)) return read(...args);
      hasThrown = true;
      return fault();
    };
  const { wallMs, monotonicMs, sleep, timer } = systemClock;
  const clock: Clock = {
    wallMs: reading(wallMs),
    monotonicMs: reading(monotonicMs),
    sleep: reading(sleep),
    timer: reading(timer),
  };
  return { clock, hasThrown: () => hasThrown };
}

const NEIGHBOURS = line.many(8);
const idsOf = (some: readonly { readonly id?: string }[]) => some.map(({ id }) => id ?? '').toSorted();
const isOf = (jobs: readonly { readonly id?: string }[]) => idsOf(jobs).filter((id) => id.startsWith('m'));
/** Each job once, however it ended. */
const over = ({ of }: Heard) => [...new Set(idsOf([...of('job.completed'), ...of('job.dead')]))];
/** Adoption takes up to 7 s. */
const ADOPTED = { timeout: 15_000 };
const OPTIONS = { ...QUICK, concurrency: 2, attempts: 1 };

/** All eight end, and six more, with two at once. */
async function expectAllOver(heard: Heard, running: () => number): Promise<void> {
  await expect.poll(() => over(heard), ADOPTED).toEqual(idsOf(NEIGHBOURS));
  const before = running();
  await line.plan(...line.many(6, 'm'));
  await expect.poll(() => isOf(heard.of('job.completed')), ADOPTED).toHaveLength(6);
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

describe('a clock that throws once', { timeout: 60_000 }, () => {
  it.each([
    ['when a handler begins', /Execution\.#call/],
    ['when the time of a handler is set', /Execution\.#wait/],
    ['when a handler ends', /Execution\.#acknowledge/],
    ['when a call for several jobs is sent', /RoundTrips\.#call/],
    ['when what came is started', /runAtOnce/],
  ])('%s', async (_when, place) => {
    const { clock, hasThrown } = faultyClock(place);
    const { handler, running, most } = counted((id) => id);
    const worker = await line.worker(handler, { ...OPTIONS, clock });
    await line.plan(...NEIGHBOURS);
    await expectAllOver(worker.heard, running);
    expect(hasThrown()).toBe(true);
    expect(most()).toBe(2);
  });
});

describe('a function of ours that throws once', { timeout: 60_000 }, () => {
  it.each([
    ['as it makes what the handler gets', () => vi.mocked(startedJob).mockImplementationOnce(fault), ['unjudged']],
    ['as it makes the mark of an end', () => vi.mocked(endMark).mockImplementationOnce(fault), []],
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

it('leaves a job to adoption whose burial throws too, and ends it then', { timeout: 60_000 }, async () => {
  const { handler, running } = counted((id) => (id === 'n3' ? Promise.reject(new Error('no')) : id));
  const [end, burial] = [fault, fault];
  vi.mocked(encodeAttempted).mockImplementationOnce(end).mockImplementationOnce(burial);
  const worker = await line.worker(handler, OPTIONS);
  await line.plan(...NEIGHBOURS);
  await expectAllOver(worker.heard, running);
  expect(idsOf(worker.heard.of('job.dead'))).toEqual(['n3']);
});
