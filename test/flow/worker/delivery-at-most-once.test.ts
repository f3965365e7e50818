/** Queues that deliver at most once: over before the handler begins, whatever becomes of it. */
import { expect, it } from 'vitest';
import { decodeTombstone } from '../../../src/job/codec.ts';
import { Defer, Unrecoverable } from '../../../src/job/outcome.ts';
import { elect, sweep } from '../../../src/redis/scripts/lease.ts';
import { consumers, readNew, reclaim } from '../../../src/redis/scripts/ready.ts';
import type { Handler } from '../../../src/worker/run/handlers.ts';
import { openLossyLine } from '../../support/lossy-line.ts';
import { aborted, eventually, gate, QUICK, useLine } from '../../support/worker-line.ts';

const line = useLine();
const ONCE = { delivery: 'at-most-once' } as const;

const outcome = async (id = 'a') => decodeTombstone((await line.stored(id)) ?? '')?.outcome;

it('a job is over in Redis while its handler runs', async () => {
  const door = gate();
  const seen: unknown[] = [];
  const worker = await line.worker(async () => {
    seen.push(await outcome());
    await door.opened;
  }, ONCE);
  await line.plan({});
  await eventually(line.picture).toEqual({ jobs: { 'j:a': 'tombstone done' }, done: expect.anything() });
  await eventually(() => seen).toEqual(['done']);
  expect(worker.heard.of('job.completed')).toEqual([]);
  expect(worker.running()).toBe(1);
  door.open();
  await eventually(() => worker.heard.of('job.completed')).toMatchObject([{ id: 'a' }]);
  expect(worker.running()).toBe(0);
});

it('many jobs are acknowledged together and never exceed the concurrency', async () => {
  let now = 0;
  let most = 0;
  const ran = new Set<string>();
  const worker = await line.worker(
    async (job) => {
      now += 1;
      most = Math.max(most, now);
      ran.add(job.id);
      await new Promise(setImmediate);
      now -= 1;
    },
    { ...ONCE, concurrency: 7 },
  );
  await line.plan(...line.many(200));
  await eventually(() => worker.heard.of('job.completed').length).toBe(200);
  expect([ran.size, await line.count('done')]).toEqual([200, 200]);
  expect(most).toBeLessThanOrEqual(7);
});

it.each([
  ['throws', new Error('no'), 'no'],
  ['asks to be deferred', new Defer('1s', 'later'), 'later'],
  ['says that it cannot succeed', new Unrecoverable('never'), 'never'],
])('a handler that %s has failed, and is not tried again', async (_what, thrown, message) => {
  const worker = await line.worker(() => {
    throw thrown;
  }, ONCE);
  await line.plan({});
  await eventually(() => worker.heard.of('job.failed')).toMatchObject([
    { id: 'a', error: { kind: 'failure', attempt: 1, message } },
  ]);
  await eventually(line.picture).toEqual({ jobs: { 'j:a': 'tombstone done' }, done: expect.anything() });
  expect(worker.heard.names()).toEqual(['job.started', 'job.failed']);
});

it('a handler whose time is up is told to stop, has failed, and keeps its slot until it ends', async () => {
  const door = gate();
  const worker = await line.worker(
    async (_job, { signal }) => {
      await aborted(signal);
      await door.opened;
    },
    { ...ONCE, timeout: 30 },
  );
  await line.plan({});
  await eventually(() => worker.heard.of('job.failed')).toMatchObject([{ error: { kind: 'timeout' } }]);
  expect(worker.running()).toBe(1);
  door.open();
  await eventually(() => worker.running()).toBe(0);
  expect(worker.heard.names()).toEqual(['job.started', 'job.failed']);
});

it('the reply to the acknowledgement is lost: the job still runs, once', async () => {
  const lossy = await openLossyLine(line.server);
  line.onEnd(lossy.close);
  const ran: string[] = [];
  const worker = await line.worker((job) => ran.push(job.id), { ...ONCE, redis: lossy.url });
  lossy.loseReplyTo('complete');
  await line.plan({});
  await eventually(() => worker.heard.of('job.completed').length).toBe(1);
  expect([lossy.lost(), ran, await line.count('done')]).toEqual([1, ['a'], 1]);
});

it.each([undefined, 0])(
  'the reply to the acknowledgement is lost and the end swept meanwhile: the job still runs, once (doneWindow %s)',
  async (doneWindow) => {
    const lossy = await openLossyLine(line.server);
    line.onEnd(lossy.close);
    const ran: string[] = [];
    const own = doneWindow === undefined ? {} : { doneWindow };
    const worker = await line.worker((job) => ran.push(job.id), { ...ONCE, ...own, redis: lossy.url });
    lossy.loseReplyTo('complete');
    lossy.shut(true);
    await line.plan({});
    await eventually(lossy.lost).toBe(1);
    await eventually(outcome).toBe('done');
    const limits = { batch: 100, windowMs: 0, tombstonesMax: 0, floorMs: 0, retentionMs: 0, deadLettersMax: 0 };
    await line.stopMovers();
    await eventually(async () => (await elect(line.redis, line.ref, { processId: 'm', leaseMs: 60_000 })).kind).toBe(
      'elected',
    );
    const { term } = await elect(line.redis, line.ref, { processId: 'm', leaseMs: 60_000 });
    expect(await sweep(line.redis, line.ref, { term, limits, nowMs: Date.now() + 86_400_000 })).toMatchObject({
      tombstones: 0,
    });
    expect(ran).toEqual([]);
    lossy.shut(false);
    await eventually(() => worker.heard.of('job.completed').length).toBe(1);
    expect([ran, worker.heard.of('job.fenced'), await line.count('done')]).toEqual([['a'], [], 1]);
    await eventually(async () => (await line.picture()).ready).toBeUndefined();
    if (doneWindow === 0) expect(await line.picture()).toEqual({});
  },
);

it('a worker that stops does not leave the entry of its last acknowledgement behind', async () => {
  const worker = await line.worker(() => undefined, { ...ONCE, concurrency: 5 });
  await line.plan(...line.many(40));
  await eventually(() => worker.heard.of('job.started').length).toBe(40);
  await worker.stop();
  expect((await line.picture()).pending).toBeUndefined();
  expect(await consumers(line.redis, line.ref.keys)).toEqual([]);
});

it('a timed-out handler that ends late gives its slot back once its entry is gone', async () => {
  const door = gate();
  const worker = await line.worker(() => door.opened, { ...ONCE, timeout: 20 });
  await line.plan({});
  await eventually(() => worker.heard.of('job.failed').length).toBe(1);
  door.open();
  await eventually(() => worker.running()).toBe(0);
  await worker.stop();
  expect((await line.picture()).ready).toBeUndefined();
});

it('the reply to the start is lost: the job still runs, once', async () => {
  const lossy = await openLossyLine(line.server);
  line.onEnd(lossy.close);
  const attempts: number[] = [];
  const worker = await line.worker((job) => attempts.push(job.attempt), { ...ONCE, redis: lossy.url });
  lossy.loseReplyTo('serve');
  await line.plan({});
  await eventually(() => worker.heard.of('job.completed').length).toBe(1);
  expect([lossy.lost(), attempts]).toEqual([1, [1]]);
});

it('a job that is cancelled before its acknowledgement never runs', async () => {
  const ran: string[] = [];
  const worker = line.make((job) => ran.push(job.id), ONCE);
  await line.stopMovers();
  await line.plan({}, { id: 'b' });
  expect(await line.jobs.cancel(line.ref, ['j:a'], { windowMs: 60_000 })).toEqual([{ kind: 'cancelled' }]);
  line.mover().start();
  await worker.start();
  await eventually(() => worker.heard.of('job.completed')).toMatchObject([{ id: 'b' }]);
  expect([ran, await outcome()]).toEqual([['b'], 'cancelled']);
});

it('a job whose cancel comes while its handler runs is over already, and is left alone', async () => {
  const door = gate();
  let told = false;
  const worker = await line.worker(
    async (_job, { signal }) => {
      signal.addEventListener('abort', () => {
        told = true;
      });
      await door.opened;
    },
    { ...ONCE, ...QUICK },
  );
  await line.plan({});
  await eventually(() => worker.heard.of('job.started').length).toBe(1);
  expect(await line.jobs.cancel(line.ref, ['j:a'], { windowMs: 60_000 })).toEqual([{ kind: 'over', over: 'done' }]);
  door.open();
  await eventually(() => worker.heard.of('job.completed').length).toBe(1);
  expect(told).toBe(false);
});

it('a handler whose worker is taken for dead runs on, and nobody else runs its job', async () => {
  const door = gate();
  const reasons: string[] = [];
  let starts = 0;
  const handler: Handler = async (_job, { signal }) => {
    starts += 1;
    void aborted(signal).then((reason) => reasons.push(reason));
    await door.opened;
  };
  const settings = { ...ONCE, ...QUICK, jobLease: 400 };
  const first = await line.worker(handler, { ...settings, beatTtl: 3_600_000 });
  await line.plan({});
  await eventually(() => starts).toBe(1);
  await eventually(async () => (await line.picture()).ready).toBeUndefined();
  const other = await line.worker(handler, settings);
  await line.redis.del(`t:v1:{control}:beat:${first.consumer}`);
  // The other one finds nothing to take over: all that the first still has is the handler.
  await eventually(() => other.heard.of('consumer.retired')).toMatchObject([{ consumer: first.consumer }]);
  door.open();
  await eventually(() => first.heard.of('job.completed')).toMatchObject([{ id: 'a' }]);
  expect([starts, reasons, other.heard.of('entries.reclaimed')]).toEqual([1, [], []]);
});

it('a worker that was believed dead before its acknowledgement does not run what another one runs', async () => {
  const ran: string[] = [];
  // It started the job, froze before its acknowledgement, and was taken over from.
  await line.plan({});
  await eventually(async () => (await line.picture()).ready?.length).toBe(1);
  const [batch] = await readNew(line.redis, [line.ref], { consumer: 'stale', count: 1, blockMs: 0 });
  const deliveries = batch?.deliveries ?? [];
  const settings = { bytesMax: 1000, windowMs: 60_000 };
  const [started] = await line.jobs.start(line.ref, deliveries, { consumer: 'stale', ...settings });
  await reclaim(line.redis, line.ref, { owner: 'stale', consumer: 'next', idleMs: 0, limit: 1 });
  const worker = await line.worker((job) => ran.push(job.id), { ...ONCE, ...QUICK });
  await eventually(() => worker.heard.of('job.completed').length).toBe(1);
  if (started?.kind !== 'run') throw new Error(`stale was answered ${started?.kind}`);
  const claim = { entry: deliveries[0]?.entry ?? ('' as never), member: 'j:a', token: started.token };
  expect(await line.jobs.complete(line.ref, [claim], { windowMs: 60_000 })).toEqual(['gone']);
  expect(ran).toEqual(['a']);
});

it('a stopping worker tells the handler, waits for it, and hands nothing back', async () => {
  const worker = await line.worker(async (_job, { signal }) => {
    throw new Error(await aborted(signal));
  }, ONCE);
  await line.plan({});
  await eventually(() => worker.heard.of('job.started').length).toBe(1);
  await worker.stop({ shutdown: 50 });
  expect(worker.heard.of('job.failed')).toMatchObject([{ error: { message: /^shutdown: / } }]);
  expect(await line.picture()).toEqual({ jobs: { 'j:a': 'tombstone done' }, done: expect.anything() });
});

it('a handler that ignores the end of its worker does not hold it', async () => {
  const worker = await line.worker(() => new Promise(() => undefined), ONCE);
  await line.plan({});
  await eventually(() => worker.heard.of('job.started').length).toBe(1);
  await worker.stop({ shutdown: 50 });
  expect(await outcome()).toBe('done');
});

it('commit is refused, because there is nothing left that it could travel with', async () => {
  const worker = await line.worker((_job, context) => context.commit('INCR', `${context.tag}:sum`), ONCE);
  await line.plan({});
  await eventually(() => worker.heard.of('job.failed')).toMatchObject([
    {
      error: {
        message:
          'commit cannot be used in a queue that delivers at most once: its jobs are over before the handler runs',
      },
    },
  ]);
  expect(await line.redis.get(`{${line.queue}:0}:sum`)).toBeNull();
});

it('onAbandoned is refused: a job that is over before its handler cannot die half-way', () => {
  expect(() => line.make(() => undefined, { ...ONCE, onAbandoned: () => undefined })).toThrow(
    /^onAbandoned is set in a queue that delivers at most once; allowed: /,
  );
});
