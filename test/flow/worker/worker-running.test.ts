/** What bounds a job while it runs: its time, its slot, a cancel, a pause. */
import { expect, it } from 'vitest';
import { fixed } from '../../../src/job/backoff.ts';
import { decodeTombstone, memberOf } from '../../../src/job/codec.ts';
import { Unrecoverable } from '../../../src/job/outcome.ts';
import type { HandlerContext, QueueHandlers } from '../../../src/worker/run/handlers.ts';
import { aborted, eventually, gate, HOUR_MS, useLine } from '../../support/worker-line.ts';

const line = useLine();

const pendingCount = async () => Number(((await line.redis.xpending(line.ref.keys.ready, 'workers')) as [number])[0]);
const cancel = async (id: string) =>
  ((await line.jobs.cancel(line.ref, [memberOf(id)], { windowMs: 60_000 })) as { kind: string }[])[0]?.kind;

it('a job whose time is up is told so by its signal and counts as failed by time-out', async () => {
  const reasons: string[] = [];
  const worker = await line.worker(
    async (_job, { signal }) => {
      reasons.push(await aborted(signal));
      throw new Error('stopped because of the signal');
    },
    { timeout: 40, attempts: 1 },
  );
  await line.plan({});
  await eventually(() => worker.heard.of('job.dead')).toMatchObject([
    { reason: 'attempts-exhausted', error: { kind: 'timeout', message: 'timed out after 40 ms' } },
  ]);
  expect(reasons).toEqual(['job aborted: timeout']);
  await eventually(() => worker.running()).toBe(0);
});

it('a job is started at once after Redis has forgotten all scripts, not when the read behind its script ends', async () => {
  const reads = async (name: string) =>
    Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(await line.redis.info('commandstats'))?.[1] ?? 0);
  const worker = await line.worker(() => undefined, {});
  await line.plan({});
  await eventually(() => worker.heard.of('job.completed').length).toBe(1);
  // A read waits now, as before each job that comes alone.
  await eventually(() => reads('xreadgroup')).not.toBe(0);
  const before = await reads('client\\|unblock');
  await line.redis.script('FLUSH');
  await line.plan({});
  await eventually(() => worker.heard.of('job.completed').length).toBe(2);
  expect(await reads('client\\|unblock')).toBeGreaterThan(before);
});

it('a signal that is looked at after the time was up is aborted already', async () => {
  const late = gate();
  const seen: boolean[] = [];
  const worker = await line.worker(
    async (_job, context) => {
      await late.opened;
      seen.push(context.signal.aborted);
    },
    { timeout: 20, attempts: 1, abortGrace: 0 },
  );
  await line.plan({});
  await eventually(() => worker.heard.of('job.dead').length).toBe(1);
  late.open();
  await eventually(() => seen).toEqual([true]);
});

it('a handler that ignores its signal keeps its slot until it ends, and a worker full of them is not live', async () => {
  const door = gate();
  const started: string[] = [];
  const worker = await line.worker(
    async (job) => {
      started.push(job.id);
      if (job.id !== 'c') await door.opened;
    },
    { timeout: 40, attempts: 1, concurrency: 2, abortGrace: 20 },
  );
  await line.plan({ id: 'a' }, { id: 'b' });
  await eventually(() => worker.heard.of('job.dead').length).toBe(2);
  expect(worker.isLive()).toBe(false);
  expect(worker.running()).toBe(2);
  await line.plan({ id: 'c' });
  await eventually(async () => (await line.picture()).ready).toEqual(['j:c']);
  expect(started.sort()).toEqual(['a', 'b']);
  door.open();
  await eventually(() => worker.heard.of('job.completed')).toMatchObject([{ id: 'c' }]);
  expect(worker.isLive()).toBe(true);
  expect(worker.heard.of('job.completed')).toHaveLength(1);
});

it('a job that timed out and whose handler goes on is started again after its grace and its backoff', async () => {
  const door = gate();
  const starts: number[] = [];
  const worker = await line.worker(
    async (job) => {
      starts.push(job.attempt);
      if (job.attempt === 1) await door.opened;
    },
    { timeout: 30, backoff: fixed(50), concurrency: 2, abortGrace: 0 },
  );
  await line.plan({});
  await eventually(() => worker.heard.of('job.completed').length).toBe(1);
  expect(starts).toEqual([1, 2]);
  door.open();
  await eventually(() => worker.running()).toBe(0);
  expect(worker.heard.names().filter((name) => name === 'job.completed' || name === 'job.fenced')).toEqual([
    'job.completed',
  ]);
});

const ends: Readonly<Record<string, (context: HandlerContext) => unknown>> = {
  throws: async ({ signal }) => {
    throw new Error(await aborted(signal));
  },
  returns: async ({ signal }) => aborted(signal),
  'gives up for good': async ({ signal }) => {
    throw new Unrecoverable(await aborted(signal));
  },
};
it.each(Object.keys(ends))('a running job that is cancelled and whose handler %s ends cancelled', async (how) => {
  const starts: string[] = [];
  const worker = await line.worker(
    (job, context) => {
      starts.push(job.id);
      return ends[how]?.(context);
    },
    { jobLease: 550, backoff: fixed(1) },
  );
  await line.plan({});
  await eventually(() => starts).toEqual(['a']);
  expect(await cancel('a')).toBe('requested');
  await eventually(() => worker.heard.of('job.cancelled')).toMatchObject([{ id: 'a', name: 'default' }]);
  expect(decodeTombstone((await line.stored('a')) ?? '')).toMatchObject({ outcome: 'cancelled', attempts: 1 });
  expect([starts, await line.count('cancelled'), await line.count('retried')]).toEqual([['a'], 1, 0]);
});

it.each(['block', 'poll'] as const)(
  'a running job hears of its cancellation at once, long before its next extension, with read: %s',
  async (read) => {
    const began: string[] = [];
    const told: string[] = [];
    const tell: QueueHandlers<unknown> = async ({ id }, { signal }) => {
      began.push(id);
      told.push(`${id} ${await aborted(signal)}`);
    };
    const worker = await line.worker(tell, { read, jobLease: HOUR_MS });
    // Of the first one the worker may not listen yet; it does when that one was told.
    for (const id of ['a', 'b']) {
      await line.plan({ id });
      await eventually(() => began).toContain(id);
      expect(await cancel(id)).toBe('requested');
      await eventually(() => worker.heard.of('job.cancelled').length).toBe(id === 'a' ? 1 : 2);
    }
    expect(told).toEqual(['a job aborted: cancelled', 'b job aborted: cancelled']);
  },
);

it('an order to stop that names another start, another worker or another job stops nobody', async () => {
  const told: string[] = [];
  const began: string[] = [];
  const worker = await line.worker(
    async ({ id }, { signal }) => {
      began.push(id);
      if (id !== 'c') told.push(`${id} ${await aborted(signal)}`);
    },
    { jobLease: HOUR_MS },
  );
  await line.plan({ id: 'a' });
  await eventually(() => began).toEqual(['a']);
  await cancel('a');
  await eventually(() => told).toEqual(['a job aborted: cancelled']);
  await line.plan({ id: 'b' });
  await eventually(() => began).toEqual(['a', 'b']);
  const [token, , , , , entry] = ((await line.redis.hget(line.ref.keys.runs, memberOf('b'))) ?? '').split(' ');
  const orders = [
    `w-other ${entry} ${token}`,
    `${worker.consumer} ${entry} 1`,
    `${worker.consumer} 1-1 ${token}`,
    'x',
    '',
  ];
  for (const order of orders) await line.redis.spublish(line.ref.keys.stop, order);
  await line.plan({ id: 'c' });
  await eventually(() => worker.heard.of('job.completed').map(({ id }) => id)).toEqual(['c']);
  expect(told).toHaveLength(1);
  await line.redis.spublish(line.ref.keys.stop, `${worker.consumer} ${entry} ${token}`);
  await eventually(() => told).toHaveLength(2);
});

it('a job that is cancelled between its delivery and its start never runs', async () => {
  await line.plan({});
  await eventually(async () => (await line.picture()).ready).toEqual(['j:a']);
  expect(await cancel('a')).toBe('cancelled');
  const worker = await line.worker(() => undefined);
  await line.plan({ id: 'b' });
  await eventually(() => worker.heard.of('job.completed')).toMatchObject([{ id: 'b' }]);
  expect(await line.picture()).toMatchObject({ jobs: { 'j:a': 'tombstone cancelled' } });
});

it('never more handlers run at a time than the concurrency allows', async () => {
  let running = 0;
  const counts: number[] = [];
  const worker = await line.worker(
    async () => {
      running += 1;
      counts.push(running);
      await new Promise((resolve) => setImmediate(resolve));
      running -= 1;
    },
    { concurrency: 3 },
  );
  await line.plan(...line.many(90));
  await eventually(() => worker.heard.of('job.completed').length).toBe(90);
  expect(Math.max(...counts)).toBe(3);
});

it('no more is delivered to a worker than it has free slots', async () => {
  const doors = new Map<string, () => void>();
  const worker = await line.worker((job) => new Promise<void>((resolve) => doors.set(job.id, resolve)), {
    concurrency: 4,
  });
  await line.plan(...line.many(10));
  await eventually(() => doors.size).toBe(4);
  expect(await pendingCount()).toBe(4);
  doors.get('n0')?.();
  await eventually(() => doors.size).toBe(5);
  expect(await pendingCount()).toBe(4);
  for (let at = 1; at < 10; at += 1) {
    await eventually(() => doors.has(`n${at}`)).toBe(true);
    doors.get(`n${at}`)?.();
  }
  await eventually(() => worker.heard.of('job.completed').length).toBe(10);
});

it('entries of a paused queue go back to scheduled without using an attempt', async () => {
  await line.plan(...line.many(5));
  await eventually(async () => (await line.picture()).ready?.length).toBe(5);
  await line.redis.hset(line.ref.keys.meta, 'paused', '1');
  const worker = await line.worker(() => undefined);
  await eventually(async () => Object.keys((await line.picture()).scheduled ?? {}).length).toBe(5);
  expect(worker.heard.of('job.started')).toEqual([]);
  expect(Object.keys(await line.picture()).sort()).toEqual(['jobs', 'scheduled']);
  await line.redis.hdel(line.ref.keys.meta, 'paused');
  await eventually(() => worker.heard.of('job.completed').length).toBe(5);
  expect(worker.heard.of('job.started').map(({ attempt }) => attempt)).toEqual([1, 1, 1, 1, 1]);
});

it('twenty jobs of 200 KiB start over several replies, each once', async () => {
  const data = 'x'.repeat(200 * 1024);
  for (const job of line.many(20)) await line.plan({ ...job, data });
  await eventually(async () => (await line.picture()).ready?.length).toBe(20);
  const sizes: number[] = [];
  const worker = await line.worker((job) => sizes.push(String(job.data).length));
  await eventually(() => worker.heard.of('job.completed').length).toBe(20);
  expect(sizes).toEqual(Array(20).fill(data.length));
  expect(worker.heard.of('job.started').every(({ attempt }) => attempt === 1)).toBe(true);
});

it('more handlers than one call completes end at once, and all of them are completed', async () => {
  const door = gate();
  let begun = 0;
  const worker = await line.worker(
    async () => {
      begun += 1;
      await door.opened;
    },
    { concurrency: 350 },
  );
  await line.plan(...line.many(350));
  await eventually(() => begun).toBe(350);
  door.open();
  await eventually(() => worker.heard.of('job.completed').length).toBe(350);
  expect(await line.count('done')).toBe(350);
});
