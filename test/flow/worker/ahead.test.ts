/**
 * Jobs that are handed to a worker before they are due: it calls no handler early, and whoever takes a job back has it. The test
 * is the leader, and hands out long ahead, so that it does not depend on how fast the machine is.
 */

import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { beforeEach, expect, it } from 'vitest';
import { type ClientOptions, createClient } from '../../../src/client/client.ts';
import { workersSeen } from '../../../src/client/queues/processes.ts';
import { memberOf } from '../../../src/job/codec.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { heldText } from '../../../src/job/state.ts';
import { ensureGroup } from '../../../src/redis/scripts/ready.ts';
import { publishedCopy } from '../../chaos/faults/copies.mjs';
import { eventually, gate, NAMESPACE, useLine } from '../../support/worker-line.ts';

const line = useLine({ movers: false });

const AHEAD_MS = 9000;
/** Nobody waits for it: a job that is taken back, or that is to begin at its due time. */
const LONG_MS = 8000;
const SHORT_MS = 700;
/** Epoch ms of Redis. */
async function serverMs(): Promise<number> {
  const [seconds = 0, micros = 0] = await line.redis.time();
  return Number(seconds) * 1000 + Number(micros) / 1000;
}
const pass = async (aheadMs: number | undefined = AHEAD_MS) =>
  line.jobs.promote(line.ref, { term: 'm', leaseMs: 60_000, limit: 500, cap: 1000, aheadMs });

/** The jobs that a worker holds: Redis has started them. */
const held = async () => (await line.redis.hvals(line.ref.keys.runs)).filter((run) => run.split(' ')[6] !== '-').length;
const client = (own: Partial<ClientOptions> = {}) => {
  const one = createClient({ redis: { path: line.server.socketPath }, namespace: NAMESPACE, ...own });
  line.onEnd(() => one.close());
  return one;
};
const queue = () => defineQueue(line.queue);

beforeEach(() => line.redis.set(line.ref.keys.leader, 'm'));

/** Jobs that are handed to whoever reads next. @returns when they are due */
async function plannedAhead(ids: readonly string[], inMs: number, aheadMs = AHEAD_MS): Promise<number> {
  const dueMs = Math.ceil(await serverMs()) + inMs;
  if (ids.length > 0) await line.plan(...ids.map((id) => ({ id, dueMs })));
  if (ids.length > 0) expect(await pass(aheadMs)).toMatchObject({ offered: ids.length });
  return dueMs;
}

/** A worker that has a job which is due in some hundred ms, and the calls of its handler. */
async function holding(ids: readonly string[], inMs: number, own = {}, aheadMs = AHEAD_MS) {
  const begun: { readonly id: string; readonly atMs: number }[] = [];
  const worker = await line.worker(async ({ id }) => void begun.push({ id, atMs: await serverMs() }), own);
  const dueMs = await plannedAhead(ids, inMs, aheadMs);
  return { worker, begun, dueMs, ids: () => begun.map(({ id }) => id) };
}

it('a job that was handed out ahead begins when it is due, and not before', async () => {
  const { begun, dueMs, ids } = await holding(['a', 'b'], SHORT_MS);
  await eventually(held).toBe(2);
  expect((await line.picture()).scheduled).toBeUndefined();
  await eventually(ids).toEqual(['a', 'b']);
  for (const { atMs } of begun) expect(atMs).toBeGreaterThanOrEqual(dueMs);
  await eventually(async () => Object.keys((await line.picture()).done ?? {}).length).toBe(2);
});

it('what is held is handed out once, and one that was let go waits for its due time', async () => {
  const { worker, ids } = await holding(['a'], LONG_MS);
  await eventually(held).toBe(1);
  expect(await pass()).toMatchObject({ count: 0 });
  await worker.stop();
  expect((await line.picture()).scheduled).toMatchObject({ [memberOf('a')]: expect.any(Number) });
  expect(await held()).toBe(0);
  expect(await pass()).toMatchObject({ count: 0 });
  expect(ids()).toEqual([]);
});

it('a job that is held is said to be held, and counts as scheduled', async () => {
  const { dueMs } = await holding(['a'], LONG_MS);
  await eventually(held).toBe(1);
  const said = `held until ${new Date(dueMs).toISOString()}`;
  const report = await client().get(queue(), 'a');
  expect(report && heldText(report, await serverMs())).toBe(said);
  expect(report?.timeline.map(({ kind }) => kind)).toEqual(['asked-due', 'due']);
  const { jobs } = await client().list(queue(), { state: 'running' });
  expect(jobs.map((job) => heldText(job, dueMs - 1))).toEqual([said]);
  expect(jobs.map((job) => heldText(job, dueMs))).toEqual([undefined]);
  expect(await client().queues.get(line.queue)).toMatchObject({ scheduled: 1, ready: 0, running: 0 });
  const workers = await workersSeen({ redis: line.redis, namespace: NAMESPACE }, { limit: 10 });
  expect(workers.workers.flatMap(({ jobs }) => jobs)).toMatchObject([{ id: 'a', dueMs }]);
});

it('a cancel of a job that is held is the cancel of a job that waits', async () => {
  const { ids } = await holding(['a'], LONG_MS);
  await eventually(held).toBe(1);
  expect(await client().cancel(queue(), 'a')).toMatchObject({ status: 'cancelled' });
  expect(await line.picture()).toMatchObject({ jobs: { [memberOf('a')]: 'tombstone cancelled' } });
  expect(ids()).toEqual([]);
});

it('so it is by a filter', async () => {
  const { ids } = await holding(['a', 'b', 'c', 'd'], LONG_MS);
  await eventually(held).toBe(4);
  expect(await client().cancel(queue(), { name: 'default' })).toMatchObject({ matched: 4, changed: 4, requested: 0 });
  expect(ids()).toEqual([]);
});

it('a change of all scheduled jobs means those that are held, and a dry run says so', async () => {
  const { ids, dueMs } = await holding(['a', 'b'], LONG_MS);
  await eventually(held).toBe(2);
  const filter = { state: 'scheduled' } as const;
  const laterMs = dueMs + 3_600_000;
  const due = { at: new Date(laterMs) };
  const moves = ['a', 'b'].map((id) => expect.objectContaining({ id, wasMs: dueMs, dueMs: laterMs }));
  const dry = await client().reschedule(queue(), filter, due, { dryRun: true });
  expect(dry).toMatchObject({ matched: 2, moves: expect.arrayContaining(moves) });
  expect(await held()).toBe(2);
  expect(await client().reschedule(queue(), filter, due)).toMatchObject({ matched: 2, changed: 2, skipped: {} });
  expect((await line.picture()).scheduled).toEqual({ [memberOf('a')]: laterMs, [memberOf('b')]: laterMs });
  expect(ids()).toEqual([]);
});

it('so does one by a tag', async () => {
  const { ids, dueMs } = await holding([], LONG_MS);
  await client().schedule(queue(), 'older', { id: 'a', at: new Date(dueMs), tags: ['x'] });
  await client().schedule(queue(), 'older', { id: 'b', at: new Date(dueMs), tags: ['y'] });
  await pass();
  await eventually(held).toBe(2);
  const due = { from: new Date(dueMs), to: new Date(dueMs + 1) };
  const changed = { matched: 1, changed: 1 };
  expect(await client().edit(queue(), { tag: 'x', due }, { data: 'newer' })).toMatchObject(changed);
  expect(await client().runNow(queue(), { tag: 'y', due })).toMatchObject(changed);
  expect((await line.picture()).scheduled).toMatchObject({ [memberOf('a')]: dueMs });
  await eventually(async () => (await pass()) && ids()).toEqual(['b']);
});

it('a job that has begun after it was held is none of them', async () => {
  const door = gate();
  const worker = await line.worker(() => door.opened);
  await plannedAhead(['a'], SHORT_MS);
  await eventually(() => worker.heard.of('job.started').length).toBe(1);
  const none = { matched: 0, changed: 0, requested: 0 };
  expect(await client().cancel(queue(), { state: 'scheduled' })).toMatchObject(none);
  door.open();
  await eventually(() => worker.heard.of('job.completed').length).toBe(1);
});

it('a cancel by a client that does not know of held jobs is told when its worker lets the job go', async () => {
  const { worker, ids } = await holding(['a'], LONG_MS);
  await eventually(held).toBe(1);
  const { runs } = line.ref.keys;
  const run = (await line.redis.hget(runs, memberOf('a'))) ?? '';
  // As version 0.2.0 asks a job to stop that runs: the last word of its run.
  expect(run).toMatch(/^(\S+ ){8}0$/);
  await line.redis.hset(runs, memberOf('a'), run.replace(/0$/, '1'));
  await worker.stop();
  expect(worker.heard.of('job.cancelled')).toEqual([{ queue: line.queue, id: 'a', name: 'default' }]);
  expect(await line.picture()).toMatchObject({ jobs: { [memberOf('a')]: 'tombstone cancelled' } });
  expect(ids()).toEqual([]);
});

it('a job with a closed tag does not begin, also where it was held', async () => {
  const { ids, dueMs } = await holding([], LONG_MS);
  await client().schedule(queue(), 1, { id: 'a', at: new Date(dueMs), tags: ['x'] });
  await pass();
  await eventually(held).toBe(1);
  expect(await client().tags.close(line.queue, 'x', { for: '1h' })).toMatchObject({ cancelled: 1, running: [] });
  expect(ids()).toEqual([]);
});

it('a debounced job that is held moves to its newer due time', async () => {
  const { ids } = await holding([], LONG_MS);
  const debounced = (wait: `${number}h` | '8s', data: string) =>
    client().schedule(queue(), data, { id: 'a', debounce: { wait, max: '9h' } });
  await debounced('8s', 'older');
  await pass();
  await eventually(held).toBe(1);
  expect(await debounced('1h', 'newer')).toMatchObject({ status: 'merged' });
  expect((await line.picture()).scheduled).toMatchObject({ [memberOf('a')]: expect.any(Number) });
  expect([ids(), await held()]).toEqual([[], 0]);
});

it('an edit of a job that is held counts: its handler gets the newer data, once', async () => {
  const { begun, ids, dueMs } = await holding(['a'], SHORT_MS);
  await eventually(held).toBe(1);
  expect(await client().edit(queue(), 'a', { data: 'newer' })).toMatchObject({ status: 'edited' });
  await eventually(async () => (await pass(undefined)) && ids()).toEqual(['a']);
  expect(begun[0]?.atMs).toBeGreaterThanOrEqual(dueMs);
});

it('calls for a job whose worker died and lets nothing go end when their time is up, and change nothing', async () => {
  await ensureGroup(line.redis, line.ref.keys);
  const dueMs = await plannedAhead(['a'], LONG_MS);
  const dead = { consumer: 'dead', bytesMax: 1_000_000, windowMs: 60_000 };
  const { taken } = await line.jobs.serve(line.ref, { ended: [], given: [], take: 1 }, dead);
  expect(taken).toMatchObject([{ kind: 'run', dueMs }]);
  const hasty = () => client({ retryBudget: '1s' });
  const refused = { code: 'unavailable', message: expect.stringContaining('a worker holds job a until it is due') };
  const again = { id: 'a', delay: '1h', ifExists: 'replace' } as const;
  await Promise.all([
    expect(hasty().schedule(queue(), 'newer', again)).rejects.toMatchObject(refused),
    expect(hasty().reschedule(queue(), 'a', { delay: '1h' })).rejects.toMatchObject(refused),
    expect(hasty().cancel(queue(), { name: 'default' })).resolves.toMatchObject({ skipped: { refused: 1 } }),
  ]);
  expect(await held()).toBe(1);
});

it('another due time of a job that is held counts', async () => {
  const { ids, dueMs } = await holding(['a'], LONG_MS);
  await eventually(held).toBe(1);
  const rescheduled = { status: 'rescheduled', dueMs: dueMs + 3_600_000, wasMs: dueMs };
  expect(await client().reschedule(queue(), 'a', { at: new Date(dueMs + 3_600_000) })).toMatchObject(rescheduled);
  expect((await line.picture()).scheduled).toEqual({ [memberOf('a')]: dueMs + 3_600_000 });
  expect(ids()).toEqual([]);
});

it('once a pause has resolved nothing that was held begins', async () => {
  const { dueMs, ids } = await holding(['a'], SHORT_MS, {}, 900);
  await eventually(held).toBe(1);
  await client().queues.pause(line.queue);
  const before = ids();
  await eventually(serverMs).toBeGreaterThan(dueMs + 50);
  expect(ids()).toEqual(before);
  if (before.length === 0) expect((await line.picture()).scheduled).toEqual({ [memberOf('a')]: dueMs });
});

it('a job that is due gets the slot of one that is held', async () => {
  const { ids } = await holding(['late'], SHORT_MS, { concurrency: 1 });
  await eventually(held).toBe(1);
  await line.plan({ id: 'now' });
  await pass(undefined);
  await eventually(ids).toEqual(['now']);
  expect((await line.picture()).scheduled).toMatchObject({ [memberOf('late')]: expect.any(Number) });
  await eventually(async () => (await pass(undefined)) && ids()).toEqual(['now', 'late']);
});

it('the attempt of a job that was let go is not counted', async () => {
  const attempts: number[] = [];
  const dueMs = Math.ceil(await serverMs()) + 700;
  await line.worker(({ attempt }) => void attempts.push(attempt), { concurrency: 1 });
  await line.plan({ id: 'a', dueMs });
  await pass();
  await eventually(held).toBe(1);
  await client().reschedule(queue(), 'a', { at: new Date(dueMs + 1) });
  await eventually(async () => (await pass(undefined)) && attempts).toEqual([1]);
});

it('a stop ends in its time, although Redis stands still and does not take a job back', async () => {
  const { worker, ids } = await holding(['a'], LONG_MS);
  await eventually(held).toBe(1);
  line.onEnd(() => line.server.kill('SIGCONT'));
  await line.server.kill('SIGSTOP');
  const sinceMs = performance.now();
  await worker.stop({ shutdown: 50 });
  // It hangs up after two seconds. A call that lets a job go is repeated for ten.
  expect(performance.now() - sinceMs).toBeLessThan(9000);
  expect(ids()).toEqual([]);
});

it('a worker of version 0.2.0 drops what it is offered, and begins no job before it is due', async () => {
  const copy = publishedCopy(process.cwd()) ?? '';
  const old: typeof import('../../../src/index.ts') = await import(join(copy, 'dist/index.js'));
  const begun: number[] = [];
  const worker = old.createWorker(old.defineQueue(line.queue), async () => void begun.push(await serverMs()), {
    redis: { path: line.server.socketPath },
    namespace: NAMESPACE,
  });
  line.onEnd(() => worker.stop());
  await worker.start();
  const dueMs = Math.ceil(await serverMs()) + 700;
  await line.plan({ id: 'a', dueMs });
  expect(await pass()).toMatchObject({ offered: 1 });
  await eventually(async () => (await line.picture()).ready).toBeUndefined();
  expect((await line.picture()).scheduled).toEqual({ [memberOf('a')]: dueMs });
  await eventually(async () => (await pass(undefined)) && begun.length).toBe(1);
  expect(begun[0]).toBeGreaterThanOrEqual(dueMs);
});
