/** A namespace of another schema: nothing of ours touches it, whether it is found at start or changes under what runs. */
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createClient } from '../../../src/client/client.ts';
import { decodeRun, memberOf } from '../../../src/job/codec.ts';
import type { Redis } from '../../../src/redis/connection/connect.ts';
import { controlKeys, partitionKeys } from '../../../src/redis/keys.ts';
import { SCHEMA, SCHEMA_FIELD } from '../../../src/redis/schema.ts';
import { createWorker } from '../../../src/worker/worker.ts';
import { runHere } from '../../support/console.ts';
import { HANDLERS, readEffects, SHORT_LEASES } from '../../support/effects.ts';
import { useProcesses } from '../../support/processes.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

const QUEUE = 'effects';
const processes = useProcesses();
const control = controlKeys('duestream');
const keys = partitionKeys({ namespace: 'duestream', queue: QUEUE, partition: 0 });
let server: TestRedis;
let redis: Redis;
let born = 0;

beforeAll(async () => {
  server = await startRedis({ port: true });
  redis = await server.client();
});
beforeEach(() => redis.flushall());
afterAll(() => server.stop());

const mark = (schema: string) => redis.hset(control.queues, SCHEMA_FIELD, schema);
/** What a later version does that changes the layout: the number, and a word to the daemons. */
async function moveOn(): Promise<void> {
  await mark('2');
  await redis.spublish(control.wake, 'schema 2');
}
const scene = () => {
  born += 1;
  const file = join(processes.folder, `schema-${born}.jsonl`);
  return { file, env: { ...SHORT_LEASES, DUESTREAM_REDIS_URL: server.url, EFFECTS_FILE: file } };
};
const daemonArgs = ['start', '--roles', 'mover'];
const workerArgs = ['worker', HANDLERS, '--queue', QUEUE];
/** Every key with what it holds. */
async function contents(): Promise<Readonly<Record<string, unknown>>> {
  const names = (await redis.keys('*')).sort();
  return Object.fromEntries(await Promise.all(names.map(async (key) => [key, await redis.dumpBuffer(key)] as const)));
}

describe('found at the start', () => {
  beforeEach(async () => {
    await redis.hset(control.queues, QUEUE, '{"partitions":1,"generation":0}');
    await mark('2');
  });

  test.each([
    ['a daemon', daemonArgs],
    ['a worker', workerArgs],
  ])('%s ends with 78, says what to do, and has written nothing', async (name, args) => {
    const before = await contents();
    expect(await processes.launch({ name, args, env: scene().env }).exited).toMatchObject({ code: 78 });
    expect(await contents()).toEqual(before);
  });

  test('a producer, schedules and an embedded worker refuse, and nothing is written', async () => {
    const before = await contents();
    const of = { redis: server.url };
    const refused = { code: 'wrong-schema', message: expect.stringContaining('has schema "2"') };
    const producer = createClient(of);
    await expect(producer.schedule(QUEUE, 1, { delay: '1h' })).rejects.toMatchObject(refused);
    await expect(producer.cancel(QUEUE, 'x')).rejects.toMatchObject(refused);
    await expect(producer.get(QUEUE, 'x')).rejects.toMatchObject(refused);
    await expect(producer.schedules.list()).rejects.toMatchObject(refused);
    await producer.close();
    await expect(createWorker(QUEUE, () => undefined, of).start()).rejects.toMatchObject(refused);
    expect(await contents()).toEqual(before);
  });

  test.each([
    ...['schedule effects --delay 1h', 'cancel effects x', 'ls effects', 'show effects x', 'queues ls'],
    ...['queues show effects', 'queues pause effects', 'queues rm effects --force', 'dead ls effects'],
    ...[
      'dead replay effects --all',
      'schedules ls',
      'schedules rm nightly',
      'schedules forecast',
      'queues leaders',
      'queues workers',
      'doctor --keys',
    ],
    'schedules put nightly --queue effects --every 1d',
  ])('duestream %s ends with 78', async (line) => {
    const before = await contents();
    const { code, err } = await runHere([...line.split(' '), '--redis', server.url]);
    expect([code, err]).toEqual([78, expect.stringContaining('update this process to the version that wrote it')]);
    expect(await contents()).toEqual(before);
  });

  test('doctor tells of it, with the next step', async () => {
    const { code, out } = await runHere(['doctor', '--redis', server.url, '--json']);
    const { checks } = JSON.parse(out);
    expect(code).toBe(1);
    expect(checks.find(({ check }: { readonly check: string }) => check === 'schema')).toEqual({
      check: 'schema',
      status: 'fail',
      saw: 'namespace duestream has schema "2"; this version knows 1, and no part of it works here',
      advice: 'update this process to the version that wrote it, or use another namespace (--namespace)',
    });
  });
});

describe('changed under what runs', () => {
  test('a daemon ends with 78 and writes nothing more: its lease and its heartbeat are left to run out', async () => {
    const env = { ...scene().env, DUESTREAM_MOVER__LEASE: '60000' };
    const daemon = await processes.started({ name: 'daemon', args: daemonArgs, env });
    await redis.hset(control.queues, QUEUE, '{"partitions":1,"generation":0}');
    await redis.spublish(control.wake, `queue ${QUEUE}`);
    await expect.poll(() => redis.exists(keys.leader)).toBe(1);
    expect(await redis.hget(control.queues, SCHEMA_FIELD)).toBe(SCHEMA);
    await moveOn();
    expect(await daemon.exited).toMatchObject({ code: 78 });
    expect(daemon.lines().map(({ msg }) => msg)).toContain('the namespace has another schema: stopping');
    expect(await redis.exists(keys.leader)).toBe(1);
    expect(await redis.scard(control.alive)).toBe(1);
  });

  test('a leader of a partition alone that has moved on ends as well, as soon as it has to be elected', async () => {
    await redis.hset(control.queues, QUEUE, '{"partitions":1,"generation":0}');
    const daemon = await processes.started({ name: 'daemon', args: daemonArgs, env: scene().env });
    await expect.poll(() => redis.exists(keys.leader)).toBe(1);
    await redis.multi().hset(keys.meta, 'schema', '2').del(keys.leader).exec();
    expect(await daemon.exited).toMatchObject({ code: 78 });
  });

  test('a worker ends with 78 and settles nothing more; its job goes to whoever may have it', async () => {
    const { env, file } = scene();
    const started = () => readEffects(file).filter(({ what }) => what === 'start').length;
    const daemon = await processes.started({ name: 'daemon', args: daemonArgs, env });
    const worker = await processes.started({ name: 'worker', args: workerArgs, env });
    const producer = createClient({ redis: server.url });
    await producer.schedule(QUEUE, { ms: [600_000, 0] }, { id: 'job' });
    await expect.poll(started).toBe(1);
    await mark('2');
    expect(await worker.exited).toMatchObject({ code: 78 });
    expect(await daemon.exited).toMatchObject({ code: 78 });
    expect(String(await redis.xpending(keys.ready, 'workers'))).toMatch(/^1,/);
    expect(decodeRun((await redis.hget(keys.runs, memberOf('job'))) ?? '')?.owner).toMatch(/^w-/);
    await mark(SCHEMA);
    await processes.started({ name: 'next daemon', args: daemonArgs, env });
    await processes.started({ name: 'next worker', args: workerArgs, env });
    await expect.poll(async () => (await producer.get(QUEUE, 'job'))?.state).toBe('done');
    expect(started()).toBe(2);
    await producer.close();
  });

  test('a producer that knew the queue is told by a script that the partition has moved, and refuses', async () => {
    const producer = createClient({ redis: server.url });
    await producer.schedule(QUEUE, 1, { delay: '1h', id: 'before' });
    await mark('2');
    await redis.hset(keys.meta, 'schema', '2', 'generation', '1');
    const before = await contents();
    await expect(producer.schedule(QUEUE, 1, { delay: '1h' })).rejects.toMatchObject({ code: 'wrong-schema' });
    await expect(producer.cancel(QUEUE, 'before')).rejects.toMatchObject({ code: 'wrong-schema' });
    expect(await contents()).toEqual(before);
    await producer.close();
  });
});
