/** What becomes of a job for each thing its handler can do. */
import { expect, it } from 'vitest';
import { fixed } from '../../../src/job/backoff.ts';
import { decodeHistory, decodeTombstone } from '../../../src/job/codec.ts';
import { Defer, Retry, Unrecoverable } from '../../../src/job/outcome.ts';
import { eventually, useLine } from '../../support/worker-line.ts';

const line = useLine();
const AT_ONCE = { backoff: fixed(1) } as const;

/** A job that went through the given handler, which always throws. */
async function deadBy(handler: () => unknown, attempts = 2) {
  const worker = await line.worker(handler, { ...AT_ONCE, attempts });
  await line.plan({ data: { order: 7 } });
  await eventually(() => worker.heard.of('job.dead').length).toBe(1);
  const [deadLetter] = await line.deadLetters();
  return { worker, deadLetter, history: decodeHistory((deadLetter?.history ?? '').split('\n')) };
}

it('a job goes to the handler of its name, and one without a name to the default', async () => {
  const ran: string[] = [];
  const worker = await line.worker({
    welcome: (job) => ran.push(`welcome ${job.id}`),
    default: (job) => ran.push(`default ${job.id}`),
  });
  await line.plan({ id: 'a', name: 'welcome' }, { id: 'b' });
  await eventually(() => worker.heard.of('job.completed').length).toBe(2);
  expect(ran.sort()).toEqual(['default b', 'welcome a']);
});

it('a job whose name has no handler is dead at once', async () => {
  const worker = await line.worker({ welcome: () => undefined });
  await line.plan({ name: 'constructor' });
  await eventually(() => worker.heard.of('job.dead')).toMatchObject([{ id: 'a', reason: 'no-handler' }]);
  expect(await line.deadLetters()).toMatchObject([{ member: 'j:a', reason: 'no-handler', attempts: '1' }]);
});

it('a handler sees the whole job and its context', async () => {
  const seen: unknown[] = [];
  const dueMs = Date.now() - 5000;
  const worker = await line.worker((job, context) => {
    seen.push({ ...job }, context.token, context.attempt, context.deadlineMs - Date.now());
  });
  await line.plan({ id: 'x', name: 'n1', data: { a: [1] }, dueMs, timeoutMs: 60_000 });
  await eventually(() => worker.heard.of('job.completed').length).toBe(1);
  const [job, token, attempt, left] = seen;
  expect(job).toEqual({
    id: 'x',
    bare: false,
    queue: line.queue,
    name: 'n1',
    data: { a: [1] },
    dueMs,
    askedDueMs: dueMs,
    attempt: 1,
    failures: 0,
    crashes: 0,
    history: [],
    headers: {},
  });
  expect([typeof token, attempt]).toEqual(['string', 1]);
  expect(left).toBeGreaterThan(55_000);
  expect(left).toBeLessThanOrEqual(60_000);
});

it('a job that is done leaves a tombstone with its token, and nothing else', async () => {
  const worker = await line.worker(() => 'ignored');
  await line.plan({});
  await eventually(() => worker.heard.of('job.completed').length).toBe(1);
  expect(decodeTombstone((await line.stored('a')) ?? '')).toMatchObject({ outcome: 'done', attempts: 1 });
  expect(await line.picture()).toMatchObject({ jobs: { 'j:a': 'tombstone done' } });
  expect(Object.keys(await line.picture()).sort()).toEqual(['done', 'jobs']);
});

it('without a done window nothing is left of a job', async () => {
  const worker = await line.worker(() => undefined, { doneWindow: 0 });
  await line.plan({});
  await eventually(() => worker.heard.of('job.completed').length).toBe(1);
  expect(await line.picture()).toEqual({});
});

it('a job that throws is tried again after its backoff, and is dead after exactly its attempts', async () => {
  const attempts: number[] = [];
  const failures: number[] = [];
  const worker = await line.worker(
    (job) => {
      attempts.push(job.attempt);
      failures.push(job.failures);
      throw new Error(`no ${job.attempt}`);
    },
    { attempts: 7, backoff: fixed(30) },
  );
  await line.plan({ data: 'kept' });
  await eventually(() => worker.heard.of('job.dead')).toMatchObject([{ reason: 'attempts-exhausted' }]);
  expect(attempts).toEqual([1, 2, 3, 4, 5, 6, 7]);
  expect(failures).toEqual([0, 1, 2, 3, 4, 5, 6]);
  expect(worker.heard.of('job.retried').map(({ delayMs }) => delayMs)).toEqual(Array(6).fill(30));
  const [deadLetter] = await line.deadLetters();
  expect(deadLetter).toMatchObject({ reason: 'attempts-exhausted', attempts: '7' });
  expect(deadLetter?.record).toContain('"d":"kept"');
  const history = decodeHistory((deadLetter?.history ?? '').split('\n'));
  expect(history.map(({ message }) => message)).toEqual(['no 3', 'no 4', 'no 5', 'no 6', 'no 7']);
  expect(history.map(({ attempt, kind }) => `${attempt} ${kind}`)[4]).toBe('7 failure');
});

it('a retry is not promoted before its backoff is over', async () => {
  const starts: { readonly dueMs: number; readonly atMs: number }[] = [];
  const worker = await line.worker(
    (job) => {
      starts.push({ dueMs: job.dueMs, atMs: Date.now() });
      if (job.attempt === 1) throw new Error('once');
    },
    { backoff: fixed(200) },
  );
  await line.plan({});
  await eventually(() => worker.heard.of('job.completed').length).toBe(1);
  const [first, second] = starts;
  expect((second?.dueMs ?? 0) - (first?.atMs ?? 0)).toBeGreaterThanOrEqual(200);
  expect(second?.atMs).toBeGreaterThanOrEqual(second?.dueMs ?? 0);
});

it('a job whose handler says when to come back waits so long, and its failure is counted', async () => {
  const starts: { readonly dueMs: number; readonly atMs: number; readonly failures: number }[] = [];
  const worker = await line.worker(({ dueMs, attempt, failures }) => {
    starts.push({ dueMs, atMs: Date.now(), failures });
    if (attempt === 1) throw new Retry(200, 'answer 503');
  }, AT_ONCE);
  await line.plan({});
  await eventually(() => worker.heard.of('job.completed').length).toBe(1);
  const [first, second] = starts;
  expect((second?.dueMs ?? 0) - (first?.atMs ?? 0)).toBeGreaterThanOrEqual(200);
  expect(second?.failures).toBe(1);
  expect(worker.heard.of('job.retried')).toMatchObject([{ error: { kind: 'failure', message: 'answer 503' } }]);
});

it('a deferred job uses up no attempt, and comes back jittered by at most a quarter', async () => {
  const failures: number[] = [];
  const worker = await line.worker(
    (job) => {
      failures.push(job.failures);
      if (job.attempt <= 6) throw new Defer(20);
    },
    { attempts: 1 },
  );
  await line.plan({});
  await eventually(() => worker.heard.of('job.completed').length).toBe(1);
  expect(failures).toEqual([0, 0, 0, 0, 0, 0, 0]);
  const delays = worker.heard.of('job.deferred').map(({ delayMs }) => delayMs);
  expect(delays).toHaveLength(6);
  for (const delayMs of delays) expect(delayMs >= 20 && delayMs <= 25).toBe(true);
});

it('an unrecoverable job is dead at once with its reason', async () => {
  const { worker, deadLetter, history } = await deadBy(() => {
    throw new Unrecoverable('customer\nis gone');
  });
  expect(worker.heard.of('job.dead')).toMatchObject([{ reason: 'customer is gone' }]);
  expect(deadLetter).toMatchObject({ reason: 'customer is gone', attempts: '1' });
  expect(history).toMatchObject([{ attempt: 1, kind: 'failure', message: 'customer is gone' }]);
  expect(decodeTombstone((await line.stored('a')) ?? '')).toMatchObject({ outcome: 'dead' });
});

it('attempts, timeout and backoff of one job win over those of its queue', async () => {
  const worker = await line.worker(() => new Promise(() => undefined), { attempts: 9, timeout: '1m' });
  await line.plan({ attempts: 2, timeoutMs: 30, backoff: { kind: 'fixed', delayMs: 5, jitter: 'none' } });
  await eventually(() => worker.heard.of('job.dead').length).toBe(1);
  expect(worker.heard.of('job.retried')).toMatchObject([{ delayMs: 5, error: { kind: 'timeout' } }]);
  expect(worker.heard.of('job.dead')).toMatchObject([{ reason: 'attempts-exhausted', error: { kind: 'timeout' } }]);
});

it('overrides that a foreign producer wrote as nonsense make a dead letter, not a job that never ends', async () => {
  const worker = await line.worker(() => {
    throw new Error('tried');
  }, AT_ONCE);
  const dueMs = Date.now() - 1000;
  for (const [id, options] of Object.entries({
    attempts: { a: 'x' },
    timeout: { t: -1 },
    backoff: { b: { kind: 'weird' } },
    delay: { b: { kind: 'fixed', delayMs: 'NaN', jitter: 'none' } },
  })) {
    const record = `1${dueMs.toString(36)}|{"o":${JSON.stringify(options)}}`;
    const settings = { mode: 'keep', horizonMs: 1e12, bytesMax: 10_000 } as const;
    await line.jobs.schedule(line.ref, [{ member: `j:${id}`, record, dueMs }], settings);
  }
  await eventually(() => worker.heard.of('job.dead').length).toBe(4);
  expect(worker.heard.of('job.dead').map(({ reason }) => reason)).toEqual(Array(4).fill('unreadable-record'));
});

it('a record that cannot be read becomes a dead letter', async () => {
  const worker = await line.worker(() => undefined);
  const dueMs = Date.now() - 1000;
  const record = `1${dueMs.toString(36)}|{"d":`;
  await line.jobs.schedule(line.ref, [{ member: 'j:a', record, dueMs }], {
    mode: 'keep',
    horizonMs: 1e12,
    bytesMax: 10_000,
  });
  await eventually(() => worker.heard.of('job.dead')).toMatchObject([{ reason: 'unreadable-record' }]);
  expect(await line.deadLetters()).toMatchObject([{ reason: 'unreadable-record', record, attempts: '1' }]);
});

const throwing = new Error('hidden');
Object.defineProperty(throwing, 'message', {
  get() {
    throw new Error('from the getter');
  },
});
const circular: { self?: unknown } = {};
circular.self = circular;
const long = new Error('m');
long.stack = 'x'.repeat(10 * 1024 * 1024);
const hostile = new Proxy(
  {},
  {
    getPrototypeOf() {
      throw new Error('no prototype');
    },
  },
);
const unspeakable = new Unrecoverable('never seen');
Object.defineProperty(unspeakable, 'message', { value: { not: 'a text' } });

it.each([
  ['undefined', undefined, 'handler threw undefined'],
  ['null', null, 'handler threw null'],
  ['a text', 'just a text', 'just a text'],
  ['a frozen error', Object.freeze(new Error('cold')), 'cold'],
  ['a circular object', circular, 'unprintable error'],
  ['an error whose message throws', throwing, 'unprintable error'],
  ['an error with a stack of 10 MB', long, 'm'],
  ['a proxy without a prototype', hostile, 'unprintable error'],
  ['a symbol', Symbol('s'), 'Symbol(s)'],
])('a handler that throws %s is tried again like any other', async (_what, thrown, message) => {
  const { worker, history } = await deadBy(() => {
    throw thrown;
  });
  expect(worker.heard.of('job.started')).toHaveLength(2);
  expect(history.map((one) => one.message)).toEqual([message, message]);
});

it('a message of 10 MB is cut before it is stored', async () => {
  const { deadLetter } = await deadBy(() => Promise.reject(new Error('y'.repeat(10 * 1024 * 1024))));
  expect(deadLetter?.history?.length).toBeLessThan(4096);
});

it('an unrecoverable error whose message is no text still buries the job', async () => {
  const { worker } = await deadBy(() => {
    throw unspeakable;
  });
  expect(worker.heard.of('job.started')).toHaveLength(1);
});

it('a result whose `then` throws counts as a failure of the handler', async () => {
  const get = () => {
    throw new Error('then threw');
  };
  const { history } = await deadBy(() => Object.defineProperty({}, 'then', { get }));
  expect(history.map(({ message }) => message)).toEqual(['then threw', 'then threw']);
});

it('a backoff function that throws or returns nonsense costs ten seconds, not the job', async () => {
  const worker = await line.worker(
    () => {
      throw new Error('x');
    },
    { backoff: () => Number.NaN },
  );
  await line.plan({});
  await eventually(() => worker.heard.of('job.retried')).toMatchObject([{ delayMs: 10_000 }]);
});

it('an error is stored short while Redis is at its memory limit, and whole otherwise', async () => {
  const worker = await line.worker(
    () => {
      throw new Error('long '.repeat(100));
    },
    { attempts: 2, backoff: fixed('300ms') },
  );
  await line.plan({ id: 'a' });
  await eventually(() => worker.heard.of('job.retried').length).toBe(1);
  await line.redis.config('SET', 'maxmemory', '1');
  await eventually(() => worker.heard.of('job.dead').length).toBe(1);
  await line.redis.config('SET', 'maxmemory', '0');
  const [deadLetter] = await line.deadLetters();
  const history = decodeHistory((deadLetter?.history ?? '').split('\n'));
  expect(history.map(({ message }) => message.length)).toEqual([499, 80]);
});
