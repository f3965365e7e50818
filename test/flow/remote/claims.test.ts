/** Workers over HTTP: what a claim is answered, by a real daemon, when all goes well and when a call is made again. */
import { describe, expect, test } from 'vitest';
import { defineQueue } from '../../../src/job/queue.ts';
import { ended, jobsIn, useRemote } from '../../support/remote.ts';

const remote = useRemote({ daemons: 2 });
const problem = (status: number, code: string) => ({ status, body: expect.objectContaining({ code }) });
const idsOf = (jobs: readonly { readonly id: string }[]) => jobs.map(({ id }) => id);

describe('a claim', () => {
  test('has the job as it was scheduled', async () => {
    const data = { to: 'a@example.org', n: 12_345 };
    const client = remote.client();
    const queue = defineQueue(remote.queue, { perGroup: 5 });
    await client.schedule(queue, data, { id: '{acme}a', delay: 0, name: 'welcome', headers: { traceparent: '00-1' } });
    const [job, ...rest] = await remote.worker().jobs(remote.at(0), { wait: '5s' });
    expect(rest).toEqual([]);
    expect(job).toEqual({
      run: expect.any(String),
      id: '{acme}a',
      name: 'welcome',
      data,
      group: 'acme',
      headers: { traceparent: '00-1' },
      attempt: 1,
      failures: 0,
      crashes: 0,
      token: expect.stringMatching(/^\d{16}$/),
      dueMs: expect.any(Number),
      timeoutMs: 900_000,
    });
    expect(job?.run.length).toBeLessThanOrEqual(512);
  });

  test('waits for a job that comes later, and says how often to beat', async () => {
    const worker = remote.worker();
    const claiming = worker.claim(remote.at(0), { wait: '20s' });
    await expect.poll(remote.polls).toBe(1);
    await remote.schedule({ id: 'a' });
    const answered = await claiming;
    expect(answered.body).toMatchObject({ leaseMs: 900, beatMs: 300, ended: [] });
    expect(idsOf(jobsIn(answered))).toEqual(['a']);
  });

  test('is empty when its time is over', async () => {
    expect(await remote.worker().jobs(remote.at(0), { wait: '50ms' })).toEqual([]);
    expect(remote.told('claim.answered')).toMatchObject([{ outcome: 'empty', jobs: 0 }]);
  });

  test('takes as many jobs as the worker has free slots', async () => {
    await remote.schedule({ id: 'a' }, { id: 'b' }, { id: 'c' });
    await expect.poll(async () => (await remote.picture()).ready?.length).toBe(3);
    const worker = remote.worker();
    expect(idsOf(await worker.jobs(remote.at(0), { max: 2 }))).toEqual(['a', 'b']);
    expect(idsOf(await worker.jobs(remote.at(0), { max: 2 }))).toEqual(['c']);
  });

  test('completes what is over in the same call, and tells what became of it', async () => {
    await remote.schedule({ id: 'a' }, { id: 'b' });
    const worker = remote.worker();
    const [first] = await worker.jobs(remote.at(0), { wait: '5s', max: 1 });
    if (!first) throw new Error('there is a job');
    const answered = await worker.claim(remote.at(0), { wait: '5s', max: 1, ends: [ended(first)] });
    expect([idsOf(jobsIn(answered)), answered.body.ended]).toEqual([['b'], ['ok']]);
    expect((await remote.picture()).jobs).toMatchObject({ 'j:a': 'tombstone done' });
    expect(remote.told('job.completed')).toMatchObject([{ id: 'a' }]);
  });
});

describe('a claim whose answer was lost', () => {
  test('has the same answer at another daemon, with the same tokens, and counts nothing twice', async () => {
    await remote.schedule({ id: 'a' }, { id: 'b' });
    await expect.poll(async () => (await remote.picture()).ready?.length).toBe(2);
    const worker = remote.worker();
    const lost = await worker.jobs(remote.at(0));
    await remote.schedule({ id: 'c' });
    await expect.poll(async () => (await remote.picture()).ready?.length).toBe(3);
    const again = await worker.jobs(remote.at(1), { seq: 1, again: true });
    expect(again).toEqual(lost);
    expect(await worker.settle(remote.at(1), ...again.map((job) => ended(job)))).toEqual(['ok', 'ok']);
    expect(await worker.settle(remote.at(0), ...lost.map((job) => ended(job)))).toEqual(['already', 'already']);
  });

  test('leaves out what is settled, and takes no other job', async () => {
    await remote.schedule({ id: 'a' });
    const worker = remote.worker();
    const [job] = await worker.jobs(remote.at(0), { wait: '5s' });
    if (!job) throw new Error('there is a job');
    await worker.settle(remote.at(0), ended(job));
    await remote.schedule({ id: 'b' });
    expect(await worker.jobs(remote.at(1), { seq: 1, again: true, wait: '50ms' })).toEqual([]);
    expect(idsOf(await worker.jobs(remote.at(1), { wait: '5s' }))).toEqual(['b']);
  });

  test('of which the first is superseded by the next one of its lane', async () => {
    const worker = remote.worker();
    const forgotten = worker.claim(remote.at(0), { wait: '20s', seq: 1 });
    await expect.poll(remote.polls).toBe(1);
    expect(await worker.jobs(remote.at(1), { seq: 2 })).toEqual([]);
    await remote.schedule({ id: 'a' });
    expect(await forgotten).toMatchObject(problem(409, 'superseded'));
    expect(idsOf(await worker.jobs(remote.at(1), { wait: '5s' }))).toEqual(['a']);
  });

  test('waits on when it is made again before there was anything', async () => {
    const worker = remote.worker();
    expect(await worker.jobs(remote.at(0), { wait: '20ms' })).toEqual([]);
    const again = worker.jobs(remote.at(0), { seq: 1, again: true, wait: '20s' });
    await remote.schedule({ id: 'a' });
    expect(idsOf(await again)).toEqual(['a']);
  });
});

describe('refused', () => {
  test.each([
    [{ worker: 'h-mailer' }],
    [{ worker: 'w-0f3c9a5be2d1476f8a90b1c2d3e4f506' }],
    [{ seq: 0 }],
    [{ lane: 8 }],
    [{ max: 81 }],
    [{ wait: '61s' }],
    [{ ends: [{ run: 'x', end: 'complete' }] }],
    [{ ends: [{ run: 'x', end: 'retry' }] }],
  ])('%j, with 400', async (wrong) => {
    expect(await remote.worker().call(remote.at(0), 'claim', { seq: 1, wait: 0, ...wrong })).toMatchObject(
      problem(400, 'bad-input'),
    );
  });

  test('more than 80 runs in one call, with 413', async () => {
    const runs = Array.from({ length: 81 }, () => ({ run: 'x', end: 'complete' }));
    expect(await remote.worker().call(remote.at(0), 'settle', { runs })).toMatchObject(problem(413, 'too-large'));
  });

  test('a run of a queue that there is not, with 404', async () => {
    expect(await remote.worker().call(remote.at(0), 'leave')).toMatchObject(problem(404, 'not-found'));
  });

  test('claims in a broadcast queue, with 409', async () => {
    const worker = remote.worker();
    await remote.client().schedule(defineQueue(remote.queue, { broadcast: true }), 1, { delay: '1h' });
    expect(await worker.claim(remote.at(0))).toMatchObject(problem(409, 'broadcast'));
  });

  test('claims in a queue whose jobs call a URL, with 409', async () => {
    const worker = remote.worker();
    const queue = defineQueue(remote.queue, { target: 'https://api.example.com/due' });
    await remote.client().schedule(queue, 1, { delay: '1h' });
    expect(await worker.claim(remote.at(0))).toMatchObject(problem(409, 'target'));
  });
});

describe('a job that fails', () => {
  const failed = async (end: object, more: object = {}) => {
    await remote.schedule({ id: 'a', ...more });
    const worker = remote.worker();
    const [job] = await worker.jobs(remote.at(0), { wait: '5s' });
    if (!job) throw new Error('there is a job');
    return { worker, job, words: await worker.settle(remote.at(0), ended(job, { end: 'fail', ...end })) };
  };

  test('is tried again after the backoff of its queue, and its error is kept', async () => {
    const { words } = await failed({ error: 'smtp said no', kind: 'TimeoutError', stack: 'File "mail.py", line 7' });
    expect(words).toEqual(['ok']);
    expect(remote.told('job.retried')).toMatchObject([{ id: 'a', error: { message: 'TimeoutError: smtp said no' } }]);
    const found = await remote.client().get(remote.queue, 'a');
    expect(found).toMatchObject({ state: 'scheduled', failures: 1 });
  });

  test('is tried again when the worker says so', async () => {
    const { worker } = await failed({ error: 'no', retryIn: 10 });
    const [job] = await worker.jobs(remote.at(0), { wait: '5s' });
    expect(job).toMatchObject({ id: 'a', attempt: 2, failures: 1 });
  });

  test('is a dead letter when its attempts are used up', async () => {
    expect((await failed({ error: 'no' }, { attempts: 1 })).words).toEqual(['ok']);
    expect(remote.told('job.dead')).toMatchObject([{ id: 'a', reason: 'attempts-exhausted' }]);
  });

  test('is a dead letter at once when the worker says that trying again cannot help', async () => {
    expect((await failed({ error: 'customer is gone', fatal: true })).words).toEqual(['ok']);
    expect(remote.told('job.dead')).toMatchObject([{ id: 'a', reason: 'customer is gone' }]);
  });

  test('is told again by the same call', async () => {
    const { worker, job } = await failed({ error: 'no' });
    expect(await worker.settle(remote.at(1), ended(job, { end: 'fail', error: 'no' }))).toEqual(['already']);
  });
});

test('a job that is put off waits for its time, and no failure is counted', async () => {
  await remote.schedule({ id: 'a' });
  const worker = remote.worker();
  const [job] = await worker.jobs(remote.at(0), { wait: '5s' });
  if (!job) throw new Error('there is a job');
  expect(await worker.settle(remote.at(0), ended(job, { end: 'defer', delay: '1h', reason: 'locked' }))).toEqual([
    'ok',
  ]);
  expect(await remote.client().get(remote.queue, 'a')).toMatchObject({ state: 'scheduled', failures: 0 });
});

test('a run that somebody asks to stop hears it at its next beat, and ends cancelled', async () => {
  await remote.schedule({ id: 'a' });
  const worker = remote.worker();
  const [job] = await worker.jobs(remote.at(0), { wait: '5s' });
  if (!job) throw new Error('there is a job');
  expect(await worker.beat(remote.at(0), { run: job.run })).toEqual(['ok']);
  await remote.client().cancel(remote.queue, 'a');
  expect(await worker.beat(remote.at(0), { run: job.run })).toEqual(['cancel']);
  expect(await worker.settle(remote.at(0), ended(job))).toEqual(['cancelled']);
});

test('how far a run is shows where people look', async () => {
  await remote.schedule({ id: 'a' });
  const worker = remote.worker();
  const [job] = await worker.jobs(remote.at(0), { wait: '5s' });
  if (!job) throw new Error('there is a job');
  const { body } = await worker.call(remote.at(0), 'progress', { run: job.run, progress: 0.5, text: 'half' });
  expect(body).toEqual({ result: 'ok' });
  expect(await remote.client().get(remote.queue, 'a')).toMatchObject({ progress: { fraction: 0.5, text: 'half' } });
});

test('a beat says how many turns of the rate a run has really used, and the last word counts', async () => {
  const queue = defineQueue(remote.queue, { rate: '1/s', costs: true });
  await remote.client().schedule(queue, {}, { id: 'a', cost: 600 });
  const worker = remote.worker();
  const [job] = await worker.jobs(remote.at(0), { wait: '5s' });
  const [keys] = remote.refs.map((ref) => ref.keys);
  if (!job || !keys) throw new Error('there is a job');
  const aheadUs = async () => {
    const [arrivalUs] = ((await remote.redis.hget(keys.meta, 'gate')) ?? '').split(' ');
    return Number(arrivalUs) - Date.now() * 1000;
  };
  expect(await aheadUs()).toBeGreaterThan(500_000_000);
  await worker.call(remote.at(0), 'progress', { run: job.run, spent: 500 });
  // By the other daemon, which knows nothing of the word before.
  const { body } = await worker.call(remote.at(1), 'progress', { run: job.run, spent: 2 });
  expect(body).toEqual({ result: 'ok' });
  expect(await aheadUs()).toBeLessThan(100_000_000);
  const refused = await worker.call(remote.at(0), 'progress', { run: job.run, spent: 1001 });
  expect(refused).toMatchObject(problem(400, 'bad-input'));
});

test('the calls for one run say one word', async () => {
  await remote.schedule({ id: 'a' }, { id: 'b' }, { id: 'c' });
  await expect.poll(async () => (await remote.picture()).ready?.length).toBe(3);
  const worker = remote.worker();
  const [a, b, c] = await worker.jobs(remote.at(0));
  const one = async (verb: string, body: object) => (await worker.call(remote.at(0), verb, body)).body;
  expect(await one('extend', { run: a?.run })).toEqual({ result: 'ok' });
  expect(await one('complete', { run: a?.run })).toEqual({ result: 'ok' });
  expect(await one('fail', { run: b?.run, error: 'no' })).toEqual({ result: 'ok' });
  expect(await one('defer', { run: c?.run, delay: '1h' })).toEqual({ result: 'ok' });
});

test('a worker that leaves gives back what it holds, and claims no more', async () => {
  await remote.schedule({ id: 'a' }, { id: 'b' });
  await expect.poll(async () => (await remote.picture()).ready?.length).toBe(2);
  const worker = remote.worker();
  await worker.jobs(remote.at(0));
  expect((await worker.call(remote.at(1), 'leave')).body).toEqual({ given: 2 });
  expect((await worker.call(remote.at(0), 'leave')).body).toEqual({ given: 0 });
  expect(await worker.claim(remote.at(0))).toMatchObject(problem(409, 'superseded'));
  const next = remote.worker();
  const jobs = await next.jobs(remote.at(1), { wait: '5s' });
  expect(jobs[0]).toMatchObject({ failures: 0, crashes: 0 });
});

test('a poll that a worker has forgotten takes nothing after it has left', async () => {
  const worker = remote.worker();
  const forgotten = worker.claim(remote.at(0), { wait: '20s' });
  await expect.poll(() => remote.redis.hlen(remote.refs[0]?.keys.claims ?? '')).toBe(1);
  await worker.call(remote.at(1), 'leave');
  await remote.schedule({ id: 'a' });
  expect(await forgotten).toMatchObject(problem(409, 'superseded'));
  expect(idsOf(await remote.worker().jobs(remote.at(1), { wait: '5s' }))).toEqual(['a']);
});

test('a job of a queue that delivers at most once is over before its handler, for one run only', async () => {
  const at = await remote.serve({ queues: { [remote.queue]: { delivery: 'at-most-once' } } });
  remote.onEnd(() => at.daemon.stop());
  await remote.schedule({ id: 'a' });
  const worker = remote.worker();
  const [job] = await worker.jobs(at, { wait: '5s' });
  expect(job?.begin).toBe(true);
  const begin = { run: job?.run, end: 'begin' };
  expect(await worker.settle(at, begin)).toEqual(['ok']);
  expect(await worker.settle(at, begin)).toEqual(['already']);
  expect(await worker.settle(at, { run: job?.run, end: 'complete' })).toEqual(['already']);
  expect((await remote.picture()).ready).toBeUndefined();
});

test('a job whose data a codec has encoded is handed on as it is stored', async () => {
  const codec = {
    name: 'hex',
    encode: (text: string) => Buffer.from(text).toString('hex'),
    decode: (text: string) => Buffer.from(text, 'hex').toString(),
  };
  await remote.client().schedule(defineQueue(remote.queue, { codec }), { a: 1 }, { id: 'a', delay: 0 });
  const [job] = await remote.worker().jobs(remote.at(0), { wait: '5s' });
  expect(job).toMatchObject({ id: 'a', codec: 'hex', data: Buffer.from('{"a":1}').toString('hex') });
});

test('what a handler returns is kept where the history of its queue keeps results', async () => {
  const client = remote.client();
  await client.schedule(defineQueue(remote.queue, { history: { result: true } }), 1, { id: 'a', delay: 0 });
  const worker = remote.worker();
  const [job] = await worker.jobs(remote.at(0), { wait: '5s' });
  if (!job) throw new Error('there is a job');
  expect(await worker.settle(remote.at(0), ended(job, { result: { sent: true } }))).toEqual(['ok']);
  expect(await client.get(remote.queue, 'a')).toMatchObject({ result: { kind: 'kept', value: { sent: true } } });
});
