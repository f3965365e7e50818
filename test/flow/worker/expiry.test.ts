/** `expiresAt` and `maxLateness`: jobs that come too late are dropped, buried, or run all the same. */
import { describe, expect, it } from 'vitest';
import { createClient } from '../../../src/client/client.ts';
import { fixed } from '../../../src/job/backoff.ts';
import type { Abandoned } from '../../../src/job/compensation.ts';
import type { Job } from '../../../src/job/job.ts';
import { Defer } from '../../../src/job/outcome.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { createMetrics } from '../../../src/metrics/metrics.ts';
import { stats } from '../../../src/redis/read/inspect.ts';
import { readNew } from '../../../src/redis/scripts/ready.ts';
import { openLossyLine } from '../../support/lossy-line.ts';
import { aborted, eventually, NAMESPACE, QUICK, useLine } from '../../support/worker-line.ts';

const line = useLine();

const ago = (ms: number) => new Date(Date.now() - ms);
/** Due a minute ago, and by then a start was worth while for a second. */
const tooLate = () => ({ at: ago(60_000), maxLateness: '1s' }) as const;

/** Far longer than a job takes to its first start, and no longer than a test may take. */
const IN_TIME_MS = 1500;
/** The clock of the machine is that of Redis. */
const passed = (atMs: number) => eventually(() => Date.now()).toBeGreaterThan(atMs);

async function open() {
  const producer = createClient({ redis: { path: line.server.socketPath }, namespace: NAMESPACE });
  line.onEnd(() => producer.close());
  return producer;
}

async function counted(metric: string): Promise<number> {
  const led = { queue: line.queue, partition: 0, leading: true as const, epoch: 1, oldestAgeMs: 0 };
  const one = { ...led, stats: await stats(line.redis, line.ref) };
  const text = await createMetrics({ version: '0', queueStats: async () => [one] }).scrape();
  return Number(
    new RegExp(`^duestream_${metric}\\{queue="${line.queue}",partition="0"\\} (\\d+)$`, 'm').exec(text)?.[1],
  );
}

describe('a job that is too late', () => {
  it.each([
    ['by its greatest lateness', tooLate()],
    ['by its expiry', { at: ago(60_000), expiresAt: ago(30_000) }],
    ['by either of both', { at: ago(60_000), expiresAt: new Date(Date.now() + 60_000), maxLateness: 1 }],
  ])('%s is dropped: over as expired without an attempt', async (_how, options) => {
    const producer = await open();
    const ran: string[] = [];
    const worker = await line.worker((job) => ran.push(job.id));
    await producer.schedule(line.queue, 'x', { id: 'a', ...options });
    await eventually(() => worker.heard.of('job.expired')).toEqual([{ queue: line.queue, id: 'a', dead: false }]);
    expect(await producer.get(line.queue, 'a')).toMatchObject({ state: 'expired', attempts: 0, deadLetter: undefined });
    expect([ran, worker.running(), worker.heard.names()]).toEqual([[], 0, ['job.expired']]);
    expect([await counted('jobs_expired_total'), await counted('jobs_dead_total')]).toEqual([1, 0]);
    expect(await producer.schedule(line.queue, 'x', { id: 'a', ...options })).toMatchObject({
      status: 'already',
      over: 'expired',
    });
  });

  it('is a dead letter if its producer wished so, and replaying it runs it', async () => {
    const producer = await open();
    const seen: unknown[] = [];
    const worker = await line.worker((job) => seen.push(job.data));
    await producer.schedule(line.queue, { kept: true }, { id: 'a', ...tooLate(), onLate: 'dead' });
    await eventually(() => worker.heard.of('job.expired')).toMatchObject([{ id: 'a', dead: true }]);
    const view = await producer.get(line.queue, 'a');
    expect(view).toMatchObject({ state: 'dead', attempts: 0, deadLetter: expect.stringMatching(/^\d+-\d+$/) });
    expect(await line.deadLetters()).toMatchObject([{ member: 'j:a', reason: 'expired', attempts: '0' }]);
    expect([await counted('jobs_expired_total'), await counted('jobs_dead_total')]).toEqual([0, 1]);
    await producer.deadLetters.replay(line.queue, view?.deadLetter ?? '');
    await eventually(() => worker.heard.of('job.completed').length).toBe(1);
    expect(seen).toEqual([{ kept: true }]);
  });

  it('runs all the same if its producer wished so', async () => {
    const producer = await open();
    const worker = await line.worker(() => undefined);
    await producer.schedule(line.queue, 'x', { ...tooLate(), onLate: 'run' });
    await eventually(() => worker.heard.of('job.completed').length).toBe(1);
    expect(worker.heard.of('job.expired')).toEqual([]);
  });

  it('never runs in a queue that delivers at most once', async () => {
    const producer = await open();
    const worker = await line.worker(() => undefined, { delivery: 'at-most-once' });
    await producer.schedule(line.queue, 'x', tooLate());
    await eventually(() => worker.heard.names()).toEqual(['job.expired']);
  });

  it('makes room for a new life of its id', async () => {
    const producer = await open();
    const worker = await line.worker(() => undefined);
    await producer.schedule(line.queue, 'old', { id: 'a', ...tooLate() });
    await eventually(() => worker.heard.of('job.expired').length).toBe(1);
    expect(await producer.schedule(line.queue, 'new', { id: 'a' })).toMatchObject({ status: 'scheduled' });
    await eventually(() => worker.heard.of('job.completed').length).toBe(1);
  });

  it('is counted once, although the reply was lost', async () => {
    const producer = await open();
    const lossy = await openLossyLine(line.server);
    line.onEnd(lossy.close);
    const worker = await line.worker(() => undefined, { redis: lossy.url });
    lossy.loseReplyTo('expire');
    await producer.schedule(line.queue, 'x', { id: 'a', ...tooLate() });
    await producer.schedule(line.queue, 'x', { id: 'b' });
    await eventually(() => worker.heard.of('job.completed').length).toBe(1);
    await eventually(async () => (await line.picture()).pending).toBeUndefined();
    await eventually(() => worker.running()).toBe(0);
    // Redis is done before the reply is lost, and the other job does not wait for it.
    await eventually(() => lossy.lost()).toBe(1);
    expect([lossy.lost(), await line.count('expired')]).toEqual([1, 1]);
  });
});

it('hundreds of late jobs among others are dropped, each once, and the others run', async () => {
  const producer = await open();
  await producer.scheduleMany(
    line.queue,
    Array.from({ length: 600 }, (_, nth) => ({ id: `n${nth}`, data: nth, ...(nth % 3 === 0 ? {} : tooLate()) })),
  );
  const ran = new Set<unknown>();
  const worker = await line.worker((job) => ran.add(job.data), { concurrency: 40 });
  await eventually(() => worker.heard.of('job.completed').length).toBe(200);
  await eventually(() => worker.heard.of('job.expired').length).toBe(400);
  expect([...ran].every((data) => Number(data) % 3 === 0)).toBe(true);
  expect([await line.count('expired'), await line.count('done')]).toEqual([400, 200]);
});

it('a job that is not late runs', async () => {
  const producer = await open();
  const worker = await line.worker(() => undefined);
  const soon = new Date(Date.now() + 60_000);
  await producer.schedule(line.queue, 'x', { expiresAt: soon, maxLateness: '1m', onLate: 'dead' });
  await eventually(() => worker.heard.of('job.completed').length).toBe(1);
});

it('a retry or a Defer starts its lateness anew, but not its expiry, and who waits is told', async () => {
  const producer = await open();
  const worker = await line.worker(
    async (job) => {
      if (job.attempt > 1) return;
      await passed(soonMs);
      throw job.id === 'deferred' ? new Defer(1) : new Error('once');
    },
    { backoff: fixed(1) },
  );
  const soonMs = Date.now() + IN_TIME_MS;
  await producer.schedule(line.queue, 'x', { id: 'lateness', maxLateness: IN_TIME_MS });
  await producer.schedule(line.queue, 'x', { id: 'expiry', expiresAt: new Date(soonMs), onLate: 'dead' });
  await producer.schedule(line.queue, 'x', { id: 'deferred', expiresAt: new Date(soonMs) });
  const ends = await producer.wait(line.queue, ['expiry', 'deferred']);
  expect(ends.map(({ status }) => status)).toEqual(['dead', 'expired']);
  await eventually(() => worker.heard.of('job.completed')).toMatchObject([{ id: 'lateness' }]);
  await eventually(() => worker.heard.of('job.expired').length).toBe(2);
  const [deadLetter] = await line.deadLetters();
  expect(deadLetter).toMatchObject({ member: 'j:expiry', reason: 'expired', attempts: '1' });
  expect(deadLetter?.history).toContain('once');
  expect(await producer.get(line.queue, 'expiry')).toMatchObject({ state: 'dead', attempts: 1 });
});

it('a job that was replaced in time is judged by its new options', async () => {
  const producer = await open();
  await line.stopMovers();
  await producer.schedule(line.queue, 'old', { id: 'a', ...tooLate() });
  await producer.schedule(line.queue, 'new', { id: 'a', ifExists: 'replace', maxLateness: '1m' });
  line.mover().start();
  const seen: unknown[] = [];
  const worker = await line.worker((job) => seen.push(job.data));
  await eventually(() => worker.heard.of('job.completed').length).toBe(1);
  expect([seen, worker.heard.of('job.expired')]).toEqual([['new'], []]);
});

it('a bare job has no expiry, however late it is', async () => {
  const worker = await line.worker(() => undefined);
  await line.redis.zadd(line.ref.keys.scheduled, Date.now() - 86_400_000, 'order-1');
  await eventually(() => worker.heard.of('job.completed')).toMatchObject([{ id: 'order-1' }]);
});

describe('onAbandoned', () => {
  it.each(['drop', 'dead'] as const)('is told of a job that timed out and then came too late (%s)', async (onLate) => {
    const producer = await open();
    const compensations: Job<Abandoned>[] = [];
    await line.worker((_job, { signal }) => aborted(signal), {
      timeout: 20,
      backoff: fixed(IN_TIME_MS),
      onAbandoned: (job) => compensations.push(job),
    });
    await producer.schedule(line.queue, 'x', { id: 'a', expiresAt: new Date(Date.now() + IN_TIME_MS), onLate });
    await eventually(() => compensations.map(({ data }) => data)).toMatchObject([
      {
        id: 'a',
        data: 'x',
        reason: 'expired',
        token: expect.stringMatching(/^\d{16}$/),
        history: [{ kind: 'timeout' }, { kind: 'refused', message: 'past its expiry' }],
      },
    ]);
  });

  it('is told of a job that expired while its dead worker was waited for', async () => {
    const producer = await open();
    const soonMs = Date.now() + IN_TIME_MS;
    await producer.schedule(line.queue, 'x', { id: 'a', expiresAt: new Date(soonMs) });
    await producer.schedule(line.queue, 'x', { id: 'b', maxLateness: IN_TIME_MS });
    await eventually(async () => (await line.picture()).ready?.length).toBe(2);
    const [batch] = await readNew(line.redis, [line.ref], { consumer: 'ghost', count: 2, blockMs: 0 });
    await line.jobs.start(line.ref, batch?.deliveries ?? [], { consumer: 'ghost', bytesMax: 1000, windowMs: 60_000 });
    await passed(soonMs);
    const compensations: Job<Abandoned>[] = [];
    const worker = await line.worker(() => undefined, { ...QUICK, onAbandoned: (job) => compensations.push(job) });
    await eventually(() => compensations.map(({ data }) => data)).toMatchObject([
      { id: 'a', reason: 'expired', history: [{ kind: 'crash' }, { kind: 'refused' }] },
    ]);
    // The other was started in time, so its lateness is no reason to leave it half done.
    await eventually(() => worker.heard.of('job.completed').map(({ id }) => id)).toContain('b');
  });

  it('is not told of a late job that only failed, or was never started', async () => {
    const producer = await open();
    const compensations: unknown[] = [];
    const worker = await line.worker(
      () => {
        throw new Error('no');
      },
      { backoff: fixed(IN_TIME_MS), onAbandoned: (job) => compensations.push(job) },
    );
    await producer.schedule(line.queue, 'x', { id: 'a', expiresAt: new Date(Date.now() + IN_TIME_MS) });
    await producer.schedule(line.queue, 'x', { id: 'b', ...tooLate() });
    await eventually(() => worker.heard.of('job.expired').length).toBe(2);
    expect([compensations, await line.count('scheduled')]).toEqual([[], 2]);
  });
});

describe('a producer is told at once', () => {
  it.each([
    [
      'an expiry before the due',
      { delay: '1h', expiresAt: '2020-01-01T00:00:00Z' },
      /^expiresAt is .*2020.*; allowed: /,
    ],
    ['an expiry that is no instant', { expiresAt: 'soon' }, /^expiresAt is "soon"; allowed: /],
    ['a lateness that is no duration', { maxLateness: 'long' }, /^maxLateness is "long"; allowed: /],
    ['a lateness below nothing', { maxLateness: -1 }, /^maxLateness is -1; allowed: /],
    ['a policy without anything to be late for', { onLate: 'dead' }, /^onLate is "dead" without expiresAt or max/],
    ['a policy there is not', { maxLateness: 1, onLate: 'retry' }, /^onLate is "retry"; allowed: drop, dead, run$/],
  ])('of %s', async (_what, options, message) => {
    const producer = await open();
    const call = producer.schedule(defineQueue(line.queue), 'x', options as Parameters<typeof producer.schedule>[2]);
    await expect(call).rejects.toMatchObject({ code: 'bad-input', message: expect.stringMatching(message) });
  });

  it('nothing of a lateness of part of a millisecond, which is rounded up', async () => {
    const producer = await open();
    await producer.schedule(line.queue, 'x', { id: 'a', delay: '1h', maxLateness: 1.5 });
    expect(await line.stored('a')).toMatch(/^1\w+;l=2\|/);
  });
});
