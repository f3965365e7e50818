/** The story of a job, and dead letters by what they died of: what they tell, and what they hide from a token without `data`. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createClient } from '../../../src/client/client.ts';
import { fixed } from '../../../src/job/backoff.ts';
import { Defer } from '../../../src/job/outcome.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { createWorker } from '../../../src/worker/worker.ts';
import { type ServedApi, serveApi } from '../../support/api.ts';
import { buryJobs } from '../../support/buried.ts';
import { useCli } from '../../support/cli.ts';

const CANARY = 'canary-9b1c';
const queue = defineQueue('kept', { history: { keep: '1d', result: true } });
const cli = useCli();
let api: ServedApi;
let read: string;
let data: string;
let write: string;

beforeAll(async () => {
  api = await serveApi({ roles: ['http', 'mover'], http: { tokens: 'always' } });
  [read, data, write] = [
    await api.tokenOf({ scopes: ['read'] }),
    await api.tokenOf({ scopes: ['data', 'write', 'admin'] }),
    await api.tokenOf({ scopes: ['write'] }),
  ];
  await runTwice();
  await die();
  await buryJobs(api.redis.url, [
    { queue: 'dying', id: 'a', reason: `${CANARY} 4711 is gone` },
    { queue: 'dying', id: 'b', reason: `${CANARY} 4712 is gone` },
    { queue: 'dying', id: 'c', reason: 'customer is gone' },
  ]);
});
afterAll(() => api.stop());

/** A job that fails once and then returns a result; another life of its id; and one that has only the first. */
async function runTwice(): Promise<void> {
  let starts = 0;
  const worker = createWorker(
    queue,
    () => {
      starts += 1;
      if (starts === 1) throw new Error(CANARY);
      return { secret: CANARY };
    },
    { redis: api.redis.url },
  );
  const producer = createClient({ redis: api.redis.url });
  const over = () => new Promise<void>((resolve) => worker.events.on('job.completed', () => resolve()));
  await worker.start();
  const backoff = { kind: 'fixed', delayMs: 1, jitter: 'none' } as const;
  for (const id of ['twice', 'twice', 'tried']) {
    if (id === 'tried') starts = 0;
    const ended = over();
    await producer.schedule(queue, { life: starts }, { id, tags: ['a'], backoff, ifExists: 'replace' });
    await ended;
  }
  await worker.stop();
  await producer.close();
}

/** A job that is put aside twice and fails twice, in a queue that keeps no history. */
async function die(): Promise<void> {
  let starts = 0;
  const worker = createWorker(
    'lost',
    () => {
      starts += 1;
      if (starts < 3) throw new Defer(1, { reason: `${CANARY} holds it` });
      throw new Error('no', { cause: CANARY });
    },
    { redis: api.redis.url },
  );
  const dead = new Promise<void>((resolve) => worker.events.on('job.dead', () => resolve()));
  const producer = createClient({ redis: api.redis.url });
  await worker.start();
  const options = { id: 'x', name: 'welcome', tags: ['user:1'], attempts: 2, backoff: fixed(1) };
  await producer.schedule('lost', { to: CANARY }, options);
  await dead;
  await worker.stop();
  await producer.close();
}

describe('the report of a job', () => {
  test.each([
    ['kept', 'twice'],
    ['kept', 'tried'],
    ['lost', 'x'],
  ])('is the same object from the library, the API and the command line: %s %s', async (queue, id) => {
    const client = createClient({ redis: api.redis.url });
    const { nowMs: _, ...known } = JSON.parse(JSON.stringify(await client.get(queue, id)));
    await client.close();
    const { body } = await api.ask(`GET /v1/queues/${queue}/jobs/${id}`, { token: data });
    expect(body).toEqual({ ...known, hidden: false, nowMs: expect.any(Number) });
    const { out } = await cli.run(['show', queue, id, '--json', '--redis', api.redis.url]);
    expect(JSON.parse(out)).toEqual({ ...known, nowMs: expect.any(Number) });
  });

  test('says how far its handler is while it runs, and the text to nobody without data', async () => {
    let end = () => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    const worker = createWorker(
      'long',
      (_job, { progress }) => {
        progress(0.4, `row ${CANARY}`);
        return ended;
      },
      { redis: api.redis.url },
    );
    const producer = createClient({ redis: api.redis.url });
    await worker.start();
    await producer.schedule('long', {}, { id: 'runs' });
    await expect
      .poll(async () => (await producer.get('long', 'runs'))?.progress)
      .toEqual({ fraction: 0.4, text: `row ${CANARY}`, atMs: expect.any(Number) });
    const job = 'GET /v1/queues/long/jobs/runs';
    const { body } = await api.ask(job, { token: data });
    expect(body).toMatchObject({ state: 'running', history: [], progress: { fraction: 0.4, text: `row ${CANARY}` } });
    const hidden = await api.ask(job, { token: read });
    expect(hidden.body.progress).toEqual({ fraction: 0.4, atMs: body.progress.atMs });
    expect(hidden.text).not.toContain(CANARY);
    end();
    await expect.poll(async () => (await api.ask(job, { token: data })).body.state).toBe('done');
    expect((await api.ask(job, { token: data })).body).not.toHaveProperty('progress');
    await Promise.all([worker.stop(), producer.close()]);
  });

  test('has its result, its earlier life, and what happened in order of time', async () => {
    const { body } = await api.ask('GET /v1/queues/kept/jobs/twice', { token: data });
    expect(body).toMatchObject({ state: 'done', tags: ['a'], result: { kind: 'kept', value: { secret: CANARY } } });
    expect(body.past).toHaveLength(2);
    expect(body.past[1]).toMatchObject({ outcome: 'done', attempts: 2, history: [{ message: CANARY }] });
    expect(body.past[1].history[0].stack).toContain('Error');
    expect(body.timeline.map(({ kind }: { kind: string }) => kind)).toEqual(
      expect.arrayContaining(['earlier-end', 'asked-due', 'started', 'done']),
    );
    const times = body.timeline.map(({ atMs }: { atMs: number }) => atMs);
    expect(times).toEqual(times.toSorted((a: number, b: number) => a - b));
    expect(body.timeline.at(-1)).toMatchObject({ kind: 'done', atMs: body.overMs });
  });

  test('has each start with its worker, how long it took, and its error', async () => {
    const { body } = await api.ask('GET /v1/queues/kept/jobs/tried', { token: data });
    const of = (kind: string) => body.timeline.filter((one: { kind: string }) => one.kind === kind);
    const attempts = of('started').map(({ attempt, owner }: { attempt: number; owner: string }) => [attempt, owner]);
    const [failure] = body.history;
    expect(attempts).toEqual([
      [1, failure.worker],
      [2, failure.worker],
    ]);
    expect(of('failure')).toMatchObject([{ attempt: 1, tookMs: failure.tookMs, message: CANARY }]);
    expect(of('started')[0].atMs).toBe(failure.atMs - failure.tookMs);
  });

  test('that is dead has its name, data, tags and counts, in a queue without a history too', async () => {
    const job = 'GET /v1/queues/lost/jobs/x';
    const { body } = await api.ask(job, { token: data });
    expect(body).toMatchObject({
      state: 'dead',
      name: 'welcome',
      data: { to: CANARY },
      tags: ['user:1'],
      options: { attempts: 2 },
      attempts: 4,
      failures: 2,
      crashes: 0,
      reason: 'attempts-exhausted',
      readable: true,
      hidden: false,
      deferred: { times: 2, reason: `${CANARY} holds it` },
    });
    const [first, last] = body.history;
    expect([first.stack, last.stack]).toEqual([undefined, expect.stringContaining('api-story.test')]);
    expect(last.message).toBe(`no; cause: ${CANARY}`);
    const { body: letter } = await api.ask(`GET /v1/queues/lost/dead/${body.deadLetter}`, { token: data });
    expect(letter).toMatchObject({ failures: 2, crashes: 0, deferred: body.deferred, history: body.history });
    const producer = createClient({ redis: api.redis.url });
    expect(await producer.get('lost', 'x')).toMatchObject({
      name: 'welcome',
      data: { to: CANARY },
      failures: 2,
      reason: 'attempts-exhausted',
      deferred: body.deferred,
    });
    await producer.close();
    for (const path of [job, 'GET /v1/queues/lost/dead', `GET /v1/queues/lost/dead/${body.deadLetter}`]) {
      const { text } = await api.ask(path, { token: read });
      expect(text).toContain('"times":2');
      expect(text).not.toContain(CANARY);
    }
  });

  test('hides results, errors and stacks from a token without data', async () => {
    const { text, body } = await api.ask('GET /v1/queues/kept/jobs/twice', { token: read });
    expect(text).not.toContain(CANARY);
    expect(body).toMatchObject({ hidden: true, result: { kind: 'kept' }, past: [{}, { result: { kind: 'kept' } }] });
    const list = await api.ask('GET /v1/queues/kept/jobs?state=done', { token: read });
    expect(list.body.jobs).toHaveLength(3);
    expect(list.text).not.toContain(CANARY);
  });
});

describe('dead letters', () => {
  test('are counted by what they died of', async () => {
    const { body } = await api.ask('GET /v1/queues/dying/dead?group=error', { token: data });
    const errors = body.groups.map(({ error }: { error: string }) => error);
    expect(new Set(errors)).toEqual(new Set(['canary-#b#c # is gone', 'customer is gone']));
    expect(body).toMatchObject({ others: 0, scanned: 3 });
  });

  test('are one group for a token that may not see by what they differ', async () => {
    const { body, text } = await api.ask('GET /v1/queues/dying/dead?group=error', { token: read });
    expect(text).not.toContain(CANARY.slice(0, 6));
    expect(body.groups).toMatchObject([{ name: 'default', count: 3 }]);
  });

  test('cannot be asked for by a guess without the scope data', async () => {
    for (const guess of ['error=customer%20is%20gone', 'reason=customer%20is%20gone']) {
      expect((await api.ask(`GET /v1/queues/dying/dead?${guess}`, { token: read })).status).toBe(403);
      expect((await api.ask(`GET /v1/queues/dying/dead?${guess}`, { token: data })).body.deadLetters).toHaveLength(1);
    }
    const body = { error: 'customer is gone', dryRun: true };
    expect((await api.ask('POST /v1/queues/dying/dead/replay', { token: write, body })).status).toBe(403);
    const own = await api.ask('GET /v1/queues/dying/dead?reason=bad-data', { token: read });
    expect(own).toMatchObject({ status: 200, body: { deadLetters: [] } });
  });

  test('are replayed over a time, the same count as the dry run says', async () => {
    const body = { error: 'canary-#b#c # is gone', delay: '1h', spread: '10h' };
    const at = 'POST /v1/queues/dying/dead/replay';
    const dry = await api.ask(at, { token: data, body: { ...body, dryRun: true } });
    expect(dry.body).toMatchObject({ dryRun: true, matched: 2, replayed: 0 });
    const done = await api.ask(at, { token: data, body });
    expect(done.body).toMatchObject({ matched: 2, replayed: 2, live: 0, deadLetters: [] });
    const { body: page } = await api.ask('GET /v1/queues/dying/jobs', { token: data });
    const dues = page.jobs.map(({ dueMs }: { dueMs: number }) => dueMs);
    expect(new Set(dues).size).toBe(2);
    const { nowMs } = (await api.ask('GET /v1/queues/dying/jobs/a', { token: data })).body;
    for (const dueMs of dues) {
      expect(dueMs).toBeGreaterThan(nowMs);
      expect(dueMs).toBeLessThanOrEqual(nowMs + 11 * 3_600_000 + 60_000);
    }
  });

  test('that are named have an answer each', async () => {
    const { body } = await api.ask('GET /v1/queues/dying/dead', { token: data });
    const [left] = body.deadLetters;
    const asked = { deadLetters: [left.deadLetter, '1-1'], delay: '1h' };
    const done = await api.ask('POST /v1/queues/dying/dead/replay', { token: data, body: asked });
    expect(done.body).toMatchObject({
      matched: 2,
      replayed: 1,
      gone: 1,
      deadLetters: [
        { id: 'c', status: 'scheduled' },
        { deadLetter: '1-1', status: 'gone' },
      ],
    });
    const wrong = { ...asked, spread: '1h' };
    expect((await api.ask('POST /v1/queues/dying/dead/replay', { token: data, body: wrong })).status).toBe(400);
  });
});
