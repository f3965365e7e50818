/** `ifExists: 'update'` of the library, on a real Redis: what becomes of a job in each state, in each window, and in races. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { clientSettings } from '../../../src/client/calls/settings.ts';
import { type BulkJob, type Client, clientOver, createClient, type Scheduled } from '../../../src/client/client.ts';
import { createCalls } from '../../../src/client/session.ts';
import { createDaemon } from '../../../src/daemon/daemon.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { createWorker } from '../../../src/worker/worker.ts';
import { openLossyLine } from '../../support/lossy-line.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

const HOUR_MS = 3_600_000;
const day = (nth: number) => new Date(Math.floor(Date.now() / HOUR_MS) * HOUR_MS + nth * 24 * HOUR_MS);
const mails = defineQueue<unknown>('mails', {
  partitions: 2,
  attempts: 3,
  backoff: { kind: 'fixed', delayMs: HOUR_MS, jitter: 'none' },
});
const update = { ifExists: 'update' } as const;
const ends: (() => unknown)[] = [];
let server: TestRedis;
let client: Client;
beforeAll(async () => {
  server = await startRedis();
});
beforeEach(async () => {
  await (await server.client()).flushall();
  client = createClient({ redis: server.url });
});
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
  await client.close();
});
afterAll(() => server.stop());

const seen = (id: string) => client.get(mails, id);

/** A daemon, and a worker that does what the data of a job says. */
async function working() {
  const daemon = createDaemon({ redis: server.url, roles: ['mover'] });
  await daemon.start();
  ends.push(() => daemon.stop());
  const started: { readonly id: string; readonly go: () => void }[] = [];
  const calls: BulkJob<unknown>[] = [];
  const told: Scheduled[] = [];
  const worker = createWorker(
    mails,
    async ({ id, data }, context) => {
      if (data === 'fail') throw new Error('no');
      if (data === 'call')
        for (const { data: own, ...options } of calls.splice(0)) told.push(await context.schedule(mails, own, options));
      if (data === 'hold') await new Promise<void>((go) => started.push({ id, go }));
    },
    { redis: server.url },
  );
  await worker.start();
  ends.push(() => worker.stop());
  ends.push(() => {
    for (const { go } of started) go();
  });
  return { started, calls, told };
}

/** A job in each state, with a tag, two attempts and a name of its own. */
async function inEachState() {
  const { started, ...working_ } = await working();
  const own = { tags: ['invoice:7'], attempts: 2, name: 'dun' };
  await client.scheduleMany(mails, [
    { id: 'waits', data: 'old', at: day(1), ...own },
    { id: 'runs', data: 'hold', ...own },
    { id: 'retries', data: 'fail', ...own },
    { id: 'done', data: 'old', ...own },
    { id: 'dead', data: 'fail', ...own, attempts: 1 },
    { id: 'cancelled', data: 'old', at: day(1), ...own },
  ]);
  await client.cancel(mails, 'cancelled');
  const states = async () =>
    Promise.all(['runs', 'retries', 'done', 'dead'].map(async (id) => (await seen(id))?.state));
  await expect.poll(states).toEqual(['running', 'scheduled', 'done', 'dead']);
  expect((await seen('retries'))?.attempts).toBe(1);
  expect(started.map(({ id }) => id)).toEqual(['runs']);
  return working_;
}

const dueMs = day(3).getTime();
const IDS = ['absent', 'waits', 'retries', 'runs', 'done', 'dead', 'cancelled'];
const NEWS: readonly BulkJob<unknown>[] = IDS.map((id) => ({ id, data: 'new', at: day(3), ...update }));
const statusOf = ({ status, over }: Scheduled) => (over === undefined ? status : `${status} ${over}`);

/** How a call is made: all are to answer the same. */
const WINDOWS: Readonly<
  Record<string, (made: Awaited<ReturnType<typeof inEachState>>) => Promise<readonly Scheduled[]>>
> = {
  'calls of their own': () => Promise.all(NEWS.map(({ data, ...options }) => client.schedule(mails, data, options))),
  'one list': () => client.scheduleMany(mails, NEWS),
  'a middleware': () => {
    client.use({ schedule: (call, next) => next(call) });
    return client.scheduleMany(mails, NEWS);
  },
  'a handler': async ({ calls, told }) => {
    calls.push(...NEWS);
    await client.schedule(mails, 'call');
    await expect.poll(() => told).toHaveLength(NEWS.length);
    return told;
  },
};

describe('what a call of an id does that is there', () => {
  test.each(Object.keys(WINDOWS))('is the same in %s', async (window) => {
    const working_ = await inEachState();
    const results = (await WINDOWS[window]?.(working_)) ?? [];
    expect(results.map(statusOf)).toEqual([
      'scheduled',
      'updated',
      'updated',
      'running',
      'already done',
      'already dead',
      'already cancelled',
    ]);
    expect(results.slice(0, 3).map((one) => one.dueMs)).toEqual([dueMs, dueMs, dueMs]);
    expect(await seen('absent')).toMatchObject({ state: 'scheduled', data: 'new', dueMs, name: 'default' });
    const kept = { state: 'scheduled', data: 'new', dueMs, name: 'dun', tags: ['invoice:7'], options: { attempts: 2 } };
    expect(await seen('waits')).toMatchObject(kept);
    expect(await seen('retries')).toMatchObject({ ...kept, attempts: 1 });
    expect(await seen('runs')).toMatchObject({ state: 'running', data: 'hold' });
    for (const id of ['done', 'dead', 'cancelled']) expect((await seen(id))?.state).toBe(id);
    const again = await client.scheduleMany(mails, NEWS);
    expect(again.map(statusOf).slice(0, 4)).toEqual(['already', 'already', 'already', 'running']);
  });

  test('updates a job that is due and was not started', async () => {
    const daemon = createDaemon({ redis: server.url, roles: ['mover'] });
    await daemon.start();
    ends.push(() => daemon.stop());
    await client.schedule(mails, 'old', { id: 'a', tags: ['t'] });
    await expect.poll(async () => (await seen('a'))?.state).toBe('ready');
    expect(await client.schedule(mails, 'new', { id: 'a', ...update })).toMatchObject({ status: 'updated' });
    expect(await seen('a')).toMatchObject({ state: 'ready', data: 'new', tags: ['t'] });
    expect(await client.schedule(mails, 'new', { id: 'a', at: day(1), ...update })).toMatchObject({
      status: 'updated',
      dueMs: day(1).getTime(),
    });
    expect(await seen('a')).toMatchObject({ state: 'scheduled', dueMs: day(1).getTime() });
  });

  test('makes the job when its end is forgotten', async () => {
    const forgetful = createClient({ redis: server.url, doneWindow: 0 });
    ends.push(() => forgetful.close());
    await forgetful.schedule(mails, 1, { id: 'a', at: day(1) });
    await forgetful.cancel(mails, 'a');
    expect(await forgetful.schedule(mails, 2, { id: 'a', at: day(1), ...update })).toMatchObject({
      status: 'scheduled',
    });
  });
});

describe('what a call names', () => {
  const all = {
    tags: ['a'],
    attempts: 4,
    timeout: '1m',
    backoff: { kind: 'fixed', delayMs: 5, jitter: 'none' },
    expiresAt: day(9),
    maxLateness: '1h',
    onLate: 'dead',
    headers: { trace: '1' },
    name: 'dun',
  } as const;

  test('changes, each option and nothing else', async () => {
    const others = {
      tags: ['b', 'c'],
      attempts: 5,
      timeout: '2m',
      backoff: { kind: 'fixed', delayMs: 6, jitter: 'none' },
      expiresAt: day(8),
      maxLateness: '2h',
      headers: { trace: '2' },
      name: 'other',
    } as const;
    for (const [name, value] of Object.entries(others)) {
      const [once, edited] = [`once-${name}`, `edited-${name}`];
      await client.scheduleMany(
        mails,
        [once, edited].map((id) => ({ id, data: 1, at: day(1), ...all })),
      );
      expect(await client.schedule(mails, undefined, { id: once, [name]: value, ...update })).toMatchObject({
        status: 'updated',
        dueMs: day(1).getTime(),
      });
      await client.edit(mails, edited, { [name]: value });
      const shown = (await Promise.all([seen(once), seen(edited)])).map((job) => ({
        ...job,
        id: '',
        nowMs: 0,
        partition: 0,
        etag: '',
      }));
      expect(shown[0], name).toEqual(shown[1]);
    }
  });

  test('is taken back to what its queue says where that is named', async () => {
    await client.schedule(mails, 1, { id: 'a', at: day(1), ...all });
    await client.schedule(mails, 1, {
      id: 'a',
      headers: {},
      maxLateness: '1h',
      onLate: 'drop',
      name: 'default',
      ...update,
    });
    expect(await seen('a')).toMatchObject({ name: 'default', data: 1, options: { attempts: 4, onLate: 'drop' } });
    expect((await seen('a'))?.headers).toBeUndefined();
  });

  test('is nothing but the data where nothing else is named: the due time stays', async () => {
    await client.schedule(mails, 1, { id: 'a', at: day(1), ...all });
    expect(await client.schedule(mails, 2, { id: 'a', ...update })).toEqual({
      id: 'a',
      queue: 'mails',
      status: 'updated',
      dueMs: day(1).getTime(),
    });
    expect(await seen('a')).toMatchObject({ data: 2, dueMs: day(1).getTime(), name: 'dun', tags: ['a'] });
  });

  test('is the name as well, where the data are checked by the name; and data go through the codec once', async () => {
    const codec = {
      encode: (text: string) => Buffer.from(text).toString('base64'),
      decode: (text: string) => Buffer.from(text, 'base64').toString(),
    };
    const queue = defineQueue('sealed', {
      codec,
      jobs: { default: z.object({ to: z.string() }), dun: z.object({ sum: z.number() }) },
    });
    await client.schedule(queue, { sum: 1 }, { id: 'a', name: 'dun', at: day(1), tags: ['t'] });
    expect(await client.schedule(queue, { sum: 2 }, { id: 'a', name: 'dun', ...update })).toMatchObject({
      status: 'updated',
    });
    const dataOf = async () => JSON.parse(codec.decode(String((await client.get(queue, 'a'))?.data)));
    expect(await dataOf()).toEqual({ sum: 2 });
    await client.schedule(queue, { to: 'ada' }, { id: 'a', ...update });
    expect(await client.get(queue, 'a')).toMatchObject({ name: 'default', tags: ['t'], dueMs: day(1).getTime() });
    expect(await dataOf()).toEqual({ to: 'ada' });
    await expect(client.schedule(queue, { to: 7 as never }, { id: 'a', ...update })).rejects.toMatchObject({
      code: 'bad-input',
    });
  });

  test('is refused where the job could never start, and nothing is changed', async () => {
    await client.schedule(mails, 1, { id: 'a', at: day(1), expiresAt: day(2) });
    await expect(client.schedule(mails, 2, { id: 'a', at: day(3), ...update })).rejects.toMatchObject({
      code: 'bad-input',
    });
    const [made, refused] = await Promise.allSettled([
      client.schedule(mails, 2, { id: 'b', at: day(3), ...update }),
      client.schedule(mails, 2, { id: 'a', at: day(3), ...update }),
    ]);
    expect([made.status, refused.status]).toEqual(['fulfilled', 'rejected']);
    expect(await seen('a')).toMatchObject({ data: 1, dueMs: day(1).getTime() });
  });

  test('of a job whose record cannot be read is nothing: the job stays', async () => {
    await client.schedule(mails, 1, { id: 'a', at: day(1) });
    const redis = await server.client();
    for (const partition of [0, 1]) {
      const key = `duestream:v1:{mails:${partition}}:jobs`;
      const record = await redis.hget(key, 'j:a');
      if (record) await redis.hset(key, 'j:a', record.replace(/\|.*/, '|not JSON'));
    }
    expect(await client.schedule(mails, 2, { id: 'a', ...update })).toMatchObject({
      status: 'exists',
      dueMs: day(1).getTime(),
    });
  });
});

describe('calls that race', () => {
  test('of one client take effect in their order, in a turn and in a list, beside calls of other kinds', async () => {
    const turn = [
      client.schedule(mails, 0, { id: 'a', at: day(1), tags: ['t'] }),
      client.schedule(mails, 1, { id: 'a', at: day(2), ...update }),
      client.edit(mails, 'a', { attempts: 7 }),
      client.schedule(mails, 2, { id: 'a', ...update }),
      client.schedule(mails, 3, { id: 'a', at: day(3), ...update }),
      client.schedule(mails, 9, { id: 'a', at: day(9) }),
      client.reschedule(mails, 'a', { at: day(4) }),
      client.schedule(mails, 4, { id: 'a', ...update }),
    ];
    const statuses = (await Promise.all(turn)).map(({ status }) => status);
    expect(statuses).toEqual([
      'scheduled',
      'updated',
      'edited',
      'updated',
      'updated',
      'exists',
      'rescheduled',
      'updated',
    ]);
    expect(await seen('a')).toMatchObject({ data: 4, dueMs: day(4).getTime(), tags: ['t'], options: { attempts: 7 } });
    const list = Array.from({ length: 6 }, (_, nth) => ({ id: 'b', data: nth, at: day(nth + 1), ...update }));
    expect((await client.scheduleMany(mails, list)).map(({ status }) => status)).toEqual([
      'scheduled',
      ...Array.from({ length: 5 }, () => 'updated'),
    ]);
    expect(await seen('b')).toMatchObject({ data: 5, dueMs: day(6).getTime() });
  });

  test('of several clients keep what each of them names', async () => {
    const clients = Array.from({ length: 4 }, () => createClient({ redis: server.url }));
    ends.push(...clients.map((one) => () => one.close()));
    await Promise.all(clients.map((one) => one.ready()));
    const named = [{ tags: ['t'] }, { attempts: 9 }, { timeout: '7s' }, { maxLateness: '3h' }] as const;
    for (let round = 0; round < 10; round += 1) {
      const id = `r${round}`;
      const results = await Promise.all(
        clients.map((one, nth) =>
          one.schedule(mails, nth === 0 ? round : undefined, { id, at: day(1), ...named[nth], ...update }),
        ),
      );
      expect(results.map(({ status }) => status).toSorted()).toEqual(['scheduled', 'updated', 'updated', 'updated']);
      expect(await seen(id)).toMatchObject({
        data: round,
        tags: ['t'],
        options: { attempts: 9, timeoutMs: 7000, maxLatenessMs: 3 * HOUR_MS },
      });
    }
  });

  /** A call between whose look and edit something else is done. */
  async function withBetween(data: unknown, act: (id: string) => Promise<unknown>): Promise<Scheduled> {
    const settings = clientSettings({ redis: server.url });
    const session = createCalls(settings);
    const other = clientOver(settings, session);
    ends.push(() => other.close());
    const { jobs } = (await session.connected()).finding;
    const { edit } = jobs;
    const acts = [act];
    Object.assign(jobs, {
      async edit(...call: Parameters<typeof edit>) {
        await acts.pop()?.('a');
        return edit(...call);
      },
    });
    return other.schedule(mails, data, { id: 'a', ...update });
  }

  test('see that the job was edited, ended or forgotten between their look and their edit', async () => {
    const made = () => client.schedule(mails, 'old', { id: 'a', at: day(1) });
    await made();
    expect(await withBetween('new', (id) => client.edit(mails, id, { tags: ['t'] }))).toMatchObject({
      status: 'updated',
    });
    expect(await seen('a')).toMatchObject({ data: 'new', tags: ['t'] });
    expect(await withBetween('newer', (id) => client.cancel(mails, id))).toMatchObject({
      status: 'already',
      over: 'cancelled',
    });
    expect((await seen('a'))?.state).toBe('cancelled');
    await made();
    const forgetful = createClient({ redis: server.url, doneWindow: 0 });
    ends.push(() => forgetful.close());
    expect(await withBetween('anew', (id) => forgetful.cancel(mails, id))).toMatchObject({ status: 'scheduled' });
    expect((await seen('a'))?.data).toBe('anew');
  });

  test('see that the job was started between their look and their edit', async () => {
    const { started } = await working();
    await client.schedule(mails, 'hold', { id: 'a', at: day(1) });
    const start = async (id: string) => {
      await client.runNow(mails, id);
      await expect.poll(() => started).toHaveLength(1);
    };
    expect(await withBetween('new', start)).toMatchObject({ status: 'running' });
    expect((await seen('a'))?.data).toBe('hold');
  });
});

describe('a reply that is lost', () => {
  async function lossy() {
    const line = await openLossyLine(server);
    ends.push(() => line.close());
    const other = createClient({ redis: line.url, retryBudget: '10s' });
    ends.push(() => other.close());
    await other.ready();
    await other.schedule(mails, 0, { id: 'warm', at: day(1), ...update });
    await other.schedule(mails, 1, { id: 'warm', at: day(1), ...update });
    return { line, other };
  }

  test('of the call that made the job, leaves one job as the call says', async () => {
    const { line, other } = await lossy();
    line.loseReplyTo('schedule');
    expect(await other.schedule(mails, 1, { id: 'a', at: day(1), tags: ['t'], ...update })).toMatchObject({
      status: 'already',
      dueMs: day(1).getTime(),
    });
    expect(line.lost()).toBe(1);
    expect(await seen('a')).toMatchObject({ data: 1, tags: ['t'] });
  });

  test('of the edit, leaves the job updated once', async () => {
    const { line, other } = await lossy();
    await client.schedule(mails, 1, { id: 'a', at: day(1) });
    line.loseReplyTo('edit');
    expect(await other.schedule(mails, 2, { id: 'a', at: day(2), ...update })).toMatchObject({
      status: 'updated',
      dueMs: day(2).getTime(),
    });
    expect(line.lost()).toBe(1);
    expect(await seen('a')).toMatchObject({ data: 2, dueMs: day(2).getTime() });
  });

  test.each(['schedule', 'edit'])('of %s, never undoes what somebody changed since', async (verb) => {
    const { line, other } = await lossy();
    if (verb === 'edit') await client.schedule(mails, 1, { id: 'a', at: day(1) });
    line.loseReplyTo(verb);
    const call = other.schedule(mails, 2, { id: 'a', at: day(1), ...update });
    call.catch(() => undefined);
    await expect.poll(() => line.hasPassed()).toBe(true);
    line.shut(true);
    await expect.poll(async () => (await seen('a'))?.data).toBe(2);
    await client.edit(mails, 'a', { data: 3 });
    line.shut(false);
    await expect(call).rejects.toMatchObject({
      code: 'indeterminate',
      cause: { unconfirmed: [{ id: 'a', dueMs: day(1).getTime() }] },
    });
    expect((await seen('a'))?.data).toBe(3);
    expect(await other.schedule(mails, 2, { id: 'a', at: day(1), ...update })).toMatchObject({ status: 'updated' });
  });
});
