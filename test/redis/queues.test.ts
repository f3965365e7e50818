/** The registry: a queue comes into being by its first use. */
import { expect, test } from 'vitest';
import { controlKeys } from '../../src/redis/keys.ts';
import {
  declareQueue,
  findQueue,
  listQueues,
  partitionsOf,
  setQueue,
  undeclareQueue,
  unreadableQueues,
} from '../../src/redis/scripts/queues.ts';
import { usePartition } from '../support/partition.ts';

const p = usePartition();
const namespace = 't';
const declare = (queue: string, partitions: number) => declareQueue(p.redis, { namespace, queue, partitions });

test('the first to declare a queue decides its partitions', async () => {
  expect(await declare('emails', 4)).toEqual({ queue: 'emails', partitions: 4, layoutGeneration: 0 });
  expect(await p.withoutWrite(() => declare('emails', 9))).toEqual({
    queue: 'emails',
    partitions: 4,
    layoutGeneration: 0,
  });
});

test('many that declare it at the same time agree', async () => {
  const layouts = await Promise.all([1, 2, 3, 4, 5].map((partitions) => declare('emails', partitions)));
  expect(new Set(layouts.map(({ partitions }) => partitions)).size).toBe(1);
});

test('a new queue is announced once', async () => {
  const subscriber = await p.server.client();
  const heard: string[] = [];
  subscriber.on('smessage', (_channel: string, message: string) => heard.push(message));
  await subscriber.ssubscribe(controlKeys(namespace).wake);
  await declare('emails', 1);
  await declare('emails', 1);
  await p.redis.spublish(controlKeys(namespace).wake, 'end');
  await expect.poll(() => heard.at(-1)).toBe('end');
  expect(heard).toEqual(['queue emails', 'end']);
});

test('queues are found by name and listed in order', async () => {
  await declare('welcome', 1);
  await declare('emails', 2);
  expect((await listQueues(p.redis, namespace)).map(({ queue }) => queue)).toEqual(['emails', 'welcome']);
  expect(await findQueue(p.redis, namespace, 'emails')).toMatchObject({ partitions: 2 });
  expect(await findQueue(p.redis, namespace, 'nobody')).toBeUndefined();
  expect(await listQueues(p.redis, 'another')).toEqual([]);
});

test('the partitions of a queue carry its generation and keys of one hash tag each', () => {
  const refs = partitionsOf(namespace, { queue: 'emails', partitions: 2, layoutGeneration: 3 });
  expect(refs.map(({ partition, layoutGeneration }) => [partition, layoutGeneration])).toEqual([
    [0, 3],
    [1, 3],
  ]);
  expect(refs[1]?.keys.jobs).toBe('t:v1:{emails:1}:jobs');
  expect(new Set(Object.values(refs[1]?.keys ?? {}).map((key) => /\{.*\}/.exec(key)?.[0]))).toEqual(
    new Set(['{emails:1}']),
  );
});

test.each([
  ['emails', Number.NaN],
  ['emails', 0],
  ['emails', 1.5],
  ['emails', 1025],
  ['emails', undefined],
  ['Emails', 1],
  ['a:b', 1],
  ['e'.repeat(65), 1],
])('no caller can declare queue %s with %s partitions, whatever it checked itself', async (queue, partitions) => {
  const call = () => p.withoutWrite(() => declare(queue, partitions as number));
  await expect(call()).rejects.toMatchObject({ code: 'bad-input', message: expect.stringContaining('allowed') });
});

test('entries that nobody can read are left out of the list, and named where they are asked for', async () => {
  await declare('emails', 2);
  await p.redis.hset(controlKeys(namespace).queues, 'odd', '{"partitions":null,"generation":0}', 'Bad name', 'x');
  expect((await listQueues(p.redis, namespace)).map(({ queue }) => queue)).toEqual(['emails']);
  expect(await unreadableQueues(p.redis, namespace)).toEqual([
    { queue: 'odd', text: '{"partitions":null,"generation":0}' },
    { queue: 'Bad name', text: 'x' },
  ]);
});

test.each(['not json', '{}', '{"partitions":"two","generation":0}', '{"partitions":1.5,"generation":0}'])(
  'an entry that cannot be read (%s) is an error that shows it',
  async (value) => {
    await p.redis.hset(controlKeys(namespace).queues, 'emails', value);
    await expect(declare('emails', 1)).rejects.toMatchObject({ code: 'refused' });
    await expect(findQueue(p.redis, namespace, 'emails')).rejects.toThrow(JSON.stringify(value));
  },
);

const keys = controlKeys(namespace);
const limited = (queue: string, said: object = {}) =>
  declareQueue(p.redis, { namespace, queue, partitions: 1, maxPending: 5, ...said });

test('a declaration that is refused leaves no settings behind, however often', async () => {
  for (let round = 0; round < 20; round += 1) {
    await expect(limited(`queue${round}`, { partitions: 0 })).rejects.toMatchObject({ code: 'bad-input' });
  }
  expect(await p.redis.hkeys(keys.queues)).toEqual([]);
});

test('a queue and its settings come in one step: nobody sees one without the other', async () => {
  const seen: string[] = [];
  const other = await p.server.client();
  let isOver = false;
  const watching = (async () => {
    while (!isOver) {
      const found = await other.hkeys(keys.queues);
      seen.push(
        found
          .filter((field) => field !== ':schema')
          .toSorted()
          .join(' '),
      );
    }
  })();
  for (let round = 0; round < 50; round += 1) {
    await limited('emails', { maxBytes: 9 });
    await undeclareQueue(p.redis, namespace, 'emails');
  }
  isOver = true;
  await watching;
  expect(
    [...new Set(seen)].filter((fields) => fields !== '' && fields !== 'emails emails:maxBytes emails:maxPending'),
  ).toEqual([]);
});

test('a queue that is declared keeps its settings, and takes new ones', async () => {
  await limited('emails');
  expect(await p.withoutWrite(() => limited('emails'))).toMatchObject({ maxPending: 5 });
  expect(await limited('emails', { maxPending: 7 })).toMatchObject({ maxPending: 7 });
  expect(await limited('emails', { maxPending: 9, isRepeated: true })).toMatchObject({ maxPending: 7 });
  await setQueue(p.redis, { namespace, queue: 'emails', maxBytes: 9 });
  expect(await findQueue(p.redis, namespace, 'emails')).toMatchObject({ maxPending: 7, maxBytes: 9 });
});

test('settings of a queue that was removed meanwhile are refused, so that none are left', async () => {
  await limited('emails');
  await undeclareQueue(p.redis, namespace, 'emails');
  await expect(setQueue(p.redis, { namespace, queue: 'emails', maxPending: 7 })).rejects.toMatchObject({
    code: 'not-found',
  });
  expect(await p.redis.hkeys(keys.queues)).toEqual([':schema']);
});
