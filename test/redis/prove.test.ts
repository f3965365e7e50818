/** Each row of `prove` fails when what it tries is broken. A run with processes of its own is in `test/flow/cli/prove.test.ts`. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { createAbort } from '../../src/kernel/abort.ts';
import { Cast } from '../../src/prove/cast.ts';
import { judgedKilled, judgedLed, judgedLost, LEAD_MAX_MS, RECOVER_MAX_MS } from '../../src/prove/faults.ts';
import { login } from '../../src/prove/login.ts';
import { LossyLine } from '../../src/prove/lossy-line.ts';
import { clean, keepAlive, newNamespace, PREFIX, sweep } from '../../src/prove/namespace.ts';
import type { Stage } from '../../src/prove/stage.ts';
import { close, openCommands, type Redis, whenReady } from '../../src/redis/connection/connect.ts';
import { controlKeys, partitionKeys } from '../../src/redis/keys.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';

let server: TestRedis;
let redis: Redis;

beforeAll(async () => {
  server = await startRedis();
  redis = await opened();
});
afterAll(async () => {
  close(redis);
  await server.stop();
});

afterEach(() => redis.flushall());

async function opened(user: { readonly username?: string; readonly password?: string } = {}): Promise<Redis> {
  const connection = openCommands({ redis: { ...server.options, ...user }, name: 'test' });
  await whenReady(connection);
  return connection;
}

const stageOf = (on: Redis, more: Partial<Stage> = {}): Stage => ({
  redis: on,
  address: server.options,
  read: 'block',
  namespace: newNamespace(),
  jobs: 20,
  signal: createAbort().signal,
  cast: new Cast(),
  ...more,
});

/** A user with a password, for as long as the connection is used. */
async function withUser<T>(rules: string, act: (connection: Redis) => Promise<T>): Promise<T> {
  await redis.call('ACL', 'SETUSER', 'app', 'reset', 'on', '>secret-of-app', ...rules.split(' '));
  const connection = await opened({ username: 'app', password: 'secret-of-app' });
  try {
    return await act(connection);
  } finally {
    close(connection);
    await redis.call('ACL', 'DELUSER', 'app');
  }
}

describe('login', () => {
  test('holds for a user who may do everything, and leaves nothing', async () => {
    const stage = stageOf(redis);
    expect(await login(stage)).toMatchObject({ status: 'held', figures: { refused: 0 } });
    expect(await redis.keys(`${stage.namespace}*`)).toEqual([]);
  });

  test('names each command that is refused, and what to allow', async () => {
    const found = await withUser('~* &* +@all -xclaim -client|unblock -ssubscribe', (connection) =>
      login(stageOf(connection, { address: { ...server.options, username: 'app', password: 'secret-of-app' } })),
    );
    expect(found).toMatchObject({ status: 'failed', figures: { refused: 3 } });
    expect(found.saw).toContain('client|unblock, ssubscribe, xclaim (NOPERM ');
    expect(found.advice).toBe('ACL SETUSER app +client|unblock +ssubscribe +xclaim');
  });

  test('holds without what duestream can do without, and says what that costs', async () => {
    const found = await withUser('~* &* +@all -client|unblock -ssubscribe', (connection) =>
      login(stageOf(connection, { address: { ...server.options, username: 'app', password: 'secret-of-app' } })),
    );
    expect(found).toMatchObject({ status: 'held', figures: { refused: 2 }, saw: expect.stringContaining('nudges') });
    expect(found.advice).toBe('ACL SETUSER app +client|unblock +ssubscribe');
  });

  test('says which keys to allow where a user is bound to another namespace', async () => {
    const found = await withUser('~duestream:v1:* &* +@all', (connection) => login(stageOf(connection)));
    expect(found.status).toBe('failed');
    expect(found.advice).toBe(`ACL SETUSER app ~${PREFIX}* &${PREFIX}*`);
  });
});

describe('faults', () => {
  test('a line loses the replies of calls that were carried out', async () => {
    const line = new LossyLine(1);
    const { redis: address } = await line.open(redis, server.options);
    const through = openCommands({ redis: address, name: 'test' });
    await whenReady(through);
    // No reply is lost before.
    for (let call = 0; call < 10; call += 1) await through.incr('calls');
    line.arm();
    await expect(through.incr('calls')).rejects.toThrow();
    expect({ calls: await redis.get('calls'), lost: line.lost }).toEqual({ calls: '11', lost: 1 });
    await whenReady(through);
    for (let call = 0; call < 20; call += 1) await through.incr('calls');
    expect(line.lost).toBe(1);
    close(through);
    line.close();
  });

  test('a job that is lost, dead or started twice fails the row of lost replies', () => {
    const all = { jobs: 9, done: 9, dead: 0, twice: 0, lost: { producerLost: 1, daemonLost: 1, workerLost: 1 } };
    expect(judgedLost(all)).toMatchObject({ status: 'held', figures: { producerLost: 1 } });
    expect(judgedLost({ ...all, done: 8 })).toMatchObject({ status: 'failed', saw: expect.stringContaining('1 lost') });
    expect(judgedLost({ ...all, done: 10 }).status).toBe('failed');
    expect(judgedLost({ ...all, dead: 1 }).status).toBe('failed');
    expect(judgedLost({ ...all, twice: 1 }).status).toBe('failed');
    const unharmed = { ...all, lost: { ...all.lost, daemonLost: 0 } };
    expect(judgedLost(unharmed)).toMatchObject({ status: 'not tried', saw: expect.stringContaining('none of daemon') });
  });

  test('jobs of a killed worker that nobody takes over in time fail its row', () => {
    expect(judgedKilled({ done: 5, jobs: 5, tookMs: 4000 }).status).toBe('held');
    expect(judgedKilled({ done: 4, jobs: 5, tookMs: 4000 }).status).toBe('failed');
    expect(judgedKilled({ done: 5, jobs: 5, tookMs: RECOVER_MAX_MS + 1 }).status).toBe('failed');
  });

  test('a queue that nobody leads in time fails the row of the leader', () => {
    const all = { done: 20, tookMs: 2000, isLed: true };
    expect(judgedLed(all).status).toBe('held');
    expect(judgedLed({ ...all, isLed: false })).toMatchObject({
      status: 'failed',
      saw: expect.stringContaining('no other'),
    });
    expect(judgedLed({ ...all, done: 19 }).status).toBe('failed');
    expect(judgedLed({ ...all, tookMs: LEAD_MAX_MS + 1 }).status).toBe('failed');
  });
});

describe('what is left', () => {
  /** As a run leaves it when it is killed. */
  async function leave(namespace: string): Promise<void> {
    await redis.hset(partitionKeys({ namespace, queue: 'lost', partition: 0 }).jobs, 'j:1', 'x');
    await redis.set(`${namespace}:v1:{control}:unheard-of`, 'x');
  }

  test('all of a namespace goes, and nothing else', async () => {
    await redis.mset('mine', '1', 'duestream:v1:{q:0}:meta', '1', `${PREFIX}mine`, '1');
    const [ours, theirs] = [newNamespace(), newNamespace()];
    await leave(ours);
    await leave(theirs);
    expect(await sweep(redis, ours)).toEqual({ removed: 2, left: [], seen: 'all' });
    expect(await redis.keys(`${theirs}*`)).toHaveLength(2);
    expect(await redis.exists('mine', 'duestream:v1:{q:0}:meta', `${PREFIX}mine`)).toBe(3);
  });

  test('what is removed by name is known to be gone where SCAN is forbidden', async () => {
    const namespace = newNamespace();
    await redis.hset(partitionKeys({ namespace, queue: 'lost', partition: 0 }).jobs, 'j:1', 'x');
    const swept = await withUser('~* &* +@all -scan', (connection) => sweep(connection, namespace));
    expect(swept).toEqual({ removed: 1, left: [], seen: 'names' });
  });

  test('a key that cannot be removed is named', async () => {
    const namespace = newNamespace();
    await leave(namespace);
    const stuck = await opened();
    Object.assign(stuck, { unlink: async () => 0 });
    expect((await sweep(stuck, namespace)).left).toHaveLength(2);
    close(stuck);
  });

  test('the clean-up leaves a run that lives alone', async () => {
    const [living, dead] = [newNamespace(), newNamespace()];
    const over = createAbort();
    const alive = keepAlive(redis, living, over.signal);
    await leave(dead);
    await expect.poll(() => redis.exists(controlKeys(living).alive)).toBe(1);
    const { runs, seen } = await clean(redis);
    expect(seen).toBe('all');
    expect(runs).toHaveLength(2);
    expect(runs.find(({ namespace }) => namespace === living)).toMatchObject({ isAlive: true, removed: 0 });
    expect(runs.find(({ namespace }) => namespace === dead)).toMatchObject({ isAlive: false, removed: 2 });
    over.abort();
    await alive;
  });
});
