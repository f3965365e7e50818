/** A person is erased by a tag: from jobs, dead letters and history, over partitions and queues, in steps that can be cut short. */

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { auditEntries } from '../../../src/access/audit.ts';
import { type Client, createClient } from '../../../src/client/client.ts';
import type { Erased, ErasedQueue, EraseOptions } from '../../../src/client/erase/erasure.ts';
import { createDaemon, type Daemon } from '../../../src/daemon/daemon.ts';
import { createWorker, type Worker } from '../../../src/daemon/embedded-worker.ts';
import { Unrecoverable } from '../../../src/job/outcome.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { close, openCommands, type Redis, whenReady } from '../../../src/redis/connection/connect.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { aborted, gate } from '../../support/worker-line.ts';

const tag = 'user:42';
const history = { keep: '1d', result: true } as const;
const mails = defineQueue<{ to: string }>('mails', { partitions: 3, history });
const bills = defineQueue<{ to: string }>('bills', { history });
let server: TestRedis;
let redis: Redis;
let daemon: Daemon;
let producer: Client;
let worker: Worker | undefined;

beforeAll(async () => {
  server = await startRedis();
  redis = openCommands({ redis: server.url, name: 'test' });
  await whenReady(redis);
});
beforeEach(async () => {
  await redis.flushall();
  daemon = createDaemon({ redis: { url: server.url }, roles: ['mover'], http: { port: 0 } });
  await daemon.start();
  producer = createClient({ redis: server.url });
});
afterEach(async () => {
  await worker?.stop();
  worker = undefined;
  await producer.close();
  await daemon.stop();
});
afterAll(async () => {
  close(redis);
  await server.stop();
});

const ids = (letter: string, count: number) => Array.from({ length: count }, (_, nth) => `${letter}${nth}`);
const put = (queue: typeof mails, names: readonly string[], tags: readonly string[], delay = '0s') =>
  producer.scheduleMany(
    queue,
    names.map((id) => ({ id, data: { to: `${id}@example.org` }, tags, delay })),
  );
const ended = (queue: typeof mails, names: readonly string[]) =>
  expect
    .poll(async () => {
      const ends = await Promise.all(names.map((id) => producer.get(queue, id)));
      return ends.filter((end) => end?.state === 'done' || end?.state === 'dead').length;
    })
    .toBe(names.length);

/** Jobs of two people in every place: waiting, dead and done. */
async function furnish(): Promise<void> {
  worker = createWorker(
    mails,
    ({ id }) => {
      if (id.startsWith('dead') || id.startsWith('x-dead')) throw new Unrecoverable('no');
      return { sent: id };
    },
    { redis: server.url, concurrency: 10 },
  );
  await worker.start();
  await put(mails, [...ids('done', 6), ...ids('dead', 5)], [tag, 'vip']);
  await put(mails, [...ids('x-done', 2), ...ids('x-dead', 2)], ['user:421']);
  await ended(mails, [...ids('done', 6), ...ids('dead', 5), ...ids('x-done', 2), ...ids('x-dead', 2)]);
  await put(mails, ids('wait', 7), [tag], '1h');
  await put(mails, ids('x-wait', 2), ['other'], '1h');
}

/** What went from one queue. */
async function eraseIn(
  { name }: { readonly name: string },
  filter: { readonly tag: string },
  options: EraseOptions = {},
) {
  const { queues, cursor } = await producer.erase(filter, { queues: [name], ...options });
  const [one] = queues;
  if (!one) throw new Error(`queue ${name} was not looked at`);
  return { ...one, cursor };
}

test('jobs, dead letters and history with the tag go, what others have stays, and the counts say how many', async () => {
  await furnish();
  const dry = await eraseIn(mails, { tag }, { dryRun: true });
  expect(dry).toMatchObject({
    dryRun: true,
    jobs: 7,
    running: 0,
    deadLetters: 5,
    history: 11,
    left: 0,
    cursor: undefined,
  });
  expect((await producer.count(mails, { tag })).count).toBe(7);
  // Those that are cancelled leave a record in the history, which goes too.
  expect(await eraseIn(mails, { tag })).toMatchObject({
    dryRun: false,
    jobs: 7,
    running: 0,
    deadLetters: 5,
    history: 18,
    left: 0,
    cursor: undefined,
  });
  expect((await producer.count(mails)).count).toBe(2);
  expect(await producer.get(mails, 'x-done0')).toMatchObject({
    result: { kind: 'kept', value: { sent: 'x-done0' } },
  });
  expect((await producer.get(mails, 'x-dead0'))?.past).toHaveLength(1);
  expect(await eraseIn(mails, { tag })).toMatchObject({ jobs: 0, deadLetters: 0, history: 0, left: 0 });
});

describe('an erase that is cut short', () => {
  test('goes on from its cursor, and removes everything once', async () => {
    await furnish();
    const sum = { jobs: 0, deadLetters: 0, history: 0 };
    let cursor: string | undefined;
    let calls = 0;
    do {
      const one = await eraseIn(mails, { tag }, { cursor, scanMax: 2 });
      sum.jobs += one.jobs;
      sum.deadLetters += one.deadLetters;
      sum.history += one.history;
      cursor = one.cursor;
      calls += 1;
    } while (cursor !== undefined);
    expect(sum).toEqual({ jobs: 7, deadLetters: 5, history: 18 });
    expect(calls).toBeGreaterThan(10);
  });

  test('begins again where a process was killed: what is gone is gone', async () => {
    await furnish();
    const stop = new AbortController();
    const told: ErasedQueue[] = [];
    const cut = await eraseIn(
      mails,
      { tag },
      {
        signal: stop.signal,
        onProgress(progress) {
          told.push(progress);
          if (progress.deadLetters > 0) stop.abort();
        },
      },
    );
    expect(cut).toMatchObject({ jobs: 7, deadLetters: 5, cursor: expect.any(String) });
    expect(told.length).toBeGreaterThan(1);
    expect(await eraseIn(mails, { tag })).toMatchObject({ jobs: 0, deadLetters: 0, history: 18, left: 0 });
  });

  test('refuses the cursor of another tag, and what is none', async () => {
    await furnish();
    const { cursor } = await eraseIn(mails, { tag: 'vip' }, { scanMax: 1, dryRun: true });
    await expect(eraseIn(mails, { tag }, { cursor })).rejects.toThrow(/the cursor is of another tag/);
    for (const none of ['x', '', Buffer.from('[1,2,3,4]').toString('base64url')]) {
      await expect(eraseIn(mails, { tag }, { cursor: none })).rejects.toMatchObject({ code: 'bad-input' });
    }
    await expect(producer.erase({ tag: 'vip' }, { cursor })).rejects.toMatchObject({ code: 'bad-input' });
  });
});

test('a job that runs is asked to stop and told; when it has ended, the next call removes its record', async () => {
  const begun = gate();
  worker = createWorker(
    bills,
    async (_job, { signal }) => {
      begun.open();
      await aborted(signal);
    },
    { redis: server.url, jobLease: '600ms' },
  );
  await worker.start();
  await put(bills, ['a'], [tag]);
  await begun.opened;
  expect(await eraseIn(bills, { tag })).toMatchObject({ jobs: 0, running: 1, history: 0 });
  await expect.poll(async () => (await producer.get(bills, 'a'))?.state).toBe('cancelled');
  expect(await eraseIn(bills, { tag })).toMatchObject({ jobs: 0, running: 0, history: 1, left: 0 });
});

test('every queue is erased, or those that are named, and a cursor goes on in the right one', async () => {
  await put(mails, ids('a', 3), [tag], '1h');
  await put(bills, ids('b', 4), [tag], '1h');
  const counts = (found: Erased) => found.queues.map(({ queue, jobs }) => `${queue} ${jobs}`);
  expect(counts(await producer.erase({ tag }, { dryRun: true }))).toEqual(['bills 4', 'mails 3']);
  expect(counts(await producer.erase({ tag }, { dryRun: true, queues: ['mails', 'nobody'] }))).toEqual(['mails 3']);
  const first = await producer.erase({ tag }, { scanMax: 2 });
  expect(counts(first)).toEqual(['bills 2']);
  const rest = await producer.erase({ tag }, { cursor: first.cursor });
  expect(counts(rest)).toEqual(['bills 2', 'mails 3']);
  const entries = await auditEntries({ redis, namespace: 'duestream' }, { limit: 10 });
  // Jobs, and what the history keeps of their ends.
  const told = entries.map(({ way, verb, queue, count }) => [way, verb, queue, count].join(' '));
  expect(told).toEqual(['program erase mails 6', 'program erase bills 6', 'program erase bills 2']);
  expect(rest).toMatchObject({ left: 0, cursor: undefined });
});

test('what is given wrongly is refused before anything is sent', async () => {
  const wrong = (filter: object, options: object = {}) =>
    expect(eraseIn(mails, filter as { tag: string }, options)).rejects.toMatchObject({ code: 'bad-input' });
  await wrong({});
  await wrong({ tag: 'a b' });
  await wrong({ tag, name: 'x' });
  await wrong({ tag }, { scanMax: 0 });
  await wrong({ tag }, { dryrun: true });
  await expect(producer.erase({ tag }, { queues: 'mails' as unknown as readonly string[] })).rejects.toMatchObject({
    code: 'bad-input',
  });
});
