/** Queues through the library: each method, what it refuses, its audit, and what a lost reply and a cut leave. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { auditEntries } from '../../../src/access/audit.ts';
import { type Client, type ClientOptions, createClient } from '../../../src/client/client.ts';
import { queueChanges, queueDiary } from '../../../src/inspect/diary.ts';
import { defineQueue, type QueueInput } from '../../../src/job/queue.ts';
import type { Redis } from '../../../src/redis/connection/connect.ts';
import { controlKeys } from '../../../src/redis/keys.ts';
import { openLossyLine } from '../../support/lossy-line.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

let server: TestRedis;
let line: Awaited<ReturnType<typeof openLossyLine>>;
let redis: Redis;
let client: Client;
const ends: (() => unknown)[] = [];
const mail = defineQueue('mail', { partitions: 3, rate: '100/s' });

beforeEach(async () => {
  server = await startRedis();
  line = await openLossyLine(server);
  redis = await server.client();
  client = open({});
  await client.schedule(mail, {}, { id: 'a', delay: '1h' });
});
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
  await line.close();
  await server.stop();
});

function open(options: Partial<ClientOptions>): Client {
  const made = createClient({ redis: line.url, retryBudget: '5s', ...options });
  ends.push(made.close);
  return made;
}

const audited = async () => {
  const entries = await auditEntries({ redis, namespace: 'duestream' }, { limit: 100 });
  return entries.map(({ way, verb, queue, count, reason }) => [way, verb, queue, count, reason]).toReversed();
};

/** Each method that changes something: its call, what it answers, the same call again, and its entry in the audit. */
const CHANGES: readonly {
  readonly verb: string;
  readonly before?: (all: Client['queues']) => Promise<unknown>;
  readonly call: (all: Client['queues'], queue: QueueInput<unknown>) => Promise<unknown>;
  readonly first: object;
  readonly again: object;
  readonly audit: readonly [count: number, reason?: string];
}[] = [
  {
    verb: 'set',
    call: (all, queue) => all.set(queue, { rate: '10/s', maxPending: 5 }, { reason: 'they ask' }),
    first: { changed: ['maxPending', 'rate'], settings: { rate: '10/s', maxPending: 5 } },
    again: { changed: [] },
    audit: [2, 'they ask'],
  },
  {
    verb: 'unset',
    before: (all) => all.set(mail, { rate: '10/s' }),
    call: (all, queue) => all.unset(queue, 'rate', { reason: 'it is over' }),
    first: { changed: ['rate'], settings: { rate: '100/s' }, overrides: [] },
    again: { changed: [] },
    audit: [1, 'it is over'],
  },
  {
    verb: 'pause',
    call: (all, queue) => all.pause(queue, { reason: 'the server moves' }),
    first: { status: 'changed', pause: { reason: 'the server moves' }, running: 0 },
    again: { status: 'same', pause: { reason: 'the server moves' } },
    audit: [1, 'the server moves'],
  },
  {
    verb: 'resume',
    before: (all) => all.pause('mail', { reason: 'r' }),
    call: (all, queue) => all.resume(queue),
    first: { status: 'changed', pause: { reason: 'r' } },
    again: { status: 'same', pause: undefined },
    audit: [1],
  },
  {
    verb: 'close',
    call: (all, queue) => all.close(queue, { for: '10m', reason: 'down' }),
    first: { status: 'changed' },
    again: { status: 'same' },
    audit: [1, 'down'],
  },
  {
    verb: 'open',
    before: (all) => all.close(mail, { for: '10m' }),
    call: (all, queue) => all.open(queue),
    first: { status: 'changed' },
    again: { status: 'same' },
    audit: [1],
  },
];

describe.each(CHANGES)('queues.$verb', ({ verb, before, call, first, again, audit: [count, reason] }) => {
  test('changes the queue once, answers so, and is in the audit', async () => {
    await before?.(client.queues);
    const noted = await audited();
    expect(await call(client.queues, mail)).toMatchObject(first);
    // The longest closing wins, and that of the same call again would be a little longer.
    if (verb === 'close') await client.queues.close(mail, { for: '1h' });
    expect(await call(client.queues, mail)).toMatchObject(again);
    const own = (await audited()).slice(noted.length);
    expect(own[0]).toEqual(['program', `queues.${verb}`, 'mail', count, reason]);
    expect(own).toHaveLength(verb === 'close' ? 2 : 1);
  });

  test('of a queue that nobody has used is refused, and declares none', async () => {
    await expect(call(client.queues, 'mial')).rejects.toMatchObject({
      code: 'not-found',
      message: expect.stringContaining('did you mean mail?'),
    });
    expect((await client.queues.list()).queues.map(({ queue }) => queue)).toEqual(['mail']);
  });
});

describe('the audit has of a program', () => {
  test('what it sets for groups and schedules, and who asked to say why', async () => {
    await client.groups.set(mail, 'acme', { concurrency: 2 }, { reason: 'they pay' });
    await client.groups.unset(mail, 'acme', { reason: 'no more' });
    await client.schedules.put('nightly', { queue: 'mail', cron: '0 3 * * *' });
    await client.schedules.put('nightly', { queue: 'mail', cron: '0 3 * * *' });
    await client.schedules.pause('nightly', 'the database moves');
    await client.schedules.remove('nightly');
    expect(await audited()).toEqual([
      ['program', 'groups.set', 'mail', 1, 'they pay'],
      ['program', 'groups.unset', 'mail', 1, 'no more'],
      ['program', 'schedules.put', 'mail', 1, undefined],
      ['program', 'schedules.pause', 'mail', 1, 'the database moves'],
      ['program', 'schedules.rm', 'mail', 1, undefined],
    ]);
  });

  test('what it was before and what it is now: settings, limits, rules', async () => {
    await client.queues.set(mail, { rate: '10/s' });
    await client.groups.set(mail, 'acme', { concurrency: 2 });
    await client.groups.set(mail, 'acme', { concurrency: 3 });
    await client.schedules.put('nightly', { queue: 'mail', cron: '0 3 * * *', data: { to: 'ada' } });
    await client.schedules.put('nightly', { queue: 'mail', cron: '0 4 * * *', data: { to: 'bob' } });
    await client.schedules.remove('nightly');
    const entries = await auditEntries({ redis, namespace: 'duestream' }, { limit: 10 });
    expect(entries.map(({ verb, before, after }) => [verb, before, after]).toReversed()).toEqual([
      ['queues.set', { rate: '100/s' }, { rate: '10/s' }],
      ['groups.set', undefined, { concurrency: 2 }],
      ['groups.set', { concurrency: 2 }, { concurrency: 3 }],
      ['schedules.put', undefined, { queue: 'mail', cron: '0 3 * * *', data: '…' }],
      ['schedules.put', { cron: '0 3 * * *', data: '…' }, { cron: '0 4 * * *', data: '…' }],
      ['schedules.rm', { queue: 'mail', cron: '0 4 * * *', data: '…' }, undefined],
    ]);
  });

  test('the changes that are asked for, and no others', async () => {
    await client.queues.pause(mail);
    await client.groups.set(mail, 'acme', { concurrency: 2 });
    await client.schedules.put('nightly', { queue: 'reports', cron: '0 3 * * *' });
    const verbs = async (filter: Partial<Parameters<typeof auditEntries>[1]>) =>
      (await auditEntries({ redis, namespace: 'duestream' }, { limit: 10, ...filter })).map(({ verb }) => verb);
    const [newest] = await auditEntries({ redis, namespace: 'duestream' }, { limit: 1 });
    const atMs = newest?.atMs ?? 0;
    expect(await verbs({ queue: 'mail' })).toEqual(['groups.set', 'queues.pause']);
    expect(await verbs({ target: 'acme' })).toEqual(['groups.set']);
    expect(await verbs({ verb: 'queues' })).toEqual(['queues.pause']);
    expect(await verbs({ verb: 'queues.paus' })).toEqual([]);
    expect(await verbs({ who: 'nobody' })).toEqual([]);
    expect(await verbs({ fromMs: atMs })).toContain('schedules.put');
    expect(await verbs({ fromMs: atMs + 1 })).toEqual([]);
    expect(await verbs({ toMs: atMs - 60_000 })).toEqual([]);
    expect(await verbs({ queue: 'mail', limit: 1 })).toEqual(['groups.set']);
    expect(await verbs({ before: newest?.entry, verb: 'groups' })).toEqual(['groups.set']);
  });

  test('no change of a job: programs make those by the thousand', async () => {
    await client.reschedule(mail, 'a', { delay: '2h' });
    await client.cancel(mail, 'a');
    await client.tags.close(mail, 'invoice:7', { for: '1d' });
    expect(await audited()).toEqual([]);
  });

  test('a change whose entry cannot be written: the call resolves all the same', async () => {
    const { audit: key } = controlKeys('duestream');
    await redis.set(key, 'no stream');
    await expect(client.queues.pause(mail)).resolves.toMatchObject({ status: 'changed' });
  });
});

describe('the diary has', () => {
  const told = async () =>
    (
      await queueDiary({ redis, namespace: 'duestream' }, 'mail', { fromMs: 0, toMs: Number.MAX_SAFE_INTEGER })
    ).entries.map(({ what, by, why, partitions, before, after }) => ({ what, by, why, partitions, before, after }));

  test('what a call does to all partitions once, and who did it and why', async () => {
    await client.queues.pause(mail, { reason: 'it moves', by: 'ada' });
    await client.queues.resume(mail, { by: 'bob' });
    await client.queues.close(mail, { for: '1h', reason: 'down', by: 'ada' });
    await client.queues.open(mail);
    expect(await told()).toMatchObject([
      { what: 'paused', by: 'ada', why: 'it moves', partitions: 3 },
      { what: 'resumed', by: 'bob', partitions: 3 },
      { what: 'closed', by: 'ada', why: 'down', partitions: 3 },
      { what: 'opened', by: expect.stringContaining('@'), partitions: 3 },
    ]);
  });

  test('of some time no older change, which is not read for it', async () => {
    await client.queues.pause(mail, { reason: 'it moves', by: 'ada' });
    const place = { redis, namespace: 'duestream' };
    const { entries } = await queueDiary(place, 'mail', { fromMs: 0, toMs: Number.MAX_SAFE_INTEGER });
    const lastMs = Math.max(...entries.map(({ atMs }) => atMs));
    const since = (fromMs: number) => queueChanges(place, 'mail', { fromMs, toMs: Number.MAX_SAFE_INTEGER });
    expect(await since(0)).toEqual(entries);
    expect(await since(lastMs + 60_000)).toEqual([]);
  });

  test('settings that somebody or a definition changes, with what they were', async () => {
    await client.queues.set(mail, { rate: '10/s' }, { reason: 'they ask', by: 'ada' });
    await client.queues.set(mail, { rate: '10/s' }, { by: 'ada' });
    await client.queues.unset(mail, 'rate', { by: 'bob' });
    await client.groups.set(mail, 'acme', { concurrency: 2 }, { by: 'ada' });
    await open({}).schedule(defineQueue('mail', { partitions: 3, rate: '50/s' }), {}, { id: 'b', delay: '1h' });
    expect(await told()).toMatchObject([
      { what: 'set', by: 'ada', why: 'they ask', before: { rate: '100/s' }, after: { rate: '10/s' } },
      { what: 'set', by: 'bob', before: { rate: '10/s' }, after: { rate: '100/s' } },
      { what: 'set', by: 'ada', before: {}, after: { groups: { acme: { concurrency: 2 } } } },
      { what: 'set', why: 'its definition says so', before: { rate: '100/s' }, after: { rate: '50/s' } },
    ]);
  });
});

describe('what a call is given', () => {
  test.each<[string, (all: Client['queues']) => Promise<unknown>, string]>([
    ['a misspelt setting', (all) => all.set('mail', { rat: '1/s' } as object), 'did you mean rate?'],
    ['no setting', (all) => all.set('mail', {}), 'nothing is to be changed; allowed: one or more of history'],
    ['a setting to take back that there is not', (all) => all.unset('mail', 'rat' as 'rate'), 'did you mean rate?'],
    ['a reason that is no text', (all) => all.pause('mail', { reason: 7 as unknown as string }), 'reason is 7'],
    ['a misspelt option', (all) => all.remove('mail', { forced: true } as object), 'did you mean force?'],
    ['a force that is a text', (all) => all.remove('mail', { force: 'no' as never }), 'force is "no"; allowed: true'],
    ['no end of a closing', (all) => all.close('mail', {} as { for: string }), 'for is undefined'],
    ['queues that are no list', (all) => all.list({ queues: 'mail' as never }), 'queues is "mail"; allowed: a list'],
    ['a cap of no jobs', (all) => all.why('mail', { readyMax: 0 }), 'readyMax is 0; allowed: a whole number'],
  ])('%s is refused before anything is sent, also while Redis is away', async (_what, call, text) => {
    await server.stop();
    await expect(call(client.queues)).rejects.toMatchObject({
      code: 'bad-input',
      message: expect.stringContaining(text),
    });
  });

  test('means what it was when the call was made', async () => {
    const settings = { maxPending: 5 };
    const done = client.queues.set(mail, settings);
    settings.maxPending = 6;
    expect((await done).settings).toMatchObject({ maxPending: 5 });
  });
});

test('a look shows counts, settings and reasons, of all queues or of those that are named', async () => {
  await client.schedule('bills', {}, { id: 'b' });
  const { queues } = client;
  expect((await queues.list()).queues).toMatchObject([
    { queue: 'bills', scheduled: 1, partitions: 1 },
    { queue: 'mail', scheduled: 1, partitions: 3, limits: { text: expect.stringContaining('100/s') } },
  ]);
  expect((await queues.list({ queues: ['bills', 'none'] })).queues.map(({ queue }) => queue)).toEqual(['bills']);
  await queues.pause(mail, { reason: 'r' });
  expect(await queues.get(mail)).toMatchObject({
    ...{ queue: 'mail', scheduled: 1, paused: true, pause: { reason: 'r' }, settings: { rate: '100/s' } },
    partitions: [{ partition: 0 }, { partition: 1 }, { partition: 2 }],
  });
  expect(await queues.why('mail')).toMatchObject({
    moves: false,
    reasons: [{ code: 'no-leader' }, { code: 'paused' }, {}],
  });
});

describe('queues.remove', () => {
  test('refuses a queue that holds something, and says what; by force it goes with that', async () => {
    await expect(client.queues.remove(mail)).rejects.toMatchObject({
      code: 'failed',
      message: expect.stringContaining('mail holds 1 scheduled'),
    });
    await client.schedules.put('nightly', { queue: 'mail', every: '1h' });
    expect(await client.queues.remove(mail, { force: true })).toEqual({
      ...{ isRemoved: true, jobs: 1, schedules: ['nightly'] },
      held: { scheduled: 1, ready: 0, running: 0, dead: 0 },
    });
    expect(await redis.keys('*{mail:*')).toEqual([]);
    expect(await audited()).toEqual([
      ['program', 'schedules.put', 'mail', 1, undefined],
      ['program', 'queues.rm', 'mail', 1, undefined],
    ]);
    await expect(client.queues.get(mail)).rejects.toMatchObject({ code: 'not-found' });
  });

  test.each(['remove', 'undeclare', 'disarm'])(
    'a lost reply of %s changes nothing of what became of it',
    async (script) => {
      await client.schedules.put('nightly', { queue: 'mail', every: '1h' });
      line.loseReplyTo(script);
      expect(await client.queues.remove('mail', { force: true })).toMatchObject({
        isRemoved: true,
        schedules: ['nightly'],
      });
      expect(line.lost()).toBe(1);
      expect((await client.queues.list()).queues).toEqual([]);
      expect(await redis.keys('*{mail:*')).toEqual([]);
    },
  );

  test('stays removed when its producer connects again, and is declared as a whole by the next job', async () => {
    await open({}).queues.remove('mail', { force: true });
    await redis.call('CLIENT', 'KILL', 'TYPE', 'normal');
    // Each call comes after those that the client makes once it is connected.
    for (const _ of [1, 2, 3]) expect((await client.queues.list()).queues).toEqual([]);
    expect(await client.cancel(mail, 'a')).toMatchObject({ status: 'unknown' });
    expect((await client.queues.list()).queues).toEqual([]);
    await client.schedule(mail, {}, { id: 'a', delay: '1h' });
    expect(await client.queues.get(mail)).toMatchObject({
      ...{ scheduled: 1, settings: { rate: '100/s' } },
      partitions: [{ partition: 0 }, { partition: 1 }, { partition: 2 }],
    });
  });
});
