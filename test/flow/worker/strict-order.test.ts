/**
 * Strict order through the library: jobs of a group run one after the other, over retries, in several workers, and beside processes
 * of an older version.
 */
import { describe, expect, test } from 'vitest';
import { fixed } from '../../../src/job/backoff.ts';
import { Unrecoverable } from '../../../src/job/outcome.ts';
import { defineQueue, type QueueOptions } from '../../../src/job/queue.ts';
import { partitionRef } from '../../../src/redis/keys.ts';
import { useLibrary, useOlder } from '../../support/library.ts';

const ORDER = { concurrency: 1, order: 'strict' } as const;
const { keys } = partitionRef('duestream', { queue: 'accounts', partition: 0, layoutGeneration: 0 });
const library = useLibrary();

/** Two workers; each start as `id#attempt`. */
async function work(options: QueueOptions, handle: (id: string, attempt: number) => void = () => undefined) {
  const queue = defineQueue<object>('accounts', { backoff: fixed('30ms'), ...options });
  const starts: string[] = [];
  await library.work(queue, ({ id, attempt }) => {
    starts.push(`${id}#${attempt}`);
    handle(id, attempt);
  });
  return { queue, starts };
}

const stepsOf = (group: string, count: number) =>
  Array.from({ length: count }, (_, nth) => ({ id: `step-${nth + 1}`, data: {}, group }));
const ofGroup = (starts: readonly string[], group: string) => starts.filter((start) => start.startsWith(`{${group}}`));

test('jobs of a group run in the order of their calls over retries, whatever their ids, and groups go on', async () => {
  await library.lead();
  const { queue, starts } = await work({ perGroup: ORDER }, (id, attempt) => {
    if (/step-(2|5)$/.test(id) && attempt === 1) throw new Error('not yet');
  });
  await library.client.scheduleMany(queue, [...stepsOf('a', 12), ...stepsOf('b', 12)]);
  await expect.poll(() => starts.length).toBe(28);
  for (const group of ['a', 'b']) {
    const expected = Array.from({ length: 12 }, (_, nth) => nth + 1).flatMap((step) => {
      const id = `{${group}}step-${step}`;
      return step === 2 || step === 5 ? [`${id}#1`, `${id}#2`] : [`${id}#1`];
    });
    expect(ofGroup(starts, group)).toEqual(expected);
  }
  await expect.poll(() => library.redis.hkeys(keys.order)).toEqual([' a', ' b']);
});

test('a job that waits says who has its group, and a job that is put off says who waits for it', async () => {
  await library.lead();
  const { queue, starts } = await work({ perGroup: ORDER, backoff: fixed('1h') }, (id) => {
    if (id === '{a}step-1') throw new Error('not yet');
  });
  await library.client.scheduleMany(queue, stepsOf('a', 3));
  await expect.poll(async () => (await library.client.get(queue, '{a}step-3'))?.state).toBe('waiting');
  await expect.poll(async () => (await library.client.get(queue, '{a}step-1'))?.state).toBe('scheduled');
  const keeper = { id: '{a}step-1', attempt: 2 };
  expect((await library.client.get(queue, '{a}step-2'))?.waitsFor?.obstacles).toMatchObject([
    { kind: 'group-kept', keeper },
  ]);
  expect(await library.client.groups.get(queue, 'a')).toMatchObject({ running: 0, waiting: 2, keeper });
  // More than one of a group at a time is refused in such a queue, so nobody is told to set it.
  const reasons = async () => (await library.client.queues.why(queue)).reasons;
  await expect.poll(reasons).toContainEqual(
    expect.objectContaining({
      text: expect.stringContaining('each of their groups is held by a job that is not over yet'),
      advice: `each starts when its turn comes; to see who holds them: duestream groups ls ${queue.name} --top`,
    }),
  );
  const later = await library.client.reschedule(queue, '{a}step-1', { delay: '2h' });
  expect(later).toMatchObject({ status: 'rescheduled', waitingBehind: 2 });
  expect(starts).toEqual(['{a}step-1#1']);
  await library.client.cancel(queue, '{a}step-1');
  await expect.poll(() => starts).toEqual(['{a}step-1#1', '{a}step-2#1', '{a}step-3#1']);
  expect(await library.client.groups.get(queue, 'a')).toMatchObject({ keeper: undefined });
});

test('a dead letter holds its group until it is replayed, if the queue says so', async () => {
  await library.lead();
  let isMended = false;
  const { queue, starts } = await work({ perGroup: { ...ORDER, onDead: 'hold' } }, (id) => {
    if (id === '{a}step-1' && !isMended) throw new Unrecoverable('wrong');
  });
  await library.client.scheduleMany(queue, [...stepsOf('a', 2), ...stepsOf('b', 2)]);
  await expect.poll(async () => (await library.client.groups.get(queue, 'a')).keeper?.deadLetter).toBeDefined();
  await expect.poll(() => ofGroup(starts, 'b').length).toBe(2);
  expect(ofGroup(starts, 'a')).toEqual(['{a}step-1#1']);
  isMended = true;
  const { deadLetters } = await library.client.deadLetters.list(queue);
  const [replayed] = await library.client.deadLetters.replay(
    queue,
    deadLetters.map(({ deadLetter }) => deadLetter),
  );
  expect(replayed).toMatchObject({ status: 'scheduled', place: 'first' });
  await expect.poll(() => ofGroup(starts, 'a')).toEqual(['{a}step-1#1', '{a}step-1#2', '{a}step-2#1']);
});

describe('refused is', () => {
  test.each<[string, QueueOptions, RegExp]>([
    [
      'more than one at a time',
      { perGroup: { concurrency: 2, order: 'strict' } },
      /concurrency 2 of its groups; allowed/,
    ],
    ['no limit', { perGroup: { order: 'strict' } }, /no concurrency of its groups; allowed/],
    [
      'a group with another limit',
      { perGroup: ORDER, groups: { acme: { concurrency: 3 } } },
      /group acme of queue accounts has concurrency 3.*allowed/,
    ],
    [
      'a rule for dead letters alone',
      { perGroup: { concurrency: 1, onDead: 'hold' } },
      /onDead: 'hold' without an order/,
    ],
    ['broadcast', { perGroup: ORDER, broadcast: true }, /broadcast queue/],
    ['at most once', { perGroup: ORDER, delivery: 'at-most-once' }, /at-most-once/],
  ])('%s', async (_, options, message) => {
    const use = async () => library.client.schedule(defineQueue('accounts', options), {}, { group: 'a' });
    await expect(use()).rejects.toThrow(message);
  });

  test('a priority of a job of a group, and none of another job', async () => {
    const queue = defineQueue('accounts', { perGroup: ORDER });
    const high = { priority: 'high', delay: '1h' } as const;
    await expect(library.client.schedule(queue, {}, { group: 'a', ...high })).rejects.toMatchObject({
      code: 'bad-input',
    });
    expect(await library.client.schedule(queue, {}, { id: 'x', ...high })).toMatchObject({ status: 'scheduled' });
    await library.client.schedule(queue, {}, { group: 'a', id: '1', delay: '1h' });
    await expect(library.client.edit(queue, '{a}1', { priority: 'low' })).rejects.toMatchObject({ code: 'bad-input' });
  });
});

describe('beside processes of 0.2.0', () => {
  const older = useOlder(library);

  test('an older leader is replaced, older workers start nothing, and order holds', async () => {
    const ran = await older('accounts', 'leader');
    await expect.poll(() => library.redis.exists(keys.leader)).toBe(1);
    const before = await library.redis.get(keys.leader);
    await library.lead();
    const { queue, starts } = await work({ perGroup: ORDER }, (id, attempt) => {
      if (id.endsWith('step-2') && attempt === 1) throw new Error('not yet');
    });
    await library.client.scheduleMany(queue, stepsOf('a', 6));
    await expect.poll(() => starts.length).toBe(7);
    const ids = ['1#1', '2#1', '2#2', '3#1', '4#1', '5#1', '6#1'].map((step) => `{a}step-${step}`);
    expect(starts).toEqual(ids);
    expect(ran).toEqual([]);
    expect((await library.redis.get(keys.leader))?.split(':')[0]).not.toBe(before?.split(':')[0]);
  });

  test('what an older process writes over comes back, and nobody starts meanwhile', async () => {
    await library.lead();
    const ran = await older('accounts', 'worker');
    const { queue, starts } = await work({ perGroup: ORDER });
    await library.client.schedule(queue, {}, { group: 'a', id: '1' });
    await expect.poll(() => starts).toEqual(['{a}1#1']);
    const share = await library.redis.hget(keys.meta, 'gates');
    // As an older `queues set`, and an older `resume`.
    await library.redis.hset(keys.meta, 'gates', '0 1 0 1');
    await expect.poll(() => library.redis.hget(keys.meta, 'gates')).toBe(share);
    await library.redis.hdel(keys.meta, 'paused');
    await expect.poll(() => library.redis.hget(keys.meta, 'paused')).toMatch(/^!/);
    expect(ran).toEqual([]);
  });

  test('order cannot begin by command while an older process serves the queue, which is named', async () => {
    await library.client.schedule(defineQueue('accounts', { perGroup: 1 }), {}, { group: 'a', delay: '1h' });
    await older('accounts', 'worker');
    await expect(library.client.queues.set('accounts', { perGroup: ORDER })).rejects.toMatchObject({
      code: 'bad-input',
      message: expect.stringMatching(/while worker \S+ on .* lives, which has duestream 0\.2\.0/),
    });
  });
});
