/** `import bullmq`: queues that BullMQ's own packages have made. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type Client, createClient } from '../../../src/client/client.ts';
import { type ImportOptions, type ImportParts, importBullmq } from '../../../src/import/bullmq/import.ts';
import { NO_MAP } from '../../../src/import/names.ts';
import { queueOf } from '../../../src/job/queue.ts';
import { DuestreamError } from '../../../src/kernel/errors.ts';
import { close, openCommands, whenReady } from '../../../src/redis/connection/connect.ts';
import { type BullVersion, bullVersions, useBullmq } from '../../support/bullmq.ts';
import { useCli } from '../../support/cli.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

const cli = useCli();
const HOUR_MS = 3_600_000;
/** The Redis of BullMQ, and ours. */
let there: TestRedis;
let here: TestRedis;
let old: Redis;
let own: Redis;
let client: Client;

beforeAll(async () => {
  there = await startRedis({ port: true });
  here = await startRedis({ port: true });
  old = await there.client();
  own = await here.client();
  client = createClient({ redis: here.url });
});
afterEach(async () => {
  await old.flushall();
  await own.flushall();
});
afterAll(async () => {
  await client.close();
  await there.stop();
  await here.stop();
});

// Behind the hook above: queues are closed before their server ends.
const bull = useBullmq(() => there);

interface Answer {
  readonly queues: Awaited<ReturnType<typeof importBullmq>>;
}

async function imported(...flags: readonly string[]): Promise<Answer['queues'][number]> {
  const args = ['import', 'bullmq', '--from', there.url, '--redis', here.url, '--json', ...flags];
  const { code, out, err } = await cli.run(args);
  expect({ code, err }).toEqual({ code: 0, err: '' });
  const [only] = (JSON.parse(out) as Answer).queues;
  if (only === undefined) throw new Error(out);
  return only;
}

/** Id → due time of every job of a queue here. */
async function dueTimes(queue: string): Promise<ReadonlyMap<string, number | undefined>> {
  const found = new Map<string, number | undefined>();
  for await (const { id, dueMs } of client.list(queue, { limit: 1000 })) found.set(id, dueMs);
  return found;
}

/** What BullMQ has of a queue beside its counters, its events and its settings. */
async function leftThere(queue: string): Promise<readonly string[]> {
  const keys = await old.keys(`bull:${queue}:*`);
  return keys.filter((key) => !/:(meta|id|events|marker|pc)$/.test(key)).sort();
}

const delayed = (count: number) =>
  Array.from({ length: count }, (_, nth) => ({
    name: 'remind',
    data: { nth },
    opts: { delay: HOUR_MS + nth * 1777, jobId: `order-${nth}`, attempts: 4 },
  }));

describe.each(bullVersions)('BullMQ %i', (version) => {
  test('a thousand delayed jobs and three schedulers are here, due to the millisecond, and leave BullMQ', async () => {
    const queue = bull.queue(version, 'reminders');
    const jobs = await queue.addBulk(delayed(1000));
    const due = new Map(jobs.map(({ id = '', timestamp }, nth) => [id, timestamp + HOUR_MS + nth * 1777]));
    const options = { attempts: 3, backoff: { type: 'exponential', delay: 1000 } };
    await queue.upsertJobScheduler(
      'nightly',
      { pattern: '30 2 * * *', tz: 'Europe/Berlin' },
      { name: 'report', data: { kind: 'night' }, opts: options },
    );
    await queue.upsertJobScheduler('monthly', { pattern: '0 4 1 * *', tz: 'UTC' }, { name: 'report' });
    await queue.upsertJobScheduler('often', { every: 7 * 60_000 }, { name: 'sync', data: { n: 1 } });
    const next = new Map((await queue.getJobSchedulers()).map(({ key, next: ms }) => [key, ms]));

    const done = await imported();
    expect(done.version).toMatch(new RegExp(`^bullmq.*:${version}\\.`));
    expect(done.places).toEqual({
      schedulers: { found: 3, imported: 3, there: 0, covered: 0, left: 0 },
      delayed: { found: 1002, imported: 1000, there: 0, covered: 2, left: 0 },
      // The first job of an interval is due at once.
      wait: { found: 1, imported: 1, there: 0, covered: 0, left: 0 },
    });
    const first = `repeat:often:${next.get('often')}`;
    expect(await dueTimes('reminders')).toEqual(new Map([...due, [first, next.get('often')]]));
    for (const name of ['nightly', 'monthly'])
      expect((await client.schedules.get(`reminders:${name}`))?.nextMs).toBe(next.get(name));
    const often = await client.schedules.get('reminders:often');
    expect(often?.nextMs).toBe((next.get('often') ?? 0) + 7 * 60_000);
    expect((await client.schedules.get('reminders:nightly'))?.input).toMatchObject({
      job: 'report',
      data: { kind: 'night' },
      attempts: 3,
      zone: 'Europe/Berlin',
    });
    expect(await client.get('reminders', 'order-7')).toMatchObject({ data: { nth: 7 }, name: 'remind' });
    expect(await leftThere('reminders')).toEqual([]);
  });

  test('a scheduler with a limit makes as many jobs as it would, and none once it is over', async () => {
    const queue = bull.queue(version, 'calls');
    await queue.upsertJobScheduler('twice', { every: HOUR_MS, limit: 2 }, { name: 'call', opts: { attempts: 1 } });
    await queue.upsertJobScheduler('once', { every: HOUR_MS, limit: 1 }, { name: 'call', opts: { attempts: 1 } });
    expect((await imported('--copy', '--queue', 'calls')).places).toMatchObject({ wait: { found: 2, imported: 2 } });
    expect((await client.schedules.get('calls:twice'))?.input).toMatchObject({ maxRuns: 1 });
    expect((await client.schedules.list()).schedules.map(({ name }) => name)).toEqual(['calls:twice']);
    await bull.fail(version, 'calls', 2);
    // The second job of the one waits now, and the other one is over.
    expect((await imported()).places).toMatchObject({
      schedulers: { found: 2, left: 1 },
      delayed: { found: 1, covered: 1 },
    });
    expect((await client.schedules.list()).schedules.map(({ name }) => name)).toEqual(['calls:twice']);
    expect((await client.schedules.get('calls:twice'))?.input).toMatchObject({ maxRuns: 1 });
  });

  test('an import that is made again finds nothing, and a copy finds what is there', async () => {
    await bull.queue(version, 'mails').addBulk(delayed(250));
    expect((await imported('--copy')).places.delayed).toMatchObject({ found: 250, imported: 250, there: 0 });
    expect((await imported('--copy')).places.delayed).toMatchObject({ found: 250, imported: 0, there: 250 });
    expect((await imported()).places.delayed).toMatchObject({ found: 250, imported: 0, there: 250 });
    expect((await imported()).places).toEqual({});
    expect((await dueTimes('mails')).size).toBe(250);
  });

  test('a dry run says what would come, and writes nothing', async () => {
    const queue = bull.queue(version, 'paymentReminders');
    await queue.addBulk(delayed(3));
    await queue.upsertJobScheduler('nightly', { pattern: '30 2 * * *' }, { name: 'send it' });
    await queue.add('now', {}, { lifo: true, priority: 2 });
    const digests = () => Promise.all([old, own].map((redis) => redis.call('DEBUG', 'DIGEST')));
    const before = await digests();
    const args = ['import', 'bullmq', '--from', there.url, '--redis', here.url, '--dry-run'];
    const { code, out } = await cli.run(args);
    expect(await digests()).toEqual(before);
    expect(code).toBe(0);
    expect(out).toMatch(/paymentReminders {2}payment-reminders {2}delayed +4 +3 +0 +1 +0\n/);
    expect(out).toMatch(/paymentReminders {2}payment-reminders {2}prioritized +1 +1 +0 +0 +0\n/);
    expect(out).toContain('paymentReminders: 1 differ: lifo has no counterpart');
    expect(out).toContain('paymentReminders: 1 differ: jobs have other names here, such as send-it for send it');
    expect(out).toContain(
      'schedulers without tz follow the clock of the worker in BullMQ; here they follow that of UTC',
    );
    expect(out).toMatch(/nothing was written\n$/);
  });

  test('waiting jobs come in their order, also those of a paused queue', async () => {
    const queue = bull.queue(version, 'mails');
    await queue.pause();
    for (const nth of [1, 2, 3]) await queue.add('mail', { nth });
    const done = await imported();
    expect(done).toMatchObject({ isPaused: true });
    const places = Object.values(done.places);
    expect(places.map(({ found }) => found)).toEqual([3]);
    const ids: string[] = [];
    for await (const { id } of client.list('mails', { sort: 'due' })) ids.push(id);
    expect(ids).toEqual(['1', '2', '3']);
    expect(await queue.getJobCounts()).toMatchObject({ waiting: 0 });
  });

  test('a job that has failed goes on with the attempts that are left, and waits as long as it would', async () => {
    const queue = bull.queue(version, 'calls');
    await queue.add(
      'call',
      { to: 'a' },
      { jobId: 'call-a', attempts: 5, backoff: { type: 'exponential', delay: 60_000 } },
    );
    await bull.fail(version, 'calls');
    const done = await imported();
    expect(done.places.delayed).toMatchObject({ imported: 1 });
    expect(done.notes).toEqual([expect.objectContaining({ count: 1, ids: ['call-a'] })]);
    expect((await client.get('calls', 'call-a'))?.options).toMatchObject({
      attempts: 4,
      backoff: { kind: 'exponential', delayMs: 120_000, factor: 2, jitter: 'none' },
    });
  });

  test('jobs that have failed for good stay, unless they are to run again', async () => {
    const queue = bull.queue(version, 'calls');
    await queue.addBulk([1, 2].map((nth) => ({ name: 'call', data: { nth }, opts: { jobId: `call-${nth}` } })));
    await bull.fail(version, 'calls', 2);
    expect(await imported()).toMatchObject({
      places: { failed: { found: 2, left: 2 } },
      left: [{ count: 2, text: expect.stringContaining('--failed') }],
    });
    expect(await queue.getJobCounts()).toMatchObject({ failed: 2 });
    expect((await imported('--failed')).places.failed).toMatchObject({ found: 2, imported: 2, left: 0 });
    expect((await client.get('calls', 'call-1'))?.options).toMatchObject({ attempts: 1 });
    expect(await queue.getJobCounts()).toMatchObject({ failed: 0 });
  });

  test('the job that holds a deduplication id has that id here, and BullMQ lets it go', async () => {
    const queue = bull.queue(version, 'invoices');
    const options = { delay: HOUR_MS, deduplication: { id: 'invoice-7', ttl: HOUR_MS } };
    await queue.add('remind', { nth: 1 }, options);
    await queue.add('remind', { nth: 2 }, options);
    const done = await imported();
    expect(done.places.delayed).toMatchObject({ imported: 1 });
    expect(done.notes.map(({ text }) => text).join()).toContain('these jobs had ttl');
    expect(await client.get('invoices', 'invoice-7')).toMatchObject({
      data: { nth: 1 },
      headers: { 'bullmq-id': '1' },
    });
    const again = await client.schedule('invoices', { nth: 3 }, { id: 'invoice-7' });
    expect(again.status).toBe('exists');
    expect(await leftThere('invoices')).toEqual([]);
  });

  test('a flow stays as it is', async () => {
    const leaf = { name: 'part', queueName: 'films', data: { part: 1 } };
    await bull.flow(version, { name: 'whole', queueName: 'films', children: [leaf] });
    const before = await leftThere('films');
    expect(await imported()).toMatchObject({
      parents: 1,
      places: { wait: { found: 1, left: 1 } },
      left: [{ text: expect.stringContaining('flow') }],
    });
    expect(await leftThere('films')).toEqual(before);
  });
});

// What an import leaves behind that is cut short: the process is killed between two calls.

async function withParts(
  act: (parts: ImportParts) => Promise<void>,
  changes: Partial<ImportParts> = {},
): Promise<void> {
  const redis = openCommands({ redis: there.url, name: 'import' });
  await whenReady(redis);
  const limits = { horizonMs: 3650 * 24 * HOUR_MS, dataBytesMax: 262_144 };
  const parts = { redis, client, queueOf, limits, windowMs: 600_000, onProgress: () => undefined };
  try {
    await act({ ...parts, ...changes });
  } finally {
    close(redis);
  }
}

const MOVE: ImportOptions = {
  prefix: 'bull',
  queues: ['mails'],
  names: NO_MAP,
  mode: 'move',
  failed: false,
  again: false,
  zone: 'UTC',
  durability: {},
};

/** Dies at the nth job, which is made here or not. */
function dyingAt(nth: number, { isMade }: { readonly isMade: boolean }): Client {
  let calls = 0;
  const schedule = async (...given: Parameters<Client['schedule']>) => {
    calls += 1;
    if (calls < nth || isMade) await client.schedule(...given);
    if (calls >= nth) throw new DuestreamError('unavailable', 'killed');
    return { id: '', queue: '', status: 'scheduled', dueMs: 0 } as const;
  };
  return { ...client, schedule: schedule as Client['schedule'] };
}

describe('an import that is cut short', () => {
  const version: BullVersion = 6;

  test.each([true, false])(
    'goes on where it was, and makes no job twice (its last jobs are here: %s)',
    async (isMade) => {
      const jobs = await bull.queue(version, 'mails').addBulk(delayed(500));
      const dying = dyingAt(300, { isMade });
      await withParts((parts) => expect(importBullmq(parts, MOVE)).rejects.toThrow('killed'), { client: dying });
      const cut = await old.hlen('bull:mails:duestream:taken');
      expect(cut).toBe(200);
      const done = await imported();
      expect(done.places['cut short']?.found).toBe(cut);
      expect(done.places.delayed).toMatchObject({ found: 100, imported: 100 });
      expect(done.taken).toBe(0);
      const due = new Map(jobs.map(({ id = '', timestamp }, nth) => [id, timestamp + HOUR_MS + nth * 1777]));
      expect(await dueTimes('mails')).toEqual(due);
      expect(await leftThere('mails')).toEqual([]);
    },
  );

  test('and whose jobs may have run since leaves them, until somebody says that they are to be made again', async () => {
    await bull.queue(version, 'mails').add('mail', {}, { jobId: 'a' });
    const dying = dyingAt(1, { isMade: false });
    await withParts((parts) => expect(importBullmq(parts, MOVE)).rejects.toThrow('killed'), { client: dying });
    // Nobody remembers an end for any time.
    const forgetful = { windowMs: 0 };
    await withParts(async (parts) => {
      const [left] = await importBullmq(parts, MOVE);
      expect(left).toMatchObject({ taken: 1, left: [{ count: 1, ids: ['a'] }] });
      const [again] = await importBullmq(parts, { ...MOVE, again: true });
      expect(again).toMatchObject({ taken: 0, places: { 'cut short': { imported: 1 } } });
    }, forgetful);
    expect([...(await dueTimes('mails')).keys()]).toEqual(['a']);
  });

  test('ends with 1 as long as a job is taken and not made', async () => {
    await bull.queue(version, 'mails').addBulk(delayed(2));
    await client.schedule('mails', { mine: true }, { id: 'order-1' });
    const args = ['import', 'bullmq', '--from', there.url, '--redis', here.url];
    const { code, out } = await cli.run(args);
    expect(code).toBe(1);
    expect(out).toContain('mails: 1 left: another job of this id lives here, which stays as it was (exists) (order-1)');
    expect(out).toContain('mails: 1 job taken there and not made here: repeat the command');
    await client.cancel('mails', 'order-1');
    expect((await imported()).places).toEqual({
      'cut short': { found: 1, imported: 1, there: 0, covered: 0, left: 0 },
    });
  });
});

describe('names', () => {
  test('of a file come before those that are made', async () => {
    writeFileSync(
      join(cli.folder, 'names.json'),
      '{"queues":{"paymentReminders":"payments"},"jobs":{"send it":"send"}}',
    );
    await bull.queue(6, 'paymentReminders').add('send it', {}, { jobId: 'two words' });
    const done = await imported('--map', 'names.json');
    expect(done).toMatchObject({ from: 'paymentReminders', to: 'payments' });
    const [[id = ''] = []] = [...(await dueTimes('payments'))];
    expect(await client.get('payments', id)).toMatchObject({ name: 'send', headers: { 'bullmq-id': 'two%20words' } });
  });

  test('that would be one here are refused before anything is written', async () => {
    await bull.queue(6, 'sendMail').add('a', {});
    await bull.queue(6, 'send-mail').add('a', {});
    const args = ['import', 'bullmq', '--from', there.url, '--redis', here.url];
    expect(await cli.run(args)).toMatchObject({
      code: 64,
      err: expect.stringContaining('would both be send-mail here'),
    });
    expect(await own.dbsize()).toBe(0);
    expect((await imported('--queue', 'sendMail')).to).toBe('send-mail');
  });

  test('of queues that are not there are refused with the nearest one', async () => {
    await bull.queue(6, 'mails', { prefix: 'app:bull' }).add('a', {});
    const args = ['import', 'bullmq', '--from', there.url, '--redis', here.url];
    expect(await cli.run(args)).toMatchObject({ code: 1, err: expect.stringContaining('--prefix') });
    const prefixed = [...args, '--prefix', 'app:bull'];
    expect(await cli.run([...prefixed, '--queue', 'mail'])).toMatchObject({
      code: 1,
      err: expect.stringContaining('did you mean mails?'),
    });
    expect(await cli.run(prefixed)).toMatchObject({ code: 0 });
  });
});

test('flags that do not go together, and a file that is none, are refused', async () => {
  const run = (...flags: readonly string[]) => cli.run(['import', 'bullmq', '--from', there.url, ...flags]);
  expect(await cli.run(['import', 'bullmq'])).toMatchObject({ code: 64, err: expect.stringContaining('--from') });
  expect(await run('--copy', '--dry-run')).toMatchObject({ code: 64, err: expect.stringContaining('both given') });
  expect(await run('--zone', 'Berlin')).toMatchObject({ code: 64 });
  expect(await run('--map', 'missing.json')).toMatchObject({ code: 64, err: expect.stringContaining('missing.json') });
});
