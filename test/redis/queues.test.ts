/** The registry: a queue comes into being by its first use. */
import { expect, test } from 'vitest';
import type { Subject } from '../../src/inspect/doctor/check.ts';
import { schema } from '../../src/inspect/doctor/check-namespace.ts';
import { defineQueue } from '../../src/job/queue.ts';
import type { SettingName } from '../../src/job/queue-settings.ts';
import { controlKeys } from '../../src/redis/keys.ts';
import {
  allQueues,
  declareQueue,
  findQueue,
  listQueues,
  partitionsOf,
  setGroup,
  setQueue,
  undeclareQueue,
  unsetQueue,
} from '../../src/redis/scripts/queues.ts';
import { createServedPartitions } from '../../src/worker/fetch/assignment.ts';
import { cutOff, luaOf } from '../support/model-cut.ts';
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
  expect((await allQueues(p.redis, namespace)).unreadable).toEqual([
    { queue: 'Bad name', text: 'x' },
    { queue: 'odd', text: '{"partitions":null,"generation":0}' },
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

// What somebody set by command, above what definitions say.

const mails = (said: object = {}) => declareQueue(p.redis, { namespace, queue: 'mails', partitions: 1, ...said });
const rate = (limit: number) => ({ limit, perMs: 1000, burst: 1 });
const ada = { by: 'ada', why: 'incident 7', atMs: 1 };
const found = () => findQueue(p.redis, namespace, 'mails');
const set = (said: object) => setQueue(p.redis, { namespace, queue: 'mails', by: ada, ...said });
const unset = (settings: readonly SettingName[], isForgotten = false) =>
  unsetQueue(p.redis, { namespace, queue: 'mails', settings, isForgotten });
const shareOf = () => p.redis.hget('t:v1:{mails:0}:meta', 'gates');

test('a limit by command holds whatever definitions say, until it is taken back; then the last definition counts', async () => {
  await mails({ rate: rate(100) });
  await set({ rate: rate(1) });
  expect(await mails({ rate: rate(100) })).toMatchObject({ rate: rate(1) });
  expect(await mails({ rate: rate(50) })).toMatchObject({ rate: rate(1), layers: { set: { rate: ada } } });
  expect(await shareOf()).toBe('1000000 1 0 0');
  expect(await p.withoutWrite(() => mails({ rate: rate(50) }))).toMatchObject({ rate: rate(1) });
  await unset(['rate']);
  expect(await found()).toMatchObject({ rate: rate(50) });
  expect((await found())?.layers).toBeUndefined();
  expect(await shareOf()).toBe('20000 1 0 0');
  expect(await p.redis.hkeys(keys.queues)).not.toContain('mails:overrides');
});

test('of two that set limits at once the partitions have what the registry has, whichever reaches them last', async () => {
  await mails({ rate: rate(100), maxPending: 50 });
  let isDone = false;
  const slow = new Proxy(p.redis, {
    get(redis, name) {
      const value = Reflect.get(redis, name);
      if (name !== 'duestream_limit' && name !== 'duestream_allot') return value;
      return async (...args: unknown[]) => {
        await expect.poll(() => isDone).toBe(true);
        return Reflect.apply(value, redis, args);
      };
    },
  });
  const first = setQueue(slow, { namespace, queue: 'mails', by: ada, rate: rate(1), maxPending: 7 });
  await expect.poll(() => found()).toMatchObject({ rate: rate(1) });
  await set({ rate: rate(2), maxPending: 8 });
  isDone = true;
  await first;
  expect(await found()).toMatchObject({ rate: rate(2), maxPending: 8 });
  expect(await p.redis.hmget('t:v1:{mails:0}:meta', 'gates', 'quota')).toEqual(['500000 1 0 0', '8 0']);
});

test.each([
  ['maxPending', { maxPending: 5 }, { maxPending: 9 }],
  ['maxBytes', { maxBytes: 2000 }, { maxBytes: 4000 }],
  ['lingerMs', { lingerMs: 20 }, { lingerMs: 7 }],
  ['concurrency', { concurrency: 2 }, { concurrency: 20 }],
  ['perGroup', { perGroup: 1 }, { perGroup: 4 }],
  ['groupRate', { groupRate: rate(1) }, { groupRate: rate(9) }],
  ['groupPending', { groupPending: 5 }, { groupPending: 50 }],
  ['groups', { groups: { acme: { concurrency: 1 } } }, { groups: { umbrella: { weight: 2 } } }],
  ['redact', { redact: ['email'] }, { redact: ['name'] }],
] as const)('%s by command holds against a definition', async (name, byCommand, byCode) => {
  await mails(byCode);
  await set(byCommand);
  await set(byCommand);
  expect(await mails(byCode)).toMatchObject(byCommand);
  await unset([name]);
  await unset([name]);
  expect(await found()).toMatchObject(byCode);
});

test('a setting that no definition says goes with its override, and a gated queue stays gated without the limit', async () => {
  await mails();
  await set({
    lingerMs: 20,
    rate: rate(1),
    maxPending: 3,
    history: { isOn: true, keepMs: 1000, max: 5, keepsResult: false, resultBytesMax: 1 },
  });
  await unset(['lingerMs', 'rate', 'maxPending', 'history']);
  expect(await found()).toEqual({ queue: 'mails', partitions: 1, layoutGeneration: 0, rate: 0, maxPending: 0 });
  expect(await shareOf()).toBe('0 1 0 0');
});

test('what definitions have said is forgotten only where that is asked for', async () => {
  await mails({ lingerMs: 20 });
  await unset(['lingerMs']);
  expect(await found()).toMatchObject({ lingerMs: 20 });
  await unset(['lingerMs'], true);
  expect((await found())?.lingerMs).toBeUndefined();
  expect(await mails({ lingerMs: 20 })).toMatchObject({ lingerMs: 20 });
});

test('limits of one group by command stand above those of a definition, and the others follow it', async () => {
  const group = async (limits?: object) =>
    (await setGroup(p.redis, { namespace, queue: 'mails', group: 'acme', by: ada, ...(limits && { limits }) })) !==
    undefined;
  await mails({ groups: { acme: { concurrency: 2 }, umbrella: { concurrency: 3 } } });
  expect(await group({ concurrency: 1 })).toBe(true);
  expect(await group({ concurrency: 1 })).toBe(false);
  expect(await mails({ groups: { acme: { concurrency: 5 }, umbrella: { concurrency: 4 } } })).toMatchObject({
    groups: { acme: { concurrency: 1 }, umbrella: { concurrency: 4 } },
  });
  expect(await group()).toBe(true);
  expect(await group()).toBe(false);
  expect((await found())?.groups).toEqual({ acme: { concurrency: 5 }, umbrella: { concurrency: 4 } });
});

test('a process of 0.2.0 that writes its definition over a setting does not undo the override', async () => {
  await mails({ rate: rate(100) });
  await set({ rate: rate(1) });
  expect(await p.redis.hget(keys.queues, 'mails:rate')).toBe('1 1000 1');
  await p.redis.hset(keys.queues, 'mails:rate', '100 1000 1');
  expect(await found()).toMatchObject({ rate: rate(1) });
  expect(await listQueues(p.redis, namespace)).toMatchObject([{ rate: rate(1) }]);
  await mails({ rate: rate(100) });
  expect(await p.redis.hget(keys.queues, 'mails:rate')).toBe('1 1000 1');
});

test('overrides that nobody can read override nothing, and the next one replaces them', async () => {
  await mails({ rate: rate(100) });
  for (const text of ['', 'x', '[]', '{"set":{"rate":1},"code":{}}', '{"set":3}']) {
    await p.redis.hset(keys.queues, 'mails:overrides', text);
    expect(await found()).toMatchObject({ rate: rate(100) });
  }
  await set({ rate: rate(1) });
  expect(await found()).toMatchObject({ rate: rate(1), layers: { code: { rate: '100 1000 1' } } });
});

test('overrides that are set at the same time are all kept, and go with the queue', async () => {
  await mails();
  await Promise.all([
    set({ rate: rate(1) }),
    set({ concurrency: 5 }),
    set({ maxPending: 7 }),
    mails({ rate: rate(9) }),
  ]);
  expect(await found()).toMatchObject({ rate: rate(1), concurrency: 5, maxPending: 7 });
  await undeclareQueue(p.redis, namespace, 'mails');
  expect(await p.redis.hkeys(keys.queues)).toEqual([':schema']);
});

test.each([
  ['a setting by command', () => set({ rate: rate(1) }), { rate: rate(1), layers: { set: { rate: ada } } }],
  ['a setting that is taken back', () => unset(['rate']), { rate: rate(100) }],
  ['a setting that is forgotten', () => unset(['rate'], true), { rate: rate(100) }],
] as const)(
  '%s is whole when its call was cut off at any write and is made again, whoever declares the queue meanwhile',
  async (_, call, holds) => {
    for (let allowed = 0, site: string | undefined = ''; site !== undefined; allowed += 1) {
      await p.redis.del(keys.queues);
      await mails({ rate: rate(100) });
      if ('layers' in holds === false) await set({ rate: rate(1) });
      site = await cutOff(p.redis, { verb: 'declare', lua: luaOf('declare'), allowed, call });
      await mails({ rate: rate(100) });
      await call();
      await call();
      await mails({ rate: rate(100) });
      expect(await found()).toMatchObject(holds);
      expect((await found())?.layers !== undefined).toBe('layers' in holds);
      if (allowed === 0) expect(site).toMatch(/^declare:/);
    }
  },
);

test('a worker whose definition says otherwise than a command and the first use says each once, however often it looks', async () => {
  await declareQueue(p.redis, { namespace, queue: 'mails', partitions: 1, rate: rate(100) });
  await set({ rate: rate(1), maxPending: 7 });
  const said: unknown[] = [];
  const quiet = () => undefined;
  const log = {
    debug: quiet,
    info: quiet,
    error: quiet,
    warn: (...words: unknown[]) => said.push(words),
    child: () => log,
  };
  const queue = defineQueue('mails', { rate: '50/s', partitions: 4 });
  const served = createServedPartitions({ redis: p.redis, namespace, queue, consumer: 'w', log, dispatches: false });
  for (let looks = 0; looks < 3; looks += 1) await served.declare();
  const text = 'the definition does not hold';
  expect(said).toEqual([
    [{ what: expect.stringMatching(/^rate: somebody has set another one by command/) }, text],
    [{ what: expect.stringMatching(/^it says 4 partitions, and queue mails has 1 /) }, text],
  ]);
  const seen = { redis: p.redis, namespace } as Subject;
  expect(await schema(seen)).toMatchObject({
    status: 'warn',
    saw: 'queue "mails" has 1 partition, and a definition says 4',
  });
});
