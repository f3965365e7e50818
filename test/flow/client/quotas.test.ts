/** Limits of a queue as callers meet them: set in code, by the command line and in the configuration, told by every window. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Unconfirmed } from '../../../src/client/calls/scheduled.ts';
import { type Client, createClient } from '../../../src/client/client.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import type { DuestreamError } from '../../../src/kernel/errors.ts';
import { partitionKeys } from '../../../src/redis/keys.ts';
import { findQueue } from '../../../src/redis/scripts/queues.ts';
import { useCli } from '../../support/cli.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

const cli = useCli();
const namespace = 'duestream';
let server: TestRedis;
let producer: Client;
const stops: (() => Promise<unknown>)[] = [];
beforeAll(async () => {
  server = await startRedis();
});
beforeEach(async () => {
  await (await server.client()).flushall();
  producer = another();
});
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});
afterAll(() => server.stop());

function another(): Client {
  const made = createClient({ redis: server.url });
  stops.push(() => made.close());
  return made;
}
const later = { delay: '1h' } as const;
const fails = (call: Promise<unknown>): Promise<DuestreamError> =>
  call.then(
    () => Promise.reject(new Error('it was expected to fail')),
    (error: DuestreamError) => error,
  );
const metaOf = async (queue: string, partition: number) =>
  (await server.client()).hgetall(partitionKeys({ namespace, queue, partition }).meta);
const run = async (...args: readonly string[]) => cli.run([...args, '--redis', server.url]);

describe('maxPending', () => {
  const queue = defineQueue<{ n: number }>('q', { maxPending: 2 });

  test('refuses a new job with queue-full, which says the limit, what is there and what to do', async () => {
    await producer.schedule(queue, { n: 1 }, later);
    await producer.schedule(queue, { n: 2 }, later);
    const error = await fails(producer.schedule(queue, { n: 3 }, { ...later, id: 'third' }));
    expect(error).toMatchObject({ code: 'queue-full' });
    expect(error.message).toBe(
      'queue q is full: where job third belongs 2 jobs wait or run; allowed by maxPending: 2. Nothing was changed. ' +
        'Let jobs end, cancel some, or set the limit with "duestream queues set q --max-pending <n>"',
    );
    expect(await producer.get(queue, 'third')).toBeUndefined();
  });

  test('of many jobs those for which there is room are scheduled, and the error says which', async () => {
    const jobs = ['a', 'b', 'c', 'd'].map((id, n) => ({ id, data: { n }, ...later }));
    const error = await fails(producer.scheduleMany(queue, jobs));
    expect(error.code).toBe('queue-full');
    if (!(error.cause instanceof Unconfirmed)) throw error;
    expect(error.cause.confirmed.map(({ id }) => id)).toEqual(['a', 'b']);
    expect(error.cause.unconfirmed.map(({ id }) => id)).toEqual(['c', 'd']);
  });

  test('a queue that is full in one partition takes jobs in the others; each has its share, rounded up', async () => {
    const wide = defineQueue('wide', { maxPending: 10, partitions: 4 });
    const jobs = Array.from({ length: 100 }, (_, n) => ({ id: `${n}`, data: n, ...later }));
    const error = await fails(producer.scheduleMany(wide, jobs));
    if (!(error.cause instanceof Unconfirmed)) throw error;
    expect(error.cause.confirmed).toHaveLength(12);
    for (const partition of [0, 1, 2, 3]) expect(await metaOf('wide', partition)).toMatchObject({ quota: '3 0' });
  });

  test('a job that a person asks of a schedule is a new one', async () => {
    await producer.schedule(queue, { n: 1 }, later);
    await producer.schedule(queue, { n: 2 }, later);
    const { schedules } = producer;
    await schedules.put('hourly', { queue: 'q', every: '1h' });
    expect(await fails(schedules.trigger('hourly'))).toMatchObject({ code: 'queue-full' });
  });
});

describe('maxPending of each group', () => {
  const queue = defineQueue<{ n: number }>('q', { perGroup: { maxPending: 2 }, partitions: 3 });
  const of = (group: string, ids: readonly string[]) => ids.map((id, n) => ({ id, data: { n }, group, ...later }));

  test('refuses a new job with group-full, which says the group, the limit, what is there and what to do', async () => {
    await producer.scheduleMany(queue, [...of('acme', ['a', 'b']), ...of('umbrella', ['a', 'b'])]);
    const error = await fails(producer.schedule(queue, { n: 3 }, { ...later, id: 'third', group: 'acme' }));
    expect(error).toMatchObject({ code: 'group-full' });
    expect(error.message).toBe(
      'group acme of queue q is full: 2 of its jobs wait or run; allowed by its maxPending: 2. Nothing was changed. ' +
        'Let jobs end, cancel some, or set the limit with "duestream groups set q acme --max-pending <n>"',
    );
    expect(await producer.get(queue, '{acme}third')).toBeUndefined();
    await producer.schedule(queue, { n: 4 }, { ...later, id: 'free' });
    expect(await producer.groups.get(queue, 'acme')).toMatchObject({ pending: 2, maxPending: 2 });
    await producer.cancel(queue, '{acme}a');
    await producer.schedule(queue, { n: 3 }, { ...later, id: 'third', group: 'acme' });
  });

  test('of many jobs those for which there is room are scheduled, and the error says which', async () => {
    const error = await fails(producer.scheduleMany(queue, of('acme', ['a', 'b', 'c', 'd'])));
    expect(error.code).toBe('group-full');
    if (!(error.cause instanceof Unconfirmed)) throw error;
    expect(error.cause.confirmed.map(({ id }) => id)).toEqual(['{acme}a', '{acme}b']);
    expect(error.cause.unconfirmed.map(({ id }) => id)).toEqual(['{acme}c', '{acme}d']);
  });

  test('nobody sees the tag by which a job is counted, and it takes the place of one', async () => {
    const tags = ['1', '2', '3', '4', '5', '6', '7', '8', '9'];
    const { id } = await producer.schedule(queue, { n: 1 }, { ...later, group: 'acme', tags });
    expect(await producer.get(queue, id)).toMatchObject({ tags });
    const error = await fails(producer.schedule(queue, { n: 2 }, { ...later, group: 'acme', tags: [...tags, 'x'] }));
    expect(error.message).toContain('tags is a list of 10');
    expect(error.message).toContain('allowed: up to 9 tags beside it');
    await producer.schedule(queue, { n: 2 }, { ...later, tags: [...tags, 'x'] });
    const edited = await fails(producer.edit(queue, id, { tags: [...tags, 'x'] }));
    expect(edited.message).toContain('tags would be a list of 10; allowed: up to 9');
    await producer.edit(queue, id, { tags: ['only'] });
    expect(await producer.groups.get(queue, 'acme')).toMatchObject({ pending: 1 });
  });

  test('by command: for all groups, for some, and no more', async () => {
    await producer.schedule(defineQueue('q', { fair: true }), 0, { ...later, group: 'old' });
    const set = await run('queues', 'set', 'q', '--per-group-max-pending', '1');
    expect(set.out).toContain('q takes new jobs of a group up to 1 that wait or run');
    const own = await run('groups', 'set', 'q', 'big-*', '--max-pending', '2');
    expect(own.code).toBe(0);
    const one = another();
    await one.scheduleMany('q', [...of('big-a', ['a', 'b']), ...of('acme', ['a'])]);
    expect(await fails(one.schedule('q', 1, { ...later, group: 'big-a' }))).toMatchObject({ code: 'group-full' });
    // What was made before there was such a limit does not count.
    await one.schedule('q', 1, { ...later, group: 'old' });
    expect(await fails(one.schedule('q', 1, { ...later, group: 'old' }))).toMatchObject({ code: 'group-full' });
    const shown = await run('groups', 'show', 'q', 'big-a');
    expect(shown.out).toMatch(/pending +2 of 2/);
    const refused = await run('schedule', 'q', '--group', 'acme', '--delay', '1h');
    expect([refused.code, refused.err]).toEqual([1, expect.stringContaining('groups set q acme --max-pending')]);
    await run('queues', 'set', 'q', '--per-group-max-pending', 'none');
    await run('groups', 'set', 'q', 'big-*', '--max-pending', 'none');
    await another().scheduleMany('q', [...of('big-a', ['c', 'd']), ...of('acme', ['c', 'd'])]);
  });

  test.each([
    [{ perGroup: { maxPending: 0 } }, 'maxPending of perGroup is 0; allowed: a whole number from 1 to 1000000000'],
    [{ groups: { a: { maxPending: 1.5 } } }, 'maxPending of group a is 1.5; allowed: a whole number from 1 to'],
    [
      { perGroup: { pending: 5 } as never },
      'pending is not an option of perGroup; allowed: concurrency, rate, maxPending',
    ],
  ])('%j is refused with what is allowed', (options, message) => {
    expect(() => defineQueue('q', options)).toThrow(message);
  });
});

describe('where limits are set', () => {
  test('in code: whoever says something sets it for all, false takes it back, silence changes nothing', async () => {
    await producer.schedule(defineQueue('q', { maxPending: 1, maxBytes: 100_000 }), 1, later);
    const silent = another();
    expect(await fails(silent.schedule('q', 2, later))).toMatchObject({ code: 'queue-full' });
    expect(await metaOf('q', 0)).toMatchObject({ quota: '1 100000' });
    await another().schedule(defineQueue('q', { maxPending: false }), 3, later);
    await silent.schedule('q', 4, later);
    expect(await metaOf('q', 0)).toMatchObject({ quota: '0 100000' });
  });

  test('by queues set: at once, and one limit alone', async () => {
    await producer.schedule('q', 1, later);
    const set = await run('queues', 'set', 'q', '--max-pending', '1', '--max-bytes', '5000');
    expect(set.code).toBe(0);
    expect(set.out).toContain('q takes new jobs up to 1 jobs that wait or run');
    expect(await fails(producer.schedule('q', 2, later))).toMatchObject({ code: 'queue-full' });
    await run('queues', 'set', 'q', '--max-pending', 'none');
    await producer.schedule('q', 2, later);
    expect(await findQueue(await server.client(), namespace, 'q')).toMatchObject({ maxPending: 0, maxBytes: 5000 });
    const wrong = await run('queues', 'set', 'q', '--max-bytes', '7');
    expect(wrong.code).toBe(64);
  });

  test.each([
    [{ maxPending: 0 }, 'maxPending is 0; allowed: a whole number from 1 to 1000000000'],
    [{ maxBytes: 1.5 }, 'maxBytes is 1.5; allowed: a whole number from 1024 to 1125899906842624'],
    [
      { maxBytes: '1mb' as never },
      'maxBytes is "1mb"; allowed: a whole number from 1024 to 1125899906842624, or false',
    ],
  ])('%j is refused with what is allowed', (options, message) => {
    expect(() => defineQueue('q', options)).toThrow(message);
  });

  test('a queue that was removed is declared again without its limits', async () => {
    await producer.schedule(defineQueue('q', { maxPending: 1 }), 1, { ...later, id: 'a' });
    await run('queues', 'rm', 'q', '--force');
    expect(await findQueue(await server.client(), namespace, 'q')).toBeUndefined();
    const other = another();
    await other.schedule('q', 1, later);
    await other.schedule('q', 2, later);
  });
});

describe('what is told', () => {
  test('queues ls and stats show the limits and what is used of them', async () => {
    await producer.schedule(defineQueue('q', { maxPending: 4, maxBytes: 4096 }), 'x', later);
    await producer.schedule('free', 1, later);
    const ls = await run('queues', 'ls');
    expect(ls.out).toMatch(/^queue .*waits +full +workers +leader$/m);
    expect(ls.out).toMatch(/^q .* 25 % /m);
    const stats = await run('queues', 'show', 'q');
    expect(stats.out).toMatch(/^quota +1 of 4 jobs \(25 %\), \d+ of 4096 bytes \(\d %\)$/m);
    const told = JSON.parse((await run('queues', 'show', 'q', '--json')).out);
    expect(told.quota).toMatchObject({ pending: 1, pendingMax: 4, bytesMax: 4096 });
    const free = JSON.parse((await run('queues', 'show', 'free', '--json')).out);
    expect(free.quota).toBeUndefined();
  });

  test('the command line answers 1 with the next step', async () => {
    await producer.schedule(defineQueue('q', { maxPending: 1 }), 1, later);
    const refused = await run('schedule', 'q', '--delay', '1h');
    expect(refused.code).toBe(1);
    expect(refused.err).toContain('duestream queues set q --max-pending');
  });
});
