/** Dead letters from the library: looked at, counted, replayed and removed, over two partitions, after lost replies too. */

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Client, createClient } from '../../../src/client/client.ts';
import type { DeadLetters, ReplayedLetters } from '../../../src/client/dead/dead-letters.ts';
import { partitionOf } from '../../../src/job/job-id.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { close, openCommands, type Redis, whenReady } from '../../../src/redis/connection/connect.ts';
import { partitionRef } from '../../../src/redis/keys.ts';
import { declareQueue } from '../../../src/redis/scripts/queues.ts';
import { openLossyLine } from '../../support/lossy-line.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

const DAY_MS = 86_400_000;
const mails = defineQueue<{ to: string }>('mails', { partitions: 2 });
const refs = [0, 1].map((partition) => partitionRef('duestream', { queue: 'mails', partition, layoutGeneration: 0 }));
let server: TestRedis;
let redis: Redis;
let dead: DeadLetters;
let client: Client;

beforeAll(async () => {
  server = await startRedis();
  redis = openCommands({ redis: server.url, name: 'test' });
  await whenReady(redis);
});
beforeEach(async () => {
  await redis.flushall();
  await declareQueue(redis, { namespace: 'duestream', queue: 'mails', partitions: 2 });
  for (const { keys } of refs) await redis.hset(keys.meta, 'generation', '0');
  client = createClient({ redis: server.url });
  dead = client.deadLetters;
});
afterEach(() => client.close());
afterAll(async () => {
  close(redis);
  await server.stop();
});

interface Died {
  readonly partition?: number;
  readonly days?: number;
  readonly reason?: string;
  readonly name?: string;
  readonly tags?: string;
  readonly error?: string;
}

/** A dead letter of a job that is not there any more. */
async function died(id: string, { partition = 0, days = 0, ...more }: Died = {}): Promise<string> {
  const { keys } = refs[partition] ?? refs[0] ?? { keys: { dead: '' } };
  const { reason = 'attempts-exhausted', name, tags, error = 'boom' } = more;
  const atMs = Date.now() - days * DAY_MS;
  const header = `1${(1_763_719_000_000).toString(36)}${tags === undefined ? '' : `;t=${tags}`}`;
  const record = `${header}|${JSON.stringify({ ...(name && { n: name }), d: { to: id } })}`;
  const history = JSON.stringify({ t: atMs, a: 5, k: 'failure', m: error });
  const fields = { member: `j:${id}`, record, reason, history, token: 7, attempts: 5, generation: 0, at: atMs };
  return String(await redis.xadd(keys.dead, `${Math.floor(atMs)}-*`, ...Object.entries(fields).flat()));
}

const left = async () =>
  (await Promise.all(refs.map(({ keys }) => redis.xlen(keys.dead)))).reduce((sum, count) => sum + count, 0);
const waiting = async () => (await Promise.all(refs.map(({ keys }) => redis.zcard(keys.scheduled)))).flat();
const ids = async (filter: Parameters<DeadLetters['list']>[1]) =>
  (await dead.list(mails, filter)).deadLetters.map(({ id }) => id);

describe('a list', () => {
  test('has the newest first over all partitions, page by page, each exactly once', async () => {
    for (const [nth, id] of ['a', 'b', 'c', 'd', 'e'].entries()) await died(id, { days: 9 - nth, partition: nth % 2 });
    const found: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await dead.list(mails, {}, { limit: 2, cursor });
      found.push(...page.deadLetters.map(({ id }) => id));
      cursor = page.cursor;
    } while (cursor !== undefined);
    expect(found).toEqual(['e', 'd', 'c', 'b', 'a']);
  });

  test('says everything but the data, and get says that too', async () => {
    const deadLetter = await died('a', { name: 'welcome', tags: 'user:42,vip', partition: 1 });
    const [row] = (await dead.list(mails)).deadLetters;
    expect(row).toEqual({
      deadLetter,
      queue: 'mails',
      partition: 1,
      id: 'a',
      bare: false,
      name: 'welcome',
      tags: ['user:42', 'vip'],
      reason: 'attempts-exhausted',
      error: 'boom',
      attempts: 5,
      generation: 0,
      readable: true,
      failures: 0,
      crashes: 0,
      deferred: undefined,
      etag: expect.any(String),
      history: [{ atMs: expect.any(Number), attempt: 5, kind: 'failure', message: 'boom' }],
      overMs: expect.any(Number),
      askedDueMs: 1_763_719_000_000,
    });
    expect(await dead.get(mails, deadLetter)).toEqual({
      ...row,
      data: { to: 'a' },
      codec: undefined,
      options: { tags: ['user:42', 'vip'] },
    });
    expect(await dead.get(mails, '1-1')).toBeUndefined();
  });

  test('keeps to each filter', async () => {
    await died('a', { name: 'welcome', tags: 'user:1,user:2', days: 3 });
    await died('b', { name: 'invoice', tags: 'user:1', reason: 'no-handler' });
    await died('c', { error: 'no user 4711 in "eu"', partition: 1 });
    expect(await ids({ name: 'welcome' })).toEqual(['a']);
    expect(await ids({ name: 'default' })).toEqual(['c']);
    expect(await ids({ tag: 'user:1' })).toEqual(['b', 'a']);
    expect(await ids({ tag: 'user:' })).toEqual([]);
    expect(await ids({ reason: 'no-handler' })).toEqual(['b']);
    expect(await ids({ id: 'c' })).toEqual(['c']);
    expect(await ids({ error: 'no user # in "…"' })).toEqual(['c']);
    expect(await ids({ olderThan: '2d' })).toEqual(['a']);
    expect(await ids({ newerThan: '2d', tag: 'user:1' })).toEqual(['b']);
  });

  test('of handlers that gave a text as the reason are one group, and codes of answers are several', async () => {
    for (const nth of [1, 2, 3]) {
      const text = `550 no such user u${nth}@example.org`;
      await died(`u${nth}`, { reason: text, error: text });
    }
    for (const code of [503, 410]) await died(`h${code}`, { reason: `HTTP ${code} for order ${code}1`, error: 'x' });
    const { groups } = await dead.groups(mails);
    expect(groups.map(({ count, reason }) => [count, reason]).sort()).toEqual([
      [1, 'HTTP 410 for order #'],
      [1, 'HTTP 503 for order #'],
      [3, '550 no such user u#@example.org'],
    ]);
    expect(await ids({ reason: '550 no such user u#@example.org' })).toEqual(['u3', 'u2', 'u1']);
    expect(await ids({ reason: '550 no such user u2@example.org' })).toEqual(['u2']);
  });

  test('ends when it has looked at enough, and says so', async () => {
    for (const id of ['a', 'b', 'c']) await died(id);
    const page = await dead.list(mails, { id: 'a' }, { scanMax: 2 });
    expect(page).toMatchObject({ deadLetters: [], scanned: 2, cursor: expect.any(String) });
    expect((await dead.list(mails, { id: 'a' }, { cursor: page.cursor })).deadLetters).toHaveLength(1);
  });

  test('shows what cannot be read', async () => {
    await redis.xadd(refs[0]?.keys.dead ?? '', '*', 'member', 'j:x', 'record', 'no record', 'reason', 'unreadable');
    expect((await dead.list(mails)).deadLetters).toMatchObject([{ id: 'x', readable: false, name: undefined }]);
  });
});

test('groups count what died alike, numbers and ids aside, the largest first', async () => {
  await died('c', { reason: 'no-handler', name: 'x', days: 1 });
  await died('a', { error: 'timeout after 5003 ms for 7f9c24e8-3b12-4fef-91e0-5c1a2b3c4d5e', days: 0.5 });
  const newest = await died('b', {
    error: 'timeout after 17 ms for 0b9c24e8-3b12-4fef-91e0-5c1a2b3c4d5e',
    partition: 1,
  });
  const { groups, scanned, cursor, others } = await dead.groups(mails);
  expect({ scanned, cursor, others }).toEqual({ scanned: 3, cursor: undefined, others: 0 });
  expect(groups).toMatchObject([
    { count: 2, reason: 'attempts-exhausted', error: 'timeout after # ms for #', name: 'default' },
    { count: 1, reason: 'no-handler', error: 'boom', name: 'x' },
  ]);
  expect(groups[0]?.example).toEqual({ deadLetter: newest, partition: 1, id: 'b' });
});

describe('a replay', () => {
  test('of one is that of a producer', async () => {
    const deadLetter = await died('a');
    expect(await dead.replay(mails, deadLetter)).toMatchObject({ status: 'scheduled', id: 'a' });
    expect(await left()).toBe(0);
  });

  test('of many takes what the filter names, spreads it over a time, and tells how far it is', async () => {
    for (let nth = 0; nth < 120; nth += 1) await died(`a${nth}`, { name: 'welcome', partition: nth % 2 });
    await died('other');
    const told: ReplayedLetters[] = [];
    const over = 600_000;
    const beforeMs = Date.now();
    const result = await dead.replay(mails, { name: 'welcome' }, { over, onProgress: (one) => told.push(one) });
    expect(result).toMatchObject({ matched: 120, changed: 120, skipped: {}, cursor: undefined });
    expect(told.map(({ changed }) => changed)).toEqual([50, 100]);
    expect(await left()).toBe(1);
    expect(await waiting()).toEqual([60, 60]);
    const dues = (await redis.zrange(refs[0]?.keys.scheduled ?? '', '0', '-1', 'WITHSCORES')).filter(
      (_, at) => at % 2 === 1,
    );
    const spread = Math.max(...dues.map(Number)) - Math.min(...dues.map(Number));
    expect(spread).toBeGreaterThan(over / 2);
    expect(Math.min(...dues.map(Number))).toBeGreaterThan(beforeMs - 5000);
  });

  test('of many is bounded, and goes on by its cursor or without', async () => {
    for (const id of ['a', 'b', 'c', 'd']) await died(id);
    const first = await dead.replay(mails, {}, { all: true, limit: 1 });
    const second = await dead.replay(mails, {}, { all: true, limit: 2, cursor: first.cursor });
    expect([first.changed, second.changed, await left()]).toEqual([1, 2, 1]);
    expect(await dead.replay(mails, {}, { all: true })).toMatchObject({ changed: 1, cursor: undefined });
  });

  test('of many leaves what lives and what holds nothing, and names it', async () => {
    const live = await died('live');
    const { keys } = refs[0] ?? { keys: { dead: '', jobs: '', scheduled: '' } };
    await redis.hset(keys.jobs, 'j:live', '1a|{}');
    await redis.zadd(keys.scheduled, Date.now() + DAY_MS, 'j:live');
    const empty = String(await redis.xadd(keys.dead, '*', 'member', 'j:e', 'record', '', 'reason', 'record-missing'));
    const { changed, skipped, refused } = await dead.replay(mails, {}, { all: true });
    expect({ changed, skipped }).toEqual({ changed: 0, skipped: { live: 1, empty: 1 } });
    expect(refused).toEqual([
      { deadLetter: empty, partition: 0, id: 'e', status: 'empty' },
      { deadLetter: live, partition: 0, id: 'live', status: 'live' },
    ]);
  });

  test('of many with a lost reply does each once', async () => {
    for (const id of ['a', 'b', 'c']) await died(id);
    const line = await openLossyLine(server);
    const throughClient = createClient({ redis: line.url });
    const through = throughClient.deadLetters;
    try {
      await through.list(mails);
      line.loseReplyTo('replay');
      expect(await through.replay(mails, {}, { all: true })).toMatchObject({ matched: 3, changed: 3, skipped: {} });
      expect(await left()).toBe(0);
    } finally {
      await throughClient.close();
      await line.close();
    }
  });
});

describe('dead letters that are named', () => {
  test('are replayed by a list, such as rows, each with its result', async () => {
    await died('a');
    await died('b', { partition: 1 });
    const { deadLetters: rows } = await dead.list(mails);
    const done = await dead.replay(mails, [...rows, { job: 'nobody' }], { delay: '1h' });
    expect(done.map(({ id, status }) => `${id} ${status}`)).toEqual([
      ...rows.map(({ id }) => `${id} scheduled`),
      'nobody gone',
    ]);
    expect(await left()).toBe(0);
  });

  test('are removed, one or a list, each if it is what was seen', async () => {
    await died('c', { partition: partitionOf('c', 2), days: 2 });
    const second = await died('b', { days: 1 });
    const first = await died('a', { partition: partitionOf('a', 2) });
    expect(await dead.remove(mails, first, { ifMatch: 'other' })).toEqual({ deadLetter: first, status: 'changed' });
    expect(await dead.remove(mails, { job: 'a' }, { ifMatch: '*' })).toEqual({ deadLetter: first, status: 'removed' });
    expect(await dead.remove(mails, first)).toEqual({ deadLetter: first, status: 'gone' });
    expect(await dead.remove(mails, [second, { job: 'c' }, { job: 'c' }])).toMatchObject([
      { deadLetter: second, status: 'removed' },
      { status: 'removed' },
      { deadLetter: undefined, status: 'gone' },
    ]);
    expect(await left()).toBe(0);
  });

  test('one whose reply was lost counts as removed', async () => {
    const first = await died('a');
    const line = await openLossyLine(server);
    await using through = createClient({ redis: line.url });
    await through.deadLetters.list(mails);
    line.loseReplyTo('purge');
    expect(await through.deadLetters.remove(mails, first)).toEqual({ deadLetter: first, status: 'removed' });
    expect(line.lost()).toBe(1);
    await line.close();
  });

  test.each(['dryRun', 'limit', 'over', 'all'])('take no %s', async (name) => {
    const options = { [name]: 1 };
    await expect(dead.replay(mails, '1-1', options)).rejects.toThrow(`${name} is given to replay with one id; it goes`);
    await expect(dead.replay(mails, ['1-1'], options)).rejects.toThrow(`${name} is given to replay with a list`);
  });
});

describe('a purge', () => {
  test.each([{ reason: 'no-handler' }, { name: 'welcome' }, { tag: 'vip' }, { olderThan: '7d' }])(
    'takes what %o names and nothing else, and a dry run only counts',
    async (filter) => {
      await died('gone', { reason: 'no-handler', name: 'welcome', tags: 'vip', days: 8, partition: 1 });
      await died('stays', { days: 1 });
      expect(await dead.remove(mails, filter, { dryRun: true })).toMatchObject({ matched: 1, changed: 0 });
      expect(await left()).toBe(2);
      expect(await dead.remove(mails, filter)).toMatchObject({ matched: 1, changed: 1, cursor: undefined });
      expect(await ids({})).toEqual(['stays']);
      expect(await redis.hget(refs[1]?.keys.meta ?? '', 'n.forgotten')).toBe('1');
    },
  );

  test.each([{ name: 'default' }, { reason: 'attempts-exhausted' }])(
    'by %o is bounded, and goes on',
    async (filter) => {
      for (let nth = 0; nth < 7; nth += 1) await died(`a${nth}`, { partition: nth % 2 });
      const first = await dead.remove(mails, filter, { limit: 3 });
      expect(first).toMatchObject({ changed: 3, cursor: expect.any(String) });
      expect(await dead.remove(mails, filter, { cursor: first.cursor })).toMatchObject({
        changed: 4,
        cursor: undefined,
      });
      expect(await left()).toBe(0);
    },
  );
});

test('what nobody can mean is refused before anything is sent', async () => {
  await died('a');
  const refusals = [
    [() => dead.remove(mails, {}), /the filter of remove names nothing.*or all: true/],
    [() => dead.replay(mails, {}), /names nothing/],
    [
      () => dead.remove(mails, { reasom: 'x' } as never),
      /reasom is not an option of the filter of remove; did you mean reason/,
    ],
    [() => dead.list(mails, {}, { cursor: 'x' }), /cursor is "x"; allowed: the cursor that the call before replied/],
    [() => dead.list(mails, {}, { limit: 0 }), /limit is 0; allowed: a whole number from 1 to 1000/],
    [() => dead.list(mails, { name: '' }), /name is ""; allowed: a text/],
    [() => dead.get(mails, 'a'), /dead letter is "a"; allowed: its id/],
    [() => dead.replay(mails, { id: 'a' }, { over: '31d' }), /over is/],
    [() => dead.replay(mails, { id: 'a' }, { overr: '1d' } as never), /overr is not an option of/],
  ] as const;
  for (const [call, message] of refusals) await expect(call()).rejects.toThrow(message);
  expect(await left()).toBe(1);
  expect(() => createClient({ redis: server.url, nam: 'x' } as never)).toThrow('nam is not an option');
});

describe('an overview of all queues', () => {
  beforeEach(async () => {
    await declareQueue(redis, { namespace: 'duestream', queue: 'sms', partitions: 1 });
  });
  const sms = partitionRef('duestream', { queue: 'sms', partition: 0, layoutGeneration: 0 });

  /** In the queue `sms` too: its dead letters are those of the first partition of `mails`, moved. */
  async function inSms(id: string, more: Died): Promise<void> {
    const entry = await died(id, more);
    const keys = refs[0]?.keys.dead ?? '';
    const [[, fields = []] = ['', []]] = await redis.xrange(keys, entry, entry);
    await redis.xadd(sms.keys.dead, entry, ...fields);
    await redis.xdel(keys, entry);
  }

  test('has the kinds of trouble, the one that came last first, with what their jobs share', async () => {
    await died('a', { days: 2.9, error: 'HTTP 503 for order 1', name: 'welcome', tags: 'eu' });
    await died('d', { days: 2.5, error: 'no such user' });
    await died('b', { days: 2, partition: 1, error: 'HTTP 503 for order 2', name: 'welcome' });
    await inSms('{acme}c', { days: 1, error: 'HTTP 503 for order 3', tags: 'eu' });
    const { kinds, others, scanned, untilMs, stepMs, unread } = await dead.overview();
    expect([kinds.length, others, scanned, untilMs, unread]).toEqual([2, 0, 4, undefined, []]);
    expect(kinds[0]).toMatchObject({
      reason: 'attempts-exhausted',
      error: 'HTTP 503 for order #',
      count: 3,
      shares: {
        queue: [
          { value: 'mails', count: 2 },
          { value: 'sms', count: 1 },
        ],
        name: [
          { value: 'welcome', count: 2 },
          { value: 'default', count: 1 },
        ],
        group: [{ value: 'acme', count: 1 }],
        tag: [{ value: 'eu', count: 2 }],
      },
      example: { queue: 'sms', partition: 0, id: '{acme}c' },
    });
    expect(stepMs).toBe(3_600_000);
    expect(kinds[0]?.times.map(({ count }) => count)).toEqual([1, 1, 1]);
    expect(kinds[1]).toMatchObject({ error: 'no such user', count: 1 });
  });

  test('is of some queues, by a filter, and says how far back it has looked', async () => {
    for (const days of [3, 2, 1]) await died(`m${days}`, { days, error: `e${'abc'[days - 1]}` });
    await inSms('s', { error: 'other' });
    const errorsOf = async (...asked: Parameters<DeadLetters['overview']>) =>
      (await dead.overview(...asked)).kinds.map(({ error }) => error);
    expect(await errorsOf({ queues: ['mails'] })).toEqual(['ea', 'eb', 'ec']);
    expect(await errorsOf({ newerThan: '36h' })).toEqual(['other', 'ea']);
    expect(await errorsOf({ olderThan: '36h' })).toEqual(['eb', 'ec']);
    const cut = await dead.overview({ scanMax: 2 });
    expect(cut).toMatchObject({ scanned: 2, untilMs: expect.any(Number) });
    expect(cut.kinds.map(({ error }) => error)).toEqual(['other', 'ea']);
    await expect(dead.overview({ limit: 2 } as never)).rejects.toThrow('limit is not an option of overview');
  });

  test('names a queue that does not answer', async () => {
    await died('a');
    await redis.set(sms.keys.dead, 'a person did this');
    const { kinds, unread } = await dead.overview();
    expect([kinds.length, unread]).toEqual([1, [{ queue: 'sms', why: expect.stringContaining('WRONGTYPE') }]]);
  });
});
