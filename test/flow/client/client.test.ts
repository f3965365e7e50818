import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Client, type ClientOptions, createClient, type QueueInput } from '../../../src/client/client.ts';
import { partitionOf } from '../../../src/job/job-id.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import type { Redis } from '../../../src/redis/connection/connect.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

let server: TestRedis;
let admin: Redis;
let producer: Client;
const extra: Client[] = [];
const emails = defineQueue<{ to: string }>('emails');

const open = async (options: Partial<ClientOptions> = {}) => {
  const made = createClient({ redis: server.url, ...options });
  extra.push(made);
  return made;
};
const key = (name: string, queue = 'emails', partition = 0) => `duestream:v1:{${queue}:${partition}}:${name}`;
const serverMs = async () => {
  const [seconds, micros] = await admin.time();
  return Number(seconds) * 1000 + Number(micros) / 1000;
};
/** How often the server carried out a command since its statistics were reset. */
const calls = async (command: string) =>
  Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(await admin.info('commandstats'))?.[1] ?? 0);
const scriptCalls = async () => (await calls('evalsha')) + (await calls('eval'));

beforeAll(async () => {
  server = await startRedis();
  admin = await server.client();
});
beforeEach(async () => {
  await admin.flushall();
  producer = await open();
});
afterEach(async () => {
  await Promise.all(extra.splice(0).map((made) => made.close()));
});
afterAll(() => server.stop());

describe('scheduling', () => {
  test('stores a job under its id, with its due, and says so', async () => {
    const at = new Date('2030-01-01T00:00:00Z');
    const result = await producer.schedule(emails, { to: 'a@b.c' }, { at, id: 'one', name: 'welcome' });
    expect(result).toEqual({ id: 'one', queue: 'emails', status: 'scheduled', dueMs: at.getTime() });
    expect(await admin.zscore(key('scheduled'), 'j:one')).toBe(String(at.getTime()));
    expect(await admin.hget(key('jobs'), 'j:one')).toBe(
      `1${at.getTime().toString(36)}|{"n":"welcome","d":{"to":"a@b.c"}}`,
    );
  });

  test('takes the name of a queue as well, and makes ids where none is given', async () => {
    const [a, b] = await Promise.all([producer.schedule('plain', 1), producer.schedule('plain', 2)]);
    expect(a.id).toMatch(/^[\w-]{22}$/);
    expect(new Set([a.id, b.id]).size).toBe(2);
    expect(await admin.zcard(key('scheduled', 'plain'))).toBe(2);
  });

  test('a delay is never shorter than asked by the clock of Redis, and longer by no more than the call takes', async () => {
    for (const delay of [1, 20, 1000]) {
      const before = await serverMs();
      const { dueMs } = await producer.schedule(emails, { to: 'x' }, { delay });
      expect(dueMs).toBeGreaterThanOrEqual(before + delay);
      expect(dueMs).toBeLessThanOrEqual((await serverMs()) + delay + 1);
    }
  });

  test('an instant that is past keeps its due, and may run now', async () => {
    const at = new Date(Date.now() - 86_400_000);
    const { id, dueMs } = await producer.schedule(emails, { to: 'x' }, { at });
    expect(dueMs).toBe(at.getTime());
    expect(await admin.zscore(key('scheduled'), `j:${id}`)).toBe(String(at.getTime()));
  });

  test('the same call again is already there, a different one exists, and an error when asked for', async () => {
    const at = new Date(Date.now() + 60_000);
    await producer.schedule(emails, { to: 'a' }, { id: 'x', at });
    expect(await producer.schedule(emails, { to: 'a' }, { id: 'x', at })).toMatchObject({ status: 'already' });
    const kept = { status: 'exists', dueMs: at.getTime() };
    expect(await producer.schedule(emails, { to: 'b' }, { id: 'x', delay: 5 })).toMatchObject(kept);
    await expect(
      producer.schedule(emails, { to: 'b' }, { id: 'x', delay: 5, ifExists: 'error' }),
    ).rejects.toMatchObject({
      code: 'exists',
      message: expect.stringContaining(`job x of queue emails exists already, due ${at.toISOString()}`),
    });
  });

  test('replacing puts the new data and due in the place of the old', async () => {
    await producer.schedule(emails, { to: 'old' }, { id: 'x', delay: '1h' });
    const replaced = await producer.schedule(emails, { to: 'new' }, { id: 'x', delay: '2h', ifExists: 'replace' });
    expect(replaced.status).toBe('replaced');
    expect(await producer.get(emails, 'x')).toMatchObject({ data: { to: 'new' }, dueMs: replaced.dueMs });
  });

  test('calls for one id are carried out in the order they were made, whatever their mode', async () => {
    const statuses = await Promise.all([
      producer.schedule(emails, { to: '1' }, { id: 'x', delay: '1h' }),
      producer.schedule(emails, { to: '2' }, { id: 'x', delay: '2h', ifExists: 'replace' }),
      producer.schedule(emails, { to: '3' }, { id: 'x', delay: '3h' }),
    ]);
    expect(statuses.map(({ status }) => status)).toEqual(['scheduled', 'replaced', 'exists']);
  });

  test('a namespace keeps its own keys', async () => {
    const other = await open({ namespace: 'shop' });
    await other.schedule(emails, { to: 'x' }, { id: 'x' });
    expect((await admin.keys('*')).filter((name) => !name.startsWith('shop:v1:'))).toEqual([]);
  });
});

describe('a preview', () => {
  test('says when a job would be due, its retries and what comes due beside it, and writes nothing', async () => {
    const retried = defineQueue<{ to: string }>('emails', {
      attempts: 3,
      backoff: { kind: 'ladder', steps: ['1m', '10m'] },
    });
    const atMs = Date.parse('2030-01-01T09:00:30Z');
    const near = (minutes: number, seconds = 0) => new Date(atMs + minutes * 60_000 + seconds * 1000);
    await producer.scheduleMany(
      emails,
      [near(0), near(0, 29), near(0, 30), near(-30), near(-31), near(30, 29), near(31)].map((at) => ({
        data: { to: 'a' },
        at,
      })),
    );
    const keys = (await admin.keys('*')).toSorted();
    const preview = await producer.preview(retried, { to: 'a@b.c' }, { at: near(0), name: 'welcome', id: 'x' });
    const counts = Array.from({ length: 61 }, (_, minute) => ({ 0: 1, 30: 2, 31: 1, 60: 1 })[minute] ?? 0);
    expect(preview).toEqual({
      queue: 'emails',
      name: 'welcome',
      dueMs: atMs,
      there: undefined,
      refusal: undefined,
      retries: [
        { attempt: 2, fromMs: atMs + 60_000, toMs: atMs + 60_000 },
        { attempt: 3, fromMs: atMs + 660_000, toMs: atMs + 660_000 },
      ],
      beside: { fromMs: Date.parse('2030-01-01T08:30:00Z'), stepMs: 60_000, counts },
    });
    expect((await producer.preview('never', 1)).refusal).toBeUndefined();
    expect((await admin.keys('*')).toSorted()).toEqual(keys);
    const { retries } = await producer.preview('never', 1, { attempts: 2 });
    expect((retries[0]?.toMs ?? 0) - (retries[0]?.fromMs ?? 0)).toBeGreaterThan(5000);
  });

  test('says what would refuse the job, and what is there already', async () => {
    const small = defineQueue('small', { maxPending: 1 });
    await producer.schedule(small, 1, { id: 'x', delay: '1h' });
    expect(await producer.preview(small, 2)).toMatchObject({ refusal: { kind: 'queue-full', limit: 1, pending: 1 } });
    expect(await producer.preview(small, 2, { id: 'x' })).toMatchObject({ there: { state: 'scheduled' } });
    await producer.tags.close('emails', 'paid', { for: '1h' });
    const closed = await producer.preview('emails', 1, { tags: ['other', 'paid'] });
    expect(closed.refusal).toMatchObject({ kind: 'closed', tag: 'paid' });
    const grouped = await producer.preview('emails', 1, { group: 'acme' });
    expect(grouped.refusal).toMatchObject({
      kind: 'unfit',
      why: expect.stringMatching(/group "acme".*not gated.*--fair/),
    });
    const costs = { kind: 'unfit', why: expect.stringMatching(/^the job has cost 3.*--costs/) };
    expect(await producer.preview('emails', 1, { cost: 3 })).toMatchObject({ refusal: costs });
    expect(await producer.preview(defineQueue('new', { rate: '9/s', costs: true }), 1, { cost: 3 })).not.toHaveProperty(
      'refusal.kind',
    );
    const target = { kind: 'unfit', why: expect.stringContaining('a target, and queue emails has none') };
    expect(await producer.preview('emails', 1, { target: '/orders/7' })).toMatchObject({ refusal: target });
    const line = defineQueue('line', { perGroup: { concurrency: 1, order: 'strict' } });
    const both = { group: 'acme', priority: 'high' } as const;
    expect(await producer.preview(line, 1, both)).toMatchObject({
      refusal: { kind: 'unfit', why: expect.stringContaining('strict order') },
    });
    await expect(producer.preview('emails', 1, { delay: 'soon' })).rejects.toThrow('delay is "soon"');
    await expect(producer.preview('emails', 1, { delai: 1 } as never)).rejects.toThrow('delai');
  });
});

describe('many calls at once', () => {
  test('10,000 calls of one turn cost a few script calls and declare the queue once', async () => {
    await admin.config('RESETSTAT');
    const results = await Promise.all(
      Array.from({ length: 10_000 }, (_, n) => producer.schedule(emails, { to: `${n}` }, { id: `${n}`, delay: '1h' })),
    );
    expect(results.map(({ id }) => id)).toEqual(Array.from({ length: 10_000 }, (_, n) => `${n}`));
    expect(results.every(({ status }) => status === 'scheduled')).toBe(true);
    expect(await admin.zcard(key('scheduled'))).toBe(10_000);
    // One of them declares the queue, and with it the schema of the namespace.
    expect(await scriptCalls()).toBe(41);
    expect(await calls('hsetnx')).toBe(1);
  });

  test('a script call carries at most 512 KiB', async () => {
    await admin.config('RESETSTAT');
    const data = { to: 'x'.repeat(200_000) };
    await Promise.all(Array.from({ length: 11 }, () => producer.schedule(emails, data)));
    // And one that declares the queue.
    expect(await scriptCalls()).toBe(7);
  });

  test('each caller has its own result, and a bad job costs its neighbours nothing', async () => {
    await producer.schedule(emails, { to: 'x' }, { id: 'taken', delay: '1h' });
    await admin.config('RESETSTAT');
    const settled = await Promise.allSettled([
      producer.schedule(emails, { to: 'x' }, { id: 'a' }),
      producer.schedule(emails, { to: 'x' }, { id: 'b', delay: Number.NaN }),
      producer.schedule(emails, { to: 'x' }, { id: 'taken', ifExists: 'error' }),
      producer.schedule(emails, { to: 'x'.repeat(300_000) }, { id: 'c' }),
      producer.schedule(emails, { to: 'x' }, { id: 'd' }),
    ]);
    const codes = settled.map((one) => (one.status === 'fulfilled' ? one.value.status : one.reason.code));
    expect(codes).toEqual(['scheduled', 'bad-input', 'exists', 'bad-input', 'scheduled']);
    expect(await scriptCalls()).toBe(1);
  });

  test('partitions each have their own script call, and every job is where its id says', async () => {
    const wide = defineQueue('wide', { partitions: 4 });
    const ids = Array.from({ length: 100 }, (_, n) => `job-${n}`);
    await Promise.all(ids.map((id) => producer.schedule(wide, {}, { id, delay: '1h' })));
    for (const id of ids) {
      expect(await admin.zscore(key('scheduled', 'wide', partitionOf(id, 4)), `j:${id}`)).not.toBeNull();
    }
  });

  test('a queue keeps the partitions it has, whatever a later producer thinks', async () => {
    await producer.schedule(defineQueue('wide', { partitions: 4 }), {}, { id: 'a' });
    const other = await open();
    await other.schedule(defineQueue('wide', { partitions: 2 }), {}, { id: 'b' });
    expect(await admin.hget('duestream:v1:{control}:queues', 'wide')).toBe('{"partitions":4,"generation":0}');
    expect(await admin.zscore(key('scheduled', 'wide', partitionOf('b', 4)), 'j:b')).not.toBeNull();
  });
});

describe('a queue that is resized', () => {
  const resize = async (queue: string, { partitions, generation }: { partitions: number; generation: number }) => {
    await admin.hset('duestream:v1:{control}:queues', queue, JSON.stringify({ partitions, generation }));
    for (let partition = 0; partition < partitions; partition += 1) {
      await admin.hset(key('meta', queue, partition), 'generation', generation);
    }
  };

  test('is looked up again, and its jobs go to their new partitions', async () => {
    await producer.schedule(emails, { to: 'x' }, { id: 'before' });
    await resize('emails', { partitions: 3, generation: 1 });
    const ids = Array.from({ length: 30 }, (_, n) => `after-${n}`);
    const results = await Promise.all(ids.map((id) => producer.schedule(emails, { to: 'x' }, { id, delay: '1h' })));
    expect(results.map(({ status }) => status)).toEqual(ids.map(() => 'scheduled'));
    for (const id of ids) {
      expect(await admin.zscore(key('scheduled', 'emails', partitionOf(id, 3)), `j:${id}`)).not.toBeNull();
    }
  });

  test('is looked up again for cancel and get as well', async () => {
    await producer.schedule(emails, { to: 'x' }, { id: 'before' });
    await resize('emails', { partitions: 3, generation: 1 });
    const other = await open();
    await other.schedule(emails, { to: 'x' }, { id: 'a', delay: '1h' });
    expect(await producer.get(emails, 'a')).toMatchObject({ state: 'scheduled', partition: partitionOf('a', 3) });
    await resize('emails', { partitions: 3, generation: 2 });
    expect(await producer.cancel(emails, 'a')).toEqual({ id: 'a', status: 'cancelled' });
  });

  test('is an error when its registry and its partitions never agree', async () => {
    await producer.schedule(emails, { to: 'x' });
    await admin.hset(key('meta'), 'generation', 9);
    await expect(producer.schedule(emails, { to: 'x' })).rejects.toMatchObject({ code: 'moved' });
    await expect(producer.cancel(emails, 'x')).rejects.toMatchObject({ code: 'moved' });
  });
});

describe('a producer', () => {
  test.each<[Partial<ClientOptions>, RegExp]>([
    [{ redis: 'localhost' }, /redis is "localhost"; allowed: redis:\/\/host:port\/db/],
    [{ namespace: 'Upper' }, /namespace name is "Upper"; allowed/],
    [{ horizon: '20y' }, /horizon is "20y"; allowed/],
    [{ horizon: '4000d' }, /horizon is "4000d"; allowed: 1000 to 315360000000 ms/],
    [{ dataBytesMax: 0 }, /dataBytesMax is 0; allowed: a whole number from 1 to 67108864/],
    [{ retryBudget: '6m' }, /retryBudget is "6m"; allowed: 0 to 300000 ms/],
    [{ retryBudget: '10s', doneWindow: '10s' }, /retryBudget is "10s"; allowed: 0 to 5000 ms/],
    [{ name: 'two words' }, /name is "two words"; allowed/],
  ])('refuses the options %j', (options, message) => {
    const refusal = { code: 'bad-config', message: expect.stringMatching(message) };
    expect(() => createClient({ redis: server.url, ...options })).toThrow(expect.objectContaining(refusal));
  });

  test.each<[unknown, RegExp]>([
    ['Emails', /queue name is "Emails"; allowed/],
    [7, /queue is 7; allowed: what defineQueue returned, or a name/],
    [null, /queue is null; allowed/],
    [{ name: 'a b' }, /queue is an object with the name "a b" that defineQueue did not return, or a copy of one/],
  ])('refuses the queue %j with a rejection and never throws', async (queue, message) => {
    const refusal = { code: 'bad-input', message: expect.stringMatching(message) };
    const input = queue as QueueInput<unknown>;
    await expect(producer.schedule(input, 1)).rejects.toMatchObject(refusal);
    await expect(producer.scheduleMany(input, [])).rejects.toMatchObject(refusal);
    await expect(producer.cancel(input, 'x')).rejects.toMatchObject(refusal);
    await expect(producer.get(input, 'x')).rejects.toMatchObject(refusal);
    await expect(producer.deadLetters.replay(input, '1-0')).rejects.toMatchObject(refusal);
  });

  test('does what was asked before it stopped, and refuses what comes after', async () => {
    const last = Array.from({ length: 600 }, () => producer.schedule(emails, { to: 'x' }));
    const many = producer.scheduleMany(emails, [{ data: { to: 'y' } }]);
    const stopping = producer.close();
    expect(producer.close()).toBe(stopping);
    await stopping;
    expect((await Promise.all(last)).length).toBe(600);
    expect((await many)[0]?.status).toBe('scheduled');
    for (const call of [
      producer.schedule(emails, { to: 'x' }),
      producer.scheduleMany(emails, []),
      producer.cancel(emails, 'x'),
      producer.cancel(emails, []),
      producer.get(emails, 'x'),
      producer.deadLetters.replay(emails, '1-0'),
    ]) {
      await expect(call).rejects.toMatchObject({ code: 'stopped' });
    }
  });

  test('leaves no connection and no timer behind', async () => {
    const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
    const before = timers();
    const named = createClient({ redis: server.url, name: 'short-lived' });
    await named.schedule(emails, { to: 'x' });
    expect(String(await admin.client('LIST'))).toContain('name=duestream:short-lived');
    await named.close();
    await expect.poll(async () => String(await admin.client('LIST'))).not.toContain('name=duestream:short-lived');
    // The driver gives a socket a moment to say goodbye. Who polls with timers would count those.
    for (let turns = 0; timers() > before && turns < 1_000_000; turns += 1) {
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
    expect(timers()).toBeLessThanOrEqual(before);
  });
});

describe('a queue that nobody has used', () => {
  const typo = defineQueue('emials', { partitions: 2, perGroup: 1 });
  /** Every key of the namespace, but what the audit and the clock leave. */
  const keys = async () => (await admin.keys('duestream:*')).toSorted();

  test('is an empty one to every look and change, and none of them makes it', async () => {
    await producer.schedule(emails, { to: 'a' }, { id: 'other', delay: '1h' });
    const before = { keys: await keys(), queues: await admin.hgetall('duestream:v1:{control}:queues') };
    const unknown = { status: 'unknown' };
    expect(await producer.get(typo, 'x')).toBeUndefined();
    expect((await producer.list(typo)).jobs).toEqual([]);
    expect((await producer.count(typo)).count).toBe(0);
    await producer.count(typo, { tag: 'a' });
    await producer.wait(typo, 'x', { timeout: '1ms' }).catch(() => undefined);
    expect(await producer.cancel(typo, 'x')).toMatchObject(unknown);
    expect(await producer.cancel(typo, ['x', 'y'])).toMatchObject([unknown, unknown]);
    await producer.cancel(typo, { tag: 'a' });
    expect(await producer.edit(typo, 'x', { attempts: 2 })).toMatchObject(unknown);
    expect(await producer.reschedule(typo, 'x', { delay: '1h' })).toMatchObject(unknown);
    expect(await producer.runNow(typo, 'x')).toMatchObject(unknown);
    await producer.deadLetters.list(typo);
    await producer.deadLetters.groups(typo);
    await producer.tags.list(typo);
    await producer.sets.list(typo);
    expect(await producer.tags.open(typo, 'tag')).toEqual({ opened: [] });
    const refused = [
      producer.sets.seal(typo, 'set'),
      producer.sets.remove(typo, 'set'),
      producer.groups.set(typo, 'acme', { weight: 2 }),
      producer.groups.unset(typo, 'acme'),
    ];
    for (const call of refused) await expect(call).rejects.toMatchObject({ code: 'not-found' });
    await producer.groups.list(typo).catch(() => undefined);
    await producer.groups.get(typo, 'acme').catch(() => undefined);
    await expect(producer.groups.close('emials', 'acme', { for: '1m' })).rejects.toMatchObject({ code: 'bad-input' });
    await producer.erase({ tag: 'user:1' }, { queues: ['emials'], dryRun: true }).catch(() => undefined);
    await producer.schedules.forecast({ until: '1h' }).catch(() => undefined);
    expect(await producer.schedules.preview({ queue: 'emials', every: '1h' }, { next: 1 })).toHaveLength(1);
    expect(await producer.schedules.get('nobody')).toBeUndefined();
    expect({ keys: await keys(), queues: await admin.hgetall('duestream:v1:{control}:queues') }).toEqual(before);
  });

  test('is seen by a client that looked before, as soon as another has used it', async () => {
    expect(await producer.get(typo, 'x')).toBeUndefined();
    await (await open()).schedule(defineQueue('emials', { partitions: 3 }), 1, { id: 'x', delay: '1h' });
    expect(await producer.get(typo, 'x')).toMatchObject({ state: 'scheduled' });
    await producer.schedule(typo, 1, { id: 'y', group: 'acme', delay: '1h' });
    const settings = await admin.hmget('duestream:v1:{control}:queues', 'emials', 'emials:perGroup', 'emials:asked');
    expect(settings).toEqual(['{"partitions":3,"generation":0}', '1', '2']);
  });

  test.each([
    ['a tag that is closed for jobs that come', () => producer.tags.close(typo, 'tag', { for: '1h' })],
    ['a set', () => producer.sets.begin(typo, 'nightly', { then: { data: 1, delay: '1h' } })],
    ['a group that is closed', () => producer.groups.close(typo, 'acme', { for: '1h' })],
    ['a schedule', () => producer.schedules.put('hourly', { queue: typo, every: '1h' })],
  ])('is made by %s, as its definition says', async (_, call) => {
    await call();
    const settings = await admin.hmget('duestream:v1:{control}:queues', 'emials', 'emials:perGroup');
    expect(settings).toEqual(['{"partitions":2,"generation":0}', '1']);
  });
});
