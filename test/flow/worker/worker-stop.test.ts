/** How a worker starts and ends, in every order, and that nothing of it stays. */
import { performance } from 'node:perf_hooks';
import { expect, it } from 'vitest';
import { decodeRun } from '../../../src/job/codec.ts';
import { createWorker } from '../../../src/worker/worker.ts';
import { aborted, eventually, gate, NAMESPACE, useLine } from '../../support/worker-line.ts';

const line = useLine();

/** Connections of workers that the server knows. */
async function connections(): Promise<number> {
  const list = String(await line.redis.client('LIST'));
  return list.split('\n').filter((one) => /name=duestream:(worker|reader):/.test(one)).length;
}

/** Sockets and timers that keep this process alive. */
const resources = () => {
  const counts = process.getActiveResourcesInfo().filter((kind) => /Timeout|PipeWrap|TCP/.test(kind));
  return counts.sort().join(' ');
};

/**
 * Turns of the event loop until there is nothing that was not there before. Who polls with timers would count those, and
 * a timer of the tests may end meanwhile.
 */
async function leftAlone(before: string): Promise<void> {
  const sinceMs = performance.now();
  const isMore = (kind: string) => countOf(resources(), kind) > countOf(before, kind);
  const more = () => ['Timeout', 'PipeWrap', 'TCPSocketWrap', 'TCPWrap', 'TCPServerWrap'].filter(isMore);
  while (more().length > 0 && performance.now() - sinceMs < 60_000) {
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
  expect(more()).toEqual([]);
}

const countOf = (kinds: string, kind: string) => kinds.split(' ').filter((one) => one === kind).length;

async function idleWorker() {
  const worker = await line.worker(() => undefined);
  await eventually(async () => String(await line.redis.client('LIST')).includes('cmd=xreadgroup')).toBe(true);
  return worker;
}

it('an idle worker stops at once, although its read would wait for two seconds', async () => {
  let fastestMs = Number.POSITIVE_INFINITY;
  // One of them may be held up by the machine; if all were, they waited for their reads.
  for (let tries = 0; tries < 10 && fastestMs > 1000; tries += 1) {
    const worker = await idleWorker();
    const sinceMs = performance.now();
    await worker.stop();
    fastestMs = Math.min(fastestMs, performance.now() - sinceMs);
    expect(worker.isReady()).toBe(false);
  }
  expect(fastestMs).toBeLessThan(1000);
});

it('after a stop no connection, no heartbeat and no consumer is left', async () => {
  const worker = await idleWorker();
  expect(await connections()).toBe(2);
  expect(worker.isReady()).toBe(true);
  await worker.stop();
  await eventually(connections).toBe(0);
  expect(await line.redis.keys(`*${worker.consumer}*`)).toEqual([]);
  expect(await line.redis.smembers(`${NAMESPACE}:v1:{control}:alive`)).not.toContain(worker.consumer);
  expect(await line.redis.xinfo('CONSUMERS', line.ref.keys.ready, 'workers')).toEqual([]);
});

it('after a stop no timer or socket keeps the process alive', async () => {
  await line.stopMovers();
  const before = resources();
  const worker = await idleWorker();
  expect(resources()).not.toBe(before);
  await worker.stop();
  await leftAlone(before);
});

it('a job that runs at the stop is finished', async () => {
  const door = gate();
  const worker = await line.worker(() => door.opened);
  await line.plan({});
  await eventually(() => worker.heard.of('job.started').length).toBe(1);
  const stopped = worker.stop({ shutdown: 5000 });
  expect(worker.isReady()).toBe(false);
  door.open();
  await stopped;
  expect(await line.picture()).toMatchObject({ jobs: { 'j:a': 'tombstone done' } });
});

it('a job that fails during the stop is retried as usual', async () => {
  const door = gate();
  const worker = await line.worker(() => door.opened.then(() => Promise.reject(new Error('late'))));
  await line.plan({});
  await eventually(() => worker.heard.of('job.started').length).toBe(1);
  const stopped = worker.stop({ shutdown: 5000 });
  door.open();
  await stopped;
  expect(worker.heard.of('job.retried')).toMatchObject([{ error: { message: 'late' } }]);
});

it.each([
  ['obeys its signal', true],
  ['ignores its signal', false],
])('a job that is not finished in time and %s is handed back without a failure', async (_how, obeys) => {
  await line.stopMovers();
  const mover = line.mover();
  const reasons: string[] = [];
  const never = new Promise(() => undefined);
  const worker = await line.worker(async (_job, { signal }) => {
    if (!obeys) return never;
    reasons.push(await aborted(signal));
    throw new Error('stopped');
  });
  await line.plan({});
  mover.start();
  await eventually(() => worker.heard.of('job.started').length).toBe(1);
  await mover.stop();
  await worker.stop({ shutdown: 50 });
  expect(await line.picture()).toMatchObject({ jobs: { 'j:a': 'record' }, runs: { 'j:a': 'waiting' } });
  expect((await line.picture()).pending).toBeUndefined();
  const run = decodeRun((await line.redis.hget(line.ref.keys.runs, 'j:a')) ?? '');
  expect(run).toMatchObject({ attempts: 1, failures: 0, crashes: 0, history: [] });
  if (obeys) expect(reasons).toEqual(['job aborted: shutdown']);
  const [, due] = await line.redis.zrange(line.ref.keys.scheduled, '0', '-1', 'WITHSCORES');
  expect(Number(due)).toBeLessThanOrEqual(Date.now());
});

it('a handler that never ends keeps neither a timer nor a connection after the stop', async () => {
  await line.stopMovers();
  const before = resources();
  const mover = line.mover();
  const worker = await line.worker(() => new Promise(() => undefined), { timeout: '10m' });
  await line.plan({});
  mover.start();
  await eventually(() => worker.heard.of('job.started').length).toBe(1);
  await mover.stop();
  await worker.stop({ shutdown: 20 });
  await eventually(connections).toBe(0);
  await leftAlone(before);
});

it('a handler that ends long after the stop changes nothing and breaks nothing', async () => {
  const door = gate();
  const worker = await line.worker(() => door.opened);
  await line.plan({});
  await eventually(() => worker.heard.of('job.started').length).toBe(1);
  await worker.stop({ shutdown: 20 });
  door.open();
  await eventually(() => worker.running()).toBe(0);
  expect(worker.heard.of('job.completed')).toEqual([]);
});

it('entries that were given to a stopping worker, and that it never saw, go back to scheduled', async () => {
  const worker = await idleWorker();
  await line.stopMovers();
  const mover = line.mover();
  const door = gate();
  await worker.stop();
  const other = await line.worker(() => door.opened, { concurrency: 1 });
  await line.plan({ id: 'a' }, { id: 'b' });
  mover.start();
  await eventually(() => other.heard.of('job.started').length).toBe(1);
  await mover.stop();
  await line.redis.xreadgroup('GROUP', 'workers', other.consumer, 'COUNT', 1, 'STREAMS', line.ref.keys.ready, '>');
  const stopped = other.stop({ shutdown: 5000 });
  await eventually(async () => (await line.picture()).scheduled).toHaveProperty('j:b');
  door.open();
  await stopped;
  const { scheduled, pending, runs } = await line.picture();
  expect(Object.keys(scheduled ?? {})).toEqual(['j:b']);
  expect([pending, runs]).toEqual([undefined, undefined]);
});

it('a second stop waits for the same end', async () => {
  const worker = await idleWorker();
  const [first, second] = [worker.stop(), worker.stop({ shutdown: 0 })];
  expect(second).toBe(first);
  await first;
  await worker.stop();
});

it('a worker that was stopped before its start closes its connections, and cannot be started', async () => {
  const worker = line.make(() => undefined);
  await worker.stop();
  await eventually(connections).toBe(0);
  await expect(worker.start()).rejects.toMatchObject({ code: 'stopped' });
});

it('a second start of a worker changes nothing, and an unknown option of stop is refused', async () => {
  const worker = await idleWorker();
  await worker.start();
  const old: object = { graceMs: 5 };
  await expect(worker.stop(old)).rejects.toMatchObject({
    code: 'bad-input',
    message: 'graceMs is not an option of stop; allowed: shutdown',
  });
  expect(worker.isReady()).toBe(true);
});

it('a stop during the start ends both, at whatever step the start is', async () => {
  for (let turns = 0; turns < 30; turns += 1) {
    const worker = line.make(() => undefined);
    const started = worker.start().then(
      () => 'started',
      (error: { code?: string }) => error.code,
    );
    for (let turn = 0; turn < turns; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    await worker.stop();
    expect(['started', 'stopped']).toContain(await started);
    expect(await line.redis.keys(`*${worker.consumer}*`)).toEqual([]);
  }
  await eventually(connections).toBe(0);
});

it('twenty workers, one after the other, leave nothing', async () => {
  await line.stopMovers();
  const before = resources();
  for (let nth = 0; nth < 20; nth += 1) {
    const worker = line.make(() => undefined);
    await worker.start();
    await worker.stop();
  }
  await eventually(connections).toBe(0);
  await leftAlone(before);
  expect(await line.redis.xinfo('CONSUMERS', line.ref.keys.ready, 'workers')).toEqual([]);
});

it('a worker that cannot reach Redis says so with `unavailable`, and leaves nothing open', async () => {
  await line.stopMovers();
  const before = resources();
  const worker = createWorker('q', () => undefined, { redis: { path: '/nowhere/redis.sock' } });
  await expect(worker.start()).rejects.toMatchObject({ code: 'unavailable' });
  await worker.stop();
  await leftAlone(before);
});

it('a worker that cannot reach Redis can be stopped meanwhile', async () => {
  const worker = createWorker('q', () => undefined, { redis: { path: '/nowhere/redis.sock' } });
  const started = worker.start();
  await Promise.all([expect(started).rejects.toMatchObject({ code: 'stopped' }), worker.stop()]);
});

it('a queue whose key has another type is refused at the start', async () => {
  await line.redis.set(line.ref.keys.ready, 'text');
  line.onEnd(() => line.redis.del(line.ref.keys.ready));
  await expect(line.make(() => undefined).start()).rejects.toMatchObject({ code: 'refused' });
});
