/** The guard of the layout, script by script: who knows another schema writes nothing, and no mark is as good as ours. */
import { describe, expect, test } from 'vitest';
import { controlKeys } from '../../src/redis/keys.ts';
import { checkSchema, readSchema, SCHEMA, SCHEMA_FIELD } from '../../src/redis/schema.ts';
import { elect } from '../../src/redis/scripts/lease.ts';
import { claimNamespace, declareQueue, findQueue, listQueues } from '../../src/redis/scripts/queues.ts';
import { T0, usePartition } from '../support/partition.ts';

const p = usePartition();
const namespace = 't';
const { queues } = controlKeys(namespace);
const declare = (queue: string) => declareQueue(p.redis, { namespace, queue, partitions: 2 });
const marked = () => p.redis.hget(queues, SCHEMA_FIELD);
const refused = {
  code: 'wrong-schema',
  message: expect.stringMatching(/schema "7", this duestream knows 1 .*: update/),
};

describe('a namespace without a mark', () => {
  test('is claimed for the schema of whoever declares first, in the same call', async () => {
    expect(await readSchema(p.redis, namespace)).toBeUndefined();
    expect(await declare('emails')).toMatchObject({ partitions: 2 });
    expect(await marked()).toBe(SCHEMA);
  });

  test('is claimed where a foreign producer has declared its queue, which keeps its layout', async () => {
    await p.redis.hset(queues, 'emails', '{"partitions":5,"generation":3}');
    expect(await declare('emails')).toEqual({ queue: 'emails', partitions: 5, layoutGeneration: 3 });
    expect(await marked()).toBe(SCHEMA);
  });

  test('is claimed by a daemon that declares no queue, once', async () => {
    await claimNamespace(p.redis, namespace, 5);
    expect(await p.redis.hgetall(queues)).toEqual({ [SCHEMA_FIELD]: SCHEMA, ':lingerMs': '5' });
    await p.withoutWrite(() => claimNamespace(p.redis, namespace, 5));
    await claimNamespace(p.redis, namespace, 0);
    expect(await p.redis.hget(queues, ':lingerMs')).toBe('0');
  });

  test('is read as it is: looking claims nothing', async () => {
    await p.redis.hset(queues, 'emails', '{"partitions":1,"generation":0}');
    await p.withoutWrite(async () => {
      await checkSchema(p.redis, namespace);
      expect(await listQueues(p.redis, namespace)).toHaveLength(1);
      expect(await findQueue(p.redis, namespace, 'emails')).toMatchObject({ partitions: 1 });
    });
  });
});

describe('a namespace with the mark', () => {
  test('costs one command for each layout that is read, as before there was a mark', async () => {
    await declare('emails');
    await p.redis.config('RESETSTAT');
    await declare('emails');
    await findQueue(p.redis, namespace, 'emails');
    await listQueues(p.redis, namespace);
    const stats = await p.redis.info('commandstats');
    const calls = [...stats.matchAll(/^cmdstat_(\w+):calls=(\d+)/gm)].map(([, name, count]) => [name, Number(count)]);
    expect(calls.filter(([name]) => name !== 'config|resetstat' && name !== 'info')).toEqual(
      expect.arrayContaining([
        ['hmget', 2],
        ['hgetall', 1],
      ]),
    );
    expect(calls.filter(([name]) => String(name).startsWith('eval') || name === 'hget')).toEqual([]);
  });

  test('lists no queue by the name of the mark', async () => {
    await declare('emails');
    expect((await listQueues(p.redis, namespace)).map(({ queue }) => queue)).toEqual(['emails']);
  });
});

describe('a namespace of another schema', () => {
  test('is refused to whoever declares, finds, lists, claims or looks, without a write', async () => {
    await p.redis.hset(queues, SCHEMA_FIELD, '7', 'emails', '{"partitions":1,"generation":0}');
    await p.withoutWrite(async () => {
      await expect(declare('emails')).rejects.toMatchObject(refused);
      await expect(declare('bills')).rejects.toMatchObject(refused);
      await expect(findQueue(p.redis, namespace, 'emails')).rejects.toMatchObject(refused);
      await expect(listQueues(p.redis, namespace)).rejects.toMatchObject(refused);
      await expect(claimNamespace(p.redis, namespace, 0)).rejects.toMatchObject(refused);
      await expect(checkSchema(p.redis, namespace)).rejects.toMatchObject(refused);
    });
    expect(await p.redis.hkeys(queues)).toEqual([SCHEMA_FIELD, 'emails']);
  });

  test.each([
    ['0', 'let the version that wrote it empty its queues first'],
    ['2', 'update this process to the version that wrote it'],
    ['one', 'somebody else wrote that number'],
    ['', 'somebody else wrote that number'],
  ])('%j is refused with what to do', async (found, remedy) => {
    await p.redis.hset(queues, SCHEMA_FIELD, found);
    await expect(checkSchema(p.redis, namespace)).rejects.toThrow(remedy);
    await expect(checkSchema(p.redis, namespace)).rejects.toThrow(JSON.stringify(found));
  });

  test('has no leader of this version: elect writes nothing, also when nobody leads', async () => {
    await p.redis.hset(p.keys.meta, 'schema', '7');
    const asks = () => elect(p.redis, p.ref, { processId: 'm1', leaseMs: 5000, nowMs: T0 });
    await p.withoutWrite(() => expect(asks()).rejects.toMatchObject(refused));
    expect(await p.redis.exists(p.keys.leader)).toBe(0);
  });
});
